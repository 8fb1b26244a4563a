"""Who is fenced, with what, by whom, and when it is believed."""

from collections.abc import Mapping, Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.apply_fencing import REMEMBERED_FAILURES
from haclusterd.cib.edits import Delete, Edit, PutConstraint, PutResource, PutSets
from haclusterd.machines.effects import Effect, Note, Propose
from haclusterd.machines.fencing_director import FencingDirector
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, Location
from haclusterd.model.fencing import BACKOFF_FIRST_MS, BACKOFF_MAX_MS, FenceAction, FenceOrder, FenceOutcome, FenceState
from haclusterd.model.ids import ConstraintId, FenceKey, Incarnation, NodeName, ResourceId, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.model.timing import abandoned_fencing_ms, derive
from haclusterd.model.watchdog import WATCHDOG, Watchdog
from tests.unit.situations import (
    N1,
    N2,
    N3,
    TERM,
    Cluster,
    commands_of,
    life,
    moment,
    primitive,
    without_lease,
)

TIMING = derive(2000)
H, T = TIMING.heartbeat_ms, TIMING.node_timeout_ms
LISTEN_MS = H + H // 4
"""So long everybody must have listened after the agent's success."""
DONE_MS = LISTEN_MS + 10
"""Then the newest heartbeat of another voter is late enough, too."""
NOW = 1_000_000
LONG_AGO_MS = 60_000


def heard(
    node: NodeName,
    at: int | None,
    *,
    incarnation: Incarnation | None = None,
    hears: Mapping[NodeName, int] | None = None,
    tokens: Mapping[NodeName, str] | None = None,
    age_ms: int | None = None,
    answered_at: int | None = None,
    now: int = NOW,
) -> HeardNode:
    """Say that `node` was heard `at` an instant; `hears` and `tokens`: whom it heard, how long ago, in which life.

    `answered_at`: when the newest heartbeat that it has seen of the DC was sent.
    """
    age = age_ms if age_ms is not None else None if at is None else now - at
    reported = hears or {}
    lives = tokens if tokens is not None else {name: life(name).token for name in reported}
    heard_at = Instant(at) if at is not None else None
    known = incarnation or (life(node) if at is not None else None)
    answered = Instant(answered_at) if answered_at is not None else None
    return HeardNode(node, known, age, BrainState.ALIVE, 0, reported, heard_at, lives, answered)


class Dc:
    """n1 as DC of three nodes with two devices, n2 lost."""

    def __init__(self, *devices: str) -> None:
        self.cluster = Cluster()
        for name in devices or ("power", "backup"):
            self.cluster.configure(PutResource(primitive(name, "stonith:fence_test")))
        self.cluster.lose(N2)
        self.director = FencingDirector(N1, TERM, TIMING)
        self.now = NOW

    def quiet(self, *nodes: HeardNode, at: int | None = None, stalled_at: int | None = None) -> PacerReport:
        """Report what is heard: n2 long ago, and n3 just now, which heard n2 long ago, unless `nodes` say otherwise."""
        now = at if at is not None else self.now
        reported = {node.name: node for node in nodes}
        n2 = reported.get(N2) or heard(N2, now - LONG_AGO_MS, now=now)
        n3 = reported.get(N3) or heard(N3, now - 10, hears={N2: LONG_AGO_MS}, now=now)
        return PacerReport(Instant(now), Instant(stalled_at) if stalled_at is not None else None, (n2, n3))

    def step(self, report: PacerReport | None = None, at: Moment | None = None) -> Sequence[Effect]:
        effects = self.director.step(self.cluster.cib, report or self.quiet(), at or moment(self.now))
        self.cluster.take(effects)
        return effects

    @property
    def order(self) -> FenceOrder:
        [order] = self.cluster.cib.status.fence_orders.values()
        return order

    def agent_ended(self, outcome: FenceOutcome = FenceOutcome.FENCED) -> None:
        self.cluster.must(commands.RecordFenceAgent(self.order.key, outcome, ""))

    def agent_succeeded(self) -> None:
        """Order the fencing of n2, let the agent succeed at NOW, and let the DC see it."""
        self.step()
        self.agent_ended()
        assert commands_of(self.step()) == []

    def state(self) -> NodeState:
        return self.cluster.status(N2).state


def test_a_lost_node_is_fenced_by_the_dc_with_its_first_device() -> None:
    dc = Dc()
    dc.step()
    assert (dc.order.target, dc.order.target_incarnation) == (N2, life(N2))
    assert (dc.order.device, dc.order.executor, dc.order.executor_incarnation) == ("power", N1, life(N1))
    assert commands_of(dc.step()) == []


def test_a_node_without_a_device_is_not_fenced_and_that_is_reported_once() -> None:
    dc = Dc()
    for name in ("power", "backup"):
        dc.cluster.configure(Delete("resource", name))
    effects = dc.step()
    assert [effect.text for effect in effects if isinstance(effect, Note)] == [
        "n2: no usable fencing device: nothing of it is recovered"
    ]
    assert dc.step() == []


def targets(dc: Dc) -> list[NodeName]:
    return [order.target for order in dc.cluster.cib.status.fence_orders.values()]


@pytest.mark.parametrize(("value", "expected"), [("true", [N2, N3]), ("false", [N2])])
def test_several_nodes_are_fenced_at_once_when_that_is_wanted(value: str, expected: list[NodeName]) -> None:
    dc = Dc()
    dc.cluster.configure(PutSets("properties", (AttributeSet("p", (("concurrent-fencing", value),)),)))
    dc.cluster.lose(N3)
    dc.step()
    assert sorted(targets(dc)) == expected
    dc.step()
    assert sorted(targets(dc)) == expected


def test_a_node_that_cannot_be_fenced_does_not_hold_up_the_others() -> None:
    dc = Dc()
    dc.cluster.configure(PutSets("properties", (AttributeSet("p", (("concurrent-fencing", "false"),)),)))
    dc.cluster.lose(N3)
    dc.step()
    dc.agent_ended(FenceOutcome.FAILED)
    dc.step()
    assert targets(dc) == [N3]


def test_where_fencing_is_disabled_nobody_is_fenced() -> None:
    dc = Dc()
    disabled = AttributeSet("cib-bootstrap-options", (("fencing-enabled", "false"),))
    dc.cluster.configure(PutSets("properties", (disabled,)))
    assert commands_of(dc.step()) == []


def test_while_nothing_is_managed_nobody_is_fenced_and_when_that_ends_they_are() -> None:
    """Pacemaker: in maintenance mode an unclean node is left as it is."""
    dc = Dc()
    dc.cluster.configure(maintenance("true"))
    effects = dc.step()
    assert [effect.text for effect in effects if isinstance(effect, Note)] == [
        "n2: what it runs is unmanaged: it is fenced when that ends, unless it is back"
    ]
    assert dc.step() == []
    dc.cluster.configure(maintenance("false"))
    dc.step()
    assert dc.order.target == N2


def maintenance(value: str) -> Edit:
    return PutSets("properties", (AttributeSet("cib-bootstrap-options", (("maintenance-mode", value),)),))


# -- when it is believed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("waited_ms", "is_believed"), [(0, False), (DONE_MS - 1, False), (DONE_MS, True)])
def test_a_success_is_believed_after_everybody_listened_for_a_heartbeat(waited_ms: int, is_believed: bool) -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + waited_ms
    dc.step()
    assert dc.state() is (NodeState.FENCED if is_believed else NodeState.LOST)
    assert is_believed or dc.director.deadline() > dc.now


def test_a_voter_that_has_said_nothing_since_is_waited_for_until_it_is_silent_itself() -> None:
    dc = Dc()
    dc.agent_succeeded()
    for age_ms, is_believed in ((1000, False), (1999, False), (2000, True)):
        dc.now = NOW + age_ms
        dc.step(dc.quiet(heard(N3, NOW, hears={N2: LONG_AGO_MS}, now=dc.now)))
        assert dc.state() is (NodeState.FENCED if is_believed else NodeState.LOST)


@pytest.mark.parametrize(
    "witness",
    [
        heard(N2, NOW + 20, answered_at=NOW + 1, now=NOW + DONE_MS),
        heard(N2, NOW + T + 1, now=NOW + T + 1),
        heard(N3, NOW + T + 51, hears={N2: 50}, now=NOW + T + DONE_MS),
    ],
    ids=["it answers what the DC sent since", "the DC for a node-timeout", "another voter for a node-timeout"],
)
def test_a_device_whose_target_is_heard_afterwards_has_lied(witness: HeardNode) -> None:
    dc = Dc()
    dc.agent_succeeded()
    assert witness.heard_at is not None
    assert witness.age_ms is not None
    dc.now = witness.heard_at + witness.age_ms
    report = dc.quiet(witness)
    dc.step(report)
    assert dc.state() is NodeState.LOST
    assert [record.outcome for record in dc.cluster.cib.status.fencing_history] == [FenceOutcome.LIED]


@pytest.mark.parametrize("witness", [N2, N3])
def test_a_heartbeat_that_came_late_is_no_lie_and_listening_begins_again(witness: NodeName) -> None:
    dc = Dc()
    dc.agent_succeeded()
    late = NOW + 3 * H

    def reported() -> HeardNode:
        if witness == N2:
            return heard(N2, late, answered_at=NOW - 100, now=dc.now)
        return heard(N3, dc.now, hears={N2: dc.now - late}, now=dc.now)

    for waited_ms, is_believed in ((0, False), (LISTEN_MS - 1, False), (DONE_MS, True)):
        dc.now = late + waited_ms
        dc.step(dc.quiet(reported()))
        assert dc.state() is (NodeState.FENCED if is_believed else NodeState.LOST)
    assert [record.outcome for record in dc.cluster.cib.status.fencing_history] == [FenceOutcome.FENCED]


def test_a_voter_that_hears_the_old_life_is_believed_when_the_dc_never_heard_it() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step(dc.quiet(heard(N2, None), heard(N3, NOW + LISTEN_MS, hears={N2: 50}, now=NOW + DONE_MS)))
    assert dc.state() is NodeState.LOST


@pytest.mark.parametrize(
    "witness",
    [
        heard(N2, NOW + 10, answered_at=NOW + 1, incarnation=life(N2, boot=2)),
        heard(N3, NOW + LISTEN_MS, hears={N2: 50}, tokens={N2: life(N2, boot=2, token=2).token}, now=NOW + DONE_MS),
    ],
    ids=["the DC", "another voter"],
)
def test_the_life_after_a_reboot_is_no_lie(witness: HeardNode) -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step(dc.quiet(witness))
    assert dc.state() is NodeState.FENCED


@pytest.mark.parametrize(("boot_id", "is_believed"), [(life(N2).boot_id, False), ("a later boot", True)])
def test_a_dc_that_was_to_end_itself_is_no_witness_of_its_silence(boot_id: str, is_believed: bool) -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.director = FencingDirector(N2, Term(2), TIMING, boot_id=boot_id)
    for waited_ms in (0, 3000, 6000):
        now = NOW + waited_ms
        others = (heard(N1, now - 10, now=now), heard(N3, now - 10, hears={N2: LONG_AGO_MS}, now=now))
        dc.step(PacerReport(Instant(now), None, others), moment(now))
    assert (dc.state() is NodeState.FENCED) == is_believed


def test_without_a_report_of_the_time_since_nothing_is_believed() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    for report in (None, dc.quiet(at=NOW + H)):
        assert commands_of(dc.director.step(dc.cluster.cib, report, moment(dc.now))) == []
    dc.step()
    assert dc.state() is NodeState.FENCED


def test_a_dc_needs_no_lease_to_believe() -> None:
    """Where most voters are lost, nobody gets one before a fencing is recorded and they may join again."""
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step(at=without_lease(dc.now))
    assert dc.state() is NodeState.FENCED


def test_after_an_own_stall_the_silence_counts_again_and_is_not_taken_for_a_sign_of_life() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + 5000
    stalled_at = dc.now - 1
    reset = [heard(N2, NOW - LONG_AGO_MS, age_ms=1), heard(N3, NOW, hears={N2: LONG_AGO_MS}, age_ms=1)]
    assert commands_of(dc.step(dc.quiet(*reset, stalled_at=stalled_at))) == []
    dc.now = stalled_at + DONE_MS
    dc.step(dc.quiet(heard(N2, NOW - LONG_AGO_MS, age_ms=H), stalled_at=stalled_at))
    assert dc.state() is NodeState.FENCED


def test_a_new_dc_waits_for_the_silence_again() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.director = FencingDirector(N1, Term(2), TIMING)
    dc.now = NOW + DONE_MS
    assert commands_of(dc.step()) == []
    dc.now += DONE_MS
    dc.step()
    assert dc.state() is NodeState.FENCED


@pytest.mark.parametrize(("wait_ms", "answers"), [(H, True), (T + 11, False)])
def test_a_node_heard_after_its_fencing_was_recorded_is_fenced_again_with_another_device(
    wait_ms: int, answers: bool
) -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step()
    dc.step()
    recorded_at = dc.now
    dc.now += wait_ms
    dc.step(dc.quiet(heard(N2, dc.now - 10, answered_at=recorded_at + 1 if answers else None, now=dc.now)))
    assert dc.state() is NodeState.LOST
    assert dc.cluster.cib.status.proofs["power/n2"].state == "lied"
    dc.step()
    assert dc.order.device == "backup"


def test_the_last_heartbeats_of_a_fenced_node_are_no_sign_of_life() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step()
    dc.step()
    recorded_at = dc.now
    dc.now += T
    for came_at in (recorded_at - 10, recorded_at + 5 * H, recorded_at + T):
        report = dc.quiet(heard(N2, came_at, answered_at=recorded_at - H, now=dc.now))
        assert commands_of(dc.step(report)) == [], f"the network held it back until {came_at - recorded_at}"
    dc.now += 10 * H
    stalled_at = dc.now - 20
    late = dc.quiet(heard(N2, dc.now - 10, now=dc.now), stalled_at=stalled_at)
    assert commands_of(dc.step(late)) == [], "they lay there while the DC's pacer stood still"


def test_the_life_after_a_recorded_reboot_is_no_reason_to_fence_again() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.now = NOW + DONE_MS
    dc.step()
    dc.step()
    dc.now += 10 * H
    rebooted = heard(N2, dc.now - 10, answered_at=dc.now - 20, incarnation=life(N2, boot=2), now=dc.now)
    for report in (dc.quiet(rebooted), None):
        assert commands_of(dc.director.step(dc.cluster.cib, report, moment(dc.now))) == []


# -- what fails -------------------------------------------------------------------------------------------------------


def test_every_device_is_tried_from_every_node() -> None:
    dc = Dc()
    tried: list[tuple[str, str]] = []
    for _ in range(4):
        while not dc.cluster.cib.status.fence_orders:
            dc.step()
            dc.now += 60_000
        tried.append((str(dc.order.device), str(dc.order.executor)))
        dc.agent_ended(FenceOutcome.FAILED)
    assert sorted(tried) == [("backup", "n1"), ("backup", "n3"), ("power", "n1"), ("power", "n3")]
    assert tried[0] == ("power", "n1")


def test_a_failure_counts_whatever_the_clock_of_its_dc_said() -> None:
    dc = Dc()
    dc.step()
    early = replace(dc.order, key=FenceKey("early"), issued_at=WallTime(0))
    dc.agent_ended(FenceOutcome.FAILED)
    dc.cluster.must(commands.IssueFence(early))
    dc.agent_ended(FenceOutcome.FAILED)
    dc.now += 60_000
    dc.step()
    assert dc.director.deadline() == dc.now + BACKOFF_FIRST_MS


def test_from_the_third_attempt_on_it_waits_longer_each_time() -> None:
    dc = Dc()
    for _ in range(2):
        dc.step()
        dc.agent_ended(FenceOutcome.FAILED)
    dc.step()
    assert dc.cluster.cib.status.fence_orders == {}
    assert dc.director.deadline() == dc.now + BACKOFF_FIRST_MS
    dc.now += BACKOFF_FIRST_MS
    dc.step()
    assert dc.order.attempt == 3


def test_the_failures_of_another_node_are_not_counted() -> None:
    dc = Dc()
    for _ in range(2):
        dc.step()
        dc.agent_ended(FenceOutcome.FAILED)
    dc.cluster.must(commands.Join(N2, life(N2, token=2)))
    dc.cluster.lose(N3)
    dc.step()
    assert (dc.order.target, dc.order.attempt) == (N3, 1)


def test_it_never_gives_up_and_goes_on_at_the_longest_pause() -> None:
    dc = Dc()
    for attempt in range(1, 151):
        dc.step()
        while not dc.cluster.cib.status.fence_orders:
            assert dc.director.deadline() <= dc.now + BACKOFF_MAX_MS
            dc.now = dc.director.deadline()
            dc.step()
        assert dc.order.attempt == attempt
        dc.agent_ended(FenceOutcome.FAILED)
    dc.step()
    assert dc.director.deadline() == dc.now + BACKOFF_MAX_MS


def test_after_so_many_attempts_as_are_configured_only_the_longest_pause_is_left() -> None:
    dc = Dc()
    dc.cluster.configure(PutSets("properties", (AttributeSet("p", (("fencing-max-attempts", "1"),)),)))
    dc.step()
    dc.agent_ended(FenceOutcome.FAILED)
    dc.step()
    assert dc.director.deadline() == dc.now + BACKOFF_MAX_MS


def test_attempts_without_end_push_no_other_fencing_out_of_the_history() -> None:
    dc = Dc()
    dc.cluster.must(commands.Fenced(N3, life(N3), None, FenceOutcome.CONFIRMED, "long ago"))
    for _ in range(150):
        dc.step()
        while not dc.cluster.cib.status.fence_orders:
            dc.now = dc.director.deadline()
            dc.step()
        dc.agent_ended(FenceOutcome.FAILED)
    history = dc.cluster.cib.status.fencing_history
    assert [record.target for record in history] == [N3, *[N2] * REMEMBERED_FAILURES]
    assert history[-1].attempt == 150


def fenced_times(count: int) -> Dc:
    """Let n2 have been fenced so often, ten seconds apart, and be lost again."""
    dc = Dc()
    for boot in range(2, 2 + count):
        status = dc.cluster.status(N2)
        dc.cluster.must(commands.Fenced(N2, status.incarnation, None, FenceOutcome.FENCED, ""))
        dc.cluster.must(commands.Join(N2, life(N2, boot=boot)))
        dc.cluster.lose(N2)
    return dc


def step_at(dc: Dc, wall_ms: int) -> None:
    effects = dc.director.step(dc.cluster.cib, dc.quiet(), moment(dc.now)._replace(wall=WallTime(wall_ms)))
    dc.cluster.take(effects)


@pytest.mark.parametrize(("times", "pause_ms"), [(2, 0), (3, 60_000), (4, 120_000), (9, 600_000)])
def test_a_node_that_was_fenced_again_and_again_is_fenced_at_growing_intervals(times: int, pause_ms: int) -> None:
    dc = fenced_times(times)
    newest = dc.cluster.cib.status.fencing_history[-1].ended_at
    step_at(dc, newest)
    assert bool(dc.cluster.cib.status.fence_orders) is (pause_ms == 0)
    if pause_ms:
        assert dc.director.deadline() == dc.now + pause_ms
        dc.now += pause_ms
        step_at(dc, newest)
        assert dc.order.target == N2, "whatever became of the wall clock"


def test_one_that_lived_for_longer_is_fenced_at_once_however_often_it_was() -> None:
    dc = fenced_times(3)
    step_at(dc, dc.cluster.cib.status.fencing_history[-1].ended_at + 60_000)
    assert dc.order.target == N2


def test_forgotten_fencings_do_not_delay_the_next_one() -> None:
    dc = fenced_times(3)
    newest = dc.cluster.cib.status.fencing_history[-1].ended_at
    step_at(dc, newest)
    assert dc.cluster.cib.status.fence_orders == {}
    dc.cluster.must(commands.ForgetFencings(N2, "root"))
    step_at(dc, newest)
    assert dc.order.target == N2


def test_when_the_node_that_ran_the_agent_is_gone_the_outcome_is_unknown_and_it_is_fenced_again() -> None:
    dc = Dc()
    dc.step()
    first = dc.order.key
    dc.cluster.must(commands.Join(N1, life(N1, token=2)))
    dc.cluster.must(commands.RequestLeave(N3, life(N3)))
    dc.cluster.must(commands.Leaving(N3, life(N3)))
    dc.step()
    assert [record.outcome for record in dc.cluster.cib.status.fencing_history] == [FenceOutcome.UNKNOWN]
    dc.step()
    assert dc.order.key != first
    assert dc.order.executor_incarnation == life(N1, token=2)


def test_the_agent_of_an_executor_that_is_lost_gets_its_time_from_each_dc() -> None:
    dc = Dc()
    dc.cluster.must(commands.IssueFence(replace(order_of(dc), executor=N3, executor_incarnation=life(N3))))
    dc.cluster.lose(N3)
    dc.step()
    [abandoned] = dc.cluster.cib.status.abandoned_fencings.values()
    longest_ms = abandoned_fencing_ms(T, abandoned.order.timeout_ms)
    assert abandoned.longest_ms == longest_ms
    dc.now += 20_000
    dc.director = FencingDirector(N1, TERM, TIMING)
    dc.step()
    dc.now += longest_ms - 1
    dc.step()
    assert dc.cluster.cib.status.abandoned_fencings
    assert dc.director.deadline() <= dc.now + 1
    dc.now += 1
    dc.step()
    assert not dc.cluster.cib.status.abandoned_fencings


@pytest.mark.parametrize("devices", [("san", "power"), ("san",)])
def test_a_late_agent_that_lets_the_node_in_holds_up_only_devices_that_leave_it_alive(devices: tuple[str, ...]) -> None:
    """Here its own one: n2 was to let itself in when it was lost."""
    cluster = Cluster()
    cluster.configure(*(PutResource(primitive(name, "stonith:fence_test")) for name in devices))
    letting_in = (AttributeSet("meta", (("provides", "unfencing"),)),)
    cluster.configure(PutResource(replace(primitive("san", "stonith:fence_test"), meta=letting_in)))
    san = ResourceId("san")
    on = FenceOrder(
        FenceKey("on"), N2, life(N2), FenceAction.ON, san, N2, life(N2), TERM, 60_000, 1, WallTime(0), ""
    )
    cluster.must(commands.IssueFence(on))
    cluster.lose(N2)
    dc = Dc()
    dc.cluster = cluster
    dc.step()
    assert cluster.cib.status.abandoned_fencings
    dc.step()
    ordered = [order.device for order in cluster.cib.status.fence_orders.values()]
    assert ordered == [name for name in devices if name == "power"]


def order_of(dc: Dc) -> FenceOrder:
    """Return the order that a DC would give now."""
    effects = FencingDirector(N1, TERM, TIMING).step(dc.cluster.cib, dc.quiet(), moment(dc.now))
    return next(command.order for command in commands_of(effects) if isinstance(command, commands.IssueFence))


def test_an_order_says_how_long_a_call_of_its_devices_takes_at_most() -> None:
    dc = Dc()
    slow = {"pcmk_off_timeout": "90s", "pcmk_status_timeout": "5s"}
    dc.cluster.configure(PutResource(primitive("power", "stonith:fence_test", slow)))
    assert order_of(dc).longest_call_ms == 90_000


def test_a_success_counts_also_when_its_executor_is_gone_since() -> None:
    dc = Dc()
    dc.agent_succeeded()
    dc.cluster.must(commands.Join(N1, life(N1, token=2)))
    dc.now = NOW + DONE_MS
    dc.step()
    assert dc.state() is NodeState.FENCED


def test_a_node_that_is_being_fenced_gets_no_second_order() -> None:
    dc = Dc()
    dc.step()
    for _ in range(3):
        assert [command for command in commands_of(dc.step()) if isinstance(command, commands.IssueFence)] == []
    assert dc.order.state is FenceState.OPEN


def test_the_target_never_fences_itself_and_a_lost_dc_is_fenced_by_another() -> None:
    dc = Dc()
    dc.cluster.lose(N1)
    dc.step()
    targets = {order.target: order.executor for order in dc.cluster.cib.status.fence_orders.values()}
    assert targets == {N1: N3, N2: N3}


def test_nobody_is_fenced_who_is_not_lost() -> None:
    dc = Dc()
    dc.cluster.must(commands.Join(N2, life(N2, token=2)))
    assert not any(isinstance(effect, Propose) for effect in dc.step())


def put_location(device: str, node: NodeName, score: int) -> PutConstraint:
    location = Location(ConstraintId(f"{device}-{node}"), ResourceId(device), score=score, node=node)
    return PutConstraint(location)


def put_property(name: str, value: str) -> PutSets:
    return PutSets("properties", (AttributeSet("p", ((name, value),)),))


def test_a_device_that_nobody_may_use_holds_up_no_other() -> None:
    dc = Dc()
    dc.cluster.configure(*(put_location("power", node, -INFINITY) for node in (N1, N3)))
    dc.step()
    assert (dc.order.device, dc.order.executor) == ("backup", N1)


def test_where_nobody_may_use_any_device_that_is_reported() -> None:
    dc = Dc()
    dc.cluster.configure(put_property("symmetric-cluster", "false"))
    assert [effect.text for effect in dc.step() if isinstance(effect, Note)] == [
        "n2: no node that may use power, backup is online"
    ]
    dc.cluster.configure(put_location("backup", N3, 0))
    dc.step()
    assert (dc.order.device, dc.order.executor) == ("backup", N3)


def test_no_constraint_is_needed_to_believe_in_a_watchdog() -> None:
    dc = Dc()
    for name in ("power", "backup"):
        dc.cluster.configure(Delete("resource", name))
    properties = (("symmetric-cluster", "false"), ("watchdog-fencing", "true"))
    dc.cluster.configure(PutSets("properties", (AttributeSet("p", properties),)))
    status = replace(dc.cluster.status(N2), watchdog=Watchdog(5000, "/dev/watchdog", "iTCO_wdt"))
    nodes = {**dc.cluster.cib.status.nodes, N2: status}
    dc.cluster.cib = replace(dc.cluster.cib, status=replace(dc.cluster.cib.status, nodes=nodes))
    dc.step()
    assert dc.order.device == WATCHDOG
