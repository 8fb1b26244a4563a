"""`apply` for restarts: requested by an administrator, over when the resource runs nowhere, continued by any DC."""

from collections.abc import Mapping

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_status
from haclusterd.model.activity import HOLDING, may_be_active
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import primitives_of
from haclusterd.model.ids import ResourceId, base_of
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.model.restarts import Restart


def restart_resource(cib: Cib, command: commands.RestartResource, entry: Entry) -> Verdict:
    """Have a resource stopped everywhere, and then run as configured; one that is under way continues as it is."""
    name = command.resource
    if name not in cib.configuration.resources:
        return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, f"there is no resource {name}")
    if name in cib.status.restarts or not _may_run(cib, name):
        return accept(cib)
    made = Restart(entry.at, command.limit_ms, command.author, command.reason)
    text = f"{name} is restarted: it is stopped everywhere first" + by(command.author, command.reason)
    after = _with_restarts(cib, {**cib.status.restarts, name: made})
    return accept(after, change(ChangeKind.RESTART_BEGUN, text, resource=name))


def end_restart(cib: Cib, command: commands.EndRestart, entry: Entry) -> Verdict:
    """Let a resource run as configured although it has not stopped everywhere."""
    known = cib.status.restarts.get(command.resource)
    if known is None or known.at != command.at:
        return accept(cib)
    text = f"{command.resource} has not stopped everywhere, and may run again: {command.reason}"
    return accept(_without(cib, command.resource), change(ChangeKind.RESTART_ENDED, text, resource=command.resource))


def with_restarts_ended(verdict: Verdict) -> Verdict:
    """Return a verdict without restarts whose resource has stopped everywhere, or is no longer configured."""
    cib, changes = verdict.cib, list(verdict.changes)
    for name in sorted(cib.status.restarts):
        if not _may_run(cib, name):
            cib = _without(cib, name)
            text = f"{name} has stopped everywhere, and may run again"
            changes.append(change(ChangeKind.RESTART_ENDED, text, resource=name))
    return replace(verdict, cib=cib, changes=tuple(changes)) if cib is not verdict.cib else verdict


def _may_run(cib: Cib, resource: ResourceId) -> bool:
    """Return whether anything of a resource may run anywhere, or is being stopped or started."""
    primitives = frozenset(primitives_of(cib.configuration, resource))
    return any(_may_run_on(status, primitives) for status in cib.status.nodes.values() if status.state in HOLDING)


def _may_run_on(status: NodeStatus, primitives: frozenset[ResourceId]) -> bool:
    for order in status.orders.values():
        is_moving = order.is_activating or order.action is ActionName.STOP
        if is_moving and base_of(order.resource) in primitives:
            return True
    known = {*status.histories, *status.unverified}
    return any(base_of(name) in primitives and may_be_active(status, name) for name in known)


def _without(cib: Cib, resource: ResourceId) -> Cib:
    return _with_restarts(cib, {name: each for name, each in cib.status.restarts.items() if name != resource})


def _with_restarts(cib: Cib, restarts: Mapping[ResourceId, Restart]) -> Cib:
    return with_status(cib, replace(cib.status, restarts=restarts))
