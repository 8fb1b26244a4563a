"""The section `configuration` of CIB XML, with what older releases wrote upgraded on reading.

Names of properties stay as they are written (`model.properties` knows the aliases); only what stands in another place
today is moved: defaults that were cluster properties, values that have another name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from haclusterd.formats.cib_xml_constraints import ConstraintReader
from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_resources import ResourceReader, judge_meta
from haclusterd.formats.cib_xml_sets import SetReader
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model import durations
from haclusterd.model.configuration import AttributeSet, Configuration, NodeEntry
from haclusterd.model.ids import NodeName
from haclusterd.model.properties import ClusterProperties, property_row, read_boolean
from haclusterd.reports.codes import Code

IGNORED = "ignore"
"""The value of no-quorum-policy with which everything is done as if there were a quorum."""

_SECTIONS = ("crm_config", "nodes", "resources", "constraints", "rsc_defaults", "op_defaults")
_WITHOUT_EFFECT = ("acls", "alerts", "fencing-topology")
"""Sections that the model cannot hold and that no plan depends on."""

_MOVED_TO_RESOURCE_DEFAULTS = {
    "default-resource-stickiness": "resource-stickiness",
    "default-migration-threshold": "migration-threshold",
    "is-managed-default": "is-managed",
}
_MOVED_TO_OPERATION_DEFAULTS = {"default-action-timeout": "timeout"}
_RENAMED_VALUES = {("fencing-action", "poweroff"): "off"}


def _is_true(text: str) -> bool:
    try:
        return read_boolean(text)
    except ValueError:
        return False


def _is_false(text: str) -> bool:
    return text.strip().lower() in ("false", "no", "off", "n", "0")


def _is_positive(text: str) -> bool:
    try:
        return durations.parse(text) > 0
    except ValueError:
        return False


_NOT_YET: Mapping[str, Callable[[str], bool]] = {
    "placement-strategy": lambda text: text in ("utilization", "minimal", "balanced"),
    "node-health-strategy": lambda text: text != "none",
    "shutdown-lock": _is_true,
    "priority-fencing-delay": _is_positive,
    "node-pending-timeout": _is_positive,
    "enable-startup-probes": _is_false,
    "concurrent-fencing": _is_false,
}
"""Properties with an effect on plans that this version does not have, each with when it has one."""


@dataclass(frozen=True, slots=True)
class NodeNames:
    """The nodes of a document, by the ids that its status uses."""

    by_id: Mapping[str, NodeName]
    by_name: Mapping[str, NodeName]
    """In lower case: names are looked up in any case."""

    def find(self, identifier: str | None, name: str | None) -> NodeName | None:
        """Return a node by its id, else by its name."""
        return self.by_id.get(identifier or "") or self.by_name.get((name or "").lower())


class ConfigurationReader:
    """Reads the whole section."""

    def __init__(self, root: Element, notes: Notes, *, has_quorum: bool) -> None:
        self._notes = notes
        self._has_quorum = has_quorum
        self._sets = SetReader(root, notes)
        self._section = root.first("configuration") or Element("configuration", {}, root.line)
        self._nodes: dict[NodeName, NodeEntry] = {}
        self._by_id: dict[str, NodeName] = {}

    def read(self) -> tuple[Configuration, NodeNames]:
        """Read it; what is not in the configuration is in the notes."""
        for section in self._section.children:
            if section.tag not in _SECTIONS and section.children:
                has_effect = section.tag not in _WITHOUT_EFFECT
                self._notes.not_yet(section, f"<{section.tag}>", has_effect=has_effect)
        for element in self._in("nodes"):
            self._node(element)
        resources = ResourceReader(self._sets, self._notes)
        for section in self._section.all("resources"):
            resources.read(section)
        constraints = ConstraintReader(resources.resources, resources.not_held, self._notes)
        for section in self._section.all("constraints"):
            constraints.read(section)
        made = Configuration(
            nodes=self._nodes,
            resources=resources.resources,
            constraints=constraints.constraints,
            properties=self._blocks("crm_config", "cluster_property_set"),
            resource_defaults=self._blocks("rsc_defaults", "meta_attributes"),
            operation_defaults=self._blocks("op_defaults", "meta_attributes"),
        )
        judge_meta(self._notes, self._section.first("rsc_defaults") or self._section, made.resource_defaults)
        made = _upgraded(made)
        self._judge_properties(made)
        names = {name.lower(): name for name in self._nodes}
        return made, NodeNames(self._by_id, names)

    def _in(self, tag: str) -> list[Element]:
        return [element for section in self._section.all(tag) for element in section.children]

    def _blocks(self, section: str, tag: str) -> tuple[AttributeSet, ...]:
        found: list[AttributeSet] = []
        for element in self._section.all(section):
            self._notes.expect_only(element, (), (tag,))
            found += self._sets.read(element, tag)
        return tuple(found)

    def _node(self, element: Element) -> None:
        identifier = self._notes.required(element, "id")
        if identifier is None:
            return
        self._notes.expect_only(
            element, ("id", "uname", "type", "description", "score"), ("instance_attributes", "utilization")
        )
        if element.get("type") not in (None, "member", "normal"):
            self._notes.not_yet(element, f"a node of type {element.get('type')}")
            return
        if self._notes.score(element, "score", 0):
            self._notes.not_yet(element, "a node with a score")
        name = NodeName(element.get("uname") or identifier)
        if name in self._nodes:
            self._notes.note(Code.DUPLICATE_ID, element, id=name)
            return
        self._by_id[identifier] = name
        self._nodes[name] = NodeEntry(
            name,
            self._sets.read(element, "instance_attributes"),
            self._sets.read(element, "utilization"),
            element.get("description") or "",
        )

    def _judge_properties(self, made: Configuration) -> None:
        for section in self._section.all("crm_config"):
            for pair in (each for each in section.every() if each.tag == "nvpair"):
                name, value = pair.get("name") or "", pair.get("value") or ""
                has_effect = _NOT_YET.get(name)
                if has_effect is not None and has_effect(value):
                    self._notes.not_yet(pair, f"{name}={value}")
                elif name == "no-quorum-policy" and value != "stop":
                    has_other_effect = not self._has_quorum and value != IGNORED
                    self._notes.not_yet(pair, f"{name}={value}", has_effect=has_other_effect)
                elif name == "have-watchdog" and _is_true(value):
                    has_device = next(made.fence_devices(), None) is not None
                    is_enabled = ClusterProperties(made).boolean("fencing-enabled")
                    self._notes.not_yet(pair, f"{name}={value}", has_effect=is_enabled and not has_device)


def _upgraded(configuration: Configuration) -> Configuration:
    """Bring what older releases wrote to where it stands today."""
    resource_defaults: list[tuple[str, str]] = []
    operation_defaults: list[tuple[str, str]] = []
    properties: list[AttributeSet] = []
    for block in configuration.properties:
        kept: list[tuple[str, str]] = []
        for written, value in block.pairs:
            name = _newer_name(written)
            if name in _MOVED_TO_RESOURCE_DEFAULTS:
                resource_defaults.append((_MOVED_TO_RESOURCE_DEFAULTS[name], value))
            elif name in _MOVED_TO_OPERATION_DEFAULTS:
                operation_defaults.append((_MOVED_TO_OPERATION_DEFAULTS[name], value))
            else:
                row = property_row(name)
                kept.append((name, _RENAMED_VALUES.get((row.name if row else name, value), value)))
        properties.append(replace(block, pairs=tuple(kept)))
    return replace(
        configuration,
        properties=tuple(properties),
        resource_defaults=_with(configuration.resource_defaults, "upgraded-rsc-defaults", resource_defaults),
        operation_defaults=_with(configuration.operation_defaults, "upgraded-op-defaults", operation_defaults),
    )


def _newer_name(written: str) -> str:
    """Return the name with dashes that releases before 1.0 wrote with underscores."""
    dashed = written.replace("_", "-")
    is_known = property_row(dashed) is not None or dashed in _MOVED_TO_RESOURCE_DEFAULTS
    return dashed if is_known or dashed in _MOVED_TO_OPERATION_DEFAULTS else written


def _with(
    blocks: tuple[AttributeSet, ...], identifier: str, pairs: list[tuple[str, str]]
) -> tuple[AttributeSet, ...]:
    """Put moved defaults first: of blocks with equal scores the last one wins, and what stood there before wins."""
    return (AttributeSet(identifier, tuple(pairs)), *blocks) if pairs else blocks
