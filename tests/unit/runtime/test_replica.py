"""Whom this node's pacer may echo, as entries come, are taken back, are applied, and are replaced by a snapshot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import encode_cib, encode_envelope
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.steps import outcome_of
from haclusterd.runtime.replica import Replica

N1, N2 = NodeName("n1"), NodeName("n2")
FIRST, SECOND = Incarnation("boot", "1" * 16), Incarnation("boot", "2" * 16)


class Page:
    """The withdrawn set as the pacer has it: a node is echoed when none of its incarnations is withdrawn."""

    def __init__(self) -> None:
        self.withdrawn: dict[NodeName, set[Incarnation]] = {}

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        self.withdrawn.setdefault(node, set()).add(incarnation)

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        self.withdrawn.get(node, set()).discard(incarnation)

    def echoes(self, node: NodeName) -> bool:
        return not self.withdrawn.get(node)


class Voter:
    """A replica, its page, and the log as it comes to it."""

    def __init__(self) -> None:
        self.page = Page()
        self.replica = Replica(self.page)
        self.index = 0
        self.log: list[bytes] = []
        members = (Member(N1, ()), Member(N2, ()))
        self.commit(commands.FormCluster("uuid", "test", members))
        self.commit(commands.DcElected(N1, FIRST, Term(1)))
        for node in (N1, N2):
            self.commit(commands.Join(node, FIRST))

    def entry(self, command: commands.Command, request: str = "") -> bytes:
        self.index += 1
        return encode_envelope(
            commands.Envelope(RequestId(request or f"r{self.index}"), N1, WallTime(self.index), command)
        )

    def append(self, command: commands.Command, request: str = "") -> bytes:
        entry = self.entry(command, request)
        self.replica.appended(entry)
        self.log.append(entry)
        return entry

    def apply(self) -> Applied:
        return self.replica.apply(self.index, Term(1), self.log.pop(0))

    def commit(self, command: commands.Command, request: str = "") -> Applied:
        self.append(command, request)
        while len(self.log) > 1:
            self.apply()
        return self.apply()

    def cib(self) -> bytes:
        return self.replica.snapshot()()


LOST = commands.Lost(N2, FIRST, Term(1), "silent")
LOST_AGAIN = commands.Lost(N2, SECOND, Term(1), "silent")
STALE_LOST = commands.Lost(N2, FIRST, Term(9), "of a DC that is none")
REJOIN = commands.Join(N2, SECOND)


def test_a_node_is_not_echoed_from_the_moment_its_loss_is_appended() -> None:
    voter = Voter()
    assert voter.page.echoes(N2)
    voter.append(LOST)
    assert not voter.page.echoes(N2)
    assert voter.page.echoes(N1)
    voter.apply()
    assert not voter.page.echoes(N2)


def test_it_is_echoed_again_when_its_next_join_is_applied_and_not_before() -> None:
    voter = Voter()
    voter.commit(LOST)
    voter.append(REJOIN)
    assert not voter.page.echoes(N2)
    voter.apply()
    assert voter.page.echoes(N2)


def test_a_wish_to_fence_withdraws_as_a_loss_does() -> None:
    voter = Voter()
    voter.append(commands.RequestFence(N2, FIRST, "admin"))
    assert not voter.page.echoes(N2)


@pytest.mark.parametrize(
    "command", [commands.Join(N2, FIRST), commands.SetTransientAttribute(N2, "Lost", "x")], ids=["join", "attribute"]
)
def test_nothing_else_does(command: commands.Command) -> None:
    voter = Voter()
    voter.append(command)
    assert voter.page.echoes(N2)


def test_a_loss_that_was_taken_back_ends() -> None:
    voter = Voter()
    entry = voter.append(LOST)
    voter.replica.removed(entry)
    assert voter.page.echoes(N2)


def test_a_loss_that_was_refused_ends() -> None:
    voter = Voter()
    assert voter.commit(STALE_LOST).refusal is not None
    assert voter.page.echoes(N2)


def test_a_refused_loss_does_not_end_an_accepted_one() -> None:
    voter = Voter()
    voter.commit(LOST)
    voter.commit(STALE_LOST)
    assert not voter.page.echoes(N2)


def test_of_two_announcements_the_refusal_of_one_does_not_end_the_other() -> None:
    voter = Voter()
    voter.append(STALE_LOST)
    voter.append(LOST)
    voter.apply()
    assert not voter.page.echoes(N2)


def test_a_join_does_not_end_a_loss_that_stands_behind_it() -> None:
    voter = Voter()
    voter.commit(LOST)
    voter.append(REJOIN)
    voter.append(LOST_AGAIN)
    voter.apply()
    assert not voter.page.echoes(N2)


def test_a_held_join_ends_nothing() -> None:
    voter = Voter()
    voter.commit(commands.RequestFence(N2, FIRST, "admin"))
    assert voter.commit(REJOIN).refusal is not None
    assert not voter.page.echoes(N2)


def test_a_join_that_is_repeated_late_ends_nothing() -> None:
    """Its proposer had not heard of its success when the node was lost."""
    voter = Voter()
    voter.commit(REJOIN, request="join")
    voter.commit(LOST_AGAIN)
    assert voter.commit(REJOIN, request="join").is_repetition
    assert not voter.page.echoes(N2)


def test_fencing_ends_nothing() -> None:
    voter = Voter()
    voter.commit(LOST)
    voter.commit(commands.Fenced(N2, FIRST, None, FenceOutcome.CONFIRMED, "down"))
    assert not voter.page.echoes(N2)


def test_a_restart_knows_the_losses_of_its_snapshot_and_of_its_log() -> None:
    voter = Voter()
    before = voter.cib()
    entry = voter.append(LOST)
    voter.apply()
    for data, shown in ((voter.cib(), []), (before, [entry])):
        page = Page()
        again = Replica(page)
        again.restore(outcome_of(again.read(data)))
        for each in shown:
            again.appended(each)
        assert not page.echoes(N2)


def test_a_snapshot_in_which_the_node_has_joined_again_ends_its_loss() -> None:
    ahead = Voter()
    ahead.commit(LOST)
    ahead.commit(REJOIN)
    behind = Voter()
    behind.append(LOST)
    behind.replica.restore(outcome_of(behind.replica.read(ahead.cib())))
    assert behind.page.echoes(N2)


def test_an_entry_that_cannot_be_read_is_a_refusal() -> None:
    voter = Voter()
    applied = voter.replica.apply(99, Term(1), b"nonsense Lost")
    assert applied.refusal is not None
    assert applied.cib.index == 99


@given(st.lists(st.sampled_from(["lost", "lost again", "stale", "join", "fence", "apply", "remove"]), max_size=30))
def test_a_node_is_echoed_exactly_when_no_loss_of_it_is_announced_or_in_force(events: list[str]) -> None:
    voter = Voter()
    wishes = {"lost": LOST, "lost again": LOST_AGAIN, "stale": STALE_LOST, "join": REJOIN}
    wishes["fence"] = commands.RequestFence(N2, SECOND, "admin")
    announced: list[bool] = []
    cib: Cib | None = None
    for event in events:
        if event in wishes:
            voter.append(wishes[event])
            announced.append(event != "join")
        elif event == "apply" and voter.log:
            cib = voter.apply().cib
            announced.pop(0)
        elif event == "remove" and voter.log:
            voter.replica.removed(voter.log.pop())
            announced.pop()
        is_given_up = cib is not None and cib.status.nodes[N2].state in (NodeState.LOST, NodeState.FENCED)
        assert voter.page.echoes(N2) is not (any(announced) or is_given_up)
    assert encode_cib(voter.replica.apply(999, Term(1), b"").cib) == voter.cib()
