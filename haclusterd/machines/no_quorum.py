"""What a node does with its resources when its lease has ended: `no-quorum-policy` (Pacemaker Explained).

Whatever the policy, nothing can be started without quorum, because an order is a committed command. So `ignore` can
only mean the same as `freeze`. Both leave resources running where they are, which may be started on other nodes as
soon as the node was fenced.
"""

from enum import StrEnum

from haclusterd.model.configuration import Clone, Configuration, contained
from haclusterd.model.ids import ResourceId
from haclusterd.model.properties import ClusterProperties, collective_flag


class LonePolicy(StrEnum):
    """The values of `no-quorum-policy`, as a node that is alone applies them."""

    STOP = "stop"
    FREEZE = "freeze"
    IGNORE = "ignore"
    DEMOTE = "demote"
    FENCE = "fence"

    @property
    def keeps_running(self) -> bool:
        """Whether a node without a lease leaves its resources running."""
        return self in (LonePolicy.FREEZE, LonePolicy.IGNORE)


def lone_policy(configuration: Configuration) -> LonePolicy:
    """Return the policy; an invalid value counts as `stop`."""
    return LonePolicy(ClusterProperties(configuration).text("no-quorum-policy"))


def panics(configuration: Configuration) -> bool:
    """Return whether a node that is lost or fenced by its own CIB is to be reset (`fence-reaction=panic`)."""
    properties = ClusterProperties(configuration)
    return properties.text("fence-reaction") == "panic" and properties.boolean("fencing-enabled")


def promotable_resources(configuration: Configuration) -> frozenset[ResourceId]:
    """Return the promotable primitives: with `demote` they run on, unpromoted."""
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
