"""The section `configuration` of CIB XML, with what older releases wrote upgraded on reading.

Tags and fencing levels are read here (Pacemaker Explained, "Tagging Configuration Elements", "Fencing Topologies").
"""

from collections import Counter

from haclusterd.formats.cib_xml.access import AccessReader
from haclusterd.formats.cib_xml.alerts import AlertReader
from haclusterd.formats.cib_xml.constraints import ConstraintReader
from haclusterd.formats.cib_xml.nodes import NodeNames, NodeReader
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.resources import ResourceReader
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.upgrade import schema_of, upgraded
from haclusterd.model.configuration import Alert, AttributeSet, Bundle, Configuration, FencingLevel, Tag
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code

_SECTIONS = (
    "crm_config", "nodes", "resources", "constraints", "rsc_defaults", "op_defaults", "tags", "fencing-topology",
    "alerts", "acls",
)  # fmt: skip


class ConfigurationReader:
    """Reads the whole section."""

    def __init__(self, root: Element, notes: Notes, *, keeps_ids: bool = False) -> None:
        self._notes = notes
        self._states = [state for status in root.all("status") for state in status.all("node_state")]
        self._schema = schema_of(root, notes)
        self._sets = SetReader(root, notes, keeps_ids=keeps_ids)
        self._section = root.first("configuration") or Element("configuration", {}, root.line)

    def read(self) -> tuple[Configuration, NodeNames]:
        """Read it; what is not in the configuration is in the notes."""
        for section in self._section.children:
            if section.tag not in _SECTIONS and section.children:
                self._notes.not_yet(section, f"<{section.tag}>")
        nodes = NodeReader(self._sets, self._notes, self._states)
        for section in self._section.all("nodes"):
            nodes.read(section)
        resources = ResourceReader(self._sets, self._notes)
        for section in self._section.all("resources"):
            resources.read(section)
        tags = self._tags()
        known = resources.not_held.union(resources.resources, resources.templates, tags, implicit(resources))
        sizes = Counter(str(each.template) for each in resources.primitives() if each.template is not None)
        sizes.update({name: len(tag.references) for name, tag in tags.items()})
        constraints = ConstraintReader(self._sets, known, sizes, self._notes)
        for section in self._section.all("constraints"):
            constraints.read(section)
        access = AccessReader(self._notes)
        for section in self._section.all("acls"):
            access.read(section)
        made = Configuration(
            nodes=nodes.nodes,
            resources=resources.resources,
            constraints=constraints.constraints,
            properties=self._blocks("crm_config", "cluster_property_set"),
            resource_defaults=self._blocks("rsc_defaults", "meta_attributes"),
            operation_defaults=self._blocks("op_defaults", "meta_attributes"),
            templates=resources.templates,
            tags=tags,
            fencing_levels=self._fencing_levels(),
            alerts=self._alerts(),
            acl_roles=access.roles,
            acl_targets=access.targets,
            acl_groups=access.groups,
        )
        return upgraded(made, self._schema), nodes.names()

    def _tags(self) -> dict[str, Tag]:
        found: dict[str, Tag] = {}
        for section in self._section.all("tags"):
            found.update(read_tags(section, self._notes))
        return found

    def _fencing_levels(self) -> tuple[FencingLevel, ...]:
        sections = self._section.all("fencing-topology")
        return tuple(level for section in sections for level in read_fencing_levels(section, self._notes))

    def _alerts(self) -> dict[str, Alert]:
        reader = AlertReader(self._sets, self._notes)
        for section in self._section.all("alerts"):
            reader.read(section)
        return reader.alerts

    def _blocks(self, section: str, tag: str) -> tuple[AttributeSet, ...]:
        found: list[AttributeSet] = []
        for element in self._section.all(section):
            self._notes.expect_only(element, (), (tag,))
            found += self._sets.read(element, tag)
        return tuple(found)


def implicit(read: ResourceReader) -> set[str]:
    """Return names of resources that exist because others do: connections to guest nodes, parts of bundles."""
    found: set[str] = set()
    for resource in read.resources.values():
        found.update(value for block in resource.meta for name, value in block.pairs if name == "remote-node")
        if isinstance(resource, Bundle):
            replicas = range(max(resource.replicas or 1, resource.promoted_max or 1))
            kinds = (resource.engine, "ip")
            found.update(f"{resource.id}-{number}" for number in replicas)
            found.update(f"{resource.id}-{kind}-{number}" for kind in kinds for number in replicas)
    return found


_LEVELS = range(1, 10)
"""What is outside, Pacemaker ignores."""


def read_tags(section: Element, notes: Notes) -> dict[str, Tag]:
    """Read tags, in document order."""
    found: dict[str, Tag] = {}
    notes.expect_only(section, (), ("tag",))
    for element in section.all("tag"):
        identifier = notes.required(element, "id")
        if identifier is None:
            continue
        notes.expect_only(element, ("id", "description"), ("obj_ref",))
        notes.left_out(element, "description", "only resources have a description here")
        if identifier in found:
            notes.note(Code.DUPLICATE_ID, element, id=identifier)
            continue
        references = (notes.required(each, "id") for each in element.all("obj_ref"))
        found[identifier] = Tag(identifier, tuple(each for each in references if each is not None))
    return found


def read_fencing_levels(section: Element, notes: Notes) -> tuple[FencingLevel, ...]:
    """Read the levels of all targets, in document order."""
    notes.expect_only(section, (), ("fencing-level",))
    found = (_level(element, notes) for element in section.all("fencing-level"))
    return tuple(level for level in found if level is not None)


def _level(element: Element, notes: Notes) -> FencingLevel | None:
    known = ("id", "index", "devices", "target", "target-pattern", "target-attribute", "target-value")
    notes.expect_only(element, known)
    identifier, devices = notes.required(element, "id"), notes.required(element, "devices")
    index = notes.number(element, "index", 0)
    if index not in _LEVELS:
        notes.dropped(element, f"<fencing-level index={index}>: Pacemaker ignores it too", "number levels from 1 to 9")
        return None
    if identifier is None or devices is None:
        return None
    return FencingLevel(
        identifier,
        index,
        tuple(ResourceId(name.strip()) for name in devices.split(",") if name.strip()),
        element.get("target") or "",
        notes.pattern(element, "target-pattern"),
        element.get("target-attribute") or "",
        element.get("target-value") or "",
    )
