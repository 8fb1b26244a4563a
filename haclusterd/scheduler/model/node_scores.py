"""Scores of nodes for one resource: with what each is the sum of, and what forbids a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from haclusterd.model.ids import NodeName
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.model.definition import Discovery


class BaseScores:
    """What the nodes are worth to a resource by what is configured of them, and where it may be probed."""

    __slots__ = ("addends", "allowed", "discovery")

    def __init__(self) -> None:
        self.allowed: dict[NodeName, int] = {}
        self.discovery: dict[NodeName, Discovery] = {}
        """Where it is not ALWAYS."""
        self.addends: dict[NodeName, list[tuple[int, str]]] | None = None
        """What each score is the sum of; None where nobody asks."""


class NodeScores:
    """Scores of nodes for one resource, with what forbids a node and, where that is asked for, all addends."""

    __slots__ = ("addends", "allowed", "banned_by")

    def __init__(self) -> None:
        self.allowed: dict[NodeName, int] = {}
        self.banned_by: dict[NodeName, str] = {}
        """What forbids a node, for a person."""
        self.addends: dict[NodeName, list[tuple[int, str]]] | None = None

    def begin(self, base: BaseScores | NodeScores) -> None:
        """Begin with the scores of the stage before."""
        self.allowed = dict(base.allowed)
        if base.addends is not None:
            self.addends = {name: list(items) for name, items in base.addends.items()}
        if isinstance(base, NodeScores) and base.banned_by:
            self.banned_by = dict(base.banned_by)

    def add(self, node: NodeName, value: int, source: str) -> None:
        """Add to a node's score; a node that had none gets exactly this one."""
        known = self.allowed.get(node)
        self.allowed[node] = value if known is None else add(known, value)
        if value <= -INFINITY:
            self.banned_by.setdefault(node, source)
        if self.addends is not None:
            self.addends.setdefault(node, []).append((value, source))

    def ban_all_but(self, nodes: Collection[NodeName], reasons: Mapping[NodeName, str]) -> None:
        """Give all nodes but these -INFINITY, each with its reason; what is banned already keeps its own."""
        if self.addends is not None:
            for node in self.allowed:
                if node not in nodes:
                    self.addends.setdefault(node, []).append((-INFINITY, reasons.get(node, "")))
        kept = {node: self.allowed[node] for node in nodes}
        self.allowed = {**dict.fromkeys(self.allowed, -INFINITY), **kept}
        before = self.banned_by
        self.banned_by = {**reasons, **before}
        for node in nodes:
            if node not in before:
                self.banned_by.pop(node, None)

    def ban_everywhere(self, source: str, nodes: Iterable[NodeName] = ()) -> None:
        """Give all nodes -INFINITY; also those that have no score yet, as far as they are given."""
        for node in {**self.allowed, **dict.fromkeys(nodes)}:
            self.add(node, -INFINITY, source)
