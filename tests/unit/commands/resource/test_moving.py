"""Moves as transactions: what is put, what is waited for, and what becomes of the constraint."""

import pytest

from haclusterd.cib.commands import EndRestart, SetTicket, SetTransientAttribute, TicketChange
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Location, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code
from haclusterd.scheduler.model.lifetimes import end_of, moves, node_of, score_of
from tests.administered_clusters import CONFIGURATION, NOW, SITUATIONS, Cluster, running


def ask(cluster: Cluster, verb: str, **arguments: str | bool) -> Outcome:
    """Ask a verb and fold its commands."""
    outcome = registry.run(verb, arguments, Context(cluster.cib, NOW, "root@n1", live=cluster.live))
    for command in outcome.commands:
        cluster.do(command)
    return outcome


def codes(outcome: Outcome) -> list[Code]:
    return [report.code for report in outcome.reports]


def constraints(cluster: Cluster) -> dict[str, tuple[str, str, int]]:
    found = cluster.cib.configuration.constraints.values()
    return {c.id: (c.resource, c.node, c.score) for c in found if isinstance(c, Location) and c.id.startswith("cli-")}


def follow(cluster: Cluster, resources: tuple[str, ...], old: str, new: str) -> None:
    """Let resources stop on one node and start on another."""
    for resource in resources:
        cluster.record(resource, old, "stop")
        cluster.record(resource, new, "start")


def finish(cluster: Cluster, outcome: Outcome, *, is_met: bool) -> Outcome:
    assert outcome.afterwards is not None
    end = outcome.afterwards(cluster.cib, is_met)
    for command in end.commands:
        cluster.do(command)
    return end


def test_a_member_moves_with_its_group() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="web", node="n2")
    assert constraints(cluster) == {"cli-prefer-site": ("site", "n2", INFINITY)}
    assert outcome.waits_by_default
    assert outcome.waiting_for == "site to run on n2"


def test_the_wait_ends_when_all_of_it_runs_there_and_nowhere_else() -> None:
    cluster = running()
    until = ask(cluster, "resource.move", resource="site", node="n2").until
    assert until is not None
    assert not until(cluster.cib, cluster.live)
    follow(cluster, ("address",), "n1", "n2")
    assert not until(cluster.cib, cluster.live)
    follow(cluster, ("web",), "n1", "n2")
    assert until(cluster.cib, cluster.live)


@pytest.mark.parametrize(
    ("arguments", "delay_ms", "is_over"),
    [({"node": "n2"}, 0, False), ({}, 0, False), ({"node": "n2"}, 60_000, True)],
)
def test_the_wait_ends_when_what_runs_there_is_watched_but_not_after_a_start_delay(
    arguments: dict[str, str], delay_ms: int, *, is_over: bool
) -> None:
    cluster = running()
    until = ask(cluster, "resource.move", resource="site", **arguments).until
    assert until is not None
    follow(cluster, ("address", "web"), "n1", "n2")
    cluster.order("web", "n2", ActionName.MONITOR)
    status = cluster.node("n2")
    delayed = {key: replace(each, start_delay_ms=delay_ms) for key, each in status.orders.items()}
    cluster.put(replace(status, orders=delayed))
    assert until(cluster.cib, cluster.live) is is_over
    cluster.put(replace(status, orders={}))
    assert until(cluster.cib, cluster.live)


def test_the_constraint_goes_when_the_resource_stays_without_it() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="site", node="n2")
    follow(cluster, ("address", "web"), "n1", "n2")
    assert codes(finish(cluster, outcome, is_met=True)) == [Code.MOVED]
    assert constraints(cluster) == {}


def test_the_constraint_is_kept_when_the_resource_would_go_back() -> None:
    cluster = running(CONFIGURATION.replace("resource-stickiness=100", "resource-stickiness=0"))
    outcome = ask(cluster, "resource.move", resource="db", node="n1")
    follow(cluster, ("db",), "n2", "n1")
    end = finish(cluster, outcome, is_met=True)
    assert codes(end) == [Code.MOVE_KEPT]
    assert "would go back to n2" in end.reports[0].message
    assert list(constraints(cluster)) == ["cli-prefer-db"]


def test_the_constraint_goes_when_the_move_did_not_succeed_in_time() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="db", node="n1")
    end = finish(cluster, outcome, is_met=False)
    assert codes(end) == [Code.MOVE_WITHDRAWN]
    assert end.is_refused is True
    assert constraints(cluster) == {}


def at_rest(cluster: Cluster) -> None:
    """Let nothing be left to do: nobody watches anything, and nothing may be touched."""
    for status in cluster.cib.status.nodes.values():
        histories = {
            name: replace(each, records={key: it for key, it in each.records.items() if it.operation != "monitor"})
            for name, each in status.histories.items()
        }
        cluster.put(replace(status, histories=histories))
    cluster.configure("property maintenance-mode=true")


def test_a_move_is_over_when_nothing_is_left_to_try_and_says_what_failed() -> None:
    cluster = running()
    cluster.record("db", "n3", "start", ExitCode.ERROR, reason="an older one")
    outcome = ask(cluster, "resource.move", resource="db", node="n1")
    assert outcome.until is not None
    assert not outcome.until(cluster.cib, cluster.live)
    cluster.record("db", "n1", "start", ExitCode.ERROR, reason="cannot bind: address in use")
    cluster.record("db", "n1", "stop")
    at_rest(cluster)
    assert outcome.until(cluster.cib, cluster.live)
    end = finish(cluster, outcome, is_met=True)
    assert codes(end) == [Code.MOVE_WITHDRAWN]
    assert "on n1: start: cannot bind: address in use (error) on n1; constraint" in end.reports[0].message
    assert constraints(cluster) == {}


def test_a_constraint_that_somebody_changed_meanwhile_is_left_alone() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="db", node="n1")
    ask(cluster, "resource.clear", resource="db")
    assert finish(cluster, outcome, is_met=True) == Outcome()


def test_without_a_node_it_moves_away_from_where_it_runs() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="db")
    assert constraints(cluster) == {"cli-ban-db-on-n2": ("db", "n2", -INFINITY)}
    assert outcome.until is not None
    cluster.record("db", "n2", "stop")
    assert not outcome.until(cluster.cib, cluster.live)
    cluster.record("db", "n3", "start")
    assert outcome.until(cluster.cib, cluster.live)


def test_a_new_move_takes_the_place_of_the_old_one() -> None:
    cluster = running()
    ask(cluster, "resource.move", resource="db", node="n1", constraint=True)
    ask(cluster, "resource.move", resource="db", node="n3", constraint=True)
    assert constraints(cluster) == {"cli-prefer-db": ("db", "n3", INFINITY)}


def test_clear_on_one_node_leaves_the_others() -> None:
    cluster = running()
    ask(cluster, "resource.ban", resource="db", node="n1")
    ask(cluster, "resource.ban", resource="db", node="n3")
    ask(cluster, "resource.clear", resource="db", node="n1")
    assert list(constraints(cluster)) == ["cli-ban-db-on-n3"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"resource": "nothing", "node": "n9"}, [Code.NO_SUCH_RESOURCE, Code.NO_SUCH_NODE]),
        ({"resource": "db", "node": "n2"}, [Code.NOTHING_TO_DO]),
        ({"resource": "db", "node": "n3"}, [Code.MOVE_HAS_NO_EFFECT]),
    ],
)
def test_what_does_not_move(arguments: dict[str, str], found: list[Code]) -> None:
    cluster = running()
    cluster.configure("node n3 attributes standby=on")
    outcome = ask(cluster, "resource.move", **arguments)
    assert codes(outcome) == found
    assert outcome.commands == ()


def test_what_runs_nowhere_cannot_be_moved_away() -> None:
    cluster = running()
    cluster.record("db", "n2", "stop")
    assert codes(ask(cluster, "resource.move", resource="db")) == [Code.NOT_ACTIVE]


def test_a_move_to_a_lost_node_is_refused() -> None:
    cluster = running()
    cluster.state("n3", NodeState.LOST)
    assert codes(ask(cluster, "resource.move", resource="db", node="n3")) == [Code.MOVE_HAS_NO_EFFECT]


def test_offline_the_constraint_stays_and_is_said_to() -> None:
    cluster = replace(running(), live=None)
    outcome = ask(cluster, "resource.move", resource="db", node="n1")
    assert codes(outcome) == [Code.CONFIGURATION_CHANGED, Code.MOVE_KEPT]
    assert outcome.afterwards is None


def target_roles(cluster: Cluster, *names: str) -> list[str]:
    resources = cluster.cib.in_force.resources
    return [effective(resources[ResourceId(name)].meta).get("target-role", "") for name in names]


def test_a_restart_keeps_all_of_it_stopped_until_it_has_stopped_and_writes_nothing_into_the_configuration() -> None:
    cluster = running()
    before = cluster.cib.configuration
    outcome = ask(cluster, "resource.restart", resource="site")
    assert cluster.cib.configuration is before
    assert target_roles(cluster, "site", "address", "web") == ["Stopped"] * 3
    assert outcome.until is not None
    assert not outcome.until(cluster.cib, cluster.live)
    status = registry.run("status", {}, Context(cluster.cib, NOW, "root@n1", live=cluster.live))
    assert "RESTARTING" in str(status.data)
    cluster.record("web", "n1", "stop")
    cluster.do(SetTicket("any", TicketChange.GRANT, "root"))
    assert target_roles(cluster, "site") == ["Stopped"]
    cluster.record("address", "n1", "stop")
    cluster.do(SetTicket("any", TicketChange.REVOKE, "root"))
    assert outcome.until(cluster.cib, cluster.live)
    assert cluster.cib.in_force is before
    end = finish(cluster, outcome, is_met=True)
    assert end.until is not None
    assert not end.until(cluster.cib, cluster.live)


def test_several_resources_are_restarted_at_once_or_none() -> None:
    cluster = running()
    assert codes(ask(cluster, "resource.restart", resource="site", others=("unknown",))) == [Code.NO_SUCH_RESOURCE]
    refused = ask(cluster, "resource.restart", resource="site", others=("n2",))
    assert codes(refused) == [Code.BAD_ARGUMENT]
    assert "crm resource ban" in refused.reports[0].remedy
    assert cluster.cib.status.restarts == {}
    outcome = ask(cluster, "resource.restart", resource="site", others=("db", "site"))
    assert set(cluster.cib.status.restarts) == {"site", "db"}
    assert outcome.answer is not None
    assert (outcome.data or {}) == {**(outcome.data or {}), "resource": "site", "others": ["db"]}
    cluster.record("db", "n2", "stop")
    cluster.do(SetTicket("any", TicketChange.GRANT, "root"))
    assert set(cluster.cib.status.restarts) == {"site"}
    assert outcome.until is not None
    assert not outcome.until(cluster.cib, cluster.live)
    end = finish(cluster, outcome, is_met=False)
    assert codes(end) == [Code.TIMEOUT]
    assert end.reports[0].message == "not reached in the time given: site, db to be stopped"
    assert cluster.cib.status.restarts == {}


def test_a_restart_is_waited_for_until_nothing_is_left_to_try_and_says_what_failed() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.restart", resource="db")
    cluster.record("db", "n2", "stop")
    cluster.do(SetTicket("any", TicketChange.GRANT, "root"))
    end = finish(cluster, outcome, is_met=True)
    assert end.until is not None
    assert not end.until(cluster.cib, cluster.live)
    for node in ("n1", "n2", "n3"):
        cluster.record("db", node, "start", ExitCode.ERROR, reason="cannot bind: address in use")
        cluster.record("db", node, "stop")
    at_rest(cluster)
    assert end.until(cluster.cib, cluster.live)
    last = finish(cluster, end, is_met=True)
    assert codes(last) == [Code.NOT_STARTED_AGAIN]
    assert "start: cannot bind: address in use (error) on n1, n2, n3" in last.reports[0].message
    assert codes(finish(cluster, end, is_met=False)) == [Code.TIMEOUT, Code.NOT_STARTED_AGAIN]
    cluster.record("db", "n2", "start")
    again = finish(cluster, end, is_met=True)
    assert [report.message for report in again.reports] == ["db runs again"]


@pytest.mark.parametrize(
    ("verb", "operation", "code"),
    [("resource.start", "start", Code.NOT_STARTED), ("resource.stop", "stop", Code.NOT_STOPPED)],
)
def test_who_waits_for_a_start_or_stop_that_fails_waits_no_longer_and_is_shown_why(
    verb: str, operation: str, code: Code
) -> None:
    cluster = running()
    if operation == "start":
        ask(cluster, "resource.stop", resources=("db",))
        cluster.record("db", "n2", "stop")
    outcome = ask(cluster, verb, resources=("db",))
    assert outcome.until is not None
    assert not outcome.until(cluster.cib, cluster.live)
    cluster.record("db", "n2", operation, ExitCode.ERROR, reason="the disk is gone")
    if operation == "start":
        cluster.record("db", "n2", "stop")
    at_rest(cluster)
    assert outcome.until(cluster.cib, cluster.live)
    end = finish(cluster, outcome, is_met=True)
    assert codes(end) == [code]
    assert "the disk is gone" in end.reports[0].message
    assert codes(finish(cluster, outcome, is_met=False)) == [Code.TIMEOUT, code]


def test_what_was_only_starting_when_its_restart_was_asked_for_is_waited_for_too() -> None:
    cluster = running()
    cluster.record("db", "n2", "stop")
    cluster.order("db", "n2", ActionName.START)
    outcome = ask(cluster, "resource.restart", resource="db")
    for node in ("n2", "n1", "n3"):
        cluster.put(replace(cluster.node(node), orders={}))
        cluster.record("db", node, "start", ExitCode.ERROR, reason="cannot bind: address in use")
        cluster.record("db", node, "stop")
    cluster.do(SetTicket("any", TicketChange.GRANT, "root"))
    end = finish(cluster, outcome, is_met=True)
    assert end.until is not None
    assert not end.until(cluster.cib, cluster.live)
    at_rest(cluster)
    assert codes(finish(cluster, end, is_met=True)) == [Code.NOT_STARTED_AGAIN]


def test_of_several_that_restart_each_must_run() -> None:
    cluster = running()
    cluster.configure("primitive idle ocf:heartbeat:Dummy meta target-role=Stopped")
    assert codes(ask(cluster, "resource.restart", resource="db", others=("idle",))) == [Code.NOT_ACTIVE]
    assert cluster.cib.status.restarts == {}


def test_a_restart_that_is_waited_for_no_longer_lets_the_resource_run_again() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.restart", resource="site")
    again = ask(cluster, "resource.restart", resource="site")
    assert codes(again) == [Code.REQUESTED]
    assert len(cluster.cib.status.restarts) == 1
    end = finish(cluster, outcome, is_met=False)
    assert codes(end) == [Code.TIMEOUT]
    assert cluster.cib.status.restarts == {}


def test_the_end_of_an_older_restart_ends_no_newer_one() -> None:
    cluster = running()
    ask(cluster, "resource.restart", resource="site")
    (restart,) = cluster.cib.status.restarts.values()
    cluster.do(EndRestart(ResourceId("site"), WallTime(restart.at - 1), "late"))
    assert len(cluster.cib.status.restarts) == 1


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        (["primitive unattended ocf:heartbeat:Dummy meta is-managed=false"], "n3"),
        (["primitive unattended ocf:heartbeat:Dummy", "node n3 attributes maintenance=true"], "n3"),
        (["primitive unattended ocf:heartbeat:Dummy", "property maintenance-mode=true"], "n3"),
    ],
    ids=["resource", "node", "cluster"],
)
def test_a_restart_of_what_is_unmanaged_is_refused_instead_of_waiting_for_a_stop(
    settings: list[str], nodes: str
) -> None:
    cluster = running()
    cluster.configure("\n".join(settings))
    cluster.record("unattended", "n3", "start")
    outcome = ask(cluster, "resource.restart", resource="unattended")
    assert codes(outcome) == [Code.UNMANAGED]
    assert f"unmanaged on {nodes}:" in outcome.reports[0].message
    assert cluster.cib.status.restarts == {}


def test_a_move_as_crmsh_does_it_names_the_role_and_the_member_of_a_group() -> None:
    cluster = running()
    outcome = ask(cluster, "resource.move", resource="web", node="n2", constraint=True, as_crmsh=True)
    assert not outcome.is_refused
    (found,) = [each for each in cluster.cib.configuration.constraints.values() if each.id == "cli-prefer-web"]
    assert isinstance(found, Location)
    assert (found.resource, found.role) == ("web", "Started")
    ask(cluster, "resource.ban", resource="web", node="n3", as_crmsh=True)
    assert "cli-ban-web-on-n3" in cluster.cib.configuration.constraints
    assert codes(ask(cluster, "resource.clear", resource="web")) == [Code.CONFIGURATION_CHANGED]
    assert not constraints(cluster)
    ask(cluster, "resource.ban", resource="db", node="n2", as_crmsh=True)
    assert codes(ask(cluster, "resource.clear", resource="db")) == [Code.CONFIGURATION_CHANGED]


@pytest.mark.parametrize(
    ("verb", "words", "constraint", "node", "score"),
    [
        ("resource.move", {"node": "n2", "lifetime": "PT5M"}, "cli-prefer-site", "n2", INFINITY),
        ("resource.move", {"node": "5min"}, "cli-ban-site-on-n1", "n1", -INFINITY),
        ("resource.ban", {"node": "n3", "lifetime": "300s", "anyway": "force"}, "cli-ban-site-on-n3", "n3", -INFINITY),
        ("resource.ban", {"node": "PT5M", "lifetime": "force"}, "cli-ban-site-on-n1", "n1", -INFINITY),
    ],
)
def test_with_a_lifetime_the_constraint_says_when_it_ends(
    verb: str, words: dict[str, str | bool], constraint: str, node: str, score: int
) -> None:
    cluster = running()
    outcome = ask(cluster, verb, resource="web", **words)
    assert not outcome.is_refused, outcome.reports
    assert outcome.afterwards is None, "the DC takes it away, not who waits"
    (left,) = moves(cluster.cib.configuration)
    assert (left.id, left.resource, node_of(left), score_of(left)) == (constraint, "site", node, score)
    assert end_of(left) == (NOW + 300_000 + 999) // 1000 * 1000
    assert not ask(cluster, "resource.clear", resource="web", node=node).is_refused
    assert moves(cluster.cib.configuration) == ()


def test_the_word_force_moves_where_nothing_would_run() -> None:
    cluster = running()
    ask(cluster, "resource.ban", resource="site", node="n2")
    ask(cluster, "node.standby", node="n2")
    assert codes(ask(cluster, "resource.move", resource="site", node="n2")) == [Code.MOVE_HAS_NO_EFFECT]
    assert not ask(cluster, "resource.move", resource="site", node="n2", lifetime="force").is_refused


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"node": "n2", "lifetime": "soon"}, Code.BAD_ARGUMENT),
        ({"node": "n9", "lifetime": "PT5M"}, Code.NO_SUCH_NODE),
        ({"node": "soon"}, Code.NO_SUCH_NODE),
    ],
)
def test_words_that_are_neither_a_node_nor_a_lifetime(words: dict[str, str | bool], code: Code) -> None:
    cluster = running()
    for verb in ("resource.move", "resource.ban"):
        assert code in codes(ask(cluster, verb, resource="web", **words))


@pytest.mark.parametrize(
    ("scores", "code", "words"),
    [
        ({"n1": "5", "n2": "10"}, Code.MOVED, ""),
        ({"n1": "10", "n2": "5"}, Code.MOVE_KEPT, "would go back to n1"),
        ({}, Code.MOVE_KEPT, "would be promoted nowhere"),
    ],
)
def test_a_promoted_instance_that_is_demoted_without_the_constraint_keeps_it(
    scores: dict[str, str], code: Code, words: str
) -> None:
    """An agent that sets scores only where nothing is promoted, as mariadb, has none when the move has ended."""
    cluster = SITUATIONS["clones"]()
    outcome = ask(cluster, "resource.move", resource="db-clone", node="n2")
    cluster.record("db", "n1", "demote")
    cluster.record("db", "n2", "promote")
    for node in ("n1", "n2", "n3"):
        cluster.do(SetTransientAttribute(NodeName(node), "master-db", scores.get(node)))
    assert outcome.until is not None
    assert outcome.until(cluster.cib, cluster.live)
    end = finish(cluster, outcome, is_met=True)
    assert codes(end) == [code]
    assert words in end.reports[0].message
    assert list(constraints(cluster)) == (["cli-prefer-db-clone"] if code is Code.MOVE_KEPT else [])


@pytest.mark.parametrize(
    ("scores", "code", "words"),
    [
        ({"n1": "5", "n2": "10"}, Code.MOVED, "n2"),
        ({"n1": "10", "n2": "5"}, Code.MOVE_KEPT, "would go back to n1"),
    ],
)
def test_without_a_node_the_promotion_moves_away_from_where_it_is(
    scores: dict[str, str], code: Code, words: str
) -> None:
    cluster = SITUATIONS["clones"]()
    outcome = ask(cluster, "resource.move", resource="db-clone")
    (left,) = moves(cluster.cib.configuration)
    assert (left.id, left.role) == ("cli-ban-db-clone-on-n1", "Promoted")
    assert (node_of(left), score_of(left)) == ("n1", -INFINITY)
    assert outcome.until is not None
    assert not outcome.until(cluster.cib, cluster.live)
    cluster.record("db", "n1", "demote")
    assert not outcome.until(cluster.cib, cluster.live)
    cluster.record("db", "n2", "promote")
    for node in ("n1", "n2", "n3"):
        cluster.do(SetTransientAttribute(NodeName(node), "master-db", scores.get(node)))
    assert outcome.until(cluster.cib, cluster.live)
    end = finish(cluster, outcome, is_met=True)
    assert codes(end) == [code]
    assert words in end.reports[0].message
    assert list(constraints(cluster)) == (["cli-ban-db-clone-on-n1"] if code is Code.MOVE_KEPT else [])


def test_as_crmsh_the_constraint_of_such_a_move_concerns_every_role() -> None:
    cluster = SITUATIONS["clones"]()
    outcome = ask(cluster, "resource.move", resource="db-clone", node="force", constraint=True, as_crmsh=True)
    assert Code.MOVE_KEPT in codes(outcome)
    (left,) = moves(cluster.cib.configuration)
    assert (left.id, left.role, node_of(left)) == ("cli-ban-db-clone-on-n1", "Started", "n1")


def test_a_promotion_that_is_nowhere_or_could_go_nowhere_does_not_move_away() -> None:
    cluster = SITUATIONS["clones"]()
    for node in ("n2", "n3"):
        cluster.do(SetTransientAttribute(NodeName(node), "master-db", "-1"))
    assert codes(ask(cluster, "resource.move", resource="db-clone")) == [Code.MOVE_HAS_NO_EFFECT]
    cluster.record("db", "n1", "demote")
    assert codes(ask(cluster, "resource.move", resource="db-clone")) == [Code.MISSING_ARGUMENT]
