"""Objects of JSON whose names stand once."""

import json

import pytest

from haclusterd.wire.json_members import NamedTwiceError, members


def test_an_object_is_read_as_it_is() -> None:
    assert json.loads('{"a":{"b":1},"b":[{"b":2}]}', object_pairs_hook=members) == {"a": {"b": 1}, "b": [{"b": 2}]}


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"b":{"c":1,"a":2,"a":3}}', '[{"a":1,"\\u0061":2}]'])
def test_a_name_that_stands_twice_is_named(text: str) -> None:
    with pytest.raises(NamedTwiceError, match="'a' stands twice"):
        json.loads(text, object_pairs_hook=members)
