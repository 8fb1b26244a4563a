"""What the comparison may draw its CIBs from: the common generator, and rare themes, by name or in groups."""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from xml.etree.ElementTree import Element

from haclusterd.model.records import dataclass
from tests.fuzzing import rare_nodes, rare_resources
from tests.fuzzing.drafts import Event

COMMON = "common"


@dataclass(frozen=True, slots=True)
class Group:
    """Rare themes, and what may happen to their clusters."""

    themes: Mapping[str, Callable[[Random], Element]]
    events: tuple[Event, ...]


GROUPS = {
    "nodes": Group(rare_nodes.THEMES, rare_nodes.EVENTS),
    "resources": Group(rare_resources.THEMES, rare_resources.EVENTS),
}


def named(words: Iterable[str]) -> list[str]:
    """Return the themes that words stand for: `common`, a theme, a group of them. Raise KeyError for another word."""
    known = {COMMON: [COMMON], **{name: list(group.themes) for name, group in GROUPS.items()}}
    known |= {theme: [theme] for group in GROUPS.values() for theme in group.themes}
    return [theme for word in words for theme in known[word]]


def group_of(theme: str) -> Group:
    return next(group for group in GROUPS.values() if theme in group.themes)
