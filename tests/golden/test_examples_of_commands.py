"""Every example of the command line's help is carried out, in a directory of its own, on a cluster that has what the
example names. Statements of the configuration are tried in tests/unit/cli/test_commands_of_crm.py."""

import io
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from haclusterd.cib.commands import AddApiToken, PublishDevices
from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.main import World, run
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.session import Streams
from haclusterd.commands.configure.declaration import CHANGED
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.model.api_tokens import ApiToken, digest_of
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, fields
from haclusterd.model.requests import Request, Response
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.verbs.answers.configuration import Preview
from haclusterd.verbs.table import VERBS
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


@dataclass(slots=True)
class Done:
    """What came of an example."""

    status: int
    printed: str
    cluster: Cluster
    before: Cib
    outcomes: list[tuple[str, AnyOutcome]]


@pytest.fixture(name="carry_out")
def _carry_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    def carry_out(example: str, *options: str) -> Done:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("EDITOR", "true")
        Path("cib.xml").write_text(cib())
        Path("web.yaml").write_text("resources:\n  - primitive: blog\n    agent: ocf:haclusterd:dummy\n")
        words = words_of(example)
        cluster = cluster_for(words)
        inner, out = ClusterClient(cluster, versions=with_versions(cluster)), io.StringIO()
        client, before, own = Interrupted(inner), cluster.cib, str(folder / "st")
        world = World(
            streams=Streams(io.StringIO("primitive blog ocf:haclusterd:dummy\n"), out, out),
            environment={"EDITOR": "true", "XDG_STATE_HOME": own, "XDG_CONFIG_HOME": own},
            connect=lambda _: client,
            open_file=lambda path: OfflineClient(path, "root@n1") if Path(path).is_file() else client,
            setup=lambda _: Response("", 0),
            version=lambda: "0",
        )
        if words[0] == "template" and "new" not in words:
            assert run(shlex.split(FIRST)[1:], world) == 0
        try:
            status = run(["-F", *options, *words], world)
        except AssertionError as refused:  # The cluster of the test accepts every command, or raises.
            return Done(1, str(refused), cluster, before, inner.outcomes)
        return Done(status, out.getvalue(), cluster, before, inner.outcomes)

    return carry_out


def words_of(example: str) -> list[str]:
    return [HERE.get(word, word) for word in shlex.split(example.partition(" <")[0])[1:]]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_carried_out(example: str, carry_out: Callable[..., Done]) -> None:
    done, words = carry_out(example), words_of(example)
    objection = SETTLED_BY_A_DAEMON.get(example, "")
    accepted = CHANGED if words[:2] == ["configure", "apply"] else 0
    assert (done.status == accepted) is not bool(objection), done.printed
    assert objection in done.printed
    written = {path.name for path in Path.cwd().iterdir()} - {"cib.xml", "web.yaml", "st"}
    assert written <= set(words), "an example writes the file that it names"


REASON = "as agreed on Monday"
DONE_AT_ONCE = {
    "api.token_add": "it is committed when it is answered", "api.token_revoke": "it is committed when it is answered",
    "fencing.cleanup": "it is committed when it is answered", "gpu.accept": "it is committed when it is answered",
    "gpu.forget": "it is committed when it is answered", "node.attribute": "it may be dampened by the agents' side",
    "cluster.invite": "the answer is what was asked for", "secret.delete": "nothing refers to it",
    "secret.set": "nothing refers to it yet", "secret.rotate": "it is committed when it is answered",
    "secret.show": "it notes who was shown it", "resource.secret": "to show a value notes who was shown it",
}  # fmt: skip
"""Verbs with changes for which there is nothing to wait, and why. An answer comes after the commit."""
REASON_LATER = {"cluster.remove": "it is asked to leave; the reason is kept with its retirement, which follows"}
"""Verbs whose first command carries no reason, and why."""
NOT_TRIED = {"cluster.invite": "an invitation changes neither configuration nor plan"}
"""Verbs that show no plan, and why."""


def has_reason(outcome: AnyOutcome, reason: str) -> bool:
    """Tell whether every command carries a reason."""
    return all(any(reason in str(getattr(each, at.name)) for at in fields(each)) for each in outcome.commands)


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each not in SETTLED_BY_A_DAEMON])
def test_what_changes_something_is_tried_waited_for_and_has_a_reason(
    example: str, carry_out: Callable[..., Done]
) -> None:
    reason = "" if "--reason" in example else REASON
    done = carry_out(example, "--wait", *(("--reason", reason) if reason else ()))
    changes = [(verb, each) for verb, each in done.outcomes if each.commands or each.invite]
    for verb, outcome in changes:
        assert outcome.until is not None or verb in DONE_AT_ONCE
        assert has_reason(outcome, reason) or verb in REASON_LATER
    if not changes:
        return
    tried = carry_out(example, "--dry-run")
    assert tried.cluster.cib == tried.before
    assert tried.status == done.status
    shown = [verb for verb, each in tried.outcomes if isinstance(each.answer, Preview)]
    assert shown or changes[-1][0] in NOT_TRIED
    if shown:
        assert "nothing was changed (--dry-run)" in tried.printed or "--dry-run" in example or "-o" in example


def test_every_verb_that_changes_something_is_tried_by_an_example() -> None:
    """Pacemaker's tools have options of their own; a script is statements; `crm api token` asks for both its verbs."""
    tried = {
        command.verb for level in (ROOT, *LEVELS) for command in level.commands
        for example in command.examples if example in EXAMPLES or command.is_statement
    }  # fmt: skip
    changing = {name for name, verb in VERBS.items() if verb.may_change}
    assert changing - tried == {"tool.run", "configure.script", "api.token_revoke"}
