"""In which order a node stops its own resources."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.machines.executing.stop_plan import held_by, stops_before
from haclusterd.model.configuration import Configuration, Constraint, Group, Ordering, Resource
from haclusterd.model.ids import ConstraintId, ResourceId
from tests.unit.situations import primitive


def configuration(groups: dict[str, str], orderings: Iterable[Ordering]) -> Configuration:
    resources: dict[ResourceId, Resource] = {ResourceId(name): primitive(name) for name in "abcdef"}
    for name, members in groups.items():
        resources[ResourceId(name)] = Group(ResourceId(name), tuple(ResourceId(member) for member in members))
    constraints: dict[ConstraintId, Constraint] = {each.id: each for each in orderings}
    return Configuration(resources=resources, constraints=constraints)


def first_then(first: str, then: str, *, is_symmetrical: bool = True, first_action: str = "start") -> Ordering:
    return Ordering(
        ConstraintId(f"{first}-{then}"),
        ResourceId(first),
        ResourceId(then),
        first_action=first_action,
        is_symmetrical=is_symmetrical,
    )


@pytest.mark.parametrize(
    ("groups", "orderings", "active", "expected"),
    [
        ({}, [], "abc", {}),
        ({"g": "abc"}, [], "abc", {"a": "b", "b": "c"}),
        ({}, [first_then("a", "b")], "ab", {"a": "b"}),
        ({}, [first_then("a", "b", is_symmetrical=False)], "ab", {}),
        ({}, [first_then("a", "b", first_action="promote")], "ab", {"a": "b"}),
        ({}, [first_then("a", "b", first_action="stop")], "ab", {}),
        ({}, [first_then("a", "b")], "a", {}),
        ({"g": "ab", "h": "cd"}, [first_then("g", "h")], "abcd", {"a": "bcd", "b": "cd", "c": "d"}),
        ({}, [first_then("a", "b"), first_then("b", "a")], "ab", {"a": "b"}),
    ],
    ids=["free", "group", "ordering", "one way", "promote", "another action", "not active", "groups ordered", "cycle"],
)
def test_what_must_have_stopped_first(
    groups: dict[str, str], orderings: list[Ordering], active: str, expected: dict[str, str]
) -> None:
    found = stops_before(configuration(groups, orderings), [ResourceId(name) for name in active])
    assert {name: "".join(sorted(before)) for name, before in found.items() if before} == expected
    assert set(found) == set(active)


pairs = st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda pair: pair[0] != pair[1])


@given(st.lists(pairs, max_size=15), st.sets(st.sampled_from("abcdef")))
def test_everything_can_be_stopped_whatever_the_constraints(orderings: list[tuple[str, str]], active: set[str]) -> None:
    before = stops_before(
        configuration({}, [first_then(*pair) for pair in orderings]), [ResourceId(name) for name in active]
    )
    left = set(before)
    while left:
        free = {name for name in left if not before[name] & left}
        assert free, f"nothing of {sorted(left)} could be stopped"
        left -= free


@pytest.mark.parametrize(
    ("untouched", "held"), [("", ""), ("a", ""), ("b", "a"), ("c", "ab"), ("d", "")], ids=["none", "a", "b", "c", "d"]
)
def test_what_is_held_by_what_is_unmanaged(untouched: str, held: str) -> None:
    before = stops_before(configuration({"g": "abc"}, []), [ResourceId(name) for name in "abcd"])
    assert held_by(before, frozenset(map(ResourceId, untouched))) == set(held)
