"""From a new configuration to a command: the one way in which a verb changes the configuration.

Invariant: a change is proposed against the version that it was made from, whole or not at all, and never when
verification finds an error that the change brought in.
"""

from collections.abc import Iterator

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import Edit, difference
from haclusterd.commands.configure.edit_lines import describe_edits
from haclusterd.commands.configure.settling import settled_for
from haclusterd.commands.configure.view import revealed
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Condition, Outcome
from haclusterd.commands.planning.planning import settled
from haclusterd.commands.validation import objections
from haclusterd.commands.verify.configuration import verify
from haclusterd.model.configuration import Configuration
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, has_errors, report
from haclusterd.reports.places import Places
from haclusterd.verbs.answers.configuration import Change


def change(
    context: Context,
    new: Configuration,
    *,
    done: str,
    reports: tuple[ReportItem, ...] = (),
    until: Condition | None = None,
    until_plans: bool = False,
    waiting_for: str = "",
    waits_by_default: bool = False,
    places: Places | None = None,
    keeps_unknown: bool = False,
) -> Outcome[Change]:
    """Propose the new configuration; `done` says in a sentence what it did.

    `keeps_unknown`: names of attributes that mean nothing are warned of, not refused.
    """
    new, secrets = revealed(new, context.cib.configuration, places or Places())
    new, settled_on_the_way = settled_for(context, new, places or Places())
    reports = (*reports, *secrets, *settled_on_the_way)
    edits = difference(context.cib.configuration, new)
    if not edits:
        already = report(Code.NOTHING_TO_DO, state="the configuration is so already")
        return Outcome((*reports, already), answer=_done_by(context, new, ()), until=until, waiting_for=waiting_for)
    found = (*reports, *_brought_in(context, new, places, keeps_unknown=keeps_unknown))
    if has_errors(found):
        return Outcome(found)
    found = (*found, *objections(context, new, places or Places()))
    version = context.cib.version
    command = ChangeConfiguration(
        version.epoch, edits, context.author, context.reason, version.request, _round_trip_ms(context)
    )
    return Outcome(
        reports=(*found, report(Code.CONFIGURATION_CHANGED, what=done)),
        commands=(command,),
        answer=_done_by(context, new, edits),
        until=until or settled(context.now),
        until_plans=until is None or until_plans,
        waiting_for=waiting_for or "the cluster to settle",
        waits_by_default=waits_by_default,
    )


def _round_trip_ms(context: Context) -> int:
    """Return what the network takes at least to the farthest voter that is heard, and back."""
    heard = context.live.heard if context.live is not None else {}
    return max((heard[voter].round_trip_ms or 0 for voter in context.cib.voters() if voter in heard), default=0)


def _brought_in(
    context: Context, new: Configuration, places: Places | None, *, keeps_unknown: bool
) -> Iterator[ReportItem]:
    """Yield what verification finds in the new configuration and did not find in the old one.

    What was wrong before must not keep anybody from putting a node on standby; `verify` tells it all. That a move
    overrules preferences is what it is for.
    """
    found = _judged(context, new, places, keeps_unknown=keeps_unknown)
    if not found:
        return
    old = _judged(context, context.cib.configuration, None, keeps_unknown=keeps_unknown)
    known = {(each.code, tuple(sorted(each.parameters.items()))) for each in old}
    for each in found:
        is_meant = each.code is Code.LOCATION_NO_EFFECT and each.parameters["other"].startswith("cli-")
        if not is_meant and (each.code, tuple(sorted(each.parameters.items()))) not in known:
            yield each


def _judged(
    context: Context, configuration: Configuration, places: Places | None, *, keeps_unknown: bool
) -> tuple[ReportItem, ...]:
    return verify(
        configuration, members=context.cib.members, agents=context.agents, places=places, is_foreign=context.is_foreign,
        keeps_unknown=keeps_unknown, secrets=context.secret_names,
    )  # fmt: skip


def _done_by(context: Context, new: Configuration, edits: tuple[Edit, ...]) -> Change:
    """Return what a change does, in lines (schema `haclusterd.change/1`)."""
    epoch = context.cib.version.epoch
    return Change(
        from_version=epoch,
        to_version=epoch + 1 if edits else epoch,
        edits=tuple(describe_edits(context.cib.configuration, new, edits, context.agents)),
    )
