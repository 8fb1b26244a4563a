"""Resources of class stonith: fence devices as resources (agents-and-fencing.md §2).

start calls the agent's `monitor` and registers the device; a recurring monitor calls it again; stop unregisters it. A
probe is answered from memory and never touches the device. The memory is the process's: after a restart every device is
stopped, until it is started again.

Nothing is fenced here: that is the fencer's task.
"""

from collections.abc import Callable

from haclusterd.adapters.agents.fence_agents import FenceAgentPrograms
from haclusterd.adapters.agents.results import describe_timeout
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.fence_parameters import ATTEMPTS_DEFAULT, NOT_FOR_THE_AGENT, RETRY_PAUSE_MS, RETRY_SHARE_PERCENT
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.instants import Instant, after, elapsed_ms
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.ports.agents import CANNOT_BE_ASKED, AdoptedAction, AgentCall, AgentMetadata, AgentResult
from haclusterd.ports.clock import Clock
from haclusterd.ports.fencing import FenceCall, FenceCallResult

HEALTHY = frozenset({0, 2})
"""`monitor` of a single-port agent returns the codes of `status`: 2 is a healthy device whose port is off."""


class StonithAgents:
    """AgentRunner for class stonith."""

    def __init__(self, clock: Clock, fence_agents: FenceAgentPrograms) -> None:
        self._clock = clock
        self._fence_agents = fence_agents
        self._registered: set[ResourceId] = set()
        self._cancelled: set[str] = set()

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        is_probe = call.meta.get("interval", "0") in {"", "0", "0s"}
        if call.action == "stop":
            self._registered.discard(call.resource)
            self._answer(call, done, ExitCode.OK)
        elif call.action == "monitor" and (is_probe or call.resource not in self._registered):
            is_registered = call.resource in self._registered
            self._answer(call, done, ExitCode.OK if is_registered else ExitCode.NOT_RUNNING)
        elif call.action in {"start", "monitor"}:
            self._ask_device(call, done)
        else:
            self._answer(call, done, ExitCode.UNIMPLEMENTED)

    def kill(self, key: str) -> None:
        """End the action; its result is CANCELLED."""
        self._cancelled.add(key)
        self._fence_agents.cancel(key)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:  # noqa: ARG002 (none survives)
        """Kill the agents that earlier incarnations left running: nobody waits for their results."""
        self._fence_agents.kill_left_over()
        return ()

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Do nothing: a device has no process."""

    def validate(
        self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]  # noqa: ARG002 (the port has it)
    ) -> None:
        """Answer that agents of this class have no `validate-all`."""
        self._clock.call_soon(lambda: done(CANNOT_BE_ASKED))

    def waits(self) -> tuple[str, ...]:
        """Return nothing: no action waits here."""
        return ()

    def unwatch(self, resource: ResourceId) -> None:
        """Do nothing: a device has no process."""

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read the fence agent's metadata; None when there is no such agent."""
        self._fence_agents.agent_metadata(agent, done)

    def exists(self, agent: AgentReference) -> bool:
        """Return whether the fence agent is installed here and may be used."""
        return self._fence_agents.exists(agent.type)

    def installed(self) -> tuple[AgentReference, ...]:
        """Return every fence agent that may be used here."""
        return tuple(AgentReference("stonith", None, name) for name in self._fence_agents.installed())

    def _ask_device(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        if not self.exists(call.agent):
            reason = f"{call.agent.type} is not installed here, or not allowed"
            self._answer(call, done, ExitCode.NOT_INSTALLED, ExecutionStatus.NOT_INSTALLED, reason)
            return
        asked_at = self._clock.now()
        if call.action == "start":
            self._registered.add(call.resource)

        attempts_left = _attempts(call)

        def ask() -> None:
            nonlocal attempts_left
            attempts_left -= 1
            self._fence_agents.call(_question(call, elapsed_ms(asked_at, self._clock.now())), answered)

        def answered(result: FenceCallResult) -> None:
            is_early = elapsed_ms(asked_at, self._clock.now()) * 100 < call.timeout_ms * RETRY_SHARE_PERCENT
            may_retry = attempts_left > 0 and is_early and call.key not in self._cancelled
            if result.exit_code in HEALTHY or result.timed_out or not may_retry:
                done(self._judge(call, result, asked_at))
            else:
                self._clock.call_at(after(self._clock.now(), RETRY_PAUSE_MS), ask)

        ask()

    def _judge(self, call: AgentCall, result: FenceCallResult, asked_at: Instant) -> AgentResult:
        is_healthy = result.exit_code in HEALTHY and not result.timed_out
        if call.action == "start" and not is_healthy:
            self._registered.discard(call.resource)
        status = ExecutionStatus.TIMEOUT if result.timed_out else ExecutionStatus.DONE
        if call.key in self._cancelled:
            self._cancelled.discard(call.key)
            status = ExecutionStatus.CANCELLED
        return AgentResult(
            key=call.key,
            exit_code=int(ExitCode.OK if is_healthy else ExitCode.ERROR),
            status=status,
            exit_reason=describe_timeout(call.action, call.timeout_ms) if result.timed_out else result.reason,
            stdout=result.output,
            stderr="",
            queued_ms=0,
            executed_ms=elapsed_ms(asked_at, self._clock.now()),
        )

    def _answer(
        self,
        call: AgentCall,
        done: Callable[[AgentResult], None],
        code: ExitCode,
        status: ExecutionStatus = ExecutionStatus.DONE,
        reason: str = "",
    ) -> None:
        result = AgentResult(call.key, int(code), status, reason, "", "", 0, 0)
        self._clock.call_soon(lambda: done(result))


def _attempts(call: AgentCall) -> int:
    text = call.parameters.get("pcmk_monitor_retries", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() else ATTEMPTS_DEFAULT


def _question(call: AgentCall, spent_ms: int) -> FenceCall:
    return FenceCall(
        key=call.key,
        agent=call.agent.type,
        action=call.parameters.get("pcmk_monitor_action", "monitor"),
        parameters={
            name: value
            for name, value in call.parameters.items()
            if name not in NOT_FOR_THE_AGENT and not name.startswith("pcmk_")
        },
        timeout_ms=max(1, call.timeout_ms - spent_ms),
    )
