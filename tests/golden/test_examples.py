"""The questions of docs/examples have the answers that stand there. REWRITE=1 writes what is answered now."""

import io
import os
import re
import shlex
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PAGES = sorted(EXAMPLES.glob("*/README.md"))
_SESSION = re.compile(r"```console\n\$ (?P<command>[^\n]*)\n(?P<answer>.*?)```", re.DOTALL)


def answer(command: str) -> str:
    out = io.StringIO()
    world = World(
        streams=Streams(io.StringIO(), out, out),
        environment={},
        connect=lambda path: OfflineClient(path, "tests"),
        open_file=lambda path: OfflineClient(path, "tests"),
        setup=lambda _: Response("", 0),
        version=lambda: "0",
    )
    assert run(shlex.split(command)[1:], world) == 0, out.getvalue()
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_answers_are_those_of_today(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)
    written = page.read_text()
    asked = [match["command"] for match in _SESSION.finditer(written)]
    assert asked, "a page without a question"
    now = _SESSION.sub(lambda match: f"```console\n$ {match['command']}\n{answer(match['command'])}```", written)
    if os.environ.get("REWRITE"):
        page.write_text(now)
    assert now == written or os.environ.get("REWRITE")


def test_every_example_is_named_on_the_first_page() -> None:
    first = (EXAMPLES / "README.md").read_text()
    assert [page for page in PAGES if f"({page.parent.name}/README.md)" not in first] == []
