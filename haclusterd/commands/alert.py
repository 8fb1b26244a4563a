"""Verbs about alerts: who is called for what, how far each recipient has got, and tests of them."""

from haclusterd.cib.commands import RequestAlertTest
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.alerts import DEFAULT_KINDS, AlertTarget, AlertTest, targets
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AlertKind
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.alerts import AlertRow, Alerts, AlertTestRow, AlertTests
from haclusterd.verbs.arguments import Arguments


def show(context: Context, arguments: Arguments) -> Outcome[Alerts]:
    """Answer the recipients of every alert, or of one (schema `haclusterd.alerts/1`)."""
    found = _wanted(context, arguments.word("name"))
    if isinstance(found, ReportItem):
        return refusal(found)
    return Outcome(answer=Alerts(tuple(_row(context.cib, each) for each in found)))


def _wanted(context: Context, name: str) -> list[AlertTarget] | ReportItem:
    """Return the recipients of an alert, or one of them; of every alert where nothing is named."""
    found = [each for each in targets(context.cib.configuration) if name in ("", each.alert.id, each.key)]
    if found or not name:
        return found
    remedy = did_you_mean(name, tuple(context.cib.configuration.alerts), "see: crm alert list")
    return report(Code.UNKNOWN_OBJECT, id=repr(name), remedy=remedy)


def test(context: Context, arguments: Arguments) -> Outcome[AlertTests]:
    """Send a test event to recipients, and answer how their agents ended (schema `haclusterd.alert_tests/1`)."""
    if context.live is None:
        return refusal(report(Code.NOT_OFFLINE, what="a test of alerts"))
    found = _wanted(context, arguments.word("name"))
    if isinstance(found, ReportItem):
        return refusal(found)
    if not found:
        return Outcome((report(Code.NOTHING_TO_DO, state="no alert is configured"),))
    before = {each.key: _newest_test(context.cib, each.key) for each in found}

    def have_ended(cib: Cib, _: object) -> bool:
        return all(_is_done(cib, key, sequence) for key, sequence in before.items())

    def afterwards(cib: Cib, _is_met: bool) -> Outcome[AlertTests]:
        rows = tuple(_tested(cib, each, before[each.key]) for each in found)
        failed = [row for row in rows if row.problem]
        slow = [row for row in rows if not row.is_done]
        reports = [report(Code.ALERT_FAILED, recipient=row.id, problem=row.problem) for row in failed]
        reports += [report(Code.ALERT_WAITS, recipient=row.id) for row in slow]
        return Outcome(tuple(reports), answer=AlertTests(rows))

    command = RequestAlertTest(tuple(before), context.author, context.reason)
    return Outcome(
        commands=(command,), until=have_ended, waits_by_default=True, afterwards=afterwards,
        waiting_for=f"the agents of {', '.join(before)} to end",
    )  # fmt: skip


def _newest_test(cib: Cib, key: str) -> int:
    known = cib.status.alerts.tests.get(key)
    return 0 if known is None else known.sequence


def _is_done(cib: Cib, key: str, before: int) -> bool:
    known = cib.status.alerts.tests.get(key)
    return known is not None and known.sequence > before and known.is_done


def _tested(cib: Cib, target: AlertTarget, before: int) -> AlertTestRow:
    known = cib.status.alerts.tests.get(target.key)
    is_done = _is_done(cib, target.key, before)
    test = known if known is not None and is_done else AlertTest(0)
    return AlertTestRow(
        alert=target.alert.id,
        id=target.key,
        path=target.alert.path,
        recipient="" if target.recipient is None else target.recipient.value,
        is_done=is_done,
        exit_code=test.exit_code,
        problem=test.problem,
        executed_ms=test.executed_ms,
        output=test.output,
    )


def _row(cib: Cib, target: AlertTarget) -> AlertRow:
    queue, alert, settings = cib.status.alerts, target.alert, target.settings
    kinds = DEFAULT_KINDS if alert.select is None else alert.select
    return AlertRow(
        alert=alert.id,
        id=target.key,
        path=alert.path,
        recipient="" if target.recipient is None else target.recipient.value,
        select=tuple(map(str, kinds)),
        attribute_names=alert.attribute_names if AlertKind.ATTRIBUTES in kinds else (),
        timeout_ms=settings.timeout_ms,
        incident_ms=settings.incident_ms,
        group_ms=settings.group_ms,
        is_enabled=settings.is_enabled,
        waiting=queue.waiting(target),
        dropped=queue.dropped.get(target.key, 0),
    )


VERBS = (
    carry_out_by("alert.list", show, answers(Alerts)),
    carry_out_by("alert.test", test, answers(AlertTests)),
)
