"""Who is called when: in order for each recipient, none waiting for another, the past of another DC marked."""

import json

import pytest

from haclusterd.machines.alert_environment import environment_of
from haclusterd.machines.alerting import AT_ONCE, RECORD_PAUSE_MS, AlertingMachine, AlertStep
from haclusterd.model.alerts import (
    GROUP_MAX,
    AlertCallResult,
    AlertEvent,
    AlertQueue,
    AlertTarget,
    AlertTest,
    render_time,
)
from haclusterd.model.cluster import Cib, DesignatedController, Status
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet, Configuration
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.model.records import replace

N1 = NodeName("n1")
LIFE = Incarnation("boot", "token")
AT = WallTime(1_700_000_000_123)
ENDED = AlertCallResult(0, "", 12, "sent")
LOST = AlertEvent(0, Term(3), AT, AlertKind.NODES, "n2", "lost")


def cib(*alerts: Alert, events: int = 0, delivered: dict[str, int] | None = None, term: int = 3) -> Cib:
    keys = [each.key for alert in alerts for each in _targets(alert)]
    pending = tuple(replace(LOST, sequence=number) for number in range(1, events + 1))
    queue = AlertQueue(events, pending, {**dict.fromkeys(keys, 0), **(delivered or {})})
    status = Status(controller=DesignatedController(N1, LIFE, Term(term)), alerts=queue)
    return Cib(configuration=Configuration(alerts={each.id: each for each in alerts}), status=status)


def _targets(alert: Alert) -> list[AlertTarget]:
    return [AlertTarget(alert, each) for each in alert.recipients] or [AlertTarget(alert, None)]


def machine() -> AlertingMachine:
    return AlertingMachine(N1, LIFE)


def end(alerting: AlertingMachine, step: AlertStep, key: str, result: AlertCallResult = ENDED) -> None:
    """End the call of a recipient that a step has begun."""
    alerting.finished(next(call for call in step.calls if call.key == key), result)


TWO = Alert("a", "/agent", recipients=(AlertRecipient("r1", "one"), AlertRecipient("r2", "two")))


def test_each_recipient_gets_one_after_the_other_and_waits_for_nobody() -> None:
    alerting, state = machine(), cib(TWO, events=3)
    first = alerting.step(state, Instant(0))
    assert [(each.key, each.sequence) for each in first.calls] == [("r1", 1), ("r2", 1)]
    assert not alerting.step(state, Instant(1)).calls
    end(alerting, first, "r2")
    assert [(each.key, each.sequence) for each in alerting.step(state, Instant(2)).calls] == [("r2", 2)]


def test_a_bounded_number_of_agents_is_called_at_a_time() -> None:
    many = [Alert(f"a{number}", "/agent") for number in range(AT_ONCE + 2)]
    alerting, state = machine(), cib(*many, events=1)
    first = alerting.step(state, Instant(0))
    assert len(first.calls) == AT_ONCE
    end(alerting, first, "a0")
    assert [each.key for each in alerting.step(state, Instant(1)).calls] == [f"a{AT_ONCE}"]


def test_progress_is_recorded_with_a_pause() -> None:
    alerting, state = machine(), cib(TWO, events=3)
    end(alerting, alerting.step(state, Instant(5_000)), "r1")
    first = alerting.step(state, Instant(5_001))
    assert first.record is not None
    assert (first.record.term, first.record.delivered) == (3, {"r1": 1})
    end(alerting, first, "r1")
    assert alerting.step(state, Instant(5_002)).record is None
    assert alerting.deadline() == 5_001 + RECORD_PAUSE_MS
    second = alerting.step(state, alerting.deadline()).record
    assert second is not None
    assert second.delivered == {"r1": 2}


def test_who_is_not_dc_calls_nobody() -> None:
    alerting = AlertingMachine(NodeName("n2"), LIFE)
    assert not alerting.step(cib(TWO, events=3), Instant(0)).calls
    assert alerting.deadline() == NEVER


def test_a_dc_that_begins_another_life_goes_on() -> None:
    alerting, state = machine(), cib(TWO, events=2)
    first = alerting.step(state, Instant(0))
    alerting.reincarnated(Incarnation("boot", "another"))
    end(alerting, first, "r1")
    assert [(each.key, each.sequence) for each in alerting.step(state, Instant(1)).calls] == [("r1", 2)]
    elected_before, chosen = machine(), cib(TWO, events=1)
    elected_before.reincarnated(Incarnation("boot", "another"))
    assert len(elected_before.step(chosen, Instant(0)).calls) == 2


@pytest.mark.parametrize(("term", "marked"), [(3, "false"), (4, "true")])
def test_what_another_dc_may_have_delivered_is_marked(term: int, marked: str) -> None:
    (call,) = machine().step(cib(Alert("a", "/agent"), events=1, term=term), Instant(0)).calls
    assert call.environment["CRM_alert_repeated"] == marked


@pytest.mark.parametrize(
    "alert",
    [
        Alert("a", "/agent", select=(AlertKind.FENCING,)),
        Alert("a", "/agent", meta=(AttributeSet("m", (("enabled", "false"),)),)),
    ],
)
def test_what_nobody_wants_counts_as_delivered(alert: Alert) -> None:
    step = machine().step(cib(alert, events=2), Instant(0))
    assert not step.calls
    assert step.record is not None
    assert step.record.delivered == {"a": 2}


def test_a_recipients_own_words_come_first() -> None:
    meta = (AttributeSet("n", (("timeout", "5s"),)),)
    own = AlertRecipient("r", "x", "", (AttributeSet("i", (("k", "own"),)),), meta)
    both = (AttributeSet("j", (("k", "all"), ("l", "all"))),)
    alert = Alert("a", "/agent", "", None, (), both, (AttributeSet("m", (("timeout", "60s"),)),), (own,))
    (call,) = machine().step(cib(alert, events=1), Instant(0)).calls
    assert (call.timeout_ms, call.environment["k"], call.environment["l"]) == (5_000, "own", "all")
    assert call.environment["CRM_alert_recipient"] == "x"


def test_alike_events_within_the_incident_interval_are_one_call_that_counts_them() -> None:
    alert = Alert("a", "/agent", meta=(AttributeSet("m", (("incident-interval", "10s"),)),))
    alerting, state = machine(), cib(alert, events=4)
    late = tuple(replace(each, at=WallTime(AT + each.sequence * 4_000)) for each in state.status.alerts.pending)
    state = replace(state, status=replace(state.status, alerts=replace(state.status.alerts, pending=late)))
    (first,) = alerting.step(state, Instant(0)).calls
    alerting.finished(first, ENDED)
    (second,) = alerting.step(state, Instant(1)).calls
    assert [(each.sequence, each.environment["CRM_alert_alike"]) for each in (first, second)] == [(1, "0"), (4, "2")]


GROUPED = Alert("a", "/agent", meta=(AttributeSet("m", (("incident-group", "10s"),)),))


def with_incidents(*incidents: str) -> Cib:
    """Return a state with an event for each of these incidents."""
    state = cib(GROUPED, events=len(incidents))
    queue = state.status.alerts
    pending = tuple(replace(each, incident=name) for each, name in zip(queue.pending, incidents, strict=True))
    return replace(state, status=replace(state.status, alerts=replace(queue, pending=pending)))


def walked(state: Cib, *moments: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return what is called for at which moment, where each call ends at once."""
    alerting, found = machine(), list[tuple[int, tuple[int, ...]]]()
    for moment in moments:
        for call in alerting.step(state, Instant(moment)).calls:
            found.append((moment, call.sequences))
            alerting.finished(call, ENDED)
    return found


@pytest.mark.parametrize(
    ("incidents", "expected"),
    [
        (["i1"], [(0, (1,))]),
        (["i1", "i1", "i1"], [(0, (1,)), (10_001, (2, 3))]),
        (["i1", "i1", "i1", "i2"], [(0, (1,)), (1, (2, 3)), (2, (4,))]),
        (["i1", "i2", "i2"], [(0, (1,)), (1, (2,)), (10_002, (3,))]),
        (["", "", ""], [(0, (1,)), (1, (2,)), (2, (3,))]),
        (["i1"] * (GROUP_MAX + 2), [(0, (1,)), (1, tuple(range(2, GROUP_MAX + 2))), (10_002, (GROUP_MAX + 2,))]),
    ],
)  # fmt: skip
def test_what_belongs_to_one_incident_is_collected(
    incidents: list[str], expected: list[tuple[int, tuple[int, ...]]]
) -> None:
    assert walked(with_incidents(*incidents), 0, 1, 2, 9_999, 10_001, 10_002) == expected


def test_a_group_has_a_deadline_and_all_its_events() -> None:
    alerting, state = machine(), with_incidents("i1", "i1", "i1")
    end(alerting, alerting.step(state, Instant(0)), "a")
    assert not alerting.step(state, Instant(5)).calls
    (call,) = alerting.step(state, Instant(10_005)).calls
    made = call.environment
    assert (made["CRM_alert_grouped"], made["CRM_alert_node_sequence"], made["CRM_alert_incident"]) == ("2", "3", "i1")
    listed = json.loads(made["CRM_alert_events"])
    assert [(each["node_sequence"], each["kind"], each["desc"]) for each in listed] == [
        ("2", "node", "lost"), ("3", "node", "lost"),
    ]  # fmt: skip


def with_test(key: str) -> Cib:
    """Return a state with a test of one recipient of TWO, and an event after it."""
    state = cib(TWO, events=2)
    queue = state.status.alerts
    pending = (replace(queue.pending[0], only=(key,), description="test"), queue.pending[1])
    queue = replace(queue, pending=pending, tests={key: AlertTest(1)})
    return replace(state, status=replace(state.status, alerts=queue))


@pytest.mark.parametrize(
    "result",
    [ENDED, AlertCallResult(3, "exit code 3", 5, "no\nroute"), AlertCallResult(None, "timeout", 30_000, "x" * 900)],
)
def test_a_test_goes_to_whom_it_is_for_and_how_it_ended_is_recorded(result: AlertCallResult) -> None:
    alerting, state = machine(), with_test("r2")
    first = alerting.step(state, Instant(0))
    assert [(each.key, each.sequence, each.is_test) for each in first.calls] == [("r1", 2, False), ("r2", 1, True)]
    assert first.calls[1].environment["CRM_alert_test"] == "true"
    end(alerting, first, "r2", result)
    record = alerting.step(state, Instant(RECORD_PAUSE_MS)).record
    assert record is not None
    test = record.tests["r2"]
    assert (test.sequence, test.is_done, test.exit_code, test.problem, test.output) == (
        1, True, result.exit_code, result.problem, result.output[-500:],
    )  # fmt: skip


def test_how_a_test_ended_is_recorded_also_when_an_election_came_before_the_record() -> None:
    """The end of the next call, under way at the election, records a position after the test: nobody repeats that."""
    alerting, state = machine(), with_test("r2")
    controller = state.status.controller
    assert controller is not None
    first = alerting.step(state, Instant(RECORD_PAUSE_MS))
    end(alerting, first, "r2")
    following = alerting.step(state, Instant(RECORD_PAUSE_MS + 1))
    assert ([(each.key, each.sequence) for each in following.calls], following.record) == ([("r2", 2)], None)
    elected = replace(state, status=replace(state.status, controller=replace(controller, term=Term(4))))
    assert alerting.step(elected, Instant(RECORD_PAUSE_MS + 2)).record is None
    end(alerting, following, "r2")
    record = alerting.step(elected, Instant(3 * RECORD_PAUSE_MS)).record
    assert record is not None
    assert (record.delivered["r2"], record.tests["r2"].is_done) == (2, True)


def test_dropped_events_are_reported_once() -> None:
    alerting, state = machine(), cib(TWO, events=3)
    alerting.step(state, Instant(0))
    queue = replace(state.status.alerts, dropped={"r1": 5})
    state = replace(state, status=replace(state.status, alerts=queue))
    assert alerting.step(state, Instant(1)).dropped == {"r1": 5}
    assert not alerting.step(state, Instant(2)).dropped


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (LOST, {"kind": "node", "node": "n2", "desc": "lost", "timestamp_epoch": "1700000000",
                "timestamp_usec": "123000"}),
        (replace(LOST, kind=AlertKind.FENCING, description="Operation off of n2 by n1: OK", task="off"),
         {"kind": "fencing", "task": "off", "rc": "0", "desc": "Operation off of n2 by n1: OK"}),
        (replace(LOST, kind=AlertKind.ATTRIBUTES, attribute="rack", value="7"),
         {"kind": "attribute", "attribute_name": "rack", "attribute_value": "7"}),
        (replace(LOST, kind=AlertKind.RESOURCES, description="not running", task="monitor", resource="web",
                 interval_ms=10_000, status=ExecutionStatus.ERROR, exit_code=7, executed_ms=12),
         {"kind": "resource", "rsc": "web", "task": "monitor", "interval": "10000", "status": "0", "rc": "7",
          "target_rc": "0", "exec_time": "12", "desc": "not running"}),
    ],
)  # fmt: skip
def test_environment(event: AlertEvent, expected: dict[str, str]) -> None:
    made = environment_of(Cib(), AlertTarget(Alert("a", "/agent"), None), event, is_repeated=False, alike=None)
    found = {name.removeprefix("CRM_alert_"): value for name, value in made.items() if name.startswith("CRM_alert_")}
    assert {name: found.get(name) for name in expected} == expected
    assert "recipient" not in found
    assert {name.removeprefix("CRM_notify_") for name in made if name.startswith("CRM_notify_")} == set(found)


@pytest.mark.parametrize(
    ("pattern", "expected"), [("%06N", "123000"), ("%N", "123000000"), ("%3N %%N", "123 %N"), ("plain", "plain")]
)
def test_timestamps(pattern: str, expected: str) -> None:
    assert render_time(AT, pattern) == expected
