"""What entries say of services: up, down, unknown, why, and to which incident they belong: as scenarios.

Each entry is a second after the one before. A scenario's steps are words; what it says of `db` is compared.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from haclusterd.cib import commands
from haclusterd.cib.changes import Applied, Change, ChangeKind
from haclusterd.cib.derived import availability as availability_module
from haclusterd.cib.edits import Delete, PutResource, PutSets
from haclusterd.commands.context import Event
from haclusterd.commands.history.availability import stretches_of
from haclusterd.model.availability import INCIDENT_QUIET_MS, Cause, Outage, ServiceAccount, ServiceState, Sums
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.devices import DeviceState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import NodeName, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.runtime.replica import Folding
from tests.unit.cib.claimed_devices import A, device, publish
from tests.unit.situations import DB, N1, N2, N3, Cluster, issue, life, order, primitive, record, result

UP, DOWN, UNKNOWN = ServiceState
LOG = Path(__file__).parents[3] / "upgrade" / "codec_3" / "log.jsonl.gz"


class Scenario(Cluster):
    """A cluster with a resource `db`, and what was said of it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.said: list[Change] = []
        self.configure(PutResource(primitive("db")))

    def take(self, words: str) -> None:
        what, _, rest = words.partition(" ")
        applied_before = self.index
        STEPS[what](self, *rest.split())
        assert self.index > applied_before

    def must(self, command: commands.Command, *, by: NodeName = N1) -> Applied:
        applied = super().must(command, by=by)
        if hasattr(self, "said"):
            self.said += [each for each in applied.changes if each.kind is ChangeKind.AVAILABILITY_CHANGED]
        return applied

    def ask(self, action: str, node: str) -> None:
        made = order(f"{action}-{self.index}", ActionName(action), node=NodeName(node),
                     incarnation=self.status(NodeName(node)).incarnation)  # fmt: skip
        self.must(commands.IssueOrders(self.term, (replace(made, dc_term=self.term),)))

    def end(self, operation: str, node: str, code: ExitCode = ExitCode.OK, *, target: ExitCode = ExitCode.OK) -> None:
        """Answer the open order for this, or as a recurring monitor does."""
        self.calls += 1
        status = self.status(NodeName(node))
        key = next((key for key, each in status.orders.items() if each.action == operation), None)
        interval_ms = 10_000 if operation == "monitor" and key is None else 0
        item = result(key, operation, code, target=target, interval_ms=interval_ms, call_id=self.calls)
        assert status.incarnation is not None
        self.must(commands.RecordResults(NodeName(node), status.incarnation, (item,)))

    def set_meta(self, name: str, value: str) -> None:
        self.configure(PutResource(replace(primitive("db"), meta=(AttributeSet("m", ((name, value),)),))))

    def set_property(self, name: str, value: str) -> None:
        block = AttributeSet("cib-bootstrap-options", ((name, value),))
        self.configure(PutSets("properties", (block,)))

    def account(self, service: str = "db") -> ServiceAccount:
        return self.cib.status.availability.services[service]


def _start(scenario: Scenario, node: str) -> None:
    scenario.ask("start", node)
    scenario.end("start", node)


def _fail_start(scenario: Scenario, node: str) -> None:
    scenario.ask("start", node)
    scenario.end("start", node, ExitCode.ERROR)


def _order_stop(scenario: Scenario, node: str) -> None:
    scenario.ask("stop", node)


def _stop(scenario: Scenario, node: str) -> None:
    scenario.ask("stop", node)
    scenario.end("stop", node)


def _monitor(scenario: Scenario, node: str, code: str) -> None:
    scenario.end("monitor", node, ExitCode[code])


def _lose(scenario: Scenario, node: str, *ages: str) -> None:
    status = scenario.status(NodeName(node))
    known = {N1: int(ages[0])} if ages else {}
    scenario.must(commands.Lost(NodeName(node), status.incarnation, scenario.term, "silent", known))


def _kill(scenario: Scenario, node: str) -> None:
    scenario.must(commands.RequestFence(NodeName(node), scenario.status(NodeName(node)).incarnation, "root", "test"))


def _confirm(scenario: Scenario, node: str) -> None:
    incarnation = scenario.status(NodeName(node)).incarnation
    assert incarnation is not None
    scenario.must(commands.Fenced(NodeName(node), incarnation, None, FenceOutcome.CONFIRMED, ""))


def _join(scenario: Scenario, node: str, boot: str, token: str) -> None:
    scenario.must(commands.Join(NodeName(node), life(node, int(boot), int(token))))


def _leaving(scenario: Scenario, node: str) -> None:
    incarnation = scenario.status(NodeName(node)).incarnation
    assert incarnation is not None
    scenario.must(commands.RequestLeave(NodeName(node), incarnation))


def _attribute(scenario: Scenario, node: str, name: str, value: str) -> None:
    scenario.must(commands.SetTransientAttribute(NodeName(node), name, value, author="root", reason=""))


def _probe(scenario: Scenario, node: str, code: str) -> None:
    scenario.calls += 1
    status = scenario.status(NodeName(node))
    assert status.incarnation is not None
    probe = replace(
        order(f"probe-{scenario.index}", ActionName.MONITOR, node=NodeName(node), incarnation=status.incarnation),
        is_probe=True, dc_term=scenario.term,
    )  # fmt: skip
    scenario.must(commands.IssueOrders(scenario.term, (probe,)))
    item = result(probe.key, "monitor", ExitCode[code], target=ExitCode[code], call_id=scenario.calls)
    scenario.must(commands.RecordResults(NodeName(node), status.incarnation, (item,)))


def _elect(scenario: Scenario, node: str) -> None:
    scenario.term = Term(scenario.term + 1)
    scenario.must(commands.DcElected(NodeName(node), life(node), scenario.term))


def _wait(scenario: Scenario, seconds: str) -> None:
    scenario.index += int(seconds)
    scenario.must(commands.ReadBarrier())


def _restart(scenario: Scenario) -> None:
    scenario.must(commands.RestartResource(DB, 60_000, "root", ""))


def _unknown(scenario: Scenario, node: str) -> None:
    scenario.calls += 1
    status = scenario.status(NodeName(node))
    key = next(iter(status.orders))
    scenario.must(record(result(key, "stop", ExitCode.UNKNOWN, kind=ResultKind.UNKNOWN, call_id=scenario.calls)))


STEPS: Mapping[str, Callable[..., None]] = {
    "starts-on": _start, "fails-to-start-on": _fail_start, "is-to-stop-on": _order_stop, "stops-on": _stop,
    "monitor-on": _monitor, "lost": _lose, "killed": _kill, "confirmed-dead": _confirm, "joins": _join,
    "leaving": _leaving, "attribute": _attribute, "probe-on": _probe, "elected": _elect, "seconds": _wait,
    "restart": _restart, "outcome-unknown-on": _unknown,
    "meta": Scenario.set_meta, "property": Scenario.set_property,
}  # fmt: skip


def scenario_of(*steps: str) -> Scenario:
    scenario = Scenario()
    for each in steps:
        scenario.take(each)
    return scenario


def said(scenario: Scenario) -> list[tuple[str, str]]:
    return [(each.facts.state, each.facts.cause) for each in scenario.said]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("starts-on n2", [("up", "")]),
        ("fails-to-start-on n2", [("down", "failure")]),
        ("probe-on n2 NOT_RUNNING", []),
        ("probe-on n2 OK", [("up", "")]),
        ("starts-on n2; is-to-stop-on n2", [("up", ""), ("down", "configuration")]),
        ("starts-on n2; meta target-role Stopped; stops-on n2", [("up", ""), ("down", "stopped")]),
        ("starts-on n2; property stop-all-resources true; stops-on n2", [("up", ""), ("down", "stopped")]),
        ("starts-on n2; attribute n2 standby on; stops-on n2", [("up", ""), ("down", "standby")]),
        ("starts-on n2; leaving n2; stops-on n2", [("up", ""), ("down", "shutdown")]),
        ("starts-on n2; restart; stops-on n2", [("up", ""), ("down", "restart")]),
        ("starts-on n2; attribute n2 pingd 0; stops-on n2", [("up", ""), ("down", "node-attribute")]),
        ("starts-on n2; monitor-on n2 NOT_RUNNING", [("up", ""), ("down", "failure")]),
        ("starts-on n2; property maintenance-mode true; monitor-on n2 NOT_RUNNING",
         [("up", ""), ("down", "maintenance")]),
        ("starts-on n2; meta is-managed false; monitor-on n2 ERROR", [("up", ""), ("down", "maintenance")]),
        ("starts-on n2; monitor-on n2 ERROR; stops-on n2; starts-on n3", [("up", ""), ("down", "failure"), ("up", "")]),
        ("starts-on n2; lost n2", [("up", ""), ("unknown", "unverified"), ("down", "node-lost")]),
        ("starts-on n2; elected n1; lost n2", [("up", ""), ("unknown", "no-quorum"), ("down", "node-lost")]),
        ("starts-on n2; lost n2 400", [("up", ""), ("down", "node-lost")]),
        ("starts-on n2; lost n2 400; confirmed-dead n2; starts-on n3", [("up", ""), ("down", "node-lost"), ("up", "")]),
        ("starts-on n2; killed n2; confirmed-dead n2", [("up", ""), ("down", "fence-requested")]),
        # A stop by a person that ends in a failure to start again is planned up to the failure.
        ("starts-on n2; attribute n2 standby on; stops-on n2; fails-to-start-on n3",
         [("up", ""), ("down", "standby"), ("down", "failure")]),
        # What is down is stopped by a person.
        ("starts-on n2; monitor-on n2 ERROR; meta target-role Stopped",
         [("up", ""), ("down", "failure"), ("down", "stopped")]),
        # A daemon's new life: nobody knows until a probe has answered.
        ("starts-on n2; seconds 70; joins n2 1 2", [("up", ""), ("unknown", "unverified")]),
        ("starts-on n2; seconds 70; joins n2 1 2; probe-on n2 OK", [("up", ""), ("unknown", "unverified"), ("up", "")]),
        ("starts-on n2; seconds 70; joins n2 1 2; probe-on n2 NOT_RUNNING",
         [("up", ""), ("unknown", "unverified"), ("down", "node-joined")]),
        # A boot that nobody has noticed.
        ("starts-on n2; seconds 70; joins n2 2 2", [("up", ""), ("unknown", "unverified"), ("down", "node-lost")]),
        ("starts-on n2; is-to-stop-on n2; outcome-unknown-on n2",
         [("up", ""), ("down", "configuration"), ("unknown", "unverified")]),
    ],
)  # fmt: skip
def test_what_is_said_of_a_service(steps: str, expected: list[tuple[str, str]]) -> None:
    scenario = scenario_of(*steps.split("; "))
    assert said(scenario) == expected
    assert scenario.account().state == expected[-1][0] if expected else not scenario.cib.status.availability.services


def test_a_lost_node_is_away_since_it_was_heard_last() -> None:
    scenario = scenario_of("starts-on n2", "seconds 70", "lost n2 2500")
    account = scenario.account()
    assert account.outage == Outage(WallTime(1000 * scenario.index - 2500), Cause.NODE_LOST)


def test_the_account_adds_up() -> None:
    steps = ("starts-on n2", "seconds 70", "lost n2 2500", "seconds 3", "confirmed-dead n2", "starts-on n3")
    scenario = scenario_of(*steps)
    account = scenario.account()
    assert account.sums.up_ms + account.sums.unplanned_ms == account.since - account.known_from
    assert (account.sums.unplanned, account.sums.planned, account.sums.planned_ms) == (1, 0, 0)
    (spans,) = scenario.cib.status.availability.outages.values()
    assert (spans.count, spans.sum_ms) == (1, account.sums.unplanned_ms)


def test_a_cluster_that_had_no_power_was_not_up_for_all_that_is_known() -> None:
    scenario = scenario_of("starts-on n2", "seconds 70")
    last_mark = scenario.cib.status.availability.seen_at
    scenario.index += 3600
    for each in ("elected n1", "joins n1 2 2", "joins n2 2 2", "starts-on n1"):
        scenario.take(each)
    assert said(scenario)[1:] == [("unknown", "no-quorum"), ("down", "no-quorum"), ("up", "")]
    sums = scenario.account().sums
    assert sums.up_ms == last_mark - scenario.account().known_from
    assert sums.unknown_ms >= 3600_000


def test_a_service_that_came_up_in_this_term_is_not_doubted_since_before_the_election() -> None:
    scenario = scenario_of("elected n1", "starts-on n2")
    up_since = scenario.account().since
    scenario.take("joins n2 1 2")
    assert scenario.account().sums.up_ms == 1000 * scenario.index - up_since


def test_a_clone_is_up_while_one_instance_runs() -> None:
    scenario = Scenario()
    scenario.configure(PutResource(Clone(ResourceId("db-clone"), DB)))
    for each in ("starts-on n1", "starts-on n2", "lost n2 100", "is-to-stop-on n1"):
        scenario.take(each)
    assert said(scenario) == [("up", ""), ("down", "node-lost")]


def test_a_promoted_instance_is_a_service_of_its_own() -> None:
    scenario = scenario_of("starts-on n2")
    scenario.ask("promote", "n2")
    scenario.end("promote", "n2")
    scenario.ask("demote", "n2")
    assert [(each.facts.role, each.facts.state) for each in scenario.said] == [
        ("", "up"), ("promoted", "up"), ("promoted", "down"),
    ]  # fmt: skip
    assert scenario.account().state is UP


def test_what_is_deleted_is_forgotten_and_a_fence_device_is_no_service() -> None:
    scenario = scenario_of("starts-on n2", "stops-on n2")
    scenario.configure(Delete("resource", DB))
    assert scenario.cib.status.availability.services == {}


def test_instances_with_numbers_are_one_service() -> None:
    scenario = Scenario()
    scenario.configure(
        PutResource(Clone(ResourceId("c"), DB, meta=(AttributeSet("m", (("globally-unique", "true"),)),)))
    )
    for number, node in ((0, N2), (1, N3)):
        name = ResourceId(f"db:{number}")
        scenario.must(issue(order(f"s{number}", node=node, resource=name)))
        scenario.must(record(replace(result(f"s{number}"), resource=name), node))
    assert said(scenario) == [("up", "")]
    scenario.must(issue(order("t0", ActionName.STOP, node=N2, resource=ResourceId("db:0"))))
    assert scenario.account().state is UP
    scenario.must(issue(order("t1", ActionName.STOP, node=N3, resource=ResourceId("db:1"))))
    assert scenario.account().state is DOWN


# -- incidents -------------------------------------------------------------------------------------------------------


def incidents(scenario: Scenario, *steps: str) -> list[str]:
    """Return the incident of each step: of its last change."""
    found = []
    for each in steps:
        scenario.take(each)
        incident = scenario.cib.status.availability.incident
        found.append("" if incident is None or incident.newest_at != 1000 * scenario.index else incident.id)
    return found


def test_one_node_loss_with_its_fencing_and_recovery_is_one_incident() -> None:
    scenario = scenario_of("starts-on n2", "seconds 70")
    found = incidents(scenario, "lost n2 100", "confirmed-dead n2", "starts-on n3")
    assert len(set(found)) == 1
    assert found[0].startswith("uuid-")


def test_an_incident_ends_when_nothing_has_happened_for_long_and_nothing_is_under_way() -> None:
    scenario = scenario_of("starts-on n2", "seconds 70")
    quiet_s = INCIDENT_QUIET_MS // 1000
    first, second = incidents(scenario, "monitor-on n2 ERROR", "is-to-stop-on n2")
    scenario.index += quiet_s + 5
    scenario.end("stop", "n2")  # Slow, and ordered: it goes on.
    third = scenario.cib.status.availability.incident
    assert third is not None
    assert first == second == third.id
    scenario.index += quiet_s
    (other,) = incidents(scenario, "lost n3 100")
    assert other != first


def test_what_begins_no_incident_has_none() -> None:
    scenario = scenario_of("starts-on n2", "seconds 70")
    applied = scenario.must(commands.PublishLoad(N2, life(N2), 3))
    assert [each.incident for each in applied.changes] == [""]


# -- the history says the same ---------------------------------------------------------------------------------------


def test_the_rows_of_a_recorded_log_say_what_the_accounts_say() -> None:
    cib, events, now = Cib(), list[Event](), 0
    for line in gzip.decompress(LOG.read_bytes()).decode().splitlines():
        index, term, is_in_force, entry = json.loads(line)
        applied = Folding().fold(
            cib, entry.encode(), index=index, term=Term(term), rules=ALL_RULES, is_in_force=is_in_force
        )
        cib = applied.cib
        if applied.envelope is not None:
            now = max(now, applied.envelope.at)
            events += [Event(index, applied.envelope.at, change) for change in applied.changes]
    accounts = cib.status.availability.services
    assert len(accounts) > 5
    for name, stretches in stretches_of(accounts, events, WallTime(0), WallTime(now)).items():
        sums = Sums()
        for each in stretches:
            sums = sums.and_state(each.state, each.cause, each.end - each.begin)
        known = accounts[name].until(WallTime(now))
        names = ("up_ms", "planned_ms", "unplanned_ms", "unknown_ms")
        assert [getattr(sums, each) for each in names] == [getattr(known, each) for each in names], name


def test_a_mistake_in_the_account_loses_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_of("starts-on n2")

    def raises(*_: object) -> object:
        raise KeyError("a mistake")

    monkeypatch.setattr(availability_module, "_touched", raises)
    scenario.take("is-to-stop-on n2")
    assert len(scenario.status(N2).orders) == 1
    assert scenario.account().state is UP


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (publish(device(A, DeviceState.DRAIN), node=N1), Cause.FAILURE),
        (commands.SteerDevice(N1, A, commands.DeviceChange.DRAIN, "root", ""), Cause.STANDBY),
        (publish(device(A), driver="580.1", node=N1), Cause.CONFIGURATION),
    ],
)
def test_who_has_to_leave_a_device_is_down_for_that(change: commands.Command, cause: Cause) -> None:
    scenario = Scenario()
    scenario.must(publish(device(A), node=N1))
    start = order("start", ActionName.START, node=N1, incarnation=life(N1))
    start = replace(start, devices=(A,), dc_term=scenario.term)
    scenario.must(commands.IssueOrders(scenario.term, (start,)))
    scenario.end("start", "n1")
    scenario.must(change)
    scenario.ask("stop", "n1")
    assert (scenario.account().state, scenario.account().cause) == (DOWN, cause)


def test_a_gang_whose_member_has_to_leave_a_device_is_down_for_that_if_another_member_stops_last() -> None:
    scenario = Scenario()
    scenario.configure(PutResource(Clone(ResourceId("c"), DB)))
    for node in (N1, N2):
        scenario.must(publish(device(A), node=node))
        start = replace(
            order(f"start-{node}", ActionName.START, node=node, incarnation=life(node)), devices=(A,),
            dc_term=scenario.term,
        )  # fmt: skip
        scenario.must(commands.IssueOrders(scenario.term, (start,)))
        scenario.end("start", node)
    scenario.must(publish(device(A, DeviceState.DRAIN), node=N2))
    scenario.ask("stop", "n2")
    scenario.ask("stop", "n1")
    assert (scenario.account().state, scenario.account().cause) == (DOWN, Cause.FAILURE)
