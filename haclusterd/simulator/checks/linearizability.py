"""Judges the answers of clients: nothing acknowledged is lost, nothing appears twice, every answer fits one order.

Two judgements over records of clients, pure and without a clock of their own. `judge_log` compares an append-only list
with what was asked and acknowledged; `judge_register` searches an order of all operations on one register in which each
takes effect between its question and its answer (Herlihy and Wing 1990; searched as in Lowe 2017).
The simulator and the programs that kill real processes use the same judgements, so that they mean the same by "lost".

An operation without an answer may have happened at any instant after it was asked, or never: both are legal, and
neither may be assumed. Nothing here may guess; a search that becomes too large says so.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from haclusterd.model.records import dataclass

CONFIGURATIONS_MAX = 20_000
"""More at once, and the search is given up: too many operations without an answer compete."""


@dataclass(frozen=True, slots=True)
class Append:
    """One word that a client wanted in the list; words are unique."""

    word: str
    asked_at: int
    """On one clock for all clients, as every instant here."""
    acknowledged_at: int | None = None
    """None: nobody knows."""


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What does not fit between the list and the clients' answers; all empty: nothing."""

    lost: tuple[str, ...] = ()
    """Acknowledged, and not in the list."""
    duplicated: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    """In the list, but nobody asked for it."""
    overtook: tuple[str, ...] = ()
    """Stands before a word that was acknowledged before this one was asked for."""

    @property
    def is_good(self) -> bool:
        """Whether everything fits."""
        return not (self.lost or self.duplicated or self.unasked or self.overtook)


def judge_log(appends: Sequence[Append], words: Sequence[str]) -> LogVerdict:
    """Compare the list on which all nodes agree with the record of all clients."""
    position = {word: index for index, word in enumerate(words)}
    asked = {append.word for append in appends}
    acknowledged = [append for append in appends if append.acknowledged_at is not None]
    return LogVerdict(
        lost=tuple(append.word for append in acknowledged if append.word not in position),
        duplicated=_repeated(words),
        unasked=tuple(word for word in words if word not in asked),
        overtook=tuple(_overtaking(appends, position)),
    )


def _repeated(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word, count in Counter(words).items() for _ in range(count - 1))


def _overtaking(appends: Sequence[Append], position: dict[str, int]) -> Iterator[str]:
    """Yield words that come before one which was acknowledged before they were asked for."""
    present = [append for append in appends if append.word in position]
    done = sorted(
        (append.acknowledged_at, position[append.word]) for append in present if append.acknowledged_at is not None
    )
    newest, count = -1, 0
    for append in sorted(present, key=lambda append: (append.asked_at, append.word)):
        while count < len(done) and done[count][0] < append.asked_at:
            newest = max(newest, done[count][1])
            count += 1
        if position[append.word] < newest:
            yield append.word


class Kind(StrEnum):
    """What a client asks of a register."""

    READ = "read"
    WRITE = "write"
    SWAP = "swap"
    """Write `value` if the register holds `expected`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One question to a register and its answer."""

    client: str
    kind: Kind
    asked_at: int
    answered_at: int | None = None
    """None: no answer came, it may have taken effect at any time since, or never."""
    value: str = ""
    """Written; for a read, what was answered."""
    expected: str = ""
    """Of a swap."""
    is_done: bool = True
    """Of an answered swap: whether it found what it expected."""


@dataclass(frozen=True, slots=True)
class RegisterVerdict:
    """Whether there is an order; if not, the operation whose answer no order explains."""

    is_linearizable: bool
    culprit: Operation | None = None
    is_undecided: bool = False
    """The search was given up."""


_Configuration = tuple[str, frozenset[int]]
"""The register's value, and which pending operations have taken effect already."""


def judge_register(operations: Iterable[Operation], first: str = "") -> RegisterVerdict:
    """Search an order of the operations on a register that held `first`."""
    known = list(operations)
    configurations: set[_Configuration] = {(first, frozenset())}
    pending: set[int] = set()
    for is_answer, number in _moments(known):
        if not is_answer:
            pending.add(number)
            continue
        found = _explanations(known, configurations, pending, number)
        if found is None:
            return RegisterVerdict(is_linearizable=True, is_undecided=True)
        if not found:
            return RegisterVerdict(is_linearizable=False, culprit=known[number])
        configurations = found
        pending.remove(number)
    return RegisterVerdict(is_linearizable=True)


def _moments(operations: Sequence[Operation]) -> list[tuple[bool, int]]:
    """Return questions and answers in their order; of one instant, questions first: that allows more orders."""
    moments = [(operation.asked_at, False, number) for number, operation in enumerate(operations)]
    moments += [
        (operation.answered_at, True, number)
        for number, operation in enumerate(operations)
        if operation.answered_at is not None
    ]
    return [(is_answer, number) for _, is_answer, number in sorted(moments)]


def _explanations(
    operations: Sequence[Operation], configurations: set[_Configuration], pending: set[int], answered: int
) -> set[_Configuration] | None:
    """Return all that may be the case once `answered` has taken effect; None when that is too much to look at."""
    seen = set(configurations)
    waiting = list(configurations)
    found: set[_Configuration] = set()
    while waiting:
        value, effective = waiting.pop()
        if answered in effective:
            found.add((value, effective - {answered}))
            continue
        for number in sorted(pending - effective):
            after = _step(value, operations[number], is_needed=number == answered)
            if after is None:
                continue
            following = (after, effective | {number})
            if following not in seen:
                seen.add(following)
                waiting.append(following)
        if len(seen) > CONFIGURATIONS_MAX:
            return None
    return found


def _step(value: str, operation: Operation, *, is_needed: bool) -> str | None:
    """Return the value after the operation; None when its answer does not fit, or it would explain nothing."""
    is_answered = operation.answered_at is not None
    if operation.kind is Kind.READ:
        return value if is_answered and operation.value == value else None
    if operation.kind is Kind.WRITE:
        return operation.value
    is_met = operation.expected == value
    if is_answered and is_met != operation.is_done:
        return None
    if is_met:
        return operation.value
    return value if is_answered or is_needed else None
