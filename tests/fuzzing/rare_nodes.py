"""Random CIBs about nodes: fencing, remote and guest nodes, bundles, locks, tickets, migration, health, quorum.

Each theme starts from a small cluster and adds much of one thing that `random_cibs` rarely draws; equal random numbers
give equal CIBs. `EVENTS` is what may happen to such a cluster, beside what `random_cibs.disturb` knows.
"""

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.fuzzing.drafts import Draft, Event, Table, add_pairs, empty_cib, forget, set_transient

DEVICE = ("stonith", "", "fence_dummy")
DUMMY = ("ocf", "pacemaker", "Dummy")
STATEFUL = ("ocf", "pacemaker", "Stateful")
REMOTE = ("ocf", "pacemaker", "remote")
MACHINE = ("ocf", "heartbeat", "VirtualDomain")
SCORES = ("INFINITY", "-INFINITY", "100", "-100")
MONITORED = "4811cef7f7f94e3a35a70be7916cb2fd"
"""The digest of a monitor without parameters."""
META: Table = (
    (0.15, "resource-stickiness", ("0", "100", "INFINITY")),
    (0.12, "priority", ("5", "10")),
    (0.06, "target-role", ("Stopped", "Started")),
    (0.05, "is-managed", ("false",)),
    (0.08, "migration-threshold", ("1", "2")),
    (0.06, "requires", ("nothing", "quorum", "fencing")),
    (0.05, "multiple-active", ("block", "stop_only", "stop_unexpected")),
)


def _draft(chance: Random, nodes: Sequence[int] = (2, 3, 3, 4)) -> Draft:
    draft = Draft(chance, empty_cib("pacemaker-3.7"), [f"n{index}" for index in range(1, chance.choice(nodes) + 1)])
    for number, name in enumerate(draft.nodes, start=1):
        node = draft.add_node(number, name)
        pairs = draft.chosen(((0.04, "standby", ("on",)), (0.03, "maintenance", ("true",)), (0.2, "rack", ("1", "2"))))
        add_pairs(node, "instance_attributes", f"nodes-{number}", pairs)
        draft.add_state(number, name)
    return draft


def _primitive(
    draft: Draft,
    name: str,
    agent: tuple[str, str, str] = DUMMY,
    *,
    parent: ET.Element | None = None,
    meta: Table = META,
    attributes: Mapping[str, str] | None = None,
    fixed: Mapping[str, str] | None = None,
) -> ET.Element:
    standard, provider, kind = agent
    names = {"id": name, "class": standard} | ({"provider": provider} if provider else {}) | {"type": kind}
    resources = draft.part("configuration/resources")
    element = ET.SubElement(resources if parent is None else parent, "primitive", names)
    add_pairs(element, "meta_attributes", f"{name}-meta", draft.chosen(meta) | dict(fixed or {}))
    add_pairs(element, "instance_attributes", f"{name}-attributes", attributes or {})
    _operations(draft, ET.SubElement(element, "operations"), name, has_roles=agent == STATEFUL)
    return element


def _operations(draft: Draft, owner: ET.Element, name: str, *, has_roles: bool) -> None:
    def add(task: str, interval: str, more: Mapping[str, str]) -> None:
        ET.SubElement(owner, "op", {"id": f"{name}-{task}-{interval}", "name": task, "interval": interval, **more})

    failing = draft.chosen(((0.2, "on-fail", ("restart", "ignore", "stop", "block", "fence", "standby", "demote")),))
    if has_roles:
        add("monitor", "10s", {"role": "Promoted", **failing})
        add("monitor", "11s", {"role": "Unpromoted"})
    elif draft.is_likely(0.8):
        add("monitor", "10s", failing if failing.get("on-fail") != "demote" else {})
    if draft.is_likely(0.12):
        add("stop", "0", {"on-fail": draft.chance.choice(("block", "fence", "ignore"))})
    if draft.is_likely(0.08):
        add("start", "0", {"on-fail": draft.chance.choice(("restart", "block", "stop", "fence"))})


def _resources(draft: Draft, count: Sequence[int] = (1, 2, 2, 3), more: Table = ()) -> None:
    """Add primitives, groups and clones."""
    resources = draft.part("configuration/resources")
    meta = (*META, *more)
    for index in range(1, draft.chance.choice(count) + 1):
        kind = draft.chance.random()
        name = f"r{index}" if kind < 0.55 else f"g{index}" if kind < 0.7 else f"c{index}"
        draft.tops.append(name)
        if kind < 0.55:
            _primitive(draft, name, meta=meta)
        elif kind < 0.7:
            group = ET.SubElement(resources, "group", id=name)
            for member in range(1, draft.chance.choice((2, 2, 3)) + 1):
                _primitive(draft, f"{name}m{member}", parent=group, meta=meta)
        else:
            clone = ET.SubElement(resources, "clone", id=name)
            is_promotable = kind > 0.85
            pairs = draft.chosen(((0.4, "interleave", ("true",)), (0.15, "clone-max", ("1", "2"))))
            pairs |= {"promotable": "true"} if is_promotable else {}
            pairs |= draft.chosen(((0.1, "notify", ("true",)),))
            add_pairs(clone, "meta_attributes", f"{name}-meta", pairs)
            _primitive(draft, f"{name}p", STATEFUL if is_promotable else DUMMY, parent=clone, meta=more)
            if is_promotable:
                draft.promotables.append(name)


def _constraints(draft: Draft, count: Sequence[int] = (0, 1, 1, 2, 3), places: Sequence[str] = ()) -> None:
    section, chance = draft.part("configuration/constraints"), draft.chance
    places = places or draft.nodes
    for index in range(chance.choice(count)):
        kind = chance.random()
        name = f"con{index}"
        if kind < 0.5 or len(draft.tops) < 2:
            more = draft.chosen(((0.07, "resource-discovery", ("never", "exclusive")),))
            place = {"rsc": chance.choice(draft.tops), "node": chance.choice(places), "score": chance.choice(SCORES)}
            ET.SubElement(section, "rsc_location", {"id": name, **place, **more})
            continue
        first, second = chance.sample(draft.tops, 2)
        if kind < 0.75:
            ends = {"rsc": first, "with-rsc": second, "score": chance.choice(("INFINITY", "-INFINITY", "100"))}
            if second in draft.promotables and draft.is_likely(0.5):
                ends["with-rsc-role"] = "Promoted"
            ET.SubElement(section, "rsc_colocation", {"id": name, **ends})
        else:
            ends = {"first": first, "then": second, "kind": chance.choice(("Mandatory", "Mandatory", "Optional"))}
            if first in draft.promotables and draft.is_likely(0.5):
                ends |= {"first-action": "promote", "then-action": "start"}
            ET.SubElement(section, "rsc_order", {"id": name, **ends})


def _promotion_scores(draft: Draft) -> None:
    for state in draft.part("status").findall("node_state"):
        for name in draft.promotables:
            if draft.is_likely(0.7):
                set_transient(state, f"master-{name}p", draft.chance.choice(("5", "10")))


def _finished(draft: Draft) -> ET.Element:
    _promotion_scores(draft)
    table = (
        (0.08, "symmetric-cluster", ("false",)),
        (0.05, "maintenance-mode", ("true",)),
        (0.15, "no-quorum-policy", ("stop", "freeze", "ignore", "demote", "suicide")),
        (0.05, "enable-startup-probes", ("false",)),
        (0.05, "stop-all-resources", ("true",)),
        (0.05, "startup-fencing", ("false",)),
    )
    pairs = draft.chosen(table) | draft.properties
    add_pairs(draft.part("configuration/crm_config"), "cluster_property_set", "cib-bootstrap-options", pairs)
    return draft.cib


def _devices(draft: Draft, count: Sequence[int] = (1, 1, 2), fixed: Mapping[str, str] | None = None) -> list[str]:
    draft.properties["stonith-enabled"] = "true"
    table: Table = (
        (0.15, "pcmk_delay_base", ("5s", "n1:5s;n2:10s")),
        (0.1, "pcmk_delay_max", ("15s",)),
        (0.2, "pcmk_host_list", ("n1 n2", "n1", "n2 n3 remote1")),
        (0.05, "pcmk_host_check", ("none",)),
    )
    names = [f"fence{index}" for index in range(1, draft.chance.choice(count) + 1)]
    for name in names:
        _primitive(draft, name, DEVICE, meta=META[:3], attributes=draft.chosen(table), fixed=fixed)
    return names


def _maybe_devices(draft: Draft, likely: float = 0.6) -> None:
    draft.properties["stonith-enabled"] = "false"
    if draft.is_likely(likely):
        _devices(draft)


def fence(chance: Random) -> ET.Element:
    """Topologies, delays, priorities, actions that fence, a watchdog."""
    draft = _draft(chance)
    devices = _devices(draft, (1, 2, 2, 3))
    if draft.is_likely(0.5):
        _topology(draft, devices)
    _resources(draft, (2, 3))
    _constraints(draft)
    draft.properties |= draft.chosen(
        (
            (0.4, "priority-fencing-delay", ("30s", "1min")),
            (0.3, "stonith-action", ("off", "reboot")),
            (0.3, "concurrent-fencing", ("true", "false")),
            (0.2, "have-watchdog", ("true",)),
            (0.2, "stonith-watchdog-timeout", ("10s", "-1")),
            (0.1, "stonith-enabled", ("false",)),
        )
    )
    return _finished(draft)


def _topology(draft: Draft, devices: Sequence[str]) -> None:
    chance = draft.chance
    topology = ET.SubElement(draft.part("configuration"), "fencing-topology")
    for number, node in enumerate(draft.nodes[: chance.choice((1, 2, 4))]):
        target = {"target": node} if draft.is_likely(0.7) else {"target-pattern": "n.*"}
        for index in range(1, chance.choice((1, 2)) + 1):
            level = {"id": f"level-{number}-{index}", "index": str(index), "devices": chance.choice(devices)}
            ET.SubElement(topology, "fencing-level", {**level, **target})


def unfence(chance: Random) -> ET.Element:
    """Devices that let nodes in, and resources that need it."""
    draft = _draft(chance)
    _devices(draft, (1, 2), {"provides": "unfencing"})
    if draft.is_likely(0.3):
        _primitive(draft, "fence9", DEVICE, meta=META[:2])
    _resources(draft, (1, 2, 3), ((0.3, "requires", ("unfencing", "fencing", "quorum", "nothing")),))
    _constraints(draft)
    if draft.is_likely(0.4):
        _remotes(draft)
    for state in draft.part("status").findall("node_state"):
        if draft.is_likely(0.6):
            set_transient(state, "#node-unfenced", chance.choice(("1699999000", "0")))
    return _finished(draft)


def _remotes(draft: Draft) -> list[str]:
    names = [f"remote{index}" for index in range(1, draft.chance.choice((1, 1, 2)) + 1)]
    for name in names:
        attributes = draft.chosen(((0.3, "server", (name,)), (0.3, "reconnect_interval", ("60s", "0"))))
        _primitive(draft, name, REMOTE, attributes=attributes, meta=META[:4])
    return names


def remote(chance: Random) -> ET.Element:
    """Remote nodes, and what runs on them."""
    draft = _draft(chance, (2, 2, 3))
    _maybe_devices(draft, 0.7)
    names = _remotes(draft)
    _resources(draft)
    _constraints(draft, (1, 2, 3), [*names, *names, *draft.nodes])
    return _finished(draft)


def _guests(draft: Draft) -> list[str]:
    names = [f"guest{index}" for index in range(1, draft.chance.choice((1, 1, 2)) + 1)]
    more: Table = (*META, (0.5, "allow-migrate", ("true",)), (0.2, "remote-allow-migrate", ("false",)))
    for name in names:
        _primitive(draft, f"vm-{name}", MACHINE, meta=more, fixed={"remote-node": name})
    return names


def guest(chance: Random) -> ET.Element:
    """Guest nodes in virtual machines, which may move live."""
    draft = _draft(chance, (2, 2, 3))
    _maybe_devices(draft, 0.7)
    names = _guests(draft)
    _resources(draft)
    draft.tops += [f"vm-{name}" for name in names]
    _constraints(draft, (1, 2, 3), [*names, *names, *draft.nodes])
    return _finished(draft)


def _bundles(draft: Draft) -> None:
    chance = draft.chance
    resources = draft.part("configuration/resources")
    for index in range(1, chance.choice((1, 1, 2)) + 1):
        name = f"b{index}"
        element = ET.SubElement(resources, "bundle", id=name)
        container = draft.chosen(((0.6, "replicas", ("1", "2", "3")), (0.15, "replicas-per-host", ("2",))))
        container |= draft.chosen(((0.3, "promoted-max", ("1", "2")), (0.2, "run-command", ("/bin/true",))))
        kind = chance.choice(("docker", "podman"))
        ET.SubElement(element, kind, {"image": "pcmk:latest", **container})
        network = {"control-port": "9999"} if draft.is_likely(0.5) else {"ip-range-start": f"192.168.{index}.10"}
        ET.SubElement(element, "network", {**network, **draft.chosen(((0.2, "add-host", ("false",)),))})
        if draft.is_likely(0.85):
            agent = STATEFUL if "promoted-max" in container else DUMMY
            _primitive(draft, f"{name}p", agent, parent=element, meta=META[:3])
        add_pairs(element, "meta_attributes", f"{name}-meta", draft.chosen(META[:5]))
        draft.tops.append(name)
        draft.promotables += [name] if "promoted-max" in container else []


def bundle(chance: Random) -> ET.Element:
    """Bundles with and without something inside."""
    draft = _draft(chance, (2, 3, 3))
    _maybe_devices(draft, 0.7)
    _bundles(draft)
    _resources(draft, (0, 1, 2))
    if draft.is_likely(0.2):
        _remotes(draft)
    _constraints(draft)
    return _finished(draft)


def lock(chance: Random) -> ET.Element:
    """Nodes that keep their resources while they are shut down."""
    draft = _draft(chance)
    _maybe_devices(draft)
    _resources(draft, (2, 3, 4))
    _constraints(draft)
    draft.properties |= {"shutdown-lock": "true"} | draft.chosen(((0.4, "shutdown-lock-limit", ("5min", "1d", "0")),))
    if draft.is_likely(0.3):
        _remotes(draft)
    for state in draft.part("status").findall("node_state"):
        if draft.is_likely(0.25):
            _leave(state, chance)
    return _finished(draft)


def _tickets(draft: Draft) -> None:
    chance = draft.chance
    section = draft.part("configuration/constraints")
    for index in range(1, chance.choice((1, 2, 3)) + 1):
        rule = {"id": f"tic{index}", "rsc": chance.choice(draft.tops), "ticket": chance.choice(("t1", "t1", "t2"))}
        if rule["rsc"] in draft.promotables and draft.is_likely(0.6):
            rule["rsc-role"] = "Promoted"
        rule |= draft.chosen(((0.9, "loss-policy", ("stop", "demote", "freeze", "fence", "fence")),))
        ET.SubElement(section, "rsc_ticket", rule)
    tickets = ET.SubElement(draft.part("status"), "tickets")
    for name in ("t1", "t2"):
        if draft.is_likely(0.8):
            pairs = {"granted": chance.choice(("true", "true", "false")), "standby": chance.choice(("false", "true"))}
            if draft.is_likely(0.6):
                pairs["standby"] = "false"
            ET.SubElement(tickets, "ticket_state", {"id": name, **pairs, "last-granted": "1699990000"})


def ticket(chance: Random) -> ET.Element:
    """Tickets with each policy, granted, lost, in standby."""
    draft = _draft(chance)
    _maybe_devices(draft)
    _resources(draft, (2, 2, 3))
    _constraints(draft)
    _tickets(draft)
    return _finished(draft)


def migrate(chance: Random) -> ET.Element:
    """Resources that move live."""
    draft = _draft(chance)
    _maybe_devices(draft, 0.7)
    _resources(draft, (1, 2, 2, 3), ((0.85, "allow-migrate", ("true",)),))
    _constraints(draft, (1, 2, 3))
    return _finished(draft)


def health(chance: Random) -> ET.Element:
    """Health of nodes, by each strategy."""
    draft = _draft(chance)
    _maybe_devices(draft)
    _resources(draft, more=((0.2, "allow-unhealthy-nodes", ("true",)),))
    _constraints(draft)
    draft.properties["node-health-strategy"] = chance.choice(
        ("migrate-on-red", "only-green", "progressive", "custom", "none")
    )
    draft.properties |= draft.chosen(
        (
            (0.3, "node-health-base", ("10", "-10", "1000")),
            (0.3, "node-health-green", ("0", "10", "100")),
            (0.3, "node-health-yellow", ("-10", "-100", "0")),
            (0.3, "node-health-red", ("-INFINITY", "-500")),
        )
    )
    for state in draft.part("status").findall("node_state"):
        for name in ("#health-disk", "#health-cpu"):
            if draft.is_likely(0.4):
                set_transient(state, name, chance.choice(("red", "yellow", "green", "green", "-5")))
    return _finished(draft)


def pending(chance: Random) -> ET.Element:
    """Nodes that come, are not known yet, or are not configured."""
    draft = _draft(chance, (3, 3, 4))
    _maybe_devices(draft, 0.8)
    _resources(draft)
    _constraints(draft)
    draft.properties |= draft.chosen(((0.4, "node-pending-timeout", ("2h", "1min")),))
    if draft.is_likely(0.3):
        _remotes(draft)
    status = draft.part("status")
    for state in status.findall("node_state"):
        kind = chance.random()
        if kind < 0.2:
            _arrive(state, chance)
        elif kind < 0.27:
            status.remove(state)
    return _finished(draft)


def quorum(chance: Random) -> ET.Element:
    """Clusters without quorum, by each policy."""
    draft = _draft(chance)
    _maybe_devices(draft, 0.8)
    _resources(draft, more=((0.2, "requires", ("nothing", "quorum", "fencing")),))
    _constraints(draft)
    policy = chance.choice(("stop", "freeze", "ignore", "demote", "suicide"))
    draft.properties["no-quorum-policy"] = policy
    draft.cib.set("have-quorum", "0" if draft.is_likely(0.3) else "1")
    cib = _finished(draft)
    pair = cib.find("configuration/crm_config//nvpair[@name='no-quorum-policy']")
    assert pair is not None
    pair.set("value", policy)
    return cib


def mixed(chance: Random) -> ET.Element:
    """Several of these at once."""
    draft = _draft(chance)
    devices = _devices(draft, (1, 2), {"provides": "unfencing"} if draft.is_likely(0.4) else {})
    more: Table = (
        (0.3, "allow-migrate", ("true",)),
        (0.15, "requires", ("unfencing", "nothing", "quorum", "fencing")),
        (0.05, "allow-unhealthy-nodes", ("true",)),
    )
    _resources(draft, (1, 2, 3), more)
    places = list(draft.nodes)
    places += _remotes(draft) if draft.is_likely(0.4) else []
    places += _guests(draft) if draft.is_likely(0.4) else []
    if draft.is_likely(0.3):
        _bundles(draft)
    _constraints(draft, (0, 1, 2, 3), places)
    if draft.is_likely(0.3):
        _tickets(draft)
    if draft.is_likely(0.3):
        _topology(draft, devices)
    draft.properties |= draft.chosen(
        (
            (0.35, "shutdown-lock", ("true",)),
            (0.15, "priority-fencing-delay", ("30s",)),
            (0.15, "stonith-action", ("off",)),
            (0.15, "concurrent-fencing", ("false",)),
            (0.15, "node-health-strategy", ("migrate-on-red", "only-green", "progressive")),
            (0.05, "stonith-enabled", ("false",)),
        )
    )
    for state in draft.part("status").findall("node_state"):
        if draft.is_likely(0.15):
            chance.choice((_arrive, _leave))(state, chance)
        if draft.is_likely(0.15):
            set_transient(state, "#health-disk", chance.choice(("red", "yellow", "green")))
    return _finished(draft)


def _leave(state: ET.Element, chance: Random) -> None:
    """Ask for the shutdown of a node, or let it have left."""
    if chance.random() < 0.5:
        set_transient(state, "shutdown", chance.choice(("1699999000", "1699900000")))
        return
    for name, value in (("in_ccm", "false"), ("crmd", "offline"), ("join", "down"), ("expected", "down")):
        state.set(name, value)


def _arrive(state: ET.Element, chance: Random) -> None:
    """Let a node be somewhere between absent and joined."""
    known = {"in_ccm": ("true", "false"), "crmd": ("online", "offline"), "join": ("pending", "member", "down")}
    for name, values in known.items():
        state.set(name, chance.choice(values))
    state.set("expected", chance.choice(("member", "down")))


def _node_arrives(cib: ET.Element, chance: Random) -> None:
    states = cib.findall("status/node_state[@crmd]")
    if states:
        _arrive(chance.choice(states), chance)


def _node_leaves(cib: ET.Element, chance: Random) -> None:
    states = cib.findall("status/node_state[@crmd]")
    if states:
        _leave(chance.choice(states), chance)


def _connection_fails(cib: ET.Element, chance: Random) -> None:
    """Let the monitor of a remote node's connection, or of a container, fail."""
    operations = [
        each
        for resource in cib.findall(".//lrm_resource")
        if resource.get("type") in ("remote", "VirtualDomain", "docker", "podman")
        for each in resource.findall("lrm_rsc_op[@operation='monitor']")
        if each.get("interval") != "0"
    ]
    if operations:
        operation = chance.choice(operations)
        code = chance.choice(("1", "7"))
        operation.set("rc-code", code)
        operation.set("op-status", "4")
        operation.set("transition-magic", f"4:{code};{operation.get('transition-key', '')}")


def _operation_is_pending(cib: ET.Element, chance: Random) -> None:
    operations = cib.findall(".//lrm_rsc_op")
    if operations:
        operation = chance.choice(operations)
        operation.set("rc-code", "193")
        operation.set("op-status", "-1")
        operation.set("transition-magic", f"-1:193;{operation.get('transition-key', '')}")


def _migration_dangles(cib: ET.Element, chance: Random) -> None:
    """Let what runs on one node have been on its way to another, with or without the second half."""
    running = [
        (state, resource)
        for state in cib.findall("status/node_state")
        for resource in state.findall(".//lrm_resource")
        if resource.find("lrm_rsc_op[@operation='start']") is not None
        and not _is_true(cib, resource.get("id", ""), "false")
    ]
    migratable = [each for each in running if _is_true(cib, each[1].get("id", ""), "true")]
    if not migratable:
        return
    state, resource = chance.choice(migratable)
    others = [each for each in cib.findall("status/node_state[@crmd]") if each is not state]
    if not others:
        return
    target = chance.choice(others)
    ends = {"migrate_source": state.get("uname", ""), "migrate_target": target.get("uname", "")}
    _record(resource, "migrate_to", 90, chance.choice(("0", "0", "1", "193")), ends)
    if chance.random() < 0.6:
        resources = target.find("lrm/lrm_resources")
        if resources is None:
            return
        there = resources.find(f"lrm_resource[@id='{resource.get('id')}']")
        if there is None:
            there = ET.SubElement(resources, "lrm_resource", dict(resource.attrib))
        _record(there, "migrate_from", 91, chance.choice(("0", "1", "193")), ends)


def _is_true(cib: ET.Element, name: str, value: str) -> bool:
    pairs = cib.iterfind(f"configuration//primitive[@id='{name}']/meta_attributes/nvpair[@name='allow-migrate']")
    return any(pair.get("value") == value for pair in pairs)


def _record(resource: ET.Element, task: str, call: int, code: str, more: Mapping[str, str], interval: int = 0) -> None:
    """Add one operation; what nothing else tells apart is the name by which it is kept."""
    name = resource.get("id")
    expected = "7" if task == "monitor" and not interval else "8" if code == "8" else "0"
    status = "-1" if code == "193" else "0" if code == expected or code in ("0", "7") else "4"
    key = f"{call}:9:{expected}:00000000-0000-0000-0000-000000000000"
    is_last = not interval and resource.find("lrm_rsc_op[@interval='0']") is None
    ET.SubElement(
        resource,
        "lrm_rsc_op",
        {
            "id": f"{name}_last_0" if is_last else f"{name}_{task}_{interval}",
            "operation_key": f"{name}_{task}_{interval}",
            "operation": task,
            "interval": str(interval),
            "call-id": "-1" if code == "193" else str(call),
            "rc-code": code,
            "op-status": status,
            "transition-key": key,
            "transition-magic": f"{status}:{code};{key}",
            "last-rc-change": "1699999995",
            "exec-time": "0",
            "op-digest": MONITORED if interval else "f2317cad3d54cec5d7d7aa7d0bf35cf8",
            **more,
        },
    )


def _operations_change(cib: ET.Element, chance: Random) -> None:
    """Give a monitor another interval or another role, or remove it."""
    operations = cib.findall("configuration/resources//op[@name='monitor']")
    if not operations:
        return
    operation = chance.choice(operations)
    kind = chance.random()
    if kind < 0.5:
        operation.set("interval", chance.choice(("20s", "21s", "10s", "11s")))
    elif kind < 0.7:
        operation.set("role", chance.choice(("Stopped", "Promoted", "Unpromoted", "Started")))
    else:
        owner = next(each for each in cib.iter("operations") if operation in list(each))
        owner.remove(operation)


def _parameters_change(cib: ET.Element, chance: Random) -> None:
    """Give a resource another parameter, or another agent."""
    resources = cib.findall("configuration/resources//primitive")
    if not resources:
        return
    resource = chance.choice(resources)
    name = resource.get("id")
    if chance.random() < 0.2 and resource.get("type") == "Dummy":
        resource.set("type", "HealthCPU")
        return
    block = resource.find("instance_attributes")
    if block is None:
        block = ET.Element("instance_attributes", id=f"{name}-attributes")
        resource.insert(1 if resource.find("meta_attributes") is not None else 0, block)
    for pair in block.findall("nvpair[@name='fake']"):
        block.remove(pair)
    pair = {"id": f"{name}-attributes-fake", "name": "fake", "value": chance.choice(("1", "2"))}
    ET.SubElement(block, "nvpair", pair)


def _runs_twice(cib: ET.Element, chance: Random) -> None:
    """Let a node's history of a resource be another node's too."""
    resources = [each for each in cib.findall(".//lrm_resource") if each.find("lrm_rsc_op") is not None]
    targets = cib.findall("status/node_state/lrm/lrm_resources")
    if not resources or not targets:
        return
    resource, target = chance.choice(resources), chance.choice(targets)
    for each in target.findall(f"lrm_resource[@id='{resource.get('id')}']"):
        if each is resource:
            return
        target.remove(each)
    target.append(copy.deepcopy(resource))


def _remote_is_lost(cib: ET.Element, chance: Random) -> None:
    states = [each for each in cib.findall("status/node_state") if each.get("remote_node") == "true"]
    if states:
        state = chance.choice(states)
        if chance.random() < 0.5:
            state.set("in_ccm", "false")
        else:
            set_transient(state, chance.choice(("shutdown", "standby")), chance.choice(("1699999000", "on")))


INCARNATIONS: tuple[tuple[tuple[str, int, str], ...], ...] = (
    (("monitor", 0, "7"),),
    (("monitor", 0, "0"),),
    (("start", 0, "0"),),
    (("start", 0, "0"), ("monitor", 10000, "0")),
    (("start", 0, "0"), ("monitor", 20000, "0")),
    (("start", 0, "0"), ("monitor", 10000, "7")),
    (("start", 0, "0"), ("monitor", 10000, "1")),
    (("start", 0, "0"), ("monitor", 20000, "1")),
    (("start", 0, "1"),),
    (("monitor", 10000, "0"), ("stop", 0, "0")),
    (("monitor", 20000, "0"), ("stop", 0, "0")),
    (("stop", 0, "1"),),
    (("stop", 0, "0"),),
    (("start", 0, "193"),),
    (("stop", 0, "193"),),
    (("start", 0, "0"), ("monitor", 10000, "193")),
)
"""Records of one resource on one node: task, interval in ms, exit code."""
ROLES: tuple[tuple[tuple[str, int, str], ...], ...] = (
    (("promote", 0, "0"), ("monitor", 10000, "8")),
    (("promote", 0, "0"), ("monitor", 20000, "8")),
    (("monitor", 11000, "0"), ("promote", 0, "0")),
    (("start", 0, "0"), ("monitor", 11000, "0")),
    (("monitor", 10000, "8"), ("demote", 0, "0")),
    (("promote", 0, "1"),),
    (("demote", 0, "1"),),
    (("start", 0, "0"), ("monitor", 11000, "8")),
)


def histories(chance: Random) -> ET.Element:
    """Few resources whose records nothing wrote: stale monitors, copies, what is half done."""
    draft = _draft(chance, (2, 2, 3))
    if draft.is_likely(0.5):
        _devices(draft, (1,), {"provides": "unfencing"} if draft.is_likely(0.3) else {})
    _resources(draft, (1, 1, 2), ((0.4, "allow-migrate", ("true",)), (0.15, "requires", ("unfencing", "nothing"))))
    if draft.is_likely(0.15):
        _remotes(draft)
    _constraints(draft, (0, 0, 1))
    draft.properties |= draft.chosen(((0.3, "shutdown-lock", ("true",)), (0.1, "stop-orphan-resources", ("false",))))
    resources = draft.part("configuration/resources")
    recorded = list(resources.iter("primitive"))
    for state in draft.part("status").findall("node_state"):
        if draft.is_likely(0.25):
            chance.choice((_arrive, _leave))(state, chance)
        elif draft.is_likely(0.1):
            state.set("crmd", "offline")
            state.set("in_ccm", "false")
        lrm = ET.SubElement(ET.SubElement(state, "lrm", id=state.get("id", "")), "lrm_resources")
        for resource in recorded:
            if draft.is_likely(0.75):
                _life(draft, lrm, resource)
    for resource in list(resources):
        if draft.is_likely(0.1):
            resources.remove(resource)
            forget(draft.cib, resource)
    return _finished(draft)


def _life(draft: Draft, owner: ET.Element, resource: ET.Element) -> None:
    agent = {name: resource.get(name, "") for name in ("id", "class", "provider", "type") if resource.get(name)}
    history = ET.SubElement(owner, "lrm_resource", agent)
    if draft.is_likely(0.08):
        history.set("shutdown-lock", draft.chance.choice(("1699999000", "1699900000")))
    lives = (*INCARNATIONS, *ROLES, *ROLES) if resource.get("type") == "Stateful" else INCARNATIONS
    for number, (task, interval, code) in enumerate(draft.chance.choice(lives), start=1):
        _record(history, task, number, code, {}, interval)


EVENTS: tuple[Event, ...] = (
    _node_arrives,
    _node_leaves,
    _connection_fails,
    _operation_is_pending,
    _migration_dangles,
    _operations_change,
    _parameters_change,
    _runs_twice,
    _remote_is_lost,
)
THEMES: dict[str, Callable[[Random], ET.Element]] = {
    "fence": fence,
    "unfence": unfence,
    "remote": remote,
    "guest": guest,
    "bundle": bundle,
    "lock": lock,
    "ticket": ticket,
    "migrate": migrate,
    "health": health,
    "pending": pending,
    "quorum": quorum,
    "mixed": mixed,
    "histories": histories,
}
