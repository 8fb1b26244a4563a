"""The journal file: everything synced comes back, nothing is ever silently changed."""

import random
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import StoreDamagedError, StoreRefusedError
from haclusterd.raft.journal import (
    FIRST_INDEX,
    JOURNAL_NAME,
    NO_OPERATION,
    PAGE_BYTES,
    Journal,
    JournalContent,
    create_journal,
    decode_journal,
    encode_journal,
    open_journal,
)
from tests.simulation.store_world import CLUSTER, PowerLossError, SimulatedDisk

N1, N2 = NodeName("n1"), NodeName("n2")
BASE = (NO_OPERATION, FIRST_INDEX, 0)


def new_journal(disk: SimulatedDisk) -> Journal:
    create_journal(disk, CLUSTER, N1)
    return reopen(disk)


def reopen(disk: SimulatedDisk, snapshot: tuple[int, int] | None = None) -> Journal:
    return open_journal(disk, CLUSTER, N1, snapshot)


def flush(journal: Journal) -> None:
    write = journal.begin_write()
    if write is not None:
        write()
        journal.written()


def tear_write(disk: SimulatedDisk, journal: Journal) -> None:
    """Lose power in the midst of the next write."""
    write = journal.begin_write()
    assert write is not None
    disk.tearing = True
    with pytest.raises(PowerLossError):
        write()
    disk.tearing = False


def content(journal: Journal) -> tuple[list[tuple[bytes, int, int]], int, str | None]:
    return journal[:], journal.getCurrentTerm(), journal.getVotedForNodeId()


def filled(disk: SimulatedDisk) -> list[tuple[object, bytes]]:
    """Write a small journal; return each state that was synced, with the file's content then."""
    journal = new_journal(disk)
    states = [(content(journal), disk.durable(JOURNAL_NAME))]

    def step(change: Callable[[], object]) -> None:
        change()
        flush(journal)
        states.append((content(journal), disk.durable(JOURNAL_NAME)))

    step(lambda: journal.setCurrentTerm(1, N2))
    step(lambda: [journal.add(b"\0command %d" % index, index, 1) for index in (2, 3, 4)])
    step(lambda: journal.truncate(4))
    step(lambda: (journal.setCurrentTerm(2, None), journal.add(b"\0other", 4, 2)))
    step(lambda: journal.add(b"\0last", 5, 2))
    return states


def telling_bits(size: int) -> list[int]:
    """Return every bit at the beginning of each page, where the records are, and some of the padding."""
    return [bit for bit in range(8 * size) if bit // 8 % PAGE_BYTES < 160 or bit % 101 == 0]


def test_what_was_synced_is_read_again() -> None:
    disk = SimulatedDisk()
    states = filled(disk)
    journal = reopen(disk)
    assert content(journal) == states[-1][0]
    assert content(journal) == (
        [BASE, (b"\0command 2", 2, 1), (b"\0command 3", 3, 1), (b"\0other", 4, 2), (b"\0last", 5, 2)],
        2,
        None,
    )
    assert (journal.last_index, journal.synced_index, journal.base) == (5, 5, (1, 0))


def test_a_file_cut_at_any_byte_is_a_synced_prefix_or_refused() -> None:
    disk = SimulatedDisk()
    states = filled(disk)
    data = disk.durable(JOURNAL_NAME)
    by_size = {len(file): state for state, file in states}
    created = min(by_size)
    for size in range(len(data)):
        disk.put(JOURNAL_NAME, data[:size])
        if size < created:
            with pytest.raises(StoreDamagedError, match="disk/journal: damaged at offset"):
                reopen(disk)
        else:
            expected = by_size[max(length for length in by_size if length <= size)]
            assert content(reopen(disk)) == expected
            assert disk.durable(JOURNAL_NAME) == disk.written(JOURNAL_NAME)


def test_no_flipped_bit_changes_the_content_silently() -> None:
    disk = SimulatedDisk()
    states = filled(disk)
    data = disk.durable(JOURNAL_NAME)
    last_frame = len(states[-2][1])
    refused = cut = 0
    for bit in telling_bits(len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.put(JOURNAL_NAME, bytes(damaged))
        try:
            journal = reopen(disk)
        except (StoreDamagedError, StoreRefusedError):
            refused += 1
        else:
            # The last frame cannot be distinguished from one that was torn in writing; it is lost whole, never changed.
            assert bit // 8 >= last_frame
            assert content(journal) == states[-2][0]
            cut += 1
    assert refused == sum(bit // 8 < last_frame for bit in telling_bits(len(data)))
    assert cut == sum(bit // 8 >= last_frame for bit in telling_bits(len(data)))


def test_damage_in_a_rewritten_journal_is_never_taken_for_a_torn_write() -> None:
    disk = SimulatedDisk()
    filled(disk)
    journal = reopen(disk)
    journal.compact(3)
    flush(journal)
    data = disk.durable(JOURNAL_NAME)
    for size in range(0, len(data), 7):
        disk.put(JOURNAL_NAME, data[:size])
        with pytest.raises(StoreDamagedError):
            reopen(disk, (3, 1))
    for bit in telling_bits(len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.put(JOURNAL_NAME, bytes(damaged))
        with pytest.raises((StoreDamagedError, StoreRefusedError)):
            reopen(disk, (3, 1))


def test_a_journal_of_the_format_before_is_read_and_written_in_the_new_one() -> None:
    """Format 1, as version 0.1 wrote it: frames follow each other without padding."""
    disk = SimulatedDisk()
    names = f"{CLUSTER}\0n1".encode()
    first = bytes.fromhex("f5484a9a")

    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("<BI", kind, len(content)) + content

    def frame(*records: bytes) -> bytes:
        body = b"".join(records)
        checksum = zlib.crc32(body, zlib.crc32(len(body).to_bytes(4, "little")))
        return first + struct.pack("<II", len(body), checksum) + body

    base = frame(record(1, struct.pack("<QQ", 1, 0)), record(4, struct.pack("<Q", 0)), record(5, struct.pack("<Q", 1)))
    header = struct.pack("<8sHHQ", b"HACLJRNL", 1, len(names), 20 + len(names) + 4 + len(base)) + names
    data = header + zlib.crc32(header).to_bytes(4, "little") + base
    data += frame(record(4, struct.pack("<Q", 1) + b"n2"), record(2, struct.pack("<QQ", 2, 1) + b"\0old"))
    disk.put(JOURNAL_NAME, data)
    assert content(reopen(disk)) == ([BASE, (b"\0old", 2, 1)], 1, N2)
    assert disk.durable(JOURNAL_NAME)[8:10] == (2).to_bytes(2, "little")
    assert content(reopen(disk)) == ([BASE, (b"\0old", 2, 1)], 1, N2)


def test_every_write_fills_whole_pages() -> None:
    disk = SimulatedDisk()
    journal = new_journal(disk)
    for size in (0, 1, *range(4030, 4060), 9000):
        journal.add(b"\0" * (1 + size), journal.last_index + 1, 1)
        flush(journal)
        assert len(disk.durable(JOURNAL_NAME)) % PAGE_BYTES == 0
    assert reopen(disk).last_index == journal.last_index


def test_damage_is_named_with_file_offset_and_remedy() -> None:
    disk = SimulatedDisk()
    states = filled(disk)
    data = bytearray(disk.durable(JOURNAL_NAME))
    offset = len(states[2][1])
    data[offset + 20] ^= 1
    disk.put(JOURNAL_NAME, bytes(data))
    with pytest.raises(StoreDamagedError) as refusal:
        reopen(disk)
    message = str(refusal.value)
    assert f"disk/journal: damaged at offset {offset}" in message
    assert "crm cluster remove" in message


def test_a_kill_inside_the_compaction_keeps_every_entry() -> None:
    disk = SimulatedDisk()
    states = filled(disk)
    journal = reopen(disk)
    journal.compact(3)
    tear_write(disk, journal)
    disk.lose_power(random.Random(1))
    assert content(reopen(disk, (3, 1))) == states[-1][0]


def test_compaction_keeps_what_lies_behind_and_later_writes_append() -> None:
    disk = SimulatedDisk()
    filled(disk)
    journal = reopen(disk)
    journal.compact(3)
    journal.add(b"\0six", 6, 2)
    flush(journal)
    journal.add(b"\0seven", 7, 2)
    flush(journal)
    expected = [(NO_OPERATION, 3, 1), (b"\0other", 4, 2), (b"\0last", 5, 2), (b"\0six", 6, 2), (b"\0seven", 7, 2)]
    assert reopen(disk, (3, 1))[:] == expected
    assert reopen(disk, (5, 2))[:] == expected


def test_a_compaction_up_to_an_entry_that_has_gone_already_changes_nothing() -> None:
    disk = SimulatedDisk()
    filled(disk)
    journal = reopen(disk)
    journal.compact(3)
    expected = journal[:]
    journal.compact(2)
    assert journal[:] == expected


@pytest.mark.parametrize(("index", "term"), [(7, 2), (5, 2), (6, 1)])
def test_a_log_with_a_gap_or_an_older_term_behind_a_newer_one_is_damaged(index: int, term: int) -> None:
    entries = [(NO_OPERATION, 4, 1), (b"\0five", 5, 2), (b"\0next", index, term)]
    image = encode_journal(b"names", JournalContent(entries))
    with pytest.raises(StoreDamagedError, match=f"entry {index} of term {term} does not follow entry 5"):
        decode_journal(image, b"names", "disk/journal")


def test_nothing_counts_as_synced_before_the_write_is_done() -> None:
    journal = new_journal(SimulatedDisk())
    journal.setCurrentTerm(1, N1)
    journal.add(b"\0a", 2, 1)
    assert not journal.is_vote_synced
    assert journal.synced_index == 1
    write = journal.begin_write()
    journal.add(b"\0b", 3, 1)
    assert write is not None
    assert journal.begin_write() is None, "one write at a time"
    assert not journal.is_vote_synced
    write()
    journal.written()
    assert journal.is_vote_synced
    assert journal.synced_index == 2
    flush(journal)
    assert journal.synced_index == 3
    assert journal.begin_write() is None, "nothing is left to write"


def test_an_entry_truncated_while_it_is_written_is_not_synced_by_that_write() -> None:
    journal = new_journal(SimulatedDisk())
    for index in (2, 3):
        journal.add(b"\0old", index, 1)
    write = journal.begin_write()
    assert write is not None
    journal.truncate(3)
    journal.add(b"\0new", 3, 2)
    write()
    journal.written()
    assert journal.synced_index == 2
    flush(journal)
    assert journal.synced_index == 3


def test_truncating_synced_entries_takes_the_mark_back() -> None:
    journal = new_journal(SimulatedDisk())
    for index in (2, 3, 4):
        journal.add(b"\0old", index, 1)
    flush(journal)
    journal.truncate(3)
    journal.add(b"\0new", 3, 2)
    assert journal.synced_index == 2


def test_the_commit_index_alone_is_written_after_a_second() -> None:
    disk = SimulatedDisk()
    journal = new_journal(disk)
    journal.add(b"\0a", 2, 1)
    flush(journal)
    journal.setRaftCommitIndex(2)
    assert journal.begin_write() is None
    journal.onOneSecondTimer()
    flush(journal)
    assert reopen(disk).getRaftCommitIndex() == 2


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        ((3, 1), [2, 3, 4, 5]),
        ((5, 2), [2, 3, 4, 5]),
        ((6, 2), []),
        ((9, 3), []),
        ((4, 1), []),
    ],
    ids=["older", "same end", "one ahead", "far ahead", "conflicting tail"],
)
def test_the_log_is_aligned_with_the_snapshot_and_its_suffix_kept(
    snapshot: tuple[int, int], expected: list[int]
) -> None:
    disk = SimulatedDisk()
    filled(disk)
    journal = reopen(disk, snapshot)
    assert [entry[1] for entry in journal[1:]] == expected
    assert journal.getRaftCommitIndex() >= snapshot[0]
    if not expected:
        assert journal.base == snapshot
        flush(journal)
        assert reopen(disk, snapshot).base == snapshot


def test_a_compacted_journal_without_its_snapshot_is_refused() -> None:
    disk = SimulatedDisk()
    filled(disk)
    journal = reopen(disk)
    journal.compact(4)
    flush(journal)
    for snapshot in (None, (3, 1), (4, 1)):
        with pytest.raises(StoreDamagedError, match="the log begins after entry 4"):
            reopen(disk, snapshot)


def test_a_journal_of_another_node_or_cluster_is_refused() -> None:
    disk = SimulatedDisk()
    new_journal(disk)
    with pytest.raises(StoreRefusedError, match="node n1"):
        open_journal(disk, CLUSTER, N2, None)
    with pytest.raises(StoreRefusedError, match="belongs to another"):
        open_journal(disk, CLUSTER.replace("1", "9"), N1, None)


def test_unsynced_bytes_of_a_killed_process_are_synced_before_they_count() -> None:
    disk = SimulatedDisk()
    journal = new_journal(disk)
    journal.add(b"\0a", 2, 1)
    tear_write(disk, journal)
    assert reopen(disk).last_index == 2
    assert disk.durable(JOURNAL_NAME) == disk.written(JOURNAL_NAME)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_after_power_loss_the_log_is_a_state_between_the_last_sync_and_the_crash(data: st.DataObject) -> None:
    disk = SimulatedDisk()
    journal = new_journal(disk)
    states = [content(journal)]
    synced = 0
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.sampled_from(("add", "add", "truncate", "vote", "flush")))
        term = journal.getCurrentTerm()
        if action == "add":
            journal.add(b"\0" + chance.randbytes(5), journal.last_index + 1, max(term, journal[-1][2]))
        elif action == "truncate" and journal.last_index > 4:
            journal.truncate(journal.last_index - chance.randrange(2))
        elif action == "vote":
            journal.setCurrentTerm(term + 1, N2)
        elif action == "flush":
            flush(journal)
            synced = len(states)
        states.append(content(journal))
    write = journal.begin_write()
    if write is not None and data.draw(st.booleans()):
        disk.tearing = True
        with pytest.raises(PowerLossError):
            write()
        disk.tearing = False
    disk.lose_power(chance)
    assert content(reopen(disk)) in states[synced:]


def test_what_a_failed_sync_left_in_memory_is_written_again_before_it_counts() -> None:
    """Linux keeps the pages of a failed fsync readable and clean: the next one succeeds and writes nothing."""
    disk = SimulatedDisk()
    journal = new_journal(disk)
    journal.setCurrentTerm(1, N2)
    journal.add(b"\0a", 2, 1)
    write = journal.begin_write()
    assert write is not None
    disk.fails_syncs = True
    with pytest.raises(OSError, match="Input/output error"):
        write()
    with pytest.raises(OSError, match="Input/output error"):
        reopen(disk)
    disk.fails_syncs = False
    after = reopen(disk)
    assert (after.synced_index, after.getVotedForNodeId()) == (2, N2)
    disk.lose_power(random.Random(1))
    assert content(reopen(disk)) == content(after)


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_write_ruins_nothing_that_was_synced_before(seed: int) -> None:
    """The kernel writes whole pages: a page that is torn takes everything with it that shares it."""
    disk = SimulatedDisk()
    states = filled(disk)
    journal = reopen(disk)
    journal.add(b"\0torn", 6, 2)
    tear_write(disk, journal)
    disk.lose_power(random.Random(seed))
    assert reopen(disk)[:6][: len(states[-1][0][0])] == states[-1][0][0]
