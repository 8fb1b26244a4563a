"""A hand-over that is asked for is made by the leader; a consistent read waits for the log."""

from haclusterd.cib import commands
from haclusterd.model.requests import Options
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.runtime.hand_over import WISH_MS
from haclusterd.runtime.requests.dialogue import COMMIT_WAIT_MS, NO_LEADER_WAIT_MS
from tests.unit.runtime.desk import Desk, configure, status_of
from tests.unit.runtime.one_daemon import N1, N2, N3, Daemon

CONSISTENT = Options(is_consistent=True)


def test_a_leader_tries_to_hand_over_until_it_leads_no_more() -> None:
    daemon = Daemon().form(leader=N1)
    daemon.put(commands.RequestLeader(N3, "root@n2"))
    daemon.clock.run()
    assert daemon.store.handed_to == [N3]
    daemon.clock.run(1_500)
    assert daemon.store.handed_to == [N3, N3]
    daemon.lead(N3, term=2)
    daemon.clock.run(WISH_MS)
    assert daemon.store.handed_to == [N3, N3]


def test_a_leader_gives_up_in_the_end() -> None:
    daemon = Daemon().form(leader=N1)
    daemon.put(commands.RequestLeader(N3, "root@n2"))
    daemon.clock.run(2 * WISH_MS)
    tried = len(daemon.store.handed_to)
    daemon.clock.run(2 * WISH_MS)
    assert 3 <= tried == len(daemon.store.handed_to)


def test_who_does_not_lead_hands_nothing_over() -> None:
    daemon = Daemon().form(leader=N2)
    daemon.put(commands.RequestLeader(N3, "root@n2"))
    daemon.clock.run(WISH_MS)
    assert daemon.store.handed_to == []


def test_the_verb_is_answered_when_the_other_leads() -> None:
    desk = Desk()
    name = desk.ask("cluster.transfer_leader", {"node": "n3"})
    desk.daemon.settle()
    assert desk.response(name) is None
    desk.daemon.lead(N3, term=2)
    desk.daemon.clock.run()
    assert (status_of(desk, name), desk.codes(name)) == (ExitStatus.OK, ["REQUESTED"])


def test_the_verb_says_when_the_other_did_not_come_to_lead() -> None:
    desk = Desk()
    name = desk.ask("cluster.transfer_leader", {"node": "n3"}, Options(wait_ms=3_000))
    desk.daemon.settle()
    desk.daemon.clock.run(4_000)
    assert (status_of(desk, name), desk.codes(name)) == (ExitStatus.TIMEOUT, ["REQUESTED", "TIMEOUT"])


def test_the_verb_finds_somebody_by_itself_and_knows_who_leads_already() -> None:
    desk = Desk()
    found = desk.ask("cluster.transfer_leader", {}, Options(wait_ms=0))
    desk.daemon.settle()
    response = desk.response(found)
    assert response is not None
    assert response.data == {"schema": "haclusterd.leader/1", "from": "n2", "to": "n1"}
    assert desk.codes(desk.ask("cluster.transfer_leader", {"node": "n2"})) == ["NOTHING_TO_DO"]
    assert desk.codes(desk.ask("cluster.transfer_leader", {"node": "n9"})) == ["NO_SUCH_NODE"]


def test_a_consistent_read_is_answered_when_its_barrier_is_applied_and_not_before() -> None:
    desk = Desk()
    name = desk.ask("configure.show", {}, CONSISTENT)
    desk.daemon.clock.run()
    assert desk.response(name) is None
    # What another node acknowledged before stands before the barrier in the log, and is seen.
    configure(desk, "property batch-limit=3")
    desk.daemon.settle()
    response = desk.response(name)
    assert response is not None
    assert desk.codes(name) == ["READ_CONFIRMED"]
    assert isinstance(response.data, dict)
    assert response.data["version"] == 1


def test_a_consistent_read_is_never_answered_without_a_majority() -> None:
    desk = Desk()
    desk.daemon.lead(None, term=2)
    plain, name = desk.ask("status"), desk.ask("status", {}, CONSISTENT)
    desk.daemon.clock.run(NO_LEADER_WAIT_MS + COMMIT_WAIT_MS)
    assert desk.response(plain) is not None
    response = desk.response(name)
    assert response is not None
    assert response.data is None
    assert desk.codes(name) == ["NO_QUORUM"]


def test_the_store_follows_a_changed_node_timeout() -> None:
    desk = Desk()
    configure(desk, "property node-timeout=900ms")
    assert desk.daemon.store.node_timeouts_ms == [900]
    configure(desk, "property batch-limit=3")
    assert desk.daemon.store.node_timeouts_ms == [900]
