"""What agents say of a node's health, for people (Pacemaker Explained, "Tracking Node Health").

It is shown whatever `node-health-strategy` makes of it: an administrator wants to know that a disk is full also where
nothing follows from it.
"""

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import effective
from haclusterd.model.ids import NodeName

PREFIX = "#health"


def votes(cib: Cib, node: NodeName, *colours: str) -> tuple[str, ...]:
    """Return the votes for a node's health that have one of the colours, as `#health-disk=red`."""
    entry, known = cib.configuration.nodes.get(node), cib.status.nodes.get(node)
    found = {**({} if entry is None else effective(entry.attributes)), **({} if known is None else known.attributes)}
    return tuple(
        f"{name}={value}"
        for name, value in sorted(found.items())
        if name.startswith(PREFIX) and value.strip().lower() in colours
    )
