"""Whatever is applied, skipped, lost, replayed and repaired in whatever order: what nodes remember becomes equal.

Three histories and one log. At every moment each shows nothing that did not happen, and what it lacks is in a gap.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from haclusterd.adapters.history.reading import page, read, summarise
from haclusterd.adapters.history.tables import HistoryTables
from haclusterd.model.ids import NodeName
from haclusterd.model.remembered import HistoryQuery, HistorySummary, Span
from haclusterd.protocol.history_messages import TellPage, decode, encode
from tests.examples import examples
from tests.remembered_logs import WrittenLog, row

NODES = st.integers(0, 2)


class Node:
    def __init__(self) -> None:
        self.tables = HistoryTables(":memory:")
        self.applied = 0


class Remembering(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.log = WrittenLog()
        self.nodes = [Node() for _ in range(3)]

    @rule(steps=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3)), min_size=1, max_size=8))
    def entries_are_committed(self, steps: list[tuple[int, int]]) -> None:
        for step, count in steps:
            index = self.log.last + step
            self.log.add(index, *(row(index, n) for n in range(count)))

    @rule(share=st.integers(1, 4))
    def the_oldest_are_forgotten(self, share: int) -> None:
        through = self.log.last // share
        if self.log.mark.forgotten < through:
            index = self.log.last + 1
            self.log.add(index, row(index), forgotten=through)

    @rule(which=NODES, count=st.integers(1, 10))
    def a_node_applies(self, which: int, count: int) -> None:
        node = self.nodes[which]
        found = [entry for entry in self.log.entries if entry.index > node.applied][:count]
        if found:
            node.tables.write(found)
            node.applied = found[-1].index

    @rule(which=NODES, back=st.integers(0, 20))
    def a_node_starts_again(self, which: int, back: int) -> None:
        """It is restored from its snapshot, and the journal behind it is replayed."""
        node = self.nodes[which]
        snapshot = max(0, node.applied - back)
        replayed = [entry for entry in self.log.entries if snapshot < entry.index <= node.applied]
        node.tables.write([self.log.jump(snapshot), *replayed])

    @rule(which=NODES)
    def a_node_is_sent_a_snapshot(self, which: int) -> None:
        node = self.nodes[which]
        node.tables.write([self.log.jump(self.log.last)])
        node.applied = self.log.last

    @rule(which=st.integers(1, 2))
    def a_node_loses_its_file(self, which: int) -> None:
        node = self.nodes[which]
        node.tables.close()
        node.tables = HistoryTables(":memory:")
        node.tables.write([self.log.jump(node.applied)])

    @rule(which=st.integers(1, 2), share=st.integers(1, 100))
    def a_node_finds_damage(self, which: int, share: int) -> None:
        tables = self.nodes[which].tables
        found = tables.database.execute("SELECT log_index FROM entry ORDER BY log_index").fetchall()
        if found:
            (index,) = found[len(found) * share // 101]
            tables.database.execute("UPDATE event SET detail = 'x' WHERE log_index = ?", (index,))
            tables.mark_damaged([Span(index, index)])

    @precondition(lambda self: self.log.last > 0)
    @rule(which=NODES, whom=NODES, entries_max=st.integers(1, 5))
    def a_node_asks_another(self, which: int, whom: int, entries_max: int) -> None:
        self.repair(self.nodes[which], self.nodes[whom], entries_max)

    def repair(self, node: Node, peer: Node, entries_max: int) -> bool:
        for gap in reversed(node.tables.gaps()):
            found = page(peer.tables, gap.first, gap.last, entries_max=entries_max) if gap.digest is not None else None
            if found is not None:
                answer = decode(encode(TellPage(1, found)))
                assert isinstance(answer, TellPage)
                assert answer.page == found
                assert node.tables.fill(gap, found)
                return True
        return False

    @invariant()
    def nothing_is_made_up_and_nothing_is_lacking_silently(self) -> None:
        for node in self.nodes:
            progress = node.tables.progress()
            gaps = node.tables.gaps()
            rows = [each for each in read(node.tables, HistoryQuery(limit=100_000)).rows if each.n >= 0]
            expected = [
                each
                for entry in self.log.entries
                for each in entry.rows
                if progress.forgotten < entry.index <= progress.last
                and not any(gap.first <= entry.index <= gap.last for gap in gaps)
            ]
            assert rows == expected
            assert progress.digest == self.log.digest_at(progress.last)

    def teardown(self) -> None:
        """Everything is delivered; what every node remembers is equal, wherever somebody had it."""
        for node in self.nodes:
            node.tables.write([entry for entry in self.log.entries if entry.index > node.applied])
        whole = HistoryTables(":memory:")
        whole.write(self.log.entries)
        witness = Node()
        witness.tables = whole
        for node in self.nodes:
            for _ in range(1000):
                if not self.repair(node, witness, 4):
                    break
            assert node.tables.gaps() == ()
        summaries = [summary(node.tables, self.log.last) for node in (*self.nodes, witness)]
        assert all(each == summaries[0] for each in summaries)
        assert list(read(whole, HistoryQuery(limit=100_000)).rows) == self.log.rows()
        for node in (*self.nodes, witness):
            node.tables.close()


def summary(tables: HistoryTables, through: int) -> HistorySummary:
    reading = summarise(tables, NodeName("n"), through)
    while True:
        try:
            next(reading)
        except StopIteration as finished:
            found: HistorySummary = finished.value
            assert not found.damaged
            return found


TestRemembering = Remembering.TestCase
TestRemembering.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
