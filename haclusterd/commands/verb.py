"""What a verb is: a name, a pure function, a permission, and the schema of its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from haclusterd.commands.arguments import Argument, Arguments
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome

VerbFunction = Callable[[Context, Arguments], Outcome]


class Permission(StrEnum):
    """What a caller must be allowed to; each includes those before it."""

    READ = "read"
    OPERATE = "operate"
    """Move, start, stop, standby: what is undone as easily as it is done."""
    ADMINISTER = "administer"
    """Change the configuration; fence."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing an administrator can do."""

    name: str
    """`level.verb`."""
    function: VerbFunction
    permission: Permission
    help: str
    """One line."""
    arguments: tuple[Argument, ...] = ()
