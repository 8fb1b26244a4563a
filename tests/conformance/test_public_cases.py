"""No public case of Pacemaker's scheduler that can be read differs in any other way than is recorded with its cause."""

import pytest

from tests.conformance import public_cases

pytestmark = pytest.mark.skipif(bool(public_cases.absence()), reason=public_cases.absence() or "they are there")


def test_no_case_is_worse_than_recorded() -> None:
    known = public_cases.Known.read()
    results = public_cases.judge_all(public_cases.cases())
    assert sum(result.is_covered for result in results) >= 598
    assert {result.name: result.error for result in results if result.error} == {}
    worse = {result.name: known.worse(result) for result in results}
    assert {name: levels for name, levels in worse.items() if levels} == {}


def test_no_order_between_actions_of_both_is_missing() -> None:
    results = public_cases.judge_all(public_cases.cases())
    assert {result.name: result.missing_orders for result in results if result.missing_orders} == {}


def test_what_is_recorded_is_a_case() -> None:
    names = {case.name for case in public_cases.cases()}
    assert set(public_cases.Known.read().levels) <= names
