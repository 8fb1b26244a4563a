"""The answer of `crm migrate check` as text, for a person who decides whether to migrate.

First comes what there is in one look: a number for each chapter. Then the chapters: what keeps the CIB out, what would
be otherwise, what is advice. The verdict comes last.
"""

from collections.abc import Iterable, Iterator

from haclusterd.cli.render.terminal import Colour, Screen, folded
from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.simulation import FirstPlan, MigrationCheck, MigrationFinding

_SHOWN_AT_MOST = 40
"""Entries of one chapter; `-o json` has them all."""
_UNKNOWN = "?"
_NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True, slots=True)
class _Chapter:
    summary: str
    """How the first lines name what it counts."""
    title: str
    entries: list[str]
    fine: str
    """What is written when there are no entries; empty: the chapter is left out then."""
    is_known: bool = True


def render(screen: Screen, data: MigrationCheck) -> list[str]:
    """Write what was found, in short and chapter by chapter, and then whether the CIB may come in."""
    chapters = list(_chapters(data))
    width = max(len(each.summary) for each in chapters)
    lines = [screen.paint(_title(data), Colour.BOLD), ""]
    for each in chapters:
        count = str(len(each.entries)) if each.is_known else _UNKNOWN
        lines.append(f"  {each.summary:<{width}}  {count}")
    for each in chapters:
        if not (each.entries or each.fine):
            continue
        lines += ["", screen.paint(each.title, Colour.BOLD)]
        shown = each.entries[:_SHOWN_AT_MOST] or [each.fine]
        lines += [line for entry in shown for line in folded(entry, indent="  * ", later="    ")]
        if len(each.entries) > len(shown):
            lines.append(f"    and {len(each.entries) - len(shown)} more: crm -o json migrate check ...")
    return [*lines, "", *_verdict(screen, data)]


def _title(data: MigrationCheck) -> str:
    size = data.size
    counts = ((size.nodes, "node"), (size.resources, "resource"), (size.constraints, "constraint"))
    words = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
    cluster = f", cluster {data.cluster}" if data.cluster else ""
    return f"{data.source}: {words}{cluster}" + (f", Pacemaker {data.pacemaker}" if data.pacemaker else "")


def _chapters(data: MigrationCheck) -> Iterator[_Chapter]:
    """Yield the chapters: first what keeps a CIB out, then what would be otherwise, then advice."""
    plan = data.plan
    refused = _reports(data, data.refused)
    yield _Chapter("cannot be loaded", "Cannot be loaded:", refused, "nothing: everything loads")
    missing = [f"{each.agent}, for {', '.join(each.resources)}" for each in data.missing_agents]
    yield _Chapter("agents that are not here", "Agents that are not installed on this machine:", missing, "none")
    yield _interrupted(plan)
    unjudged = "not judged: what cannot be loaded may be a device"
    fine = "every node is covered by a device" if data.is_judged else unjudged
    yield _Chapter("without fencing", "Fencing:", _reports(data, data.unfenced), fine, data.is_judged)
    fine = "nothing: all that loads means here what it means there"
    changed = _reports(data, data.changed)
    yield _Chapter("other meaning", "Means something else here, or nothing:", changed, fine)
    is_planned = plan.is_known and not plan.problem
    otherwise = [
        f"{each.resource}: here {each.here}, with Pacemaker {each.pacemaker}: {each.reason}"
        for each in plan.differences
    ]
    fine = "nothing" if is_planned else "not known without a plan"
    yield _Chapter("placed otherwise", "Placed in another way than by Pacemaker:", otherwise, fine, is_planned)
    yield _Chapter("advice", "Advice; it means the same in Pacemaker:", _reports(data, data.advice), "")
    yield _Chapter("notes", "Notes; spelled otherwise, or kept for others:", _reports(data, data.notes), "")


def _interrupted(plan: FirstPlan) -> _Chapter:
    summary, title = "interrupted by the first plan", "What the first plan would interrupt:"
    if plan.problem:
        return _Chapter(summary, "The first plan:", [plan.problem], "")
    if not plan.is_known:
        fine = "the file does not say what runs where: take it from the running cluster (--live)"
        return _Chapter(summary, title, [], fine, is_known=False)
    others = len(plan.changes) - len(plan.interrupted)
    more = f"; {others} other {'change' if others == 1 else 'changes'}: crm simulate --cib FILE" if others else ""
    interrupted = [
        f"{each} ({'so does Pacemaker' if each in plan.by_pacemaker_too else 'Pacemaker does not'})"
        for each in plan.interrupted
    ]
    return _Chapter(summary, title, interrupted, f"nothing stops, and nothing moves{more}")


def _reports(data: MigrationCheck, findings: Iterable[MigrationFinding]) -> list[str]:
    entries = []
    for each in findings:
        place = each.place.replace(f"{data.source}:", "line ", 1)
        place = f"{place}: " if place else ""
        has_remedy = each.remedy and each.remedy != _NOTHING_TO_DO
        entries.append(f"{place}{each.message}{f' ({each.remedy})' if has_remedy else ''}")
    return entries


def _verdict(screen: Screen, data: MigrationCheck) -> list[str]:
    if not data.may_come_in:
        return folded(f"NO: {'; '.join(data.objections)}.", indent="", later="    ")
    but = f" But first know: {'; '.join(data.reservations)}." if data.reservations else ""
    lines = folded(f"YES: it may come in as it is.{but}", indent="", later="    ")
    return [
        *(screen.paint(line, Colour.GREEN) for line in lines),
        "How, without a stop of any service: docs/howto/come-from-pacemaker.md",
    ]
