"""What is encoded is decoded to the same value, whatever it is; what is not ours is refused, whatever it is."""

import base64
import contextlib
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.codec import SPREAD, CodecError, decode_cib, decode_envelope, digest, encode_cib, encode_envelope
from haclusterd.cib.edits import Edit
from haclusterd.cib.staging import put_together
from haclusterd.cib.tags import REPLICATED
from haclusterd.model.cluster import Cib
from haclusterd.model.steps import outcome_of
from tests.examples import examples
from tests.replicated_values import values_of

COMMANDS = commands.Command.__args__
_relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
@settings(_relaxed, max_examples=examples(25))
@given(data=st.data())
def test_every_command_survives(kind: type, data: st.DataObject) -> None:
    envelope = commands.Envelope(
        request=data.draw(values_of(commands.RequestId)),
        proposer=data.draw(values_of(commands.NodeName)),
        at=data.draw(values_of(commands.WallTime)),
        command=data.draw(values_of(kind)),
    )
    encoded = encode_envelope(envelope)
    assert decode_envelope(encoded) == envelope
    assert encode_envelope(decode_envelope(encoded)) == encoded


@settings(_relaxed, max_examples=examples(150))
@given(cib=values_of(Cib))
def test_every_cib_survives(cib: Cib) -> None:
    encoded = encode_cib(cib)
    again = decode_cib(encoded)
    assert again == cib
    assert encode_cib(again) == encoded, "the order of a mapping is part of its value"
    assert digest(again) == digest(cib)


def _other_json(document: Any, draw: Any) -> Any:
    """Change one place of a document, or nothing."""
    if isinstance(document, dict) and document and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(document)))
        return {**document, name: _other_json(document[name], draw)}
    if isinstance(document, list) and document and draw(st.booleans()):
        place = draw(st.integers(0, len(document) - 1))
        return [*document[:place], _other_json(document[place], draw), *document[place + 1 :]]
    return draw(
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just("\ud800")),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=3,
        )
    )


def _read_or_refuse(decode: Any, data: bytes) -> None:
    with contextlib.suppress(CodecError):
        decode(data)


@settings(_relaxed, max_examples=examples(300))
@given(data=st.data(), envelope=values_of(commands.Envelope))
def test_a_changed_envelope_is_read_or_refused(data: st.DataObject, envelope: commands.Envelope) -> None:
    document = _other_json(json.loads(encode_envelope(envelope)), data.draw)
    _read_or_refuse(decode_envelope, json.dumps(document).encode())


@settings(_relaxed, max_examples=examples(200))
@given(data=st.data(), cib=values_of(Cib))
def test_a_changed_cib_is_read_or_refused(data: st.DataObject, cib: Cib) -> None:
    lines = encode_cib(cib).splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    lines[place] = json.dumps(_other_json(json.loads(lines[place]), data.draw)).encode()
    _read_or_refuse(decode_cib, b"".join(line + b"\n" for line in lines))


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    _read_or_refuse(decode_envelope, data)
    _read_or_refuse(decode_cib, data)


@settings(_relaxed, max_examples=examples(50))
@given(envelope=values_of(commands.Envelope), cut=st.floats(0, 1), flip=st.integers(0, 255))
def test_cut_and_flipped_bytes_are_read_or_refused(envelope: commands.Envelope, cut: float, flip: int) -> None:
    encoded = encode_envelope(envelope)
    place = min(int(len(encoded) * cut), len(encoded) - 1)
    _read_or_refuse(decode_envelope, encoded[:place])
    _read_or_refuse(decode_envelope, encoded[:place] + bytes([flip]) + encoded[place + 1 :])


def _outcome_of(read: Callable[[], object]) -> tuple[str, object]:
    """Return what reading came to: a value, or the words of a refusal."""
    try:
        return "value", read()
    except CodecError as error:
        return "refused", str(error)


@settings(_relaxed, max_examples=examples(100))
@given(cib=values_of(Cib), data=st.data())
def test_a_cib_that_is_read_in_steps_is_the_one_that_is_read_whole(cib: Cib, data: st.DataObject) -> None:
    document = REPLICATED.schema_of(Cib).write(cib)
    if data.draw(st.booleans()):
        document = _other_json(document, data.draw)
    whole = _outcome_of(lambda: REPLICATED.schema_of(Cib).read(document))
    copy = json.loads(json.dumps(document))
    assert _outcome_of(lambda: outcome_of(REPLICATED.read_in_steps(Cib, copy, SPREAD))) == whole


def _read_at_once(text: str) -> object:
    """Read a staged change as one array: what the steps must agree with."""
    packed = base64.b64decode(text, validate=True)
    return REPLICATED.schema_of(tuple[Edit, ...]).read(json.loads(zlib.decompress(packed)))


@settings(_relaxed, max_examples=examples(100))
@given(data=st.data())
def test_a_staged_change_that_is_read_in_steps_is_the_one_that_is_read_whole(data: st.DataObject) -> None:
    edits = data.draw(st.lists(values_of(Edit), max_size=5).map(tuple))
    document = REPLICATED.schema_of(tuple[Edit, ...]).write(edits)
    if data.draw(st.booleans()):
        document = _other_json(document, data.draw)
    spelled = json.dumps(document, separators=data.draw(st.sampled_from([(",", ":"), (" ,\n ", "\t:\r")])))
    damage = data.draw(st.sampled_from(["", "", "", "]", " ", ",", "x", "["]))
    place = data.draw(st.integers(0, len(spelled)))
    damaged = (spelled[:place] + damage + spelled[place:]).encode(errors="replace")
    text = base64.b64encode(zlib.compress(damaged)).decode()
    try:
        whole: tuple[str, object] = "value", _read_at_once(text)
    except (ValueError, RecursionError):
        whole = "refused", None
    parts = [text[start : start + 40] for start in range(0, len(text), 40)]
    found = _outcome_of(lambda: put_together(parts))
    assert (found[0], found[1] if found[0] == "value" else None) == whole
