"""How many copies there are of each service, by the hosts' facts alone, also while its shape changes (safety.md §1)."""

from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Checker, Log, Scene, order_key
from haclusterd.simulator.hosts.truth import Holding, base_of, is_promoted, number_of, promoted

MAKING = ("start", "promote", "migrate_from")


class NeverTwoActive(Checker):
    """Nothing begins to run, or may begin to, that makes one copy too many, or one promoted instance.

    There is one copy of a primitive, and one of each instance of a unique clone; of a clone as many copies, or
    instances, as its `clone-max` says; and `promoted-max` of them promoted, `promoted-node-max` on a node. A shape
    that has changed since is allowed to what was ordered before the change (`shapes`). Whatever the shape was and
    is, there are never two copies on one node under one name, never the instance `db:0` of a unique clone beside
    `db`, and never one service under two names of people's.
    """

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self._makers: dict[Holding, OrderKey | None] = {}
        """By whose order the newest agent was to make it active."""

    def another_log_begins(self) -> None:
        """See `Checker`."""
        self._makers.clear()

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:
        """See `Checker`."""
        if call.action in MAKING:
            made = promoted(call.resource) if call.action == "promote" else call.resource
            self._makers[Holding(made, node)] = order_key(call, self.log)

    def holders_changed(self, begun: Holding, others: tuple[Holding, ...], *, has_moved: bool) -> None:
        """See `Checker`."""
        if begun in others:
            self.object_to(f"{begun.resource} is, or may be, active twice on {begun.node}")
        if not others or has_moved:
            return
        strange = [each for each in others if _is_strange(each, begun)]
        if strange:
            self._object_to_holders(begun, strange, "which is one service")
        limits = self.log.shapes.allowed(base_of(begun.resource), self._makers.get(begun))
        number = number_of(begun.resource)
        if is_promoted(begun.resource):
            self._count(begun, others, limits.promoted)
            beside = tuple(each for each in others if each.node == begun.node)
            if len(beside) + 1 > limits.promoted_on_node:
                self._object_to_holders(begun, beside, f"and {limits.promoted_on_node} at most on one node")
        elif number is None:
            self._count(begun, others, limits.copies)
        elif max(number, len({each.resource for each in others} - {begun.resource})) >= limits.instances:
            self._object_to_holders(begun, others, f"and of it there are at most {limits.instances} instances")
        same = [each for each in others if each.resource == begun.resource]
        if same and number is not None:
            self._object_to_holders(begun, same, "and is to run once")

    def _count(self, begun: Holding, others: tuple[Holding, ...], most: int) -> None:
        if len(others) + 1 > most:
            self._object_to_holders(begun, others, f"and {most} at most" if most > 1 else "")

    def _object_to_holders(self, begun: Holding, others: "list[Holding] | tuple[Holding, ...]", why: str) -> None:
        places = [_words(each, begun.resource) for each in (begun, *others)]
        self.object_to(f"{begun.resource} is, or may be, active on {' and '.join(places)}{f', {why}' if why else ''}")


def _is_strange(other: Holding, begun: Holding) -> bool:
    """Tell whether something goes by another name that is never there beside this one."""
    has_number = number_of(other.resource) is not None
    return base_of(other.resource) != base_of(begun.resource) or has_number != (number_of(begun.resource) is not None)


def _words(holding: Holding, resource: ResourceId) -> str:
    return holding.node if holding.resource == resource else f"{holding.node} as {holding.resource}"
