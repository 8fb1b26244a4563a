"""`crm history events --follow`: each event once, also where the daemon is away for a while; what ends it."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from haclusterd.cli.following import RETRY_S, follow
from haclusterd.cli.parsing import UsageError
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.model.requests import Progress, Request, Response, ShownReport


class Daemon:
    """Answers one thing after the other; a person interrupts what is asked after the last."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    def describe(self) -> str:
        return "live"

    def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        self.asked.append(request)
        if not self.answers:
            raise KeyboardInterrupt
        return self.answers.pop(0)


def answer(text: str, following: str, **more: Any) -> Response:
    event = {"index": 7, "at": 0, "kind": "node-lost", "node": "n2", "resource": None, "text": text, "reason": ""}
    return Response("", 0, data={"now": 0, "events": [event] if text else [], "next": following, **more})


def refused(code: str) -> Response:
    return Response("", 1, (ShownReport("error", code, f"it is {code}"),))


def followed(daemon: Daemon, *, is_json: bool = False, **arguments: Any) -> tuple[int, str, str, list[float]]:
    out, err, pauses = io.StringIO(), io.StringIO(), list[float]()
    session = Session(daemon, Streams(io.StringIO(), out, err), Screen(), Screen(), is_json=is_json)
    status = follow(session, {"follow": True, **arguments}, pauses.append)
    return status, out.getvalue(), err.getvalue(), pauses


def test_it_goes_on_from_each_answer_with_the_conditions_of_the_first_question() -> None:
    daemon = Daemon(answer("one", "7"), answer("", "8"), answer("two", "9"))
    status, out, err, pauses = followed(daemon, node="n2", kinds=["node-lost"], limit=3)
    assert (status, err, pauses) == (0, "", [])
    assert [line.split()[-1] for line in out.splitlines()] == ["one", "two"]
    assert [each.verb for each in daemon.asked] == ["history.events", *["history.follow"] * 3]
    assert daemon.asked[0].arguments == {"node": "n2", "kinds": ["node-lost"], "limit": 3}
    assert [each.arguments["after"] for each in daemon.asked[1:]] == ["7", "8", "9"]
    assert all(each.arguments["node"] == "n2" and "limit" not in each.arguments for each in daemon.asked[1:])


def test_a_daemon_that_is_away_is_waited_for_and_said_once() -> None:
    away = [refused("DISCONNECTED"), *[refused("NOT_RUNNING")] * 3]
    daemon = Daemon(answer("one", "7"), *away, answer("two", "8"), refused("NOT_RUNNING"))
    status, out, err, pauses = followed(daemon)
    assert (status, pauses) == (0, [RETRY_S] * 5)
    assert err.splitlines() == [f"ERROR: it is {code}" for code in ("DISCONNECTED", "NOT_RUNNING", "NOT_RUNNING")]
    assert out.count("two") == 1
    assert [each.arguments["after"] for each in daemon.asked[1:6]] == ["7"] * 5


@pytest.mark.parametrize("is_first", [True, False])
def test_a_refusal_ends_it(is_first: bool) -> None:
    daemon = Daemon(*([] if is_first else [answer("one", "7")]), refused("NO_SUCH_RESOURCE"))
    assert followed(daemon)[0] == 1


def test_programs_get_a_line_for_each_event_and_for_what_is_missing() -> None:
    missing = {"first": 8, "last": 9, "because": "unknown", "text": "entries 8 to 9 are not in this node's history"}
    daemon = Daemon(answer("one", "7"), answer("", "9", missing=missing), answer("two", "10"))
    lines = [json.loads(line) for line in followed(daemon, is_json=True)[1].splitlines()]
    assert [lines[0]["text"], lines[1], lines[2]["text"]] == ["one", {"missing": missing}, "two"]
    daemon = Daemon(answer("", "7"), answer("", "9", missing=missing))
    assert followed(daemon)[1] == f"missing: {missing['text']}\n"


def test_an_end_and_going_on_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--until"):
        followed(Daemon(), until="10min")
