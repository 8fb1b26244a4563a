"""Verbs about what happened: events."""

from datetime import UTC, datetime

from haclusterd.commands.arguments import Argument, Arguments, Kind
from haclusterd.commands.context import Context, Event
from haclusterd.commands.names import find_node, find_resource, parts_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import Cost, Permission, Verb
from haclusterd.model import durations
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.remembered import HistoryQuery
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report

DEFAULT_LIMIT = 50
MAX_LIMIT = 10_000
MAX_SHOWN = 40


def events(context: Context, arguments: Arguments) -> Outcome:
    """Answer the newest events, oldest first (schema `haclusterd.events/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the list of events"))
    node = find_node(context, arguments.word("node")) if arguments.word("node") else None
    since, until = (_moment(context, name, arguments.word(name)) for name in ("since", "until"))
    objections = tuple(each for each in (node, since, until) if isinstance(each, ReportItem))
    if isinstance(node, ReportItem) or isinstance(since, ReportItem) or isinstance(until, ReportItem):
        return refusal(*objections)
    resource = arguments.word("resource")
    parts = (ResourceId(resource), *parts_of(context.cib.configuration, ResourceId(resource))) if resource else ()
    found = context.past.recall(
        HistoryQuery(
            limit=arguments.integer("limit", DEFAULT_LIMIT),
            since=since,
            until=until,
            node=node,
            resources=tuple(dict.fromkeys(parts)),
            kinds=arguments.words("kinds"),
        )
    )
    if resource and not any(event.change.resource == resource for event in found.events):
        unknown = find_resource(context, resource)
        if isinstance(unknown, ReportItem):
            return refusal(unknown)
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=found.problem),) if found.problem else (),
        data={
            "schema": "haclusterd.events/1",
            "now": context.now,
            "since": context.live.started_at,
            "left_out": found.left_out,
            "events": [_event(event) for event in found.events],
        },
    )


def _moment(context: Context, name: str, text: str) -> WallTime | ReportItem | None:
    """Read how far back (`10min`) or when (ISO 8601; without a zone it is UTC)."""
    if not text:
        return None
    try:
        return WallTime(context.now - durations.parse(text))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        shown = text[:MAX_SHOWN]
        problem = f"{shown!r} is neither a span nor a time (write it like 10min or 2026-06-01T12:00:00Z)"
        return report(Code.BAD_ARGUMENT, name=name, problem=problem)
    zoned = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return WallTime(int(zoned.timestamp() * 1000))


def _event(event: Event) -> Json:
    return {
        "index": event.index, "at": event.at, "kind": str(event.change.kind), "node": event.change.node,
        "resource": event.change.resource, "text": event.change.text, "author": event.author, "reason": event.reason,
        "order": event.order,
    }  # fmt: skip


VERBS = (
    Verb("history.events", events, Permission.READ, "Show what happened, newest last", (
        Argument("node", Kind.WORD, "only of this node"),
        Argument("resource", Kind.WORD, "only of this resource and what is in it"),
        Argument("kinds", Kind.WORDS, "only of these kinds, as `kind` says in the answer"),
        Argument("since", Kind.WORD, "how far back, as in 10min, or from when, as in 2026-06-01T12:00:00Z"),
        Argument("until", Kind.WORD, "the same for the end"),
        Argument("limit", Kind.INTEGER, "how many, newest first", minimum=1, maximum=MAX_LIMIT),
    ), cost=Cost.LONG),
)  # fmt: skip
