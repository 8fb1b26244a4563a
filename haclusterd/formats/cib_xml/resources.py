"""Resources in CIB XML: primitives, templates, groups, clones and bundles (Pacemaker Explained, "Resources")."""

from collections.abc import Iterator, Mapping

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.operations import OperationReader
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import (
    MAX_REPLICAS,
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Group,
    PortMapping,
    Primitive,
    Resource,
    StorageMapping,
    Template,
)
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code

_BLOCKS = ("meta_attributes", "instance_attributes")
_PRIMITIVE_BLOCKS = ("operations", "utilization", *_BLOCKS)
_RENAMED_META = {"master-max": "promoted-max", "master-node-max": "promoted-node-max"}


class ResourceReader:
    """Reads the section `resources`; what contains others comes before what it contains."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes
        self._operations = OperationReader(sets, notes)
        self.resources: dict[ResourceId, Resource] = {}
        self.templates: dict[ResourceId, Template] = {}
        self._template_elements: dict[ResourceId, Element] = {}
        self.not_held: set[str] = set()
        """Ids of what was reported and left out."""

    def read(self, section: Element) -> None:
        """Read all templates and resources, in document order."""
        for element in section.all("template"):
            self._template(element)
        for element in section.children:
            if element.tag != "template":
                self._resource(element)

    def primitives(self) -> Iterator[Primitive]:
        """Yield the primitives that were read."""
        return (each for each in self.resources.values() if isinstance(each, Primitive))

    def _resource(self, element: Element) -> None:
        match element.tag:
            case "primitive":
                self._primitive(element)
            case "group":
                self._group(element)
            case "clone" | "master":
                self._clone(element)
            case "bundle":
                self._bundle(element)
            case _:
                self._notes.not_yet(element, f"<{element.tag} id={element.get('id')!r}>")
                self._leave_out(element)

    def _leave_out(self, element: Element) -> None:
        self.not_held.update(each.get("id") or "" for each in element.every())

    def _is_new(self, element: Element) -> bool:
        identifier = self._notes.required(element, "id")
        if identifier in self.resources or identifier in self.templates:
            self._notes.note(Code.DUPLICATE_ID, element, id=identifier)
            return False
        return identifier is not None

    def _meta(self, element: Element) -> tuple[AttributeSet, ...]:
        """Read meta-attributes, with the names that they have today."""
        blocks = self._sets.read(element, "meta_attributes")
        if not any(name in _RENAMED_META for block in blocks for name, _ in block.pairs):
            return blocks
        return tuple(
            replace(block, pairs=tuple((_RENAMED_META.get(name, name), value) for name, value in block.pairs))
            for block in blocks
        )

    def _group(self, element: Element) -> ResourceId | None:
        if not self._is_new(element):
            return None
        self._notes.expect_only(element, ("id", "description"), ("primitive", *_BLOCKS))
        identifier = ResourceId(element.attributes["id"])
        parameters = self._sets.read(element, "instance_attributes")
        group = Group(identifier, (), parameters, self._meta(element), element.get("description") or "")
        self.resources[identifier] = group
        members = [self._primitive(child) for child in element.all("primitive")]
        held = tuple(member for member in members if member is not None)
        self.resources[identifier] = replace(group, members=held)
        return identifier

    def _clone(self, element: Element) -> None:
        if not self._is_new(element):
            return
        self._notes.expect_only(element, ("id", "description"), ("primitive", "group", *_BLOCKS))
        inside = [child for child in element.children if child.tag in ("primitive", "group")]
        if len(inside) != 1:
            self._notes.bad_value(element, "id", f"a <{element.tag}> contains one primitive or one group")
            self._leave_out(element)
            return
        identifier = ResourceId(element.attributes["id"])
        meta = self._meta(element)
        if element.tag == "master":
            meta = _with_pair(meta, f"{identifier}-meta_attributes", ("promotable", "true"))
        parameters = self._sets.read(element, "instance_attributes")
        clone = Clone(identifier, ResourceId(""), parameters, meta, element.get("description") or "")
        self.resources[identifier] = clone
        child = self._primitive(inside[0]) if inside[0].tag == "primitive" else self._group(inside[0])
        if child is None:
            del self.resources[identifier]
            self._leave_out(element)
            return
        self.resources[identifier] = replace(clone, child=child)

    def _bundle(self, element: Element) -> None:
        if not self._is_new(element):
            return
        bundle = read_bundle(element, self._sets, self._notes)
        if bundle is None:
            self._leave_out(element)
            return
        self.resources[bundle.id] = bundle
        inside = [self._primitive(child) for child in element.all("primitive")]
        if len(inside) > 1:
            self._notes.bad_value(element, "id", "a <bundle> contains one primitive or none")
        self.resources[bundle.id] = replace(bundle, primitive=inside[0] if inside else None)

    def _template(self, element: Element) -> None:
        if not self._is_new(element):
            return
        agent = self._agent(element)
        if agent is None:
            self._leave_out(element)
            return
        self._notes.expect_only(element, ("id", "class", "provider", "type", "description"), _PRIMITIVE_BLOCKS)
        identifier = ResourceId(element.attributes["id"])
        self._template_elements[identifier] = element
        self.templates[identifier] = Template(
            identifier,
            agent,
            self._sets.read(element, "instance_attributes"),
            self._meta(element),
            self._sets.read(element, "utilization"),
            self._operations.read(element),
            element.get("description") or "",
            self._operations.read_id(element),
        )

    def _primitive(self, element: Element) -> ResourceId | None:
        if not self._is_new(element):
            return None
        template = element.get("template")
        agent = self._agent(element) if template is None else self._agent_of(element, template)
        if agent is None:
            self._leave_out(element)
            return None
        known = ("id", "class", "provider", "type", "description", "template")
        self._notes.expect_only(element, known, _PRIMITIVE_BLOCKS)
        identifier = ResourceId(element.attributes["id"])
        self.resources[identifier] = Primitive(
            identifier,
            agent,
            self._sets.read(element, "instance_attributes"),
            self._meta(element),
            self._sets.read(element, "utilization"),
            self._operations.read(element),
            element.get("description") or "",
            None if template is None else ResourceId(template),
            self._operations.read_id(element),
        )
        return identifier

    def _agent_of(self, element: Element, template: str) -> AgentReference | None:
        found = self.templates.get(ResourceId(template))
        if found is None:
            self._notes.note(Code.UNKNOWN_OBJECT, element, id=template)
            return None
        if not self._sets.references.is_affordable(element, self._template_elements[found.id]):
            return None
        return found.agent

    def _agent(self, element: Element) -> AgentReference | None:
        standard, type_ = self._notes.required(element, "class"), self._notes.required(element, "type")
        if standard is None or type_ is None:
            return None
        return AgentReference(standard, element.get("provider") or None, type_)


def _with_pair(blocks: tuple[AttributeSet, ...], identifier: str, pair: tuple[str, str]) -> tuple[AttributeSet, ...]:
    """Set a name in the block that wins over the others, whatever they say."""
    plain: Mapping[int, AttributeSet] = {index: block for index, block in enumerate(blocks) if block.rule is None}
    others = tuple(replace(block, pairs=tuple(each for each in block.pairs if each[0] != pair[0])) for block in blocks)
    if not plain:
        return (AttributeSet(identifier, (pair,)), *others)
    first = min(plain)
    changed = replace(others[first], pairs=(*others[first].pairs, pair))
    return (*others[:first], changed, *others[first + 1 :])


ENGINES = ("docker", "podman", "rkt")
BLOCKS = ("meta_attributes", "instance_attributes")


def read_bundle(element: Element, sets: SetReader, notes: Notes) -> Bundle | None:
    """Read a bundle without its primitive; None, and a report, when it has no container."""
    notes.expect_only(element, ("id", "description"), (*ENGINES, "network", "storage", "primitive", *BLOCKS))
    engine = next((child for child in element.children if child.tag in ENGINES), None)
    if engine is None:
        notes.note(Code.MISSING_KEY, element, where="<bundle>", key=" or ".join(f"<{tag}>" for tag in ENGINES))
        return None
    image = notes.required(engine, "image")
    if image is None:
        return None
    known = ("image", "replicas", "replicas-per-host", "promoted-max", "masters", "run-command", "options", "network")
    notes.expect_only(engine, known)
    return Bundle(
        ResourceId(element.attributes["id"]),
        engine.tag,
        image,
        replicas=_count(engine, "replicas", notes),
        replicas_per_host=_count(engine, "replicas-per-host", notes),
        promoted_max=_count(engine, "masters" if engine.get("promoted-max") is None else "promoted-max", notes),
        run_command=engine.get("run-command") or "",
        options=engine.get("options") or "",
        network_mode=engine.get("network") or "",
        network=_network(element, notes),
        storage=_storage(element, notes),
        meta=sets.read(element, "meta_attributes"),
        parameters=sets.read(element, "instance_attributes"),
        description=element.get("description") or "",
    )


def _count(element: Element, name: str, notes: Notes) -> int | None:
    if element.get(name) is None:
        return None
    value = notes.number(element, name, 0)
    if value > MAX_REPLICAS:
        notes.bad_value(element, name, f"{value} is more than {MAX_REPLICAS}")
        return None
    return value


def _network(bundle: Element, notes: Notes) -> BundleNetwork | None:
    element = bundle.first("network")
    if element is None:
        return None
    known = ("id", "ip-range-start", "control-port", "host-interface", "host-netmask", "add-host")
    notes.expect_only(element, known, ("port-mapping",))
    has_choice = element.get("add-host") is not None
    return BundleNetwork(
        element.get("ip-range-start") or "",
        element.get("control-port") or "",
        element.get("host-interface") or "",
        element.get("host-netmask") or "",
        notes.boolean(element, "add-host", default=True) if has_choice else None,
        tuple(_port(each, notes) for each in element.all("port-mapping")),
    )


def _port(element: Element, notes: Notes) -> PortMapping:
    notes.expect_only(element, ("id", "port", "internal-port", "range"))
    return PortMapping(
        notes.required(element, "id") or "",
        element.get("port") or "",
        element.get("internal-port") or "",
        element.get("range") or "",
    )


def _storage(bundle: Element, notes: Notes) -> tuple[StorageMapping, ...]:
    found = []
    for block in bundle.all("storage"):
        notes.expect_only(block, ("id",), ("storage-mapping",))
        for element in block.all("storage-mapping"):
            notes.expect_only(element, ("id", "source-dir", "source-dir-root", "target-dir", "options"))
            found.append(
                StorageMapping(
                    notes.required(element, "id") or "",
                    notes.required(element, "target-dir") or "",
                    element.get("source-dir") or "",
                    element.get("source-dir-root") or "",
                    element.get("options") or "",
                )
            )
    return tuple(found)
