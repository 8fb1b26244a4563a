"""The command-line tools of Pacemaker that an agent's program names, and whether they are here.

Without such a tool an agent acts on wrong assumptions: redis' replicas follow no master, the start of pgsql waits
forever. A tool of another installation in PATH is no better: it asks a cluster that does not run.
"""

import re
from collections.abc import Collection
from pathlib import Path

TOOLS = frozenset({
    "attrd_updater", "cibadmin", "corosync-cfgtool", "corosync-cmapctl", "corosync-quorumtool", "crm_attribute",
    "crm_failcount", "crm_master", "crm_mon", "crm_node", "crm_resource", "crm_rule", "crm_simulate", "crm_standby",
    "crm_ticket", "crmadmin", "pacemakerd", "stonith_admin",
})  # fmt: skip
READ_BYTES = 1024 * 1024

_METADATA = re.compile(r"<\?xml.*?</resource-agent>", re.DOTALL)
"""The meta-data that a shell agent prints: it only mentions tools."""
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")
_BY_FUNCTION = {"crm_mon_no_validation": "crm_mon"}
"""Functions of resource-agents' ocf-shellfuncs that call a tool."""


def missing_tools(program: Path, shims: Path) -> tuple[str, ...]:
    """Return the tools that the program names and that are not among the shims; none when it cannot be read."""
    try:
        present: Collection[str] = {each.name for each in shims.iterdir()}
    except OSError:
        return ()
    return tuple(sorted(named_tools(program).difference(present)))


def named_tools(program: Path) -> frozenset[str]:
    """Return the tools that the program names; none when it cannot be read."""
    try:
        with program.open("rb") as file:
            text = file.read(READ_BYTES).decode(errors="replace")
    except OSError:
        return frozenset()
    words = set(_WORD.findall(_COMMENT.sub("", _METADATA.sub("", text))))
    return frozenset(_BY_FUNCTION.get(word, word) for word in words) & TOOLS
