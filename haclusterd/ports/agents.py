"""Execution of resource agents.

Contract (agents-and-fencing.md §1.1-1.9):

* `run` returns at once and never raises; `done` is called once, on the main loop, whatever happens. A stuck `exec`
  delays nothing but its own action.
* The timer starts at exec. At its end the process group is killed with SIGKILL and the result is TIMEOUT, at once,
  whether or not the processes die (`still_alive` says).
* Completion is the exit of the direct child, not the end of its output.
* Parameters travel in the environment, never in an argument vector.
* Before the exec, the action is in the runtime directory, so that a later incarnation in the same boot finds it.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from haclusterd.model.agent_calls import AdoptedAction as AdoptedAction
from haclusterd.model.agent_calls import AgentCall as AgentCall
from haclusterd.model.agent_calls import AgentResult as AgentResult
from haclusterd.model.agents import AgentFacts, ParameterFacts, Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import dataclass, field

CANNOT_BE_ASKED = Validation(None, "agents of this class have no action validate-all")


@dataclass(frozen=True, slots=True)
class AgentMetadata:
    """What an agent's meta-data says that matters here."""

    agent: AgentReference
    version: str
    shortdesc: str
    longdesc: str
    parameters: Mapping[str, ParameterFacts]
    actions: Mapping[str, "ActionMetadata"]
    missing_tools: tuple[str, ...] = ()
    """Tools of Pacemaker that its program calls and that are not here."""

    def facts(self) -> AgentFacts:
        """Return the part that a configuration is judged by."""
        timeouts = {name: each.timeout_ms for name, each in self.actions.items()}
        on = self.actions.get("on")
        unfences = on is not None and on.attributes.get("automatic") == "1"
        return AgentFacts(self.version, self.shortdesc, self.parameters, timeouts, unfences, self.missing_tools)


@dataclass(frozen=True, slots=True)
class ActionMetadata:
    """One declared action with its advised timings."""

    name: str
    timeout_ms: int | None = None
    interval_ms: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


class AgentRunner(Protocol):
    """Runs the agents of some classes on this node."""

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        ...

    def kill(self, key: str) -> None:
        """End the action's process group now; its result is CANCELLED. One that was adopted ends as at its deadline."""
        ...

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """Find what earlier incarnations of this boot left running; call `ended(key)` as each ends or is killed at its
        deadline. Called once, before any `run`."""
        ...

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Watch the service processes of an active resource and call `died` when one of them exits (safety.md §8)."""
        ...

    def unwatch(self, resource: ResourceId) -> None:
        """Stop watching."""
        ...

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """Read an agent's meta-data (cached by path, mtime and size); None when there is no such agent."""
        ...

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        """Ask an agent for `validate-all`; its process group is killed at the timeout. No lease is needed, nothing is
        recorded, and actions of the resource do not wait for it."""
        ...

    def waits(self) -> tuple[str, ...]:
        """Return what actions wait for before they begin, and what does not suit in a service's own settings, in words
        for a person; empty: nothing."""
        ...

    def exists(self, agent: AgentReference) -> bool:
        """Return whether the agent is installed here."""
        ...

    def installed(self) -> tuple[AgentReference, ...]:
        """Return every agent that is installed here, by the files that are there; nothing is executed."""
        ...
