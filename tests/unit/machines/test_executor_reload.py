"""What a start says of the parameters that its agent can take over later is recorded with it, and a reload's too."""

import pytest

from haclusterd.model.history import operation_key
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.scheduler.model.digests import restart_digest_of
from tests.unit.machines.executing import Node
from tests.unit.situations import DB, N2, ended, order

PARAMETERS = {"ip": "10.0.0.1", "threshold": "90"}


@pytest.mark.parametrize("action", [ActionName.START, ActionName.RELOAD_AGENT])
@pytest.mark.parametrize("names", [None, (), ("ip",)])
def test_the_start_is_recorded_with_them(action: ActionName, names: tuple[str, ...] | None) -> None:
    node = Node()
    node.see()
    node.cluster.issue(replace(order("a", action=action), parameters=PARAMETERS))
    node.see()
    node.perform(node.executor.agent_finished(replace(ended("a"), restart_parameters=names), node.moment()))
    record = node.cluster.status(N2).histories[DB].records[operation_key(ActionName.START, 0)]
    if names is None:
        assert (record.restart_digest, record.restart_parameters) == ("", ())
    else:
        assert record.restart_parameters == names
        assert record.restart_digest == restart_digest_of(PARAMETERS, names)


def test_what_only_the_start_has_is_not_in_the_digest_of_what_a_reload_cannot_change() -> None:
    node = Node()
    node.see()
    whole = {**PARAMETERS, "ip": "10.0.0.9", "warm_up": "yes"}
    node.cluster.issue(replace(order("a"), parameters=whole, resource_parameters=PARAMETERS))
    node.see()
    node.perform(node.executor.agent_finished(replace(ended("a"), restart_parameters=("ip", "warm_up")), node.moment()))
    record = node.cluster.status(N2).histories[DB].records[operation_key(ActionName.START, 0)]
    assert record.restart_digest == restart_digest_of(PARAMETERS, ("ip", "warm_up"))
