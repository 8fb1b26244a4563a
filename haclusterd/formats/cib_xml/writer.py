"""A configuration as CIB XML, which Pacemaker and its tools read (`crm configure show xml`).

What is written and read again is the same configuration.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from haclusterd.formats.cib_xml.access import holder_lines, role_lines
from haclusterd.formats.cib_xml.constraint_writer import constraint_lines
from haclusterd.formats.cib_xml.elements import BlockWriter, element
from haclusterd.formats.cib_xml.resource_writer import ResourceWriter
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET, node_numbers, status_lines
from haclusterd.model import scores
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Alert, AlertKind, AlertRecipient, Configuration, FencingLevel, NodeEntry, Tag
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.pair_notes import with_sound_notes
from haclusterd.model.records import replace

WRITTEN = "pacemaker-3.9"
"""The schema of Pacemaker in which XML is written."""
_WHEN = "%a %b %e %H:%M:%S %Y"


def write_configuration(configuration: Configuration) -> str:
    """Write the section `configuration` inside a `cib`."""
    configuration = with_sound_notes(configuration)
    attributes = {"validate-with": WRITTEN, "epoch": "0", "num_updates": "0", "admin_epoch": "0"}
    return "\n".join(element("cib", attributes, [*_configuration(configuration), "<status/>"])) + "\n"


def write_cib(cib: Cib, *, has_quorum: bool, controller: NodeName | None) -> str:
    """Write everything, as `cibadmin --query` shows it: configuration and status, with a number for every node."""
    numbers = node_numbers(cib)
    known = cib.configuration.nodes
    nodes = {name: replace(known.get(name) or NodeEntry(name), id=number) for name, number in numbers.items()}
    version = cib.version
    user, _, origin = version.author.partition("@")
    attributes = {
        "crm_feature_set": FEATURE_SET,
        "validate-with": WRITTEN,
        "epoch": str(version.epoch),
        "num_updates": str(cib.index),
        "admin_epoch": "0",
        "cib-last-written": written_at(version.at),
        "update-origin": origin or None,
        "update-client": "crm" if version.author else None,
        "update-user": user or None,
        "have-quorum": str(int(has_quorum)),
        "dc-uuid": None if controller is None else numbers.get(controller),
    }
    inside = [*_configuration(replace(cib.configuration, nodes=nodes)), *status_lines(cib)]
    return "\n".join(element("cib", attributes, inside)) + "\n"


def written_at(at: WallTime) -> str:
    """Write a moment as Pacemaker does, in UTC: `Sun Nov 22 20:00:00 2026`."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime(_WHEN)


def _configuration(configuration: Configuration) -> list[str]:
    blocks = BlockWriter()
    lines: list[str] = []
    for tag, inside, is_required in _sections(configuration, blocks):
        content = list(inside)
        if content or is_required:
            lines += element(tag, {}, content)
    return list(element("configuration", {}, lines))


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
    yield "alerts", (line for each in configuration.alerts.values() for line in _alert(each, blocks)), False
    roles = (line for role in configuration.acl_roles.values() for line in role_lines(role))
    yield "acls", (*roles, *(line for each in configuration.acl_holders() for line in holder_lines(each))), False


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


def _alert(alert: Alert, blocks: BlockWriter) -> Iterator[str]:
    inside: list[str] = []
    if alert.select is not None:
        selected = (line for kind in alert.select for line in _selected(alert, kind, blocks))
        inside += element("select", {}, selected)
    inside += _blocks_of(alert, blocks)
    inside += (line for each in alert.recipients for line in _recipient(each, blocks))
    attributes = {"id": alert.id, "path": alert.path, "description": alert.description or None}
    return element("alert", attributes, inside)


def _selected(alert: Alert, kind: AlertKind, blocks: BlockWriter) -> Iterator[str]:
    names = alert.attribute_names if kind is AlertKind.ATTRIBUTES else ()
    pairs = [{"id": blocks.fresh(f"{alert.id}-select-{name}"), "name": name} for name in names]
    return element(f"select_{kind}", {}, (line for each in pairs for line in element("attribute", each)))


def _recipient(recipient: AlertRecipient, blocks: BlockWriter) -> Iterator[str]:
    attributes = {"id": recipient.id, "value": recipient.value, "description": recipient.description or None}
    return element("recipient", attributes, _blocks_of(recipient, blocks))


def _blocks_of(owner: Alert | AlertRecipient, blocks: BlockWriter) -> list[str]:
    return [*blocks.sets("instance_attributes", owner.parameters), *blocks.sets("meta_attributes", owner.meta)]
