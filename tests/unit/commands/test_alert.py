"""`crm alert list`: recipients of alerts, and what waits for them."""

from dataclasses import replace

from haclusterd.commands import alert
from haclusterd.commands.context import Context
from haclusterd.model.alerts import AlertEvent, AlertQueue
from haclusterd.model.cluster import Cib, Status
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, AttributeSet, Configuration
from haclusterd.model.ids import Term
from haclusterd.model.instants import WallTime
from haclusterd.verbs.arguments import Arguments

LOST = AlertEvent(1, Term(3), WallTime(0), AlertKind.NODES, "n2", "lost")
SILENT = (AttributeSet("m", (("enabled", "no"), ("timeout", "5s"))),)
MAIL = Alert("mail", "/mail", recipients=(AlertRecipient("r", "admin"), AlertRecipient("s", "other", meta=SILENT)))
RACK = Alert("rack", "/rack", select=(AlertKind.ATTRIBUTES,), attribute_names=("rack",))


def context() -> Context:
    queue = AlertQueue(2, (LOST, replace(LOST, sequence=2)), {"r": 1, "s": 0, "rack": 0}, {"r": 7})
    configuration = Configuration(alerts={"mail": MAIL, "rack": RACK})
    return Context(Cib(configuration=configuration, status=Status(alerts=queue)), now=WallTime(0), author="root@n1")


def test_every_recipient() -> None:
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


def test_there_is_none_of_that_name() -> None:
    outcome = alert.show(context(), Arguments({"name": "mial"}))
    assert [str(each.code) for each in outcome.reports] == ["UNKNOWN_OBJECT"]
