"""Plain YAML whose keys stand once."""

import pytest
import yaml

from haclusterd.wire import plain_yaml


def test_what_is_plain_is_read_as_by_pyyaml() -> None:
    text = "a: {b: 1}\nc: [x, {b: 2}]\n7: yes\n"
    assert plain_yaml.load(text) == yaml.safe_load(text) == {"a": {"b": 1}, "c": ["x", {"b": 2}], 7: True}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1"),
        ("a:\n  b: 1\n  'b': 2", "line 3, column 3"),
        ("- {a: 1, a: 1}", "line 1, column 10"),
    ],
)
def test_a_key_that_stands_twice_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(yaml.YAMLError, match="stands twice") as caught:
        plain_yaml.load(text)
    assert place in str(caught.value)


def test_no_object_of_python_is_made() -> None:
    with pytest.raises(yaml.YAMLError):
        plain_yaml.load("!!python/object/apply:os.getcwd []")
