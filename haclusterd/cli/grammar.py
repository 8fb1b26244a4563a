"""What a command of `crm` is made of. The tables are in `command_table`; parsing, help and completion all read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from haclusterd.model.json_value import Json


class Completes(StrEnum):
    """From what a word is completed."""

    NOTHING = "nothing"
    NODE = "node"
    RESOURCE = "resource"
    OBJECT = "object"
    """Any id of the configuration."""
    PROPERTY = "property"
    TICKET = "ticket"
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One positional argument."""

    name: str
    """Of the verb's argument."""
    takes: Takes = Takes.ONE
    is_optional: bool = False
    completes: Completes = Completes.NOTHING
    choices: tuple[str, ...] = ()
    is_number: bool = False

    @property
    def usage(self) -> str:
        """How help writes it: `RESOURCE`, `[NODE]`, `ID...`."""
        word = "|".join(self.choices) if self.choices else self.name.upper()
        word += "..." if self.takes is not Takes.ONE else ""
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


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a level."""

    name: str
    help: str
    """One line."""
    verb: str = ""
    """Whom to ask; empty: `crm` does it by itself."""
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    fixed: Mapping[str, Json] = field(default_factory=dict)
    """Arguments that the command always gives."""
    is_statement: bool = False
    """It is a statement of the configuration: in a session it waits for `commit`."""


@dataclass(frozen=True, slots=True)
class Level:
    """A place where commands are typed."""

    name: str
    help: str
    commands: tuple[Command, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command with its arguments, as typed."""

    level: str
    command: Command
    arguments: Mapping[str, Json]
    words: tuple[str, ...] = ()
    """The command's words as typed, the command's name first."""
