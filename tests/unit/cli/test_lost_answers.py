"""A change whose answer was lost: somebody is asked whether it happened."""

import io
from collections.abc import Callable

import pytest

from haclusterd.cli.lost_answers import PAUSE_S, TIMEOUT_S, Patience, found_out, is_lost
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Options, Progress, Request, Response, ShownReport

SENT_AT = 1_000_000
CHANGE = Request("1", "configure.statement", {"words": ["property", "batch-limit=4"]})


def refused(code: str) -> Response:
    return Response("", 102, (ShownReport("error", code, code),))


@dataclass
class Daemon:
    """Answers what it is asked, after a while."""

    answers: dict[str, Json]
    away: int = 0
    asked: list[Request] = field(default_factory=list)

    def describe(self) -> str:
        return "live"

    def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        self.asked.append(request)
        self.away -= 1
        return refused("NOT_RUNNING") if self.away >= 0 else Response("", 0, (), self.answers[request.verb])


def versions(*at: int) -> dict[str, Json]:
    listed: list[Json] = [{"number": 11 + number, "at": each} for number, each in enumerate(at)]
    return {"api.whoami": {"author": "root@n1"}, "history.config": {"version": 11, "versions": listed}}


def outcome(daemon: Daemon) -> tuple[int, list[str], str]:
    slept: list[float] = []
    lost = refused("DISCONNECTED")
    found = found_out(daemon, lost, SENT_AT, io.StringIO(), Patience(slept.append))
    assert sum(slept) <= 2 * TIMEOUT_S
    return found.exit, [each.code for each in found.reports], " ".join(each.message for each in found.reports)


@pytest.mark.parametrize("away", [0, 3])
def test_what_happened_is_said_to_have_happened(away: int) -> None:
    daemon = Daemon(versions(SENT_AT - 5, SENT_AT + 5), away)
    status, codes, message = outcome(daemon)
    assert (status, codes) == (0, ["CONFIGURATION_CHANGED"])
    assert "version 12 " in message
    assert all(each.options.is_consistent for each in daemon.asked if each.verb == "history.config")


def test_what_did_not_happen_is_said_not_to_have() -> None:
    status, codes, message = outcome(Daemon(versions(SENT_AT - 5)))
    assert (status, codes) == (102, ["DISCONNECTED"])
    assert "did not change" in message


def test_where_nobody_answers_it_is_not_known() -> None:
    daemon = Daemon(versions(), away=10_000)
    assert outcome(daemon)[:2] == (102, ["OUTCOME_UNKNOWN"])
    assert len(daemon.asked) <= TIMEOUT_S / PAUSE_S + 2


@dataclass
class CutOff(Daemon):
    """Has no quorum: it takes 5 s to say so of what must be consistent."""

    now: float = 0.0

    def call(self, request: Request, progress: Callable[[Progress], None]) -> Response:
        if not request.options.is_consistent:
            return super().call(request, progress)
        self.now += 5.0
        return refused("NO_QUORUM")

    def sleep(self, pause_s: float) -> None:
        self.now += pause_s


def test_without_a_quorum_the_waiting_ends_in_time_and_what_was_answered_first_counts() -> None:
    daemon = CutOff(versions())
    first = Response("", 112, (ShownReport("error", "OUTCOME_UNKNOWN", "the leader was lost; missing: n2, n3"),))
    found = found_out(daemon, first, SENT_AT, io.StringIO(), Patience(daemon.sleep, lambda: daemon.now))
    assert found == first
    assert daemon.now <= TIMEOUT_S + 5


@pytest.mark.parametrize(
    ("request_", "code", "expected"),
    [
        (CHANGE, "DISCONNECTED", True),
        (CHANGE, "OUTCOME_UNKNOWN", True),
        (CHANGE, "NOT_RUNNING", False),
        (Request("1", "configure.statement", {}, Options(dry_run=True)), "DISCONNECTED", False),
        (Request("1", "status", {}), "DISCONNECTED", False),
    ],
)
def test_only_changes_are_looked_for(request_: Request, code: str, *, expected: bool) -> None:
    assert is_lost(request_, refused(code)) is expected
