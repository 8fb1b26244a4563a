"""Arguments of verbs: their schema, and the check of what came over a socket.

Invariant: a verb is never called with an unknown, missing or mistyped argument; every objection is reported at once, of
unknown arguments FAULTS_MAX: what each was meant to be takes longer to find than to send.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.items import FAULTS_MAX, ReportItem, report
from haclusterd.verbs.words import Completes

MAX_TEXT_LENGTH = 4 * 1024 * 1024
"""Of a whole configuration given as text."""
MAX_WORD_LENGTH = 4096
MAX_WORDS = 10_000
MAX_SHOWN = 80
"""Of a wrong word, in a message."""


class Kind(StrEnum):
    """What an argument is."""

    WORD = "word"
    """One line: an id, a name, a value."""
    WORDS = "words"
    TEXT = "text"
    """A whole document."""
    FLAG = "flag"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb."""

    name: str
    kind: Kind
    doc: str
    is_required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int = 0
    """Of an integer."""
    maximum: int = 2**53
    """Of an integer."""
    longest: int = MAX_TEXT_LENGTH
    """Of a text, in characters."""
    flag: str = ""
    """The option by which `crm` takes it, with its dashes; empty: it is a word at its place."""
    completes: Completes = Completes.NOTHING
    is_typed: bool = True
    """Whether a person types it at all: no whole text is."""


Value = str | int | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """Checked arguments. Asking for an argument that the schema does not have is a programmer's error."""

    values: Mapping[str, Value | None] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """Return a word or text; empty when it was not given."""
        value = self.values[name]
        assert value is None or isinstance(value, str)
        return value or ""

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words; empty when it was not given."""
        value = self.values[name]
        assert value is None or isinstance(value, tuple)
        return value or ()

    def flag(self, name: str) -> bool:
        """Return a flag; False when it was not given."""
        value = self.values[name]
        assert value is None or isinstance(value, bool)
        return bool(value)

    def integer(self, name: str, default: int) -> int:
        """Return a number."""
        value = self.values[name]
        assert value is None or (isinstance(value, int) and not isinstance(value, bool))
        return default if value is None else value


def check(
    verb: str, schema: Sequence[Argument], given: Mapping[str, Json]
) -> tuple[Arguments, tuple[ReportItem, ...]]:
    """Check what was given; the arguments are usable only when there are no reports."""
    names = [argument.name for argument in schema]
    unknown = [name for name in given if name not in names]
    reports = [_unknown(verb, name[:MAX_SHOWN], names) for name in unknown[:FAULTS_MAX]]
    if len(unknown) > FAULTS_MAX:
        reports.append(report(Code.MORE_FAULTS, limit=FAULTS_MAX))
    values: dict[str, Value | None] = {}
    for argument in schema:
        value = given.get(argument.name)
        if value is None:
            values[argument.name] = None
            if argument.is_required:
                reports.append(report(Code.MISSING_ARGUMENT, verb=verb, name=argument.name, meaning=argument.doc))
            continue
        checked = _checked(argument, value)
        if isinstance(checked, ReportItem):
            reports.append(checked)
        else:
            values[argument.name] = checked
    return Arguments(values), tuple(reports)


def _unknown(verb: str, name: str, known: Sequence[str]) -> ReportItem:
    from haclusterd.reports.suggestions import did_you_mean

    return report(Code.UNKNOWN_ARGUMENT, verb=verb, name=repr(name), remedy=did_you_mean(name, known))


def _checked(argument: Argument, value: Json) -> Value | ReportItem:
    objection = _objection(argument, value)
    if objection is not None:
        return report(Code.BAD_ARGUMENT, name=argument.name, problem=objection)
    if argument.kind is Kind.WORDS:
        assert isinstance(value, Sequence)
        return tuple(str(word) for word in value)
    assert isinstance(value, str | int)
    return value


def _objection(argument: Argument, value: Json) -> str | None:
    match argument.kind:
        case Kind.FLAG:
            return None if isinstance(value, bool) else "must be true or false"
        case Kind.INTEGER:
            return _objection_to_integer(argument, value)
        case Kind.WORDS:
            return _objection_to_words(argument, value)
        case Kind.TEXT:
            is_fine = isinstance(value, str) and len(value) <= argument.longest
            return None if is_fine else f"must be a text of at most {argument.longest // 1024 // 1024} MiB"
        case Kind.WORD:
            return _objection_to_word(argument, value)


def _objection_to_integer(argument: Argument, value: Json) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "must be a whole number"
    if not argument.minimum <= value <= argument.maximum:
        return f"must be from {argument.minimum} to {argument.maximum}"
    return None


def _objection_to_words(argument: Argument, value: Json) -> str | None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return "must be a list of words"
    if argument.is_required and not value:
        return f"must not be empty: {argument.doc}"
    if len(value) > MAX_WORDS:
        return f"has more than {MAX_WORDS} words"
    return next(filter(None, (_objection_to_word(argument, word) for word in value)), None)


def _objection_to_word(argument: Argument, value: Json) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    if not value and argument.is_required:
        return f"must not be empty: {argument.doc}"
    if len(value) > MAX_WORD_LENGTH:
        return f"is longer than {MAX_WORD_LENGTH} characters"
    if any(not character.isprintable() for character in value):
        return "contains unprintable characters"
    if argument.choices and value not in argument.choices:
        return f"{value[:MAX_SHOWN]!r} is not one of: {', '.join(argument.choices)}"
    return None
