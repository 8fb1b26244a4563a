"""What a scheduler without one of the rules believes: the CIB as it looks then.

The scheduler keeps some rules by its very construction, so there is nothing in it to switch off. Where a scenario wants
to know whether such a rule is needed, the scheduler is shown a CIB without what the rule is about.
"""

from collections.abc import Mapping

from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules


def seen_by(rules: SafetyRules, cib: Cib) -> Cib:
    """Return the CIB as a scheduler sees it that keeps only these rules."""
    nodes = {name: _seen(rules, status) for name, status in cib.status.nodes.items()}
    if not rules.asked_as_started:
        agents = {primitive.id: primitive.agent for primitive in cib.configuration.primitives()}
        nodes = {name: _with_agents(status, agents) for name, status in nodes.items()}
    return replace(cib, status=replace(cib.status, nodes=nodes))


def _seen(rules: SafetyRules, status: NodeStatus) -> NodeStatus:
    is_taken_for_dead = (status.state is NodeState.LOST and not rules.fence_before_recovery) or (
        status.state in (NodeState.UNSEEN, NodeState.LOST)
        and status.incarnation is None
        and not rules.unseen_is_fenced
    )
    if is_taken_for_dead:
        return NodeStatus(status.name, NodeState.FENCED, status.incarnation)
    if not rules.migration_counts_on_both:
        status = replace(status, orders={key: replace(order, meta={}) for key, order in status.orders.items()})
    if not rules.unverified_may_be_promoted:
        status = replace(status, unverified=frozenset())
    if not rules.open_orders_possibly_active:
        orders = {key: order for key, order in status.orders.items() if not order.is_activating}
        return replace(status, orders=orders)
    return status


def _with_agents(status: NodeStatus, agents: Mapping[ResourceId, AgentReference]) -> NodeStatus:
    """Return a node on which everything counts as started by the agent and the parameters that are configured now."""
    histories = {
        name: replace(history, agent=agents.get(name, history.agent), parameters={}, definition="")
        for name, history in status.histories.items()
    }
    return replace(status, histories=histories)
