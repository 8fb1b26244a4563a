"""A configuration as crm text (cli.md §3.6, `show`).

Invariant: the text reads back as an equal configuration. Ids that reading would make again
are left out. SORTED is the order people know (ids sorted within their kind); DOCUMENT keeps the configuration's own
order, on which the scheduler's results depend: use it wherever the text is to be read again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from haclusterd.formats.crm.access import write_access
from haclusterd.formats.crm.alerts import OPENING
from haclusterd.formats.crm.blocks import SECTION_WORDS
from haclusterd.formats.crm.constraint_writer import NEXT, write_constraint, write_tag, write_topology
from haclusterd.formats.crm.operations import OTHER_ATTRIBUTES
from haclusterd.formats.crm.rule_writer import score_word, write_rules
from haclusterd.formats.crm.rules import OPERATION_KEYS, RANGE_KEYS, RESOURCE_KEYS, SPEC_KEYS
from haclusterd.formats.crm.tokens import quote, quote_value, quoted
from haclusterd.formats.generated_ids import (
    are_natural,
    block_base,
    interval_text,
    mapping_base,
    natural_operations,
    recipient_base,
)
from haclusterd.formats.stated import written_enabled, written_interval, written_start_delay, written_timeout
from haclusterd.formats.statements import PAIR_REFERENCE
from haclusterd.model.access import AclObject
from haclusterd.model.configuration import (
    Alert,
    AlertKind,
    AlertRecipient,
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Configuration,
    Constraint,
    Group,
    NodeEntry,
    Operation,
    PairNote,
    Primitive,
    Resource,
    StorageMapping,
    Tag,
    Template,
    rules_of,
)
from haclusterd.model.operations import operation_row
from haclusterd.model.pair_notes import with_sound_notes

_Shown = TypeVar("_Shown")
_RULE_KEYS = frozenset({*RANGE_KEYS, *SPEC_KEYS, *RESOURCE_KEYS, *OPERATION_KEYS})


class Arrangement(StrEnum):
    """In which order objects are written."""

    SORTED = "sorted"
    DOCUMENT = "document"


def show(configuration: Configuration, *, arrangement: Arrangement = Arrangement.SORTED) -> str:
    """Write the configuration; empty text for an empty one."""
    configuration = with_sound_notes(configuration)
    statements = [
        *(_node(entry) for entry in _arranged_nodes(configuration, arrangement)),
        *(_resource(resource) for resource in _arranged_resources(configuration, arrangement)),
        *(_template(template) for template in _arranged_templates(configuration, arrangement)),
        *(write_tag(tag) for tag in _arranged_tags(configuration, arrangement)),
        *(write_constraint(constraint) for constraint in _arranged_constraints(configuration, arrangement)),
        *(_alert(alert) for alert in _arranged_alerts(configuration, arrangement)),
        *([write_topology(configuration.fencing_levels)] if configuration.fencing_levels else []),
        *(_section("property", block) for block in configuration.properties),
        *(_section("rsc_defaults", block) for block in configuration.resource_defaults),
        *(_section("op_defaults", block) for block in configuration.operation_defaults),
        *(write_access(each) for each in _arranged_access(configuration, arrangement)),
    ]
    return "".join(f"{text}\n" for text in statements)


def _arranged_nodes(configuration: Configuration, arrangement: Arrangement) -> Iterable[NodeEntry]:
    entries = configuration.nodes.values()
    return entries if arrangement is Arrangement.DOCUMENT else sorted(entries, key=lambda entry: entry.name)


def _arranged_resources(configuration: Configuration, arrangement: Arrangement) -> Iterable[Resource]:
    resources = configuration.resources.values()
    if arrangement is Arrangement.DOCUMENT:
        return resources
    order = (Primitive, Group, Clone, Bundle)
    arranged = sorted(resources, key=lambda resource: (order.index(type(resource)), resource.id))
    return _owners_first(resources, arranged, _block_ids)


def _arranged_templates(configuration: Configuration, arrangement: Arrangement) -> Iterable[Template]:
    templates = configuration.templates.values()
    return templates if arrangement is Arrangement.DOCUMENT else sorted(templates, key=lambda template: template.id)


def _arranged_tags(configuration: Configuration, arrangement: Arrangement) -> Iterable[Tag]:
    tags = configuration.tags.values()
    return tags if arrangement is Arrangement.DOCUMENT else sorted(tags, key=lambda tag: tag.id)


def _arranged_alerts(configuration: Configuration, arrangement: Arrangement) -> Iterable[Alert]:
    alerts = configuration.alerts.values()
    return alerts if arrangement is Arrangement.DOCUMENT else sorted(alerts, key=lambda alert: alert.id)


def _arranged_access(configuration: Configuration, arrangement: Arrangement) -> Iterable[AclObject]:
    """Return roles before those who have them."""
    kinds: tuple[Mapping[str, AclObject], ...] = (
        configuration.acl_roles,
        configuration.acl_targets,
        configuration.acl_groups,
    )
    is_kept = arrangement is Arrangement.DOCUMENT
    for objects in kinds:
        yield from objects.values() if is_kept else sorted(objects.values(), key=lambda each: each.id)


def _arranged_constraints(configuration: Configuration, arrangement: Arrangement) -> Iterable[Constraint]:
    constraints = configuration.constraints.values()
    if arrangement is Arrangement.DOCUMENT:
        return constraints
    arranged = sorted(constraints, key=lambda each: (type(each).__name__, each.id))
    return _owners_first(constraints, arranged, _rule_ids)


def _rule_ids(constraint: Constraint) -> list[str]:
    return [rule.id for rule in rules_of(constraint) if rule.id]


def _block_ids(resource: Resource) -> list[str]:
    blocks = [*resource.parameters, *resource.meta]
    blocks += resource.utilization if isinstance(resource, Primitive) else ()
    return [block.id for block in blocks]


def _owners_first(
    document: Iterable[_Shown], arranged: list[_Shown], ids_of: Callable[[_Shown], list[str]]
) -> list[_Shown]:
    """Put what defines a block or rule before what refers to it: read again, it is defined there again."""
    owners: dict[str, _Shown] = {}
    referring: dict[int, list[_Shown]] = {}
    for each in document:
        for identifier in ids_of(each):
            owner = owners.setdefault(identifier, each)
            if owner is not each:
                referring.setdefault(id(each), []).append(owner)
    if not referring:
        return arranged
    shown: dict[int, _Shown] = {}
    for each in arranged:
        for first in (*referring.get(id(each), ()), each):
            shown.setdefault(id(first), first)
    return list(shown.values())


def _node(entry: NodeEntry) -> str:
    head = "node " + (f"$id={quote(entry.id)} " if entry.id else "") + entry.name
    head += ":remote" if entry.is_remote else ""
    head += f" $score={score_word(entry.score)}" if entry.score else ""
    head += _description(entry.description)
    return head + _blocks(entry.name, (("attributes", entry.attributes), ("utilization", entry.utilization)))


def _resource(resource: Resource) -> str:
    match resource:
        case Primitive():
            agent = f"@{resource.template}" if resource.template is not None else str(resource.agent)
            return _with_operations(f"primitive {resource.id} {quote(agent)}", resource)
        case Group():
            members = " ".join(quote(member, keywords=SECTION_WORDS) for member in resource.members)
            return _collective(f"group {resource.id} {members}", resource)
        case Clone():
            return _collective(f"clone {resource.id} {resource.child}", resource)
        case Bundle():
            return _bundle(resource)


def _collective(head: str, resource: Group | Clone) -> str:
    head += _description(resource.description)
    return head + _blocks(resource.id, (("params", resource.parameters), ("meta", resource.meta)))


def _template(template: Template) -> str:
    return _with_operations(f"rsc_template {template.id} {quote(str(template.agent))}", template)


def _with_operations(head: str, resource: Primitive | Template) -> str:
    blocks = (("params", resource.parameters), ("meta", resource.meta), ("utilization", resource.utilization))
    text = head + _description(resource.description) + _blocks(resource.id, blocks)
    with_ids = not natural_operations(resource.id, resource.operations)
    text += f"{NEXT}operations $id={quote(resource.operations_id)}" if resource.operations_id else ""
    return text + "".join(NEXT + _operation(operation, with_id=with_ids) for operation in resource.operations)


def _bundle(bundle: Bundle) -> str:
    container = {
        "image": bundle.image,
        "replicas": None if bundle.replicas is None else str(bundle.replicas),
        "replicas-per-host": None if bundle.replicas_per_host is None else str(bundle.replicas_per_host),
        "promoted-max": None if bundle.promoted_max is None else str(bundle.promoted_max),
        "run-command": bundle.run_command or None,
        "options": bundle.options or None,
        "network": bundle.network_mode or None,
    }
    text = f"bundle {bundle.id}{_description(bundle.description)}{NEXT}" + _words(bundle.engine, container)
    if bundle.network is not None:
        text += _network(bundle.id, bundle.network)
    if bundle.storage:
        text += NEXT + "storage" + _storage(bundle.id, bundle.storage)
    text += _blocks(bundle.id, (("params", bundle.parameters), ("meta", bundle.meta)))
    return text + (f"{NEXT}primitive {bundle.primitive}" if bundle.primitive is not None else "")


def _network(bundle: str, network: BundleNetwork) -> str:
    values = {
        "ip-range-start": network.ip_range_start or None,
        "control-port": network.control_port or None,
        "host-interface": network.host_interface or None,
        "host-netmask": network.host_netmask or None,
        "add-host": None if network.adds_host is None else str(network.adds_host).lower(),
    }
    with_ids = not are_natural([port.id for port in network.ports], [mapping_base(bundle, "port")] * len(network.ports))
    text = NEXT + _words("network", values)
    for port in network.ports:
        own = {"id": port.id if with_ids else None, "port": port.port or None,
               "internal-port": port.internal_port or None, "range": port.port_range or None}  # fmt: skip
        text += " " + _words("port-mapping", own)
    return text


def _storage(bundle: str, mappings: Sequence[StorageMapping]) -> str:
    with_ids = not are_natural([each.id for each in mappings], [mapping_base(bundle, "storage")] * len(mappings))
    text = ""
    for each in mappings:
        own = {"id": each.id if with_ids else None, "target-dir": each.target_directory or None,
               "source-dir": each.source_directory or None, "source-dir-root": each.source_directory_root or None,
               "options": each.options or None}  # fmt: skip
        text += " " + _words("storage-mapping", own)
    return text


def _alert(alert: Alert) -> str:
    text = f"alert {alert.id} {quote(alert.path)}{_description(alert.description)}"
    if alert.select is not None:
        words = [str(kind) for kind in alert.select]
        if AlertKind.ATTRIBUTES in alert.select:
            # Braces also around no names: what follows would be taken for a section of pairs.
            words += ["{", *map(quote, alert.attribute_names), "}"]
        text += NEXT + " ".join(["select", *words])
    text += _blocks(alert.id, (("attributes", alert.parameters), ("meta", alert.meta)))
    ids = [each.id for each in alert.recipients]
    with_ids = not are_natural(ids, [recipient_base(alert.id)] * len(ids))
    return text + "".join(NEXT + _recipient(each, with_id=with_ids) for each in alert.recipients)


def _recipient(recipient: AlertRecipient, *, with_id: bool) -> str:
    value = quoted(recipient.value) if recipient.value == OPENING else quote(recipient.value)
    blocks = _blocks(recipient.id, (("attributes", recipient.parameters), ("meta", recipient.meta)), " ")
    text = (f"$id={recipient.id} " if with_id else "") + value + _description(recipient.description) + blocks
    return f"to {text}" if text == value else f"to {{ {text} }}"


def _words(head: str, values: Mapping[str, str | None]) -> str:
    return " ".join([head, *(f"{name}={quote_value(value)}" for name, value in values.items() if value is not None)])


def _description(text: str) -> str:
    return f" description={quote_value(text)}" if text else ""


_Sections = Sequence[tuple[str, tuple[AttributeSet, ...]]]


def _are_natural(owner: str, sections: _Sections) -> bool:
    ids = [block.id for _, sets in sections for block in sets]
    return are_natural(ids, [block_base(owner, section) for section, sets in sections for _ in sets])


def _blocks(owner: str, sections: _Sections, separator: str = NEXT) -> str:
    with_ids = not _are_natural(owner, sections)
    return "".join(
        separator + " ".join((section, *_body(block, with_id=with_ids))) for section, sets in sections for block in sets
    )


def _body(block: AttributeSet, *, with_id: bool) -> list[str]:
    words = [f"$id={block.id}"] if with_id else []
    words += [f"{score_word(block.score)}:"] if block.score else []
    return words + _rule_and_pairs(block)


def _rule_and_pairs(block: AttributeSet) -> list[str]:
    """Write the rule and the pairs; a pair in quotes never belongs to the rule before it."""
    if block.rule is None:
        return _pairs(block)
    first, rest = _pairs(block)[:1], _pairs(block)[1:]
    guarded = [quoted("=".join(block.pairs[0])) for _ in first if block.pairs[0][0].lower() in _RULE_KEYS]
    return [*write_rules(block.id, [block.rule]), *(guarded or first), *rest]


def _pairs(block: AttributeSet) -> list[str]:
    notes = {note.name: note for note in block.notes}
    return [*(_pair(name, value, notes.get(name)) for name, value in block.pairs), *block.valueless]


def _pair(name: str, value: str, note: PairNote | None) -> str:
    if note is None:
        return f"{name}={quote_value(value)}"
    if note.is_reference:
        return f"{PAIR_REFERENCE}{note.id}{f':{name}' if note.says_name else ''}"
    return f"${note.id}:{name}={quote_value(value)}"


def _operation(operation: Operation, *, with_id: bool) -> str:
    words = ["op", operation.name]
    words += [f"$id={operation.id}"] if with_id else []
    words += _operation_attributes(operation)
    sections: _Sections = (("params", operation.parameters), ("meta", operation.meta))
    with_ids = not _are_natural(operation.id, sections)
    parameters = list(operation.parameters)
    if parameters and not with_ids and _can_be_inline(parameters[0]):
        words += _pairs(parameters.pop(0))
    for block in parameters:
        words += ["op_params", *_body(block, with_id=with_ids)]
    for block in operation.meta:
        words += ["op_meta", *_body(block, with_id=with_ids)]
    return " ".join(words)


def _operation_attributes(operation: Operation) -> list[str]:
    values = {
        "interval": written_interval(operation) if operation.interval_ms else None,
        "timeout": written_timeout(operation),
        "role": operation.role,
        "on-fail": operation.on_fail,
        "start-delay": written_start_delay(operation),
        "enabled": written_enabled(operation),
        "requires": operation.requires,
        "interval-origin": operation.interval_origin,
        "record-pending": None if operation.record_pending is None else str(operation.record_pending).lower(),
    }
    words = [f"{name}={quote_value(value)}" for name, value in values.items() if value is not None]
    return words if operation.interval_ms else [*words, f"interval={interval_text(operation)}"]


def _can_be_inline(block: AttributeSet) -> bool:
    names = [name for name, _ in block.pairs]
    is_clear = all(operation_row(name) is None and name not in OTHER_ATTRIBUTES for name in names)
    return bool(names) and not block.notes and block.score == 0 and block.rule is None and is_clear


def _section(keyword: str, block: AttributeSet) -> str:
    text = f"{keyword} $id={block.id} {score_word(block.score)}:" if block.score else f"{keyword} {block.id}:"
    if block.rule is not None:
        return f"{text} {' '.join(_rule_and_pairs(block))}"
    for pair in _pairs(block):
        # At the beginning of a line a name such as #health-x would be a comment.
        text += f" {pair}" if pair.startswith("#") else NEXT + pair
    return text
