"""Which devices may fence which node."""

import pytest

from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.scheduler.unpack.fencing_capability import fencing_levels, usable_devices
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


PLUGINS = (
    "primitive one stonith:external/ipmi params hostname=N1\n"
    "primitive two stonith:external/libvirt params hostlist='n2:vm2,n3:vm3'\n"
    "primitive any stonith:external/sbd\n"
)


@pytest.mark.parametrize(
    ("more", "node", "expected"),
    [
        ("", "n1", ("one", "two", "any")),
        ("", "n2", ("two", "one", "any")),
        ("", "n3", ("two", "one", "any")),
        ("", "n4", ("one", "two", "any")),
        ("primitive own stonith:fence_local\n", "n2", ("two", "own", "one", "any")),
        ("primitive own stonith:external/x params pcmk_host_list=n1\n", "n1", ("one", "own", "two", "any")),
        ("primitive own stonith:external/x params pcmk_host_list=n1\n", "n2", ("two", "one", "any")),
        ("fencing_topology n2: any one two\n", "n2", ("any", "one", "two")),
    ],
)
def test_plugins_that_seem_to_be_for_others_are_asked_last(more: str, node: str, expected: tuple[str, ...]) -> None:
    assert usable_devices(configured(PLUGINS + more), NodeName(node)) == expected


def test_a_defaulted_role_counts() -> None:
    configuration = configured("primitive power stonith:fence_local\nrsc_defaults target-role=Stopped\n")
    assert usable_devices(configuration, NodeName("n1")) == ()


LEVELS = """
primitive power1 stonith:fence_x
primitive power2 stonith:fence_x
primitive board stonith:fence_x params pcmk_host_list="n2"
primitive off stonith:fence_x meta target-role=Stopped
"""


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("", {"n1": "power1|power2", "n2": "power1|power2|board"}),
        ("fencing_topology n1: board power1,power2", {"n1": "board|power1+power2", "n2": "power1|power2|board"}),
        ("fencing_topology n1: power1,missing power2", {"n1": "power2"}),
        ("fencing_topology n1: off power2", {"n1": "power2"}),
        ("fencing_topology n1: off", {"n1": ""}),
        ("fencing_topology pattern:n[12] power2", {"n1": "power2", "n2": "power2", "n3": "power1|power2"}),
        ("fencing_topology attr:rack=7 power2", {"n1": "power1|power2"}),
    ],
)
def test_levels_of_a_topology(topology: str, expected: dict[str, str]) -> None:
    configuration = configured(f"{LEVELS}{topology}\n")
    for node, text in expected.items():
        levels = "|".join("+".join(level) for level in fencing_levels(configuration, NodeName(node)))
        assert (node, levels) == (node, text)
        usable = usable_devices(configuration, NodeName(node))
        assert set(usable) == {device for level in text.split("|") for device in level.split("+") if device}


def test_a_level_by_attribute_is_for_the_nodes_that_have_it() -> None:
    configuration = configured(f"{LEVELS}fencing_topology attr:rack=7 power2\n")
    assert fencing_levels(configuration, NodeName("n1"), {"rack": "7"}) == ((ResourceId("power2"),),)


def test_a_template_speaks_for_a_device() -> None:
    template = 'rsc_template t stonith:fence_local params pcmk_host_list="n1"\nprimitive power @t\n'
    configuration = configured(template)
    assert usable_devices(configuration, NodeName("n1")) == ("power",)
    assert usable_devices(configuration, NodeName("n2")) == ()
    assert usable_devices(configured(f"{template}rsc_defaults target-role=Stopped\n"), NodeName("n1")) == ()
