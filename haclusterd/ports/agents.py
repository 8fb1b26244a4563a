"""Execution of resource agents.

Contract (agents-and-fencing.md §1.1-1.9):

* `run` returns at once and never raises; `done` is called once, on the main loop, whatever happens. A stuck `exec`
  delays nothing but its own action.
* The timer starts at exec. At its end the whole process group is killed with SIGKILL and the result is TIMEOUT, at once,
  whether or not the processes die (`still_alive` says).
* Completion is the exit of the direct child, not the end of its output.
* Parameters travel in the environment, never in an argument vector.
* Before the exec, the action is on disk in the runtime directory, so that a later incarnation in the same boot finds it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from haclusterd.model.ids import AgentReference, Incarnation, ResourceId
from haclusterd.model.instants import Instant
from haclusterd.model.ocf import ExecutionStatus


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One action of one agent, with everything it needs."""

    key: str
    """Unique for ever; the order's key, with a counter for runs of a recurring monitor."""
    resource: ResourceId
    """Whose action this is; actions of one resource are run one at a time by the caller."""
    instance: str
    """OCF_RESOURCE_INSTANCE: the id without `:N` for an anonymous clone's instance."""
    agent: AgentReference
    action: str
    """The agent's word for it: start, stop, monitor, meta-data, ..."""
    parameters: Mapping[str, str]
    """Instance parameters, for OCF_RESKEY_*."""
    meta: Mapping[str, str]
    """For OCF_RESKEY_CRM_meta_*, names with `-` or `_`; intervals and timeouts in ms."""
    timeout_ms: int
    incarnation: Incarnation
    check_level: str | None = None


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How one action ended."""

    key: str
    exit_code: int
    """The agent's exit status as it was; 1 when there is none."""
    status: ExecutionStatus
    """DONE when the agent ended by itself (any exit code), else TIMEOUT, NOT_INSTALLED, CANCELLED, ERROR (a signal)."""
    exit_reason: str
    stdout: str
    stderr: str
    queued_ms: int
    executed_ms: int
    still_alive: bool = False
    """The processes did not die at SIGKILL (uninterruptible sleep)."""


@dataclass(frozen=True, slots=True)
class AdoptedAction:
    """An action that an earlier incarnation of this boot began, as found in the runtime directory."""

    key: str
    resource: ResourceId
    action: str
    deadline: Instant
    is_running: bool


@dataclass(frozen=True, slots=True)
class AgentMetadata:
    """What an agent's meta-data says that matters here."""

    agent: AgentReference
    version: str
    shortdesc: str
    longdesc: str
    parameters: Mapping[str, "ParameterMetadata"]
    actions: Mapping[str, "ActionMetadata"]


@dataclass(frozen=True, slots=True)
class ParameterMetadata:
    """One declared parameter."""

    name: str
    is_required: bool = False
    is_unique: bool = False
    is_reloadable: bool = False
    is_private: bool = False
    content_type: str = "string"
    default: str | None = None
    shortdesc: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionMetadata:
    """One declared action with its advised timings."""

    name: str
    timeout_ms: int | None = None
    interval_ms: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


class AgentRunner(Protocol):
    """This node's hands for one family of agent classes."""

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """Execute the action; deliver its result on the main loop."""
        ...

    def kill(self, key: str) -> None:
        """End the action's process group now; its result is CANCELLED."""
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

    def exists(self, agent: AgentReference) -> bool:
        """Tell whether the agent is installed here."""
        ...
