"""`history.status`: the state of the cluster as it was at a past moment."""

from haclusterd.commands.context import Context
from haclusterd.commands.history.history import moment_of
from haclusterd.commands.history.replay import replayed
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.status.status import whole_status
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.records import replace
from haclusterd.reports.items import ReportItem
from haclusterd.verbs.answers.status import Status
from haclusterd.verbs.arguments import Arguments


def then(context: Context, arguments: Arguments) -> Outcome[Status]:
    """Answer the state of the whole cluster then (schema `haclusterd.status/1`, with `at`)."""
    at = moment_of(context, "at", arguments.word("at"))
    if at is None or isinstance(at, ReportItem):
        return Outcome(answer=whole_status(context)) if at is None else refusal(at)
    past = replayed(context, at)
    if isinstance(past, ReportItem):
        return refusal(past)
    answer = whole_status(replace(context, cib=past.cib, now=at, live=None))
    return Outcome(past.reports, answer=replace(answer, at=at))


VERBS = (carry_out_by("history.status", then, answers(Status)),)
