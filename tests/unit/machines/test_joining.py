"""How a node becomes, stays and ceases to be a member in force."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import PutResource
from haclusterd.machines.effects import Propose, TransferLeadership
from haclusterd.machines.joining import HELD_RETRY_MS, DrawIncarnation, JoiningMachine, JoinState
from haclusterd.machines.moment import Moment
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome
from haclusterd.model.ids import FenceKey, NodeName, OrderKey, ResourceId
from haclusterd.model.instants import NEVER, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import (
    DB,
    N1,
    N2,
    N3,
    TERM,
    Cluster,
    commands_of,
    life,
    moment,
    order,
    primitive,
    without_lease,
)

CALM = {"has_acted_alone": False, "is_stopping_alone": False, "is_fencing": False, "is_leader": False}


class Member:
    """n2's membership, and what its executor is doing."""

    def __init__(self, cluster: Cluster | None = None, *, token: int = 1) -> None:
        self.cluster = cluster or Cluster()
        self.machine = JoiningMachine(N2, life(N2, token=token))
        self.token = token
        self.drawn = 0
        self.has_acted_alone = False
        self.is_stopping_alone = False
        self.is_fencing = False
        self.is_leader = False

    def step(self, at: Moment | None = None) -> list[object]:
        """Step once; what it proposes is committed, and an incarnation that it wants is drawn."""
        at = at or moment(10_000)
        effects = list(
            self.machine.step(
                self.cluster.cib,
                at,
                has_acted_alone=self.has_acted_alone,
                is_stopping_alone=self.is_stopping_alone,
                is_fencing=self.is_fencing,
                is_leader=self.is_leader,
            )
        )
        for effect in effects:
            if isinstance(effect, DrawIncarnation):
                self.drawn += 1
                self.token += 1
                self.has_acted_alone = False
                self.machine.reincarnated(life(N2, token=self.token))
            elif isinstance(effect, Propose):
                applied = self.cluster.put(effect.command, by=N2)
                if applied.refusal is not None and isinstance(effect.command, commands.Join):
                    self.machine.refused(applied.refusal, at)
        return effects

    def settle(self, at: Moment | None = None) -> None:
        for _ in range(4):
            self.step(at)

    def is_online(self) -> bool:
        status = self.cluster.status(N2)
        return str(status.state) == "online" and status.incarnation == life(N2, token=self.token)


def fence(target: NodeName, executor: NodeName = N1) -> commands.IssueFence:
    return commands.IssueFence(
        FenceOrder(
            key=FenceKey(f"f-{target}"),
            target=target,
            target_incarnation=life(target),
            action=FenceAction.OFF,
            device=ResourceId("power"),
            executor=executor,
            executor_incarnation=life(executor),
            dc_term=TERM,
            timeout_ms=1000,
            attempt=1,
            issued_at=WallTime(0),
            reason="lost",
        )
    )


def test_a_daemon_joins_and_then_has_nothing_to_say() -> None:
    member = Member(Cluster(joined=[N1, N3]))
    member.step()
    assert member.is_online()
    assert member.step() == []
    assert member.machine.state is JoinState.JOINED


def test_a_daemon_whose_pacer_does_not_answer_does_not_join_and_says_why() -> None:
    cluster = Cluster(joined=[N1, N3])
    machine = JoiningMachine(N2, life(N2))
    assert machine.step(cluster.cib, moment(0), has_pacer=False, **CALM) == ()
    assert "haclusterd-pacer does not answer" in machine.held_because
    (effect,) = machine.step(cluster.cib, moment(1_000), has_pacer=True, **CALM)
    assert isinstance(effect, Propose)
    assert isinstance(effect.command, commands.Join)
    assert machine.held_because == ""


def test_a_node_that_is_no_member_asks_for_nothing() -> None:
    machine = JoiningMachine(NodeName("n9"), life(NodeName("n9")))
    assert machine.step(Cluster().cib, moment(0), **CALM) == ()


def test_a_lost_node_joins_under_a_new_incarnation() -> None:
    member = Member()
    member.step()
    member.cluster.lose(N2)
    member.settle()
    assert member.drawn == 0, "what it runs has no lease: it is stopped first"
    member.has_acted_alone = True
    member.settle()
    assert member.drawn == 1
    assert member.is_online()


def test_a_join_is_held_while_the_node_is_being_fenced_and_asked_for_again_afterwards() -> None:
    member = Member()
    member.step()
    member.cluster.lose(N2)
    member.cluster.must(fence(N2))
    member.has_acted_alone = True
    member.settle()
    assert member.machine.state is JoinState.HELD
    assert "held" in member.machine.held_because
    assert member.step(moment(10_000 + HELD_RETRY_MS - 1)) == []
    member.cluster.must(commands.RecordFenceFailure(FenceKey("f-n2"), FenceOutcome.FAILED, ""))
    member.settle(moment(10_000 + HELD_RETRY_MS))
    assert member.is_online()
    assert member.drawn == 1


def test_a_held_join_that_has_been_asked_for_again_does_not_wake_it_all_the_time() -> None:
    member = Member()
    member.step()
    member.cluster.lose(N2)
    member.cluster.must(fence(N2))
    member.has_acted_alone = True
    member.settle()
    assert member.machine.deadline() == 10_000 + HELD_RETRY_MS
    later = moment(10_000 + HELD_RETRY_MS)
    member.machine.step(member.cluster.cib, later, **CALM)
    assert member.machine.deadline() > later.now


# -- after acting alone -----------------------------------------------------------------------------------------------


def joined_and_alone() -> Member:
    member = Member()
    member.step()
    member.has_acted_alone = True
    return member


def test_it_comes_back_under_a_new_incarnation_when_it_has_a_lease_again() -> None:
    member = joined_and_alone()
    assert member.step(without_lease(10_000)) == []
    member.settle()
    assert member.drawn == 1
    assert member.is_online()


def test_it_stops_everything_before_it_comes_back() -> None:
    member = joined_and_alone()
    member.is_stopping_alone = True
    assert member.step() == []


def test_a_life_that_was_declared_lost_needs_no_lease_to_end() -> None:
    """No voter echoes it before its next Join is applied, so it would wait for ever."""
    member = joined_and_alone()
    member.cluster.lose(N2)
    member.settle(without_lease(10_000))
    assert member.is_online()


def test_a_life_that_had_to_act_alone_before_it_could_join_joins_all_the_same() -> None:
    """A lost node's next life gets no lease before its Join, which may take longer than the lease."""
    cluster = Cluster()
    cluster.lose(N2)
    member = Member(cluster, token=2)
    member.has_acted_alone = True
    member.settle(without_lease(10_000))
    assert member.is_online()


def test_a_life_that_acted_alone_before_its_join_takes_orders_only_under_the_next() -> None:
    cluster = Cluster()
    cluster.lose(N2)
    member = Member(cluster, token=2)
    member.has_acted_alone = True
    member.settle(without_lease(10_000))
    assert member.drawn == 0
    member.settle()
    assert member.drawn == 1
    assert member.is_online()


def test_a_life_recorded_as_fenced_first_stops_what_it_ran() -> None:
    member = Member()
    member.step()
    member.cluster.lose(N2)
    member.cluster.must(commands.Fenced(N2, life(N2), None, FenceOutcome.CONFIRMED, "down"))
    assert member.step() == []
    member.has_acted_alone = True
    member.settle(without_lease(10_000))
    assert member.is_online()
    assert member.drawn == 1


def test_a_life_ends_only_when_its_fence_agents_have_ended() -> None:
    """Otherwise their orders would be closed as unknown, and a late `off` could hit a node that has come back."""
    member = joined_and_alone()
    member.is_fencing = True
    assert member.step() == []
    member.is_fencing = False
    member.settle()
    assert member.is_online()


# -- leaving ----------------------------------------------------------------------------------------------------------


def leaving(cluster: Cluster | None = None) -> Member:
    member = Member(cluster)
    member.step()
    member.machine.leave()
    return member


def test_it_asks_to_be_drained_and_leaves_when_it_is_empty() -> None:
    member = leaving()
    assert commands_of(member.step()) == [commands.RequestLeave(N2, life(N2))]
    assert commands_of(member.step()) == [commands.Leaving(N2, life(N2))]
    member.step()
    assert member.machine.state is JoinState.LEFT
    assert member.step() == []


@pytest.mark.parametrize("action", [ActionName.START, ActionName.STOP, ActionName.MONITOR])
def test_it_does_not_leave_while_an_order_is_open(action: ActionName) -> None:
    member = leaving()
    member.cluster.issue(order("a", action))
    member.step()
    assert member.step() == []


@pytest.mark.parametrize("is_managed", ["true", "false"])
def test_it_leaves_with_what_is_unmanaged_running_and_with_nothing_else(is_managed: str) -> None:
    member = leaving()
    meta = (AttributeSet("db-meta", (("is-managed", is_managed),)),)
    member.cluster.configure(PutResource(replace(primitive("db"), meta=meta)))
    member.cluster.issue(order("a"))
    finished = OperationResult(
        ResultKind.FINISHED, OrderKey("a"), DB, "start", 0, ExitCode.OK, ExecutionStatus.DONE, 1, WallTime(0)
    )
    member.cluster.must(commands.RecordResults(N2, life(N2), (finished,)))
    member.step()
    left = commands.Leaving(N2, life(N2), (ResourceId("db"),))
    assert commands_of(member.step()) == ([left] if is_managed == "false" else [])
    assert (member.cluster.status(N2).has_detached) == (is_managed == "false")
    member.step()
    assert (member.machine.state is JoinState.LEFT) == (is_managed == "false")


def test_it_does_not_leave_while_it_fences_another() -> None:
    member = leaving()
    member.cluster.lose(N3)
    member.cluster.must(fence(N3, executor=N2))
    member.step()
    assert member.step() == []
    member.cluster.must(commands.RecordFenceAgent(FenceKey("f-n3"), FenceOutcome.FENCED, ""))
    assert commands_of(member.step()) == [commands.Leaving(N2, life(N2))]


def test_what_was_refused_because_it_fences_another_is_asked_for_again() -> None:
    member = leaving()
    member.step()
    member.cluster.lose(N3)
    [left] = commands_of(
        member.machine.step(
            member.cluster.cib, moment(1000), has_acted_alone=False, is_stopping_alone=False, is_fencing=False,
            is_leader=False,
        )
    )
    member.cluster.must(fence(N3, executor=N2))
    assert member.cluster.put(left).refusal is not None, "the order came first"
    assert member.step() == []
    member.cluster.must(commands.RecordFenceAgent(FenceKey("f-n3"), FenceOutcome.FENCED, ""))
    assert commands_of(member.step()) == [left]


def test_a_leader_hands_over_before_it_leaves() -> None:
    member = leaving()
    member.is_leader = True
    member.step()
    assert member.step() == [TransferLeadership(N1)]


def test_a_leader_that_nobody_can_succeed_leaves_all_the_same() -> None:
    member = leaving()
    member.is_leader = True
    for name in (N1, N3):
        member.cluster.must(commands.RequestLeave(name, life(name)))
    member.step()
    assert commands_of(member.step()) == [commands.Leaving(N2, life(N2))]


def test_a_node_that_leaves_and_acted_alone_does_not_come_back() -> None:
    member = leaving()
    member.has_acted_alone = True
    assert member.step() == []
    assert member.machine.deadline() == NEVER
