"""Ports for what a cluster on one machine listens on."""

import socket
from pathlib import Path

import pytest

from haclusterd.entry_points import free_ports as room
from haclusterd.entry_points.free_ports import GIVEN, candidates, free_port_pairs, free_ports
from tests.conftest import ports_of

V4 = "127.0.0.1"


def test_no_outgoing_connection_is_given_one_of_them() -> None:
    first, last = map(int, room.OUTGOING.read_text().split())
    found = free_ports(V4, 20)
    assert len(set(found)) == 20
    assert [port for port in found if first <= port <= last] == []


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_one_that_is_taken_is_none_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: socket.SocketKind
) -> None:
    [taken, *_] = free_ports(V4, 1)
    ranges = tmp_path / "range"
    ranges.write_text("60000\t61000\n")
    monkeypatch.setattr(room, "OUTGOING", ranges)
    monkeypatch.setenv(GIVEN, f"{taken}-{taken}")
    assert free_ports(V4, 1) == [taken]
    with socket.socket(socket.AF_INET, kind) as holder:
        holder.bind((V4, taken))
        with pytest.raises(OSError, match=f"no 1 ports are free in {taken}-{taken}"):
            free_ports(V4, 1)


def test_of_a_pair_both_are_free_and_no_pairs_overlap() -> None:
    found = free_port_pairs(V4, 20)
    both = {*found, *(port + 1 for port in found)}
    assert len(both) == 40


@pytest.mark.parametrize("given", ["", "20000", "20000-", "20009-20000", "0-9", "20000-65534", "a-b", "20000-20009-1"])
def test_a_range_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(GIVEN, given)
    with pytest.raises(OSError, match="it wants to be like 20000-24999"):
        free_ports(V4, 1)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_those_who_test_side_by_side_share_all_that_there_are(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.delenv(GIVEN, raising=False)
    everybody = candidates()
    shares = []
    for worker in range(workers):
        monkeypatch.setenv(GIVEN, ports_of(worker, workers, everybody))
        shares.append(candidates())
    joined = [port for share in shares for port in share]
    assert joined == everybody[: len(joined)]
    assert len(joined) > len(everybody) - workers
