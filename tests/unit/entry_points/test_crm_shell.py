"""The interactive shell on a real terminal: prompt, completion, history, leaving."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.agents.process_table import read_stat
from haclusterd.cib.codec import decode_cib, encode_cib
from tests.administered_clusters import running

WAIT_S_MAX = 30.0


class Terminal:
    """A shell on a pseudo-terminal, and somebody who types."""

    def __init__(self, state: Path) -> None:
        controller, terminal = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "CIB_file": str(state), "HOME": str(state.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "haclusterd.entry_points.crm"],
            stdin=terminal, stdout=terminal, stderr=terminal, env=environment, cwd=Path(__file__).parents[3],
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - this test has one thread
        )  # fmt: skip
        os.close(terminal)
        self.controller = controller
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.controller, text.encode())

    def interrupt(self) -> None:
        """Type ^C at a shell that waits for input; what comes between prompt and wait is kept until the next key."""
        deadline = time.monotonic() + WAIT_S_MAX
        while (stat := read_stat(self.process.pid)) is None or stat.state != "S":
            assert time.monotonic() < deadline, f"it never waits for input: {stat and stat.state}"
        self.type("\x03")

    def expect(self, wanted: str) -> str:
        """Read until something is shown; return what came before it."""
        deadline = time.monotonic() + WAIT_S_MAX
        while wanted not in self.seen:
            ready, _, _ = select.select([self.controller], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"waited in vain for {wanted!r} after {self.seen!r}"
            self.seen += os.read(self.controller, 65536).decode()
        before, _, self.seen = self.seen.partition(wanted)
        return before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S_MAX)
        os.close(self.controller)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.cib"
    path.write_bytes(encode_cib(running().cib))
    return path


@pytest.fixture
def terminal(state: Path) -> Iterator[Terminal]:
    made = Terminal(state)
    try:
        yield made
    finally:
        made.close()


def test_a_change_from_prompt_to_prompt(terminal: Terminal, state: Path) -> None:
    terminal.expect("crm(state.cib)# ")
    terminal.type("configure\n")
    terminal.expect("crm(state.cib)configure# ")
    terminal.type("property \\\nnode-timeout=3s\n")
    terminal.expect("> ")
    terminal.expect("crm(state.cib)configure*# ")
    terminal.type("up\n")
    terminal.expect("Commit them? [y]es, [n]o, [s]tay: ")
    terminal.type("y\n")
    terminal.expect("version 7 -> 8")
    terminal.expect("crm(state.cib)# ")
    terminal.type("quit\n")
    assert terminal.process.wait(WAIT_S_MAX) == 0
    assert decode_cib(state.read_bytes()).version.epoch == 8
    history = (state.parent / ".local/state/haclusterd/crm_history").read_text()
    assert history.startswith("configure\n")


def test_tab_completes_names_of_the_cluster(terminal: Terminal) -> None:
    terminal.expect("crm(state.cib)# ")
    terminal.type("resource mo\twe\tn2\n")
    terminal.expect("resource move web n2")
    terminal.expect("site moves to n2")


def test_interrupt_clears_the_line_and_end_of_input_leaves(terminal: Terminal) -> None:
    terminal.expect("crm(state.cib)# ")
    terminal.type("node\n")
    terminal.expect("crm(state.cib)node# ")
    terminal.type("fence everything")
    terminal.expect("fence everything")
    terminal.interrupt()
    terminal.expect("^C")
    terminal.expect("crm(state.cib)node# ")
    terminal.type("\x04")
    terminal.expect("crm(state.cib)# ")
    terminal.type("\x04")
    assert terminal.process.wait(WAIT_S_MAX) == 0
