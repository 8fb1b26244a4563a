"""crm_resource and crm_ticket: where resources run, their parameters, moves and clean-ups; tickets.

Options and output are those of crm_resource(8) and crm_ticket(8) of Pacemaker 2.1.5. What it changes goes through the
verbs of `crm resource` and `crm ticket`, and is judged as they are.
"""

from collections.abc import Iterator

from haclusterd.commands import ticket
from haclusterd.commands.context import Context
from haclusterd.commands.names import whole as outermost
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.planning import settled
from haclusterd.commands.resource import resource
from haclusterd.commands.resource import settings as resource_settings
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.attributes import is_unknown_node, node_of
from haclusterd.commands.tools.call import (
    INSUFFICIENT_PRIVILEGES,
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
from haclusterd.commands.tools.monitor_text import operation_lines, resource_lines
from haclusterd.commands.tools.rows import CloneRow, PrimitiveRow, Row, Rows, primitives_in
from haclusterd.formats.cib_xml.elements import BlockWriter
from haclusterd.formats.cib_xml.resource_writer import ResourceWriter
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.configuration import Bundle, Clone, Primitive, effective
from haclusterd.model.ids import ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.templates import expanded
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

_VERBS = {each.name: each for each in (*resource.VERBS, *resource_settings.VERBS, *ticket.VERBS)}
_SECTIONS = {"meta": "meta", "params": "parameters", "utilization": "utilization"}
_BLOCKS = {"meta": "meta_attributes", "params": "instance_attributes", "utilization": "utilization"}
_CHANGES = frozenset({"put", "take", "ban", "clear", "move", "cleanup", "refresh", "restart"})
_ACTIONS = ("list", "list_raw", "locate", "query", "get", "operations", "why", "cts", *sorted(_CHANGES))
_OTHER_COMMANDS = {
    "fail": "a failure is not made up here", "delete": "crm configure delete",
    "list_agents": "crm ra list", "metadata": "crm ra info",
    "validate": "crm ra validate",
}  # fmt: skip

_SETTLE_MS = 3_600_000
"""How long `--wait` and `--restart` wait without `--timeout`: an hour, as Pacemaker's `--wait`."""
_NOT_DONE = {
    "element": "crm configure edit changes what is no attribute",
    "recursive": "set it for each resource by its name",
    "operation": "a clean-up is of all operations of a resource: leave out -n",
    "interval": "a clean-up is of all operations of a resource: leave out -I",
}
"""What would narrow or widen a change here: it is refused, since the change would be another one without it."""


def manage(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_resource: one question about resources, or one change."""
    for name, instead in _OTHER_COMMANDS.items():
        if name in given:
            raise ToolUsageError(f"not done here: {instead}")
    if "wait" in given:
        return _settled(context, given)
    action = given.any_of(*_ACTIONS)
    if not action:
        raise ToolUsageError("say what to do: see --help")
    refused = [instead for name, instead in _NOT_DONE.items() if name in given and action in _CHANGES]
    if refused:
        raise ToolUsageError(f"not done here: {refused[0]}")
    if action in ("list", "list_raw", "operations", "cts"):
        return _listed(context, call, given, action)
    name = ResourceId(given.text("resource"))
    known = context.cib.configuration.resources
    found = name if name in known else base_of(name)
    is_for_all = action in ("cleanup", "refresh") and not name
    if found not in known and not is_for_all:
        problem = f"Resource '{name}' not found\nError performing operation: No such object"
        return not_found(call, problem)
    if given.text("node") and is_unknown_node(context, node_of(context, call, given)):
        return not_found(call, f"Node '{given.text('node')}' not found\nError performing operation: No such device")
    actions = {"locate": _locate, "query": _query, "get": _get, "put": _put, "take": _put, "why": _why}
    if action in actions:
        return actions[action](context, call, given, found)
    return _moved(context, call, given, action, found)


# Questions


def _listed(context: Context, call: ToolCall, given: Given, action: str) -> Outcome[ToolOutput]:
    if action == "list_raw":
        rows = Rows(context)
        if not rows.resources:
            return not_found(call, "No resources found")
        return printed("".join(f"{name}\n" for row in rows.resources for name in _names(row)))
    if action == "list":
        return printed("\n".join(["Full List of Resources:", *resource_lines(context)]) + "\n")
    if action == "cts":
        raise ToolUsageError("not done here: crm configure show")
    node = node_of(context, call, given) if given.text("node") else ""
    lines = operation_lines(context, node, given.text("resource"))
    return printed("".join(f"{line}\n" for line in lines))


def _names(row: Row) -> Iterator[str]:
    """Yield the names of primitives, and of instances as Pacemaker numbers them."""
    if not isinstance(row, CloneRow):
        yield from (each.id for each in primitives_in(row))
        return
    for number, each in enumerate(row.instances):
        yield from (f"{part.id}:{number}" for part in primitives_in(each))


def _locate(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    parts = tuple(_parts(Rows(context), name))
    found = sorted(
        ((node, row.role == "Promoted") for row in parts for node in row.nodes), key=lambda each: (each[1], each[0])
    )
    if not found:
        return printed(f"resource {name} is NOT running\n")
    if "quiet" in given:
        return printed("".join(f"{node}\n" for node in dict.fromkeys(node for node, _ in found)))
    lines = (f"resource {name} is running on: {node}{' Promoted' if is_promoted else ''}\n"
             for node, is_promoted in dict.fromkeys(found))  # fmt: skip
    return printed("".join(lines))


def _parts(rows: Rows, name: ResourceId) -> Iterator[PrimitiveRow]:
    tops = (row for row in rows.resources if name in (row.id, row.child if isinstance(row, CloneRow) else row.id))
    top = next(tops, None)
    if top is not None:
        yield from primitives_in(top)
        return
    yield from (each for each in rows.primitives() if each.id == name)


def _query(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    lines = ResourceWriter(context.cib.configuration, BlockWriter()).lines()
    kept: list[str] = []
    for line in lines:
        is_start = f' id="{name}"' in line and line.lstrip().startswith("<") and not kept
        if is_start or kept:
            kept.append(line)
        if kept and (line.startswith(f"{_indent(kept[0])}</") or (is_start and line.endswith("/>"))):
            break
    cut = len(_indent(kept[0])) if kept else 0
    xml = "".join(f"{line[cut:]}\n" for line in kept)
    if "raw" in given:
        return printed(xml)
    head = "".join(f"{line.strip().removeprefix('* ')}\n" for line in resource_lines(context, name))
    return printed(f"{head}Resource XML:\n{xml}")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _section(given: Given) -> str:
    return "meta" if "meta" in given else "utilization" if "utilization" in given else "params"


def _get(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    wanted, section = given.text("get"), _section(given)
    owner = context.cib.in_force.resources[name]
    if section == "meta":
        rows = Rows(context)
        meta = rows.overview.meta(owner) if isinstance(owner, Primitive) else effective(owner.meta)
        value = meta.get(wanted)
    else:
        whole = expanded(owner, context.cib.in_force) if isinstance(owner, Primitive) else owner
        value = effective(getattr(whole, _SECTIONS[section], ())).get(wanted)
    if value is None:
        return printed(err=f"Attribute '{wanted}' not found for '{name}'\n")
    return printed(f"{value}\n")


def _why(context: Context, _call: ToolCall, _given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    rows = Rows(context)
    nodes = sorted({node for row in _parts(rows, name) for node in row.nodes})
    state = f"running on {', '.join(nodes)}" if nodes else "not running"
    return printed(f"Resource {name} is {state}\n", err=f"why in full: crm resource why {name}\n")


def _settled(context: Context, given: Given) -> Outcome[ToolOutput]:
    """Answer when nothing is under way and nothing is left to do; exit status 124 when that takes too long."""
    return Outcome(
        answer=output(""), until=settled(context.now), until_plans=True, waiting_for="the cluster to settle",
        waits_by_default=True, wait_ms_max=limit_of(given, _SETTLE_MS),
    )  # fmt: skip


# Changes


def _put(context: Context, _call: ToolCall, given: Given, name: ResourceId) -> Outcome[ToolOutput]:
    is_put = given.any_of("put", "take") == "put"
    section, parameter = _section(given), given.text("put") or given.text("take")
    if is_put and "value" not in given:
        raise ToolUsageError("the value is missing (-v)")
    owner = context.cib.configuration.resources[name]
    blocks = getattr(owner, _SECTIONS[section], ())
    block = next((each.id for each in blocks), f"{name}-{_BLOCKS[section]}")
    if given.text("set", block) != block or given.text("id", f"{block}-{parameter}") != f"{block}-{parameter}":
        raise ToolUsageError(f"{parameter} is set in {block}: leave out -s and -i, or change the set by crm configure")
    option = f"id={block}-{parameter}"
    if is_put:
        value = given.text("value")
        out = f"Set '{name}' option: {option} set={block} name={parameter} value={value}\n"
        more: dict[str, Json] = {"action": "set", "value": value}
    else:
        out = f"Deleted '{name}' option: {option} name={parameter}\n" if parameter in effective(blocks) else ""
        more = {"action": "delete"}
    arguments: dict[str, Json] = {"resource": name, "section": section, "name": parameter, **more}
    return carry_out(context, _VERBS["resource.setting"], arguments, out)


def _moved(context: Context, call: ToolCall, given: Given, action: str, name: ResourceId) -> Outcome[ToolOutput]:
    node = node_of(context, call, given) if given.text("node") else ""
    arguments: dict[str, Json] = {**({"resource": name} if name else {}), **({"node": node} if node else {})}
    if action in ("cleanup", "refresh"):
        arguments["reprobe"] = action == "refresh"
        text = f"Cleaned up {name or 'all resources'} on {node or 'all nodes'}\n"
        return carry_out(context, _VERBS["resource.cleanup"], arguments, text)
    if action == "restart":
        outcome = carry_out(context, _VERBS["resource.restart"], {"resource": name})
        return awaited(outcome, limit_of(given, _SETTLE_MS))
    if action == "clear":
        return carry_out(context, _VERBS["resource.clear"], arguments)
    configuration = context.cib.configuration
    is_of_clone = isinstance(configuration.resources[outermost(configuration, name)], Clone | Bundle)
    arguments["role"] = "Promoted" if "promoted" in given and is_of_clone else "Started"
    if "lifetime" in given:
        arguments["lifetime"] = given.text("lifetime")
    forced = replace(context, is_forced="force" in given or context.is_forced)
    if action == "ban":
        arguments = _banned(context, arguments, name)
        outcome = carry_out(forced, _VERBS["resource.ban"], arguments)
        banned = outermost(configuration, name)
        return outcome if "quiet" in given else outcome.showing(output("", _BAN.format(banned, arguments["node"])))
    return carry_out(forced, _VERBS["resource.move"], {**arguments, "constraint": True})


_BAN = (
    "WARNING: Creating rsc_location constraint 'cli-ban-{0}-on-{1}' with a score of -INFINITY for resource {0} on {1}."
    "\n\tThis will prevent {0} from running on {1} until the constraint is removed using the clear option or by "
    "editing the CIB with an appropriate tool\n\tThis will be the case even if {1} is the last node in the cluster\n"
)


def _banned(context: Context, arguments: dict[str, Json], name: ResourceId) -> dict[str, Json]:
    """Return what to ban from where: without a node, from the one where it runs, or is promoted."""
    if "node" in arguments:
        return arguments
    rows = [row for row in _parts(Rows(context), name) if row.nodes]
    promoted = [row for row in rows if row.role == "Promoted"]
    nodes = {node for row in promoted or rows for node in row.nodes}
    if len(nodes) != 1:
        raise ToolUsageError(f"{name} runs on {len(nodes)} nodes: say from which it is banned (-N)")
    return {**arguments, "node": nodes.pop()}


# crm_ticket


def tickets(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_ticket: list, grant, revoke, put in standby, activate."""
    known = context.cib.status.tickets
    name = given.text("ticket")
    action = given.any_of("grant", "revoke", "standby", "activate", "info", "details", "raw", "get", "constraints",
                          "cleanup", "set", "delete")  # fmt: skip
    if action in ("grant", "revoke", "standby", "activate", "cleanup"):
        return _change_ticket(context, given, action)
    if action in ("set", "delete"):
        raise ToolUsageError("attributes of tickets are not written here")
    if name and name not in known:
        return not_found(call, f"No such ticket '{name}'")
    if action == "get":
        state = known[name] if name else None
        values = {} if state is None else {
            "granted": str(state.is_granted).lower(), "standby": str(state.is_standby).lower(), **state.attributes,
        }  # fmt: skip
        wanted = given.text("get")
        return printed(f"{values[wanted]}\n") if wanted in values else printed(status=105)
    lines = []
    for each in sorted(known) if not name else [name]:
        state = known[each]
        word = "granted" if state.is_granted else "revoked"
        since = f" last-granted='{written_at(state.last_granted)}'" if state.last_granted else ""
        lines.append(f"{each}\t{word}{' [standby]' if state.is_standby else '          '}{since}\n")
    return printed("".join(lines))


_WARNINGS = {
    "grant": "This command cannot help you verify whether '{0}' has been already granted elsewhere.\n"
             "If you really want to grant '{0}' to this site now, ",
    "revoke": "Revoking '{0}' can trigger the specified 'loss-policy'(s) relating to '{0}'.\n\n"
              "You can check that with:\ncrm_ticket --ticket {0} --constraints\n\n"
              "Otherwise before revoking '{0}', you may want to make '{0}' standby with:\n"
              "crm_ticket --ticket {0} --standby\n\nIf you really want to revoke '{0}' from this site now, ",
}  # fmt: skip


def _change_ticket(context: Context, given: Given, action: str) -> Outcome[ToolOutput]:
    name = given.text("ticket")
    if not name:
        raise ToolUsageError("say which ticket (-t)")
    if action in ("grant", "revoke") and "force" not in given:
        text = f"{_WARNINGS[action].format(name)}and you know what you are doing,\nplease specify --force.\n"
        return printed(text, "crm_ticket: Ticket modification not allowed\n", INSUFFICIENT_PRIVILEGES)
    change_ = {"cleanup": "delete"}.get(action, action)
    forced = replace(context, is_forced="force" in given or context.is_forced)
    return carry_out(forced, _VERBS["ticket.change"], {"ticket": name, "action": change_})


TOOLS = {
    "crm_resource": Tool(manage, {
        "list": "L list", "list_raw": "l list-raw", "locate": "W locate", "query": "q query-xml",
        "raw": "w query-xml-raw", "get": "g: get-parameter:", "put": "p: set-parameter:",
        "take": "d: delete-parameter:",
        "value": "v: parameter-value:", "meta": "m meta", "utilization": "z utilization", "element": "element",
        "resource": "r: resource:", "node": "N: H: node: host-uname:", "quiet": "Q quiet", "force": "f force",
        "ban": "B ban", "clear": "U clear", "move": "M move", "cleanup": "C cleanup", "refresh": "R P refresh reprobe",
        "restart": "restart", "operations": "O o list-all-operations list-operations", "why": "Y why",
        "cts": "c list-cts",
        "fail": "F fail", "delete": "D delete", "lifetime": "u: lifetime:", "promoted": "promoted master",
        "list_agents": "list-standards list-ocf-providers? list-agents? list-ocf-alternatives?",
        "metadata": "show-metadata:", "wait": "wait", "validate": "validate force-check force-start force-stop",
        "resource_type": "t: resource-type:", "timeout": "T: timeout:", "set": "s: set-name:", "id": "i: nvpair:",
        "recursive": "recursive", "operation": "n: operation:", "interval": "I: interval:",
    }, _CHANGES, Cost.WHOLE),
    "crm_ticket": Tool(tickets, {
        "info": "l info", "details": "L details", "raw": "w raw", "xml": "q query-xml", "constraints": "c constraints",
        "ticket": "t: ticket:", "grant": "g grant", "revoke": "r revoke", "standby": "s standby",
        "activate": "a activate", "get": "G: get-attr:", "set": "S: set-attr:", "delete": "D: delete-attr:",
        "cleanup": "C cleanup", "value": "v: attr-value:", "default": "d: default:", "force": "f force",
        "quiet": "Q quiet",
    }, frozenset({"grant", "revoke", "standby", "activate", "cleanup"})),
}  # fmt: skip
