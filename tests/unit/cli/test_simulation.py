"""`crm simulate` as people and programs see it."""

import io
import json
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.unit.commands.written_operations import ABSENT, CLONED, LOST, STARTED, WEB, on
from tests.written_cibs import FENCING, NO_FENCING, cib

LOSS = cib(
    properties=FENCING,
    resources=WEB + '<primitive id="power" class="stonith" type="fence_x"/>',
    status=on(1, ABSENT) + on(2, STARTED, state=LOST),
)
DATE = ("--date", "2026-06-01T00:00:00Z")


def crm(*words: str, stdin: str = "") -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    world = World(
        streams=Streams(io.StringIO(stdin), out, errors),
        environment={},
        connect=lambda path: OfflineClient(path, "tests"),
        open_file=lambda path: OfflineClient(path, "tests"),
        setup=lambda _: Response("", 0),
        version=lambda: "0",
    )
    status = run(["simulate", *words], world)
    return status, out.getvalue(), errors.getvalue()


@pytest.fixture
def loss(tmp_path: Path) -> str:
    file = tmp_path / "loss.xml"
    file.write_text(LOSS)
    return str(file)


def test_text(loss: str) -> None:
    status, out, errors = crm("--cib", loss, *DATE)
    assert (status, errors) == (0, "")
    assert (
        out
        == """\
Cluster at 2026-06-01T00:00:00Z
  * Node n2: unclean
  * Online: [ n1 ]
    web    Started  n2
    power  Stopped

Transition Summary:
  * Fence  n2     ( reboot )    due to: peer process is no longer available
  * Move   web    ( n2 -> n1 )  due to: n2 is fenced
  * Start  power  ( n1 )        due to: it should run and does not

In this order:
  * Resource action: power probe on n1
  * Fencing:         reboot on n2
  * Resource action: power start on n1
  * Resource action: web start on n1
  * Resource action: web monitor every 10s on n1

Afterwards:
  * Online: [ n1 ]
  * OFFLINE: [ n2 ]
    web    Started  n1
    power  Started  n1
"""
    )


def test_json_is_the_document_alone(loss: str) -> None:
    for options in (("--format", "json"), ("-o", "json")):
        status, out, _ = crm("--cib", loss, *DATE, *options)
        document = json.loads(out)
        assert (status, document["format"], document["source"]) == (0, "simulate/1", loss)


def test_several_files_are_answered_at_once(loss: str, tmp_path: Path) -> None:
    (tmp_path / "cloned.xml").write_text(CLONED)
    cloned = str(tmp_path / "cloned.xml")
    status, out, errors = crm("--cib", loss, "--cib", cloned, "--cib", loss, "--format", "json")
    assert status == 2
    assert [each["source"] for each in json.loads(out)["simulations"]] == [loss, loss]
    assert json.loads(errors)["error"]["code"] == "BAD_VALUE"
    status, out, errors = crm("--cib", loss, "--cib", cloned, "--force")
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("==")] == [f"== {loss}", f"== {cloned}"]
    assert errors.startswith("WARNING: ")


def test_dot(loss: str) -> None:
    status, out, _ = crm("--cib", loss, "--format", "dot")
    lines = out.splitlines()
    assert status == 0
    assert (lines[0], lines[-1]) == ("digraph plan {", "}")
    assert any('"reboot on n2 #' in line and '-> "web stop' in line for line in lines)


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("<cib>", "ERROR: standard input:1:6: this is no well-formed XML: no element found (correct the text there)"),
        ("", "ERROR: standard input:1:2: this is no well-formed XML: no element found (correct the text there)"),
    ],
)
def test_what_is_no_cib(stdin: str, message: str) -> None:
    status, out, errors = crm("--cib", "-", stdin=stdin)
    assert (status, out, errors.splitlines()) == (65, "", [message])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    status, _, errors = crm("--cib", str(tmp_path / "none.xml"))
    assert status == 66
    assert errors.startswith("ERROR: cannot read ")


def test_what_was_removed_is_listed_only_where_it_runs(tmp_path: Path) -> None:
    for found, before, after in ((STARTED, ["    web  Started  n1"], []), (ABSENT, [], [])):
        file = tmp_path / "removed.xml"
        file.write_text(cib(properties=NO_FENCING, resources="", status=on(1, found) + on(2)))
        status, out, _ = crm("--cib", str(file), *DATE)
        assert status == 0
        listed = [[line for line in part.splitlines() if line.startswith("    ")] for part in out.split("Afterwards:")]
        assert listed == [before, after]
