"""Sessions with `crm` as text: what is typed, what comes back, with which exit status.

A file of tests/golden/crm begins with the name of a situation (tests/administered_clusters.py). REWRITE=1 writes what
is answered now into the files; read the difference before it is kept.
"""

import io
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.cib.codec import encode_cib
from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from haclusterd.ports.control import CommandClient
from tests.administered_clusters import NOW, SITUATIONS, ClusterClient, with_events, with_versions

FILES = sorted(Path(__file__).parent.joinpath("crm").glob("*.txt"))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def play(command: str, typed: str, client: CommandClient) -> str:
    """Run one command line; return what a person would see."""
    out, err = io.StringIO(), io.StringIO()
    world = World(
        streams=Streams(io.StringIO(typed), out, err),
        environment={},
        connect=lambda _socket: client,
        open_file=lambda _path: client,
        setup=lambda _arguments: Response("", 0),
        version=lambda: "0",
    )
    status = run(shlex.split(command)[1:], world)
    errors = "".join(f"! {line}\n" for line in err.getvalue().splitlines())
    return out.getvalue() + errors + (f"[exit {status}]\n" if status else "")


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a file with what is typed into it (lines that begin with `< `)."""
    command, typed = "", ""
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, typed
            command, typed = line[2:], ""
        elif line.startswith("< ") or line == "<":
            typed += line[2:] + "\n"
    yield command, typed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_session(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text()
    head = [line for line in text.splitlines() if line.startswith("#")]
    situation, where = head[0].removeprefix("# situation: ").partition(", ")[::2]
    cluster = with_events(SITUATIONS[situation]())
    client: CommandClient = ClusterClient(cluster, versions=with_versions(cluster))
    if where == "offline":
        state = tmp_path / "state.cib"
        state.write_bytes(encode_cib(cluster.cib))
        client = OfflineClient(str(state), "root@n1", lambda: NOW)
    monkeypatch.chdir(path.parent)
    played = "\n".join(head) + "\n"
    for command, typed in sessions(text):
        typed_lines = "".join(f"< {line}\n".replace("< \n", "<\n") for line in typed.splitlines())
        played += f"\n$ {command}\n{typed_lines}{play(command, typed, client)}"
    if os.environ.get("REWRITE"):
        path.write_text(played)
    assert played == text


def test_there_are_sessions_for_every_situation() -> None:
    heads = {path.read_text().splitlines()[0].removeprefix("# situation: ").partition(",")[0] for path in FILES}
    assert set(SITUATIONS) - heads == set()
