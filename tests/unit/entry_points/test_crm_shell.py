"""The interactive shell on a real terminal: prompt, completion, history, leaving."""

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from haclusterd.agents.process_table import read_stat
from haclusterd.cib.codec import decode_cib, encode_cib
from tests.administered_clusters import running

WAIT_S_MAX = 30.0


CRM = (sys.executable, "-m", "haclusterd.entry_points.crm")
WITHOUT_LIBRARY = (
    "import sys; sys.argv = ['crm']; sys.modules['prompt_toolkit'] = None\n"
    "from haclusterd.entry_points.crm import main\n"
    "sys.exit(main())"
)
PAINTED = re.compile(r"\x1b\[[0-9;]*?(?:3[0-7]|9[0-7])[0-9;]*m")
"""A colour is switched on."""


class Terminal:
    """A shell on a pseudo-terminal, and somebody who types."""

    def __init__(self, state: Path, command: Sequence[str] = CRM, **variables: str) -> None:
        controller, terminal = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "CIB_file": str(state), "HOME": str(state.parent)}
        # A pseudo-terminal that nobody emulates answers no question about the cursor.
        environment |= {"PROMPT_TOOLKIT_NO_CPR": "1", **variables}
        self.process = subprocess.Popen(
            command,
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
    terminal.expect("crm(state.cib*)configure# ")
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


def finished(terminal: Terminal) -> str:
    """Leave; return what was shown until then."""
    terminal.type("quit\r")
    shown = terminal.seen
    while True:
        try:
            more = os.read(terminal.controller, 65536)
        except OSError:
            # So Linux says that the other end is closed.
            break
        shown += more.decode()
    assert terminal.process.wait(WAIT_S_MAX) == 0
    terminal.close()
    return shown


def test_what_is_typed_is_kept_for_its_owner_alone(terminal: Terminal, state: Path) -> None:
    terminal.expect("crm(state.cib)# ")
    terminal.type("node\n")
    terminal.expect("crm(state.cib)node# ")
    history = state.parent / ".local/state/haclusterd/crm_history"
    assert (history.read_text(), history.stat().st_mode & 0o777) == ("node\n", 0o600)


def test_a_dumb_terminal_shows_why_there_are_no_menus(terminal: Terminal) -> None:
    assert "INFO: plain input, without menus: the terminal is dumb (TERM)" in terminal.expect("crm(state.cib)# ")


def test_without_the_library_lines_are_plain(state: Path) -> None:
    terminal = Terminal(state, (sys.executable, "-c", WITHOUT_LIBRARY), TERM="xterm")
    assert "plain input, without menus: prompt_toolkit is not installed" in terminal.expect("crm(state.cib)# ")
    assert "quit" in finished(terminal)


@pytest.mark.parametrize("locale", ["", "C", "POSIX", "tr_TR.ISO-8859-9"])
def test_no_locale_is_no_obstacle(state: Path, locale: str) -> None:
    terminal = Terminal(state, TERM="xterm", LC_ALL=locale)
    terminal.expect("crm(state.cib)")
    terminal.type("help \u00fcber\r")
    shown = finished(terminal)
    assert "there is no command" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("variables", "is_painted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours(state: Path, variables: dict[str, str], is_painted: bool) -> None:
    terminal = Terminal(state, **{"TERM": "xterm", **variables})
    before = terminal.expect("crm(state.cib)")
    terminal.type("configure property node-timeout=3s\rstatus\rconfigure discard\r")
    shown = before + terminal.expect("crm(state.cib*)") + finished(terminal)
    assert bool(PAINTED.search(shown)) is is_painted


def test_pasted_lines_are_statements(state: Path) -> None:
    terminal = Terminal(state, TERM="xterm")
    terminal.expect("crm(state.cib)")
    terminal.type("\x1b[200~configure\nproperty node-timeout=3s\nproperty brain-timeout=20s\ncommit\x1b[201~\r")
    terminal.expect("version 7 -> 8")
    finished(terminal)
    assert decode_cib(state.read_bytes()).version.epoch == 8


def test_an_answer_into_a_closed_pipe(state: Path) -> None:
    # Nobody holds the pipe's other end any more when "closed" is shown.
    command = f"{' '.join(CRM)} | {{ head -1; exec <&-; echo closed; }}; echo ${{PIPESTATUS[0]}}"
    terminal = Terminal(state, ("bash", "-c", command), TERM="xterm")
    terminal.type("status\n")
    terminal.expect("closed")
    terminal.type("status\n")
    terminal.expect("\r\n0\r\n")
    terminal.close()


def test_the_terminal_goes_away(state: Path) -> None:
    terminal = Terminal(state, ("sh", "-c", f"trap '' HUP; exec {' '.join(CRM)}"), TERM="xterm")
    terminal.expect("crm(state.cib)")
    terminal.type("configure property node-timeout=3s\r")
    terminal.expect("crm(state.cib*)")
    os.close(terminal.controller)
    terminal.process.wait(WAIT_S_MAX)
    assert decode_cib(state.read_bytes()).version.epoch == 7


def test_where_the_locale_lacks_a_letter_it_is_shown_by_its_number(tmp_path: Path) -> None:
    state = tmp_path / "state.cib"
    cluster = running()
    cluster.configure('primitive sizes ocf:haclusterd:dummy description="Größe" op monitor interval=10s')
    state.write_bytes(encode_cib(cluster.cib))
    environment = {"PATH": os.environ["PATH"], "CIB_file": str(state), "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(
        [*CRM, "configure", "show", "sizes"], env=environment, cwd=Path(__file__).parents[3], capture_output=True,
        text=True, check=False, timeout=WAIT_S_MAX,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert r'description="Gr\xf6\xdfe"' in shown.stdout
