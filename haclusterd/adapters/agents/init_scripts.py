"""Init scripts as agents: class lsb (Pacemaker Explained, "Linux Standard Base"; LSB Core 5.0, "Init Script Actions").

An init script has the actions `start`, `stop` and `status`, takes no parameters, and has exit codes of its own, which
are translated to OCF's here. A usable script must succeed in starting what runs and in stopping what is stopped, and
its `status` must not return 0 for what does not run.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from haclusterd.agents.process_table import INSTANCE_MARK
from haclusterd.model.agent_calls import AgentCall
from haclusterd.model.ids import AgentReference
from haclusterd.model.ocf import ExitCode
from haclusterd.ports.agents import ActionMetadata, AgentMetadata

SCRIPT_CLASSES: Final = frozenset({"lsb"})
"""The classes whose agents are called as init scripts, and return their exit codes."""
INIT_SCRIPTS: Final = Path("/etc/init.d")
HEADER_MAX: Final = 8192
"""Characters at the beginning of a script that contain its header."""
_ARGUMENTS: Final = MappingProxyType({"start": "start", "stop": "stop", "monitor": "status"})
_STATUS_CODES: Final = MappingProxyType({
    0: ExitCode.OK,
    1: ExitCode.NOT_RUNNING,  # dead, its pid file exists
    2: ExitCode.NOT_RUNNING,  # dead, its lock file exists
    3: ExitCode.NOT_RUNNING,
})  # fmt: skip
"""Exit codes of `status`; any other means that the state is unknown."""
_LAST_SHARED_CODE: Final = 7
"""Up to this one, the exit codes of `start` and `stop` are those of OCF."""
_KEYWORD: Final = re.compile(r"#\s+([A-Za-z-]+):\s*(.*)\Z")


def argument_of(action: str) -> str | None:
    """Return a script's name of an action; None when it has no such action."""
    return _ARGUMENTS.get(action)


def ocf_code(action: str, exit_status: int) -> ExitCode:
    """Return a script's exit status as OCF's exit code."""
    if action == "monitor":
        return _STATUS_CODES.get(exit_status, ExitCode.ERROR)
    if action == "stop" and exit_status == ExitCode.NOT_RUNNING:
        return ExitCode.OK
    return ExitCode(exit_status) if 0 <= exit_status <= _LAST_SHARED_CODE else ExitCode.ERROR


def environment_of(call: AgentCall) -> Mapping[str, str]:
    """Return a script's environment in addition to the marks of every agent.

    Debian's and Red Hat's functions for init scripts pass a call on to `systemctl` unless they are prevented from it.
    Its job would continue when the call is killed, and nothing on this node would watch it.
    """
    return {INSTANCE_MARK: call.instance, "SYSTEMCTL_SKIP_REDIRECT": "1"}


def read_header(text: str, agent: AgentReference) -> AgentMetadata:
    """Return the meta-data in a script's comments (LSB Core 5.0, "Comment Conventions for Init Scripts")."""
    found: dict[str, str] = {}
    is_header, last = False, ""
    for line in text[:HEADER_MAX].splitlines():
        if line.startswith("### BEGIN INIT INFO"):
            is_header = True
        elif line.startswith("### END INIT INFO"):
            break
        elif is_header and (match := _KEYWORD.match(line)) is not None:
            last = match[1]
            found[last] = match[2].strip()
        elif is_header and last == "Description" and line.startswith(("#\t", "#  ")):
            found[last] += " " + line[1:].strip()
    return AgentMetadata(
        agent=agent,
        version="",
        shortdesc=found.get("Short-Description", ""),
        longdesc=found.get("Description", ""),
        parameters={},
        actions={name: ActionMetadata(name) for name in _ARGUMENTS},
    )
