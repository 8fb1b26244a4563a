"""The judge of clients' records: what it refuses, what it lets pass, and that it agrees with trying all orders."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.simulator.checks.linearizability import (
    Append,
    Kind,
    LogVerdict,
    Operation,
    judge_log,
    judge_register,
)

A, B, C = Append("a", 0, 10), Append("b", 20, 30), Append("c", 25, None)


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (["a", "b"], LogVerdict()),
        (["a", "b", "c"], LogVerdict()),
        (["a", "c", "b"], LogVerdict()),
        (["b"], LogVerdict(lost=("a",))),
        (["a", "b", "a"], LogVerdict(duplicated=("a",), overtook=("b",))),
        (["a", "b", "x"], LogVerdict(unasked=("x",))),
        (["b", "a"], LogVerdict(overtook=("b",))),
        (["c", "a", "b"], LogVerdict(overtook=("c",))),
    ],
)
def test_a_list_is_compared_with_the_answers_of_clients(words: list[str], verdict: LogVerdict) -> None:
    assert judge_log([A, B, C], words) == verdict


def write(client: str, value: str, asked: int, answered: int | None) -> Operation:
    return Operation(client, Kind.WRITE, asked, answered, value)


def read(client: str, value: str, asked: int, answered: int | None) -> Operation:
    return Operation(client, Kind.READ, asked, answered, value)


def swap(client: str, expected: str, value: str, asked: int, answered: int | None, *, done: bool = True) -> Operation:
    return Operation(client, Kind.SWAP, asked, answered, value, expected, done)


@pytest.mark.parametrize(
    ("operations", "is_good"),
    [
        ([write("1", "a", 0, 1), read("2", "a", 2, 3)], True),
        ([write("1", "a", 0, 1), read("2", "", 2, 3)], False),
        ([write("1", "a", 0, 5), read("2", "", 2, 3)], True),
        ([write("1", "a", 0, 5), read("2", "a", 1, 2), read("2", "", 3, 4)], False),
        ([write("1", "a", 0, None), read("2", "", 9, 10), read("2", "a", 11, 12)], True),
        ([write("1", "a", 0, None), read("2", "a", 9, 10), read("2", "", 11, 12)], False),
        ([swap("1", "", "a", 0, 5), swap("2", "", "b", 0, 5)], False),
        ([swap("1", "", "a", 0, 5), swap("2", "", "b", 0, 5, done=False)], True),
        ([swap("1", "", "a", 0, None), swap("2", "a", "b", 3, 4)], True),
        ([swap("1", "", "a", 0, 1), swap("2", "", "b", 2, 3, done=False), swap("3", "a", "c", 4, 5)], True),
        ([swap("1", "", "a", 0, 1), swap("2", "a", "b", 2, 3, done=False)], False),
        ([read("1", "x", 0, 1)], False),
    ],
)
def test_answers_of_a_register_are_explained_or_not(operations: list[Operation], is_good: bool) -> None:
    verdict = judge_register(operations)
    assert verdict.is_linearizable is is_good
    assert (verdict.culprit is None) is is_good


def is_explained_by_some_order(operations: list[Operation]) -> bool:
    """Try every order of every choice of unanswered operations."""
    answered = [operation for operation in operations if operation.answered_at is not None]
    unanswered = [operation for operation in operations if operation.answered_at is None]
    for count in range(len(unanswered) + 1):
        for chosen in itertools.combinations(unanswered, count):
            if any(map(fits, itertools.permutations([*answered, *chosen]))):
                return True
    return False


def fits(order: tuple[Operation, ...]) -> bool:
    for earlier, later in itertools.combinations(order, 2):
        if later.answered_at is not None and later.answered_at < earlier.asked_at:
            return False
    value = ""
    for operation in order:
        if operation.kind is Kind.READ:
            if operation.answered_at is not None and operation.value != value:
                return False
        elif operation.kind is Kind.WRITE:
            value = operation.value
        else:
            if operation.answered_at is not None and operation.is_done != (operation.expected == value):
                return False
            value = operation.value if operation.expected == value else value
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    made = []
    for number in range(draw(st.integers(1, 5))):
        asked = draw(st.integers(0, 8))
        span = draw(st.none() | st.integers(1, 6))
        made.append(
            Operation(
                str(number),
                draw(st.sampled_from(Kind)),
                asked,
                None if span is None else asked + span,
                draw(st.sampled_from(["", "a", "b"])),
                draw(st.sampled_from(["", "a", "b"])),
                draw(st.booleans()),
            )
        )
    return made


@settings(max_examples=400, deadline=None)
@given(histories())
def test_the_search_agrees_with_trying_all_orders(operations: list[Operation]) -> None:
    assert judge_register(operations).is_linearizable is is_explained_by_some_order(operations)
