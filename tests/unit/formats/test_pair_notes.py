"""Ids of pairs, references to pairs, names without a value: kept in files of Pacemaker, not in a cluster of ours."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from haclusterd.commands.configure.settling import settle
from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import assemble, parse_script, show
from haclusterd.model.configuration import Configuration, Primitive
from haclusterd.model.ids import ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.places import Places
from tests.foreign_files import File

EMPTY = (
    '<cib validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0"><configuration><crm_config/><nodes/>'
    "<resources/><constraints/></configuration><status/></cib>"
)
SCRIPT = """primitive a Dummy params $shared:state=/run/a fake=1
primitive b Dummy params @shared fake=2
primitive c Dummy params @shared:state @a-instance_attributes-fake
primitive d Dummy params @shared:other bare
"""


def read(text: str) -> Configuration:
    return assemble(parse_script(text, "text").statements).configuration


def pairs_of(xml: str, name: str) -> list[dict[str, str]]:
    (found,) = [each for each in ET.fromstring(xml).iter("primitive") if each.get("id") == name]
    return [each.attrib for each in found.iter("nvpair")]


def with_state(configuration: Configuration, name: str, value: str) -> Configuration:
    primitive = configuration.resources[ResourceId(name)]
    assert isinstance(primitive, Primitive)
    (block,) = primitive.parameters
    pairs = tuple((key, value if key == "state" else old) for key, old in block.pairs)
    made = replace(primitive, parameters=(replace(block, pairs=pairs),))
    return replace(configuration, resources={**configuration.resources, made.id: made})


WANTED = {
    "a": [{"id": "shared", "name": "state", "value": "/run/a"},
          {"id": "a-instance_attributes-fake", "name": "fake", "value": "1"}],
    "b": [{"id-ref": "shared"}, {"id": "b-instance_attributes-fake", "name": "fake", "value": "2"}],
    "c": [{"id-ref": "shared", "name": "state"}, {"id-ref": "a-instance_attributes-fake"}],
    "d": [{"id-ref": "shared", "name": "other"}, {"id": "d-instance_attributes-bare", "name": "bare"}],
}  # fmt: skip


def test_a_file_keeps_ids_and_references_as_they_were_written(tmp_path: Path) -> None:
    file = File(tmp_path / "cib.xml", EMPTY)
    (tmp_path / "s.crm").write_text(SCRIPT)
    assert file.type("--force", "configure", "load", "update", str(tmp_path / "s.crm")) == 0, file.printed
    assert {name: pairs_of(file.path.read_text(), name) for name in WANTED} == WANTED
    assert file.type("--force", "resource", "meta", "b", "set", "priority", "5") == 0, file.printed
    assert pairs_of(file.path.read_text(), "c") == WANTED["c"]


def test_what_is_read_of_xml_is_shown_and_written_as_it_was() -> None:
    again = read_configuration(write_configuration(read(SCRIPT)), "cib.xml").configuration
    assert show(again).splitlines()[:6] == [
        "primitive a ocf:heartbeat:Dummy \\", "\tparams $shared:state=\"/run/a\" fake=1",
        "primitive b ocf:heartbeat:Dummy \\", "\tparams @shared fake=2",
        "primitive c ocf:heartbeat:Dummy \\", "\tparams @shared:state @a-instance_attributes-fake",
    ]  # fmt: skip
    assert read(show(again)) == again


def test_an_id_in_a_file_to_which_nothing_refers_is_not_shown() -> None:
    text = write_configuration(read("primitive a Dummy params $own:state=/run/a"))
    assert 'id="own"' in text
    assert "own" not in show(read_configuration(text, "cib.xml").configuration)
    assert "$own:state" in show(read_configuration(text, "cib.xml", keeps_ids=True).configuration)


@pytest.mark.parametrize("of", ["a", "b"])
def test_a_reference_whose_pair_says_something_else_becomes_a_pair_of_its_own(of: str) -> None:
    made = read(SCRIPT)
    changed = with_state(made, of, "/run/new")
    xml = write_configuration(changed)
    values = {name: pairs_of(xml, name)[0].get("value") for name in ("a", "b")}
    assert values == {"a": "/run/a", "b": "/run/a", of: "/run/new"}
    assert len({each.get("id") for each in ET.fromstring(xml).iter() if each.get("id")}) == xml.count(' id="')


def test_a_cluster_of_ours_keeps_values_alone() -> None:
    settled, _ = settle(read(SCRIPT), Places({}))
    text = show(settled)
    assert "@" not in text
    assert "$" not in text
    assert "bare" not in text
    assert 'params state="/run/a" fake=2' in text
