"""Whether a resource is what another one, configured no more, runs: a service that somebody has renamed (safety.md §1).

Agent and parameters are the same. Two resources that have run beside each other are two services all the same.
"""

from collections.abc import Iterable

from haclusterd.model.history import ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, OrderKey
from haclusterd.model.ocf import ActionName
from haclusterd.model.orders import Order, place_of

_BEGINNINGS = (operation_key(ActionName.START, 0), operation_key(ActionName.MIGRATE_FROM, 0))


def is_run_by(started: Order | ResourceHistory, agent: AgentReference | None, definition: str) -> bool:
    """Tell whether what was started so may run by an agent and parameters, of which `definition` is the digest.

    A reload that did not come to its end leaves two sets of parameters of which it runs by one.
    """
    definitions = {started.definition}
    if isinstance(started, ResourceHistory):
        definitions |= {reload.definition for reload in started.reloads}
    return started.agent == agent and definition in definitions


def has_run_beside(own: Iterable[ResourceHistory], other: Order | ResourceHistory) -> bool:
    """Tell whether a resource, by its histories on all nodes, has run in the same way since the other was started.

    What has only run before that may have been renamed, and get back its first name.
    """
    since = place_of(other.key if isinstance(other, Order) else _begun_by(other))
    alike = [history for history in own if is_run_by(other, history.agent, history.definition)]
    records = (record for history in alike for record in history.records.values())
    return any(place_of(record.order) > since for record in records if not record.is_probe)


def _begun_by(history: ResourceHistory) -> OrderKey | None:
    orders = [history.records[key].order for key in _BEGINNINGS if key in history.records]
    return max(orders, key=place_of, default=None)
