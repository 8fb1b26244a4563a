"""crm_node, crmadmin, pacemakerd, stonith_admin: who belongs to the cluster, who is there, who can be fenced.

Options and output are those of Pacemaker 2.1.5's tools of these names. What changes the members is refused by name: it
is done with `crm cluster`. A fencing goes the way of `crm node fence`, with all that it checks.
"""

from haclusterd.commands.context import Context
from haclusterd.commands.names import node_names
from haclusterd.commands.node import fencing, node
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.tools.attributes import is_unknown_node, node_of
from haclusterd.commands.tools.call import (
    VERSION,
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
from haclusterd.commands.tools.monitor_view import FENCING
from haclusterd.commands.tools.monitor_xml import sections_as_xml
from haclusterd.commands.tools.result import document
from haclusterd.commands.tools.rows import Rows
from haclusterd.formats.cib_xml.agent_writer import agent_as_xml
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET, node_numbers
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.cluster import NodeState
from haclusterd.model.fencing import FencingRecord
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

ABOUT = "Written for the tools of haclusterd"
_VERBS = {each.name: each for each in (*fencing.VERBS, *node.VERBS)}
_FENCING_MS = 120_000
"""How long stonith_admin waits without `--timeout`, as Pacemaker's."""
_ASKED = ("name", "id", "list", "partition", "quorum", "name_of")


def members(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_node: the own name and number, all nodes, those that are there, and whether they are enough."""
    asked = [name for name, _ in given.pairs if name in _ASKED]
    if not asked:
        raise ToolUsageError("nothing is asked: -n, -i, -l, -p or -q")
    return printed("".join(_answer(context, call, given, what) for what in asked))


def _answer(context: Context, call: ToolCall, given: Given, what: str) -> str:
    numbers = node_numbers(context.cib)
    own = node_of(context, call, Given(()))
    if what == "name":
        return f"{own}\n"
    if what == "quorum":
        return f"{int(context.live is not None and context.live.has_quorum)}\n"
    if what == "id":
        return f"{numbers.get(NodeName(own), '')}\n"
    if what == "name_of":
        wanted = given.text("name_of")
        found = next((name for name, number in numbers.items() if number == wanted), None)
        if found is None:
            raise ToolUsageError(f"no node has the id {wanted}")
        return f"{found}\n"
    online = [name for name, status in sorted(context.cib.status.nodes.items()) if status.state is NodeState.ONLINE]
    if what == "list":
        rows = (f"{number} {name} {'member' if name in online else 'lost'}\n" for name, number in numbers.items())
        return "".join(rows)
    return "".join(f"{name} " for name in online) + "\n"


def administer(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crmadmin: who the controller is, which nodes there are."""
    rows = Rows(context)
    if "dc" in given:
        if rows.dc is None:
            return printed(err="crmadmin: No designated controller\n", status=NO_DC)
        return printed(f"{rows.dc}\n" if "quiet" in given else f"Designated Controller is: {rows.dc} 2.1.5\n")
    if "nodes" in given:
        if "bash_export" in given:
            return printed("".join(f"export {name}={number}\n" for name, number in rows.numbers.items()))
        lines = (f"member node: {name} ({number})\n" for name, number in rows.numbers.items())
        return printed("".join(lines))
    name = given.text("status")
    if name:
        found = next((each for each in rows.nodes() if each.name == name), None)
        if found is None or not found.is_online:
            return printed(err=f"crmadmin: No reply received from controller on {name}\n", status=NO_REPLY)
        state = "S_IDLE" if found.is_dc else "S_NOT_DC"
        return printed(f"Controller on {name} in state {state}: ok\n")
    raise ToolUsageError("nothing is asked: -D, -N or -S NODE")


def daemon(context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """pacemakerd: its version, its features, and whether it runs (it does, when this is answered)."""
    if "features" in given:
        return printed(f"{VERSION}\n Supporting v{FEATURE_SET}: {ABOUT}\n")
    if "status" in given:
        state = "Pacemaker is running"
        at = written_at(context.now)
        return printed("running\n" if "quiet" in given else f"Status for pacemakerd: '{state}' (last updated {at})\n")
    raise ToolUsageError("only its version, its features and its status can be asked here")


NO_DC = NO_REPLY = 113


# stonith_admin


def stonith(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """stonith_admin: devices, what they can fence, what was fenced; fence a node, confirm that it is down."""
    action = given.any_of(
        "registered", "list", "history", "reboot", "fence", "confirm", "cleanup", "installed", "metadata"
    )
    if action in ("reboot", "fence"):
        return _fence(context, given, action)
    if action == "confirm":
        name = NodeName(given.text("confirm"))
        return carry_out(context, _VERBS["fencing.confirm"], {"node": name, "has_checked": True})
    if action == "history":
        return _cleaned(context, given) if "cleanup" in given else _history(context, call, given)
    if action == "registered":
        devices = sorted({each for name in node_names(context.cib) for each in _devices(context, name)})
        return _shown_devices(call, given, devices)
    if action == "list":
        name = NodeName(given.text("list"))
        return _shown_devices(call, given, list(_devices(context, name)))
    if action == "installed":
        names = sorted(name for name in context.agents or () if name.startswith(_STONITH))
        return _shown_devices(call, given, [name.removeprefix(_STONITH) for name in names])
    if action == "metadata":
        return _metadata(context, call, given)
    raise ToolUsageError(
        "say what to do: -L, -l NODE, -I, -M -a AGENT, -H NODE, -B NODE, -F NODE or -C NODE; a node is let in again "
        "when it joins"
    )


_STONITH = "stonith:"


def _metadata(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """Show what a fence agent of this node says of itself, as far as a configuration is judged by it."""
    agent = given.text("agent")
    if not agent:
        raise ToolUsageError("name the agent: -a AGENT")
    facts = (context.agents or {}).get(f"{_STONITH}{agent}")
    if facts is None or facts.is_unreadable:
        return not_found(call, "Can't get fence agent meta-data: No such device")
    text = '<?xml version="1.0"?>\n' + "".join(f"{line}\n" for line in agent_as_xml(agent, facts))
    if given.text("output") == "xml":
        return printed(document(call, f"<metadata><![CDATA[{text}]]></metadata>".split("\n")))
    return printed(text)


def _devices(context: Context, name: NodeName) -> tuple[str, ...]:
    return tuple(str(each) for each in fencing_cover.devices_for(context.cib, name))


def _shown_devices(call: ToolCall, given: Given, devices: list[str]) -> Outcome[ToolOutput]:
    if given.text("output") == "xml":
        return printed(document(call, (f"<item name={quoted(each)}/>" for each in devices)))
    count = f"{len(devices)} fence device{'' if len(devices) == 1 else 's'} found\n"
    return printed("".join(f"{each}\n" for each in devices) + ("" if "quiet" in given else count))


def _fence(context: Context, given: Given, action: str) -> Outcome[ToolOutput]:
    """Fence a node, and answer when that is done: fence handlers take exit status 0 for the node's death.

    As Pacemaker's tool it asks no second time. Exit status 124: not done within `-t`, which is 120 s by default.
    """
    limit_ms = limit_of(given, _FENCING_MS)
    arguments: dict[str, Json] = {"node": given.text(action)}
    if given.text("tolerance"):
        arguments["tolerance"] = given.text("tolerance")
    outcome = carry_out(replace(context, is_forced=True), _VERBS["node.fence"], arguments)
    return awaited(outcome, limit_ms)


def _cleaned(context: Context, given: Given) -> Outcome[ToolOutput]:
    name = given.text("history")
    arguments: dict[str, Json] = {} if name in ("", "*") else {"node": name}
    return carry_out(context, _VERBS["fencing.cleanup"], arguments)


def _history(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    wanted = given.text("history")
    if wanted != "*" and is_unknown_node(context, wanted):
        raise ToolUsageError(f"there is no node {wanted}")
    if given.text("output") == "xml":
        return printed(document(call, (line.removeprefix("  ") for line in sections_as_xml(context, *FENCING))))
    found = [each for each in context.cib.status.fencing_history if wanted in ("*", each.target)]
    lines = [_record(each) for each in reversed(found)]
    count = "" if "quiet" in given else f"{len(lines)} event{'' if len(lines) == 1 else 's'} found\n"
    return printed("".join(lines) + count)


def _record(record: FencingRecord) -> str:
    is_done = record.outcome.value in ("fenced", "confirmed", "unfenced")
    how = "was able to" if is_done else "was not able to"
    at = written_at(record.ended_at)
    return f"{record.executor} {how} {record.action} node {record.target} on behalf of haclusterd at {at}\n"


TOOLS = {
    "crm_node": Tool(members, {
        "name": "n name", "id": "i cluster-id", "list": "l list", "partition": "p partition", "quorum": "q quorum",
        "name_of": "N: name-for-id:", "quiet": "Q quiet",
    }),
    "crmadmin": Tool(administer, {
        "dc": "D dc_lookup", "nodes": "N nodes?", "status": "S: status:", "quiet": "q quiet",
        "bash_export": "B bash-export", "timeout": "t: timeout:", "output": "output-as:", "ipc": "i: ipc-name:",
    }, cost=Cost.WHOLE),
    "pacemakerd": Tool(daemon, {
        "features": "F features", "status": "S status", "quiet": "Q quiet", "foreground": "f foreground",
        "output": "output-as:", "ipc": "i: ipc-name:",
    }),
    "stonith_admin": Tool(stonith, {
        "registered": "L list-registered", "list": "l: list:", "history": "H: history:", "cleanup": "c cleanup",
        "reboot": "B: reboot:", "fence": "F: fence:", "confirm": "C: confirm:",
        "installed": "I list-installed", "metadata": "M metadata", "agent": "a: agent:",
        "tolerance": "tolerance:", "timeout": "t: timeout:", "delay": "y: delay:",
        "tag": "T: tag:", "output": "output-as:", "quiet": "q quiet", "broadcast": "b broadcast",
    }, frozenset({"reboot", "fence", "confirm", "cleanup"}), Cost.WHOLE),
}  # fmt: skip
