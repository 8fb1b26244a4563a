"""The recovery of a node's devices: executes recorded intents, verifies their results, and starts what policy asks for.

Level-triggered: each step compares the CIB with what this process has done. It acts only on an intent that names its
own incarnation, once, and immediately after the node has confirmed that nothing uses what the action would hit. An
intent of an earlier incarnation may have been carried out or not. So whenever a daemon dies, the device was recovered
or not, and in either case must pass its checks before it is assigned again.
"""

from collections.abc import Iterator, Sequence

from haclusterd.cib.commands import BeginRecovery, RecordRecovery, RecoveryOutcome
from haclusterd.machines.effects import Effect, ExamineDevice, LookAtDevices, Propose, RecoverDevice, Scope
from haclusterd.machines.executing.device_proofs import FRESH_MS
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.device_recovery import objection_to_recovery, policy, return_after_ms, wanted_rung
from haclusterd.model.device_reports import DeviceUse, RecoveryAnswer
from haclusterd.model.devices import (
    DeviceId,
    DeviceKind,
    DeviceRecovery,
    DeviceState,
    NodeDevices,
    RecoveryPhase,
    Rung,
    is_at_least,
)
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

LOOK_MS = (500, 10_000)
"""Pause between a check that found a device in use and the next: the first, and the longest."""
ANSWER_MS = 10_000
"""A check without an answer after this time counts as lost."""
USERS_LEAVE_MS = 8_000
"""How long the users of a device may take to leave before an intent is given up."""
HELPS_WITHIN_MS = 120_000
"""A device that is not healthy this long after its recovery counts as not recovered."""
LEASE_MS = 1_000
"""Pause between two checks for a lease."""
POLICY_MS = 5_000
"""Pause between two attempts at a recovery that policy asks for and something forbids."""
PREFIX = "recovery:"
TEXT_MAX = 200


@dataclass(slots=True)
class _Progress:
    """What this process knows of one recovery."""

    since: Instant
    look_at: Instant
    asked_at: Instant | None = None
    look_key: str = ""
    """Of the newest check, which may be under way."""
    pause_ms: int = LOOK_MS[0]
    free_at: Instant | None = None
    obstacle: str = ""
    is_unknown: bool = False
    """The obstacle is that the use of a device is unknown."""
    has_acted: bool = False
    well_since: Instant | None = None
    is_testing: bool = False
    is_tested: bool = False
    answer: tuple[RecoveryOutcome, str] | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One recovery, as it is in the CIB and in this process."""

    node: NodeName
    cib: Cib
    known: NodeDevices
    name: DeviceId
    recovery: DeviceRecovery
    incarnation: Incarnation
    progress: _Progress
    moment: Moment

    @property
    def key(self) -> str:
        """The key of its actions."""
        return f"{PREFIX}{self.name}#{self.recovery.number}:{self.recovery.phase}"

    @property
    def is_free(self) -> bool:
        """Whether the newest check, a moment ago, found no user of what the action would hit."""
        free_at = self.progress.free_at
        return free_at is not None and elapsed_ms(free_at, self.moment.now) <= FRESH_MS

    def records(self, outcome: RecoveryOutcome, detail: str) -> Propose:
        """Return the proposal that records the outcome."""
        command = RecordRecovery(
            self.node, self.incarnation, self.name, self.recovery.number, outcome, detail[:TEXT_MAX]
        )
        return Propose(Scope.INCARNATION, f"{self.key}:{self.incarnation}", command)


class DeviceRecoveryMachine:
    """One node's recoveries; see the module."""

    def __init__(self, node: NodeName, rules: SafetyRules = ALL_RULES) -> None:
        self._node = node
        self._rules = rules
        self._progress: dict[tuple[DeviceId, int, RecoveryPhase], _Progress] = {}
        self._policy_at = Instant(0)
        self._due = NEVER
        self._looks = 0

    def reincarnated(self) -> None:
        """Start a new incarnation, which knows nothing of what the previous one has started."""
        self._progress.clear()

    def looked(self, key: str, use: DeviceUse, now: Instant) -> None:
        """Take the answer to a check: what uses its devices."""
        for progress in self._progress.values():
            if progress.asked_at is not None and key == progress.look_key:
                progress.asked_at = None
                progress.obstacle, progress.is_unknown = _obstacle(use), not any(use.users.values())
                progress.free_at = None if progress.obstacle else now
                progress.look_at = after(now, progress.pause_ms)
                progress.pause_ms = min(2 * progress.pause_ms, LOOK_MS[1])

    def answered(self, key: str, answer: RecoveryAnswer) -> None:
        """Take the result of an action or a test."""
        for (device, number, phase), progress in self._progress.items():
            if key != f"{PREFIX}{device}#{number}:{phase}":
                continue
            text = answer.text[:TEXT_MAX]
            if phase is RecoveryPhase.ACTING:
                is_not_begun = not answer.is_done and not answer.has_begun
                outcome = RecoveryOutcome.NOT_BEGUN if is_not_begun else RecoveryOutcome.FAILED
                progress.answer = (RecoveryOutcome.DONE if answer.is_done else outcome, text)
            elif answer.is_done:
                progress.is_testing, progress.is_tested = False, True
            else:
                progress.answer = (RecoveryOutcome.FAILED, f"the test says: {text}")

    def step(self, cib: Cib, incarnation: Incarnation, moment: Moment) -> Sequence[Effect]:
        """Advance the recoveries in the CIB, and start those that policy asks for."""
        self._due = NEVER
        status = cib.status.nodes.get(self._node)
        if status is None or status.state is not NodeState.ONLINE or status.incarnation != incarnation:
            self._progress.clear()
            return ()
        known = cib.status.devices.get(self._node)
        if known is None:
            return ()
        keys = {(name, each.number, each.phase) for name, each in known.recoveries.items()}
        self._progress = {key: each for key, each in self._progress.items() if key in keys}
        effects: list[Effect] = []
        for name, recovery in known.recoveries.items():
            key = (name, recovery.number, recovery.phase)
            progress = self._progress.setdefault(key, _Progress(moment.now, moment.now))
            if progress.asked_at is not None and elapsed_ms(progress.asked_at, moment.now) >= ANSWER_MS:
                progress.asked_at, progress.obstacle = None, "nobody has said whether it is used"
            case = _Case(self._node, cib, known, name, recovery, incarnation, progress, moment)
            if recovery.phase is RecoveryPhase.ACTING:
                effects += self._act(case)
            elif recovery.phase is RecoveryPhase.PROVING:
                effects += self._prove(case)
        return [*effects, *self._begin_by_policy(cib, known, incarnation, moment)]

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._due

    # -- acting -----------------------------------------------------------------------------------------------------

    def _act(self, case: _Case) -> Iterator[Effect]:
        progress, recovery, now = case.progress, case.recovery, case.moment.now
        if progress.answer is not None:
            yield case.records(*progress.answer)
        elif recovery.incarnation != case.incarnation:
            yield case.records(RecoveryOutcome.INTERRUPTED, "the daemon of its node ended meanwhile")
        elif recovery.rung is Rung.REBOOT or progress.has_acted:
            return
        elif not case.moment.has_lease:
            self._wake_at(after(now, LEASE_MS))
        elif not self._rules.device_is_free_at_recovery or case.is_free:
            progress.has_acted = True
            yield RecoverDevice(case.key, case.name, recovery.rung or Rung.RESET)
        elif progress.obstacle and elapsed_ms(progress.since, now) >= USERS_LEAVE_MS:
            hit = _hit(case.known, case.name, recovery.rung)
            is_hung = progress.is_unknown and any(case.known.devices[name].is_hung for name in hit)
            # A check that hangs will never prove the device free: this step cannot be taken, and the next one is tried.
            yield case.records(RecoveryOutcome.FAILED if is_hung else RecoveryOutcome.NOT_BEGUN, progress.obstacle)
        else:
            self._wake_at(after(progress.since, USERS_LEAVE_MS))
            yield from self._look(case)

    def _look(self, case: _Case) -> Iterator[Effect]:
        progress, now = case.progress, case.moment.now
        if progress.asked_at is not None:
            self._wake_at(after(progress.asked_at, ANSWER_MS))
        elif now < progress.look_at:
            self._wake_at(progress.look_at)
        else:
            self._looks += 1
            progress.asked_at, progress.look_key = now, f"{PREFIX}{case.name}/{self._looks}"
            self._wake_at(after(now, ANSWER_MS))
            yield LookAtDevices(progress.look_key, _hit(case.known, case.name, case.recovery.rung))

    # -- return to use ----------------------------------------------------------------------------------------------

    def _prove(self, case: _Case) -> Iterator[Effect]:
        progress, now = case.progress, case.moment.now
        if progress.answer is not None:
            yield case.records(*progress.answer)
            return
        if not self._is_well(case):
            progress.well_since = None
            yield from self._not_helped(case)
            return
        progress.well_since = now if progress.well_since is None else progress.well_since
        well_at = after(progress.well_since, return_after_ms(case.cib, case.known, case.name, case.moment.wall))
        if now < well_at:
            self._wake_at(well_at)
        elif progress.is_testing or case.known.claims.get(case.name):
            return
        elif case.is_free:
            yield from self._test(case)
        else:
            yield from self._look(case)

    @staticmethod
    def _is_well(case: _Case) -> bool:
        seen = case.known.devices.get(case.name)
        return seen is not None and not is_at_least(seen.state, DeviceState.UNKNOWN)

    def _not_helped(self, case: _Case) -> Iterator[Effect]:
        """Give up a device that is not healthy for long after its recovery."""
        if case.recovery.rung is None:
            return
        if elapsed_ms(case.progress.since, case.moment.now) < HELPS_WITHIN_MS:
            self._wake_at(after(case.progress.since, HELPS_WITHIN_MS))
            return
        seen = case.known.devices.get(case.name)
        why = f": {seen.reasons[0]}" if seen is not None and seen.reasons else ""
        yield case.records(RecoveryOutcome.FAILED, f"it is {seen.state if seen is not None else 'gone'}{why}")

    @staticmethod
    def _test(case: _Case) -> Iterator[Effect]:
        properties = ClusterProperties(case.cib.in_force)
        program = properties.text("gpu-burn-in")
        if program and not case.progress.is_tested:
            case.progress.is_testing, case.progress.free_at = True, None
            yield ExamineDevice(case.key, case.name, program, properties.duration_ms("gpu-burn-in-timeout"))
        else:
            yield case.records(RecoveryOutcome.PROVEN, f"{program} found nothing" if program else "")

    # -- policy -----------------------------------------------------------------------------------------------------

    def _begin_by_policy(
        self, cib: Cib, known: NodeDevices, incarnation: Incarnation, moment: Moment
    ) -> Iterator[Effect]:
        wanted = {
            name: rung
            for name, device in known.devices.items()
            if device.kind is DeviceKind.GPU and is_at_least(device.state, DeviceState.DRAIN)
            and (name not in known.recoveries or known.recoveries[name].phase is RecoveryPhase.HELD)
            and (rung := wanted_rung(known, device)) is not None and policy(cib, rung) == "auto"
        }  # fmt: skip
        if not wanted:
            return
        if moment.now < self._policy_at:
            self._wake_at(self._policy_at)
            return
        for name, rung in wanted.items():
            objection = objection_to_recovery(cib, self._node, name, rung, moment.wall, is_automatic=True)
            if objection is None or objection.is_storm:
                reason = next(iter(known.devices[name].reasons), "")
                command = BeginRecovery(self._node, name, rung, "policy", reason, is_automatic=True)
                self._policy_at = after(moment.now, POLICY_MS)
                yield Propose(Scope.INCARNATION, f"recover:{incarnation}", command)
                break
        self._wake_at(after(moment.now, POLICY_MS))

    def _wake_at(self, at: Instant) -> None:
        self._due = min(self._due, at)


def is_of_a_recovery(key: str) -> bool:
    """Return whether a check was requested by this module."""
    return key.startswith(PREFIX)


def _hit(known: NodeDevices, name: DeviceId, rung: Rung | None) -> tuple[DeviceId, ...]:
    """Return what an action would hit: the device and its instances, or all devices that the node sees."""
    return tuple(
        each.id
        for each in known.devices.values()
        if name in (each.id, each.parent) or (rung is Rung.RELOAD and not each.is_missing)
    )


def _obstacle(use: DeviceUse) -> str:
    for device, users in use.users.items():
        if users:
            return f"device {device} is used by {users[0].text}"
    return f"nobody can say whether device {use.unknown[0]} is used" if use.unknown else ""
