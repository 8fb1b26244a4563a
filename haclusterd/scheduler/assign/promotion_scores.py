"""How much the instances of a promotable clone want to be promoted, as their agents say in node attributes.

Source: Pacemaker Explained, "Promotable clones": `crm_attribute --promotion` sets `master-NAME` on the node. A score is
an instance's if that instance is, or could be, the one on the node: an anonymous instance takes it where it is active,
or where no instance is and one was looked for.
"""

from functools import reduce

from haclusterd.model.scores import add
from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.node_values import attributes_of_place
from haclusterd.scheduler.model.readings import score as read_score

PROMOTION_SCORE = "promotion score on "
"""How the words for a promotion score begin."""


def add_promotion_scores(clone: Resource, placing: Placing) -> None:
    """Let each instance prefer nodes where it would be promoted, and be as important as its best score."""
    for instance in clone.children:
        for name in list(instance.assignment.allowed):
            if name not in placing.available:
                continue
            found = promotion_score(instance, placing.nodes[name], placing)
            if found is not None and found > 0:
                instance.assignment.add(name, found, f"{PROMOTION_SCORE}{name}")
                instance.assignment.priority = max(instance.assignment.priority, found)


def promotion_score(instance: Resource, node: Node, placing: Placing) -> int | None:
    """Return an instance's promotion score on a node, of a group the sum of its members'; None: there is none.

    Of members that say INFINITY and -INFINITY the latter counts, as of all scores; Pacemaker (2.1.5 and 3.0.0) adds
    them as numbers, also to more than INFINITY, and so do plans for its CIBs.
    """
    if instance.variant is Variant.GROUP:
        members = (promotion_score(member, node, placing) for member in instance.children)
        scores = [each for each in members if each is not None]
        total = sum(scores) if placing.settings.options.is_pacemaker_compatible else reduce(add, scores, 0)
        return total if scores else None
    if not _is_its_own(instance, node):
        return None
    attributes = attributes_of_place(node, instance)
    text = attributes.get(f"master-{instance.found.history_id or instance.id}")
    if text is None and not instance.definition.is_unique:
        text = attributes.get(f"master-{instance.base_id}")
    return read_score(text, 0) if text is not None else None


def _is_its_own(instance: Resource, node: Node) -> bool:
    """Whether the score that a node has counts for this instance."""
    if instance.assignment.allowed.get(node.name, -1) < 0:
        return False
    clone = instance.top
    if clone.is_anonymous_clone:
        twins = [leaf for leaf in clone.leaves() if leaf.base_id == instance.base_id]
        active = [twin for twin in twins if node in twin.found.active_nodes]
        if instance in active:
            return True
        if not active and any(node.name in twin.found.known_on for twin in twins):
            return True
    if not instance.found.active_nodes and not instance.found.known_on:
        return True
    return node.name in instance.found.known_on or node in instance.found.active_nodes
