"""Answers about resources: why one runs where it runs, its scores, settings."""

from collections.abc import Mapping
from typing import ClassVar

from haclusterd.model.records import dataclass
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class Addend:
    """One part of a score."""

    score: str
    source: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """How much an instance is to be promoted."""

    score: str
    addends: tuple[Addend, ...]
    to_be_promoted: tuple[str, ...]
    """What would have to change."""


@dataclass(frozen=True, slots=True)
class InstanceInShort:
    """One resource on one node."""

    node: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class ScoreOfNode:
    """What a node is worth to a resource."""

    node: str
    score: str
    is_eligible: bool
    objection: str
    """Why it cannot run there; empty: it can."""
    is_now: bool
    is_next: bool
    addends: tuple[Addend, ...]
    to_win: tuple[str, ...]
    """What would have to change for it to be chosen."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a resource, or an instance of it, runs where it runs."""

    resource: str
    group: str | None
    now_on: tuple[str, ...]
    next_on: str | None
    next_role: str
    """Of what can be promoted; empty: of nothing else."""
    promotion: Promotion | None
    verdict: str
    not_wanted: str
    """Why it is not to run; empty: it is."""
    instances: tuple[InstanceInShort, ...]
    nodes: tuple[ScoreOfNode, ...]
    actions: tuple[str, ...]
    """What the cluster is to do with it."""
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Before:
    """What had happened by a past moment: what made the DC plan, and what it ordered then."""

    at: int
    """Epoch ms."""
    text: str
    reason: str
    """Why it was ordered; empty: it was not."""


@dataclass(frozen=True, slots=True)
class Why(Answer):
    """Why a resource runs where it runs, or why not."""

    SCHEMA: ClassVar[str] = "haclusterd.why/1"
    now: int
    """Of the answer; epoch ms."""
    node: str | None
    """Which was asked about."""
    resources: tuple[Explanation, ...]
    at: int | None = None
    """The past moment that was asked about; epoch ms."""
    version: int | None = None
    """Of the configuration that was in force at that moment."""
    before: tuple[Before, ...] = ()
    """What had led there, oldest first."""


@dataclass(frozen=True, slots=True)
class Scores(Answer):
    """Scores with all their parts."""

    SCHEMA: ClassVar[str] = "haclusterd.scores/1"
    now: int
    """Of the answer; epoch ms."""
    node: str | None
    resources: tuple[Explanation, ...]


@dataclass(frozen=True, slots=True)
class Setting(Answer):
    """Settings of a resource or a node."""

    SCHEMA: ClassVar[str] = "haclusterd.setting/1"
    of: str
    section: str
    values: Mapping[str, str]
    name: str = ""
    """The only one that was asked for; empty: all were."""
