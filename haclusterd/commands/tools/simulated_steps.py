"""What of a plan crm_simulate executes, in its order, and what is so afterwards; also when an action fails (`-F`).

An action that is supposed to fail ends the transition: then only what no agent does comes to pass, unless it waits for
that action, and what has the highest priority, as to tell the others how it ended (measured with crm_simulate 2.1.5).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from haclusterd.commands.planning.injection import operation_failure
from haclusterd.commands.planning.planning import plan, status_for_pacemakers_tools
from haclusterd.commands.planning.recorded_transition import executed_in_passes, recorded, without_marks
from haclusterd.commands.tools.call import ToolUsageError
from haclusterd.model.cluster import Cib
from haclusterd.model.graph import ActionKind, GraphAction, Plan
from haclusterd.model.history import operation_key
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import dataclass, replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.verbs.answers.simulation import PlannedAction

Numbers = Mapping[NodeName, str]
"""The ids of nodes."""
_RESULT = re.compile(
    r"(?P<resource>.+?)_(?P<task>[a-z][a-z-]*(?:_to|_from)?)_(?P<interval>\d{1,12})@(?P<node>[^=]+)=(?P<code>\d{1,3})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Result:
    """How an action is supposed to end: `web_monitor_10000@n1=7`."""

    resource: str
    task: str
    interval: str
    node: str
    code: int

    @property
    def as_supposition(self) -> str:
        """Write it as `simulate --op-fail` takes it."""
        return f"{self.resource}:{self.task}:{self.interval}ms@{self.node}={self.code}"


def result_of(text: str, option: str) -> Result:
    """Read a result. Raises ToolUsageError."""
    match = _RESULT.fullmatch(text)
    if match is None:
        raise ToolUsageError(f"{option}: {text}: write it as RESOURCE_TASK_INTERVAL@NODE=CODE")
    return Result(match["resource"], match["task"], match["interval"], match["node"], int(match["code"]))


@dataclass(frozen=True, slots=True)
class Step:
    """An action that comes to be executed."""

    action: PlannedAction
    code: int | None
    """With which it is supposed to fail; None: it ends as it is to."""
    injected: tuple[str, ...] = ()
    """What is counted for its failure."""


def steps(
    cib: Cib, found: Plan, actions: Sequence[PlannedAction], *, failures: Sequence[str], now: WallTime,
    numbers: Numbers,
) -> list[Step]:
    """Return what is executed, in the order in which crm_simulate executes it. Raises ToolUsageError."""
    wanted = [result_of(each, "--op-fail") for each in failures]
    failing: dict[int, int] = {}
    for number, action in found.graph.actions.items():
        codes = [each.code for each in wanted if _is_of(each, action, found.listing)]
        if codes:
            failing[number] = codes[0]
    by_number = {each.id: each for each in actions}
    pseudo = {each.id for each in actions if each.kind == "pseudo"}
    urgent = {number for number, action in found.graph.actions.items()
              if action.priority >= INFINITY and action.kind is not ActionKind.FENCE}  # fmt: skip
    inputs = {each.id: each.after or () for each in actions}
    order = executed_in_passes(found.listing, inputs, found.held_back, failing=failing.keys(), pseudo=pseudo,
                               urgent=urgent)  # fmt: skip
    ends = ((by_number[number], failing.get(number)) for number in order)
    return [Step(action, code, _injected(cib, action, code, now, numbers)) for action, code in ends]


def _injected(
    cib: Cib, action: PlannedAction, code: int | None, now: WallTime, numbers: Numbers
) -> tuple[str, ...]:
    if code is None:
        return ()
    result = _result_of(action, code)
    return tuple(failure_of(_failed(cib, result, now), result, now, numbers))


def _result_of(action: PlannedAction, code: int) -> Result:
    assert action.resource is not None
    assert action.node is not None
    return Result(action.resource, action.task, str(action.interval or 0), action.node, code)


def _failed(cib: Cib, result: Result, now: WallTime) -> Cib:
    """Return a CIB with a failure. Raises ToolUsageError for what is no primitive, as the connection to a guest."""
    changed = operation_failure(cib, result.as_supposition, now)
    if not isinstance(changed, Cib):
        raise ToolUsageError(f"--op-fail: {changed.message}")
    return changed


def _is_of(wanted: Result, action: GraphAction, listing: Mapping[int, str]) -> bool:
    """Tell whether an action is the one that is supposed to fail, by the resource's name or its instance's."""
    if action.kind is not ActionKind.RESOURCE or action.is_named(ActionName.CANCEL):
        return False
    is_there = (action.node or "").lower() == wanted.node.lower()
    is_it = (action.name, action.interval_ms) == (wanted.task, int(wanted.interval))
    return is_there and is_it and wanted.resource in (action.resource, action.instance, listing.get(action.id))


def afterwards(cib: Cib, found: Plan, executed: Sequence[Step], now: WallTime) -> Cib:
    """Return the CIB with the results of what is executed."""
    if all(each.code is None for each in executed):
        return recorded(cib, found, now, has_probes=True)
    done = [found.graph.actions[each.action.id] for each in executed
            if each.code is None and each.action.id in found.graph.actions]  # fmt: skip
    cib = recorded(cib, found, now, done, has_probes=True)
    for each in executed:
        cib = cib if each.code is None else _failed(cib, _result_of(each.action, each.code), now)
    return cib


def to_be_saved(cib: Cib, now: WallTime, options: ScheduleOptions) -> Cib:
    """Return a CIB whose results have the digests by which Pacemaker's tools find that nothing has changed."""
    bare = without_marks(cib)
    digested = status_for_pacemakers_tools(bare, bare.configuration, now, options)
    nodes = {}
    for name, status in cib.status.nodes.items():
        histories = {}
        for key, history in status.histories.items():
            found = digested.nodes[name].histories[key].records
            records = {at: replace(each, digest=found[at].digest, restart_digest=found[at].restart_digest)
                       for at, each in history.records.items()}  # fmt: skip
            histories[key] = replace(history, records=records)
        nodes[name] = replace(status, histories=histories)
    return replace(cib, status=replace(cib.status, nodes=nodes))


def with_unclean(cib: Cib, now: WallTime, options: ScheduleOptions) -> Cib:
    """Return a CIB to be shown in which the nodes that are to be fenced next count as unclean.

    That is so after a stop that failed.
    """
    found = plan(cib, now, options=options)
    actions = found.graph.actions.values() if isinstance(found, Plan) else ()
    fenced = {each.node for each in actions if each.kind is ActionKind.FENCE}
    nodes = {name: replace(each, is_condemned=each.is_condemned or name in fenced)
             for name, each in cib.status.nodes.items()}  # fmt: skip
    return replace(cib, status=replace(cib.status, nodes=nodes))


def failure_of(cib: Cib, wanted: Result, now: WallTime, numbers: Numbers) -> Iterator[str]:
    """Say what is counted for a result that is injected, if it is a failure."""
    name = next(each for each in cib.status.nodes if each.lower() == wanted.node.lower())
    history = cib.status.nodes[name].histories[ResourceId(wanted.resource)]
    has_nothing = wanted.code == ExitCode.NOT_RUNNING and not int(wanted.interval)
    if history.records[operation_key(wanted.task, int(wanted.interval))].is_failure and not has_nothing:
        what, where = f"{wanted.resource}#{wanted.task}_{wanted.interval}", f"'{numbers.get(name, name)}'"
        yield f"Injecting attribute fail-count-{what}=value++ into /node_state {where}"
        yield f"Injecting attribute last-failure-{what}={now // 1000} into /node_state {where}"
