"""Whether a dependent's preferences count for where its primary goes (Pacemaker Explained, "influence")."""

from haclusterd.scheduler.model.entities import ColocationPair, Resource


def has_influence(colocation: ColocationPair, primary: Resource) -> bool:
    """Tell whether a dependent's preferences may move a primary: always while that is not active.

    The connection of a bundle's container does not move a container that is well where it is.
    """
    found = primary.found
    if colocation.dependent.definition.is_nesting_allowed and not found.is_failed and len(found.active_nodes) == 1:
        return False
    return colocation.has_own_influence or not found.active_nodes
