"""No case that Pacemaker decided differs in any other way than is recorded with its cause."""

from functools import cache

import pytest

from tests.conformance import public_cases
from tests.conformance.public_cases import PUBLIC, RANDOM, Result

pytestmark = pytest.mark.skipif(bool(public_cases.absence()), reason=public_cases.absence() or "they are there")
EVERY = 8
"""Of the random cases a sample is run; `make conformance` runs all."""


@cache
def judged(corpus: str) -> list[Result]:
    cases = list(public_cases.cases(corpus=corpus))
    return public_cases.judge_all(cases[::EVERY] if corpus == RANDOM else cases)


def test_no_public_case_is_worse_than_recorded() -> None:
    known = public_cases.Known.read()
    results = judged(PUBLIC)
    assert sum(result.is_covered for result in results) >= 598
    assert {result.name: result.error for result in results if result.error} == {}
    worse = {result.name: known.worse(result) for result in results}
    assert {name: levels for name, levels in worse.items() if levels} == {}


def test_no_random_case_is_worse_than_recorded() -> None:
    known = public_cases.Known.read()
    results = judged(RANDOM)
    assert [result.name for result in results if not result.is_covered] == []
    assert {result.name: result.error for result in results if result.error} == {}
    worse = {result.name: known.worse(result) for result in results}
    assert {name: levels for name, levels in worse.items() if levels} == {}


def test_no_order_between_actions_of_both_is_missing() -> None:
    assert {result.name: result.missing_orders for result in judged(PUBLIC) if result.missing_orders} == {}
    known = public_cases.Known.read()
    unknown = [result for result in judged(RANDOM) if result.missing_orders and result.name not in known.levels]
    assert unknown == []


def test_what_is_recorded_is_a_case() -> None:
    names = {case.name for corpus in (PUBLIC, RANDOM) for case in public_cases.cases(corpus=corpus)}
    assert set(public_cases.Known.read().levels) <= names
