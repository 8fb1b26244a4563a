"""What a node does with its resources when its lease has ended, as `no-quorum-policy` says (Pacemaker Explained).

Nothing can be started without quorum, whatever the policy: an order is a committed command. So `ignore` can only mean
what `freeze` does. Both leave resources running where they may be started on other nodes as soon as the node was
fenced.
"""

from enum import StrEnum

from haclusterd.model.configuration import Clone, Configuration, contained
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import ClusterProperties, collective_flag


class LonePolicy(StrEnum):
    """The values of `no-quorum-policy`, for a node alone."""

    STOP = "stop"
    FREEZE = "freeze"
    IGNORE = "ignore"
    DEMOTE = "demote"
    FENCE = "fence"

    @property
    def keeps_running(self) -> bool:
        """Whether a node without a lease leaves alone what it runs."""
        return self in (LonePolicy.FREEZE, LonePolicy.IGNORE)


def lone_policy(configuration: Configuration) -> LonePolicy:
    """Read the policy; one that is no policy counts as `stop`."""
    return LonePolicy(ClusterProperties(configuration).text("no-quorum-policy"))


def panics(configuration: Configuration) -> bool:
    """Tell whether a node that finds itself lost, or recorded as fenced, is to be reset (`fence-reaction=panic`)."""
    properties = ClusterProperties(configuration)
    return properties.text("fence-reaction") == "panic" and properties.boolean("fencing-enabled")


def promotable_resources(configuration: Configuration) -> frozenset[ResourceId]:
    """Return the primitives whose instances can be promoted: with `demote` they run on, unpromoted."""
    found: set[ResourceId] = set()
    for clone in configuration.resources.values():
        if isinstance(clone, Clone) and collective_flag(configuration, clone, "promotable"):
            pending = list(contained(clone))
            while pending:
                name = pending.pop()
                member = configuration.resources.get(name)
                found.add(name)
                pending.extend(contained(member) if member is not None else ())
    return frozenset(found)
