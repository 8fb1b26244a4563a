"""crm_node, crmadmin, pacemakerd: who belongs to the cluster, who is there, who coordinates it.

Options and output are those of Pacemaker 2.1.5's tools of these names. What changes the members is refused by name: it
is done with `crm cluster`.
"""

from collections.abc import Callable, Mapping

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.attributes import node_of
from haclusterd.commands.tools.call import VERSION, Given, Tool, ToolCall, ToolUsageError, printed
from haclusterd.commands.tools.foreign_rows import rows_of
from haclusterd.commands.tools.monitor_view import stamp
from haclusterd.commands.tools.result import OUTPUT, as_xml, wants_xml
from haclusterd.formats.cib_xml.elements import element
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET, node_numbers
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

ABOUT = "Written for the tools of haclusterd"
NO_HOST, NO_DC, TIMED_OUT = 68, 113, 124
_ASKED = ("name", "id", "list", "partition", "quorum", "name_of")
_NODE_TYPES = ("all", "cluster")
"""What `crmadmin --nodes=TYPE` may ask for and finds here; there are no guest and no remote nodes."""


def members(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_node: the own name and number, all nodes, those that are there, or whether they are enough: the last asked.

    Exit status 68: no node has that number.
    """
    asked = given.any_of(*_ASKED)
    if not asked:
        raise ToolUsageError("nothing is asked: -n, -i, -l, -p, -q or -N ID")
    numbers = node_numbers(context.cib)
    own = node_of(context, call, Given(()))
    if asked == "name":
        return printed(f"{own}\n")
    if asked == "quorum":
        return printed(f"{int(context.live is not None and context.live.has_quorum)}\n")
    if asked == "id":
        return printed(f"{numbers.get(NodeName(own), '')}\n")
    if asked == "name_of":
        wanted = given.text("name_of")
        found = next((name for name, number in numbers.items() if number == wanted), None)
        if wanted == "0":
            return printed(f"{own}\n")
        return printed(err="Node is not known to cluster\n", status=NO_HOST) if found is None else printed(f"{found}\n")
    online = [name for name, status in sorted(context.cib.status.nodes.items()) if status.state is NodeState.ONLINE]
    if asked == "list":
        rows = (f"{number} {name} {'member' if name in online else 'lost'}\n" for name, number in numbers.items())
        return printed("".join(rows))
    return printed("".join(f"{name} " for name in online) + "\n")


# crmadmin


def administer(context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crmadmin: who the controller is, in which state a node's is, which nodes there are, that the daemon runs."""
    is_xml = wants_xml(given)
    asked = given.any_of(*_QUESTIONS)
    if "health" in given:
        raise ToolUsageError("Cluster-wide health option not supported")
    if not asked:
        raise ToolUsageError("Must specify a command option: -D, -N, -P or -S NODE")
    outcome = _QUESTIONS[asked](context, given)
    return as_xml(call, outcome) if is_xml else outcome


def _element(tag: str, attributes: Mapping[str, str | None]) -> Outcome[ToolOutput]:
    return printed("".join(f"{line}\n" for line in element(tag, attributes)))


def _controller(context: Context, given: Given) -> Outcome[ToolOutput]:
    controller = rows_of(context).dc
    if controller is None:
        return printed(err="crmadmin: No designated controller\n", status=NO_DC)
    if wants_xml(given):
        return _element("dc", {"node_name": controller})
    return printed(f"{controller}\n" if "quiet" in given else f"Designated Controller is: {controller}\n")


def _state(context: Context, given: Given) -> Outcome[ToolOutput]:
    name = given.text("status")
    found = next((each for each in rows_of(context).nodes() if each.name == name), None)
    if found is None or not found.is_online:
        problem = f"error: No reply received from controller on {name}\nerror: Command failed: Connection timed out\n"
        return printed(err=problem, status=TIMED_OUT)
    state = "S_IDLE" if found.is_dc else "S_NOT_DC"
    if wants_xml(given):
        return _element("crmd", {"node_name": name, "state": state, "result": "ok"})
    return printed(f"{state}\n" if "quiet" in given else f"Controller on {name} in state {state}: ok\n")


def _nodes(context: Context, given: Given) -> Outcome[ToolOutput]:
    types = (each.strip() for each in (given.text("nodes") or "all").split(","))
    found = node_numbers(context.cib) if any(each in _NODE_TYPES for each in types) else {}
    if wants_xml(given):
        lines = [line for name, number in found.items()
                 for line in element("node", {"type": "cluster", "name": name, "id": number})]  # fmt: skip
        return printed("".join(f"{line}\n" for line in element("nodes", {}, lines)))
    if not found:
        return printed("No nodes configured\n")
    if "quiet" in given:
        return printed("".join(f"{name}\n" for name in found))
    form = "export {}={}\n" if "bash_export" in given else "cluster node: {} ({})\n"
    return printed("".join(form.format(name, number) for name, number in found.items()))


def _daemon(context: Context, given: Given) -> Outcome[ToolOutput]:
    """Answer that the daemon runs: it does, when this is answered."""
    at = stamp(context.now)
    if wants_xml(given):
        return _element("pacemakerd", {"sys_from": "pacemakerd", "state": "running", "last_updated": at})
    words = f"Status of pacemakerd: 'Pacemaker is running' (last updated {at})\n"
    return printed("running\n" if "quiet" in given else words)


_QUESTIONS: Mapping[str, Callable[[Context, Given], Outcome[ToolOutput]]] = {
    "dc": _controller, "nodes": _nodes, "status": _state, "pacemakerd": _daemon,
}  # fmt: skip


def daemon(_context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """pacemakerd: its version and its features."""
    if "features" not in given:
        raise ToolUsageError("only its version (-$) and its features (-F) are asked here; for the rest: systemctl")
    if wants_xml(given):
        attributes = {"version": VERSION.split()[1], "feature_set": FEATURE_SET}
        return as_xml(call, _element("pacemakerd", attributes))
    return printed(f"{VERSION}\n Supporting v{FEATURE_SET}: {ABOUT}\n")


TOOLS = {
    "crm_node": Tool(members, {
        "name": "n name", "id": "i cluster-id", "list": "l list", "partition": "p partition", "quorum": "q quorum",
        "name_of": "N: name-for-id:", "remove": "R: remove:", "force": "f force", "quiet": "Q quiet",
    }, refused={"remove": "crm cluster remove NODE"}),
    "crmadmin": Tool(administer, {
        "dc": "D dc_lookup", "nodes": "N? nodes?", "status": "S: status:", "pacemakerd": "P pacemakerd",
        "health": "H health", "quiet": "q quiet", "bash_export": "B bash-export", "timeout": "t: timeout:",
        "ipc": "i: ipc-name:", **OUTPUT,
    }, cost=Cost.WHOLE),
    "pacemakerd": Tool(daemon, {
        "features": "F features", "shutdown": "S shutdown", "standby": "s standby", "pid": "p: pid-file:",
        "foreground": "f foreground", **OUTPUT,
    }, refused={"shutdown": "systemctl stop haclusterd", "standby": "crm node standby NODE"}),
}  # fmt: skip
