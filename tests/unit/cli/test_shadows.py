"""Shadow CIBs: what is tried on a copy touches no cluster, and is committed over the version it was made from alone."""

import io
import json
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.cli.shadow_files import Shadows
from haclusterd.model.ids import ResourceId
from haclusterd.model.requests import Response
from tests.administered_clusters import NOW, Cluster, ClusterClient, running
from tests.written_cibs import cib

EXTRA = "configure primitive extra ocf:haclusterd:dummy op monitor interval=10s"


class Machine:
    """A machine on which somebody types commands of crm, with a cluster that answers."""

    def __init__(self, directory: Path) -> None:
        self.cluster: Cluster = running()
        self.directory = directory
        self.printed = ""

    def type(self, line: str, shadow: str = "", typed: str = "", compat: str = "") -> int:
        out = io.StringIO()
        client = ClusterClient(self.cluster)
        world = World(
            streams=Streams(io.StringIO(typed), out, out),
            environment={"XDG_STATE_HOME": str(self.directory), "CIB_shadow": shadow, "CRM_COMPAT": compat},
            connect=lambda _: client,
            open_file=lambda path: OfflineClient(path, "root@n1", lambda: NOW),
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        status = run(line.split(), world)
        self.printed = out.getvalue()
        return status

    def has(self, resource: str) -> bool:
        return ResourceId(resource) in self.cluster.cib.configuration.resources


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_change_of_a_copy_reaches_the_cluster_when_it_is_committed(machine: Machine) -> None:
    assert machine.type("cib new trial") == 0
    assert machine.type(EXTRA, shadow="trial") == 0
    assert not machine.has("extra")
    assert machine.type("cib diff trial") == 0
    assert "+primitive extra ocf:haclusterd:dummy" in machine.printed
    assert machine.type("cib commit trial") == 0
    assert machine.has("extra")
    assert machine.type("cib diff trial") == 0
    assert machine.printed == "versions live and trial do not differ\n"
    assert machine.type("configure delete extra", shadow="trial") == 0
    assert machine.type("cib commit trial --force") == 0, "it is committed again over what the first commit made"
    assert not machine.has("extra")


def test_a_copy_is_not_committed_over_what_somebody_else_changed(machine: Machine) -> None:
    machine.type("cib new trial")
    machine.type(EXTRA, shadow="trial")
    machine.type("configure primitive other ocf:haclusterd:dummy op monitor interval=10s")
    assert machine.type("cib commit trial") == 103, machine.printed
    assert (machine.has("extra"), machine.has("other")) == (False, True)
    assert machine.type("cib reset trial") == 0
    assert machine.type("configure show other", shadow="trial") == 0
    assert machine.type("configure show extra", shadow="trial") == 105


def test_a_commit_that_removes_what_runs_must_be_meant(machine: Machine) -> None:
    assert machine.type("cib new nothing empty") == 0
    assert machine.type("cib commit nothing") == 107
    assert machine.has("web")
    assert machine.type("cib commit nothing --dry-run") == 0
    assert machine.has("web")


def test_a_session_works_on_the_copy_it_uses(machine: Machine) -> None:
    typed = f"cib new trial\n{EXTRA}\ncib use live\nconfigure show extra\n"
    assert machine.type("", typed=typed) == 105
    assert not machine.has("extra")
    assert machine.type("configure show extra", shadow="trial") == 0


def test_copies_are_listed_and_deleted_and_only_their_owner_reads_them(machine: Machine, tmp_path: Path) -> None:
    machine.type("cib new trial")
    assert machine.type("cib new trial") == 108
    assert machine.type("cib new trial force") == 0
    assert machine.type("-o json cib list") == 0
    assert json.loads(machine.printed)["shadows"] == [{"name": "trial", "version": 7, "is_used": False}]
    kept = tmp_path / "haclusterd" / "shadow"
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in [kept, *kept.iterdir()]} == {
        "shadow": "0o700", "trial.cib": "0o600", "trial.base": "0o600",
    }  # fmt: skip
    assert machine.type("cib delete trial", shadow="trial") == 1
    assert machine.type("cib delete trial") == 0
    assert list(kept.iterdir()) == []
    assert machine.type("cib use trial") == 105
    assert machine.type("cib commit") == 64


@pytest.mark.parametrize("name", ["../trial", "live", "-x", "a b", "", "x" * 200, "a/b"])
def test_a_name_that_is_no_file_of_its_own_is_refused(name: str, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "cib.xml").write_text(cib())
    assert machine.type(f"cib import {tmp_path / 'cib.xml'} -- {name or '-'}") != 0
    assert not (tmp_path / "haclusterd").exists()


def test_a_cib_of_pacemaker_becomes_a_copy(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "theirs.xml").write_text(cib(resources='<primitive id="p1" class="ocf" provider="x" type="y"/>'))
    assert machine.type(f"cib import {tmp_path / 'theirs.xml'}") == 0, machine.printed
    assert machine.type("configure show p1", shadow="theirs") == 0
    assert machine.type("simulate", shadow="theirs") == 0


@pytest.mark.parametrize("name", ["state.cib", "cib.xml"])
def test_an_empty_file_is_begun_with_a_word_and_no_file_is_lost(machine: Machine, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert machine.type(f"cib empty {file}") == 0
    assert machine.type(f"--cib-file {file} {EXTRA}") == 0, machine.printed
    assert machine.type(f"--cib-file {file} configure show --format yaml") == 0
    assert "extra" in machine.printed
    before = file.read_bytes()
    assert machine.type(f"cib empty {file}") == 108
    assert file.read_bytes() == before
    assert machine.type(f"cib empty {tmp_path}/nowhere/x") == 74


def test_an_option_names_the_copy_that_answers(machine: Machine) -> None:
    machine.type("cib new trial")
    assert machine.type(f"-c trial {EXTRA}") == 0, machine.printed
    assert not machine.has("extra")
    assert machine.type("-c trial configure show extra") == 0
    assert machine.type("configure show extra") == 105


def test_objects_and_xml_are_saved_into_the_file_named_last(machine: Machine, tmp_path: Path) -> None:
    one, two = tmp_path / "web.crm", tmp_path / "all.xml"
    assert machine.type(f"configure save web {one}") == 0, machine.printed
    assert one.read_text().startswith("primitive web ")
    assert "primitive" not in one.read_text()[1:]
    assert machine.type(f"configure save xml {two}") == 0, machine.printed
    assert two.read_text().startswith("<cib ")
    assert machine.type("configure save - --format yaml") == 0, machine.printed
    assert "\nresources:" in machine.printed
    assert machine.type("configure save -") == 0
    assert "primitive web " in machine.printed
    assert machine.type("configure save xml") == 64, "no file of that name is written"


def test_what_is_saved_and_loaded_again_is_what_was_there(machine: Machine, tmp_path: Path) -> None:
    """Plans depend on the order of resources; crmsh saves them sorted."""
    saved, sorted_ = tmp_path / "all.crm", tmp_path / "sorted.crm"
    for line in ("configure primitive zeta Dummy", "configure primitive alpha Dummy"):
        assert machine.type(line) == 0, machine.printed
    before = machine.cluster.cib.configuration
    assert machine.type(f"configure save {saved}") == 0
    assert machine.type(f"configure save {sorted_}", compat="crmsh") == 0
    assert machine.type(f"configure load replace {saved}") == 0
    assert machine.cluster.cib.configuration == before
    lines = [path.read_text() for path in (saved, sorted_)]
    assert [text.index("zeta") < text.index("alpha") for text in lines] == [True, False]


def test_a_file_is_replaced_when_that_is_wanted_and_keeps_no_part_of_the_old_one(
    machine: Machine, tmp_path: Path
) -> None:
    file, link = tmp_path / "all.crm", tmp_path / "link.crm"
    file.write_text("older\n" * 1000)
    file.chmod(0o644)
    link.symlink_to(file)
    assert machine.type(f"configure save {file}") == 74
    assert "File exists (take another name, or replace it: --force)" in machine.printed
    assert file.read_text().startswith("older")
    assert machine.type("configure show --show-secrets") == 0
    shown = machine.printed
    for words, compat in ((f"--force configure save {link}", ""), (f"configure save {file}", "crmsh")):
        file.write_text("older\n" * 1000)
        assert machine.type(words, compat=compat) == 0, machine.printed
        assert sorted(file.read_text()) == sorted(shown)
        assert file.stat().st_mode & 0o777 == 0o600, "it holds secrets"
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["all.crm", "link.crm"]
    assert machine.type("--force configure save /dev/null") == 0, machine.printed


@pytest.mark.parametrize("line", ["node fence n2", "fencing test n2", "ticket grant gold", "site ticket grant gold"])
def test_what_is_unsafe_is_shown_by_a_dry_run_and_not_done(machine: Machine, line: str) -> None:
    assert machine.type(line) == 107, machine.printed
    assert machine.type(f"{line} --dry-run") == 0, machine.printed
    assert "WARNING: " in machine.printed
    assert "INFO: nothing was changed (--dry-run)" in machine.printed


def test_the_shell_names_the_copy_as_it_was_named(machine: Machine) -> None:
    machine.type("cib new trial")
    shadows = Shadows(str(machine.directory), lambda path: OfflineClient(path, "root@n1", lambda: NOW),
                      ClusterClient(machine.cluster))  # fmt: skip
    session = Session(shadows.live, Streams(io.StringIO(), io.StringIO(), io.StringIO()), Screen(), Screen(),
                      shadows=shadows)  # fmt: skip
    assert session.place() == "live"
    shadows.used = "trial"
    assert session.place() == "trial"
