"""What happens becomes events for alerts, in order, of the kinds that are asked for, within bounds."""

import pytest

from haclusterd.cib import apply as apply_module
from haclusterd.cib.apply_alerts import record_alerts
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.commands import (
    Command,
    Envelope,
    ReadBarrier,
    RecordAlerts,
    RequestAlertTest,
    SetTransientAttribute,
)
from haclusterd.cib.derived.alert_events import with_alerts
from haclusterd.cib.verdict import Entry
from haclusterd.model.alerts import PENDING_MAX, AlertEvent, AlertQueue, AlertTest, targets
from haclusterd.model.cluster import Cib, DesignatedController, NodeState, NodeStatus, Status
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, Configuration
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES

N1, N2 = NodeName("n1"), NodeName("n2")
LIFE = Incarnation("boot", "token")
AT = WallTime(1_700_000_000_123)
READ = ReadBarrier()


def alerted(*alerts: Alert, **status: object) -> Cib:
    nodes = {name: NodeStatus(name, state=NodeState.ONLINE, incarnation=LIFE) for name in (N1, N2)}
    made = Status(controller=DesignatedController(N1, LIFE, Term(3)), nodes=nodes)
    return Cib(configuration=Configuration(alerts={each.id: each for each in alerts}), status=replace(made, **status))


def after(before: Cib, **status: object) -> Cib:
    return replace(before, status=replace(before.status, **status))


def events(before: Cib, then: Cib, command: Command = READ) -> tuple[AlertEvent, ...]:
    return with_alerts(before, then, command, AT).status.alerts.pending


DEFAULT = Alert("a", "/agent")
EVERY = Alert("a", "/agent", select=tuple(AlertKind))


def with_state(cib: Cib, state: NodeState) -> Cib:
    return after(cib, nodes={**cib.status.nodes, N2: replace(cib.status.nodes[N2], state=state)})


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        (NodeState.ONLINE, NodeState.LOST, ["lost"]),
        (NodeState.ONLINE, NodeState.LEFT, ["lost"]),
        (NodeState.LOST, NodeState.FENCED, []),
        (NodeState.FENCED, NodeState.ONLINE, ["member"]),
        (NodeState.UNSEEN, NodeState.ONLINE, ["member"]),
        (NodeState.ONLINE, NodeState.ONLINE, []),
    ],
)
def test_a_change_between_member_and_lost_is_an_event(was: NodeState, becomes: NodeState, said: list[str]) -> None:
    before = with_state(alerted(DEFAULT), was)
    found = events(before, with_state(before, becomes))
    assert [(each.kind, each.node, each.description) for each in found] == [
        (AlertKind.NODES, N2, word) for word in said
    ]


@pytest.mark.parametrize(
    ("outcome", "code", "text"),
    [
        (FenceOutcome.FENCED, 0, "Operation reboot of n2 by n1: OK"),
        (FenceOutcome.TIMEOUT, 1, "Operation reboot of n2 by n1: Timed out (slow)"),
    ],
)
def test_a_fencing_that_ended_is_one_event_with_its_outcome(outcome: FenceOutcome, code: int, text: str) -> None:
    record = FencingRecord(FenceKey("f1"), N2, LIFE, FenceAction.REBOOT, None, N1, outcome, "slow", AT, AT, "lost")
    before = alerted(DEFAULT)
    (event,) = events(before, after(before, fencing_history=(record,)))
    assert (event.kind, event.node, event.task, event.exit_code, event.description) == (
        AlertKind.FENCING, N2, "reboot", code, text,
    )  # fmt: skip
    assert not events(after(before, fencing_history=(record,)), before)


@pytest.mark.parametrize(
    ("alert", "name", "count"),
    [
        (DEFAULT, "rack", 0),
        (EVERY, "rack", 1),
        (replace(EVERY, attribute_names=("rack",)), "rack", 1),
        (replace(EVERY, attribute_names=("rack",)), "row", 0),
        (replace(EVERY, recipients=(AlertRecipient("r", "x"),)), "rack", 1),
    ],
)
def test_a_node_attribute_is_an_event_for_alerts_that_select_it(alert: Alert, name: str, count: int) -> None:
    before = alerted(alert)
    then = after(before, nodes={**before.status.nodes, N2: replace(before.status.nodes[N2], attributes={name: "7"})})
    found = events(before, then, SetTransientAttribute(N2, name, "7"))
    assert [(each.node, each.attribute, each.value, each.term) for each in found] == [(N2, name, "7", 3)] * count
    assert not events(then, then, SetTransientAttribute(N2, name, "7"))


def test_an_attribute_of_several_nodes_is_an_event_of_each_that_it_changed() -> None:
    before = alerted(EVERY)
    nodes = dict(before.status.nodes)
    first, second = sorted(nodes)[:2]
    before = after(before, nodes={**nodes, first: replace(nodes[first], attributes={"standby": "on"})})
    then = after(before, nodes={name: replace(each, attributes={"standby": "on"}) for name, each in nodes.items()})
    found = events(before, then, SetTransientAttribute(first, "standby", "on", others=(second,)))
    assert [(each.node, each.attribute, each.value) for each in found] == [(second, "standby", "on")]


def test_without_alerts_nothing_is_kept() -> None:
    before = alerted()
    assert with_alerts(before, with_state(before, NodeState.LOST), ReadBarrier(), AT).status.alerts == AlertQueue()


def test_a_new_recipient_begins_with_what_comes_next() -> None:
    queue = AlertQueue(last=7, pending=(), delivered={"a": 5})
    before = alerted(DEFAULT, alerts=queue)
    then = replace(before, configuration=Configuration(alerts={"a": DEFAULT, "b": Alert("b", "/agent")}))
    assert with_alerts(before, then, ReadBarrier(), AT).status.alerts.delivered == {"a": 5, "b": 7}


def test_the_oldest_are_dropped_and_counted_for_who_had_not_got_them() -> None:
    event = AlertEvent(0, Term(3), AT, AlertKind.NODES, N2, "lost")
    pending = tuple(replace(event, sequence=number) for number in range(1, PENDING_MAX + 1))
    queue = AlertQueue(PENDING_MAX, pending, {"a": 0, "b": PENDING_MAX})
    before = alerted(DEFAULT, Alert("b", "/agent"), alerts=queue)
    made = with_alerts(before, with_state(before, NodeState.LOST), ReadBarrier(), AT).status.alerts
    assert (len(made.pending), made.pending[0].sequence, made.last) == (PENDING_MAX, 2, PENDING_MAX + 1)
    assert (made.delivered, made.dropped) == ({"a": 1, "b": PENDING_MAX}, {"a": 1})


def test_an_event_that_cannot_be_made_is_counted_and_what_was_done_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_for_poison(*_: object) -> Cib:
        raise KeyError("poison")

    monkeypatch.setattr(apply_module, "with_alerts", raise_for_poison)
    before = alerted(EVERY, alerts=AlertQueue(last=7, delivered={"a": 7}, dropped={"a": 2}))
    command = SetTransientAttribute(N2, "load", "high")
    applied = apply_module.apply(before, Envelope(RequestId("r"), N1, AT, command), index=9, term=Term(3))
    assert applied.refusal is None
    assert applied.cib.status.nodes[N2].attributes["load"] == "high"
    assert applied.cib.status.alerts.dropped == {"a": 3}


def entry() -> Entry:
    return Entry(AT, N1, 9, Term(3), ALL_RULES, request=RequestId("r"))


def test_what_everybody_had_is_forgotten() -> None:
    event = AlertEvent(0, Term(3), AT, AlertKind.NODES, N2, "lost")
    pending = tuple(replace(event, sequence=number) for number in (4, 5, 6))
    cib = alerted(DEFAULT, alerts=AlertQueue(6, pending, {"a": 3, "b": 4}))
    made = record_alerts(cib, RecordAlerts(Term(3), {"a": 5, "unknown": 6}), entry()).cib.status.alerts
    assert ([each.sequence for each in made.pending], made.delivered) == ([5, 6], {"a": 5, "b": 4})
    ahead = record_alerts(cib, RecordAlerts(Term(3), {"a": 99, "b": 1}), entry()).cib.status.alerts
    assert ahead.delivered == {"a": 6, "b": 4}


def test_records_of_an_older_dc_are_refused() -> None:
    refusal = record_alerts(alerted(DEFAULT), RecordAlerts(Term(2), {"a": 5}), entry()).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.OLD_TERM


def test_a_test_is_for_those_who_are_named_and_nobody_else_is_called() -> None:
    two = Alert("a", "/agent", recipients=(AlertRecipient("r", "x"), AlertRecipient("s", "y")))
    put = Envelope(RequestId("q"), N1, AT, RequestAlertTest(("s",), "root", "try"))
    applied = apply_module.apply(alerted(two), put, index=9, term=Term(3))
    assert applied.refusal is None
    (event,) = applied.cib.status.alerts.pending
    assert (event.only, event.sequence, event.description) == (("s",), 1, "test by root: try")
    found = {target.key: target.wants(event) for target in targets(applied.cib.configuration)}
    assert found == {"r": False, "s": True}
    assert applied.cib.status.alerts.tests == {"s": AlertTest(1)}
    ended = replace(AlertTest(1), is_done=True, exit_code=0)
    entry = Entry(AT, N1, 10, Term(3), ALL_RULES)
    recorded = record_alerts(applied.cib, RecordAlerts(Term(3), {"s": 1}, {"s": ended, "r": ended}), entry)
    assert recorded.cib.status.alerts.tests == {"s": ended}
    stale = record_alerts(applied.cib, RecordAlerts(Term(3), {}, {"s": replace(ended, sequence=7)}), entry)
    assert stale.cib.status.alerts.tests == {"s": AlertTest(1)}


@pytest.mark.parametrize("recipients", [(), ("nobody",)])
def test_a_test_of_nobody_is_refused(recipients: tuple[str, ...]) -> None:
    put = Envelope(RequestId("q"), N1, AT, RequestAlertTest(recipients, "root", ""))
    refusal = apply_module.apply(alerted(DEFAULT), put, index=9, term=Term(3)).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.CONFIGURATION_CONFLICT


def test_events_of_one_entry_have_its_incident() -> None:
    before = alerted(EVERY)
    then = with_state(before, NodeState.LOST)
    (event,) = with_alerts(before, then, READ, AT, "uuid-7").status.alerts.pending
    assert event.incident == "uuid-7"
