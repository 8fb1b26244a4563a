"""How many values a text of JSON has, found without reading it."""

import json
import time

import pytest

from haclusterd.wire.json_outline import VALUES_MAX, has_too_many_values

LENGTH = 8 * 1024 * 1024


@pytest.mark.parametrize(
    "many",
    [
        [1] * (VALUES_MAX + 1),
        [""] * (VALUES_MAX + 1),
        ['",'] * (VALUES_MAX + 1),
        ["\\"] * (VALUES_MAX + 1),
        {str(number): number for number in range(VALUES_MAX + 1)},
        {"a": [{}] * VALUES_MAX},
    ],
)
def test_many_values_are_counted(many: object) -> None:
    assert has_too_many_values(json.dumps(many).encode())


@pytest.mark.parametrize(
    "few",
    [
        [1] * VALUES_MAX,
        {str(number): "a,[{" for number in range(VALUES_MAX)},
        {"text": ',[{"\\\n' * VALUES_MAX},
        {"text": "\\" * VALUES_MAX, "other": '\\"' * VALUES_MAX},
    ],
)
def test_what_texts_hold_is_no_value(few: object) -> None:
    assert not has_too_many_values(json.dumps(few).encode())


@pytest.mark.parametrize(
    "piece", [rb"\"", rb"\\", rb"\n", b'"', b'""', b",", b'"",', b"[", b":", b" ", b"\\", b'"\\', "\u65e5".encode()]
)
@pytest.mark.parametrize("beginning", [b'{"a":"', b"["])
def test_no_bytes_take_long(piece: bytes, beginning: bytes) -> None:
    payload = beginning + piece * (LENGTH // len(piece))
    began = time.process_time()
    has_too_many_values(payload)
    assert time.process_time() - began < 2, "not a multiple of the length"
