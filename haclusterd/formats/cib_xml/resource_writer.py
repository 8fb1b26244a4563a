"""Resources as CIB XML: primitives, templates, groups, clones and bundles."""

from collections import Counter
from collections.abc import Iterator

from haclusterd.formats.cib_xml.elements import Attributes, BlockWriter, element, flag, number
from haclusterd.formats.cib_xml.operations import settings_in_meta
from haclusterd.formats.stated import written_enabled, written_interval, written_start_delay, written_timeout
from haclusterd.model import durations
from haclusterd.model.configuration import (
    Bundle,
    BundleNetwork,
    Clone,
    Configuration,
    Group,
    Operation,
    Primitive,
    StorageMapping,
    Template,
)
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.operations import operation_row
from haclusterd.model.properties import ValueType, objection, read_boolean
from haclusterd.model.rows import canonical


class ResourceWriter:
    """Writes the section `resources` of one configuration."""

    def __init__(self, configuration: Configuration, blocks: BlockWriter) -> None:
        self._configuration = configuration
        self._blocks = blocks
        owners: tuple[Primitive | Template, ...] = (*configuration.templates.values(), *configuration.primitives())
        counted = Counter(owner.operations for owner in owners if owner.operations)
        self._shared = {operations: "" for operations, count in counted.items() if count > 1}
        """Operations that several resources have under the same ids, with the id of the list once it is written."""
        self._named = {owner.operations: owner.operations_id for owner in owners if owner.operations_id}

    def lines(self) -> Iterator[str]:
        """Yield the templates, then all resources that no other contains, in document order."""
        for template in self._configuration.templates.values():
            attributes = {"id": template.id, **_agent(template.agent)}
            yield from self._primitive("template", attributes, template)
        parents = self._configuration.parents()
        for identifier in self._configuration.resources:
            if identifier not in parents:
                yield from self._resource(identifier)

    def _resource(self, identifier: ResourceId) -> Iterator[str]:
        resource = self._configuration.resources.get(identifier)
        match resource:
            case Primitive():
                yield from self._primitive_of(resource)
            case Group():
                yield from self._with_inside("group", resource, resource.members)
            case Clone():
                yield from self._with_inside("clone", resource, (resource.child,))
            case Bundle():
                yield from self._bundle(resource)
            case None:
                return

    def _with_inside(self, tag: str, resource: Group | Clone, inside: tuple[ResourceId, ...]) -> Iterator[str]:
        lines = [
            *self._blocks.sets("meta_attributes", resource.meta),
            *self._blocks.sets("instance_attributes", resource.parameters),
        ]
        for each in inside:
            lines += self._resource(each)
        yield from element(tag, {"id": resource.id, "description": resource.description or None}, lines)

    def _primitive_of(self, primitive: Primitive) -> Iterator[str]:
        template = primitive.template
        is_made = template is not None and template in self._configuration.templates
        origin: Attributes = {"template": template} if is_made else _agent(primitive.agent)
        yield from self._primitive("primitive", {"id": primitive.id, **origin}, primitive)

    def _primitive(self, tag: str, attributes: Attributes, primitive: Primitive | Template) -> Iterator[str]:
        inside = [
            *self._blocks.sets("meta_attributes", primitive.meta),
            *self._blocks.sets("instance_attributes", primitive.parameters),
            *self._blocks.sets("utilization", primitive.utilization),
        ]
        if primitive.operations or primitive.operations_id:
            inside += self._operations(primitive)
        yield from element(tag, {**attributes, "description": primitive.description or None}, inside)

    def _operations(self, owner: Primitive | Template) -> Iterator[str]:
        written = self._shared.get(owner.operations)
        if written:
            return element("operations", {"id-ref": written})
        identifier = owner.operations_id or None
        if written is not None:
            identifier = self._named.get(owner.operations) or self._blocks.fresh(f"{owner.id}-operations")
            self._shared[owner.operations] = identifier
        inside = (line for each in owner.operations for line in self._operation(each))
        return element("operations", {"id": identifier}, inside)

    def _operation(self, operation: Operation) -> Iterator[str]:
        settings, meta = settings_in_meta(operation.meta)
        own = {
            "id": operation.id,
            "name": operation.name,
            "interval": written_interval(operation),
            "timeout": written_timeout(operation),
            "role": operation.role,
            "on-fail": operation.on_fail,
            "start-delay": written_start_delay(operation),
            "interval-origin": operation.interval_origin,
            "enabled": written_enabled(operation),
            "record-pending": flag(operation.record_pending),
            "requires": operation.requires,
        }
        attributes = {
            name: _written(name, settings.get(name)) if value is None else value for name, value in own.items()
        }
        inside = [
            *self._blocks.sets("meta_attributes", meta),
            *self._blocks.sets("instance_attributes", operation.parameters),
        ]
        yield from element("op", attributes, inside)

    def _bundle(self, bundle: Bundle) -> Iterator[str]:
        engine = {
            "image": bundle.image,
            "replicas": number(bundle.replicas),
            "replicas-per-host": number(bundle.replicas_per_host),
            "promoted-max": number(bundle.promoted_max),
            "run-command": bundle.run_command or None,
            "network": bundle.network_mode or None,
            "options": bundle.options or None,
        }
        inside = [
            *self._blocks.sets("meta_attributes", bundle.meta),
            *self._blocks.sets("instance_attributes", bundle.parameters),
            *element(bundle.engine, engine),
        ]
        if bundle.network is not None:
            inside += _network(bundle.network)
        if bundle.storage:
            inside += element("storage", {}, (line for each in bundle.storage for line in _storage(each)))
        if bundle.primitive is not None:
            inside += self._resource(bundle.primitive)
        yield from element("bundle", {"id": bundle.id, "description": bundle.description or None}, inside)


def _agent(agent: AgentReference) -> dict[str, str | None]:
    return {"class": agent.standard, "provider": agent.provider, "type": agent.type}


def _network(network: BundleNetwork) -> Iterator[str]:
    attributes = {
        "ip-range-start": network.ip_range_start or None,
        "control-port": network.control_port or None,
        "host-interface": network.host_interface or None,
        "host-netmask": network.host_netmask or None,
        "add-host": flag(network.adds_host),
    }
    inside: list[str] = []
    for each in network.ports:
        port = {
            "id": each.id,
            "port": each.port or None,
            "internal-port": each.internal_port or None,
            "range": each.port_range or None,
        }
        inside += element("port-mapping", port)
    yield from element("network", attributes, inside)


def _storage(mapping: StorageMapping) -> Iterator[str]:
    attributes = {
        "id": mapping.id,
        "source-dir": mapping.source_directory or None,
        "source-dir-root": mapping.source_directory_root or None,
        "target-dir": mapping.target_directory,
        "options": mapping.options or None,
    }
    yield from element("storage-mapping", attributes)


def _written(name: str, text: str | None) -> str | None:
    """Write a setting from an operation's meta-attributes as it would be read back and written again."""
    row = operation_row(name)
    if text is None or row is None or objection(row, text) is not None:
        return text
    if row.type is ValueType.DURATION:
        span_ms = durations.parse(text)
        return durations.render(span_ms) if span_ms or name == "timeout" else None
    return flag(read_boolean(text)) if row.type is ValueType.BOOLEAN else canonical(row, text)
