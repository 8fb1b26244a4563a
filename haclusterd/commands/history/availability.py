"""The verb that tells how available services were: from the CIB, or of a time, from the history.

What nobody knew counts as unknown, never as up: a service whose node had a new incarnation and was not probed yet, the
time that the history does not hold, and on a node without quorum, everything since it knew the others last.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from haclusterd.commands.context import Context, Event
from haclusterd.commands.history.history import moment_of
from haclusterd.commands.names import find_resource, parts_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.availability import (
    PROMOTED,
    Cause,
    Outage,
    ServiceAccount,
    ServiceState,
    Sums,
    resource_of,
    service_name,
)
from haclusterd.model.change_kinds import ChangeKind
from haclusterd.model.configuration import Group
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, replace
from haclusterd.model.remembered import HistoryQuery
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.availability import Availabilities, ServiceAvailability, ShownOutage
from haclusterd.verbs.arguments import Arguments

ROWS_MAX: Final = 10_000
"""Of the history, for one answer."""
OUTAGES_MAX: Final = 100
"""Of one service in one answer."""
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a service was in one state."""

    state: ServiceState
    cause: Cause | None
    begin: WallTime
    end: WallTime


def availability(context: Context, arguments: Arguments) -> Outcome[Availabilities]:
    """Answer how available services were (schema `haclusterd.availability/1`)."""
    since = moment_of(context, "since", arguments.word("since"))
    found = find_resource(context, arguments.word("resource")) if arguments.word("resource") else None
    if isinstance(since, ReportItem) or isinstance(found, ReportItem):
        return refusal(*(each for each in (since, found) if isinstance(each, ReportItem)))
    if since is not None and context.past is None:
        return refusal(report(Code.NOT_OFFLINE, what="--since"))
    accounts = _accounts(context, found)
    groups = _groups(context, found)
    if since is None:
        shown = tuple(_of_account(name, each, context.now) for name, each in accounts.items())
        return _answer(context, None, _with_groups(shown, groups), (), arguments)
    assert context.past is not None
    resources = tuple(dict.fromkeys(map(resource_of, accounts))) if found is not None else ()
    kinds = (str(ChangeKind.AVAILABILITY_CHANGED),)
    past = context.past.recall(HistoryQuery(limit=ROWS_MAX, since=since, resources=resources, kinds=kinds))
    stretches = stretches_of(accounts, past.events, since, context.now)
    shown = tuple(_of_stretches(name, accounts[name], each) for name, each in stretches.items())
    reports = [report(Code.HISTORY_INCOMPLETE, problem=past.problem)] if past.problem else []
    if past.left_out:
        problem = f"more than {ROWS_MAX} changes of services fit: the oldest are left out; ask for a shorter time"
        reports.append(report(Code.HISTORY_INCOMPLETE, problem=problem))
    return _answer(context, since, _with_groups(shown, groups), reports, arguments)


def _accounts(context: Context, wanted: ResourceId | None) -> dict[str, ServiceAccount]:
    """Return the accounts that are asked for; without quorum, what came after the last news is unknown."""
    cib = context.cib
    parts = None if wanted is None else {wanted, *parts_of(cib.configuration, wanted)}
    live = context.live
    last_known = context.now - live.stale_ms if live is not None and not live.has_quorum else None
    found = {}
    for name, account in sorted(cib.status.availability.services.items()):
        if parts is None or resource_of(name) in parts:
            found[name] = account if last_known is None else \
                account.becomes(ServiceState.UNKNOWN, Cause.NO_QUORUM, WallTime(last_known))
    return found


def _groups(context: Context, wanted: ResourceId | None) -> dict[str, str]:
    """Return the groups that are asked for, each with its last member, by which a group is up or not.

    Members start in order and stop the other way round (Pacemaker Explained, "Groups"): while the last one is up, the
    others are.
    """
    configuration = context.cib.configuration
    parts = None if wanted is None else {wanted, *parts_of(configuration, wanted)}
    return {
        name: each.members[-1]
        for name, each in configuration.resources.items()
        if isinstance(each, Group) and each.members and (parts is None or name in parts)
    }


def _with_groups(
    shown: tuple[ServiceAvailability, ...], groups: Mapping[str, str]
) -> tuple[ServiceAvailability, ...]:
    """Return services with a row for each group, in order of name."""
    by_name = {each.resource: each for each in shown if not each.role}
    made = [
        replace(by_name[last], resource=group, judged_by=last) for group, last in groups.items() if last in by_name
    ]
    return tuple(sorted((*shown, *made), key=lambda each: (each.resource, each.role))) if made else shown


def _answer(
    context: Context,
    since: WallTime | None,
    shown: tuple[ServiceAvailability, ...],
    reports: Sequence[ReportItem],
    arguments: Arguments,
) -> Outcome[Availabilities]:
    text = as_csv(shown) if arguments.flag("csv") else None
    return Outcome(reports=tuple(reports), answer=Availabilities(context.now, since, shown, text))


# -- what the history says -------------------------------------------------------------------------------------------


def stretches_of(
    accounts: Mapping[str, ServiceAccount], events: Iterable[Event], since: WallTime, now: WallTime
) -> dict[str, tuple[Stretch, ...]]:
    """Return in which states each service was from `since` to `now`, oldest first, without what is before it is known.

    A row says what a service became and what it was since when; where that does not fit to the row before, rows are
    missing, and the time between is unknown.
    """
    begun: dict[str, list[Stretch]] = {name: [] for name in accounts}
    for event in events:
        facts, resource = event.change.facts, event.change.resource
        if resource is None or not facts.state:
            continue
        name = service_name(resource, is_promoted=facts.role == PROMOTED)
        if name in begun:
            _add(begun[name], event, since)
    for name, account in accounts.items():
        _close(begun[name], Stretch(account.state, account.cause, max(account.since, since), now))
    return {name: tuple(each) for name, each in begun.items()}


def _add(found: list[Stretch], event: Event, since: WallTime) -> None:
    """Take a row: the stretch before it is complete, and another begins."""
    facts = event.change.facts
    begin = WallTime(_number(facts.since, event.at))
    if facts.was:
        began = max(since, WallTime(_number(facts.was_since, begin)))
        _close(found, Stretch(_state(facts.was), _cause(facts.was_cause), began, begin))
    if begin >= since:
        found.append(Stretch(_state(facts.state), _cause(facts.cause), begin, begin))


def _close(found: list[Stretch], stretch: Stretch) -> None:
    """Take a whole stretch in the place of what is known of its beginning; what lies between is unknown."""
    known_to = found[-1].end if found else stretch.begin
    if found and found[-1].begin == found[-1].end:
        found.pop()
    if known_to < stretch.begin:
        found.append(Stretch(ServiceState.UNKNOWN, None, known_to, stretch.begin))
    if stretch.begin < stretch.end:
        found.append(stretch)


def _state(text: str) -> ServiceState:
    """Read a state, which another version of this program may have written."""
    try:
        return ServiceState(text)
    except ValueError:
        return ServiceState.UNKNOWN


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() else otherwise


def _cause(text: str) -> Cause | None:
    """Read a cause, which another version of this program may have written."""
    try:
        return Cause(text) if text else None
    except ValueError:
        return Cause.OTHER


# -- what is shown ---------------------------------------------------------------------------------------------------


def _of_account(name: str, account: ServiceAccount, now: WallTime) -> ServiceAvailability:
    going_on = () if account.outage is None else (_shown_outage(account.outage, None, now),)
    return _shown(name, account, account.known_from, account.until(now), going_on)


def _of_stretches(name: str, account: ServiceAccount, stretches: tuple[Stretch, ...]) -> ServiceAvailability:
    sums, outages = Sums(), list[ShownOutage]()
    outage: Outage | None = None
    for each in stretches:
        sums = sums.and_state(each.state, each.cause, each.end - each.begin)
        if each.state is ServiceState.DOWN:
            cause = each.cause or Cause.OTHER
            outage = Outage(each.begin, cause) if outage is None else outage.also(cause)
        elif each.state is ServiceState.UP and outage is not None:
            sums = sums.and_outage(outage.cause, each.begin - outage.since)
            outages.append(_shown_outage(outage, each.begin, each.begin))
            outage = None
    if outage is not None:
        outages.append(_shown_outage(outage, None, stretches[-1].end))
    known_from = stretches[0].begin if stretches else account.since
    return _shown(name, account, known_from, sums, outages[-OUTAGES_MAX:])


def _shown_outage(outage: Outage, until: WallTime | None, end: WallTime) -> ShownOutage:
    return ShownOutage(outage.since, until, max(0, end - outage.since), str(outage.cause), outage.cause.is_planned)


def _shown(
    name: str, account: ServiceAccount, known_from: WallTime, sums: Sums, outages: Sequence[ShownOutage]
) -> ServiceAvailability:
    return ServiceAvailability(
        resource=resource_of(name),
        role=name.partition("/")[2],
        state=str(account.state),
        since=account.since,
        cause=str(account.cause or ""),
        known_from=known_from,
        up_ms=sums.up_ms,
        planned_ms=sums.planned_ms,
        unplanned_ms=sums.unplanned_ms,
        unknown_ms=sums.unknown_ms,
        up_ppm=_ppm(sums.up_ms, sums.planned_ms + sums.unplanned_ms),
        available_ppm=_ppm(sums.up_ms, sums.unplanned_ms),
        planned=sums.planned,
        unplanned=sums.unplanned,
        longest_ms=sums.longest_ms,
        outages=tuple(outages),
    )


def _ppm(up_ms: int, down_ms: int) -> int | None:
    """Return millionths, rounded down: what was not whole is not called so."""
    return MILLION * up_ms // (up_ms + down_ms) if up_ms + down_ms else None


COLUMNS: Final = (
    "resource", "role", "state", "since", "cause", "known_from", "up_ms", "planned_ms", "unplanned_ms", "unknown_ms",
    "up_ppm", "available_ppm", "planned", "unplanned", "longest_ms", "judged_by",
)  # fmt: skip


def as_csv(services: Iterable[ServiceAvailability]) -> str:
    """Return services as RFC 4180 says, with a line of names; times in ms, moments in ms since 1970."""
    target = io.StringIO()
    written = csv.writer(target, lineterminator="\n")
    written.writerow(COLUMNS)
    written.writerows(_row(each) for each in services)
    return target.getvalue()


def _row(service: ServiceAvailability) -> Iterator[object]:
    values = (getattr(service, name) for name in COLUMNS)
    return ("" if each is None else each for each in values)


VERBS = (carry_out_by("availability", availability, answers(Availabilities)),)
