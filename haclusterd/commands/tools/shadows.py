"""crm_shadow: refused, with what is typed here instead; copies of the configuration are kept by `crm cib`."""

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError
from haclusterd.verbs.answers.cluster import ToolOutput

_INSTEAD = {
    "which": "crm cib list", "display": "crm -c NAME configure show", "edit": "crm -c NAME configure edit",
    "diff": "crm cib diff NAME", "file": "crm -c NAME configure show xml", "create": "crm cib new {}",
    "create_empty": "crm cib new {} empty", "commit": "crm cib commit {}", "delete": "crm cib delete {}",
    "reset": "crm cib reset {}", "switch": "crm -c {}",
}  # fmt: skip


def shadow(_context: Context, _call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_shadow: name the command that does the same here."""
    action = given.any_of(*_INSTEAD)
    if not action:
        raise ToolUsageError("not done here: a copy to try changes on is made by: crm cib new NAME")
    raise ToolUsageError(f"not done here: {_INSTEAD[action].format(given.text(action))}")


TOOLS = {
    "crm_shadow": Tool(shadow, {
        "which": "w which", "display": "p display", "edit": "E edit", "diff": "d diff", "file": "F file",
        "create": "c: create:", "create_empty": "e: create-empty:", "commit": "C: commit:", "delete": "D: delete:",
        "reset": "r: reset:", "switch": "s: switch:", "force": "f force", "batch": "b batch", "all": "a all",
        "schema": "v: validate-with:",
    }),
}  # fmt: skip
