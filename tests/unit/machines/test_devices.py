"""What a node tells of its devices, and when it proves that claims may end (safety.md §11)."""

from collections.abc import Sequence

from haclusterd.cib import commands
from haclusterd.cib.commands import PublishDevices, ReleaseDevices
from haclusterd.machines.devices import (
    ANSWER_MS,
    LEFTOVER_MS,
    LOOK_MS,
    PUBLISH_MS,
    STRANGERS_MAX,
    STRANGERS_MS,
    DevicesMachine,
)
from haclusterd.machines.effects import Effect, LookAtDevices, Note
from haclusterd.model.device_reports import DevicesReport, DeviceUse, DeviceUser
from haclusterd.model.devices import DEVICES_MAX, Device, DeviceId, DeviceState, NodeDevices
from haclusterd.model.ids import Incarnation, ResourceId
from haclusterd.model.instants import NEVER, Instant
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import DB, N2, WEB, Cluster, issue, life, order, result

A, B = DeviceId("GPU-a"), DeviceId("GPU-b")
FREE = DeviceUse()
LEFTOVER = DeviceUse(users={A: (DeviceUser("4711 python", "db"),)})


class Node:
    """n2's devices in a cluster whose CIB takes what it proposes."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.machine = DevicesMachine(N2)
        self.incarnation: Incarnation = life(N2)
        self.now = 1000
        self.effects: Sequence[Effect] = ()

    def step(self, span_ms: int = 0) -> list[commands.Command]:
        """Let time pass; return what was proposed, which is in the CIB afterwards."""
        self.now += span_ms
        self.effects = self.machine.step(self.cluster.cib, self.incarnation, Instant(self.now))
        return self.cluster.take(self.effects)

    def sees(self, *devices: Device, trouble: str = "", **users: tuple[DeviceUser, ...]) -> list[commands.Command]:
        named = {DeviceId(f"GPU-{name}"): each for name, each in users.items()}
        self.machine.reported(DevicesReport(devices, trouble=trouble, users=named))
        return self.step()

    def looks(self) -> list[LookAtDevices]:
        return [effect for effect in self.effects if isinstance(effect, LookAtDevices)]

    def looks_again(self, use: DeviceUse) -> int:
        """Answer its next look; return after how long it came."""
        self.step()
        before, looks = self.now, self.looks()
        while not looks:
            self.now = self.machine.deadline()
            self.step()
            looks = self.looks()
        self.machine.looked(looks[0].key, use)
        return self.now - before

    def known(self) -> NodeDevices:
        return self.cluster.cib.status.devices[N2]

    def claim(self, *devices: DeviceId, resource: ResourceId = DB, memory_mib: int = 0) -> None:
        wanted = order(f"start-{resource}", resource=resource)
        self.cluster.must(issue(replace(wanted, devices=devices, device_memory_mib=memory_mib)))
        self._ended(f"start-{resource}", "start", resource, 1)

    def stop(self, resource: ResourceId = DB) -> None:
        self.cluster.must(issue(order(f"stop-{resource}", ActionName.STOP, resource=resource)))
        self._ended(f"stop-{resource}", "stop", resource, 9)

    def _ended(self, key: str, operation: str, resource: ResourceId, call_id: int) -> None:
        item = replace(result(key, operation, ExitCode.OK, call_id=call_id), resource=resource)
        self.cluster.must(commands.RecordResults(N2, self.incarnation, (item,)))

    def holding(self, use: DeviceUse) -> None:
        """db has ended on GPU-a, and the first look says this."""
        self.sees(Device(A), Device(B))
        self.claim(A)
        self.stop()
        self.step()
        self.machine.looked(self.looks()[0].key, use)


def with_state(name: DeviceId, state: DeviceState) -> Device:
    return Device(name, state=state, reasons=(f"test: {state}",))


# -- what is seen -----------------------------------------------------------------------------------------------------


def test_only_changes_are_proposed() -> None:
    node = Node()
    assert node.step() == []
    assert node.machine.deadline() == NEVER
    assert node.sees(Device(A)) == [PublishDevices(N2, life(N2), (Device(A),))]
    assert node.sees(Device(A)) == []
    assert node.step(60_000) == []
    assert node.machine.deadline() == NEVER


def test_changes_that_follow_each_other_are_proposed_together_a_second_later() -> None:
    node = Node()
    node.sees(Device(A))
    assert node.sees(with_state(A, DeviceState.DEGRADED)) == []
    assert node.machine.deadline() == node.now + PUBLISH_MS
    node.now += 400
    assert node.sees(with_state(A, DeviceState.FAILED)) == []
    [proposed] = node.step(600)
    assert isinstance(proposed, PublishDevices)
    assert proposed.devices == (with_state(A, DeviceState.FAILED),)


def test_what_is_missing_is_proposed_once() -> None:
    node = Node()
    node.sees(Device(A), Device(B))
    node.now += PUBLISH_MS
    assert len(node.sees(Device(A))) == 1
    assert node.known().devices[B].is_missing
    assert node.step(60_000) == []


def test_a_node_without_devices_says_nothing_and_one_without_a_driver_does() -> None:
    node = Node()
    assert node.sees() == []
    assert len(node.sees(trouble="the driver is away")) == 1
    assert node.known().trouble == "the driver is away"


def test_nothing_is_proposed_by_a_life_that_has_not_joined() -> None:
    node = Node()
    node.incarnation = life(N2, token=2)
    assert node.sees(Device(A)) == []
    node.cluster.must(commands.Join(N2, node.incarnation))
    assert len(node.step()) == 1


def test_two_devices_with_one_id_are_not_used() -> None:
    node = Node()
    node.sees(Device(A, bus="1"), Device(A, bus="2"))
    seen = node.known().devices[A]
    assert (seen.state, seen.reasons) == (
        DeviceState.FAILED, ("uuid-twice: the driver shows two devices with this id",),
    )  # fmt: skip


def test_the_cluster_is_shown_a_bounded_number_of_devices() -> None:
    node = Node()
    node.sees(*(Device(DeviceId(f"GPU-{number:04}")) for number in range(DEVICES_MAX + 5)))
    assert len(node.known().devices) == DEVICES_MAX


# -- strangers --------------------------------------------------------------------------------------------------------


def test_who_uses_a_device_without_a_claim_is_shown_now_and_then() -> None:
    node = Node()
    node.sees(Device(A), Device(B))
    node.claim(A)
    users = {"a": (DeviceUser("1 server", "db"), DeviceUser("2 helper")), "b": (DeviceUser("3 python"),)}
    assert node.sees(Device(A), Device(B), **users) == []
    assert node.machine.deadline() == node.now + STRANGERS_MS
    assert len(node.step(STRANGERS_MS)) == 1
    assert (node.known().devices[A].strangers, node.known().devices[B].strangers) == ((), ("3 python",))
    node.sees(Device(A), Device(B), a=(DeviceUser("4 other", "web"),))
    node.step(STRANGERS_MS)
    assert node.known().devices[A].strangers == ("4 other",), "web has no claim there"


def test_what_keeps_a_start_from_its_device_is_shown_until_the_device_is_free() -> None:
    node = Node()
    node.sees(Device(A), Device(B))
    node.step(STRANGERS_MS)
    node.claim(A)
    node.stop()
    wanted = replace(order("again", resource=DB), devices=(A,))
    node.cluster.must(issue(wanted))
    used = DeviceUse(users={A: (DeviceUser("4711 python"),)})

    def looked(use: DeviceUse, span_ms: int) -> None:
        node.now += span_ms
        node.machine.seen_before_start((A,), use, Instant(node.now))
        node.step()

    looked(used, 0)
    assert node.known().devices[A].strangers == ()
    looked(used, LEFTOVER_MS)
    assert node.known().devices[A].strangers == ("4711 python",)
    given_up = replace(result("again", "start", ExitCode.UNKNOWN), kind=ResultKind.NOT_BEGUN)
    node.cluster.must(commands.RecordResults(N2, node.incarnation, (replace(given_up, resource=DB),)))
    assert [claim.is_over for claim in node.known().claims[A]] == [True]
    node.looks_again(used)
    node.step(PUBLISH_MS)
    assert node.known().devices[A].strangers == ("4711 python",), "shown from the one look to the other"
    node.looks_again(FREE)
    node.step(PUBLISH_MS)
    node.step(PUBLISH_MS)
    assert (node.known().devices[A].strangers, node.known().claims) == ((), {})


def test_a_sharer_does_not_keep_another_from_starting() -> None:
    node = Node()
    node.sees(Device(A, memory_mib=100))
    node.claim(A, resource=WEB, memory_mib=50)
    node.cluster.must(issue(replace(order("start-db", resource=DB), devices=(A,), device_memory_mib=50)))
    users = DeviceUse(users={A: (DeviceUser("1 x", "web"), DeviceUser("2 y"), DeviceUser("3 z", "other"))})
    for _ in range(2):
        node.machine.seen_before_start((A,), users, Instant(node.now))
        node.step(STRANGERS_MS)
    assert node.known().devices[A].strangers == ("3 z",)


def test_so_many_strangers_are_named() -> None:
    node = Node()
    node.sees(Device(A), a=tuple(DeviceUser(f"{pid} x") for pid in range(50)))
    assert len(node.known().devices[A].strangers) == STRANGERS_MAX


# -- claims that are over ---------------------------------------------------------------------------------------------


def test_a_claim_that_is_over_ends_with_the_first_proof() -> None:
    node = Node()
    node.holding(FREE)
    assert node.step() == [ReleaseDevices(N2, life(N2), (commands.ProvenClaim(A, DB, order("start-db").key),))]
    assert node.known().claims == {}
    assert node.step(10_000) == []
    assert node.looks() == []


def test_a_claim_that_is_not_over_is_not_looked_at() -> None:
    node = Node()
    node.sees(Device(A))
    node.claim(A)
    assert node.step(60_000) == []
    assert node.looks() == []


def test_it_looks_again_and_again_until_the_device_is_free() -> None:
    node = Node()
    node.holding(LEFTOVER)
    pauses = [node.looks_again(LEFTOVER) for _ in range(9)]
    assert (pauses[0], pauses[1], pauses[-1]) == (LOOK_MS[0], 2 * LOOK_MS[0], LOOK_MS[1])
    assert [claim.is_over for claim in node.known().claims[A]] == [True]
    node.looks_again(FREE)
    node.step()
    assert node.known().claims == {}


def test_what_holds_on_for_long_is_named_and_shown() -> None:
    node = Node()
    node.holding(LEFTOVER)
    notes = []
    for _ in range(8):
        node.looks_again(LEFTOVER)
        node.step()
        notes += [effect.text for effect in node.effects if isinstance(effect, Note)]
    assert notes == ["db has ended, and device GPU-a is used by 4711 python"], "once"
    node.step(STRANGERS_MS)
    assert node.known().devices[A].strangers == ("4711 python",)


def test_a_look_without_an_answer_is_asked_again_and_its_late_answer_counts_for_nothing() -> None:
    node = Node()
    node.sees(Device(A))
    node.claim(A)
    node.stop()
    node.step()
    [lost] = node.looks()
    assert node.machine.deadline() == node.now + ANSWER_MS
    node.step(ANSWER_MS)
    assert [look.devices for look in node.looks()] == [(A,)]
    node.machine.looked(lost.key, FREE)
    assert node.step() == []


def test_an_unknown_device_is_not_released() -> None:
    node = Node()
    node.holding(DeviceUse(unknown=(A,)))
    assert node.step() == []


def test_of_what_shares_a_device_each_is_proven_by_itself() -> None:
    node = Node()
    node.sees(Device(A, memory_mib=100))
    node.claim(A, memory_mib=50)
    node.claim(A, resource=WEB, memory_mib=50)
    node.stop()
    for use, is_proven in (
        (DeviceUse(users={A: (DeviceUser("1 x"),)}), False),
        (DeviceUse(users={A: (DeviceUser("1 x", "web"), DeviceUser("2 y", "db"))}), False),
        (DeviceUse(users={A: (DeviceUser("1 x", "web"),)}), True),
    ):
        node.step(LOOK_MS[1])
        node.machine.looked(node.looks()[0].key, use)
        assert bool(node.step()) is is_proven
    assert [claim.resource for claim in node.known().claims[A]] == [WEB]


def test_a_new_life_proves_what_the_older_one_left() -> None:
    node = Node()
    node.holding(LEFTOVER)
    node.step()
    node.incarnation = life(N2, token=2)
    node.machine.reincarnated()
    node.cluster.must(commands.Join(N2, node.incarnation))
    node.step()
    node.machine.looked(node.looks()[0].key, FREE)
    node.step()
    assert node.known().claims == {}
