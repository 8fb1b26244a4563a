"""POSIX extended regular expressions over names, as locations and fencing levels have them.

Invariant: matching takes time in proportion to the length of the name, whatever the pattern: a configuration comes from
people, and no pattern of theirs may stop a daemon. There is no backtracking: all ways to match are followed at once
(Thompson, "Regular Expression Search Algorithm", 1968); of the matches that begin first the longest counts.
"""

from collections.abc import Callable

from haclusterd.model.records import dataclass, field

PATTERN_MAX = 1000
"""Characters of a pattern."""
NAME_MAX = 4096
"""Characters of a name; a longer one matches nothing."""
_STEPS_MAX = 5000
_DEPTH_MAX = 30
_REPEAT_MAX = 255

_CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "digit": str.isdecimal,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "blank": lambda char: char in " \t",
    "punct": lambda char: char.isprintable() and not char.isalnum() and not char.isspace(),
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}
_ESCAPES: dict[str, Callable[[str], bool]] = {
    "w": lambda char: char.isalnum() or char == "_",
    "W": lambda char: not (char.isalnum() or char == "_"),
    "s": str.isspace,
    "S": lambda char: not char.isspace(),
}

_Fits = Callable[[str], bool]
_Groups = tuple[int, ...]
"""Where groups begin and end, -1 where they do not: twice as many numbers as groups, the whole match first."""


@dataclass(slots=True)
class _Step:
    """One instruction: take a character, continue at several places, note a position, or be at an edge of the name."""

    fits: _Fits | None = None
    next: tuple[int, ...] = ()
    """The more wanted first."""
    slot: int = -1
    edge: str = ""


@dataclass(slots=True)
class Pattern:
    """A pattern that can be searched for in names."""

    _steps: list[_Step]
    _group_count: int
    _is_case_ignored: bool

    def search(self, name: str) -> tuple[str, ...] | None:
        """Return the match and its groups, empty text for a group that took no part; None when there is no match."""
        if len(name) > NAME_MAX:
            return None
        text = name.lower() if self._is_case_ignored else name
        if len(text) != len(name):
            text = name
        found = self._found(text)
        if found is None:
            return None
        return tuple(name[max(0, found[n]) : max(0, found[n + 1])] for n in range(0, len(found), 2))

    def _found(self, text: str) -> _Groups | None:
        found: _Groups | None = None
        nothing = (-1,) * (2 * self._group_count)
        threads: dict[int, _Groups] = {}
        for at in range(len(text) + 1):
            if found is None:
                self._follow(threads, 0, nothing, at, text)
            ended = threads.pop(len(self._steps), None)
            if ended is not None and (found is None or ended[0] <= found[0]):
                found = ended
            if at == len(text) or (not threads and found is not None):
                break
            following: dict[int, _Groups] = {}
            for place, groups in threads.items():
                step = self._steps[place]
                if step.fits is not None and step.fits(text[at]) and (found is None or groups[0] <= found[0]):
                    self._follow(following, place + 1, groups, at + 1, text)
            threads = following
        return found

    def _follow(self, threads: dict[int, _Groups], place: int, groups: _Groups, at: int, text: str) -> None:
        """Add every place that is reached without taking a character; of two ways to a place the first counts."""
        seen: set[int] = set()
        waiting = [(place, groups)]
        while waiting:
            here, taken = waiting.pop()
            if here in threads or here in seen:
                continue
            seen.add(here)
            if here == len(self._steps):
                threads[here] = (taken[0], at, *taken[2:])
                continue
            step = self._steps[here]
            if step.fits is not None:
                threads[here] = taken
            elif step.next:
                waiting.extend((each, taken) for each in reversed(step.next))
            elif step.slot >= 0:
                waiting.append((here + 1, (*taken[: step.slot], at, *taken[step.slot + 1 :])))
            elif (step.edge == "^" and at == 0) or (step.edge == "$" and at == len(text)):
                waiting.append((here + 1, taken))


@dataclass(slots=True)
class _Compiler:
    """Reads a pattern from left to right and writes its steps."""

    text: str
    is_case_ignored: bool
    at: int = 0
    depth: int = 0
    groups: int = 1
    steps: list[_Step] = field(default_factory=list)

    def compile(self) -> Pattern:
        self.steps.append(_Step(slot=0))
        self._alternatives()
        if self.at < len(self.text):
            raise ValueError(f"unmatched ) at character {self.at + 1}")
        return Pattern(self.steps, self.groups, self.is_case_ignored)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _add(self, step: _Step) -> None:
        if len(self.steps) >= _STEPS_MAX:
            raise ValueError("the pattern is too large")
        self.steps.append(step)

    def _alternatives(self) -> None:
        """`a|b`: after each alternative but the last, continue after all of them."""
        start = len(self.steps)
        exits: list[_Step] = []
        self._sequence()
        while self._peek() == "|":
            self.at += 1
            self._insert(start)
            leave = _Step()
            exits.append(leave)
            self._add(leave)
            self.steps[start].next = (start + 1, len(self.steps))
            start = len(self.steps)
            self._sequence()
        for leave in exits:
            leave.next = (len(self.steps),)

    def _sequence(self) -> None:
        while self._peek() not in ("", "|", ")"):
            start = len(self.steps)
            self._atom()
            while self._peek() in ("*", "+", "?", "{") and self._peek():
                self._repeat(start)

    def _atom(self) -> None:
        char = self._peek()
        self.at += 1
        if char == "(":
            self._group()
        elif char == ".":
            self._add(_Step(fits=lambda _char: True))
        elif char in ("^", "$"):
            self._add(_Step(edge=char))
        elif char == "[":
            self._add(_Step(fits=self._bracket()))
        elif char == "\\":
            self._escape()
        elif char in ("*", "+", "?", "{"):
            raise ValueError(f"nothing to repeat at character {self.at}")
        else:
            self._add(_Step(fits=self._equal(char)))

    def _group(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise ValueError(f"groups are nested more than {_DEPTH_MAX} deep")
        number = self.groups
        self.groups += 1
        self._add(_Step(slot=2 * number))
        self._alternatives()
        if self._peek() != ")":
            raise ValueError("a ( is not closed")
        self.at += 1
        self._add(_Step(slot=2 * number + 1))
        self.depth -= 1

    def _escape(self) -> None:
        char = self._peek()
        if not char:
            raise ValueError("it ends with a backslash")
        self.at += 1
        self._add(_Step(fits=_ESCAPES.get(char) or self._equal(char)))

    def _equal(self, char: str) -> _Fits:
        wanted = char.lower() if self.is_case_ignored else char
        return lambda found: found == wanted

    def _repeat(self, start: int) -> None:
        """Write the steps from `start` on as often as the quantifier says."""
        least, most = self._quantifier()
        body = self.steps[start:]
        del self.steps[start:]
        for _ in range(least):
            self._copy(body, start)
        if most is None:
            again = len(self.steps)
            self._add(_Step())
            self._copy(body, start)
            self._add(_Step(next=(again,)))
            self.steps[again].next = (again + 1, len(self.steps))
            return
        options = []
        for _ in range(most - least):
            options.append(len(self.steps))
            self._add(_Step())
            self._copy(body, start)
        for option in options:
            self.steps[option].next = (option + 1, len(self.steps))

    def _quantifier(self) -> tuple[int, int | None]:
        char = self._peek()
        self.at += 1
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        end = self.text.find("}", self.at)
        least, comma, most = self.text[self.at : end].partition(",")
        self.at = end + 1
        is_right = end >= 0 and least.isdecimal() and (not most or most.isdecimal())
        if not is_right or len(least) > 3 or len(most) > 3:
            raise ValueError("what is in { } is no number of repetitions")
        bounds = int(least), int(most) if most else (None if comma else int(least))
        if max(bounds[0], bounds[1] or 0) > _REPEAT_MAX or (bounds[1] is not None and bounds[1] < bounds[0]):
            raise ValueError(f"repetitions are from 0 to {_REPEAT_MAX}, the fewer first")
        return bounds

    def _copy(self, body: list[_Step], start: int) -> None:
        """Write steps that were written at `start` once more, here."""
        offset = len(self.steps) - start
        for step in body:
            self._add(_Step(step.fits, tuple(each + offset for each in step.next), step.slot, step.edge))

    def _insert(self, place: int) -> None:
        """Make room for one step at `place`."""
        self._add(_Step())
        moved = self.steps[place:-1]
        for step in moved:
            step.next = tuple(each + 1 for each in step.next)
        self.steps[place:] = [_Step(), *moved]

    def _bracket(self) -> _Fits:
        is_inverted = self._peek() == "^"
        self.at += is_inverted
        members: list[_Fits] = []
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            members.append(self._member())
        self.at += 1
        return lambda char: any(member(char) for member in members) is not is_inverted

    def _member(self) -> _Fits:
        if not self._peek():
            raise ValueError("a [ is not closed")
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at)
            fits = _CLASSES.get(self.text[self.at + 2 : end]) if end >= 0 else None
            if fits is None:
                raise ValueError("there is no such class of characters")
            self.at = end + 2
            return fits
        first = self._peek()
        self.at += 1
        if self._peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("", "]"):
            return self._equal(first)
        last = self.text[self.at + 1]
        self.at += 2
        if last < first:
            raise ValueError(f"the range {first}-{last} ends before it begins")
        if self.is_case_ignored:
            return lambda char: first <= char <= last or first <= char.upper() <= last
        return lambda char: first <= char <= last


def compile_pattern(text: str, *, is_case_ignored: bool = False) -> Pattern:
    """Read a pattern; raise ValueError, which says why, when it is none."""
    if len(text) > PATTERN_MAX:
        raise ValueError(f"a pattern has at most {PATTERN_MAX} characters")
    return _Compiler(text, is_case_ignored).compile()
