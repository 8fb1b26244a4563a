"""The heartbeat datagram: what is written is read, and nothing else is."""


import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardAge, Heartbeat, Receipt
from haclusterd.protocol.heartbeat import MAXIMUM_NODES, MAXIMUM_SIZE, Rejection, decode, encode

KEY = b"k" * 32
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
KEYS = {N1: KEY, N3: b"3" * 32}
PLAIN = Heartbeat(
    sender=N1,
    receiver=N2,
    incarnation=Incarnation("8a3c1f60-boot", "00000000000000a1"),
    sent_at=Instant(123_456),
    brain=BrainState.ALIVE,
    brain_since_ms=42,
    echo=Receipt("00000000000000b1", Instant(99)),
    seen=Receipt("00000000000000b2", Instant(100)),
    heard=(HeardAge(N2, "00000000000000b1", 20), HeardAge(N3, "00000000000000c1", 2_000_000_000, is_linked=True)),
)

tokens = st.integers(0, 2**64 - 1).map(lambda number: f"{number:016x}")
instants = st.integers(0, 2**64 - 1).map(Instant)
spans = st.integers(0, 2**32 - 1)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}", fullmatch=True).map(NodeName)
receipts = st.none() | st.builds(Receipt, tokens, instants)
heard_ages = st.builds(HeardAge, names, tokens, st.integers(0, 2**31 - 1), st.booleans())
heartbeats = st.builds(
    Heartbeat,
    sender=names,
    receiver=names,
    incarnation=st.builds(Incarnation, st.text("0123456789abcdef-", min_size=1, max_size=48), tokens),
    sent_at=instants,
    brain=st.sampled_from(BrainState),
    brain_since_ms=spans,
    echo=receipts,
    seen=receipts,
    heard=st.lists(heard_ages, max_size=MAXIMUM_NODES - 1).map(tuple),
)


@given(heartbeats, st.binary(min_size=16, max_size=64))
def test_what_is_written_is_read(heartbeat: Heartbeat, key: bytes) -> None:
    assert decode(encode(heartbeat, key), heartbeat.receiver, {heartbeat.sender: key}) == heartbeat


def test_the_bytes_of_version_1() -> None:
    assert encode(PLAIN, KEY) == bytes.fromhex(
        "68614801"  # magic, version
        "026e31 026e32"  # sender, receiver
        "00000000000000a1 0d38613363316636302d626f6f74"  # incarnation: token, boot id
        "000000000001e240"  # sent_at
        "00 0000002a"  # alive, for 42 ms
        "03"  # flags
        "00000000000000b1 0000000000000063"  # echo
        "00000000000000b2 0000000000000064"  # seen
        "02"
        "026e32 00000014 00000000000000b1"
        "026e33 f7359400 00000000000000c1"
        "37437d51a188a1d4da90e278f20d9de5"  # code
    )


def test_the_largest_cluster_with_the_longest_names_fits() -> None:
    longest = PLAIN._replace(
        sender=NodeName("s" * 63),
        receiver=NodeName("r" * 63),
        incarnation=Incarnation("b" * 48, "f" * 16),
        heard=tuple(HeardAge(NodeName(f"{number:063d}"), "f" * 16, 1) for number in range(MAXIMUM_NODES - 1)),
    )
    assert len(encode(longest, KEY)) <= MAXIMUM_SIZE


@pytest.mark.parametrize(
    "heartbeat",
    [
        PLAIN._replace(sender=NodeName("s" * 64)),
        PLAIN._replace(incarnation=Incarnation("b" * 49, "f" * 16)),
        PLAIN._replace(heard=tuple(HeardAge(NodeName(f"{n:063d}"), "f" * 16, 1) for n in range(40))),
    ],
)
def test_what_cannot_be_written_is_refused(heartbeat: Heartbeat) -> None:
    with pytest.raises(ValueError, match=r"longer|allowed"):
        encode(heartbeat, KEY)


def test_spans_beyond_the_field_are_shown_as_its_largest() -> None:
    read = decode(encode(PLAIN._replace(brain_since_ms=2**40), KEY), N2, KEYS)
    assert isinstance(read, Heartbeat)
    assert read.brain_since_ms == 2**32 - 1


def test_every_flipped_bit_is_noticed() -> None:
    datagram = encode(PLAIN, KEY)
    for bit in range(len(datagram) * 8):
        flipped = bytearray(datagram)
        flipped[bit // 8] ^= 1 << bit % 8
        assert isinstance(decode(bytes(flipped), N2, KEYS), Rejection), bit


def test_every_cut_is_noticed() -> None:
    datagram = encode(PLAIN, KEY)
    for size in range(len(datagram)):
        assert isinstance(decode(datagram[:size], N2, KEYS), Rejection), size


@pytest.mark.parametrize(
    ("datagram", "rejection"),
    [
        (b"", Rejection.NOT_OURS),
        (b"haH\x02" + encode(PLAIN, KEY)[4:], Rejection.NOT_OURS),
        (b"haH\x01", Rejection.MALFORMED),
        (b"haH\x01" + b"\xff" * 40, Rejection.MALFORMED),
        (encode(PLAIN, KEY) + b"x" * MAXIMUM_SIZE, Rejection.TOO_LONG),
        (encode(PLAIN, KEY) + b"x", Rejection.NOT_AUTHENTIC),
        (encode(PLAIN, b"another key, same sender"), Rejection.NOT_AUTHENTIC),
        (encode(PLAIN._replace(sender=N3), KEY), Rejection.NOT_AUTHENTIC),
        (encode(PLAIN._replace(sender=NodeName("n9")), KEY), Rejection.UNKNOWN_SENDER),
        (encode(PLAIN._replace(sender=N2, receiver=N1), KEY), Rejection.MISDIRECTED),
        (encode(PLAIN._replace(receiver=N3), KEY), Rejection.MISDIRECTED),
        (encode(PLAIN._replace(heard=(HeardAge(NodeName("a b"), "0" * 16, 1),)), KEY), Rejection.MALFORMED),
    ],
)
def test_refusals(datagram: bytes, rejection: Rejection) -> None:
    assert decode(datagram, N2, KEYS) is rejection


@given(st.binary(max_size=200))
def test_decoding_never_raises(noise: bytes) -> None:
    assert isinstance(decode(noise, N2, KEYS), Rejection)
    assert isinstance(decode(b"haH\x01\x02n1\x02n2" + noise, N2, KEYS), Rejection)
