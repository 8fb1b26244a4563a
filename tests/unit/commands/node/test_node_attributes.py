"""Node attributes as verbs: what is proposed, what costs nothing, what is shown."""

import pytest

from haclusterd.cib.commands import ChangeConfiguration, RequestFence, SetTransientAttribute
from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code
from tests.administered_clusters import NOW, Cluster, formed

N1 = NodeName("n1")


def ask(cluster: Cluster, verb: str = "node.attribute", **arguments: str | int | bool) -> Outcome:
    outcome = registry.run(verb, arguments, Context(cluster.cib, NOW, "root@n1", live=cluster.live))
    if not outcome.dampen_ms:
        for command in outcome.commands:
            cluster.do(command)
    return outcome


def shown(cluster: Cluster, **arguments: str | bool) -> object:
    data = ask(cluster, "node.attributes", **arguments).data
    assert isinstance(data, dict)
    return {node["name"]: {key: value for key, value in node.items() if key != "name"} for node in data["nodes"]}


def test_an_attribute_is_set_changed_and_deleted_until_reboot() -> None:
    cluster = formed()
    ask(cluster, action="set", name="#health-cpu", value="red")
    assert cluster.node("n1").attributes == {"#health-cpu": "red"}
    ask(cluster, action="set", node="n2", name="#health-cpu", value="green", lifetime="reboot")
    assert shown(cluster, all=True, name="#health-cpu", lifetime="reboot") == {
        "n1": {"reboot": {"#health-cpu": "red"}}, "n2": {"reboot": {"#health-cpu": "green"}}, "n3": {"reboot": {}},
    }  # fmt: skip
    ask(cluster, action="delete", name="#health-cpu")
    assert cluster.node("n1").attributes == {}


@pytest.mark.parametrize(
    "again", [{"action": "set", "value": "red"}, {"action": "set", "value": "red", "lifetime": "forever"}]
)
def test_what_is_so_already_proposes_nothing(again: dict[str, str]) -> None:
    cluster = formed()
    assert len(ask(cluster, name="a", **again).commands) == 1
    outcome = ask(cluster, name="a", **again)
    assert outcome.commands == ()
    assert [each.code for each in outcome.reports] == [Code.NOTHING_TO_DO]


def test_what_is_not_there_can_be_deleted() -> None:
    cluster = formed()
    for lifetime in ("reboot", "forever"):
        outcome = ask(cluster, action="delete", name="nothing", lifetime=lifetime)
        assert (outcome.is_refused, outcome.commands) == (False, ())


def test_the_empty_value_is_a_value() -> None:
    cluster = formed()
    ask(cluster, action="set", name="a", value="")
    assert cluster.node("n1").attributes == {"a": ""}


def test_for_ever_is_the_configuration_and_beside_the_transient_one() -> None:
    cluster = formed()
    outcome = ask(cluster, action="set", name="rack", value="4", lifetime="forever")
    assert isinstance(outcome.commands[0], ChangeConfiguration)
    ask(cluster, action="set", name="rack", value="5")
    assert shown(cluster) == {"n1": {"reboot": {"rack": "5"}, "forever": {"rack": "4"}}}


def test_a_dampened_value_is_handed_on_and_not_waited_for() -> None:
    cluster = formed()
    outcome = ask(cluster, action="set", name="ping", value="100", dampen_ms=5000)
    assert outcome.dampen_ms == 5000
    assert outcome.commands == (SetTransientAttribute(N1, "ping", "100", "root@n1"),)


def test_what_waits_to_be_written_is_read_and_is_not_written_already() -> None:
    cluster = formed()
    cluster.put(replace(cluster.node("n1"), attributes={"ping": "0", "old": "x"}))
    assert cluster.live is not None
    cluster.live = replace(cluster.live, pending_attributes={(N1, "ping"): "100", (N1, "old"): None})
    assert shown(cluster, lifetime="reboot") == {"n1": {"reboot": {"ping": "100"}}}
    wanted = SetTransientAttribute(N1, "ping", "0", "root@n1")
    assert ask(cluster, action="set", name="ping", value="0").commands == (wanted,)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"node": "n9", "action": "set", "name": "a", "value": "1"}, Code.NO_SUCH_NODE),
        ({"action": "set", "value": "1"}, Code.MISSING_ARGUMENT),
        ({"action": "set", "name": "a"}, Code.MISSING_ARGUMENT),
        ({"action": "explode", "name": "a"}, Code.BAD_ARGUMENT),
        ({"action": "show", "name": "nothing"}, Code.NOT_SET),
        ({"action": "set", "name": "a", "value": "two\nlines"}, Code.BAD_ARGUMENT),
        ({"action": "set", "name": "a", "value": "1", "dampen_ms": 10**9}, Code.BAD_ARGUMENT),
    ],
)
def test_what_is_refused(wrong: dict[str, str | int], code: Code) -> None:
    outcome = ask(formed(), **wrong)
    assert [each.code for each in outcome.reports] == [code]


@pytest.mark.parametrize("value", ["false", "0", ""])
def test_terminate_may_be_taken_back(value: str) -> None:
    assert ask(formed(), action="set", node="n2", name="terminate", value=value).commands


def with_switch() -> Cluster:
    cluster = formed()
    cluster.configure('primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes')
    return cluster


@pytest.mark.parametrize("value", ["true", "1", "1767268800"])
def test_terminate_has_the_node_fenced_once(value: str) -> None:
    cluster = with_switch()
    outcome = ask(cluster, action="set", node="n2", name="terminate", value=value)
    incarnation = formed().node("n2").incarnation
    assert outcome.commands == (RequestFence(NodeName("n2"), incarnation, "root@n1", f"terminate={value}"),)
    assert (cluster.node("n2").state, cluster.node("n2").is_fence_requested) == (NodeState.LOST, True)
    again = ask(cluster, action="set", node="n2", name="terminate", value=value)
    assert again.commands == ()


def test_terminate_needs_a_device_and_the_permission_to_fence() -> None:
    outcome = ask(formed(), action="set", node="n2", name="terminate", value="true")
    assert [each.code for each in outcome.reports] == [Code.NO_DEVICE]
    verb = registry.VERBS["node.attribute"]
    assert verb.fences({"name": "terminate", "value": "true"})
    assert not verb.fences({"name": "terminate", "value": "false"})
    assert not verb.fences({"name": "standby", "value": "true"})


def test_terminate_set_for_ever_would_fence_for_ever() -> None:
    outcome = ask(with_switch(), action="set", node="n2", name="terminate", value="true", lifetime="forever")
    assert [each.code for each in outcome.reports] == [Code.BAD_ARGUMENT]


def test_a_private_attribute_is_in_no_rule() -> None:
    cluster = formed()
    ask(cluster, action="set", name="lsn", value="7", private=True)
    assert (cluster.node("n1").attributes, cluster.node("n1").private_attributes) == ({}, {"lsn": "7"})
    assert shown(cluster) == {"n1": {"reboot": {}, "forever": {}, "private": {"lsn": "7"}}}
    ask(cluster, action="set", name="lsn", value="8")
    assert cluster.node("n1").private_attributes == {"lsn": "8"}
    assert ask(cluster, action="set", name="lsn", value="8").commands == ()
    ask(cluster, action="delete", name="lsn")
    assert cluster.node("n1").private_attributes == {}


@pytest.mark.parametrize("lifetime", ["reboot", "forever"])
def test_what_a_node_has_as_attributes_is_bounded(lifetime: str) -> None:
    """Without a bound operators and agents could let the state outgrow the largest snapshot: no node would start."""
    cluster = formed()
    outcome = Outcome()
    for number in range(66):
        outcome = ask(cluster, action="set", name=f"a{number}", value="x" * 4000, lifetime=lifetime)
    assert [str(each.code) for each in outcome.reports] == ["TOO_LARGE"]
    assert "delete NAME" in (outcome.reports[0].remedy or "")
    assert not ask(cluster, action="set", name="a0", value="y" * 4000, lifetime=lifetime).is_refused
    assert not ask(cluster, action="delete", name="a1", lifetime=lifetime).is_refused
    assert not ask(cluster, action="set", name="a65", value="x" * 4000, lifetime=lifetime).is_refused


def test_what_waits_to_be_written_counts_as_well() -> None:
    cluster = formed()
    assert cluster.live is not None
    waiting: dict[tuple[NodeName, str], str | None] = {(N1, f"a{number}"): "x" * 4000 for number in range(65)}
    cluster.live = replace(cluster.live, pending_attributes=waiting)
    assert ask(cluster, action="set", name="a65", value="x" * 4000, dampen_ms=3_600_000).is_refused


def test_without_a_name_all_attributes_of_a_lifetime_are_shown_and_none_is_set() -> None:
    cluster = formed()
    for name, lifetime in (("ping", "reboot"), ("#health-disk", "reboot"), ("rack", "forever")):
        ask(cluster, node="n1", action="set", name=name, value="7", lifetime=lifetime)
    for lifetime, names in (("reboot", {"ping", "#health-disk"}), ("forever", {"rack"})):
        data = ask(cluster, node="n1", action="show", lifetime=lifetime).data
        assert isinstance(data, dict)
        assert set(data["nodes"][0][lifetime]) == names
    for action in ("set", "delete"):
        outcome = ask(cluster, node="n1", action=action, lifetime="forever")
        assert [each.code for each in outcome.reports] == [Code.MISSING_ARGUMENT]
