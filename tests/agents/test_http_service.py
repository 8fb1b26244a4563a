"""http-service: ready means that the URL answers as expected."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.conftest import AgentUnderTest

OK, ERROR, NOT_CONFIGURED, NOT_RUNNING = 0, 1, 6, 7


def test_start_returns_when_the_url_answers(
    make_http: Callable[..., AgentUnderTest], write_script: Callable[[str, str], Path], free_port: int
) -> None:
    agent = make_http()
    slow = write_script("slow", f"#!/bin/sh\nsleep 1\nexec {agent.parameters['command']}\n")
    assert agent.code("start", command=str(slow)) == OK
    with socket.create_connection(("127.0.0.1", free_port), 5):
        pass


def test_what_never_gets_ready_fails_and_leaves_nothing(make_http: Callable[..., AgentUnderTest]) -> None:
    agent = make_http(status="503 Busy", ready_timeout="1s")
    done = agent.run("start")
    assert done.returncode == ERROR
    assert f"not ready in time: {agent.parameters['ready_url']}: " in done.stderr
    assert agent.code("monitor") == NOT_RUNNING
    assert not list(agent.state.iterdir())


def test_a_status_that_is_not_expected_is_reported(make_http: Callable[..., AgentUnderTest]) -> None:
    agent = make_http(status="503 Busy")
    assert agent.code("start", expect_status="503") == OK
    done = agent.run("monitor", level=10)
    assert done.returncode == ERROR
    assert "HTTP status 503, not 200-299" in done.stderr


def test_start_ends_by_itself_where_only_the_action_has_a_timeout(make_http: Callable[..., AgentUnderTest]) -> None:
    assert make_http(status="503 Busy").code("start", timeout_ms=2500) == ERROR


@pytest.mark.parametrize(
    ("expect", "code"), [("503", OK), ("200-399,503", OK), ("200-399", ERROR), ("500-599", OK), ("404", ERROR)]
)
def test_a_start_succeeds_only_with_an_expected_status(
    make_http: Callable[..., AgentUnderTest], expect: str, code: int
) -> None:
    agent = make_http(status="503 Busy")
    assert agent.code("start", expect_status=expect, ready_timeout=ready_timeout(code)) == code


@pytest.mark.parametrize(("expect", "code"), [("hello", OK), ("goodbye", ERROR)])
def test_a_start_succeeds_only_with_the_expected_body(
    make_http: Callable[..., AgentUnderTest], expect: str, code: int
) -> None:
    assert make_http().code("start", expect_body=expect, ready_timeout=ready_timeout(code)) == code


def ready_timeout(code: int) -> str | None:
    """A start that has to fail need not wait long."""
    return "500ms" if code == ERROR else None


@pytest.mark.parametrize(
    "wrong",
    [
        {"ready_url": "ftp://x/"},
        {"ready_url": "127.0.0.1:80"},
        {"ready_url": "http://x:port/"},
        {"expect_status": "ok"},
    ],
)
def test_impossible_parameters_are_not_configured(
    make_http: Callable[..., AgentUnderTest], wrong: dict[str, str]
) -> None:
    assert make_http().code("validate-all", **wrong) == NOT_CONFIGURED


def test_a_hung_server_is_alive_at_level_0_and_failed_at_level_10(make_http: Callable[..., AgentUnderTest]) -> None:
    agent = make_http()
    assert agent.code("start") == OK
    os.kill(agent.pid(), 19)
    assert agent.code("monitor") == OK
    done = agent.run("monitor", level=10, timeout_ms=2000)
    assert done.returncode == ERROR
    assert "timed out" in done.stderr
