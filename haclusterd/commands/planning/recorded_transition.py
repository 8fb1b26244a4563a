"""The status of a Pacemaker cluster after a transition, as `crm_simulate --simulate` records it and reads it back.

crm_simulate writes one record for each action of an agent and judges the status from the records, so that what it
prints follows from them: a monitor that is recorded after a stop says that the resource runs. What fencing ends is
forgotten with the records of the node; of a guest node there is nothing to forget, since it ends with its launcher.

Measured with crm_simulate 2.1.5 (`-S -O FILE` writes the status); Pacemaker Explained, "Status".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush

from haclusterd.commands.planning.simulated_state import is_guest_fencing, is_node_fencing
from haclusterd.formats.cib_xml.histories import with_records
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.history import OperationRecord, PacemakerMark, ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import replace

_RECORDED = frozenset({
    ActionName.START, ActionName.STOP, ActionName.MONITOR, ActionName.PROMOTE, ActionName.DEMOTE,
    ActionName.MIGRATE_TO, ActionName.MIGRATE_FROM,
})  # fmt: skip
_SECOND_MS = 1_000
_WRITER = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_MAGIC = f"0:{{code}};{{number}}:-1:{{code}}:{_WRITER}"
"""As crm_simulate writes it: its own transition counts as newer than any that has a number."""


def recorded(
    cib: Cib, plan: Plan, now: WallTime, actions: Iterable[GraphAction] | None = None, *, has_probes: bool = False
) -> Cib:
    """Return a CIB of Pacemaker with the results of actions: of every one that comes to be executed, or of these.

    Probes that find nothing where nothing ever was leave a record only where that is asked for.
    """
    nodes = dict(cib.status.nodes)
    histories: dict[NodeName, dict[ResourceId, ResourceHistory]] = {}
    written_at = _later_than_all(cib, now)
    for action in executed(plan) if actions is None else actions:
        if action.node is None:
            continue
        if action.kind is ActionKind.FENCE and is_node_fencing(action):
            known = nodes.get(action.node) or NodeStatus(action.node)
            nodes[action.node] = NodeStatus(action.node, NodeState.LEFT, known.incarnation, now)
            histories.pop(action.node, None)
        elif action.kind is ActionKind.RESOURCE and action.name in _RECORDED:
            if action.node not in histories:
                histories[action.node] = dict(nodes.setdefault(action.node, NodeStatus(action.node)).histories)
            if _history(histories[action.node], action) is None and _finds_nothing(action) and not has_probes:
                continue  # nothing is active by such a record, and most actions of a first start would leave one
            _add_result(histories[action.node], action, action.node, written_at)
    for name, changed in histories.items():
        nodes[name] = replace(nodes[name], histories=changed)
    return replace(cib, status=replace(cib.status, nodes=nodes))


def _later_than_all(cib: Cib, now: WallTime) -> WallTime:
    """Return when the results are written: crm_simulate takes the present time for them, whatever date it is to plan
    for, and that is later than every record."""
    histories = (history for node in cib.status.nodes.values() for history in node.histories.values())
    times = (record.changed_at for history in histories for record in history.records.values())
    return max(now, WallTime(max(times, default=0) + _SECOND_MS))


def without_marks(cib: Cib) -> Cib:
    """Return a CIB in which the results that `recorded` wrote are not marked as Pacemaker's."""
    def bare(record: OperationRecord) -> OperationRecord:
        is_own = record.pacemaker is not None and record.pacemaker.transition_magic.endswith(_WRITER)
        return replace(record, pacemaker=None) if is_own else record

    nodes = {}
    for name, status in cib.status.nodes.items():
        histories = {
            key: replace(history, records={at: bare(record) for at, record in history.records.items()})
            for key, history in status.histories.items()
        }
        nodes[name] = replace(status, histories=histories)
    return replace(cib, status=replace(cib.status, nodes=nodes))


def executed(plan: Plan) -> Iterator[GraphAction]:
    """Yield the actions that are executed, in an order in which that may be: not what is held back, or follows that.

    What only asks comes as late as may be, so that its answer is newer than a stop which nothing puts after it.
    """
    actions = plan.graph.actions
    late = max(actions, default=0) + 1  # what is added to the number of a probe, so that it comes after all others
    missing: dict[int, int] = {}
    followers: dict[int, list[int]] = {}
    ready: list[int] = []
    for number, action in actions.items():
        if action.inputs:
            missing[number] = len(action.inputs)
            for before in action.inputs:
                followers.setdefault(before, []).append(number)
        else:
            ready.append(number + late if action.is_probe else number)
    heapify(ready)
    while ready:
        number = heappop(ready) % late
        if number in plan.held_back:
            continue
        yield actions[number]
        for follower in followers.get(number, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower + late if actions[follower].is_probe else follower)


def executed_in_passes(
    listing: Iterable[int], inputs: Mapping[int, Sequence[int]], held_back: Set[int], *,
    failing: Set[int] = frozenset(), pseudo: Set[int] = frozenset(), urgent: Set[int] = frozenset(),
) -> Iterator[int]:
    """Yield the numbers of the actions that are executed in the order in which crm_simulate executes them.

    It goes through the whole list again and again, and each time executes what has nothing left to wait for. What is
    not in the list comes after it. After one that fails it executes only what is pseudo or urgent; what waits for one
    that failed, only if it is urgent.
    """
    places = {number: at for at, number in enumerate(dict.fromkeys((*listing, *inputs)))}
    missing = {number: len(before) for number, before in inputs.items()}
    followers: dict[int, list[int]] = {}
    for number, before in inputs.items():
        for each in before:
            followers.setdefault(each, []).append(number)
    ready = [(0, places[number], number) for number, count in missing.items() if not count]
    heapify(ready)
    has_failed = False
    while ready:
        count, place, number = heappop(ready)
        if number in held_back or (has_failed and number not in pseudo and number not in urgent):
            continue
        yield number
        has_failed = has_failed or number in failing
        for follower in followers.get(number, ()):
            if number in failing and follower not in urgent:
                continue
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, (count if places[follower] > place else count + 1, places[follower], follower))


def ended_on_guests(plan: Plan) -> tuple[set[NodeName], set[tuple[str, NodeName]]]:
    """Return the guest nodes that a transition is to end, and which primitives it is to start on them again."""
    ended: set[NodeName] = set()
    begun: set[tuple[str, NodeName]] = set()
    for action in plan.graph.actions.values():
        if action.node is None:
            continue
        if action.resource is not None:
            if action.name in BEGINNINGS:
                begun.add((base_of(action.resource), action.node))
        elif is_guest_fencing(action) and is_node_fencing(action):
            ended.add(action.node)
    return ended, begun


def _add_result(
    histories: dict[ResourceId, ResourceHistory], action: GraphAction, node: NodeName, now: WallTime
) -> None:
    assert action.resource is not None
    assert action.agent is not None
    history = _history(histories, action)
    suffix = _suffix(action.name, action.interval_ms)
    base = base_of(action.resource)
    if history is None:
        history = ResourceHistory(action.resource, action.agent)
        histories[action.resource] = with_records(history, [_result(action, f"{base}_{suffix}", node, now)])
        return
    names = {f"{name}_{suffix}" for name in (base, action.resource, history.resource)}
    call_id = max(0, *(each.call_id for each in history.records.values()), 0) + 1
    known = [_marked(each, base, node) for each in history.records.values()]
    others = [each for mark, each in known if mark.id not in names]
    record = _result(action, f"{base}_{suffix}", node, now, call_id=call_id, sequence=len(others) + 1)
    histories[history.resource] = with_records(history, [*reversed(others), record])


def _result(
    action: GraphAction, id_: str, made_on: str, now: WallTime, *, call_id: int = 1, sequence: int = 1
) -> OperationRecord:
    """Return the record of an action that ended as it was to end."""
    code = action.target_exit_code
    return OperationRecord(
        action.name, action.interval_ms, call_id, code, ExecutionStatus.DONE, code, now, now,
        digest=action.digest,
        migrate_source=_other_node(action, "migrate_source"),
        migrate_target=_other_node(action, "migrate_target"),
        pacemaker=PacemakerMark(id_, made_on, _MAGIC.format(code=int(code), number=call_id)),
        sequence=sequence,
    )  # fmt: skip


def _suffix(name: str, interval_ms: int) -> str:
    return f"{name}_{interval_ms}" if interval_ms else "last_0"


def _marked(record: OperationRecord, base: str, node: str) -> tuple[PacemakerMark, OperationRecord]:
    """Return a record with its mark: one that was only supposed (`--op-fail`) gets the id that Pacemaker gives it."""
    if record.pacemaker is not None:
        return record.pacemaker, record
    mark = PacemakerMark(f"{base}_{_suffix(record.operation, record.interval_ms)}", node)
    return mark, replace(record, pacemaker=mark)


def _history(histories: Mapping[ResourceId, ResourceHistory], action: GraphAction) -> ResourceHistory | None:
    """Return where a result is recorded: old releases of Pacemaker numbered the instances of anonymous clones there."""
    for name in (action.resource, action.instance):
        if name is not None and name in histories:
            return histories[name]
    return None


def _finds_nothing(action: GraphAction) -> bool:
    return action.is_probe and action.target_exit_code is ExitCode.NOT_RUNNING




def _other_node(action: GraphAction, end: str) -> NodeName | None:
    found = action.meta.get(end)
    return NodeName(found) if found else None
