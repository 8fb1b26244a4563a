"""The result of a program that has ended, as an agent's: exit code by OCF, status, and reason.

Exit codes are not judged here: the scheduler and the executor know what was expected. Those of init scripts are first
translated to OCF's.
"""

import errno
import os
from contextlib import suppress
from signal import Signals

from haclusterd.adapters.agents.init_scripts import SCRIPT_CLASSES, ocf_code
from haclusterd.adapters.agents.surroundings import EXIT_REASON_PREFIX
from haclusterd.adapters.processes.running import Ended, Ending
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.ports.agents import AgentCall, AgentResult
from haclusterd.reports.rendering import printable

_KNOWN_CODES = frozenset(map(int, ExitCode))
SELF_EXPLAINED = frozenset({ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED})
"""Exit codes that need no reason; any other says that something is wrong, but not what."""


def read_exit_reason(stderr: str) -> str:
    """Return the text after the last non-empty `ocf-exit-reason:`, up to the end of its line, in printable form."""
    lines = [line for line in stderr.splitlines() if EXIT_REASON_PREFIX in line]
    reasons = [line.rpartition(EXIT_REASON_PREFIX)[2].strip() for line in lines]
    return printable(next((reason for reason in reversed(reasons) if reason), ""))


def last_words(stderr: str) -> str:
    """Return the last line that an agent wrote, as the reason of a failure without one.

    It is whole: what shortens it before values of secrets are taken out leaves the beginning of one. What could steer
    a terminal is escaped: reasons are shown, logged and written as XML.
    """
    lines = [line.strip() for line in stderr.splitlines()]
    return printable(next((line for line in reversed(lines) if line), ""))


def describe_timeout(action: str, timeout_ms: int) -> str:
    """Return the reason of an action that exceeded its timeout."""
    span = f"{timeout_ms // 1000}s" if timeout_ms % 1000 == 0 else f"{timeout_ms}ms"
    return f"{action} did not complete within {span}"


def to_result(call: AgentCall, ended: Ended) -> AgentResult:
    """Return the result of an action, given how its program ended."""
    code, status, reason = _classify(call, ended)
    return AgentResult(
        key=call.key,
        exit_code=code,
        status=status,
        exit_reason=reason,
        stdout=ended.stdout,
        stderr=ended.stderr,
        queued_ms=ended.queued_ms,
        executed_ms=ended.executed_ms,
        still_alive=ended.still_alive,
        is_begun=ended.ending is not Ending.NOT_PERMITTED,
    )


def _classify(call: AgentCall, ended: Ended) -> tuple[int, ExecutionStatus, str]:
    match ended.ending:
        case Ending.EXITED:
            return _classify_exit(call, ended)
        case Ending.SIGNALLED:
            return int(ExitCode.ERROR), ExecutionStatus.ERROR, f"interrupted by {_name_signal(ended.number)}"
        case Ending.TIMED_OUT:
            return int(ExitCode.ERROR), ExecutionStatus.TIMEOUT, describe_timeout(call.action, call.timeout_ms)
        case Ending.KILLED:
            return int(ExitCode.ERROR), ExecutionStatus.CANCELLED, "cancelled"
        case Ending.NOT_PREPARED:
            reason = f"the action could not be recorded: {os.strerror(ended.number)}"
            return int(ExitCode.ERROR), ExecutionStatus.ERROR, reason
        case Ending.NOT_PERMITTED:
            return int(ExitCode.ERROR), ExecutionStatus.CANCELLED, "this node's lease ended before it began"
        case Ending.NOT_STARTED:
            return _classify_errno(call, ended.number)


def _classify_exit(call: AgentCall, ended: Ended) -> tuple[int, ExecutionStatus, str]:
    is_script = call.agent.standard in SCRIPT_CLASSES
    code = int(ocf_code(call.action, ended.number)) if is_script else ended.number
    reason = "" if is_script else read_exit_reason(ended.stderr)
    if not reason and code not in SELF_EXPLAINED:
        # Init scripts explain themselves on standard output.
        reason = last_words(ended.stderr) or (last_words(ended.stdout) if is_script else "")
        if is_script:
            reason = f"{reason} (exit status {ended.number})".strip()
        elif not reason and code not in _KNOWN_CODES:
            reason = f"exit code {code}, which OCF does not define"
    return code, ExecutionStatus.DONE, reason


def _classify_errno(call: AgentCall, number: int) -> tuple[int, ExecutionStatus, str]:
    reason = f"{call.agent}: {os.strerror(number)}"
    if number in {errno.ENOENT, errno.ENOTDIR, errno.ENOEXEC}:
        return int(ExitCode.NOT_INSTALLED), ExecutionStatus.NOT_INSTALLED, reason
    if number in {errno.EACCES, errno.EPERM}:
        return int(ExitCode.PERMISSIONS), ExecutionStatus.ERROR, reason
    return int(ExitCode.ERROR), ExecutionStatus.ERROR, reason


def _name_signal(number: int) -> str:
    with suppress(ValueError):
        return Signals(number).name
    return f"signal {number}"
