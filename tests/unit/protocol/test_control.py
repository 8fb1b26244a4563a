"""The control socket's frames: what is written is read, and whatever else comes is an answer, never an exception."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.requests import Options, Progress, Request, Response, ShownReport
from haclusterd.protocol.control import (
    MAX_DEPTH,
    MAX_FRAME_BYTES,
    Malformed,
    Message,
    decode,
    decode_request,
    encode,
)
from haclusterd.wire.framing import HEADER_BYTES, FrameBuffer
from haclusterd.wire.json_outline import VALUES_MAX

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
def built(kind: type) -> Callable[..., Any]:
    """Return a function that makes one: hypothesis cannot resolve `Json`, which is defined by itself."""

    def make(**values: Any) -> Any:
        return kind(**values)

    return make


MESSAGES = st.one_of(
    st.builds(
        built(Request), id=TEXT, verb=TEXT, arguments=st.dictionaries(TEXT, JSON, max_size=3),
        options=st.builds(
            Options, wait_ms=st.none() | st.integers(0, 2**40), dry_run=st.booleans(), force=st.booleans(), reason=TEXT
        ),
        origin=st.sampled_from(("", "web", "REST for alice@example.org", "crm_resource")),
    ),
    st.builds(Progress, id=TEXT, text=TEXT, elapsed_ms=st.integers(0, 2**40)),
    st.builds(
        built(Response), id=TEXT, exit=st.integers(0, 255), data=JSON,
        reports=st.lists(st.builds(ShownReport, TEXT, TEXT, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    ),
)  # fmt: skip


@given(st.lists(MESSAGES, max_size=4), st.data())
def test_messages_survive_any_cutting(messages: list[Message], data: st.DataObject) -> None:
    wire = b"".join(map(encode, messages))
    buffer, received = FrameBuffer(MAX_FRAME_BYTES), []
    while wire:
        size = data.draw(st.integers(1, len(wire)))
        received += [decode(frame) for frame in buffer.feed(wire[:size])]
        wire = wire[size:]
    assert received == messages


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(payload: bytes) -> None:
    assert isinstance(decode(payload), Malformed | Request | Progress | Response)


@given(JSON)
def test_any_json_is_answered(document: object) -> None:
    assert isinstance(decode(json.dumps(document).encode()), Malformed)


@given(MESSAGES, JSON, st.data())
def test_a_damaged_field_never_raises(message: Message, value: object, data: st.DataObject) -> None:
    document = json.loads(encode(message)[HEADER_BYTES:])
    document[data.draw(st.sampled_from(sorted(document)))] = value
    assert isinstance(decode(json.dumps(document).encode()), Malformed | Request | Progress | Response)


def request(**changes: object) -> bytes:
    document = {"v": 1, "kind": "request", "id": "1", "verb": "status", "arguments": {}, "options": {}}
    return json.dumps({**document, **changes}).encode()


def nested(depth: int) -> object:
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"v":1.5}', "v: 1.5 is not a whole number"),
        (b'{"v":NaN}', "v: NaN is not a whole number"),
        (b"0.1", "message: 0.1 is not a whole number"),
        (request(arguments={"limits": [1, {"a score": 1e3}]}), "arguments.limits[1].a score: 1000.0 is not"),
        (request(options={"wait_ms": 1.5}), "options.wait_ms: 1.5 is not a whole number"),
        (b'{"v":1,"options":{"force":false,"force":true}}', "'force' stands twice"),
        (b"[]", "message must be an object"),
        (request(v=2), "speaks version 1"),
        (request(v=True), "speaks version 1"),
        (request(kind="order"), "unknown kind"),
        (request(id=5), "id must be a text"),
        (request(arguments=[]), "arguments must be an object"),
        (request(arguments={"a": nested(MAX_DEPTH)}), "nested deeper"),
        (request(arguments={"a": "\ud800"}), "surrogate"),
        (request(arguments={"\udfff": 1}), "surrogate"),
        (request(options={"wait_ms": -1}), "must not be negative"),
        (request(options={"wait_ms": "1"}), "wait_ms must be a whole number"),
        (request(options={"force": 1}), "force must be true or false"),
        (request(options={"sudo": True}), "unknown option 'sudo'"),
        *((request(origin=each), "origin must be") for each in ("a b", "web for a\nb", "web for ", "1", 5, "x" * 33)),
    ],
)
def test_what_is_refused(payload: bytes, problem: str) -> None:
    answer = decode(payload)
    assert isinstance(answer, Malformed)
    assert problem in answer.problem


@pytest.mark.parametrize(
    ("payload", "identity"),
    [
        (request(id="7", arguments={"score": 0.5}), "7"),
        (request(id="7", options={"sudo": True}), "7"),
        (request(id=7, options={"sudo": True}), None),
        (request(id="\ud800", options={"sudo": True}), None),
        (request(id="x" * 5_000, options={"sudo": True}), None),
        (request(kind="response", id="7"), None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_whose_answer_a_refusal_is(payload: bytes, identity: str | None) -> None:
    answer = decode(payload)
    assert isinstance(answer, Malformed)
    assert answer.request == identity


def test_an_answer_that_is_too_large_says_so() -> None:
    answer = decode(encode(Response("7", 0, data="x" * MAX_FRAME_BYTES))[HEADER_BYTES:])
    assert isinstance(answer, Response)
    assert (answer.id, answer.exit, answer.reports[0].code) == ("7", 1, "TOO_LARGE")


def test_a_client_sends_so_many_values_and_is_answered_any_number() -> None:
    many = [0] * (VALUES_MAX + 1)
    asked = encode(Request("1", "status", {"ids": many}))[HEADER_BYTES:]
    assert decode_request(asked) == Malformed(f"more than {VALUES_MAX} values")
    assert isinstance(decode_request(encode(Request("1", "status", {"ids": many[:40_000]}))[HEADER_BYTES:]), Request)
    answered = Response("1", 0, data=many)
    assert decode(encode(answered)[HEADER_BYTES:]) == answered
