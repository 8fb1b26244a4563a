"""Daemon and pacer on one socket: whole messages, checked schemas, no surprise from any bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.pacer import PacerSettings
from haclusterd.protocol.pacer_socket import MAXIMUM_SIZE, VERSION, Message, Refusal, decode, encode
from haclusterd.wire.framing import FrameBuffer, FrameTooLongError
from tests.pacer_messages import MESSAGES, SETTINGS, payload_of


def changed(*path: str | int, to: object) -> bytes:
    """Return the settings' JSON with one value replaced."""
    value = json.loads(payload_of(SETTINGS))
    place: Any = value
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(value).encode()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_what_is_written_is_read(message: Message) -> None:
    assert decode(payload_of(message)) == message


@given(st.lists(st.integers(1, 200), max_size=20))
def test_messages_come_whole_however_the_stream_is_cut(sizes: list[int]) -> None:
    stream = b"".join(encode(message) for message in MESSAGES)
    frames = FrameBuffer(MAXIMUM_SIZE)
    read: list[Message] = []
    for size in [*sizes, len(stream)]:
        read.extend(decode(payload) for payload in frames.feed(stream[:size]))
        stream = stream[size:]
    assert read == MESSAGES


def test_a_length_beyond_the_cap_ends_it() -> None:
    with pytest.raises(FrameTooLongError):
        FrameBuffer(MAXIMUM_SIZE).feed((MAXIMUM_SIZE + 1).to_bytes(4, "big"))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"version":1}',
        b'{"version":1,"type":"song"}',
        b'{"version":1,"type":["settings"]}',
        b"[" * 100_000,
        changed("node", to="no name"),
        changed("node", to="n2"),
        changed("incarnation", to="boot"),
        changed("incarnation", to="boot:" + "0" * 16),
        changed("incarnation", to="boot:" + "A" * 16),
        changed("incarnation", to="b" * 49 + ":00000000000000a1"),
        changed("is_voter", to=1),
        changed("listen", to=[["127.0.0.1", 0]]),
        changed("listen", to=[["127.0.0.1", 5001, 1]]),
        changed("listen", to="127.0.0.1"),
        changed("node_timeout_ms", to=499),
        changed("node_timeout_ms", to=2000.5),
        changed("brain_timeout_ms", to=True),
        changed("peers", 0, "key", to="00" * 15),
        changed("peers", 0, "key", to="zz" * 32),
        changed(
            "peers", to=[{"name": f"x{n}", "addresses": [], "key": "00" * 16, "is_voter": True} for n in range(16)]
        ),
        changed("peers", to=[1]),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(payload: bytes) -> None:
    assert isinstance(decode(payload), Refusal)


def test_another_version_is_refused_in_words() -> None:
    assert decode(changed("version", to=VERSION + 1)) == Refusal("message version 2; this end speaks 1: restart both")


@given(
    st.binary(max_size=100) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_decoding_never_raises(noise: bytes) -> None:
    assert isinstance(decode(noise), Refusal)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(json.loads(payload_of(SETTINGS)))), json_values)
def test_settings_with_one_strange_value_never_raise(name: str, value: object) -> None:
    assert isinstance(decode(changed(name, to=value)), (Refusal, PacerSettings))


def test_keys_do_not_appear_where_settings_are_shown() -> None:
    shown = repr(SETTINGS)
    assert "\\xff" not in shown
    assert SETTINGS.peers[0].key.hex() not in shown
