"""What a node does about its devices: once, when nothing uses them, and no longer than until they are proven well."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.commands import BeginRecovery, RecordRecovery, RecoveryOutcome
from haclusterd.machines.effects import Effect, ExamineDevice, LookAtDevices, RecoverDevice
from haclusterd.machines.executing.device_recovery import (
    ANSWER_MS,
    FRESH_MS,
    HELPS_WITHIN_MS,
    POLICY_MS,
    USERS_LEAVE_MS,
    DeviceRecoveryMachine,
)
from haclusterd.machines.moment import Moment
from haclusterd.model.device_recovery import RETURN_MS_MIN
from haclusterd.model.device_reports import DeviceUse, DeviceUser, RecoveryAnswer
from haclusterd.model.devices import Device, DeviceState, RecoveryPhase, Rung
from haclusterd.model.ids import Incarnation
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.records import replace
from tests.unit.cib.claimed_devices import A, B, publish
from tests.unit.cib.recovered_devices import bad, begin, having, phase
from tests.unit.situations import N2, Cluster, life

FREE = DeviceUse()
USED = DeviceUse(users={A: (DeviceUser("4711 python"),)})
DONE = RecoveryAnswer(is_done=True, text="done")
FAILED = RecoveryAnswer(is_done=False, text="no way")
DECLINED = RecoveryAnswer(is_done=False, text="in use", has_begun=False)


class Node:
    """n2 with a device that has to be drained, in a cluster whose CIB takes what it proposes."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.must(publish(bad(), Device(B)))
        self.machine = DeviceRecoveryMachine(N2)
        self.incarnation: Incarnation = life(N2)
        self.now = 1000
        self.has_lease = True
        self.effects: Sequence[Effect] = ()

    def step(self, span_ms: int = 0) -> list[commands.Command]:
        """Let time pass; return what was proposed, which is in the CIB afterwards."""
        self.now += span_ms
        until = Instant(self.now + 1000 if self.has_lease else self.now)
        moment = Moment(Instant(self.now), WallTime(1000 * self.cluster.index), until)
        self.effects = self.machine.step(self.cluster.cib, self.incarnation, moment)
        return self.cluster.take(self.effects)

    def of(self, kind: type[Effect]) -> list[Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def looks(self, use: DeviceUse) -> LookAtDevices:
        """Answer the look that it has asked for in its newest step."""
        (look,) = self.of(LookAtDevices)
        assert isinstance(look, LookAtDevices)
        self.machine.looked(look.key, use, Instant(self.now))
        return look

    def acts(self, answer: RecoveryAnswer) -> list[commands.Command]:
        """Let it find the device free and act; answer; return what it says then."""
        self.step()
        self.looks(FREE)
        self.step()
        (act,) = self.of(RecoverDevice)
        assert isinstance(act, RecoverDevice)
        self.machine.answered(act.key, answer)
        return self.step()

    def proves(self) -> None:
        """Have the device recovered, and well again."""
        self.cluster.must(begin())
        self.acts(DONE)
        self.cluster.must(publish(Device(A), Device(B)))

    def restarts(self) -> None:
        self.machine = DeviceRecoveryMachine(N2)
        self.incarnation = life(N2, token=2)
        self.cluster.must(commands.Join(N2, self.incarnation))


@pytest.fixture
def node() -> Node:
    return Node()


def said(proposed: list[commands.Command]) -> list[RecoveryOutcome]:
    return [each.outcome for each in proposed if isinstance(each, RecordRecovery)]


# -- acting -----------------------------------------------------------------------------------------------------------


def test_without_an_intent_nothing_is_done(node: Node) -> None:
    assert node.step() == []
    assert (node.effects, node.machine.deadline()) == ((), NEVER) or node.effects == []


def test_it_acts_once_and_only_after_a_look_has_found_nothing(node: Node) -> None:
    node.cluster.must(begin())
    node.step()
    assert node.looks(FREE).devices == (A,)
    node.step()
    assert [each.rung for each in node.of(RecoverDevice) if isinstance(each, RecoverDevice)] == [Rung.RESET]
    node.step(60_000)
    assert node.of(RecoverDevice) == []


@pytest.mark.parametrize("use", [USED, DeviceUse(unknown=(A,))])
def test_what_is_used_or_unknown_is_left_as_it_is(node: Node, use: DeviceUse) -> None:
    node.cluster.must(begin())
    proposed = _waits_in_vain(node, use)
    assert said(proposed) == [RecoveryOutcome.NOT_BEGUN]
    assert phase(node.cluster) is None


@pytest.mark.parametrize(
    ("use", "outcome"),
    [
        (DeviceUse(unknown=(A,)), RecoveryOutcome.FAILED),
        (DeviceUse(users=USED.users, unknown=(A,)), RecoveryOutcome.NOT_BEGUN),
    ],
)
def test_what_hangs_goes_on_to_the_next_rung(node: Node, use: DeviceUse, outcome: RecoveryOutcome) -> None:
    hung = replace(bad(state=DeviceState.FAILED), reasons=("hang-lasts: it has not answered for long",))
    node.cluster.must(publish(hung, Device(B)))
    having(node.cluster, gpu_recovery_reload="auto")
    node.cluster.must(begin())
    assert said(_waits_in_vain(node, use)) == [outcome]
    later = [each.rung for each in node.step(POLICY_MS) if isinstance(each, BeginRecovery)]
    assert later == ([Rung.RELOAD] if outcome is RecoveryOutcome.FAILED else [])


def _waits_in_vain(node: Node, use: DeviceUse) -> list[commands.Command]:
    proposed: list[commands.Command] = []
    while not proposed:
        proposed = node.step()
        assert node.of(RecoverDevice) == []
        if node.of(LookAtDevices):
            node.looks(use)
        node.now = min(node.machine.deadline(), node.now + USERS_LEAVE_MS)
    return proposed


def test_a_look_that_is_too_old_is_no_proof(node: Node) -> None:
    node.cluster.must(begin())
    node.step()
    node.looks(FREE)
    node.step(FRESH_MS + 1)
    assert node.of(RecoverDevice) == []
    assert node.of(LookAtDevices)


def test_the_answer_to_another_look_is_no_proof(node: Node) -> None:
    node.cluster.must(begin())
    node.step()
    (look,) = node.of(LookAtDevices)
    assert isinstance(look, LookAtDevices)
    node.machine.looked(f"{look.key}0", FREE, Instant(node.now))
    node.step()
    assert node.of(RecoverDevice) == []


def test_without_a_lease_it_does_not_act(node: Node) -> None:
    node.cluster.must(begin())
    node.has_lease = False
    node.step()
    assert node.effects == []
    node.has_lease = True
    node.step(1000)
    node.looks(FREE)
    node.has_lease = False
    node.step()
    assert node.of(RecoverDevice) == []


def test_a_reload_looks_at_every_device_of_the_node(node: Node) -> None:
    node.cluster.must(begin(rung=Rung.RELOAD))
    node.step()
    assert node.looks(DeviceUse(users={B: (DeviceUser("7 x"),)})).devices == (A, B)
    node.step()
    assert node.of(RecoverDevice) == []


@pytest.mark.parametrize(
    ("answer", "outcome", "then"),
    [
        (DONE, RecoveryOutcome.DONE, RecoveryPhase.PROVING),
        (FAILED, RecoveryOutcome.FAILED, RecoveryPhase.HELD),
        (DECLINED, RecoveryOutcome.NOT_BEGUN, None),
    ],
)
def test_what_came_of_it_is_said(
    node: Node, answer: RecoveryAnswer, outcome: RecoveryOutcome, then: RecoveryPhase | None
) -> None:
    node.cluster.must(begin())
    assert said(node.acts(answer)) == [outcome]
    assert phase(node.cluster) == then


def test_a_later_life_does_not_act_on_an_older_intent(node: Node) -> None:
    node.cluster.must(begin())
    node.step()
    node.restarts()
    assert said(node.step()) == [RecoveryOutcome.INTERRUPTED]
    assert node.of(RecoverDevice) == []
    assert phase(node.cluster) is RecoveryPhase.PROVING


def test_a_node_that_is_not_online_does_nothing(node: Node) -> None:
    node.cluster.must(begin())
    node.cluster.lose(N2)
    assert (node.step(), node.effects) == ([], ())


# -- the way back -----------------------------------------------------------------------------------------------------


def test_a_device_is_proven_after_it_was_well_for_a_time_and_nothing_uses_it(node: Node) -> None:
    node.proves()
    assert node.step() == []
    assert node.step(RETURN_MS_MIN - 1) == []
    assert node.of(LookAtDevices) == []
    node.step(1)
    node.looks(USED)
    assert node.step() == []
    node.now = node.machine.deadline()
    node.step()
    node.looks(FREE)
    assert said(node.step()) == [RecoveryOutcome.PROVEN]
    assert phase(node.cluster) is None


def test_a_device_that_is_bad_again_begins_to_be_well_from_then_on(node: Node) -> None:
    node.proves()
    node.step()
    node.cluster.must(publish(bad(), Device(B)))
    node.step(RETURN_MS_MIN)
    assert node.of(LookAtDevices) == []
    node.cluster.must(publish(Device(A), Device(B)))
    node.step(1)
    node.step(RETURN_MS_MIN - 1)
    assert node.of(LookAtDevices) == []
    node.step(1)
    assert node.of(LookAtDevices)


def test_what_did_not_help_is_held(node: Node) -> None:
    node.cluster.must(begin())
    node.acts(DONE)
    assert node.step() == []
    assert said(node.step(HELPS_WITHIN_MS)) == [RecoveryOutcome.FAILED]
    assert phase(node.cluster) is RecoveryPhase.HELD
    assert "it is drain: xid-119" in node.cluster.cib.status.devices[N2].recoveries[A].detail


@pytest.mark.parametrize(
    ("answer", "outcome", "then"),
    [(DONE, RecoveryOutcome.PROVEN, None), (FAILED, RecoveryOutcome.FAILED, RecoveryPhase.HELD)],
)
def test_the_administrators_test_has_the_last_word(
    node: Node, answer: RecoveryAnswer, outcome: RecoveryOutcome, then: RecoveryPhase | None
) -> None:
    having(node.cluster, gpu_burn_in="/opt/burn-in", gpu_burn_in_timeout="5min")
    node.proves()
    node.step()
    node.step(RETURN_MS_MIN)
    node.looks(FREE)
    assert node.step() == []
    (test,) = node.of(ExamineDevice)
    assert isinstance(test, ExamineDevice)
    assert (test.device, test.program, test.timeout_ms) == (A, "/opt/burn-in", 300_000)
    assert (node.step(60_000), node.effects) == ([], [])
    node.machine.answered(test.key, answer)
    proposed = node.step()
    if answer.is_done:
        assert proposed == [], "what the test has left behind is looked for first"
        node.looks(FREE)
        proposed = node.step()
    assert said(proposed) == [outcome]
    assert phase(node.cluster) == then


def test_a_lost_look_is_asked_for_again(node: Node) -> None:
    node.proves()
    node.step()
    node.step(RETURN_MS_MIN)
    first = node.of(LookAtDevices)
    node.step(ANSWER_MS)
    assert node.of(LookAtDevices) != first
    assert node.of(LookAtDevices)


# -- policy -----------------------------------------------------------------------------------------------------------


def test_policy_begins_what_the_fault_wants(node: Node) -> None:
    assert node.step() == []
    having(node.cluster, gpu_recovery_reset="auto")
    assert node.step() == [BeginRecovery(N2, A, Rung.RESET, "policy", "xid-119: it is drain", is_automatic=True)]
    assert phase(node.cluster) is RecoveryPhase.ACTING


def test_policy_goes_on_with_the_next_rung_that_it_allows(node: Node) -> None:
    having(node.cluster, gpu_recovery_reset="auto", gpu_recovery_reload="auto")
    node.step()
    node.acts(FAILED)
    assert [each.rung for each in node.step(POLICY_MS) if isinstance(each, BeginRecovery)] == [Rung.RELOAD]


def test_policy_waits_for_what_holds_a_device_and_looks_again(node: Node) -> None:
    having(node.cluster, gpu_recovery_reset="auto")
    node.cluster.must(publish(bad(strangers=("7 x",)), Device(B)))
    assert node.step() == []
    assert node.machine.deadline() == node.now + POLICY_MS
    node.cluster.must(publish(bad(state=DeviceState.FAILED), Device(B)))
    assert len(node.step(POLICY_MS)) == 1


def test_a_storm_is_recorded_once(node: Node) -> None:
    having(node.cluster, gpu_recovery_reset="auto", gpu_storm_devices="2")
    node.cluster.must(publish(bad(), bad(B)))
    assert len(node.step()) == 1
    assert node.cluster.cib.status.device_storm is not None
    assert node.step(POLICY_MS) == []
