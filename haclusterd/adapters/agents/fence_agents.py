"""Fence agents through their standard-input API (FenceAgentAPI; agents-and-fencing.md §3.1-3.2).

Invariants: parameters are passed on standard input only, never in an argument vector, an environment, a log or an error
text; secret values are removed from an agent's output before it is passed on. An agent that an earlier incarnation of
this daemon started is killed before a new one is started: a late `off` would hit a node that has come back. It ends
with `timeout`, which leads its process group, even if only that was killed; a result is delivered when it has ended. If
no new incarnation starts, `timeout` kills it: no agent is at work later than `FENCE_AGENT_GRACE_MS` after its timeout
(safety.md §5).

`fence_local`, the power switch of local development clusters, is available only if the daemon's configuration allows
development.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords, find_process
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata, read_fence_metadata
from haclusterd.adapters.machine.installation import INTERPRETER_DIRECTORY
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.running import Ended, Ending, Hooks, Processes, Program, RunningProgram
from haclusterd.agents.process_table import (
    LOCAL_CLUSTER_MARK,
    NODE_MARK,
    ORDER_MARK,
    list_pids,
    read_marks,
    read_stat,
)
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import after
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentMetadata
from haclusterd.ports.clock import Clock
from haclusterd.ports.fencing import FenceCall, FenceCallResult, FenceMetadata

DEVELOPMENT_ONLY = frozenset({"fence_local"})
AGENT_NAME = re.compile(r"fence_[A-Za-z0-9_.-]+\Z")
METADATA_TIMEOUT_MS = 30_000
METADATA_LIMIT = 1024 * 1024
SECRET_NAME = re.compile(r"pass|secret|token|credential|private|_key\Z|\Akey\Z|community", re.IGNORECASE)
THREADS_KEPT = 3
GUARD = "timeout"
"""The program of coreutils; it leads the agent's process group, and kills it."""
DYNAMIC = "dynamic"
"""A host parameter with this value is filled in."""
SHORTEST_SECRET = 3
"""Shorter values are not removed from an agent's output: that would garble it and protect nothing."""


def fitted(call: FenceCall, metadata: FenceMetadata | None) -> FenceCall:
    """Return a call in the agent's own terms; an agent without metadata is assumed to use the usual ones."""
    action = call.action
    if action == "reboot" and metadata is not None and "reboot" not in metadata.actions:
        action = "off"
    argument = metadata.host_argument if metadata is not None else "port"
    parameters = dict(call.parameters)
    if call.host is not None and argument is not None and parameters.get(argument, DYNAMIC) == DYNAMIC:
        parameters[argument] = call.host
    return replace(call, action=action, parameters=parameters, host=None)


class StdinFenceAgents:
    """FenceAgents on this node."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        runtime_directory: Path,
        node: NodeName,
        incarnation: Incarnation,
        directories: tuple[Path, ...],
        allows_development: bool,
        own_environment: Mapping[str, str],
        has_lease: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._node = node
        self._incarnation = incarnation
        self._directories = directories
        self._allows_development = allows_development
        self._own_environment = dict(own_environment)
        self._has_lease = has_lease
        threads = ReadyThreads(THREADS_KEPT)
        self._records = ActionRecords(runtime_directory / "fence-actions", threads)
        self._processes = Processes(clock, loop, threads)
        self._running: dict[str, RunningProgram] = {}
        self._texts: dict[str, tuple[tuple[str, int, int], str]] = {}

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        """Run the agent; deliver its result on the main loop.

        Only its metadata says how the agent is given the host, and whether it supports `reboot`.
        """
        if call.host is None and call.action != "reboot":
            self._begin(call, done)
        else:
            self.metadata(call.agent, lambda metadata: self._begin(fitted(call, metadata), done))

    def _begin(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        path = self._find(call.agent)
        problem = self._refuse(call, path)
        if path is None or problem:
            result = FenceCallResult(call.key, exit_code=1, timed_out=False, reason=problem, output="")
            self._clock.call_soon(lambda: done(result))
            return
        now = self._clock.now()
        record = ActionRecord(
            key=call.key,
            resource=ResourceId(""),
            action=call.action,
            incarnation=self._incarnation,
            path=str(path),
            begun=now,
            deadline=after(now, call.timeout_ms),
        )

        def ended(ended: Ended) -> None:
            self._running.pop(call.key, None)
            done(_to_result(call, ended))

        program = Program(
            (*self._killed_after(call.timeout_ms), str(path)),
            {**self._environment(), ORDER_MARK: call.key},
            call.timeout_ms,
            stdin=write_stdin(call),
            ends_with_group=True,
        )
        self._running[call.key] = self._processes.start(
            program,
            Hooks(
                ended=ended,
                is_permitted=self._has_lease if call.needs_lease else _always,
                before=lambda: self._records.write(record),
                forked=lambda pid, start: self._records.write(replace(record, pid=pid, start_time=start)),
                gone=lambda: self._records.remove_soon(call.key),
            ),
        )

    def cancel(self, key: str) -> None:
        """Kill a running agent; its result is a failure."""
        running = self._running.get(key)
        if running is not None:
            self._processes.kill(running)

    def kill_left_over(self) -> tuple[str, ...]:
        """Kill the agents that earlier incarnations of this boot left running; return their keys. Call once, first."""
        records = self._records.read_all()
        found = {
            record.key: self._leader_of(record)
            for record in records
            if record.incarnation.boot_id == self._incarnation.boot_id
        }
        for pid in list_pids() if found else ():
            # By their mark: an agent whose leader, `timeout`, was killed alone is in no record.
            marks = read_marks(pid)
            if marks.get(ORDER_MARK) in found and self._is_own(marks):
                found[marks[ORDER_MARK]].add(pid)
        for record in records:
            self._records.remove(record.key)
        return tuple(key for key, pids in found.items() if self._kill_all(pids))

    @staticmethod
    def _leader_of(record: ActionRecord) -> set[int]:
        leader = find_process(record)
        return {leader.pid} if leader is not None and leader.pid is not None else set()

    def _is_own(self, marks: Mapping[str, str]) -> bool:
        """Return whether marks are this node's, not another node's or local cluster's on the same machine."""
        expected = {NODE_MARK: self._node, LOCAL_CLUSTER_MARK: self._own_environment.get(LOCAL_CLUSTER_MARK)}
        return all(marks.get(name) == value for name, value in expected.items())

    def _kill_all(self, pids: Collection[int]) -> bool:
        """Kill processes of an earlier incarnation; return whether there were any."""
        stats = [stat for stat in map(read_stat, sorted(pids)) if stat is not None]
        now = self._clock.now()
        adopted = [self._processes.adopt(stat.pid, stat.start_time, now, lambda: None) for stat in stats]
        return any(adopted)

    def exists(self, agent: str) -> bool:
        """Return whether the agent is installed here and may be used."""
        path = self._find(agent)
        return path is not None and os.access(path, os.X_OK) and self._guard() is not None

    def installed(self) -> tuple[str, ...]:
        """Return the fence agents that are installed here and may be used."""
        names = {
            file.name
            for directory in self._directories
            if directory.is_dir()
            for file in directory.glob("fence_*")
        }
        return tuple(sorted(name for name in names if self.exists(name)))

    def metadata(self, agent: str, done: Callable[[FenceMetadata | None], None]) -> None:
        """Read the agent's metadata; None when there is no such agent."""

        def read(text: str) -> None:
            try:
                metadata = read_fence_metadata(text, agent)
            except MetadataError:
                done(None)
                return
            done(metadata)

        self._metadata_text(agent, read)

    def agent_metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read the same metadata as that of a resource agent, for resources of class stonith."""

        def read(text: str) -> None:
            try:
                metadata = read_agent_metadata(text, agent)
            except MetadataError:
                done(None)
                return
            done(metadata)

        self._metadata_text(agent.type, read)

    def _metadata_text(self, agent: str, read: Callable[[str], None]) -> None:
        path = self._find(agent)
        try:
            status = path.stat() if path is not None else None
        except OSError:
            status = None
        if status is None:
            self._clock.call_soon(lambda: read(""))
            return
        version = (str(path), status.st_mtime_ns, status.st_size)
        cached = self._texts.get(agent)
        if cached is not None and cached[0] == version:
            self._clock.call_soon(lambda: read(cached[1]))
            return

        def ended(ended: Ended) -> None:
            if ended.ending is Ending.EXITED and ended.number == 0:
                self._texts[agent] = version, ended.stdout
            read(ended.stdout)

        program = Program(
            (str(path),),
            self._environment(),
            METADATA_TIMEOUT_MS,
            stdin=b"action=metadata\n",
            output_limit=METADATA_LIMIT,
        )
        self._processes.start(program, Hooks(ended))

    def _find(self, agent: str) -> Path | None:
        if not AGENT_NAME.match(agent) or (agent in DEVELOPMENT_ONLY and not self._allows_development):
            return None
        return next((directory / agent for directory in self._directories if (directory / agent).is_file()), None)

    def _refuse(self, call: FenceCall, path: Path | None) -> str:
        if call.agent in DEVELOPMENT_ONLY and not self._allows_development:
            return f"{call.agent} is for development only, and this daemon's configuration does not allow development"
        if path is None:
            return f"{call.agent} is not installed on {self._node}"
        if self._guard() is None:
            return f"{GUARD} (coreutils) is not installed on {self._node}: {call.agent} could outlive its daemon"
        broken = sorted(name for name, value in call.parameters.items() if "\n" in name + value)
        if broken:
            return f"parameter {broken[0]!r} has a line break, which a fence agent cannot be given"
        return ""

    def _guard(self) -> str | None:
        return shutil.which(GUARD, path=self._environment()["PATH"])

    def _killed_after(self, timeout_ms: int) -> tuple[str, ...]:
        """Return the command that runs an agent and kills it after its timeout, if its daemon has not done so."""
        seconds = -(-timeout_ms // 1000) + 1
        return (self._guard() or GUARD, "-s", "KILL", str(seconds))

    def _environment(self) -> dict[str, str]:
        path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        path.append(INTERPRETER_DIRECTORY)
        return {"PATH": ":".join(path), "LANG": "C.UTF-8", **self._own_environment, NODE_MARK: self._node}


def _always() -> bool:
    return True


def write_stdin(call: FenceCall) -> bytes:
    """Return what the agent reads: `key=value` lines; the action comes first."""
    lines = [f"action={call.action}"]
    lines += [f"{name}={value}" for name, value in sorted(call.parameters.items()) if name != "action"]
    return "".join(f"{line}\n" for line in lines).encode()


def hide_secrets(text: str, parameters: Mapping[str, str]) -> str:
    """Return the text with the values of secret parameters replaced by `***`."""
    secrets = {value for name, value in parameters.items() if SECRET_NAME.search(name)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def _to_result(call: FenceCall, ended: Ended) -> FenceCallResult:
    return FenceCallResult(
        key=call.key,
        exit_code=ended.number if ended.ending is Ending.EXITED else 1,
        timed_out=ended.ending is Ending.TIMED_OUT,
        reason=hide_secrets(_describe(call, ended), call.parameters),
        output=hide_secrets(ended.stdout, call.parameters),
    )


def _describe(call: FenceCall, ended: Ended) -> str:
    match ended.ending:
        case Ending.EXITED:
            lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
            return lines[-1] if lines else ""
        case Ending.SIGNALLED:
            return f"interrupted by signal {ended.number}"
        case Ending.TIMED_OUT:
            return f"{call.action} did not complete within {call.timeout_ms}ms"
        case Ending.KILLED:
            return "cancelled"
        case Ending.NOT_PREPARED:
            return f"the action could not be recorded: {os.strerror(ended.number)}"
        case Ending.NOT_PERMITTED:
            return "not permitted any more"
        case Ending.NOT_STARTED:
            return f"{call.agent}: {os.strerror(ended.number)}"
