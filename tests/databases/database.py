"""What the bench must know of a database and its agent, whichever cluster manager runs them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from tests.lab.machine import Machine


class Database(ABC):
    """One kind, under one agent."""

    kind: ClassVar[str]
    """As in tests/databases/stores.py."""
    agent: ClassVar[str]
    process: ClassVar[str]
    """What the command line of its main process has, and no other."""
    primitive: ClassVar[str]
    clone: ClassVar[str]

    @abstractmethod
    def obstacle(self) -> str:
        """Say why it cannot run here; empty: it can."""

    @abstractmethod
    def build(self, directory: Path) -> None:
        """Make what all machines begin with, in an empty directory."""

    @abstractmethod
    def equip(self, machine: Machine, disk: Path) -> None:
        """Put it on a machine's disk, which is seen here at this place; say what of it is mounted."""

    @abstractmethod
    def configuration(self) -> str:
        """Return the resources, in the language of crm."""

    @abstractmethod
    def is_ready(self, primary: Machine, copies: int) -> bool:
        """Tell whether that many copies follow the primary, and one may be promoted without loss."""

    @abstractmethod
    def candidates(self, primary: Machine) -> set[str]:
        """Return the nodes that may be promoted without loss."""

    @abstractmethod
    def rejoin(self, machine: Machine) -> None:
        """Do what an administrator does with a node that was primary: its data becomes a copy again."""
