"""A node's devices: publishes what its watcher sees, and proves that ended resources no longer use them.

Level-triggered: each step compares the newest report and the ended claims with the CIB, so a daemon that starts in the
middle continues correctly. What was proposed is in the CIB, or is proposed again.

Invariant: only changes are proposed, at most one per `PUBLISH_MS`; new strangers, which come with every short job, at
most once per `STRANGERS_MS`. A claim is proven only by an answer to a question that was asked after the claim ended.
"""

from collections.abc import Iterator, Mapping, Sequence

from haclusterd.cib.commands import ProvenClaim, PublishDevices, ReleaseDevices
from haclusterd.machines.effects import Effect, LookAtDevices, Note, Propose, Scope
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.device_reports import DevicesReport, DeviceUse, DeviceUser, obstacle_to_release
from haclusterd.model.devices import DEVICES_MAX, Device, DeviceId, DeviceState, NodeDevices
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.records import dataclass, replace

PUBLISH_MS = 1_000
STRANGERS_MS = 10_000
LOOK_MS = (100, 5_000)
"""Pause between two checks of a device that is not free yet: the first, and the longest."""
LEFTOVER_MS = 2_000
"""A device that is still in use this long after the end of its claim is reported to administrators."""
ANSWER_MS = 10_000
"""A check without an answer after this time counts as lost."""
STRANGERS_MAX = 8
TEXT_MAX = 120


@dataclass(slots=True)
class _Ending:
    """A claim that has ended, and what is known of its device since."""

    since: Instant
    look_at: Instant
    pause_ms: int = LOOK_MS[0]
    obstacle: str = ""
    users: tuple[str, ...] = ()
    is_proven: bool = False
    is_noted: bool = False


@dataclass(slots=True)
class _Barred:
    """A device that a start waits for, because something uses it."""

    since: Instant
    users: tuple[DeviceUser, ...]


class DevicesMachine:
    """One node's devices; see the module."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._report: DevicesReport | None = None
        self._users: dict[DeviceId, tuple[DeviceUser, ...]] = {}
        """Users of devices that were checked since the newest report."""
        self._published_at: Instant | None = None
        self._publish_at = NEVER
        self._endings: dict[ProvenClaim, _Ending] = {}
        self._barred: dict[DeviceId, _Barred] = {}
        self._looks = 0
        self._asked: tuple[str, tuple[ProvenClaim, ...], Instant] | None = None
        """The check under way: its key, its subject, and since when."""
        self._answer: tuple[tuple[ProvenClaim, ...], DeviceUse] | None = None

    def reincarnated(self) -> None:
        """Start a new incarnation: proposals of the previous one may be lost."""
        self._endings.clear()
        self._barred.clear()
        self._asked = self._answer = self._published_at = None

    def reported(self, report: DevicesReport) -> None:
        """Take the watcher's report."""
        self._report = report
        self._users.clear()

    def looked(self, key: str, use: DeviceUse) -> None:
        """Take the answer to a check: what uses its devices."""
        if self._asked is not None and self._asked[0] == key:
            self._answer = (self._asked[1], use)
            self._users |= {claim.device: tuple(use.users.get(claim.device, ())) for claim in self._asked[1]}
            for claim in self._asked[1]:
                if not _is_used(use, claim.device):
                    self._barred.pop(claim.device, None)
            self._asked = None

    def seen_before_start(self, devices: Sequence[DeviceId], use: DeviceUse, now: Instant) -> None:
        """Take what uses the devices of a waiting start; a use that lasts long is reported to administrators.

        The scheduler assigns no device that a stranger uses, so the next plan chooses another one.
        """
        for device in devices:
            if use.users.get(device):
                barred = self._barred.setdefault(device, _Barred(now, ()))
                barred.users = tuple(use.users[device])
            elif not _is_used(use, device):
                self._barred.pop(device, None)

    def step(self, cib: Cib, incarnation: Incarnation, now: Instant) -> Sequence[Effect]:
        """Propose what has changed and what is proven; request checks of what is not proven yet."""
        status = cib.status.nodes.get(self._node)
        if status is None or status.state is not NodeState.ONLINE or status.incarnation != incarnation:
            self._publish_at = NEVER
            self._endings.clear()
            return ()
        known = cib.status.devices.get(self._node, NodeDevices())
        self._follow_claims(known, now)
        effects = list(self._take_answer(known, now))
        effects += self._release(incarnation)
        effects += self._look(now)
        effects += self._publish(known, incarnation, now)
        return effects

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        if self._asked is not None:
            return min(self._publish_at, after(self._asked[2], ANSWER_MS))
        looks = (ending.look_at for ending in self._endings.values() if not ending.is_proven)
        return min(self._publish_at, min(looks, default=NEVER))

    # -- ended claims -----------------------------------------------------------------------------------------------

    def _follow_claims(self, known: NodeDevices, now: Instant) -> None:
        over = set(_over(known))
        self._endings = {claim: ending for claim, ending in self._endings.items() if claim in over}
        self._barred = {device: each for device, each in self._barred.items() if known.claims.get(device)}
        for claim in _over(known):
            self._endings.setdefault(claim, _Ending(now, now))
        if self._asked is not None and elapsed_ms(self._asked[2], now) >= ANSWER_MS:
            self._asked = None

    def _take_answer(self, known: NodeDevices, now: Instant) -> Iterator[Effect]:
        if self._answer is None:
            return
        (claims, use), self._answer = self._answer, None
        for claim in claims:
            ending = self._endings.get(claim)
            if ending is None:
                continue
            standing = known.claims.get(claim.device, ())
            ending.obstacle = obstacle_to_release(use, claim.device, claim.resource, standing)
            ending.users = tuple(user.text for user in use.users.get(claim.device, ()))
            ending.is_proven = not ending.obstacle
            ending.look_at = after(now, ending.pause_ms)
            ending.pause_ms = min(ending.pause_ms * 2, LOOK_MS[1])
            if ending.obstacle and not ending.is_noted and self._is_leftover(ending, now):
                ending.is_noted = True
                yield Note("device-not-free", f"{claim.resource} has ended, and {ending.obstacle}")

    @staticmethod
    def _is_leftover(ending: _Ending, now: Instant) -> bool:
        return elapsed_ms(ending.since, now) >= LEFTOVER_MS

    def _release(self, incarnation: Incarnation) -> list[Effect]:
        proven = tuple(claim for claim, ending in self._endings.items() if ending.is_proven)
        if not proven:
            return []
        command = ReleaseDevices(self._node, incarnation, proven)
        return [Propose(Scope.INCARNATION, f"release:{incarnation}:{proven[0].device}:{proven[0].order}", command)]

    def _look(self, now: Instant) -> list[Effect]:
        due = [claim for claim, ending in self._endings.items() if not ending.is_proven and ending.look_at <= now]
        if self._asked is not None or not due:
            return []
        self._looks += 1
        key = f"release:{self._looks}"
        self._asked = (key, tuple(due), now)
        return [LookAtDevices(key, tuple(sorted({claim.device for claim in due})))]

    # -- observed devices -------------------------------------------------------------------------------------------

    def _publish(self, known: NodeDevices, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self._publish_at = NEVER
        wanted = self._wanted(known, incarnation, now)
        if wanted is None or _shows(known, wanted):
            return []
        pause_ms = STRANGERS_MS if _are_only_more_strangers(known, wanted) else PUBLISH_MS
        due = now if self._published_at is None else after(self._published_at, pause_ms)
        if now < due:
            self._publish_at = due
            return []
        self._published_at = now
        self._publish_at = after(now, PUBLISH_MS)
        return [Propose(Scope.INCARNATION, f"devices:{incarnation}", wanted)]

    def _wanted(self, known: NodeDevices, incarnation: Incarnation, now: Instant) -> PublishDevices | None:
        report = self._report
        if report is None or not (report.devices or report.trouble or known.devices or known.trouble):
            return None
        devices = tuple(
            replace(device, strangers=self._strangers(known, device, report, now)) for device in _sane(report.devices)
        )
        return PublishDevices(self._node, incarnation, devices, report.driver[:TEXT_MAX], report.trouble[:TEXT_MAX])

    def _strangers(
        self, known: NodeDevices, device: Device, report: DevicesReport, now: Instant
    ) -> tuple[str, ...]:
        """Return the processes that use a device without a claim, or long after their claim ended."""
        holders = {str(claim.resource) for claim in known.claims.get(device.id, ())}
        found = {*device.strangers}
        for user in self._users.get(device.id, report.users.get(device.id, ())):
            if user.resource not in holders if user.resource else not holders:
                found.add(user.text)
        for claim, ending in self._endings.items():
            if claim.device == device.id and ending.obstacle and self._is_leftover(ending, now):
                found.update(ending.users)
        barred = self._barred.get(device.id)
        if barred is not None and elapsed_ms(barred.since, now) >= LEFTOVER_MS:
            sharers = {claim.resource for claim in known.claims.get(device.id, ()) if claim.memory_mib}
            found.update(
                user.text for user in barred.users if user.resource not in sharers and (user.resource or not sharers)
            )
        return tuple(sorted(text[:TEXT_MAX] for text in found))[:STRANGERS_MAX]


def _is_used(use: DeviceUse, device: DeviceId) -> bool:
    """Return whether something uses a device, or that is unknown."""
    return bool(use.users.get(device)) or device in use.unknown


def _over(known: NodeDevices) -> Iterator[ProvenClaim]:
    for device, standing in known.claims.items():
        for claim in standing:
            if claim.is_over:
                yield ProvenClaim(device, claim.resource, claim.order)


def _sane(devices: Sequence[Device]) -> Iterator[Device]:
    """Yield each device once, in order of ids; if two devices have the same id, both are left out as ambiguous."""
    by_id: dict[DeviceId, Device] = {}
    for device in devices:
        twice = ("uuid-twice: the driver shows two devices with this id",)
        by_id[device.id] = replace(device, state=DeviceState.FAILED, reasons=twice) if device.id in by_id else device
    for name in sorted(by_id)[:DEVICES_MAX]:
        yield by_id[name]


def _shows(known: NodeDevices, wanted: PublishDevices) -> bool:
    """Return whether the CIB already has what is to be published."""
    seen: Mapping[DeviceId, Device] = {device.id: device for device in wanted.devices}
    return (
        (known.driver, known.trouble) == (wanted.driver, wanted.trouble)
        and all(known.devices.get(name) == device for name, device in seen.items())
        and all(device.is_missing for name, device in known.devices.items() if name not in seen)
    )


def _are_only_more_strangers(known: NodeDevices, wanted: PublishDevices) -> bool:
    """Return whether the only difference is more strangers; one that left is urgent, because starts wait for it."""
    before = {name: frozenset(device.strangers) for name, device in known.devices.items()}
    has_fewer = any(before.get(device.id, frozenset()) - set(device.strangers) for device in wanted.devices)
    is_rest_shown = _shows(_without_strangers(known), replace(wanted, devices=_bare(wanted.devices)))
    return is_rest_shown and not has_fewer


def _without_strangers(known: NodeDevices) -> NodeDevices:
    return replace(known, devices={name: replace(device, strangers=()) for name, device in known.devices.items()})


def _bare(devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(replace(device, strangers=()) for device in devices)
