"""`crm gpu`: devices are shown with who holds them, persons decide about them, and what a failure would cost."""

import pytest

from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.cib.commands import (
    BeginRecovery,
    DeviceChange,
    EndDeviceStorm,
    PublishDevices,
    RecordRecovery,
    RecoveryOutcome,
    SteerDevice,
)
from haclusterd.commands import registry
from haclusterd.commands.context import Context, Event
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.status.devices import troubles
from haclusterd.model.cluster import Cib
from haclusterd.model.devices import Device, DeviceId, DeviceState, Rung
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.verbs.answers.devices import DeviceCapacity, Devices, ShownDevice
from haclusterd.verbs.answers.history import Events
from tests.administered_clusters import ListedPast, running
from tests.scheduled_clusters import ScheduledCluster, configured

N1, N2 = NodeName("n1"), NodeName("n2")
HEAD = """property fencing-enabled=false enable-startup-probes=false
node n1 attributes rack=a
node n2 attributes rack=b
"""


def device(node: str, number: int, state: DeviceState = DeviceState.OK, *reasons: str) -> Device:
    return Device(
        DeviceId(f"GPU-{node}{number}-aaaa-bbbb"), bus=f"0000:{0x1a + number:02x}:00.0", model="NVIDIA H200",
        memory_mib=143_771, link="nvlink-0000:1a:00.0", has_ecc=True, state=state, reasons=reasons,
    )  # fmt: skip


def cluster(services: int = 6, count: int = 4) -> ScheduledCluster:
    """Two nodes with so many devices each, and so many services that need one."""
    made = ScheduledCluster.of(["n1", "n2"])
    for node in ("n1", "n2"):
        made.publish(node, [device(node, number) for number in range(count)])
    lines = [f"primitive s{number} ocf:haclusterd:dummy utilization gpus=1" for number in range(services)]
    made.configure(configured(HEAD + "\n".join(lines)))
    made.settle()
    return made


def ask(cib: Cib, name: str, now: int, **arguments: str | bool) -> AnyOutcome:
    context = Context(cib, now=WallTime(now), author="root@n1", reason="because")
    return registry.run(name, arguments, context)


def codes(outcome: AnyOutcome) -> list[str]:
    return [str(each.code) for each in outcome.reports]


def steered(made: ScheduledCluster, change: DeviceChange, number: int) -> None:
    made.do(SteerDevice(N1, device("n1", number).id, change, "root@n1", "because"))


def test_all_devices_with_who_holds_them() -> None:
    made = cluster()
    made.publish("n1", [device("n1", number) if number != 2 else replace(device("n1", 2), strangers=("7 python",))
                        for number in range(3)])  # fmt: skip
    answer = ask(made.cib, "gpu.list", made.now).answer
    assert isinstance(answer, Devices)
    assert [(each.node, each.usable, each.total) for each in answer.nodes] == [("n1", 3, 4), ("n2", 4, 4)]
    shown = {each.id: each for each in answer.devices}
    assert [each.resource for each in shown[device("n1", 0).id].claims] == ["s0"]
    assert shown[device("n1", 2).id].strangers == ("7 python",)
    missing = shown[device("n1", 3).id]
    assert (missing.state, missing.remedies) == (
        "failed", ("crm gpu forget GPU-n13-aaaa-bbbb", "crm gpu explain missing"),
    )  # fmt: skip
    one = ask(made.cib, "gpu.list", made.now, node="n2").answer
    assert isinstance(one, Devices)
    assert {each.node for each in one.devices} == {"n2"}
    assert codes(ask(made.cib, "gpu.list", made.now, node="n9")) == ["NO_SUCH_NODE"]


@pytest.mark.parametrize("word", ["GPU-n10-aaaa-bbbb", "GPU-n10", "gpu-n10-a", "n1:0000:1a:00.0"])
def test_a_device_is_found_by_its_name_its_beginning_or_its_place(word: str) -> None:
    answer = ask(cluster(1).cib, "gpu.show", 0, device=word).answer
    assert isinstance(answer, Devices)
    assert [each.id for each in answer.devices] == ["GPU-n10-aaaa-bbbb"]


def test_a_name_that_means_none_or_several_is_refused() -> None:
    cib = cluster(1).cib
    assert codes(ask(cib, "gpu.show", 0, device="GPU-n1")) == ["AMBIGUOUS"]
    for word in ("GPU-x", "n1:0000:99:00.0", "G"):
        assert codes(ask(cib, "gpu.show", 0, device=word)) == ["NO_SUCH_DEVICE"], word


def test_what_a_person_wants_of_a_device() -> None:
    made = cluster()
    name = device("n1", 0).id
    outcome = ask(made.cib, "gpu.drain", made.now, device=name)
    assert outcome.commands == (SteerDevice(N1, name, DeviceChange.DRAIN, "root@n1", "because"),)
    assert outcome.until is not None
    assert not outcome.until(made.cib, None)
    steered(made, DeviceChange.DRAIN, 0)
    assert codes(ask(made.cib, "gpu.drain", made.now, device=name)) == ["NOTHING_TO_DO"]
    made.settle()
    assert outcome.until(made.cib, None), "what used it has left"
    assert list(troubles(made.cib)) == [
        ("3/4 GPUs of n1 can be used: GPU-n10-aaaa is drained by root@n1", f"crm gpu clear {name}")
    ]
    assert ask(made.cib, "gpu.clear", made.now, device=name).commands
    steered(made, DeviceChange.CLEAR, 0)
    assert codes(ask(made.cib, "gpu.clear", made.now, device=name)) == ["NOTHING_TO_DO"]
    assert codes(ask(made.cib, "gpu.accept", made.now, device=name)) == ["NOTHING_TO_DO"]
    assert list(troubles(made.cib)) == []


def test_a_new_device_is_accepted_and_a_missing_one_forgotten() -> None:
    made = cluster(count=2, services=1)
    made.publish("n1", [device("n1", number) for number in range(3)])
    new = device("n1", 2).id
    made.publish("n1", [device("n1", number) for number in range(2)])
    assert "GPU-n12-aaaa is failed, missing" in next(iter(troubles(made.cib)))[0], "that it is new counts less"
    made.publish("n1", [device("n1", number) for number in range(3)])
    assert list(troubles(made.cib)) == [
        ("2/3 GPUs of n1 can be used: GPU-n12-aaaa is new and not accepted", f"crm gpu accept {new}")
    ]
    assert ask(made.cib, "gpu.accept", made.now, device=new).commands
    assert codes(ask(made.cib, "gpu.forget", made.now, device=new)) == ["DEVICE_IN_USE"]
    made.publish("n1", [])
    assert ask(made.cib, "gpu.forget", made.now, device=new).commands
    held = device("n1", 0).id
    assert made.cib.status.devices[N1].claims[held]
    assert codes(ask(made.cib, "gpu.forget", made.now, device=held)) == ["DEVICE_IN_USE"]


def test_what_status_says_of_several_and_of_all() -> None:
    made = cluster(0)
    made.publish("n1", [device("n1", number, DeviceState.FAILED, "lost: gone") for number in range(2)])
    assert list(troubles(made.cib)) == [
        ("0/4 GPUs of n1 can be used: 4 are not in order; GPU-n13-aaaa is failed, "
         "missing: its node does not see it any more",
         "crm gpu list n1")
    ]
    incarnation = made.cib.status.nodes[N2].incarnation
    assert incarnation is not None
    made.do(PublishDevices(N2, incarnation, (), "", "driver-not-loaded: the driver is not loaded"))
    assert list(troubles(made.cib))[1] == (
        "0/4 GPUs of n2 can be used: driver-not-loaded: the driver is not loaded", "crm gpu explain driver-not-loaded",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("services", "arguments", "lost", "count"),
    [
        (6, {"if_fails": "1", "what": "gpu"}, 0, 6),
        (8, {"if_fails": "gpu"}, 1, 8),
        (6, {"if_fails": "1", "what": "node"}, 2, 2),
        (4, {"if_fails": "node"}, 0, 2),
        (6, {"if_fails": "rack"}, 2, 2),
        (8, {}, 1, 8),
    ],
)
def test_what_a_failure_would_cost(services: int, arguments: dict[str, str], lost: int, count: int) -> None:
    made = cluster(services)
    answer = ask(made.cib, "gpu.capacity", made.now, **arguments).answer
    assert isinstance(answer, DeviceCapacity)
    assert len(answer.failures) == count
    assert max(len(each.not_running) for each in answer.failures) == lost
    assert answer.free == 8 - services
    assert all(each.moved or each.not_running for each in answer.failures)


def test_what_waits_already_is_said_and_is_no_failures_cost() -> None:
    made = cluster(9)
    answer = ask(made.cib, "gpu.capacity", made.now).answer
    assert isinstance(answer, DeviceCapacity)
    assert len(answer.waiting) == 1
    assert all(len(each.not_running) == 1 for each in answer.failures)


@pytest.mark.parametrize("arguments", [{"if_fails": "2", "what": "gpu"}, {"if_fails": "1"}, {"if_fails": "disk"}])
def test_a_failure_that_cannot_be_tried_is_refused(arguments: dict[str, str]) -> None:
    assert codes(ask(cluster(0).cib, "gpu.capacity", 0, **arguments)) == ["BAD_ARGUMENT"]


def test_history_needs_a_cluster() -> None:
    assert codes(ask(cluster(0).cib, "gpu.history", 0)) == ["NOT_OFFLINE"]


def recorded(made: ScheduledCluster, name: DeviceId, outcome: RecoveryOutcome, detail: str = "") -> None:
    known = made.cib.status.devices[N1]
    incarnation = made.cib.status.nodes[N1].incarnation
    assert incarnation is not None
    made.do(RecordRecovery(N1, incarnation, name, known.recoveries[name].number, outcome, detail))


def test_a_device_is_reset_by_a_persons_word_when_nothing_holds_it() -> None:
    made = cluster()
    held = device("n1", 0)
    refused = ask(made.cib, "gpu.reset", made.now, device=held.id)
    assert codes(refused) == ["DEVICE_NOT_RECOVERED"]
    assert "is held by s" in refused.reports[0].message
    assert refused.reports[0].remedy == f"let what holds it leave first: crm gpu drain {held.id} --wait"
    made = cluster(0)
    bad = replace(device("n1", 0, DeviceState.DRAIN, "xid-119: GSP"), rung="reset")
    made.publish("n1", [bad, *(device("n1", number) for number in range(1, 4))])
    assert next(iter(troubles(made.cib)))[1] == f"crm gpu reset {bad.id}"
    outcome = ask(made.cib, "gpu.reset", made.now, device=bad.id)
    assert outcome.commands == (BeginRecovery(N1, bad.id, Rung.RESET, "root@n1", "because"),)
    made.do(outcome.commands[0])
    assert outcome.until is not None
    assert not outcome.until(made.cib, None)
    assert codes(ask(made.cib, "gpu.accept", made.now, device=bad.id)) == ["DEVICE_NOT_RECOVERED"]
    assert "is recovered (reset) by root@n1: because" in next(iter(troubles(made.cib)))[0]
    recorded(made, bad.id, RecoveryOutcome.DONE)
    assert "has to prove that it is well" in next(iter(troubles(made.cib)))[0]
    recorded(made, bad.id, RecoveryOutcome.FAILED, "the test says: 7 errors")
    assert outcome.until(made.cib, None)
    text, remedy = next(iter(troubles(made.cib)))
    assert "is held after reset: the test says: 7 errors" in text
    assert remedy == f"crm gpu accept {bad.id}"
    shown = ask(made.cib, "gpu.show", made.now, device=bad.id).answer
    assert isinstance(shown, Devices)
    (one,) = shown.devices
    assert one.recovery is not None
    assert (one.recovery.phase, one.recovery.detail, one.rung) == ("held", "the test says: 7 errors", "reset")
    assert ask(made.cib, "gpu.accept", made.now, device=bad.id).commands


@pytest.mark.parametrize(
    ("outcome", "detail", "problem"),
    [
        (RecoveryOutcome.NOT_BEGUN, "nvidia-smi is not installed", "is as it was: nothing was done to it"),
        (RecoveryOutcome.FAILED, "exit code 3", "is held after reset: exit code 3"),
        (RecoveryOutcome.DONE, "", "has not proven yet that it is well"),
    ],
)
def test_who_waits_for_a_reset_learns_that_it_did_not_help(
    outcome: RecoveryOutcome, detail: str, problem: str
) -> None:
    made = cluster(0)
    bad = replace(device("n1", 0, DeviceState.DRAIN, "xid-119: GSP"), rung="reset")
    made.publish("n1", [bad])
    asked = ask(made.cib, "gpu.reset", made.now, device=bad.id)
    made.do(asked.commands[0])
    recorded(made, bad.id, outcome, detail)
    assert asked.until is not None
    assert asked.afterwards is not None
    is_over = asked.until(made.cib, None)
    assert is_over is (outcome is not RecoveryOutcome.DONE)
    (said,) = asked.afterwards(made.cib, is_over).reports
    assert said.message == f"device {bad.id} {problem}"


def test_who_waits_for_a_reset_that_helps_learns_nothing_more() -> None:
    made = cluster(0)
    made.publish("n1", [replace(device("n1", 0, DeviceState.DRAIN, "xid-119: GSP"), rung="reset")])
    asked = ask(made.cib, "gpu.reset", made.now, device=device("n1", 0).id)
    made.do(asked.commands[0])
    recorded(made, device("n1", 0).id, RecoveryOutcome.DONE)
    made.publish("n1", [device("n1", 0)])
    recorded(made, device("n1", 0).id, RecoveryOutcome.PROVEN)
    assert asked.until is not None
    assert asked.afterwards is not None
    assert asked.afterwards(made.cib, asked.until(made.cib, None)).reports == ()


def shown(made: ScheduledCluster, name: DeviceId) -> ShownDevice:
    answer = ask(made.cib, "gpu.show", made.now, device=name).answer
    assert isinstance(answer, Devices)
    return answer.devices[0]


def test_a_reload_concerns_all_that_hold_devices_of_the_node_and_a_reboot_names_it() -> None:
    made = cluster()
    bad = replace(device("n1", 3, DeviceState.FAILED, "driver-error: 999"), rung="reboot")
    made.publish("n1", [*(device("n1", number) for number in range(3)), bad])
    made.settle()
    (refused,) = ask(made.cib, "gpu.reset", made.now, device=bad.id, reload=True).reports
    assert refused.remedy == "it concerns all devices of n1, and 3 are held; let all leave: crm node standby n1"
    assert shown(made, bad.id).remedies[0] == "crm node fence n1, when nothing uses its devices"


def test_what_has_ended_on_a_device_needs_no_drain_and_keeps_a_missing_one_until_a_boot() -> None:
    made = cluster(1)
    made.publish("n1", [replace(device("n1", 0, DeviceState.DRAIN, "xid-119: GSP"), rung="reset")])
    assert shown(made, device("n1", 0).id).remedies[0] == "crm gpu drain GPU-n10-aaaa-bbbb --wait"
    stop = next(action for action in made.plan().graph.actions.values() if action.name == "stop")
    made.answer(made.order(stop), ExitCode.OK)
    one = shown(made, device("n1", 0).id)
    assert one.claims[0].is_over
    assert one.remedies == ("crm gpu explain xid-119",)
    made.publish("n1", [])
    (refused,) = ask(made.cib, "gpu.forget", made.now, device=one.id).reports
    assert "s0 has ended, and nobody can say whether it still uses the missing device" in refused.message
    assert refused.remedy == "the next boot of its node ends that"


def test_a_simulated_state_is_ended_where_it_was_begun() -> None:
    made = cluster(0)
    name = device("n1", 0).id
    made.publish("n1", [device("n1", 0, DeviceState.FAILED, "simulated: by crm gpu simulate-fail")])
    assert shown(made, name).remedies == (f"on n1: crm gpu simulate-fail {name} --end",)


def test_the_trouble_of_a_node_does_not_hide_what_is_wrong_with_one_device() -> None:
    made = cluster(0)
    incarnation = made.cib.status.nodes[N1].incarnation
    assert incarnation is not None
    seen = (device("n1", 0, DeviceState.FAILED, "lost: gone"), device("n1", 1), device("n1", 2))
    made.do(PublishDevices(N1, incarnation, seen, "1.0", "devices-missing: 3 of 4 declared are seen"))
    assert list(troubles(made.cib)) == [
        ("2/4 GPUs of n1 can be used: devices-missing: 3 of 4 declared are seen; 2 are not in order; "
         "GPU-n13-aaaa is failed, missing: its node does not see it any more", "crm gpu list n1"),
    ]  # fmt: skip


def test_the_history_of_a_device_has_reports_that_name_it_and_those_that_count_it_among_others() -> None:
    made = running()
    texts = {
        "n1": ("devices of n1: GPU-n10-aaaa-bbbb is failed", "devices of n1: GPU-n11-aaaa-bbbb is failed, 4 more"),
        "n2": ("devices of n2: GPU-n20-aaaa-bbbb is failed, 4 more",),
    }
    changes = [Change(ChangeKind.DEVICES_CHANGED, NodeName(node), None, text)
               for node, found in texts.items() for text in found]  # fmt: skip
    past = ListedPast(tuple(Event(index, WallTime(index), change) for index, change in enumerate(changes)))
    context = Context(cluster(0).cib, WallTime(0), "root@n1", live=made.live, past=past)
    answer = registry.run("gpu.history", {"device": "n1:0000:1a:00.0"}, context).answer
    assert isinstance(answer, Events)
    assert [each.text for each in answer.events] == list(texts["n1"])


def test_a_storm_says_who_has_to_look_and_a_person_ends_it() -> None:
    made = cluster(0)
    assert codes(ask(made.cib, "gpu.resume", made.now)) == ["NOTHING_TO_DO"]
    made.configure(configured(HEAD + "property gpu-recovery-reset=auto gpu-storm-devices=2"))
    bad = [replace(device("n1", number, DeviceState.DRAIN, "lost: gone"), rung="reset") for number in range(2)]
    made.publish("n1", bad)
    made.do(BeginRecovery(N1, bad[0].id, Rung.RESET, "policy", "lost: gone", is_automatic=True))
    text, remedy = next(iter(troubles(made.cib)))
    assert text == (
        "no device is recovered by policy: 4 devices of 1 node (n1) went bad at once; "
        "a person has to look for the common cause"
    )
    assert remedy == "crm gpu resume"
    assert ask(made.cib, "gpu.resume", made.now).commands == (EndDeviceStorm("root@n1", "because"),)
