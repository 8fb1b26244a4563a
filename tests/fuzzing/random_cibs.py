"""Random CIBs in Pacemaker's XML, weighted to what real clusters use; equal seeds give equal CIBs.

A CIB starts without history. Pacemaker's own simulator carries its plan out, which gives a true history; then something
happens (`disturb`): a node dies, an action fails, somebody edits the configuration.
"""

import random
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from haclusterd.model.records import dataclass, field
from tests.fuzzing.drafts import Draft, Event, add_pairs, empty_cib, forget, part, set_meta, set_transient

SCORES = ("INFINITY", "-INFINITY", "100", "500", "-100", "10", "1000")


@dataclass(slots=True)
class Recipe(Draft):
    """A draft of what real clusters use."""

    primitives: list[str] = field(default_factory=list)
    """Ids by which constraints may name them."""
    cloned: list[str] = field(default_factory=list)
    """Primitives inside clones."""
    has_utilization: bool = False

    def top(self) -> str:
        return self.chance.choice(self.tops)

    def node(self) -> str:
        return self.chance.choice(self.nodes)


def generate(seed: int) -> ET.Element:
    """Return a CIB without any history."""
    recipe = Recipe(random.Random(seed), empty_cib("pacemaker-3.7"))
    chance = recipe.chance
    recipe.nodes = [f"n{index}" for index in range(1, chance.choice((2, 3, 3, 4)) + 1)]
    recipe.has_utilization = recipe.is_likely(0.12)
    configuration = recipe.part("configuration")
    resources = part(configuration, "resources")
    if recipe.is_likely(0.6):
        _primitive(recipe, resources, "fence", standard="stonith")
    for index in range(1, chance.randint(1, 5) + 1):
        _resource(recipe, resources, index)
    _properties(recipe, part(configuration, "crm_config"))
    _nodes(recipe)
    for index in range(chance.choice((0, 1, 1, 2, 2, 3, 4))):
        _constraint(recipe, part(configuration, "constraints"), index)
    _lifetimes(seed, part(configuration, "constraints"))
    _defaults(recipe, configuration)
    _status(recipe)
    return recipe.cib


def _properties(recipe: Recipe, section: ET.Element) -> None:
    table = (
        (0.10, "symmetric-cluster", ("false",)),
        (0.10, "maintenance-mode", ("true", "false")),
        (0.15, "no-quorum-policy", ("stop", "freeze", "ignore", "demote")),
        (0.05, "stop-all-resources", ("true",)),
        (0.06, "enable-startup-probes", ("false",)),
        (0.06, "start-failure-is-fatal", ("false",)),
        (0.06, "node-health-strategy", ("migrate-on-red", "only-green", "progressive", "custom")),
        (0.05, "stop-orphan-resources", ("false",)),
        (0.05, "shutdown-lock", ("true",)),
        (0.08, "priority-fencing-delay", ("30s",)),
    )
    pairs = {"stonith-enabled": "true" if "fence" in recipe.primitives else "false", **recipe.chosen(table)}
    if recipe.has_utilization:
        pairs["placement-strategy"] = recipe.chance.choice(("utilization", "minimal", "balanced"))
    add_pairs(section, "cluster_property_set", "cib-bootstrap-options", pairs)


def _nodes(recipe: Recipe) -> None:
    for number, name in enumerate(recipe.nodes, start=1):
        node = recipe.add_node(number, name)
        pairs = recipe.chosen(
            (
                (0.06, "standby", ("on",)),
                (0.04, "maintenance", ("true",)),
                (0.20, "rack", ("1", "2")),
                (0.08, "#health-disk", ("red", "yellow", "green")),
            ),
        )
        add_pairs(node, "instance_attributes", f"nodes-{number}", pairs)
        if recipe.has_utilization:
            add_pairs(
                node,
                "utilization",
                f"nodes-{number}-utilization",
                {"memory": str(recipe.chance.randint(1, 8)), "cpu": str(recipe.chance.randint(1, 8))},
            )


def _meta(recipe: Recipe) -> dict[str, str]:
    return recipe.chosen(
        (
            (0.20, "resource-stickiness", ("0", "1", "100", "INFINITY")),
            (0.15, "priority", ("5", "10", "-5")),
            (0.10, "target-role", ("Stopped", "Started")),
            (0.07, "is-managed", ("false",)),
            (0.12, "migration-threshold", ("1", "2")),
            (0.08, "failure-timeout", ("60s",)),
            (0.06, "requires", ("nothing", "quorum", "fencing")),
            (0.07, "multiple-active", ("block", "stop_only", "stop_unexpected")),
            (0.10, "allow-migrate", ("true",)),
            (0.05, "critical", ("false",)),
            (0.05, "allow-unhealthy-nodes", ("true",)),
        ),
    )


def _primitive(recipe: Recipe, parent: ET.Element, name: str, standard: str = "ocf", *, role: bool = False) -> None:
    if standard == "stonith":
        element = ET.SubElement(parent, "primitive", {"id": name, "class": "stonith", "type": "fence_dummy"})
    else:
        kind = "Stateful" if role else "Dummy"
        agent = {"id": name, "class": "ocf", "provider": "pacemaker", "type": kind}
        element = ET.SubElement(parent, "primitive", agent)
        meta = _meta(recipe) if recipe.is_likely(0.6) else {}
        add_pairs(element, "meta_attributes", f"{name}-meta", meta)
        if recipe.has_utilization and recipe.is_likely(0.7):
            add_pairs(element, "utilization", f"{name}-utilization", {"memory": str(recipe.chance.randint(1, 4))})
    operations = ET.SubElement(element, "operations")
    _operations(recipe, operations, name, role=role)
    recipe.primitives.append(name)


def _operations(recipe: Recipe, operations: ET.Element, name: str, *, role: bool) -> None:
    def add(task: str, interval: str, **more: str) -> None:
        named = {key.replace("_", "-"): value for key, value in more.items()}
        ET.SubElement(
            operations, "op", {"id": f"{name}-{task}-{interval}", "name": task, "interval": interval, **named}
        )

    on_fail = recipe.chance.choice(("restart", "ignore", "stop", "block", "fence", "standby"))
    extra = {"on-fail": on_fail} if recipe.is_likely(0.15) else {}
    if role:
        add("monitor", "10s", role="Master", **extra)
        add("monitor", "11s", role="Slave")
    elif recipe.is_likely(0.8):
        add("monitor", "10s", **extra)
    if recipe.is_likely(0.1):
        add("stop", "0", on_fail=recipe.chance.choice(("block", "fence", "ignore")))
    if recipe.is_likely(0.1):
        add("start", "0", timeout="60s", on_fail=recipe.chance.choice(("restart", "block", "stop")))


def _resource(recipe: Recipe, section: ET.Element, index: int) -> None:
    kind = recipe.chance.random()
    if kind < 0.45:
        _primitive(recipe, section, f"r{index}")
        recipe.tops.append(f"r{index}")
    elif kind < 0.65:
        _group(recipe, section, f"g{index}")
        recipe.tops.append(f"g{index}")
    else:
        _clone(recipe, section, f"c{index}", is_promotable=kind > 0.84)


def _group(recipe: Recipe, parent: ET.Element, name: str, *, role: bool = False) -> None:
    group = ET.SubElement(parent, "group", id=name)
    meta = recipe.chosen(
        (
            (0.08, "target-role", ("Stopped",)),
            (0.1, "resource-stickiness", ("50",)),
            (0.05, "is-managed", ("false",)),
            (0.04, "ordered", ("false",)),
            (0.04, "collocated", ("false",)),
            (0.1, "priority", ("7",)),
        ),
    )
    add_pairs(group, "meta_attributes", f"{name}-meta", meta)
    for member in range(1, recipe.chance.choice((1, 2, 2, 3)) + 1):
        _primitive(recipe, group, f"{name}m{member}", role=role)


def _clone(recipe: Recipe, section: ET.Element, name: str, *, is_promotable: bool) -> None:
    clone = ET.SubElement(section, "clone", id=name)
    meta = recipe.chosen(
        (
            (0.30, "interleave", ("true",)),
            (0.25, "clone-max", ("1", "2", "3")),
            (0.12, "ordered", ("true",)),
            (0.15, "notify", ("true",)),
            (0.05, "clone-min", ("1", "2")),
            (0.08, "target-role", ("Stopped", "Started")),
            (0.05, "is-managed", ("false",)),
            (0.1, "resource-stickiness", ("0", "100")),
        ),
    )
    if not is_promotable and recipe.is_likely(0.12):
        meta |= {"globally-unique": "true", "clone-node-max": recipe.chance.choice(("1", "2"))}
    if is_promotable:
        meta |= {"promotable": "true"} | recipe.chosen(((0.2, "promoted-max", ("2",)),))
        if recipe.is_likely(0.05):
            meta["target-role"] = recipe.chance.choice(("Slave", "Master"))
        recipe.promotables.append(name)
    add_pairs(clone, "meta_attributes", f"{name}-meta", meta)
    before = len(recipe.primitives)
    if recipe.is_likely(0.2):
        _group(recipe, clone, f"{name}g", role=is_promotable)
    else:
        _primitive(recipe, clone, f"{name}p", role=is_promotable)
    recipe.cloned += recipe.primitives[before:]
    recipe.tops.append(name)


def _constraint(recipe: Recipe, section: ET.Element, index: int) -> None:
    kind = recipe.chance.random()
    if kind < 0.3:
        _location(recipe, section, f"loc{index}")
    elif kind < 0.6:
        _colocation(recipe, section, f"col{index}")
    elif kind < 0.94:
        _order(recipe, section, f"ord{index}")
    else:
        policy = recipe.chance.choice(("stop", "demote", "freeze", "fence"))
        ET.SubElement(
            section, "rsc_ticket", {"id": f"tic{index}", "rsc": recipe.top(), "ticket": "t1", "loss-policy": policy}
        )


def _location(recipe: Recipe, section: ET.Element, name: str) -> None:
    chance = recipe.chance
    if recipe.is_likely(0.7):
        more = {"resource-discovery": chance.choice(("never", "exclusive"))} if recipe.is_likely(0.07) else {}
        ET.SubElement(
            section,
            "rsc_location",
            {"id": name, "rsc": recipe.top(), "node": recipe.node(), "score": chance.choice(SCORES), **more},
        )
        return
    location = ET.SubElement(section, "rsc_location", id=name, rsc=recipe.top())
    rule = ET.SubElement(location, "rule", id=f"{name}-rule", score=chance.choice(SCORES))
    if recipe.promotables and recipe.is_likely(0.3):
        location.set("rsc", chance.choice(recipe.promotables))
        rule.set("role", "Master")
    attribute, operation = chance.choice((("#uname", "eq"), ("rack", "defined"), ("rack", "eq"), ("rack", "lt")))
    expression = ET.SubElement(rule, "expression", id=f"{name}-expr", attribute=attribute, operation=operation)
    if operation != "defined":
        expression.set("value", recipe.node() if attribute == "#uname" else "2")


def _ends(recipe: Recipe) -> tuple[str, str] | None:
    names = [*recipe.tops, *(name for name in recipe.primitives if "m" in name and name not in recipe.cloned)]
    if len(names) < 2:
        return None
    first, second = recipe.chance.sample(names, 2)
    return None if first.startswith(second) or second.startswith(first) else (first, second)


def _colocation(recipe: Recipe, section: ET.Element, name: str) -> None:
    chance = recipe.chance
    ends = _ends(recipe)
    if ends is None:
        return
    score = chance.choice(("INFINITY", "INFINITY", "INFINITY", "100", "-INFINITY", "-100", "2000"))
    if recipe.is_likely(0.12) and len(recipe.tops) >= 3:
        constraint = ET.SubElement(section, "rsc_colocation", id=name, score=score)
        _sets(recipe, constraint, name)
        return
    colocation = ET.SubElement(
        section, "rsc_colocation", {"id": name, "rsc": ends[0], "with-rsc": ends[1], "score": score}
    )
    if ends[1] in recipe.promotables and recipe.is_likely(0.6):
        colocation.set("with-rsc-role", chance.choice(("Master", "Master", "Slave")))
    if recipe.is_likely(0.05):
        colocation.set("node-attribute", "rack")


def _sets(recipe: Recipe, constraint: ET.Element, name: str) -> None:
    members = recipe.chance.sample(recipe.tops, min(len(recipe.tops), recipe.chance.choice((3, 4))))
    for number, half in enumerate((members[:2], members[2:])):
        each = ET.SubElement(constraint, "resource_set", id=f"{name}-set{number}")
        if recipe.is_likely(0.6):
            each.set("sequential", recipe.chance.choice(("true", "false")))
        for member in half:
            ET.SubElement(each, "resource_ref", id=member)


def _lifetimes(seed: int, section: ET.Element) -> None:
    """Let some constraints hold for a time only; drawn apart, so that a seed is otherwise what it is without."""
    chance = random.Random(f"lifetimes {seed}")
    for constraint in section:
        if constraint.tag in ("rsc_order", "rsc_colocation") and chance.random() < 0.05:
            name, operation = constraint.get("id"), chance.choice(("lt", "gt"))
            lifetime = ET.Element("lifetime")
            rule = ET.SubElement(lifetime, "rule", id=f"{name}-rule", score="INFINITY")
            limit = {"lt": "end", "gt": "start"}[operation]
            date = {"id": f"{name}-date", "operation": operation, limit: chance.choice(("2023-01-01", "2024-01-01"))}
            ET.SubElement(rule, "date_expression", date)
            constraint.insert(0, lifetime)


def _order(recipe: Recipe, section: ET.Element, name: str) -> None:
    chance = recipe.chance
    ends = _ends(recipe)
    if ends is None:
        return
    kind = chance.choice(("Mandatory", "Mandatory", "Mandatory", "Optional", "Serialize"))
    if recipe.is_likely(0.12) and len(recipe.tops) >= 3:
        constraint = ET.SubElement(section, "rsc_order", id=name, kind=kind)
        _sets(recipe, constraint, name)
        if kind == "Mandatory" and recipe.is_likely(0.3):
            part(constraint, "resource_set").set("require-all", "false")
        return
    order = ET.SubElement(section, "rsc_order", id=name, first=ends[0], then=ends[1], kind=kind)
    if ends[0] in recipe.promotables and recipe.is_likely(0.6):
        order.set("first-action", "promote")
        order.set("then-action", "start")
    elif recipe.is_likely(0.08):
        order.set("first-action", "stop")
        order.set("then-action", chance.choice(("start", "stop")))
    if kind != "Serialize" and recipe.is_likely(0.12):
        order.set("symmetrical", "false")


def _defaults(recipe: Recipe, configuration: ET.Element) -> None:
    if recipe.is_likely(0.4):
        pairs = {"resource-stickiness": recipe.chance.choice(("1", "100", "0"))}
        add_pairs(ET.SubElement(configuration, "rsc_defaults"), "meta_attributes", "rsc-options", pairs)


def _status(recipe: Recipe) -> None:
    granted = "true" if recipe.is_likely(0.7) else "false"
    for number, name in enumerate(recipe.nodes, start=1):
        state = recipe.add_state(number, name)
        pairs = {}
        for promotable in recipe.promotables:
            if recipe.is_likely(0.6):
                pairs[f"master-{promotable}p"] = recipe.chance.choice(("5", "10", "10", "100"))
        if pairs:
            add_pairs(
                ET.SubElement(state, "transient_attributes", id=str(number)),
                "instance_attributes",
                f"status-{number}",
                pairs,
            )
    tickets = ET.SubElement(recipe.part("status"), "tickets")
    ET.SubElement(tickets, "ticket_state", id="t1", granted=granted, standby="false")


def disturb(cib: ET.Element, seed: int | str, more: Sequence[Event] = ()) -> None:
    """Let something happen, in place: one to three events of those known here and of `more`."""
    chance = random.Random(f"disturbed-{seed}")
    for _ in range(chance.choice((1, 1, 2, 3))):
        chance.choice((*EVENTS, *more))(cib, chance)


def _any(chance: random.Random, elements: Sequence[ET.Element]) -> ET.Element | None:
    return chance.choice(elements) if elements else None


def _fail_node(cib: ET.Element, chance: random.Random) -> None:
    state = _any(chance, cib.findall("status/node_state"))
    if state is not None:
        manner = chance.choice(("lost", "left", "process"))
        state.set("crmd", "offline")
        if manner != "process":
            state.set("in_ccm", "false")
            state.set("join", "down")
        if manner == "left":
            state.set("expected", "down")


def _leave(cib: ET.Element, chance: random.Random) -> None:
    state = _any(chance, cib.findall("status/node_state"))
    if state is not None and state.get("crmd") == "online":
        set_transient(state, "shutdown", "1699999000")


def _fail_operation(cib: ET.Element, chance: random.Random) -> None:
    states = [state for state in cib.findall("status/node_state") if state.find(".//lrm_rsc_op") is not None]
    state = _any(chance, states)
    if state is None:
        return
    operation = chance.choice(state.findall(".//lrm_rsc_op"))
    code = chance.choice(("1", "1", "1", "7", "5", "6", "9"))
    key = operation.get("transition-key", "1:1:0:00000000-0000-0000-0000-000000000000")
    operation.set("rc-code", code)
    operation.set("op-status", "4" if code != key.split(":")[2] else "0")
    operation.set("transition-magic", f"{operation.get('op-status')}:{code};{key}")
    operation.set("last-rc-change", chance.choice(("1699999990", "1699990000")))
    resource = next(each for each in state.findall(".//lrm_resource") if operation in list(each))
    if chance.random() < 0.8:
        name = resource.get("id", "")
        suffix = f"{name}#{operation.get('operation')}_{operation.get('interval', '0')}"
        set_transient(state, f"fail-count-{suffix}", "INFINITY" if operation.get("operation") == "start" else "1")
        set_transient(state, f"last-failure-{suffix}", operation.get("last-rc-change", ""))


def _edit_meta(cib: ET.Element, chance: random.Random) -> None:
    resource = _any(
        chance, [each for each in cib.findall(".//resources//*") if each.tag in ("primitive", "group", "clone")]
    )
    if resource is None or resource.get("class") == "stonith":
        return
    name, value = chance.choice(
        (
            ("target-role", "Stopped"),
            ("target-role", "Started"),
            ("is-managed", "false"),
            ("resource-stickiness", "0"),
            ("priority", "20"),
            ("maintenance", "true"),
        )
    )
    set_meta(resource, name, value)


def _standby(cib: ET.Element, chance: random.Random) -> None:
    state = _any(chance, cib.findall("status/node_state"))
    if state is not None:
        set_transient(state, chance.choice(("standby", "standby", "#health-cpu")), chance.choice(("on", "red")))


def _remove(cib: ET.Element, chance: random.Random) -> None:
    resources = part(cib, "configuration/resources")
    chosen = _any(chance, [each for each in resources if each.get("class") != "stonith"])
    if chosen is None or len(resources) < 2:
        return
    resources.remove(chosen)
    forget(cib, chosen)


def _edit_constraint(cib: ET.Element, chance: random.Random) -> None:
    constraint = _any(chance, cib.findall("configuration/constraints/*[@score]"))
    if constraint is not None:
        constraint.set("score", chance.choice(SCORES))


def _quorum(cib: ET.Element, chance: random.Random) -> None:
    if chance.random() < 0.4:
        cib.set("have-quorum", "0")


def _lose_ticket(cib: ET.Element, chance: random.Random) -> None:
    ticket = _any(chance, cib.findall("status/tickets/ticket_state"))
    if ticket is not None:
        ticket.set(chance.choice(("granted", "standby")), chance.choice(("false", "true")))


EVENTS: tuple[Event, ...] = (
    _fail_node,
    _fail_operation,
    _fail_operation,
    _edit_meta,
    _standby,
    _remove,
    _leave,
    _edit_constraint,
    _quorum,
    _lose_ticket,
)
