"""Several nodes in one command: one entry for all of them, what is waited for, and what status advises afterwards."""

import pytest

from haclusterd.cib.commands import ChangeConfiguration, SetTransientAttribute
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.status.headlines import headlines
from haclusterd.commands.status.overview import Overview
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, Cluster, running


def ask(cluster: Cluster, verb: str, **arguments: Json) -> AnyOutcome:
    return registry.run(verb, arguments, Context(cluster.cib, NOW, "root@n1", "new kernel", live=cluster.live))


@pytest.mark.parametrize(
    ("verb", "more", "kind"),
    [
        ("node.standby", {}, ChangeConfiguration),
        ("node.standby", {"lifetime": "reboot"}, SetTransientAttribute),
        ("node.maintenance", {}, ChangeConfiguration),
    ],
)
def test_all_nodes_are_in_one_entry_with_the_reason(verb: str, more: dict[str, Json], kind: type) -> None:
    (command,) = ask(running(), verb, node="n1", others=["n2", "n1"], **more).commands
    assert type(command) is kind
    assert command.reason == "new kernel"
    unknown = ask(running(), verb, node="n1", others=["n9"], **more)
    assert (unknown.is_refused, unknown.commands) == (True, ())


def test_a_wait_ends_when_all_nodes_are_empty() -> None:
    cluster = running()
    outcome = ask(cluster, "node.standby", node="n1", others=["n2"])
    assert outcome.waiting_for == "n1, n2 to be empty"
    assert outcome.until is not None
    emptied = {name: replace(cluster.node(name), histories={}) for name in ("n1", "n2")}
    cluster.put(emptied["n1"])
    assert not outcome.until(cluster.cib, cluster.live), "db still runs on n2"


def test_a_witness_is_not_among_all_nodes() -> None:
    cluster = running()
    members = cluster.cib.members
    witness = replace(members[cluster.node("n3").name], is_witness=True)
    cluster.cib = replace(cluster.cib, members={**members, witness.name: witness})
    (command,) = ask(cluster, "node.maintenance", all=True).commands
    assert isinstance(command, ChangeConfiguration)
    cluster.do(command)
    assert sorted(cluster.cib.configuration.nodes) == ["n1", "n2"]


def test_status_advises_to_end_the_maintenance_of_all_that_are_in_it() -> None:
    cluster = running()
    cluster.do(ask(cluster, "node.maintenance", node="n1", others=["n2"]).commands[0])
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    (found,) = [each for each in headlines(context, Overview(cluster.cib)) if each.verdict == "MAINTENANCE"]
    assert (found.text, found.remedy) == ("everything on n1, n2 is left alone", "crm node ready n1 n2")
