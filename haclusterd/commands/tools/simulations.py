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
from haclusterd.commands.planning.planning import plan, standing
from haclusterd.commands.planning.recorded_transition import recorded
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.resource import resource
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, ask, printed
from haclusterd.commands.tools.monitor_text import cluster_lines, instances_in
from haclusterd.commands.tools.monitor_xml import sections_as_xml
from haclusterd.commands.tools.result import OUTPUT, document, wants_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.reports.items import ReportItem
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
    if is_planned and "live" not in given:
        return _of_file(context, call, given)
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
        lines = [*_xml_state(context, "cluster_status"), *_xml_plan(planned, modifications, given)]
        lines += _xml_state(after, "revised_cluster_status") if "simulate" in given else ()
        return printed(document(call, lines))
    scores = _scores(replace(context, cib=cib)) if "scores" in given else []
    if "quiet" in given:
        return printed("".join(f"{line.removeprefix('  * ')}\n" for line in scores))
    at = [f"Setting effective cluster time: {given.text('date')}"] if "date" in given else []
    lines = [*at, *_state(context, given), ""]
    if modifications:
        lines += ["Performing Requested Modifications:", *(f"  * {each}" for each in modifications), ""]
    lines += [*(("Assignment Scores:", *scores, "") if scores else ()), *_plan_lines(planned, given)]
    if "simulate" in given:
        lines += [*at, "", "Revised Cluster Status:", *_sections(after, given)]
    return printed("".join(f"{line}\n" for line in lines))


def _scores(context: Context) -> list[str]:
    judged = ask(context, _VERBS["resource.scores"], {})
    return list(_score_lines(judged.answer.resources)) if isinstance(judged.answer, Scores) else []


def _of_file(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Plan for the CIB that was given."""
    outcome = ask(context, _VERBS["simulate"], {"text": call.text, "source": given.text("file") or "text"})
    if outcome.is_refused:
        return refusal(*outcome.reports)
    assert isinstance(outcome.answer, Simulation)
    return printed("".join(f"{line}\n" for line in _plan_lines(outcome.answer, given)))


def _supposed(context: Context, given: Given) -> tuple[Cib | tuple[ReportItem, ...], list[str]]:
    """Return the CIB under what is supposed, or the objections to it, and how each supposition is called."""
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(SUPPOSITIONS, ())
    named = {name: tuple(text for each, text in given.pairs if each == name) for name in (*_MODIFICATIONS, "inject")}
    said = [f"{verb} node {node}{_ENDS[name]}" if name != "node_fail" else f"{verb} node {node}"
            for name, verb in _MODIFICATIONS.items() for node in named[name]]  # fmt: skip
    tickets = [(text, state) for state, text in given.pairs if state in _TICKETS]
    said += [_TICKETS[state].format(text) for text, state in tickets]
    wanted["ticket"] = tuple(f"{text}={state}" for text, state in tickets)
    said += [f"Injecting {text} into the configuration" for text in named["inject"]]
    wanted["node_up"], wanted["node_down"] = named["node_up"], (*named["node_fail"], *named["node_down"])
    wanted["op_fail"] = tuple(map(_injected, named["inject"]))
    cib = suppose(context.cib, wanted, context.now)
    if isinstance(cib, tuple):
        return cib, said
    nodes = dict(cib.status.nodes)
    for name in map(NodeName, named["node_down"]):
        nodes[name] = replace(nodes[name], state=NodeState.LEFT, histories={}, orders={}, probed=frozenset())
    return replace(cib, status=replace(cib.status, nodes=nodes)), said


def _injected(text: str) -> str:
    """Return a result (`web_monitor_10000@n1=1`) as `simulate` takes it. Raises ToolUsageError."""
    match = _INJECTED.fullmatch(text)
    if match is None:
        raise ToolUsageError(f"--op-inject: {text}: write it as RESOURCE_TASK_INTERVAL@NODE=CODE")
    interval = f":{match['interval']}ms" if match["interval"] != "0" else ""
    return f"{match['resource']}:{match['task']}{interval}@{match['node']}={match['code']}"


def _plan_lines(planned: Simulation, given: Given) -> Iterator[str]:
    yield from ("Transition Summary:", *_summary(planned.summary))
    if "simulate" in given:
        yield from ("", "Executing Cluster Transition:", *map(_executed, _shown(planned.actions)))


def _score_lines(resources: Iterable[Explanation]) -> Iterator[str]:
    """Yield the scores as Pacemaker 2.1 words them: of each resource by node, then those of promotions."""
    for entry in resources:
        for node, score in sorted((each.node, each.score) for each in entry.nodes):
            yield f"  * pcmk__primitive_assign: {entry.resource} allocation score on {node}: {score}"
        if entry.promotion is not None and entry.next_on is not None:
            yield f"  * {entry.resource} promotion score on {entry.next_on}: {entry.promotion.score}"


def _summary(changes: Sequence[PlannedChange]) -> Iterator[str]:
    """Yield the changes in columns that are as wide as Pacemaker's: `  * Move       web     ( n1 -> n2 )`."""
    name_width = place_width = _NARROW
    for change in changes:
        if change.resource is not None:
            length = len(change.resource)
            name_width = length + 2 if length > name_width else name_width
            place_width = max(place_width, len(_places(change)))
    for change in changes:
        if change.resource is None:
            yield f"  * Fence ({change.op}) {change.node}" + (f" '{change.reason}'" if change.reason else "")
            continue
        because = f"  due to {change.reason}" if change.reason else ""
        where = f"( {_places(change):>{place_width}} )"
        yield f"  * {change.action.capitalize():<10} {change.resource:<{name_width}}   {where}{because}"


def _places(change: PlannedChange) -> str:
    """Return from where to where a change is; of one on a single node the roles, where there are such."""
    if change.from_role is not None and change.from_ == change.to:
        return f"{change.from_role} -> {change.to_role} {change.to}" if change.from_role != change.to_role else (
            f"{change.from_role} {change.to}"
        )
    ends = ((change.from_role, change.from_), (change.to_role, change.to))
    here, there = (" ".join(filter(None, end)) if end[1] else "" for end in ends)
    return here if here == there else " -> ".join(filter(None, (here, there)))


def _shown(actions: Iterable[PlannedAction]) -> Iterator[PlannedAction]:
    return (each for each in actions if each.resource is not None or each.kind == "fence")


def _task(action: PlannedAction) -> str:
    every = "" if action.interval is None else f"={action.interval}"
    return f"{action.task}{every}"


def _executed(action: PlannedAction) -> str:
    """Write one action: `  * Resource action: web             start on n1`."""
    if action.kind == "fence":
        return f"  * Fencing {action.node} ({action.task})"
    if action.kind == "pseudo":
        return f"  * Pseudo action:   {action.resource}_{action.task}_0"
    if action.kind == "cluster":
        return f"  * Cluster action:  {action.task} for {action.resource} on {action.node}"
    return f"  * Resource action: {action.resource:<15} {_task(action)} on {action.node}"


def _xml_plan(planned: Simulation, modifications: Sequence[str], given: Given) -> Iterator[str]:
    if modifications:
        lines: list[str] = []
        for text in modifications:
            lines += _xml_modification(text)
        yield from element("modifications", {}, lines)
    yield from element("actions", {}, (line for each in planned.summary for line in _xml_change(each)))
    if "simulate" in given:
        inside = (line for each in _shown(planned.actions) for line in _xml_action(each))
        yield from element("transition", {}, inside)


def _xml_modification(text: str) -> Iterator[str]:
    verb, kind, rest = text.partition(" node ")
    if not kind:
        verb, kind, rest = text.partition(" ticket ")
    if not kind:
        return element("inject_spec", {"spec": text.removeprefix("Injecting ").removesuffix(" into the configuration")})
    name, _, end = rest.partition(" ")
    if kind == " node ":
        return element("modify_node", {"action": f"{verb} {end}".strip(), "node": name})
    return element("modify_ticket", {"action": f"{verb} {end}".strip(), "ticket": name})


def _xml_change(change: PlannedChange) -> Iterator[str]:
    if change.resource is None:
        return element("node_action", {"task": f"Fence ({change.op})", "node": change.node, "reason": change.reason})
    is_of_two = change.from_ is not None and change.action not in ("stop", "start")
    attributes: dict[str, Json] = {
        "action": change.action, "resource": change.resource, "role": change.from_role,
        "next-role": change.to_role if change.to_role != change.from_role and change.to is not None else None,
        "node": None if is_of_two else change.from_ or change.to, "source": change.from_ if is_of_two else None,
        "dest": change.to if is_of_two and change.to != change.from_ else None, "reason": change.reason,
    }  # fmt: skip
    return element("rsc_action", {key: str(value) for key, value in attributes.items() if value is not None})


def _xml_action(action: PlannedAction) -> Iterator[str]:
    if action.kind == "fence":
        return element("fencing_action", {"target": action.node, "op": action.task})
    if action.kind == "pseudo":
        return element("pseudo_action", {"task": f"{action.resource}_{action.task}_0"})
    if action.kind == "cluster":
        return element("cluster_action", {"task": action.task, "node": action.node, "id": action.resource})
    every = None if action.interval is None else str(action.interval)
    return element(
        "rsc_action", {"resource": action.resource, "op": action.task, "node": action.node, "interval": every}
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
