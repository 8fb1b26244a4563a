"""How `crm` says something: the words after a command, its options, and from what each is completed."""

from collections.abc import Mapping
from enum import StrEnum

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field


class Completes(StrEnum):
    """From what a word is completed."""

    NOTHING = "nothing"
    NODE = "node"
    RESOURCE = "resource"
    OBJECT = "object"
    """Any id of the configuration."""
    PROPERTY = "property"
    TICKET = "ticket"
    DEVICE = "device"
    VERSION = "version"
    """Of the configuration."""
    TRANSITION = "transition"
    KIND = "kind"
    """Of things that happen."""
    FILE = "file"
    CHOICE = "choice"


class Takes(StrEnum):
    """How many words a parameter takes."""

    ONE = "one"
    MANY = "many"
    """All that are left."""
    REST = "rest"
    """All that are left, options too: a statement of the configuration language."""


FEW = 6
"""So many choices are in a usage line; more are in the words of its help."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One positional argument."""

    name: str
    """Of the verb's argument, or of what `crm` itself does with it: `file` is read, `target` is written."""
    takes: Takes = Takes.ONE
    is_optional: bool = False
    completes: Completes = Completes.NOTHING
    choices: tuple[str, ...] = ()
    is_number: bool = False
    help: str = ""
    grammar: str = ""
    """Of a statement: the words that it is made of, as help writes them."""

    @property
    def label(self) -> str:
        """How help names it: `RESOURCE`, `on|off`."""
        return "|".join(self.choices) if 0 < len(self.choices) <= FEW else self.name.upper()

    @property
    def usage(self) -> str:
        """How help writes it: `RESOURCE`, `[NODE]`, `ID...`."""
        if self.grammar:
            return self.grammar
        word = self.label + ("..." if self.takes is not Takes.ONE else "")
        return f"[{word}]" if self.is_optional else word


class OptionValue(StrEnum):
    """What follows an option."""

    NOTHING = "nothing"
    TEXT = "text"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    flag: str
    """With its dashes."""
    argument: str
    """Of the verb's argument."""
    help: str
    takes: OptionValue = OptionValue.NOTHING
    completes: Completes = Completes.NOTHING
    choices: tuple[str, ...] = ()
    repeats: bool = False
    """It may be given several times, and is a list."""

    @property
    def usage(self) -> str:
        """How help writes it: `--follow`, `--node NODE`, `--format text|json`."""
        if self.takes is OptionValue.NOTHING:
            return self.flag
        if self.choices:
            return f"{self.flag} {'|'.join(self.choices)}"
        value = "NUMBER" if self.takes is OptionValue.INTEGER else _NAMED.get(self.completes, "VALUE")
        return f"{self.flag} {value}"


_NAMED = {Completes.NODE: "NODE", Completes.RESOURCE: "RESOURCE", Completes.KIND: "KIND", Completes.FILE: "PATH"}


@dataclass(frozen=True, slots=True)
class Taken:
    """An argument of the verb that one command takes in another way than the verb's description says; None: as it."""

    name: str
    flag: str | None = None
    """Empty: it is a word, not an option."""
    is_required: bool | None = None
    choices: tuple[str, ...] | None = None
    help: str | None = None
    """Of the option."""
    takes: Takes | None = None
    is_number: bool | None = None
    """Of a word; False: `crm` itself makes a number of what is typed."""
    grammar: str = ""
    """Of a statement: the words that it is made of, as help writes them."""


@dataclass(frozen=True, slots=True)
class Words:
    """One command of `crm` that asks a verb."""

    examples: tuple[str, ...]
    """Each can be typed as it stands."""
    typed: str = ""
    """Level and command; empty: as the verb is named, with dashes."""
    help: str = ""
    """One line; empty: the verb's."""
    takes: "tuple[str | Taken | Parameter | Option, ...] | None" = None
    """Names of the verb's arguments, and what `crm` itself makes something of; None: every argument that is typed."""
    fixed: Mapping[str, Json] = field(default_factory=dict)
    """Arguments that the command always gives."""
    aliases: tuple[str, ...] = ()
    is_statement: bool = False
    """It is a statement of the configuration: in a session it waits for `commit`."""
    is_guessed: bool = True
    """Whether "did you mean" may lead to it: not where it stops, removes or restores something, or lets it in."""
