"""Two versions in one cluster: what is newer than some member reads has no effect anywhere."""

import pytest

from haclusterd.cib import codec, commands, levels
from haclusterd.cib.apply import apply, unreadable
from haclusterd.cib.changes import Applied, ChangeKind, RefusalCode
from haclusterd.cib.codec import CodecError, decode_envelope, encode_envelope
from haclusterd.cib.derived.history_facts import facts_of
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Cib, Member
from haclusterd.model.ids import Incarnation, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

N1, N2, N3 = (NodeName(f"n{number}") for number in range(1, 4))
NEWER = FIRST_FEATURE_LEVEL + 1
TICKET = commands.SetTicket("north", commands.TicketChange.GRANT, "root")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is a newer version, in which tickets, and reasons of requests for a leader, are new."""
    monkeypatch.setattr(codec, "FEATURE_LEVEL", NEWER)
    monkeypatch.setitem(levels.SINCE, commands.SetTicket, NEWER)
    monkeypatch.setitem(levels.SINCE, (commands.RequestLeader, "reason"), NEWER)


def put(cib: Cib, command: commands.Command, number: int = 1) -> Applied:
    envelope = commands.Envelope(RequestId(f"r{number}"), N1, WallTime(number), command)
    return apply(cib, envelope, index=number, term=Term(1))


def formed() -> Cib:
    members = tuple(Member(name, (("10.0.0.1", 7400),)) for name in (N1, N2, N3))
    return put(Cib(), commands.FormCluster("uuid", "test", members)).cib


def join(cib: Cib, node: NodeName, level: int, life: int = 1) -> Applied:
    command = commands.Join(node, Incarnation(f"{node}-{life}", "0" * 16), feature_level=level)
    return put(cib, command, 10 * life + int(node[1]))


@pytest.mark.usefixtures("newer")
def test_a_command_is_written_at_the_lowest_level_that_can_express_it() -> None:
    plain = commands.RequestLeader(N1, "root")
    assert [levels.level_of(each) for each in (plain, replace(plain, reason="why"), TICKET)] == [
        FIRST_FEATURE_LEVEL, NEWER, NEWER,
    ]  # fmt: skip
    envelope = commands.Envelope(RequestId("r"), N1, WallTime(1), plain)
    assert b'"level":%d,' % FIRST_FEATURE_LEVEL in encode_envelope(envelope)
    assert b'"level":%d,' % NEWER in encode_envelope(replace(envelope, command=TICKET))


def test_an_older_version_refuses_to_read_what_is_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setitem(levels.SINCE, commands.SetTicket, NEWER)
        entry = encode_envelope(commands.Envelope(RequestId("r"), N1, WallTime(1), TICKET))
    with pytest.raises(CodecError, match=f"level {NEWER}; this version reads .* up to level {FIRST_FEATURE_LEVEL}"):
        decode_envelope(entry)


@pytest.mark.usefixtures("newer")
def test_the_level_rises_when_the_last_member_is_upgraded_and_not_before() -> None:
    cib = formed()
    for node, level in ((N1, NEWER), (N2, NEWER)):
        cib = join(cib, node, level).cib
        assert cib.feature_level == FIRST_FEATURE_LEVEL
    assert levels.behind(cib, NEWER) == (N3,)
    cib = join(cib, N3, FIRST_FEATURE_LEVEL).cib
    assert cib.feature_level == FIRST_FEATURE_LEVEL
    risen = join(cib, N3, NEWER, life=2)
    assert risen.cib.feature_level == NEWER
    assert [change.kind for change in risen.changes] == [ChangeKind.NODE_JOINED, ChangeKind.FEATURE_LEVEL_ROSE]
    refusal = join(risen.cib, N2, FIRST_FEATURE_LEVEL, life=3).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.NEEDS_UPGRADE
    assert "upgrade haclusterd there" in refusal.text


@pytest.mark.usefixtures("newer")
def test_what_is_too_new_changes_nothing_on_newer_nodes_either() -> None:
    cib = formed()
    applied = put(cib, TICKET, 5)
    assert applied.refusal is not None
    assert applied.refusal.code is RefusalCode.NEEDS_UPGRADE
    older = unreadable(cib, index=5, detail="in other words")
    assert applied.cib == older.cib, "an older node keeps its CIB, and remembers no request"
    assert facts_of(applied.envelope, applied.changes) == facts_of(older.envelope, older.changes)
    for node in (N1, N2, N3):
        cib = join(cib, node, NEWER).cib
    assert put(cib, TICKET, 50).refusal is None


def test_a_rule_decides_from_the_level_on_in_which_it_appeared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "FEATURE_LEVEL", NEWER)
    monkeypatch.setitem(levels.SINCE, (SafetyRules, "refuse_old_term"), NEWER)
    stale = commands.VoidOrders(Term(9), ())
    cib = formed()
    for node, level in ((N1, NEWER), (N2, NEWER), (N3, FIRST_FEATURE_LEVEL)):
        cib = join(cib, node, level).cib
    assert put(cib, stale, 50).refusal is None, "an older member has no such rule"
    cib = join(cib, N3, NEWER, life=2).cib
    refusal = put(cib, stale, 50).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.OLD_TERM
    assert levels.rules_at(ALL_RULES, NEWER) is ALL_RULES
