"""Execution of fence agents.

Contract (agents-and-fencing.md §3.1-3.3): parameters travel on standard input, never in an argument vector or a log.
The agent runs in its own process group and is killed at its timeout, which is a failure; `done` is called once, on the
main loop, whatever happens.
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.model.agent_calls import FenceCall as FenceCall
from haclusterd.model.agent_calls import FenceCallResult as FenceCallResult
from haclusterd.model.records import dataclass


class FenceAgents(Protocol):
    """Runs fence agents on this node."""

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        """Run the agent; deliver its result on the main loop."""
        ...

    def exists(self, agent: str) -> bool:
        """Return whether the agent is installed and may be used here (`fence_local`: only for development)."""
        ...

    def metadata(self, agent: str, done: Callable[["FenceMetadata | None"], None]) -> None:
        """Read the agent's metadata; None when there is no such agent."""
        ...


@dataclass(frozen=True, slots=True)
class FenceMetadata:
    """What a fence agent's metadata says that matters here."""

    agent: str
    actions: frozenset[str]
    parameters: frozenset[str]
    host_argument: str | None
    """`plug` or `port` when the agent has that parameter, else None."""
