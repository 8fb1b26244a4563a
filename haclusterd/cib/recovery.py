"""The first state of a cluster that continues another one.

When the other nodes are lost, one node's log gives the state: every entry counts, committed or not. What it says of
that node itself is kept, since its services may run on: by which agents and parameters they were started. The
configuration must have every node probed: of machines that were not rebooted no other record says what was left there.
"""

from collections.abc import Iterable

from haclusterd.cib.apply import apply, unreadable
from haclusterd.cib.codec import CodecError, decode_cib, decode_envelope
from haclusterd.model.activity import may_be_active, without_records
from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.configuration import Configuration
from haclusterd.model.history import ResourceHistory, history_of
from haclusterd.model.ids import NodeName, ResourceId, Term
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.model.reloads import with_reload_in_doubt
from haclusterd.model.renaming import opening
from haclusterd.model.secrets import is_reference

STARTUP_PROBES = "enable-startup-probes"


def asking_what_runs(configuration: Configuration) -> Configuration:
    """Return a configuration without `enable-startup-probes`: every node is probed before anything starts."""
    blocks = tuple(
        replace(block, pairs=tuple((name, value) for name, value in block.pairs if name != STARTUP_PROBES))
        for block in configuration.properties
    )
    return configuration if blocks == configuration.properties else replace(configuration, properties=blocks)


def folded(snapshot: bytes | None, entries: Iterable[tuple[bytes, int, Term, bool]]) -> Cib:
    """Fold entries, each with index, term and whether it changes the voters, onto a snapshot; return the CIB.

    Raises CodecError if the snapshot cannot be read; an unreadable entry is refused, as on every replica.
    """
    cib = Cib() if snapshot is None else decode_cib(snapshot)
    for entry, index, term, is_in_force in entries:
        try:
            envelope = decode_envelope(entry)
        except CodecError as error:
            cib = unreadable(cib, index=index, detail=str(error)).cib
        else:
            cib = apply(cib, envelope, index=index, term=term, is_in_force=is_in_force).cib
    return cib


def status_of_the_one_left(cib: Cib, node: NodeName) -> Status:
    """Return what its log says of the node from which a cluster is recovered: what may run there, and its devices.

    Its `Join` treats this like the record of an earlier incarnation: after a boot nothing of it holds, and in the same
    boot everything is to be probed. Failures are forgotten. What was started with a secret is left out, and is looked
    for as it is configured: the secrets of the lost cluster cannot be opened any more.
    """
    known = cib.status.nodes.get(node)
    if known is None:
        return Status()
    histories = {name: _forgiven(each) for name, each in _histories(known).items() if not _uses_secrets(each)}
    kept = NodeStatus(
        node,
        incarnation=known.incarnation,
        fenced_incarnation=known.fenced_incarnation,
        attributes=known.attributes,
        private_attributes=known.private_attributes,
        utilization=known.utilization,
        locks=known.locks,
        histories=histories,
        unverified=frozenset(histories),
        last_call_id=known.last_call_id,
    )
    devices = {node: cib.status.devices[node]} if node in cib.status.devices else {}
    return Status(nodes={node: kept}, devices=devices)


def _histories(status: NodeStatus) -> dict[ResourceId, ResourceHistory]:
    """Return the histories of what may be active on a node; its open orders may have begun, and end unseen."""
    found = {name: history for name, history in status.histories.items() if may_be_active(status, name)}
    for order in opening(status.orders.values()):
        history = found.get(order.resource) or history_of(order)
        is_reload = order.action is ActionName.RELOAD_AGENT
        found[order.resource] = with_reload_in_doubt(history, order) if is_reload else history
    return found


def _forgiven(history: ResourceHistory) -> ResourceHistory:
    return replace(without_records(history, history.failed), fail_counts={}, last_failure=None)


def _uses_secrets(history: ResourceHistory) -> bool:
    values = [*history.parameters.values(), *(value for each in history.reloads for value in each.parameters.values())]
    return any(map(is_reference, values))
