"""The tools of node attributes and of single settings: crm_attribute, crm_master, attrd_updater, crm_standby,
crm_failcount.

Options, output and exit statuses are those of crm_attribute(8), attrd_updater(8), crm_master(8), crm_standby(8) and
crm_failcount(8) of Pacemaker 2.1.5, tried on the same state.
"""

import re
from xml.etree import ElementTree as ET

from haclusterd.commands.attribute_sets import with_pair, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import node_names
from haclusterd.commands.node import node, node_attributes
from haclusterd.commands.node.node_attributes import FOREVER, REBOOT
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.resource import resource
from haclusterd.commands.resource import settings as resource_settings
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import (
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    carry_out,
    may_administer,
    not_found,
    output,
    printed,
)
from haclusterd.commands.tools.cib import seen
from haclusterd.commands.tools.monitor_view import DC_VERSION, STACK
from haclusterd.commands.tools.result import OUTPUT, as_xml, document, wants_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.status_writer import node_numbers
from haclusterd.model import durations, scores
from haclusterd.model.configuration import AttributeSet, Configuration, NodeEntry, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.properties import BOOTSTRAP_OPTIONS, property_row
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.arguments import Arguments

_VERBS = {each.name: each for each in (*node_attributes.VERBS, *resource_settings.VERBS, *node.VERBS, *resource.VERBS)}
_WRITE = _VERBS["node.attribute"]
_CLUSTER_SECTIONS = {
    "crm_config": BOOTSTRAP_OPTIONS,
    "rsc_defaults": "rsc-options",
    "op_defaults": "op-options",
}
NOTED = {"cluster-infrastructure": STACK, "dc-version": DC_VERSION}
"""What Pacemaker notes among its properties of what it is: scripts ask for it to see whether a cluster answers."""
_LIFETIMES = {"reboot": REBOOT, "status": REBOOT, "forever": FOREVER, "nodes": FOREVER}
_CHANGES = frozenset({"set", "both", "delete"})
NO_SECTION, NOT_CONFIGURED = 76, 78
"""Exit statuses: there is no such section; no node has the attribute."""
_NO_DELAY = "Warning: 'B' command given without required --delay\n"
_COUNTED = re.compile(r"value(?:\+\+|\+=(-?\d{1,9}))", re.ASCII)
"""A value that is written as what is added to the old one."""


class _Target:
    """Which attribute a call of crm_attribute is about."""

    def __init__(self, context: Context, call: ToolCall, given: Given) -> None:
        self.name = given.text("name")
        self.is_promotion = call.tool == "crm_master" or "promotion" in given
        self.lifetime = given.text("lifetime")
        self.type = given.text("type")
        if self.is_promotion:
            instance = given.text("promotion") or given.text("resource") or call.instance
            if not instance:
                raise ToolUsageError(
                    "-p/--promotion must be called from an OCF resource agent or with a resource ID specified"
                )
            self.name = f"master-{instance.split(':')[0]}"
            self.lifetime = self.lifetime or "reboot"
        self.section = self.type if self.type in _CLUSTER_SECTIONS else ""
        if not (given.text("node") or self.lifetime or self.type):
            self.section = "crm_config"
        self.is_several = not self.is_promotion and ("pattern" in given or not self.name)
        if not self.name and "pattern" not in given and given.any_of("set", "delete"):
            raise ToolUsageError("the name of the attribute is missing (-n)")
        known = (*_CLUSTER_SECTIONS, *_LIFETIMES, "tickets", "")
        unknown = next((each for each in (self.type, self.lifetime) if each not in known), None)
        if unknown is not None:
            problem = f"there is no section {unknown}: {', '.join(filter(None, known))}"
            raise ToolUsageError(f"Error performing operation: No message of desired type ({problem})", NO_SECTION)
        if "block" in given and not self.section and self.type != "tickets":
            raise ToolUsageError("--set-name: the attributes of a node are in one set here: leave it out")
        self.until = _LIFETIMES.get(self.lifetime or self.type, FOREVER)
        self.scope = self.section or ("status" if self.until == REBOOT else "nodes")
        self.node = "" if self.section else node_of(context, call, given)


def node_of(context: Context, call: ToolCall, given: Given) -> str:
    """Return the node that is meant; empty: the one that answers."""
    wanted = given.text("node") or call.node
    numbers = {number: name for name, number in node_numbers(context.cib).items()}
    if wanted in ("", *node_names(context.cib)):
        return wanted or (context.live.node if context.live is not None else "")
    return numbers.get(wanted, NodeName(wanted))


def is_unknown_node(context: Context, name: str) -> bool:
    """Tell whether a name is no node's."""
    return name not in node_names(context.cib)


def attribute(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_attribute and crm_master: query, set or delete one attribute of a node, or one setting of the cluster."""
    is_xml = wants_xml(given)
    target = _Target(context, call, given)
    action = given.any_of("query", "set", "delete") or "query"
    if target.type == "tickets":
        if action == "query":
            return _shown_value(call, given, target, None)
        raise ToolUsageError("not done here: crm_ticket")
    outcome = _about(context, call, given, target, action)
    return as_xml(call, outcome) if is_xml and action != "query" else outcome


def _about(context: Context, call: ToolCall, given: Given, target: _Target, action: str) -> Outcome[ToolOutput]:
    """Answer or change what a call is about."""
    if not target.section and is_unknown_node(context, target.node):
        return not_found(call, f"Could not map name={target.node} to a UUID")
    if target.is_several:
        found = _matching(context, given, target)
        if action == "query":
            return _shown_pairs(call, given, target, found)
        target.name = _only(target, found)
        if not target.name:
            return printed()
    if target.section:
        return _section(context, call, given, target, action)
    if "utilization" in given:
        return _utilization(context, call, given, target, action)
    if action == "query":
        return _shown_value(call, given, target, _value(context, target))
    arguments: dict[str, Json] = {
        "node": target.node, "action": action, "name": target.name, "lifetime": target.until,
        **({"value": counted_up(given.text("set"), _value(context, target))} if action == "set" else {}),
    }  # fmt: skip
    was_there = _value(context, target) is not None
    number = node_numbers(context.cib)[NodeName(target.node)]
    block = f"{target.scope}-{number}"
    out = f"Deleted {target.scope} attribute: id={block}-{target.name} name={target.name}\n"
    return carry_out(context, _WRITE, arguments, out if action == "delete" and was_there else "")


def _only(target: _Target, found: list[tuple[str, str]]) -> str:
    """Return the name of the only attribute that a change by a pattern is about; empty: none. Raises ToolUsageError."""
    if target.scope != "status":
        raise ToolUsageError("Error: pattern can only be used with query, or with till-reboot update or delete")
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise ToolUsageError(f"{len(found)} attributes match ({names}): change each by its name (-n)")
    return found[0][0] if found else ""


def _matching(context: Context, given: Given, target: _Target) -> list[tuple[str, str]]:
    """Return the attributes that a pattern matches, or all, as `cibadmin --query` shows them. Raises ToolUsageError."""
    try:
        pattern = compile_pattern(given.text("pattern"))
    except ValueError as error:
        raise ToolUsageError(f"--pattern: {error}") from None
    root = ET.fromstring(seen(context))
    if target.section:
        places = root.iterfind(f"configuration/{target.section}")
    elif target.scope == "status":
        nodes = (each for each in root.iterfind("status/node_state") if each.get("uname") == target.node)
        places = (part for each in nodes for part in each.iterfind("transient_attributes"))
    else:
        section = "utilization" if "utilization" in given else "instance_attributes"
        nodes = (each for each in root.iterfind("configuration/nodes/node") if each.get("uname") == target.node)
        places = (part for each in nodes for part in each.iterfind(section))
    pairs = ((each.get("name", ""), each.get("value", "")) for place in places for each in place.iter("nvpair"))
    return [(name, value) for name, value in pairs if pattern.search(name) is not None]


def _shown_pairs(call: ToolCall, given: Given, target: _Target, found: list[tuple[str, str]]) -> Outcome[ToolOutput]:
    is_xml = given.text("output") == "xml"
    if not found:
        return as_xml(call, not_found(call)) if is_xml else not_found(call)
    if is_xml:
        shown = ({"name": name, "value": value, "scope": target.scope} for name, value in found)
        return printed(document(call, (line for each in shown for line in element("attribute", each))))
    if "quiet" in given:
        return printed("".join(f"{value}\n" for _, value in found))
    return printed("".join(f"scope={target.scope}  name={name} value={value}\n" for name, value in found))


def _value(context: Context, target: _Target) -> str | None:
    return values(context, target.node, target.until).get(target.name)


def values(context: Context, node_name: str, until: str) -> dict[str, str]:
    """Return the attributes of a node with one lifetime, what waits to be written and private ones included."""
    asked = Arguments({"node": node_name, "name": None, "lifetime": until, "all": False})
    data = node_attributes.show(context, asked).data
    assert isinstance(data, dict)
    listed = data["nodes"]
    assert isinstance(listed, list)
    shown = listed[0]
    assert isinstance(shown, dict)
    found: dict[str, str] = {}
    for scope in (node_attributes.PRIVATE, until):
        part = shown.get(scope, {})
        assert isinstance(part, dict)
        found.update({name: str(value) for name, value in part.items()})
    return found


def _shown_value(call: ToolCall, given: Given, target: _Target, value: str | None) -> Outcome[ToolOutput]:
    if value is None:
        value = given.text("default") if "default" in given else None
    if value is None:
        return as_xml(call, not_found(call)) if given.text("output") == "xml" else not_found(call)
    if given.text("output") == "xml":
        shown = {"name": target.name, "value": value, "scope": target.scope}
        return printed(document(call, element("attribute", shown)))
    if "quiet" in given:
        return printed(f"{value}\n")
    return printed(f"scope={target.scope}  name={target.name} value={value}\n")


def _section(context: Context, call: ToolCall, given: Given, target: _Target, action: str) -> Outcome[ToolOutput]:
    """Query, set or delete a cluster property or a default; of an agent's own, in the block that it names (-s)."""
    usual = _CLUSTER_SECTIONS[target.section]
    configuration = context.cib.in_force if action == "query" else context.cib.configuration
    blocks = _blocks(configuration, target.section)
    wanted = given.text("block")
    seen = tuple(block for block in blocks if wanted in ("", block.id))
    name = _as_written(seen, target.name)
    if action == "query":
        noted = NOTED.get(name) if target.section == "crm_config" and not wanted else None
        return _shown_value(call, given, target, effective(seen).get(name, noted))
    if action == "delete":
        holding = next((block.id for block in seen if block.get(name) is not None), None)
        if holding is None:
            return printed()
        new = tuple(each for block in blocks for each in (without((block,), name) if block in seen else (block,)))
        out = f"Deleted {target.section} attribute: id={holding}-{name} name={name}\n"
    else:
        value = counted_up(given.text("set"), effective(seen).get(name))
        new = _put(blocks, wanted or next((b.id for b in seen if b.get(name) is not None), usual), name, value)
        out = ""
    if not may_administer(context):
        remedy = "be root; a member of haclient may be allowed to by control-group-permission=administer"
        return refusal(report(Code.NOT_PERMITTED, verb=call.tool, permission="administer", remedy=remedy))
    changed = _with_blocks(configuration, target.section, new)
    made = change(context, changed, done=f"{target.section}: {name}")
    return made.showing(output(out))


def _blocks(configuration: Configuration, section: str) -> tuple[AttributeSet, ...]:
    if section == "crm_config":
        return configuration.properties
    return configuration.resource_defaults if section == "rsc_defaults" else configuration.operation_defaults


def _with_blocks(configuration: Configuration, section: str, blocks: tuple[AttributeSet, ...]) -> Configuration:
    if section == "crm_config":
        return replace(configuration, properties=blocks)
    if section == "rsc_defaults":
        return replace(configuration, resource_defaults=blocks)
    return replace(configuration, operation_defaults=blocks)


def _put(blocks: tuple[AttributeSet, ...], wanted: str, name: str, value: str) -> tuple[AttributeSet, ...]:
    if all(block.id != wanted for block in blocks):
        blocks = (*blocks, AttributeSet(wanted))
    return tuple(with_pair(block, name, value) if block.id == wanted else block for block in blocks)


def _as_written(blocks: tuple[AttributeSet, ...], name: str) -> str:
    """Return the name under which a property is written, where it is written by another of its names."""
    row = property_row(name)
    written = [key for block in blocks for key, _ in block.pairs]
    if name in written or row is None:
        return name
    return next((each for each in written if property_row(each) is row), name)


def _utilization(context: Context, call: ToolCall, given: Given, target: _Target, action: str) -> Outcome[ToolOutput]:
    if target.until == REBOOT and action != "query":
        raise ToolUsageError("capacities until reboot are not written here: leave out the lifetime, or use -l forever")
    name = NodeName(target.node)
    entry = context.cib.in_force.nodes.get(name, NodeEntry(name))
    known = effective(entry.utilization)
    if action == "query":
        return _shown_value(call, given, target, known.get(target.name))
    arguments: dict[str, Json] = {"node": target.node, "action": action, "name": target.name}
    if action == "set":
        arguments["value"] = given.text("set")
    block = f"nodes-{node_numbers(context.cib)[name]}-utilization"
    out = f"Deleted nodes attribute: id={block}-{target.name} name={target.name}\n"
    return carry_out(
        context, _VERBS["node.utilization"], arguments, out if action == "delete" and target.name in known else ""
    )


# attrd_updater


def update(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """attrd_updater: publish an attribute until the node's next boot, at once or dampened; query it."""
    wants_xml(given)
    action = "delete" if "delete" in given else "set" if given.any_of("set", "both") else "query"
    is_asked = "query" in given or not given.any_of("refresh", "delay_only")
    if action == "query" and "refresh" in given and not is_asked:
        return printed()
    name = given.text("name")
    if not name:
        raise ToolUsageError("Command requires --name argument")
    if action == "query":
        return _updater_query(context, call, given, name) if is_asked else printed()
    node_name = node_of(context, call, given)
    if is_unknown_node(context, node_name):
        return not_found(call, f"Could not update {name}: no node {node_name}")
    arguments: dict[str, Json] = {"node": node_name, "action": action, "name": name, "lifetime": REBOOT}
    if action == "set":
        value = given.text(given.any_of("set", "both"))
        arguments["value"] = counted_up(value, values(context, node_name, REBOOT).get(name))
    if "delay" in given:
        arguments["dampen_ms"] = _milliseconds(given.text("delay"))
    if "private" in given:
        arguments["private"] = True
    is_bare = "both" in given and "delay" not in given
    return carry_out(context, _WRITE, arguments, _NO_DELAY if is_bare and not wants_xml(given) else "")


def counted_up(value: str, old: str | None) -> str:
    """Return what is meant: `value++` and `value+=N` add to the old one, or to 0 when that is no number."""
    match = _COUNTED.fullmatch(value)
    if match is None:
        return value
    before = old if old is not None and re.fullmatch(r"-?\d{1,9}", old, re.ASCII) else "0"
    return scores.render(max(-INFINITY, min(INFINITY, int(before) + int(match[1] or 1))))


def _updater_query(context: Context, call: ToolCall, given: Given, name: str) -> Outcome[ToolOutput]:
    """Show an attribute of all nodes that have it, or of one; exit status 78: no node has it."""
    is_xml = wants_xml(given)
    found = [(each, values(context, each, REBOOT)) for each in node_names(context.cib)]
    pairs = [(each, own[name]) for each, own in found if name in own]
    if not pairs:
        problem = f"attrd_updater: Could not query value of {name}: attribute does not exist\n"
        missing = printed(err=problem, status=NOT_CONFIGURED)
        return as_xml(call, missing) if is_xml else missing
    if "all" not in given and (given.text("node") or call.node):
        wanted = node_of(context, call, given)
        pairs = [(NodeName(wanted), dict(pairs).get(NodeName(wanted), ""))]
    if is_xml:
        shown = ({"name": name, "value": value, "host": host} for host, value in pairs)
        return printed(document(call, (line for each in shown for line in element("attribute", each))))
    return printed("".join(f'name="{name}" host="{host}" value="{value}"\n' for host, value in pairs))


def _milliseconds(text: str) -> int:
    try:
        return int(text) * 1000 if text.strip().isdecimal() else durations.parse(text.strip())
    except ValueError:
        raise ToolUsageError(f"not a duration: {text!r}") from None


# crm_standby, crm_failcount


def standby(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_standby: ask, set or delete whether a node runs nothing."""
    node_name = node_of(context, call, given)
    if is_unknown_node(context, node_name):
        return not_found(call, f"Could not map name={node_name} to a UUID")
    action = given.any_of("query", "set", "delete") or "query"
    if action == "query":
        for until, scope in ((FOREVER, "nodes"), (REBOOT, "status")):
            value = values(context, node_name, until).get("standby")
            if value is not None and until in (given.text("lifetime") or until):
                return printed(f"{value}\n" if "quiet" in given else f"scope={scope}  name=standby value={value}\n")
        return printed("off\n" if "quiet" in given else "scope=status  name=standby value=off\n")
    out = ""
    if action == "delete":
        number = node_numbers(context.cib)[NodeName(node_name)]
        out = "".join(
            f"Deleted {scope} attribute: id={scope}-{number}-standby name=standby\n"
            for until, scope in ((FOREVER, "nodes"), (REBOOT, "status"))
            if "standby" in values(context, node_name, until)
        )
    is_on = action == "set" and given.text("set").lower() in ("on", "true", "yes", "1", "y")
    arguments: dict[str, Json] = {"node": node_name}
    if is_on:
        arguments["lifetime"] = REBOOT if given.text("lifetime") == "reboot" else FOREVER
    return carry_out(context, _VERBS["node.standby" if is_on else "node.online"], arguments, out)


def failcount(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_failcount: how often a resource failed on a node; or forget it, as `crm resource cleanup` does."""
    name = given.text("resource")
    action = given.any_of("query", "delete")
    if not name or not action:
        raise ToolUsageError("say which resource (-r), and what to do: --query or --delete")
    node_name = node_of(context, call, given)
    if is_unknown_node(context, node_name):
        return not_found(call, f"Could not map name={node_name} to a UUID")
    if action == "delete" and given.any_of("operation", "interval"):
        raise ToolUsageError("-n, -I: all failures of a resource are forgotten at once: leave them out with -D")
    if action == "delete":
        forgotten: dict[str, Json] = {"resource": base_of(ResourceId(name)), "node": node_name}
        return carry_out(context, _VERBS["resource.cleanup"], forgotten)
    status = context.cib.status.nodes.get(NodeName(node_name))
    history = None if status is None else status.histories.get(ResourceId(name))
    wanted, interval_ms = given.text("operation"), _milliseconds(given.text("interval", "0"))
    shown = f"fail-count-{name}" + (f"#{wanted}_{interval_ms}" if wanted else "")
    counts = () if history is None else tuple(
        each for each in history.fail_counts.values()
        if not wanted or (each.operation, each.interval_ms) == (wanted, interval_ms)
    )  # fmt: skip
    value = scores.render(min(INFINITY, sum(each.count for each in counts)))
    return printed(f"{value}\n" if "quiet" in given else f"scope=status  name={shown} value={value}\n")


_SHARED = {
    "query": "G query get-value", "set": "v: update: attr-value:", "delete": "D delete", "quiet": "q Q quiet",
    "node": "N: U: node: uname:", "lifetime": "l: lifetime:", "id": "i: id:", **OUTPUT,
}  # fmt: skip
_BY_NAME = {"id": "what it is about is known by its name: leave it out"}
TOOLS = {
    "crm_attribute": Tool(attribute, {
        **_SHARED, "name": "n: name: attr-name:", "type": "t: type:", "block": "s: set-name:", "default": "d: default:",
        "promotion": "p? promotion?", "utilization": "z utilization", "pattern": "P: pattern:",
    }, _CHANGES, refused=_BY_NAME),
    "crm_master": Tool(attribute, {**_SHARED, "resource": "r: resource:", "default": "d: default:"}, _CHANGES,
                       refused=_BY_NAME),
    "attrd_updater": Tool(update, {
        "query": "Q query", "name": "n: name:", "set": "v: U: update:", "both": "B: update-both:", "delete": "D delete",
        "delay": "d: delay:", "node": "N: node:", "private": "p private", "lifetime": "l: lifetime:", "all": "A all",
        "refresh": "R refresh", "delay_only": "Y update-delay", "quiet": "q quiet", "block": "S: s: set:",
        "wait": "wait:", **OUTPUT,
    }, _CHANGES),
    "crm_standby": Tool(standby, _SHARED, _CHANGES, refused=_BY_NAME),
    "crm_failcount": Tool(failcount, {
        "query": "G query", "delete": "D delete", "resource": "r: resource: resource-id:", "node": "N: U: node: uname:",
        "operation": "n: operation:", "interval": "I: interval:", "quiet": "q Q quiet",
    }, _CHANGES),
}  # fmt: skip
