"""How intents get into the log: repeated until they are seen applied, with one effect each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Applied, ChangeKind
from haclusterd.cib.codec import decode_envelope
from haclusterd.machines.effects import Scope
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import NodeName, RequestId, Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.ports.store import MAX_ENTRY_BYTES
from haclusterd.runtime.proposer import FULL_PAUSE_MS, IN_FLIGHT_MAX, REPEAT_MS, EntryTooLargeError, Proposer

N1 = NodeName("n1")


class Log:
    """A store that takes entries when it has room, and applies them when a test says so."""

    def __init__(self) -> None:
        self.has_room = True
        self.entries: list[bytes] = []
        self.terms: list[Term | None] = []
        self.cib = Cib()
        self.effects: list[str] = []
        self.put(commands.FormCluster("uuid", "test", (Member(N1, ()),)), RequestId("form"))

    def start(self, deliver: object) -> None:
        del deliver

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        if self.has_room:
            self.entries.append(entry)
            self.terms.append(term)
        return self.has_room

    def considered(self, index: int) -> None:
        del index

    def transfer_leadership(self, to: NodeName) -> None:
        del to

    def retime(self, node_timeout_ms: int) -> None:
        del node_timeout_ms

    def stop(self) -> None:
        return None

    def put(self, command: commands.Command, request: RequestId) -> Applied:
        return self._fold(commands.Envelope(request, N1, WallTime(0), command))

    def apply(self, position: int) -> Applied:
        """Let an entry be committed; it stays at hand, to be committed again."""
        return self._fold(decode_envelope(self.entries[position]))

    def _fold(self, envelope: commands.Envelope) -> Applied:
        applied = apply(self.cib, envelope, index=self.cib.index + 1, term=Term(1))
        self.cib = applied.cib
        self.effects += [change.text for change in applied.changes if change.kind is ChangeKind.ATTRIBUTE_CHANGED]
        return applied


class Node:
    """A proposer and its log."""

    def __init__(self) -> None:
        self.log = Log()
        self.proposer = Proposer(N1, "session", self.log)
        self.now = Instant(1000)
        self.done: list[str] = []

    def intend(self, key: str, value: str = "1") -> bool:
        command = commands.SetTransientAttribute(N1, key, value)
        return self.proposer.propose(key, command, self.now, WallTime(0), lambda _: self.done.append(key))

    def wait(self, span_ms: int) -> None:
        self.now = Instant(self.now + span_ms)
        self.proposer.step(self.now)

    def commit(self, position: int = -1) -> str | None:
        return self.proposer.applied(self.log.apply(position))


def test_an_intent_is_sent_at_once_and_forgotten_when_it_is_applied() -> None:
    node = Node()
    assert node.intend("a")
    assert len(node.log.entries) == 1
    assert node.commit() == "a"
    assert node.done == ["a"]
    assert node.proposer.deadline() == NEVER
    node.wait(10 * REPEAT_MS)
    assert len(node.log.entries) == 1


def test_an_intent_in_flight_is_not_proposed_again() -> None:
    node = Node()
    assert node.intend("a", "1")
    assert not node.intend("a", "2")
    assert len(node.log.entries) == 1
    node.commit()
    assert node.intend("a", "2")


def test_what_was_not_seen_applied_is_repeated_under_the_same_request() -> None:
    node = Node()
    node.intend("a")
    assert node.proposer.deadline() == node.now + REPEAT_MS
    node.wait(REPEAT_MS - 1)
    assert len(node.log.entries) == 1
    node.wait(1)
    first, second = node.log.entries
    assert first == second
    node.commit(0)
    assert node.commit(1) is None
    assert (node.done, len(node.log.effects)) == (["a"], 1)


def test_a_new_leader_gets_the_entries_at_once() -> None:
    node = Node()
    node.intend("a")
    node.proposer.leader_changed(node.now)
    assert len(node.log.entries) == 2


def test_a_full_store_is_asked_again_after_a_pause() -> None:
    node = Node()
    node.log.has_room = False
    assert node.intend("a")
    assert node.proposer.deadline() == node.now + FULL_PAUSE_MS
    node.log.has_room = True
    node.wait(FULL_PAUSE_MS)
    assert len(node.log.entries) == 1


def test_fewer_requests_are_in_flight_than_the_cib_remembers_and_those_that_wait_wake_nobody_in_vain() -> None:
    node = Node()
    for number in range(IN_FLIGHT_MAX + 1):
        node.intend(f"k{number}")
    assert len(node.log.entries) == IN_FLIGHT_MAX
    assert node.proposer.deadline() > node.now
    node.commit(0)
    node.wait(FULL_PAUSE_MS)
    assert len(node.log.entries) == IN_FLIGHT_MAX + 1


def test_orders_are_bound_to_their_term_and_nothing_else_is() -> None:
    node = Node()
    node.intend("a")
    node.proposer.propose("orders", commands.IssueOrders(Term(7), ()), node.now, WallTime(0))
    node.wait(REPEAT_MS)
    assert node.log.terms == [None, 7, None, 7]


def test_what_is_forgotten_is_not_repeated_and_tells_nobody() -> None:
    node = Node()
    node.intend("orders:1")
    node.intend("results:1")
    node.proposer.forget("orders:1")
    assert len(node.proposer) == 1
    node.wait(REPEAT_MS)
    assert node.log.entries.count(node.log.entries[0]) == 1
    assert node.log.entries.count(node.log.entries[1]) == 2
    assert node.commit(0) is None
    assert node.done == []


def test_a_key_is_forgotten_alone_and_not_what_begins_like_it() -> None:
    node = Node()
    node.intend("k1")
    node.intend("k10")
    node.proposer.forget("k1")
    assert node.proposer.request_of("k10")
    assert len(node.proposer) == 1


def test_what_was_proposed_in_a_scope_is_forgotten_with_it_whatever_its_key() -> None:
    node = Node()
    for scope in Scope:
        node.proposer.propose(f"any:{scope.name}", commands.ReadBarrier(), node.now, WallTime(0), scope=scope)
    node.proposer.forget_scope(Scope.DC)
    assert node.proposer.request_of("any:INCARNATION")
    node.proposer.forget_scope(Scope.INCARNATION)
    assert node.proposer.request_of("any:PROCESS")
    assert len(node.proposer) == 1


def test_entries_of_others_and_unreadable_ones_concern_nobody_here() -> None:
    node = Node()
    node.intend("a")
    foreign = node.log.put(commands.SetTransientAttribute(N1, "x", "1"), RequestId("n2:session:1"))
    assert node.proposer.applied(foreign) is None
    assert node.proposer.applied(Applied(node.log.cib, None)) is None
    assert len(node.proposer) == 1


def test_a_later_session_does_not_take_an_older_ones_request_for_its_own() -> None:
    node = Node()
    node.intend("a")
    later = Proposer(N1, "later", node.log)
    later.propose("b", commands.SetTransientAttribute(N1, "b", "1"), node.now, WallTime(0))
    assert later.applied(node.log.apply(0)) is None


def test_a_command_that_no_entry_can_hold_is_an_error() -> None:
    node = Node()
    with pytest.raises(EntryTooLargeError):
        node.intend("a", "x" * MAX_ENTRY_BYTES)
    assert len(node.proposer) == 0
    assert node.log.entries == []


@given(st.lists(st.tuples(st.sampled_from(["intend", "commit", "repeat", "leader", "full"]), st.integers(0, 200))))
def test_every_intent_has_one_effect_however_often_its_entries_are_committed(events: list[tuple[str, int]]) -> None:
    node = Node()
    intents = 0
    for event, pick in events:
        if event == "intend":
            intents += node.intend(f"k{intents}")
        elif event == "commit" and node.log.entries:
            node.commit(pick % len(node.log.entries))
        elif event == "repeat":
            node.wait(REPEAT_MS)
        elif event == "leader":
            node.proposer.leader_changed(node.now)
        else:
            node.log.has_room = pick % 2 == 0
    node.log.has_room = True
    for _ in range(intents):
        node.wait(REPEAT_MS)
        for position in range(len(node.log.entries)):
            node.commit(position)
        if not len(node.proposer):
            break
    assert sorted(node.done) == sorted(f"k{number}" for number in range(intents))
    assert len(node.log.effects) == intents == len(set(node.log.effects))


