"""Reading one statement, token by token: what is expected next, and the reports when it is not there.

`RefusedError` ends the reading of one statement and never leaves `formats.crm.parser`; faults that do not hinder going
on (a bad value among good ones) are only noted, so that one statement can report several.
"""

from collections.abc import Callable
from typing import TypeVar

from haclusterd.formats.crm.tokens import Line, Token
from haclusterd.model.ids import CONFIGURED_NODE_NAME, NCNAME
from haclusterd.model.words import ATTRIBUTE_NAME, bad_character
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import Place, ReportItem, report_with
from haclusterd.reports.places import Path

_Read = TypeVar("_Read")


class RefusedError(Exception):
    """The statement cannot be read any further; its reports say why."""


class Cursor:
    """Where the reading of one statement stands."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.construct = line.tokens[0].text.lower()
        self.reports: list[ReportItem] = []
        self.places: dict[Path, Place] = {}
        self.pairs: dict[str, tuple[str, str]] = {}
        """Pairs with ids of their own."""
        self._next = 1

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are taken."""
        return self._next >= len(self.line.tokens)

    def peek(self) -> Token | None:
        """Return the next token without taking it."""
        return None if self.is_at_end else self.line.tokens[self._next]

    def take(self, expected: str) -> Token:
        """Return the next token; refuse the statement when there is none."""
        token = self.peek()
        if token is None:
            raise self.expected(expected)
        self._next += 1
        return token

    def back(self) -> None:
        """Give the last token back."""
        self._next -= 1

    def mark(self, *path: str, at: Token) -> None:
        """Note where a part of the object stands."""
        self.places[path] = at.place

    def note(
        self,
        code: Code,
        at: Token,
        /,
        *,
        remedy: str | None = None,
        severity: Severity | None = None,
        **parameters: object,
    ) -> None:
        """Report a fault and continue."""
        self.reports.append(report_with(code, parameters, place=at.place, remedy=remedy, severity=severity))

    def refuse(self, code: Code, at: Token, /, *, remedy: str | None = None, **parameters: object) -> RefusedError:
        """Report a fault; the caller raises what this returns."""
        self.reports.append(report_with(code, parameters, place=at.place, remedy=remedy))
        return RefusedError()

    def expected(self, what: str) -> RefusedError:
        """Report that something else was expected here; the caller raises what this returns."""
        token = self.peek()
        found = token.text if token else "end of the statement"
        at = token or self.line.tokens[-1]
        return self.refuse(Code.EXPECTED, at, construct=self.construct, expected=what, found=found)

    def not_yet(self, what: str, at: Token, remedy: str | None = None) -> RefusedError:
        """Report a construct of the language that cannot be used yet; the caller raises what this returns."""
        return self.refuse(Code.NOT_YET, at, remedy=remedy, construct=what)

    def id(self, expected: str = "an id") -> str:
        """Take an id."""
        token = self.take(expected)
        if not NCNAME.match(token.text):
            raise self.refuse(Code.BAD_ID, token, id=token.text)
        return token.text

    def node_name(self) -> str:
        """Take a node's name."""
        token = self.take("a node name")
        self.check_node_name(token.text, token)
        return token.text

    def check_node_name(self, name: str, at: Token) -> None:
        """Refuse what cannot be a node's name."""
        if not CONFIGURED_NODE_NAME.match(name):
            remedy = "at most 255 letters, digits, '.', '-' and '_'"
            raise self.refuse(Code.BAD_ID, at, remedy=remedy, id=name)

    def value(self, name: str, text: str, at: Token, read: Callable[[str], _Read], otherwise: _Read) -> _Read:
        """Read a typed value; note a fault and return `otherwise` when it is none."""
        try:
            return read(text)
        except ValueError as error:
            self.note(Code.BAD_VALUE, at, name=name, problem=error)
            return otherwise

    def pair(self, token: Token) -> tuple[str, str] | None:
        """Split `name=value`; None when the token is no pair. A bad name or character is noted."""
        name, equals, value = token.text.partition("=")
        if not equals:
            return None
        if not ATTRIBUTE_NAME.match(name):
            self.note(Code.BAD_VALUE, token, name="attribute name", problem=f"{name!r} cannot be a name")
        character = bad_character(value)
        if character:
            self.note(Code.BAD_CHARACTER, token, name=name, character=character)
        return name, value

    def end(self) -> None:
        """Refuse the statement when anything is left."""
        token = self.peek()
        if token is not None:
            raise self.refuse(Code.UNEXPECTED, token, construct=self.construct, found=token.text)
