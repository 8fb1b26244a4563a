import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.ids import Term
from haclusterd.ports.store import StoreDamagedError
from haclusterd.raft.frames import CHUNK_BYTES
from haclusterd.raft.snapshot import (
    SNAPSHOT_NAME,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    index_of,
    load_snapshot,
    write_snapshot,
)
from haclusterd.raft.snapshot_transfer import WINDOW_BYTES, SnapshotReceiver, SnapshotSender
from tests.simulation.store_world import CLUSTER, SimulatedDisk

SNAPSHOT = Snapshot(17, Term(3), b"state" * 20)


def test_what_was_written_is_read_again() -> None:
    disk = SimulatedDisk()
    assert load_snapshot(disk, CLUSTER) is None
    write_snapshot(disk, SNAPSHOT, CLUSTER)
    assert load_snapshot(disk, CLUSTER) == SNAPSHOT
    assert index_of(disk.durable(SNAPSHOT_NAME)) == 17


def test_no_flipped_bit_and_no_cut_is_ever_loaded() -> None:
    disk = SimulatedDisk()
    data = encode_snapshot(SNAPSHOT, CLUSTER)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.put(SNAPSHOT_NAME, bytes(damaged))
        with pytest.raises(StoreDamagedError, match="disk/snapshot: offset 0"):
            load_snapshot(disk, CLUSTER)
    for size in range(len(data)):
        disk.put(SNAPSHOT_NAME, data[:size])
        with pytest.raises(StoreDamagedError):
            load_snapshot(disk, CLUSTER)


def test_a_snapshot_of_another_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="another cluster"):
        decode_snapshot(encode_snapshot(SNAPSHOT, CLUSTER), CLUSTER.replace("1", "9"))


@given(image=st.binary(min_size=1, max_size=3 * CHUNK_BYTES), losses=st.lists(st.booleans(), max_size=40))
def test_a_transfer_completes_whatever_chunks_are_lost(image: bytes, losses: list[bool]) -> None:
    sender = SnapshotSender(5, image, stuck_after_ms=100, now=0)
    receiver = SnapshotReceiver()
    lost = iter(losses)
    for now in range(0, 50_000, 50):
        for offset, data in sender.chunks(now):
            if next(lost, False):
                continue
            done = receiver.accept("n1", 5, len(image), offset, data)
            if done is not None:
                assert done == image
                return
            sender.answered(receiver.offset, now)
    raise AssertionError("never completed")


def test_the_window_bounds_what_is_under_way_and_an_empty_chunk_keeps_the_link_warm() -> None:
    sender = SnapshotSender(5, bytes(2 * WINDOW_BYTES), stuck_after_ms=100, now=0)
    assert sum(len(data) for _, data in sender.chunks(0)) == WINDOW_BYTES
    assert sender.chunks(0) == [(WINDOW_BYTES, b"")]
    assert sender.answered(CHUNK_BYTES, 1)
    assert [offset for offset, _ in sender.chunks(1)] == [WINDOW_BYTES]


def test_a_receiver_that_started_again_is_served_from_the_start() -> None:
    image = bytes(range(256)) * 2048
    sender = SnapshotSender(5, image, stuck_after_ms=100, now=0)
    chunks = sender.chunks(0)
    sender.answered(2 * CHUNK_BYTES, 0)
    sender.answered(0, 0)
    assert sender.chunks(0)[0] == chunks[0]


def test_chunks_of_two_snapshots_are_never_mixed() -> None:
    receiver = SnapshotReceiver()
    assert receiver.accept("n1", 5, 4, 0, b"ab") is None
    assert receiver.accept("n2", 5, 4, 2, b"cd") is None
    assert receiver.offset == 0
    assert receiver.accept("n2", 5, 4, 0, b"wxyz") == b"wxyz"


def test_a_chunk_beyond_the_announced_total_is_not_kept() -> None:
    receiver = SnapshotReceiver()
    assert receiver.accept("n1", 5, 4, 0, b"abcde") is None
    assert receiver.offset == 0
