"""stonith_admin: which devices there are, whom they fence, what was fenced; fence a node, confirm that it is down.

Options and output are those of Pacemaker 2.1.5's tool. A fencing goes the way of `crm node fence`, with all that it
checks. Devices and levels are configured, so what registers them beside the configuration is refused by name.
"""

from collections.abc import Callable, Iterable, Mapping

from haclusterd.commands.context import Context
from haclusterd.commands.names import node_names
from haclusterd.commands.node import fencing, node
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.tools.attributes import is_unknown_node
from haclusterd.commands.tools.call import (
    NO_SUCH_OBJECT,
    Given,
    Tool,
    ToolCall,
    ToolUsageError,
    awaited,
    carry_out,
    limit_of,
    not_found,
    printed,
)
from haclusterd.commands.tools.monitor_text import fencing_details
from haclusterd.commands.tools.monitor_view import FENCING, View, is_done, stamp
from haclusterd.commands.tools.monitor_xml import fencing_as_xml
from haclusterd.commands.tools.result import OUTPUT, as_xml, listed, wants_xml
from haclusterd.formats.cib_xml.agent_writer import agent_as_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.fencing import FenceOrder, FencingRecord, ProofState
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

FAILED, IO_ERROR = 1, 74
_VERBS = {each.name: each for each in (*fencing.VERBS, *node.VERBS)}
_FENCING_MS = 120_000
"""How long stonith_admin waits without `--timeout`, as Pacemaker's."""
_STONITH = "stonith:"
_REFUSED = {
    "unfence": "a node is let in again when it joins",
    "register": "crm configure primitive NAME stonith:AGENT",
    "deregister": "crm configure delete NAME",
    "register_level": "crm configure fencing_topology",
    "deregister_level": "crm configure fencing_topology",
    "validate": "crm ra validate",
    "env_option": "parameters are configured: crm configure edit NAME",
    "option": "parameters are configured: crm configure edit NAME",
    "device": "devices of a level are configured: crm configure fencing_topology",
    "index": "levels are configured: crm configure fencing_topology",
    "as_node_id": "a node is called by its name",
    **dict.fromkeys(("cgi", "style_sheet", "title"), "a web page with the fencings: crm_mon --output-as=html -m3"),
}
"""What Pacemaker's tool does and this does not, and what is done instead."""


def stonith(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """stonith_admin: one question, or one change."""
    is_xml = wants_xml(given)
    action = given.any_of(*_ACTIONS)
    if not action:
        raise ToolUsageError(
            "say what to do: -L, -l NODE, -s DEVICE, -Q DEVICE, -I, -M -a AGENT, -H NODE, -h NODE, -B NODE, -F NODE or "
            "-C NODE"
        )
    outcome = _ACTIONS[action](context, call, given)
    return as_xml(call, outcome) if is_xml else outcome


# Devices


def _shown(given: Given, found: Iterable[str], what: str, unit: str, name: str | None) -> Outcome[ToolOutput]:
    """Print a list with its length; `name` is what an entry is called in the XML."""
    values = list(found)
    if wants_xml(given):
        return printed("".join(f"{line}\n" for line in listed(what, values, name=name)))
    count = f"{len(values)} {unit}{'' if len(values) == 1 else 's'} found\n"
    return printed("".join(f"{each}\n" for each in values) + count)


def _registered(context: Context) -> dict[ResourceId, list[str]]:
    """Return the devices that are in use, and which nodes each can fence."""
    found: dict[ResourceId, list[str]] = {}
    for name in node_names(context.cib):
        for device in fencing_cover.devices_for(context.cib, name):
            found.setdefault(device, []).append(name)
    return found


def _no_device(problem: str) -> Outcome[ToolOutput]:
    return printed(err=f"{problem}: No such device\n", status=NO_SUCH_OBJECT)


def _list_registered(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    return _shown(given, sorted(_registered(context)), "registered fence devices", "fence device", "device")


def _list_devices(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    devices = fencing_cover.devices_for(context.cib, NodeName(given.text("list")))
    return _shown(given, devices, "registered fence devices", "fence device", "device")


def _list_targets(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    targets = _registered(context).get(ResourceId(given.text("targets")))
    if targets is None:
        return _no_device("Couldn't list targets")
    return _shown(given, targets, "fence targets", "fence target", None)


def _query(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Tell by the exit status whether a device answers: it fails when the newest start or monitor of it did."""
    device = ResourceId(given.text("query"))
    targets = _registered(context).get(device)
    if targets is None:
        return printed(status=NO_SUCH_OBJECT)
    proofs = (fencing_cover.proof(context.cib, device, NodeName(name)) for name in targets)
    is_failing = any(each is not None and each.state is ProofState.FAILING for each in proofs)
    return printed(status=FAILED if is_failing else 0)


def _list_installed(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    names = sorted(name.removeprefix(_STONITH) for name in context.agents or () if name.startswith(_STONITH))
    return _shown(given, names, "installed fence devices", "fence device", "device")


def _metadata(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Show what a fence agent of this node says of itself, as far as a configuration is judged by it."""
    agent = given.text("agent")
    if not agent:
        raise ToolUsageError("Please specify an agent to query using -a,--agent [value]")
    facts = (context.agents or {}).get(f"{_STONITH}{agent}")
    if facts is None or facts.is_unreadable:
        return _no_device("Can't get fence agent meta-data")
    text = "".join(f"{line}\n" for line in agent_as_xml(agent, facts))
    return printed(f"<metadata><![CDATA[{text}]]></metadata>" if wants_xml(given) else text)


# Fencing


def _fence(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Fence a node, and answer when that is done: fence handlers take exit status 0 for the node's death.

    As Pacemaker's tool it asks no second time. Exit status 124: not done within `-t`, which is 120 s by default.
    """
    limit_ms = limit_of(given, _FENCING_MS)
    if given.text("delay", "0") != "0":
        raise ToolUsageError("--delay: delays are configured: pcmk_delay_base and pcmk_delay_max of the device")
    name = given.text(given.any_of("reboot", "fence"))
    if is_unknown_node(context, name):
        return not_found(call, f"Couldn't fence {name}: No such device")
    arguments: dict[str, Json] = {"node": name}
    if given.text("tolerance"):
        arguments["tolerance"] = given.text("tolerance")
    outcome = carry_out(replace(context, is_forced=True), _VERBS["node.fence"], arguments)
    return awaited(outcome, limit_ms)


def _confirm(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    name = NodeName(given.text("confirm"))
    return carry_out(context, _VERBS["fencing.confirm"], {"node": name, "has_checked": True})


# History


def _history(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Show the last successful fencing of a node or of any (`*`); with -V all, also what is under way."""
    wanted = given.text("history")
    if "cleanup" in given:
        return _cleaned(context, given, wanted)
    orders, records = View(context, FENCING, Given((("fence_history", "3"),))).fencings()
    is_whole = "verbose" in given
    ended = [each for each in records if wanted in ("*", each.target) and (is_whole or is_done(each))]
    found: list[FenceOrder | FencingRecord] = [each for each in orders if wanted in ("*", each.target) and is_whole]
    found += ended if is_whole else ended[:1]
    if wants_xml(given):
        inside = (fencing_as_xml(each, 0) for each in found)
        shown = element("list", {"name": "fencing history", "count": str(len(found))}, inside)
        return printed("".join(f"{line}\n" for line in shown))
    head = "gather fencing-history from all nodes\n" if "broadcast" in given else ""
    if "quiet" in given:
        times = (f"{each.ended_at // 1000}\n" for each in found if isinstance(each, FencingRecord))
        return printed(f"{head}{''.join(times)}0 events found\n")
    text = "".join(f"{fencing_details(each, context.cib, is_whole=is_whole)}\n" for each in found)
    return printed(f"{head}{text}{len(found)} event{'' if len(found) == 1 else 's'} found\n")


def _cleaned(context: Context, given: Given, name: str) -> Outcome[ToolOutput]:
    arguments: dict[str, Json] = {} if name in ("", "*") else {"node": name}
    said = "" if wants_xml(given) or "quiet" in given else f"cleaning up fencing-history for node {name}\n"
    return carry_out(context, _VERBS["fencing.cleanup"], arguments, said)


def _last(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Say when a node was fenced last."""
    name = given.text("last")
    done = (each for each in reversed(context.cib.status.fencing_history) if each.target == name and is_done(each))
    record = next(done, None)
    if wants_xml(given):
        if record is None:
            return printed(status=IO_ERROR)
        shown = element("last-fenced", {"target": name, "when": stamp(record.ended_at)})
        return printed("".join(f"{line}\n" for line in shown))
    if record is None:
        return printed(f"Node {name} has never been fenced\n")
    return printed(f"Node {name} last fenced at: {written_at(record.ended_at)}\n")


_ACTIONS: Mapping[str, Callable[[Context, ToolCall, Given], Outcome[ToolOutput]]] = {
    "registered": _list_registered, "list": _list_devices, "targets": _list_targets, "query": _query,
    "installed": _list_installed, "metadata": _metadata, "reboot": _fence, "fence": _fence, "confirm": _confirm,
    "history": _history, "last": _last,
}  # fmt: skip
TOOLS = {
    "stonith_admin": Tool(stonith, {
        "help": "? help",
        "registered": "L list-registered", "list": "l: list:", "targets": "s: list-targets:", "query": "Q: query:",
        "history": "H: history:", "last": "h: last:", "cleanup": "c cleanup", "broadcast": "b broadcast",
        "reboot": "B: reboot:", "fence": "F: fence:", "confirm": "C: confirm:",
        "installed": "I list-installed", "metadata": "M metadata", "agent": "a: agent:",
        "tolerance": "tolerance:", "timeout": "t: timeout:", "tag": "T: tag:", "quiet": "q quiet", **OUTPUT,
        "unfence": "U: unfence:", "register": "R: register:", "deregister": "D: deregister:",
        "register_level": "r: register-level:", "deregister_level": "d: deregister-level:", "validate": "K validate",
        "env_option": "e: env-option:", "option": "o: option:", "device": "v: device:", "index": "i: index:",
        "as_node_id": "n as-node-id", "delay": "y: delay:",
        "cgi": "html-cgi", "style_sheet": "html-stylesheet:", "title": "html-title:",
    }, frozenset({"reboot", "fence", "confirm", "cleanup"}), Cost.WHOLE, _REFUSED),
}  # fmt: skip
