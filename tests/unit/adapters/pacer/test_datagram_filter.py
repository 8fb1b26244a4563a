"""The kernel's filter on UDP sockets: what has the bytes of a known life passes, all else is dropped and counted."""

import socket
from collections.abc import Iterator, Sequence

import pytest

from haclusterd.adapters.pacer import datagram_filter
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardAge, Heartbeat
from haclusterd.protocol import heartbeat as protocol

LONGEST = 200
SO_LOCK_FILTER = 44
KEY = b"k" * 32
BOOT_ID = "c0ffee00-1111-4222-8333-444455556666"
LIFE, NEXT_LIFE, NEXT_BOOT = (
    Incarnation(BOOT_ID, "00112233445566ff"),
    Incarnation(BOOT_ID, "00112233445566fe"),
    Incarnation(BOOT_ID[:-1] + "7", "00112233445566ff"),
)


class Wire:
    """A receiver with a filter, and who sends to it."""

    def __init__(self, family: socket.AddressFamily, host: str) -> None:
        self.receiver = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.receiver.bind((host, 0))
        self.sender = socket.socket(family, socket.SOCK_DGRAM)
        self.sender.connect(self.receiver.getsockname()[:2])

    def passes(self, datagram: bytes) -> bool:
        """Send over loopback, where a datagram is queued or dropped before the sender goes on."""
        self.sender.send(datagram)
        try:
            received = self.receiver.recv(2_000)
        except BlockingIOError:
            return False
        assert received == datagram
        return True

    def close(self) -> None:
        self.receiver.close()
        self.sender.close()


def wires() -> list[tuple[socket.AddressFamily, str]]:
    found = [(socket.AF_INET, "127.0.0.1")]
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return found
    return [*found, (socket.AF_INET6, "::1")]


@pytest.fixture(params=wires(), ids=lambda param: param[1])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    made = Wire(*request.param)
    yield made
    made.close()


@pytest.mark.parametrize("length", [*range(1, 18), 63, 135, 190])
def test_each_byte_counts_and_no_other(wire: Wire, length: int) -> None:
    wanted = bytes(range(1, length + 1))
    datagram_filter.attach(wire.receiver, [(0, wanted)], LONGEST)
    for rest in (b"", b"x", bytes(LONGEST - length)):
        assert wire.passes(wanted + rest)
    assert not wire.passes(wanted + bytes(LONGEST - length + 1)), "too long"
    for place in range(length):
        changed = bytearray(wanted + b"rest")
        changed[place] ^= 1
        assert not wire.passes(bytes(changed)), place
    for shorter in range(length):
        assert not wire.passes(wanted[:shorter]), shorter


def test_what_lies_between_two_pieces_is_free(wire: Wire) -> None:
    datagram_filter.attach(wire.receiver, [(0, b"first"), (13, b"second")], LONGEST)
    assert wire.passes(b"first" + bytes(8) + b"second")
    assert wire.passes(b"first" + b"x" * 8 + b"second, and more")
    assert not wire.passes(b"first" + bytes(7) + b"second")
    assert not wire.passes(b"first" + bytes(8) + b"secon")


def test_a_filter_is_replaced_and_taken_away(wire: Wire) -> None:
    datagram_filter.attach(wire.receiver, [(0, b"one")], LONGEST)
    datagram_filter.attach(wire.receiver, [(0, b"two")], LONGEST)
    assert not wire.passes(b"one")
    assert wire.passes(b"two")
    datagram_filter.detach(wire.receiver)
    assert wire.passes(b"one")
    datagram_filter.detach(wire.receiver)


def test_what_is_dropped_is_counted(wire: Wire) -> None:
    before = datagram_filter.dropped(wire.receiver)
    datagram_filter.attach(wire.receiver, [(0, b"one")], LONGEST)
    for _ in range(5):
        assert not wire.passes(b"two")
    assert wire.passes(b"one")
    assert datagram_filter.dropped(wire.receiver) - before == 5


def test_a_kernel_that_refuses_is_an_error(wire: Wire) -> None:
    wire.receiver.setsockopt(socket.SOL_SOCKET, SO_LOCK_FILTER, 1)
    with pytest.raises(PermissionError):
        datagram_filter.attach(wire.receiver, [(0, b"one")], LONGEST)
    with pytest.raises(PermissionError):
        datagram_filter.detach(wire.receiver)


def test_a_program_that_is_too_long_for_its_jumps_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        datagram_filter.program([(0, bytes(600))], LONGEST)


def heartbeat(sender: str, receiver: str, incarnation: Incarnation, heard: Sequence[HeardAge] = ()) -> bytes:
    beat = Heartbeat(
        sender=NodeName(sender), receiver=NodeName(receiver), incarnation=incarnation, sent_at=Instant(1),
        brain=BrainState.ALIVE, brain_since_ms=0, echo=None, seen=None, heard=tuple(heard), is_empty=False,
    )  # fmt: skip
    return protocol.encode(beat, KEY)


@pytest.mark.parametrize("names", [("n2", "n1"), ("a" * 63, "b" * 61), ("db-east", "x" * 32)], ids=lambda n: n[0][:8])
def test_heartbeats_of_a_life_and_of_a_boot(wire: Wire, names: tuple[str, str]) -> None:
    sender, receiver = names
    own, of_the_boot = (
        protocol.opening(NodeName(sender), NodeName(receiver), BOOT_ID, token) for token in (LIFE.token, None)
    )
    many = [HeardAge(NodeName(f"{number:063}"), LIFE.token, 1) for number in range(14)]
    datagram_filter.attach(wire.receiver, own, protocol.MAXIMUM_SIZE)
    assert wire.passes(heartbeat(sender, receiver, LIFE))
    assert wire.passes(heartbeat(sender, receiver, LIFE, many))
    for other in (
        heartbeat(sender, receiver, NEXT_LIFE), heartbeat(sender, receiver, NEXT_BOOT),
        heartbeat(receiver, sender, LIFE), b"", b"noise",
    ):  # fmt: skip
        assert not wire.passes(other)
    datagram_filter.attach(wire.receiver, of_the_boot, protocol.MAXIMUM_SIZE)
    assert wire.passes(heartbeat(sender, receiver, LIFE))
    assert wire.passes(heartbeat(sender, receiver, NEXT_LIFE))
    assert not wire.passes(heartbeat(sender, receiver, NEXT_BOOT))
