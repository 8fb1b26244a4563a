"""What the data of a database says on its host's disk, and says on after a loss of power: whose it was last.

Data that was a primary's, and was not shut down, is a primary's still: who starts it without bringing it in order first
takes writes. So it is with PostgreSQL under ocf:heartbeat:pgsqlms (PostgreSQL Automatic Failover), which answers
FAILED_PROMOTED where such data is, and nothing runs.
"""

from haclusterd.model.ids import NodeName, ResourceId


class Databases:
    """The data of all hosts, by whose it is (`truth.data_of`)."""

    def __init__(self) -> None:
        self._primitives: frozenset[ResourceId] = frozenset()
        self._primaries: set[tuple[NodeName, ResourceId]] = set()

    def keep(self, *primitives: str) -> None:
        """Let the data of these primitives remember whose it was."""
        self._primitives = frozenset(map(ResourceId, primitives))

    @property
    def are_kept(self) -> bool:
        """Whether any data remembers."""
        return bool(self._primitives)

    def is_primary(self, node: NodeName, primitive: ResourceId) -> bool:
        """Tell whether data is a primary's, whether or not anything uses it."""
        return (node, primitive) in self._primaries

    def takes_writes(self, node: NodeName, primitive: ResourceId) -> None:
        """An instance is promoted."""
        if primitive in self._primitives:
            self._primaries.add((node, primitive))

    def is_shut_down(self, node: NodeName, primitive: ResourceId) -> None:
        """An instance was demoted or stopped in order."""
        self._primaries.discard((node, primitive))
