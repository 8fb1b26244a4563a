"""`configure edit` with objects that are named: the text stands in their place, also where it lacks some."""

import io
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.cli.editing import edited_text
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


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def client() -> ClusterClient:
    cluster = formed()
    cluster.configure(CONFIGURATION)
    return ClusterClient(cluster)


@pytest.fixture
def edit(client: ClusterClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editing:
    """Return what edits by a command of the shell, of which `"$1"` is the file, and returns status and output."""

    def edited(line: str, command: str, typed: str | None = None, **environment: str) -> tuple[int, str]:
        editor = tmp_path / "editor"
        editor.write_text(f"#!/bin/sh\n{command}\n")
        editor.chmod(0o755)
        out = io.StringIO()
        messages = out if typed is None else Typed()
        world = World(
            streams=Streams(io.StringIO() if typed is None else Typed(typed), out, messages),
            environment={"HOME": str(tmp_path), **environment},
            connect=lambda _: client,
            open_file=lambda path: OfflineClient(path, "root@n1"),
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        monkeypatch.setenv("EDITOR", str(editor))
        status = run(shlex.split(line), world)
        return status, out.getvalue() + (messages.getvalue() if typed is not None else "")

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


def test_an_editor_that_removes_the_text_is_named(client: ClusterClient, edit: Editing) -> None:
    status, said = edit("configure edit a", 'rm "$1"')
    assert (status, "/editor removed the text that was to be edited (nothing was changed;" in said) == (74, True)
    assert names(client) == ["a", "b", "c", "on-n1"]


def test_what_a_person_typed_and_was_refused_is_kept(
    client: ClusterClient, edit: Editing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    status, said = edit("configure edit a", "sed -i 's/interval=10s/interval=soon/' \"$1\"", typed="n\n")
    assert status == 2, said
    kept = said.rpartition("when it is right: crm configure load update ")[2].strip()
    assert "interval=soon" in Path(kept).read_text()
    assert Path(kept).stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.glob("crm-*")] == [Path(kept).name]


def test_what_a_person_corrects_or_a_program_wrote_is_not_kept(
    client: ClusterClient, edit: Editing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    twice = "grep -q soon \"$1\" && sed -i 's/soon/12s/' \"$1\" || sed -i 's/interval=10s/interval=soon/' \"$1\""
    status, said = edit("configure edit a", twice, typed="y\n")
    assert (status, "kept" in said) == (0, False), said
    status, said = edit("configure edit b", "sed -i 's/interval=10s/interval=soon/' \"$1\"")
    assert (status, "kept" in said) == (2, False), said
    assert list(tmp_path.glob("crm-*")) == []


def test_a_text_for_which_there_is_no_room_is_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: None
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = edited_text("a text")
    assert isinstance(answer, Response)
    assert answer.errors[0].message == "there is no place for the text to be edited: File too large"
    assert list(tmp_path.iterdir()) == []


def test_an_editor_that_fails_or_is_not_there_is_named(
    client: ClusterClient, edit: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = edit("configure edit a", "exit 3")
    assert (status, "/editor ended with status 3 (nothing was changed; for another editor: " in said) == (74, True)
    status, said = edit("configure edit a", "kill -9 $$")
    assert (status, "/editor was ended by SIGKILL (nothing was changed; for another editor: " in said) == (74, True)
    monkeypatch.setenv("VISUAL", "no-such-editor -x")
    status, said = edit("configure edit a", "")
    assert (status, "the editor no-such-editor cannot be run: No such file or directory (" in said) == (74, True)
    assert names(client) == ["a", "b", "c", "on-n1"]
