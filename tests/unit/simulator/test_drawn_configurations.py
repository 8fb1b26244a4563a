"""What a seed of the swarm begins with."""

import random

import pytest

from haclusterd.cib.edits import PutResource
from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import NodeName
from haclusterd.simulator.drawn_configurations import draw

NODES = tuple(map(NodeName, ("n1", "n2", "n3")))


@pytest.mark.parametrize("seed", range(40))
def test_every_service_can_start_within_its_timeout(seed: int) -> None:
    """One that mostly fails takes whatever it is colocated with from node to node, and nothing ever settles."""
    drawn = draw(random.Random(seed), NODES, has_switch=True, is_promotable=True, has_migration=True)
    primitives = [each.resource for each in drawn.edits if isinstance(each, PutResource)]
    starts = {
        each.id: operation.timeout_ms
        for each in primitives
        if isinstance(each, Primitive) and each.agent.standard == "ocf"
        for operation in each.operations
        if operation.name == "start"
    }
    assert {"pg", "vip", "vm"} <= set(starts)
    longest_ms = drawn.behaviour.start_ms[1]
    assert {name: timeout for name, timeout in starts.items() if timeout is None or timeout <= longest_ms} == {}
