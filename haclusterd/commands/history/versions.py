"""Verbs about versions of the configuration: list them, compare them, go back to one.

Invariant: going back is a change like any other, made against the present version and verified; nothing is ever taken
out of the history.
"""

from collections.abc import Mapping

from haclusterd.cib.edits import difference as edits_between
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.edit_lines import describe_edits
from haclusterd.commands.configure.removal import removal
from haclusterd.commands.configure.view import masked, unified
from haclusterd.commands.context import Context, ListedVersion, Versions
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.crm.syntax import Arrangement
from haclusterd.formats.crm.syntax import show as show_crm
from haclusterd.model.configuration import Configuration
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.configuration import Change, ConfigurationText
from haclusterd.verbs.answers.history import ComparedVersion, Difference, KnownVersion, KnownVersions, Range, Version
from haclusterd.verbs.arguments import Arguments

DEFAULT_LIMIT = 20
DESCRIBED_MAX = 20
"""Of how many versions, the newest, it is said what each changed: all of them are read for that."""


def listed(context: Context, arguments: Arguments) -> Outcome[KnownVersions]:
    """Answer the newest versions, oldest first, with what is missing (schema `haclusterd.versions/1`)."""
    versions = context.versions
    if versions is None:
        return refusal(report(Code.NOT_OFFLINE, what="the list of versions"))
    known = versions.listed()
    author = arguments.word("author")
    chosen = [each for each in known if not author or author in each.author]
    newest = chosen[-arguments.integer("limit", DEFAULT_LIMIT) :]
    described = {each.number for each in newest[-DESCRIBED_MAX:]}
    now = context.cib.version.epoch
    first = newest[0].number if newest and len(newest) < len(known) else 1
    return Outcome(
        reports=_incomplete(versions),
        answer=KnownVersions(
            now=context.now,
            version=now,
            left_out=len(chosen) - len(newest),
            gaps=_gaps([each.number for each in known], first, now),
            versions=tuple(
                KnownVersion(
                    each.number, each.at, each.author, each.reason, each.digest,
                    _edits(context, each.number) if each.number in described else None,
                )
                for each in newest
            ),
        ),
    )


def _shown_version(each: ListedVersion) -> Version:
    return Version(
        number=each.number, at=each.at, author=each.author, reason=each.reason, digest=each.digest,
    )  # fmt: skip


def _edits(context: Context, number: int) -> tuple[str, ...] | None:
    """Return what a version changed, in lines, with secrets hidden; None where it or the one before is not known."""
    old = Configuration() if number == 1 else _version(context, number - 1)
    new = _version(context, number)
    if isinstance(old, ReportItem) or isinstance(new, ReportItem):
        return None
    return tuple(describe_edits(old, new, edits_between(old, new), context.agents))


def _gaps(known: list[int], first: int, last: int) -> tuple[Range, ...]:
    """Return the ranges of numbers between `first` and `last` that are missing; numbers count up by one."""
    gaps: list[Range] = []
    expected = first
    for number in (*(each for each in known if each >= first), last + 1):
        if number > expected:
            gaps.append(Range(first=expected, last=number - 1))
        expected = number + 1
    return tuple(gaps)


def _incomplete(versions: Versions) -> tuple[ReportItem, ...]:
    problem = versions.problem()
    return (report(Code.HISTORY_INCOMPLETE, problem=problem),) if problem else ()


def shown(context: Context, arguments: Arguments) -> Outcome[ConfigurationText]:
    """Answer a version's content as crm text (schema `haclusterd.configuration/1`)."""
    number = _number(context, arguments.integer("version", 0))
    if isinstance(number, ReportItem):
        return refusal(number)
    found = _version(context, number)
    if isinstance(found, ReportItem):
        return refusal(found)
    visible = found if arguments.flag("secrets") else masked(found, context.agents)
    about = _about(context, number)
    return Outcome(
        answer=ConfigurationText(
            version=number,
            author=about.author,
            at=about.at,
            reason=about.reason,
            format="crm",
            text=_text(visible),
        )
    )


def compared(context: Context, arguments: Arguments) -> Outcome[Difference]:
    """Answer what differs between two versions, as crm statements (schema `haclusterd.difference/1`)."""
    old, new = (_number(context, arguments.integer(name, 0)) for name in ("old", "new"))
    if isinstance(old, ReportItem) or isinstance(new, ReportItem):
        return refusal(*(each for each in (old, new) if isinstance(each, ReportItem)))
    numbers = (old, new)
    found = {number: _version(context, number) for number in numbers}
    objections = [each for each in found.values() if isinstance(each, ReportItem)]
    if objections:
        return refusal(*objections)
    contents = {number: each for number, each in found.items() if isinstance(each, Configuration)}
    return Outcome(
        answer=Difference(
            old=_heading(context, numbers[0]),
            new=_heading(context, numbers[1]),
            text="\n".join(difference(context, contents, *numbers)),
        )
    )


def difference(context: Context, contents: Mapping[int, Configuration], old: int, new: int) -> list[str]:
    """Return the unified difference of two versions, with secrets hidden; a changed secret alone shows no line."""
    return unified(contents[old], contents[new], (old, new), context.agents)


def _heading(context: Context, number: int) -> ComparedVersion:
    return extended(ComparedVersion, _shown_version(_about(context, number)))


def _about(context: Context, number: int) -> ListedVersion:
    known = context.versions.listed() if context.versions is not None else ()
    present = context.cib.version
    if number == present.epoch:
        return ListedVersion(number, present.at, present.author, present.reason, "")
    return next((each for each in known if each.number == number), ListedVersion(number, context.now, "", "", ""))


def _number(context: Context, asked: int) -> int | ReportItem:
    """Return the number of a version: 0 is the present one, -1 the newest that is known, -2 the one before."""
    present = context.cib.version.epoch
    if asked >= 0:
        return asked or present
    known = () if context.versions is None else context.versions.listed()
    numbers = sorted({present, *(each.number for each in known if each.number <= present)})
    return numbers[asked] if -asked <= len(numbers) else report(Code.NO_SUCH_VERSION, number=asked)


def _text(configuration: Configuration) -> str:
    return show_crm(configuration, arrangement=Arrangement.DOCUMENT)


def _version(context: Context, number: int) -> Configuration | ReportItem:
    """Return a version's content; the present one is known without a history."""
    present = context.cib.version.epoch
    if number == present:
        return context.cib.configuration
    if number > present:
        return report(Code.NO_SUCH_VERSION, number=number)
    if context.versions is None:
        return report(Code.NOT_OFFLINE, what="an earlier version")
    found = context.versions.configuration(number)
    if found is None:
        node = "this node" if context.live is None else context.live.node
        return report(Code.VERSION_NOT_KEPT, number=number, node=node)
    return found


def rollback(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Make the configuration what it was in a version (schema `haclusterd.change/1`, with the difference)."""
    number = arguments.integer("version", 0)
    found = _version(context, number)
    if isinstance(found, ReportItem):
        return refusal(found)
    reason = f"rollback to version {number}" + (f": {context.reason}" if context.reason else "")
    outcome = change(replace(context, reason=reason), found, done=reason, reports=removal(context, found))
    present = context.cib.version.epoch
    if outcome.is_refused or not isinstance(outcome.answer, Change):
        return outcome
    lines = difference(context, {present: context.cib.configuration, number: found}, present, number)
    return replace(outcome, answer=replace(outcome.answer, difference="\n".join(lines)))


VERBS = (
    carry_out_by("history.config", listed, answers(KnownVersions)),
    carry_out_by("history.show", shown, answers(ConfigurationText)),
    carry_out_by("history.diff", compared, answers(Difference)),
    carry_out_by("configure.rollback", rollback, answers(Change)),
)
