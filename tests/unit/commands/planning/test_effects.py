"""What a change does to what runs, in a sentence."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.planning.effects import NOTHING, effects
from haclusterd.model.json_value import Json
from tests.administered_clusters import NOW, Cluster, running


def said(cluster: Cluster, verb: str, **arguments: Json) -> str:
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    found, = effects(context, registry.run(verb, arguments, context).commands)
    return found.parameters["what"]


@pytest.mark.parametrize(
    ("verb", "arguments", "expected"),
    [
        ("resource.stop", {"resources": ["db"]}, "this stops web, address on n1; stops db on n2"),
        ("node.standby", {"node": "n2"}, "this restarts web, address on n1; moves db from n2 to n1"),
        ("configure.statement", {"words": ["property", "batch-limit=3"]}, NOTHING),
    ],
)
def test_each_effect_is_said_with_its_place(verb: str, arguments: dict[str, Json], expected: str) -> None:
    assert expected == said(running(), verb, **arguments)


def test_what_the_cluster_would_do_anyway_is_left_out() -> None:
    cluster = running()
    stop = {"resources": ["web"]}
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    cluster.do(registry.run("resource.stop", stop, context).commands[0])
    assert said(cluster, "configure.statement", words=["property", "batch-limit=3"]) == NOTHING


def test_in_a_file_nothing_is_said() -> None:
    context = Context(running().cib, NOW, "root@n1")
    assert effects(context, registry.run("resource.stop", {"resources": ["db"]}, context).commands) == ()
