"""Phase: which actions enter the graph, and which of them wait for which.

Only what must be done, can be done and is not being done already is selected. Whatever comes after an action that is in
flight (an open order, an open fence order) is left for the next plan, which follows its result; so nothing is ordered
twice and nothing overtakes (safety.md §1). So are notifications of what is about to be done, where it is in flight: the
instances were notified before it began, and will be afterwards (`machines.transitions`). Actions that wait for each
other in a circle are left out and named, and what could not start again because of that continues. So does a running
cluster with the unfencing of a node on which something that has to stop before cannot (safety.md §5). What needs
devices and would start again without them waits for the next plan, too.
"""

from collections.abc import Callable, Iterator, Mapping, Set

from haclusterd.model.fencing import FenceOrder
from haclusterd.model.ids import FenceKey, NodeName
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.unfencing import UNFENCE
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Relation, Resource
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.relation_flags import (
    FIRST_IMPLIES_THEN_GRAPHED,
    GUEST_ALLOWED,
    IF_FIRST_UNMIGRATABLE,
    IF_ON_SAME_NODE_OR_TARGET,
    IF_REQUIRED_ON_SAME_NODE,
    MIN_RUNNABLE,
    ORDERED,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNMIGRATABLE_THEN_BLOCKS,
)
from haclusterd.scheduler.model.tasks import (
    CANCEL,
    DO_SHUTDOWN,
    LRM_DELETE,
    MIGRATE_TO,
    MONITOR,
    PROMOTE,
    START,
    STOP,
    STOPPED,
)
from haclusterd.scheduler.order.load_ordering import LOAD_MARK

_SEQUENCE_ONLY = ORDERED | FIRST_IMPLIES_THEN_GRAPHED | THEN_IMPLIES_FIRST_GRAPHED | GUEST_ALLOWED
_COUNTED = MIN_RUNNABLE | UNMIGRATABLE_THEN_BLOCKS
"""Where a first that cannot be done is made up for."""
_BUSY_EXEMPT = frozenset({CANCEL, MONITOR})


class Selected:
    """The chosen actions in an order in which each comes after its inputs."""

    __slots__ = ("actions", "held_back", "inputs", "warnings")

    def __init__(
        self, actions: list[Action], inputs: dict[int, list[int]], warnings: list[str], held_back: frozenset[int]
    ) -> None:
        self.actions = actions
        self.inputs = inputs
        self.warnings = warnings
        self.held_back = held_back
        """The numbers, from 1, of actions that crm_simulate does not come to execute (`Plan.held_back`); only of a CIB
        of Pacemaker."""


def select_actions(
    table: ActionTable,
    fence_orders: Mapping[FenceKey, FenceOrder],
    options: ScheduleOptions,
    not_let_in: Set[NodeName] = frozenset(),
) -> Selected:
    """Choose the actions of the graph and what each waits for.

    `not_let_in`: nodes whose unfencing has failed, or cannot succeed; nothing on other nodes waits for it. Pacemaker's
    graph has what waits in vain as well (`Selected.held_back`).
    """
    being_fenced = {order.target for order in fence_orders.values()}
    candidates = [action for action in table.actions if _is_addable(action)]
    for action in candidates:
        action.is_graphed = True
    inputs = {action.id: _inputs(action) for action in candidates}
    _break_load_loops(candidates, inputs)
    in_order, in_circles = _sort(candidates, inputs)
    held = {stop.id for start in in_circles for stop in _restarting_stops(start)}
    shut_out = [each for each in in_order if each.is_fence and _is_shut_out(each)]
    in_vain = [each for each in in_order if each.task == UNFENCE and each.node is not None
               and each.is_fence and each.node.name in not_let_in]  # fmt: skip
    _probe_without([*shut_out, *in_vain], in_order, inputs)
    if not options.is_pacemaker_compatible:
        held |= _goes_on(shut_out, in_order, inputs)
    held |= {action.id for action in in_order if _lacks_devices(action)}
    in_flight = {action.id for action in in_order if _is_in_flight(action, being_fenced)}
    begun = {(each.resource.top, each.task) for each in in_order if each.id in in_flight and each.resource is not None}
    chosen = _not_held(in_order, inputs, held, in_flight, begun)
    while torn := _torn_gangs(in_order, chosen):
        held |= torn
        chosen = _not_held(in_order, inputs, held, in_flight, begun)
    listed = _is_listed_when_idle if options.is_pacemaker_compatible else _is_never_listed
    chosen = _without_idle_pseudo(chosen, inputs, listed)
    present = {action.id for action in chosen}
    numbers = {
        action.id: sorted({before.id for before in inputs[action.id] if before.id in present}) for action in chosen
    }
    held_back = frozenset(_never_executed(chosen)) if options.is_pacemaker_compatible else frozenset[int]()
    return Selected(chosen, numbers, [*_circle_warnings(in_circles), *map(_shut_out_warning, shut_out)], held_back)


def _not_held(
    in_order: list[Action],
    inputs: dict[int, list[Action]],
    held: set[int],
    in_flight: set[int],
    begun: set[tuple[Resource, str]],
) -> list[Action]:
    """Return the actions that are neither held nor under way, nor after such ones."""
    behind, chosen = set(held), []
    for action in in_order:
        is_behind = any(before.id in behind for before in inputs[action.id])
        if action.id in behind or is_behind or action.id in in_flight or _announces(action, begun):
            behind.add(action.id)
        else:
            chosen.append(action)
    return chosen


def _torn_gangs(in_order: list[Action], chosen: list[Action]) -> set[int]:
    """Return the chosen starts of gangs of which another start is not chosen (docs/design/0015-devices.md)."""
    tops = {each.id: each.resource.top for each in in_order if each.task == START and each.resource is not None}
    starts = {number: top for number, top in tops.items() if top.definition.is_gang}
    if not starts:
        return set()
    present = {each.id for each in chosen}
    torn = {top for number, top in starts.items() if number not in present}
    return {number for number, top in starts.items() if number in present and top in torn}


def _is_shut_out(action: Action) -> bool:
    """Tell of a fence action whether a node is to be unfenced and cannot, for what has to stop there before."""
    return action.task == UNFENCE and any(map(_holds_back, action.before))


def _shut_out_warning(unfence: Action) -> str:
    stuck = {
        relation.first.resource.id
        for relation in unfence.before
        if relation.first.resource is not None and _holds_back(relation)
    }
    assert unfence.node is not None
    return f"{unfence.node.name} is not unfenced: {', '.join(sorted(stuck))} cannot be stopped there before"


def _probe_without(shut_out: list[Action], in_order: list[Action], inputs: dict[int, list[Action]]) -> None:
    """Let probes wait for no unfencing that cannot be: starts on other nodes wait for them."""
    for action in in_order if shut_out else ():
        if action.is_probe:
            inputs[action.id] = [before for before in inputs[action.id] if before not in shut_out]


def _goes_on(shut_out: list[Action], in_order: list[Action], inputs: dict[int, list[Action]]) -> set[int]:
    """Return what is not done because of unfencings that cannot be: these, and each stop without a start after it."""
    held = {unfence.id for unfence in shut_out}
    while held:
        behind = set(held)
        for action in in_order:
            if any(before.id in behind for before in inputs[action.id]):
                behind.add(action.id)
        stops = {stop.id for action in in_order if action.id in behind for stop in _restarting_stops(action)}
        if stops <= held:
            break
        held |= stops
    return held


def _never_executed(chosen: list[Action]) -> Iterator[int]:
    """Yield the numbers, from 1, of actions that crm_simulate does not come to execute."""
    away = {id(node) for node in {action.node for action in chosen} if node is not None and _stays_away(node)}
    for at, action in enumerate(chosen, 1):
        if (action.before and any(map(_holds_back, action.before))) or (away and _is_on(action, away)):
            yield at


def _stays_away(node: Node) -> bool:
    """Tell whether a node's connection is lost, and is not made in this graph."""
    connection = node.connection
    if connection is None or not connection.found.is_failed:
        return False
    return not any(start.is_graphed for start in connection.actions.get((START, 0), ()))


def _is_on(action: Action, away: set[int]) -> bool:
    """Tell whether an agent would be called on one of these nodes."""
    if id(action.node) not in away or action.is_pseudo or action.is_fence or action.resource is None:
        return False
    return action.node is not None and action.resource is not action.node.connection


def _restarting_stops(start: Action) -> list[Action]:
    """Return the stops after which nothing would start again where it runs; they are not done either."""
    resource = start.resource
    if resource is None or start.task != START or resource.variant is not Variant.PRIMITIVE:
        return []
    stops = resource.actions.get((STOP, 0), ())
    return [stop for stop in stops if stop.node is start.node and not stop.is_pseudo]


def _is_listed_when_idle(action: Action) -> bool:
    """Tell whether Pacemaker's graph has a pseudo-action although nothing real comes before or after it.

    So it is with what belongs to no resource, with what the fencing of a member does to a primitive, and with the stop
    of a collective.
    """
    resource = action.resource
    if resource is None or resource.variant is not Variant.PRIMITIVE:
        return resource is None or action.task in (STOP, STOPPED)
    return action.node is not None and not action.node.is_guest


def _is_never_listed(_: Action) -> bool:
    return False


def _without_idle_pseudo(
    chosen: list[Action], inputs: dict[int, list[Action]], is_listed: Callable[[Action], bool]
) -> list[Action]:
    """Leave out pseudo-actions that no real action comes before or after: nothing would happen."""
    present = {action.id for action in chosen}
    is_led = {action.id: action.is_fence or not action.is_pseudo for action in chosen}
    leads = dict(is_led)
    for action in chosen:
        if any(is_led.get(before.id) for before in inputs[action.id]):
            is_led[action.id] = True
    for action in reversed(chosen):
        if leads[action.id]:
            leads.update((before.id, True) for before in inputs[action.id] if before.id in present)
    return [action for action in chosen if is_led[action.id] or leads[action.id] or is_listed(action)]


def _is_addable(action: Action) -> bool:
    if not action.is_runnable or (action.is_optional and not action.is_always):
        return False
    resource = action.resource
    is_observing = action.task == MONITOR or action.is_cancel or action.interval_ms
    if not is_observing and not action.is_pseudo and resource is not None and not resource.is_managed:
        return False
    if action.is_pseudo or action.is_fence or action.task == DO_SHUTDOWN:
        return True
    node = action.node
    if node is None:
        return False
    return (
        action.task == LRM_DELETE
        or (node.is_online and not node.is_unclean)
        or (node.is_guest and not node.must_be_reset)
    )


def _inputs(action: Action) -> list[Action]:
    """Return what an action waits for; relations to the same action count as one."""
    merged: dict[int, Relation] = {}
    flags: dict[int, int] = {}
    for relation in action.before:
        if relation.flags and relation.first.is_graphed and not _is_guest_against_launcher(relation):
            merged[relation.first.id] = relation
            flags[relation.first.id] = flags.get(relation.first.id, 0) | _lasting(relation)
    return [relation.first for number, relation in merged.items() if _is_input(relation.first, action, flags[number])]


def _break_load_loops(candidates: list[Action], inputs: dict[int, list[Action]]) -> None:
    """Do not let migrations wait for each other's room in a circle: there is none to wait for."""
    for action in reversed(candidates):
        if action.task == MIGRATE_TO:
            marks = [before for before in inputs[action.id] if _is_load_mark(before)]
            looping = {mark.id for mark in marks if _leads_to(mark, action, inputs)}
            if looping:
                inputs[action.id] = [before for before in inputs[action.id] if before.id not in looping]


def _is_load_mark(action: Action) -> bool:
    return action.is_pseudo and action.resource is None and action.task.startswith(LOAD_MARK)


def _leads_to(mark: Action, action: Action, inputs: dict[int, list[Action]]) -> bool:
    """Tell whether a mark waits, by whatever chain, for an action."""
    waiting, seen = [mark], {mark.id}
    while waiting:
        for before in inputs.get(waiting.pop().id, ()):
            if before is action:
                return True
            if before.id not in seen:
                seen.add(before.id)
                waiting.append(before)
    return False


def _is_guest_against_launcher(relation: Relation) -> bool:
    """What runs on a guest cannot come before what its launcher does, whatever users say: it would have to."""
    node = relation.first.node
    if node is None or not node.is_guest or relation.flags & GUEST_ALLOWED or node.connection is None:
        return False
    if relation.first.resource is None:
        return False
    return relation.then.resource is not None and relation.then.resource is node.connection.launcher


def _holds_back(relation: Relation) -> bool:
    """Tell whether an action waits in vain: the first is required, cannot be done, and more than a sequence is meant.

    Pacemaker lists such a first as an input of the action all the same (crm_simulate: "Transition failed: terminated").
    """
    first = relation.first
    is_mark = first.is_pseudo and not first.is_fence
    if first.is_graphed or first.is_runnable or is_mark or _is_guest_against_launcher(relation):
        return False
    if first.is_optional and not _is_blocked_there(relation):
        return False
    flags = _lasting(relation)
    return bool(flags & ~_SEQUENCE_ONLY) and not flags & _COUNTED and _is_input(first, relation.then, flags)


def _is_blocked_there(relation: Relation) -> bool:
    """Tell whether an unfencing waits for the stop of what is blocked on that node, which no plan ever requires."""
    owner = relation.first.resource
    return relation.then.is_fence and relation.then.task == UNFENCE and owner is not None and owner.is_blocked


def _lasting(relation: Relation) -> int:
    """Return a relation's flags, none where those of load and of being apart do not hold as things are."""
    first, then, flags = relation.first, relation.then, relation.flags
    if flags & IF_ON_SAME_NODE_OR_TARGET:
        owner = then.resource
        node = owner.assignment.node if then.task == MIGRATE_TO and owner is not None else then.node
        return flags if first.is_required and first.node is node else 0
    if flags & IF_REQUIRED_ON_SAME_NODE:
        is_on_other_node = first.node is not None and then.node is not None and first.node is not then.node
        return flags if first.is_required and not is_on_other_node else 0
    return flags


def _is_input(first: Action, then: Action, flags: int) -> bool:
    if not flags or (flags & IF_FIRST_UNMIGRATABLE and first.is_migratable):
        return False
    if flags == ORDERED and first.task == STOP and first.is_migratable:
        return False
    owner, other = then.resource, first.resource
    is_abandoned = other is not None and other is not owner and other.found.is_failed and not other.is_managed
    return not (is_abandoned and first.task == STOP and owner is not None and owner.variant is Variant.CLONE)


def _lacks_devices(action: Action) -> bool:
    """Tell whether it would start without devices what needs them; once that has stopped, some may be free."""
    return action.task == START and action.resource is not None and action.resource.assignment.lacks_devices


def _is_in_flight(action: Action, being_fenced: set[NodeName]) -> bool:
    """Tell whether it is ordered already, or its resource is busy with another order.

    What a migration may still bring, or bring back, to a node is asked for there when the migration has ended.
    """
    if action.is_fence:
        return action.node is not None and action.node.name in being_fenced
    resource = action.resource
    if action.is_pseudo or resource is None or action.node is None:
        return False
    if action.is_probe and action.node.name in resource.found.migrating_at:
        return True
    if action.task == PROMOTE and _is_promoting(resource.top):
        return True
    if not resource.found.orders_in_flight:
        return False
    if (action.node.name, action.task, action.interval_ms) in resource.found.orders_in_flight:
        return True
    return not action.is_probe and _is_busy(resource)


def _announces(action: Action, begun: Set[tuple[Resource, str]]) -> bool:
    """Tell whether it notifies an instance of a clone before something that is in flight in that clone."""
    kind, _, task = action.notification.partition("-")
    return kind == "pre" and not action.is_pseudo and action.resource is not None and (
        (action.resource.top, task) in begun
    )


def _is_promoting(clone: Resource) -> bool:
    """Tell whether an instance is being promoted: until that has ended, nobody knows how many are."""
    return any(task == PROMOTE for leaf in clone.leaves() for _, task, _ in leaf.found.orders_in_flight)


def _is_busy(resource: Resource) -> bool:
    return any(task not in _BUSY_EXEMPT for _, task, _ in resource.found.orders_in_flight)


def _sort(candidates: list[Action], inputs: dict[int, list[Action]]) -> tuple[list[Action], list[Action]]:
    """Return the actions so that inputs come first, and those that cannot be brought into such an order."""
    missing = {action.id: len(inputs[action.id]) for action in candidates}
    followers: dict[int, list[Action]] = {}
    for action in candidates:
        for before in inputs[action.id]:
            followers.setdefault(before.id, []).append(action)
    ready = [action for action in candidates if not missing[action.id]]
    in_order: list[Action] = []
    for action in ready:
        in_order.append(action)
        for follower in followers.get(action.id, ()):
            missing[follower.id] -= 1
            if not missing[follower.id]:
                ready.append(follower)
    return in_order, [action for action in candidates if missing[action.id]]


def _circle_warnings(stuck: list[Action]) -> list[str]:
    if not stuck:
        return []
    names = sorted({f"{action.task} of {action.resource.id}" for action in stuck if action.resource is not None})
    return [f"these wait for each other and are not done: {', '.join(names)}; look for orderings that form a circle"]
