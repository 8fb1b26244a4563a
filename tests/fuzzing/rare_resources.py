"""Random CIBs of what real clusters configure seldom, by themes of resources; equal seeds give equal CIBs.

Each theme draws a CIB without history, in which its subject always occurs, and something beside it. The history comes
from Pacemaker's own simulator, as for `random_cibs`; EVENTS change the configuration behind it, as administrators do
who do not stop first what is configured.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from random import Random

from haclusterd.model.records import dataclass, field
from tests.fuzzing.drafts import Draft, Event, add_pairs, empty_cib, forget, part, set_meta

SCORES = ("INFINITY", "INFINITY", "-INFINITY", "100", "-100", "10", "2000", "-50")
ROLES = ("Promoted", "Unpromoted", "Started")
ON_FAIL = ("ignore", "block", "stop", "restart", "standby", "demote", "fence")


@dataclass(slots=True)
class ServiceDraft(Draft):
    """A draft that counts what is in it, and knows more of its resources."""

    members: list[str] = field(default_factory=list)
    """Members of groups that are not cloned."""
    clones: list[str] = field(default_factory=list)
    scored: list[str] = field(default_factory=list)
    """Primitives whose agent sets promotion scores."""
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"


def _draft(chance: Random) -> ServiceDraft:
    nodes = [f"n{number}" for number in range(1, chance.choice((2, 3, 3, 4)) + 1)]
    draft = ServiceDraft(chance, empty_cib("pacemaker-3.9"), nodes)
    if draft.is_likely(0.5):
        resources = draft.part("configuration/resources")
        fence = ET.SubElement(resources, "primitive", {"id": "fence", "class": "stonith", "type": "fence_dummy"})
        ET.SubElement(ET.SubElement(fence, "operations"), "op", id="fence-monitor", name="monitor", interval="60s")
    return draft


def _finished(draft: ServiceDraft, **properties: str) -> ET.Element:
    """Add properties, nodes and their states, with promotion scores where agents set them."""
    fences = draft.cib.find(".//primitive[@class='stonith']") is not None
    drawn = draft.chosen(
        (
            (0.06, "symmetric-cluster", ("false",)),
            (0.05, "maintenance-mode", ("true",)),
            (0.1, "no-quorum-policy", ("stop", "freeze", "ignore", "demote")),
            (0.05, "start-failure-is-fatal", ("false",)),
            (0.05, "stop-orphan-resources", ("false",)),
            (0.05, "stop-orphan-actions", ("false",)),
            (0.05, "stop-all-resources", ("true",)),
            (0.05, "enable-startup-probes", ("false",)),
        )
    )
    pairs = {"stonith-enabled": "true" if fences else "false", **drawn, **properties}
    add_pairs(draft.part("configuration/crm_config"), "cluster_property_set", "cib-bootstrap-options", pairs)
    if draft.is_likely(0.4):
        defaults = ET.SubElement(draft.part("configuration"), "rsc_defaults")
        add_pairs(
            defaults, "meta_attributes", "rsc-options", {"resource-stickiness": draft.chance.choice(("1", "100"))}
        )
    for number, name in enumerate(draft.nodes, start=1):
        node = draft.add_node(number, name)
        if draft.is_likely(0.06):
            pairs = {draft.chance.choice(("standby", "maintenance")): "true"}
            add_pairs(node, "instance_attributes", f"nodes-{number}", pairs)
        state = draft.add_state(number, name)
        scores = {
            f"master-{each}": draft.chance.choice(("5", "10", "10", "100", "-5", "INFINITY"))
            for each in draft.scored
            if draft.is_likely(0.7)
        }
        if scores:
            add_pairs(
                ET.SubElement(state, "transient_attributes", id=str(number)),
                "instance_attributes",
                f"status-{number}",
                scores,
            )
    return draft.cib


def _meta(element: ET.Element, pairs: Mapping[str, str]) -> None:
    add_pairs(element, "meta_attributes", f"{element.get('id')}-meta", pairs)


def _primitive(draft: ServiceDraft, parent: ET.Element, name: str, *, role: bool = False, **meta: str) -> ET.Element:
    kind = "Stateful" if role else "Dummy"
    element = ET.SubElement(parent, "primitive", {"id": name, "class": "ocf", "provider": "pacemaker", "type": kind})
    drawn = draft.chosen(
        (
            (0.08, "resource-stickiness", ("0", "1", "100", "INFINITY")),
            (0.06, "priority", ("5", "10", "-5")),
            (0.06, "target-role", ("Stopped", "Started")),
            (0.04, "is-managed", ("false",)),
            (0.05, "migration-threshold", ("1", "2")),
            (0.05, "multiple-active", ("block", "stop_only", "stop_unexpected")),
            (0.06, "allow-migrate", ("true",)),
            (0.04, "critical", ("false",)),
        )
    )
    _meta(element, {**drawn, **meta})
    operations = ET.SubElement(element, "operations")
    if role:
        _operation(operations, name, "monitor", "10s", role="Promoted")
        _operation(operations, name, "monitor", "11s", role="Unpromoted")
        draft.scored.append(name)
    elif draft.is_likely(0.7):
        _operation(operations, name, "monitor", "10s")
    return element


def _operation(operations: ET.Element, name: str, task: str, interval: str, **more: str) -> None:
    named = {key.replace("_", "-"): value for key, value in more.items()}
    ET.SubElement(operations, "op", {"id": f"{name}-{task}-{interval}", "name": task, "interval": interval, **named})


def _group(draft: ServiceDraft, parent: ET.Element, name: str, *, role: bool = False, size: int = 0) -> ET.Element:
    group = ET.SubElement(parent, "group", id=name)
    _meta(
        group,
        draft.chosen(((0.05, "target-role", ("Stopped",)), (0.08, "ordered", ("false",)), (0.08, "priority", ("7",)))),
    )
    for member in range(1, (size or draft.chance.choice((1, 2, 2, 3))) + 1):
        _primitive(draft, group, f"{name}m{member}", role=role)
    return group


def _plain(draft: ServiceDraft, *, count: int = 1) -> None:
    """Add primitives and groups beside the subject."""
    resources = draft.part("configuration/resources")
    for _ in range(count):
        if draft.is_likely(0.65):
            name = draft.name("r")
            _primitive(draft, resources, name)
        else:
            name = draft.name("g")
            group = _group(draft, resources, name)
            draft.members += [str(each.get("id")) for each in group.findall("primitive")]
        draft.tops.append(name)


def _clone(
    draft: ServiceDraft, *, is_promotable: bool = False, is_unique: bool = False, is_of_group: bool = False, **meta: str
) -> str:
    name = draft.name("c")
    clone = ET.SubElement(draft.part("configuration/resources"), "clone", id=name)
    drawn = draft.chosen(
        (
            (0.4, "interleave", ("true",)),
            (0.3, "clone-max", ("1", "2", "3", "4")),
            (0.2, "ordered", ("true",)),
            (0.15, "notify", ("true",)),
            (0.15, "clone-min", ("1", "2")),
            (0.05, "target-role", ("Stopped", "Started", "Unpromoted") if is_promotable else ("Stopped", "Started")),
            (0.04, "is-managed", ("false",)),
            (0.1, "resource-stickiness", ("0", "100")),
        )
    )
    if is_unique:
        drawn |= {"globally-unique": "true", "clone-node-max": draft.chance.choice(("1", "2", "2", "3"))}
    if is_promotable:
        drawn |= {"promotable": "true"} | draft.chosen(
            ((0.5, "promoted-max", ("2", "3")), (0.15, "promoted-node-max", ("2",)))
        )
        draft.promotables.append(name)
    _meta(clone, {**drawn, **meta})
    if is_of_group:
        _group(draft, clone, f"{name}g", role=is_promotable)
    else:
        _primitive(draft, clone, f"{name}p", role=is_promotable)
    draft.clones.append(name)
    draft.tops.append(name)
    return name


def _ends(draft: ServiceDraft, prefers: Sequence[str] = ()) -> tuple[str, str] | None:
    names = [*draft.tops, *draft.tops, *draft.members]
    first = draft.chance.choice(prefers) if prefers and draft.is_likely(0.6) else draft.chance.choice(names)
    others = [each for each in names if not each.startswith(first) and not first.startswith(each)]
    if not others:
        return None
    second = draft.chance.choice(others)
    return (first, second) if draft.is_likely(0.5) else (second, first)


def _colocation(draft: ServiceDraft, prefers: Sequence[str] = (), *, roles: float = 0.5) -> None:
    ends = _ends(draft, prefers)
    if ends is None:
        return
    pairs = {"rsc": ends[0], "with-rsc": ends[1], "score": draft.chance.choice(SCORES)}
    for end, role in zip(ends, ("rsc-role", "with-rsc-role"), strict=True):
        if end in draft.promotables and draft.is_likely(roles):
            pairs[role] = draft.chance.choice(ROLES)
    if draft.is_likely(0.05):
        pairs["influence"] = "false"
    ET.SubElement(draft.part("configuration/constraints"), "rsc_colocation", {"id": draft.name("col"), **pairs})


def _order(draft: ServiceDraft, prefers: Sequence[str] = (), *, actions: float = 0.5) -> None:
    ends = _ends(draft, prefers)
    if ends is None:
        return
    kind = draft.chance.choice(("Mandatory", "Mandatory", "Mandatory", "Optional", "Serialize"))
    pairs = {"first": ends[0], "then": ends[1], "kind": kind}
    for end, action in zip(ends, ("first-action", "then-action"), strict=True):
        if end in draft.promotables and draft.is_likely(actions):
            pairs[action] = draft.chance.choice(("promote", "promote", "demote", "start", "stop"))
        elif draft.is_likely(0.06):
            pairs[action] = draft.chance.choice(("start", "stop"))
    if kind != "Serialize" and draft.is_likely(0.12):
        pairs["symmetrical"] = "false"
    ET.SubElement(draft.part("configuration/constraints"), "rsc_order", {"id": draft.name("ord"), **pairs})


def _location(draft: ServiceDraft, prefers: Sequence[str] = (), **more: str) -> None:
    target = draft.chance.choice(prefers or draft.tops)
    pairs = {"rsc": target, "node": draft.chance.choice(draft.nodes), "score": draft.chance.choice(SCORES), **more}
    if target in draft.promotables and draft.is_likely(0.3):
        pairs["role"] = "Promoted"
    ET.SubElement(draft.part("configuration/constraints"), "rsc_location", {"id": draft.name("loc"), **pairs})


def _constraints(draft: ServiceDraft, prefers: Sequence[str] = (), *, count: Sequence[int] = (0, 1, 1, 2, 3)) -> None:
    for _ in range(draft.chance.choice(count)):
        draft.chance.choice((_colocation, _colocation, _order, _order, _location))(draft, prefers)


def unique_clones(chance: Random) -> ET.Element:
    draft = _draft(chance)
    for _ in range(chance.choice((1, 1, 2))):
        _clone(draft, is_unique=draft.is_likely(0.85), is_of_group=draft.is_likely(0.5))
    _plain(draft, count=chance.choice((0, 1, 2)))
    _constraints(draft, draft.clones)
    return _finished(draft)


def anonymous_clones(chance: Random) -> ET.Element:
    draft = _draft(chance)
    for _ in range(chance.choice((2, 2, 3))):
        _clone(draft, is_of_group=draft.is_likely(0.4), is_promotable=draft.is_likely(0.1))
    _plain(draft, count=chance.choice((0, 1, 2)))
    _constraints(draft, draft.clones, count=(1, 2, 3, 4))
    return _finished(draft)


def clone_min(chance: Random) -> ET.Element:
    draft = _draft(chance)
    least = {"clone-min": chance.choice(("1", "2", "2", "3"))}
    _clone(draft, is_of_group=draft.is_likely(0.3), is_unique=draft.is_likely(0.15), **least)
    _clone(draft, is_of_group=draft.is_likely(0.3), is_promotable=draft.is_likely(0.3))
    _plain(draft, count=chance.choice((1, 2)))
    first = draft.clones[0]
    for then in chance.sample(draft.tops[1:], chance.randint(1, 2)):
        pairs = {
            "id": draft.name("ord"),
            "first": first,
            "then": then,
            "kind": chance.choice(("Mandatory", "Optional")),
        }
        ET.SubElement(draft.part("configuration/constraints"), "rsc_order", pairs)
    _constraints(draft, draft.clones)
    return _finished(draft)


def promotable_clones(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _clone(draft, is_promotable=True, is_of_group=draft.is_likely(0.25), is_unique=draft.is_likely(0.1))
    _plain(draft, count=chance.choice((0, 1, 2)))
    _constraints(draft, draft.promotables)
    return _finished(draft)


def several_promotable_clones(chance: Random) -> ET.Element:
    draft = _draft(chance)
    for _ in range(chance.choice((2, 2, 3))):
        _clone(draft, is_promotable=True, is_of_group=draft.is_likely(0.15))
    _plain(draft, count=chance.choice((0, 1)))
    for _ in range(chance.choice((1, 1, 2))):
        _colocation(draft, draft.promotables, roles=0.8)
    for _ in range(chance.choice((0, 1))):
        _order(draft, draft.promotables, actions=0.8)
    return _finished(draft)


def removed_resources(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((1, 2, 3)))
    for _ in range(chance.choice((0, 1, 2))):
        _clone(
            draft,
            is_promotable=draft.is_likely(0.4),
            is_unique=draft.is_likely(0.2),
            is_of_group=draft.is_likely(0.3),
        )
    _constraints(draft)
    return _finished(draft)


def templates_and_tags(chance: Random) -> ET.Element:
    draft = _draft(chance)
    resources = draft.part("configuration/resources")
    template = ET.Element("template", {"id": "tpl", "class": "ocf", "provider": "pacemaker", "type": "Dummy"})
    resources.insert(0, template)
    _meta(
        template, draft.chosen(((0.3, "resource-stickiness", ("10", "200")), (0.2, "migration-threshold", ("1", "2"))))
    )
    operations = ET.SubElement(template, "operations")
    _operation(operations, "tpl", "monitor", "15s", **draft.chosen(((0.3, "on_fail", ON_FAIL),)))
    _plain(draft, count=chance.choice((2, 3)))
    for _ in range(chance.choice((0, 1, 1))):
        _clone(draft, is_of_group=draft.is_likely(0.3))
    for primitive in resources.findall(".//primitive[@class='ocf']"):
        if primitive.get("type") == "Dummy" and draft.is_likely(0.6):
            for key in ("class", "provider", "type"):
                del primitive.attrib[key]
            primitive.set("template", "tpl")
            operations = primitive.find("operations")
            if operations is not None and draft.is_likely(0.7):
                primitive.remove(operations)
    tags = ET.SubElement(draft.part("configuration"), "tags")
    tag = ET.SubElement(tags, "tag", id="tag1")
    for name in chance.sample(draft.tops, min(len(draft.tops), chance.choice((2, 3)))):
        ET.SubElement(tag, "obj_ref", id=name)
    _constraints(draft, count=(0, 1))
    outside = [each for each in draft.tops if tag.find(f"obj_ref[@id='{each}']") is None]
    constraints = draft.part("configuration/constraints")
    if any(each.get("template") for each in resources.iter("primitive")) and draft.is_likely(0.4):
        kind = chance.choice(("rsc", "with-rsc"))
        other = {"rsc": "with-rsc", "with-rsc": "rsc"}[kind]
        whole = [each for each in draft.tops if resources.find(f"primitive[@id='{each}'][@template]") is None]
        if whole:
            pairs = {"id": "coltpl", kind: "tpl", other: chance.choice(whole), "score": chance.choice(SCORES)}
            ET.SubElement(constraints, "rsc_colocation", pairs)
    if outside and draft.is_likely(0.6):
        first, then = chance.sample(("tag1", chance.choice(outside)), 2)
        ET.SubElement(constraints, "rsc_order", {"id": "ordtag", "first": first, "then": then})
    if draft.is_likely(0.6):
        pairs = {"id": "loctag", "rsc": "tag1", "node": chance.choice(draft.nodes), "score": chance.choice(SCORES)}
        ET.SubElement(constraints, "rsc_location", pairs)
    return _finished(draft)


def resource_sets(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((3, 4, 5)))
    for _ in range(chance.choice((0, 1, 2))):
        _clone(draft, is_promotable=draft.is_likely(0.5), is_of_group=draft.is_likely(0.2))
    for _ in range(chance.choice((1, 1, 2))):
        tag = chance.choice(("rsc_colocation", "rsc_order", "rsc_order"))
        name = draft.name("set")
        pairs = {"id": name}
        if tag == "rsc_colocation":
            pairs["score"] = chance.choice(SCORES)
        elif draft.is_likely(0.7):
            pairs["kind"] = chance.choice(("Mandatory", "Mandatory", "Optional", "Serialize"))
        constraint = ET.SubElement(draft.part("configuration/constraints"), tag, pairs)
        left = chance.sample(draft.tops, len(draft.tops))
        for number in range(chance.choice((1, 2, 2, 3))):
            taken, left = left[:2], left[2:]
            if not taken:
                break
            each = ET.SubElement(constraint, "resource_set", id=f"{name}-{number}")
            for key, value in draft.chosen(((0.6, "sequential", ("true", "false")),)).items():
                each.set(key, value)
            if tag == "rsc_order" and draft.is_likely(0.3):
                each.set("require-all", "false")
                each.set("sequential", "false")
            if all(one in draft.promotables for one in taken) or draft.is_likely(0.04):
                key = "role" if tag == "rsc_colocation" else "action"
                each.set(key, chance.choice(("Promoted", "Started") if key == "role" else ("promote", "start", "stop")))
            for one in taken:
                ET.SubElement(each, "resource_ref", id=one)
    _constraints(draft, count=(0, 1, 2))
    return _finished(draft)


def utilization(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((2, 3, 4)))
    for _ in range(chance.choice((0, 1))):
        _clone(draft, is_promotable=draft.is_likely(0.3), is_of_group=draft.is_likely(0.3))
    for primitive in draft.part("configuration/resources").findall(".//primitive[@class='ocf']"):
        if draft.is_likely(0.8):
            add_pairs(primitive, "utilization", f"{primitive.get('id')}-use", {"memory": str(chance.randint(1, 4))})
    _constraints(draft)
    cib = _finished(draft, **{"placement-strategy": chance.choice(("utilization", "minimal", "balanced"))})
    for node in cib.findall("configuration/nodes/node"):
        add_pairs(node, "utilization", f"nodes-{node.get('id')}-use", {"memory": str(chance.randint(2, 8))})
    return cib


def many_constraints(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((2, 3, 4)))
    for _ in range(chance.choice((0, 1, 2))):
        _clone(draft, is_promotable=draft.is_likely(0.4), is_of_group=draft.is_likely(0.2))
    _constraints(draft, count=(3, 4, 5, 6, 7))
    return _finished(draft)


def resource_discovery(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((1, 2)))
    _clone(draft, is_promotable=draft.is_likely(0.3), is_of_group=draft.is_likely(0.3), is_unique=draft.is_likely(0.2))
    for _ in range(chance.choice((1, 2, 3))):
        _location(draft, **{"resource-discovery": chance.choice(("never", "exclusive", "always"))})
    _constraints(draft, count=(0, 1, 2))
    return _finished(draft)


def failures(chance: Random) -> ET.Element:
    draft = _draft(chance)
    _plain(draft, count=chance.choice((1, 2, 3)))
    for _ in range(chance.choice((0, 1, 2))):
        _clone(
            draft,
            is_promotable=draft.is_likely(0.5),
            is_of_group=draft.is_likely(0.3),
            is_unique=draft.is_likely(0.15),
        )
    for primitive in draft.part("configuration/resources").findall(".//primitive[@class='ocf']"):
        operations = primitive.find("operations")
        assert operations is not None
        for operation in operations:
            if draft.is_likely(0.5):
                operation.set("on-fail", chance.choice(ON_FAIL))
        name = str(primitive.get("id"))
        for task, kinds in (
            ("start", ON_FAIL),
            ("stop", ("ignore", "block", "fence")),
            ("promote", ON_FAIL),
            ("demote", ON_FAIL),
        ):
            if draft.is_likely(0.2) and (task in ("start", "stop") or primitive.get("type") == "Stateful"):
                _operation(operations, name, task, "0", on_fail=chance.choice(kinds))
        drawn = draft.chosen(
            ((0.5, "migration-threshold", ("1", "2", "3")), (0.4, "failure-timeout", ("60s", "5s", "1d")))
        )
        block = primitive.find("meta_attributes")
        if block is None and drawn:
            _meta(primitive, drawn)
    _constraints(draft)
    return _finished(draft)


def _services(cib: ET.Element) -> list[ET.Element]:
    return [
        each
        for each in cib.findall("configuration/resources/*")
        if each.get("class") != "stonith" and each.tag != "template"
    ]


def _remove(cib: ET.Element, chance: Random) -> None:
    parents = [each for each in cib.findall("configuration/resources//group") if len(each.findall("primitive")) > 1]
    resources = part(cib, "configuration/resources")
    services = _services(cib)
    if parents and chance.random() < 0.5:
        parent = chance.choice(parents)
        gone = chance.choice(parent.findall("primitive"))
    elif len(services) > 1:
        parent, gone = resources, chance.choice(services)
    else:
        return
    parent.remove(gone)
    forget(cib, gone)


def _rename(cib: ET.Element, chance: Random) -> None:
    primitives = [each for each in cib.findall("configuration/resources//primitive") if each.get("class") != "stonith"]
    if primitives:
        renamed = chance.choice(primitives)
        forget(cib, renamed)
        renamed.set("id", f"{renamed.get('id')}x")


def _into_clone(cib: ET.Element, chance: Random) -> None:
    inside = [each for each in _services(cib) if each.tag in ("primitive", "group")]
    resources = part(cib, "configuration/resources")
    if inside:
        chosen = chance.choice(inside)
        resources.remove(chosen)
        forget(cib, chosen)
        clone = ET.SubElement(resources, "clone", id=f"{chosen.get('id')}-clone")
        if chance.random() < 0.3:
            _meta(clone, {"globally-unique": "true", "clone-node-max": chance.choice(("1", "2"))})
        clone.append(chosen)


def _into_group(cib: ET.Element, chance: Random) -> None:
    groups = [each for each in _services(cib) if each.tag == "group"]
    primitives = [each for each in _services(cib) if each.tag == "primitive"]
    resources = part(cib, "configuration/resources")
    if not primitives:
        return
    chosen = chance.choice(primitives)
    resources.remove(chosen)
    forget(cib, chosen)
    group = chance.choice(groups) if groups else ET.SubElement(resources, "group", id="gx")
    places = [index for index, each in enumerate(group) if each.tag == "primitive"]
    group.insert(chance.choice(places) if places and chance.random() < 0.5 else len(group), chosen)


def _out_of_group(cib: ET.Element, chance: Random) -> None:
    groups = [each for each in cib.findall("configuration/resources//group") if len(each.findall("primitive")) > 1]
    resources = part(cib, "configuration/resources")
    if groups:
        group = chance.choice(groups)
        chosen = chance.choice(group.findall("primitive"))
        group.remove(chosen)
        resources.append(chosen)


def _remove_operation(cib: ET.Element, chance: Random) -> None:
    operations = [each for each in cib.findall("configuration/resources//operations") if len(each)]
    if operations:
        chosen = chance.choice(operations)
        operation = chance.choice(list(chosen))
        if chance.random() < 0.7:
            chosen.remove(operation)
        elif operation.get("name") == "monitor":
            operation.set("interval", "30s" if chance.random() < 0.5 else "33s")


def _change_clone(cib: ET.Element, chance: Random) -> None:
    clones = cib.findall("configuration/resources/clone")
    if not clones:
        return
    clone = chance.choice(clones)
    pairs = (("clone-max", "1"), ("clone-max", "2"), ("clone-node-max", "1"), ("globally-unique", "true"))
    name, value = chance.choice((*pairs, ("globally-unique", "false"), ("promotable", "false"), ("promoted-max", "1")))
    set_meta(clone, name, value)


EVENTS: tuple[Event, ...] = (
    _remove,
    _rename,
    _into_clone,
    _into_group,
    _out_of_group,
    _remove_operation,
    _change_clone,
)
THEMES: dict[str, Callable[[Random], ET.Element]] = {
    "unique-clones": unique_clones,
    "anonymous-clones": anonymous_clones,
    "clone-min": clone_min,
    "promotable-clones": promotable_clones,
    "several-promotable-clones": several_promotable_clones,
    "removed-resources": removed_resources,
    "templates-and-tags": templates_and_tags,
    "resource-sets": resource_sets,
    "utilization": utilization,
    "many-constraints": many_constraints,
    "resource-discovery": resource_discovery,
    "failures": failures,
}
