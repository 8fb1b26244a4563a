"""The judges of orders: what no DC orders is ordered here, and is noticed."""

from collections.abc import Mapping

import pytest

from haclusterd.cib.commands import IssueOrders
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers_of_orders import OneControllerPerTerm, OrdersFollowTheirTerm
from haclusterd.simulator.hosts.agents import SERVICE
from haclusterd.simulator.scenario import Cluster

N3 = NodeName("n3")
OLD, NEW = {"pidfile": "one.pid"}, {"pidfile": "two.pid"}


def probed_with(parameters: Mapping[str, str], resource_parameters: Mapping[str, str] | None, digest: str) -> None:
    """Have a probe of `db` committed."""
    cluster = Cluster(1).form()
    for kind in (OneControllerPerTerm, OrdersFollowTheirTerm):
        cluster.checkers.leave_out(kind)
    controller, incarnation = cluster.cib.status.controller, cluster.cib.status.nodes[N3].incarnation
    assert controller is not None
    assert incarnation is not None
    order = Order(
        key=OrderKey(f"{controller.term}.99.1-00000001"),
        node=N3,
        incarnation=incarnation,
        dc_term=controller.term,
        resource=ResourceId("db"),
        action=ActionName.MONITOR,
        interval_ms=0,
        agent=SERVICE,
        parameters=parameters,
        meta={},
        timeout_ms=5000,
        deadline_ms=5000,
        target_exit_code=ExitCode.NOT_RUNNING,
        definition=digest,
        is_probe=True,
        resource_parameters=resource_parameters,
    )
    index = cluster.cib.index
    cluster.administer(IssueOrders(controller.term, (order,)))
    cluster.until(lambda: cluster.cib.index > index, 5000, "something committed")
    cluster.run_for(500)


@pytest.mark.parametrize(
    ("parameters", "resource_parameters", "digest"),
    [(OLD, None, digest_of(OLD)), ({**OLD, "deep": "yes"}, OLD, digest_of(OLD)), (OLD, None, "")],
    ids=["its own", "the operation has more", "not recorded"],
)
def test_an_order_that_says_what_it_runs(
    parameters: Mapping[str, str], resource_parameters: Mapping[str, str] | None, digest: str
) -> None:
    probed_with(parameters, resource_parameters, digest)


def test_an_order_with_the_digest_of_other_parameters() -> None:
    with pytest.raises(ViolationError, match=r"monitor of db\) has another digest than its parameters"):
        probed_with(NEW, None, digest_of(OLD))
