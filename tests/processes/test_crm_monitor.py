"""`crm monitor` over real daemons, on a pseudo-terminal: a failover is seen and explained, daemons come and go."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from haclusterd.model.ids import NodeName
from tests.processes.daemons import Scenario
from tests.processes.watched_terminal import MONITOR, WatchedTerminal

pytestmark = pytest.mark.processes

Open = Callable[..., WatchedTerminal]


@pytest.fixture
def watched(running: Scenario) -> Iterator[Open]:
    opened: list[WatchedTerminal] = []

    def open_(node: str, *size: int, command: Sequence[str] = MONITOR, **environment: str) -> WatchedTerminal:
        socket = running.cluster.nodes[NodeName(node)].socket
        opened.append(WatchedTerminal(socket, *size, environment=environment, command=command))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def others(scenario: Scenario) -> list[str]:
    return [name for name in scenario.cluster.names if name != scenario.holder()]


def test_a_failover_is_seen_as_it_happens_and_explained(running: Scenario, watched: Open) -> None:
    lost, (other, _) = running.holder(), others(running)
    assert lost is not None
    seen = watched(other, 100, 40)
    lines = seen.shows("HEALTHY | live")
    assert "quorum 3/3" in lines[0]
    (row,) = (line for line in lines if line.startswith("  svc"))
    assert row.split().count("started") == 1

    running.cluster.power_off(lost)
    seen.shows(f"{lost} is lost")
    seen.shows("the last start succeeded after")
    lines = seen.until("the service on another node", lambda all_: any(
        line.startswith("  svc") and "started" in line and all_[0].startswith("DEGRADED | live") for line in all_))
    steps = [line.strip() for line in lines if line.strip().startswith("+")]
    assert steps[0].startswith("+0 ms")
    assert f"{lost} is lost" in steps[0]
    assert any(f"{lost} is fenced" in step for step in steps)
    assert "start of svc on" in steps[-1]

    seen.type("jw")
    seen.shows("-- why svc --")
    lines = seen.shows("svc runs on")
    assert any(f"{lost} is offline" in line for line in lines)
    seen.type("q")
    assert seen.ended() == 0
    assert seen.is_as_before()


def test_it_survives_the_restart_of_its_daemon_and_says_how_old_the_picture_is(
    running: Scenario, watched: Open
) -> None:
    node = others(running)[0]
    seen = watched(node)
    seen.shows("HEALTHY | live")
    os.kill(running.brain(node).pid, signal.SIGKILL)
    lines = seen.shows("s OLD")
    assert any("power" in line for line in lines), "what was known stays"
    running.restart_brain(node)
    seen.shows("| live |")
    seen.shows("HEALTHY")
    seen.type("\x03")
    assert seen.ended() == 0
    assert seen.is_as_before()


def test_without_a_quorum_the_age_of_the_picture_is_shown(running: Scenario, watched: Open) -> None:
    node, *away = running.cluster.names
    seen = watched(node)
    seen.shows("HEALTHY | live")
    for name in away:
        os.kill(running.brain(name).pid, signal.SIGSTOP)
    try:
        seen.shows("NO QUORUM")
        seen.shows("s OLD")
    finally:
        for name in away:
            os.kill(running.brain(name).pid, signal.SIGCONT)
    seen.shows("| live |")
    seen.process.send_signal(signal.SIGTERM)
    assert seen.ended() == 128 + signal.SIGTERM
    assert seen.is_as_before()


def test_it_is_drawn_again_in_every_size_and_on_the_smallest_terminals(running: Scenario, watched: Open) -> None:
    seen = watched(running.cluster.names[0], 20, 10)
    assert seen.shows("HEALTHY")[0].startswith("HEALTHY | live")
    for columns, rows in ((100, 30), (20, 3), (1, 1), (80, 24)):
        seen.resize(columns, rows)
        first = "HEALTHY | live"[:columns]
        seen.until(f"a picture of {columns} columns", lambda lines, first=first: lines[0].startswith(first))
    seen.shows("q=quit")
    seen.type("?")
    seen.shows("-- keys --")
    seen.type("q")
    assert seen.ended() == 0


def test_without_colours_and_without_a_locale(running: Scenario, watched: Open) -> None:
    seen = watched(running.cluster.names[0], LC_ALL="C", LANG="", NO_COLOR="1")
    seen.shows("HEALTHY | live")
    seen.type("/pow")
    seen.shows("filter: pow_")
    seen.type("\r")
    seen.until("the filtered list", lambda lines: not any(line.startswith("  svc") for line in lines))
    seen.type(" ")
    seen.shows("PAUSED")
    seen.type(" q")
    assert seen.ended() == 0
    assert re.findall(r"\x1b\[[\d;]*(?<!\d)[34]\d[\d;]*m", seen.written) == []


def test_what_is_wrong_has_a_colour(running: Scenario, watched: Open) -> None:
    seen = watched(running.cluster.names[0])
    seen.shows("HEALTHY | live")
    assert "\x1b[32m" in seen.written
    seen.type("q")
    assert seen.ended() == 0


def test_it_draws_at_most_five_times_a_second_while_keys_are_held(running: Scenario, watched: Open) -> None:
    seen = watched(running.cluster.names[0])
    seen.shows("HEALTHY | live")
    began, before = time.monotonic(), len(seen.written)
    for _ in range(100):
        seen.type("?t")  # Two pictures, if each key were one.
        seen.read(0.02)
        seen.type("?")
        seen.read(0.02)
    elapsed_s = time.monotonic() - began
    drawn = seen.written[before:]
    titles = drawn.count("keys --") + drawn.count("the last failover --")
    assert 0 < titles <= 5 * elapsed_s + 2


def test_it_can_be_stopped_and_continued_from_a_shell(running: Scenario, watched: Open) -> None:
    script = f"set -m; {shlex.join(MONITOR)}; echo; echo stopped; read -r line; fg; echo ended"
    seen = watched(running.cluster.names[0], command=("sh", "-c", script))
    seen.shows("HEALTHY | live")
    seen.type("\x1a")
    seen.shows("stopped")
    assert seen.is_as_before()
    seen.type("\n")
    lines = seen.shows("HEALTHY | live")
    assert seen.screen.is_alternate
    assert any("q=quit" in line for line in lines)
    seen.type("q")
    seen.shows("ended")
    assert seen.is_as_before()


@pytest.mark.parametrize("words", [(), ("--once",)])
def test_where_there_is_no_terminal_it_prints_one_picture(running: Scenario, words: tuple[str, ...]) -> None:
    socket = running.cluster.nodes[NodeName(running.cluster.names[0])].socket
    done = subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", "monitor", *words], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=60, check=False, cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "HACLUSTERD_SOCKET": str(socket)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("HEALTHY: ")
    assert "\x1b" not in done.stdout


def test_a_terminal_that_can_show_no_picture_gets_one_as_text(running: Scenario, watched: Open) -> None:
    for kind in ("dumb", "no-such-terminal"):
        seen = watched(running.cluster.names[0], TERM=kind)
        assert seen.ended() == 0
        assert "| DC " in seen.written


def test_it_says_at_once_that_no_daemon_runs(watched: Open, running: Scenario, tmp_path: Path) -> None:
    seen = watched(running.cluster.names[0], HACLUSTERD_SOCKET=str(tmp_path / "none.sock"))
    assert seen.ended() == 69
    assert seen.is_as_before()
