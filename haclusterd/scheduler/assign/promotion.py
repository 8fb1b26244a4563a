"""Which instances of a promotable clone are promoted.

Source: Pacemaker Explained, "Promotable clones". The instances that have a node are put into the order of their
promotion scores, with what location constraints, colocations and tickets say of the promoted role; the first ones that
qualify are promoted, `promoted-max` in all and `promoted-node-max` on a node.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cmp_to_key

from haclusterd.model.activity import known_promoted, possibly_promoted
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY, add
from haclusterd.scheduler.assign.colocation_effects import ColocationEffects, add_to_promotion
from haclusterd.scheduler.assign.instance_order import InstanceOrder, has_failed
from haclusterd.scheduler.assign.neighbour_scores import add_scores_of_dependents
from haclusterd.scheduler.assign.placing import Placing
from haclusterd.scheduler.assign.promotion_scores import PROMOTION_SCORE, promotion_score
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.settings import NoQuorumPolicy
from haclusterd.scheduler.scores.colocation_lists import this_with, with_this
from haclusterd.scheduler.unpack.found_state import take_as_unpromoted


def choose_roles(clone: Resource, placing: Placing, effects: ColocationEffects) -> None:
    """Give every instance its next role."""
    clone.assignment.is_choosing_roles = True
    clone.assignment.counts = {}
    for instance in clone.children:
        _weigh(clone, instance, placing, effects)
    replaced = _replaced(clone, placing)
    _sort(clone, placing, replaced)
    out_of_hand = _promoted_out_of_hand(clone)
    promoted = len(out_of_hand)
    for instance in clone.children:
        node = instance.place()
        is_counted = node is not None and (instance.id, node.name) in out_of_hand
        is_wanted = is_counted or promoted < clone.definition.promoted_max or not clone.is_managed
        if is_wanted and instance.id not in replaced and _can_be_promoted(clone, instance, placing):
            assert node is not None
            name = node.name
            clone.assignment.counts[name] = clone.assignment.counts.get(name, 0) + 1
            _promote(instance)
            promoted += not is_counted
        else:
            _leave(instance)


def _promoted_out_of_hand(clone: Resource) -> set[tuple[ResourceId, NodeName]]:
    """Return the instances that may stay promoted on a lost node which this graph does not fence, and these nodes.

    Nothing can fence it, or its daemon left while the instance was unmanaged (safety.md §4, §5).
    """
    return {
        (instance.id, node.name)
        for instance in clone.children
        for leaf in instance.leaves()
        for node in leaf.found.active_nodes
        if _is_out_of_hand(node) and possibly_promoted(node.status, leaf.recorded_as)
    }


def _is_out_of_hand(node: Node) -> bool:
    return node.is_beyond_reach or (node.status.has_detached and not node.is_unclean)


def _weigh(clone: Resource, instance: Resource, placing: Placing, effects: ColocationEffects) -> None:
    """Work out an instance's priority for promotion."""
    if instance.present_role is Role.STARTED:
        take_as_unpromoted(instance)
    assignment = instance.assignment
    node = instance.place()
    assignment.promotion_addends = []
    if node is not None:
        _begin(instance, node, placing)
        for location in (*instance.scores.locations, *clone.scores.locations):
            if location.role is Role.PROMOTED and node.name in location.scores:
                add_to_promotion(instance, location.scores[node.name], location.id)
        for colocation in this_with(instance):
            effects.apply(instance, colocation.primary, colocation)
    assignment.promotion_priority = INFINITY if assignment.next_role is Role.PROMOTED else assignment.priority


def _begin(instance: Resource, node: Node, placing: Placing) -> None:
    wanted = _wanted_role(instance)
    if wanted in (Role.STARTED, Role.UNKNOWN):
        score = promotion_score(instance, node, placing)
        instance.assignment.priority = 0
        add_to_promotion(instance, -1 if score is None else score, _score_words(score, node))
        if score is not None and score > INFINITY:  # the sum of a group's members in a plan for a CIB of Pacemaker
            instance.assignment.priority = score
    elif wanted is not Role.PROMOTED:
        instance.assignment.priority = 0
        add_to_promotion(instance, -INFINITY, f"target-role={wanted}")


def _wanted_role(instance: Resource) -> Role:
    """Return the role that is asked of an instance; of a group the highest that is asked of a member.

    It is asked by target-role, or by a failure that leaves a member unpromoted. One member that is to stay unpromoted
    so keeps the whole instance from being promoted.
    """
    return max((leaf.assignment.next_role for leaf in instance.leaves()), key=lambda role: role.value)


def _score_words(score: int | None, node: Node) -> str:
    return f"no {PROMOTION_SCORE}{node.name}" if score is None else f"{PROMOTION_SCORE}{node.name}"


def _sort(clone: Resource, placing: Placing, replaced: Collection[ResourceId]) -> None:
    allowed = clone.assignment.allowed
    for instance in clone.children:
        node = instance.place()
        if node is not None and instance.assignment.promotion_priority >= 0:
            allowed[node.name] = add(allowed.get(node.name, 0), instance.assignment.promotion_priority)
    promoted = [item for item in with_this(clone) if item.primary_role is Role.PROMOTED]
    add_scores_of_dependents(clone, promoted, placing, is_nonnegative=True)
    for use in clone.scores.ticket_uses:
        if use.role is Role.PROMOTED and not use.is_held:
            clone.assignment.ban_everywhere(f"{use.id}: ticket {use.ticket} is not granted, or in standby")
    addends = clone.assignment.addends
    for instance in clone.children:
        assignment = instance.assignment
        assignment.promotion_priority = _final_priority(clone, instance)
        node = instance.place()
        if addends is not None and node is not None and assignment.promotion_priority >= 0:
            assignment.promotion_addends += addends.get(node.name, [])
    order = InstanceOrder(placing)

    def compare(left: Resource, right: Resource) -> int:
        if (left.id in replaced) is not (right.id in replaced):
            return 1 if left.id in replaced else -1
        if left.assignment.promotion_priority != right.assignment.promotion_priority:
            return -1 if left.assignment.promotion_priority > right.assignment.promotion_priority else 1
        return right.present_role.value - left.present_role.value or order.compare(left, right)

    clone.reorder(sorted(clone.children, key=cmp_to_key(compare)))


def _replaced(clone: Resource, placing: Placing) -> set[ResourceId]:
    """Return the promoted instances that have failed while more are promoted, with those, than may be.

    A primary's machine that comes back when another instance has been promoted still has the score of before. To
    recover it as promoted would demote the one that takes writes. Nor is it promoted in a plan that fences or demotes
    that one: an agent that is notified so may start its data as promoted first of all. In Pacemaker (2.1.5 and 3.0.0)
    the score decides. What is not managed is demoted by nobody, and counts.
    """
    if placing.settings.options.is_pacemaker_compatible:
        return set()
    promoted = [instance for instance in clone.children if _may_be_promoted(instance)]
    failed = {instance.id for instance in promoted if has_failed(instance) and instance.is_managed}
    return failed if len(promoted) > clone.definition.promoted_max else set()


def _may_be_promoted(instance: Resource) -> bool:
    """Tell whether an instance is promoted, is being promoted, or may be on a node that is to be fenced.

    On a node that is online a probe says so before long.
    """
    return instance.present_role is Role.PROMOTED or any(
        (possibly_promoted if node.is_unclean else known_promoted)(node.status, leaf.recorded_as)
        for leaf in instance.leaves()
        for node in leaf.found.active_nodes
    )


def _final_priority(clone: Resource, instance: Resource) -> int:
    if not instance.is_managed and instance.assignment.next_role is Role.PROMOTED:
        return INFINITY
    node = instance.place()
    if node is None:
        return -INFINITY
    if instance.assignment.promotion_priority >= 0:
        return clone.assignment.allowed.get(node.name, 0)
    return instance.assignment.promotion_priority


def _can_be_promoted(clone: Resource, instance: Resource, placing: Placing) -> bool:
    if instance.assignment.promotion_priority < 0 or not _qualifies(clone, instance, placing):
        return False
    if placing.settings.no_quorum_policy is NoQuorumPolicy.FREEZE and not placing.settings.options.has_quorum:
        return instance.present_role is Role.PROMOTED
    return True


def _qualifies(clone: Resource, instance: Resource, placing: Placing) -> bool:
    node = instance.place()
    if instance.children and not all(_qualifies(clone, member, placing) for member in instance.children):
        return False
    if node is None:
        return False
    if not instance.is_managed:
        return instance.present_role is Role.PROMOTED
    if instance.assignment.priority < 0 or not _is_usable(node, placing):
        return False
    if node.name not in clone.assignment.allowed:
        return False
    return clone.assignment.counts.get(node.name, 0) < clone.definition.promoted_node_max or not clone.is_managed


def _is_usable(node: Node, placing: Placing) -> bool:
    """Whether a node can run resources; of a guest node: whether its launcher will run."""
    if node.name not in placing.available:
        return False
    launcher = node.connection.launcher if node.is_guest and node.connection is not None else None
    return launcher is None or launcher.assignment.node is not None


def _promote(instance: Resource) -> None:
    if instance.assignment.next_role is Role.UNKNOWN:
        instance.assignment.next_role = Role.PROMOTED
    for child in instance.children:
        _promote(child)


def _leave(instance: Resource) -> None:
    instance.assignment.next_role = Role.STOPPED if instance.place() is None else Role.UNPROMOTED
    for child in instance.children:
        _leave(child)
