"""The dampening of node attributes by the clock of one daemon: waits, writes, and retries failed writes.

The values are in this process only. A daemon that ends forgets pending ones; agents publish again at their next
monitor.
"""

from functools import partial

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import SetTransientAttribute
from haclusterd.machines.dampening import Dampening
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import NEVER
from haclusterd.ports.clock import Timer
from haclusterd.runtime.node import NodeRuntime


class DampenedAttributes:
    """Dampening with a timer and a proposer."""

    def __init__(self, runtime: NodeRuntime) -> None:
        self._runtime = runtime
        self._dampening = Dampening()
        self._timer: Timer | None = None

    def put(self, command: SetTransientAttribute, span_ms: int) -> None:
        """Take a value; with a span of 0 the caller writes it at once, and a pending one is dropped."""
        if span_ms:
            self._dampening.put(command, span_ms, self._runtime.ports.clock.now(), self._runtime.cib)
        else:
            for node in command.nodes:
                self._dampening.drop(node, command.name)
                self._runtime.forget(_key(node, command.name))
        self._arm()

    def values(self) -> dict[tuple[NodeName, str], str | None]:
        """Return the pending values; None: to be deleted."""
        return self._dampening.values()

    def _write(self) -> None:
        self._timer = None
        for command in self._dampening.due(self._runtime.ports.clock.now(), self._runtime.cib):
            self._runtime.propose(_key(command.node, command.name), command, partial(self._written, command))
        self._arm()

    def _written(self, command: SetTransientAttribute, _result: Applied) -> None:
        self._dampening.written(command)
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._dampening.deadline()
        if deadline < NEVER:
            self._timer = self._runtime.ports.clock.call_at(deadline, self._write)


def _key(node: NodeName, name: str) -> str:
    return f"attribute:{node}:{name}:"
