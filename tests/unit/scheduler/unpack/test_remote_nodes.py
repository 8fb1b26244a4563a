"""Remote nodes and guests: which there are, how they are reached, what the connections to them are like."""

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.model.definition import Needs
from haclusterd.scheduler.model.entities import Node, NodeKind
from haclusterd.scheduler.model.inventory import Inventory
from tests.unpacked_cibs import block, found, inventory_of, meta, primitive
from tests.written_cibs import pair

REMOTE = "ocf:pacemaker:remote"


def node(inventory: Inventory, name: str) -> Node:
    return inventory.nodes_by_name[NodeName(name)]


def test_a_remote_node_has_the_name_of_its_connection() -> None:
    inventory = inventory_of(primitive("r1", agent=REMOTE) + primitive("a"))
    connection, remote = found(inventory, "r1"), node(inventory, "r1")
    assert [each.name for each in inventory.nodes] == ["n1", "n2", "r1"]
    assert (remote.kind, remote.connection, connection.remote_node) == (NodeKind.REMOTE, connection, remote)
    definition = connection.definition
    assert (definition.is_remote_connection, definition.needs, definition.is_migratable) == (True, Needs.QUORUM, True)
    assert found(inventory, "a").base_scores.allowed == {"n1": 0, "n2": 0, "r1": 0}
    assert remote.attributes["#kind"] == "remote"


def test_a_remote_node_that_is_only_configured() -> None:
    nodes = '<node id="1" uname="n1"/><node id="r1" type="remote" uname="r1" score="7"/>'
    inventory = inventory_of(primitive("a"), nodes=nodes)
    assert (node(inventory, "r1").connection, node(inventory, "r1").is_online) == (None, False)
    assert found(inventory, "a").base_scores.allowed == {"n1": 0, "r1": 7}


def test_how_long_to_wait_before_reconnecting() -> None:
    blocks = meta("r1", **{"failure-timeout": "5"}) + block("instance_attributes", "p", reconnect_interval="60s")
    connection = found(inventory_of(primitive("r1", blocks, REMOTE)), "r1")
    assert (connection.definition.reconnect_interval_ms, connection.found.failure_timeout_ms) == (60_000, 60_000)


GUEST = {"remote-node": "g1", "remote-addr": "10.0.0.7", "remote-port": "99", "remote-connect-timeout": "33s"}


def test_a_guest_is_reached_by_a_connection_that_nobody_configured() -> None:
    inventory = inventory_of(primitive("vm", meta("vm", **GUEST, **{"is-managed": "false"})) + primitive("a"))
    vm, connection, guest = found(inventory, "vm"), found(inventory, "g1"), node(inventory, "g1")
    assert [top.id for top in inventory.tops] == ["vm", "a", "g1"]
    assert (guest.kind, guest.connection, connection.launcher) == (NodeKind.GUEST, connection, vm)
    assert vm.launched == [connection]
    assert connection.definition.parameters == {"addr": "10.0.0.7", "port": "99"}
    assert [(each.name, each.interval_ms, each.timeout_ms) for each in connection.definition.operations] == [
        ("monitor", 30_000, 30_000), ("start", 0, 33_000),
    ]  # fmt: skip
    assert (connection.is_managed, connection.found.is_migratable) == (False, False)


def test_a_connection_to_a_guest_may_go_anywhere_even_where_nothing_may() -> None:
    inventory = inventory_of(primitive("vm", meta("vm", **GUEST)), properties=pair("symmetric-cluster", "false"))
    assert found(inventory, "vm").base_scores.allowed == {}
    assert found(inventory, "g1").base_scores.allowed == {"n1": 0, "n2": 0, "g1": 0}


@pytest.mark.parametrize(
    ("resources", "names"),
    [
        (f'<group id="g">{primitive("vm", meta("vm", **GUEST))}</group>', ["g1", "n1", "n2"]),
        (f'<clone id="c">{primitive("vm", meta("vm", **GUEST))}</clone>', ["n1", "n2"]),
        (f'<group id="g">{primitive("r1", agent=REMOTE)}</group>', ["n1", "n2"]),
        (primitive("vm", meta("vm", **GUEST)) + primitive("g1"), ["n1", "n2"]),
        (primitive("vm", meta("vm", **GUEST)) + primitive("w", meta("w", **GUEST)), ["g1", "n1", "n2"]),
        (primitive("r10", agent=REMOTE) + primitive("R9", agent=REMOTE), ["n1", "n2", "R9", "r10"]),
    ],
)
def test_which_nodes_there_are(resources: str, names: list[str]) -> None:
    assert [each.name for each in inventory_of(resources).nodes] == names


def test_a_clone_has_an_instance_for_remote_nodes_too() -> None:
    inventory = inventory_of(primitive("r1", agent=REMOTE) + f'<clone id="c">{primitive("a")}</clone>')
    assert len(inventory.by_id[ResourceId("c")].children) == 3
