"""Dampening: what flutters is written once, what is quiet is written, nothing older overtakes."""

import pytest

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.machines.dampening import LONGEST_SPANS, Dampening
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.records import replace
from tests.administered_clusters import formed

N1 = NodeName("n1")
SPAN = 5000


def cib(**attributes: str) -> Cib:
    cluster = formed()
    cluster.put(replace(cluster.node("n1"), attributes=attributes))
    return cluster.cib


def put(dampening: Dampening, value: str | None, at: int, state: Cib | None = None) -> None:
    dampening.put(SetTransientAttribute(N1, "ping", value), SPAN, Instant(at), state or cib())


def due(dampening: Dampening, at: int, state: Cib | None = None) -> list[str | None]:
    return [command.value for command in dampening.due(Instant(at), state or cib())]


def test_a_value_waits_its_span_and_is_written_once() -> None:
    dampening = Dampening()
    put(dampening, "100", 0)
    assert dampening.values() == {(N1, "ping"): "100"}
    assert dampening.deadline() == SPAN
    assert due(dampening, SPAN - 1) == []
    assert due(dampening, SPAN) == ["100"]
    assert due(dampening, SPAN) == []
    dampening.written(SetTransientAttribute(N1, "ping", "100"))
    assert (dampening.values(), dampening.deadline()) == ({}, NEVER)


def test_a_change_starts_the_span_again_and_the_same_value_does_not() -> None:
    dampening = Dampening()
    put(dampening, "100", 0)
    put(dampening, "200", 4000)
    put(dampening, "200", 8000)
    assert due(dampening, 8999) == []
    assert due(dampening, 9000) == ["200"]


def test_what_is_so_already_costs_nothing() -> None:
    dampening = Dampening()
    put(dampening, "100", 0, cib(ping="100"))
    assert dampening.deadline() == NEVER


def test_what_flutters_back_is_not_written() -> None:
    dampening = Dampening()
    put(dampening, "0", 0, cib(ping="100"))
    put(dampening, "100", 1000, cib(ping="100"))
    assert due(dampening, 6000, cib(ping="100")) == []
    assert dampening.values() == {}


def test_what_never_is_quiet_is_written_after_all() -> None:
    dampening = Dampening()
    written = [
        value
        for at in range(0, 60_000, 1000)
        for value in (put(dampening, str(at), at), due(dampening, at))[1]
    ]
    assert written == [str(SPAN * LONGEST_SPANS)]


def test_a_newer_value_waits_until_the_older_one_is_written() -> None:
    dampening = Dampening()
    put(dampening, "1", 0)
    assert due(dampening, SPAN) == ["1"]
    put(dampening, "2", SPAN + 1)
    assert (due(dampening, 3 * SPAN), dampening.deadline()) == ([], NEVER)
    dampening.written(SetTransientAttribute(N1, "ping", "1"))
    assert due(dampening, 3 * SPAN, cib(ping="1")) == ["2"]


@pytest.mark.parametrize("state", [{}, {"ping": "1"}])
def test_a_deletion_is_dampened_too(state: dict[str, str]) -> None:
    dampening = Dampening()
    put(dampening, None, 0, cib(**state))
    assert due(dampening, SPAN, cib(**state)) == ([None] if state else [])


def test_what_is_dropped_is_forgotten_even_in_flight() -> None:
    dampening = Dampening()
    put(dampening, "1", 0)
    assert due(dampening, SPAN) == ["1"]
    dampening.drop(N1, "ping")
    dampening.written(SetTransientAttribute(N1, "ping", "1"))
    assert dampening.values() == {}
