"""Verbs about what happened: events, and those that are still to come."""

from collections.abc import Mapping
from datetime import UTC, datetime

from haclusterd.commands.context import Context, Event
from haclusterd.commands.names import find_given_node, find_node, find_resource, parts_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import durations
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.remembered import Because, FollowQuery, HistoryQuery, Missing, Position, read_position
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.history import Events, Followed, FollowedEvent, MissingEntries, ShownEvent
from haclusterd.verbs.arguments import Arguments
from haclusterd.verbs.history import FOLLOW_LIMIT

DEFAULT_LIMIT = 50
MAX_SHOWN = 40
DEFAULT_WAIT_S = 10
WHY_MISSING: Mapping[Because, str] = {
    Because.FORGOTTEN: "entries {first} to {last} are older than the cluster keeps its history",
    Because.UNKNOWN: "entries {first} to {last} are not in this node's history",
    Because.OTHER_HISTORY: "entries {first} to {last} are not what they were: the cluster was recovered or restored",
}


def events(context: Context, arguments: Arguments) -> Outcome[Events]:
    """Answer the newest events, oldest first (schema `haclusterd.events/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="the list of events"))
    nodes = [find_node(context, word) for word in _named(arguments, "node", "nodes")]
    since, until = (moment_of(context, name, arguments.word(name)) for name in ("since", "until"))
    objections = tuple(each for each in (*nodes, since, until) if isinstance(each, ReportItem))
    if objections or isinstance(since, ReportItem) or isinstance(until, ReportItem):
        return refusal(*objections)
    resources = [ResourceId(word) for word in _named(arguments, "resource", "resources")]
    parts = (part for each in resources for part in (each, *parts_of(context.cib.configuration, each)))
    found = context.past.recall(
        HistoryQuery(
            limit=arguments.integer("limit", DEFAULT_LIMIT),
            since=since,
            until=until,
            nodes=tuple(each for each in nodes if not isinstance(each, ReportItem)),
            resources=tuple(dict.fromkeys(parts)),
            kinds=arguments.words("kinds"),
        )
    )
    # What was deleted is still in the history.
    recalled = {event.change.resource for event in found.events}
    looked_up = [find_resource(context, each) for each in resources if each not in recalled]
    unknown = [each for each in looked_up if isinstance(each, ReportItem)]
    if unknown:
        return refusal(*unknown)
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=found.problem),) if found.problem else (),
        answer=Events(
            now=context.now,
            since=context.live.started_at,
            left_out=found.left_out,
            events=tuple(shown_event(event) for event in found.events),
            next=str(found.end),
        ),
    )


def _named(arguments: Arguments, one: str, several: str) -> tuple[str, ...]:
    """Return what was named by either of two arguments, once each."""
    return tuple(dict.fromkeys(filter(None, (arguments.word(one), *arguments.words(several)))))


def follow(context: Context, arguments: Arguments) -> Outcome[Followed]:
    """Answer what comes after a position, as soon as there is something (schema `haclusterd.followed/1`)."""
    if context.live is None or context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="what happens next"))
    node = find_given_node(context, arguments.word("node"))
    since, after = moment_of(context, "since", arguments.word("since")), _position(arguments.word("after"))
    objections = tuple(each for each in (node, since, after) if isinstance(each, ReportItem))
    if isinstance(node, ReportItem) or isinstance(since, ReportItem) or isinstance(after, ReportItem):
        return refusal(*objections)
    resource = arguments.word("resource")
    parts = (ResourceId(resource), *parts_of(context.cib.configuration, ResourceId(resource))) if resource else ()
    query = FollowQuery(
        limit=arguments.integer("limit", FOLLOW_LIMIT), after=after, since=since, node=node,
        resources=tuple(dict.fromkeys(parts)), kinds=arguments.words("kinds"),
    )  # fmt: skip
    found = context.past.follow(query, 1000 * arguments.integer("wait_s", DEFAULT_WAIT_S))
    if found.is_refused:
        return refusal(report(Code.TRY_AGAIN, problem=found.problem))
    if resource and not found.events:
        unknown = find_resource(context, resource)
        if isinstance(unknown, ReportItem):
            return refusal(unknown)
    events = tuple(extended(FollowedEvent, shown_event(event), id=str(position)) for position, event in found.events)
    return Outcome(
        reports=(report(Code.HISTORY_INCOMPLETE, problem=found.problem),) if found.problem else (),
        answer=Followed(
            now=context.now,
            events=events,
            missing=None if found.missing is None else _missing(found.missing),
            next=str(found.next),
            has_more=found.has_more,
            is_behind=found.is_behind,
        ),
    )


def _position(text: str) -> Position | ReportItem | None:
    if not text:
        return None
    found = read_position(text)
    if found is None:
        problem = f"{text[:MAX_SHOWN]!r} is no position (take `id` or `next` of an answer, or 0 for the beginning)"
        return report(Code.BAD_ARGUMENT, name="after", problem=problem)
    return found


def _missing(missing: Missing) -> MissingEntries:
    text = WHY_MISSING[missing.because].format(first=missing.first, last=missing.last)
    return MissingEntries(first=missing.first, last=missing.last, because=str(missing.because), text=text)


def moment_of(context: Context, name: str, text: str) -> WallTime | ReportItem | None:
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


def shown_event(event: Event) -> ShownEvent:
    """Return an event as it is answered."""
    return ShownEvent(
        index=event.index, at=event.at, kind=str(event.change.kind), node=event.change.node,
        resource=event.change.resource, text=event.change.text, author=event.author, reason=event.reason,
        order=event.order, action=event.change.facts.action, outcome=event.change.facts.outcome,
        cause=event.change.facts.cause, state=event.change.facts.state, incident=event.change.incident,
    )  # fmt: skip


VERBS = (
    carry_out_by("history.events", events, answers(Events)),
    carry_out_by("history.follow", follow, answers(Followed)),
)
