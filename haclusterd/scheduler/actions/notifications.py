"""Phase: instances of clones are notified before and after what the others do.

Source: Pacemaker Explained, "Clone Resource Agent Requirements", "Notifications"; OCF Resource Agent API, `notify`.
Around each change of role of a clone with `notify=true` stand four marks: pre, confirmed-pre, then the change, then
post, confirmed-post. The instances' `notify` actions are between a mark and its confirmation; they are made when it
is settled what will be done, and say in their meta-attributes who does what.
"""

from __future__ import annotations

from collections.abc import Iterable

from haclusterd.model.ocf import Role
from haclusterd.model.records import dataclass, field
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.actions.actions import ActionTable
from haclusterd.scheduler.actions.collective_flags import collective_flags
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, NodeKind, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.relation_flags import FIRST_IMPLIES_THEN, ORDERED
from haclusterd.scheduler.model.tasks import DEMOTE, DEMOTED, PROMOTE, PROMOTED, RUNNING, START, STOP, STOPPED

_DONE = {START: RUNNING, STOP: STOPPED, PROMOTE: PROMOTED, DEMOTE: DEMOTED}
_ACTIVITIES = (START, STOP, PROMOTE, DEMOTE)
_NOTIFIED = "notified"
"""The mark after the notifications of a fencing."""

Members = list[tuple[Resource, Node]]


@dataclass(slots=True)
class _Occasion:
    """One change of role, with the marks around it."""

    task: str
    pre: Action | None = None
    confirmed_pre: Action | None = None
    post: Action | None = None
    confirmed_post: Action | None = None


def create_notification_marks(clone: Resource, table: ActionTable, *, is_promotable: bool) -> None:
    """Create the marks around the actions of a clone or bundle, after those actions."""
    if clone.variant is not Variant.CLONE or not clone.definition.notifies:
        return
    made = {task: _marks(clone, task, table) for task in (_ACTIVITIES if is_promotable else (START, STOP))}
    _chain(made[STOP], made[START], table)
    if is_promotable:
        for earlier in (STOP, START, DEMOTE):
            _chain(made[earlier], made[PROMOTE], table)
        _chain(made[DEMOTE], made[START], table)
        _chain(made[DEMOTE], made[STOP], table)


def _marks(clone: Resource, task: str, table: ActionTable) -> _Occasion:
    action, done = clone.actions[task, 0][-1], clone.actions[_DONE[task], 0][-1]
    occasion = _Occasion(task)
    occasion.pre = _mark(clone, f"pre_notify_{task}", f"pre-{task}", action, table)
    occasion.confirmed_pre = _mark(clone, f"confirmed-pre_notify_{task}", f"pre-{task}", action, table)
    table.relate(occasion.pre, occasion.confirmed_pre, ORDERED)
    table.relate(occasion.confirmed_pre, action, ORDERED)
    occasion.post = _mark(clone, f"post_notify_{done.task}", f"post-{task}", done, table)
    occasion.confirmed_post = _mark(clone, f"confirmed-post_notify_{done.task}", f"post-{task}", done, table)
    _after(done, occasion, table)
    table.relate(occasion.confirmed_pre, occasion.post, ORDERED)
    return occasion


def _after(done: Action, occasion: _Occasion, table: ActionTable) -> None:
    assert occasion.post is not None
    assert occasion.confirmed_post is not None
    for mark in (occasion.post, occasion.confirmed_post):
        mark.priority = INFINITY
        mark.is_runnable = done.is_runnable
    table.relate(done, occasion.post, FIRST_IMPLIES_THEN)
    table.relate(occasion.post, occasion.confirmed_post, FIRST_IMPLIES_THEN)


def _mark(owner: Resource, name: str, notification: str, around: Action, table: ActionTable) -> Action:
    mark = table.make_pseudo(owner, name, required=around.is_required)
    mark.notification = notification
    return mark


def _chain(earlier: _Occasion, later: _Occasion, table: ActionTable) -> None:
    assert earlier.confirmed_post is not None
    assert later.pre is not None
    table.relate(earlier.confirmed_post, later.pre, ORDERED)


def notify_after_fencing(fence: Action, stop: Action, leaf: Resource, table: ActionTable) -> None:
    """Tell the other instances of a clone after a fencing that it stopped one of them."""
    assert stop.node is not None
    occasion = _Occasion(STOP)
    occasion.post = _mark(leaf, f"post_notify_{STOP}", "post-stop", fence, table)
    occasion.confirmed_post = _mark(leaf, _NOTIFIED, "post-stop", fence, table)
    _after(fence, occasion, table)
    clone = leaf.top
    news = _News(clone)
    news.doing[STOP] = [(leaf, stop.node)]
    for instance in clone.leaves():
        _Telling(occasion, news, table).tell(instance)


def create_notifications(inventory: Inventory, table: ActionTable, options: ScheduleOptions) -> None:
    """Create the notifications, when it is settled what will be done."""
    for top in inventory.tops:
        for clone in (top, *top.children) if top.variant is Variant.BUNDLE else (top,):
            if clone.variant is Variant.CLONE and clone.definition.notifies:
                _tell_instances(clone, inventory, table, options)


def _tell_instances(clone: Resource, inventory: Inventory, table: ActionTable, options: ScheduleOptions) -> None:
    news = _News(clone)
    news.hear(clone)
    news.nodes = inventory.nodes
    for task in _ACTIVITIES:
        occasion = _found(clone, task)
        if occasion is None or not news.doing[task]:
            continue
        for mark in (occasion.pre, occasion.confirmed_pre, occasion.post, occasion.confirmed_post):
            if mark is not None:
                collective_flags(mark, None)
                mark.is_optional = False
        telling = _Telling(occasion, news, table)
        for instance in clone.leaves():
            telling.tell(instance)
        if not options.is_pacemaker_compatible:
            _act_between(occasion, clone.actions[task, 0][-1], news.doing[task], table)


def _act_between(occasion: _Occasion, mark: Action, members: Members, table: ActionTable) -> None:
    """Let instances act between the notifications also where marks of their clone or group are not in the graph.

    The clone's own is not where something has to stop before the clone does, and is blocked: the instances demote or
    stop all the same, in Pacemaker 2.1.5 beside the notifications before it. That of a cloned group after it is not
    where a member does not act with the others, as one that is unmanaged: all are notified once the others have acted.
    """
    for leaf, node in members:
        for action in leaf.actions[mark.task, 0]:
            if action.node is not node:
                continue
            if occasion.confirmed_pre is not None and not mark.is_runnable:
                table.relate(occasion.confirmed_pre, action, ORDERED)
            if occasion.post is not None:
                table.relate(action, occasion.post, ORDERED)


def _found(clone: Resource, task: str) -> _Occasion | None:
    names = [f"pre_notify_{task}", f"confirmed-pre_notify_{task}"]
    names += [f"post_notify_{_DONE[task]}", f"confirmed-post_notify_{_DONE[task]}"]
    marks = [clone.actions[name, 0][-1] for name in names if (name, 0) in clone.actions]
    return _Occasion(task, *marks) if marks else None


@dataclass(slots=True)
class _News:
    """What is and what will be done in one clone."""

    clone: Resource
    doing: dict[str, Members] = field(default_factory=lambda: {task: [] for task in _ACTIVITIES})
    nodes: tuple[Node, ...] = ()
    _meta: dict[str, str] | None = None

    def hear(self, clone: Resource) -> None:
        """Collect what the instances will do; a stop counts also when it is impossible now, unless it stays so."""
        for leaf in clone.leaves():
            for task in _ACTIVITIES:
                for action in leaf.actions.get((task, 0), ()):
                    node = action.node
                    if node is None or not action.is_required:
                        continue
                    if action.is_runnable or (task == STOP and not node.is_beyond_reach):
                        self.doing[task].append((leaf, node))

    def meta(self) -> dict[str, str]:
        """Return the news as meta-attributes; all instances get the same."""
        if self._meta is None:
            lists = dict(self.doing)
            lists.update(_standing(self.clone))
            self._meta = {}
            for name, members in lists.items():
                in_order = sorted(members, key=lambda member: (member[0].id, member[1].name))
                self._meta[f"notify_{name}_resource"] = _words(leaf.id for leaf, _ in in_order)
                self._meta[f"notify_{name}_uname"] = _words(node.name for _, node in in_order)
            self._meta["notify_available_uname"] = _words(node.name for node in self.nodes if node.is_available)
            self._meta["notify_all_uname"] = _words(node.name for node in self.nodes)
            self._meta["notify_all_hosts"] = _words(_host(node) for node in self.nodes)
        return self._meta


def _standing(clone: Resource) -> dict[str, Members]:
    """Return who has which role now; what is inactive belongs to no node."""
    found: dict[str, Members] = {"active": [], "inactive": [], "promoted": [], "unpromoted": []}
    for leaf in clone.leaves():
        node = leaf.current_node() or leaf.assignment.node
        if node is None:
            continue
        if leaf.found.original_role.value <= Role.STOPPED.value:
            found["inactive"].append((leaf, node))
            continue
        found["active"].append((leaf, node))
        if leaf.found.original_role is Role.PROMOTED:
            found["promoted"].append((leaf, node))
        elif leaf.found.original_role is Role.UNPROMOTED:
            found["unpromoted"].append((leaf, node))
    found["master"], found["slave"] = found["promoted"], found["unpromoted"]
    return found


def _words(names: Iterable[str]) -> str:
    return " ".join(names) or " "


def _host(node: Node) -> str:
    if node.kind is NodeKind.GUEST and node.connection is not None and node.connection.launcher is not None:
        host = node.connection.launcher.current_node()
        return host.name if host is not None else node.name
    return node.name


@dataclass(slots=True)
class _Telling:
    """One occasion of which instances are notified."""

    occasion: _Occasion
    news: _News
    table: ActionTable

    def tell(self, instance: Resource) -> None:
        """Create the notifications of one instance, before and after."""
        for task in _ACTIVITIES:
            for action in instance.actions.get((task, 0), ()):
                if action.is_required and action.node is not None:
                    action.meta = {**action.meta, **self.news.meta()}
        if self.occasion.task in (STOP, DEMOTE):
            self._tell_of_an_end(instance)
        else:
            self._tell_of_a_beginning(instance)

    def _tell_of_an_end(self, instance: Resource) -> None:
        stops = instance.actions.get((STOP, 0), ())
        stop = stops[-1] if stops else None
        for node in instance.found.active_nodes:
            if stop is not None and stop.is_pseudo and (node.is_unclean or node.must_be_reset):
                continue
            self._before(instance, node)
            if self.occasion.task == DEMOTE or stop is None or stop.is_optional:
                self._afterwards(instance, node)

    def _tell_of_a_beginning(self, instance: Resource) -> None:
        node = instance.assignment.node
        if node is None or _is_out_of_reach(node):
            return
        starts = instance.actions.get((START, 0), ())
        if self.occasion.task != START or not starts or starts[-1].is_optional:
            self._before(instance, node)
        self._afterwards(instance, node)

    def _before(self, instance: Resource, node: Node) -> None:
        self._notify(instance, node, "pre", self.occasion.pre, self.occasion.confirmed_pre)

    def _afterwards(self, instance: Resource, node: Node) -> None:
        notify = self._notify(instance, node, "post", self.occasion.post, self.occasion.confirmed_post)
        if notify is None:
            return
        notify.priority = INFINITY
        assert self.occasion.confirmed_post is not None
        for (_task, interval_ms), actions in instance.actions.items():
            if interval_ms:
                for monitor in actions:
                    if not monitor.is_cancel:
                        self.table.relate(self.occasion.confirmed_post, monitor, ORDERED)

    def _notify(
        self, instance: Resource, node: Node, kind: str, mark: Action | None, confirmation: Action | None
    ) -> Action | None:
        if mark is None or confirmation is None or not node.is_online or not mark.is_runnable:
            return None
        notify = self.table.make_notify(instance, node, f"{kind}-{self.occasion.task}")
        if mark.is_required:
            notify.is_optional = False
        notify.meta = {"notify_type": kind, "notify_operation": self.occasion.task, **self.news.meta()}
        notify.why = f"it is notified {'before' if kind == 'pre' else 'after'} a {self.occasion.task}"
        self.table.relate(mark, notify, ORDERED)
        self.table.relate(notify, confirmation, ORDERED)
        return notify


def _is_out_of_reach(node: Node) -> bool:
    """Whether it is a remote node to which no connection can be made."""
    if not node.is_remote or node.connection is None:
        return False
    starts = node.connection.actions.get((START, 0))
    return starts is not None and not starts[-1].is_runnable
