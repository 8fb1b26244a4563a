"""Who the members are: one change after the other, and nobody comes back under an old name."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, RefusalCode
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace

N1, N2, N3, N4 = (NodeName(f"n{number}") for number in range(1, 5))
FINGERPRINT = "ab" * 32


def member(name: NodeName, *, is_voter: bool = True) -> Member:
    return Member(name, ((f"10.0.0.{name[1:]}", 7400),), is_voter=is_voter)


def life(name: NodeName, boot: str = "boot", token: str = "") -> Incarnation:
    return Incarnation(f"{boot}-{name}", f"token-{name}{token}")



class Log:
    """Three nodes that have joined, and what is put into their log."""

    def __init__(self) -> None:
        self.cib = Cib()
        self.index = 0
        self.put(commands.FormCluster("uuid", "test", tuple(member(name) for name in (N1, N2, N3))))
        for name in (N1, N2, N3):
            self.put(commands.Join(name, life(name)))

    def put(self, command: commands.Command, *, is_in_force: bool = False) -> Applied:
        self.index += 1
        envelope = commands.Envelope(RequestId(f"r{self.index}"), N1, WallTime(self.index), command)
        applied = apply(self.cib, envelope, index=self.index, term=Term(1), is_in_force=is_in_force)
        self.cib = applied.cib
        return applied

    def change(
        self, *members: Member, version: int | None = None, revoked: tuple[str, ...] = (), is_in_force: bool = True
    ) -> Applied:
        number = self.cib.membership.version + 1 if version is None else version
        command = commands.ChangeMembers(number, members, revoked, "root", "test")
        return self.put(command, is_in_force=is_in_force)

    def leave(self, name: NodeName) -> None:
        self.put(commands.Leaving(name, life(name)))
        assert self.cib.status.nodes[name].state is NodeState.LEFT


EVERYBODY = tuple(member(name) for name in (N1, N2, N3))


def test_a_learner_comes_joins_and_votes() -> None:
    log = Log()
    applied = log.change(*EVERYBODY, member(N4, is_voter=False))
    assert [change.text for change in applied.changes] == [
        "members, version 1, by root: n4 added without a vote (test)"
    ]
    status = log.cib.status.nodes[N4]
    assert (status.state, status.incarnation) == (NodeState.LEFT, None)
    assert log.cib.voters() == (N1, N2, N3)
    assert log.put(commands.Join(N4, life(N4))).refusal is None
    for name in (N1, N2, N3):
        log.put(commands.MembersFollowed(name, life(name), 1))
    applied = log.change(*EVERYBODY, member(N4))
    assert applied.changes[0].text == "members, version 2, by root: n4 votes (test)"
    assert log.cib.voters() == (N1, N2, N3, N4)


def test_what_the_leader_did_not_put_into_force_is_refused_with_the_reason() -> None:
    log = Log()
    everybody_and_4 = (*EVERYBODY, member(N4))
    refused = log.change(*everybody_and_4, is_in_force=False)
    assert refused.refusal is not None
    assert refused.refusal.code is RefusalCode.MEMBERS_NOT_NOW
    log.change(*EVERYBODY, member(N4, is_voter=False))
    refused = log.change(*everybody_and_4, is_in_force=False)
    assert refused.refusal is not None
    assert refused.refusal.text == "n1, n2, n3 does not follow version 1 of the members yet; try again in a moment"
    assert log.cib.membership.version == 1


@pytest.mark.parametrize(
    ("members", "version", "problem"),
    [
        (EVERYBODY[:1], 1, "one voter at a time"),
        ((*EVERYBODY[:2], member(N4)), 1, "one voter at a time"),
        (EVERYBODY, 2, "the members are at version 0 now, the change was made for 1"),
        ((*EVERYBODY, EVERYBODY[0]), 1, "a member is named twice"),
        (tuple(replace(each, is_voter=False) for each in EVERYBODY[:1]), 1, "one voter at a time"),
        ((*EVERYBODY, *(member(NodeName(f"n{n}"), is_voter=False) for n in range(10, 80))), 1, "at most 64 members"),
    ],
)
def test_what_can_never_be_is_refused_for_good(members: tuple[Member, ...], version: int, problem: str) -> None:
    log = Log()
    refusal = log.change(*members, version=version, is_in_force=False).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.MEMBERS_CONFLICT
    assert problem in refusal.text


def test_who_is_dropped_has_left_is_retired_and_never_comes_back() -> None:
    log = Log()
    refusal = log.put(commands.Retire(N3, "root")).refusal
    assert refusal is not None
    assert refusal.text == "n3 is online: it must have left, or its fencing must be recorded"
    log.leave(N3)
    refusal = log.change(*EVERYBODY[:2], is_in_force=False).refusal
    assert refusal is not None
    assert "n3 must be retired first" in refusal.text
    assert log.put(commands.Retire(N3, "root", "dead disk")).refusal is None
    assert log.put(commands.Retire(N3, "root")).refusal is None
    refusal = log.put(commands.Join(N3, Incarnation("n3-boot-2", "1" * 16))).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.NOT_A_MEMBER
    log.change(*EVERYBODY[:2], revoked=(FINGERPRINT,))
    assert set(log.cib.members) == set(log.cib.status.nodes) == {N1, N2}
    assert (log.cib.membership.retired, log.cib.membership.revoked) == ((N3,), (FINGERPRINT,))
    for name in (N1, N2):
        log.put(commands.MembersFollowed(name, life(name), 1))
    refusal = log.change(*EVERYBODY, is_in_force=False).refusal
    assert refusal is not None
    assert "a name never comes back" in refusal.text


def test_a_retired_member_that_is_heard_and_fenced_stays_retired() -> None:
    """Otherwise it could join, run something, and be dropped with what it runs: nobody would know of that any more."""
    log = Log()
    log.leave(N3)
    log.put(commands.Retire(N3, "root"))
    log.put(commands.DcElected(N1, life(N1), Term(1)))
    log.put(commands.Lost(N3, life(N3), Term(1), "it is heard and does not join", is_pending=True))
    log.put(commands.Fenced(N3, life(N3), None, FenceOutcome.CONFIRMED, "an administrator says so"))
    assert log.cib.status.nodes[N3].state is NodeState.FENCED
    refusal = log.put(commands.Join(N3, Incarnation("n3-boot-2", "1" * 16))).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.NOT_A_MEMBER


def test_a_lost_member_that_was_not_fenced_cannot_be_retired() -> None:
    log = Log()
    log.put(commands.DcElected(N1, life(N1), Term(1)))
    log.put(commands.Lost(N3, life(N3), Term(1), "silent"))
    refusal = log.put(commands.Retire(N3, "root")).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.WRONG_NODE_STATE


def test_what_is_in_force_counts_even_when_it_is_asked_twice() -> None:
    log = Log()
    command = commands.ChangeMembers(1, (*EVERYBODY, member(N4)), (), "root")
    envelope = commands.Envelope(RequestId("same"), N1, WallTime(1), command)
    refused = apply(log.cib, envelope, index=10, term=Term(1))
    assert refused.refusal is not None
    taken = apply(refused.cib, envelope, index=11, term=Term(1), is_in_force=True)
    assert taken.cib.voters() == (N1, N2, N3, N4)
    again = apply(taken.cib, envelope, index=12, term=Term(1))
    assert again.is_repetition
    assert again.cib.membership.version == 1


def test_only_the_present_life_says_what_it_follows() -> None:
    log = Log()
    log.change(*EVERYBODY, member(N4, is_voter=False))
    refusal = log.put(commands.MembersFollowed(N2, life(N1), 1)).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.OLD_INCARNATION
    log.put(commands.MembersFollowed(N2, life(N2), 1))
    log.put(commands.MembersFollowed(N2, life(N2), 0))
    assert log.cib.status.nodes[N2].membership == 1


def test_a_restarted_daemon_follows_what_it_followed_before_until_it_says_more() -> None:
    log = Log()
    learners = (member(N4, is_voter=False), member(NodeName("n5"), is_voter=False))
    log.change(*EVERYBODY, *learners)
    log.put(commands.Join(N2, life(N2, token="-2")))
    assert log.cib.status.nodes[N2].membership == 0, "its pacer may not know the newest members yet"
    log.put(commands.MembersFollowed(N2, life(N2, token="-2"), 1))
    assert log.cib.status.nodes[N2].membership == 1
    log.change(*EVERYBODY, member(N4), learners[1])
    log.put(commands.Join(N2, life(N2, boot="boot-2")))
    assert log.cib.status.nodes[N2].membership == 2, "after a boot it runs nothing before it has applied its Join"


def test_addresses_change_online() -> None:
    log = Log()
    moved = replace(EVERYBODY[1], addresses=(("fd00::2", 7400), ("10.0.1.2", 7400)))
    applied = log.change(EVERYBODY[0], moved, EVERYBODY[2])
    assert applied.changes[0].text == "members, version 1, by root: n2 is reached at fd00::2:7400 10.0.1.2:7400 (test)"
