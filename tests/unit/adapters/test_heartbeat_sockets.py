"""The pacer's UDP sockets: each link its own address, and no refusal of the network an exception."""

import selectors
import socket
from collections.abc import Iterator

import pytest

from haclusterd.adapters.heartbeat_sockets import HeartbeatSockets
from haclusterd.entry_points.free_ports import free_ports

V4, V6 = "127.0.0.1", "::1"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind((V6, 0))
    except OSError:
        return False
    return True


def free_port() -> int:
    return free_ports(V4, 1)[0]


class End:
    """Sockets, and what they received."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.received: list[bytes] = []
        self.sockets = HeartbeatSockets(self.selector, lambda datagram, _: self.received.append(datagram))

    def receive(self) -> list[bytes]:
        """Wait until something came, and return it."""
        for key, _ in self.selector.select(10):
            key.data()
        received = list(self.received)
        self.received.clear()
        return received


@pytest.fixture
def end() -> Iterator[End]:
    made = End()
    yield made
    made.sockets.close()
    made.selector.close()


def test_what_is_sent_is_received(end: End) -> None:
    address = (V4, free_port())
    end.sockets.listen([address])
    end.sockets.send(0, address, b"hello")
    assert end.receive() == [b"hello"]
    assert end.sockets.errors == ()


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback")
def test_both_families_and_the_sender_of_each_link(end: End) -> None:
    # Free at the unspecified address of IPv6 is free in both families.
    other, port = free_ports("::", 2)
    listen = [(V4, other), (V6, port), (V4, port)]
    end.sockets.listen(listen)
    assert end.sockets.errors == ()
    for link, (host, expected) in enumerate(listen):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.bind((host, 0))
            peer.settimeout(10)
            end.sockets.send(link, (host, peer.getsockname()[1]), b"x")
            _, sender = peer.recvfrom(10)
            assert sender[:2] == (host, expected)
    end.sockets.send(1, listen[0], b"from another family's link")
    assert end.receive() == [b"from another family's link"]


@pytest.mark.parametrize("host", ["localhost", "no.such.host.example", "", "300.1.1.1", "\ud800"])
def test_names_are_not_looked_up(end: End, host: str) -> None:
    end.sockets.listen([(host, 5001), (V4, free_port())])
    assert "not a numeric address" in end.sockets.errors[0]
    end.sockets.send(0, (host, 5001), b"x")


def test_a_peer_of_a_family_that_is_not_listened_on_is_told(end: End) -> None:
    end.sockets.listen([(V4, free_port())])
    end.sockets.send(0, (V6, 5001), b"x")
    assert end.sockets.errors == ("cannot send to ::1 port 5001: no listening address of its family",)


def test_what_the_network_refuses_is_told_while_it_does(end: End) -> None:
    end.sockets.listen([(V4, free_port())])
    end.sockets.send(0, ("255.255.255.255", 5001), b"broadcast is not permitted")
    assert end.sockets.errors == ("cannot send to 255.255.255.255 port 5001: Permission denied",)
    end.sockets.listen([])
    assert end.sockets.errors == ()


def test_nobody_listening_at_the_peer_is_no_error(end: End) -> None:
    nobody, own = ((V4, port) for port in free_ports(V4, 2))
    end.sockets.listen([own])
    for _ in range(3):
        end.sockets.send(0, nobody, b"x")
    assert end.sockets.errors == ()


def test_a_port_in_use_is_tried_again(end: End) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as squatter:
        address = (V4, free_port())
        squatter.bind(address)
        end.sockets.listen([address])
        told = f"cannot listen on {V4} port {address[1]}: Address already in use; trying again"
        assert end.sockets.errors == (told,)
        end.sockets.retry()
        assert end.sockets.errors == (told,)
    end.sockets.retry()
    assert end.sockets.errors == ()


def test_addresses_that_stay_are_not_disturbed(end: End) -> None:
    stays, goes, comes = ((V4, port) for port in free_ports(V4, 3))
    end.sockets.listen([stays, goes])
    end.sockets.send(0, stays, b"waiting")
    end.sockets.listen([stays, comes])
    assert end.receive() == [b"waiting"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(goes)
