"""Ports for what a cluster on one machine listens on."""

import socket
from pathlib import Path

import pytest

from haclusterd.entry_points import free_ports as room
from haclusterd.entry_points.free_ports import free_port_pairs, free_ports

V4 = "127.0.0.1"


def test_no_outgoing_connection_is_given_one_of_them() -> None:
    first, last = map(int, room.LOCAL_PORT_RANGE.read_text().split())
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
    monkeypatch.setattr(room, "LOCAL_PORT_RANGE", ranges)
    monkeypatch.setattr(room, "LOWEST", taken)
    monkeypatch.setattr(room, "HIGHEST", taken + 1)
    assert free_ports(V4, 1) == [taken]
    with socket.socket(socket.AF_INET, kind) as holder:
        holder.bind((V4, taken))
        with pytest.raises(OSError, match=r"no 1 ports are free outside of 60000-61000"):
            free_ports(V4, 1)


def test_of_a_pair_both_are_free_and_no_pairs_overlap() -> None:
    found = free_port_pairs(V4, 20)
    both = {*found, *(port + 1 for port in found)}
    assert len(both) == 40
