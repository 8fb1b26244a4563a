"""`crm agent lint`: the defects of an agent that can be seen without starting anything.

Of the agent's program only `meta-data` and a nonexistent action are run; the rest is read.
"""

import os
import shutil
from collections.abc import Iterator

from haclusterd.adapters.agent_checks.finding import Finding, Severity, error, warning
from haclusterd.adapters.agent_checks.metadata_rules import metadata_findings
from haclusterd.adapters.agent_checks.one_action import UNKNOWN_ACTION, Program, code_name, perform
from haclusterd.adapters.agent_checks.text_rules import needed_programs, text_findings
from haclusterd.adapters.agents.metadata import MetadataError, read_root
from haclusterd.adapters.agents.surroundings import SYSTEM_PATH
from haclusterd.adapters.agents.survey import why_not_executed
from haclusterd.adapters.agents.tools import missing_tools
from haclusterd.model.ocf import ExitCode

TIMEOUT_MS = 30_000
READ_BYTES = 1024 * 1024


def lint(program: Program) -> list[Finding]:
    """Return all defects of an agent, by line. Raises OSError when its file cannot be read."""
    with program.path.open("rb") as file:
        text = file.read(READ_BYTES).decode(errors="replace")
    found: list[Finding] = []
    declared: list[str] = []
    actions: list[str] = []
    if not os.access(program.path, os.X_OK):
        found.append(error("not-executable", f"it is not executable: chmod 755 {program.path}"))
    else:
        try:
            found += _asked(program, declared, actions)
        except OSError as problem:
            why = why_not_executed(program.path, problem)
            found.append(error("not-executable", f"it cannot be executed: {why}"))
    found += text_findings(program.path, text, declared, actions)
    found += _missing(program, text)
    order = list(Severity)
    return sorted(set(found), key=lambda each: (each.line, order.index(each.severity), each.code, each.message))


def _asked(program: Program, declared: list[str], actions: list[str]) -> Iterator[Finding]:
    """Yield the defects of its answers; fill in the parameters and the actions in its meta-data."""
    answer = perform(program, "meta-data", TIMEOUT_MS)
    if answer.code != 0:
        yield error("meta-data", f"meta-data ends with {answer.name}")
    try:
        root = read_root(answer.stdout)
    except MetadataError as problem:
        yield error("meta-data", f"meta-data: {problem}")
    else:
        declared += [each.get("name", "") for each in root.iterfind("./parameters/parameter")]
        actions += [each.get("name", "") for each in root.iterfind("./actions/action")]
        yield from metadata_findings(root, program.agent.type)
    unknown = perform(program, UNKNOWN_ACTION, TIMEOUT_MS)
    if unknown.code != ExitCode.UNIMPLEMENTED:
        wanted = code_name(ExitCode.UNIMPLEMENTED)
        yield warning("unknown-action", f"an action that there is not is answered {unknown.name}, not {wanted}")


def _missing(program: Program, text: str) -> Iterator[Finding]:
    """Yield the programs that it names and that this machine lacks."""
    path = ":".join(SYSTEM_PATH)
    for name in needed_programs(text):
        if shutil.which(name, path=path) is None:
            yield warning("missing-program", f"program {name} is not on this machine")
    for tool in missing_tools(program.path, program.surroundings.directories.shims):
        yield warning("missing-tool", f"Pacemaker's tool {tool} is not among those that this cluster has")
