"""One AgentRunner over several: each agent class has its own.

It routes by the class in the agent's name and remembers only which runner has which key and resource. A class without a
runner is "not installed", never an error of the program.
"""

from collections.abc import Callable, Mapping

from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.ports.agents import CANNOT_BE_ASKED, AdoptedAction, AgentCall, AgentMetadata, AgentResult, AgentRunner
from haclusterd.ports.clock import Clock


class AgentsByClass:
    """AgentRunner for every class in `runners` (`ocf`, `stonith`, ...); one runner may have several."""

    def __init__(self, clock: Clock, runners: Mapping[str, AgentRunner]) -> None:
        self._clock = clock
        self._runners = dict(runners)
        self._each = tuple(dict.fromkeys(runner for _, runner in sorted(self._runners.items())))
        self._by_key: dict[str, AgentRunner] = {}
        self._by_resource: dict[ResourceId, AgentRunner] = {}
        """The runner of each resource's last action."""

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        runner = self._runners.get(call.agent.standard)
        if runner is None:
            reason = f"agent class {call.agent.standard!r} is not supported here"
            code, status = int(ExitCode.NOT_INSTALLED), ExecutionStatus.NOT_INSTALLED
            result = AgentResult(call.key, code, status, reason, "", "", 0, 0)
            self._clock.call_soon(lambda: done(result))
            return

        def ended(result: AgentResult) -> None:
            self._by_key.pop(call.key, None)
            done(result)

        self._by_key[call.key] = self._by_resource[call.resource] = runner
        runner.run(call, ended)

    def kill(self, key: str) -> None:
        """End the action's process group now; its result is CANCELLED."""
        runner = self._by_key.get(key)
        if runner is not None:
            runner.kill(key)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """Find what earlier incarnations of this boot left running."""
        adopted: list[AdoptedAction] = []

        def gone(key: str) -> None:
            self._by_key.pop(key, None)
            ended(key)

        for runner in self._each:
            found = runner.adopt(gone)
            self._by_key |= {action.key: runner for action in found if action.is_running}
            adopted += found
        return tuple(adopted)

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Watch the service processes of an active resource, on which an action has run before."""
        self._by_resource[resource].watch(resource, instance, died)

    def unwatch(self, resource: ResourceId) -> None:
        """Stop watching."""
        for runner in self._each:
            runner.unwatch(resource)

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read an agent's meta-data; None when there is no such agent or class."""
        runner = self._runners.get(agent.standard)
        if runner is None:
            self._clock.call_soon(lambda: done(None))
        else:
            runner.metadata(agent, done)

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        """Ask an agent for `validate-all`."""
        runner = self._runners.get(question.agent.standard)
        if runner is None:
            self._clock.call_soon(lambda: done(CANNOT_BE_ASKED))
        else:
            runner.validate(question, timeout_ms, done)

    def installed(self) -> tuple[AgentReference, ...]:
        """Return every agent of every class that is installed here."""
        return tuple(agent for runner in self._each for agent in runner.installed())

    def waits(self) -> tuple[str, ...]:
        """Return descriptions of what actions wait for before they start."""
        return tuple(text for runner in self._each for text in runner.waits())

    def exists(self, agent: AgentReference) -> bool:
        """Return whether the agent is installed here."""
        runner = self._runners.get(agent.standard)
        return runner is not None and runner.exists(agent)
