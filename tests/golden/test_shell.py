"""Screens of the interactive shell: what is typed, and what the terminal shows then.

A file of tests/golden/shell begins with `# COLUMNS x LINES`. `< text` types a line, `<- text` types without Enter, `!`
presses keys by their names in tmux; lines behind `|` are the screen that must appear. REWRITE=1 writes what is shown
now into the files; read the difference before it is kept.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.cib.codec import encode_cib
from tests.administered_clusters import running
from tests.tmux_screens import Screen

FILES = sorted(Path(__file__).parent.joinpath("shell").glob("*.txt"))


def blocks(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield what is done, and the screen that must appear then."""
    done: list[str] = []
    screen = ""
    for line in text.splitlines():
        if line.startswith("|"):
            screen += line[2:] + "\n"
            continue
        if screen:
            yield done, screen
            done, screen = [], ""
        if line.startswith(("<", "!")):
            done.append(line)
    yield done, screen


def act(screen: Screen, line: str) -> None:
    if line.startswith("!"):
        screen.press(*line[1:].split())
    else:
        screen.type(line[line.index(" ") + 1 :])
        if not line.startswith("<-"):
            screen.press("Enter")


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_screens(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    size = re.match(r"# (\d+) x (\d+)\n", text)
    assert size is not None
    state = tmp_path / "state.cib"
    state.write_bytes(encode_cib(running().cib))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CIB_file": str(state), "SHELL": "/bin/sh"}
    command = [sys.executable, "-m", "haclusterd.entry_points.crm"]
    screen = Screen(tmp_path, command, environment, int(size[1]), int(size[2]))
    shown: list[str] = []
    try:
        for done, wanted in blocks(text):
            for line in done:
                act(screen, line)
            if os.environ.get("REWRITE"):
                shown.append(screen.settled())
            else:
                assert screen.until(lambda now, wanted=wanted: now == wanted) == wanted
    finally:
        screen.close()
    if os.environ.get("REWRITE"):
        path.write_text(rewritten(text, shown))


def rewritten(text: str, shown: list[str]) -> str:
    """Return a file with other screens."""
    left = iter(shown)
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            lines.append(line)
        elif not is_inside:
            lines += [f"| {each}".rstrip() for each in next(left).splitlines()]
        is_inside = line.startswith("|")
    return "\n".join(lines) + "\n"
