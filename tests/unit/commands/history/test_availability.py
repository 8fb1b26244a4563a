"""`crm availability`: what the CIB and the history say of services, in sums, outages, and as comma-separated values."""

import pytest

from haclusterd.cib.changes import Change, ChangeKind, Facts
from haclusterd.cli.render.availability import percent, render
from haclusterd.cli.render.terminal import Screen
from haclusterd.commands.context import Context, Event, LiveView
from haclusterd.commands.history.availability import Stretch, availability, stretches_of
from haclusterd.model.availability import Availability, Cause, Outage, ServiceAccount, ServiceState, Sums
from haclusterd.model.cluster import Cib, Status
from haclusterd.model.configuration import Configuration, Group
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from haclusterd.verbs.answers.availability import Availabilities
from haclusterd.verbs.arguments import Arguments
from tests.administered_clusters import ListedPast
from tests.unit.situations import primitive

UP, DOWN, UNKNOWN = ServiceState
NOW = WallTime(1_000_000)
DB = ResourceId("db")


def account(
    state: ServiceState, since: int, cause: Cause | None = None, outage: Outage | None = None
) -> ServiceAccount:
    sums = Sums(up_ms=600_000, planned_ms=10_000, unplanned_ms=2_500, unknown_ms=500, planned=1, unplanned=2,
                longest_ms=1_500)  # fmt: skip
    return ServiceAccount(WallTime(since - 613_000), state, WallTime(since), cause, outage, sums)


def row(at: int, state: str, was: str = "", was_since: int = 0, *, cause: str = "", was_cause: str = "",
        since: int = 0, role: str = "") -> Event:  # fmt: skip
    facts = Facts(state=state, cause=cause, was=was, was_cause=was_cause, was_since=str(was_since) if was else "",
                  since=str(since) if since else "", role=role)  # fmt: skip
    return Event(at, WallTime(at), Change(ChangeKind.AVAILABILITY_CHANGED, None, DB, "", facts))


def asked(services: dict[str, ServiceAccount], *events: Event, live: LiveView | None = None) -> Context:
    site = Group(ResourceId("site"), members=(DB,))
    resources = {each.id: each for each in (primitive("db"), primitive("web"), site)}
    cib = Cib(configuration=Configuration(resources=resources), status=Status(availability=Availability(services)))
    return Context(cib, NOW, "root@n1", live=live, past=ListedPast(events))


def answered(context: Context, *, resource: str = "", since: str = "", csv: bool = False) -> Availabilities:
    outcome = availability(context, Arguments({"resource": resource, "since": since, "csv": csv}))
    assert isinstance(outcome.answer, Availabilities), outcome.reports
    return outcome.answer


def test_all_that_is_known_is_in_the_cib() -> None:
    db, _ = answered(asked({"db": account(UP, 900_000)})).services
    assert (db.up_ms, db.planned_ms, db.unplanned_ms, db.unknown_ms) == (700_000, 10_000, 2_500, 500)
    assert (db.up_ppm, db.available_ppm) == (982_456, 996_441)
    assert (db.known_from, db.outages) == (287_000, ())


def test_what_goes_on_counts_up_to_now() -> None:
    outage = Outage(WallTime(950_000), Cause.NODE_LOST)
    db, _ = answered(asked({"db": account(DOWN, 960_000, Cause.FAILURE, outage)})).services
    assert db.unplanned_ms == 2_500 + 40_000
    (shown,) = db.outages
    assert (shown.since, shown.until, shown.ms, shown.cause) == (950_000, None, 50_000, "node-lost")
    assert not shown.is_planned


def test_without_quorum_nothing_is_up_since_the_last_news() -> None:
    live = LiveView(NodeName("n1"), has_quorum=False, stale_ms=30_000)
    db, _ = answered(asked({"db": account(UP, 900_000)}, live=live)).services
    assert (db.state, db.cause, db.unknown_ms) == ("unknown", "no-quorum", 500 + 30_000)


@pytest.mark.parametrize(
    ("since", "events", "now", "expected"),
    [
        # Nothing has happened in that time.
        (900_000, [], account(UP, 100_000), [(UP, None, 900_000, NOW)]),
        # What was before the first row is in it.
        (900_000, [row(950_000, "down", "up", 100_000, cause="failure")], account(DOWN, 950_000, Cause.FAILURE),
         [(UP, None, 900_000, 950_000), (DOWN, Cause.FAILURE, 950_000, NOW)]),
        # It was not known before.
        (900_000, [row(950_000, "up")], account(UP, 950_000), [(UP, None, 950_000, NOW)]),
        (900_000, [row(960_000, "down", "up", 940_000, cause="failure")], account(DOWN, 960_000, Cause.FAILURE),
         [(UP, None, 940_000, 960_000), (DOWN, Cause.FAILURE, 960_000, NOW)]),
        # An outage that began before it was found.
        (900_000, [row(950_000, "down", "up", 1, cause="node-lost", since=947_000),
                   row(955_000, "up", "down", 947_000, was_cause="node-lost")], account(UP, 955_000),
         [(UP, None, 900_000, 947_000), (DOWN, Cause.NODE_LOST, 947_000, 955_000), (UP, None, 955_000, NOW)]),
        # Rows are missing.
        (900_000, [row(910_000, "down", "up", 1, cause="failure"),
                   row(990_000, "down", "up", 980_000, cause="failure")],
         account(DOWN, 990_000, Cause.FAILURE),
         [(UP, None, 900_000, 910_000), (UNKNOWN, None, 910_000, 980_000), (UP, None, 980_000, 990_000),
          (DOWN, Cause.FAILURE, 990_000, NOW)]),
        (900_000, [row(910_000, "down", "up", 1, cause="failure")], account(UP, 980_000),
         [(UP, None, 900_000, 910_000), (UNKNOWN, None, 910_000, 980_000), (UP, None, 980_000, NOW)]),
        # Words of a later version.
        (900_000, [row(910_000, "asleep", "up", 1, cause="night"),
                   row(920_000, "down", "asleep", 910_000, cause="night")],
         account(DOWN, 920_000, Cause.OTHER),
         [(UP, None, 900_000, 910_000), (UNKNOWN, None, 910_000, 920_000), (DOWN, Cause.OTHER, 920_000, NOW)]),
    ],
)  # fmt: skip
def test_rows_of_the_history_become_stretches_of_one_state(
    since: int, events: list[Event], now: ServiceAccount, expected: list[tuple[ServiceState, Cause | None, int, int]]
) -> None:
    (found,) = stretches_of({"db": now}, events, WallTime(since), NOW).values()
    known = [(each.state, each.begin, each.end) for each in found]
    assert known == [(state, begin, end) for state, _, begin, end in expected]
    causes = [each.cause for each in found if each.state is DOWN]
    assert causes == [cause for state, cause, _, _ in expected if state is DOWN]
    assert all(isinstance(each, Stretch) for each in found)


def test_a_time_is_read_from_the_history() -> None:
    events = (
        row(950_000, "down", "up", 1, cause="standby"), row(952_000, "down", "down", 950_000, cause="failure",
                                                            was_cause="standby"),
        row(955_000, "up", "down", 952_000, was_cause="failure"), row(960_000, "up", role="promoted"),
    )  # fmt: skip
    services = {"db": account(UP, 955_000), "db/promoted": account(UP, 960_000)}
    db, promoted, site = answered(asked(services, *events), since="100s").services
    assert (db.up_ms, db.planned_ms, db.unplanned_ms) == (50_000 + 45_000, 2_000, 3_000)
    assert [(each.since, each.until, each.cause) for each in db.outages] == [(950_000, 955_000, "failure")]
    assert (db.planned, db.unplanned, db.longest_ms, db.known_from) == (0, 1, 5_000, 900_000)
    assert (promoted.role, promoted.known_from, promoted.up_ms) == ("promoted", 960_000, 40_000)
    assert (site.judged_by, site.outages, site.up_ms) == ("db", db.outages, db.up_ms)


def test_a_group_is_up_while_its_last_member_is() -> None:
    context = asked({"db": account(UP, 900_000), "web": account(DOWN, 950_000, Cause.STOPPED)})
    for members, state in ((("db", "web"), "down"), (("web", "db"), "up")):
        site = Group(ResourceId("site"), members=tuple(map(ResourceId, members)))
        resources = {**context.cib.configuration.resources, site.id: site}
        cib = replace(context.cib, configuration=Configuration(resources=resources))
        answer = answered(replace(context, cib=cib))
        assert [(each.resource, each.state) for each in answer.services] == [
            ("db", "up"), ("site", state), ("web", "down"),
        ]  # fmt: skip
        lines = render(Screen(), answer)
        assert lines[2].startswith("site (group)")
    assert [each.resource for each in answered(asked({"web": account(UP, 1)})).services] == ["web"]


def test_only_what_is_asked_for() -> None:
    services = {"db": account(UP, 1), "web": account(UP, 1)}
    assert [each.resource for each in answered(asked(services), resource="site").services] == ["db", "site"]
    assert [each.resource for each in answered(asked(services), resource="db").services] == ["db"]
    outcome = availability(asked(services), Arguments({"resource": "dbb", "since": "x", "csv": False}))
    assert [each.code for each in outcome.reports] == [Code.BAD_ARGUMENT, Code.NO_SUCH_RESOURCE]


def test_a_file_has_no_history() -> None:
    context = replace(asked({"db": account(UP, 1)}), past=None)
    assert answered(context).services[0].state == "up"
    outcome = availability(context, Arguments({"resource": "", "since": "1h", "csv": False}))
    assert [each.code for each in outcome.reports] == [Code.NOT_OFFLINE]


def test_comma_separated_values() -> None:
    text = answered(asked({"db/promoted": account(UP, 900_000)}), csv=True).csv
    assert text == (
        "resource,role,state,since,cause,known_from,up_ms,planned_ms,unplanned_ms,unknown_ms,up_ppm,available_ppm,planned,"
        "unplanned,longest_ms,judged_by\n"
        "db,promoted,up,900000,,287000,700000,10000,2500,500,982456,996441,1,2,1500,\n"
    )
    assert render(Screen(), answered(asked({"db": account(UP, 900_000)}), csv=True))[0].startswith("resource,role,")


@pytest.mark.parametrize(
    ("ppm", "text"), [(None, "-"), (0, "0.0000%"), (999_999, "99.9999%"), (1_000_000, "100.0000%")]
)
def test_percentages(ppm: int | None, text: str) -> None:
    assert percent(ppm) == text
