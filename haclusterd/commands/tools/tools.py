"""The tools of Pacemaker that agents, exporters and people call (crm_attribute, crm_mon, cibadmin ...), as one verb.

Each tool is a small program that passes its words on; here is the table of those that there are, and what each call
costs and needs. A call that only asks needs the permission to read; any other the permission to operate, and what it
carries out its own.
"""

from collections.abc import Mapping, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools import attributes as tool_attributes
from haclusterd.commands.tools import cib as tool_cib
from haclusterd.commands.tools import dates as tool_dates
from haclusterd.commands.tools import differences as tool_differences
from haclusterd.commands.tools import membership as tool_membership
from haclusterd.commands.tools import monitor as tool_monitor
from haclusterd.commands.tools import resources as tool_resources
from haclusterd.commands.tools import rules as tool_rules
from haclusterd.commands.tools import shadows as tool_shadows
from haclusterd.commands.tools import simulations as tool_simulations
from haclusterd.commands.tools import stonith as tool_stonith
from haclusterd.commands.tools import tickets as tool_tickets
from haclusterd.commands.tools.call import VERSION, Given, Tool, ToolCall, ToolUsageError, printed, to_file, usage
from haclusterd.commands.tools.membership import ABOUT
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.json_value import Json
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.arguments import Arguments
from haclusterd.verbs.verb import Cost

TOOLS: Mapping[str, Tool] = {
    **tool_attributes.TOOLS, **tool_membership.TOOLS, **tool_monitor.TOOLS, **tool_resources.TOOLS, **tool_cib.TOOLS,
    **tool_stonith.TOOLS, **tool_tickets.TOOLS, **tool_rules.TOOLS, **tool_simulations.TOOLS,
    **tool_differences.TOOLS, **tool_dates.TOOLS, **tool_shadows.TOOLS,
}  # fmt: skip
_LIGHT = frozenset({"attrd_updater", "crm_master"})
"""Tools that may write only what is light: attributes until reboot."""


def run(context: Context, arguments: Arguments) -> Outcome[ToolOutput]:
    """Answer a tool's call with what to print and its exit status (schema `haclusterd.tool/1`)."""
    word = arguments.word
    call = ToolCall(word("tool"), arguments.words("words"), word("instance"), word("node"), word("text"), word("other"))
    tool = TOOLS[call.tool]
    try:
        given = tool.read(call.words)
        if "version" in given:
            return printed(f"{VERSION}\n{ABOUT}\n")
        if "help" in given:
            return printed(usage(tool, call))
        outcome = to_file(tool.function(context, call, given), given.text("destination", "-"))
    except ToolUsageError as error:
        return printed(err=f"{call.tool}: {error}\n", status=error.status)
    assert not (outcome.commands and tool.only_asks(given)), call.tool
    return outcome


def _read(arguments: Mapping[str, Json]) -> tuple[Tool, Given] | None:
    """Read arguments that nobody has checked yet; None when they make no sense."""
    name, words = arguments.get("tool"), arguments.get("words", ())
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None or isinstance(words, str) or not isinstance(words, Sequence):
        return None
    try:
        return tool, tool.read([each for each in words if isinstance(each, str)])
    except ToolUsageError:
        return None


def _only_asks(arguments: Mapping[str, Json]) -> bool:
    """What is not understood counts as a change, for which more is needed."""
    found = _read(arguments)
    return found is not None and found[0].only_asks(found[1])


def _cost(arguments: Mapping[str, Json]) -> Cost:
    found = _read(arguments)
    if found is None:
        return Cost.LIGHT
    tool, given = found
    if arguments.get("tool") == "crm_resource" and "wait" in given:
        return Cost.LIGHT  # What takes long is to look whether the cluster has settled, which is done apart.
    if tool.only_asks(given):
        is_whole = arguments.get("tool") == "crm_attribute" and ("pattern" in given or "name" not in given)
        return Cost.WHOLE if is_whole and "promotion" not in given else tool.cost
    is_transient = arguments.get("tool") in _LIGHT or given.text("lifetime") in ("reboot", "status")
    return Cost.LIGHT if is_transient and "utilization" not in given and given.text("lifetime") != "forever" else (
        Cost.LONG if given.any_of("move", "restart") or tool.cost is Cost.LONG else Cost.WHOLE
    )


VERBS = (carry_out_by("tool.run", run, answers(ToolOutput), cost=_cost, only_asks=_only_asks),)
