"""`apply` for watchdog devices: what survivors may rely on (safety.md §2).

Invariant: a node's status bounds from above how long that node can be fed after its loss: a longer lease, or a longer
timeout of its device, takes effect there only after it is recorded here.
"""

from collections.abc import Iterator

from haclusterd.cib import commands
from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.verdict import Entry, Verdict, accept, change, refuse, with_node
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Configuration
from haclusterd.model.dated_blocks import possible_properties
from haclusterd.model.ids import NodeName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import replace
from haclusterd.model.watchdog import Watchdog

FEEDS_WITHOUT_QUORUM = ("freeze", "ignore")
"""Values of no-quorum-policy with which a node that is declared lost keeps its resources running."""


def publish_watchdog(cib: Cib, command: commands.PublishWatchdog, entry: Entry) -> Verdict:
    """Record a live node's report of its device."""
    status = cib.status.nodes.get(command.node)
    if status is None or status.incarnation != command.incarnation or status.state is not NodeState.ONLINE:
        text = f"{command.node} is not online in that incarnation"
        return refuse(cib, RefusalCode.OLD_INCARNATION, text)
    if status.watchdog == command.watchdog:
        return accept(cib)
    text = f"{command.node}: {watchdog_text(command.watchdog)}"
    return accept(
        with_node(cib, replace(status, watchdog=command.watchdog)),
        change(ChangeKind.WATCHDOG_CHANGED, text, node=command.node),
    )


def watchdog_text(watchdog: Watchdog | None) -> str:
    """Describe a node's watchdog."""
    if watchdog is None:
        return "no watchdog is fed"
    return f"watchdog {watchdog.device} with a timeout of {watchdog.timeout_ms} ms"


def lease_in_force_ms(configuration: Configuration) -> int:
    """Return the lease that follows from a configuration: L = T (safety.md §2)."""
    return ClusterProperties(configuration).duration_ms("node-timeout")


def possible_leases_ms(configuration: Configuration) -> set[int]:
    """Return the leases in ms that may follow from a configuration at any time."""
    return {each.duration_ms("node-timeout") for each in _possible(configuration)}


def _possible(configuration: Configuration) -> Iterator[ClusterProperties]:
    for properties in possible_properties(configuration):
        yield ClusterProperties(replace(configuration, properties=properties))


def with_lease_of(cib: Cib, configuration: Configuration) -> dict[NodeName, NodeStatus]:
    """Return the status of all nodes under another configuration that comes into force."""
    lease_ms = lease_in_force_ms(configuration)
    return {
        name: replace(status, longest_lease_ms=lease_ms) if status.longest_lease_ms < lease_ms else status
        for name, status in cib.status.nodes.items()
    }


def objection(configuration: Configuration) -> str:
    """Return why a configuration must not come into force; empty when it may.

    Blocks under rules on dates may be in force in any combination.
    """
    possible = list(_possible(configuration))
    is_watched = any(properties.boolean("watchdog-fencing") for properties in possible)
    policies = [properties.text("no-quorum-policy") for properties in possible]
    policy = next((each for each in policies if each in FEEDS_WITHOUT_QUORUM), "")
    if is_watched and policy:
        return (
            f"no-quorum-policy={policy} together with watchdog-fencing: a node that is given up would run on, "
            "and be reset in the midst of it"
        )
    return ""
