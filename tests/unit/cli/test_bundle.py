"""`crm report`: one file with what is known, and no secret in it."""

import io
import tarfile
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.administered_clusters import ClusterClient, running, with_events

SECRET = "s3cret/of:the device"


@pytest.fixture(autouse=True)
def _journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine's journal have a line in which a secret stands."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "journalctl"
    program.write_text(f'#!/bin/sh\necho "$*"\necho "agent was run with passwd={SECRET} and failed"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


def reported(*words: str) -> tuple[int, str]:
    cluster = with_events(running())
    cluster.configure(f'primitive ipmi stonith:fence_local params nodes_dir=/x passwd="{SECRET}"\n')
    out, client = io.StringIO(), ClusterClient(cluster)
    world = World(
        streams=Streams(io.StringIO(), out, out), environment={}, connect=lambda _: client, open_file=lambda _: client,
        setup=lambda _: Response("", 0), version=lambda: "0",
    )  # fmt: skip
    return run(["report", *words], world), out.getvalue()


def contents(path: str) -> dict[str, str]:
    found = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            found[member.name.removeprefix("crm-report/")] = file.read().decode()
    return found


def test_it_holds_what_is_known_and_no_secret() -> None:
    assert reported("web.tar.gz", "--since", "2026-01-01T00:00:00Z", "--until", "10min") == (
        0, "INFO: wrote web.tar.gz\n",
    )  # fmt: skip
    found = contents("web.tar.gz")
    assert {"status.txt", "status.json", "configuration.txt", "events.json", "verify.txt", "journal.txt"} <= set(found)
    assert "primitive ipmi stonith:fence_local" in found["configuration.txt"]
    assert [name for name, text in found.items() if SECRET in text] == []
    lines = found["journal.txt"].splitlines()
    assert lines[0].endswith("--since=@1767225600 --until=-10min")
    assert lines[1] == "agent was run with passwd=****** and failed"
    assert oct(Path("web.tar.gz").stat().st_mode & 0o777) == "0o600"


def test_the_name_may_be_without_its_ending_and_the_period_as_crmsh_has_it() -> None:
    assert reported("web", "-f", "2026-01-01T00:00:00Z", "-t", "10min") == (0, "INFO: wrote web.tar.gz\n")
    assert contents("web.tar.gz")["journal.txt"].splitlines()[0].endswith("--since=@1767225600 --until=-10min")
    assert reported("old", "-f", "2026/1/1 00:00") == (0, "INFO: wrote old.tar.gz\n")
    assert contents("old.tar.gz")["journal.txt"].splitlines()[0].endswith("--since=@1767225600")
    assert reported("new", "-f", "yesterday-ish")[0] == 2


def test_a_file_that_is_there_is_not_replaced() -> None:
    Path("web.tar.gz").write_text("kept")
    status, printed = reported("web.tar.gz")
    assert (status, Path("web.tar.gz").read_text()) == (74, "kept"), printed


def test_without_a_journal_the_rest_is_written(tmp_path: Path) -> None:
    (tmp_path / "bin" / "journalctl").unlink()
    status, printed = reported("web.tar.gz")
    assert (status, "journal is left out" in printed) == (0, True), printed
    assert "journal.txt" not in contents("web.tar.gz")
