"""The health of nodes: what it forbids is not ordered, and leaves (Pacemaker Explained, "Tracking Node Health")."""

from collections.abc import Callable

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import DcElected, IssueFence, IssueOrders
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.simulator.checks import expectations, health
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene
from haclusterd.simulator.checks.coverage import Coverage
from haclusterd.simulator.checks.versions import DECIDED_US
from haclusterd.simulator.hosts.truth import Truth, base_of

HEALTH = "health"
"""The section of the table."""
STRATEGIES = ("migrate-on-red", "only-green", "progressive", "custom")
LEAVES = "a copy leaves"
OUTCOMES = (*(f"{strategy} forbids a node" for strategy in STRATEGIES), LEAVES)
_BEGINNING = ("start", "promote")


class UnhealthyNodesAreLeft(Checker):
    """Nothing is ordered to begin where health forbids it, and what runs there does not stay without a reason."""

    LEAVES_MS = 25_000
    """Longer than a DC waits that has nothing else to do (`transition-delay`)."""
    LOOK_MS = 1000

    def __init__(
        self, scene: Scene, log: Log, truth: Truth, coverage: Coverage, is_idle: Callable[[], bool]
    ) -> None:
        """`is_idle` tells whether all nodes are online, nothing is ordered, and plans are made."""
        super().__init__(scene, log)
        self._truth = truth
        self._coverage = coverage
        self._is_idle = is_idle
        self._read_from: tuple[object, ...] = ()
        self._strategy = "none"
        self._allowing: frozenset[ResourceId] = frozenset()
        self._since_us: dict[NodeName, int] = {}
        """Since when health forbids a node, by the same words of the configuration."""
        self._looked_us = self._staying_us = 0
        self._staying = ""
        """What stays where health forbids it, since an instant at which nothing was ordered."""

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._read_from = ()
        self._since_us.clear()

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        cib = applied.cib
        configuration = cib.configuration, cib.status.rules
        read_from = *configuration, *(each.attributes for each in cib.status.nodes.values())
        if _is_same(read_from, self._read_from):
            return
        if not _is_same(configuration, self._read_from[:2]):
            self._read(cib.in_force)
        self._read_from = read_from
        forbidden = () if self._strategy == "none" else sorted(health.unhealthy(cib))
        for node in forbidden:
            if node not in self._since_us:
                self._coverage.count(HEALTH, f"{self._strategy} forbids a node")
        self._since_us = {node: self._since_us.get(node, self.scene.world.now_us) for node in forbidden}

    def _read(self, configuration: Configuration) -> None:
        read = health.strategy(configuration), health.allowing(configuration)
        if read != (self._strategy, self._allowing):
            self._since_us.clear()
        self._strategy, self._allowing = read

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        if isinstance(command, IssueOrders | IssueFence | DcElected):
            self._staying = ""
        for order in command.orders if isinstance(command, IssueOrders) else ():
            since_us = self._since_us.get(order.node)
            if since_us is None or not self._is_forbidden(accepted.before.in_force, order.resource):
                continue
            if order.action == "stop":
                self._coverage.count(HEALTH, LEAVES)
            waited_us = self.scene.world.now_us - since_us
            if order.action in _BEGINNING and waited_us > DECIDED_US:
                self.object_to(f"{order.key} is to {order.action} {order.resource} on {order.node}, "
                               f"which its health has forbidden for {waited_us // 1000} ms")  # fmt: skip

    def _is_forbidden(self, configuration: Configuration, resource: ResourceId) -> bool:
        base = base_of(resource)
        is_device = any(device.id == base for device in configuration.fence_devices())
        return base in configuration.resources and not is_device and configuration.top_of(base) not in self._allowing

    def looked_at(self, node: NodeName) -> None:  # noqa: ARG002 (all are looked at at once)
        """See `Checker`."""
        now_us = self.scene.world.now_us
        if not self._since_us or now_us - self._looked_us < self.LOOK_MS * 1000:
            return
        self._looked_us = now_us
        staying = expectations.stay_on_unhealthy(self.log.newest, self._truth) if self._is_idle() else ""
        if not staying or staying != self._staying:
            self._staying, self._staying_us = staying, now_us
        elif now_us - self._staying_us >= self.LEAVES_MS * 1000:
            self.object_to(f"{staying}, and stays for {(now_us - self._staying_us) // 1000} ms")


def _is_same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(each is former for each, former in zip(one, other, strict=True))
