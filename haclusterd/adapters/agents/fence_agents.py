"""Fence agents through their standard-input API (FenceAgentAPI; agents-and-fencing.md §3.1-3.2), and external plugins.

Invariants: a fence agent's parameters are passed on standard input only, those of a plugin of cluster-glue in its
environment only, never in an argument vector, a log or an error text; secret values are removed from an agent's output
before it is passed on. An agent that an earlier incarnation of
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
from functools import partial
from pathlib import Path

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords, find_process
from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.fence_plugins import (
    QUESTIONS,
    PluginCall,
    plugin_answer,
    plugin_call,
    plugin_environment,
    plugin_metadata,
)
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata, read_fence_metadata
from haclusterd.adapters.machine.installation import INTERPRETER_DIRECTORY
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.running import Ended, Ending, Hooks, Processes, Program, RunningProgram
from haclusterd.agents.process_table import (
    LOCAL_CLUSTER_MARK,
    NODE_MARK,
    list_pids,
    look_at,
    look_at_marks,
)
from haclusterd.model.fence_parameters import is_plugin
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import after
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentMetadata
from haclusterd.ports.clock import Clock
from haclusterd.ports.fencing import FenceCall, FenceCallResult, FenceMetadata
from haclusterd.reports.rendering import printable

DEVELOPMENT_ONLY = frozenset({"fence_local"})
METADATA_TIMEOUT_MS = 30_000
METADATA_LIMIT = 1024 * 1024
OUTPUT_LIMIT = 64 * 1024
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


class FenceAgentPrograms:
    """FenceAgents on this node."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        runtime_directory: Path,
        node: NodeName,
        incarnation: Incarnation,
        directories: FenceDirectories,
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

        Only its metadata says how the agent is given the host, and whether it supports `reboot`; of a plugin, which
        variables it reads.
        """
        if is_plugin(call.agent) and self._find(call.agent) is not None:
            self.metadata(call.agent, lambda metadata: self._begin(call, done, plugin_call(call, metadata)))
        elif call.host is None and call.action != "reboot":
            self._begin(call, done)
        else:
            self.metadata(call.agent, lambda metadata: self._begin(fitted(call, metadata), done))

    def _begin(
        self, call: FenceCall, done: Callable[[FenceCallResult], None], plugin: PluginCall | str | None = None
    ) -> None:
        path = self._find(call.agent)
        problem = plugin if isinstance(plugin, str) else self._refuse(call, path)
        if path is None or problem or isinstance(plugin, str):
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

        given = plugin.environment if plugin is not None else {}
        program = Program(
            (*self._killed_after(call.timeout_ms), str(path), *(plugin.arguments if plugin is not None else ())),
            {**given, **self._environment(call.agent), **record.marks},
            call.timeout_ms,
            stdin=write_stdin(call) if plugin is None else b"",
            output_limit=OUTPUT_LIMIT,
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
        """Kill the agents that earlier incarnations of this boot left running; return their keys. Call once, first.

        Raises OSError when they cannot be found out. They are killed before this returns, and their records stay until
        they have ended: if the daemon dies meanwhile, its next incarnation finds them.
        """
        records = self._records.read_all()
        own = [record for record in records if record.incarnation.boot_id == self._incarnation.boot_id]
        found = {record.key: self._leader_of(record) for record in own}
        for pid in list_pids() if found else ():
            # By their marks: an agent whose leader, `timeout`, was killed alone is in no record.
            marks = look_at_marks(pid)
            for record in own if self._is_own(marks) else ():
                if record.is_borne_by(marks):
                    found[record.key].add(pid)
        return tuple(record.key for record in records if self._kill_all(record.key, found.get(record.key, ())))

    @staticmethod
    def _leader_of(record: ActionRecord) -> set[int]:
        leader = find_process(record)
        return {leader.pid} if leader is not None and leader.pid is not None else set()

    def _is_own(self, marks: Mapping[str, str]) -> bool:
        """Return whether marks are this node's, not another node's or local cluster's on the same machine."""
        expected = {NODE_MARK: self._node, LOCAL_CLUSTER_MARK: self._own_environment.get(LOCAL_CLUSTER_MARK)}
        return all(marks.get(name) == value for name, value in expected.items())

    def _kill_all(self, key: str, pids: Collection[int]) -> bool:
        """Kill the processes of an earlier incarnation's agent; return whether there were any."""
        left: set[int] = set()

        def gone(pid: int) -> None:
            left.discard(pid)
            if not left:
                self._records.remove_soon(key)

        for pid in sorted(pids):
            stat = look_at(pid)
            if stat is None:
                continue
            kill = self._processes.adopt(pid, stat.start_time, self._clock.now(), partial(gone, pid))
            if kill is not None:
                left.add(pid)
                kill()
        if not left:
            self._records.remove(key)
        return bool(left)

    def exists(self, agent: str) -> bool:
        """Return whether the agent is installed here and may be used."""
        path = self._find(agent)
        return path is not None and os.access(path, os.X_OK) and self._guard() is not None

    def installed(self) -> tuple[str, ...]:
        """Return the fence agents that are installed here and may be used."""
        return tuple(name for name in self._directories.listing() if self.exists(name))

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

        def known(text: str, *, is_whole: bool) -> None:
            if is_whole:
                self._texts[agent] = version, text
            read(text)

        if is_plugin(agent):
            answers: dict[str, str] = {}
            self._ask_plugin(
                agent, str(path), answers, lambda is_whole: known(plugin_metadata(agent, answers), is_whole=is_whole)
            )
            return

        def ended(ended: Ended) -> None:
            known(ended.stdout, is_whole=ended.ending is Ending.EXITED and ended.number == 0)

        program = Program(
            (str(path),),
            self._environment(agent),
            METADATA_TIMEOUT_MS,
            stdin=b"action=metadata\n",
            output_limit=METADATA_LIMIT,
        )
        self._processes.start(program, Hooks(ended))

    def _ask_plugin(
        self, agent: str, path: str, answers: dict[str, str], done: Callable[[bool], None], number: int = 0
    ) -> None:
        """Ask a plugin the question of a number and those after it; `done` gets whether it has ended each by itself."""
        question = QUESTIONS[number]

        def ended(ended: Ended) -> None:
            if ended.ending is Ending.EXITED and ended.number == 0:
                answers[question] = ended.stdout
            if ended.ending is not Ending.EXITED or number + 1 == len(QUESTIONS):
                done(ended.ending is Ending.EXITED)
            else:
                self._ask_plugin(agent, path, answers, done, number + 1)

        # All questions together take no longer than a fence agent may take for its metadata: a request waits for it.
        timeout_ms = METADATA_TIMEOUT_MS // len(QUESTIONS)
        program = Program((path, question), self._environment(agent), timeout_ms, output_limit=METADATA_LIMIT)
        self._processes.start(program, Hooks(ended))

    def _find(self, agent: str) -> Path | None:
        if agent in DEVELOPMENT_ONLY and not self._allows_development:
            return None
        return self._directories.find(agent)

    def _refuse(self, call: FenceCall, path: Path | None) -> str:
        if call.agent in DEVELOPMENT_ONLY and not self._allows_development:
            return f"{call.agent} is for development only, and this daemon's configuration does not allow development"
        if path is None:
            return f"{call.agent} is not installed on {self._node}"
        if self._guard() is None:
            return f"{GUARD} (coreutils) is not installed on {self._node}: {call.agent} could outlive its daemon"
        broken = sorted(name for name, value in call.parameters.items() if "\n" in name + value)
        if broken and not is_plugin(call.agent):
            return f"parameter {broken[0]!r} has a line break, which a fence agent cannot be given"
        return ""

    def _guard(self) -> str | None:
        return shutil.which(GUARD, path=self._environment(GUARD)["PATH"])

    def _killed_after(self, timeout_ms: int) -> tuple[str, ...]:
        """Return the command that runs an agent and kills it after its timeout, if its daemon has not done so."""
        seconds = -(-timeout_ms // 1000) + 1
        return (self._guard() or GUARD, "-s", "KILL", str(seconds))

    def _environment(self, agent: str) -> dict[str, str]:
        path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        path.append(INTERPRETER_DIRECTORY)
        own = {"PATH": ":".join(path), "LANG": "C.UTF-8", **self._own_environment, NODE_MARK: self._node}
        return plugin_environment(agent, own, self._directories) if is_plugin(agent) else own


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
    exit_code, output, reason = ended.number if ended.ending is Ending.EXITED else 1, ended.stdout, ""
    if is_plugin(call.agent) and ended.ending is Ending.EXITED:
        exit_code, output, reason = plugin_answer(call, ended, OUTPUT_LIMIT)
    return FenceCallResult(
        key=call.key,
        exit_code=exit_code,
        timed_out=ended.ending is Ending.TIMED_OUT,
        reason=printable(hide_secrets(_describe(call, ended) or reason, call.parameters)),
        output=hide_secrets(output, call.parameters),
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
