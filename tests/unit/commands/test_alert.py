"""`crm alert list`: recipients of alerts, and what waits for them."""

from haclusterd.cib.commands import RequestAlertTest
from haclusterd.cli.render.tables import render_alert_tests
from haclusterd.cli.render.terminal import Screen
from haclusterd.commands import alert
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.outcome import Outcome
from haclusterd.model.alerts import AlertEvent, AlertQueue, AlertTest
from haclusterd.model.cluster import Cib, Status
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet, Configuration
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.verbs.answers.alerts import AlertTests
from haclusterd.verbs.arguments import Arguments

LOST = AlertEvent(1, Term(3), WallTime(0), AlertKind.NODES, "n2", "lost")
SILENT = (AttributeSet("m", (("enabled", "no"), ("timeout", "5s"))),)
MAIL = Alert("mail", "/mail", recipients=(AlertRecipient("r", "admin"), AlertRecipient("s", "other", meta=SILENT)))
RACK = Alert("rack", "/rack", select=(AlertKind.ATTRIBUTES,), attribute_names=("rack",))


def context() -> Context:
    queue = AlertQueue(2, (LOST, replace(LOST, sequence=2)), {"r": 1, "s": 0, "rack": 0}, {"r": 7})
    configuration = Configuration(alerts={"mail": MAIL, "rack": RACK})
    return Context(Cib(configuration=configuration, status=Status(alerts=queue)), now=WallTime(0), author="root@n1")


def test_the_list_has_a_row_for_every_recipient() -> None:
    answer = alert.show(context(), Arguments({"name": ""})).answer
    assert answer is not None
    rows = [(row.id, row.recipient, row.select, row.timeout_ms, row.is_enabled, row.waiting, row.dropped)
            for row in answer.alerts]  # fmt: skip
    usual = ("nodes", "fencing", "resources")
    assert rows == [
        ("r", "admin", usual, 30_000, True, 1, 7),
        ("s", "other", usual, 5_000, False, 0, 0),
        ("rack", "", ("attributes",), 30_000, True, 0, 0),
    ]
    assert answer.alerts[2].attribute_names == ("rack",)


def test_one_alert_or_recipient() -> None:
    for name, ids in (("mail", ["r", "s"]), ("s", ["s"])):
        answer = alert.show(context(), Arguments({"name": name})).answer
        assert answer is not None
        assert [row.id for row in answer.alerts] == ids


def test_an_unknown_name_is_refused() -> None:
    outcome = alert.show(context(), Arguments({"name": "mial"}))
    assert [str(each.code) for each in outcome.reports] == ["UNKNOWN_OBJECT"]


def asked_for_a_test(*ended: AlertTest) -> tuple[Outcome[AlertTests], Cib]:
    """Return what a test of `mail` asks for, and the state after its agents have ended like this."""
    asked = replace(context(), live=LiveView(NodeName("n1"), has_quorum=True))
    outcome = alert.test(asked, Arguments({"name": "mail"}))
    queue = replace(asked.cib.status.alerts, tests=dict(zip(("r", "s"), ended, strict=False)))
    return outcome, replace(asked.cib, status=replace(asked.cib.status, alerts=queue))


def test_a_test_is_asked_of_every_recipient_and_waited_for() -> None:
    sent = AlertTest(3, is_done=True, exit_code=0, executed_ms=40, output="250 OK")
    failed = AlertTest(3, is_done=True, exit_code=2, problem="exit code 2", executed_ms=9, output="refused\x1b[2J")
    outcome, after = asked_for_a_test(sent, failed)
    assert [each.recipients for each in outcome.commands if isinstance(each, RequestAlertTest)] == [("r", "s")]
    assert outcome.until is not None
    assert outcome.afterwards is not None
    assert outcome.until(after, None)
    then = outcome.afterwards(after, outcome.until(after, None))
    assert [each.code for each in then.reports] == [Code.ALERT_FAILED]
    assert then.answer is not None
    assert [(row.id, row.exit_code, row.executed_ms, row.output) for row in then.answer.tests] == [
        ("r", 0, 40, "250 OK"), ("s", 2, 9, "refused\x1b[2J"),
    ]  # fmt: skip
    assert render_alert_tests(Screen(), then.answer) == [
        "r: /mail to admin: exit code 0 after 40 ms", "    250 OK",
        "s: /mail to other: exit code 2 after 9 ms", "    refused\\x1b[2J",
    ]  # fmt: skip


def test_a_test_that_has_not_ended_says_so() -> None:
    outcome, after = asked_for_a_test(AlertTest(3, is_done=True, exit_code=0), AlertTest(3))
    assert outcome.until is not None
    assert outcome.afterwards is not None
    assert not outcome.until(after, None)
    then = outcome.afterwards(after, outcome.until(after, None))
    assert [each.code for each in then.reports] == [Code.ALERT_WAITS]
    assert then.answer is not None
    assert [row.is_done for row in then.answer.tests] == [True, False]
