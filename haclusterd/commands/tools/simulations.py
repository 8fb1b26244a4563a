"""crm_simulate: the state of the cluster, what it would do, and how it would be then; also under suppositions.

The scheduler that plans is this cluster's own, and so are the reasons. The words and the XML are those of
crm_simulate(8) of Pacemaker 2.1.5.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from haclusterd.commands import simulate
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.names import node_names
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.injection import SUPPOSITIONS, suppose
from haclusterd.commands.planning.planning import context_of, plan, standing
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.resource import resource
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, ask, output, printed
from haclusterd.commands.tools.cib import whole
from haclusterd.commands.tools.monitor_text import MANAGEMENT_IS_DISABLED, cluster_lines, instances_in
from haclusterd.commands.tools.monitor_xml import sections_as_xml
from haclusterd.commands.tools.result import OUTPUT, document, wants_xml
from haclusterd.commands.tools.simulated_graph import as_dot
from haclusterd.commands.tools.simulated_graph import as_xml as graph_as_xml
from haclusterd.commands.tools.simulated_scores import Line, scores_of, utilization_of
from haclusterd.commands.tools.simulated_steps import (
    Step,
    afterwards,
    failure_of,
    result_of,
    steps,
    to_be_saved,
    with_unclean,
)
from haclusterd.commands.tools.simulated_xml import (
    cause,
    fencings_of,
    is_guest_mark,
    modifications_as_xml,
    plan_as_xml,
    pseudo,
)
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.cib_xml.merging import merged
from haclusterd.formats.cib_xml.status_writer import node_numbers
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.graph import Change, Plan
from haclusterd.model.ids import NodeName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.answers.resource import Scores
from haclusterd.verbs.answers.simulation import PlannedAction, PlannedChange, Simulation
from haclusterd.verbs.verb import Cost

_VERBS = {each.name: each for each in (*resource.VERBS, *simulate.VERBS)}
_PLANS = ("run", "simulate", "in_place", "scores", "utilization", "inject", "fail", "save_graph", "save_dot")
"""Options that ask for a plan."""
_MODIFIED = "Performing Requested Modifications:"
_JUDGED = {"scores": "allocations", "utilization": "utilizations"}
_TITLES = {"scores": "Allocation Scores", "utilization": "Utilization Information"}
_SETTINGS = ("quorum", "watchdog")
_MODIFICATIONS = {"node_up": "Bringing", "node_down": "Taking", "node_fail": "Failing"}
"""In the order in which Pacemaker's tool makes them."""
_ENDS = {"node_up": " online", "node_down": " offline", "node_fail": ""}
_TICKETS = {
    "granted": "Granting ticket {}", "revoked": "Revoking ticket {}", "standby": "Making ticket {} standby",
    "active": "Activating ticket {}",
}  # fmt: skip
_FAILED_NODE = "peer is no longer part of the cluster"
_NARROW = 5
"""How wide the columns of a summary are at least."""


def simulated(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_simulate: the state now and, with anything that asks for it, what would be done and how it would be then."""
    is_xml = wants_xml(given)
    if given.any_of("live", "file", "pipe") == "":
        raise ToolUsageError("say what: -L, -x FILE or -p")
    if "live" not in given and context.live is not None:
        raise ToolUsageError("a file is not planned by a daemon: crm simulate --cib FILE")
    if "in_place" in given and (given.any_of("live", "pipe") or not given.text("file")):
        raise ToolUsageError("-X stores the results in the file that is read: use it with -x FILE, without -L and -p")
    if "live" not in given:
        read = _of_file(context, call, given)
        if isinstance(read, Outcome):
            return read
        context = read
    if given.any_of(*_PLANS, *_MODIFICATIONS, *_TICKETS):
        return _planned(context, call, given, is_xml=is_xml)
    return _shown(context, call, given, is_xml=is_xml)


def _shown(context: Context, call: ToolCall, given: Given, *, is_xml: bool) -> Outcome[ToolOutput]:
    """Show the state, and what would be supposed if it were planned."""
    date = simulate.moment_of(given.text("date"))
    if isinstance(date, ReportItem):
        return refusal(date)
    supposed, said = _supposed(context, given)
    if isinstance(supposed, tuple):
        return refusal(*supposed)
    if is_xml:
        text = document(call, [*_xml_state(context, "cluster_status"), *modifications_as_xml(said)])
    else:
        modified = ["", _MODIFIED, *(f"  * {each}" for each in said)] if said else []
        lines = [] if "quiet" in given else [*_dated(given), *_state(context, given), *modified]
        text = "".join(f"{line}\n" for line in lines)
    return _with_files(printed(text), _saved(context, call, given, supposed, supposed))


def _dated(given: Given) -> list[str]:
    return [f"Setting effective cluster time: {given.text('date')}"] if "date" in given else []


def _state(context: Context, given: Given) -> Iterator[str]:
    """Yield the state as text."""
    if ClusterProperties(context.cib.in_force).boolean("maintenance-mode"):
        yield from ("", *MANAGEMENT_IS_DISABLED, "")
    count, disabled, blocked = instances_in(context)
    if disabled or blocked:
        limited = f"{disabled} of {count} resource instances DISABLED and {blocked} BLOCKED from further action due to"
        yield from (f"{limited} failure", "")
    yield "Current cluster status:"
    yield from _sections(context, given)


def _sections(context: Context, given: Given, *, has_pending: bool = True) -> Iterator[str]:
    sections = {"nodes", "resources"}
    sections |= {"attributes"} if "attributes" in given else set()
    sections |= {"failcounts", "failures"} if "failcounts" in given else set()
    yield from (f"  {line}" if line else "" for line in cluster_lines(
        context, frozenset(sections), has_pending=has_pending))  # fmt: skip


def _xml_state(context: Context, tag: str, *, has_pending: bool = True) -> Iterator[str]:
    yield from (f"<{tag}>", *sections_as_xml(context, "nodes", "resources", has_pending=has_pending), f"</{tag}>")


# Plans


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is to be shown of a plan."""

    context: Context
    """The state as it is, at the time for which it is planned."""
    cib: Cib
    """As it is supposed to be."""
    modifications: Sequence[str]
    plan: Plan
    simulation: Simulation
    judged: Sequence[Line]
    executed: Sequence[Step] | None
    """None: nothing is."""
    end: Cib
    shown_end: Cib
    """The same of this cluster, with what the next plan finds unclean; a CIB of Pacemaker shows that by itself."""


def _planned(context: Context, call: ToolCall, given: Given, *, is_xml: bool) -> Outcome[ToolOutput]:
    """Plan for this cluster, under what is supposed."""
    found = _found(context, given)
    if not isinstance(found, _Planned):
        return refusal(*found)
    text = document(call, _xml(found, given)) if is_xml else "".join(f"{line}\n" for line in _text(found, given))
    files = _saved(context, call, given, found.cib, found.end)
    if "save_dot" in given:
        files[given.text("save_dot")] = as_dot(found.plan)
    if "save_graph" in given:
        own = found.cib.configuration
        shown = own if context.live is None else masked(own, context.agents)
        files[given.text("save_graph")] = graph_as_xml(_numbers(context, found.cib), found.plan, shown)
    return _with_files(printed(text), files)


def _found(context: Context, given: Given) -> _Planned | tuple[ReportItem, ...]:
    date = simulate.moment_of(given.text("date"))
    if isinstance(date, ReportItem):
        return (date,)
    context = replace(context, now=date or context.now)
    cib, modifications = _supposed(context, given)
    if isinstance(cib, tuple):
        return cib
    options = standing(context, cib).options
    if "quorum" in given:
        options = replace(options, has_quorum=_is_true(given.text("quorum")))
    found = plan(cib, context.now, options=options)
    if isinstance(found, ReportItem):
        return (found,)
    planned = SimulationDocument(cib, found, context.now, None).write()
    executed = None
    if given.any_of("simulate", "in_place", "fail"):
        failures = [text for name, text in given.pairs if name == "fail"]
        executed = steps(cib, found, planned.actions, failures=failures, now=context.now,
                         numbers=_numbers(context, cib))  # fmt: skip
    end = cib if executed is None else afterwards(cib, found, executed, context.now)
    is_bare = "fail" in given and not options.is_pacemaker_compatible
    shown = with_unclean(end, context.now, options) if is_bare else end
    judged = list(_judged(replace(context, cib=cib), given, found))
    return _Planned(context, cib, modifications, found, planned, judged, executed, end, shown)


def _xml(found: _Planned, given: Given) -> Iterator[str]:
    title = "_".join(part for name, part in _JUDGED.items() if name in given)
    yield from _xml_state(found.context, "cluster_status")
    yield from plan_as_xml(found.simulation, found.plan, found.modifications, (title, found.judged), found.executed)
    if found.executed is not None:
        yield from _xml_state(replace(found.context, cib=found.shown_end), "revised_cluster_status", has_pending=False)


def _text(found: _Planned, given: Given) -> Iterator[str]:
    """Yield the answer as text: with scores or capacities without titles, as Pacemaker's tool, unless --text-fancy."""
    is_plain = bool(found.judged) and "fancy" not in given
    form: Callable[[Iterable[str]], Iterable[str]] = _bare if is_plain else iter
    judged = (f"  * {each.text}" for each in found.judged)
    if "quiet" in given:
        yield from (each.text for each in found.judged)
        return
    at = _dated(given)
    yield from (*at, *form(_state(found.context, given)), "")
    if found.modifications:
        yield from form((_MODIFIED, *(f"  * {each}" for each in found.modifications), ""))
    if is_plain:
        yield from (*(each.text for each in found.judged), "")
    elif found.judged:
        yield from (f"{' and '.join(title for name, title in _TITLES.items() if name in given)}:", *judged, "")
    yield from form(("Transition Summary:", *_summary(found.simulation, found.plan)))
    if found.executed is not None:
        done = (line for each in found.executed for line in _executed(each, found.plan))
        yield from form(("", "Executing Cluster Transition:", *done))
        after = replace(found.context, cib=found.shown_end)
        yield from (*at, *form(("", "Revised Cluster Status:", *_sections(after, given, has_pending=False))))


_LEAD, _ONLINE = re.compile(r"^ *(?:\* )?"), re.compile(r"^(?:Online|OFFLINE): (?=\[)")


def _bare(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without what puts them in order: titles, bullets, indents."""
    return (_ONLINE.sub("", _LEAD.sub("", line)) for line in lines if not line.endswith(":"))


def _judged(context: Context, given: Given, found: Plan) -> Iterator[Line]:
    """Yield how nodes were chosen, as far as that was asked for."""
    if "scores" in given:
        answer = ask(context, _VERBS["resource.scores"], {}).answer
        yield from scores_of(answer.resources) if isinstance(answer, Scores) else ()
    if "utilization" in given:
        yield from utilization_of(context.cib.in_force, node_names(context.cib), found)


# Files


def _saved(context: Context, call: ToolCall, given: Given, cib: Cib, end: Cib) -> dict[str, str]:
    """Return the CIBs that are to be saved, by file: as it is supposed to be, and as it is in the end."""
    wanted = {given.text(option): state for option, state in (
        ("save_input", cib), ("save_output", end), ("in_place", end)) if option in given}  # fmt: skip
    if "in_place" in given:
        wanted[given.text("file")] = wanted.pop("")
    if wanted and context.live is not None and context.seen_xml is not None:
        raise ToolUsageError("-I, -O: who may not see the whole configuration saves none")
    return {name: _document(context, call, state) for name, state in wanted.items()}


def _document(context: Context, call: ToolCall, state: Cib) -> str:
    """Return a CIB as XML; of a file, what nothing was supposed about stays as it stands there."""
    if context.live is not None:
        return whole(replace(context, cib=state), has_digests=True)
    read = context.cib
    if state == read:
        return call.text
    state = to_be_saved(state, context.now, context.schedule_options)
    return merged(call.text, read, state, context.author.partition("@")[0])


def _with_files(outcome: Outcome[ToolOutput], files: dict[str, str]) -> Outcome[ToolOutput]:
    answer = outcome.answer
    assert answer is not None
    return outcome if not files else replace(outcome.showing(output(answer.out, answer.err, files)), exit_status=0)


# Suppositions


def _numbers(context: Context, cib: Cib) -> Mapping[NodeName, str]:
    """Return the ids of nodes; in a file a node that has none goes by its name."""
    if context.live is not None:
        return node_numbers(cib)
    return {name: entry.id or name for name, entry in cib.configuration.nodes.items()}


def _is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on", "y")


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
    said = [f"Setting {name}: {given.text(name)}" for name in _SETTINGS if name in given] + said
    tickets = [(text, state) for state, text in given.pairs if state in _TICKETS]
    said += [_TICKETS[state].format(text) for text, state in tickets]
    wanted["ticket"] = tuple(f"{text}={state}" for text, state in tickets)
    wanted["node_up"], wanted["node_down"] = named["node_up"], (*named["node_fail"], *named["node_down"])
    results = [result_of(text, "--op-inject") for text in named["inject"]]
    wanted["op_fail"] = tuple(each.as_supposition for each in results)
    if "watchdog" in given:
        wanted["set"] = (f"have-watchdog={str(_is_true(given.text('watchdog'))).lower()}",)
    cib = suppose(context.cib, wanted, context.now)
    if isinstance(cib, tuple):
        return cib, said
    for text, result in zip(named["inject"], results, strict=True):
        counted = failure_of(cib, result, context.now, _numbers(context, cib))
        said += [f"Injecting {text} into the configuration", *counted]
    nodes = dict(cib.status.nodes)
    for name in map(NodeName, named["node_down"]):
        nodes[name] = NodeStatus(name, NodeState.LEFT, nodes[name].incarnation, context.now)
    for name in map(NodeName, named["node_fail"]):
        nodes[name] = replace(nodes[name], detail=_FAILED_NODE)
    return replace(cib, status=replace(cib.status, nodes=nodes)), said


def _summary(planned: Simulation, found: Plan) -> Iterator[str]:
    """Yield the changes in columns that are as wide as Pacemaker's: `  * Move       web     ( n1 -> n2 )`."""
    name_width = place_width = _NARROW
    changes = [each for each in planned.summary if each.resource is not None]
    for change in changes:
        length = len(change.resource or "")
        name_width = length + 2 if length > name_width else name_width
        place_width = max(place_width, len(_places(change)))
    for fenced, launcher in fencings_of(planned, found):
        by = f" (resource: {launcher})" if launcher else ""
        yield f"  * Fence ({fenced.op}) {fenced.node}{by}" + (f" '{fenced.reason}'" if fenced.reason else "")
    for change, each in zip(changes, found.changes, strict=True):
        where = f"( {_places(change):>{place_width}} )"
        yield f"  * {change.action.capitalize():<10} {change.resource:<{name_width}}   {where}{_because(each)}"


def _because(change: Change) -> str:
    """Say why, as Pacemaker does: by what else caused it, or of a stop that no node is left."""
    why = cause(change)
    blocked = " (blocked)" if change.is_blocked else ""
    return f"  due to {why}{blocked}" if why else f" {blocked}" if blocked else ""


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


def _task(action: PlannedAction) -> str:
    every = "" if action.interval is None else f"={action.interval}"
    return f"{action.task}{every}"


def _executed(step: Step, found: Plan) -> Iterator[str]:
    """Write one action: `  * Resource action: web             start on n1`."""
    yield _done(step.action, found)
    if step.code is not None:
        yield f"Pretending action {step.action.id} failed with rc={step.code}"
        yield from (f"  * {each}" for each in step.injected)


def _done(action: PlannedAction, found: Plan) -> str:
    if is_guest_mark(action, found):
        return f"  * Pseudo action:   stonith-{action.node}-{action.task} on {action.node}"
    if action.kind == "fence":
        return f"  * Fencing {action.node} ({action.task})"
    if action.kind == "pseudo":
        return f"  * Pseudo action:   {pseudo(action, found)}"
    if action.kind == "cluster":
        about = "" if action.resource is None else f" for {action.resource}"
        return f"  * Cluster action:  {action.task}{about} on {action.node}"
    return f"  * Resource action: {found.listing[action.id]:<15} {_task(action)} on {action.node}"


TOOLS = {
    "crm_simulate": Tool(simulated, {
        "live": "L live-check", "file": "x: xml-file:", "pipe": "p xml-pipe", "scores": "s show-scores",
        "run": "R run", "simulate": "S simulate", "in_place": "X in-place", "quiet": "Q quiet",
        "utilization": "U show-utilization", "attributes": "A show-attrs", "failcounts": "c show-failcounts",
        "node_up": "u: node-up:", "node_down": "d: node-down:", "node_fail": "f: node-fail:",
        "inject": "i: op-inject:", "fail": "F: op-fail:", "date": "t: set-datetime:", "quorum": "q: quorum:",
        "watchdog": "w: watchdog:", "granted": "g: ticket-grant:", "revoked": "r: ticket-revoke:",
        "standby": "b: ticket-standby:", "active": "e: ticket-activate:", "save_input": "I: save-input:",
        "save_output": "O: save-output:", "save_graph": "G: save-graph:", "save_dot": "D: save-dotfile:",
        "all_actions": "a all-actions", "profile": "P: profile:", "repeat": "N: repeat:", **OUTPUT,
    }, cost=Cost.LONG, refused={
        "all_actions": "the graph has what is to be done; why something else is not: crm resource why RESOURCE",
        **dict.fromkeys(("profile", "repeat"), "call crm_simulate -x FILE -R for each file"),
    }),
}  # fmt: skip
