"""Whom a fence device is asked to act upon, and by which name, as its parameters say (safety.md §5)."""

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import IssueFence
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.fencing import FenceOrder
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.ports.fencing import FenceCall
from haclusterd.simulator.checks import targets
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene
from haclusterd.simulator.checks.coverage import Coverage
from haclusterd.simulator.checks.versions import Versions
from haclusterd.simulator.hosts.fence_devices import PowerSwitch, called

TARGETS = "fence target"
"""The section of the table."""
LISTED, MAPPED, NAMED = "by a list", "by a map", "by a map, under a parameter that is named"
EVERYBODY, SOME = "by a device for all nodes", "by a device for some nodes"
WAYS = (LISTED, MAPPED, NAMED, EVERYBODY, SOME)


class DevicesAreAskedForTheirNodes(Checker):
    """A device is asked to act upon nodes that it serves, and by the names that it has for them.

    What a version of the configuration says that was in force since the order was made is right.
    """

    def __init__(self, scene: Scene, log: Log, switch: PowerSwitch, coverage: Coverage) -> None:
        super().__init__(scene, log)
        self._coverage = coverage
        self._read_from: tuple[object, object] = None, None
        self._versions: Versions[Configuration] = Versions()
        self._orders: dict[FenceKey, tuple[int, FenceOrder]] = {}
        switch.when_asked.append(self._asked)

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._orders.clear()

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        read_from = applied.cib.configuration, applied.cib.status.rules
        if any(one is not other for one, other in zip(read_from, self._read_from, strict=True)):
            self._read_from = read_from
            self._versions.begins(applied.cib.in_force, self.scene.world.now_us)

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        if isinstance(accepted.command, IssueFence):
            self._orders[accepted.command.order.key] = self.scene.world.now_us, accepted.command.order

    def _asked(self, call: FenceCall, target: NodeName) -> None:
        ordered_us, order = self._orders.get(FenceKey(call.key.rpartition("/")[0]), (0, None))
        known = [(version, device) for version in self._versions.known_to(ordered_us)
                 if isinstance(device := version.resources.get(ResourceId(call.device)), Primitive)]  # fmt: skip
        if order is None or not known:
            return
        names = {targets.name_of(order.target, device) for _, device in known}
        if called(call) not in names or target != order.target:
            what = " or ".join(sorted(names))
            self.object_to(f"{call.device} is asked for {called(call)}, and calls {order.target} {what}")
        if not any(targets.may_serve(version, device, order.target) for version, device in known):
            self.object_to(f"{call.device} is asked for {order.target}, which it does not serve")
        self._count(known[-1][1], order.target)

    def _count(self, device: Primitive, node: NodeName) -> None:
        parameters = effective(device.parameters)
        is_named = bool(parameters.get("pcmk_host_argument"))
        listed = targets.served_by(device)
        if node in targets.outlets(device):
            self._coverage.count(TARGETS, NAMED if is_named else MAPPED)
        elif listed:
            self._coverage.count(TARGETS, LISTED)
        if listed and not set(self.log.newest.members) <= set(listed):
            self._coverage.count(TARGETS, SOME)
        elif not listed:
            self._coverage.count(TARGETS, EVERYBODY)
