"""Names of things: each kind of name is a type of its own, so that one is never passed for another."""

import re
from typing import NewType

from haclusterd.model.records import dataclass

NodeName = NewType("NodeName", str)
ResourceId = NewType("ResourceId", str)
ConstraintId = NewType("ConstraintId", str)
OrderKey = NewType("OrderKey", str)
"""Identity of one order; made by the DC that issues it, unique for ever."""
FenceKey = NewType("FenceKey", str)
"""Identity of one fence order."""
RequestId = NewType("RequestId", str)
"""Identity of one proposal; a repeated proposal carries the same id and has one effect."""
Term = NewType("Term", int)
"""Raft term (Raft §5.1)."""

NCNAME = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*\Z")
"""What an id may look like: the subset of XML NCName that CIB ids use."""

NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}\Z")

CONFIGURED_NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}\Z")
"""What a configuration may call a node: some clouds give longer names than a member of a cluster may have."""



def base_of(name: str) -> ResourceId:
    """Return the primitive of an instance of a unique clone: of `db:1`, `db`; any other name is itself."""
    return ResourceId(name.partition(":")[0])


@dataclass(frozen=True, slots=True, order=True)
class Incarnation:
    """One run of one daemon: the boot it runs in, and 64 random bits drawn at its start.

    Two incarnations with different boot ids prove that everything of the older one is dead; with equal boot ids
    the older one's agents and services may live on.
    """

    boot_id: str
    token: str
    """16 hexadecimal digits."""

    def __str__(self) -> str:
        return f"{self.boot_id}:{self.token}"

    @staticmethod
    def parse(text: str) -> "Incarnation":
        """Read what `str()` wrote; raise ValueError otherwise."""
        boot_id, _, token = text.rpartition(":")
        if not boot_id or len(token) != 16:
            raise ValueError(f"not an incarnation: {text!r}")
        return Incarnation(boot_id, token)


RUN_HERE = ("lsb", "ocf", "service", "stonith", "systemd")
"""The classes of agents that a node can run; a resource of another one is refused by name."""
UNITS = frozenset({"lsb", "service", "systemd"})
"""Those of which the agent's name alone says what is run: they take no parameters."""


@dataclass(frozen=True, slots=True, order=True)
class AgentReference:
    """Which agent manages a resource: class, provider (ocf only) and type, as in `ocf:heartbeat:IPaddr2`."""

    standard: str
    provider: str | None
    type: str

    def __str__(self) -> str:
        return ":".join(part for part in (self.standard, self.provider, self.type) if part)

    @staticmethod
    def parse(text: str) -> "AgentReference":
        """Read `class:provider:type` or `class:type`; raise ValueError otherwise."""
        parts = text.split(":")
        if len(parts) == 3 and all(parts):
            return AgentReference(parts[0], parts[1], parts[2])
        if len(parts) == 2 and all(parts):
            return AgentReference(parts[0], None, parts[1])
        raise ValueError(f"not an agent: {text!r}")
