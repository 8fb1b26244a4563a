"""What completion offers, and of whom it asks names."""

from collections.abc import Sequence
from typing import Protocol

from haclusterd.cli.render.fields import Fields
from haclusterd.model.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Offer:
    """One word that may come next."""

    word: str
    """As it is typed; one that ends in `=`, or in the dot of a path, continues."""
    help: str = ""
    """One line."""

    @property
    def continues(self) -> bool:
        """Whether no blank comes after it."""
        return self.word.endswith("=") or (self.word.endswith(".") and self.word.strip(".") != "")


class Source(Protocol):
    """What is known beside the command table; everything is empty when nobody can be asked."""

    def names(self, kind: str) -> Sequence[str]:
        """Return the names of one kind: node, resource, object, agent, ticket, version, transition."""

    def description(self, agent: str) -> Fields:
        """Return what an agent says of itself (schema `haclusterd.agent/1`)."""

    def agent_of(self, resource: str) -> str:
        """Return the agent of a primitive or template."""
