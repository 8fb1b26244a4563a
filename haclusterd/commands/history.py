"""Verbs about what happened: events."""

from haclusterd.commands.arguments import Argument, Arguments, Kind
from haclusterd.commands.context import Context, Event
from haclusterd.commands.names import find_node, find_resource, parts_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import Permission, Verb
from haclusterd.model import durations
from haclusterd.model.ids import ResourceId
from haclusterd.model.json_value import Json
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

DEFAULT_LIMIT = 50
MAX_LIMIT = 10_000


def events(context: Context, arguments: Arguments) -> Outcome:
    """Answer the newest events, oldest first (schema `haclusterd.events/1`)."""
    if context.live is None:
        return refusal(report(Code.NOT_OFFLINE, what="the list of events"))
    node = find_node(context, arguments.word("node")) if arguments.word("node") else None
    since_ms = _span_ms(arguments.word("since"))
    objections = tuple(each for each in (node, since_ms) if isinstance(each, ReportItem))
    if objections or isinstance(node, ReportItem) or isinstance(since_ms, ReportItem):
        return refusal(*objections)
    resource = arguments.word("resource")
    if resource and not any(event.change.resource == resource for event in context.live.events):
        unknown = find_resource(context, resource)
        if isinstance(unknown, ReportItem):
            return refusal(unknown)
    parts = {resource, *parts_of(context.cib.configuration, ResourceId(resource))}
    kinds = frozenset(arguments.words("kinds"))
    chosen = [
        event
        for event in context.live.events
        if (node is None or event.change.node == node)
        and (not resource or event.change.resource in parts)
        and (not kinds or event.change.kind in kinds)
        and (since_ms is None or context.now - event.at <= since_ms)
    ]
    limit = arguments.integer("limit", DEFAULT_LIMIT)
    shown = [_event(event) for event in chosen[-limit:]]
    return Outcome(
        data={
            "schema": "haclusterd.events/1",
            "now": context.now,
            "since": context.live.started_at,
            "left_out": len(chosen) - len(shown),
            "events": shown,
        }
    )


def _span_ms(text: str) -> int | ReportItem | None:
    if not text:
        return None
    try:
        return durations.parse(text)
    except ValueError as error:
        return report(Code.BAD_ARGUMENT, name="since", problem=str(error))


def _event(event: Event) -> Json:
    return {
        "index": event.index, "at": event.at, "kind": str(event.change.kind), "node": event.change.node,
        "resource": event.change.resource, "text": event.change.text, "reason": event.reason, "order": event.order,
    }  # fmt: skip


VERBS = (
    Verb("history.events", events, Permission.READ, "Show what happened, newest last", (
        Argument("node", Kind.WORD, "only of this node"),
        Argument("resource", Kind.WORD, "only of this resource and what is in it"),
        Argument("kinds", Kind.WORDS, "only of these kinds, as `kind` says in the answer"),
        Argument("since", Kind.WORD, "how far back, as in 10min"),
        Argument("limit", Kind.INTEGER, "how many, newest first", minimum=1, maximum=MAX_LIMIT),
    )),
)  # fmt: skip
