"""The pacer's UDP sockets: each link its own address, and no refusal of the network an exception."""

import selectors
import socket
from collections.abc import Iterator

import pytest

from haclusterd.adapters.pacer.heartbeat_sockets import OTHERS_MAX, OTHERS_SPAN_MS, HeartbeatSockets
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.instants import NEVER, Instant

V4, V6 = "127.0.0.1", "::1"
SO_LOCK_FILTER = 44


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
        self.sockets = HeartbeatSockets(self.selector, lambda datagram, *_: self.received.append(datagram))

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


def test_a_peer_of_a_family_that_is_not_listened_on_is_reported(end: End) -> None:
    end.sockets.listen([(V4, free_port())])
    end.sockets.send(0, (V6, 5001), b"x")
    assert end.sockets.errors == ("cannot send to ::1 port 5001: no listening address of its family",)


def test_what_the_network_refuses_is_reported_while_it_does(end: End) -> None:
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
        received = f"cannot listen on {V4} port {address[1]}: Address already in use; trying again"
        assert end.sockets.errors == (received,)
        end.sockets.retry()
        assert end.sockets.errors == (received,)
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


# -- peers, and everybody else ----------------------------------------------------------------------------------------


class Peer:
    """Somebody with an address."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((V4, free_port()))

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.socket.getsockname()
        return str(host), int(port)

    def send(self, to: tuple[str, int], *datagrams: bytes) -> None:
        for datagram in datagrams:
            self.socket.sendto(datagram, to)


@pytest.fixture
def peers() -> Iterator[list[Peer]]:
    made = [Peer() for _ in range(3)]
    yield made
    for each in made:
        each.socket.close()


def all_that_came(end: End, turns: int = 100) -> list[bytes]:
    """Read whatever there is, in turns of the loop, without letting time pass."""
    for _ in range(turns):
        for key, _ in end.selector.select(0):
            key.data()
    received = list(end.received)
    end.received.clear()
    return received


def test_a_flood_of_others_is_read_at_a_bounded_rate_and_keeps_no_peer_out(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    peer, _, other = peers
    end.sockets.listen([own], [[peer.address]])
    for _ in range(4 * OTHERS_MAX):
        other.send(own, b"noise")
        all_that_came(end, 0)
    peer.send(own, b"heartbeat")
    received = all_that_came(end)
    assert received.count(b"heartbeat") == 1
    assert received.count(b"noise") <= OTHERS_MAX
    assert end.sockets.wake_at < NEVER
    peer.send(own, b"one more")
    assert all_that_came(end) == [b"one more"]
    end.sockets.turn(Instant(10 * OTHERS_SPAN_MS))
    assert end.sockets.wake_at == NEVER
    other.send(own, b"heard again")
    assert all_that_came(end)[-1] == b"heard again"


def test_a_flood_in_the_name_of_one_peer_keeps_no_other_out(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    end.sockets.listen([own], [[peer.address] for peer in peers])
    peers[0].send(own, *[b"forged"] * 20_000)
    peers[1].send(own, b"heartbeat")
    for key, _ in end.selector.select(10):
        key.data()
    assert b"heartbeat" in end.received, "in the first turn of the loop"
    assert len(end.received) < 200


def test_while_others_are_not_listened_to_the_addresses_may_change(end: End, peers: list[Peer]) -> None:
    stays, goes, comes = ((V4, port) for port in free_ports(V4, 3))
    end.sockets.listen([stays, goes], [[peers[0].address]])
    peers[2].send(stays, *[b"noise"] * 2 * OTHERS_MAX)
    while end.sockets.wake_at == NEVER:
        all_that_came(end, 1)
        peers[2].send(stays, b"noise")
    end.sockets.listen([stays, comes], [[peers[1].address]])
    peers[1].send(stays, b"heartbeat")
    assert all_that_came(end) == [b"heartbeat"]
    end.sockets.turn(Instant(10 * OTHERS_SPAN_MS))
    peers[2].send(comes, b"to the new address")
    assert b"to the new address" in all_that_came(end)


def test_a_peer_that_moves_is_followed_and_is_heard_from_anywhere(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    end.sockets.listen([own], [[peers[0].address]])
    peers[1].send(own, b"from an address that nobody configured")
    assert all_that_came(end) == [b"from an address that nobody configured"]
    end.sockets.listen([own], [[peers[1].address]])
    for peer in peers:
        peer.send(own, b"x")
    assert all_that_came(end) == [b"x"] * 3


def test_each_link_of_a_peer_has_a_queue_and_sends_from_its_own_address(end: End, peers: list[Peer]) -> None:
    first, second = ((V4, port) for port in free_ports(V4, 2))
    end.sockets.listen([first, second], [[peers[0].address, peers[1].address]])
    peers[2].send(first, *[b"noise"] * 2 * OTHERS_MAX)
    peers[1].send(second, b"over the second")
    assert b"over the second" in all_that_came(end)
    end.sockets.send(1, peers[1].address, b"hello")
    peers[1].socket.settimeout(10)
    assert peers[1].socket.recvfrom(10) == (b"hello", second)


def test_a_port_that_is_shared_among_peers_is_in_use_for_everybody_else(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    end.sockets.listen([own], [[peer.address] for peer in peers])
    for option in (socket.SO_REUSEPORT, socket.SO_REUSEADDR):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thief:
            thief.setsockopt(socket.SOL_SOCKET, option, 1)
            with pytest.raises(OSError, match="in use"):
                thief.bind(own)


def test_a_peer_that_does_not_listen_costs_nothing_but_silence(end: End, peers: list[Peer]) -> None:
    own, gone = (V4, free_port()), peers[0].address
    end.sockets.listen([own], [[gone]])
    peers[0].socket.close()
    for _ in range(3):
        end.sockets.send(0, gone, b"x")
    assert all_that_came(end) == []
    assert end.sockets.errors == ()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
        back.bind(gone)
        back.sendto(b"back", own)
        assert end.receive() == [b"back"]


def test_a_link_lets_through_what_it_is_asked_to_and_the_others_everything(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    end.sockets.listen([own], [[peers[0].address], [peers[1].address]])
    link = (own, peers[0].address)
    assert end.sockets.let_through(link, [(0, b"true")]) == ""
    before = end.sockets.dropped(link)
    for peer in peers:
        peer.send(own, b"forged", b"true")
    assert sorted(all_that_came(end)) == [b"forged"] * 2 + [b"true"] * 3
    assert end.sockets.dropped(link) == before + 1
    assert end.sockets.let_through(link, ()) == ""
    peers[0].send(own, b"anything")
    assert all_that_came(end) == [b"anything"]


def test_a_link_that_is_not_connected_needs_no_filter(end: End, peers: list[Peer]) -> None:
    link = ((V4, free_port()), peers[0].address)
    assert end.sockets.let_through(link, [(0, b"true")]) == ""
    assert end.sockets.dropped(link) == 0


def test_where_filters_are_refused_everything_is_read(end: End, peers: list[Peer]) -> None:
    own = (V4, free_port())
    end.sockets.listen([own], [[peers[0].address]])
    for key in end.selector.get_map().values():
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.setsockopt(socket.SOL_SOCKET, SO_LOCK_FILTER, 1)
    link = (own, peers[0].address)
    assert end.sockets.let_through(link, [(0, b"true")]) == "Operation not permitted"
    peers[0].send(own, b"anything")
    assert all_that_came(end) == [b"anything"]
