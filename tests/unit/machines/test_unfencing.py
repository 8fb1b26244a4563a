"""Nodes that their fence devices must let in (`on`) before anything that needs it starts there."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.edits import Delete, PutConstraint, PutResource
from haclusterd.machines.effects import Effect, Note
from haclusterd.machines.fencing_director import FencingDirector, Wanted
from haclusterd.machines.transitions.transition import TransitionMachine, TransitionState
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, Location
from haclusterd.model.fencing import UNFENCED_MARK, FenceAction, FenceOrder, FenceOutcome, FencingRecord
from haclusterd.model.graph import ActionKind, GraphAction, TransitionGraph
from haclusterd.model.ids import ConstraintId, FenceKey, NodeName
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.model.timing import derive
from tests.unit.situations import DB, DUMMY, N1, N2, TERM, Cluster, commands_of, life, moment, primitive

WANTED = Wanted({N2: "required by db start"})
NOW = 1_000_000


class Dc:
    """n1 as DC; n2 is to be let in by `gate`, which provides unfencing; `power` does not."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        gate = replace(primitive("gate", "stonith:fence_test"), meta=(AttributeSet("m", (("provides", "unfencing"),)),))
        self.cluster.configure(
            PutResource(primitive("power", "stonith:fence_test")), PutResource(gate)
        )
        self.director = FencingDirector(N1, TERM, derive(2000))
        self.now = NOW

    def step(self, wanted: Wanted = WANTED) -> Sequence[Effect]:
        effects = self.director.step(self.cluster.cib, None, moment(self.now), wanted)
        self.cluster.take(effects)
        return effects

    @property
    def order(self) -> FenceOrder:
        [order] = self.cluster.cib.status.fence_orders.values()
        return order

    def answer(self, outcome: FenceOutcome = FenceOutcome.FENCED) -> None:
        self.cluster.must(commands.RecordFenceAgent(self.order.key, outcome, ""))

    def mark(self) -> str | None:
        return self.cluster.status(N2).attributes.get(UNFENCED_MARK)

    def records(self) -> Sequence[FencingRecord]:
        return self.cluster.cib.status.fencing_history


def test_a_node_is_let_in_by_the_devices_that_provide_it_and_asks_them_itself() -> None:
    dc = Dc()
    dc.step()
    order = dc.order
    assert (order.action, order.devices, order.executor, order.target) == (FenceAction.ON, ("gate",), N2, N2)
    dc.answer()
    assert dc.mark() == str(dc.cluster.cib.index), "one command a second"
    assert [record.outcome for record in dc.records()] == [FenceOutcome.UNFENCED]
    assert dc.cluster.cib.status.proofs == {}, "to let in proves nothing of fencing"
    assert commands_of(dc.step(Wanted())) == []


def test_after_a_failure_of_its_own_another_node_asks_and_then_it_rests() -> None:
    dc = Dc()
    asked = []
    for _ in range(3):
        dc.step()
        if not dc.cluster.cib.status.fence_orders:
            dc.now = dc.director.deadline()
            dc.step()
        asked.append(dc.order.executor)
        dc.answer(FenceOutcome.FAILED)
    assert asked == ["n2", "n1", "n3"]
    assert dc.cluster.cib.status.proofs == {}, "not to let in proves nothing of fencing either"
    assert dc.now > NOW
    assert dc.mark() is None


def test_a_node_that_may_not_use_the_device_is_let_in_by_another() -> None:
    dc = Dc()
    ban = Location(ConstraintId("ban"), primitive("gate").id, N2, -INFINITY)
    dc.cluster.configure(PutConstraint(ban))
    dc.step()
    assert dc.order.executor == N1


def test_without_a_device_that_provides_it_nothing_is_ordered_and_that_is_reported() -> None:
    dc = Dc()
    dc.cluster.configure(Delete("resource", "gate"))
    reported = [effect.text for effect in dc.step() if isinstance(effect, Note)]
    assert reported == ["n2: no usable fencing device: nothing that needs unfencing starts there"]


def test_a_node_that_is_lost_meanwhile_is_not_marked_and_is_cut_off_afterwards() -> None:
    dc = Dc()
    dc.cluster.configure(Delete("resource", "power"))
    dc.step()
    order = dc.order
    dc.cluster.lose(N2)
    assert dc.cluster.put(commands.IssueFence(replace(dc.order, action=FenceAction.OFF))).refusal is not None
    dc.step()
    [record] = dc.records()
    assert (record.outcome, record.action) == (FenceOutcome.UNKNOWN, FenceAction.ON), "who asked is the lost node"
    dc.step()
    assert not dc.cluster.cib.status.fence_orders, "its agent may still let it in"
    refused = dc.cluster.put(commands.IssueFence(replace(order, key=FenceKey("x"), action=FenceAction.OFF))).refusal
    assert refused is not None
    assert refused.code is RefusalCode.FENCING_IN_FLIGHT
    dc.now = dc.director.deadline()
    dc.step()
    dc.step()
    assert (dc.order.action, dc.order.executor, dc.order.attempt) == (FenceAction.REBOOT, N1, 1)


def test_only_who_is_there_is_let_in() -> None:
    dc = Dc()
    dc.step()
    order = replace(dc.order, key=dc.order.key + "x")
    dc.answer()
    dc.cluster.lose(N2)
    assert dc.cluster.put(commands.IssueFence(order)).refusal is not None
    assert dc.cluster.status(N2).state is NodeState.LOST


def graph() -> TransitionGraph:
    on = GraphAction(1, ActionKind.FENCE, "on", None, N2, reason="required by db start", target_incarnation=life(N2))
    start = GraphAction(2, ActionKind.RESOURCE, ActionName.START, DB, N2, inputs=(1,), agent=DUMMY)
    return TransitionGraph({1: on, 2: start})


def test_what_needs_it_waits_for_the_unfencing_of_its_node() -> None:
    dc = Dc()
    dc.cluster.configure(PutResource(primitive("db")))
    transition = TransitionMachine(N1, TERM, 1, graph(), dc.cluster.cib)
    assert commands_of(transition.step(dc.cluster.cib, (), moment(NOW))) == []
    assert transition.wanted_unfencings(dc.cluster.cib) == {N2: "required by db start"}
    dc.step(Wanted(transition.wanted_unfencings(dc.cluster.cib)))
    applied = dc.cluster.must(commands.RecordFenceAgent(dc.order.key, FenceOutcome.FENCED, ""))
    assert transition.wanted_unfencings(dc.cluster.cib) == {}, "the CIB says so before the plan takes the step"
    [issued] = commands_of(transition.step(dc.cluster.cib, applied.changes, moment(NOW)))
    assert isinstance(issued, commands.IssueOrders)
    assert [order.resource for order in issued.orders] == [DB]
    assert transition.wanted_unfencings(dc.cluster.cib) == {}
    assert transition.state is TransitionState.RUNNING


def test_a_plan_ends_when_an_unfencing_fails_that_something_waits_for() -> None:
    """Otherwise starts on other nodes, which wait for probes there, wait until the next recheck."""
    dc = Dc()
    dc.cluster.configure(PutResource(primitive("db")))
    dc.step()
    dc.answer(FenceOutcome.FAILED)
    waiting = TransitionMachine(N1, TERM, 1, graph(), dc.cluster.cib)
    alone = TransitionMachine(N1, TERM, 1, TransitionGraph({1: graph().actions[1]}), dc.cluster.cib)
    for walk in (waiting, alone):
        walk.step(dc.cluster.cib, (), moment(NOW))
        assert walk.state is TransitionState.RUNNING, "it failed before"
    dc.step(Wanted(waiting.wanted_unfencings(dc.cluster.cib)))
    applied = dc.cluster.must(commands.RecordFenceAgent(dc.order.key, FenceOutcome.FAILED, ""))
    for walk in (waiting, alone):
        walk.step(dc.cluster.cib, applied.changes, moment(NOW))
    assert (waiting.state, alone.state) == (TransitionState.ABORTED, TransitionState.RUNNING)
    assert alone.wanted_unfencings(dc.cluster.cib) == {N2: "required by db start"}


@pytest.mark.parametrize(("node", "left"), [(N2, 0), (NodeName("n3"), 1), (None, 0)])
def test_forgotten_failures_count_no_more(node: NodeName | None, left: int) -> None:
    dc = Dc()
    dc.step()
    dc.answer(FenceOutcome.FAILED)
    dc.cluster.must(commands.ForgetFencings(node, "root"))
    assert len(dc.records()) == left
    dc.step()
    assert dc.order.attempt == left + 1
