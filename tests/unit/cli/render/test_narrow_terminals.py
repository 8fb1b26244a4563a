"""`crm status` and `crm_mon` on terminals of less than 80 columns: broken at spaces, and nothing is left out."""

import fcntl
import io
import os
import struct
import subprocess
import sys
import termios

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.administered_clusters import SITUATIONS, ClusterClient

WIDTHS = (20, 33, 60, 79)
INDENT_MAX = 8


class Screenful(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(words: str, situation: str, out: io.StringIO) -> str:
    client = ClusterClient(SITUATIONS[situation]())
    world = World(
        streams=Streams(io.StringIO(), out, io.StringIO()), environment={"NO_COLOR": "1"},
        connect=lambda _: client, open_file=lambda _: client, setup=lambda _: Response("", 0), version=lambda: "0",
    )  # fmt: skip
    run(words.split(), world)
    return out.getvalue()


def check(narrow: str, wide: str, width: int) -> None:
    assert max(map(len, narrow.splitlines())) <= width
    assert "".join(narrow.split()) == "".join(wide.split())
    whole = {word for word in wide.split() if len(word) <= width - INDENT_MAX}
    assert whole - set(narrow.split()) == set()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", ["status", "status bynode inactive"])
@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_what_does_not_fit_is_broken_at_spaces(
    monkeypatch: pytest.MonkeyPatch, situation: str, words: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "10000")
    check(shown(words, situation, Screenful()), shown(words, situation, io.StringIO()), width)


PRINTED = """
import sys
from haclusterd.agents.cluster_tool import print_answer
sys.exit(print_answer("crm_mon", [], {"out": sys.stdin.read(), "err": ""}, [], 0))
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tool_itself_does_so_on_a_terminal(width: int) -> None:
    wide = shown("status bynode inactive", "stop-failed", io.StringIO())
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    tool = subprocess.Popen([sys.executable, "-c", PRINTED], stdin=subprocess.PIPE, stdout=slave)
    os.close(slave)
    assert tool.stdin is not None
    tool.stdin.write(wide.encode())
    tool.stdin.close()
    narrow = b""
    try:
        while piece := os.read(master, 65_536):
            narrow += piece
    except OSError:
        pass  # The other end is closed.
    os.close(master)
    assert tool.wait(10) == 0
    check(narrow.decode().replace("\r\n", "\n"), wide, width)
