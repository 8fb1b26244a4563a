"""Verbs about members, as pure functions: what they propose, what they refuse, what they advise."""

from typing import Any

import pytest

from haclusterd.cib.commands import ChangeMembers, RequestLeave, Retire
from haclusterd.commands import registry
from haclusterd.commands.certificates import ending
from haclusterd.commands.context import Context, HeardFrom, LiveView
from haclusterd.commands.outcome import Outcome
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.enrolment import InvitationTerms
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from tests.unit.commands.node.member_clusters import cluster

N1, N2, N3 = NAMES = tuple(map(NodeName, ("n1", "n2", "n3")))
LIVE = LiveView(N1, leader=N1, has_quorum=True, connected_voters=NAMES, heard=dict.fromkeys((N2, N3), HeardFrom(100)))


def ask(verb: str, cib: Cib, live: LiveView | None = LIVE, *, is_forced: bool = False, **arguments: Any) -> Outcome:
    context = Context(cib, WallTime(0), "root@n1", "why", live, is_forced=is_forced)
    return registry.run(verb, arguments, context)


def codes(outcome: Outcome) -> list[Code]:
    return [item.code for item in outcome.reports]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"node": "n4"}, InvitationTerms(NodeName("n4"))),
        ({}, InvitationTerms()),
        ({"witness": True, "valid": "10min"}, InvitationTerms(is_witness=True, valid_ms=600_000)),
        ({"learner": True, "port": 9, "authority": "/a"}, InvitationTerms(is_learner=True, port=9, authority="/a")),
    ],
)
def test_an_invitation_is_an_errand_of_the_daemon(arguments: dict[str, Any], expected: InvitationTerms) -> None:
    outcome = ask("cluster.invite", cluster("n1", "n2", "n3"), **arguments)
    assert outcome.invite == expected
    assert outcome.commands == ()
    assert (Code.EVEN_VOTERS in codes(outcome)) is not expected.is_learner


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"node": "n1"}, Code.EXISTS),
        ({"node": "n9"}, Code.BAD_ARGUMENT),
        ({"node": "a b"}, Code.BAD_ARGUMENT),
        ({"valid": "8d"}, Code.BAD_ARGUMENT),
        ({"valid": "soon"}, Code.BAD_ARGUMENT),
        ({"authority": "here"}, Code.BAD_ARGUMENT),
    ],
)
def test_what_cannot_be_invited(arguments: dict[str, Any], expected: Code) -> None:
    outcome = ask("cluster.invite", cluster("n1", "n2", "n3"), **arguments)
    assert (codes(outcome), outcome.invite) == ([expected], None)


def test_without_a_quorum_nobody_is_invited() -> None:
    alone = replace(LIVE, has_quorum=False, connected_voters=(N1,))
    outcome = ask("cluster.invite", cluster("n1", "n2", "n3"), alone)
    assert codes(outcome) == [Code.NO_QUORUM]
    assert "missing: n2, n3" in outcome.reports[0].message


def test_a_node_leaves_then_is_retired_then_dropped_with_its_certificate() -> None:
    cib = cluster("n1", "n2", "n3")
    first = ask("cluster.remove", cib, node="n3")
    assert first.commands == (RequestLeave(N3, Incarnation("boot", "n3")),)
    assert first.until is not None
    assert first.afterwards is not None
    gone = cluster("n1", "n2", "n3", n3=NodeState.LEFT)
    assert not first.until(cib, LIVE)
    assert first.until(gone, LIVE)
    second = first.afterwards(gone, first.until(gone, LIVE))
    assert second.commands == (Retire(N3, "root@n1", "why"),)
    assert second.until is not None
    assert second.afterwards is not None
    assert not second.until(gone, LIVE)
    assert second.until(gone, replace(LIVE, heard={N3: HeardFrom(100, "restarting")}))
    third = second.afterwards(gone, second.until(gone, LIVE))
    (change,) = third.commands
    assert isinstance(change, ChangeMembers)
    assert (change.version, [member.name for member in change.members]) == (5, [N1, N2])
    assert Code.EVEN_VOTERS in codes(third)
    late = first.afterwards(cib, first.until(cib, LIVE))
    assert (codes(late), late.commands) == ([Code.TRY_AGAIN], ())


@pytest.mark.parametrize(
    ("cib", "node", "expected"),
    [
        (cluster("n1", "n2", n2=NodeState.LOST), "n2", "crm fencing confirm n2"),
        (cluster("n1", "n2", n2=NodeState.UNSEEN), "n2", "crm fencing confirm n2"),
        (cluster("n1", "n2", "n3"), "n1", "on another node"),
    ],
)
def test_who_cannot_be_removed_now(cib: Cib, node: str, expected: str) -> None:
    outcome = ask("cluster.remove", cib, node=node)
    assert (codes(outcome), outcome.commands) == ([Code.REFUSED], ())
    assert expected in outcome.reports[0].remedy


@pytest.mark.parametrize(
    ("addresses", "is_forced", "expected"),
    [
        ("10.0.0.2:7400,10.1.0.2:7400", False, []),
        ("10.0.0.2,10.1.0.2", False, []),
        ("10.1.0.2:7400", False, [Code.UNSAFE]),
        ("10.1.0.2:7400", True, []),
        ("10.0.0.3:7400", True, [Code.BAD_ARGUMENT]),
        ("10.0.0.2:x", False, [Code.BAD_ARGUMENT]),
        ("10.0.0.2:7400", False, [Code.NOTHING_TO_DO]),
    ],
)
def test_an_address_that_is_wrong_or_taken_is_refused(addresses: str, is_forced: bool, expected: list[Code]) -> None:
    outcome = ask("cluster.address", cluster("n1", "n2", "n3"), node="n2", addresses=addresses, is_forced=is_forced)
    assert [code for code in codes(outcome) if code is not Code.REQUESTED] == expected
    assert bool(outcome.commands) is not bool(expected)


def test_a_vote_is_taken_and_given_unless_that_is_impossible_or_so_already() -> None:
    cib = cluster("n1", "n2", "n3")
    off = ask("cluster.vote", cib, node="n3", state="off")
    (change,) = off.commands
    assert isinstance(change, ChangeMembers)
    assert [member.is_voter for member in change.members] == [True, True, False]
    assert codes(ask("cluster.vote", cib, node="n1", state="off")) == [Code.TRY_AGAIN]
    assert codes(ask("cluster.vote", cib, node="n2", state="on")) == [Code.NOTHING_TO_DO]
    learner = replace(cib, members={**cib.members, N3: replace(cib.members[N3], is_voter=False)})
    on = ask("cluster.vote", learner, node="n3", state="on")
    assert isinstance(on.commands[0], ChangeMembers)
    assert on.commands[0].members[2].wants_vote
    assert on.until is not None
    assert on.until(cib, LIVE)
    assert codes(ask("cluster.vote", cluster("n1"), node="n1", state="off")) == [Code.REFUSED]


def test_at_most_seven_vote() -> None:
    cib = cluster(*(f"n{number}" for number in range(1, 8)))
    assert codes(ask("cluster.invite", cib)) == [Code.REFUSED]
    assert ask("cluster.invite", cib, learner=True).invite == InvitationTerms(is_learner=True)
    eighth = Member(NodeName("n8"), (("10.0.0.8", 7400),), is_voter=False)
    more = replace(cib, members={**cib.members, eighth.name: eighth})
    assert codes(ask("cluster.vote", more, node="n8", state="on")) == [Code.REFUSED]


DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("days", "notice"),
    [(10, "ends in 10 days"), (59, "ends in 59 days"), (-3, "ended 3 days ago"), (61, None), (4000, None)],
)
def test_the_status_names_a_certificate_that_ends_soon(days: int, notice: str | None) -> None:
    now = 1_800_000_000_000
    facts = CertificateFacts(N2, "ab" * 32, WallTime(now - DAY_MS), WallTime(now + days * DAY_MS))
    live = replace(LIVE, certificates={N2: facts, NodeName("gone"): facts})
    context = Context(cluster("n1", "n2", "n3"), WallTime(now), "root@n1", live=live)
    assert list(ending(context)) == ([] if notice is None else [(N2, notice)])
    shown: Any = registry.run("cluster.certificates", {}, context).data
    assert [row["node"] for row in shown["certificates"]] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("node", "is_forced", "expected"),
    [("n2", False, [Code.UNSAFE]), ("n2", True, [Code.REQUESTED]), ("CD" * 32, False, [Code.REQUESTED]),
     ("n3", False, [Code.REFUSED]), ("n8", False, [Code.NO_SUCH_NODE])],
)  # fmt: skip
def test_what_is_revoked(node: str, is_forced: bool, expected: list[Code]) -> None:
    facts = CertificateFacts(N2, "ab" * 32, WallTime(0), WallTime(DAY_MS))
    live = replace(LIVE, certificates={N2: facts})
    outcome = ask(
        "cluster.certificates", cluster("n1", "n2", "n3"), live, is_forced=is_forced, action="revoke", node=node
    )
    assert codes(outcome) == expected
    if outcome.commands:
        (change,) = outcome.commands
        assert isinstance(change, ChangeMembers)
        assert change.revoked == (("ab" * 32,) if node == "n2" else ("cd" * 32,))
