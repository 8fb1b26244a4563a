"""Simulated resource agents: they take time, fail, hang and lie, and act on the facts of their host.

One that migrates live acts on the facts of two hosts: its service is on the source until the instant of its effect, and
on the target from then on, if the target's boot has not ended meanwhile.

An agent is a child of its host, not of the daemon's memory: it runs on when the daemon is killed or stopped, and ends
with the boot. How it will fare is drawn at its beginning; a scenario may write it down beforehand.

Services may be units of the host's systemd instead (`AgentBehaviour.units`). Then a start or stop is a job that no kill
ends: such an agent runs on after its time limit too. A stop takes the place of a job that is not done, a start waits
for a stop that is not, and a monitor says nothing while there is either (safety.md §8).

Data may remember that it was a primary's (`databases`). Then its start makes a primary, as does the notification that
this primary is about to be demoted and promoted again, by which ocf:heartbeat:pgsqlms begins a recovery; a demote or
stop brings it in order.
"""

import random
from collections.abc import Callable
from typing import cast

from haclusterd.model.agents import ParameterFacts, Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.instants import Instant, after
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, field, replace
from haclusterd.ports.agents import ActionMetadata, AdoptedAction, AgentCall, AgentMetadata, AgentResult
from haclusterd.simulator.hosts.hosts import Boot
from haclusterd.simulator.hosts.truth import CALLED, PIDFILE, Holding, Truth, data_of, maker, promoted
from haclusterd.simulator.hosts.world import MS, Event, Life, World

SERVICE = AgentReference("ocf", "simulated", "service")
OTHER = AgentReference("ocf", "simulated", "other")
"""Another program under the same name: it neither finds nor ends what the first has started."""
RELOAD = "reload-agent"
ACTIONS = ("start", "stop", "monitor", "promote", "demote", "migrate_to", "migrate_from", "notify", RELOAD, "meta-data")
"""What `SERVICE` can do."""
FIXED = ("size", CALLED)
"""Parameters that change by a restart alone, also where agents can reload."""
EXIT_NOTICE_US = 300
"""From a process's exit to the daemon's event."""
JOBS = ("start", "stop")
"""Actions of units that outlive the process that asked for them."""
UNIT_LOOK_US = 20 * MS
"""Between two looks at a unit that is not at rest."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How one run of an agent goes."""

    duration_ms: int
    exit_code: int | None = None
    """None: what the facts say (0, or 7 of a monitor that finds nothing)."""
    has_effect: bool = True
    """Whether a start, stop or migration does what it is for."""
    effect_at_percent: int = 60
    """When in its run it does it."""
    hangs: bool = False
    """Never ends by itself; its effect, if any, still comes."""
    is_arrival_seen: bool = False
    """Of a migration: whether a monitor on the target takes for the service what has arrived before the hand-over."""


@dataclass(slots=True)
class AgentBehaviour:
    """How agents behave where no scenario says otherwise; durations in ms."""

    start_ms: tuple[int, int] = (40, 200)
    stop_ms: tuple[int, int] = (20, 120)
    monitor_ms: tuple[int, int] = (5, 30)
    """Also of whatever is not named here."""
    promote_ms: tuple[int, int] = (5, 30)
    demote_ms: tuple[int, int] = (5, 30)
    migrate_to_ms: tuple[int, int] = (50, 800)
    migrate_from_ms: tuple[int, int] = (5, 100)
    reload_ms: tuple[int, int] = (5, 300)
    failure: float = 0.0
    """Share of actions that fail."""
    hang: float = 0.0
    reloads: bool = False
    """Agents can take another pidfile over while their service runs: it is found and ended by that from then on."""
    units: bool = False
    """Services are units of the host's systemd."""
    hasty_units: bool = False
    """Monitors say what they see, though systemd has a job for the unit."""

    def span_ms(self, action: str) -> tuple[int, int]:
        """Return how long an action takes, at least and at most."""
        return {
            "start": self.start_ms,
            "stop": self.stop_ms,
            "promote": self.promote_ms,
            "demote": self.demote_ms,
            "migrate_to": self.migrate_to_ms,
            "migrate_from": self.migrate_from_ms,
            RELOAD: self.reload_ms,
        }.get(action, self.monitor_ms)


@dataclass(slots=True)
class _Scripted:
    """How the next runs of an action go, as a scenario has scripted."""

    resource: ResourceId
    action: str
    node: NodeName | None
    run: AgentRun
    times: int


class AgentScript:
    """Decides how each run of an agent goes: as a scenario has scripted, or drawn by the behaviour that is set."""

    def __init__(self, chance: random.Random) -> None:
        self.behaviour = AgentBehaviour()
        self._chance = chance
        self._scripted: list[_Scripted] = []

    def write(
        self, resource: str, action: str, run: AgentRun, *, node: str | None = None, times: int = 1_000_000
    ) -> None:
        """Say how the next `times` runs of an action go, on one node or on all."""
        where = None if node is None else NodeName(node)
        self._scripted.insert(0, _Scripted(ResourceId(resource), action, where, run, times))

    def remove(self, run: AgentRun) -> None:
        """Drop what was scripted of one run: the next ones are drawn."""
        self._scripted = [scripted for scripted in self._scripted if scripted.run is not run]

    def clear(self) -> None:
        """Drop everything that was scripted."""
        self._scripted.clear()

    def draw(self, node: NodeName, call: AgentCall) -> AgentRun:
        """Return how a run goes."""
        for scripted in self._scripted:
            is_meant = scripted.resource == call.resource and scripted.action == call.action
            if is_meant and scripted.times > 0 and scripted.node in (None, node):
                scripted.times -= 1
                return scripted.run
        return self._usual(call.action)

    def _usual(self, action: str) -> AgentRun:
        behaviour, chance = self.behaviour, self._chance
        duration_ms = chance.randint(*behaviour.span_ms(action))
        percent = chance.randint(5, 95)
        run = AgentRun(duration_ms, effect_at_percent=percent)
        if action == "migrate_to":
            run = replace(run, is_arrival_seen=chance.random() < 0.5)
        if behaviour.hang and chance.random() < behaviour.hang:
            return replace(run, hangs=True, has_effect=chance.random() < 0.5)
        if behaviour.failure and chance.random() < behaviour.failure:
            return replace(run, exit_code=ExitCode.ERROR, has_effect=chance.random() < 0.5)
        return run


@dataclass(slots=True, eq=False)
class _Running:
    """One agent at work, or the record of one that has ended and whose end nobody has taken note of."""

    call: AgentCall
    deadline: Instant
    is_ended: bool = False
    target_boot: int | None = None
    """Of a migration: the boot of the target in which it began."""
    has_moved: bool = False
    """Of a migration: the service has left this host."""
    events: list[Event] = field(default_factory=list)
    at_end: Callable[[ExecutionStatus, int], None] | None = None
    is_job: bool = False
    """Of a unit: it has become a job of the host's systemd."""
    making: tuple[ResourceId, ...] = ()
    """What it may make active."""
    is_let_go: bool = False
    """Nobody waits for its result any more, and it runs on."""


class HostAgents:
    """All agents at work in one boot of a host."""

    def __init__(self, world: World, truth: Truth, script: AgentScript, node: NodeName, boot: Boot) -> None:
        self._world = world
        self._truth = truth
        self._script = script
        self.node = node
        self._boot = boot

    @property
    def can_reload(self) -> bool:
        """Whether agents take another pidfile over while their service runs."""
        return self._script.behaviour.reloads

    def begin(self, call: AgentCall, at_end: Callable[[ExecutionStatus, int], None]) -> None:
        """Execute an agent; `at_end(status, exit code)` is called in the host's boot when it ends."""
        run = self._script.draw(self.node, call)
        deadline = after(self._boot.clock.now(), call.timeout_ms)
        running = _Running(call, deadline, at_end=at_end)
        self._boot.runtime[call.key] = running
        self._truth.agent_begins(self.node, call)
        if self._script.behaviour.units and call.action in (*JOBS, "monitor"):
            self._begin_unit(running, run)
        else:
            self._set_going(running, run)

    def _begin_unit(self, running: _Running, run: AgentRun) -> None:
        """Do what an action does with a unit, when what is to be done before has been done."""
        call = running.call
        records = [each for each in self.records() if each.call.resource == call.resource]
        jobs = [each for each in records if each.is_job and not each.is_ended]
        if jobs and call.action != "stop" and not (call.action == "monitor" and self._script.behaviour.hasty_units):
            again = self._boot.life.after(UNIT_LOOK_US, lambda: self._begin_unit(running, run))
            running.events.append(again)
            return
        for job in jobs if call.action == "stop" else ():
            self._end(job, ExecutionStatus.ERROR, ExitCode.ERROR)
        running.is_job = call.action in JOBS
        self._set_going(running, run)

    def _set_going(self, running: _Running, run: AgentRun) -> None:
        call = running.call
        running.making = self._made(call)
        for made in running.making:
            self._truth.start_begins(self.node, made, call.parameters.get(CALLED, ""))
        if call.action == "migrate_to":
            self._set_out(running, run)
        life = self._boot.life
        if run.has_effect:
            effect_us = run.duration_ms * MS * run.effect_at_percent // 100
            running.events.append(life.after(effect_us, lambda: self._take_effect(running)))
        if not run.hangs:
            end_us = run.duration_ms * MS
            running.events.append(life.after(end_us, lambda: self._finish(running, run)))

    def kill(self, key: str, status: ExecutionStatus) -> None:
        """SIGKILL to its process group; a job continues, and is not waited for any more."""
        running = self._boot.runtime.get(key)
        if not isinstance(running, _Running) or running.is_ended:
            return
        if not running.is_job:
            self._end(running, status, ExitCode.ERROR)
        elif running.at_end is not None:
            self._world.record(f"{self.node} job {running.call.resource} {running.call.action} goes on ({key})")
            running.is_let_go, at_end, running.at_end = True, running.at_end, None
            at_end(status, ExitCode.ERROR)

    def wait_for(self, key: str, at_end: Callable[[ExecutionStatus, int], None]) -> bool:
        """Wait for what an earlier life began; return whether it is a job, which nothing ends before its time."""
        running = cast("_Running", self._boot.runtime[key])
        running.at_end = at_end
        running.is_let_go |= running.is_job
        return running.is_job

    def _set_out(self, running: _Running, run: AgentRun) -> None:
        """Begin to bring a service to another host, where that is up."""
        call = running.call
        target = _target(call)
        running.target_boot = self._truth.boot_of(target)
        if running.target_boot is not None and self._truth.is_active(self.node, call.resource):
            self._truth.arrival_begins(target, call.resource, is_seen=run.is_arrival_seen)

    def _hand_over(self, running: _Running) -> None:
        """Let the service continue on the other host, in the boot in which it has been brought there."""
        resource, target = running.call.resource, _target(running.call)
        is_same_boot = running.target_boot is not None and running.target_boot == self._truth.boot_of(target)
        is_found = self._truth.is_active(self.node, resource) and self._finds(running.call)
        if is_same_boot and is_found:
            running.has_moved = True
            self._truth.service_moves(self.node, target, resource)

    def at_work(self, resource: ResourceId) -> tuple[AgentCall, ...]:
        """Return the calls of a resource that have not ended."""
        return tuple(
            running.call
            for running in self.records()
            if not running.is_ended and not running.is_let_go and running.call.resource == resource
        )

    def records(self) -> list[_Running]:
        """Return what the runtime directory shows."""
        return [cast("_Running", record) for _, record in sorted(self._boot.runtime.items())]

    def forget(self, key: str) -> None:
        """Remove an action's record; that of a job that continues stays until it is done."""
        running = self._boot.runtime.get(key)
        if isinstance(running, _Running) and running.is_let_go and not running.is_ended:
            return
        self._boot.runtime.pop(key, None)

    def _take_effect(self, running: _Running) -> None:
        call = running.call
        if call.action == "migrate_to":
            self._hand_over(running)
        elif running.making:
            is_new = call.action == "start" and not self._truth.is_active(self.node, call.resource)
            for made in running.making:
                self._truth.service_begins(self.node, made, maker(call))
            if is_new:
                self._truth.devices.service_begins(self.node, call)
        elif call.action == RELOAD:
            self._truth.service_is_reloaded(self.node, call.resource, maker(call))
        elif not self._finds(call):
            return
        elif call.action in ("demote", "stop"):
            ended = promoted(call.resource) if call.action == "demote" else call.resource
            self._truth.service_ends(self.node, ended)
            self._truth.databases.is_shut_down(self.node, data_of(call.resource))

    def _finish(self, running: _Running, run: AgentRun) -> None:
        if running.call.action == "migrate_to" and not running.has_moved:
            self._truth.arrival_ends(_target(running.call), running.call.resource)
        code = run.exit_code if run.exit_code is not None else self._natural_code(running)
        self._end(running, ExecutionStatus.DONE, code)

    def _natural_code(self, running: _Running) -> int:
        call = running.call
        if call.action == "migrate_to":
            return ExitCode.OK if running.has_moved else ExitCode.ERROR
        if call.action == "migrate_from":
            is_found = self._truth.is_active(self.node, call.resource) and self._finds(call)
            return ExitCode.OK if is_found else ExitCode.ERROR
        if call.action == RELOAD:
            return ExitCode.OK if self._truth.is_active(self.node, call.resource) else ExitCode.NOT_RUNNING
        if call.action != "monitor":
            return ExitCode.OK
        if not self._finds(call):
            return ExitCode.NOT_RUNNING
        if not self._truth.seems_active(self.node, call.resource):
            return ExitCode.FAILED_PROMOTED if self._is_left_by_a_primary(call) else ExitCode.NOT_RUNNING
        return ExitCode.PROMOTED if self._truth.is_active(self.node, promoted(call.resource)) else ExitCode.OK

    def _made(self, call: AgentCall) -> tuple[ResourceId, ...]:
        """Return what an action may make active: the service, its promoted role, both or nothing.

        A migration moves the copy there is.
        """
        is_started = call.action == "start" or _announces_recovery(call, self.node)
        if self._is_left_by_a_primary(call) and is_started:
            return (call.resource, promoted(call.resource))
        return {"start": (call.resource,), "promote": (promoted(call.resource),)}.get(call.action, ())

    def _is_left_by_a_primary(self, call: AgentCall) -> bool:
        """Tell whether nothing runs, and the data is that of a primary which was not shut down."""
        is_active = self._truth.is_active(self.node, call.resource)
        return not is_active and self._truth.databases.is_primary(self.node, data_of(call.resource))

    def _finds(self, call: AgentCall) -> bool:
        """Tell whether a call would find what runs here: not what was started in another way."""
        return self._truth.is_known_to(maker(call), self.node, call.resource)

    def _end(self, running: _Running, status: ExecutionStatus, code: int) -> None:
        running.is_ended = True
        for event in running.events:
            event.cancel()
        call = running.call
        line = f"{self.node} agent {call.resource} {call.action} ends {status} {code} ({call.key})"
        is_dull = call.action == "monitor" and code == ExitCode.OK
        (self._world.mark if is_dull else self._world.record)(line)
        for made in running.making:
            self._truth.start_ends(self.node, made)
        if running.at_end is not None:
            running.at_end(status, code)
        elif running.is_let_go:
            self.forget(call.key)


def _announces_recovery(call: AgentCall, node: NodeName) -> bool:
    """Tell whether it is the notification that the primary here is to be demoted, and promoted again."""
    if call.action != "notify" or (call.meta["notify_type"], call.meta["notify_operation"]) != ("pre", "demote"):
        return False
    return all(node in call.meta[f"notify_{what}_uname"].split() for what in ("demote", "promote", "promoted"))


def _target(call: AgentCall) -> NodeName:
    """Return where a live migration leads."""
    return NodeName(call.meta["migrate_target"])


class SimulatedAgents:
    """The `AgentRunner` of one daemon."""

    def __init__(self, hosted: HostAgents, boot: Boot, life: Life, truth: Truth) -> None:
        self._hosted = hosted
        self._boot = boot
        self._life = life
        self._devices: set[ResourceId] = set()
        self._watched: dict[ResourceId, Callable[[ResourceId], None]] = {}
        truth.when_service_ends.append(self._service_ended)
        life.at_end(lambda: truth.when_service_ends.remove(self._service_ended))

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """See `AgentRunner.run`; a fence device is registered in the daemon's memory, and nowhere else."""
        if call.agent.standard == "stonith":
            self._register(call, done)
            return
        began = self._boot.clock.now()

        def ended(status: ExecutionStatus, code: int) -> None:
            self._life.after(EXIT_NOTICE_US, lambda: deliver(status, code))

        def deliver(status: ExecutionStatus, code: int) -> None:
            timer.cancel()
            self._hosted.forget(call.key)
            executed_ms = self._boot.clock.now() - began
            reason = "simulated failure" if code == ExitCode.ERROR else ""
            result = AgentResult(call.key, code, status, reason, "", "", queued_ms=0, executed_ms=executed_ms)
            names_fixed = self._hosted.can_reload and call.action in (RELOAD, "start") and code == ExitCode.OK
            done(replace(result, restart_parameters=FIXED) if names_fixed else result)

        self._hosted.begin(call, ended)
        deadline_us = self._boot.clock.virtual_us(after(began, call.timeout_ms))
        timer = self._life.at(deadline_us, lambda: self._hosted.kill(call.key, ExecutionStatus.TIMEOUT))

    def _register(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        if call.action == "start":
            self._devices.add(call.resource)
        elif call.action == "stop":
            self._devices.discard(call.resource)
        is_missing = call.action == "monitor" and call.resource not in self._devices
        code = ExitCode.NOT_RUNNING if is_missing else ExitCode.OK
        result = AgentResult(call.key, code, ExecutionStatus.DONE, "", "", "", queued_ms=0, executed_ms=20)
        self._life.after(20 * MS, lambda: done(result))

    def kill(self, key: str) -> None:
        """See `AgentRunner.kill`."""
        self._hosted.kill(key, ExecutionStatus.CANCELLED)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """See `AgentRunner.adopt`."""
        return tuple(self._adopt(running, ended) for running in self._hosted.records())

    def _adopt(self, running: _Running, ended: Callable[[str], None]) -> AdoptedAction:
        key = running.call.key

        def notice() -> None:
            self._hosted.forget(key)
            ended(key)

        if running.is_ended:
            self._hosted.forget(key)
        else:
            is_job = self._hosted.wait_for(key, lambda _status, _code: self._notice_later(notice))
            if not is_job:
                deadline_us = self._boot.clock.virtual_us(running.deadline)
                self._life.at(deadline_us, lambda: self._hosted.kill(key, ExecutionStatus.TIMEOUT))
        return AdoptedAction(
            key=key,
            resource=running.call.resource,
            action=running.call.action,
            deadline=running.deadline,
            is_running=not running.is_ended,
        )

    def _notice_later(self, notice: Callable[[], None]) -> None:
        self._life.after(EXIT_NOTICE_US, notice)

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:  # noqa: ARG002 (the port has it)
        """See `AgentRunner.watch`."""
        self._watched[resource] = died

    def waits(self) -> tuple[str, ...]:
        """Nothing is waited for here."""
        return ()

    def unwatch(self, resource: ResourceId) -> None:
        """See `AgentRunner.unwatch`."""
        self._watched.pop(resource, None)

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """See `AgentRunner.metadata`."""
        actions = {name: ActionMetadata(name) for name in ACTIONS}
        parameters = {name: ParameterFacts(is_reloadable=name == PIDFILE) for name in (*FIXED, PIDFILE)}
        answer = AgentMetadata(agent, "1.1", str(agent), "", parameters, actions) if self.exists(agent) else None
        self._life.after(EXIT_NOTICE_US, lambda: done(answer))

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:  # noqa: ARG002 (the port has it)
        """See `AgentRunner.validate`; simulated agents object to nothing."""
        self._life.after(EXIT_NOTICE_US, lambda: done(Validation(0, "")))

    def installed(self) -> tuple[AgentReference, ...]:
        """See `AgentRunner.installed`."""
        return (SERVICE, OTHER)

    def exists(self, agent: AgentReference) -> bool:
        """See `AgentRunner.exists`."""
        return agent.type != "missing"

    def _service_ended(self, holding: Holding) -> None:
        died = self._watched.get(holding.resource)
        if died is not None and holding.node == self._hosted.node:
            self._life.after(EXIT_NOTICE_US, lambda: self._tell(holding.resource))

    def _tell(self, resource: ResourceId) -> None:
        died = self._watched.get(resource)
        if died is not None:
            died(resource)
