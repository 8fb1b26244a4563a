"""crm_resource: where resources run and why, their parameters, moves and clean-ups.

Options and output, as text and as XML, are those of crm_resource(8) of Pacemaker 2.1.5. What it changes goes through
the verbs of `crm resource`, and is judged as they are.
"""

from collections.abc import Iterable, Iterator

from haclusterd.commands.configure import configure
from haclusterd.commands.configure.change import change
from haclusterd.commands.configure.view import masked
from haclusterd.commands.context import Context
from haclusterd.commands.names import node_names
from haclusterd.commands.names import whole as outermost
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.planning import settled
from haclusterd.commands.resource import resource
from haclusterd.commands.resource import settings as resource_settings
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools import installed_agents
from haclusterd.commands.tools.attributes import is_unknown_node, node_of
from haclusterd.commands.tools.call import (
    NO_SUCH_OBJECT,
    USAGE,
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    awaited,
    carry_out,
    limit_of,
    not_found,
    output,
    printed,
)
from haclusterd.commands.tools.foreign_rows import rows_of
from haclusterd.commands.tools.monitor_text import one_resource, operation_lines, resource_lines
from haclusterd.commands.tools.monitor_view import stamp
from haclusterd.commands.tools.monitor_xml import operation_xml, resource_xml, sections_as_xml
from haclusterd.commands.tools.resource_constraints import Neighbourhood
from haclusterd.commands.tools.resource_reasons import Reasons, named_instances
from haclusterd.commands.tools.resource_reasons import as_xml as reasons_as_xml
from haclusterd.commands.tools.result import OUTPUT, as_xml, document, listed, wants_xml
from haclusterd.commands.tools.rows import CloneRow, GroupRow, PrimitiveRow, Row, Rows, primitives_in
from haclusterd.formats.cib_xml.elements import BlockWriter, element
from haclusterd.formats.cib_xml.resource_writer import ResourceWriter
from haclusterd.model import durations
from haclusterd.model.configuration import Bundle, Clone, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model import lifetimes
from haclusterd.scheduler.model.digests import pacemaker_digest
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

_VERBS = {each.name: each for each in (*resource.VERBS, *resource_settings.VERBS, *configure.VERBS)}
_SECTIONS = {"meta": "meta", "params": "parameters", "utilization": "utilization"}
_BLOCKS = {"meta": "meta_attributes", "params": "instance_attributes", "utilization": "utilization"}
_CHANGES = frozenset({"put", "take", "ban", "clear", "move", "cleanup", "refresh", "restart", "delete"})
_ACTIONS = ("list", "list_raw", "locate", "query", "raw", "get", "operations", "why", "constraints", "stack",
            "digests", *sorted(_CHANGES))  # fmt: skip
_FORCED = "an agent is called beside the cluster by: crm agent run AGENT ACTION NAME=VALUE"
_REFUSED = {
    "fail": "a failure is not made up here; crm resource restart, or crm node fence",
    "cts": "what is configured is shown by: crm configure show",
    **dict.fromkeys(("validate", "class", "provider", "agent", "option"), "crm ra validate AGENT NAME=VALUE"),
    **dict.fromkeys(("force_start", "force_stop", "force_promote", "force_demote", "force_check"), _FORCED),
}  # fmt: skip

EXISTS, UNIMPLEMENTED = 108, 3
_SETTLE_MS = 3_600_000
"""How long `--wait` and `--restart` wait without `--timeout`: an hour, as Pacemaker's `--wait`."""
_NOT_DONE = {
    "recursive": "set it for each resource by its name",
    "operation": "a clean-up is of all operations of a resource: leave out -n",
    "interval": "a clean-up is of all operations of a resource: leave out -I",
}
"""What would narrow or widen a change here: it is refused, since the change would be another one without it."""


def manage(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_resource: one question about resources, or one change."""
    is_xml = wants_xml(given)
    try:
        outcome = _managed(context, call, given, is_xml=is_xml)
    except ToolUsageError as error:
        if not is_xml:
            raise
        return printed(document(call, (), USAGE, f"{call.tool}: {error}"), status=USAGE)
    return as_xml(call, outcome) if is_xml else outcome


def _managed(context: Context, call: ToolCall, given: Given, *, is_xml: bool) -> Outcome[ToolOutput]:
    action = given.any_of(*_ACTIONS) or "list"
    refused = [f"--{name}: not done here: {instead}" for name, instead in _NOT_DONE.items()
               if name in given and action in _CHANGES]  # fmt: skip
    if refused:
        raise ToolUsageError(refused[0])
    if "expired" in given and "clear" not in given:
        raise ToolUsageError("--expired requires --clear or -U")
    if "wait" in given:
        return _settled(context, given)
    asked = given.any_of(*installed_agents.QUESTIONS)
    if asked:
        return installed_agents.answer(context, call, given, asked, is_xml=is_xml)
    if given.text("node") and is_unknown_node(context, node_of(context, call, given)):
        return not_found(call, f"Node '{given.text('node')}' not found\nError performing operation: No such object")
    if action in ("list", "list_raw", "operations"):
        return _listed(context, call, given, action, is_xml=is_xml)
    name = ResourceId(given.text("resource"))
    if not name and action not in ("why", "cleanup", "refresh") and not (action == "clear" and "expired" in given):
        raise ToolUsageError("Must supply a resource id with -r")
    return _about(context, call, given, action, name)


def _about(
    context: Context, call: ToolCall, given: Given, action: str, name: ResourceId
) -> Outcome[ToolOutput]:
    """Answer or change something of one resource; of all, for some commands."""
    known = context.cib.configuration.resources
    found = name if name in known else base_of(name)
    if name and (found not in known or (found != name and not _is_instance(context, name))):
        return not_found(call, f"Resource '{name}' not found\nError performing operation: No such object")
    if action in _QUESTIONS:
        return _QUESTIONS[action](context, call, given, found)
    if action in ("put", "take"):
        return _put(context, call, given, found)
    return _moved(context, call, given, action, found)


# Questions


def _lines(lines: Iterable[str]) -> Outcome[ToolOutput]:
    return printed("".join(f"{line}\n" for line in lines))


def _listed(context: Context, call: ToolCall, given: Given, action: str, *, is_xml: bool) -> Outcome[ToolOutput]:
    if action == "list_raw":
        names = [name for row in rows_of(context).resources for name, _ in named_instances(row)]
        if is_xml:
            return _lines(listed("resource names", names, name="resource"))
        return _lines(names) if names else not_found(call, "No resources found")
    if action == "list" and is_xml:
        return _lines(line.removeprefix("  ") for line in sections_as_xml(context, "resources"))
    if action == "list":
        return _lines(["Full List of Resources:", *resource_lines(context)])
    node = node_of(context, call, given) if given.text("node") else ""
    lines = operation_xml if is_xml else operation_lines
    return _lines(lines(context, node, given.text("resource")))


def _locate(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    """Say where a resource runs: a clone's instances with the highest number first, or the one that is asked for."""
    asked = ResourceId(given.text("resource"))
    parts = tuple(_parts(rows_of(context), asked)) or tuple(_parts(rows_of(context), name))
    found = dict.fromkeys((node, row.role == "Promoted") for row in reversed(parts) for node in sorted(row.nodes))
    name = asked
    if wants_xml(given):
        lines = [line for node, is_promoted in found for line in
                 element("node", {"state": "promoted" if is_promoted else None}, text=node)]  # fmt: skip
        return _lines(element("nodes", {"resource": name}, lines))
    if "quiet" not in given and not found:
        return printed(f"resource {name} is NOT running\n")
    if "quiet" in given:
        return _lines(dict.fromkeys(node for node, _ in found))
    return _lines(f"resource {name} is running on: {node}{' Promoted' if is_promoted else ''}"
                  for node, is_promoted in found)  # fmt: skip


def _parts(rows: Rows, name: ResourceId) -> Iterator[PrimitiveRow]:
    tops = (row for row in rows.resources if name in (row.id, row.child if isinstance(row, CloneRow) else row.id))
    top = next(tops, None)
    if top is not None:
        yield from primitives_in(top)
        return
    yield from (part for row in rows.resources for names, part in _numbered(row) if name in (part.id, *names))


def _numbered(row: Row) -> Iterator[tuple[tuple[str, ...], PrimitiveRow]]:
    """Yield the primitives in a row with the names of their instance, if it is one."""
    if isinstance(row, CloneRow):
        for number, each in enumerate(row.instances):
            group = (each.id,) if isinstance(each, GroupRow) else ()
            yield from (((f"{base_of(part.id)}:{number}", *group), part) for part in primitives_in(each))
    else:
        yield from (((), part) for part in primitives_in(row))


def _is_instance(context: Context, name: str) -> bool:
    """Tell whether a clone has an instance of that name (`web:0`)."""
    return any(name in names for row in rows_of(context).resources for names, _ in _numbered(row))


def _query(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    configuration = context.cib.configuration
    resource = configuration.resources[name]
    if isinstance(resource, Primitive) and resource.template is not None and given.any_of("query", "raw") == "query":
        alone = replace(expanded(resource, configuration), template=None)
        configuration = replace(configuration, resources={**configuration.resources, name: alone}, templates={})
    lines = ResourceWriter(configuration, BlockWriter()).lines()
    kept: list[str] = []
    for line in lines:
        is_start = f' id="{name}"' in line and line.lstrip().startswith("<") and not kept
        if is_start or kept:
            kept.append(line)
        if kept and (line.startswith(f"{_indent(kept[0])}</") or (is_start and line.endswith("/>"))):
            break
    cut = len(_indent(kept[0])) if kept else 0
    xml = [line[cut:] for line in kept]
    if wants_xml(given):
        text = "\n".join(xml).replace("]]>", "]]]]><![CDATA[>")
        shown = (f"  {line}" for line in resource_xml(context, name))
        return printed("\n".join(["<resource_config>", *shown, f"  <xml><![CDATA[{text}", "]]></xml>", ""])
                       + "</resource_config>\n")  # fmt: skip
    return _lines([*one_resource(context, name), "Resource XML:", *xml])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _section(given: Given) -> str:
    return "meta" if "meta" in given else "utilization" if "utilization" in given else "params"


def _get(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    wanted, section = given.text("get"), _section(given)
    owner = context.cib.in_force.resources[name]
    if section == "meta":
        rows = rows_of(context)
        meta = rows.overview.meta(owner) if isinstance(owner, Primitive) else effective(owner.meta)
        value = meta.get(wanted)
    else:
        whole = expanded(owner, context.cib.in_force) if isinstance(owner, Primitive) else owner
        value = effective(getattr(whole, _SECTIONS[section], ())).get(wanted)
    problem = f"Attribute '{wanted}' not found for '{given.text('resource')}'\n"
    if wants_xml(given):
        lines = [] if value is None else listed("attributes", [value], name=wanted)
        return printed("".join(f"{each}\n" for each in lines), "" if lines else problem)
    return printed(err=problem) if value is None else printed(f"{value}\n")


def _why(context: Context, call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    node = NodeName(node_of(context, call, given)) if given.text("node") else None
    reasons = Reasons(context)
    found = reasons.of_all() if node is None else reasons.on_node(node)
    found = [reasons.of_one(name, node)] if name else found
    if wants_xml(given):
        return _lines(reasons_as_xml(found, is_one=bool(name), node=node))
    return _lines(line for each in found for line in each.lines())


def _related(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    known = Neighbourhood(context)
    resource = known.find(name, is_alone="force" in given)
    is_deep = given.any_of("constraints", "stack") == "stack" or "recursive" in given
    if resource is None:
        return _lines(element("constraints", {}) if wants_xml(given) else ())
    return _lines((known.xml if wants_xml(given) else known.text)(resource, is_deep=is_deep))


def _settled(context: Context, given: Given) -> Outcome[ToolOutput]:
    """Answer when nothing is under way and nothing is left to do; exit status 124 when that takes too long."""
    return Outcome(
        answer=output(""), until=settled(context.now), until_plans=True, waiting_for="the cluster to settle",
        waits_by_default=True, wait_ms_max=limit_of(given, _SETTLE_MS),
    )  # fmt: skip


def _digests(context: Context, call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    """Answer the digest by which Pacemaker notices other parameters, of a start with those of the configuration."""
    if not given.text("node"):
        raise ToolUsageError("Must supply a node name with -N")
    shown = masked(context.cib.in_force, context.agents)
    resource = shown.resources[name]
    if not isinstance(resource, Primitive):
        return printed(err=f"{call.tool}: Error performing operation: Unimplemented\n", status=UNIMPLEMENTED)
    parameters = effective(expanded(resource, shown).parameters)
    digest = pacemaker_digest(parameters)
    if not wants_xml(given):
        return printed(f"{digest} (all parameters)\n{digest} (non-private parameters)\n")
    kinds = ("all", "nonprivate")
    lines = [line for kind in kinds for line in element(
        "digest", {"type": kind, "hash": digest}, element("parameters", dict(sorted(parameters.items()))))]  # fmt: skip
    node = node_of(context, call, given)
    in_clone = isinstance(shown.resources.get(shown.parents().get(name, name)), Clone)
    attributes = {"resource": f"{name}:0" if in_clone else name, "node": node, "task": "start", "interval": "0ms"}
    return _lines(element("digests", attributes, lines))


_QUESTIONS = {
    "digests": _digests,
    "locate": _locate, "query": _query, "raw": _query, "get": _get, "why": _why,
    "constraints": _related, "stack": _related,
}  # fmt: skip


# Changes


def _put(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    is_put = given.any_of("put", "take") == "put"
    section, parameter = _section(given), given.text("put") or given.text("take")
    if is_put and "value" not in given:
        raise ToolUsageError("You need to supply a value with the -v option")
    configuration = context.cib.configuration
    parent = configuration.resources.get(configuration.parents().get(name, name))
    said = ""
    if section == "meta" and isinstance(parent, Clone):
        if "force" in given:
            raise ToolUsageError(f"--force: leave it out, for {parent.id}; for {name} alone: crm configure edit {name}")
        did, asked = "update" if is_put else "delete", given.text("resource")
        if name != parent.id:
            said = f"Performing {did} of '{parameter}' on '{parent.id}', the parent of '{asked}'\n"
        name = parent.id
    owner = configuration.resources[name]
    blocks = getattr(owner, _SECTIONS[section], ())
    block = next((each.id for each in blocks), f"{name}-{_BLOCKS[section]}")
    if given.text("set", block) != block or given.text("id", f"{block}-{parameter}") != f"{block}-{parameter}":
        raise ToolUsageError(f"{parameter} is set in {block}: leave out -s and -i, or change the set by crm configure")
    option = f"id={block}-{parameter}"
    if is_put:
        value = given.text("value")
        new = "" if parameter in effective(blocks) else f" set={block}"
        out = f"{said}Set '{name}' option: {option}{new} name={parameter} value={value}\n"
        more: dict[str, Json] = {"action": "set", "value": value}
    else:
        out = f"Deleted '{name}' option: {option} name={parameter}\n" if parameter in effective(blocks) else ""
        out = said + out
        more = {"action": "delete"}
    arguments: dict[str, Json] = {"resource": name, "section": section, "name": parameter, **more}
    return carry_out(context, _VERBS["resource.setting"], arguments, out)


def _moved(context: Context, call: ToolCall, given: Given, action: str, name: ResourceId) -> Outcome[ToolOutput]:
    node = node_of(context, call, given) if given.text("node") else ""
    arguments: dict[str, Json] = {**({"resource": name} if name else {}), **({"node": node} if node else {})}
    if action in ("cleanup", "refresh"):
        arguments["reprobe"] = action == "refresh"
        primitives = dict.fromkeys(row.id for row in _parts(rows_of(context), name)) if name else ()
        nodes = (node,) if node else node_names(context.cib)
        text = "".join(f"Cleaned up {each} on {where}\n" for each in primitives for where in nodes)
        text = text or f"Cleaned up {name or 'all resources'} on {node or 'all nodes'}\n"
        return carry_out(context, _VERBS["resource.cleanup"], arguments, text)
    if action == "delete":
        return _deleted(context, given, name)
    if action == "restart":
        outcome = carry_out(context, _VERBS["resource.restart"], {"resource": name})
        return awaited(outcome, limit_of(given, _SETTLE_MS))
    if action == "clear":
        if "expired" in given:
            return _without_ended(context, name, NodeName(node))
        named = {name, outermost(context.cib.configuration, name)}
        gone = [each.id for each in lifetimes.moves(context.cib.configuration)
                if each.resource in named and node in ("", lifetimes.node_of(each))]  # fmt: skip
        text = "".join(f"Removing constraint: {each}\n" for each in gone)
        return carry_out(context, _VERBS["resource.clear"], arguments, text)
    return _placed(context, given, action, name, arguments)


def _deleted(context: Context, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    """Delete a resource, if it is of the kind that is named; one that is in use is refused."""
    if "resource_type" not in given:
        problem = "crm_resource: You need to specify a resource type with -t\n"
        return printed(err=f"{problem}Error performing operation: No such object\n", status=NO_SUCH_OBJECT)
    resource = context.cib.configuration.resources[name]
    if given.text("resource_type") != type(resource).__name__.lower():
        return printed()
    forced = replace(context, is_forced="force" in given or context.is_forced)
    return carry_out(forced, _VERBS["configure.delete"], {"ids": [name]})


def _placed(
    context: Context, given: Given, action: str, name: ResourceId, arguments: dict[str, Json]
) -> Outcome[ToolOutput]:
    """Ban a resource from a node, or move it; the constraint is of the resource itself, or of the clone around it."""
    configuration = context.cib.configuration
    top = outermost(configuration, name)
    is_of_clone = isinstance(configuration.resources[top], Clone | Bundle)
    target = top if is_of_clone else name
    rows = [row for row in _parts(rows_of(context), name) if row.nodes]
    is_there = {each for row in rows for each in row.nodes} == {arguments.get("node")}
    if action == "move" and is_there and not is_of_clone and "force" not in given and "lifetime" not in given:
        return printed(err="crm_resource: Error performing operation: Requested item already exists\n", status=EXISTS)
    arguments.update(role="Promoted" if "promoted" in given and is_of_clone else "Started", as_crmsh=True)
    until = ""
    if "lifetime" in given:
        arguments["lifetime"] = given.text("lifetime")
        until = _until(context, given.text("lifetime"))
    forced = replace(context, is_forced="force" in given or context.is_forced)
    said = ""
    node = arguments.get("node") or _present_node(rows, name)
    if action == "ban" or "node" not in arguments:
        what = "being promoted" if arguments["role"] == "Promoted" else "running"
        said = "" if "quiet" in given or wants_xml(given) else _BAN.format(target, node, what)
    if action == "ban":
        outcome = carry_out(forced, _VERBS["resource.ban"], {**arguments, "node": node})
    else:
        outcome = carry_out(forced, _VERBS["resource.move"], {**arguments, "constraint": True})
    return outcome.showing(output(until, said))


def _until(context: Context, lifetime: str) -> str:
    try:
        end = WallTime((context.now + durations.parse(lifetime) + 999) // 1000 * 1000)
    except ValueError:
        raise ToolUsageError(
            f"Invalid duration specified: {lifetime}\n"
            "Please refer to https://en.wikipedia.org/wiki/ISO_8601#Durations for examples of valid durations"
        ) from None
    return f"Migration will take effect until: {stamp(end)}\n"


def _without_ended(context: Context, name: ResourceId, node: NodeName) -> Outcome[ToolOutput]:
    """Take away the bans and moves whose time is over, before the DC does it; of one resource or node, or of all."""
    configuration = context.cib.configuration
    ended = {key for key, end in lifetimes.ends(configuration).items() if end <= context.now}
    named = {name, outermost(configuration, name)} if name else set[ResourceId]()
    gone = [
        each.id for each in lifetimes.moves(configuration)
        if each.id in ended and (not name or each.resource in named) and node in ("", lifetimes.node_of(each))
    ]  # fmt: skip
    if not gone:
        return printed()
    kept = {key: each for key, each in configuration.constraints.items() if key not in gone}
    made = change(context, replace(configuration, constraints=kept), done=f"removed {', '.join(gone)}")
    return made.showing(output("".join(f"Removing constraint: {each}\n" for each in gone)))


_BAN = (
    "WARNING: Creating rsc_location constraint 'cli-ban-{0}-on-{1}' with a score of -INFINITY for resource {0} on {1}."
    "\n\tThis will prevent {0} from {2} on {1} until the constraint is removed using the clear option or by "
    "editing the CIB with an appropriate tool\n\tThis will be the case even if {1} is the last node in the cluster\n"
)


def _present_node(rows: list[PrimitiveRow], name: ResourceId) -> NodeName:
    """Return the node where a resource runs, or is promoted. Raises ToolUsageError: that is not one."""
    promoted = [row for row in rows if row.role == "Promoted"]
    nodes = {node for row in promoted or rows for node in row.nodes}
    if len(nodes) != 1:
        raise ToolUsageError(
            f"Resource '{name}' not moved: active in {len(nodes)} locations.\n"
            f"To prevent '{name}' from running on a specific location, specify a node."
        )
    return nodes.pop()


TOOLS = {
    "crm_resource": Tool(manage, {
        "list": "L list", "list_raw": "l list-raw", "locate": "W locate", "query": "q query-xml",
        "raw": "w query-xml-raw", "get": "g: get-parameter:", "put": "p: set-parameter:",
        "take": "d: delete-parameter:",
        "value": "v: parameter-value:", "meta": "m meta", "utilization": "z utilization",
        "resource": "r: resource:", "node": "N: H: node: host-uname:", "quiet": "Q quiet", "force": "f force",
        "ban": "B ban", "clear": "U clear", "move": "M move", "cleanup": "C cleanup", "refresh": "R P refresh reprobe",
        "restart": "restart", "operations": "O o list-all-operations list-operations", "why": "Y why",
        "cts": "c list-cts", "expired": "e expired", "digests": "digests",
        "fail": "F fail", "delete": "D delete", "lifetime": "u: lifetime:", "promoted": "promoted master",
        "wait": "wait", "validate": "validate?", "force_check": "force-check?", "force_start": "force-start",
        "force_stop": "force-stop", "force_promote": "force-promote", "force_demote": "force-demote",
        "class": "class:", "provider": "provider:", "agent": "agent:", "option": "option:",
        "resource_type": "t: resource-type:", "timeout": "T: timeout:", "set": "s: set-name:", "id": "i: nvpair:",
        "recursive": "recursive", "operation": "n: operation:", "interval": "I: interval:",
        "constraints": "a constraints", "stack": "A stack", **OUTPUT, **installed_agents.OPTIONS,
    }, _CHANGES, Cost.WHOLE, _REFUSED),
}  # fmt: skip
