"""Whom a fence device may be asked for, and by which name: the judge's reading, and what it objects to."""

from collections.abc import Mapping

import pytest

from haclusterd.cib.commands import RequestFence
from haclusterd.cib.edits import PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.ports.fencing import FenceCall
from haclusterd.simulator.checks import targets
from haclusterd.simulator.checks.checker import ViolationError
from haclusterd.simulator.checks.checkers_of_targets import LISTED, MAPPED, NAMED, TARGETS, DevicesAreAskedForTheirNodes
from haclusterd.simulator.checks.versions import DECIDED_US
from haclusterd.simulator.hosts.fence_devices import AGENT, target_of
from haclusterd.simulator.scenario import Cluster

N1, N2 = NodeName("n1"), NodeName("n2")
MAP = {"pcmk_host_map": "n1:outlet-n1; n2=outlet-n2\tn3:outlet-n3"}


def device(parameters: Mapping[str, str], name: str = "switch") -> Primitive:
    pairs = AttributeSet(f"{name}-parameters", tuple(parameters.items()))
    return Primitive(ResourceId(name), AgentReference("stonith", None, AGENT), parameters=(pairs,))


@pytest.mark.parametrize(
    ("parameters", "served", "name"),
    [
        ({"pcmk_host_list": "n1 n2"}, ("n1", "n2"), "n1"),
        (MAP, ("n1", "n2", "n3"), "outlet-n1"),
        ({**MAP, "pcmk_host_argument": "none"}, ("n1", "n2", "n3"), "n1"),
        ({"pcmk_host_list": "n2", "pcmk_host_map": "n1=7"}, ("n2", "n1"), "7"),
        ({**MAP, "pcmk_host_check": "dynamic-list"}, (), "outlet-n1"),
        ({"pcmk_host_list": "n2", "pcmk_host_check": "none"}, (), "n1"),
    ],
)
def test_a_device_serves_what_is_listed(parameters: Mapping[str, str], served: tuple[str, ...], name: str) -> None:
    assert targets.served_by(device(parameters)) == served
    assert targets.name_of(N1, device(parameters)) == name


@pytest.mark.parametrize(
    ("parameters", "way"),
    [
        ({"pcmk_host_list": "n1 n2 n3"}, LISTED),
        (MAP, MAPPED),
        ({**MAP, "pcmk_host_argument": "port"}, NAMED),
    ],
)
def test_a_node_is_fenced_by_the_name_of_its_outlet(parameters: Mapping[str, str], way: str) -> None:
    cluster = Cluster().form()
    cluster.configure((PutResource(device(parameters)),))
    cluster.until(cluster.is_settled, 20_000, "settled")
    asked: list[str] = []
    cluster.switch.when_asked.append(lambda call, target: asked.append(f"{call.action} {target} {target_of(call)}"))
    cluster.power_off(N2)
    cluster.until(lambda: any(each.outcome is FenceOutcome.FENCED for each in cluster.cib.status.fencing_history),
                  20_000, "fenced")  # fmt: skip
    assert asked == ["off n2 n2"] or asked == ["reboot n2 n2"]
    assert cluster.coverage.counts[TARGETS, way] == 1


@pytest.mark.parametrize(
    ("changed", "objection"),
    [
        ({"host": "n2"}, "switch is asked for n2, and calls n2 outlet-n2"),
        ({"host": "outlet-n3"}, "switch is asked for outlet-n3, and calls n2 outlet-n2"),
        ({"device": "spare"}, "spare is asked for outlet-n2, and calls n2 n2"),
        ({"device": "spare", "host": "n2"}, "spare is asked for n2, which it does not serve"),
    ],
)
def test_a_device_that_is_asked_for_another_ends_the_run(changed: dict[str, str], objection: str) -> None:
    """A fencer asks it that reads the parameters in another way."""
    cluster = Cluster().form()
    spare = device({"pcmk_host_list": "n1"}, "spare")
    cluster.configure((PutResource(device(MAP)), PutResource(spare)))
    cluster.until(cluster.is_settled, 20_000, "settled")
    cluster.run_for(DECIDED_US // 1000)
    (judge,) = (each for each in cluster.switch.when_asked
                if isinstance(getattr(each, "__self__", None), DevicesAreAskedForTheirNodes))  # fmt: skip

    def look(call: FenceCall, _target: NodeName) -> None:
        asked = replace(call, **changed)
        judge(asked, target_of(asked))

    cluster.switch.when_asked[:] = [look]
    status = cluster.cib.status.nodes[N2]
    cluster.administer(RequestFence(N2, status.incarnation, "a person", "tried"))
    with pytest.raises(ViolationError, match=objection):
        cluster.run_for(20_000)
