"""A stand-in for a model server, which loads, works, hangs, is slow or stalls as a file says, under the real agent."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.conftest import AgentUnderTest

OK, ERROR, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING, DEGRADED = 0, 1, 5, 6, 7, 190

SERVER = r"""
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
mode_file, port = sys.argv[1], int(sys.argv[2])
begun = time.monotonic()
worker = subprocess.Popen(["sleep", "1021"])
asked = {"metrics": 0, "tokens": 0}

def mode():
    return open(mode_file).read().split()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(text), 40):
            piece = text[at:at + 40].encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
    def do_GET(self):
        words = mode()
        if "hang" in words: time.sleep(60)
        if self.path == "/health": return self.answer(200, "")
        if self.path == "/v1/models":
            if "loading" in words: return self.answer(503, "loading weights")
            if "key" in words and self.headers["Authorization"] != "Bearer secret": return self.answer(401, "who")
            return self.answer(200, json.dumps({"data": [{"id": "m7b"}]}))
        if self.path == "/metrics":
            if "blind" in words: return self.answer(404, "")
            asked["metrics"] += 1
            moving = 0 if "stalled" in words else asked["metrics"]
            busy = 1 if {"busy", "stalled"} & set(words) else 0
            if "draining" in words and asked["metrics"] < 4: busy = 2
            waiting = 9 if "queue" in words else 0
            cache = 0.995 if "full" in words else 0.2
            return self.answer(200, "# HELP x\n"
                f'vllm:num_requests_running{{model_name="m7b",engine="0"}} {busy}.0\n'
                f'vllm:num_requests_waiting{{model_name="m7b",engine="0"}} {waiting}.0\n'
                f'vllm:generation_tokens_total{{model_name="m7b",engine="0"}} {100.0 + moving}\n'
                f'vllm:kv_cache_usage_perc{{engine="0"}} {cache}\n')
        self.answer(404, "no such path")
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if {"engine-dead", "hang"} & set(mode()): time.sleep(60)
        asked["tokens"] += 1
        open(mode_file + ".tokens", "a").write(f"{given['model']} {given['max_tokens']}\n")
        self.answer(200, json.dumps({"choices": [{"text": "!"}]}))

class Server(ThreadingHTTPServer):
    daemon_threads = True

Server(("127.0.0.1", port), Handler).serve_forever()
"""


class Model:
    """An agent for the stand-in, and what the stand-in is to do."""

    def __init__(self, directory: Path, port: int, make_agent: Callable[..., AgentUnderTest]) -> None:
        self._mode = directory / "mode"
        script = directory / "server.py"
        script.write_text(SERVER)
        self.do("work")
        self.agent = make_agent(
            "inference-server", command=f"python3 -E {script} {self._mode} {port}", url=f"http://127.0.0.1:{port}",
            model="m7b",
        )  # fmt: skip

    def do(self, mode: str) -> None:
        self._mode.write_text(mode)

    @property
    def tokens(self) -> list[str]:
        path = self._mode.with_name("mode.tokens")
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def model(tmp_path: Path, free_port: int, make_agent) -> Model:
    return Model(tmp_path, free_port, make_agent)


@pytest.fixture
def served(model: Model) -> Model:
    assert model.agent.code("start") == OK
    return model


def test_a_start_succeeds_when_a_token_was_made(model: Model) -> None:
    assert model.agent.code("start") == OK
    assert model.tokens == ["m7b 1"]
    for level in (0, 10, 20):
        assert model.agent.code("monitor", level=level) == OK


def test_a_server_that_still_loads_is_not_ready_and_its_start_is_bounded(model: Model) -> None:
    model.do("loading")
    done = model.agent.run("start", ready_timeout="1500ms")
    assert done.returncode == ERROR
    assert "not-ready: /v1/models: HTTP status 503: loading weights" in done.stderr
    assert model.agent.code("monitor") == NOT_RUNNING


def test_a_start_fails_where_health_is_well_and_no_token_comes(model: Model) -> None:
    model.do("engine-dead")
    done = model.agent.run("start", timeout_ms=8000)
    assert (done.returncode, "no-token: /v1/completions: timed out" in done.stderr) == (ERROR, True)
    assert model.agent.code("monitor") == NOT_RUNNING


def test_a_model_that_the_server_does_not_have_is_named(model: Model) -> None:
    done = model.agent.run("start", model="m70b", ready_timeout="1s")
    assert (done.returncode, "/v1/models does not list the model (model=m70b)" in done.stderr) == (ERROR, True)


def test_a_server_that_hangs_is_alive_and_neither_live_nor_ready(served: Model) -> None:
    served.do("hang")
    assert served.agent.code("monitor") == OK
    done = served.agent.run("monitor", level=10, timeout_ms=2500)
    assert (done.returncode, "not-live: /health: timed out" in done.stderr) == (ERROR, True)


def test_an_idle_server_whose_engine_is_dead_is_ready_and_makes_no_progress(served: Model) -> None:
    served.do("engine-dead")
    assert served.agent.code("monitor", level=10) == OK
    done = served.agent.run("monitor", level=20, probe_timeout="500ms")
    assert (done.returncode, "no-token: " in done.stderr) == (ERROR, True)


def test_a_busy_server_is_judged_by_its_tokens_and_not_asked_for_more(served: Model) -> None:
    served.do("busy")
    for _ in range(3):
        assert served.agent.code("monitor", level=20, stall_seconds="0s") == OK
    assert len(served.tokens) == 1


def test_a_busy_server_without_new_tokens_is_stalled_after_the_time_given(served: Model) -> None:
    served.do("stalled")
    assert served.agent.code("monitor", level=20, stall_seconds="0s") == OK  # It has just been seen for the first time.
    assert served.agent.code("monitor", level=20, stall_seconds="1h") == OK
    done = served.agent.run("monitor", level=20, stall_seconds="0s")
    assert (done.returncode, "stalled: no token for " in done.stderr) == (ERROR, True)
    assert "(requests=1 tokens=100)" in done.stderr
    assert served.agent.code("monitor", level=10) == OK


def test_what_an_earlier_server_counted_is_forgotten(served: Model) -> None:
    served.do("stalled")
    assert served.agent.code("monitor", level=20, stall_seconds="0s") == OK
    served.do("work")
    assert served.agent.code("stop") == OK
    assert served.agent.code("start") == OK
    served.do("stalled")
    assert served.agent.code("monitor", level=20, stall_seconds="0s") == OK


def test_a_server_without_metrics_is_asked_for_a_token(served: Model) -> None:
    served.do("blind")
    assert served.agent.code("monitor", level=20) == OK
    assert len(served.tokens) == 2


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("busy queue", "queue: 9 requests wait (max_queue=5)"), ("busy full", "cache-full: 100 % of the key-value cache")],
)
def test_a_server_that_is_overloaded_is_degraded(served: Model, mode: str, reason: str) -> None:
    served.do(mode)
    done = served.agent.run("monitor", level=20, max_queue="5")
    assert (done.returncode, reason in done.stderr) == (DEGRADED, True)


def test_a_lost_worker_is_a_failure(served: Model) -> None:
    assert served.agent.code("monitor", workers="1") == OK
    done = served.agent.run("monitor", workers="2")
    assert (done.returncode, "worker-lost: 1 processes besides the main one" in done.stderr) == (ERROR, True)


def test_a_stop_waits_for_requests_under_way_and_no_longer_than_given(served: Model) -> None:
    served.do("draining")
    assert served.agent.code("stop", stop_timeout="1s") == OK
    assert served.agent.code("start") == OK
    served.do("busy")
    began = time.monotonic()
    assert served.agent.code("stop", stop_timeout="1s", drain_seconds="1s") == OK
    assert time.monotonic() - began < 15


def test_a_stopped_process_is_ended_within_the_timeout(served: Model) -> None:
    os.kill(served.agent.pid(), signal.SIGSTOP)
    assert served.agent.code("stop", stop_timeout="1s", drain_seconds="1s") == OK


def test_the_key_is_read_from_its_file(model: Model, tmp_path: Path) -> None:
    model.do("key")
    key = tmp_path / "key"
    key.write_text("secret\n")
    assert model.agent.code("start", api_key_file=str(key)) == OK
    assert model.agent.code("monitor", level=10) == ERROR
    done = model.agent.run("monitor", level=10, api_key_file="/no/such/key")
    assert (done.returncode, "api_key_file: /no/such/key: No such file" in done.stderr) == (NOT_INSTALLED, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": "magic"}, {"url": "127.0.0.1:8000"}, {"metrics_url": "ftp://x/"}, {"stall_seconds": "soon"},
        {"max_queue": "-1"}, {"workers": "two"}, {"warmup": "perhaps"}, {"command": None},
    ],
)  # fmt: skip
def test_impossible_values_are_wrong_everywhere(model: Model, wrong: dict[str, str | None]) -> None:
    done = model.agent.run("start", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr
