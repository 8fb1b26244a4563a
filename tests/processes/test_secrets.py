"""Secrets in a real cluster: agents get them, they outlive restarts, and their values are on no disk and in no output.

The agent says its password on every stream, as some agents do; the fence device gets its secret, by which it finds
its machines, on standard input.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.documents import CHECKOUT
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

FIRST, SECOND, THIRD = VALUES = "Tr0ub4dor-first", "Tr0ub4dor-second", "Tr0ub4dor-third"
AGENT = """#!/bin/sh
case "$1" in
meta-data)
    cat <<'END'
<?xml version="1.0"?>
<resource-agent name="speaker" version="1.0"><version>1.1</version><longdesc lang="en">t</longdesc>
<shortdesc lang="en">t</shortdesc><parameters>
<parameter name="password" required="1" private="1"><longdesc lang="en">p</longdesc><shortdesc lang="en">p</shortdesc>
<content type="string"/></parameter>
<parameter name="record"><longdesc lang="en">r</longdesc><shortdesc lang="en">r</shortdesc><content type="string"/>
</parameter></parameters><actions><action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="20s" interval="10s"/><action name="meta-data" timeout="5s"/></actions></resource-agent>
END
    exit 0 ;;
esac
echo "out: password is $OCF_RESKEY_password"
echo "err: password is $OCF_RESKEY_password" >&2
digest=$(printf %s "$OCF_RESKEY_password" | sha256sum | cut -c1-64)
case "$1" in
start) printf '%s\\n' "$digest" > "$OCF_RESKEY_record"
       echo "ocf-exit-reason:started with $OCF_RESKEY_password" >&2 ;;
stop) if test -e "$OCF_RESKEY_record"; then echo "$digest" >> "$OCF_RESKEY_record.stops"; fi
      rm -f "$OCF_RESKEY_record" ;;
monitor) test -e "$OCF_RESKEY_record" || exit 7
         test "$(cat "$OCF_RESKEY_record")" = "$digest" || exit 1 ;;
esac
exit 0
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Scenario]:
    made = Scenario(tmp_path / "cluster")
    agent = made.agents / "test" / "speaker"
    agent.parent.mkdir(parents=True)
    agent.write_text(AGENT)
    agent.chmod(0o755)
    try:
        yield made.form()
    finally:
        made.close()


def crm(cluster: Scenario, node: str, *words: str, typed: str = "") -> str:
    """Run `crm`; return all that it writes. It must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "haclusterd.entry_points.crm", *words], input=typed, capture_output=True, text=True,
        timeout=100, check=False, cwd=CHECKOUT,
        env={**os.environ, "HACLUSTERD_SOCKET": str(cluster.cluster.nodes[node].socket)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def command_lines() -> Iterator[str]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue


def written(directory: Path) -> Iterator[tuple[Path, bytes]]:
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # The daemons remove files while they are listed.
            yield path, content


def digest_in(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def digest(value: str) -> str:
    return sha256(value.encode()).hexdigest()


def test_values_reach_agents_and_nothing_else(cluster: Scenario, tmp_path: Path) -> None:
    record, nodes = tmp_path / "record", cluster.cluster.nodes_directory
    said = [crm(cluster, "n1", "secret", "set", "db", typed=FIRST + "\n")]
    said.append(crm(cluster, "n2", "secret", "set", "switch", typed=str(nodes)))
    cluster.configure(
        cluster.power().replace(f"nodes_dir={nodes}", "nodes_dir=secret:switch"),
        f"primitive speaker ocf:test:speaker params password=secret:db record={record} "
        "op monitor interval=1s timeout=20s",
    )
    cluster.until("the agent to start with the value", lambda: digest_in(record) == digest(FIRST))
    cluster.settle()

    cluster.until("the fence device to answer", lambda: "power" in crm(cluster, "n1", "resource", "status", "power"))
    assert not [each for each in cluster.events("operation-failed") if "power" in each["text"]]

    # Another value is a changed parameter: stopped by the value that it was started with, started by the new one.
    said.append(crm(cluster, "n3", "secret", "set", "db", "--wait", typed=SECOND))
    cluster.until("a restart with the new value", lambda: digest_in(record) == digest(SECOND))
    assert digest_in(Path(f"{record}.stops")) == digest(FIRST)
    cluster.settle()

    # Another key changes no value: nothing is restarted. A daemon that comes back can open what is there.
    stops = Path(f"{record}.stops").read_text()
    said.append(crm(cluster, "n1", "secret", "rotate"))
    cluster.settle()
    assert (Path(f"{record}.stops").read_text(), digest_in(record)) == (stops, digest(SECOND))
    said.append(crm(cluster, "n1", "resource", "secret", "speaker", "set", "password", "--wait", typed=THIRD))
    cluster.until("a restart with the third value", lambda: digest_in(record) == digest(THIRD))
    cluster.settle()
    said.append(crm(cluster, "n2", "resource", "secret", "speaker", "check", "password"))
    table = json.loads(crm(cluster, "n2", "-o", "json", "secret", "list").partition("\nINFO")[0])
    assert [(row["name"], row["used_by"]) for row in table["secrets"]] == [
        ("db", ["speaker password"]), ("switch", ["power nodes_dir"]),
    ]  # fmt: skip
    assert table["cannot_open"] == []

    # Everything that tells of it.
    bundle = tmp_path / "report.tar.gz"
    said += [
        crm(cluster, "n1", "history", "events", "--limit", "200"), crm(cluster, "n1", "configure", "show"),
        crm(cluster, "n1", "configure", "show", "--show-secrets"), crm(cluster, "n1", "status"),
        crm(cluster, "n2", "why", "speaker"), crm(cluster, "n2", "resource", "operations", "speaker"),
        crm(cluster, "n1", "cluster", "backup", str(tmp_path / "whole.backup"), "--show-secrets"),
        crm(cluster, "n1", "cluster", "export", str(tmp_path / "state.cib")),
        crm(cluster, "n1", "report", str(bundle)),
    ]  # fmt: skip
    assert "password=secret:db" in "".join(said), "what is configured is the reference"
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path / "report", filter="data")
    assert [text for text in said if any(value in text for value in VALUES)] == []
    assert [line for line in command_lines() if any(value in line for value in VALUES)] == []
    found = [path for path, data in written(tmp_path) if any(value.encode() in data for value in VALUES)]
    assert found == []

    # Who asks for it on a node is shown it, and noted first.
    assert crm(cluster, "n3", "secret", "show", "db", "--reason", "audit").splitlines()[0] == THIRD
    assert [event["text"].partition(" by ")[0] for event in cluster.events("secret-shown")] == ["secret db shown"]
