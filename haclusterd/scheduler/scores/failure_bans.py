"""Phase: which nodes the failures of a resource forbid it (Pacemaker Explained, "Handling Resource Failure")."""

from haclusterd.model.scores import INFINITY, render
from haclusterd.scheduler.model.entities import Inventory, Node, Resource
from haclusterd.scheduler.unpack.failures import Failures, to_ban


def ban_after_failures(inventory: Inventory, failures: Failures) -> None:
    """Ban resources from nodes where they failed `migration-threshold` times.

    An anonymous instance failed for all instances: the clone is banned. Inside a bundle the instance is banned as well:
    its container is a node for it alone, whatever the scores of the bundled clone.
    """
    nodes = [node for node in inventory.nodes if failures.counts_on(node)]
    if not nodes:
        return
    for resource in inventory.primitives():
        threshold = resource.definition.migration_threshold
        if threshold == 0 or resource.found.ignores_failure:
            continue
        for node in nodes:
            if failures.is_cleared(resource, node):
                continue
            count = failures.effective_count(resource, node, with_launched=True)
            if count >= threshold:
                banned = to_ban(resource)
                why = _failure_words(resource, node, failures, count)
                banned.scores.add(node.name, -INFINITY, why)
                if banned is not resource and banned.parent is not None:
                    resource.scores.add(node.name, -INFINITY, why)


def _failure_words(resource: Resource, node: Node, failures: Failures, count: int) -> str:
    counted = failures.counted(resource, node)
    if not counted:
        return f"{render(count)} failures on {node.name} of what it launches"
    newest = max(counted, key=lambda failure: (failure.failed_at, failure.operation))
    history = node.status.histories.get(resource.recorded_as)
    record = history.last_failure if history is not None else None
    detail = f" ({record.exit_reason})" if record is not None and record.exit_reason else ""
    if count >= INFINITY:
        return f"failed {newest.operation} on {node.name}{detail}"
    return f"{render(count)} failures on {node.name}, the newest: {newest.operation}{detail}"
