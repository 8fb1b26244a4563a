"""Resource agents that are programs: class ocf, and class lsb (init scripts; see `init_scripts`).

Invariants (agents-and-fencing.md §1.1-1.9): the argument vector is the agent's path and the action, everything else is
environment; the action is recorded before the exec; a resource's next action waits for processes of the last one that
outlived SIGKILL, and fails if they stay.
"""

import asyncio
import errno
import logging
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.agents.action_records import ActionRecord, ActionRecords, find_process
from haclusterd.adapters.agents.init_scripts import (
    HEADER_MAX,
    SCRIPT_CLASSES,
    argument_of,
    read_header,
)
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata
from haclusterd.adapters.agents.results import to_result
from haclusterd.adapters.agents.service_groups import ServiceGroups
from haclusterd.adapters.agents.service_watch import ServiceWatch
from haclusterd.adapters.agents.surroundings import AGENT_STATE, AgentDirectories, Surroundings
from haclusterd.adapters.agents.tools import missing_tools
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.adapters.processes.running import Ended, Ending, Hooks, Processes, Program, RunningProgram
from haclusterd.adapters.processes.spawner_link import Spawner
from haclusterd.agents.process_table import LOCAL_CLUSTER_MARK, ORDER_MARK
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import Instant, after, elapsed_ms
from haclusterd.model.ocf import ACTIVATING, ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, replace
from haclusterd.ports.agents import CANNOT_BE_ASKED, AdoptedAction, AgentCall, AgentMetadata, AgentResult
from haclusterd.ports.clock import Clock, Timer

_log = logging.getLogger(__name__)

METADATA_TIMEOUT_MS = 30_000
METADATA_WAIT_MS = 2000
"""How long the result of a start waits for the agent's meta-data, the first time."""
METADATA_LIMIT = 1024 * 1024
RELOAD_ACTION = "reload-agent"
MONITOR = "monitor"
VALIDATE = "validate-all"
STARTS_NOTHING = frozenset({MONITOR, "stop", VALIDATE})
"""Actions that leave no process behind."""
TAKES_PARAMETERS = frozenset({"start", "migrate_from", RELOAD_ACTION})
"""Actions after which the resource runs with the parameters that they got."""
THREADS_KEPT = 8
"""Threads for starting programs, searching for stuck ones, removing records, and scanning processes."""
UNKILLABLE_WAIT_MS = 5000
"""How long a resource's next action waits for killed processes of the one before."""
ENDS_ACTIVITY = frozenset({"stop", "demote", "migrate_to"})
"""Actions on what runs: its agent existed when it was started."""
ABSENT_WAIT_MS, ABSENT_WAIT_SHORT_MS = 30_000, 5000
"""How long an action waits for an agent that existed before; the short one if it would start a service."""
ABSENT_PAUSES_MS = (50, 1000)
"""Pause between two searches: the first, which doubles, and the longest."""
BEING_REPLACED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENOEXEC, errno.EACCES, errno.ETXTBSY})
"""Errors of the exec while an agent's file is being replaced."""
PIDLESS_SEARCHES = 10
PIDLESS_PERIOD_MS = 100


def own_marks(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of this daemon's environment that its agents must carry too."""
    return {name: value for name, value in environment.items() if name == LOCAL_CLUSTER_MARK}


def _always() -> bool:
    return True


class OcfAgents:
    """AgentRunner for classes ocf and lsb."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        runtime_directory: Path,
        node: NodeName,
        incarnation: Incarnation,
        directories: AgentDirectories,
        has_lease: Callable[[], bool] = _always,
        service_group: Path | None = None,
        spawner: Spawner | None = None,
    ) -> None:
        """`has_lease` is called on other threads, just before an activating action is executed.

        `service_group`: the control group that was delegated to this daemon. `spawner`: clones agents in that group.
        """
        self._clock = clock
        self._loop = loop
        self._node = node
        self._incarnation = incarnation
        self._directories = directories
        self._has_lease = has_lease
        self._state_directory = runtime_directory / AGENT_STATE
        self._surroundings = Surroundings(node, directories, self._state_directory)
        threads = ReadyThreads(THREADS_KEPT)
        self._records = ActionRecords(runtime_directory / "actions", threads)
        self._processes = Processes(clock, loop, threads, spawner)
        self._running: dict[str, RunningProgram | None] = {}
        self._unkillable: dict[ResourceId, set[str]] = {}
        self._waiting: dict[ResourceId, list[_Waiting]] = {}
        self._adopted: dict[str, Callable[[], None]] = {}
        """What kills each agent that an earlier incarnation left running."""
        self._searched: dict[str, ActionRecord] = {}
        """Actions of an earlier incarnation whose process is not found yet."""
        self._absent: dict[str, _Waiting] = {}
        """Actions whose agents are missing at the moment."""
        self._paths: dict[AgentReference, tuple[Path, ...]] = {}
        """Where each agent may be, in order of preference."""
        self._executed: set[AgentReference] = set()
        """Agents that have run here."""
        self._reading: dict[AgentReference, list[Callable[[AgentMetadata | None], None]]] = {}
        """Callbacks for meta-data that is being read."""
        self._metadata: dict[AgentReference, tuple[tuple[str, int, int], AgentMetadata]] = {}
        self._metadata_asked: set[AgentReference] = set()
        """Agents whose meta-data was requested because of an action."""
        self._groups = ServiceGroups(service_group, node, runtime_directory)
        self._groups.forget_empty()
        local_cluster = directories.own_environment.get(LOCAL_CLUSTER_MARK)
        self._watch = ServiceWatch(
            clock,
            loop,
            node,
            self._running.keys,
            self._groups,
            threads=threads,
            local_cluster=local_cluster,
            seals=directories.seals,
        )

    # AgentRunner

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        waiting = _Waiting(call, done, self._clock.now())
        self._running[call.key] = None
        if self._unkillable.get(call.resource):
            waiting.timer = self._clock.call_at(
                after(waiting.asked_at, UNKILLABLE_WAIT_MS), lambda: self._give_up(waiting)
            )
            self._waiting.setdefault(call.resource, []).append(waiting)
        else:
            self._start(waiting)

    def kill(self, key: str) -> None:
        """End the action's process group now; its result is CANCELLED."""
        running = self._running.get(key)
        if running is not None:
            self._processes.kill(running)
            return
        if key in self._adopted:
            self._adopted[key]()
        elif key in self._searched:
            self._searched[key] = replace(self._searched[key], deadline=self._clock.now())
        absent = self._absent.pop(key, None)
        if absent is not None:
            self._drop(absent, ExecutionStatus.CANCELLED, "cancelled before it began")
        for waiting in [item for queue in self._waiting.values() for item in queue if item.call.key == key]:
            self._drop(waiting, ExecutionStatus.CANCELLED, "cancelled before it began")

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """Find the agents that earlier incarnations of this boot left running; see the port."""
        self._forget_other_boots()
        adopted = []
        processes = set()
        for record in self._records.read_all():
            found = _found(record)
            if record.pid is None and (found is None or found.pid is None):
                # It may be between fork and exec, where it cannot be distinguished from the daemon that died.
                self._unkillable.setdefault(record.resource, set()).add(record.key)
                self._searched[record.key] = record
                self._search(record.key, ended, PIDLESS_SEARCHES)
                is_there = True
            else:
                is_there = found is not None and self._take_over(found, ended)
                if found is not None and found.pid is not None:
                    processes.add(found.pid)
            if not is_there:
                self._records.remove(record.key)
            adopted.append(AdoptedAction(record.key, record.resource, record.action, record.deadline, is_there))
        self._processes.reap_inherited(frozenset(processes))
        return tuple(adopted)

    def keep_records(self) -> int:
        """Write again the records of running actions that others removed; return how many. Raises OSError."""
        return self._records.write_again()

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Watch the service processes of an active resource."""
        self._watch.watch(resource, instance, died)

    def unwatch(self, resource: ResourceId) -> None:
        """Stop watching."""
        self._watch.unwatch(resource)

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read an agent's meta-data (cached by path, mtime and size); None when there is no such agent."""
        path = self._directories.find(agent)
        try:
            status = path.stat() if path is not None else None
        except OSError:
            status = None
        if status is None:
            self._clock.call_soon(lambda: done(None))
            return
        version = (str(path), status.st_mtime_ns, status.st_size)
        if agent.standard in SCRIPT_CLASSES:
            header = _read_header_of(Path(version[0]), agent)
            self._clock.call_soon(lambda: done(header))
            return
        cached = self._metadata.get(agent)
        if cached is not None and cached[0] == version:
            self._clock.call_soon(lambda: done(cached[1]))
            return

        waiting = self._reading.setdefault(agent, [])
        waiting.append(done)
        if len(waiting) > 1:
            return

        def ended(result: Ended) -> None:
            metadata: AgentMetadata | None = None
            with suppress(MetadataError):
                tools = missing_tools(Path(version[0]), self._directories.shims)
                metadata = replace(read_agent_metadata(result.stdout, agent), missing_tools=tools)
                self._metadata[agent] = version, metadata
            for each in self._reading.pop(agent):
                each(metadata)

        environment = self._surroundings.of_agent(agent)
        program = Program((str(path), "meta-data"), environment, METADATA_TIMEOUT_MS, output_limit=METADATA_LIMIT)
        self._processes.start(program, Hooks(ended))

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        """Call an OCF agent's `validate-all`; an init script has no such action."""
        path = self._directories.find(question.agent)
        if path is None or question.agent.standard != "ocf":
            missing = CANNOT_BE_ASKED if path is not None else Validation(None, "it is not installed here")
            self._clock.call_soon(lambda: done(missing))
            return
        call = AgentCall(
            key=f"validate/{question.resource}",
            resource=question.resource,
            instance=question.resource,
            agent=question.agent,
            action=VALIDATE,
            parameters=dict(question.parameters),
            meta={"interval": "0", "name": VALIDATE, "timeout": str(timeout_ms)},
            timeout_ms=timeout_ms,
            incarnation=self._incarnation,
        )

        def ended(result: Ended) -> None:
            answer = to_result(call, result)
            is_answer = answer.status is ExecutionStatus.DONE
            done(Validation(answer.exit_code if is_answer else None, answer.exit_reason))

        environment = {name: value for name, value in self._surroundings.of_action(call).items() if name != ORDER_MARK}
        program = Program((str(path), VALIDATE), environment, timeout_ms, is_background=True)
        self._processes.start(program, Hooks(ended))

    def exists(self, agent: AgentReference) -> bool:
        """Return whether the agent is installed here."""
        path = self._directories.find(agent)
        return path is not None and os.access(path, os.X_OK)

    def installed(self) -> tuple[AgentReference, ...]:
        """Return every OCF agent and every init script that is installed here."""
        return self._directories.listing()

    def waits(self) -> tuple[str, ...]:
        """Return descriptions of actions that wait for an agent that existed before, or is being written."""
        now = self._clock.now()
        return tuple(
            f"agent {each.call.agent} is missing: {each.call.action} of {each.call.resource} waits for it since"
            f" {elapsed_ms(each.asked_at, now) // 1000} s; reinstall what it belongs to"
            for _, each in sorted(self._absent.items())
        )

    # One action

    def _find(self, agent: AgentReference) -> Path | None:
        """Return the agent's file, as `AgentDirectories.find` does."""
        paths = self._paths.get(agent)
        if paths is None:
            paths = self._paths[agent] = tuple(self._directories.candidates(agent))
        return next((path for path in paths if path.is_file()), None)

    def _start(self, waiting: "_Waiting") -> None:
        call = waiting.call
        argument = _argument(call)
        if argument is None:
            reason = f"class {call.agent.standard} has no action {call.action}"
            self._drop(waiting, ExecutionStatus.DONE, reason, ExitCode.UNIMPLEMENTED)
            return
        path = self._find(call.agent)
        if path is None:
            if not self._look_again(waiting):
                self._give_up_agent(waiting)
            return
        now = self._clock.now()
        record = ActionRecord(
            key=call.key,
            resource=call.resource,
            action=argument,
            incarnation=self._incarnation,
            path=str(path),
            begun=now,
            deadline=after(now, call.timeout_ms),
        )

        def before() -> None:
            self._make_state_directory()
            self._records.write(record)

        def group() -> Path | None:
            return None if call.action in STARTS_NOTHING else self._groups.prepare(call.resource)

        def forked(pid: int, start_time: int) -> None:
            self._records.write(replace(record, pid=pid, start_time=start_time))

        self._watch.note_begun(call.key)
        if _has_parameters(call):
            self._metadata_asked.add(call.agent)
            self.metadata(call.agent, lambda _metadata: None)  # So that it is known when the action ends.
        self._running[call.key] = self._processes.start(
            Program(
                (str(path), argument), {**self._surroundings.of_action(call), **record.marks}, call.timeout_ms,
                is_background=_recurs(call), ends_whole=call.action in ACTIVATING,
            ),
            Hooks(
                ended=lambda ended: self._ended(waiting, now, ended),
                is_permitted=self._has_lease if call.action in ACTIVATING else _always,
                before=before,
                group=group,
                forked=forked,
                gone=lambda: self._gone(call.resource, call.key),
            ),
        )

    def _ended(self, waiting: "_Waiting", begun: Instant, ended: Ended) -> None:
        """Take the end of an agent, or the failure to execute it."""
        call = waiting.call
        if ended.still_alive:
            self._unkillable.setdefault(call.resource, set()).add(call.key)
        else:
            self._running.pop(call.key, None)
        is_replaced = ended.ending is Ending.NOT_STARTED and ended.number in BEING_REPLACED
        if is_replaced and self._look_again(waiting, is_written=ended.number == errno.ETXTBSY):
            return
        if ended.ending is Ending.EXITED:
            self._executed.add(call.agent)
        result = to_result(call, ended)
        result = replace(result, queued_ms=result.queued_ms + elapsed_ms(waiting.asked_at, begun))
        if _has_parameters(call) and result.exit_code == ExitCode.OK:
            self._add_restart_parameters(call.agent, result, waiting.done)
        else:
            waiting.done(result)
            self._prefetch_metadata(call)

    def _give_up_agent(self, waiting: "_Waiting") -> None:
        reason = f"{waiting.call.agent} is not installed on {self._node}"
        if waiting.looks:
            waited_s = elapsed_ms(waiting.asked_at, self._clock.now()) // 1000
            reason += f" any more; it was looked for during {waited_s} s"
        self._drop(waiting, ExecutionStatus.NOT_INSTALLED, reason, ExitCode.NOT_INSTALLED)

    def _look_again(self, waiting: "_Waiting", *, is_written: bool = False) -> bool:
        """Wait for an agent that existed before, as an upgrade may be replacing it; False: that took too long.

        A stop that fails gets the node fenced, and without its agent the resource cannot be stopped at all.
        `is_written`: it is there, and somebody has it open for writing (or has forked a process while he had).
        """
        call, now = waiting.call, self._clock.now()
        if call.agent not in self._executed and call.action not in ENDS_ACTIVITY and not is_written:
            return False
        wait_ms = ABSENT_WAIT_SHORT_MS if call.action in ACTIVATING else ABSENT_WAIT_MS
        left_ms = wait_ms - elapsed_ms(waiting.asked_at, now)
        if left_ms <= 0:
            return False
        if not waiting.looks:
            _log.warning("%s is missing: %s of %s waits for it", call.agent, call.action, call.resource)
        pause_ms = min(left_ms, ABSENT_PAUSES_MS[1], ABSENT_PAUSES_MS[0] << waiting.looks)
        waiting.looks += 1
        self._running[call.key] = None
        self._absent[call.key] = waiting

        def look() -> None:
            self._absent.pop(call.key, None)
            self._start(waiting)

        waiting.timer = self._clock.call_at(after(now, pause_ms), look)
        return True

    def _prefetch_metadata(self, call: AgentCall) -> None:
        """Read an agent's meta-data once, after its first monitor: the first start then need not wait for it."""
        if call.action == MONITOR and call.agent.standard == "ocf" and call.agent not in self._metadata_asked:
            self._metadata_asked.add(call.agent)
            self.metadata(call.agent, lambda _metadata: None)

    def _add_restart_parameters(
        self, agent: AgentReference, result: AgentResult, done: Callable[[AgentResult], None]
    ) -> None:
        """Deliver a result with the parameters that only a restart changes; without them if the agent is slow."""
        delivered: list[bool] = []

        def deliver(metadata: AgentMetadata | None) -> None:
            if not delivered:
                delivered.append(True)
                timer.cancel()
                done(replace(result, restart_parameters=_restart_parameters(metadata)))

        timer = self._clock.call_at(after(self._clock.now(), METADATA_WAIT_MS), lambda: deliver(None))
        self.metadata(agent, deliver)

    def _gone(self, resource: ResourceId, key: str) -> None:
        self._running.pop(key, None)
        self._adopted.pop(key, None)
        self._records.remove_soon(key)
        unkillable = self._unkillable.get(resource, set())
        unkillable.discard(key)
        if not unkillable:
            self._unkillable.pop(resource, None)
            for waiting in self._waiting.pop(resource, []):
                waiting.cancel_timer()
                self._start(waiting)

    def _give_up(self, waiting: "_Waiting") -> None:
        reason = "processes of an earlier action do not die (uninterruptible sleep?)"
        self._drop(waiting, ExecutionStatus.ERROR, reason)

    def _drop(
        self, waiting: "_Waiting", status: ExecutionStatus, reason: str, code: ExitCode = ExitCode.ERROR
    ) -> None:
        """Deliver a result for an action that was not started."""
        call = waiting.call
        waiting.cancel_timer()
        self._running.pop(call.key, None)
        queue = self._waiting.get(call.resource, [])
        if waiting in queue:
            queue.remove(waiting)
        queued_ms = elapsed_ms(waiting.asked_at, self._clock.now())
        result = AgentResult(call.key, int(code), status, reason, "", "", queued_ms, 0)
        self._clock.call_soon(lambda: waiting.done(result))

    def _make_state_directory(self) -> None:
        """Make the agents' state directory, accessible to the accounts of their services, to which agents switch.

        This must not depend on the daemon's umask or its directory's mode; other files there have modes of their own.
        """
        for directory, mode in ((self._state_directory, 0o755), (self._state_directory.parent, 0o711)):
            try:
                found = stat.S_IMODE(directory.stat().st_mode)
            except FileNotFoundError:
                directory.mkdir(parents=True, exist_ok=True)
                found = stat.S_IMODE(directory.stat().st_mode)
            if found | mode != found:
                directory.chmod(found | mode)

    # Adoption

    def _forget_other_boots(self) -> None:
        """Drop records and agents' state files of other boots, as if /run were empty."""
        for record in self._records.read_all():
            if record.incarnation.boot_id != self._incarnation.boot_id:
                self._records.remove(record.key)
        stamp = self._state_directory.parent / "boot-id"
        if not stamp.exists() or stamp.read_text() != self._incarnation.boot_id:
            shutil.rmtree(self._state_directory, ignore_errors=True)
            stamp.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            stamp.write_text(self._incarnation.boot_id)

    def _take_over(self, record: ActionRecord, ended: Callable[[str], None]) -> bool:
        assert record.pid is not None
        assert record.start_time is not None

        def gone() -> None:
            self._gone(record.resource, record.key)
            ended(record.key)

        kill = self._processes.adopt(
            record.pid, record.start_time, record.deadline, gone, ends_whole=record.action in ACTIVATING
        )
        if kill is None:
            return False
        self._adopted[record.key] = kill
        self._unkillable.setdefault(record.resource, set()).add(record.key)
        self._running[record.key] = None
        return True

    def _search(self, key: str, ended: Callable[[str], None], searches: int) -> None:
        record = self._searched[key]
        found = _found(record)
        is_certain = found is None or found.pid is not None
        if found is not None and is_certain and self._take_over(found, ended):
            del self._searched[key]
            return
        if searches == 0 and is_certain:
            del self._searched[key]
            self._gone(record.resource, key)
            ended(key)
            return
        left = searches - 1 if is_certain else searches
        again = after(self._clock.now(), PIDLESS_PERIOD_MS)
        self._clock.call_at(again, lambda: self._search(key, ended, left))


def _found(record: ActionRecord) -> ActionRecord | None:
    """Return the record with its process; as it is, when it cannot be found out whether there is one."""
    try:
        return find_process(record)
    except OSError:
        return record


@dataclass(eq=False, slots=True)
class _Waiting:
    """An action that was requested and is not started yet."""

    call: AgentCall
    done: Callable[[AgentResult], None]
    asked_at: Instant
    timer: Timer | None = None
    looks: int = 0
    """How often its agent was missing."""

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


def _argument(call: AgentCall) -> str | None:
    """Return an agent's argument for an action; None when its class has no such action."""
    return argument_of(call.action) if call.agent.standard in SCRIPT_CLASSES else call.action


def _has_parameters(call: AgentCall) -> bool:
    return call.agent.standard == "ocf" and call.action in TAKES_PARAMETERS


def _read_header_of(path: Path, agent: AgentReference) -> AgentMetadata | None:
    try:
        with path.open(errors="replace") as script:
            return read_header(script.read(HEADER_MAX), agent)
    except OSError:
        return None


def _recurs(call: AgentCall) -> bool:
    return call.meta.get("interval", "0") not in {"", "0"}


def _restart_parameters(metadata: AgentMetadata | None) -> tuple[str, ...] | None:
    """Return the parameters that `reload-agent` cannot apply (OCF 1.1, "reloadable"); None: no such action."""
    if metadata is None or RELOAD_ACTION not in metadata.actions:
        return None
    return tuple(sorted(name for name, facts in metadata.parameters.items() if not facts.is_reloadable))
