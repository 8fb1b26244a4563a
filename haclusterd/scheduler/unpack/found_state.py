"""The consequences of what was found of one resource on one node.

A node that is away and on which something is thought to run is fenced; a failure bans, blocks, stops, or ends in a
restart, as the operation that failed says. Source: Pacemaker Explained, "Operation Properties" (on-fail).
"""

from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.operation_settings import OnFail
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.fencing_demands import demand_fencing
from haclusterd.scheduler.unpack.fencing_limits import FencingLimits
from haclusterd.scheduler.unpack.replay import Replay
from haclusterd.scheduler.unpack.running import mark_running


class FoundStates:
    """Applies what replays have found."""

    def __init__(self, settings: Settings, limits: FencingLimits) -> None:
        """`limits` gets to know which nodes are to be fenced for failures."""
        self._settings = settings
        self._limits = limits
        self._containers: list[Resource] = []

    def apply(self, resource: Resource, node: Node, replay: Replay) -> None:
        """Draw the consequences of what was found on one node."""
        is_active = resource.found.original_role.value > Role.STOPPED.value
        if resource.found.original_role is not Role.UNKNOWN and node.name not in resource.found.unverified_on:
            note_probed(resource, node)
        if is_active and not node.is_online and not node.is_maintenance and resource.is_managed:
            self._fence_unreachable(resource, node)
        on_fail = OnFail.IGNORE if node.is_unclean else replay.on_fail
        self._react(resource, node, on_fail, replay.failed_words, is_active=is_active)
        if replay.fenced_for and (on_fail is OnFail.FENCE or node.name in self._limits.wanted):
            node.fence_causes.extend(replay.fenced_for)
            self._limits.wanted.setdefault(node.name, []).extend(replay.fenced_for)
        connected = resource.remote_node
        if resource.found.is_failed and connected is not None and connected.is_unclean:
            connected.is_seen = True
        if is_active:
            mark_running(resource, node, is_failed=resource.found.is_failed)
            _note_failed(resource, on_fail)
        else:
            _note_inactive(resource, node)
        if replay.failed_words:
            resource.found.fails_off_on[node.name] = replay.failed_words
        is_leaving = resource.found.partial_source is node and bool(resource.found.active_nodes)
        if resource.found.original_role is Role.STOPPED and is_leaving:
            resource.found.original_role = Role.STARTED

    def take_absence(self, resource: Resource, node: Node) -> None:
        """Draw the consequences of a probe that found nothing, on a node of which nothing else is known."""
        note_probed(resource, node)
        resource.found.next_role = Role.UNKNOWN
        if resource.found.original_role is Role.UNKNOWN:
            resource.found.original_role = Role.STOPPED
        _note_inactive(resource, node)

    def stop_containers(self) -> None:
        """Stop the containers of bundles in which something failed that only a new container repairs."""
        for container in self._containers:
            node = container.current_node()
            if node is not None:
                container.found.required_stops.add(node.name)

    def _fence_unreachable(self, resource: Resource, node: Node) -> None:
        """What is thought to run on a node that is away holds everything up until that node is fenced."""
        reason = f"{resource.id} is thought to be active there"
        is_fenced = self._settings.is_fencing_enabled
        if node.is_guest:
            resource.found.is_failed = resource.found.must_stop_when_failed = True
            is_fenced = True
        elif node.connection is not None and not node.connection.found.is_failed:
            node.is_seen = False
            reason = (
                f"{resource.id} is active there"
                " (fencing will be revoked if remote connection can be re-established on another node)"
            )
        if is_fenced:
            demand_fencing(node, reason)

    def _react(self, resource: Resource, node: Node, on_fail: OnFail, words: str, *, is_active: bool) -> None:
        match on_fail:
            case OnFail.DEMOTE:
                resource.found.is_failed = True
                resource.found.required_demotes.add(node.name)
            case OnFail.FENCE:
                is_compatible = self._settings.options.is_pacemaker_compatible
                demand_fencing(node, f"{resource.id} failed there" if is_compatible else f"{resource.id}: {words}")
            case OnFail.STANDBY:
                node.is_standby = True
                node.is_fail_standby = True
            case OnFail.BLOCK:
                resource.found.is_managed = False
                resource.found.is_blocked = True
                resource.found.failed_because = resource.failed_because or words
            case OnFail.BAN:
                resource.found.scores.append((node.name, -INFINITY, words))
            case OnFail.STOP:
                resource.found.next_role = Role.STOPPED
            case OnFail.RESTART if is_active:
                resource.found.is_failed = resource.found.must_stop_when_failed = True
                self._demand_stop(resource, node)
            case OnFail.RESTART_CONTAINER:
                self._restart_container(resource, node, is_active=is_active)
            case OnFail.RESET_REMOTE:
                self._reset_remote(resource, node, is_active=is_active)
            case _:
                pass

    def _demand_stop(self, resource: Resource, node: Node) -> None:
        """What cannot be stopped where it is makes its node unclean, whether anybody can fence that or not."""
        resource.found.required_stops.add(node.name)
        is_compatible = self._settings.options.is_pacemaker_compatible
        if is_compatible and resource.is_managed and not (node.is_online or node.is_unclean or node.is_remote):
            demand_fencing(node, "stop is unrunnable")

    def _restart_container(self, resource: Resource, node: Node, *, is_active: bool) -> None:
        resource.found.is_failed = resource.found.must_stop_when_failed = True
        launcher = resource.launcher
        if launcher is not None and launcher.definition.is_replica_container:
            self._containers.append(launcher)
        elif launcher is not None:
            self._demand_stop(launcher, node)
        elif is_active:
            self._demand_stop(resource, node)

    def _reset_remote(self, resource: Resource, node: Node, *, is_active: bool) -> None:
        """A connection that cannot be restored: the remote node is fenced, unless that was done before."""
        resource.found.is_failed = resource.found.must_stop_when_failed = True
        connected = resource.remote_node
        if self._settings.is_fencing_enabled and connected is not None and not connected.is_remote_fenced:
            demand_fencing(connected, "remote connection is unrecoverable")
        if is_active:
            self._demand_stop(resource, node)
        if resource.definition.reconnect_interval_ms:
            resource.found.next_role = Role.STOPPED


def note_probed(resource: Resource, node: Node) -> None:
    """It is known on this node, and so is what contains it as long as instances are interchangeable."""
    found: Resource | None = resource
    while found is not None:
        found.found.known_on.add(node.name)
        found = None if found.definition.is_unique else found.parent


def take_as_unpromoted(instance: Resource) -> None:
    """An instance of a promotable clone of which only is known that it runs is not promoted."""
    for leaf in instance.leaves():
        if leaf.found.original_role is Role.STARTED:
            leaf.found.original_role = Role.UNPROMOTED


def _note_inactive(resource: Resource, node: Node) -> None:
    """An instance that is not there gives up the number it was recorded under; a stop may still become necessary."""
    if resource.found.history_id is not None and ":" in resource.found.history_id:
        resource.found.history_id = None
    elif node.name in resource.found.required_stops:
        resource.found.required_stops.discard(node.name)
        resource.found.optional_stops.add(node.name)


def _note_failed(resource: Resource, on_fail: OnFail) -> None:
    if on_fail is OnFail.IGNORE:
        return
    resource.found.is_failed = True
    if on_fail not in (OnFail.DEMOTE, OnFail.BLOCK):
        resource.found.must_stop_when_failed = True
