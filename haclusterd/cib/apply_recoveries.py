"""`apply` for the recovery of devices: the intent before any action, and the result (safety.md §11).

Invariant: while a recovery is recorded, nothing new claims its device; and none begins while anything claims what it
would hit. So a device that a node finds free just before it acts stays free of resources until the recovery is over.
"""

from collections.abc import Mapping

from haclusterd.cib import commands
from haclusterd.cib.apply_devices import with_devices
from haclusterd.cib.apply_nodes import request_fence
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import RecoveryOutcome
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_status
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.device_recovery import objection_to_recovery, with_recovery
from haclusterd.model.devices import (
    DeviceId,
    DeviceRecovery,
    DeviceStorm,
    NodeDevices,
    RecoveryPhase,
    Rung,
)
from haclusterd.model.records import replace

_DONE_BY = {Rung.RESET: "is reset", Rung.RELOAD: "has its driver loaded again", Rung.REBOOT: "has its node fenced"}


def begin_recovery(cib: Cib, command: commands.BeginRecovery, entry: Entry) -> Verdict:
    """Record the intent: from now on nothing claims the device, and its node may act."""
    name, node = command.device, command.node
    objection = objection_to_recovery(cib, node, name, command.rung, entry.at, is_automatic=command.is_automatic)
    if objection is not None and objection.is_storm:
        storm = DeviceStorm(entry.at, objection.text.partition(": ")[2])
        text = f"no device is recovered without a person's word: {storm.text}"
        stormy = with_status(cib, replace(cib.status, device_storm=storm))
        return accept(stormy, change(ChangeKind.DEVICE_STORM, text, node=node))
    if objection is not None and entry.rules.recovery_needs_no_claim:
        return refuse(cib, RefusalCode.DEVICE_NOT_FREE, f"{name} of {node} {objection.text}")
    known, status = cib.status.devices.get(node), cib.status.nodes.get(node)
    if known is None or name not in known.devices or status is None or status.incarnation is None:
        return refuse(cib, RefusalCode.UNKNOWN_DEVICE, f"{node} has no device {name}")
    recovery = DeviceRecovery(
        known.last_recovery + 1,
        RecoveryPhase.ACTING,
        command.rung,
        status.incarnation,
        command.author,
        entry.at,
        command.reason,
        is_suspect=name in known.recoveries,
    )
    made = with_devices(cib, node, with_recovery(known, name, recovery))
    text = f"{name} of {node} {_DONE_BY[command.rung]}{by(command.author, command.reason)}"
    begun = change(ChangeKind.DEVICE_RECOVERY_BEGUN, text, node=node)
    if command.rung is not Rung.REBOOT:
        return accept(made, begun)
    fence = commands.RequestFence(node, status.incarnation, command.author, f"{name}: {command.reason}")
    verdict = request_fence(made, fence, entry)
    return verdict if verdict.refusal is not None else replace(verdict, changes=(begun, *verdict.changes))


def record_recovery(cib: Cib, command: commands.RecordRecovery, entry: Entry) -> Verdict:
    """Record a live node's report about the recorded recovery."""
    status = cib.status.nodes.get(command.node)
    if status is None or status.state is not NodeState.ONLINE or status.incarnation != command.incarnation:
        return refuse(cib, RefusalCode.OLD_INCARNATION, f"{command.node} is not online in that incarnation")
    known = cib.status.devices.get(command.node, NodeDevices())
    recovery = known.recoveries.get(command.device)
    if recovery is None or recovery.number != command.number:
        return accept(cib)
    after = _after(recovery, command)
    if after is recovery:
        return accept(cib)
    recoveries: Mapping[DeviceId, DeviceRecovery] = {
        name: each for name, each in {**known.recoveries, command.device: after}.items() if each is not None
    }
    text = f"{command.device} of {command.node} {_said(recovery, after, command)}"
    made = with_devices(cib, command.node, replace(known, recoveries=recoveries))
    return accept(made, change(ChangeKind.DEVICE_RECOVERY_ENDED, text, node=command.node))


def _after(recovery: DeviceRecovery, command: commands.RecordRecovery) -> DeviceRecovery | None:
    """Return the recovery after a report; None: it is over."""
    outcome, phase = command.outcome, recovery.phase
    if phase is RecoveryPhase.PROVING:
        if outcome is RecoveryOutcome.PROVEN:
            return None
        is_held = outcome is RecoveryOutcome.FAILED
        return replace(recovery, phase=RecoveryPhase.HELD, detail=command.detail) if is_held else recovery
    if phase is RecoveryPhase.HELD or outcome is RecoveryOutcome.PROVEN:
        return recovery
    if outcome is RecoveryOutcome.NOT_BEGUN and recovery.incarnation == command.incarnation:
        held = replace(recovery, phase=RecoveryPhase.HELD, detail=command.detail)
        return held if recovery.is_suspect else None
    is_failed = outcome is RecoveryOutcome.FAILED
    return replace(
        recovery, phase=RecoveryPhase.HELD if is_failed else RecoveryPhase.PROVING, detail=command.detail
    )


def _said(recovery: DeviceRecovery, after: DeviceRecovery | None, command: commands.RecordRecovery) -> str:
    why = f": {command.detail}" if command.detail else ""
    rung = recovery.rung or "return"
    if after is None:
        is_proven = command.outcome is RecoveryOutcome.PROVEN
        return f"has proven to be well{why}" if is_proven else f"is left as it is, {rung} has not begun{why}"
    if after.phase is RecoveryPhase.HELD:
        return f"is held after {rung}{why}"
    return f"has to prove that it is well after {rung}{why}"


def end_device_storm(cib: Cib, command: commands.EndDeviceStorm, entry: Entry) -> Verdict:
    """Let policies act again, and count from zero."""
    storm = cib.status.device_storm
    if storm is None or storm.is_over:
        return accept(cib)
    text = f"devices are recovered by policy again{by(command.author, command.reason)} ({storm.text})"
    over = replace(storm, at=entry.at, is_over=True)
    return accept(with_status(cib, replace(cib.status, device_storm=over)), change(ChangeKind.DEVICE_STORM, text))
