"""A configuration as policy YAML; reading it back makes an equal configuration, in the same order.

Ids that reading would make again are left out, and a block that is the only one of its kind is written as a plain
mapping. Values are written as they are spelled (`true`, `8080` without quotes), `${` as `$${`.
"""

from collections.abc import Mapping

from haclusterd.formats.generated_ids import DEFAULT_SET_IDS, are_natural, mapping_base
from haclusterd.formats.policy.access import GROUPS, ROLES, TARGETS, write_holders, write_role
from haclusterd.formats.policy.alerts import write_alert
from haclusterd.formats.policy.blocks_writer import add_blocks, write_blocks, write_operations
from haclusterd.formats.policy.constraint_writer import write_constraint, write_levels
from haclusterd.formats.policy.dumper import Inline, InlineList, Tree, dump, escaped, flag, given, text
from haclusterd.model import scores
from haclusterd.model.configuration import (
    Bundle,
    BundleNetwork,
    Clone,
    Configuration,
    Group,
    NodeEntry,
    Primitive,
    Resource,
    Template,
)


def dump_policy(configuration: Configuration) -> str:
    """Write the whole configuration; empty text for an empty one."""
    document: dict[str, Tree] = {}
    if configuration.nodes:
        document["nodes"] = {name: _node(entry) or None for name, entry in configuration.nodes.items()}
    for key, section, sets in (
        ("properties", "properties", configuration.properties),
        ("resource-defaults", "resource_defaults", configuration.resource_defaults),
        ("operation-defaults", "operation_defaults", configuration.operation_defaults),
    ):
        if sets:
            document[key] = write_blocks(sets, DEFAULT_SET_IDS[section])
    lists: Mapping[str, Tree] = {
        "templates": [_template(template) for template in configuration.templates.values()],
        "resources": [_resource(resource) for resource in configuration.resources.values()],
        "tags": {tag.id: InlineList(tag.references) for tag in configuration.tags.values()},
        "constraints": [write_constraint(constraint) for constraint in configuration.constraints.values()],
        "fencing-topology": write_levels(configuration.fencing_levels),
        "alerts": [write_alert(alert) for alert in configuration.alerts.values()],
        ROLES: [write_role(role) for role in configuration.acl_roles.values()],
        TARGETS: write_holders(configuration.acl_targets.values()),
        GROUPS: write_holders(configuration.acl_groups.values()),
    }
    document |= {key: value for key, value in lists.items() if value}
    return dump(document) if document else ""


def _node(entry: NodeEntry) -> dict[str, Tree]:
    tree = given(
        {
            "id": text(entry.id) or None,
            "description": text(entry.description) or None,
            "type": "remote" if entry.is_remote else None,
            "score": scores.render(entry.score) if entry.score else None,
        }
    )
    sections = {"attributes": ("attributes", entry.attributes), "utilization": ("utilization", entry.utilization)}
    add_blocks(tree, entry.name, **sections)
    return tree


def _resource(resource: Resource) -> Tree:
    match resource:
        case Primitive():
            return _primitive(resource)
        case Group():
            return _described({"group": resource.id, "members": InlineList(resource.members)}, resource)
        case Clone():
            return _described({"clone": resource.id, "resource": resource.child}, resource)
        case Bundle():
            return _described(_bundle(resource), resource)


def _described(tree: dict[str, Tree], resource: Resource | Template) -> dict[str, Tree]:
    if resource.description:
        tree["description"] = escaped(resource.description)
    add_blocks(tree, resource.id, parameters=("params", resource.parameters), meta=("meta", resource.meta))
    return tree


def _primitive(primitive: Primitive) -> Tree:
    kind = "fence-device" if primitive.agent.standard == "stonith" else "primitive"
    made = {"template": primitive.template} if primitive.template is not None else {"agent": str(primitive.agent)}
    return _with_operations({kind: primitive.id, **made}, primitive)


def _template(template: Template) -> Tree:
    return _with_operations({"template": template.id, "agent": str(template.agent)}, template)


def _with_operations(tree: dict[str, Tree], resource: Primitive | Template) -> Tree:
    _described(tree, resource)
    add_blocks(tree, resource.id, utilization=("utilization", resource.utilization))
    if resource.operations_id:
        tree["operations-id"] = resource.operations_id
    if resource.operations:
        tree["operations"] = write_operations(resource.id, resource.operations)
    return tree


def _bundle(bundle: Bundle) -> dict[str, Tree]:
    with_ids = not are_natural(
        [each.id for each in bundle.storage], [mapping_base(bundle.id, "storage")] * len(bundle.storage)
    )
    storage: list[Tree] = [
        Inline(
            given(
                {
                    "id": each.id if with_ids else None,
                    "target-dir": text(each.target_directory),
                    "source-dir": text(each.source_directory) or None,
                    "source-dir-root": text(each.source_directory_root) or None,
                    "options": text(each.options) or None,
                }
            )
        )
        for each in bundle.storage
    ]
    return given(
        {
            "bundle": bundle.id,
            "engine": bundle.engine,
            "image": text(bundle.image),
            "resource": bundle.primitive,
            "replicas": None if bundle.replicas is None else str(bundle.replicas),
            "replicas-per-host": None if bundle.replicas_per_host is None else str(bundle.replicas_per_host),
            "promoted-max": None if bundle.promoted_max is None else str(bundle.promoted_max),
            "run-command": text(bundle.run_command) or None,
            "options": text(bundle.options) or None,
            "network-mode": text(bundle.network_mode) or None,
            "network": None if bundle.network is None else _network(bundle.id, bundle.network),
            "storage": storage or None,
        }
    )


def _network(bundle: str, network: BundleNetwork) -> Tree:
    with_ids = not are_natural([port.id for port in network.ports], [mapping_base(bundle, "port")] * len(network.ports))
    ports: list[Tree] = [
        Inline(
            given(
                {
                    "id": port.id if with_ids else None,
                    "port": text(port.port) or None,
                    "internal-port": text(port.internal_port) or None,
                    "range": text(port.port_range) or None,
                }
            )
        )
        for port in network.ports
    ]
    return given(
        {
            "ip-range-start": text(network.ip_range_start) or None,
            "control-port": text(network.control_port) or None,
            "host-interface": text(network.host_interface) or None,
            "host-netmask": text(network.host_netmask) or None,
            "add-host": flag(network.adds_host),
            "ports": ports or None,
        }
    )
