"""Which devices may fence which node."""

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.scheduler.fencing_capability import usable_devices
from tests.scheduled_clusters import configured


@pytest.mark.parametrize(
    ("parameters", "node", "is_usable"),
    [
        ("", "n1", True),
        ('params pcmk_host_list="n1 n2"', "n2", True),
        ('params pcmk_host_list="n1,n2;n4"', "n4", True),
        ('params pcmk_host_list="n1 n2"', "n3", False),
        ('params pcmk_host_list="N1"', "n1", True),
        ('params pcmk_host_map="n1:plug-1;n2:plug-2,plug-3"', "n2", True),
        ('params pcmk_host_map="n1:plug-1;n2:plug-2"', "n3", False),
        ('params pcmk_host_map="n1:plug-1" pcmk_host_list="n3"', "n3", True),
        ('params pcmk_host_list="n1" pcmk_host_check=none', "n3", True),
        ("meta target-role=Stopped", "n1", False),
        ("meta target-role=Started", "n1", True),
    ],
)
def test_a_device_and_a_node(parameters: str, node: str, *, is_usable: bool) -> None:
    configuration = configured(f"primitive power stonith:fence_local {parameters}\n")
    assert usable_devices(configuration, NodeName(node)) == (("power",) if is_usable else ())


def test_devices_come_in_the_order_of_the_document() -> None:
    configuration = configured("primitive z stonith:fence_local\nprimitive a stonith:fence_local\n")
    assert usable_devices(configuration, NodeName("n1")) == ("z", "a")


def test_a_defaulted_role_counts() -> None:
    configuration = configured("primitive power stonith:fence_local\nrsc_defaults target-role=Stopped\n")
    assert usable_devices(configuration, NodeName("n1")) == ()
