"""How an answer is shown: where it goes, what a person sees while waiting, colours."""

import io
import json
from collections.abc import Callable

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.render.terminal import Screen, ago, folded, span
from haclusterd.cli.session import Session, Streams
from haclusterd.model.api_tokens import TOKEN_PREFIX, digest_of
from haclusterd.model.records import dataclass
from haclusterd.model.requests import Options, Progress, Request, Response, ShownReport
from haclusterd.ports.control import CommandClient
from haclusterd.verbs.answers.table import ANSWERS
from tests.administered_clusters import ClusterClient, running


class Screenful(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class SlowClient:
    """Lets its caller wait."""

    news: tuple[Progress, ...]
    response: Response

    def describe(self) -> str:
        return "live"

    def call(self, _request: Request, progress: Callable[[Progress], None]) -> Response:
        for each in self.news:
            progress(each)
        return self.response


def session(client: CommandClient, err: io.StringIO) -> Session:
    return Session(client, Streams(io.StringIO(), io.StringIO(), err), Screen(), Screen())


STEERING = "a\tb \x1b[2J\x1b]0;c\a \x1b[31md\x1b[0m"


@pytest.mark.parametrize(
    ("out", "shown"), [(Screenful(), "a\tb ?[2J?]0;c? \x1b[31md\x1b[0m"), (io.StringIO(), STEERING)]
)
def test_what_is_shown_steers_no_terminal(out: io.StringIO, shown: str) -> None:
    streams = Streams(io.StringIO(), out, io.StringIO())
    Session(SlowClient((), Response("1", 0)), streams, Screen(), Screen()).write([STEERING])
    assert out.getvalue() == f"{shown}\n"


NEWS = (Progress("1", "web to run on n2", 1000), Progress("1", "web to run on n2", 12_000))


def test_a_person_sees_a_long_wait_on_one_line_that_goes_away() -> None:
    err = Screenful()
    session(SlowClient(NEWS, Response("1", 0)), err).ask("status", {})
    assert err.getvalue() == "\r\x1b[Kwaiting for web to run on n2, 12 s\r\x1b[K"


def test_a_program_sees_nothing_of_it() -> None:
    err = io.StringIO()
    session(SlowClient(NEWS, Response("1", 0)), err).ask("status", {})
    assert err.getvalue() == ""


def world(client: CommandClient, out: io.StringIO, err: io.StringIO, **environment: str) -> World:
    return World(
        streams=Streams(io.StringIO(), out, err), environment=environment, connect=lambda _path: client,
        open_file=lambda _path: client, setup=lambda _arguments: Response("", 0), version=lambda: "1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "environment", "is_terminal", "has_colour"),
    [
        (["status"], {}, True, True),
        (["status"], {}, False, False),
        (["status"], {"NO_COLOR": "1"}, True, False),
        (["status"], {"TERM": "dumb"}, True, False),
        (["-D", "plain", "status"], {}, True, False),
        (["-D", "color-always", "status"], {"NO_COLOR": "1"}, False, True),
        (["-o", "json", "status"], {}, True, False),
    ],
)
def test_colours(words: list[str], environment: dict[str, str], is_terminal: bool, has_colour: bool) -> None:
    out = Screenful() if is_terminal else io.StringIO()
    assert run(words, world(ClusterClient(running()), out, io.StringIO(), **environment)) == 0
    assert ("\x1b[" in out.getvalue()) is has_colour


def test_options_reach_the_verb_that_answers() -> None:
    client = ClusterClient(running())
    words = ["node", "standby", "n1", "--wait=5s", "--reason", "new disk", "-F"]
    assert run(words, world(client, io.StringIO(), io.StringIO())) == 0
    assert client.requests[0].options == Options(wait_ms=5000, force=True, reason="new disk")
    assert client.requests[0].arguments == {"node": "n1"}


def test_an_answer_of_a_newer_daemon_is_still_shown() -> None:
    out = io.StringIO()
    client = SlowClient((), Response("1", 0, (), {"schema": "haclusterd.status/2", "verdict": "FINE"}))
    assert run(["status"], world(client, out, io.StringIO())) == 0
    assert json.loads(out.getvalue())["verdict"] == "FINE"


@pytest.mark.parametrize("schema", sorted(ANSWERS))
def test_an_answer_with_anything_missing_is_still_shown(schema: str) -> None:
    full = {name: [{}] for name in ("nodes", "resources", "members", "timers", "events", "orders", "failures", "moves")}
    fencing = {"fencing": {"open": [{}], "recent": [{}], "devices": [{}]}}
    for data in ({}, full, dict.fromkeys(full), dict.fromkeys(full, "x"), fencing):
        client = SlowClient((), Response("1", 0, (), {"schema": schema, **data}))
        assert run(["status"], world(client, io.StringIO(), io.StringIO())) == 0


def test_errors_as_data() -> None:
    out, err = io.StringIO(), io.StringIO()
    client = SlowClient((), Response("1", 106, (ShownReport("error", "NO_QUORUM", "no quorum", "wait"),)))
    assert run(["-o", "json", "resource", "stop", "a"], world(client, out, err)) == 106
    assert out.getvalue() == ""
    error = json.loads(err.getvalue())["error"]
    assert (error["code"], error["exit"], error["hint"]) == ("NO_QUORUM", 106, "wait")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (10_000, "10 s"), (119_000, "119 s"), (120_000, "2 min"),
     (7_200_000, "2 h"), (172_800_000, "2 d")],
)  # fmt: skip
def test_spans(ms: int, text: str) -> None:
    assert span(ms) == text


def test_moments() -> None:
    assert [ago(0, 5), ago(1_000_000, 1_000_500), ago(1_000_000, 1_003_000)] == ["never", "just now", "3.0 s ago"]
    screen = Screen()
    assert screen.clock(0, 5) == "never"


def test_folding_keeps_long_words_whole() -> None:
    assert folded("aa bb " + "c" * 12 + " d", width=8, indent="> ", later="  ") == ["> aa bb", "  " + "c" * 12, "  d"]


def test_a_token_is_shown_once_and_only_its_digest_is_sent() -> None:
    client, out, err = ClusterClient(running()), io.StringIO(), io.StringIO()
    assert run(["-o", "json", "api", "token", "add", "grafana", "--role", "viewer"], world(client, out, err)) == 0
    made = json.loads(out.getvalue())
    (request,) = client.requests
    assert request.arguments["digest"] == digest_of(made["token"])
    assert made["token"].startswith(TOKEN_PREFIX)
    assert made["token"] not in repr(request) + repr(client.cluster.cib)
    out.truncate(0)
    assert run(["api", "token", "list"], world(client, out, err)) == 0
    assert "grafana" in out.getvalue()
    assert made["token"] not in out.getvalue()
    assert run(["api", "token", "revoke", "grafana"], world(client, out, err)) == 0
    assert run(["api", "token", "revoke", "grafana"], world(client, out, err)) == 105
    assert run(["api", "token", "add", "x"], world(client, out, err)) == 64
