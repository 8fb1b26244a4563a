"""What an executor does with devices: no start without proof, and every later action knows them (safety.md §11)."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.machines.effects import LookAtDevices
from haclusterd.machines.executing.device_proofs import ANSWER_MS, DEVICES_FREE_MS, FRESH_MS, LOOK_MS
from haclusterd.model.device_reports import DeviceUse, DeviceUser
from haclusterd.model.devices import Device, DeviceId, DeviceKind
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ActionName, ExecutionStatus
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import replace
from tests.unit.machines.executing import Node
from tests.unit.situations import DB, N2, WEB, life, order

A, B, PORT = DeviceId("GPU-a"), DeviceId("GPU-b"), DeviceId("mlx5_0")
FREE = DeviceUse()
USED = DeviceUse(users={A: (DeviceUser("4711 python train.py"),)})


@pytest.fixture
def node() -> Node:
    """n2, joined, with its lease and three devices."""
    return with_devices(Node())


def with_devices(made: Node) -> Node:
    devices = (Device(A, memory_mib=100), Device(B, memory_mib=100), Device(PORT, kind=DeviceKind.IB_PORT))
    made.cluster.must(commands.PublishDevices(N2, life(N2), devices))
    made.see()
    return made


def wants(key: str, *devices: DeviceId, resource: ResourceId = DB, memory_mib: int = 0) -> Order:
    return replace(order(key, resource=resource), devices=devices, device_memory_mib=memory_mib)


def looks(node: Node) -> list[LookAtDevices]:
    return [effect for effect in node.effects if isinstance(effect, LookAtDevices)]


def answer(node: Node, key: str, use: DeviceUse = FREE) -> Sequence[object]:
    return node.perform(node.executor.devices_looked(key, use, node.moment()))


def begin(node: Node, *orders: Order) -> str:
    """Order something, and return the key of the look that it waits for."""
    node.cluster.issue(*orders)
    node.see()
    return looks(node)[0].key


def test_a_start_waits_for_proof_that_its_devices_are_free(node: Node) -> None:
    key = begin(node, wants("a", A, B))
    assert looks(node)[0].devices == (A, B)
    assert node.begun() == []
    answer(node, key)
    assert node.begun() == [("db", "start")]
    node.finish("a")
    assert node.answers() == [("a", ResultKind.FINISHED)]


def test_what_uses_its_device_is_named_when_it_has_waited_for_long_enough(node: Node) -> None:
    key = begin(node, wants("a", A))
    answer(node, key, USED)
    assert looks(node) == []
    waited = 0
    while not node.reported:
        node.tick(LOOK_MS)
        waited += LOOK_MS
        for look in looks(node):
            answer(node, look.key, USED)
    assert DEVICES_FREE_MS <= waited <= DEVICES_FREE_MS + LOOK_MS
    [result] = node.reported
    assert node.begun() == [], "no agent has run"
    assert (result.kind, result.exit_reason) == (ResultKind.NOT_BEGUN, "device GPU-a is used by 4711 python train.py")
    status = node.cluster.cib.status.nodes[N2]
    assert DB not in status.histories, "it is no failure of the service's: start-failure-is-fatal bans no node for it"
    assert node.cluster.cib.status.devices[N2].claims == {}


def test_a_device_that_becomes_free_in_time_is_started_on(node: Node) -> None:
    answer(node, begin(node, wants("a", A)), USED)
    node.tick(LOOK_MS)
    answer(node, looks(node)[0].key)
    assert node.begun() == [("db", "start")]


def test_a_short_timeout_ends_the_wait(node: Node) -> None:
    answer(node, begin(node, replace(wants("a", A), timeout_ms=1000)), USED)
    node.tick(1000)
    assert node.answers() == [("a", ResultKind.NOT_BEGUN)]


@pytest.mark.parametrize("use", [DeviceUse(unknown=(A,)), None])
def test_a_device_of_which_nobody_can_say_counts_as_used(node: Node, use: DeviceUse | None) -> None:
    key = begin(node, wants("a", A))
    if use is not None:
        answer(node, key, use)
    for _ in range(DEVICES_FREE_MS // ANSWER_MS + 2):
        node.tick(ANSWER_MS)
        for look in looks(node):
            if use is not None:
                answer(node, look.key, use)
    assert node.begun() == []
    words = "can say whether" if use else "has said in time whether"
    assert node.reported[0].exit_reason == f"nobody {words} device GPU-a is used"


def test_an_answer_to_an_older_look_proves_nothing(node: Node) -> None:
    key = begin(node, wants("a", A))
    node.tick(ANSWER_MS)
    assert looks(node)[0].key != key
    answer(node, key)
    assert node.begun() == []


def test_a_proof_is_not_kept_for_later() -> None:
    node = with_devices(Node(actions_max=1))
    key = begin(node, wants("a", A), order("b", resource=WEB))
    answer(node, key)
    assert node.begun() == [("web", "start")], "there is no room for another"
    node.now += FRESH_MS + 1
    node.finish("b")
    assert node.begun() == [("web", "start")]
    node.tick()
    answer(node, f"start:a#{2}")
    assert node.begun() == [("web", "start"), ("db", "start")]


@pytest.mark.parametrize("cause", ["voided", "lease"])
def test_a_start_that_is_not_wanted_any_more_is_not_begun_by_its_proof(node: Node, cause: str) -> None:
    key = begin(node, wants("a", A))
    if cause == "voided":
        node.cluster.void("a")
        node.see()
    else:
        node.lose_lease()
    answer(node, key)
    assert ("db", "start") not in node.begun()
    if cause == "voided":
        assert node.answers() == [("a", ResultKind.NOT_BEGUN)]


def test_a_deadline_ends_the_wait_without_a_failure(node: Node) -> None:
    answer(node, begin(node, replace(wants("a", A), deadline_ms=500)), USED)
    node.tick(501)
    assert node.answers() == [("a", ResultKind.NOT_BEGUN)]


def test_other_resources_do_not_wait(node: Node) -> None:
    begin(node, wants("a", A), order("b", resource=WEB))
    assert node.begun() == [("web", "start")]


# -- who shares -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("users", "begins"),
    [
        ((), True),
        ((DeviceUser("1 a", "web"),), True),
        ((DeviceUser("1 a", ""),), True),
        ((DeviceUser("1 a", "db"),), False),
        ((DeviceUser("1 a", "other"),), False),
        ((DeviceUser("1 a", "web"), DeviceUser("2 b", "db")), False),
    ],
)
def test_a_sharer_begins_beside_the_others_and_nobody_else(
    node: Node, users: tuple[DeviceUser, ...], *, begins: bool
) -> None:
    answer(node, begin(node, wants("b", A, resource=WEB, memory_mib=40)))
    node.finish("b")
    key = begin(node, wants("a", A, memory_mib=60))
    answer(node, key, DeviceUse(users={A: users} if users else {}))
    assert (("db", "start") in node.begun()) is begins


# -- what later actions know ------------------------------------------------------------------------------------------


def test_every_action_until_the_stop_knows_the_devices(node: Node) -> None:
    answer(node, begin(node, wants("a", A, PORT)))
    node.finish("a")
    node.cluster.issue(order("m", ActionName.MONITOR, interval_ms=1000))
    node.see()
    node.tick(1)
    node.finish(node.calls[-1].key)
    node.cluster.issue(order("s", ActionName.STOP))
    node.see()
    assert [(call.action, call.devices, call.accelerators) for call in node.calls] == [
        (action, (A, PORT), (A,)) for action in ("start", "monitor", "stop")
    ]


def test_a_node_that_acts_alone_stops_with_the_devices_of_what_it_has_begun(node: Node) -> None:
    answer(node, begin(node, wants("a", A)))
    node.lose_lease()
    assert node.killed == ["a"]
    node.finish("a", 1, ExecutionStatus.CANCELLED)
    node.tick(1)
    assert [(call.action, call.devices) for call in node.calls] == [("start", (A,)), ("stop", (A,))]


def test_a_daemon_that_begins_in_the_middle_asks_again(node: Node) -> None:
    begin(node, wants("a", A))
    node.cluster.must(commands.Join(N2, life(N2, token=2)))
    node.perform(node.executor.reincarnated(life(N2, token=2), node.moment()))
    node.see()
    assert node.begun() == []
    assert node.answers() == [("a", ResultKind.UNKNOWN)], "the new life answers for the older one"
