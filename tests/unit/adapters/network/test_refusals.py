"""Refusals are reported once for each source and reason, again after a time, and never more than a bounded number."""

import pytest

from haclusterd.adapters.network.refusals import FORGET_AFTER_S, SOURCES_MAX, Refusals, source_of


def test_a_refusal_is_reported_once_for_each_source_and_reason() -> None:
    refusals = Refusals()
    lines = [refusals.line(source, reason, f"{source}{reason}", 1.0) for source in "abab" for reason in "xyx"]
    assert [line for line in lines if line] == ["ax", "ay", "bx", "by"]


def test_what_still_happens_is_reported_again_after_a_time() -> None:
    refusals = Refusals()
    lines = [refusals.line("a", "x", str(second), float(second)) for second in range(1, int(2.5 * FORGET_AFTER_S))]
    assert [line for line in lines if line] == [str(int(1 + number * FORGET_AFTER_S)) for number in range(3)]


def test_a_flood_of_sources_tells_a_bounded_number_and_then_that_it_does() -> None:
    refusals = Refusals()
    lines = [refusals.line(str(number), "x", str(number), number / 1000) for number in range(50_000)]
    lines = [line for line in lines if line]
    assert len(lines) == SOURCES_MAX + 1
    assert "no more are reported" in lines[-1]
    assert refusals.line("late", "x", "text", 50 + FORGET_AFTER_S) == "text"


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("no address", "no address"),
    ],
)
def test_a_host_counts_as_one_source(host: str, source: str) -> None:
    assert source_of(host) == source
