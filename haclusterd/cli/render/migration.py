"""The answer of `crm migrate check` as text: the verdict last, where a reader's eye ends."""

from collections.abc import Iterable, Iterator

from haclusterd.cli.render.terminal import Colour, Screen, folded
from haclusterd.verbs.answers.simulation import MigrationCheck, MigrationFinding

_SHOWN_AT_MOST = 40
"""Entries of one chapter; `-o json` has them all."""


def render(screen: Screen, data: MigrationCheck) -> list[str]:
    """Write what was found, chapter by chapter, and then whether the CIB may come in."""
    lines = [screen.paint(_title(data), Colour.BOLD)]
    for title, entries, fine in _chapters(data):
        lines += ["", screen.paint(title, Colour.BOLD)]
        shown = entries[:_SHOWN_AT_MOST] or [fine]
        lines += [line for entry in shown for line in folded(entry, indent="  * ", later="    ")]
        if len(entries) > len(shown):
            lines.append(f"    and {len(entries) - len(shown)} more: crm -o json migrate check ...")
    return [*lines, "", *_verdict(screen, data)]


def _title(data: MigrationCheck) -> str:
    size = data.size
    counts = ((size.nodes, "node"), (size.resources, "resource"), (size.constraints, "constraint"))
    words = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
    cluster = f", cluster {data.cluster}" if data.cluster else ""
    return f"{data.source}: {words}{cluster}" + (f", Pacemaker {data.pacemaker}" if data.pacemaker else "")


def _chapters(data: MigrationCheck) -> Iterator[tuple[str, list[str], str]]:
    """Yield each chapter's title, its entries, and what is written when it has none."""
    plan = data.plan
    yield "Cannot be loaded:", _reports(data, data.refused), "nothing: everything loads"
    yield "Loads with another meaning, or without effect:", _reports(data, data.changed), "nothing"
    missing = [f"{each.agent}, for {', '.join(each.resources)}" for each in data.missing_agents]
    yield "Agents that are not installed on this machine:", missing, "none"
    unjudged = "not judged: what cannot be loaded may be a device"
    fine = "every node is covered by a device" if data.is_judged else unjudged
    yield "Fencing:", _reports(data, data.unfenced), fine
    if plan.problem:
        yield "The first plan:", [plan.problem], ""
    elif not plan.is_known:
        yield "The first plan:", [], "the file does not say what runs where: take it from the running cluster (--live)"
    else:
        others = len(plan.changes) - len(plan.interrupted)
        more = f"; {others} other {'change' if others == 1 else 'changes'}: crm simulate --cib FILE" if others else ""
        fine = f"nothing stops, and nothing moves{more}"
        interrupted = [
            f"{each} ({'so does Pacemaker' if each in plan.by_pacemaker_too else 'Pacemaker does not'})"
            for each in plan.interrupted
        ]
        yield "What the first plan would interrupt:", interrupted, fine
        yield "Placed in another way than by Pacemaker:", list(plan.otherwise), "nothing"


def _reports(data: MigrationCheck, findings: Iterable[MigrationFinding]) -> list[str]:
    entries = []
    for each in findings:
        place = each.place.replace(f"{data.source}:", "line ", 1)
        place = f"{place}: " if place else ""
        remedy = f" ({each.remedy})" if each.remedy else ""
        entries.append(f"{place}{each.message}{remedy}")
    return entries


def _verdict(screen: Screen, data: MigrationCheck) -> list[str]:
    if data.may_come_in:
        return [
            screen.paint("YES: it may come in as it is.", Colour.GREEN),
            "How, without a stop of any service: docs/howto/come-from-pacemaker.md",
        ]
    return folded(f"NO: {'; '.join(data.objections)}.", indent="", later="    ")
