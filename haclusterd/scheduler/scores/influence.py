"""Whether a dependent's preferences count for where its primary goes (Pacemaker Explained, "influence")."""

from haclusterd.scheduler.model.entities import ColocationPair, Resource


def has_influence(colocation: ColocationPair, primary: Resource) -> bool:
    """Tell whether a dependent's preferences may move a primary: always while that is not active.

    The connection of a bundle's container does not move a container that is well where it is.
    """
    if colocation.dependent.is_nesting_allowed and not primary.is_failed and len(primary.active_nodes) == 1:
        return False
    return colocation.has_own_influence or not primary.active_nodes
