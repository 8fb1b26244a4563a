"""Objects of JSON whose names stand once."""

import json
import time

import pytest

from haclusterd.wire.json_members import NamedTwiceError, members


def test_an_object_is_read_as_it_is() -> None:
    assert json.loads('{"a":{"b":1},"b":[{"b":2}]}', object_pairs_hook=members) == {"a": {"b": 1}, "b": [{"b": 2}]}


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"b":{"c":1,"a":2,"a":3}}', '[{"a":1,"\\u0061":2}]'])
def test_a_name_that_stands_twice_is_named(text: str) -> None:
    with pytest.raises(NamedTwiceError, match="'a' stands twice"):
        json.loads(text, object_pairs_hook=members)


def test_a_name_that_stands_twice_in_a_large_object_is_found_at_once() -> None:
    text = "{" + "".join(f'"{number}":1,' for number in range(60_000)) + '"59999":2}'
    began = time.process_time()
    with pytest.raises(NamedTwiceError, match="'59999' stands twice"):
        json.loads(text, object_pairs_hook=members)
    assert time.process_time() - began < 2, "not each name compared with each other"
