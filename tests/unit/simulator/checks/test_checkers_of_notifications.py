"""The swarm's judge of notifications: what a DC that keeps its rules never orders is ordered here, and is noticed."""

from collections.abc import Sequence
from functools import partial

import pytest

from haclusterd.cib.commands import IssueOrders, SetTransientAttribute
from haclusterd.cib.edits import Edit, PutResource
from haclusterd.model.configuration import AttributeSet, Clone
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers_of_orders import OneControllerPerTerm, OrdersFollowTheirTerm
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import SERVICE, AgentRun
from haclusterd.simulator.hosts.truth import promoted
from haclusterd.simulator.scenario import Cluster

PG, LOG = ResourceId("pg"), ResourceId("log")
N1, N2, N3 = NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
Step = tuple[str, NodeName, int]
"""What is ordered, as `pre-promote` or `promote`, of `pg` or of what follows; on which node; in which transition."""
PROMOTE: Step = ("promote", N3, 900)
PRE: tuple[Step, ...] = tuple(("pre-promote", name, 900) for name in NAMES)
MEANWHILE: Step = ("pre-promote", N1, 901)
"""Ordered while the orders before it are under way, by another transition."""
POST: tuple[Step, ...] = tuple(("post-promote", name, 900) for name in NAMES)


def _grouped(edits: Sequence[Edit]) -> list[Edit]:
    """Return edits that clone a group of `pg` and `log` in place of `pg`."""
    group = (configurations.primitive(LOG), configurations.group("both", [PG, LOG]))
    clone = PutResource(Clone(ResourceId("pgs"), ResourceId("both"), meta=_meta_of_clone(edits)))
    others = [each for each in edits if not (isinstance(each, PutResource) and isinstance(each.resource, Clone))]
    return [*others[:-3], *group, clone, *others[-3:]]


def _meta_of_clone(edits: Sequence[Edit]) -> tuple[AttributeSet, ...]:
    [clone] = [each.resource for each in edits if isinstance(each, PutResource) and isinstance(each.resource, Clone)]
    return clone.meta


def formed(*, is_grouped: bool = False) -> Cluster:
    """Return a cluster whose clone is promoted on n3, where a promote takes 1 s."""
    cluster = Cluster(1).form()
    edits = configurations.promotable(list(cluster.names))
    cluster.configure(_grouped(edits) if is_grouped else edits)
    cluster.until_settled(60_000, "the clone settled")
    assert cluster.truth.active_nodes(promoted(PG)) == (N3,)
    cluster.agent_script.write(PG, "promote", AgentRun(1000))
    for kind in (OneControllerPerTerm, OrdersFollowTheirTerm):
        cluster.checkers.leave_out(kind)
    return cluster


def order(cluster: Cluster, step: Step, number: int) -> Order:
    words, node, transition = step
    words, _, resource = words.partition(" ")
    kind, _, action = words.rpartition("-")
    controller, incarnation = cluster.cib.status.controller, cluster.cib.status.nodes[node].incarnation
    assert controller is not None
    assert incarnation is not None
    return Order(
        key=OrderKey(f"{controller.term}.{transition}.{number}-test"), node=node, incarnation=incarnation,
        dc_term=controller.term, resource=ResourceId(resource or PG),
        action=ActionName.NOTIFY if kind else ActionName(action), interval_ms=0,
        agent=SERVICE, parameters={}, meta={"notify_type": kind, "notify_operation": action} if kind else {},
        timeout_ms=5000, deadline_ms=10_000, target_exit_code=ExitCode.OK, transition=transition,
    )  # fmt: skip


def _are_ordered(cluster: Cluster, keys: set[OrderKey]) -> bool:
    return keys <= set(cluster.checkers.log.orders)


def issue(cluster: Cluster, groups: Sequence[Sequence[Step]]) -> None:
    """Order one group after another, each but `MEANWHILE` when the one before has been answered; look on for a while.
    """
    for place, steps in enumerate(groups):
        issue_group(cluster, steps, place)
        if place + 1 < len(groups) and groups[place + 1][0] != MEANWHILE:
            cluster.until(lambda: not cluster.has_open_orders(), 10_000, "answered")
    cluster.run_for(40_000)


def issue_group(cluster: Cluster, steps: Sequence[Step], place: int) -> None:
    """Order steps by one entry of the log."""
    orders = tuple(order(cluster, step, 10 * place + number) for number, step in enumerate(steps))
    controller = cluster.cib.status.controller
    assert controller is not None
    cluster.administer(IssueOrders(controller.term, orders))
    keys = {each.key for each in orders}
    cluster.until(partial(_are_ordered, cluster, keys), 5000, "ordered")


def test_what_a_dc_orders_that_keeps_the_rules_is_no_violation() -> None:
    issue(formed(), (PRE, (PROMOTE,), POST))


def test_what_nobody_managed_when_it_was_ordered_is_not_to_be_notified_afterwards() -> None:
    """Seed 413392: the maintenance of a node ends while a promote runs on another."""
    cluster = formed()
    cluster.administer(SetTransientAttribute(N1, "maintenance", "true"))
    cluster.until(lambda: "maintenance" in cluster.cib.status.nodes[N1].attributes, 5000, "nobody manages n1")
    issue_group(cluster, PRE[1:], 0)
    cluster.until(lambda: not cluster.has_open_orders(), 10_000, "answered")
    issue_group(cluster, (PROMOTE,), 1)
    cluster.administer(SetTransientAttribute(N1, "maintenance", None))
    cluster.until(lambda: not cluster.has_open_orders(), 10_000, "answered")
    issue_group(cluster, POST[1:], 2)
    cluster.run_for(40_000)


def test_a_group_is_notified_when_all_that_was_announced_of_it_has_happened() -> None:
    announced = tuple(("pre-promote log", name, 900) for name in NAMES)
    issue(formed(is_grouped=True), ((*PRE, *announced), (PROMOTE,)))
    with pytest.raises(ViolationError, match="was never notified after the promote of log"):
        issue(formed(is_grouped=True), ((*PRE, *announced), (PROMOTE,), (("promote log", N3, 900),), POST))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((PRE, PRE[:1]), "a second time"),
        (((*PRE, PROMOTE),), "is notified"),
        ((PRE[:2], (PROMOTE,), PRE[2:]), "after the promote"),
        ((PRE, (PROMOTE, POST[0])), "that it announces is under way"),
        ((PRE, (PROMOTE,), (MEANWHILE,)), "while a promote is under way"),
        ((PRE, (PROMOTE,), POST[:2]), "n3 was never notified after"),
    ],
)
def test_what_breaks_a_rule_is_noticed(groups: Sequence[Sequence[Step]], words: str) -> None:
    with pytest.raises(ViolationError, match=words):
        issue(formed(), groups)
