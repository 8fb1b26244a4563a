"""What would run where once every action of a plan has succeeded."""

from collections.abc import Iterable, Mapping

from haclusterd.model.graph import ActionKind, GraphAction, Placement, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode, Role

State = dict[ResourceId, dict[NodeName, Role]]
"""For each primitive or instance: on which nodes, in which role."""

_ENDS_FENCING = "on"


def state_before(placements: Mapping[ResourceId, Placement]) -> State:
    """Return what runs now."""
    return {
        name: dict.fromkeys(placement.now_on, _active(placement.now_role)) for name, placement in placements.items()
    }


def state_after(plan: Plan) -> State:
    """Return what would run; inputs have smaller numbers, so the order of numbers is one in which it may happen."""
    state = state_before(plan.placements)
    for _, action in sorted(plan.graph.actions.items()):
        if is_node_fencing(action):
            for nodes in state.values():
                nodes.pop(action.node or NodeName(""), None)
        elif action.kind is ActionKind.RESOURCE and action.resource is not None and action.node is not None:
            _apply(action, state.setdefault(action.instance or action.resource, {}), action.node)
    _leave_lost_guests(plan.placements.values(), state)
    return state


def is_node_fencing(action: GraphAction) -> bool:
    """Tell whether an action ends a node's life, by a device or by the end of the container that the node is."""
    is_fence = action.kind is ActionKind.FENCE or (action.kind is ActionKind.PSEUDO and is_guest_fencing(action))
    return is_fence and action.name != _ENDS_FENCING


def is_guest_fencing(action: GraphAction) -> bool:
    """Tell whether an action is the mark that a guest node was fenced."""
    return action.resource is None and action.name in ("reboot", "off")


def _apply(action: GraphAction, nodes: dict[NodeName, Role], node: NodeName) -> None:
    if action.name == ActionName.STOP:
        nodes.pop(node, None)
    elif action.name in (ActionName.START, ActionName.MIGRATE_FROM):
        nodes[node] = Role.STARTED
    elif action.name == ActionName.PROMOTE or (node in nodes and action.target_exit_code is ExitCode.PROMOTED):
        nodes[node] = Role.PROMOTED
    elif action.name == ActionName.DEMOTE and node in nodes:
        nodes[node] = Role.UNPROMOTED


def _leave_lost_guests(placements: Iterable[Placement], state: State) -> None:
    """What ran on a guest node is gone with it."""
    lost = {NodeName(each.resource) for each in placements if each.guest_of is not None and not state[each.resource]}
    if lost:
        for nodes in state.values():
            for node in lost & nodes.keys():
                del nodes[node]


def _active(role: Role) -> Role:
    return role if role.value > Role.STOPPED.value else Role.STARTED
