"""The DC's loop: when a node acts as DC, when it plans, when it hands over."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import Change, Refusal, RefusalCode
from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.edits import Delete, PutResource, PutSets
from haclusterd.machines.controller import OUTDATED_PAUSE_MS, OUTDATED_PLAN_MS_MAX, OUTDATED_PLANS_MAX, REFUSED_PAUSE_MS
from haclusterd.machines.effects import Effect, Note, TransferLeadership
from haclusterd.machines.repeats import FREE_REPEATS
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.followers import Follower, Followers
from haclusterd.model.graph import ActionKind, GraphAction, Plan, TransitionGraph
from haclusterd.model.ids import NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, Order, ResultKind
from haclusterd.model.pacer import PacerReport
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, Rule
from tests.unit.machines.leading import FORM, NOTHING, TIMING, Dc
from tests.unit.machines.planned import act
from tests.unit.situations import (
    DB,
    N1,
    N2,
    N3,
    TERM,
    WALL,
    WEB,
    Cluster,
    commands_of,
    issue,
    life,
    moment,
    order,
    primitive,
    record,
    result,
    started,
)


def starting(*names: NodeName) -> Plan:
    """Plan a start of db on each of some nodes."""
    actions = {number: act(number, ActionName.START, node=name) for number, name in enumerate(names)}
    return Plan(TransitionGraph(actions), {})


def ended_well(key: OrderKey, resource: ResourceId, action: str) -> OperationResult:
    """Return what a node reports of an order whose agent did what was asked."""
    how = 0, ExitCode.OK, ExecutionStatus.DONE, 1, WallTime(0)
    return OperationResult(ResultKind.FINISHED, key, resource, action, *how)


def dc_that_knows(*orders: Order) -> Dc:
    """Return a DC in whose cluster these orders are open; its next plan starts db on n2."""
    cluster = Cluster()
    cluster.must(commands.IssueOrders(TERM, orders))
    dc = Dc(cluster)
    dc.plan = starting(N2)
    return dc


def transfers(effects: Sequence[Effect]) -> list[NodeName]:
    return [effect.to for effect in effects if isinstance(effect, TransferLeadership)]


def test_a_transition_that_only_waits_for_fencing_is_planned_again_when_time_alone_may_change_it() -> None:
    dc = Dc()
    on = GraphAction(1, ActionKind.FENCE, "on", None, N2, reason="required by db start", target_incarnation=life(N2))
    dc.plan = Plan(TransitionGraph({1: on}), {}, recheck_at=WallTime(WALL + 60_000))
    dc.step()
    assert dc.controller.transition_progress() is not None
    dc.now += 59_000
    dc.step()
    assert len(dc.planned) == 1
    dc.now += 2000
    dc.step()
    assert len(dc.planned) == 2
    assert dc.controller.transition_progress() is not None, "the new plan waits for the same again"


def test_a_transition_that_only_waits_for_fencing_is_planned_again_when_what_it_left_out_may_continue() -> None:
    """A stop of an earlier transition is under way, so the start after it is in no plan; then the stop ends."""
    cluster = Cluster()
    stop, start = (
        order(f"1.1.{number}", name, node=N3, resource=WEB)
        for number, name in ((7, ActionName.STOP), (8, ActionName.START))
    )
    cluster.must(commands.IssueOrders(TERM, (stop, replace(start, node=N1, incarnation=life(N1), resource=DB))))
    dc = Dc(cluster)
    dc.plan = Plan(TransitionGraph({1: GraphAction(1, ActionKind.FENCE, "on", None, N2)}), {})
    dc.step()
    assert len(dc.planned) == 1
    ended = ended_well(stop.key, WEB, "stop")
    effects = dc.change(commands.RecordResults(N3, life(N3), (ended,)))
    assert len(dc.planned) == 2
    assert commands_of(effects) == [], "what is under way is not voided"
    dc.step()
    assert len(dc.planned) == 2, "nothing more has happened"


@pytest.mark.parametrize("action", [ActionName.STOP, ActionName.NOTIFY])
def test_a_long_transition_is_given_up_for_what_it_left_out_and_nothing_of_it_is_voided(action: ActionName) -> None:
    before = order("1.1.7", action, node=N3, resource=WEB)
    dc = dc_that_knows(before)
    commit(dc, dc.step())
    ended = ended_well(before.key, WEB, str(action))
    assert commands_of(dc.change(commands.RecordResults(N3, life(N3), (ended,)))) == []
    assert len(dc.planned) == 1, "not at once: many orders may end one after another"
    assert dc.controller.deadline() <= dc.now + OUTDATED_PAUSE_MS
    dc.now += OUTDATED_PAUSE_MS
    dc.plan = NOTHING
    assert commands_of(dc.step()) == []
    assert len(dc.planned) == (2 if action is ActionName.STOP else 1)


@pytest.mark.parametrize("action", [ActionName.STOP, ActionName.NOTIFY])
def test_a_plan_is_made_again_when_an_order_that_it_knew_has_ended_meanwhile(action: ActionName) -> None:
    before = order("1.1.7", action, node=N3, resource=WEB)
    dc = dc_that_knows(before)
    dc.ask()
    dc.ask(*end(dc, before))
    assert commands_of(dc.tell()) == []
    assert len(dc.planned) == 2
    (issued,) = commands_of(dc.tell())
    assert isinstance(issued, commands.IssueOrders)


def test_a_plan_is_executed_though_orders_end_again_and_again_while_it_is_made() -> None:
    orders = [order(f"1.1.{number}", ActionName.NOTIFY, node=N3, resource=WEB) for number in range(6)]
    dc = dc_that_knows(*orders)
    dc.ask()
    found = []
    for each in orders[:4]:
        dc.ask(*end(dc, each))
        found.append(commands_of(dc.tell()))
    assert [bool(each) for each in found] == [False] * OUTDATED_PLANS_MAX + [True]


def test_a_plan_that_took_long_is_executed_though_an_order_has_ended_meanwhile() -> None:
    before = order("1.1.7", ActionName.STOP, node=N3, resource=WEB)
    dc = dc_that_knows(before)
    dc.ask()
    dc.now += OUTDATED_PLAN_MS_MAX + 1
    dc.ask(*end(dc, before))
    assert len(commands_of(dc.tell())) == 1


def end(dc: Dc, before: Order) -> Sequence[Change]:
    """Commit that an order has ended well; return what it changed."""
    ended = ended_well(before.key, before.resource, str(before.action))
    return dc.cluster.must(commands.RecordResults(N3, life(N3), (ended,))).changes


def test_a_transition_whose_plan_took_long_is_given_up_later() -> None:
    """In a cluster of thousands of resources nothing is ordered for seconds while a plan is made."""
    before = order("1.1.7", ActionName.STOP, node=N3, resource=WEB)
    dc = dc_that_knows(before)
    dc.ask()
    dc.now += 3000
    commit(dc, dc.tell())
    ended = ended_well(before.key, WEB, "stop")
    dc.change(commands.RecordResults(N3, life(N3), (ended,)))
    dc.now += 29_000
    dc.step()
    assert len(dc.planned) == 1
    dc.now += 1000
    dc.step()
    assert len(dc.planned) == 2


def test_events_that_follow_each_other_are_planned_for_together() -> None:
    dc = Dc()
    delayed = AttributeSet("cib-bootstrap-options", (("transition-delay", "5s"),))
    dc.cluster.configure(PutSets("properties", (delayed,)))
    dc.now += 5000
    dc.step()
    before = len(dc.planned)
    dc.change(commands.SetTransientAttribute(N1, "pingd", "0"))
    assert dc.controller.deadline() <= dc.now + 5000
    dc.now += 3000
    dc.change(commands.SetTransientAttribute(N2, "pingd", "0"))
    assert len(dc.planned) == before
    dc.now += 2000
    dc.step()
    assert len(dc.planned) == before + 1
    assert dc.controller.deadline() > dc.now
    dc.now += 60_000
    dc.step()
    assert len(dc.planned) == before + 1, "nothing more has happened"


def test_events_that_never_cease_are_planned_for_after_the_delay() -> None:
    dc = Dc()
    delayed = AttributeSet("cib-bootstrap-options", (("transition-delay", "5s"),))
    dc.cluster.configure(PutSets("properties", (delayed,)))
    dc.now += 5000
    dc.step()
    before = len(dc.planned)
    for value in range(13):
        dc.change(attribute(value))
        dc.now += 1000
    assert len(dc.planned) == before + 2


def delayed_start(*inputs: int) -> GraphAction:
    return replace(act(1, ActionName.START, after=inputs), start_delay_ms=8000)


def attribute(value: int) -> commands.SetTransientAttribute:
    return commands.SetTransientAttribute(N3, "load", str(value))


def orders_of(effects: Sequence[Effect]) -> list[str]:
    issued = [command for command in commands_of(effects) if isinstance(command, commands.IssueOrders)]
    return [f"{each.resource}_{each.action}" for command in issued for each in command.orders]


def commit(dc: Dc, effects: Sequence[Effect]) -> None:
    """Commit the orders that are proposed."""
    for command in commands_of(effects):
        if isinstance(command, commands.IssueOrders):
            applied = dc.cluster.must(command)
            dc.controller.applied(command, None, dc.cluster.cib, moment(dc.now))
            dc.step(*applied.changes)


def waits_whole_delay(dc: Dc, cause: commands.Command) -> None:
    """Show that the start waits 8 s from the plan on that a command causes."""
    began_at = dc.now
    assert orders_of(dc.change(cause)) == []
    dc.now = began_at + 7999
    assert orders_of(dc.step()) == []
    dc.now = began_at + 8000
    assert orders_of(dc.step()) == ["db_start"]


def test_a_start_delay_goes_on_over_the_plans_that_a_busy_attribute_causes() -> None:
    dc = Dc()
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {})
    began_at = dc.now
    assert orders_of(dc.step()) == []
    for value in range(3):
        dc.now += 2500
        assert orders_of(dc.change(attribute(value))) == []
    assert len(dc.planned) == 4
    dc.now = began_at + 8000
    assert orders_of(dc.step()) == ["db_start"]


def test_what_waited_for_a_fencing_is_started_at_once_however_often_an_attribute_had_it_planned_again() -> None:
    dc = Dc()
    fence = GraphAction(2, ActionKind.FENCE, "reboot", None, N3, target_incarnation=life(N3))
    dc.plan = Plan(TransitionGraph({1: act(1, ActionName.START, after=(2,)), 2: fence}), {})
    assert orders_of(dc.step()) == []
    for value in range(2 * FREE_REPEATS):
        dc.now += 500
        assert orders_of(dc.change(attribute(value))) == []
    dc.plan = starting(N2)
    assert orders_of(dc.change(attribute(-1))) == ["db_start"]


def test_a_plan_of_which_nothing_comes_is_slowed_down() -> None:
    dc = Dc()
    begun = []
    dc.plan = starting(N2)
    effects = dc.step()
    for _ in range(2 * FREE_REPEATS):
        begun += orders_of(effects)
        issued = [command for command in commands_of(effects) if isinstance(command, commands.IssueOrders)]
        commit(dc, effects)
        effects = dc.change(record(result(issued[0].orders[0].key))) if issued else []
    assert begun == ["db_start"] * FREE_REPEATS


def test_a_start_delay_goes_on_when_time_alone_has_it_planned_again() -> None:
    dc = Dc()
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {}, recheck_at=WallTime(WALL + 5000))
    began_at = dc.now
    dc.step()
    dc.now += 5000
    assert orders_of(dc.step()) == []
    assert len(dc.planned) == 2
    dc.now = began_at + 8000
    assert orders_of(dc.step()) == ["db_start"]


def announced_start() -> Plan:
    """Plan a start with a start-delay, of which another instance is notified before."""
    notify = act(2, ActionName.NOTIFY, WEB, N3)
    return Plan(TransitionGraph({1: delayed_start(2), 2: notify}), {})


def have_notified(dc: Dc, effects: Sequence[Effect]) -> None:
    """Commit the notification that is ordered, and that it has ended."""
    assert orders_of(effects) == ["web_notify"]
    commit(dc, effects)
    [key] = dc.cluster.status(N3).orders
    assert orders_of(dc.change(commands.RecordResults(N3, life(N3), (ended_well(key, WEB, "notify"),)))) == []


def test_a_start_delay_that_is_announced_by_a_notification_is_waited_for_without_another_plan() -> None:
    """Each plan would notify again, whose end is a reason to plan again (seed 640193)."""
    dc = Dc()
    dc.plan = announced_start()
    have_notified(dc, dc.step())
    dc.now += 7999
    assert orders_of(dc.step()) == []
    assert len(dc.planned) == 1
    dc.now += 1
    assert orders_of(dc.step()) == ["db_start"]


def test_a_start_delay_goes_on_over_plans_that_notify_of_that_start_again() -> None:
    dc = Dc()
    dc.plan = announced_start()
    began_at = dc.now
    have_notified(dc, dc.step())
    for value in range(3):
        dc.now += 2500
        have_notified(dc, dc.change(attribute(value)))
    dc.now = began_at + 8000
    assert orders_of(dc.step()) == ["db_start"]


@pytest.mark.parametrize(
    "between",
    [TransitionGraph(), TransitionGraph({1: delayed_start(2), 2: act(2, ActionName.START, WEB)})],
    ids=["not wanted", "something else must come first"],
)
def test_a_start_delay_begins_again_after_a_plan_in_which_the_start_was_not_ready(between: TransitionGraph) -> None:
    dc = Dc()
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {})
    dc.step()
    dc.now += 5000
    dc.plan = Plan(between, {})
    commit(dc, dc.change(attribute(1)))
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {})
    waits_whole_delay(dc, attribute(2))


def test_what_has_started_waits_again_when_it_is_started_once_more() -> None:
    dc = Dc()
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {})
    dc.step()
    dc.now += 8000
    commit(dc, dc.step())
    [key] = dc.cluster.status(N2).orders
    result = ended_well(key, DB, "start")
    dc.plan = NOTHING
    dc.change(commands.RecordResults(N2, life(N2), (result,)))
    dc.plan = Plan(TransitionGraph({1: delayed_start()}), {})
    waits_whole_delay(dc, attribute(1))


# -- a new term -------------------------------------------------------------------------------------------------------


def test_a_leader_claims_to_be_dc_before_it_does_anything_else() -> None:
    dc = Dc()
    dc.cluster.term = Term(5)
    dc.controller.leadership_changed(Term(5), is_self=True)
    assert commands_of(dc.step()) == [commands.DcElected(N1, life(N1), Term(5))]
    assert not dc.controller.is_dc
    assert dc.planned == []
    dc.change(commands.DcElected(N1, life(N1), Term(5)))
    assert dc.controller.is_dc
    assert len(dc.planned) == 1


def test_the_leader_of_no_cluster_founds_it() -> None:
    dc = Dc()
    assert commands_of(dc.controller.step(Cib(), (), None, moment(0))) == [FORM]


@pytest.mark.parametrize(("term", "is_self"), [(Term(1), False), (Term(2), False), (Term(2), True)])
def test_a_dc_resigns_when_it_leads_no_more_or_another_term(term: Term, is_self: bool) -> None:
    dc = Dc()
    dc.step()
    assert dc.controller.is_dc
    dc.controller.leadership_changed(term, is_self=is_self)
    assert not dc.controller.is_dc
    assert dc.controller.deadline() == NEVER
    dc.plan = starting(N2)
    assert not any(isinstance(command, commands.IssueOrders) for command in commands_of(dc.step()))


def test_a_new_term_begins_without_the_transition_of_the_one_before() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.step()
    dc.controller.leadership_changed(Term(2), is_self=True)
    assert dc.controller.transition_progress() is None


# -- planning ---------------------------------------------------------------------------------------------------------


def test_it_plans_at_first_and_then_when_something_has_changed() -> None:
    dc = Dc()
    dc.step()
    dc.step()
    assert len(dc.planned) == 1
    dc.change(commands.SetTransientAttribute(N2, "x", "1"))
    assert len(dc.planned) == 2


def test_its_own_orders_are_no_reason_to_plan_again() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    [command] = commands_of(dc.step())
    dc.change(command)
    assert len(dc.planned) == 1
    assert dc.controller.transition_progress() == (1, 0, 1)


@pytest.mark.parametrize("joined", [[N1, N3], [N2, N3]], ids=["one unseen", "the DC has not joined"])
def test_it_does_not_plan_before_every_member_has_joined(joined: list[NodeName]) -> None:
    dc = Dc(Cluster(joined=joined))
    dc.step()
    assert dc.planned == []


def test_it_does_not_plan_before_every_member_is_heard_as_the_cib_knows_it() -> None:
    dc = Dc()
    before = dc.report()
    dc.cluster.must(commands.Join(N2, life(N2, token=9)))
    dc.controller.step(dc.cluster.cib, (), before, moment(dc.now))
    assert dc.planned == []
    dc.step()
    assert len(dc.planned) == 1


def test_a_plan_that_cannot_be_made_costs_nothing_and_is_tried_at_the_next_change() -> None:
    dc = Dc()
    dc.plan = "ZeroDivisionError: nobody knows"
    effects = dc.step()
    assert [effect.kind for effect in effects if isinstance(effect, Note)] == ["dc", "scheduler-failed"]
    assert dc.controller.failure == "ZeroDivisionError: nobody knows"
    dc.step()
    assert len(dc.planned) == 1
    dc.plan = NOTHING
    dc.change(commands.SetTransientAttribute(N2, "x", "1"))
    assert dc.controller.failure == ""


def test_a_plan_that_cannot_be_made_is_tried_again_after_pauses_that_grow() -> None:
    dc = Dc()
    dc.plan = "the worker has died"
    dc.step()
    began, tried_at_s = dc.now, []
    while len(tried_at_s) < 6:
        dc.now += 1000
        planned = len(dc.planned)
        dc.step()
        if len(dc.planned) > planned:
            tried_at_s.append((dc.now - began) // 1000)
    assert tried_at_s == [5, 15, 35, 75, 135, 195]


def test_one_plan_is_asked_for_at_a_time() -> None:
    dc = Dc()
    dc.ask()
    dc.ask(*dc.cluster.must(commands.SetTransientAttribute(N2, "x", "1")).changes)
    assert len(dc.answers) == 1
    assert dc.controller.transition_progress() == (1, 0, 0)


def test_a_plan_for_a_world_that_has_changed_is_dropped_and_asked_for_again() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.ask()
    dc.ask(*dc.cluster.must(commands.SetTransientAttribute(N2, "x", "1")).changes)
    assert commands_of(dc.tell()) == []
    assert len(dc.planned) == 2, "asked at once, for the world as it is"
    [command] = commands_of(dc.tell())
    assert isinstance(command, commands.IssueOrders)


def test_nothing_is_planned_before_every_member_was_heard_in_its_life_of_the_cib() -> None:
    dc = Dc()
    other_life = dc.report()
    dc.cluster.must(commands.Join(N3, life(N3, token=2)))
    assert commands_of(dc.ask(report=other_life)) == []
    assert dc.answers == [], "what the CIB says of n3 may be a week old"
    dc.ask()
    assert len(dc.answers) == 1


def test_a_member_that_was_met_and_begins_again_holds_back_no_plan() -> None:
    dc = Dc()
    dc.step()
    other_life = PacerReport(
        Instant(dc.now),
        None,
        tuple(replace(node, incarnation=life(node.name, token=7)) for node in dc.report().nodes),
    )
    dc.ask(*dc.cluster.must(commands.SetTransientAttribute(N2, "x", "1")).changes, report=other_life)
    assert len(dc.answers) == 1


def test_a_dc_whose_own_join_stays_refused_hands_over() -> None:
    dc = Dc()
    dc.controller.reincarnated(life(N1, token=9))
    assert transfers(dc.step()) == []
    dc.now += TIMING.brain_timeout_ms
    assert transfers(dc.step()) == [N2]


def test_an_activating_order_that_the_plan_did_not_know_ends_it_before_it_begins() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.ask()
    late = order("1.1.7", node=N3, resource=WEB)
    dc.ask(*dc.cluster.must(commands.IssueOrders(TERM, (late,))).changes)
    effects = dc.tell()
    assert commands_of(effects) == []
    assert len(dc.planned) == 2


def test_an_answer_of_an_earlier_term_is_no_answer() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.ask()
    dc.cluster.term = Term(2)
    dc.controller.leadership_changed(Term(2), is_self=True)
    dc.plan = NOTHING
    dc.ask(*dc.cluster.must(commands.DcElected(N1, life(N1), Term(2))).changes)
    assert commands_of(dc.tell()) == []
    assert commands_of(dc.tell()) == []


def test_a_plan_for_a_cib_that_was_replaced_is_dropped() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.ask()
    dc.controller.cib_replaced()
    assert commands_of(dc.tell()) == []
    assert len(dc.planned) == 2


def test_time_alone_leads_to_a_new_plan_when_the_plan_says_so() -> None:
    dc = Dc()
    dc.plan = Plan(TransitionGraph(), {}, recheck_at=WallTime(WALL + 500))
    dc.step()
    assert dc.controller.deadline() == dc.now + 500
    dc.now += 499
    dc.step()
    assert len(dc.planned) == 1
    dc.now += 1
    dc.step()
    assert len(dc.planned) == 2


@pytest.mark.parametrize("why", ["busy", "not settled"])
def test_a_recheck_that_must_wait_does_not_wake_it_all_the_time(why: str) -> None:
    dc = Dc()
    dc.plan = Plan(starting(N2).graph if why == "busy" else TransitionGraph(), {}, recheck_at=WallTime(WALL + 500))
    for command in commands_of(dc.step()):
        dc.change(command)
    if why == "not settled":
        dc.cluster.lose(N2)
        dc.cluster.must(commands.Join(N2, life(N2, token=2)))
    report = dc.report() if why == "busy" else Dc().report()
    dc.now += 1000
    dc.controller.step(dc.cluster.cib, (), report, moment(dc.now))
    assert dc.controller.deadline() > dc.now


def test_a_refused_batch_is_planned_again_after_a_little_rest() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    [command] = commands_of(dc.step())
    refusal = Refusal(RefusalCode.OLD_INCARNATION, "that incarnation of n2 is over")
    dc.controller.applied(command, refusal, dc.cluster.cib, moment(dc.now))
    dc.step()
    assert len(dc.planned) == 1
    assert dc.controller.deadline() == dc.now + REFUSED_PAUSE_MS
    dc.now += REFUSED_PAUSE_MS
    dc.step()
    assert len(dc.planned) == 2


def test_what_was_refused_together_is_ordered_one_by_one_afterwards() -> None:
    """One order that is refused again and again must hold up nothing else, which comes before it."""
    dc = Dc()
    dc.plan = starting(N2)
    [command] = commands_of(dc.step())
    refusal = Refusal(RefusalCode.POSSIBLY_ACTIVE_ON_OTHERS, "db may be active")
    dc.controller.applied(command, refusal, dc.cluster.cib, moment(dc.now))
    dc.plan = Plan(TransitionGraph({1: act(1, ActionName.START, node=N2), 2: act(2, ActionName.STOP, WEB, node=N3),
                                    3: act(3, ActionName.START, node=N3)}), {})  # fmt: skip
    dc.now += REFUSED_PAUSE_MS
    issued = [each for each in commands_of(dc.step()) if isinstance(each, commands.IssueOrders)]
    assert [[order.resource for order in each.orders] for each in issued] == [[WEB], [DB], [DB]]


@pytest.mark.parametrize("decision", ["committed", "refused", "too large"])
def test_nothing_is_planned_while_orders_are_on_their_way_into_the_log(decision: str) -> None:
    """A plan would not know them, and order the same once more."""
    dc = Dc()
    dc.plan = starting(N2)
    [command] = commands_of(dc.step())
    dc.plan = NOTHING
    aborting = dc.cluster.must(commands.SetTransientAttribute(N2, "x", "1"))
    notes = [effect.kind for effect in dc.step(*aborting.changes) if isinstance(effect, Note)]
    assert notes == ["transition-aborted"]
    dc.now += REFUSED_PAUSE_MS
    assert dc.step() == []
    assert len(dc.planned) == 1
    if decision == "too large":
        dc.controller.not_proposed(command, "too large")
    else:
        refusal = Refusal(RefusalCode.WRONG_NODE_STATE, "n2 is lost") if decision == "refused" else None
        dc.controller.applied(command, refusal, dc.cluster.cib, moment(dc.now))
    dc.step()
    assert len(dc.planned) == 2


def test_what_no_entry_can_hold_is_named_and_stops_no_plan_that_time_asks_for() -> None:
    dc = Dc()
    dc.plan = replace(starting(N2), recheck_at=WallTime(WALL + 500))
    [command] = commands_of(dc.step())
    dc.controller.not_proposed(command, "IssueOrders of 70000 bytes; the limit is 65536")
    assert dc.controller.warnings == (
        "start of db on n2 is not ordered: IssueOrders of 70000 bytes; the limit is 65536",
    )
    dc.plan = NOTHING
    dc.now += 500
    dc.step()
    assert len(dc.planned) == 2
    assert dc.controller.warnings == ()


def test_a_new_term_waits_for_no_orders_of_the_one_before() -> None:
    dc = Dc()
    dc.plan = starting(N2)
    dc.step()
    dc.plan = NOTHING
    dc.cluster.term = Term(2)
    dc.controller.leadership_changed(Term(2), is_self=True)
    dc.change(commands.DcElected(N1, life(N1), Term(2)))
    assert len(dc.planned) == 2


def test_orders_that_were_answered_at_once_count_as_committed() -> None:
    """Commit and result may come in one wake: the CIB never shows the order as open."""
    dc = Dc()
    dc.plan = starting(N2)
    [command] = commands_of(dc.step())
    assert isinstance(command, commands.IssueOrders)
    dc.cluster.must(command)
    dc.controller.applied(command, None, dc.cluster.cib, moment(dc.now))
    key = command.orders[0].key
    started = ended_well(key, DB, "start")
    dc.cluster.must(commands.RecordResults(N2, life(N2), (started,)))
    dc.plan = NOTHING
    notes = [effect.kind for effect in dc.step() if isinstance(effect, Note)]
    assert dc.controller.transition_progress() is None
    assert notes == [], "it has ended as expected"


# -- an aborted transition that has begun something of which instances are to be notified -----------------------------


def promoting() -> Plan:
    """Plan a promote of db on n2, a mark, and a notification of n3."""
    notification = replace(act(3, ActionName.NOTIFY, node=N3, after=[2]), notification="post-promote")
    mark = GraphAction(2, ActionKind.PSEUDO, "promoted", None, None, (1,))
    return Plan(TransitionGraph({1: act(1, ActionName.PROMOTE), 2: mark, 3: notification}), {})


def ordered(dc: Dc, effects: Sequence[Effect]) -> list[str]:
    """Commit what is ordered; return it."""
    found = [command for command in commands_of(effects) if isinstance(command, commands.IssueOrders)]
    for command in found:
        dc.cluster.must(command)
        dc.controller.applied(command, None, dc.cluster.cib, moment(dc.now))
    return [f"{each.resource}_{each.action} on {each.node}" for command in found for each in command.orders]


def answer(dc: Dc) -> Sequence[Effect]:
    """Let the promote of db on n2 succeed."""
    [key] = dc.cluster.status(N2).orders
    ended = ended_well(key, DB, "promote")
    return dc.change(commands.RecordResults(N2, life(N2), (ended,)))


def test_another_plan_is_executed_while_an_aborted_transition_waits_to_notify() -> None:
    dc = Dc()
    dc.plan = promoting()
    assert ordered(dc, dc.step()) == ["db_promote on n2"]
    dc.plan = Plan(TransitionGraph({1: act(1, ActionName.START, WEB, N3)}), {})
    effects = dc.change(commands.SetTransientAttribute(N2, "db-status", "PRI"))
    assert ordered(dc, effects) == ["web_start on n3"]
    dc.plan = NOTHING
    effects = answer(dc)
    assert ordered(dc, effects) == ["db_notify on n3"]


@pytest.mark.parametrize("decision", ["refused", "too large"])
def test_an_aborted_transition_does_not_wait_for_an_order_that_never_comes(decision: str) -> None:
    dc = Dc()
    dc.plan = promoting()
    [command] = commands_of(dc.step())
    dc.plan = NOTHING
    dc.change(commands.SetTransientAttribute(N2, "db-status", "PRI"))
    if decision == "refused":
        refusal = Refusal(RefusalCode.WRONG_NODE_STATE, "n2 is lost")
        dc.controller.applied(command, refusal, dc.cluster.cib, moment(dc.now))
    else:
        dc.controller.not_proposed(command, "too large")
    assert ordered(dc, dc.step()) == []
    assert len(dc.planned) == 2


def test_an_interrupted_dc_notifies_of_nothing_that_it_had_begun_before() -> None:
    dc = Dc()
    dc.plan = promoting()
    assert ordered(dc, dc.step()) == ["db_promote on n2"]
    dc.plan = NOTHING
    dc.change(commands.SetTransientAttribute(N2, "db-status", "PRI"))
    dc.controller.interrupted()
    assert ordered(dc, answer(dc)) == []


# -- handing over -----------------------------------------------------------------------------------------------------


def test_results_in_its_own_log_are_gone_on_from_and_those_in_another_terms_are_not() -> None:
    dc = Dc()
    graph = {1: act(1, ActionName.START), 2: act(2, ActionName.START, WEB, after=[1])}
    dc.plan = Plan(TransitionGraph(graph), {})
    [issued] = commands_of(dc.step())
    assert isinstance(issued, commands.IssueOrders)
    dc.change(issued)
    [wanted] = issued.orders
    started = ended_well(wanted.key, DB, "start")
    results = commands.RecordResults(N2, life(N2), (started,))
    entry = encode_envelope(commands.Envelope(RequestId("n2:1"), N2, WallTime(0), results))
    dc.controller.speculate(dc.cluster.cib, Term(TERM + 1), entry)
    dc.controller.speculate(dc.cluster.cib, TERM, b"RecordResults of a later version")
    assert commands_of(dc.step()) == []
    dc.controller.speculate(dc.cluster.cib, TERM, entry)
    [following] = commands_of(dc.step())
    assert isinstance(following, commands.IssueOrders)
    assert [each.resource for each in following.orders] == [WEB]


def test_a_dc_that_is_declared_lost_hands_over() -> None:
    """Its own return waits for its fencing, and nobody plans before all members are known."""
    dc = Dc()
    assert transfers(dc.step()) == []
    dc.cluster.lose(N1)
    assert transfers(dc.step()) == [N2]


def test_it_hands_over_to_nobody_who_is_gone_or_goes() -> None:
    dc = Dc()
    dc.step()
    dc.cluster.must(commands.RequestLeave(N2, life(N2)))
    dc.cluster.lose(N1)
    assert transfers(dc.step()) == [N3]
    dc.cluster.lose(N3)
    assert transfers(dc.step()) == []


def test_it_hands_over_to_one_that_answers_or_did_so_last() -> None:
    dc = Dc()
    dc.step()
    dc.cluster.lose(N1)
    gone = Follower(N2, Instant(2000), Instant(2000), is_linked=False)
    dc.controller.take_followers(Followers(Instant(3000), (gone,)))
    assert transfers(dc.step()) == [N3]
    going = Follower(N3, Instant(1000), Instant(1000), is_linked=True)
    dc.controller.take_followers(Followers(Instant(3000), (gone, going)))
    assert transfers(dc.step()) == [N2]


def with_a_failed_start() -> Dc:
    """Return a DC of a cluster in which db could not be started on n2, and is being stopped there."""
    dc = Dc()
    dc.cluster.configure(PutResource(primitive(DB)))
    dc.step()
    dc.cluster.must(issue(order("failed")))
    dc.cluster.must(record(result("failed", exit_code=ExitCode.ERROR)))
    dc.cluster.must(issue(order("stop", ActionName.STOP)))
    return dc


STOPPED = record(result("stop", operation=ActionName.STOP))


def test_failures_of_what_is_configured_no_longer_are_forgotten_once_it_is_at_rest() -> None:
    dc = with_a_failed_start()
    removal = commands.ChangeConfiguration(dc.cluster.cib.version.epoch, (Delete("resource", DB),), "test", "")
    assert commands_of(dc.change(removal)) == [], "it may be active"
    assert commands_of(dc.change(STOPPED)) == [commands.ForgetHistory(N2, DB)]
    assert commands_of(dc.change(commands.ForgetHistory(N2, DB))) == []
    assert DB not in dc.cluster.status(N2).histories


def test_failures_of_what_is_configured_stay_until_somebody_forgives_them() -> None:
    dc = with_a_failed_start()
    assert commands_of(dc.change(STOPPED)) == []
    assert dc.cluster.status(N2).histories[DB].has_failures


def test_expired_failures_are_forgotten_before_anything_is_planned_with_them() -> None:
    dc = Dc()
    dc.cluster.must(issue(order("failed")))
    dc.cluster.must(record(result("failed", exit_code=ExitCode.ERROR)))
    dc.plan = Plan(starting(N2).graph, {}, expired_failures=((N2, DB),))
    assert commands_of(dc.step()) == [commands.CleanUp(DB, N2)]


@pytest.mark.parametrize("is_started", [False, True])
def test_a_plan_is_executed_although_it_wants_failures_forgotten_that_are_not_there(*, is_started: bool) -> None:
    """Their clean-up would change nothing, and nothing would lead to another plan."""
    dc = Dc()
    if is_started:
        started(dc.cluster)
    dc.plan = Plan(starting(N2).graph, {}, expired_failures=((N2, DB),))
    [ordered] = commands_of(dc.step())
    assert isinstance(ordered, commands.IssueOrders)


# -- fencing ----------------------------------------------------------------------------------------------------------


def dc_with_delay(plan: Plan | str) -> Dc:
    """Return a DC whose cluster has a device and priority-fencing-delay=7s, before it has planned."""
    dc = Dc()
    dc.plan = plan
    delay = AttributeSet("cib-bootstrap-options", (("priority-fencing-delay", "7s"),))
    dc.cluster.configure(
        PutResource(primitive("power", "stonith:fence_test")), PutSets("properties", (delay,))
    )
    return dc


def test_a_more_important_node_is_fenced_later_by_what_the_plan_says() -> None:
    dc = dc_with_delay(NOTHING)
    dc.step()
    dc.cluster.lose(N2)
    fence = GraphAction(1, ActionKind.FENCE, "reboot", None, N2, meta={"priority-fencing-delay": "7"})
    dc.plan = Plan(TransitionGraph({1: fence}), {})
    assert commands_of(dc.ask()) == [], "how important it was is not known before a plan knows of its loss"
    issued = [command for command in commands_of(dc.tell()) if isinstance(command, commands.IssueFence)]
    assert [command.order.delay_ms for command in issued] == [7000]


def test_whom_a_plan_fences_though_it_is_alive_is_fenced_before_it_can_join_again() -> None:
    fence = GraphAction(1, ActionKind.FENCE, "reboot", None, N2, meta={"priority-fencing-delay": "0"})
    dc = dc_with_delay(Plan(TransitionGraph({1: fence}), {}))
    (lost,) = commands_of(dc.step())
    assert isinstance(lost, commands.Lost)
    dc.cluster.must(lost)
    (issued,) = commands_of(dc.ask())
    assert isinstance(issued, commands.IssueFence)
    assert (issued.order.target, issued.order.delay_ms) == (N2, 0)


@pytest.mark.parametrize("operation", ["reboot", "on"])
def test_the_delay_of_an_earlier_plan_says_nothing_of_a_node_that_vanishes_later(operation: str) -> None:
    fence = GraphAction(1, ActionKind.FENCE, operation, None, N2, meta={"priority-fencing-delay": "0"})
    dc = dc_with_delay(Plan(TransitionGraph({1: fence}), {}))
    dc.step()
    dc.plan = NOTHING
    if operation == "reboot":
        dc.change(commands.SetTransientAttribute(N3, "x", "1"))
        assert len(dc.planned) == 2
    dc.cluster.lose(N2)
    assert not [each for each in commands_of(dc.ask()) if isinstance(each, commands.IssueFence)]


def test_a_scheduler_that_fails_delays_no_fencing() -> None:
    dc = dc_with_delay("the worker has died")
    dc.step()
    dc.cluster.lose(N2)
    issued = [command for command in commands_of(dc.step()) if isinstance(command, commands.IssueFence)]
    assert [command.order.delay_ms for command in issued] == [0]


def test_a_plan_that_is_made_for_its_delays_while_orders_are_on_their_way_is_not_executed() -> None:
    dc = dc_with_delay(starting(N2))
    [starts] = commands_of(dc.step())
    dc.cluster.lose(N3)
    dc.plan = starting(N1)
    changed = dc.cluster.must(commands.SetTransientAttribute(N2, "x", "1"))
    assert not [each for each in commands_of(dc.step(*changed.changes)) if isinstance(each, commands.IssueOrders)]
    assert len(dc.planned) == 2
    dc.controller.applied(starts, None, dc.cluster.cib, moment(dc.now))
    assert [each for each in commands_of(dc.step()) if isinstance(each, commands.IssueOrders)]
    assert len(dc.planned) == 3


def test_a_restart_that_takes_longer_than_its_limit_is_ended_by_the_dc() -> None:
    dc = Dc()
    dc.cluster.configure(PutResource(primitive("db")))
    dc.cluster.issue(order("a"))
    dc.change(commands.RestartResource(DB, limit_ms=5000, author="root@n1"))
    assert dc.controller.deadline() <= dc.now + 5000
    (restart,) = dc.cluster.cib.status.restarts.values()
    dc.now += 4999
    assert not [each for each in commands_of(dc.step()) if isinstance(each, commands.EndRestart)]
    dc.now += 1
    (end,) = [each for each in commands_of(dc.step()) if isinstance(each, commands.EndRestart)]
    assert (end.resource, end.at) == (DB, restart.at)
    dc.cluster.must(end)
    assert not dc.cluster.cib.status.restarts


def test_nobody_is_fenced_before_the_rules_of_the_newest_configuration_are_judged() -> None:
    dc = Dc()
    early = Rule("early-rule", conditions=(DateExpression("lt", end="2099-01-01"),))
    without = AttributeSet("early", (("fencing-enabled", "false"),), rule=early)
    dc.cluster.configure(
        PutResource(primitive("power", "stonith:fence_test")), PutSets("properties", (without,))
    )
    dc.cluster.lose(N2)
    proposed = commands_of(dc.step())
    assert [type(each) for each in proposed] == [commands.JudgeRules]
    dc.cluster.must(proposed[0])
    assert not [each for each in commands_of(dc.step()) if isinstance(each, commands.IssueFence)]
