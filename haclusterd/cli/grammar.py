"""What a command of `crm` is made of. The tables are in `command_table`; parsing, help and completion all read them."""

from collections.abc import Mapping

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.verbs.words import Option, Parameter


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
    is_guessed: bool = True
    """Whether "did you mean" may lead to it: not where it stops, removes or restores something, or lets it in."""


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
