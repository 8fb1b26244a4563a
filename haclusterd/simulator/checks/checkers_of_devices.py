"""What must never be of devices, judged by what really uses them on the hosts, and by the claims in the log."""

from collections import Counter

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import IssueOrders
from haclusterd.model.cluster import Cib
from haclusterd.model.devices import DeviceClaim, DeviceId, NodeDevices, RecoveryPhase, Rung
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName
from haclusterd.ports.agents import AgentCall
from haclusterd.scheduler.unpack.management import unmanaged
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene, order_key
from haclusterd.simulator.hosts.devices import DeviceProcess, DeviceTruth, Recovering

STRANGER_US = 3_000_000
"""Who begins to use a device shortly before a start does so after its proof: nothing can know of that."""

KNOWN_AFTER_US = 5_000_000
"""The same of a recovery, which takes some seconds."""


class _OfDevices(Checker):
    def __init__(self, scene: Scene, log: Log, truth: DeviceTruth) -> None:
        super().__init__(scene, log)
        self.truth = truth

    def shares(self, order: str) -> int:
        """Return what the start of an order takes of each device; 0: it has them alone."""
        known = self.log.orders.get(OrderKey(order))
        return known.device_memory_mib if known is not None else 0


class DevicesAreHeldOnce(_OfDevices):
    """Nothing starts on a device that another process uses, but for what shares it, up to its memory (safety.md §11).

    That process may be another resource's, an earlier run's of the same resource, or nobody's.
    """

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action != ActionName.START or order_key(call, self.log) is None:
            return
        share = self.shares(call.key)
        for name in map(DeviceId, call.devices):
            users = self.truth.users(node, name)
            if self.truth.is_recovering(node, name):
                self.object_to(f"{call.resource} starts on {name} of {node}, which a recovery may still hit")
            for process in users:
                if self._is_in_the_way(process, call.resource, share):
                    text = f"{call.resource} starts on {name} of {node}, which {process.shown().text} uses"
                    self.object_to(f"{text}, of {process.resource or 'nobody'}")
            self._judge_memory(node, name, share, users)

    def _is_in_the_way(self, process: DeviceProcess, resource: ResourceId, share: int) -> bool:
        if process.resource is None or process.is_of_older_log:
            is_old = self.scene.world.now_us - process.since_us >= STRANGER_US
            return is_old and not share
        if process.resource == resource:
            return process.has_ended
        return not share or not self.shares(process.order)

    def _judge_memory(self, node: NodeName, name: DeviceId, share: int, users: tuple[DeviceProcess, ...]) -> None:
        cib = self.scene.applied_at(node)
        known = cib.status.devices.get(node) if cib is not None else None
        memory_mib = known.devices[name].memory_mib if known is not None and name in known.devices else 0
        taken = share + sum(self.shares(process.order) for process in users)
        if share and taken > memory_mib:
            self.object_to(f"{name} of {node} has {memory_mib} MiB, and {taken} are used")


class DevicesAreGivenOutFree(_OfDevices):
    """No device is given to a resource while a process of another one, that does not share it, lives on it (§11)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        if not isinstance(accepted.command, IssueOrders):
            return
        for order in accepted.command.orders:
            if order.action is not ActionName.START:
                continue
            for name in map(DeviceId, order.devices):
                for process in self.truth.users(order.node, name):
                    is_other = process.resource is not None and process.resource != order.resource
                    is_shared = order.device_memory_mib and self.shares(process.order)
                    if is_other and not is_shared and not process.is_of_older_log:
                        text = f"{name} of {order.node} is given to {order.resource}"
                        self.object_to(f"{text} while {process.shown().text}, of {process.resource}, uses it")


class WhatUsesDevicesHasClaims(_OfDevices):
    """While a process of a resource may use a device, a claim of that resource is on it (safety.md §11)."""

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        known = self.log.newest.status.devices.get(node, NodeDevices())
        for process in self.truth.processes:
            if process.node != node or process.resource is None or process.is_of_older_log:
                continue
            if not any(claim.resource == process.resource for claim in known.claims.get(process.device, ())):
                self.object_to(f"{process.resource} uses {process.device} of {node} without a claim")

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self.truth.another_log_begins()


class ClaimsAddUp(Checker):
    """No device is claimed by two that want it alone, and never more memory than it has (safety.md §11)."""

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        for node, known in applied.cib.status.devices.items():
            for name, claims in known.claims.items():
                self._judge(node, known, name, claims)

    def _judge(self, node: NodeName, known: NodeDevices, name: DeviceId, claims: tuple[DeviceClaim, ...]) -> None:
        if len(claims) > 1 and not all(claim.memory_mib for claim in claims):
            self.object_to(f"{name} of {node} is claimed by {' and '.join(claim.resource for claim in claims)}")
        device = known.devices.get(name)
        taken = sum(claim.memory_mib for claim in claims)
        if device is None or taken > device.memory_mib:
            self.object_to(f"of {name} of {node} {taken} MiB are claimed")


class GangsStartAtOnce(Checker):
    """The members of a gang that start do so by one entry of the log, with all their claims (0015-devices.md)."""

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        if not isinstance(accepted.command, IssueOrders):
            return
        starts: Counter[str] = Counter()
        sizes: dict[str, int] = {}
        for order in accepted.command.orders:
            if order.action is ActionName.START and "gang_size" in order.meta:
                name = order.resource.partition(":")[0]
                starts[name] += 1
                sizes[name] = int(order.meta["gang_size"])
        for name, count in starts.items():
            if count != sizes[name]:
                self.object_to(f"{count} of {sizes[name]} members of {name}'s gang start")


class RecoveriesHitNobody(_OfDevices):
    """No recovery hits a device that a process uses: a resource's, or one of which the node could know (§11)."""

    def __init__(self, scene: Scene, log: Log, truth: DeviceTruth) -> None:
        super().__init__(scene, log, truth)
        truth.when_hit.append(self._hit)

    def _hit(self, recovering: Recovering) -> None:
        for name in recovering.devices:
            for process in self.truth.users(recovering.node, name):
                is_old = self.scene.world.now_us - process.since_us >= KNOWN_AFTER_US
                if process.resource is not None or is_old:
                    text = f"{process.shown().text}, of {process.resource or 'nobody'}"
                    self.object_to(f"a recovery hits {name} of {recovering.node}, which {text}, uses")


class RecoveriesAndClaims(Checker):
    """Nothing claims what a recovery hits, and one node does one thing at a time (safety.md §11)."""

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        for node, known in applied.cib.status.devices.items():
            acting = [name for name, each in known.recoveries.items() if each.phase is RecoveryPhase.ACTING]
            if len(acting) > 1:
                self.object_to(f"{node} recovers {' and '.join(acting)} at once")
            for name in acting:
                rung = known.recoveries[name].rung
                is_alone = rung is Rung.RESET
                for held, standing in known.claims.items():
                    claims = [claim for claim in standing if rung is not Rung.REBOOT or not claim.is_over]
                    if claims and (held == name or not is_alone):
                        self.object_to(f"{name} of {node} is recovered while {claims[0].resource} claims {held}")
            self._judge_forgotten(node, known)

    def _judge_forgotten(self, node: NodeName, known: NodeDevices) -> None:
        for name in (*known.claims, *known.recoveries):
            if name not in known.devices:
                self.object_to(f"{name} of {node} is forgotten")


def judges_of_devices(scene: Scene, log: Log, truth: DeviceTruth) -> tuple[Checker, ...]:
    """Return all checkers of devices."""
    return (
        DevicesAreHeldOnce(scene, log, truth),
        DevicesAreGivenOutFree(scene, log, truth),
        WhatUsesDevicesHasClaims(scene, log, truth),
        ClaimsAddUp(scene, log),
        GangsStartAtOnce(scene, log),
        RecoveriesHitNobody(scene, log, truth),
        RecoveriesAndClaims(scene, log),
    )


def unequal_claims(cib: Cib, truth: DeviceTruth) -> str:
    """Say which claim has no holder, or which holder no claim, once all is quiet; empty when they are equal.

    Nobody looks whether what is unmanaged still lives, or may end it: its claim stands as long as its history does.
    """
    for node, known in cib.status.devices.items():
        holders = {claim.resource for claims in known.claims.values() for claim in claims}
        untouched = unmanaged(cib, node, holders, WallTime(0)) if holders else frozenset()
        for name, recovery in known.recoveries.items():
            return f"the recovery of {name} of {node} stands: {recovery.phase}"
        for name, claims in known.claims.items():
            for claim in claims:
                users = {process.resource for process in truth.users(node, name) if not process.has_ended}
                if claim.is_over:
                    return f"the claim of {claim.resource} on {name} of {node} is over, and stands"
                if claim.resource not in users and claim.resource not in untouched:
                    return f"{claim.resource} claims {name} of {node}, and does not use it"
    return ""
