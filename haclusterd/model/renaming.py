"""Whether two names stand for one service: what one of them is to run may run under the other (safety.md §1).

A service is an agent and the parameters that it is given. The names of resources change: somebody renames one, deletes
it and configures it again, or lets two exchange what they run. What was started under a name keeps running as it was
started, and so does an agent that nobody wants any more. So it is asked of every name in which ways it may run on a
node, and whether it is configured to run in that way: two names that are both configured so are two services, on
purpose.
"""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.activity import may_be_active
from haclusterd.model.cluster import NodeStatus
from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, contained
from haclusterd.model.history import ReloadInDoubt, ResourceHistory, operation_key
from haclusterd.model.ids import UNITS, AgentReference, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass
from haclusterd.model.templates import expanded

_BEGINNINGS = (operation_key(ActionName.START, 0), operation_key(ActionName.MIGRATE_FROM, 0))
_UNIT_SUFFIX = ".service"


@dataclass(frozen=True, slots=True)
class Service:
    """An agent and the parameters that it is given, without what single operations add to them."""

    agent: AgentReference
    parameters: Mapping[str, str]
    definition: str
    """Digest of the parameters; empty: not recorded."""

    @property
    def is_recognisable(self) -> bool:
        """Whether it can be recognised under another name. Without parameters only names distinguish two, but for
        units, which are the same under every name; fence devices run nothing."""
        is_named = self.agent.standard in UNITS or (bool(self.parameters) and self.agent.standard != "stonith")
        return bool(self.definition) and is_named

    def is_run_by(self, agent: AgentReference, kept: Order | ResourceHistory | ReloadInDoubt) -> bool:
        """Return whether an order, a history or a reload in doubt of an agent is about this service."""
        if kept.definition:
            return self.definition == kept.definition and is_same_agent(self.agent, agent)
        parameters = kept.lasting_parameters if isinstance(kept, Order) else kept.parameters
        return self.parameters == parameters and is_same_agent(self.agent, agent)


def service_of(order: Order) -> Service:
    """Return what an order makes active."""
    return Service(order.agent, order.lasting_parameters, order.definition)


def is_same_agent(one: AgentReference, other: AgentReference) -> bool:
    """Return whether two references name one program; a unit has one name in all the classes of units."""
    if one == other:
        return True
    if not {one.standard, other.standard} <= UNITS:
        return False
    return one.type.removesuffix(_UNIT_SUFFIX) == other.type.removesuffix(_UNIT_SUFFIX)


def names_running(status: NodeStatus, service: Service) -> set[ResourceId]:
    """Return the names under which a service may run on a node, or may be about to.

    An open order counts from its commit to its answer, wanted or not, and one to reload as well: when it ends, and
    whether it does something before, nobody knows.
    """
    found = {order.resource for order in opening(status.orders.values()) if service.is_run_by(order.agent, order)}
    definition = service.definition
    for name, history in status.histories.items():
        # Most are another service by their digests alone.
        if history.definition and history.definition != definition and not history.reloads:
            continue
        is_reloaded = any(service.is_run_by(history.agent, reload) for reload in history.reloads)
        is_run = is_reloaded or service.is_run_by(history.agent, history)
        if is_run and may_be_active(status, name):
            found.add(name)
    return found


def opening(orders: Iterable[Order]) -> Iterator[Order]:
    """Yield the orders after which something may run as it did not before."""
    return (order for order in orders if order.is_activating or order.action is ActionName.RELOAD_AGENT)


def has_been_started(histories: Iterable[ResourceHistory], service: Service) -> bool:
    """Return whether a start of a service has succeeded and nothing has ended it since, by histories of one name.

    What runs under its own name already is another service than what runs in the same way under another one: both were
    configured so when the later one was started. A probe that found something says less: it may have found that one.
    """
    begun = (
        history.records[key]
        for history in histories
        if service.is_run_by(history.agent, history)
        for key in _BEGINNINGS
        if key in history.records
    )
    return any(record.exit_code is record.target_exit_code and not record.is_failure for record in begun)


def may_be_configured(configuration: Configuration, name: ResourceId, service: Service) -> bool:
    """Return whether a primitive may be configured to run a service, whatever rules say at the moment, and of whom.

    Only the scheduler knows the time and the nodes' attributes by which rules are judged. So of each parameter every
    value is possible that a block under a rule gives, down to the strongest block without one.
    """
    primitive = configuration.resources.get(name)
    if not isinstance(primitive, Primitive):
        return False
    whole = expanded(primitive, configuration)
    if not is_same_agent(whole.agent, service.agent):
        return False
    blocks = [*_by_strength(whole.parameters), *_of_parents(configuration, name)]
    names = {*service.parameters, *(parameter for block in blocks for parameter, _value in block.pairs)}
    return all(service.parameters.get(parameter) in _possible(blocks, parameter) for parameter in names)


def _possible(blocks: Iterable[AttributeSet], parameter: str) -> set[str | None]:
    found: set[str | None] = set()
    for block in blocks:
        value = next((value for name, value in block.pairs if name == parameter and value != "#default"), None)
        if value is not None:
            found.add(value)
            if block.rule is None:
                return found
    return found | {None}


def _of_parents(configuration: Configuration, name: ResourceId) -> Iterator[AttributeSet]:
    """Yield the blocks of what contains a primitive, the nearest first; each has the first that names it."""
    parents: dict[ResourceId, ResourceId] = {}
    for each in configuration.resources.values():
        for child in contained(each):
            parents.setdefault(child, each.id)
    seen = {name}
    while name in parents and parents[name] not in seen:
        name = parents[name]
        seen.add(name)
        yield from _by_strength(getattr(configuration.resources[name], "parameters", ()))


def _by_strength(blocks: tuple[AttributeSet, ...]) -> list[AttributeSet]:
    return sorted(reversed(blocks), key=lambda block: -block.score)
