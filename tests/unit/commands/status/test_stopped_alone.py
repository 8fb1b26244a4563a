"""A node without a lease has stopped what it ran, and says so: the CIB that it has still calls that started."""

from haclusterd.commands import registry
from haclusterd.commands.context import Context, HeardFrom, LiveView
from haclusterd.commands.status.headlines import headlines
from haclusterd.commands.status.overview import Overview
from haclusterd.commands.tools.rows import Rows
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.verbs.answers.resource import Why
from haclusterd.verbs.answers.status import ShownResource, Status
from tests.administered_clusters import NOW, running


def shown(live: LiveView) -> dict[str, ShownResource]:
    answer = registry.run("status", {}, Context(running().cib, NOW, "root@n1", live=live)).answer
    assert isinstance(answer, Status)
    found = [each for one in answer.resources for each in (one, *one.members)]
    return {each.id: each for each in found}


def test_what_the_answering_node_stopped_by_itself_is_shown_as_stopped() -> None:
    live = replace(running().live, stopped_alone=frozenset({ResourceId("web"), ResourceId("db")}))
    found = shown(live)
    assert (found["web"].instances, found["web"].why_stopped) == ((), "n1 has no lease and stopped it")
    assert [each.state for each in found["address"].instances] == ["started"], "its stop has not ended yet"
    assert [each.node for each in found["db"].instances] == ["n2"], "what another node runs is the CIB's to say"


def test_why_says_it_too() -> None:
    live = replace(running().live, has_quorum=False, leader=None, stopped_alone=frozenset({ResourceId("web")}))
    outcome = registry.run("resource.why", {"resource": "web"}, Context(running().cib, NOW, "root@n1", live=live))
    assert isinstance(outcome.answer, Why)
    [web] = outcome.answer.resources
    assert (web.now_on, web.next_on, web.verdict) == ((), "n1", "n1 has no lease and stopped it")


def test_the_views_of_pacemakers_tools_do_not_call_it_started() -> None:
    live = replace(running().live, has_quorum=False, leader=None, stopped_alone=frozenset({ResourceId("web")}))
    rows = {row.id: row for row in Rows(Context(running().cib, NOW, "root@n1", live=live)).primitives()}
    assert (rows["web"].role, rows["web"].nodes, rows["db"].nodes) == ("Stopped", (), ("n2",))


def test_a_node_that_is_not_heard_here_is_not_said_to_be_cut_from_this_one() -> None:
    """Alone, this node knows no more of the others than that they are silent."""
    cluster = running()
    n1, n2 = NodeName("n1"), NodeName("n2")
    nodes = cluster.cib.status.nodes
    nodes = {**nodes, n2: replace(nodes[n2], state=NodeState.FENCED)}
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, nodes=nodes))
    silent = {name: HeardFrom(60_000) for name in nodes if name != n1}
    live = replace(cluster.live, leader=None, has_quorum=False, connected_voters=(n1,), heard=silent)
    context = Context(cluster.cib, NOW, "root@n1", live=live)
    texts = [each.text for each in headlines(context, Overview(cluster.cib))]
    assert not [text for text in texts if "is cut from" in text]
    assert any(text.startswith("n1 reaches 1 of 3 voters") for text in texts)
