"""Where things were written: from a path into the configuration to a place in its text.

A reader notes the place of every object and of the parts that can be wrong; what judges the configuration later
(which has no places) asks for the most exact place known. Paths are made of words: `("resource", "web", "meta",
"target-role")`, `("constraint", "c1")`, `("node", "n1")`, `("properties", "node-timeout")`.
"""

from collections.abc import Mapping

from haclusterd.model.records import dataclass, field
from haclusterd.reports.items import Place

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """Known places by path; a configuration that was not read from text has none."""

    known: Mapping[Path, Place] = field(default_factory=dict)

    def find(self, *path: str) -> Place | None:
        """Return the place of the path, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            place = self.known.get(path[:length])
            if place is not None:
                return place
        return None
