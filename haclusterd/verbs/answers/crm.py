"""Answers of `crm` itself: of new clusters' files, and of shadow CIBs."""

from dataclasses import dataclass
from typing import ClassVar

from haclusterd.verbs.answers.answer import Answer, absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Answer):
    """Files were made with which nodes start."""

    SCHEMA: ClassVar[str] = "haclusterd.setup/1"
    name: str
    """Of the cluster."""
    nodes: tuple[str, ...]
    directory: str
    is_started: bool | None = absent()
    """Of `init` and `join`."""
    index: int | None = absent()
    """Of `recover`: the newest entry of the log that is in it."""
    version: int | None = absent()
    """Of `recover` and `restore`: of the configuration."""
    uncommitted: int | None = absent()
    """Of `recover`: entries that were kept and may never have been acknowledged."""
    files: tuple[str, ...]
    """In words."""
    next_steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shadow:
    """A copy of the state, to try changes on."""

    name: str
    version: int
    """Of which it is a copy; 0: of no cluster's."""
    is_used: bool


@dataclass(frozen=True, slots=True)
class ShownShadows(Answer):
    """The shadow CIBs of this machine."""

    SCHEMA: ClassVar[str] = "haclusterd.shadows/1"
    shadows: tuple[Shadow, ...]
