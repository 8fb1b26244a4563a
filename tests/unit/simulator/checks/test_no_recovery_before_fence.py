"""The judge of recovery: what a lost node may hold is known from the log, and from when an order was issued."""

from typing import cast

import pytest

from haclusterd.cib.commands import IssueOrders
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import Configuration, Primitive
from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Accepted, Log, Scene, ViolationError
from haclusterd.simulator.checks.checkers_of_losses import NoRecoveryBeforeFence
from tests.unit.recorded_operations import history, record
from tests.unit.situations import order

SERVICE = AgentReference("ocf", "simulated", "service")
DB, N1, N2, KEY = ResourceId("db"), NodeName("n1"), NodeName("n2"), OrderKey("5.1.1")
CONFIGURATION = Configuration(resources={DB: Primitive(DB, SERVICE)})
CALL = AgentCall(KEY, DB, "db", SERVICE, "start", {}, {}, 5000, Incarnation("boot", "token"))
EMPTY = NodeStatus(N1, state=NodeState.ONLINE)
UNVERIFIED = replace(EMPTY, unverified=frozenset({DB}))
STARTING = replace(EMPTY, orders={OrderKey("5.1.2"): replace(order("5.1.2"), node=N1, resource=DB)})


def with_records(*records: OperationRecord) -> NodeStatus:
    return replace(EMPTY, histories={DB: history(*records)})


IN_VAIN = record(2, "monitor", ExitCode.NOT_INSTALLED)
LOOKED_IN_VAIN = with_records(IN_VAIN)
RAN_AND_LOOKED_IN_VAIN = with_records(record(1, "start", ExitCode.OK), IN_VAIN)


def cib(status: NodeStatus) -> Cib:
    members = {name: Member(name, ()) for name in (N1, N2)}
    return Cib(configuration=CONFIGURATION, members=members, status=Status(nodes={N1: status}))


@pytest.mark.parametrize(
    ("when_issued", "now", "is_refused"),
    [
        (EMPTY, UNVERIFIED, False),
        (UNVERIFIED, UNVERIFIED, True),
        (EMPTY, STARTING, True),
        (STARTING, STARTING, True),
        (EMPTY, EMPTY, False),
        (LOOKED_IN_VAIN, LOOKED_IN_VAIN, False),
        (RAN_AND_LOOKED_IN_VAIN, RAN_AND_LOOKED_IN_VAIN, True),
    ],
    ids=[
        "restarted since", "unverified then", "ordered since", "ordered then", "never there", "a probe could not look",
        "it ran, and a probe could not look",
    ],
)
def test_a_start_on_another_node(when_issued: NodeStatus, now: NodeStatus, is_refused: bool) -> None:
    log = Log()
    judge = NoRecoveryBeforeFence(cast("Scene", None), log)
    log.shapes.configured(cib(when_issued))
    issued = replace(order(KEY), key=KEY, node=N2, resource=DB)
    judge.first_accepted(Accepted(IssueOrders(Term(5), (issued,)), N2, cib(when_issued), cib(when_issued)))
    log.orders[KEY] = issued
    log.shapes.issued(KEY)
    log.newest = cib(replace(now, state=NodeState.LOST))
    refused = False
    try:
        judge.agent_begins(N2, CALL)
    except ViolationError:
        refused = True
    assert refused is is_refused
