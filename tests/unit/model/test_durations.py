"""Durations as users write them."""

import pytest

from haclusterd.model import durations


@pytest.mark.parametrize(("text", "span_ms"), [("10", 10_000), ("500ms", 500), ("2min", 120_000), ("PT30S", 30_000)])
def test_a_duration_is_read(text: str, span_ms: int) -> None:
    assert durations.parse(text) == span_ms


@pytest.mark.parametrize("text", ["", "soon", "-1s", "9999999999999h", "9" * 4096, "P99999999999999999W"])
def test_what_is_no_duration_or_longer_than_any_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a duration|longer than"):
        durations.parse(text)
