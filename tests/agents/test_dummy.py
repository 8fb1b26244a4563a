"""dummy: what it is ordered to do, it does, and writes down."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.conftest import AgentUnderTest


def test_scripted_results_change_nothing(make_agent: Callable[..., AgentUnderTest]) -> None:
    agent = make_agent("dummy")
    done = agent.run("start", rc_start="5")
    assert (done.returncode, done.stderr) == (5, "ocf-exit-reason:scripted result of start: 5\n")
    assert agent.code("monitor") == 7
    assert agent.code("start") == 0
    assert agent.code("stop", rc_stop="1") == 1
    assert agent.code("monitor") == 0
    assert agent.code("monitor", rc_monitor="190") == 190


@pytest.mark.parametrize("parameters", [{"op_sleep": "0.5"}, {"sleep_start": "0.5"}])
def test_a_start_takes_the_configured_delay(
    make_agent: Callable[..., AgentUnderTest], parameters: dict[str, str]
) -> None:
    begun = time.monotonic()
    make_agent("dummy").code("start", **parameters)
    assert time.monotonic() - begun >= 0.5


def test_each_action_is_appended_to_the_record_with_its_exit_code(
    make_agent: Callable[..., AgentUnderTest], tmp_path: Path
) -> None:
    record = tmp_path / "record"
    agent = make_agent("dummy", record=str(record))
    for action in ("monitor", "start", "monitor", "stop"):
        agent.run(action)
    lines = [line.split() for line in record.read_text().splitlines()]
    assert [line[1:] for line in lines] == [
        ["n1", agent.instance, "monitor", "7"],
        ["n1", agent.instance, "start", "0"],
        ["n1", agent.instance, "monitor", "0"],
        ["n1", agent.instance, "stop", "0"],
    ]
    assert all(line[0].isdigit() and len(line[0]) == 13 for line in lines)


def test_a_state_that_cannot_be_written(make_agent: Callable[..., AgentUnderTest]) -> None:
    done = make_agent("dummy").run("start", state="/proc/no/such/state")
    assert done.returncode == 1
    assert "ocf-exit-reason:cannot write /proc/no/such/state" in done.stderr
