"""What a seed of the swarm begins with."""

import random

import pytest

from haclusterd.cib.edits import PutResource
from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import NodeName
from haclusterd.simulator.checks.targets import outlets, served_by
from haclusterd.simulator.drawn_configurations import asked_for_hosts, draw, targeted

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


def devices_of(seed: int) -> list[Primitive]:
    """Return the fence devices that a seed begins with."""
    edits = draw(random.Random(seed), NODES, has_switch=True, is_promotable=False, has_migration=False).edits
    edits = targeted(random.Random(f"targets/{seed}"), NODES, asked_for_hosts(random.Random(f"asked/{seed}"), edits))
    primitives = [each.resource for each in edits if isinstance(each, PutResource)]
    return [each for each in primitives if isinstance(each, Primitive) and each.agent.standard == "stonith"]


@pytest.mark.parametrize("seed", range(40))
def test_every_node_has_a_device(seed: int) -> None:
    """One that nothing can fence is recovered by nobody, and nothing ever settles."""
    devices = devices_of(seed)
    assert [node for node in NODES if not any(node in (served_by(each) or NODES) for each in devices)] == []
    assert len({each.id for each in devices}) == len(devices)


def test_devices_know_their_nodes_in_several_ways() -> None:
    devices = [device for seed in range(40) for device in devices_of(seed)]
    assert any(outlets(device) for device in devices)
    assert any(not served_by(device) for device in devices)
    assert any(0 < len(served_by(device)) < len(NODES) for device in devices)
