"""Which fence device covers which node, and how far that is proven (safety.md §5)."""

from haclusterd.cib.activity import history_says_active
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import effective
from haclusterd.model.fencing import UNFENCED_MARK, DeviceProof, ProofState
from haclusterd.model.history import OperationRecord
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.watchdog import WATCHDOG
from haclusterd.scheduler.unpack.fencing_capability import (
    fencing_levels,
    usable_devices,
    usable_devices_by_node,
    watchdog_levels,
)

_ASKING = (ActionName.START, ActionName.MONITOR)


def devices_for(cib: Cib, node: NodeName) -> tuple[ResourceId, ...]:
    """Return the enabled devices that are configured for a node, and last its own watchdog, where that counts."""
    return (*usable_devices(cib.in_force, node), *_watchdog(cib, node))


def _watchdog(cib: Cib, node: NodeName) -> tuple[ResourceId, ...]:
    return tuple(device for level in watchdog_levels(cib.in_force, cib.status.nodes.get(node)) for device in level)


def weak_watchdogs(cib: Cib) -> dict[NodeName, str]:
    """Return the nodes that nothing but a weak watchdog silences, and why it is weak."""
    found = {}
    for name, member in sorted(cib.members.items()):
        status = cib.status.nodes.get(name)
        if member.is_witness or status is None or status.watchdog is None or not status.watchdog.weakness:
            continue
        if devices_for(cib, name) == (WATCHDOG,):
            found[name] = f"{status.watchdog.identity}: {status.watchdog.weakness}"
    return found


def nodes_without_device(cib: Cib) -> tuple[NodeName, ...]:
    """Return the members that run resources and that no device covers."""
    names = [name for name, member in sorted(cib.members.items()) if not member.is_witness]
    devices = usable_devices_by_node(cib.in_force, names)
    return tuple(name for name in names if not devices[name] and not _watchdog(cib, name))


def proof(cib: Cib, device: ResourceId, node: NodeName) -> DeviceProof | None:
    """Return the newest evidence about a device and a node; None: there is none.

    A device whose own monitor fails, wherever it is asked, is failing, whatever it once did.
    """
    return _answers_nobody(cib, device) or cib.status.proofs.get(f"{device}/{node}")


def _answers_nobody(cib: Cib, device: ResourceId) -> DeviceProof | None:
    """Judge a device by its start and monitors on the nodes that are there; None: it answers, or was never asked."""
    failures: list[tuple[OperationRecord, NodeName]] = []
    for name, status in sorted(cib.status.nodes.items()):
        history = status.histories.get(device) if status.state is NodeState.ONLINE else None
        if history is None:
            continue
        failed = [each for each in history.records.values() if each.is_failure and each.operation in _ASKING]
        if not failed and history_says_active(history):
            return None
        failures += [(record, name) for record in failed]
    if not failures:
        return None
    record, name = max(failures, key=lambda failure: failure[0].changed_at)
    reason = record.exit_reason or str(record.status)
    return DeviceProof(ProofState.FAILING, record.changed_at, f"its {record.operation} on {name} fails: {reason}")


def nodes_that_devices_fail(cib: Cib) -> tuple[tuple[NodeName, ResourceId, DeviceProof], ...]:
    """Return the members none of whose levels can succeed as far as is known, each with a device that fails it."""
    found = []
    for name, member in sorted(cib.members.items()):
        bad = [_bad_device(cib, level, name) for level in levels_of(cib, name)] if not member.is_witness else []
        if bad and all(each is not None for each in bad) and bad[0] is not None:
            found.append((name, *bad[0]))
    return tuple(found)


def _bad_device(cib: Cib, level: tuple[ResourceId, ...], node: NodeName) -> tuple[ResourceId, DeviceProof] | None:
    for device in level:
        found = proof(cib, device, node)
        if found is not None and found.state in (ProofState.FAILING, ProofState.LIED):
            return device, found
    return None


def levels_of(cib: Cib, node: NodeName) -> tuple[tuple[ResourceId, ...], ...]:
    """Return what fences a node, in the order in which it is tried."""
    entry, status = cib.in_force.nodes.get(node), cib.status.nodes.get(node)
    attributes = effective(entry.attributes) if entry is not None else {}
    attributes = {**attributes, **(status.attributes if status is not None else {})}
    return fencing_levels(cib.in_force, node, attributes) + watchdog_levels(cib.in_force, status)


def is_unfenced(cib: Cib, node: NodeName) -> bool:
    """Tell whether the devices that must let a node in have done so in its present incarnation."""
    status = cib.status.nodes.get(node)
    return status is not None and status.attributes.get(UNFENCED_MARK, "0") not in ("", "0")


def is_proven(cib: Cib, node: NodeName) -> bool:
    """Tell whether some device was seen to fence this node."""
    found = (proof(cib, device, node) for device in devices_for(cib, node))
    return any(each is not None and each.state is ProofState.TESTED for each in found)


def is_enabled(cib: Cib) -> bool:
    """Tell whether the cluster fences at all."""
    return ClusterProperties(cib.in_force).boolean("fencing-enabled")
