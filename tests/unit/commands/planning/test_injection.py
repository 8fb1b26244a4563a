"""What `simulate` supposes: what it changes, and what it refuses."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.planning.injection import suppose
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.properties import ClusterProperties
from tests.unit.commands.written_operations import ABSENT, FENCE, NOW, STARTED, WEB, changes, on
from tests.written_cibs import FENCING, cib

TEXT = cib(properties=FENCING, resources=WEB + FENCE, status=on(1, STARTED) + on(2, ABSENT))


def known() -> Cib:
    return read_cib(TEXT, "cib.xml").cib


def planned(**wanted: list[str]) -> Json:
    arguments: dict[str, Json] = {"text": TEXT, "source": "cib.xml"}
    arguments.update(wanted)
    outcome = registry.run("simulate", arguments, Context(Cib(), NOW, "tests"))
    assert not outcome.is_refused, outcome.reports
    return outcome.data


def of_web(data: Json) -> list[str]:
    return [line for line in changes(data) if " power" not in line]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, []),
        ({"node_down": ["n1"]}, ["fence n1 reboot", "move web n1 n2"]),
        ({"standby": ["n1"]}, ["move web n1 n2"]),
        ({"op_fail": ["web:monitor:10s@n1=7"]}, ["recover web n1 n1"]),
        ({"op_fail": ["web:monitor@n1=1"]}, ["recover web n1 n1"]),
        ({"op_fail": ["web:stop@n1=1"]}, ["fence n1 reboot", "recover web n1 n2"]),
        ({"set": ["stop-all-resources=true"]}, ["stop web n1"]),
        ({"set": ["stonith-enabled=false"], "node_down": ["n1"]}, ["start web n2"]),
        ({"node_down": ["n1"], "node_up": ["n1"]}, ["fence n1 reboot", "move web n1 n2"]),
    ],
)
def test_what_would_happen(wanted: dict[str, list[str]], expected: list[str]) -> None:
    found = of_web(planned(**wanted))
    assert found == expected


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"node_down": ("n9",)}, "'n9' is no node of this cluster"),
        ({"op_fail": ("web@n1=7",)}, "'web@n1=7' is not RESOURCE:ACTION@NODE=CODE"),
        ({"op_fail": ("wb:monitor@n1=7",)}, "'wb' is no primitive"),
        ({"op_fail": ("web:monitor:soon@n1=7",)}, "'soon' is no interval"),
        ({"ticket": ("t=given",)}, "'t=given' is not NAME=STATE"),
        ({"set": ("stop-all-resources",)}, "is not NAME=VALUE"),
        ({"set": ("stop-everything=true",)}, "is no property of the cluster"),
        ({"set": ("batch-limit=many",)}, "batch-limit"),
    ],
)
def test_what_makes_no_sense_is_refused(wanted: dict[str, tuple[str, ...]], problem: str) -> None:
    found = suppose(known(), wanted, WallTime(NOW))
    assert isinstance(found, tuple)
    assert [problem in item.message for item in found] == [True], found


def test_every_objection_is_reported_at_once() -> None:
    found = suppose(known(), {"node_down": ("n8", "n9"), "set": ("x",)}, WallTime(NOW))
    assert isinstance(found, tuple)
    assert len(found) == 3


def test_a_node_that_comes_back_has_nothing_running() -> None:
    down = suppose(known(), {"node_down": ("n1",)}, WallTime(NOW))
    assert isinstance(down, Cib)
    up = suppose(down, {"node_up": ("n1",)}, WallTime(NOW))
    assert isinstance(up, Cib)
    status = up.status.nodes[NodeName("n1")]
    assert (status.state, dict(status.histories)) == (NodeState.ONLINE, {})


def test_a_ticket_is_granted_revoked_and_put_aside() -> None:
    cib_: Cib | tuple[object, ...] = known()
    for state, is_granted, is_standby in (
        ("granted", True, False), ("standby", True, True), ("active", True, False), ("revoked", False, False),
    ):  # fmt: skip
        assert isinstance(cib_, Cib)
        cib_ = suppose(cib_, {"ticket": (f"t={state}",)}, WallTime(NOW))
        assert isinstance(cib_, Cib)
        ticket = cib_.status.tickets["t"]
        assert (ticket.is_granted, ticket.is_standby) == (is_granted, is_standby)


def test_a_property_takes_the_place_of_its_old_name() -> None:
    found = suppose(known(), {"set": ("stonith-enabled=false",)}, WallTime(NOW))
    assert isinstance(found, Cib)
    assert not ClusterProperties(found.configuration).boolean("fencing-enabled")
    assert known() == read_cib(TEXT, "cib.xml").cib
