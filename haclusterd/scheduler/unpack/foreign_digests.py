"""The digests that Pacemaker's tools expect in histories that this cluster recorded.

`crm_simulate` of Pacemaker compares the digest of a record with that of the parameters in the same file; ours it takes
for a change, and plans restarts. So what is given out carries Pacemaker's digest where our own says that nothing has
changed. Where something has, our own is left: it is no digest of theirs either, and leads to the restart that is due.
"""

from collections.abc import Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.scheduler.model.digests import ActionDigests, Consequence
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory


def with_foreign_digests(
    cib: Cib, inventory: Inventory, digests: ActionDigests, shown: Inventory, others: ActionDigests
) -> Cib:
    """Return the CIB with Pacemaker's digests in the histories.

    `shown` is what will be read beside it: there secrets may be hidden.
    """
    made: dict[tuple[NodeName, ResourceId], ResourceHistory] = {}
    for resource in inventory.primitives():
        if resource.found.is_removed or resource.id not in shown.by_id:
            continue
        writer = _Writer(resource, digests, shown.by_id[resource.id], others)
        for name, history in resource.found.histories.items():
            made[name, history.resource] = writer.written(inventory.nodes_by_name[name], history)
    nodes = dict(cib.status.nodes)
    for name, status in nodes.items():
        histories = {key: made.get((name, key), history) for key, history in status.histories.items()}
        nodes[name] = replace(status, histories=histories)
    return replace(cib, status=replace(cib.status, nodes=nodes))


class _Writer:
    """Gives the records of one resource other digests."""

    def __init__(self, resource: Resource, digests: ActionDigests, shown: Resource, others: ActionDigests) -> None:
        self._resource, self._digests, self._shown, self._others = resource, digests, shown, others

    def written(self, node: Node, history: ResourceHistory) -> ResourceHistory:
        """Return a history with Pacemaker's digests."""
        records: Mapping[str, OperationRecord] = {
            key: self._record(node, record) for key, record in history.records.items()
        }
        failed = history.last_failure
        return replace(
            history, records=records, last_failure=None if failed is None else self._record(node, failed)
        )

    def _record(self, node: Node, record: OperationRecord) -> OperationRecord:
        if record.pacemaker is not None:
            return record
        consequence = self._digests.judge(self._resource, node, record)
        if consequence not in (Consequence.UNCHANGED, Consequence.RELOAD):
            return record
        digest, restart_digest = self._others.pacemakers(self._shown, node, record)
        return replace(
            record,
            digest=digest if consequence is Consequence.UNCHANGED else record.digest,
            restart_digest=restart_digest if record.restart_digest else "",
        )
