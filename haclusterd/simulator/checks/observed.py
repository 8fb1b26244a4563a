"""Wrappers of a daemon's ports by which checkers observe it: they pass everything on and change nothing."""

from collections.abc import Callable
from typing import Protocol

from haclusterd.machines.effects import CallFenceAgent, Effect
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.steps import Steps
from haclusterd.ports.store import PeerPlaces, StateMachine, Store, StoreEvent, VoterSet
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.settings import NodeSettings
from haclusterd.simulator.checks.coverage import FENCE_AGENT, Coverage


class SnapshotRead(Protocol):
    """Takes note of a snapshot that is read."""

    def __call__(self, *, is_under_way: bool) -> None:
        """It begins, or ends."""
        ...


class ObservedMachine:
    """A `StateMachine` whose outcomes are shown as they come, on the Raft thread."""

    def __init__(
        self, inner: StateMachine, outcome_seen: Callable[[object], None], snapshot_read: SnapshotRead
    ) -> None:
        self._inner = inner
        self._outcome_seen = outcome_seen
        self._snapshot_read = snapshot_read

    def appended(self, entry: bytes) -> None:
        """See `StateMachine.appended`."""
        self._inner.appended(entry)

    def is_awaited(self, entry: bytes) -> bool:
        """See `StateMachine.is_awaited`."""
        return self._inner.is_awaited(entry)

    def removed(self, entry: bytes) -> None:
        """See `StateMachine.removed`."""
        self._inner.removed(entry)

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        """See `StateMachine.apply`."""
        outcome = self._inner.apply(index, term, entry)
        self._outcome_seen(outcome)
        return outcome

    def apply_voters(self, index: int, term: Term, entry: bytes) -> object:
        """See `StateMachine.apply_voters`."""
        outcome = self._inner.apply_voters(index, term, entry)
        self._outcome_seen(outcome)
        return outcome

    def voter_set(self) -> VoterSet | None:
        """See `StateMachine.voter_set`."""
        return self._inner.voter_set()

    def proposed_voters(self, entry: bytes) -> VoterSet | None:
        """See `StateMachine.proposed_voters`."""
        return self._inner.proposed_voters(entry)

    def may_change_voters(self, entry: bytes) -> bool:
        """See `StateMachine.may_change_voters`."""
        return self._inner.may_change_voters(entry)

    def snapshot(self) -> Callable[[], bytes]:
        """See `StateMachine.snapshot`."""
        return self._inner.snapshot()

    def prepare(self, entry: bytes) -> Steps[None] | None:
        """See `StateMachine.prepare`."""
        return self._inner.prepare(entry)

    def read(self, data: bytes) -> Steps[object]:
        """See `StateMachine.read`."""
        self._snapshot_read(is_under_way=True)
        return self._inner.read(data)

    def restore(self, state: object) -> object:
        """See `StateMachine.restore`."""
        outcome = self._inner.restore(state)
        self._outcome_seen(outcome)
        self._snapshot_read(is_under_way=False)
        return outcome


class ObservedStore:
    """A `Store` whose events are shown just before the main loop takes them."""

    def __init__(
        self, inner: Store, event_seen: Callable[[StoreEvent], None], proposal_seen: Callable[[bytes], None]
    ) -> None:
        self._inner = inner
        self._event_seen = event_seen
        self._proposal_seen = proposal_seen

    def start(self, deliver: Callable[[StoreEvent], None]) -> None:
        """See `Store.start`."""

        def show_and_deliver(event: StoreEvent) -> None:
            self._event_seen(event)
            deliver(event)

        self._inner.start(show_and_deliver)

    def propose(self, entry: bytes, term: Term | None = None) -> bool:
        """See `Store.propose`."""
        self._proposal_seen(entry)
        return self._inner.propose(entry, term)

    def considered(self, index: int) -> None:
        """See `Store.considered`."""
        self._inner.considered(index)

    def transfer_leadership(self, to: NodeName) -> None:
        """See `Store.transfer_leadership`."""
        self._inner.transfer_leadership(to)

    def retime(self, node_timeout_ms: int) -> None:
        """See `Store.retime`."""
        self._inner.retime(node_timeout_ms)

    def follow_places(self, places: PeerPlaces) -> None:
        """See `Store.follow_places`."""
        self._inner.follow_places(places)

    def stop(self) -> None:
        """See `Store.stop`."""
        self._inner.stop()


class ObservedRuntime(NodeRuntime):
    """A daemon whose effects are counted as they are performed."""

    def __init__(self, settings: NodeSettings, ports: NodePorts, left: Callable[[], None], coverage: Coverage) -> None:
        self._coverage = coverage
        super().__init__(settings, ports, left=left)

    def _perform(self, effect: Effect) -> None:
        self._coverage.counts["effect", type(effect).__name__] += 1
        if isinstance(effect, CallFenceAgent):
            self._coverage.counts[FENCE_AGENT, f"{effect.call.action} by {effect.call.agent}"] += 1
        super()._perform(effect)
