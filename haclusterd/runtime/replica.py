"""The state machine that the store drives: entries are envelopes, the state is the CIB.

It runs on the Raft thread. Its only contact with the world is the withdrawn set: before this node acknowledges an entry
that declares a node lost, its pacer stops echoing that node, and goes on again when the node's next Join is applied
(safety.md §2, "Withdrawal").
"""

from collections.abc import Callable
from typing import Protocol

from haclusterd.cib import apply as cib_apply
from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import CodecError, decode_cib, decode_envelope, encode_cib
from haclusterd.cib.commands import Join, Lost, RequestFence
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

NEVER_JOINED = Incarnation("never-joined", "0" * 16)
"""Stands for the incarnation of a member that is declared lost without ever having joined."""
DECLARES_LOSS = (b"Lost", b"RequestFence")
"""What the encoding of an entry that declares a loss contains: all others are passed over without decoding."""


class Withdrawals(Protocol):
    """The part of the pacer that the Raft thread may touch."""

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """Stop echoing a node."""
        ...

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """Echo it again, as far as this incarnation goes."""
        ...


class Replica:
    """This node's copy of the CIB, on the Raft thread; see the module."""

    def __init__(self, withdrawals: Withdrawals, *, rules: SafetyRules = ALL_RULES) -> None:
        self._withdrawals = withdrawals
        self._rules = rules
        self._cib = Cib()
        self._withdrawn: set[tuple[NodeName, Incarnation]] = set()

    def appended(self, entry: bytes) -> None:
        """See an entry that is about to be acknowledged."""
        loss = _declared_loss(entry)
        if loss is not None and self._rules.withdraw_echo:
            self._withdraw(*loss)

    def removed(self, entry: bytes) -> None:
        """Take back an entry that was never applied."""
        loss = _declared_loss(entry)
        if loss is not None and loss in self._withdrawn and not self._is_lost(loss[0]):
            self._reinstate(*loss)

    def apply(self, index: int, term: Term, entry: bytes) -> Applied:
        """Fold an entry into the CIB."""
        try:
            envelope = decode_envelope(entry)
        except CodecError as error:
            applied = cib_apply.unreadable(self._cib, index=index, detail=str(error))
        else:
            applied = cib_apply.apply(self._cib, envelope, index=index, term=term, rules=self._rules)
            self._observe(applied)
        self._cib = applied.cib
        return applied

    def snapshot(self) -> Callable[[], bytes]:
        """Return a function that encodes the CIB as it is now."""
        cib = self._cib
        return lambda: encode_cib(cib)

    def restore(self, data: bytes) -> Cib:
        """Replace the CIB by a snapshot's."""
        self._cib = decode_cib(data)
        for node, incarnation in sorted(self._withdrawn):
            self._reinstate(node, incarnation)
        for name in sorted(self._cib.status.nodes):
            if self._is_lost(name):
                self._withdraw(name, self._cib.status.nodes[name].incarnation or NEVER_JOINED)
        return self._cib

    def _observe(self, applied: Applied) -> None:
        command = applied.envelope.command if applied.envelope is not None else None
        if isinstance(command, Join) and applied.refusal is None:
            for node, incarnation in sorted(self._withdrawn):
                if node == command.node:
                    self._reinstate(node, incarnation)
        elif isinstance(command, Lost | RequestFence) and applied.refusal is not None:
            loss = (command.node, command.incarnation or NEVER_JOINED)
            status = applied.cib.status.nodes.get(command.node)
            is_lost = status is not None and status.state in (NodeState.LOST, NodeState.FENCED)
            if loss in self._withdrawn and not is_lost:
                self._reinstate(*loss)

    def _is_lost(self, node: NodeName) -> bool:
        status = self._cib.status.nodes.get(node)
        return status is not None and status.state in (NodeState.LOST, NodeState.FENCED)

    def _withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        self._withdrawn.add((node, incarnation))
        self._withdrawals.withdraw(node, incarnation)

    def _reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        self._withdrawn.discard((node, incarnation))
        self._withdrawals.reinstate(node, incarnation)


def _declared_loss(entry: bytes) -> tuple[NodeName, Incarnation] | None:
    if not any(word in entry for word in DECLARES_LOSS):
        return None
    try:
        command = decode_envelope(entry).command
    except CodecError:
        return None
    if not isinstance(command, Lost | RequestFence):
        return None
    return command.node, command.incarnation or NEVER_JOINED
