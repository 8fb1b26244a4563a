"""What a text asks for, read but not yet put together; crm text and policy YAML both become this.

A script is a list of statements; `assembly` makes a configuration of them. A statement knows where it and its parts
stand in the text, and which comment lines stand above it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from haclusterd.model.configuration import AttributeSet, Constraint, NodeEntry, Operation, Resource
from haclusterd.model.ids import ResourceId
from haclusterd.reports.items import Place, ReportItem
from haclusterd.reports.places import Path


@dataclass(frozen=True, slots=True)
class Define:
    """Make one object."""

    object: NodeEntry | Resource | Constraint
    place: Place
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


Statement = Define | MergeSet | AddOperation


@dataclass(frozen=True, slots=True)
class Script:
    """What was read. With an error among the reports, the statements are what remained readable: do not use them."""

    statements: tuple[Statement, ...]
    reports: tuple[ReportItem, ...]
