"""Phase: let relations work until nothing changes: what is required or impossible makes others so.

An action is looked at again only when something before it changed, the newest first and what follows a change at once,
so the cost follows the number of relations and changes. Changes go one way, so it ends. What happens to a collective's
action happens to those inside: to all of them, or, between interleaved clones, to those that go together.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass, replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.collective_flags import BEGUN, action_of, collective_flags
from haclusterd.scheduler.actions.flags import block, drop, forbid, require, show, unblock
from haclusterd.scheduler.actions.withdrawal import withdraw
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Relation, Resource
from haclusterd.scheduler.model.relation_flags import (
    AFTER_FENCING,
    ASYMMETRIC,
    FIRST_ELSE_THEN,
    FIRST_IMPLIES_SAME_NODE_THEN,
    FIRST_IMPLIES_THEN,
    FIRST_IMPLIES_THEN_GRAPHED,
    GUEST_ALLOWED,
    IF_FIRST_UNMIGRATABLE,
    IF_ON_SAME_NODE,
    IF_ON_SAME_NODE_OR_TARGET,
    IF_REQUIRED_ON_SAME_NODE,
    INTERMEDIATE_STOP,
    MIN_RUNNABLE,
    NESTED_REMOTE_PROBE,
    ORDERED,
    PROMOTED_THEN_IMPLIES_FIRST,
    SERIALIZE,
    THEN_CANCELS_FIRST,
    THEN_IMPLIES_FIRST,
    THEN_IMPLIES_FIRST_GRAPHED,
    UNMIGRATABLE_THEN_BLOCKS,
    UNRUNNABLE_FIRST_BLOCKS,
)
from haclusterd.scheduler.model.tasks import PROMOTE, START, STOP
from haclusterd.scheduler.order.gangs import hold_together
from haclusterd.scheduler.order.group_flags import GroupFlags
from haclusterd.scheduler.order.interleave import (
    NOTIFIED,
    action_of_instance,
    instance_list,
    is_about_present,
    is_interleaved,
    matching_instance,
    place_of,
)
from haclusterd.scheduler.order.order_effects import (
    FIRST_CHANGED,
    MIGRATABLE,
    OPTIONAL,
    RUNNABLE,
    THEN_CHANGED,
    apply_flag,
)
from haclusterd.scheduler.scores.colocation_lists import with_this

DONE_WORD = {begun: done for done, begun in BEGUN.items()}
_MARKS = frozenset({*BEGUN, *DONE_WORD})

_SENT = (
    (FIRST_IMPLIES_THEN, OPTIONAL, OPTIONAL),
    (INTERMEDIATE_STOP, OPTIONAL | RUNNABLE | MIGRATABLE, OPTIONAL | RUNNABLE),
    (THEN_IMPLIES_FIRST, OPTIONAL | RUNNABLE | MIGRATABLE, OPTIONAL),
    (PROMOTED_THEN_IMPLIES_FIRST, OPTIONAL, OPTIONAL),
    (MIN_RUNNABLE, OPTIONAL | RUNNABLE, RUNNABLE),
    (NESTED_REMOTE_PROBE, OPTIONAL | RUNNABLE, RUNNABLE),
    (UNRUNNABLE_FIRST_BLOCKS, OPTIONAL | RUNNABLE, RUNNABLE),
    (UNMIGRATABLE_THEN_BLOCKS, OPTIONAL | RUNNABLE, OPTIONAL),
    (FIRST_ELSE_THEN, OPTIONAL | RUNNABLE, OPTIONAL),
    (ORDERED, OPTIONAL | RUNNABLE, RUNNABLE),
    (ASYMMETRIC, OPTIONAL | RUNNABLE, RUNNABLE),
)
"""Flags in the order in which they work: which of the first action's truths each hands on, which it may change."""
_PASSIVE = (
    ORDERED
    | SERIALIZE
    | GUEST_ALLOWED
    | AFTER_FENCING
    | IF_FIRST_UNMIGRATABLE
    | IF_ON_SAME_NODE_OR_TARGET
    | IF_REQUIRED_ON_SAME_NODE
)
"""These do nothing here, unless what comes first is a collective's: others take its place then."""
_WORKING = sum(flag for flag, _, _ in _SENT)
_ASKING_FIRST = _WORKING & ~ORDERED | FIRST_IMPLIES_THEN_GRAPHED
"""These depend on what is true of the first action."""
_COLLECTIVE_ONLY = ORDERED | MIN_RUNNABLE
"""These do nothing between two primitives."""
_NEEDS_BLOCKED_STOP = FIRST_IMPLIES_THEN | THEN_IMPLIES_FIRST | INTERMEDIATE_STOP


@dataclass(frozen=True, slots=True)
class _Effect:
    """One flag of a relation at work: what is true of the first action, what it may change, and on which node."""

    flag: int
    passed: int
    touched: int
    node: Node | None


class Propagation:
    """One run over all actions of a plan."""

    def __init__(self, table: ActionTable) -> None:
        self._table = table
        self._waiting: list[Action | Relation] = []
        self._is_stale: set[int] = set()
        self._counting: dict[int, Action] = {}
        """Marks that count, and have to do so again."""
        self._groups = GroupFlags()
        self._behind_collectives: dict[int, tuple[int, list[Relation]]] = {}

    def run(self) -> None:
        """Propagate until nothing changes."""
        actions = self._table.actions
        for action in reversed(actions):
            self._block_dependents(action)
        self._drain()
        for action in reversed(list(actions)):
            self._update(action)
            self._drain()

    def hold_together(self, gangs: Iterable[Resource]) -> None:
        """Let all instances of a gang do what one of them does; ends, as each change goes one way."""
        pending = list(gangs)
        while changed := [action for gang in pending for action in hold_together(gang)]:
            for action in changed:
                self._changed(action)
                self._block_dependents(action)
            self._drain()

    def _drain(self) -> None:
        while self._waiting or self._counting:
            if not self._waiting:
                self._update(self._counting.popitem()[1])
                continue
            item = self._waiting.pop()
            if isinstance(item, Relation):
                if item.is_waiting:
                    item.is_waiting = False
                    self._renew(item)
            elif item.id in self._is_stale:
                self._is_stale.discard(item.id)
                self._update(item)

    def _changed(self, action: Action) -> None:
        """Look again at an action and at what it does to everything after it: at itself first, then at the newest."""
        self._groups.note(action)
        for relation in action.after:
            relation.is_waiting = True
            self._waiting.append(relation)
        self._is_stale.add(action.id)
        self._waiting.append(action)

    def _update(self, then: Action) -> None:
        """Let everything before an action work on it."""
        was_runnable = then.is_runnable
        if then.required_runnable_before:
            then.runnable_before = 0
            block(then)
        changed = self._is_changed_by(then, then.before[::-1])
        if then.required_runnable_before:
            changed = then.is_runnable != was_runnable
        self._settle(then, was_runnable=was_runnable, changed=changed)

    def _renew(self, relation: Relation) -> None:
        """Let what comes first work again after it changed, and collectives, of which nobody says when they do."""
        then = relation.then
        if then.required_runnable_before:
            self._counting[then.id] = then
            return
        was_runnable = then.is_runnable
        if was_runnable and _makes_impossible(relation):
            relations = then.before[::-1]
        else:
            others = self._after_collectives(then)
            relations = [relation, *others] if relation not in others else others
        self._settle(then, was_runnable=was_runnable, changed=self._is_changed_by(then, relations))

    def _is_changed_by(self, then: Action, relations: Sequence[Relation]) -> bool:
        changed = False
        if _is_collective(then):
            self._seen(then, None)
        for relation in relations:
            if relation.flags & ~_PASSIVE or (relation.flags and _is_collective(relation.first)):
                changed |= self._is_processed(relation)
        return changed

    def _settle(self, then: Action, *, was_runnable: bool, changed: bool) -> None:
        if not changed:
            return
        if was_runnable:
            self._block_dependents(then)
        self._changed(then)

    def _after_collectives(self, then: Action) -> list[Relation]:
        """Return the relations to an action from collectives, the newest first."""
        count, found = self._behind_collectives.get(then.id, (0, []))
        if count != len(then.before):
            newer = [relation for relation in then.before[count:] if _is_collective(relation.first)]
            found = newer[::-1] + found
            self._behind_collectives[then.id] = len(then.before), found
        return found

    # -- one relation -----------------------------------------------------------------------------------------------

    def _is_processed(self, relation: Relation) -> bool:
        """Let one relation work; tell whether what comes after it changed."""
        then, flags = relation.then, relation.flags
        if flags & IF_ON_SAME_NODE and _are_apart(relation):
            relation.flags = 0
            return False
        if flags & THEN_CANCELS_FIRST and then.is_required:
            drop(relation.first)
        first = _stand_in(relation.first, then)
        if first is relation.first:
            return self._apply(relation)
        if self._table.relate(first, then, flags) is not None:
            relation.flags = 0
            return True
        return False

    def _apply(self, relation: Relation) -> bool:
        first, then = relation.first, relation.then
        changed = 0
        node = then.node
        if relation.flags & FIRST_IMPLIES_SAME_NODE_THEN:
            relation.flags = relation.flags & ~FIRST_IMPLIES_SAME_NODE_THEN | FIRST_IMPLIES_THEN
            node = first.node
        flags = relation.flags
        first_flags = self._seen(first, _node_of(then)) if flags & _ASKING_FIRST else 0
        is_then_required = flags & THEN_IMPLIES_FIRST_GRAPHED and not self._seen(then, _node_of(first)) & OPTIONAL
        if flags & _WORKING:
            changed = self._work(relation, first_flags, node)
        if flags & FIRST_IMPLIES_THEN_GRAPHED and first_flags & RUNNABLE and not first_flags & OPTIONAL:
            show(then)
        if is_then_required:
            show(first)
        if flags & _NEEDS_BLOCKED_STOP and _is_blocked_stop(first) and then.is_runnable:
            changed |= forbid(then, first) * THEN_CHANGED
        if changed & FIRST_CHANGED:
            self._changed(first)
        return bool(changed & THEN_CHANGED)

    def _work(self, relation: Relation, first_flags: int, node: Node | None) -> int:
        first, then, flags = relation.first, relation.then, relation.flags
        is_collective = _is_collective(first) or _is_collective(then)
        if not is_collective:
            flags &= ~_COLLECTIVE_ONLY if then.resource is not None else ~ORDERED
        changed = 0
        for flag, sent, touched in _SENT:
            if not flags & flag:
                continue
            if flag == NESTED_REMOTE_PROBE:
                if first.resource is not None and first.resource.found.active_nodes and not first_flags & RUNNABLE:
                    relation.flags = 0
                    continue
                flag = UNRUNNABLE_FIRST_BLOCKS  # noqa: PLW2901 -- a probe inside a guest blocks like any other
            owner = first.resource if flag == THEN_IMPLIES_FIRST else then.resource
            if owner is None:
                changed |= _ownerless(first, then, first_flags, flag)
            else:
                changed |= self._handle(owner, first, then, _Effect(flag, first_flags & sent, touched, node))
        return changed

    # -- the effects, by what it happens to -------------------------------------------------------------------------

    def _handle(self, owner: Resource, first: Action, then: Action, effect: _Effect) -> int:
        if owner.variant is Variant.PRIMITIVE:
            return apply_flag(first, then, effect.passed, effect.touched, effect.flag)
        if owner.variant >= Variant.CLONE and is_interleaved(first, then):
            return self._interleaved(first, then, effect)
        changed = apply_flag(first, then, effect.passed, effect.touched, effect.flag)
        if then.resource is None or then.resource.variant is Variant.PRIMITIVE:
            return changed
        if then.resource.variant is Variant.GROUP and then.task in BEGUN:
            return changed
        for inside in _insides(then.resource):
            changed |= self._inside(inside, first, then, effect)
        return changed

    def _inside(self, inside: Resource, first: Action, then: Action, effect: _Effect) -> int:
        assert then.resource is not None
        is_clone = then.resource.variant >= Variant.CLONE
        task = then.task
        if is_clone and inside.variant is Variant.PRIMITIVE:
            task = BEGUN.get(task, task)
        action = action_of(inside, task, effect.node)
        if action is None or action is first or (is_clone and not self._seen(action, effect.node) & RUNNABLE):
            return 0
        changed = self._handle(inside, first, action, effect)
        if changed & THEN_CHANGED:
            self._changed(action)
        return changed

    def _interleaved(self, first: Action, then: Action, effect: _Effect) -> int:
        assert first.resource is not None
        assert then.resource is not None
        is_present = is_about_present(first)
        changed = 0
        for after in instance_list(then.resource):
            before = matching_instance(after, first.resource, is_present=is_present)
            if before is None:
                if not is_present and effect.flag in (UNRUNNABLE_FIRST_BLOCKS, FIRST_IMPLIES_THEN):
                    changed |= self._left_alone(after) * THEN_CHANGED
                continue
            first_action = action_of_instance(first, before, is_first=True)
            then_action = action_of_instance(then, after, is_first=False)
            if first_action is not None and then_action is not None:
                changed |= self._pair(first_action, then_action, effect)
        return changed

    def _pair(self, first: Action, then: Action, effect: _Effect) -> int:
        """Two instances that go together."""
        changed = 0
        if self._table.relate(first, then, effect.flag) is not None:
            changed = FIRST_CHANGED | THEN_CHANGED
        assert then.resource is not None
        was_runnable = then.is_runnable
        passed = replace(effect, passed=self._seen(first, effect.node))
        changed |= self._handle(then.resource, first, then, passed)
        if was_runnable:
            self._block_dependents(then)  # with the last instance that cannot start, the clone cannot
        if changed & FIRST_CHANGED:
            self._changed(first)
        if changed & THEN_CHANGED:
            self._changed(then)
        return changed

    def _left_alone(self, instance: Resource) -> bool:
        """An instance that has nothing to go with on its node runs nowhere, nor does what must run with it."""
        changed = [action for leaf in instance.leaves() for action in withdraw(leaf)]
        for action in changed:
            self._changed(action)
            self._block_dependents(action)
        return bool(changed)

    def _seen(self, action: Action, node: Node | None) -> int:
        """Return what is true of an action; whether a clone's can be done at all is no matter of one node.

        What a clone starts on another node requires nothing here; what a bundle starts does, wherever its containers
        are.
        """
        owner = action.resource
        is_optional, is_runnable = action.is_optional, action.is_runnable
        if owner is not None and owner.variant is Variant.GROUP and action.task in _MARKS:
            is_optional, is_runnable = self._groups.look(action, owner)
        elif owner is not None and owner.variant is not Variant.PRIMITIVE:
            is_optional, is_runnable = collective_flags(action, None)
            if node is not None and owner.variant is Variant.CLONE:
                is_optional = collective_flags(action, node)[0]
        return is_optional * OPTIONAL | is_runnable * RUNNABLE | action.is_migratable * MIGRATABLE

    # -- colocations ------------------------------------------------------------------------------------------------

    def _block_dependents(self, action: Action) -> None:
        """What must run with a resource that cannot start cannot start either; what must run with that may continue."""
        unable = [action]
        while unable:
            for dependent, primary in _mandatory_dependents(unable.pop()):
                if dependent.is_runnable:
                    block(dependent, f"colocation with {primary.id}")
                    self._changed(dependent)
                    unable.append(dependent)


def _mandatory_dependents(action: Action) -> Iterator[tuple[Action, Resource]]:
    """Yield what has to start with a resource, and with what, when an action shows that the resource cannot start.

    A collective cannot when none of its instances can.
    """
    resource, task = action.resource, action.task
    if action.is_runnable or task not in (START, PROMOTE) or resource is None:
        return
    top = resource.outermost
    for child in top.children:
        known = action_of(child, task, None)
        if known is None or known.is_runnable:
            return
    for colocation in with_this(top):
        if colocation.score < INFINITY or (task == PROMOTE and colocation.primary_role is not Role.PROMOTED):
            continue
        wanted = PROMOTE if colocation.dependent_role is Role.PROMOTED else START
        for blocked in _with_all_inside(colocation.dependent):
            for dependent in blocked.actions.get((wanted, 0), ()):
                yield dependent, colocation.primary


def _with_all_inside(resource: Resource) -> Iterator[Resource]:
    yield resource
    for child in resource.children:
        yield from _with_all_inside(child)


def _insides(collective: Resource) -> list[Resource]:
    return collective.children if collective.variant is Variant.GROUP else instance_list(collective)


def _is_collective(action: Action) -> bool:
    return action.resource is not None and action.resource.variant is not Variant.PRIMITIVE


def _makes_impossible(relation: Relation) -> bool:
    """Tell whether an action may become impossible by a relation: of all that make it so, the newest says why."""
    return not relation.first.is_runnable and bool(relation.flags & UNRUNNABLE_FIRST_BLOCKS)


def _stand_in(first: Action, then: Action) -> Action:
    """Others wait for a whole collective: its start counts when it runs, its stop when it has stopped, and when the
    instances have been notified, if they are. (Of a bundle that notifies, what is inside tells; nobody waits for
    that.)"""
    owner = first.resource
    if owner is None or owner.variant is Variant.PRIMITIVE or then.resource is None or then.resource is owner:
        return first
    done = DONE_WORD.get(first.task, first.task)
    if done not in BEGUN or first.interval_ms or then.resource.is_inside(owner):
        return first
    if owner.definition.notifies and owner.variant >= Variant.CLONE:
        return action_of(owner, f"{NOTIFIED}{done}", None) or first
    return action_of(owner, done, None) or first


def _are_apart(relation: Relation) -> bool:
    first, then = (_node_of(action) for action in (relation.first, relation.then))
    return first is not None and then is not None and first is not then


def _node_of(action: Action) -> Node | None:
    owner = action.resource
    if action.node is None and action.task == START and owner is not None and owner.variant is Variant.GROUP:
        return place_of(owner, is_present=False)
    return action.node


def _is_blocked_stop(first: Action) -> bool:
    owner = first.resource
    return (
        first.task == STOP and not first.is_runnable and owner is not None and not owner.is_managed and owner.is_blocked
    )


def _count(_: Action, then: Action, first_flags: int) -> int:
    if not first_flags & RUNNABLE:
        return 0
    then.runnable_before += 1
    if then.runnable_before >= then.required_runnable_before:
        unblock(then)
    return 0


def _forbidden(first: Action, then: Action, first_flags: int) -> int:
    return 0 if first_flags & RUNNABLE else forbid(then, first) * THEN_CHANGED


def _required(first: Action, then: Action, first_flags: int) -> int:
    return 0 if first_flags & OPTIONAL else require(then, first) * THEN_CHANGED


def _implied(first: Action, then: Action, first_flags: int) -> int:
    is_impossible = not first_flags & OPTIONAL and first_flags & RUNNABLE
    return forbid(first, then) * FIRST_CHANGED if is_impossible else 0


_OWNERLESS: dict[int, Callable[[Action, Action, int], int]] = {
    MIN_RUNNABLE: _count,
    UNRUNNABLE_FIRST_BLOCKS: _forbidden,
    FIRST_IMPLIES_THEN: _required,
    THEN_IMPLIES_FIRST: _implied,
}


def _ownerless(first: Action, then: Action, first_flags: int, flag: int) -> int:
    """What a relation does where no resource answers for it: to marks, fencing and shutdowns."""
    effect = _OWNERLESS.get(flag)
    return effect(first, then, first_flags) if effect is not None else 0
