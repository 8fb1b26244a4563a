"""Resources of class service: whatever this machine has by that name, an init script or else a systemd unit.

Invariant: a service is monitored and stopped as the class that it was started as, whatever is installed or removed
meanwhile. Otherwise an init script that comes with an upgrade would report a running unit as stopped. So the choice is
in the runtime directory from before the start, or from the first time the service was found running, until it is
stopped.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from haclusterd.model.agent_calls import AdoptedAction, AgentCall, AgentResult
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from haclusterd.ports.agents import CANNOT_BE_ASKED, AgentMetadata, AgentRunner
from haclusterd.ports.clock import Clock

STANDARD: Final = "service"
CHOICES: Final = ("lsb", "systemd")
"""In order of preference (Pacemaker Explained, "Resource Classes")."""


class ServiceAgents:
    """AgentRunner for class service, over the runners of the classes that it stands for."""

    def __init__(
        self,
        clock: Clock,
        *,
        runtime_directory: Path,
        incarnation: Incarnation,
        scripts: AgentRunner,
        units: AgentRunner,
    ) -> None:
        """`scripts` runs class lsb, `units` class systemd."""
        self._clock = clock
        self._directory = runtime_directory / "services"
        self._boot = incarnation.boot_id
        self._runners = {"lsb": scripts, "systemd": units}
        self._choices: dict[str, str] = {}
        """The choices on disk, as far as this process wrote or read them."""
        self._by_key: dict[str, AgentRunner] = {}
        self._by_resource: dict[ResourceId, AgentRunner] = {}

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Run the action as one of the chosen class; deliver its result on the main loop."""
        type_ = call.agent.type
        chosen = self._chosen(type_)
        standard = chosen or self._found(type_)
        if standard is None:
            reason = f"this node has neither an init script nor a unit {type_}"
            status, code = ExecutionStatus.NOT_INSTALLED, int(ExitCode.NOT_INSTALLED)
            result = AgentResult(call.key, code, status, reason, "", "", 0, 0)
            self._clock.call_soon(lambda: done(result))
            return
        if call.action == "start" and chosen is None:
            try:
                self._choose(type_, standard)
            except OSError as error:
                reason = f"what {type_} is started as could not be recorded: {error.strerror}"
                failed = AgentResult(call.key, int(ExitCode.ERROR), ExecutionStatus.ERROR, reason, "", "", 0, 0)
                self._clock.call_soon(lambda: done(failed))
                return

        def ended(result: AgentResult) -> None:
            self._by_key.pop(call.key, None)
            self._note(call, standard, result)
            done(result)

        runner = self._runners[standard]
        self._by_key[call.key] = self._by_resource[call.resource] = runner
        runner.run(replace(call, agent=AgentReference(standard, None, type_)), ended)

    def kill(self, key: str) -> None:
        """End the action; its result is CANCELLED."""
        runner = self._by_key.get(key)
        if runner is not None:
            runner.kill(key)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:  # noqa: ARG002 (see below)
        """Read the choices of this boot and drop others; the other runners find the actions left running."""
        for file in self._directory.glob("[!.]*"):
            standard = self._read(file)
            if standard is not None:
                self._choices[file.name] = standard
                continue
            with suppress(OSError):
                file.unlink()
        return ()

    def keep_records(self) -> int:
        """Write again the choices that others removed; return how many. Raises OSError."""
        missing = [type_ for type_ in self._choices if not (self._directory / type_).exists()]
        for type_ in missing:
            self._choose(type_, self._choices[type_])
        return len(missing)

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Watch an active resource as the class that it runs as."""
        self._by_resource[resource].watch(resource, instance, died)

    def unwatch(self, resource: ResourceId) -> None:
        """Do nothing: the runners of the classes are called too."""

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read the meta-data of what this machine has by that name; None when it has nothing."""
        standard = self._chosen(agent.type) or self._found(agent.type)
        if standard is None:
            self._clock.call_soon(lambda: done(None))
            return

        def answered(metadata: AgentMetadata | None) -> None:
            done(None if metadata is None else replace(metadata, agent=agent))

        self._runners[standard].metadata(AgentReference(standard, None, agent.type), answered)

    def validate(
        self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]  # noqa: ARG002 (the port has it)
    ) -> None:
        """Answer that agents of this class have no `validate-all`."""
        self._clock.call_soon(lambda: done(CANNOT_BE_ASKED))

    def waits(self) -> tuple[str, ...]:
        """Return nothing: no action waits here."""
        return ()

    def exists(self, agent: AgentReference) -> bool:
        """Return whether this machine has anything by that name."""
        return self._found(agent.type) is not None

    def installed(self) -> tuple[AgentReference, ...]:
        """Return every init script and every unit, by the names of this class."""
        names = {agent.type for name in CHOICES for agent in self._runners[name].installed() if agent.standard == name}
        return tuple(AgentReference(STANDARD, None, name) for name in sorted(names))

    def _found(self, type_: str) -> str | None:
        return next((name for name in CHOICES if self._runners[name].exists(AgentReference(name, None, type_))), None)

    def _note(self, call: AgentCall, standard: str, result: AgentResult) -> None:
        """Keep the choice while the service may run."""
        if result.status is not ExecutionStatus.DONE or result.exit_code != ExitCode.OK:
            return
        with suppress(OSError):
            if call.action == "stop":
                self._choices.pop(call.agent.type, None)
                (self._directory / call.agent.type).unlink(missing_ok=True)
            elif call.action == "monitor" and self._chosen(call.agent.type) is None:
                # It runs: the choice holds for this process even if the disk refuses; `keep_records` writes it later.
                self._choices[call.agent.type] = standard
                self._choose(call.agent.type, standard)

    def _chosen(self, type_: str) -> str | None:
        return self._choices.get(type_)

    def _read(self, file: Path) -> str | None:
        """Return the choice made in this boot."""
        try:
            boot, _, standard = file.read_text().strip().rpartition(" ")
        except OSError:
            return None
        return standard if boot == self._boot and standard in CHOICES else None

    def _choose(self, type_: str, standard: str) -> None:
        """Write a choice, then use it: a start without its choice on disk must not begin. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._directory / f".{type_}.new"
        temporary.write_text(f"{self._boot} {standard}\n")
        temporary.replace(self._directory / type_)
        self._choices[type_] = standard
