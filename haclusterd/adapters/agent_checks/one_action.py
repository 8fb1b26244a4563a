"""Runs one action of an agent as the daemon does, but without a daemon (agents-and-fencing.md §1.1-1.5).

Environment, working directory, standard input, process group, output into files and the end at the timeout are the
same. What only a daemon has is missing: orders, leases, control groups.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from haclusterd.adapters.agent_checks.family import wait
from haclusterd.adapters.agents.results import last_words, read_exit_reason
from haclusterd.adapters.agents.surroundings import Surroundings
from haclusterd.agents.process_table import ORDER_MARK
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import dataclass, field
from haclusterd.ports.agents import AgentCall

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of each stream that are kept."""
UNKNOWN_ACTION = "haclusterd-has-no-such-action"
WITHOUT_INCARNATION = Incarnation("by-hand", "0" * 16)


@dataclass(frozen=True, slots=True)
class Program:
    """An agent, its surroundings, and the resource that it is to manage."""

    agent: AgentReference
    path: Path
    surroundings: Surroundings
    instance: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    meta: Mapping[str, str] = field(default_factory=dict)
    """Meta-attributes of each action, such as `interval` or `notify_type`."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to those that the daemon sets, or instead of them."""

    def call(self, action: str, timeout_ms: int, level: str | None, meta: Mapping[str, str]) -> AgentCall:
        """Return the call that a daemon would make."""
        given = {"interval": "0", "name": action, "timeout": str(timeout_ms), **self.meta, **meta}
        return AgentCall(
            key=f"by-hand/{self.instance}/{action}", resource=ResourceId(self.instance), instance=self.instance,
            agent=self.agent, action=action, parameters=self.parameters, meta=given, timeout_ms=timeout_ms,
            incarnation=WITHOUT_INCARNATION, check_level=level,
        )  # fmt: skip

    def environment(
        self, action: str, timeout_ms: int, level: str | None = None, meta: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the environment of an action."""
        found = self.surroundings.of_action(self.call(action, timeout_ms, level, meta or {}))
        return {name: value for name, value in found.items() if name != ORDER_MARK} | dict(self.extra)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an action."""

    action: str
    code: int | None
    """The exit code; None when it was ended at its timeout, or by a signal."""
    signal: int
    """The signal that ended it by itself; 0: none."""
    stdout: str
    stderr: str
    wall_ms: int
    is_timeout: bool = False

    @property
    def reason(self) -> str:
        """The agent's own text about a failure."""
        return read_exit_reason(self.stderr) or last_words(self.stderr)

    @property
    def name(self) -> str:
        """The exit code's name in OCF."""
        if self.is_timeout:
            return "timed out"
        if self.code is None:
            return f"ended by {signal.Signals(self.signal).name}"
        return code_name(self.code)


def code_name(code: int) -> str:
    """Return `0 (ok)`, `7 (not running)`; a code that OCF does not define is described as such."""
    try:
        return f"{code} ({ExitCode(code).name.lower().replace('_', ' ')})"
    except ValueError:
        return f"{code} (no code of OCF: counts as 1)"


def perform(
    program: Program, action: str, timeout_ms: int, level: str | None = None, meta: Mapping[str, str] | None = None
) -> Answer:
    """Run one action to its end or its timeout. Raises OSError when the agent cannot be executed."""
    environment = program.environment(action, timeout_ms, level, meta)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(program.path), action], env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
            process_group=0,
        )  # fmt: skip
        try:
            is_timeout = not wait(process, timeout_ms / 1000)
        except BaseException:
            _kill(process)
            raise
        if is_timeout:
            _kill(process)
        wall_ms = int((time.monotonic() - begun) * 1000)
        status = process.returncode
        texts = _kept(out), _kept(errors)
    is_exit = status is not None and status >= 0 and not is_timeout
    code = status if is_exit else None
    ended_by = -status if status is not None and status < 0 and not is_timeout else 0
    return Answer(action, code, ended_by, texts[0], texts[1], wall_ms, is_timeout)


def _kept(stream: IO[bytes]) -> str:
    """Return what was printed: as the daemon keeps it, the beginning and the end of what is too long."""
    size, half = stream.seek(0, os.SEEK_END), OUTPUT_LIMIT // 2
    stream.seek(0)
    if size <= OUTPUT_LIMIT:
        return stream.read().decode(errors="replace")
    head = stream.read(half)
    stream.seek(size - half)
    note = f"\n[{size - OUTPUT_LIMIT} bytes left out]\n".encode()
    return (head + note + stream.read()).decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
