"""The configuration and the fault profiles that a seed begins with: what is drawn once for a whole run.

What changes in the middle of a run is drawn in `faults_of_edits`.
"""

import random
from collections.abc import Sequence

from haclusterd.cib.edits import Edit, PutConstraint, PutFencingLevels, PutResource
from haclusterd.model.alerts import targets
from haclusterd.model.configuration import (
    Alert,
    AlertKind,
    AlertRecipient,
    AttributeSet,
    Configuration,
    FencingLevel,
    Primitive,
    TicketConstraint,
    effective,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.records import dataclass, replace
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentBehaviour
from haclusterd.simulator.hosts.alert_agents import AlertBehaviour
from haclusterd.simulator.hosts.devices import DeviceTruth
from haclusterd.simulator.hosts.fence_devices import OUTLET, PLUGIN

TICKET = "rights"
SECOND_DEVICE = ResourceId("second")
POLICIES = ("stop", "stop", "stop", "freeze", "ignore", "demote", "fence")
LONG_TIMEOUT_MS = 60_000
DATABASE_TIMEOUT_MS = 20_000
SPANS_MS = ((5, 30), (5, 200), (50, 2_500), (1_000, 30_000))
"""How long starts and promotes take: from what is over at once to what outlives every other timer."""
ALERTS_SHARE = 0.4
"""Of the seeds, those with alerts."""
UNITS_SHARE = 0.3
"""Of the seeds, those whose services are units of systemd."""
RELOADS_SHARE = 0.5
"""Of the seeds, those whose agents take another pidfile over while their service runs."""


ASKED_SHARE = 0.3
"""Of the fence devices: those that are asked whether they can fence a node."""
TARGETED_SHARE = 0.4
"""Of the seeds with a power switch: those whose devices know their nodes in another way than by a list."""
HOST_CHECKS = ("dynamic-list", "status", PLUGIN)
GANGS_SHARE = 0.6
"""Of the seeds with devices, those with services that run together or not at all."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What one seed begins with."""

    edits: tuple[Edit, ...]
    """After those of the usual configuration."""
    behaviour: AgentBehaviour
    """How agents behave where no fault has them behave otherwise."""
    text: str


@dataclass(frozen=True, slots=True)
class Database:
    """A promotable clone whose data remembers that it was a primary's, and whose agents write promotion scores."""

    promote_ms: tuple[int, int]
    monitor_ms: int
    """How often the promoted instance is monitored."""
    scored_after_ms: int
    """From the beginning of such a monitor to the scores that it writes."""
    order: tuple[NodeName, ...]
    """Whose instance is the better one."""


def database(chance: random.Random, nodes: Sequence[NodeName]) -> Database:
    """Draw one; a promote may last until the machine of the former primary is back."""
    return Database(
        promote_ms=chance.choice(((5, 200), (500, 2500), (3000, 9000), (3000, 9000))),
        monitor_ms=chance.choice((1000, 5000, 15_000)),
        scored_after_ms=chance.choice((5, 100, 700)),
        order=tuple(chance.sample(nodes, len(nodes))),
    )


def draw(
    chance: random.Random,
    nodes: Sequence[NodeName],
    *,
    has_switch: bool,
    is_promotable: bool,
    has_migration: bool,
    is_unfencing: bool = False,
    is_notified: bool = False,
    is_reloading: bool = False,
    database: Database | None = None,
) -> Beginning:
    """Draw what a seed begins with; `has_switch`: there is a power switch, so no watchdog is counted on.

    `is_unfencing`, `is_notified`, `is_reloading`: it is so in any case. `database`: what the promotable clone is.
    """
    edits: list[Edit] = []
    drawn_texts: list[str] = []
    if has_switch:
        edits += _fencing(chance, nodes, drawn_texts, is_unfencing=is_unfencing)
    slow = chance.random() < 0.35
    timeout_ms = LONG_TIMEOUT_MS if slow else 5000
    is_notified = chance.random() < 0.5 or is_notified or database is not None
    if is_promotable and database is not None:
        longest_ms = max(timeout_ms, DATABASE_TIMEOUT_MS)
        edits += configurations.promotable(nodes, timeout_ms=longest_ms, monitor_ms=database.monitor_ms)
        drawn_texts.append(str(database))
    elif is_promotable:
        edits += configurations.promotable(nodes, is_notified=is_notified, timeout_ms=timeout_ms)
        drawn_texts.append(f"promotable {'with' if is_notified else 'without'} notify")
    if has_migration:
        migration_timeout_ms = chance.choice((2000, 5000, 40_000))
        edits.append(
            configurations.migratable(start_timeout_ms=timeout_ms, migration_timeout_ms=migration_timeout_ms)
        )
        drawn_texts.append("a service that migrates")
    if slow:
        edits += [configurations.primitive(name, start_timeout_ms=LONG_TIMEOUT_MS, meta={"failure-timeout": "10s"})
                  for name in configurations.SERVICES]  # fmt: skip
    edits += _start_delays(chance, drawn_texts, start_timeout_ms=timeout_ms)
    behaviour = _behaviour(chance, slow=slow)
    behaviour = replace(behaviour, reloads=behaviour.reloads or is_reloading)
    if database is not None:
        behaviour = replace(behaviour, promote_ms=max(behaviour.promote_ms, database.promote_ms))
    drawn_texts.append(f"starts {behaviour.start_ms}, promotes {behaviour.promote_ms}")
    if behaviour.units:
        drawn_texts.append("units")
    if behaviour.reloads:
        drawn_texts.append("reloads")
    return Beginning(tuple(edits), behaviour, "; ".join(drawn_texts))


def equip(chance: random.Random, truth: DeviceTruth, nodes: Sequence[NodeName]) -> None:
    """Draw which hosts have devices, and how many; there are enough for everything that claims any."""
    counts = [chance.choice((0, 2, 3, 4)) for _ in nodes]
    counts[chance.randrange(len(nodes))] = 4
    for node, count in zip(nodes, counts, strict=True):
        if count:
            truth.equip(node, count)


def recovering(chance: random.Random) -> dict[str, str]:
    """Draw what is done about devices by policy."""
    drawn = {f"gpu_recovery_{rung}": chance.choice(("off", "ask", "ask", "auto", "auto"))
             for rung in ("reset", "reload", "reboot")}  # fmt: skip
    drawn["gpu_recovery_limit"] = chance.choice(("1", "2", "8"))
    drawn["gpu_storm_devices"] = chance.choice(("2", "4", "100"))
    drawn["gpu_storm_nodes"] = chance.choice(("2", "3", "100"))
    drawn["gpu_storm_window"] = chance.choice(("5s", "1min"))
    drawn["gpu_return_after"] = chance.choice(("0", "0", "1s", "5s"))
    if chance.random() < 0.5:
        drawn["gpu_burn_in"] = "/usr/local/bin/burn-in"
    return drawn


def claiming(chance: random.Random, longest_start_ms: int) -> tuple[Edit, ...]:
    """Draw services that claim devices; some come before others, and some leave devices to recoveries and gangs.

    `longest_start_ms`: how long agents take for a start. That of a single service may last beyond its timeout; a gang
    all of whose instances are to start would hardly ever run then.
    """
    priorities = [chance.choice((0, 0, 10)) for _ in configurations.CLAIMING]
    timeout_ms = chance.choice((5_000, 12_000))
    stopped = chance.sample(configurations.CLAIMING, chance.choice((0, 0, 1, 2)))
    edits = configurations.claiming(start_timeout_ms=timeout_ms, priorities=priorities, stopped=stopped)
    if chance.random() >= GANGS_SHARE:
        return edits
    name = chance.choice((configurations.GANG, configurations.UNIQUE_GANG))
    size, priority = chance.choice((2, 2, 3)), chance.choice((0, 5, 20))
    timeout_ms = timeout_ms if longest_start_ms < timeout_ms else LONG_TIMEOUT_MS
    return (*edits, *configurations.gang(name, size=size, priority=priority, start_timeout_ms=timeout_ms))


def _start_delays(chance: random.Random, drawn_texts: list[str], *, start_timeout_ms: int) -> list[Edit]:
    """Draw services that wait before they start or stop."""
    names = chance.sample(configurations.SERVICES, 2) if chance.random() < 0.25 else []
    delays = {name: chance.choice((400, 2000, 6000)) for name in names}
    drawn_texts += [f"{name} starts after {delay_ms} ms" for name, delay_ms in delays.items()]
    return [
        configurations.primitive(name, start_timeout_ms=start_timeout_ms, start_delay_ms=delay_ms,
                                 meta={"failure-timeout": "10s"})
        for name, delay_ms in delays.items()
    ]  # fmt: skip


def properties(chance: random.Random, *, has_switch: bool) -> dict[str, str]:
    """Draw properties of the cluster, by name with `_` for `-`."""
    drawn = {"start_failure_is_fatal": "true" if chance.random() < 0.15 else "false"}
    if has_switch:
        drawn["no_quorum_policy"] = chance.choice(POLICIES)
        if chance.random() < 0.2:
            drawn["priority_fencing_delay"] = chance.choice(("1s", "3s"))
    else:
        drawn["no_quorum_policy"] = chance.choice(("stop", "stop", "demote", "fence"))
    if chance.random() < 0.2:
        drawn["batch_limit"] = chance.choice(("1", "4"))
    return drawn | _how_much_at_once(chance)


def _how_much_at_once(chance: random.Random) -> dict[str, str]:
    """Draw what Pacemaker's administrators set to hold a cluster back."""
    drawn = {}
    if chance.random() < 0.15:
        drawn["concurrent_fencing"] = "false"
    if chance.random() < 0.15:
        drawn["enable_startup_probes"] = "false"
    if chance.random() < 0.15:
        drawn |= {"migration_limit": "1", "node_action_limit": chance.choice(("1", "3"))}
    if chance.random() < 0.3:
        drawn |= {"shutdown_lock": "true", "shutdown_lock_limit": chance.choice(("5s", "30s"))}
    if chance.random() < 0.1:
        drawn["node_pending_timeout"] = chance.choice(("5s", "30s"))
    if chance.random() < 0.1:
        drawn["transition_delay"] = chance.choice(("500ms", "3s"))
    if chance.random() < 0.15:
        drawn["fence_reaction"] = "panic"
    if chance.random() < 0.15:
        drawn["load_threshold"] = "80%"
    return drawn


def _behaviour(chance: random.Random, *, slow: bool) -> AgentBehaviour:
    usual = AgentBehaviour()
    starts, promotes = (chance.choice(SPANS_MS), chance.choice(SPANS_MS)) if slow else (usual.start_ms, (5, 200))
    demotes = chance.choice(SPANS_MS[:3])
    # From a copy of the generator, so that whatever else a seed draws stays what it is.
    apart = random.Random()
    apart.setstate(chance.getstate())
    apart.seed(apart.getrandbits(64))
    units, reloads = apart.random() < UNITS_SHARE, apart.random() < RELOADS_SHARE
    reload_ms = apart.choice(SPANS_MS[:3])
    return replace(usual, start_ms=starts, promote_ms=promotes, demote_ms=demotes, units=units, reloads=reloads,
                   reload_ms=reload_ms)  # fmt: skip


def alerts(seed: int) -> tuple[Alert, ...]:
    """Draw the alerts of a seed: from its number alone, so that whatever else it draws stays what it is."""
    chance = random.Random(f"alerts/{seed}")
    if chance.random() >= ALERTS_SHARE:
        return ()
    timeout = ("timeout", chance.choice(("500ms", "2s", "10s")))
    both = (AlertRecipient("alert-one", "/one"), AlertRecipient("alert-two", "/two"))
    meta = (AttributeSet("alert-all-meta", (timeout,)),)
    found = [Alert("alert-all", "/agent", select=tuple(AlertKind), meta=meta, recipients=both)]
    if chance.random() < 0.5:
        grouped = (AttributeSet("alert-grouped-meta", (timeout, ("incident-group", chance.choice(("1s", "5s"))))),)
        found.append(Alert("alert-grouped", "/agent", meta=grouped))
    return tuple(found)


def alert_tests(seed: int, within_ms: int) -> list[tuple[int, tuple[str, ...]]]:
    """Draw when somebody tests which recipients, in ms from now."""
    chance = random.Random(f"alert-tests/{seed}")
    keys = [target.key for target in targets(Configuration(alerts={each.id: each for each in alerts(seed)}))]
    return [(chance.randrange(within_ms), tuple(chance.sample(keys, chance.randint(1, len(keys)))))
            for _ in range(3 if keys else 0)]  # fmt: skip


def draw_alert_behaviour(seed: int, behaviour: AlertBehaviour) -> None:
    """Draw how alerts' agents behave."""
    chance = random.Random(f"alert-manners/{seed}")
    behaviour.longest_ms = chance.choice((50, 500, 3_000))
    behaviour.failing, behaviour.hanging = chance.choice((0.0, 0.2)), chance.choice((0.0, 0.0, 0.1, 0.5))


def tickets(chance: random.Random) -> tuple[Edit, ...]:
    """Draw services that run only while this cluster holds the ticket."""
    names = chance.sample(configurations.SERVICES, chance.randint(1, 2))
    policies = ("stop", "freeze", "demote", "fence")
    return tuple(
        PutConstraint(TicketConstraint(ConstraintId(f"{name}-ticket"), TICKET, ResourceId(name), None,
                                       chance.choice(policies)))
        for name in names
    )  # fmt: skip


def _fencing(
    chance: random.Random, nodes: Sequence[NodeName], drawn_texts: list[str], *, is_unfencing: bool
) -> list[Edit]:
    """Draw devices, their delays, what they let in, and the topology."""
    delays = _delays(chance, nodes)
    is_unfencing = chance.random() < 0.2 or is_unfencing
    edits: list[Edit] = [_device(configurations.DEVICE, nodes, delays, is_unfencing=is_unfencing)]
    if is_unfencing:
        drawn_texts.append("unfencing")
    if chance.random() < 0.4:
        edits.append(_device(SECOND_DEVICE, nodes, _delays(chance, nodes), is_unfencing=False))
        edits.append(PutFencingLevels(_levels(chance, nodes)))
        drawn_texts.append("topology")
    return edits


def asked_for_hosts(chance: random.Random, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Draw fence devices that are asked whether they can fence a node, instead of being configured for it."""
    return tuple(
        _asked(edit.resource, chance.choice(HOST_CHECKS))
        if isinstance(edit, PutResource) and isinstance(edit.resource, Primitive)
        and edit.resource.agent.standard == "stonith" and chance.random() < ASKED_SHARE
        else edit
        for edit in edits
    )  # fmt: skip


def _asked(device: Primitive, host_check: str) -> PutResource:
    """Return a device that is asked; a plugin of cluster-glue is, where nothing says for which nodes it is."""
    (block,) = device.parameters
    pairs = tuple((name, value) for name, value in block.pairs if name != "pcmk_host_list")
    is_plugin = host_check == PLUGIN
    pairs = pairs if is_plugin else (*pairs, ("pcmk_host_check", host_check))
    agent = replace(device.agent, type=PLUGIN) if is_plugin else device.agent
    return PutResource(replace(device, agent=agent, parameters=(replace(block, pairs=pairs),)))


def targeted(chance: random.Random, nodes: Sequence[NodeName], edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Draw how fence devices know their nodes, instead of by a list: by a map of their outlets, in one way or another;
    not at all, which means all nodes; or there are two, each for some nodes."""
    if chance.random() >= TARGETED_SHARE:
        return tuple(edits)
    has_levels = any(isinstance(edit, PutFencingLevels) for edit in edits)
    found: list[Edit] = []
    for edit in edits:
        if not (isinstance(edit, PutResource) and isinstance(edit.resource, Primitive) and _is_listed(edit.resource)):
            found.append(edit)
        elif not has_levels and chance.random() < 0.4:
            count = chance.randint(1, len(nodes) - 1)
            first, other = nodes[:count], nodes[count:]
            twin = replace(edit.resource, id=ResourceId(f"{edit.resource.id}-twin"))
            found += [_with_targets(chance, edit.resource, first), _with_targets(chance, twin, other)]
        else:
            found.append(_with_targets(chance, edit.resource, nodes, is_for_all=chance.random() < 0.2))
    return tuple(found)


def _is_listed(device: Primitive) -> bool:
    return device.agent.standard == "stonith" and "pcmk_host_list" in effective(device.parameters)


def _with_targets(
    chance: random.Random, device: Primitive, nodes: Sequence[NodeName], *, is_for_all: bool = False
) -> PutResource:
    """Return a device with a list or a map of its nodes, or without both."""
    pairs = [pair for pair in device.parameters[0].pairs if pair[0] != "pcmk_host_list"]
    form = chance.choice(("list", "map", "map", "both"))
    if is_for_all:
        return _with_pairs(device, *pairs, ("pcmk_host_check", "none"))
    if form in ("list", "both"):
        pairs.append(("pcmk_host_list", " ".join(nodes)))
    if form in ("map", "both"):
        sign, separator = chance.choice((":", "=")), chance.choice((";", " ", "; "))
        pairs.append(("pcmk_host_map", separator.join(f"{name}{sign}{OUTLET}{name}" for name in nodes)))
        argument = chance.choice(("", "plug", "port"))
        pairs += [("pcmk_host_argument", argument)] if argument else []
    return _with_pairs(device, *pairs)


def _with_pairs(device: Primitive, *pairs: tuple[str, str]) -> PutResource:
    return PutResource(replace(device, parameters=(replace(device.parameters[0], pairs=pairs),)))


def _delays(chance: random.Random, nodes: Sequence[NodeName]) -> tuple[tuple[str, str], ...]:
    return chance.choice((
        (),
        (),
        (("pcmk_delay_base", "1s"),),
        (("pcmk_delay_max", "2s"),),
        (("pcmk_delay_base", f"{nodes[0]}:2s;{nodes[1]}:0s"),),
    ))  # fmt: skip


def _levels(chance: random.Random, nodes: Sequence[NodeName]) -> tuple[FencingLevel, ...]:
    first, second = chance.sample((configurations.DEVICE, SECOND_DEVICE), 2)
    if chance.random() < 0.5:
        return tuple(FencingLevel(f"fl-{name}-1", 1, (first, second), target=name) for name in nodes)
    return tuple(
        FencingLevel(f"fl-{name}-{index}", index, (device,), target=name)
        for name in nodes
        for index, device in enumerate((first, second), start=1)
    )


def _device(
    name: ResourceId, nodes: Sequence[NodeName], more: Sequence[tuple[str, str]], *, is_unfencing: bool
) -> PutResource:
    resource = configurations.device(nodes, name).resource
    assert isinstance(resource, Primitive)
    pairs = AttributeSet(f"{name}-parameters", (*resource.parameters[0].pairs, *more))
    meta = (AttributeSet(f"{name}-meta", (("provides", "unfencing"),)),) if is_unfencing else ()
    return PutResource(replace(resource, parameters=(pairs,), meta=meta))
