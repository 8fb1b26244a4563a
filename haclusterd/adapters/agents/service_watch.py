"""Deaths of service processes, as events (safety.md §8).

After a successful start or probe, the processes that carry the marks of the resource and of this node in their
environment, or that are in the resource's control group, are searched in /proc on a thread; the roots among them, at
most eight, get one pidfd each. An exit is reported at once; it only means "ask the agent".

Invariant: an agent at work is never taken for a service, though it carries the same marks: it is known by its order.
Nor is a process that bears them without the seal of this node, by which somebody could take the eight places.
Processes of other nodes on the same kernel are distinguished by the marks of the node and of its local cluster.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from haclusterd.adapters.agents.seals import Seals
from haclusterd.adapters.agents.service_groups import ServiceGroups
from haclusterd.adapters.machine.ready_threads import ReadyThreads
from haclusterd.agents.process_table import (
    INSTANCE_MARK,
    LOCAL_CLUSTER_MARK,
    NODE_MARK,
    ORDER_MARK,
    is_genuine,
    list_pids,
    read_marks,
    read_stat,
)
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import after
from haclusterd.model.records import dataclass, field
from haclusterd.ports.clock import Clock

ROOTS_PER_RESOURCE = 8
INIT = 1
RESCAN_AFTER_DEATH_MS = 1000
"""Pause after the end of a process before its service, which may replace processes itself, is searched again."""


@dataclass(frozen=True, slots=True)
class MarkedProcess:
    """One process that carries the marks of a resource instance and of this node."""

    pid: int
    parent: int
    start_time: int
    instance: str
    order: str | None


@dataclass(slots=True)
class _Watched:
    instance: str
    died: Callable[[ResourceId], None]
    pidfds: dict[int, int] = field(default_factory=dict)
    """Process id to pidfd."""


def scan_marked(node: NodeName, local_cluster: str | None, seals: Seals | None = None) -> list[MarkedProcess]:
    """Return all processes that instances on this node started. Takes milliseconds: not for the main loop.

    `local_cluster` is the mark of the local development cluster that the node belongs to; None: it has its own machine.
    Without `seals`, marks alone are believed.
    """
    found = []
    for pid in list_pids():
        marks = read_marks(pid)
        if INSTANCE_MARK not in marks or marks.get(NODE_MARK) != node:
            continue
        if marks.get(LOCAL_CLUSTER_MARK) != local_cluster:
            continue
        stat, instance = read_stat(pid), marks[INSTANCE_MARK]
        seal = seals.of(instance) if seals is not None else ""
        if stat is not None and not stat.is_dead and is_genuine(marks, stat.start_time, seal):
            found.append(MarkedProcess(pid, stat.parent, stat.start_time, instance, marks.get(ORDER_MARK)))
    return found


def find_roots(processes: Collection[MarkedProcess], instance: str, at_work: Collection[str]) -> list[MarkedProcess]:
    """Return an instance's service processes whose parent is not one of them, oldest first, at most eight.

    `at_work` holds the keys of actions in progress: their processes are agents.
    """
    services = [process for process in processes if process.instance == instance and process.order not in at_work]
    family = {process.pid for process in services}
    roots = [process for process in services if process.parent == INIT or process.parent not in family]
    return sorted(roots, key=lambda root: (root.start_time, root.pid))[:ROOTS_PER_RESOURCE]


def scan_group(pids: Collection[int], instance: str, marked: Collection[int]) -> list[MarkedProcess]:
    """Return the roots among the processes of an instance's group that carry no mark.

    A process whose parent is in the group is no root, or belongs to an agent; a child of this process is an agent that
    does not have its own environment yet.
    """
    found = []
    for pid in sorted(frozenset(pids) - frozenset(marked)):
        stat = read_stat(pid)
        if stat is None or stat.is_dead or stat.parent in pids or stat.parent == os.getpid():
            continue
        found.append(MarkedProcess(pid, stat.parent, stat.start_time, instance, read_marks(pid).get(ORDER_MARK)))
    return found


class ServiceWatch:
    """The pidfds of this node's services."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        node: NodeName,
        at_work: Callable[[], Collection[str]],
        groups: ServiceGroups,
        *,
        threads: ReadyThreads,
        local_cluster: str | None = None,
        seals: Seals | None = None,
    ) -> None:
        self._clock = clock
        self._loop = loop
        self._node = node
        self._at_work = at_work
        self._groups = groups
        self._threads = threads
        self._local_cluster = local_cluster
        self._seals = seals
        self._watched: dict[ResourceId, _Watched] = {}
        self._wanted: set[ResourceId] = set()
        self._is_scanning = False
        self._begun_since: set[str] = set()
        """Keys of actions at work at the beginning of the scan, or started since: they may have ended meanwhile."""

    def note_begun(self, key: str) -> None:
        """Note the start of an action: its processes must not be taken for services by a scan under way."""
        if self._is_scanning:
            self._begun_since.add(key)

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """Find and watch the resource's processes; called again, search for new ones and keep the others."""
        known = self._watched.get(resource)
        if known is not None and known.instance == instance:
            known.died = died
        else:
            self.unwatch(resource)
            self._watched[resource] = _Watched(instance, died)
        self._scan(resource)

    def unwatch(self, resource: ResourceId) -> None:
        """Stop watching; nothing is reported afterwards."""
        watched = self._watched.pop(resource, None)
        self._wanted.discard(resource)
        for pid in list(watched.pidfds) if watched is not None else ():
            assert watched is not None
            self._close(watched, pid)

    def _scan(self, resource: ResourceId) -> None:
        self._wanted.add(resource)
        if self._is_scanning:
            return
        self._is_scanning = True
        wanted, self._wanted = self._wanted, set()
        self._begun_since = set(self._at_work())
        instances = {each: self._watched[each].instance for each in sorted(wanted & self._watched.keys())}
        try:
            self._threads.do(lambda: self._scan_on_thread(wanted, instances))
        except RuntimeError:  # No more threads on this machine: the recurring monitor must suffice.
            self._is_scanning = False

    def _scan_on_thread(self, wanted: set[ResourceId], instances: Mapping[ResourceId, str]) -> None:
        processes = scan_marked(self._node, self._local_cluster, self._seals)
        marked = frozenset(process.pid for process in processes)
        for each, instance in instances.items():
            processes += scan_group(self._groups.processes(each), instance, marked)
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(self._scanned, wanted, processes)

    def _scanned(self, wanted: set[ResourceId], processes: list[MarkedProcess]) -> None:
        self._is_scanning = False
        at_work = self._begun_since
        for resource in sorted(wanted & self._watched.keys()):
            watched = self._watched[resource]
            for root in find_roots(processes, watched.instance, at_work):
                self._open(resource, watched, root)
        if self._wanted:
            self._scan(min(self._wanted))

    def _open(self, resource: ResourceId, watched: _Watched, root: MarkedProcess) -> None:
        if root.pid in watched.pidfds or len(watched.pidfds) >= ROOTS_PER_RESOURCE:
            return
        try:
            pidfd = os.pidfd_open(root.pid)
        except ProcessLookupError:
            self._clock.call_soon(lambda: self._tell(resource, watched))
            return
        except OSError:
            return
        stat = read_stat(root.pid)
        if stat is None or stat.start_time != root.start_time:
            os.close(pidfd)
            self._clock.call_soon(lambda: self._tell(resource, watched))
            return
        watched.pidfds[root.pid] = pidfd
        self._loop.add_reader(pidfd, self._exited, resource, watched, root.pid)

    def _exited(self, resource: ResourceId, watched: _Watched, pid: int) -> None:
        self._close(watched, pid)
        self._tell(resource, watched)

    def _tell(self, resource: ResourceId, watched: _Watched) -> None:
        if self._watched.get(resource) is not watched:
            return
        self._clock.call_at(after(self._clock.now(), RESCAN_AFTER_DEATH_MS), lambda: self._rescan(resource, watched))
        watched.died(resource)

    def _rescan(self, resource: ResourceId, watched: _Watched) -> None:
        if self._watched.get(resource) is watched:
            self._scan(resource)

    def _close(self, watched: _Watched, pid: int) -> None:
        pidfd = watched.pidfds.pop(pid)
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
