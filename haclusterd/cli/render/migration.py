"""The answer of `crm migrate check` as text: the verdict last, where a reader's eye ends."""

from collections.abc import Iterator

from haclusterd.cli.render.fields import Fields, flag, listed, number, part, text, texts
from haclusterd.cli.render.terminal import Colour, Screen, folded

_SHOWN_AT_MOST = 40
"""Entries of one chapter; `-o json` has them all."""


def render(screen: Screen, data: Fields) -> list[str]:
    """Write what was found, chapter by chapter, and then whether the CIB may come in."""
    lines = [screen.paint(_title(data), Colour.BOLD)]
    for title, entries, fine in _chapters(data):
        lines += ["", screen.paint(title, Colour.BOLD)]
        shown = entries[:_SHOWN_AT_MOST] or [fine]
        lines += [line for entry in shown for line in folded(entry, indent="  * ", later="    ")]
        if len(entries) > len(shown):
            lines.append(f"    and {len(entries) - len(shown)} more: crm -o json migrate check ...")
    return [*lines, "", *_verdict(screen, data)]


def _title(data: Fields) -> str:
    size, version, name = part(data, "size"), text(data, "pacemaker"), text(data, "cluster")
    counts = ((number(size, f"{word}s"), word) for word in ("node", "resource", "constraint"))
    words = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
    title = f"{text(data, 'source')}: {words}"
    return title + "".join((f", cluster {name}" if name else "", f", Pacemaker {version}" if version else ""))


def _chapters(data: Fields) -> Iterator[tuple[str, list[str], str]]:
    """Yield each chapter's title, its entries, and what is written when it has none."""
    plan = part(data, "plan")
    yield "Cannot be loaded:", _reports(data, "refused"), "nothing: everything loads"
    yield "Loads with another meaning, or without effect:", _reports(data, "changed"), "nothing"
    missing = [
        f"{text(each, 'agent')}, for {', '.join(texts(each, 'resources'))}" for each in listed(data, "missing_agents")
    ]
    yield "Agents that are not installed on this machine:", missing, "none"
    unjudged = "not judged: what cannot be loaded may be a device"
    fine = "every node is covered by a device" if flag(data, "is_judged") else unjudged
    yield "Fencing:", _reports(data, "unfenced"), fine
    if text(plan, "problem"):
        yield "The first plan:", [text(plan, "problem")], ""
    elif not flag(plan, "is_known"):
        yield "The first plan:", [], "the file does not say what runs where: take it from the running cluster (--live)"
    else:
        others = len(listed(plan, "changes")) - len(texts(plan, "interrupted"))
        more = f"; {others} other {'change' if others == 1 else 'changes'}: crm simulate --cib FILE" if others else ""
        fine = f"nothing stops, and nothing moves{more}"
        too = texts(plan, "by_pacemaker_too")
        interrupted = [
            f"{each} ({'so does Pacemaker' if each in too else 'Pacemaker does not'})"
            for each in texts(plan, "interrupted")
        ]
        yield "What the first plan would interrupt:", interrupted, fine
        yield "Placed in another way than by Pacemaker:", texts(plan, "otherwise"), "nothing"


def _reports(data: Fields, name: str) -> list[str]:
    entries = []
    for each in listed(data, name):
        place = text(each, "place").replace(f"{text(data, 'source')}:", "line ", 1)
        place = f"{place}: " if place else ""
        remedy = f" ({text(each, 'remedy')})" if text(each, "remedy") else ""
        entries.append(f"{place}{text(each, 'message')}{remedy}")
    return entries


def _verdict(screen: Screen, data: Fields) -> list[str]:
    if flag(data, "may_come_in"):
        return [
            screen.paint("YES: it may come in as it is.", Colour.GREEN),
            "How, without a stop of any service: docs/howto/come-from-pacemaker.md",
        ]
    return folded(f"NO: {'; '.join(texts(data, 'objections'))}.", indent="", later="    ")
