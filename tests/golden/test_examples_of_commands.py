"""Every example of the command line's help is carried out, in a directory of its own, on a cluster that has what the
example names. Statements of the configuration are tried in tests/unit/cli/test_commands_of_crm.py."""

import io
import random
import shlex
from pathlib import Path

import pytest

from haclusterd.cib.commands import AddApiToken, PublishDevices
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.commands.configure.declaration import CHANGED
from haclusterd.model.api_tokens import ApiToken, digest_of
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.requests import Request, Response
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from tests.administered_clusters import SITUATIONS, Cluster, ClusterClient, running, with_events, with_versions
from tests.interrupted_client import Interrupted
from tests.written_cibs import cib

EXAMPLES = [
    example
    for level in (ROOT, *LEVELS)
    for command in level.commands
    for example in command.examples
    if (command.verb or level.name in ("options", "cibstatus", "script", "template", "history"))
    and not command.is_statement
]
HERE = {"12": "5", "13": "7", "4.17": "4.3", "n5": "n3", "/var/lib/pacemaker/cib/cib.xml": "cib.xml",
        "web.crm": "web.yaml", "n1:0000:3b:00.0": "n2:0000:1c:00.0"}
"""What these clusters have in the place of a word of an example."""
OF_CLONES = {"db-clone", "paris"}
FIRST = "crm template new shop virtual-ip params ip=192.0.2.10"
"""What is typed before a configuration in preparation is named."""
SETTLED_BY_A_DAEMON = {
    "crm gpu reset n1:0000:3b:00.0 --reload": "GPU-n2-0 is used by",
    "crm cluster address n2 10.0.0.2:7400,10.1.0.2:7400": "members-not-now",
    "crm cluster vote n5 off": "members-not-now",
    "crm sbd device show": "none is of fence_sbd",
    "crm sbd device add /dev/disk/by-id/third": "none is of fence_sbd",
    "crm fencing confirm n3 --i-have-checked": "it is not down",
    "crm node clearstate n3 --i-have-checked": "it is not down",
    "crm cluster certificates revoke n3": "name its fingerprint",
}
"""What only a running daemon, or another cluster, can say yes to, and why it is refused here."""


def cluster_for(words: list[str]) -> Cluster:
    if OF_CLONES & set(words):
        return SITUATIONS["clones"]()
    if words[0] == "gpu":
        return with_events(with_devices(is_missing="forget" in words))
    cluster = running()
    if "alert" in words and "test" in words:
        cluster.configure("alert mail /usr/share/haclusterd/alert_agents/mail")
    if "confirm" in words or "clearstate" in words:
        cluster.state("n3", NodeState.LOST)
    if "revoke" in words and "token" in words:
        token = ApiToken(words[-1], digest_of("hacl_a"), "viewer")
        cluster.do(AddApiToken(token, "root@n1"))
    if "secret" in words:
        with_secret(cluster, words)
    return with_events(cluster)


def with_secret(cluster: Cluster, words: list[str]) -> None:
    """Set the secret that an example names, or the parameter that it makes one of, or that is one."""
    cluster.configure("primitive fence-pdu ocf:haclusterd:dummy params passwd=sword")
    ask = ClusterClient(cluster, secrets=SimulatedKeeper(NodeName("n1"), random.Random(2))).call
    if "set" not in words:
        ask(Request("1", "secret.set", {"name": "pdu", "value": "swordfish"}), print)
    if {"check", "show", "unstash", "delete"} & set(words) and "resource" in words:
        ask(Request("2", "resource.secret", {"resource": "fence-pdu", "action": "stash", "parameter": "passwd"}), print)


def with_devices(*, is_missing: bool) -> Cluster:
    """Return a cluster with GPUs; the one that examples name came later, and `is_missing`: it went away again."""
    cluster = SITUATIONS["devices"]()
    n2 = cluster.node("n2")
    assert n2.incarnation is not None
    if is_missing:
        left = [each for each in cluster.cib.status.devices[n2.name].devices.values() if each.id != "GPU-n2-2"]
        cluster.do(PublishDevices(n2.name, n2.incarnation, tuple(left)))
    return cluster


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_carried_out(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    Path("cib.xml").write_text(cib())
    Path("web.yaml").write_text("resources:\n  - primitive: blog\n    agent: ocf:haclusterd:dummy\n")
    words = [HERE.get(word, word) for word in shlex.split(example.partition(" <")[0])[1:]]
    cluster = cluster_for(words)
    client, out = Interrupted(ClusterClient(cluster, versions=with_versions(cluster))), io.StringIO()
    world = World(
        streams=Streams(io.StringIO("primitive blog ocf:haclusterd:dummy\n"), out, out),
        environment={"EDITOR": "true", "XDG_STATE_HOME": str(tmp_path / "st"), "XDG_CONFIG_HOME": str(tmp_path / "st")},
        connect=lambda _: client,
        open_file=lambda path: OfflineClient(path, "root@n1") if Path(path).is_file() else client,
        setup=lambda _: Response("", 0),
        version=lambda: "0",
    )
    if words[0] == "template" and "new" not in words:
        assert run(shlex.split(FIRST)[1:], world) == 0
    objection = SETTLED_BY_A_DAEMON.get(example, "")
    try:
        status, printed = run(["-F", *words], world), out.getvalue()
    except AssertionError as refused:  # The cluster of the test accepts every command, or raises.
        status, printed = 1, str(refused)
    assert (status == (CHANGED if words[:2] == ["configure", "apply"] else 0)) is not bool(objection), printed
    assert objection in printed
    written = {path.name for path in tmp_path.iterdir()} - {"cib.xml", "web.yaml", "st"}
    assert written <= set(words), "an example writes the file that it names"
