"""Patches of CIBs: what crm_diff writes leads from one CIB to the other, and cibadmin --patch makes it so."""

import random
from xml.etree import ElementTree as ET

import pytest

from haclusterd.commands.tools.differences import PatchError, difference, patch
from haclusterd.commands.tools.documents import written
from haclusterd.model.ids import ResourceId
from tests.administered_clusters import Cluster, running
from tests.unit.commands.tools.tool_calls import run


def tree(draw: random.Random, depth: int = 3) -> ET.Element:
    """Return an element with some of a few children, in some order, each known by its id or its name."""
    made = ET.Element("group", {"id": "top"})
    for name in draw.sample("abcdef", draw.randint(0, 6)):
        child = ET.SubElement(made, "primitive", {"id": name})
        child.attrib.update({key: str(draw.randint(1, 2)) for key in draw.sample("xyz", draw.randint(0, 3))})
        if depth and draw.random() < 0.5:
            child.append(tree(draw, depth - 1))
    for name in draw.sample(("meta", "operations"), draw.randint(0, 2)):
        made.insert(draw.randint(0, len(made)), ET.Element(name))
    return made


@pytest.mark.parametrize("seed", range(200))
def test_a_patch_leads_from_one_cib_to_the_other(seed: int) -> None:
    draw = random.Random(seed)
    old, new = ET.Element("cib", {"epoch": "1"}), ET.Element("cib", {"epoch": "2"})
    old.append(tree(draw))
    new.append(tree(draw))
    lines = list(difference(old, new))
    assert lines == [] if written(old) == written(new) else lines
    patch(old, ET.fromstring("\n".join(lines)))
    assert sorted_attributes(old) == sorted_attributes(new)
    assert list(difference(old, new)) == []


def sorted_attributes(element: ET.Element) -> object:
    return element.tag, sorted(element.attrib.items()), [sorted_attributes(each) for each in element]


@pytest.mark.parametrize(
    "text",
    [
        "<diff/>", '<diff format="1"/>', '<diff format="2"><change operation="delete" path="/cib/no"/></diff>',
        '<diff format="2"><change operation="delete" path="/cib"/></diff>',
        '<diff format="2"><change operation="delete" path="//a"/></diff>',
        '<diff format="2"><change operation="turn" path="/cib/a"/></diff>',
        f'<diff format="2"><change operation="move" path="/cib/a" position="{"9" * 5000}"/></diff>',
        '<diff format="2"><change operation="modify" path="/cib/a"/></diff>',
        '<diff format="2"><change operation="create" path="/cib/a" position="0"/></diff>',
        '<diff format="2"><change operation="create" path="/cib/a" position="-1"><b/></change></diff>',
        '<diff format="2"><change operation="delete" path="/cib/a"/><change operation="delete" path="/cib/a"/></diff>',
    ],
)  # fmt: skip
def test_what_is_no_patch_is_refused(text: str) -> None:
    with pytest.raises(PatchError):
        patch(ET.fromstring("<cib><a/></cib>"), ET.fromstring(text))


def patch_of(cluster: Cluster, before: str, after: str, *, epoch: int = 0) -> str:
    """Return the patch to this configuration as it is with one text in place of another."""
    old = run(cluster, "cibadmin -Q")[1]
    new = ET.fromstring(old.replace(before, after))
    source = ET.fromstring(old)
    if epoch:
        source.set("epoch", str(epoch))
    return "\n".join(difference(source, new))


def test_a_patch_changes_the_configuration() -> None:
    cluster = running()
    text = patch_of(cluster, '<primitive id="db"', '<primitive id="db" description="x"')
    assert run(cluster, "cibadmin --patch -x file.xml", text) == (0, "", "")
    assert cluster.cib.configuration.resources[ResourceId("db")].description == "x"


def test_a_patch_of_another_version_is_refused() -> None:
    cluster = running()
    cluster.configure("rsc_defaults priority=1")
    change = ('<primitive id="db"', '<primitive id="db" description="x"')
    assert run(cluster, "cibadmin -P -p", patch_of(cluster, *change, epoch=1)) == (
        103, "", "Call failed: Update was older than existing configuration\n")  # fmt: skip
    assert run(cluster, "cibadmin -P -p", patch_of(cluster, *change, epoch=999_999))[0] == 1
    assert run(cluster, "cibadmin -P -p")[0] == 64


@pytest.mark.parametrize("epoch", ["x", "", "9" * 5000, "-1"])
def test_a_patch_whose_version_is_no_number_is_refused(epoch: str) -> None:
    text = f'<diff format="2"><version><source admin_epoch="0" epoch="{epoch}"/></version></diff>'
    status, _, problem = run(running(), "cibadmin -P -p", text)
    assert (status, "epoch" in problem) == (64, True)


def test_a_patch_of_the_status_is_refused() -> None:
    cluster = running()
    text = '<diff format="2"><change operation="delete" path="/cib/status/node_state[@id=\'1\']"/></diff>'
    assert run(cluster, "cibadmin -P -p", text)[0] == 64
    assert run(cluster, "cibadmin -P -p", '<diff format="2"><change operation="delete" path="/cib/x"/></diff>')[0] == 64
