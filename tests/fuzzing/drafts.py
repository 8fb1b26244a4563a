"""What the generators of random CIBs share: a CIB in the making, and changes of its XML by ids and names."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from random import Random

from haclusterd.model.records import dataclass, field

Event = Callable[[ET.Element, Random], None]
"""Something that happens to a cluster; it changes its CIB in place."""
Table = Sequence[tuple[float, str, Sequence[str]]]
"""Names of settings, each with how likely it is set, and its values."""
NAMING = ("rsc", "with-rsc", "first", "then", "id")
"""Attributes of a constraint, or of a part of it, that name a resource."""


@dataclass(slots=True)
class Draft:
    """A CIB in the making, and what constraints may name in it."""

    chance: Random
    cib: ET.Element
    nodes: list[str] = field(default_factory=list)
    tops: list[str] = field(default_factory=list)
    """Resources that are in no other."""
    promotables: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    """Cluster properties that the generator sets beside those that it draws."""

    def is_likely(self, probability: float) -> bool:
        return self.chance.random() < probability

    def chosen(self, table: Table) -> dict[str, str]:
        return {name: self.chance.choice(values) for likely, name, values in table if self.is_likely(likely)}

    def part(self, path: str) -> ET.Element:
        return part(self.cib, path)

    def add_node(self, number: int, name: str) -> ET.Element:
        """Add a node to the configuration and return it."""
        return ET.SubElement(self.part("configuration/nodes"), "node", id=str(number), uname=name)

    def add_state(self, number: int, name: str) -> ET.Element:
        """Add the state of a node that is a member, and return it."""
        state = {"id": str(number), "uname": name, "in_ccm": "true", "crmd": "online", "join": "member"}
        return ET.SubElement(self.part("status"), "node_state", {**state, "expected": "member"})


def empty_cib(schema: str) -> ET.Element:
    return ET.fromstring(
        f'<cib crm_feature_set="3.16.1" validate-with="{schema}" epoch="1" num_updates="0" admin_epoch="0" '
        'have-quorum="1" dc-uuid="1" execution-date="1700000000"><configuration><crm_config/><nodes/><resources/>'
        "<constraints/></configuration><status/></cib>"
    )


def part(parent: ET.Element, path: str) -> ET.Element:
    found = parent.find(path)
    assert found is not None
    return found


def add_pairs(owner: ET.Element, tag: str, name: str, pairs: Mapping[str, str]) -> None:
    """Add a block of name-value pairs with the id `name`, if there are any."""
    if pairs:
        block = ET.SubElement(owner, tag, id=name)
        for key, value in pairs.items():
            ET.SubElement(block, "nvpair", id=f"{name}-{key.strip('#')}", name=key, value=value)


def set_pair(block: ET.Element, name: str, value: str) -> None:
    """Set one name-value pair of a block, in place of what it has by that name."""
    for pair in block.findall("nvpair"):
        if pair.get("name") == name:
            block.remove(pair)
    identity = f"{block.get('id')}-{name}".replace("#", ".").replace(":", ".")
    ET.SubElement(block, "nvpair", id=identity, name=name, value=value)


def set_meta(resource: ET.Element, name: str, value: str) -> None:
    """Set a meta attribute of a resource."""
    block = resource.find("meta_attributes")
    if block is None:
        block = ET.Element("meta_attributes", id=f"{resource.get('id')}-meta")
        resource.insert(0, block)
    set_pair(block, name, value)


def set_transient(state: ET.Element, name: str, value: str) -> None:
    """Set a transient attribute of a node, by its state."""
    node = state.get("id", "")
    holder = state.find("transient_attributes")
    if holder is None:
        holder = ET.SubElement(state, "transient_attributes", id=node)
    block = holder.find("instance_attributes")
    if block is None:
        block = ET.SubElement(holder, "instance_attributes", id=f"status-{node}")
    set_pair(block, name, value)


def forget(cib: ET.Element, gone: ET.Element) -> None:
    """Remove every constraint that names a resource which was removed, or one inside it, and their places in tags."""
    forget_names(cib, {str(each.get("id")) for each in gone.iter() if each.tag in ("primitive", "group", "clone")})


def forget_names(cib: ET.Element, names: set[str]) -> None:
    """Remove every constraint that names one of these resources, and their places in tags."""
    constraints = part(cib, "configuration/constraints")
    for constraint in list(constraints):
        if names & {each.get(key) for each in constraint.iter() for key in NAMING}:
            constraints.remove(constraint)
    for tag in cib.findall("configuration/tags/tag"):
        for reference in tag.findall("obj_ref"):
            if reference.get("id") in names:
                tag.remove(reference)
