"""Resources and templates in policy YAML: one function a kind of object."""

from collections.abc import Callable, Collection, Mapping

from haclusterd.formats.agent_names import read_agent
from haclusterd.formats.crm.bundles import ENGINES, read_count
from haclusterd.formats.crm.objects import UNKNOWN_AGENT
from haclusterd.formats.crm.operations import ACTION
from haclusterd.formats.generated_ids import allocate, block_base, mapping_base, operation_base
from haclusterd.formats.policy.blocks import read_blocks
from haclusterd.formats.policy.fields import Fields, as_map, read_id
from haclusterd.formats.policy.rules import choice, read_words
from haclusterd.formats.policy.yaml_tree import Map
from haclusterd.model import durations
from haclusterd.model.access import AclRole
from haclusterd.model.configuration import (
    Alert,
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Constraint,
    Group,
    Operation,
    PortMapping,
    Primitive,
    Resource,
    StorageMapping,
    Template,
)
from haclusterd.model.ids import NCNAME, AgentReference, ResourceId
from haclusterd.model.operations import read_role
from haclusterd.model.properties import read_boolean
from haclusterd.model.records import dataclass
from haclusterd.reports.codes import Code

_OPERATION_KEYS = (
    "id", "interval", "timeout", "role", "on-fail", "start-delay", "enabled", "requires", "interval-origin",
    "record-pending", "parameters", "meta",
)  # fmt: skip
_PRIMITIVE_KEYS = (
    "agent", "template", "description", "parameters", "meta", "utilization", "operations", "operations-id",
)  # fmt: skip
_BUNDLE_KEYS = (
    "engine", "image", "resource", "replicas", "replicas-per-host", "promoted-max", "run-command", "options",
    "network-mode", "network", "storage", "meta", "parameters", "description",
)  # fmt: skip

ObjectReader = Callable[[Fields, str], Resource | Template | Constraint | Alert | AclRole]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object in a list: `- KIND: ID` and its other keys."""

    section: str
    """First word of its path."""
    read: ObjectReader
    keys: tuple[str, ...]
    required: tuple[str, ...] = ()


def resource_kinds(known_agents: Collection[AgentReference]) -> Mapping[str, Kind]:
    """Return the kinds of resources by the key that names them."""

    def primitive(fields: Fields, id_: str) -> Primitive:
        return _primitive(fields, id_, known_agents)

    return {
        "primitive": Kind("resource", primitive, _PRIMITIVE_KEYS),
        "fence-device": Kind("resource", primitive, _PRIMITIVE_KEYS),
        "group": Kind("resource", _group, ("members", "description", "parameters", "meta"), ("members",)),
        "clone": Kind("resource", _clone, ("resource", "description", "parameters", "meta"), ("resource",)),
        "bundle": Kind("resource", _bundle, _BUNDLE_KEYS, ("engine", "image")),
    }


def template_kinds(known_agents: Collection[AgentReference]) -> Mapping[str, Kind]:
    """Return the one kind of templates."""

    def template(fields: Fields, id_: str) -> Template:
        return _template(fields, id_, known_agents)

    keys = tuple(key for key in _PRIMITIVE_KEYS if key != "template")
    return {"template": Kind("template", template, keys, ("agent",))}


def _primitive(fields: Fields, id_: str, known_agents: Collection[AgentReference]) -> Primitive:
    fields.mark("agent", "resource", id_, "agent")
    fields.mark("template", "resource", id_, "agent")
    agent = fields.value("agent", lambda text: _agent(fields, text, known_agents))
    template = fields.value("template", read_id)
    if ("agent" in fields.map.entries) == ("template" in fields.map.entries):
        remedy = "write agent: or template:, one of the two"
        fields.findings.note(Code.MISSING_KEY, fields.map.place, remedy=remedy, where=fields.where, key="agent")
    return Primitive(
        id=ResourceId(id_),
        agent=agent or UNKNOWN_AGENT,
        parameters=_blocks(fields, "resource", id_, "parameters", "params"),
        meta=_blocks(fields, "resource", id_, "meta", "meta"),
        utilization=_blocks(fields, "resource", id_, "utilization", "utilization"),
        operations=_operations(fields, "resource", id_),
        description=fields.text("description") or "",
        template=None if template is None else ResourceId(template),
        operations_id=fields.value("operations-id", read_id) or "",
    )


def _template(fields: Fields, id_: str, known_agents: Collection[AgentReference]) -> Template:
    fields.mark("agent", "template", id_, "agent")
    return Template(
        id=ResourceId(id_),
        agent=fields.value("agent", lambda text: read_agent(text, known_agents)) or UNKNOWN_AGENT,
        parameters=_blocks(fields, "template", id_, "parameters", "params"),
        meta=_blocks(fields, "template", id_, "meta", "meta"),
        utilization=_blocks(fields, "template", id_, "utilization", "utilization"),
        operations=_operations(fields, "template", id_),
        description=fields.text("description") or "",
        operations_id=fields.value("operations-id", read_id) or "",
    )


def _agent(fields: Fields, text: str, known_agents: Collection[AgentReference]) -> AgentReference:
    """Read an agent; a fence device is the one thing that has an agent of class stonith."""
    agent = read_agent(text, known_agents)
    is_device = "fence-device" in fields.map.entries
    if is_device != (agent.standard == "stonith"):
        wanted = "a fence device needs an agent of class stonith" if is_device else "write it as - fence-device: ID"
        raise ValueError(f"{text!r}: {wanted}")
    return agent


def _group(fields: Fields, id_: str) -> Group:
    members: list[ResourceId] = []
    for text, item in read_words(fields.findings, fields.tree("members"), f"{fields.where}: members"):
        if not NCNAME.match(text):
            fields.findings.note(Code.BAD_ID, item.place, id=text)
        fields.findings.places["resource", id_, "member", text] = item.place
        members.append(ResourceId(text))
    parameters, meta = _parameters_and_meta(fields, id_)
    return Group(ResourceId(id_), tuple(members), parameters, meta, fields.text("description") or "")


def _clone(fields: Fields, id_: str) -> Clone:
    child = fields.value("resource", read_id) or ""
    fields.mark("resource", "resource", id_, "member", child)
    parameters, meta = _parameters_and_meta(fields, id_)
    return Clone(ResourceId(id_), ResourceId(child), parameters, meta, fields.text("description") or "")


def _bundle(fields: Fields, id_: str) -> Bundle:
    primitive = fields.value("resource", read_id)
    fields.mark("resource", "resource", id_, "member", primitive or "")
    parameters, meta = _parameters_and_meta(fields, id_)
    return Bundle(
        id=ResourceId(id_),
        engine=fields.value("engine", choice(ENGINES)) or "",
        image=fields.text("image") or "",
        primitive=None if primitive is None else ResourceId(primitive),
        replicas=fields.value("replicas", read_count),
        replicas_per_host=fields.value("replicas-per-host", read_count),
        promoted_max=fields.value("promoted-max", read_count),
        run_command=fields.text("run-command") or "",
        options=fields.text("options") or "",
        network_mode=fields.text("network-mode") or "",
        network=_network(fields, id_),
        storage=_storage(fields, id_),
        meta=meta,
        parameters=parameters,
        description=fields.text("description") or "",
    )


def _network(fields: Fields, bundle: str) -> BundleNetwork | None:
    tree = fields.tree("network")
    if tree is None:
        return None
    keys = ("ip-range-start", "control-port", "host-interface", "host-netmask", "add-host", "ports")
    own = Fields(fields.findings, f"{fields.where}: network", tree, keys)
    port_keys = ("id", "port", "internal-port", "range")
    ports = [Fields(own.findings, f"{own.where}: port", item, port_keys) for item in own.items("ports")]
    ids = allocate([(port.value("id", read_id), mapping_base(bundle, "port")) for port in ports])
    return BundleNetwork(
        ip_range_start=own.text("ip-range-start") or "",
        control_port=own.text("control-port") or "",
        host_interface=own.text("host-interface") or "",
        host_netmask=own.text("host-netmask") or "",
        adds_host=own.value("add-host", read_boolean),
        ports=tuple(
            PortMapping(id_, *(port.text(key) or "" for key in port_keys[1:]))
            for id_, port in zip(ids, ports, strict=True)
        ),
    )


def _storage(fields: Fields, bundle: str) -> tuple[StorageMapping, ...]:
    keys = ("id", "target-dir", "source-dir", "source-dir-root", "options")
    mappings = [
        Fields(fields.findings, f"{fields.where}: storage", item, keys, ("target-dir",))
        for item in fields.items("storage")
    ]
    ids = allocate([(each.value("id", read_id), mapping_base(bundle, "storage")) for each in mappings])
    return tuple(
        StorageMapping(id_, *(each.text(key) or "" for key in keys[1:]))
        for id_, each in zip(ids, mappings, strict=True)
    )


def _parameters_and_meta(fields: Fields, id_: str) -> tuple[tuple[AttributeSet, ...], tuple[AttributeSet, ...]]:
    return (
        _blocks(fields, "resource", id_, "parameters", "params"),
        _blocks(fields, "resource", id_, "meta", "meta"),
    )


def _blocks(fields: Fields, kind: str, id_: str, key: str, section: str) -> tuple[AttributeSet, ...]:
    base = block_base(id_, section)
    return read_blocks(fields.findings, fields.tree(key), f"{fields.where}: {key}", base, kind, id_, section)


def _operations(fields: Fields, kind: str, id_: str) -> tuple[Operation, ...]:
    """Read `- ACTION: {interval: ..., timeout: ...}` items."""
    findings = fields.findings
    read: list[tuple[str, str, Fields]] = []
    for item in fields.items("operations"):
        entries = as_map(findings, item, f"{fields.where}: operation").entries
        action = next(iter(entries), "")
        if not isinstance(item, Map):
            continue
        if len(entries) != 1 or not ACTION.match(action):
            remedy = "write it as - monitor: {interval: 10s}"
            findings.note(Code.SYNTAX, item.place, remedy=remedy, problem="an operation needs exactly one action")
            continue
        where = f"{fields.where}: {action}"
        read.append((str(len(read)), action, Fields(findings, where, entries[action], _OPERATION_KEYS)))
        findings.places[kind, id_, "operation", read[-1][0]] = item.place
    intervals = [operation.value("interval", durations.parse) or 0 for _, _, operation in read]
    ids = allocate(
        [
            (operation.value("id", read_id), operation_base(id_, action, operation.text("interval") or ""))
            for _, action, operation in read
        ]
    )
    return tuple(
        _operation(operation, action, own_id, interval, (kind, id_, "operation", index))
        for (index, action, operation), own_id, interval in zip(read, ids, intervals, strict=True)
    )


def _operation(fields: Fields, action: str, id_: str, interval_ms: int, path: tuple[str, ...]) -> Operation:
    for key in _OPERATION_KEYS:
        fields.mark(key, *path, key)
    enabled = fields.value("enabled", read_boolean)
    return Operation(
        id=id_,
        name=action,
        interval_ms=interval_ms,
        timeout_ms=fields.value("timeout", durations.parse),
        role=fields.value("role", read_role),
        on_fail=fields.text("on-fail"),
        start_delay_ms=fields.value("start-delay", durations.parse),
        is_enabled=enabled is not False,
        requires=fields.text("requires"),
        parameters=_operation_blocks(fields, id_, "parameters", "params", path),
        meta=_operation_blocks(fields, id_, "meta", "meta", path),
        interval_origin=fields.text("interval-origin"),
        record_pending=fields.value("record-pending", read_boolean),
        spelled=durations.spellings(
            interval=fields.text("interval"), timeout=fields.text("timeout"), start_delay=fields.text("start-delay")
        ),
    )


def _operation_blocks(
    fields: Fields, id_: str, key: str, section: str, path: tuple[str, ...]
) -> tuple[AttributeSet, ...]:
    base = block_base(id_, section)
    return read_blocks(fields.findings, fields.tree(key), f"{fields.where}: {key}", base, *path, section)
