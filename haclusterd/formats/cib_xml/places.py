"""Where the parts of a configuration stand in CIB XML, for those who judge it later."""

from collections.abc import Iterator

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.upgrade import name_of_today
from haclusterd.reports.items import Place
from haclusterd.reports.places import Path, Places

_RESOURCES = ("primitive", "group", "clone", "master", "bundle")
_CONSTRAINTS = ("rsc_location", "rsc_colocation", "rsc_order", "rsc_ticket")
_NAMED = {
    **dict.fromkeys(_RESOURCES, "resource"),
    **dict.fromkeys(_CONSTRAINTS, "constraint"),
    "template": "template",
    "tag": "tag",
}
_BLOCKS = {"meta_attributes": "meta", "instance_attributes": "params", "utilization": "utilization"}
_SECTIONS = {"crm_config": "properties", "rsc_defaults": "resource_defaults", "op_defaults": "operation_defaults"}


def places_of(configuration: Element, source: str) -> Places:
    """Return the places of objects, of their names and values, and of operations."""
    known: dict[Path, Place] = {}
    for path, element in _found(configuration):
        known.setdefault(path, Place(source, element.line))
    return Places(known)


def _found(configuration: Element) -> Iterator[tuple[Path, Element]]:
    for section in configuration.children:
        if section.tag in _SECTIONS:
            for name, pair in _pairs(section):
                yield (_SECTIONS[section.tag], name), pair
                yield (_SECTIONS[section.tag], name_of_today(name)), pair
        elif section.tag == "nodes":
            for node in section.children:
                yield from _node(node)
        elif section.tag == "fencing-topology":
            yield from (((("fencing_level", str(index)), level)) for index, level in enumerate(section.children))
        else:
            for element in section.every():
                kind, identifier = _NAMED.get(element.tag), element.get("id")
                if kind is not None and identifier is not None:
                    yield from _object((kind, identifier), element)


def _node(node: Element) -> Iterator[tuple[Path, Element]]:
    path = ("node", node.get("uname") or node.get("id") or "")
    yield path, node
    for block, word in (("instance_attributes", "attributes"), ("utilization", "utilization")):
        for each in node.all(block):
            yield (*path, word), each
            yield from (((*path, word, name), pair) for name, pair in _pairs(each))


def _object(path: Path, element: Element) -> Iterator[tuple[Path, Element]]:
    yield path, element
    operations = 0
    for child in element.children:
        if child.tag in _BLOCKS:
            yield (*path, _BLOCKS[child.tag]), child
            yield from (((*path, _BLOCKS[child.tag], name), pair) for name, pair in _pairs(child))
        elif child.tag == "operations":
            for operation in child.all("op"):
                yield (*path, "operation", str(operations)), operation
                operations += 1
        elif child.tag in _RESOURCES:
            yield (*path, "member", child.get("id") or ""), child


def _pairs(element: Element) -> Iterator[tuple[str, Element]]:
    for pair in element.every():
        name = pair.get("name")
        if pair.tag == "nvpair" and name is not None:
            yield name, pair
