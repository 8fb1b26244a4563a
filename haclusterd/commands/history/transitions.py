"""What transitions did and why, read from the events of its orders.

An order's key begins with its DC's term and the number of the transition in that term; its end names the order.
"""

import re
from collections.abc import Mapping, Sequence

from haclusterd.cib.changes import ChangeKind
from haclusterd.commands.context import Context, Event, Past
from haclusterd.commands.history.replay import version_at
from haclusterd.commands.names import node_names
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import HistoryQuery
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.history import (
    Cause,
    HistoryInfo,
    OrderedAction,
    Transition,
    TransitionInShort,
    Transitions,
)
from haclusterd.verbs.arguments import Arguments

CAUSES_SHOWN = 3
RECENT_ORDERS = 500
EVENTS_MAX = 10_000
TRANSITIONS_SHOWN = 20
ACTIONS_SHOWN = 3
"""Of each transition of a list."""

CAUSES = frozenset(
    {
        ChangeKind.CLUSTER_FORMED,
        ChangeKind.DC_ELECTED,
        ChangeKind.NODE_JOINED,
        ChangeKind.NODE_LEAVING,
        ChangeKind.NODE_LEFT,
        ChangeKind.NODE_LOST,
        ChangeKind.NODE_FENCED,
        ChangeKind.OPERATION_FAILED,
        ChangeKind.OUTCOME_UNKNOWN,
        ChangeKind.ORDER_NOT_BEGUN,
        ChangeKind.CONFIGURATION_CHANGED,
        ChangeKind.FAILURES_FORGOTTEN,
        ChangeKind.ATTRIBUTE_CHANGED,
        ChangeKind.TICKET_CHANGED,
    }
)
"""Changes that make a DC plan again."""


def transition(context: Context, arguments: Arguments) -> Outcome[Transition]:
    """Answer what a transition ordered, how it ended, and what led to it (schema `haclusterd.transition/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the history of transitions"))
    recent = context.past.recall(HistoryQuery(limit=RECENT_ORDERS, kinds=(str(ChangeKind.ORDER_ISSUED),))).events
    wanted = _counted_back(arguments.word("transition") or "-1", _names(recent))
    events = context.past.recall(HistoryQuery(limit=EVENTS_MAX, transition=wanted)).events if wanted else ()
    name = _find(events, wanted, recent)
    if isinstance(name, ReportItem):
        return refusal(name)
    orders = [event for event in events if _is_order_of(event, name)]
    ends, unwanted = _ends(events), {event.order: event for event in events if _is_void(event)}
    first = orders[0].index
    return Outcome(
        answer=Transition(
            now=context.now,
            transition=name,
            at=orders[0].at,
            because=tuple(_as_data(event) for event in causes_of(events, name, first)),
            actions=tuple(_action(event, ends.get(event.order), unwanted.get(event.order)) for event in orders),
            others=_others(recent),
            version=_version_at(context, orders[0].at),
        )
    )


def transitions(context: Context, arguments: Arguments) -> Outcome[Transitions]:
    """Answer the newest transitions, oldest first (schema `haclusterd.transitions/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the list of transitions"))
    found = context.past.recall(HistoryQuery(limit=EVENTS_MAX))
    ends = _ends(found.events)
    orders: dict[str, list[Event]] = {}
    for event in found.events:
        if _is_order(event) and (name := transition_of(event.order)):
            orders.setdefault(name, []).append(event)
    chosen = _chosen(list(orders), [word for word in arguments.words("chosen") if word != "v"])
    if isinstance(chosen, ReportItem):
        return refusal(chosen)
    names = chosen[-arguments.integer("limit", TRANSITIONS_SHOWN) :]
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=found.problem),) if found.problem else (),
        answer=Transitions(
            now=context.now,
            left_out=len(chosen) - len(names),
            transitions=tuple(_summary(name, orders[name], ends) for name in names),
        ),
    )


def _chosen(names: Sequence[str], words: Sequence[str]) -> Sequence[str] | ReportItem:
    """Return those of the transitions that the words name, in their order: one each, or a range of numbers."""
    found: set[str] = set()
    for word in words:
        span = re.fullmatch(r"([0-9]{1,15}):([0-9]{1,15})", word, re.ASCII)
        if span is not None:
            first, last = map(int, span.groups())
            fitting = {name for name in names if first <= int(name.partition(".")[2]) <= last}
        else:
            wanted = _counted_back(word, names)
            fitting = {name for name in names if wanted in (name, name.partition(".")[2])}
        if not fitting:
            return report(Code.NO_SUCH_TRANSITION, transition=word, remedy=_newest(names))
        found |= fitting
    return [name for name in names if name in found] if words else names


def _summary(name: str, orders: Sequence[Event], ends: Mapping[str, Event]) -> TransitionInShort:
    ended = [ends[order.order] for order in orders if order.order in ends]
    succeeded = sum(end.change.kind is ChangeKind.OPERATION_SUCCEEDED for end in ended)
    return TransitionInShort(
        transition=name,
        at=orders[0].at,
        actions=len(orders),
        failed=len(ended) - succeeded,
        not_ended=len(orders) - len(ended),
        texts=tuple(event.change.text for event in orders[:ACTIONS_SHOWN]),
    )


def info(context: Context, _arguments: Arguments) -> Outcome[HistoryInfo]:
    """Answer what this node's history is about (schema `haclusterd.history_info/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the history"))
    found = context.past.recall(HistoryQuery(limit=EVENTS_MAX))
    configuration = context.cib.configuration
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=found.problem),) if found.problem else (),
        answer=HistoryInfo(
            now=context.now,
            answered_by=context.live.node,
            since=found.events[0].at if found.events else None,
            until=found.events[-1].at if found.events else None,
            events=len(found.events),
            left_out=found.left_out,
            nodes=tuple(node_names(context.cib)),
            resources=tuple(configuration.resources),
            transitions=tuple(_names(found.events)[-TRANSITIONS_SHOWN:]),
        ),
    )


def transition_of(order: str) -> str:
    """Return `TERM.NUMBER` of an order's key; empty when the key has another form."""
    parts = order.split(".")
    return ".".join(parts[:2]) if len(parts) >= 3 else ""


def _version_at(context: Context, at: WallTime) -> int | None:
    """Return which version of the configuration was in force; None: it is not known."""
    version = None if context.versions is None else version_at(context, at)
    return None if version is None else version.number


def _ends(events: Sequence[Event]) -> dict[str, Event]:
    """Return by order how it ended; that the DC no longer wants it is no end: what has begun goes on."""
    return {event.order: event for event in events if event.order and not _is_order(event) and not _is_void(event)}


def _is_void(event: Event) -> bool:
    return event.change.kind is ChangeKind.ORDER_VOIDED


def _is_order(event: Event) -> bool:
    return event.change.kind is ChangeKind.ORDER_ISSUED


def _is_order_of(event: Event, name: str) -> bool:
    return _is_order(event) and transition_of(event.order) == name


def _names(events: Sequence[Event]) -> list[str]:
    """Return the transitions that ordered something, oldest first."""
    return list(dict.fromkeys(name for event in events if _is_order(event) and (name := transition_of(event.order))))


def _others(events: Sequence[Event]) -> tuple[str, ...]:
    return tuple(_names(events)[-20:])


def _counted_back(word: str, names: Sequence[str]) -> str:
    """Return the name of the transition that -1, -2 ... means, counted from the newest; another word as it is."""
    if word == "0":  # As crmsh calls the newest.
        word = "-1"
    if not re.fullmatch(r"-[1-9][0-9]{0,5}", word, re.ASCII):
        return word
    back = int(word)
    return names[back] if -back <= len(names) else "" if back == -1 else word


def _find(events: Sequence[Event], word: str, recent: Sequence[Event]) -> str | ReportItem:
    """Look up `TERM.NUMBER`, or the newest with a NUMBER."""
    fitting = [name for name in _names(events) if word and word in (name, name.partition(".")[2])]
    if fitting:
        return fitting[-1]
    return report(Code.NO_SUCH_TRANSITION, transition=word or "of any number", remedy=_newest(_names(recent)))


def _newest(names: Sequence[str]) -> str:
    known = ", ".join(names[-5:])
    return f"the newest are: {known}" if known else "nothing was ordered, as far as this node knows"


def causes_of(events: Sequence[Event], name: str, first: int) -> list[Event]:
    """Return the newest causes between the orders before this transition and its own."""
    before = [event for event in events if event.index < first]
    since = max((event.index for event in before if _is_order(event) and transition_of(event.order) != name), default=0)
    return [event for event in before if event.index >= since and event.change.kind in CAUSES][-CAUSES_SHOWN:]


def _as_data(event: Event) -> Cause:
    return Cause(index=event.index, at=event.at, kind=str(event.change.kind), text=event.change.text)


def _action(event: Event, end: Event | None, unwanted: Event | None) -> OrderedAction:
    said = end or unwanted
    return OrderedAction(
        order=event.order,
        at=event.at,
        node=event.change.node,
        resource=event.change.resource,
        text=event.change.text,
        ended_at=None if end is None else end.at,
        end="" if said is None else said.change.text,
        is_failed=end is not None and end.change.kind is not ChangeKind.OPERATION_SUCCEEDED,
    )


def newest_transitions(past: Past) -> list[str]:
    """Return the names of the newest transitions, oldest first."""
    recent = past.recall(HistoryQuery(limit=RECENT_ORDERS, kinds=(str(ChangeKind.ORDER_ISSUED),))).events
    return _names(recent)[-20:]


VERBS = (
    carry_out_by("history.transition", transition, answers(Transition)),
    carry_out_by("history.transitions", transitions, answers(Transitions)),
    carry_out_by("history.info", info, answers(HistoryInfo)),
)
