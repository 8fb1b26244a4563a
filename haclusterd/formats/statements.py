"""What a text asks for, read but not yet put together; crm text and policy YAML both become this.

A script is a list of statements; `assembly` makes a configuration of them. A statement knows where it and its parts
are in the text, and which comment lines are above it.

Where a statement refers to a part of another object, that part is still missing. In its place is a part whose id
(or, of a pair, whose name) begins with a mark that no id can have; `references` puts in what is meant.
"""

from collections.abc import Mapping

from haclusterd.model.access import AclObject
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Constraint,
    FencingLevel,
    NodeEntry,
    Operation,
    Resource,
    Tag,
    Template,
)
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import dataclass, field
from haclusterd.reports.items import Place, ReportItem
from haclusterd.reports.places import Path

REFERENCE = "$id-ref="
"""Before the id that a block, a rule or all operations of a resource refer to."""
PAIR_REFERENCE = "@"
"""Before the id of a pair, and maybe a colon and another name, instead of a pair's name."""


@dataclass(frozen=True, slots=True)
class Define:
    """Make one object."""

    object: NodeEntry | Resource | Constraint | Template | Tag | Alert | AclObject
    place: Place
    places: Mapping[Path, Place] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Pairs that the text gives an id of their own, for references to them; the configuration does not keep the ids."""


@dataclass(frozen=True, slots=True)
class DefineLevels:
    """Say how nodes are fenced, in place of what was said of the same targets."""

    levels: tuple[FencingLevel, ...]
    """Their ids are made when they are added, where they have none."""
    place: Place
    is_for_all_nodes: bool = False
    """The levels name no target: they are for each node."""
    places: Mapping[Path, Place] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeSet:
    """Set pairs in one block of `properties`, `resource_defaults` or `operation_defaults`; others in it stay."""

    section: str
    block: AttributeSet
    place: Place
    has_score: bool = False
    """Whether the text gave a score; if not, an existing block keeps its own."""
    places: Mapping[Path, Place] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddOperation:
    """Add an operation to a primitive; its id is made when it is added."""

    resource: ResourceId
    operation: Operation
    place: Place
    places: Mapping[Path, Place] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


Statement = Define | DefineLevels | MergeSet | AddOperation


@dataclass(frozen=True, slots=True)
class Script:
    """What was read. With an error among the reports, the statements are what remained readable: do not use them."""

    statements: tuple[Statement, ...]
    reports: tuple[ReportItem, ...]
    unread: frozenset[str] | None = None
    """The ids that statements would define which could not be read; None: not known."""
