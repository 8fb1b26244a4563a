"""Answers about secrets."""

from typing import ClassVar

from haclusterd.model.records import dataclass, field
from haclusterd.verbs.answers.answer import Answer


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret, but not its value."""

    name: str
    used_by: tuple[str, ...]
    """What refers to it, each as `RESOURCE PARAMETER`."""
    author: str
    """Who set it last."""
    set_at: int
    """Epoch ms."""


@dataclass(frozen=True, slots=True)
class SecretTable(Answer):
    """The secrets, without their values."""

    SCHEMA: ClassVar[str] = "haclusterd.secrets/1"
    now: int
    """Of the answer; epoch ms."""
    secrets: tuple[SecretRow, ...]
    cannot_open: tuple[str, ...]
    """Members that cannot open them: what needs one does not start there."""


@dataclass(frozen=True, slots=True)
class SecretValue(Answer):
    """The value of a secret. It is answered on a node's own socket alone, and the history says to whom."""

    SCHEMA: ClassVar[str] = "haclusterd.secret/1"
    name: str
    value: str = field(repr=False)
