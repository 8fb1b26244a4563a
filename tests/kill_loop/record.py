"""What clients wrote down, and the judgement over it.

A record has one JSON array in each line, times on the machine's monotonic clock:

    ["ask", request, kind, time, value, expected]     kind: append, swap, read (of the register), look (at the list)
    ["answer", request, time, is_done, value]
    ["digest", index, digest]                         of everything applied up to an index

A last line without its end is what a killed process did not finish: nobody got anything of it.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from haclusterd.model.records import dataclass, field
from haclusterd.simulator.checks.linearizability import Append, Kind, Operation, judge_log, judge_register

KINDS = {"swap": Kind.SWAP, "read": Kind.READ}
SHOWN = 5


@dataclass
class Records:
    """All records of one run."""

    asked: dict[str, list[object]] = field(default_factory=dict)
    answered: dict[str, list[object]] = field(default_factory=dict)
    digests: dict[int, set[str]] = field(default_factory=dict)

    @staticmethod
    def read(files: Iterable[Path]) -> "Records":
        records = Records()
        for file in files:
            whole, _, _ = file.read_text().rpartition("\n")
            for line in whole.splitlines():
                records.take(json.loads(line))
        return records

    def take(self, items: list[object]) -> None:
        what, key, *rest = items
        if what == "digest":
            assert isinstance(key, int)
            self.digests.setdefault(key, set()).add(str(rest[0]))
        else:
            table = self.asked if what == "ask" else self.answered
            assert str(key) not in table, f"{key} twice in the records"
            table[str(key)] = rest

    def appends(self) -> list[Append]:
        return [
            Append(str(value), _time(at), _time(self.answered[request][0]) if request in self.answered else None)
            for request, (kind, at, value, _) in self.asked.items()
            if kind == "append"
        ]

    def operations(self) -> list[Operation]:
        made = []
        for request, (kind, at, value, expected) in self.asked.items():
            if kind in KINDS:
                answer = self.answered.get(request)
                is_read = kind == "read"
                made.append(
                    Operation(
                        client=request.rpartition(".")[0],
                        kind=KINDS[str(kind)],
                        asked_at=_time(at),
                        answered_at=None if answer is None else _time(answer[0]),
                        value=str(answer[2] if is_read and answer is not None else value),
                        expected=str(expected),
                        is_done=answer is None or bool(answer[1]),
                    )
                )
        return made

    def looks(self, first_length: int) -> list[tuple[int, int, int]]:
        """Return (asked, answered, length) of each look at the list; the empty list answers `first_length`."""
        return [
            (_time(at), _time(self.answered[request][0]), int(str(self.answered[request][2])) - first_length)
            for request, (kind, at, *_) in self.asked.items()
            if kind == "look" and request in self.answered
        ]


def _time(value: object) -> int:
    assert isinstance(value, int)
    return value


@dataclass
class Judgement:
    """The figures of one run, and what is wrong."""

    acknowledged: int = 0
    asked: int = 0
    lost: int = 0
    duplicated: int = 0
    is_equal: bool = True
    """All nodes were in the same state, whenever they had applied the same entries."""
    problems: list[str] = field(default_factory=list)

    def blame(self, what: str, culprits: Sequence[object]) -> None:
        if culprits:
            shown = ", ".join(str(culprit) for culprit in culprits[:SHOWN])
            self.problems.append(f"{len(culprits)} {what}: {shown}{' ...' if len(culprits) > SHOWN else ''}")


def judge(records: Records, words: Sequence[str], *, first_length: int = 0) -> Judgement:
    """Judge the answers of clients by the list on which all nodes agree in the end.

    `first_length` is what looks at the list answered before the first word stood in it.
    """
    appends = records.appends()
    verdict = judge_log(appends, words)
    judgement = Judgement(
        acknowledged=len(records.answered),
        asked=len(records.asked),
        lost=len(verdict.lost),
        duplicated=len(verdict.duplicated),
    )
    judgement.blame("acknowledged words lost", verdict.lost)
    judgement.blame("words twice", verdict.duplicated)
    judgement.blame("words nobody asked for", verdict.unasked)
    judgement.blame("words overtook what was acknowledged before", verdict.overtook)
    looks = records.looks(first_length)
    judgement.blame("looks at the list that no order explains", wrong_looks(appends, words, looks))
    unequal = [index for index, digests in sorted(records.digests.items()) if len(digests) > 1]
    judgement.blame("indices with different states", unequal)
    judgement.is_equal = not unequal
    register = judge_register(records.operations())
    if register.culprit is not None:
        judgement.blame("answers of the register that no order explains", [register.culprit])
    if register.is_undecided:
        judgement.problems.append("the register's history is too entangled to be judged")
    return judgement


def wrong_looks(
    appends: Sequence[Append], words: Sequence[str], looks: Iterable[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Return looks that missed what was acknowledged before, or saw what was asked for only afterwards."""
    by_word = {append.word: append for append in appends}
    known = [by_word[word] for word in words if word in by_word]
    acknowledged = sorted(
        (append.acknowledged_at, position)
        for position, append in enumerate(known)
        if append.acknowledged_at is not None
    )
    latest_asked: list[int] = []
    for append in known:
        latest_asked.append(max(append.asked_at, latest_asked[-1] if latest_asked else 0))
    wrong = []
    newest, count = -1, 0
    for asked, answered, length in sorted(looks):
        while count < len(acknowledged) and acknowledged[count][0] < asked:
            newest = max(newest, acknowledged[count][1])
            count += 1
        is_from_later = 0 < length <= len(known) and latest_asked[length - 1] > answered
        if length <= newest or length > len(known) or is_from_later:
            wrong.append((asked, answered, length))
    return wrong
