"""What people wish of nodes."""

import pytest

from haclusterd.cib.derived.wishes import node_flag
from haclusterd.model.cluster import Cib, NodeStatus, Status
from haclusterd.model.configuration import AttributeSet, Configuration, NodeEntry
from tests.unit.situations import N1


@pytest.mark.parametrize(
    ("configured", "transient", "expected"),
    [
        ("", "", False),
        ("on", "", True),
        ("", "true", True),
        ("off", "on", True),
        ("on", "off", False),
    ],
)
def test_until_the_next_boot_what_is_transient_counts_as_in_plans(
    configured: str, transient: str, expected: bool
) -> None:
    """`crm_simulate` says so too: a node with standby=off that is on standby until it boots is on standby."""
    sets = (AttributeSet("a", (("standby", configured),)),) if configured else ()
    attributes = {"standby": transient} if transient else {}
    cib = Cib(
        configuration=Configuration(nodes={N1: NodeEntry(N1, sets)}),
        status=Status(nodes={N1: NodeStatus(N1, attributes=attributes)}),
    )
    assert node_flag(cib, N1, "standby") is expected
