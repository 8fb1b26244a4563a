"""`configure edit` with objects that are named: the text stands in their place, also where it lacks some."""

import io
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.administered_clusters import ClusterClient, formed

CONFIGURATION = """\
node n1
node n2
node n3
primitive a ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive b ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive c ocf:haclusterd:dummy op monitor interval=10s timeout=20s
location on-n1 b 5: n1
"""

Editing = Callable[..., tuple[int, str]]


@pytest.fixture
def client() -> ClusterClient:
    cluster = formed()
    cluster.configure(CONFIGURATION)
    return ClusterClient(cluster)


@pytest.fixture
def edit(client: ClusterClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editing:
    """Return what edits by a command of the shell, of which `"$1"` is the file, and returns status and output."""

    def edited(line: str, command: str, **environment: str) -> tuple[int, str]:
        editor = tmp_path / "editor"
        editor.write_text(f"#!/bin/sh\n{command}\n")
        editor.chmod(0o755)
        out = io.StringIO()
        world = World(
            streams=Streams(io.StringIO(), out, out),
            environment={"HOME": str(tmp_path), **environment},
            connect=lambda _: client,
            open_file=lambda path: OfflineClient(path, "root@n1"),
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        monkeypatch.setenv("EDITOR", str(editor))
        return run(shlex.split(line), world), out.getvalue()

    monkeypatch.delenv("VISUAL", raising=False)
    return edited


def names(client: ClusterClient) -> list[str]:
    configuration = client.cluster.cib.configuration
    return [*configuration.resources, *configuration.constraints]


def test_what_the_edited_text_lacks_is_deleted(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit a", ': > "$1"')
    assert (status, names(client)) == (0, ["b", "c", "on-n1"]), said
    assert "- primitive a" in said or "- resource a" in said


def test_what_has_another_name_afterwards_takes_the_place_of_the_old(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit b on-n1", "sed -i 's/ b / bb /' \"$1\"")
    assert (status, sorted(names(client))) == (0, ["a", "bb", "c", "on-n1"]), said


def test_what_others_use_is_not_deleted_and_they_are_named(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit a b", ': > "$1"')
    assert (status, names(client)) == (107, ["a", "b", "c", "on-n1"])
    assert "b is used by: on-n1 (edit them too: crm configure edit a b on-n1; for another name: crm configure rename)" \
        in said


def test_as_crmsh_what_names_it_goes_too(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit b", ': > "$1"', CRM_COMPAT="crmsh")
    assert (status, names(client)) == (0, ["a", "c"]), said


def test_what_runs_is_not_deleted_by_an_editor_either(client: ClusterClient, edit: Editing) -> None:
    client.cluster.run("a", "n1")
    status, said = edit("configure edit a", ': > "$1"')
    assert (status, names(client)) == (107, ["a", "b", "c", "on-n1"])
    assert "a is running on n1 (stop it first: crm resource stop a; or --force" in said


def test_a_change_removes_nothing(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit b c", "sed -i 's/interval=10s/interval=11s/' \"$1\"")
    assert (status, names(client)) == (0, ["a", "b", "c", "on-n1"]), said


@pytest.mark.parametrize("line", ["configure edit xml a", "configure edit xml"])
def test_xml_is_edited_as_xml(client: ClusterClient, edit: Editing, line: str) -> None:
    status, said = edit(line, "sed -i 's/id=\"a-monitor-10s\" name=\"monitor\" interval=\"10s\"/"
                              "id=\"a-m\" name=\"monitor\" interval=\"11s\"/' \"$1\"")  # fmt: skip
    assert (status, names(client)) == (0, ["a", "b", "c", "on-n1"]), said
    assert "~ primitive a" in said


def test_an_editor_that_fails_or_is_not_there_is_named(
    client: ClusterClient, edit: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = edit("configure edit a", "exit 3")
    assert (status, "/editor ended with status 3 (nothing was changed; for another editor: " in said) == (74, True)
    monkeypatch.setenv("VISUAL", "no-such-editor -x")
    status, said = edit("configure edit a", "")
    assert (status, "the editor no-such-editor cannot be run: No such file or directory (" in said) == (74, True)
    assert names(client) == ["a", "b", "c", "on-n1"]
