"""YAML as a tree of scalars, lists and mappings that know their places; the one reader of YAML here.

Built from PyYAML's events, so nothing is ever constructed from a tag. Refused, because they hide or multiply what a
file says: tags, anchors and aliases, merge keys, several documents, keys that are not plain words, keys given twice.
Size and depth are bounded. Scalars stay the text that was written: `yes`, `0x10` and `1.10` mean what they spell.

`${NAME}` in a value is replaced from the given variables; `$${` is a literal `${`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

import yaml

from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, report
from haclusterd.reports.suggestions import nearest

MAX_TEXT_CHARACTERS = 1_000_000
MAX_NODES = 200_000
MAX_DEPTH = 64
_LEVELS, _FEWER = f"{MAX_DEPTH} levels", "write it with fewer levels"

_QUOTE = "put the value in quotes"
_SAID = {
    "expected <block end>": ("what begins here fits to nothing above", "indent it like its neighbours"),
    "mapping values are not allowed here": (
        "a second ': ' in one line", "put a value that has one in quotes, or begin a line of its own with it"
    ),
    "could not find expected ':'": ("a name without a colon", "write NAME: VALUE; indent continuation lines"),
    "cannot start any token": ("a value cannot begin with this character", _QUOTE),
    "expected alphabetic or numeric character": ("a value cannot begin with & or *", _QUOTE),
    "found unexpected end of stream": ("a quote is not closed", "close it"),
    "expected ',' or '}'": ("a brace is not closed, or a comma is missing", "close it with }, or write the comma"),
    "expected ',' or ']'": ("a bracket is not closed, or a comma is missing", "close it with ], or write the comma"),
    "expected the node content": ("a value is missing", 'write it; an empty one is ""'),
}
"""What PyYAML says, in words for people, and what to do."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; `text` is None for null."""

    text: str | None
    place: Place
    is_faulty: bool = False
    """Its variables could not be replaced, which is reported already."""


@dataclass(frozen=True, slots=True)
class List:
    """A list."""

    place: Place
    items: list["Tree"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping; of a key given twice, the first value is kept (and the second reported)."""

    place: Place
    entries: dict[str, "Tree"] = field(default_factory=dict)
    key_places: dict[str, Place] = field(default_factory=dict)


Tree = Scalar | List | Map


class _Mark(Protocol):
    """Where PyYAML says something stands; from 0."""

    line: int
    column: int


class _StopError(Exception):
    """The text cannot be read any further."""


class _DepthError(Exception):
    """Flow collections are nested too deep."""

    def __init__(self, mark: _Mark) -> None:
        super().__init__()
        self.mark = mark


class _BoundedLoader(yaml.SafeLoader):
    """Stops at the depth limit already where brackets are opened.

    A bracket may begin a key, so the scanner reads on for up to 1024 characters before it gives its first token, and
    for each of these it looks at every bracket that is open: 150 ms of computing for a line of brackets.
    """

    def fetch_flow_collection_start(self, token_class: type[yaml.Token]) -> None:
        """Open a list or mapping that is written in brackets."""
        if self.flow_level > MAX_DEPTH:
            raise _DepthError(self.get_mark())
        super().fetch_flow_collection_start(token_class)


def read_tree(text: str, file: str, variables: Mapping[str, str]) -> tuple[Tree | None, tuple[ReportItem, ...]]:
    """Read one document; None when it is empty, or (with an error) cannot be read to its end."""
    if len(text) > MAX_TEXT_CHARACTERS:
        limit = f"{MAX_TEXT_CHARACTERS} characters"
        return None, (report(Code.TOO_LARGE, place=Place(file, 1), what="the file", limit=limit),)
    reader = _Reader(text, file, variables)
    return reader.document(), tuple(reader.reports)


class _Reader:
    """Puts the events of one text together. Depth is bounded, so reading may call itself."""

    def __init__(self, text: str, file: str, variables: Mapping[str, str]) -> None:
        self.reports: list[ReportItem] = []
        self._text = text
        self._file = file
        self._variables = variables
        self._nodes = 0
        self._events: Iterator[yaml.Event] = iter(())

    def document(self) -> Tree | None:
        """Return the whole tree, or None when there is none."""
        root: Tree | None = None
        try:
            self._events = yaml.parse(self._text, Loader=_BoundedLoader)
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent):
                    if root is not None:
                        raise self._stop("a second document begins here", event, "keep one document in a file")
                    root = self._tree(next(self._events), depth=0)
            return root
        except _StopError:
            pass
        except _DepthError as error:
            self._report_too_large(self._place_of(error.mark), _LEVELS, _FEWER, what="the depth of the file")
        except yaml.MarkedYAMLError as error:
            self._syntax(error.problem or "it cannot be read", error.problem_mark or error.context_mark)
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            place = Place(self._file, line, error.position - self._text.rfind("\n", 0, error.position))
            self.reports.append(
                report(Code.BAD_CHARACTER, place=place, name="the file", character=_spell(error.character))
            )
        except (ValueError, OverflowError) as error:
            # The scanner turns escapes such as "\UFFFFFFFF" into characters without looking at their size.
            self._syntax(str(error), None)
        return None

    def _tree(self, event: yaml.Event, depth: int) -> Tree:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._too_large(event, f"{MAX_NODES} values")
        if depth > MAX_DEPTH:
            self._report_too_large(self._place(event), _LEVELS, _FEWER, what="the depth of the file")
            raise _StopError
        if isinstance(event, yaml.AliasEvent):
            raise self._stop(f"an alias (*{event.anchor}) is not allowed", event, "write the value out")
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor is not None:
            raise self._stop(f"an anchor (&{event.anchor}) is not allowed", event, "write the value out")
        if event.tag is not None:
            raise self._stop(f"a tag ({event.tag}) is not allowed", event, "remove it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(event, depth)
        return self._map(event, depth)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._place(event)
        is_null = event.style is None and event.value in _NULLS
        if is_null:
            return Scalar(None, place)
        faults = len(self.reports)
        text = self._substitute(event.value, place)
        return Scalar(text, place, is_faulty=len(self.reports) > faults)

    def _list(self, start: yaml.Event, depth: int) -> List:
        made = List(self._place(start))
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            made.items.append(self._tree(event, depth + 1))
        return made

    def _map(self, start: yaml.Event, depth: int) -> Map:
        made = Map(self._place(start))
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            place = self._place(event)
            if not isinstance(event, yaml.ScalarEvent) or event.tag or event.anchor or event.value in ("", "<<"):
                raise self._stop("a key must be a plain word", event, "write it as NAME: VALUE")
            value = self._tree(next(self._events), depth + 1)
            if event.value in made.entries:
                self.reports.append(report(Code.DUPLICATE_NAME, place=place, name=event.value))
                continue
            made.entries[event.value] = value
            made.key_places[event.value] = place
        return made

    def _substitute(self, text: str, place: Place) -> str:
        def replacement(found: re.Match[str]) -> str:
            name: str | None = found["name"]
            if name is None:
                return "${"
            if not found["end"] or not _VARIABLE_NAME.match(name):
                remedy = "write ${NAME}, or $${ for a literal ${"
                self.reports.append(
                    report(Code.SYNTAX, place=place, remedy=remedy, problem=f"{found.group()!r} names no variable")
                )
            elif name not in self._variables:
                guess = nearest(name, self._variables)
                hint = f"did you mean {guess}?" if guess else None
                self.reports.append(report(Code.UNDEFINED_VARIABLE, place=place, remedy=hint, name=name))
            return self._variables.get(name, "")

        return _VARIABLE.sub(replacement, text)

    def _place(self, event: yaml.Event) -> Place:
        return self._place_of(event.start_mark)

    def _place_of(self, mark: _Mark | None) -> Place:
        return Place(self._file, 1) if mark is None else Place(self._file, mark.line + 1, mark.column + 1)

    def _syntax(self, problem: str, mark: _Mark | None) -> None:
        problem, remedy = next((_SAID[words] for words in _SAID if words in problem), (problem, None))
        problem = f"this is no well-formed YAML: {problem}"
        self.reports.append(report(Code.SYNTAX, place=self._place_of(mark), problem=problem, remedy=remedy))

    def _stop(self, problem: str, event: yaml.Event, remedy: str) -> _StopError:
        self.reports.append(report(Code.SYNTAX, place=self._place(event), problem=problem, remedy=remedy))
        return _StopError()

    def _too_large(self, event: yaml.Event, limit: str) -> _StopError:
        self._report_too_large(self._place(event), limit)
        return _StopError()

    def _report_too_large(
        self, place: Place, limit: str, remedy: str | None = None, *, what: str = "the file"
    ) -> None:
        self.reports.append(report(Code.TOO_LARGE, place=place, remedy=remedy, what=what, limit=limit))


def _spell(character: object) -> str:
    """Write a character that must not be printed; PyYAML gives it as text or as a number."""
    return f"U+{ord(character) if isinstance(character, str) else character:04X}"
