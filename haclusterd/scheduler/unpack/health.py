"""Phase: the health of nodes, as agents publish it, turned into scores that every resource has for a node.

Source: Pacemaker Explained, "Tracking Node Health". Each node attribute whose name begins with `#health` is one vote:
`red`, `yellow`, `green` or a number; `node-health-strategy` says what the colours are worth. The sum counts like a
location constraint of every resource at the top; a resource with `allow-unhealthy-nodes` ignores what forbids.
"""

from collections.abc import Mapping

from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY, add, found_in_pacemaker, parse
from haclusterd.scheduler.model.entities import Node
from haclusterd.scheduler.model.readings import pacemakers_score
from haclusterd.scheduler.model.readings import score as read_score
from haclusterd.scheduler.model.settings import Settings

PREFIX = "#health"
_COLOURS = ("red", "yellow", "green")
_FIXED: Mapping[str, Mapping[str, int]] = {
    "migrate-on-red": {"red": -INFINITY, "yellow": 0, "green": 0},
    "only-green": {"red": -INFINITY, "yellow": -INFINITY, "green": 0},
}


@dataclass(frozen=True, slots=True)
class HealthStrategy:
    """What the colours are worth; `base` is added to every node."""

    base: int
    colours: Mapping[str, int]
    is_pacemakers: bool = False
    """Whether numbers are read as in a CIB of Pacemaker, where `inf` is none."""


def unpack_health_strategy(settings: Settings) -> HealthStrategy | None:
    """Read the properties; None when health does not count."""
    properties = settings.properties
    name = properties.text("node-health-strategy")
    if name == "none":
        return None
    is_pacemakers = settings.options.is_pacemaker_compatible
    fixed = _FIXED.get(name)
    if fixed is not None:
        return HealthStrategy(0, fixed, is_pacemakers)
    colours = {colour: _score(settings, f"node-health-{colour}") for colour in _COLOURS}
    base = _score(settings, "node-health-base") if name == "progressive" else 0
    return HealthStrategy(base, colours, is_pacemakers)


def _score(settings: Settings, name: str) -> int:
    """Read a property that is a score; in a CIB of Pacemaker that with which its value begins, else the default.

    Seen with crm_simulate 2.1.5: of `7.5` that is 7, and of `inf` nothing.
    """
    written = settings.properties.written.get(name)
    if written is None or not settings.options.is_pacemaker_compatible:
        return parse(settings.properties.text(name))
    found = found_in_pacemaker(written)
    return parse(settings.properties.default(name)) if found is None else found


def judge_health(nodes: tuple[Node, ...], strategy: HealthStrategy | None) -> None:
    """Give every node its health; 0 where nothing is known or nothing counts."""
    if strategy is not None:
        for node in nodes:
            node.health = _health(node, strategy)


def _health(node: Node, strategy: HealthStrategy) -> int:
    total = strategy.base
    for name, value in node.attributes.items():
        if name.startswith(PREFIX):
            total = add(total, _worth(value, strategy))
    return total


def _worth(value: str, strategy: HealthStrategy) -> int:
    colour = strategy.colours.get(value.strip().lower())
    if colour is not None:
        return colour
    return pacemakers_score(value, 0) if strategy.is_pacemakers else read_score(value, 0)


def health_words(node: Node) -> str:
    """Say which attributes make a node's health, for a person."""
    votes = sorted(f"{name}={value}" for name, value in node.attributes.items() if name.startswith(PREFIX))
    return f"health of {node.name}: {', '.join(votes)}" if votes else f"health of {node.name}"
