"""From which nodes a device may be used, whatever form its location constraints have."""

import pytest

from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.unpack.fence_executors import able_to_use, executors_of
from tests.scheduled_clusters import configured

NODES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
BASE = """
node n1 attributes rack=a
node n2 attributes rack=b
node n3 attributes rack=b
primitive power stonith:fence_local
primitive web ocf:haclusterd:dummy
"""


def of(text: str) -> Cib:
    status = {name: NodeStatus(name, NodeState.ONLINE) for name in NODES}
    cib = Cib(members={name: Member(name, ()) for name in NODES}, configuration=configured(BASE + text))
    return replace(cib, status=Status(nodes=status))


def users(text: str) -> list[str]:
    return [str(each) for each in executors_of(of(text), ResourceId("power"), NODES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "n1 n2 n3"),
        ("location l power -inf: n1", "n2 n3"),
        ("location l power -1: n1", "n2 n3"),
        ("location l power -100: n1\nlocation m power 100: n1", "n1 n2 n3"),
        ("location l power inf: n1\nlocation m power -inf: n1", "n2 n3"),
        ("location l power rule -inf: rack eq b", "n1"),
        ("location l power rule -inf: #uname eq n3", "n1 n2"),
        ("location l /pow.*/ -inf: n1", "n2 n3"),
        ("location l /!web/ -inf: n1", "n2 n3"),
        ("location l /web/ -inf: n1", "n1 n2 n3"),
        ("location l { web power } -inf: n1", "n2 n3"),
        ("tag t power\nlocation l t -inf: n1", "n2 n3"),
        ("group g power\nlocation l g -inf: n1", "n2 n3"),
        ("location l web -inf: n1", "n1 n2 n3"),
        ("location l power role=Promoted -inf: n1", "n1 n2 n3"),
        ("location l power role=Stopped -inf: n1", "n1 n2 n3"),
        ("location l power role=Started -inf: n1", "n2 n3"),
        ("location l power rule $role=Promoted -inf: #uname eq n1", "n1 n2 n3"),
        ("location l { power role=Promoted } { power web } -inf: n1", "n2 n3"),
        ("property symmetric-cluster=false", ""),
        ("property symmetric-cluster=false\nlocation l power 0: n1\nlocation m power -1: n2", "n1"),
        ("property symmetric-cluster=false\nlocation l power rule 10: rack eq b", "n2 n3"),
        ("property symmetric-cluster=false\ngroup g power\nlocation l g 10: n3", "n3"),
    ],
)
def test_locations_keep_a_device_from_nodes(text: str, expected: str) -> None:
    assert users(text) == expected.split()


def test_every_other_node_may_believe_in_a_watchdog_whatever_constraints_say() -> None:
    cib = of("property symmetric-cluster=false")
    assert able_to_use(cib, NODES[0], (WATCHDOG,)) == list(NODES[1:])
    assert able_to_use(cib, NODES[0], (ResourceId("power"),)) == []
