"""What starts after a clone waits for as many of its instances as `clone-min` says, by the hosts' facts.

Source: Pacemaker Explained, "Clone Options".
"""

from collections.abc import Iterator, Mapping

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import IssueOrders
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Clone, Configuration, Group, Ordering, OrderingKind, Primitive, effective
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.model.rows import read_boolean_or
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Accepted, Checker, Log, Scene, order_key
from haclusterd.simulator.checks.coverage import Coverage
from haclusterd.simulator.checks.versions import Versions
from haclusterd.simulator.hosts.truth import Truth, base_of

MINIMUM = "clone-min"
"""The section of the table."""
FOLLOWS, LACKS = "what follows starts", "too few instances run"
OUTCOMES = (FOLLOWS, LACKS)


@dataclass(frozen=True, slots=True)
class Need:
    """What must run before something starts."""

    instance: ResourceId
    least: int


class FollowersWaitForInstances(Checker):
    """Nothing starts after a clone of which fewer instances run than `clone-min`, or have run shortly before.

    An instance that has just died may not be known to have. What a version of the configuration did not ask for that
    was in force since the order was made is not asked for.
    """

    KNOWN_MS = 60_000
    """Longer than the interval of a monitor, its timeout, and the loss of a node."""

    def __init__(self, scene: Scene, log: Log, truth: Truth, coverage: Coverage) -> None:
        super().__init__(scene, log)
        self._truth = truth
        self._coverage = coverage
        self._read_from: tuple[object, object] = None, None
        self._needs: Versions[Mapping[ResourceId, Need]] = Versions()
        self._issued_us: dict[OrderKey, int] = {}
        self._ran_us: dict[ResourceId, dict[NodeName, int]] = {}
        """When an instance ran on a node last."""

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._issued_us.clear()

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        cib = applied.cib
        read_from = cib.configuration, cib.status.rules
        if any(one is not other for one, other in zip(read_from, self._read_from, strict=True)):
            self._read_from = read_from
            needs = dict(_needs(cib.in_force))
            if needs != self._needs.newest:
                self._needs.begins(needs, self.scene.world.now_us)

    def first_accepted(self, accepted: Accepted) -> None:
        """See `Checker`."""
        command = accepted.command
        for order in command.orders if isinstance(command, IssueOrders) else ():
            self._issued_us[order.key] = self.scene.world.now_us

    def looked_at(self, node: NodeName) -> None:
        """See `Checker`."""
        for need in (self._needs.newest or {}).values():
            self._look_at(need.instance, node)
            if len(self._truth.copies_of(need.instance)) < need.least:
                self._coverage.count(MINIMUM, LACKS)

    def _look_at(self, instance: ResourceId, node: NodeName) -> None:
        if self._truth.is_active(node, instance):
            self._ran_us.setdefault(instance, {})[node] = self.scene.world.now_us

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        key, resource = order_key(call, self.log), base_of(call.resource)
        if call.action != "start" or key is None or resource not in (self._needs.newest or {}):
            return
        needs = [needs.get(resource) for needs in self._needs.known_to(self._issued_us.get(key, 0))]
        found = [need for need in needs if need is not None]
        if len(found) < len(needs) or len({need.instance for need in found}) > 1 or _is_left_alone(self.log.newest):
            return
        instance, least = found[0].instance, min(need.least for need in found)
        for name in self.log.newest.members:
            self._look_at(instance, name)
        since_us = self.scene.world.now_us - self.KNOWN_MS * 1000
        count = sum(ran_us >= since_us for ran_us in self._ran_us.get(instance, {}).values())
        if count < least:
            self.object_to(f"{call.resource} starts on {node} after {count} instances of {instance}, and not {least}")
        self._coverage.count(MINIMUM, FOLLOWS)


def _needs(configuration: Configuration) -> Iterator[tuple[ResourceId, Need]]:
    """Yield what each primitive needs that an ordering puts after the start of a clone of a primitive."""
    for each in configuration.constraints.values():
        if not isinstance(each, Ordering) or each.kind is not OrderingKind.MANDATORY or each.sets:
            continue
        clone, then = configuration.resources.get(each.first), configuration.resources.get(each.then)
        is_start = each.first_action == "start" and each.then_action in (None, "start")
        if not is_start or not isinstance(clone, Clone) or each.lifetime:
            continue
        meta = {**effective(configuration.resource_defaults), **effective(clone.meta)}
        is_plain = isinstance(configuration.resources.get(clone.child), Primitive)
        least = int(meta.get("clone-min", "0"))
        is_unique = read_boolean_or(meta.get("globally-unique"), default=int(meta.get("clone-node-max", "1")) > 1)
        if least and is_plain and not is_unique and isinstance(then, Primitive | Group):
            for name in (then.id,) if isinstance(then, Primitive) else then.members:
                yield name, Need(clone.child, least)


def _is_left_alone(cib: Cib) -> bool:
    """Tell whether something is in maintenance, and its monitors do not say what has died."""
    configuration = cib.in_force
    blocks = [effective(each.meta) for each in configuration.resources.values()]
    blocks += [effective(each.attributes) for each in configuration.nodes.values()]
    blocks += [dict(each.attributes) for each in cib.status.nodes.values()]
    is_aside = any(read_boolean_or(each.get("maintenance"), default=False) for each in blocks)
    is_unmanaged = any(not read_boolean_or(each.get("is-managed"), default=True) for each in blocks)
    return is_aside or is_unmanaged or ClusterProperties(configuration).boolean("maintenance-mode")
