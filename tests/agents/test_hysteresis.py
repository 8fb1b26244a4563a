"""Hysteresis: a table of sequences, and what holds for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.agents.hysteresis import begin, level_of, step

SEQUENCES = {
    "one bad sample is nothing": ("0 2 0 0", "0 0 0 0"),
    "three in a row are": ("0 2 2 2 2", "0 0 0 2 2"),
    "it rises to the lowest of them": ("0 2 1 2 2 2 2", "0 0 0 1 1 1 2"),
    "a good one begins the count again": ("0 2 2 0 2 2 2", "0 0 0 0 0 0 2"),
    "two good ones are enough": ("2 2 2 0 0", "0 0 2 2 0"),
    "not when one is bad between": ("2 2 2 0 2 0 0", "0 0 2 2 2 2 0"),
    "from red to yellow to green": ("2 2 2 1 0 0 0", "0 0 2 2 1 1 0"),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_level_follows_its_samples(name: str) -> None:
    samples, levels = (text.split() for text in SEQUENCES[name])
    track = begin(0)
    found = []
    for sample in samples:
        track = step(track, int(sample), int(sample), raise_after=3, clear_after=2)
        found.append(str(track[0]))
    assert found == levels


def test_within_the_margin_nothing_changes() -> None:
    track = begin(1)
    for _ in range(10):
        track = step(track, 0, 1, raise_after=1, clear_after=1)
    assert track == begin(1)


@pytest.mark.parametrize(
    ("value", "yellow", "red", "level"),
    [(89.9, 90, 97, 0), (90, 90, 97, 1), (97, 90, 97, 2), (100, None, None, 0), (100, 90, None, 1), (98, None, 97, 2)],
)
def test_a_threshold_is_reached_at_its_value(value: float, yellow: float | None, red: float | None, level: int) -> None:
    assert level_of(value, yellow, red) == level


samples = st.lists(st.integers(0, 4), max_size=60)
counts = st.integers(1, 5)


@given(samples, counts, counts)
def test_the_level_is_always_one_that_was_seen_and_changes_only_after_enough_of_them(
    seen: list[int], raise_after: int, clear_after: int
) -> None:
    track = begin(0)
    levels = [0]
    for sample in seen:
        track = step(track, sample, sample, raise_after, clear_after)
        levels.append(track[0])
    assert set(levels) <= {0, *seen}
    for position in range(1, len(levels)):
        before, after = levels[position - 1], levels[position]
        if after != before:
            needed = raise_after if after > before else clear_after
            last = seen[max(0, position - needed) : position]
            assert len(last) == needed
            assert all((sample > before) == (after > before) and sample != before for sample in last)


@given(samples, counts, counts, st.integers(0, 4))
def test_a_steady_sample_is_believed_in_the_end(
    seen: list[int], raise_after: int, clear_after: int, steady: int
) -> None:
    track = begin(0)
    for sample in seen:
        track = step(track, sample, sample, raise_after, clear_after)
    for _ in range(2 * max(raise_after, clear_after)):
        track = step(track, steady, steady, raise_after, clear_after)
    assert track == begin(steady)
