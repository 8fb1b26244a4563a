"""Bundles in CIB XML (Pacemaker Explained, "Bundles"); the primitive inside is read by `cib_xml_resources`."""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import Bundle, BundleNetwork, PortMapping, StorageMapping
from haclusterd.model.ids import ResourceId
from haclusterd.reports.codes import Code

ENGINES = ("docker", "podman", "rkt")
BLOCKS = ("meta_attributes", "instance_attributes")
MAX_REPLICAS = 1000
"""More are a slip of the pen: each is three resources and a node."""


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
        return MAX_REPLICAS
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
