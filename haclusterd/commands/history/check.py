"""The verb that compares the nodes' histories, and says what is missing or differs.

Invariant: histories count as equal only when every node answered, none has a gap, and the chain of what each has
written, read again from its disk, ends in the same link everywhere.
"""

from collections.abc import Iterable, Iterator, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.remembered import Comparison, HistorySummary, Span
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.history import HistoryCheck, NodeHistory, Range
from haclusterd.verbs.arguments import Arguments

SHOWN_MAX = 5


def checked(context: Context, _: Arguments) -> Outcome[HistoryCheck]:
    """Answer what each node's history holds, and object to every difference (schema `haclusterd.history_check/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the comparison of histories"))
    found = context.past.compared()
    problems = tuple(_problems(found))
    return Outcome(
        reports=problems or (report(Code.HISTORIES_EQUAL, count=len(found.summaries)),),
        answer=HistoryCheck(
            now=context.now,
            is_equal=not problems,
            silent=tuple(found.silent),
            nodes=tuple(_as_data(each) for each in found.summaries),
        ),
    )


def _as_data(summary: HistorySummary) -> NodeHistory:
    return NodeHistory(
        node=summary.node, last=summary.last, forgotten=summary.forgotten, rows=summary.rows,
        gaps=tuple(Range(first=gap.first, last=gap.last) for gap in summary.gaps),
        damaged=tuple(Range(first=span.first, last=span.last) for span in summary.damaged),
        digest=summary.blocks[-1][1] if summary.blocks else "", versions=len(summary.versions),
        problem=summary.problem,
    )  # fmt: skip


def _problems(found: Comparison) -> Iterator[ReportItem]:
    for node in found.silent:
        yield _differs(node, "did not answer")
    for each in found.summaries:
        if each.problem:
            yield _differs(each.node, each.problem)
        if each.gaps:
            yield _differs(each.node, f"entries {_spans(each.gaps)} are missing")
        if each.damaged:
            yield _differs(each.node, f"entries {_spans(each.damaged)} are damaged on its disk; they are fetched again")
    readable = [each for each in found.summaries if not each.problem]
    for other in readable[1:]:
        yield from _differences(readable[0], other)


def _differences(one: HistorySummary, other: HistorySummary) -> Iterator[ReportItem]:
    if one.forgotten != other.forgotten:
        yield _differs(other.node, f"begins after entry {other.forgotten}, that of {one.node} after {one.forgotten}")
    end = min((each.blocks[-1][0] for each in (one, other) if each.blocks), default=0)
    if other.last < one.last and not other.gaps:
        yield _differs(other.node, f"ends at entry {other.last}, that of {one.node} at {one.last}")
    links = _first_difference(one, other, 1, end)
    if links is not None:
        yield _differs(other.node, f"tells something else than that of {one.node} from about entry {links} on")
        return
    texts = _first_difference(one, other, 2, end)
    if texts is not None:
        yield _differs(other.node, f"has other words than that of {one.node} from about entry {texts} on")
    if one.versions and other.versions and set(one.versions) != set(other.versions):
        numbers = sorted({number for number, _ in set(one.versions) ^ set(other.versions)})
        yield _differs(other.node, f"has other versions of the configuration than that of {one.node}: {_some(numbers)}")


def _first_difference(one: HistorySummary, other: HistorySummary, part: int, end: int) -> int | None:
    """Return where the first block that differs begins; None when all that both have are equal."""
    theirs = {block[0]: block[part] for block in other.blocks}
    before = max(one.forgotten, other.forgotten)
    for block in one.blocks:
        if block[0] <= end and block[0] in theirs and theirs[block[0]] != block[part]:
            return before + 1
        before = block[0]
    return None


def _differs(node: str, problem: str) -> ReportItem:
    return report(Code.HISTORY_DIFFERS, node=node, problem=problem)


def _spans(spans: Sequence[Span]) -> str:
    return _some([f"{span.first}-{span.last}" if span.last > span.first else str(span.first) for span in spans])


def _some(items: Iterable[object]) -> str:
    listed = [str(item) for item in items]
    more = f" and {len(listed) - SHOWN_MAX} more" if len(listed) > SHOWN_MAX else ""
    return ", ".join(listed[:SHOWN_MAX]) + more


VERBS = (carry_out_by("history.check", checked, answers(HistoryCheck)),)
