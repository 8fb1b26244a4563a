"""What a verb is: a name, a permission, its cost, the schema of its arguments, and the words by which `crm` asks it."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass
from haclusterd.verbs.arguments import Argument
from haclusterd.verbs.words import Words


class Permission(StrEnum):
    """What a caller must be allowed to; each includes those before it."""

    READ = "read"
    OPERATE = "operate"
    """Move, start, stop, standby: what is undone as easily as it is done, and names neither agents nor parameters."""
    ADMINISTER = "administer"
    """Change the configuration; fence; see secrets. An agent runs as root: who names one is root on every node."""

    @property
    def rank(self) -> int:
        """Its place among them."""
        return tuple(Permission).index(self)

    def covers(self, needed: "Permission") -> bool:
        """Tell whether it includes another."""
        return self.rank >= needed.rank


class Cost(StrEnum):
    """How long a verb takes, which decides where it is run; docs/design/0010-requests.md, "Where a verb is run"."""

    LIGHT = "light"
    """A few milliseconds at most, however large the cluster is."""
    WHOLE = "whole"
    """Grows with the configuration and the status: it shows, judges or changes them as a whole."""
    LONG = "long"
    """Asks the scheduler, reads the history, or writes the whole state."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing an administrator can do."""

    name: str
    """`level.verb`."""
    permission: Permission
    """The least with which it may be asked."""
    help: str
    """One line."""
    arguments: tuple[Argument, ...] = ()
    words: tuple[Words, ...] = ()
    """The commands of `crm` that ask it; none: programs alone ask it."""
    answers: tuple[str, ...] = ()
    """What it may answer, by the names in `answers/`: `nodes` is `haclusterd.nodes/1`; none: reports say it all.
    What is asked for with `dry_run`, and would change something, is answered with `preview`."""
    cost: Cost | Callable[[Mapping[str, Json]], Cost] = Cost.WHOLE
    """Or what tells it from the arguments, which have not been checked yet."""
    fences: Callable[[Mapping[str, Json]], bool] = lambda _: False
    """Whether these arguments, which have not been checked yet, need the permission to administer."""
    only_asks: Callable[[Mapping[str, Json]], bool] = lambda _: False
    """Whether these arguments, which have not been checked yet, ask a question: then the permission to read is enough,
    and nothing may be proposed."""
    only_tells: bool = False
    """Whether it changes nothing although not everybody may ask it."""
    waits: bool = False
    """Whether it is answered only when something happens."""

    @property
    def may_change(self) -> bool:
        """Whether it may propose something."""
        return self.permission is not Permission.READ and not self.only_tells

    def permission_for(self, arguments: Mapping[str, Json]) -> Permission:
        """Return what these arguments need; secrets (passwords of fence devices) are for those who may set them."""
        if arguments.get("secrets") or self.fences(arguments):
            return Permission.ADMINISTER
        return Permission.READ if self.only_asks(arguments) else self.permission

    def cost_of(self, arguments: Mapping[str, Json]) -> Cost:
        """Return what running it with these arguments costs."""
        return self.cost if isinstance(self.cost, Cost) else self.cost(arguments)

    def is_soon_answered(self, arguments: Mapping[str, Json]) -> bool:
        """Tell whether an answer with these arguments, which have not been checked yet, takes no long work or wait."""
        return not self.waits and self.cost_of(arguments) is not Cost.LONG


@dataclass(frozen=True, slots=True)
class Family:
    """The verbs of one level of `crm`, in the order in which help names them."""

    level: str
    """Its name; empty: of no level."""
    help: str
    """One line, of the level."""
    verbs: tuple[Verb, ...]
    aliases: tuple[str, ...] = ()
    """Of the level."""
