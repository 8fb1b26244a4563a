"""One seed of the swarm: a cluster, a plan of faults, and what came of it.

First everything may go wrong and no rule may be broken; then everything is healed and the cluster must find back. One
seed is one run, equal everywhere. The faults are drawn before anything runs (`faults`), so that a change in the code
under test moves the events and not the plan, and some of them can be left out.
"""

import random
import traceback
from collections.abc import Collection, Sequence
from enum import Enum
from functools import partial

from haclusterd.cib import codec
from haclusterd.cib.changes import ChangeKind
from haclusterd.cib.commands import RecoveryOutcome, RequestAlertTest, SetTicket, TicketChange
from haclusterd.cib.edits import PutAlert
from haclusterd.model.alerts import targets
from haclusterd.model.devices import Rung
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.runtime.dc_bulletins import SHOWN_MS
from haclusterd.runtime.requests.live_view import known_of_the_dc
from haclusterd.simulator import drawn_configurations, healing, recovery
from haclusterd.simulator.checks import (
    checkers_of_health,
    checkers_of_minimums,
    checkers_of_targets,
    coverage,
    expectations,
)
from haclusterd.simulator.checks.activities import Activity
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.clients import Clients, Tally
from haclusterd.simulator.copies import MachineCopies
from haclusterd.simulator.faults import copies as faults_of_copies
from haclusterd.simulator.faults import databases as faults_of_databases
from haclusterd.simulator.faults import devices as faults_of_devices
from haclusterd.simulator.faults import disks as faults_of_disks
from haclusterd.simulator.faults import edges as faults_of_edges
from haclusterd.simulator.faults import edits as faults_of_edits
from haclusterd.simulator.faults import health as faults_of_health
from haclusterd.simulator.faults import hosts as faults_of_hosts
from haclusterd.simulator.faults import lifetimes as faults_of_lifetimes
from haclusterd.simulator.faults import links as faults_of_links
from haclusterd.simulator.faults import moments as faults_of_moments
from haclusterd.simulator.faults import network as faults_of_network
from haclusterd.simulator.faults import operations as faults_of_operations
from haclusterd.simulator.faults import people as faults_of_people
from haclusterd.simulator.faults import settings as faults_of_settings
from haclusterd.simulator.faults import shapes as faults_of_shapes
from haclusterd.simulator.faults import stuck_disks as faults_of_stuck_disks
from haclusterd.simulator.faults import versions as faults_of_versions
from haclusterd.simulator.faults.base import PACES_MS, Fault, FaultRun, Kind, draw_plan
from haclusterd.simulator.faults.databases import DATABASE
from haclusterd.simulator.forgetting import Forgetting
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.scenario import Cluster, Setup
from haclusterd.simulator.subjects import NO_EMPHASIS, Emphasis, Subject, emphasis_of
from haclusterd.simulator.writing_agents import ScoringAgents, WritingAgents

SAFETY_PHASE_MS = 60_000
PROMOTABLE_EVERY = 2
"""Every so many seeds run a promotable clone too."""
WRITING_SHARE = 0.5
"""Of the seeds with a promotable clone, those whose agents write attributes in the middle of what they do."""
DATABASE_SHARE = 0.4
"""Of the seeds with a promotable clone, those whose data remembers that it was a primary's."""
MIGRATION_EVERY = 3
"""Every so many have a service that migrates live."""
RECOVERED_EVERY = 4
"""Every so many end with a cluster that is recovered or restored."""
ROLLED_BACK_EVERY = 4
"""In every so many the configuration is rolled back, with what clients have written in it."""
ROLLBACKS_MS = (1_000, 20_000)
"""Between two of these."""
SETTINGS_SHARE = 0.3
"""Of the seeds, those in which people set what is hardly ever set."""
SETTINGS_MS = (1_000, 15_000)
HEALTH_SHARE = 0.25
"""Of the seeds, those in which the health of nodes changes and counts."""
HEALTH_MS = (500, 8_000)
OPERATIONS_SHARE = 0.25
"""Of the seeds, those in which operations require and lead to other things than usual."""
OPERATIONS_MS = (1_000, 12_000)
LONG_EVERY = 5
LONGER = 5
"""Some seeds with a switch take so many times as long."""
LIVENESS_MS = 120_000
"""Longer than any backoff that the faults may have brought about, but for the pauses between fencings that continue."""
BEGINNING_MS = 600_000
"""Longer than all starts and promotes of half a minute one after another."""
STAYS_SETTLED_MS = 3000
ALERTS_MS = 60_000
"""Beside the calls for what is pending: records of how far recipients have got, and what happens meanwhile."""
DRIFTS_PPM = (0, 5_000, 10_000)
"""Clocks and crystals of devices are wrong by 1 % at most (safety.md §2)."""
WATCHDOG_MS = 5_000
WATCHDOG_RESET_MS = 900
EDGE_RESET_MS = (800, 990)
"""Of R, which is a second."""
OF_PEOPLE = (*faults_of_people.OF_SERVICES, *faults_of_edits.OF_EDITS, *faults_of_shapes.OF_SHAPES)
USUAL = (
    *faults_of_hosts.KINDS,
    *faults_of_versions.OF_VERSIONS,
    *faults_of_network.KINDS,
    *OF_PEOPLE,
    *faults_of_moments.OF_MOMENTS,
)
OF_THE_HEARD = (
    *faults_of_hosts.OF_BRAINS,
    *faults_of_versions.OF_VERSIONS,
    *OF_PEOPLE,
    *faults_of_moments.OF_GENTLE_MOMENTS,
)
"""Faults in which every living node is heard."""


class Mode(Enum):
    """What a seed is about."""

    SWITCH = "switch"
    """A power switch that may fail, and everything that may go wrong beside it."""
    MEMBERS = "members"
    """The same, and nodes come and go."""
    WATCHDOG = "watchdog"
    """No switch: what fences a node is its own watchdog device."""
    MOMENTS = "moments"
    """A switch, a promotable clone and a service that migrates; nodes are interrupted in the middle of what they do."""
    EDGE = "edge"
    """The same, with clocks and devices that are as wrong as can be, and nodes driven to the edge of the wait."""
    LIAR = "liar"
    """A switch that lies, and only faults in which every living node is heard: so every lie must be found out."""
    DISKS = "disks"
    """A switch that may fail, and a disk that forgets what its node has promised."""
    COPIES = "copies"
    """A switch that may fail, and copies of machines that are started beside them."""
    DEVICES = "devices"
    """The same as with a switch, and hosts have devices, which services claim."""


KINDS: dict[Mode, tuple[Kind[Cluster], ...]] = {
    Mode.SWITCH: (*USUAL, *faults_of_people.OF_SWITCHES),
    Mode.MEMBERS: (*USUAL, *faults_of_people.OF_SWITCHES),
    Mode.WATCHDOG: USUAL,
    Mode.MOMENTS: (
        *faults_of_people.OF_SERVICES,
        *faults_of_people.OF_SWITCHES,
        *faults_of_network.KINDS,
        *faults_of_versions.OF_VERSIONS,
    ),
    Mode.EDGE: (*faults_of_hosts.OF_BRAINS, *faults_of_people.OF_SERVICES),
    Mode.LIAR: OF_THE_HEARD,
    Mode.DISKS: tuple(kind for kind in (*USUAL, *faults_of_people.OF_SWITCHES) if kind.name != "damaged disk"),
    Mode.COPIES: (*USUAL, *faults_of_people.OF_SWITCHES),
    Mode.DEVICES: (*USUAL, *faults_of_people.OF_SWITCHES),
}
ALWAYS: dict[Mode, tuple[Kind[Cluster], ...]] = {
    Mode.SWITCH: (),
    Mode.MEMBERS: (*faults_of_people.OF_MEMBERS, *faults_of_moments.OF_NEWCOMERS),
    Mode.WATCHDOG: (*faults_of_hosts.OF_WATCHDOGS, *faults_of_stuck_disks.OF_STUCK_DISKS),
    Mode.MOMENTS: (*faults_of_moments.OF_MOMENTS, *faults_of_edits.OF_MOVES, *faults_of_lifetimes.OF_LIFETIMES),
    Mode.EDGE: faults_of_edges.OF_EDGES,
    Mode.LIAR: faults_of_people.OF_LIARS,
    Mode.DISKS: faults_of_disks.OF_DISKS,
    Mode.COPIES: faults_of_copies.OF_COPIES,
    Mode.DEVICES: faults_of_devices.OF_DEVICES,
}
"""Kinds that no seed of a mode leaves out."""
MODES = (
    Mode.SWITCH,
    Mode.WATCHDOG,
    Mode.MOMENTS,
    Mode.MEMBERS,
    Mode.DEVICES,
    Mode.LIAR,
    Mode.EDGE,
    Mode.DISKS,
    Mode.COPIES,
)
"""By the seed, in turn."""
WATCHED = (Mode.WATCHDOG, Mode.EDGE)
"""Where every host has a watchdog device, and there is no switch."""
ALONE = (Mode.EDGE, Mode.DISKS, Mode.COPIES)
"""Whose faults need the whole time of a run: they dwell on nothing else."""
OF_SUBJECTS: dict[Subject, tuple[Kind[Cluster], ...]] = {
    Subject.NOTHING: (),
    Subject.LINKS: faults_of_links.OF_LINKS,
    Subject.POLICIES: faults_of_edits.OF_POLICIES,
    Subject.TICKETS: faults_of_edits.OF_TICKETS,
    Subject.TIMEOUTS: (*faults_of_edits.OF_TIMEOUTS, *faults_of_lifetimes.OF_LIFETIMES),
    Subject.SHAPES: faults_of_shapes.DENSE,
}
"""Kinds that a seed draws from beside those of its mode."""
DIRECTED_WEIGHT = 4
"""Of each interruption with the activity that a seed prefers: all together about a third of its faults."""
LINKS = (2, 2, 3)
CLAIMS = ("alone", "shared", "gang", "gang is placed again", "preempted")
RECOVERIES = (
    *(f"{rung} by {who}" for rung in Rung for who in ("a person", "policy")),
    *(f"it is {outcome}" for outcome in RecoveryOutcome),
    faults_of_devices.MEANWHILE,
)
OF_DEVICES = ("PublishDevices", "ReleaseDevices", "SteerDevice", "BeginRecovery", "RecordRecovery")
"""Commands that only seeds with devices exercise."""
SMALL_SNAPSHOT = 30
"""Entries between two snapshots where a node is to be sent one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one seed ended."""

    seed: int
    problem: str
    """Empty when nothing was broken and the cluster found back."""
    rule: str
    """Who objected: the name of a checker, or of an exception."""
    simulated_ms: int
    trace: str
    faults: tuple[str, ...]
    """Those that began."""
    begun: tuple[int, ...]
    """Their numbers."""
    counts: tuple[tuple[str, int], ...] = ()
    """What is added up over all seeds, by name."""
    coverage: tuple[tuple[tuple[str, str], int], ...] = ()
    """What it exercised, and how often (`coverage`)."""
    recorded: tuple[str, ...] = ()
    """Every event, when it was asked for; the newest, when there was a problem."""


def mode_of(seed: int) -> Mode:
    """Return what a seed is about."""
    return MODES[seed % len(MODES)]


def emphasis(seed: int) -> Emphasis:
    """Return what a seed dwells on."""
    mode, place = mode_of(seed), seed % len(MODES)
    if mode in ALONE:
        return NO_EMPHASIS
    places = [number for number, each in enumerate(MODES) if each is mode]
    number = seed // len(MODES) * len(places) + places.index(place) + places[0]
    return emphasis_of(
        number, has_switch=mode not in WATCHED, is_heard=mode is Mode.LIAR, has_members=mode is Mode.MEMBERS
    )


def begins_again(seed: int) -> bool:
    """Tell whether people make another cluster at the end of a seed."""
    return seed % RECOVERED_EVERY == 0 and mode_of(seed) not in ALONE


def is_rolled_back(seed: int) -> bool:
    """Tell whether people roll the configuration back in a seed.

    Where members come, that may take them off the list of the device that has to let them in, for good.
    """
    return seed % ROLLED_BACK_EVERY == ROLLED_BACK_EVERY // 2 and mode_of(seed) not in ALONE


def has_settings(seed: int) -> bool:
    """Tell whether people set in a seed what is hardly ever set (`faults.settings`).

    They take all of it back, and a rollback might not.
    """
    is_drawn = random.Random(f"settings/{seed}").random() < SETTINGS_SHARE
    return is_drawn and mode_of(seed) not in ALONE and not is_rolled_back(seed)


def has_health(seed: int) -> bool:
    """Tell whether the health of nodes changes in a seed, and counts (`faults.health`)."""
    return random.Random(f"health/{seed}").random() < HEALTH_SHARE and mode_of(seed) not in ALONE


def has_operations(seed: int) -> bool:
    """Tell whether people change in a seed what operations require and lead to (`faults.operations`).

    They take all of it back, and a rollback might not.
    """
    is_drawn = random.Random(f"operations/{seed}").random() < OPERATIONS_SHARE
    return is_drawn and mode_of(seed) not in ALONE and not is_rolled_back(seed)


def is_promotable(seed: int) -> bool:
    """Tell whether a seed has a promotable clone."""
    dwells_on = emphasis(seed)
    has_all = mode_of(seed) is Mode.MOMENTS or dwells_on.subject is Subject.SHAPES
    return has_all or seed % PROMOTABLE_EVERY == 0 or dwells_on.meets(*faults_of_moments.OF_PROMOTION)


def has_database(seed: int) -> bool:
    """Tell whether the data of a seed's promotable clone remembers that it was a primary's."""
    is_drawn = random.Random(f"database/{seed}").random() < DATABASE_SHARE
    return is_drawn and is_promotable(seed) and mode_of(seed) not in ALONE


def is_long(seed: int) -> bool:
    """Tell whether a seed takes so long that what lasts for minutes has room."""
    return seed % LONG_EVERY == 0 and mode_of(seed) is Mode.SWITCH


def setup_of(seed: int) -> Setup:
    """Return how a seed's cluster is built."""
    mode = mode_of(seed)
    chance = random.Random(f"shape/{seed}")
    is_edge, dwells_on = mode is Mode.EDGE, emphasis(seed)
    links = chance.choice(LINKS)
    sends_snapshots = mode is Mode.MEMBERS or dwells_on.meets(Activity.SNAPSHOT)
    return Setup(
        links=links if dwells_on.subject is Subject.LINKS else 1,
        nodes=chance.choice((3, 3, 3, 5)),
        node_timeout_ms=chance.choice((1000, 2000, 2000)),
        snapshot_every=SMALL_SNAPSHOT if sends_snapshots else chance.choice((SMALL_SNAPSHOT, 200, 1000)),
        drift_ppm=DRIFTS_PPM[-1] if is_edge else chance.choice(DRIFTS_PPM),
        are_drifts_extreme=is_edge,
        watchdog_ms=WATCHDOG_MS if mode in WATCHED else 0,
        watchdog_reset_ms=EDGE_RESET_MS if is_edge else (0, WATCHDOG_RESET_MS),
    )


def plan_of(cluster: Cluster, safety_ms: int) -> tuple[Fault[Cluster], ...]:
    """Return what goes wrong in a seed."""
    mode, dwells_on = mode_of(cluster.world.seed), emphasis(cluster.world.seed)
    always = (*ALWAYS[mode], *_kinds_of(dwells_on, mode))
    if has_database(cluster.world.seed):
        always = (*always, *faults_of_databases.OF_DATABASES)
    if is_long(cluster.world.seed):
        always, safety_ms = (*always, *faults_of_people.OF_LONG_SEEDS), safety_ms * LONGER
    paces_ms = faults_of_disks.PACES_MS if mode in (Mode.DISKS, Mode.COPIES) else PACES_MS
    chance = cluster.world.chance("faults")
    plan = draw_plan(chance, KINDS[mode], cluster.names, safety_ms, always=always, paces_ms=paces_ms)
    apart: list[tuple[str, Sequence[Kind[Cluster]], tuple[int, int]]] = []
    if is_rolled_back(cluster.world.seed):
        apart.append(("rollbacks", faults_of_edits.OF_ROLLBACKS, ROLLBACKS_MS))
    if has_settings(cluster.world.seed):
        apart.append(("settings", faults_of_settings.OF_SETTINGS, SETTINGS_MS))
    if has_health(cluster.world.seed):
        apart.append(("health", faults_of_health.OF_HEALTH, HEALTH_MS))
    if has_operations(cluster.world.seed):
        apart.append(("operations", faults_of_operations.OF_OPERATIONS, OPERATIONS_MS))
    for name, kinds, pace_ms in apart:  # drawn apart, so that what else a seed draws stays what it is
        more = draw_plan(cluster.world.chance(name), kinds, cluster.names, safety_ms, paces_ms=(pace_ms,))
        plan = (*plan, *(replace(fault, number=len(plan) + fault.number) for fault in more))
    return plan


def _kinds_of(dwells_on: Emphasis, mode: Mode) -> tuple[Kind[Cluster], ...]:
    """Return the kinds of faults that a seed prefers."""
    is_heard = mode is Mode.LIAR and dwells_on.subject is Subject.LINKS
    kinds = faults_of_links.OF_OTHER_LINKS if is_heard else OF_SUBJECTS[dwells_on.subject]
    return (*kinds, *(faults_of_moments.directed(pair, DIRECTED_WEIGHT) for pair in dwells_on.pairs))


def run(
    seed: int,
    only: Collection[int] | None = None,
    *,
    rules: SafetyRules = ALL_RULES,
    safety_ms: int = SAFETY_PHASE_MS,
    whole_record: bool = False,
) -> Outcome:
    """Run one seed, with all of its faults or `only` with those of these numbers."""
    cluster = Cluster(seed, setup_of(seed), rules)
    if mode_of(seed) is Mode.DEVICES:
        drawn_configurations.equip(cluster.world.chance("equipment"), cluster.truth.devices, cluster.names)
    plan = [fault for fault in plan_of(cluster, safety_ms) if only is None or fault.number in only]
    look = partial(_look_at, cluster)
    faults = FaultRun(cluster, plan, after=cluster.world.after, tell=cluster.world.record, begun=look)
    problem = rule = ""
    tally = Tally()
    try:
        tally = _act(cluster, faults, seed, safety_ms)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this seed's problem, and is shown with its record)
        problem = _problem_of(error)
        rule = error.rule if isinstance(error, ViolationError) else type(error).__name__
    excuse = Forgetting.of(cluster).excuse or MachineCopies.of(cluster).excuse
    excused = bool(problem) and bool(excuse)
    if excused:
        cluster.world.record(f"excused, because {excuse}: {problem}")
        problem = rule = ""
    return Outcome(
        seed=seed,
        problem=problem,
        rule=rule,
        simulated_ms=cluster.world.now_ms,
        trace=cluster.world.trace(),
        faults=tuple(str(fault) for fault in plan if fault.number in faults.begun),
        begun=tuple(faults.begun),
        counts=(*_counts(cluster, tally, len(faults.begun)), ("excused", int(excused))),
        coverage=tuple(sorted(cluster.coverage.counts.items())),
        recorded=tuple(cluster.world.recorded(None if whole_record else 60)) if whole_record or problem else (),
    )


def _look_at(cluster: Cluster, fault: Fault[Cluster]) -> None:
    """Count a fault that begins, with everything that is under way at this instant."""
    cluster.coverage.count("fault", fault.kind)
    cluster.coverage.count_pairs(fault.kind, cluster.under_way())


def sections() -> tuple[coverage.Section, ...]:
    """Return everything that a whole campaign should have exercised."""
    faults = [kind.name for mode in Mode for kind in (*KINDS[mode], *ALWAYS[mode])]
    faults += [kind.name for kind in (*faults_of_people.OF_LONG_SEEDS, *faults_of_edits.OF_ROLLBACKS)]
    faults += [kind.name for kinds in OF_SUBJECTS.values() for kind in kinds]
    faults += [kind.name for kind in (*faults_of_databases.OF_DATABASES, *faults_of_settings.OF_SETTINGS)]
    faults += [kind.name for kind in (*faults_of_health.OF_HEALTH, *faults_of_operations.OF_OPERATIONS)]
    forgetting = coverage.Section("forgetting", faults_of_disks.OUTCOMES, {})
    copies = coverage.Section("copy", faults_of_copies.OUTCOMES, {})
    versions = coverage.Section("version", faults_of_versions.OUTCOMES, {})
    recovered = coverage.Section("recovery", recovery.OUTCOMES, {})
    rise = coverage.Section("change", (ChangeKind.FEATURE_LEVEL_ROSE.value,), {})
    pairs = map(faults_of_moments.pair_name, faults_of_moments.PAIRS)
    shapes = coverage.Section(coverage.SHAPE, faults_of_shapes.ALL_SHAPES, {})
    others = (forgetting, copies, versions, recovered, *_of_claims(), rise, *_of_words())
    return (*coverage.sections(faults, pairs), shapes, *others)


def _of_words() -> tuple[coverage.Section, ...]:
    """Return what is configured in other words than usual, and has to be obeyed."""
    return (
        coverage.Section(checkers_of_health.HEALTH, checkers_of_health.OUTCOMES, {}),
        coverage.Section(checkers_of_targets.TARGETS, checkers_of_targets.WAYS, {}),
        coverage.Section(checkers_of_minimums.MINIMUM, checkers_of_minimums.OUTCOMES, {}),
        coverage.Section(faults_of_shapes.ON_NODE, faults_of_shapes.ON_NODE_VALUES, {}),
        coverage.Section(faults_of_operations.NEED, faults_of_operations.REQUIRES, {}),
        coverage.Section(faults_of_operations.POLICY, faults_of_operations.POLICIES, {}),
        coverage.Section(faults_of_operations.FAILING, faults_of_operations.ACTIONS, {}),
        coverage.Section(faults_of_operations.KIND, faults_of_operations.KINDS, {}),
    )


def sections_of_shapes() -> tuple[coverage.Section, ...]:
    """Return what a campaign of seeds that dwell on changes of shapes alone should have exercised."""
    faults = tuple(kind.name for kind in faults_of_shapes.DENSE)
    return (coverage.Section("fault", faults, {}), coverage.Section(coverage.SHAPE, faults_of_shapes.ALL_SHAPES, {}))


def sections_of_databases() -> tuple[coverage.Section, ...]:
    """Return what a campaign of seeds whose data remembers its role should have exercised."""
    faults = tuple(kind.name for kind in faults_of_databases.OF_DATABASES)
    return coverage.Section("fault", faults, {}), coverage.answers()


def _of_claims() -> tuple[coverage.Section, ...]:
    recoveries = coverage.Section(faults_of_devices.RECOVERY, RECOVERIES, {})
    return coverage.Section("claim", CLAIMS, {}), recoveries


def sections_of_devices() -> tuple[coverage.Section, ...]:
    """Return what a campaign of seeds with devices alone should have exercised."""
    faults = ("kill a brain", *(kind.name for kind in faults_of_devices.OF_DEVICES))
    return (coverage.Section("command", OF_DEVICES, {}), coverage.Section("fault", faults, {}), *_of_claims())


def _counts(cluster: Cluster, tally: Tally, faults: int) -> tuple[tuple[str, int], ...]:
    """Return what is added up over all seeds; `seeds_with_X` counts seeds in which X happened at least once."""
    log, hosts = cluster.checkers.log, cluster.hosts.values()
    resets = sum(host.watchdog_resets for host in hosts)
    held_back = sum(host.feeds_held_back for host in hosts)
    return (
        ("faults", faults),
        ("lost", len(log.lost_at_us)),
        ("fenced", len(log.fenced)),
        ("lies", cluster.switch.lies),
        ("watchdog_resets", resets),
        ("held_back_feeds", held_back),
        ("seeds_with_fencing", int(bool(log.fenced))),
        ("seeds_with_lying_devices", int(cluster.switch.lies > 0)),
        ("seeds_with_watchdogs", int(cluster.setup.watchdog_ms > 0)),
        ("seeds_with_held_back_feeds", int(held_back > 0)),
        ("seeds_with_several_networks", int(cluster.setup.links > 1)),
        ("seeds_at_the_edge", int(mode_of(cluster.world.seed) is Mode.EDGE)),
        ("claims", sum(cluster.coverage.counts["claim", how] for how in CLAIMS[:2])),
        ("releases", cluster.coverage.counts["change", ChangeKind.DEVICES_RELEASED.value]),
        ("recoveries", cluster.coverage.counts["change", ChangeKind.DEVICE_RECOVERY_BEGUN.value]),
        ("seeds_with_devices", int(cluster.truth.devices.is_anything())),
        ("acknowledged", tally.acknowledged),
        ("reads", tally.reads),
        ("undecided", tally.undecided),
        ("alerts", cluster.alerts_judge.delivered),
        ("alerts_repeated", cluster.alerts_judge.repeated),
        ("seeds_with_alerts", int(bool(cluster.alerts_judge.delivered))),
    )


def _act(cluster: Cluster, faults: FaultRun[Cluster], seed: int, safety_ms: int) -> Tally:
    clients = Clients(cluster)
    _begin(cluster, seed)
    for after_ms, keys in drawn_configurations.alert_tests(seed, safety_ms):
        cluster.world.after(after_ms * MS, partial(cluster.administer, RequestAlertTest(keys, "swarm", "drawn")))
    clients.begin()
    faults.begin()
    cluster.run_for(safety_ms * LONGER if is_long(seed) else safety_ms)
    clients.stop()
    faults.end_all()
    cluster.heal()
    healing.look_after(cluster)
    limit_ms = LIVENESS_MS + expectations.fencing_pause_ms(cluster.cib)
    cluster.until_settled(limit_ms, "settled after healing")
    cluster.run_for(STAYS_SETTLED_MS)
    cluster.until_settled(limit_ms, "settled again")
    _judge_digests(cluster)
    cluster.until(partial(_show_the_same, cluster), SHOWN_MS, "all nodes show what the DC knows")
    _judge_alerts(cluster)
    tally = Tally() if is_rolled_back(seed) else clients.judge()
    if begins_again(seed):
        recovery.begin_again(cluster, BEGINNING_MS)
        _judge_digests(cluster)
    return tally


def _begin(cluster: Cluster, seed: int) -> None:
    """Form the cluster with what the seed begins with."""
    setup, chance = cluster.setup, cluster.world.chance("beginning")
    has_switch, is_at_edge = setup.watchdog_ms == 0, mode_of(seed) is Mode.EDGE
    drawn = {} if is_at_edge else drawn_configurations.properties(chance, has_switch=has_switch)
    if has_database(seed):
        drawn.pop("enable_startup_probes", None)
    if mode_of(seed) is Mode.DEVICES:
        drawn |= drawn_configurations.recovering(cluster.world.chance("recoveries"))
    timeouts = {"node_timeout": f"{setup.node_timeout_ms}ms", "brain_timeout": f"{setup.brain_timeout_ms}ms"}
    usual = configurations.usual if has_switch else configurations.watched
    cluster.form(usual(cluster.names, **timeouts, **drawn))
    has_all, dwells_on = mode_of(seed) is Mode.MOMENTS, emphasis(seed)
    has_all = has_all or dwells_on.subject is Subject.SHAPES
    has_migration = has_all or seed % MIGRATION_EVERY == 1 or dwells_on.meets(*faults_of_moments.OF_MIGRATION)
    drawn_database = drawn_configurations.database(cluster.world.chance("database"), cluster.names)
    database = drawn_database if has_database(seed) else None
    if is_at_edge:
        edits = configurations.promotable(cluster.names) if is_promotable(seed) else ()
    else:
        beginning = drawn_configurations.draw(
            chance,
            cluster.names,
            has_switch=has_switch,
            is_promotable=is_promotable(seed),
            has_migration=has_migration,
            is_unfencing=dwells_on.meets(Activity.UNFENCE),
            is_notified=dwells_on.meets(Activity.NOTIFY),
            is_reloading=dwells_on.meets(Activity.RELOAD),
            database=database,
        )
        edits = drawn_configurations.asked_for_hosts(cluster.world.chance("host checks"), beginning.edits)
        edits = drawn_configurations.targeted(cluster.world.chance("targets"), cluster.names, edits)
        cluster.agent_script.behaviour = cluster.usual_behaviour = beginning.behaviour
        cluster.world.record(f"begins with: {drawn}; {beginning.text}; {dwells_on}")
    if database is not None:
        cluster.truth.databases.keep(DATABASE)
        cluster.checkers.add(ScoringAgents(cluster, DATABASE, database.order, database.scored_after_ms))
    if mode_of(seed) is Mode.DEVICES:
        longest_start_ms = cluster.usual_behaviour.start_ms[1]
        edits = (*edits, *drawn_configurations.claiming(cluster.world.chance("claims"), longest_start_ms))
    if dwells_on.subject is Subject.TICKETS:
        cluster.administer(SetTicket(drawn_configurations.TICKET, TicketChange.GRANT, "swarm"))
        edits = (*edits, *drawn_configurations.tickets(chance))
    drawn_alerts = drawn_configurations.alerts(seed)
    if drawn_alerts:
        drawn_configurations.draw_alert_behaviour(seed, cluster.alert_behaviour)
        edits = (*edits, *map(PutAlert, drawn_alerts))
    if edits:
        cluster.configure(edits)
        cluster.until_settled(BEGINNING_MS, "the beginning settled")
    cluster.begins_with = cluster.cib.version.epoch
    if is_promotable(seed) and cluster.world.chance("writing").random() < WRITING_SHARE:
        cluster.world.record("agents write attributes while they promote and demote")
        cluster.checkers.add(WritingAgents(cluster))


def _judge_digests(cluster: Cluster) -> None:
    """When all is quiet, every node shows the same bytes."""
    digests = {codec.digest(cib) for name in cluster.names if (cib := cluster.applied_at(name)) is not None}
    if len(digests) != 1:
        raise ViolationError("DigestsAreEqual", f"{len(digests)} different CIBs at the end")


def _show_the_same(cluster: Cluster) -> bool:
    """Tell whether what the DC knows beside the CIB is shown on all nodes."""
    shown = {known_of_the_dc(cluster.brain_of(name).runtime) for name in cluster.names}
    return len(shown) == 1


def _judge_alerts(cluster: Cluster) -> None:
    """When all is quiet, every recipient gets what it has not got yet, and nothing is missing."""
    if cluster.cib.configuration.alerts:
        # Of one recipient one call is under way, and each may hang until its timeout.
        longest_ms = max(target.settings.timeout_ms for target in targets(cluster.cib.configuration))
        calls_ms = len(cluster.cib.status.alerts.pending) * max(longest_ms, cluster.alert_behaviour.longest_ms)
        cluster.until(lambda: not cluster.cib.status.alerts.pending, ALERTS_MS + calls_ms, "alerts are delivered")
        cluster.alerts_judge.nothing_waits(cluster.cib)


def _problem_of(error: Exception) -> str:
    trail = "" if isinstance(error, ViolationError) else "\n" + "".join(traceback.format_exception(error)[-6:])
    return f"{type(error).__name__}: {error}{trail}"
