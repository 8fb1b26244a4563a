"""Which copy of a PostgreSQL database may take writes: what primaries record of themselves, and who they let follow.

Each primary records, in a permanent attribute of its own node, its timeline, where that began on the older ones, a
position up to which it and every synchronous standby hold all, and who those standbys are. Two rules make that record
enough to promote by, whatever dies and whenever:

* the server never acknowledges a commit before every standby in the record holds it: a name leaves the record before
  the server may do without it, and enters the record only when the server waits for it and it holds everything;
* a number of a timeline is never used twice: who promotes says so beforehand, with a number above every known one.

So the last primary itself and the standbys in its record have every acknowledged commit, and nobody else need have.
Everything here is plain calculation on texts and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CLOSED = "closed"
LONGEST_ANCESTRY = 100
"""So many forks are recorded; what is older counts as unknown, which is the safe side."""


class NotEntitledError(Exception):
    """This copy must not be promoted; the message says what it lacks, and who has it."""


def read_lsn(text: str) -> int:
    """Return the position that a text names, as 0/3000060; ValueError when it names none."""
    high, slash, low = text.partition("/")
    if not slash:
        raise ValueError(f"no position: {text!r}")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(lsn: int) -> str:
    """Return a position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


class Copy:
    """What a copy holds: all of a timeline up to a position; `forks` is where its older timelines ended, by number."""

    __slots__ = ("forks", "lsn", "timeline")

    def __init__(self, timeline: int, lsn: int, forks: Mapping[int, int]) -> None:
        self.timeline = timeline
        self.lsn = lsn
        self.forks = dict(forks)

    def __str__(self) -> str:
        return f"{lsn_text(self.lsn)} of timeline {self.timeline}"

    def holds(self, timeline: int, lsn: int) -> bool:
        """Tell whether that timeline, up to that position, is part of this copy."""
        until = self.lsn if timeline == self.timeline else self.forks.get(timeline, -1)
        return lsn <= until and lsn <= self.lsn

    @property
    def rank(self) -> tuple[int, int]:
        """What copies are compared by: the greater one is ahead."""
        return self.timeline, self.lsn


class Record:
    """What a primary recorded of itself."""

    __slots__ = ("forks", "lsn", "node", "standbys", "timeline")

    def __init__(self, node: str, timeline: int, lsn: int, standbys: Iterable[str], forks: Mapping[int, int]) -> None:
        self.node = node
        self.timeline = timeline
        self.lsn = lsn
        self.standbys = tuple(standbys)
        self.forks = dict(sorted(forks.items())[-LONGEST_ANCESTRY:])

    @property
    def text(self) -> str:
        """The record as the attribute has it."""
        after = ",".join(f"{timeline}@{lsn_text(lsn)}" for timeline, lsn in sorted(self.forks.items())) or "-"
        standbys = ",".join(self.standbys) or "-"
        return f"timeline={self.timeline} position={lsn_text(self.lsn)} standbys={standbys} after={after}"

    def __str__(self) -> str:
        return f"{lsn_text(self.lsn)} of timeline {self.timeline}"

    def is_left_by(self, copy: Copy) -> bool:
        """Tell whether a copy has what this primary does not: it cannot follow before that is taken from it."""
        if copy.timeline == self.timeline:
            return False
        if copy.timeline > self.timeline:
            return not copy.holds(self.timeline, self.lsn)
        return copy.lsn > self.forks.get(copy.timeline, -1)


def read_record(node: str, text: str) -> Record:
    """Return the record that an attribute holds. Raises ValueError when it is damaged: then nobody is entitled."""
    words = dict(word.partition("=")[::2] for word in text.split())
    try:
        standbys = [each for each in words["standbys"].split(",") if each != "-"]
        return Record(node, int(words["timeline"]), read_lsn(words["position"]), standbys, read_forks(words["after"]))
    except (KeyError, ValueError):
        raise ValueError(f"node {node} has a record that cannot be read: {text!r}") from None


def read_forks(text: str) -> dict[int, int]:
    """Return where timelines ended, from `1@0/3000158,2@0/40000A0`; `-` for none."""
    pairs = (each.partition("@") for each in text.split(",") if each not in ("", "-"))
    return {int(timeline): read_lsn(lsn) for timeline, _, lsn in pairs}


def read_history(text: str) -> dict[int, int]:
    """Return where timelines ended, from a history file of PostgreSQL (number, position, reason in each line)."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and not words[0].startswith("#"):
            found[int(words[0])] = read_lsn(words[1])
    return found


class Records:
    """What all nodes have recorded: primaries, and numbers of timelines that promotions took."""

    def __init__(self, primaries: Mapping[str, str], promotions: Mapping[str, str]) -> None:
        """Take the attributes by node. Raises ValueError when one is damaged."""
        self.primaries = {node: read_record(node, text) for node, text in primaries.items() if text}
        self._taken = {node: int(text.split()[0]) for node, text in promotions.items() if text}
        self._open = {node for node, text in promotions.items() if text and CLOSED not in text}

    @property
    def last(self) -> Record | None:
        """The record of the last primary that acknowledged anything."""
        return max(self.primaries.values(), key=lambda each: each.timeline, default=None)

    def is_promoting(self, node: str) -> bool:
        """Tell whether a node has announced a promotion, and not closed it."""
        return node in self._open

    def taken(self, node: str) -> int:
        """Return the number that a node announced last; 0 when none."""
        return self._taken.get(node, 0)

    def next_timeline(self, copy: Copy) -> int:
        """Return a number that no timeline has or had."""
        known = (each.timeline for each in self.primaries.values())
        return max([copy.timeline, *copy.forks, *known, *self._taken.values()]) + 1

    def to_follow(self) -> str:
        """Return the node whose server is to be followed; empty when nobody knows."""
        found = {each.timeline: node for node, each in self.primaries.items()}
        found.update({self._taken[node]: node for node in self._open})
        return found[max(found)] if found else ""

    def superior(self, node: str, timeline: int) -> Record | None:
        """Return the record of another node that became primary after this one did."""
        last = self.last
        return last if last is not None and last.node != node and last.timeline > timeline else None

    def rival(self, node: str, timeline: int) -> str:
        """Return another node that promotes at the moment, or became primary after this one; empty when none."""
        superior = self.superior(node, timeline)
        promoting = [each for each in sorted(self._open) if each != node and self._taken[each] > timeline]
        return superior.node if superior is not None else next(iter(promoting), "")


def check_entitled(
    node: str, copy: Copy, records: Records, members: Iterable[str], known: Mapping[str, tuple[int, int]]
) -> None:
    """Raise NotEntitledError unless this copy has every commit that was ever acknowledged.

    `known` are the ranks of copies by node: without any record all `members` must be there, and this one first.
    """
    last = records.last
    if last is None:
        _check_first(node, copy, list(members), {**known, node: copy.rank})
        return
    if node != last.node and node not in last.standbys:
        who = " and ".join(each for each in (last.node, *last.standbys))
        raise NotEntitledError(
            f"stale: this copy is at {copy}; the last primary, {last.node}, was at {last}, and only {who} "
            "need have all that was acknowledged"
        )
    if not copy.holds(last.timeline, last.lsn):
        raise NotEntitledError(
            f"stale: this copy is at {copy}, and the last primary, {last.node}, recorded {last} for it too"
        )


def _check_first(node: str, copy: Copy, members: list[str], known: Mapping[str, tuple[int, int]]) -> None:
    missing = [each for each in members if each not in known]
    if missing:
        raise NotEntitledError(
            f"no-record: no primary has recorded anything, and the position of {', '.join(missing)} is not known"
        )
    best = max(members, key=lambda each: (known[each], -members.index(each)))
    if node != best:
        ahead = f"{lsn_text(known[best][1])} of timeline {known[best][0]}"
        raise NotEntitledError(f"no-record: this copy is at {copy}, and that of {best} at {ahead} comes first")


def is_entitled(
    node: str, copy: Copy, records: Records, members: Iterable[str], known: Mapping[str, tuple[int, int]]
) -> bool:
    """Tell whether this copy has every commit that was ever acknowledged."""
    try:
        check_entitled(node, copy, records, members, known)
    except NotEntitledError:
        return False
    return True
