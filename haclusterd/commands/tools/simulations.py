"""crm_simulate: the state of the cluster, what it would do, and how it would be then; also under suppositions.

The scheduler that plans is this cluster's own, and so are the reasons. The words and the XML are those of
crm_simulate(8) of Pacemaker 2.1.5.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from haclusterd.commands import simulate
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.injection import SUPPOSITIONS, suppose
from haclusterd.commands.planning.planning import context_of, plan, standing
from haclusterd.commands.planning.recorded_transition import executed_in_passes, recorded
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.resource import resource
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, ask, printed
from haclusterd.commands.tools.monitor_text import cluster_lines, instances_in
from haclusterd.commands.tools.monitor_xml import sections_as_xml
from haclusterd.commands.tools.result import OUTPUT, document, wants_xml
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.status_writer import node_numbers
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.graph import Change, ChangeKind, Plan
from haclusterd.model.history import operation_key
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.answers.resource import Explanation, Scores
from haclusterd.verbs.answers.simulation import PlannedAction, PlannedChange, Simulation
from haclusterd.verbs.verb import Cost

_VERBS = {each.name: each for each in (*resource.VERBS, *simulate.VERBS)}
_INJECTED = re.compile(
    r"(?P<resource>.+)_(?P<task>[a-z][a-z-]*(?:_to|_from)?)_(?P<interval>\d+)@(?P<node>[^=]+)=(?P<code>\d+)", re.ASCII
)
_MODIFICATIONS = {"node_up": "Bringing", "node_down": "Taking", "node_fail": "Failing"}
"""In the order in which Pacemaker's tool makes them."""
_ENDS = {"node_up": " online", "node_down": " offline", "node_fail": ""}
_TICKETS = {
    "granted": "Granting ticket {}", "revoked": "Revoking ticket {}", "standby": "Making ticket {} standby",
    "active": "Activating ticket {}",
}  # fmt: skip
_COUNTED = re.compile(r"Injecting attribute (.+)=(value\+\+|[0-9]+) into (/node_state) '(.+)'")
_FAILED_NODE = "peer is no longer part of the cluster"
_XML_ACTIONS = {"Bringing": "Online", "Taking": "Offline"}
_NARROW = 5
"""How wide the columns of a summary are at least."""


def simulated(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_simulate: the state now and, with --run, --simulate, --show-scores or a supposition, what would be done."""
    is_xml = wants_xml(given)
    if given.any_of("live", "file", "pipe") == "":
        raise ToolUsageError("say what: -L, -x FILE or -p")
    if "live" not in given and context.live is not None:
        raise ToolUsageError("a file is planned by: crm simulate --cib FILE")
    if "utilization" in given:
        raise ToolUsageError("-U: capacities are part of the configuration; use: crm node utilization NODE show")
    is_supposed = given.any_of(*_MODIFICATIONS, *_TICKETS, "inject", "quorum", "date") != ""
    is_planned = is_supposed or given.any_of("run", "simulate", "scores") != ""
    if "live" not in given:
        read = _of_file(context, call, given)
        if isinstance(read, Outcome):
            return read
        context = read
    if is_xml and "scores" in given:
        raise ToolUsageError("--output-as=xml: scores are written by: crm --json resource scores")
    if not is_planned:
        lines = _xml_state(context, "cluster_status") if is_xml else _state(context, given)
        shown = [] if "quiet" in given and not is_xml else list(lines)
        return printed(document(call, shown) if is_xml else "".join(f"{line}\n" for line in shown))
    return _planned(context, call, given, is_xml=is_xml)


def _state(context: Context, given: Given) -> Iterator[str]:
    """Yield the state as text."""
    count, disabled, blocked = instances_in(context)
    if disabled or blocked:
        limited = f"{disabled} of {count} resource instances DISABLED and {blocked} BLOCKED from further action due to"
        yield from (f"{limited} failure", "")
    yield "Current cluster status:"
    yield from _sections(context, given)


def _sections(context: Context, given: Given) -> Iterator[str]:
    sections = {"nodes", "resources"}
    sections |= {"attributes"} if "attributes" in given else set()
    sections |= {"failcounts", "failures"} if "failcounts" in given else set()
    yield from (f"  {line}" if line else "" for line in cluster_lines(context, frozenset(sections)))


def _xml_state(context: Context, tag: str) -> Iterator[str]:
    yield from (f"<{tag}>", *sections_as_xml(context, "nodes", "resources"), f"</{tag}>")


# Plans


def _planned(context: Context, call: ToolCall, given: Given, *, is_xml: bool) -> Outcome[ToolOutput]:
    """Plan for this cluster, under what is supposed."""
    date = simulate.moment_of(given.text("date"))
    if isinstance(date, ReportItem):
        return refusal(date)
    context = replace(context, now=date or context.now)
    cib, modifications = _supposed(context, given)
    if isinstance(cib, tuple):
        return refusal(*cib)
    options = standing(context, cib).options
    if "quorum" in given:
        options = replace(options, has_quorum=given.text("quorum").lower() in ("1", "true", "yes", "on", "y"))
    found = plan(cib, context.now, options=options)
    if isinstance(found, ReportItem):
        return refusal(found)
    after = replace(context, cib=recorded(cib, found, context.now))
    planned = SimulationDocument(cib, found, context.now, None).write()
    if is_xml:
        lines = [*_xml_state(context, "cluster_status"), *_xml_plan(planned, found, modifications, given)]
        lines += _xml_state(after, "revised_cluster_status") if "simulate" in given else ()
        return printed(document(call, lines))
    scores = _scores(replace(context, cib=cib)) if "scores" in given else []
    if "quiet" in given:
        return printed("".join(f"{line.removeprefix('  * ')}\n" for line in scores))
    at = [f"Setting effective cluster time: {given.text('date')}"] if date is not None else []
    lines = [*at, *_state(context, given), ""]
    if modifications:
        lines += ["Performing Requested Modifications:", *(f"  * {each}" for each in modifications), ""]
    lines += [*(("Assignment Scores:", *scores, "") if scores else ()), *_plan_lines(found, planned, given)]
    if "simulate" in given:
        lines += [*at, "", "Revised Cluster Status:", *_sections(after, given)]
    return printed("".join(f"{line}\n" for line in lines))


def _scores(context: Context) -> list[str]:
    judged = ask(context, _VERBS["resource.scores"], {})
    return list(_score_lines(judged.answer.resources)) if isinstance(judged.answer, Scores) else []


def _of_file(context: Context, call: ToolCall, given: Given) -> Context | Outcome[ToolOutput]:
    """Return the context for questions about the CIB that was given, or the refusal of that CIB."""
    reading = read_cib(call.text, given.text("file") or "text")
    if has_errors(reading.reports):
        return Outcome(reading.reports)
    return context_of(reading, context)


def _supposed(context: Context, given: Given) -> tuple[Cib | tuple[ReportItem, ...], list[str]]:
    """Return the CIB under what is supposed, or the objections to it, and how each supposition is called."""
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(SUPPOSITIONS, ())
    named = {name: tuple(text for each, text in given.pairs if each == name) for name in (*_MODIFICATIONS, "inject")}
    said = [f"{verb} node {node}{_ENDS[name]}" if name != "node_fail" else f"{verb} node {node}"
            for name, verb in _MODIFICATIONS.items() for node in named[name]]  # fmt: skip
    tickets = [(text, state) for state, text in given.pairs if state in _TICKETS]
    said += [_TICKETS[state].format(text) for text, state in tickets]
    wanted["ticket"] = tuple(f"{text}={state}" for text, state in tickets)
    wanted["node_up"], wanted["node_down"] = named["node_up"], (*named["node_fail"], *named["node_down"])
    wanted["op_fail"] = tuple(map(_injected, named["inject"]))
    cib = suppose(context.cib, wanted, context.now)
    if isinstance(cib, tuple):
        return cib, said
    said += [line for text in named["inject"] for line in _injection(cib, text, context.now)]
    nodes = dict(cib.status.nodes)
    for name in map(NodeName, named["node_down"]):
        nodes[name] = NodeStatus(name, NodeState.LEFT, nodes[name].incarnation, context.now)
    for name in map(NodeName, named["node_fail"]):
        nodes[name] = replace(nodes[name], detail=_FAILED_NODE)
    return replace(cib, status=replace(cib.status, nodes=nodes)), said


def _injection(cib: Cib, text: str, now: WallTime) -> Iterator[str]:
    """Say what is done for a result that is supposed: a failure counts."""
    yield f"Injecting {text} into the configuration"
    match = _INJECTED.fullmatch(text)
    assert match is not None
    name = next(each for each in cib.status.nodes if each.lower() == match["node"].lower())
    history = cib.status.nodes[name].histories[ResourceId(match["resource"])]
    if history.records[operation_key(match["task"], int(match["interval"]))].is_failure:
        what, where = f"{match['resource']}#{match['task']}_{match['interval']}", f"'{node_numbers(cib)[name]}'"
        yield f"Injecting attribute fail-count-{what}=value++ into /node_state {where}"
        yield f"Injecting attribute last-failure-{what}={now // 1000} into /node_state {where}"


def _injected(text: str) -> str:
    """Return a result (`web_monitor_10000@n1=1`) as `simulate` takes it. Raises ToolUsageError."""
    match = _INJECTED.fullmatch(text)
    if match is None:
        raise ToolUsageError(f"--op-inject: {text}: write it as RESOURCE_TASK_INTERVAL@NODE=CODE")
    return f"{match['resource']}:{match['task']}:{match['interval']}ms@{match['node']}={match['code']}"


def _plan_lines(found: Plan, planned: Simulation, given: Given) -> Iterator[str]:
    yield from ("Transition Summary:", *_summary(planned.summary, found))
    if "simulate" in given:
        yield from ("", "Executing Cluster Transition:")
        yield from (_executed(each, found) for each in _in_order(planned.actions, found))


def _score_lines(resources: Iterable[Explanation]) -> Iterator[str]:
    """Yield the scores as Pacemaker 2.1 words them: of each resource by node, then those of promotions."""
    for entry in resources:
        for node, score in sorted((each.node, each.score) for each in entry.nodes):
            yield f"  * pcmk__primitive_assign: {entry.resource} allocation score on {node}: {score}"
        if entry.promotion is not None and entry.next_on is not None:
            yield f"  * {entry.resource} promotion score on {entry.next_on}: {entry.promotion.score}"


def _summary(summary: Sequence[PlannedChange], found: Plan) -> Iterator[str]:
    """Yield the changes in columns that are as wide as Pacemaker's: `  * Move       web     ( n1 -> n2 )`."""
    name_width = place_width = _NARROW
    changes = [each for each in summary if each.resource is not None]
    for change in changes:
        length = len(change.resource or "")
        name_width = length + 2 if length > name_width else name_width
        place_width = max(place_width, len(_places(change)))
    for fenced in (each for each in summary if each.resource is None):
        yield f"  * Fence ({fenced.op}) {fenced.node}" + (f" '{fenced.reason}'" if fenced.reason else "")
    for change, each in zip(changes, found.changes, strict=True):
        where = f"( {_places(change):>{place_width}} )"
        yield f"  * {change.action.capitalize():<10} {change.resource:<{name_width}}   {where}{_because(each)}"


def _because(change: Change) -> str:
    """Say why, as Pacemaker does: by what else caused it, or of a stop that no node is left."""
    cause = _cause(change)
    blocked = " (blocked)" if change.is_blocked else ""
    return f"  due to {cause}{blocked}" if cause else f" {blocked}" if blocked else ""


def _cause(change: Change) -> str:
    return change.cause or ("node availability" if change.kind is ChangeKind.STOP else "")


def _places(change: PlannedChange) -> str:
    """Return from where to where a change is; of one on a single node the roles, where there are such."""
    if change.from_ is None and change.action == "promote":
        return f"{change.from_role} -> {change.to_role} {change.to}"
    if change.from_role is not None and change.from_ == change.to:
        return f"{change.from_role} -> {change.to_role} {change.to}" if change.from_role != change.to_role else (
            f"{change.from_role} {change.to}"
        )
    ends = ((change.from_role, change.from_), (change.to_role, change.to))
    here, there = (" ".join(filter(None, end)) if end[1] else "" for end in ends)
    return here if here == there else " -> ".join(filter(None, (here, there)))


def _in_order(actions: Sequence[PlannedAction], found: Plan) -> list[PlannedAction]:
    """Return the actions as crm_simulate executes them; what the cluster does beside the graph comes last."""
    by_number = {each.id: each for each in actions}
    order = executed_in_passes(found.listing, {each.id: each.after or () for each in actions}, found.held_back)
    return [by_number[number] for number in order]


def _task(action: PlannedAction) -> str:
    every = "" if action.interval is None else f"={action.interval}"
    return f"{action.task}{every}"


def _executed(action: PlannedAction, found: Plan) -> str:
    """Write one action: `  * Resource action: web             start on n1`."""
    if action.kind == "fence":
        return f"  * Fencing {action.node} ({action.task})"
    if action.kind == "pseudo":
        return f"  * Pseudo action:   {_pseudo(action)}"
    if action.kind == "cluster":
        about = "" if action.resource is None else f" for {action.resource}"
        return f"  * Cluster action:  {action.task}{about} on {action.node}"
    return f"  * Resource action: {found.listing[action.id]:<15} {_task(action)} on {action.node}"


def _pseudo(action: PlannedAction) -> str:
    return action.task if action.resource is None else f"{action.resource}_{action.task}_0"


def _xml_plan(planned: Simulation, found: Plan, modifications: Sequence[str], given: Given) -> Iterator[str]:
    if modifications:
        yield from element("modifications", {}, (line for each in modifications for line in _xml_modification(each)))
    fencings = [each for each in planned.summary if each.resource is None]
    changes = [each for each in planned.summary if each.resource is not None]
    lines = [line for each in fencings for line in _xml_fencing(each)]
    lines += [line for each, why in zip(changes, found.changes, strict=True) for line in _xml_change(each, why)]
    yield from element("actions", {}, lines)
    if "simulate" in given:
        inside = (line for each in _in_order(planned.actions, found) for line in _xml_action(each, found))
        yield from element("transition", {}, inside)


def _xml_modification(text: str) -> Iterator[str]:
    counted = _COUNTED.fullmatch(text)
    if counted is not None:
        name, value, path, node = counted.groups()
        return element("inject_attr", {"name": name, "value": value, "node_path": path, "cib_node": node})
    verb, kind, rest = text.partition(" node ")
    if not kind:
        verb, kind, rest = text.partition(" ticket ")
    if not kind:
        return element("inject_spec", {"spec": text.removeprefix("Injecting ").removesuffix(" into the configuration")})
    name, _, end = rest.partition(" ")
    if kind == " node ":
        return element("modify_node", {"action": _XML_ACTIONS.get(verb, verb), "node": name})
    return element("modify_ticket", {"action": f"{verb} {end}".strip(), "ticket": name})


def _xml_fencing(change: PlannedChange) -> Iterator[str]:
    return element("node_action", {"task": f"Fence ({change.op})", "node": change.node, "reason": change.reason})


def _xml_change(change: PlannedChange, why: Change) -> Iterator[str]:
    is_of_two = change.from_ is not None and change.action not in ("stop", "start")
    attributes: dict[str, Json] = {
        "action": change.action, "resource": change.resource, "role": change.from_role,
        "next-role": change.to_role if change.to_role != change.from_role and change.to is not None else None,
        "node": None if is_of_two else change.from_ or change.to, "source": change.from_ if is_of_two else None,
        "dest": change.to if is_of_two and change.to != change.from_ else None, "reason": _cause(why) or None,
        "blocked": "true" if why.is_blocked else None,
    }  # fmt: skip
    return element("rsc_action", {key: str(value) for key, value in attributes.items() if value is not None})


def _xml_action(action: PlannedAction, found: Plan) -> Iterator[str]:
    if action.kind == "fence":
        return element("fencing_action", {"target": action.node, "op": action.task})
    if action.kind == "pseudo":
        return element("pseudo_action", {"task": _pseudo(action)})
    if action.kind == "cluster":
        return element("cluster_action", {"task": action.task, "node": action.node, "id": action.resource})
    every = None if action.interval is None else str(action.interval)
    return element(
        "rsc_action", {"resource": found.listing[action.id], "op": action.task, "node": action.node, "interval": every}
    )


TOOLS = {
    "crm_simulate": Tool(simulated, {
        "live": "L live-check", "file": "x: xml-file:", "pipe": "p xml-pipe", "scores": "s show-scores",
        "run": "R run", "simulate": "S simulate", "quiet": "Q quiet", "utilization": "U show-utilization",
        "attributes": "A show-attrs", "failcounts": "c show-failcounts", "node_up": "u: node-up:",
        "node_down": "d: node-down:", "node_fail": "f: node-fail:", "inject": "i: op-inject:",
        "date": "t: set-datetime:", "quorum": "q: quorum:", "granted": "g: ticket-grant:",
        "revoked": "r: ticket-revoke:", "standby": "b: ticket-standby:", "active": "e: ticket-activate:", **OUTPUT,
    }, cost=Cost.LONG),
}  # fmt: skip
