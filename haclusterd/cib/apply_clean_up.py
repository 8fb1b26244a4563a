"""`apply` for commands that forget: failures, histories of removed resources, old entries of the history.

For the last, see safety.md §7, "History".
"""

from collections.abc import Mapping

from haclusterd.cib import commands
from haclusterd.cib.activity import possibly_active
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse, with_node, with_nodes
from haclusterd.model.activity import without_records
from haclusterd.model.cluster import Cib, HistoryMark, NodeState, NodeStatus
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace


def clean_up(cib: Cib, command: commands.CleanUp, entry: Entry) -> Verdict:
    """Forget failures; the resources concerned are probed again."""
    nodes: dict[NodeName, NodeStatus] = {}
    for name, status in cib.status.nodes.items():
        if command.node not in (None, name):
            continue
        updated = _unlocked(status, command) if command.reprobe else status
        if status.state is NodeState.ONLINE:
            updated = _forgiven(updated, command)
        if updated != status:
            nodes[name] = updated
    if not nodes:
        return accept(cib)
    what = command.resource or "all resources"
    text = f"failures of {what} forgotten on {', '.join(sorted(nodes))}" + by(command.author, command.reason)
    return accept(with_nodes(cib, nodes), change(ChangeKind.FAILURES_FORGOTTEN, text, resource=command.resource))


def _unlocked(status: NodeStatus, command: commands.CleanUp) -> NodeStatus:
    """Remove shutdown locks, as a refresh does in Pacemaker."""
    if command.resource is None:
        return replace(status, locks={})
    return replace(status, locks=_others(status.locks, command.resource))


def _others(locks: Mapping[ResourceId, WallTime], resource: ResourceId) -> Mapping[ResourceId, WallTime]:
    return {name: at for name, at in locks.items() if name != resource}


def _forgiven(status: NodeStatus, command: commands.CleanUp) -> NodeStatus:
    histories = dict(status.histories)
    unverified = set(status.unverified)
    probed = status.probed
    for resource, history in status.histories.items():
        if command.resource not in (None, resource):
            continue
        if not (history.has_failures or command.reprobe):
            continue
        histories[resource] = replace(without_records(history, history.failed), fail_counts={}, last_failure=None)
        unverified.add(resource)
    if command.reprobe:
        probed = frozenset() if command.resource is None else probed - {command.resource}
    return replace(status, histories=histories, unverified=frozenset(unverified), probed=probed)


def forget_history(cib: Cib, command: commands.ForgetHistory, entry: Entry) -> Verdict:
    """Remove a resource's shutdown lock, or else its history: it is probed again if it is still configured."""
    status = cib.status.nodes.get(command.node)
    if status is not None and command.resource in status.locks:
        status = replace(status, locks=_others(status.locks, command.resource))
        text = f"{command.resource} is kept for {command.node} no longer"
        noted = change(ChangeKind.FAILURES_FORGOTTEN, text, node=command.node, resource=command.resource)
        return accept(with_node(cib, status), noted)
    if status is None or status.state is not NodeState.ONLINE:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"{command.node} is not online")
    is_ordered = any(order.resource == command.resource for order in status.orders.values())
    if is_ordered or command.resource in possibly_active(status):
        return refuse(cib, RefusalCode.STILL_ACTIVE, f"{command.resource} may be active on {command.node}")
    if command.resource not in status.histories and command.resource not in status.probed:
        return accept(cib)
    histories = {name: history for name, history in status.histories.items() if name != command.resource}
    updated = replace(status, histories=histories, probed=status.probed - {command.resource})
    text = f"what was recorded of {command.resource} on {command.node} is forgotten"
    noted = change(ChangeKind.FAILURES_FORGOTTEN, text, node=command.node, resource=command.resource)
    return accept(with_node(cib, updated), noted)


def forget(cib: Cib, command: commands.Forget, entry: Entry) -> Verdict:
    """Set the index up to which every node drops its history; only the DC may, and the index never goes back."""
    controller = cib.status.controller
    if controller is None or controller.term != command.dc_term:
        return refuse(cib, RefusalCode.OLD_TERM, f"term {command.dc_term} is not the DC's")
    if not cib.history.forgotten < command.through < entry.index:
        text = f"entries up to {command.through} cannot be forgotten at entry {entry.index}"
        return refuse(cib, RefusalCode.UNKNOWN_KEY, text)
    mark = HistoryMark(cib.history.digest, command.through, command.digest)
    text = f"the history up to entry {command.through} is forgotten: {command.reason}"
    return accept(replace(cib, history=mark), change(ChangeKind.HISTORY_FORGOTTEN, text))
