"""Verbs about alerts: who is called for what, and how far each recipient has got."""

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.alerts import DEFAULT_KINDS, AlertTarget, targets
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AlertKind
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.alerts import AlertRow, Alerts
from haclusterd.verbs.arguments import Arguments


def show(context: Context, arguments: Arguments) -> Outcome[Alerts]:
    """Answer the recipients of every alert, or of one (schema `haclusterd.alerts/1`)."""
    wanted = arguments.word("name")
    found = [each for each in targets(context.cib.configuration) if wanted in ("", each.alert.id, each.key)]
    if wanted and not found:
        remedy = did_you_mean(wanted, tuple(context.cib.configuration.alerts), "see: crm alert list")
        return refusal(report(Code.UNKNOWN_OBJECT, id=repr(wanted), remedy=remedy))
    return Outcome(answer=Alerts(tuple(_row(context.cib, each) for each in found)))


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
        is_enabled=settings.is_enabled,
        waiting=queue.waiting(target),
        dropped=queue.dropped.get(target.key, 0),
    )


VERBS = (carry_out_by("alert.list", show, answers(Alerts)),)
