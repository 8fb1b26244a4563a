"""Times as a person writes them."""

from datetime import UTC, datetime

import pytest

from haclusterd.cli.moments import moment

NOW = datetime(2026, 3, 10, 13, 45, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ""),
        ("10min", "10min"),
        ("10:15", "2026-03-10T10:15:00+00:00"),
        ("14:00:05", "2026-03-09T14:00:05+00:00"),
        ("1pm", "2026-03-10T13:00:00+00:00"),
        ("2pm", "2026-03-09T14:00:00+00:00"),
        ("12pm", "2026-03-10T12:00:00+00:00"),
        ("12:30 AM", "2026-03-10T00:30:00+00:00"),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        ("2026/3/1", "2026-03-01T00:00:00"),
        ("2026/3/1_18:30", "2026-03-01T18:30:00"),
        ("2026/3/1 18:30", "2026-03-01T18:30:00"),
        ("09mar26 2:00", "2026-03-09T02:00:00"),
        ("09-Mar-2026 02:00", "2026-03-09T02:00:00"),
        ("Mar  9 12:00:01", "2026-03-09T12:00:01"),
        ("Jul 18 12:00", "2025-07-18T12:00:00"),
        ("Feb 29 12:00", None),
        ("13pm", None),
        ("0am", None),
        ("25:00", None),
        ("soon", None),
        ("2026/13/1", None),
    ],
)
def test_moments(written: str, expected: str | None) -> None:
    assert moment(written, NOW) == expected
