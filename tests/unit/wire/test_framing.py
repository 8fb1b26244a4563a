"""Frames out of a stream, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.wire.framing import HEADER_BYTES, FrameBuffer, FrameTooLongError, framed

LIMIT = 40


@given(st.lists(st.binary(max_size=LIMIT), max_size=6), st.data())
def test_payloads_come_whole_and_in_order_however_the_stream_is_cut(payloads: list[bytes], data: st.DataObject) -> None:
    stream, buffer, received = b"".join(map(framed, payloads)), FrameBuffer(LIMIT), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        received += buffer.feed(stream[:size])
        stream = stream[size:]
    assert received == payloads
    assert buffer.waiting == 0


def test_a_length_above_the_limit_is_refused_before_any_of_it_is_collected() -> None:
    with pytest.raises(FrameTooLongError, match="a frame of 41 bytes is larger than 40"):
        FrameBuffer(LIMIT).feed((LIMIT + 1).to_bytes(HEADER_BYTES, "big"))


def test_what_is_not_taken_waits_and_each_frame_may_have_its_own_limit() -> None:
    buffer = FrameBuffer()
    buffer.add(framed(b"one") + framed(b"second") + b"\0")
    assert buffer.take(3) == b"one"
    assert buffer.waiting == HEADER_BYTES + 7
    with pytest.raises(FrameTooLongError):
        buffer.take(5)
    assert buffer.take(6) == b"second"
    assert buffer.take(6) is None
    assert buffer.waiting == 1
