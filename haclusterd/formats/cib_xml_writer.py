"""A configuration as CIB XML, which Pacemaker and its tools read (`crm configure show xml`).

What is written and read again is the same configuration.
"""

from collections.abc import Iterable, Iterator

from haclusterd.formats.cib_xml_constraint_writer import constraint_lines
from haclusterd.formats.cib_xml_elements import BlockWriter, element
from haclusterd.formats.cib_xml_resource_writer import ResourceWriter
from haclusterd.model import scores
from haclusterd.model.configuration import Configuration, FencingLevel, NodeEntry, Tag

_SCHEMA = "pacemaker-3.9"


def write_configuration(configuration: Configuration) -> str:
    """Write the section `configuration` inside a `cib`."""
    blocks = BlockWriter()
    lines = [f'<cib validate-with="{_SCHEMA}" epoch="0" num_updates="0" admin_epoch="0">', "  <configuration>"]
    for tag, inside, is_required in _sections(configuration, blocks):
        content = list(inside)
        if content or is_required:
            lines += (f"    {line}" for line in element(tag, {}, content))
    lines += ["  </configuration>", "  <status/>", "</cib>"]
    return "\n".join(lines) + "\n"


def _sections(configuration: Configuration, blocks: BlockWriter) -> Iterator[tuple[str, Iterable[str], bool]]:
    """Yield each section with its lines, and whether it is written when it is empty."""
    yield "crm_config", blocks.sets("cluster_property_set", configuration.properties), True
    yield "nodes", (line for node in configuration.nodes.values() for line in _node(node, blocks)), True
    yield "resources", ResourceWriter(configuration, blocks).lines(), True
    constraints = configuration.constraints.values()
    yield "constraints", (line for each in constraints for line in constraint_lines(each, blocks)), True
    yield "rsc_defaults", blocks.sets("meta_attributes", configuration.resource_defaults), False
    yield "op_defaults", blocks.sets("meta_attributes", configuration.operation_defaults), False
    yield "fencing-topology", (line for each in configuration.fencing_levels for line in _level(each)), False
    yield "tags", (line for tag in configuration.tags.values() for line in _tag(tag)), False


def _node(node: NodeEntry, blocks: BlockWriter) -> Iterator[str]:
    attributes = {
        "id": node.id or node.name,
        "uname": node.name,
        "type": "remote" if node.is_remote else None,
        "score": scores.render(node.score) if node.score else None,
        "description": node.description or None,
    }
    inside = [*blocks.sets("instance_attributes", node.attributes), *blocks.sets("utilization", node.utilization)]
    return element("node", attributes, inside)


def _level(level: FencingLevel) -> Iterator[str]:
    attributes = {
        "id": level.id,
        "index": str(level.index),
        "target": level.target or None,
        "target-pattern": level.target_pattern or None,
        "target-attribute": level.target_attribute or None,
        "target-value": level.target_value or None,
        "devices": ",".join(level.devices),
    }
    return element("fencing-level", attributes)


def _tag(tag: Tag) -> Iterator[str]:
    references = (line for each in tag.references for line in element("obj_ref", {"id": each}))
    return element("tag", {"id": tag.id}, references)
