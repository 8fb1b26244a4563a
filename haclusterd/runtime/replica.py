"""The state machine behind the store: entries are envelopes, the state is the CIB.

It runs on the Raft thread. Its only side effect is on the withdrawn set: before this node acknowledges an entry that
declares a node lost, its pacer stops echoing that node, and resumes when the node's next Join is applied (safety.md §2,
"Withdrawal").
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol, TypeVar

from haclusterd.cib import apply as cib_apply
from haclusterd.cib.apply_members import objection_to, waits_for
from haclusterd.cib.apply_staged import staged_parts
from haclusterd.cib.changes import Applied
from haclusterd.cib.codec import CodecError, decode_cib_in_steps, decode_envelope, encode_cib, kind_of
from haclusterd.cib.commands import ActivateStaged, ChangeMembers, Join, Lost, RecordResults, RequestFence
from haclusterd.cib.staging import PutTogether, prepare_in_steps, put_together
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.model.steps import Steps
from haclusterd.ports.store import VoterSet

NEVER_JOINED = Incarnation("never-joined", "0" * 16)
"""Stands for the incarnation of a member that is declared lost without ever having joined."""
DECLARES_LOSS: Final = (Lost, RequestFence)
"""Commands that declare a loss: before one is acknowledged, the echo to its node ends (safety.md §2)."""

GIVEN_UP = frozenset({NodeState.LOST, NodeState.FENCED})

Loss = tuple[NodeName, Incarnation]
T = TypeVar("T", ActivateStaged, ChangeMembers)


class Withdrawals(Protocol):
    """The part of the pacer port that the Raft thread may use."""

    def withdraw(self, node: NodeName, incarnation: Incarnation) -> None:
        """Stop echoing a node."""
        ...

    def reinstate(self, node: NodeName, incarnation: Incarnation) -> None:
        """Echo it again, as far as this incarnation is concerned."""
        ...


class Folding:
    """Folds entries and reads snapshots: without state, so one object may serve many replicas."""

    def fold(
        self,
        cib: Cib,
        entry: bytes,
        *,
        index: int,
        term: Term,
        rules: SafetyRules,
        is_in_force: bool = False,
        read_staged: PutTogether = put_together,
    ) -> Applied:
        """Return the result of an entry for the CIB before it."""
        try:
            envelope = decode_envelope(entry)
        except CodecError as error:
            return cib_apply.unreadable(cib, index=index, detail=str(error))
        return cib_apply.apply(
            cib, envelope, index=index, term=term, rules=rules, is_in_force=is_in_force, read_staged=read_staged
        )

    def prepare(self, cib: Cib, entry: bytes) -> Steps[PutTogether] | None:
        """Return the part of `fold` that may take long, in steps; None, which is found quickly, for most entries."""
        command = _decoded(entry, ActivateStaged)
        if command is None:
            return None
        parts = staged_parts(cib, command)
        return prepare_in_steps(parts) if len(parts) == command.parts else None

    def write(self, cib: Cib) -> bytes:
        """Return the snapshot of a CIB."""
        return encode_cib(cib)

    def read(self, snapshot: bytes) -> Steps[Cib]:
        """Return the CIB of a snapshot, in steps; raises CodecError."""
        return decode_cib_in_steps(snapshot)


class Replica:
    """This node's copy of the CIB, on the Raft thread; see the module."""

    def __init__(
        self, withdrawals: Withdrawals, *, rules: SafetyRules = ALL_RULES, folding: Folding | None = None
    ) -> None:
        self._withdrawals = withdrawals
        self._rules = rules
        self._folding = folding or Folding()
        self._cib = Cib()
        self._read_staged: PutTogether = put_together
        """Reads staged changes; knows the one that the next entry makes, once that was prepared."""
        self._announced: Counter[Loss] = Counter()
        """Losses in the log that are not applied yet."""
        self._decided: set[Loss] = set()
        """Losses that are applied and not ended by a later Join."""

    def appended(self, entry: bytes) -> None:
        """Note an entry that is about to be acknowledged."""
        loss = _declared_loss(entry)
        if loss is not None and self._rules.withdraw_echo:
            self._announced[loss] += 1
            self._withdrawals.withdraw(*loss)

    def is_awaited(self, entry: bytes) -> bool:
        """Return whether the DC can continue from it: an executor's results make the next orders possible."""
        return kind_of(entry) is RecordResults

    def removed(self, entry: bytes) -> None:
        """Take back an entry that was never applied."""
        loss = _declared_loss(entry)
        if loss is not None:
            self._settle(loss)

    def prepare(self, entry: bytes) -> Steps[None] | None:
        """Prepare the staged change that the next entry makes; None when there is none."""
        steps = self._folding.prepare(self._cib, entry)
        return None if steps is None else self._keep(steps)

    def _keep(self, steps: Steps[PutTogether]) -> Steps[None]:
        self._read_staged = yield from steps

    def apply(self, index: int, term: Term, entry: bytes) -> Applied:
        """Fold an entry into the CIB."""
        return self._fold(index, term, entry, is_in_force=False)

    def apply_voters(self, index: int, term: Term, entry: bytes) -> Applied:
        """Fold a change of the members that Raft follows already."""
        return self._fold(index, term, entry, is_in_force=True)

    def _fold(self, index: int, term: Term, entry: bytes, *, is_in_force: bool) -> Applied:
        applied = self._folding.fold(
            self._cib,
            entry,
            index=index,
            term=term,
            rules=self._rules,
            is_in_force=is_in_force,
            read_staged=self._read_staged,
        )
        self._read_staged = put_together
        self._cib = applied.cib
        if applied.envelope is not None:
            self._observe(applied)
        return applied

    def incarnation_of(self, node: NodeName) -> Incarnation | None:
        """Return the incarnation of a node's newest Join; None: it has not joined."""
        status = self._cib.status.nodes.get(node)
        return status.incarnation if status is not None else None

    def voter_set(self) -> VoterSet | None:
        """Return the voters by the CIB; None before the cluster is formed."""
        cib = self._cib
        return _voters_of(cib.membership.version, cib.members.values()) if cib.members else None

    def proposed_voters(self, entry: bytes) -> VoterSet | None:
        """Return the voters that a change of the members asks for; None for any other entry."""
        command = _change_of_members(entry)
        return _voters_of(command.version, command.members) if command is not None else None

    def may_change_voters(self, entry: bytes) -> bool:
        """Return whether the CIB allows a change of the members now."""
        command = _change_of_members(entry)
        return (
            command is not None
            and not objection_to(self._cib, command)
            and not waits_for(self._cib, command, self._rules)
        )

    def snapshot(self) -> Callable[[], bytes]:
        """Return a function that encodes the CIB as of now."""
        return partial(self._folding.write, self._cib)

    def read(self, data: bytes) -> Steps[Cib]:
        """Read the CIB of a snapshot, in steps."""
        return self._folding.read(data)

    def restore(self, state: object) -> Cib:
        """Replace the CIB by that of a snapshot."""
        assert isinstance(state, Cib)
        self._cib = state
        self._read_staged = put_together
        known = {*self._announced, *self._decided}
        self._announced.clear()
        self._decided = set()
        for name, status in sorted(self._cib.status.nodes.items()):
            if status.state in GIVEN_UP:
                loss = (name, status.incarnation or NEVER_JOINED)
                self._decided.add(loss)
                self._withdrawals.withdraw(*loss)
        for loss in sorted(known):
            self._reinstate_unless_given_up(loss)
        return self._cib

    def _observe(self, applied: Applied) -> None:
        command = applied.envelope.command if applied.envelope is not None else None
        if isinstance(command, Lost | RequestFence):
            loss = (command.node, command.incarnation or NEVER_JOINED)
            status = applied.cib.status.nodes.get(command.node)
            is_of_this_incarnation = status is not None and (status.incarnation or NEVER_JOINED) == loss[1]
            if status is not None and is_of_this_incarnation and status.state in GIVEN_UP:
                self._decided.add(loss)
            self._settle(loss)
        elif isinstance(command, Join) and _is_in_force(applied.cib, command):
            # A loss that follows this Join in the log stays: during replay it is known in advance.
            ended = sorted(loss for loss in self._decided if loss[0] == command.node)
            self._decided.difference_update(ended)
            for loss in ended:
                self._reinstate_unless_given_up(loss)

    def _settle(self, loss: Loss) -> None:
        """Note that one declaration of a loss was applied or taken back."""
        self._announced[loss] -= 1
        if self._announced[loss] <= 0:
            del self._announced[loss]
        self._reinstate_unless_given_up(loss)

    def _reinstate_unless_given_up(self, loss: Loss) -> None:
        if loss not in self._announced and loss not in self._decided:
            self._withdrawals.reinstate(*loss)


def _is_in_force(cib: Cib, join: Join) -> bool:
    """Return whether a Join took effect: it may be refused, or a late repetition by an earlier incarnation."""
    status = cib.status.nodes.get(join.node)
    return status is not None and status.state is NodeState.ONLINE and status.incarnation == join.incarnation


def _change_of_members(entry: bytes) -> ChangeMembers | None:
    return _decoded(entry, ChangeMembers)


def _decoded(entry: bytes, kind: type[T]) -> T | None:
    """Return the command of an entry if it is of this kind, else None, without decoding it."""
    if kind_of(entry) is not kind:
        return None
    try:
        command = decode_envelope(entry).command
    except CodecError:
        return None
    return command if isinstance(command, kind) else None


def _voters_of(version: int, members: Iterable[Member]) -> VoterSet:
    voters = sorted(member.name for member in members if member.is_voter)
    learners = sorted(member.name for member in members if not member.is_voter)
    return VoterSet(version, tuple(voters), tuple(learners))


def _declared_loss(entry: bytes) -> Loss | None:
    if kind_of(entry) not in DECLARES_LOSS:
        return None
    try:
        command = decode_envelope(entry).command
    except CodecError:
        return None
    if not isinstance(command, Lost | RequestFence):
        return None
    return command.node, command.incarnation or NEVER_JOINED
