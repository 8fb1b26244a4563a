"""Times as a person writes them, who means those of this machine where no zone is said."""

import io
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.moments import moment
from haclusterd.cli.session import Streams
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Progress, Request, Response


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


NOW = datetime(2026, 3, 10, 13, 45, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ""),
        ("10min", "10min"),
        ("10 minutes ago", "600s"),
        ("1 hour ago", "3600s"),
        ("2 days", "172800s"),
        ("-2h", "7200s"),
        ("yesterday", "2026-03-09T00:00:00+00:00"),
        ("today", "2026-03-10T00:00:00+00:00"),
        ("2 fortnights ago", None),
        ("10:15", "2026-03-10T10:15:00+00:00"),
        ("14:00:05", "2026-03-09T14:00:05+00:00"),
        ("1pm", "2026-03-10T13:00:00+00:00"),
        ("2pm", "2026-03-09T14:00:00+00:00"),
        ("12pm", "2026-03-10T12:00:00+00:00"),
        ("12:30 AM", "2026-03-10T00:30:00+00:00"),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        ("2026/3/1", "2026-03-01T00:00:00+01:00"),
        ("2026/3/1_18:30", "2026-03-01T18:30:00+01:00"),
        ("2026/3/1 18:30", "2026-03-01T18:30:00+01:00"),
        ("09mar26 2:00", "2026-03-09T02:00:00+01:00"),
        ("09-Mar-2026 02:00", "2026-03-09T02:00:00+01:00"),
        ("Mar  9 12:00:01", "2026-03-09T12:00:01+01:00"),
        ("Jul 18 12:00", "2025-07-18T12:00:00+02:00"),
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


@dataclass
class Listener:
    """Notes what it is asked, and knows nothing."""

    asked: list[Request] = field(default_factory=list)

    def describe(self) -> str:
        return "live"

    def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        self.asked.append(request)
        return Response(request.id, 0)


@pytest.mark.parametrize(
    ("words", "name"),
    [("history events --since 10:15:07", "since"), ("history log n1 --until 10:15:07", "until"),
     ("why web --at 10:15:07", "at"), ("resource why web --at 10:15:07", "at")],
)  # fmt: skip
def test_a_time_is_taken_as_it_is_printed(words: str, name: str) -> None:
    listener = Listener()
    world = World(
        streams=Streams(io.StringIO(), io.StringIO(), io.StringIO()), environment={}, connect=lambda _path: listener,
        open_file=lambda _path: listener, setup=lambda _arguments: Response("", 0), version=lambda: "1",
    )  # fmt: skip
    assert run(words.split(), world) == 0
    at = datetime.fromisoformat(str(listener.asked[-1].arguments[name]))
    assert (at.strftime("%H:%M:%S"), at.tzinfo is not None) == ("10:15:07", True)
