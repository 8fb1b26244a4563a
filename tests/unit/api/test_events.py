"""What all event streams read: a ring without holes, in which each finds its place or learns that it must ask."""

import pytest

from haclusterd.api import events
from haclusterd.api.events import Conditions, _Item, _Ring, read_answer
from haclusterd.model.remembered import Position, read_position
from haclusterd.model.requests import Response


def item(text: str) -> _Item:
    position = read_position(text)
    assert position is not None
    return _Item(position, {}, text.encode())


def events_after(ring: _Ring, after: str) -> list[str] | None:
    position = read_position(after)
    assert position is not None
    found = ring.behind(position)
    return None if found is None else [str(each.position) for each in found]


def test_each_position_has_what_comes_behind_it() -> None:
    ring = _Ring(Position(4), Position(4))
    ring.take([item("5.0"), item("5.1"), item("5"), item("9")], Position(12))
    assert events_after(ring, "4") == ["5.0", "5.1", "5", "9"]
    assert events_after(ring, "5.0") == ["5.1", "5", "9"]
    assert events_after(ring, "5") == events_after(ring, "8.7") == ["9"]
    assert events_after(ring, "9") == events_after(ring, "12") == events_after(ring, "99") == []
    assert events_after(ring, "3") is None


def test_what_is_dropped_is_not_passed_over_as_if_nothing_had_been_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "RING_EVENTS_MAX", 3)
    ring = _Ring(Position(0), Position(0))
    for index in range(1, 8):
        ring.take([item(str(index))], Position(index))
    assert events_after(ring, "3") is None
    assert events_after(ring, "4") == ["5", "6", "7"]
    monkeypatch.setattr(events, "RING_BYTES_MAX", 1)
    ring.take([item("8")], Position(8))
    assert events_after(ring, "7") == ["8"]


def test_an_answer_becomes_events_with_ids_and_what_is_missing_one_of_its_own() -> None:
    event = {"id": "7.0-ab", "kind": "node-lost", "text": "a\nb", "node": "n1"}
    missing = {"first": 8, "last": 9, "because": "forgotten", "text": ""}
    data = {"events": [event], "missing": missing, "next": "9-cd", "has_more": True}
    items, head, has_more = read_answer(Response("", 0, data=data))
    assert (str(head), has_more) == ("9-cd", True)
    assert items[0].block.split(b"\n")[0] == b"id: 7.0-ab"
    assert items[0].block.count(b"\n") == 3, "a text cannot end its line"
    assert items[1].block.startswith(b"id: 9-cd\nevent: missing\ndata: {")
    assert Conditions(node="n1", kinds=frozenset({"node-lost"})).hold_for(event)
    assert not Conditions(resources=frozenset({"web"})).hold_for(event)
