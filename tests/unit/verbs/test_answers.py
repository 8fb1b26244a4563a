"""Answers as JSON and back: exact when written, lenient when read, and described by their types."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, fields
from haclusterd.verbs.answers.answer import (
    Answer,
    absent,
    as_json,
    extended,
    read,
    record_schema,
    records_in,
    schema_of,
)
from haclusterd.verbs.answers.table import ANSWERS


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: int | None
    inner: "tuple[Part, ...]" = ()


@dataclass(frozen=True, slots=True)
class Whole(Answer):
    SCHEMA: ClassVar[str] = "haclusterd.whole/1"
    node: NodeName
    is_fine: bool
    parts: tuple[Part, ...]
    words: Mapping[str, str]
    from_: str | None
    count: int | str
    anything: Json
    more: str | None = absent()


def whole(**fields: Any) -> Whole:
    """Return an answer in which nothing is said but this."""
    empty = {"node": "", "is_fine": False, "parts": (), "words": {}, "from_": None, "count": 0, "anything": None}
    return Whole(**{**empty, **fields})


WHOLE = whole(
    node=NodeName("n1"), is_fine=True, parts=(Part("a", 1, (Part("b", None),)),), words={"x": "y"}, count="INFINITY",
    anything=[1, {"a": None}],
)  # fmt: skip
WRITTEN: Json = {
    "schema": "haclusterd.whole/1", "node": "n1", "is_fine": True,
    "parts": [{"name": "a", "size": 1, "inner": [{"name": "b", "size": None, "inner": []}]}],
    "words": {"x": "y"}, "from": None, "count": "INFINITY", "anything": [1, {"a": None}],
}  # fmt: skip


def test_an_answer_is_written_with_its_schema_first_and_every_field_in_order() -> None:
    assert as_json(WHOLE) == WRITTEN
    assert list(as_json(WHOLE)) == list(WRITTEN)


def test_what_may_be_absent_is_written_only_when_it_says_something() -> None:
    assert as_json(whole(more="word"))["more"] == "word"


def test_an_enum_is_its_value() -> None:
    assert as_json(whole(words={"c": Colour.RED}))["words"] == {"c": "red"}


def test_what_was_written_is_read() -> None:
    assert read(Whole, WRITTEN) == WHOLE


def test_what_another_version_does_not_say_is_empty_and_what_it_says_besides_is_passed_over() -> None:
    found = read(Whole, {"schema": "haclusterd.whole/1", "parts": [{"name": "a", "is_new": True}], "new": 7})
    assert found == whole(parts=(Part("a", None),), count=None)


def test_what_is_something_else_is_empty() -> None:
    wrong: Json = {"node": 7, "is_fine": "yes", "parts": "abc", "words": [1], "from": 8, "count": 2}
    assert read(Whole, wrong) == whole(from_="", count=2)
    assert read(Whole, None) == read(Whole, {}) == read(Whole, [1])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(sorted(ANSWERS)), st.data())
def test_reading_an_answer_never_fails_whatever_came(schema: str, data: st.DataObject) -> None:
    kind = ANSWERS[schema]
    sent = {name: data.draw(json_values) for name in (each.name for each in fields(kind)) if data.draw(st.booleans())}
    assert isinstance(read(kind, sent), kind)


def test_a_schema_says_what_each_field_is() -> None:
    properties = record_schema(Whole)["properties"]
    assert isinstance(properties, dict)
    assert properties["schema"] == {"const": "haclusterd.whole/1"}
    assert properties["node"] == {"type": "string"}
    assert properties["from"] == {"type": ["string", "null"]}
    assert properties["count"] == {"type": ["integer", "string"]}
    assert properties["words"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert properties["parts"] == {"type": "array", "items": schema_of(Part)}
    required = record_schema(Whole)["required"]
    assert isinstance(required, list)
    assert "node" in required
    assert "more" not in required


def test_the_parts_of_an_answer_are_found_once_each() -> None:
    assert records_in(Whole) == (Whole, Part)


@dataclass(frozen=True, slots=True)
class LargerPart(Part):
    weight: int = 0


def test_a_record_is_extended_by_what_is_more() -> None:
    assert extended(LargerPart, Part("a", 1), weight=3) == LargerPart("a", 1, (), 3)
