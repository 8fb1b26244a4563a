"""Verbs about node attributes: ask, set, delete; until the node's next boot, or for ever.

Agents publish through these what they know of a node: promotion scores, reachability, health (Pacemaker Explained,
"Node Attributes", "Tracking Node Health"). Invariant: a value that is so already costs no entry of the log, and a
dampened one is answered at once. Of the two lifetimes, the one until reboot wins where both are set. A private one is
shown to those who ask for it here, and to no rule.
"""

from collections.abc import Mapping

from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_node, node_names
from haclusterd.commands.node.node import terminate
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.configuration import NodeEntry, effective
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import replace
from haclusterd.model.words import bytes_in_log
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.node import AttributesOfNodes, Fence, NodeAttributes
from haclusterd.verbs.arguments import Arguments
from haclusterd.verbs.verb import Cost

FOREVER = "forever"
REBOOT = "reboot"
PRIVATE = "private"
ATTRIBUTES_BYTES_MAX = 256 * 1024
"""Of one node, names included, for each lifetime. Agents and operators may set any number of them, and all nodes hold
them in memory and in each snapshot."""
TERMINATE = "terminate"
"""Set to true or to a time, it has the node fenced: only who may fence may set it (Pacemaker Explained, "Fencing")."""



def show(context: Context, arguments: Arguments) -> Outcome[AttributesOfNodes]:
    """Answer attributes of one node or of all, by lifetime, what waits to be written included."""
    names = node_names(context.cib)
    if not arguments.flag("all"):
        found = find_node(context, arguments.word("node"))
        if isinstance(found, ReportItem):
            return refusal(found)
        names = (found,)
    wanted, lifetime = arguments.word("name"), arguments.word("lifetime")
    nodes: list[NodeAttributes] = []
    for name in names:
        shown: dict[str, Mapping[str, str]] = {}
        for each, values in ((REBOOT, _until_reboot(context, name)), (FOREVER, _for_ever(context, name))):
            if lifetime in ("", each):
                shown[each] = {key: value for key, value in sorted(values.items()) if wanted in ("", key)}
        private = _private(context, name) if lifetime in ("", REBOOT) else {}
        kept = {key: value for key, value in sorted(private.items()) if wanted in ("", key)}
        if kept:
            shown[PRIVATE] = kept
        nodes.append(NodeAttributes(name, **shown))
    return Outcome(answer=AttributesOfNodes(tuple(nodes)))


def attribute(context: Context, arguments: Arguments) -> Outcome[AttributesOfNodes | Change | Fence]:
    """Set an attribute (the empty value is a value), delete it (one that is not there is no error), or show them."""
    if arguments.word("action") != "show" and not arguments.word("name"):
        return refusal(report(Code.MISSING_ARGUMENT, verb="node.attribute", name="name", meaning="which attribute"))
    if arguments.word("action") == "set" and arguments.values["value"] is None:
        meaning = f'{arguments.word("name")} is set to what; "" is the empty value'
        return refusal(report(Code.MISSING_ARGUMENT, verb="node.attribute", name="VALUE", meaning=meaning))
    match arguments.word("action"):
        case "set":
            return _put(context, arguments, arguments.word("value"))
        case "delete":
            return _put(context, arguments, None)
        case _:
            return _shown(context, arguments)


def _shown(context: Context, arguments: Arguments) -> Outcome[AttributesOfNodes]:
    """Answer attributes of one node; that a name has no value is an error, as it is for a resource's parameter."""
    asked = {"node": arguments.values["node"], "lifetime": arguments.values["lifetime"], "all": False}
    everything = show(context, Arguments({**asked, "name": None})).answer
    wanted = arguments.word("name")
    if wanted and everything is not None:
        (node,) = everything.nodes
        known = sorted({*(node.reboot or ()), *(node.forever or ()), *(node.private or ())})
        if wanted not in known:
            remedy = f"those that are set: {', '.join(known) or 'none'}"
            return refusal(report(Code.NOT_SET, name=wanted, where=node.name, remedy=remedy))
    return show(context, Arguments({**asked, "name": arguments.values["name"]}))


def _put(context: Context, arguments: Arguments, value: str | None) -> Outcome[Change | Fence]:
    node = find_node(context, arguments.word("node"))
    if isinstance(node, ReportItem):
        return refusal(node)
    name = arguments.word("name")
    if name == TERMINATE and value is not None and _is_wanted(value):
        if arguments.word("lifetime") == FOREVER:
            problem = f"{name}={value} would have {node} fenced after each boot"
            return refusal(report(Code.BAD_ARGUMENT, name="name", problem=problem, remedy=f"crm node fence {node}"))
        return terminate(context, node, value)
    done = f"{node}: {name} deleted" if value is None else f"{node}: {name}={value}"
    if arguments.word("lifetime") == FOREVER:
        return _put_for_ever(context, node, name, value, done)
    if node not in context.cib.status.nodes:
        return refusal(report(Code.NO_SUCH_NODE, node=f"{node} in the cluster"))
    if value is not None and not _has_room({**_until_reboot(context, node), **_private(context, node)}, name, value):
        return refusal(_too_much(node, "status-attr"))
    return _put_until_reboot(context, arguments, node, value, done)


def _put_until_reboot(
    context: Context, arguments: Arguments, node: NodeName, value: str | None, done: str
) -> Outcome[Change | Fence]:
    name = arguments.word("name")
    dampen_ms = arguments.integer("dampen_ms", 0)
    is_private = arguments.flag("private")
    command = SetTransientAttribute(node, name, value, context.author, context.reason, is_private=is_private)
    if dampen_ms and context.live is not None:
        return Outcome(commands=(command,), dampen_ms=dampen_ms)
    is_pending = context.live is not None and (node, name) in context.live.pending_attributes
    status = context.cib.status.nodes[node]
    if not is_pending and status.attributes.get(name, status.private_attributes.get(name)) == value:
        return Outcome((report(Code.NOTHING_TO_DO, state=done),))
    return Outcome((report(Code.REQUESTED, what=done),), (command,))


def _has_room(values: Mapping[str, str], name: str, value: str) -> bool:
    """Tell whether a node may have one more attribute, or one with this value: what is not longer may always be set."""
    if name in values and bytes_in_log(value) <= bytes_in_log(values[name]):
        return True
    others = sum(bytes_in_log(key) + bytes_in_log(each) for key, each in values.items() if key != name)
    return others + bytes_in_log(name) + bytes_in_log(value) <= ATTRIBUTES_BYTES_MAX


def _too_much(node: NodeName, verb: str) -> ReportItem:
    limit = f"{ATTRIBUTES_BYTES_MAX // 1024} KiB"
    remedy = f"delete what nobody reads: crm node {verb} {node} delete NAME"
    return report(Code.TOO_LARGE, what=f"what {node} would have as attributes", limit=limit, remedy=remedy)


def _is_wanted(text: str) -> bool:
    """Tell whether Pacemaker would read a word, or a time, as true."""
    try:
        return read_boolean(text)
    except ValueError:
        return text.strip().isdecimal()


def _put_for_ever(context: Context, node: NodeName, name: str, value: str | None, done: str) -> Outcome[Change]:
    entry = context.cib.configuration.nodes.get(node, NodeEntry(node))
    if value is not None and not _has_room(effective(entry.attributes), name, value):
        return refusal(_too_much(node, "attribute"))
    if value is None:
        sets = without(entry.attributes, name, keeps_empty=context.is_foreign)
    else:
        sets = with_value(entry.attributes, owner=f"nodes-{node}", section="attributes", name=name, value=value)
    if sets == entry.attributes:
        return Outcome((report(Code.NOTHING_TO_DO, state=done),))
    nodes = {**context.cib.configuration.nodes, node: replace(entry, attributes=sets)}
    return change(context, replace(context.cib.configuration, nodes=nodes), done=done)


def _until_reboot(context: Context, node: NodeName) -> dict[str, str]:
    known = context.cib.status.nodes.get(node)
    values = {} if known is None else dict(known.attributes)
    if context.live is not None:
        for (other, name), value in context.live.pending_attributes.items():
            if other == node:
                values.pop(name, None)
                values.update({} if value is None else {name: value})
    return values


def _private(context: Context, node: NodeName) -> Mapping[str, str]:
    known = context.cib.status.nodes.get(node)
    return {} if known is None else known.private_attributes


def _fences(arguments: Mapping[str, Json]) -> bool:
    value = arguments.get("value")
    return arguments.get("name") == TERMINATE and isinstance(value, str) and _is_wanted(value)


def _for_ever(context: Context, node: NodeName) -> dict[str, str]:
    entry = context.cib.configuration.nodes.get(node)
    return {} if entry is None else dict(effective(entry.attributes))


def _cost(arguments: Mapping[str, Json]) -> Cost:
    """What lasts only until the node restarts is not part of the configuration, which is judged as a whole."""
    return Cost.WHOLE if arguments.get("lifetime") == FOREVER else Cost.LIGHT


VERBS = (
    carry_out_by("node.attributes", show, answers(AttributesOfNodes)),
    carry_out_by("node.attribute", attribute, answers(AttributesOfNodes, Change, Fence), cost=_cost, fences=_fences),
)
