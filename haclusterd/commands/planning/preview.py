"""`--dry-run`: what a verb's commands would change, and what the cluster would then do."""

from haclusterd.cib.apply import apply
from haclusterd.cib.apply_members import objection_to
from haclusterd.cib.commands import ChangeMembers, Command, Envelope
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome, Outcome
from haclusterd.commands.planning.interruptions import interruptions
from haclusterd.commands.planning.measured import Measured
from haclusterd.commands.planning.planning import describe_action, is_probe, plan, real_actions, standing
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.configuration import ExpectedAction, Preview

OF_WHAT_IS_DONE = frozenset({Code.CONFIGURATION_CHANGED, Code.REQUESTED})
"""What a verb says when it has done something: here nothing is done."""


def preview(context: Context, outcome: AnyOutcome) -> AnyOutcome:
    """Return an outcome that proposes nothing and shows what the given one would lead to.

    The schema of the data is `haclusterd.preview/1`.
    """
    if outcome.is_refused or not outcome.commands:
        return Outcome(outcome.reports, answer=outcome.answer, exit_status=outcome.exit_status)
    cib, refused = folded(context, outcome.commands)
    reports = (*(each for each in outcome.reports if each.code not in OF_WHAT_IS_DONE), *refused)
    where = standing(context, cib)
    reports = (*reports, *(each for each in where.reports if each not in reports))
    found = plan(cib, context.now, options=replace(DEFAULT_OPTIONS, has_quorum=where.has_quorum))
    if isinstance(found, ReportItem):
        reports = (*reports, found)
    actions = () if isinstance(found, ReportItem) else real_actions(found)
    answer = Preview(
        change=None if outcome.answer is None else as_json(outcome.answer),
        actions=tuple(
            ExpectedAction(text=describe_action(each), reason=each.reason, is_probe=is_probe(each), node=each.node)
            for each in actions
        ),
        interruptions=None if isinstance(found, ReportItem) else interruptions(
            found, Measured(context, found.graph.actions.values()).of
        ),
    )
    return Outcome((*reports, report(Code.DRY_RUN)), answer=answer, exit_status=outcome.exit_status)


def folded(context: Context, commands: tuple[Command, ...]) -> tuple[Cib, tuple[ReportItem, ...]]:
    """Fold commands into the context's CIB, as if they were committed now."""
    cib = context.cib
    controller = cib.status.controller
    proposer = NodeName("preview") if context.live is None else context.live.node
    for number, command in enumerate(commands):
        envelope = Envelope(RequestId(f"preview-{number}"), proposer, context.now, command)
        term = Term(0) if controller is None else controller.term
        is_in_force = isinstance(command, ChangeMembers) and not objection_to(cib, command)
        applied = apply(cib, envelope, index=cib.index + 1, term=term, is_in_force=is_in_force)
        cib = applied.cib
        if applied.refusal is not None:
            return cib, (report(Code.REFUSED, problem=applied.refusal.text),)
    return cib, ()
