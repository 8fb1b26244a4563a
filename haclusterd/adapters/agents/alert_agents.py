"""Alert agents as processes (Pacemaker Administration, "Alert Agents").

An agent is ended at its timeout even if this daemon has died before: `timeout` leads its process group.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping

from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.running import Ended, Ending, Hooks, Processes, Program
from haclusterd.model.alerts import AlertCall, AlertCallResult
from haclusterd.ports.clock import Clock

THREADS_KEPT = 1
OUTPUT_MAX = 2_000
"""Characters of an agent's output that are kept."""
GUARD = "timeout"
"""The program of coreutils."""
GUARD_GRACE_MS = 2_000
_KEPT = ("PATH", "LANG", "TZ", "HOME")


class ProcessAlertAgents:
    """Runs alert agents; see the port."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, *, own_environment: Mapping[str, str]
    ) -> None:
        """`own_environment` marks the processes that belong to this daemon."""
        self._own_environment = dict(own_environment)
        self._processes = Processes(clock, loop, ReadyThreads(THREADS_KEPT))

    def call(self, call: AlertCall, done: Callable[[AlertCallResult], None]) -> None:
        """Run the agent; deliver its result on the main loop."""
        inherited = {name: os.environ[name] for name in _KEPT if name in os.environ}
        program = Program(
            (*_guard(call.timeout_ms), call.path),
            {"PATH": os.defpath, **inherited, **self._own_environment, **call.environment},
            call.timeout_ms,
            is_background=True,
            ends_with_group=True,
        )
        self._processes.start(program, Hooks(ended=lambda ended: done(_result(ended))))


def _guard(timeout_ms: int) -> tuple[str, ...]:
    guard = shutil.which(GUARD)
    seconds = f"{(timeout_ms + GUARD_GRACE_MS) / 1000:.3f}"
    return () if guard is None else (guard, "--signal=KILL", seconds)


def _result(ended: Ended) -> AlertCallResult:
    problem = ""
    if ended.ending is not Ending.EXITED:
        problem = f"{ended.ending} {ended.number}" if ended.number else str(ended.ending)
    elif ended.number:
        problem = f"exit code {ended.number}"
    output = (ended.stdout + ended.stderr).strip()[-OUTPUT_MAX:]
    code = ended.number if ended.ending is Ending.EXITED else None
    return AlertCallResult(code, problem, ended.executed_ms, output)
