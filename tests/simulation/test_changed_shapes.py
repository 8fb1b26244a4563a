"""A resource becomes a clone, or is one no more, while it is active: no copy begins that the new shape does not allow.

What still runs of the old shape stops first. And where the product were wrong, the judge would notice.
"""

from collections.abc import Callable

import pytest

from haclusterd.cib.edits import apply_edits
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES
from haclusterd.scheduler.schedule import schedule
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.faults import shapes
from haclusterd.simulator.faults.shapes import Shape, edits_to
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.scenario import Cluster

NAME = ResourceId("changeling")
TWO = (("clone-max", "2"),)
SLOW = AgentRun(duration_ms=2000, effect_at_percent=90)
ALL = (
    Shape(shapes.CLONED, TWO), Shape(shapes.PRIMITIVE), Shape(shapes.UNIQUE, (*TWO, ("globally-unique", "true"))),
    Shape(shapes.PROMOTABLE, (("promotable", "true"),)), Shape(shapes.MEMBER), Shape(shapes.CLONED_GROUP),
    Shape(shapes.NOTHING), Shape(shapes.OTHER_GROUP),
)  # fmt: skip


def become(cluster: Cluster, shape: Shape, *nodes: str) -> None:
    """Have the resource take a shape, and prefer these nodes."""
    configuration = cluster.cib.configuration
    edits = edits_to(configuration, NAME, shape)
    top = apply_edits(configuration, edits).top_of(NAME)
    cluster.configure((*edits, *(configurations.prefers(top, node, 1000) for node in nodes)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("before", ALL[:-2], ids=lambda shape: shape.kind)
@pytest.mark.parametrize("after", ALL, ids=lambda shape: shape.kind)
def test_a_resource_takes_another_shape_while_it_starts_and_its_daemon_dies(before: Shape, after: Shape) -> None:
    cluster = Cluster(3).form()
    for action in ("start", "stop"):
        for name in (NAME, f"{NAME}:0", f"{NAME}:1"):
            cluster.agent_script.write(name, action, SLOW)
    become(cluster, before)
    cluster.run_for(500)
    become(cluster, after)
    cluster.kill_brain(cluster.others(cluster.dc())[0])
    cluster.run_for(300)
    cluster.until_settled(60_000, "it has its new shape")


Hiding = Callable[[NodeName, NodeStatus], NodeStatus]


def worse(hide: Hiding) -> Callable[[Cib, WallTime], Plan]:
    """Return a scheduler that does not see everything."""

    def plan(cib: Cib, now: WallTime) -> Plan:
        nodes = {name: hide(name, status) for name, status in cib.status.nodes.items()}
        return schedule(replace(cib, status=replace(cib.status, nodes=nodes)), now)

    return plan


def hidden(name: NodeName, status: NodeStatus) -> NodeStatus:
    """Hide what runs of the resource on all nodes but one."""
    if name == "n3":
        return status
    histories = {each: history for each, history in status.histories.items() if each.partition(":")[0] != NAME}
    gone = frozenset(status.histories) - frozenset(histories)
    return replace(status, histories=histories, probed=status.probed | gone | {NAME, ResourceId(f"{NAME}:0")})


WITHOUT_COUNT = replace(ALL_RULES, one_active_copy=False, open_orders_possibly_active=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [(ALL[0], ALL[1]), (ALL[1], ALL[2]), (ALL[2], ALL[1]), (ALL[2], ALL[0])],
    ids=["clone to primitive", "primitive to unique", "unique to primitive", "unique to clone"],
)
def test_the_judge_notices_a_product_that_forgets_what_runs_of_the_old_shape(before: Shape, after: Shape) -> None:
    cluster = Cluster(3, rules=WITHOUT_COUNT).form()
    become(cluster, before, "n1", "n2")
    cluster.until_settled(20_000, "it runs")
    cluster.scheduler = worse(hidden)
    become(cluster, after, "n3")
    with pytest.raises(ViolationError) as caught:
        cluster.run_for(10_000)
    assert caught.value.rule == "NeverTwoActive"
