"""The agent that fails as it is asked to."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from haclusterd.agents.process_table import list_pids, read_marks
from tests.agents.conftest import AgentUnderTest

OK, ERROR, NOT_CONFIGURED, NOT_RUNNING, PROMOTED = 0, 1, 6, 7, 8


@pytest.fixture
def flaky(make_agent) -> AgentUnderTest:
    return make_agent("flaky")


def test_each_call_has_its_step_and_the_last_one_goes_on(flaky: AgentUnderTest) -> None:
    script = {"on_start": "rc=1 rc=5 ok"}
    assert [flaky.code("start", **script) for _ in range(2)] == [1, 5]
    assert flaky.code("monitor") == NOT_RUNNING
    assert [flaky.code("start", **script) for _ in range(3)] == [OK] * 3
    assert flaky.code("monitor") == OK
    done = flaky.run("monitor", on_monitor="rc=9")
    assert (done.returncode, "scripted: exit code 9 was asked for" in done.stderr) == (9, True)


def test_promote_and_demote_follow_the_configured_behaviour(flaky: AgentUnderTest) -> None:
    assert flaky.code("promote") == NOT_RUNNING
    assert flaky.code("start") == OK
    assert flaky.code("promote", on_promote="twice") == ERROR
    assert flaky.code("monitor") == PROMOTED
    assert flaky.code("demote", on_demote="undone") == OK
    assert flaky.code("monitor") == PROMOTED
    assert flaky.code("demote") == OK
    assert flaky.code("monitor") == OK
    assert [flaky.code(action) for action in ("notify", "reload-agent")] == [OK, OK]


def test_it_can_lie_die_and_be_slow(flaky: AgentUnderTest) -> None:
    assert flaky.code("stop", on_stop="undone") == OK
    assert flaky.code("start", on_start="kill") == -signal.SIGKILL
    began = time.monotonic()
    assert flaky.code("start", on_start="sleep=300ms,rc=0") == OK
    assert time.monotonic() - began >= 0.3
    assert flaky.code("stop", on_stop="undone") == OK
    assert flaky.code("monitor") == OK


def test_it_prints_as_much_as_it_is_asked_to(flaky: AgentUnderTest) -> None:
    done = flaky.run("monitor", on_monitor="print=300000")
    assert (done.returncode, len(done.stdout)) == (NOT_RUNNING, 300000)
    assert len(done.stderr) >= 300000


def test_it_hangs_and_ignores_a_signal(flaky: AgentUnderTest, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HA_RSCTMP": str(tmp_path), "OCF_RESKEY_on_start": "deaf,print=1,hang"}
    agent = Path(__file__).parents[2] / "resource_agents" / "flaky"
    with subprocess.Popen([agent, "start"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as hung:
        assert hung.stdout is not None
        assert hung.stdout.read(1) == b"f"
        hung.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            hung.wait(0.3)
        hung.kill()


def test_it_leaves_a_process_that_holds_the_output(flaky: AgentUnderTest) -> None:
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        _run_briefly(flaky, "daemon")
    assert caught.value.timeout == 1
    left = [pid for pid in list_pids() if read_marks(pid).get("OCF_RESOURCE_INSTANCE") == flaky.instance]
    assert len(left) == 1
    os.kill(left[0], signal.SIGKILL)
    assert flaky.code("monitor") == OK


def _run_briefly(agent: AgentUnderTest, step: str) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HA_RSCTMP": str(agent.state), "OCF_RESOURCE_INSTANCE": agent.instance,
                   "OCF_RESKEY_on_start": step}  # fmt: skip
    path = Path(__file__).parents[2] / "resource_agents" / "flaky"
    subprocess.run([path, "start"], env=environment, capture_output=True, timeout=1, check=False)


@pytest.mark.parametrize("script", ["rc=one", "rc=256", "dance", "sleep=", "sleep=soon", "print=much", "ok,,ok"])
def test_a_script_that_cannot_be_played_is_wrong_everywhere(flaky: AgentUnderTest, script: str) -> None:
    done = flaky.run("start", on_stop=script)
    assert (done.returncode, "on_stop" in done.stderr) == (NOT_CONFIGURED, True)
    assert flaky.code("validate-all", score="high") == NOT_CONFIGURED
