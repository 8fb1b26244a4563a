"""Why an action is done, in words for the person who asks."""

import re
from collections.abc import Callable

from haclusterd.model.ocf import Role
from haclusterd.scheduler.actions.collective_flags import BEGUN
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Action, Node, Resource
from haclusterd.scheduler.model.relation_flags import UNRUNNABLE_FIRST_BLOCKS
from haclusterd.scheduler.model.tasks import (
    CANCEL,
    DEMOTE,
    DEMOTED,
    MIGRATE_FROM,
    MIGRATE_TO,
    MONITOR,
    PROMOTE,
    PROMOTED,
    RELOAD_AGENT,
    RUNNING,
    START,
    STOP,
    STOPPED,
)

_TOO_FEW = re.compile(r"unrunnable (?:clone-)?one-or-more:(\S+)\Z")
_CAUSED = re.compile(r"(required|unrunnable) (\S+) (\S+)\Z")
_BEFORE = {RUNNING: START, STOPPED: STOP, PROMOTED: PROMOTE, DEMOTED: DEMOTE}
_MEMBERS = {
    START: "its members start",
    RUNNING: "its members have started",
    STOP: "its members stop",
    STOPPED: "its members have stopped",
    PROMOTE: "its members are promoted",
    PROMOTED: "its members have been promoted",
    DEMOTE: "its members are demoted",
    DEMOTED: "its members have been demoted",
}
_VERBS = {"start": "starts", "stop": "stops", "promote": "is promoted", "demote": "is demoted"}

_CAUSES_MAX = 6
"""So many causes are named in one sentence; `crm resource why` has that of each node."""


def reason_of(action: Action) -> str:
    """Return why an action is in the graph, or why it cannot be."""
    resource = action.resource
    if action.why:
        return action.why
    if resource is None:
        return action.reason
    if resource.variant is not Variant.PRIMITIVE:
        return _MEMBERS.get(action.task) or ("its members are notified" if action.notification else "")
    if not action.is_runnable:
        return in_words(action.reason) or _hindrance(resource, action) or _wish(resource)
    found = _REASONS.get(action.task)
    return (found(resource, action) if found is not None else in_words(action.reason)) or _wish(resource)


def _wish(resource: Resource) -> str:
    return f"it is to be {str(resource.assignment.next_role).lower()}"


def _hindrance(resource: Resource, action: Action) -> str:
    """Say why an action cannot be done where something else of the same resource is what keeps it from it."""
    for relation in action.before:
        first = relation.first
        if relation.flags and first.resource is resource and not first.is_runnable and first.reason:
            return in_words(first.reason)
    return ""


def in_words(reason: str) -> str:
    """Turn a reason of the propagation into a sentence."""
    match = _TOO_FEW.match(reason)
    if match is not None:
        return f"{match[1]}: too few of what comes first can be done"
    match = _CAUSED.match(reason)
    if match is None:
        return reason
    word, resource, task = match.groups()
    task = _BEFORE.get(task, task)
    verb = _VERBS.get(task, task)
    return f"{resource} {verb} first" if word == "required" else f"{resource} cannot {task}"


def _why_stopped(resource: Resource, action: Action) -> str:
    node = action.node
    if action.is_pseudo and node is not None and node.is_unclean:
        return f"{node.name} is fenced"
    failed = resource.found.fails_off_on.get(node.name) if node is not None else None
    if failed and resource.found.is_failed:
        return failed
    if resource.found.is_removed:
        return "it is no longer configured"
    if len(resource.found.active_nodes) > 1:
        return f"active on several nodes ({', '.join(item.name for item in resource.found.active_nodes)})"
    if resource.assignment.node is None:
        return why_nowhere(resource, node)
    if node is not None and node is not resource.assignment.node:
        return _why_moved(resource, node)
    return _what_changed(resource) or _why_stranded(resource) or in_words(action.reason) or "it restarts"


def _what_changed(resource: Resource) -> str:
    if resource.found.definition_changed:
        return "its definition has changed"
    return resource.assignment.device_change


def _why_stranded(resource: Resource) -> str:
    """Say which other resource keeps this one from starting again; empty when it may."""
    start = next(iter(reversed(resource.actions.get((START, 0), ()))), None)
    if start is None or start.is_runnable:
        return ""
    for relation in reversed(start.before):
        first = relation.first
        is_in_the_way = relation.flags & UNRUNNABLE_FIRST_BLOCKS and not first.is_runnable
        if is_in_the_way and first.resource is not None and first.resource is not resource:
            return f"{first.resource.id} cannot {BEGUN.get(first.task, first.task)}"
    return ""


def _why_started(resource: Resource, action: Action) -> str:
    node = action.node
    gone = [item for item in resource.found.active_nodes if item is not node]
    lost = [item.name for item in gone if item.is_unclean]
    if lost:
        return f"recovered from {', '.join(lost)}, which is fenced first"
    if resource.found.is_failed and resource.found.fails_off_on:
        return f"recovered after a {next(iter(resource.found.fails_off_on.values()))}"
    if gone:
        return _why_moved(resource, gone[0])
    if resource.found.active_nodes:
        return _what_changed(resource) or in_words(action.reason) or "it restarts"
    return in_words(action.reason) or "it should run and does not"


def _why_moved(resource: Resource, old: Node) -> str:
    assert resource.assignment.node is not None
    objection = old.objection() or _banned(resource, old)
    target = resource.assignment.node.name
    return f"moves from {old.name} to {target}: {objection or f'{target} is preferred'}"


def _banned(resource: Resource, node: Node) -> str:
    if resource.assignment.allowed.get(node.name, -1) >= 0:
        return ""
    return resource.assignment.banned_by.get(node.name) or f"it must not run on {node.name}"


def why_nowhere(resource: Resource, node: Node | None = None) -> str:
    """Say why a resource runs nowhere."""
    if resource.found.is_removed:
        return "it is no longer configured"
    if resource.definition.target_role is Role.STOPPED:
        return "target-role=Stopped"
    if resource.failed_because:
        return resource.failed_because
    objection = node.objection() if node is not None else ""
    if objection:
        return f"{objection}, and no other node may run it"
    assignment = resource.assignment
    if assignment.next_role is Role.STOPPED and not any(value >= 0 for value in assignment.allowed.values()):
        causes = sorted(set(assignment.banned_by.values()))
        more = len(causes) - _CAUSES_MAX
        shown = [*causes[:_CAUSES_MAX], *([f"{more} more"] if more > 0 else [])]
        return f"no node may run it{': ' if causes else ''}{'; '.join(shown)}"
    return "no node can run it now"


def _why_migrated(resource: Resource, _: Action) -> str:
    current = resource.current_node()
    return _why_moved(resource, current) if current is not None else ""


def _why_watched(_: Resource, __: Action) -> str:
    return "it watches what runs"


def _why_reloaded(_: Resource, __: Action) -> str:
    return "its parameters have changed"


_REASONS: dict[str, Callable[[Resource, Action], str]] = {
    STOP: _why_stopped,
    START: _why_started,
    MONITOR: _why_watched,
    CANCEL: _why_watched,
    MIGRATE_TO: _why_migrated,
    MIGRATE_FROM: _why_migrated,
    RELOAD_AGENT: _why_reloaded,
}
