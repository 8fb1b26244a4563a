"""A change of a CIB of Pacemaker put into the document from which it was read.

What the change does not touch stays as it was written: comments, ids of pairs, references, sections that the model does
not hold, the status of nodes. Three texts are compared: the document, what this package writes of the state before, and
what it writes of the state after; where the latter two differ, the document gets the difference. What is written is
read once more: if it does not say what was decided, the configuration is written as a whole instead.
"""

import copy
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.parsers import expat

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.formats.cib_xml.status_writer import status_lines
from haclusterd.formats.cib_xml.upgrade import is_of_today
from haclusterd.formats.cib_xml.writer import WRITTEN, write_configuration, written_at
from haclusterd.model.cluster import Cib
from haclusterd.model.records import dataclass, field, replace
from haclusterd.wire.xml_text import escape

_RESOURCES = frozenset({"primitive", "group", "clone", "master", "bundle"})
_OBJECTS = _RESOURCES | {
    "template", "rsc_location", "rsc_colocation", "rsc_order", "rsc_ticket", "tag", "alert", "recipient", "node",
    "fencing-level", "op", "meta_attributes", "instance_attributes", "utilization", "cluster_property_set",
    "port-mapping", "storage-mapping", "node_state", "lrm", "lrm_resource", "lrm_rsc_op", "ticket_state",
    "resource_ref", "obj_ref", "transient_attributes", "acl_role", "acl_target", "acl_group",
}  # fmt: skip
"""Elements whose ids the model has; all others are known by their place."""
_INDENT = "  "
_Key = tuple[str, str]


class _MismatchError(Exception):
    """The document says something in another form than this package writes it, so that a part cannot be found."""


def merged(document: str, old: Cib, new: Cib, user: str) -> str:
    """Return the document after a change from `old`, which was read from it, to `new`; the version is raised by one."""
    before, after = _edges(document)
    root = _parsed(document)
    if old.configuration != new.configuration:
        _configure(root, old, new)
    text = _text(root)
    if read_cib(text, "").cib.configuration != new.configuration:
        root = _parsed(document)
        _rewrite(root, new)
    if old.status != new.status:
        _merge_status(root, _with_ids(old), _with_ids(new))
    _stamp(root, new, user)
    return before + _text(root) + after


def _configure(root: ET.Element, old: Cib, new: Cib) -> None:
    section = root.find("configuration")
    written = [_parsed(write_configuration(each.configuration)).find("configuration") for each in (old, new)]
    assert section is not None
    assert written[0] is not None
    assert written[1] is not None
    if not is_of_today(root.get("validate-with")):
        return _rewrite(root, new)
    try:
        _Merge(section, written[0]).element(section, written[0], written[1], 1)
    except _MismatchError:
        _rewrite(root, new)


def _rewrite(root: ET.Element, new: Cib) -> None:
    """Write the configuration as a whole; sections that the model does not hold stay."""
    section = root.find("configuration")
    written = _parsed(write_configuration(new.configuration)).find("configuration")
    assert section is not None
    assert written is not None
    names = {each.tag for each in written}
    own = {"rsc_defaults", "op_defaults", "fencing-topology", "tags", "alerts", "acls"}
    for child in list(section):
        if child.tag in names | own:
            _remove(section, child)
    for child in list(written):
        _insert(section, len(section), child, 1)
    if not is_of_today(root.get("validate-with")):
        root.set("validate-with", WRITTEN)


def _with_ids(cib: Cib) -> Cib:
    """Return a CIB whose nodes have the ids of the document: where it says no other, the name."""
    nodes = {name: replace(entry, id=entry.id or name) for name, entry in cib.configuration.nodes.items()}
    return replace(cib, configuration=replace(cib.configuration, nodes=nodes))


def _merge_status(root: ET.Element, old: Cib, new: Cib) -> None:
    status = root.find("status")
    written = [ET.fromstring("\n".join(status_lines(each))) for each in (old, new)]
    if status is None:
        status = ET.Element("status")
        _insert(root, len(root), status, 0)
    for before, after in zip(written[0], written[1], strict=False):
        _ensure_node(status, before, after)
    try:
        _Merge(status, written[0]).element(status, written[0], written[1], 1)
    except _MismatchError:
        replaced = list(root).index(status)
        _remove(root, status)
        _insert(root, replaced, written[1], 0)


def _ensure_node(status: ET.Element, before: ET.Element, after: ET.Element) -> None:
    """Give a node of which the document has no state a place for attributes, and say no more of it than that."""
    known = {each.get("id") for each in status.findall("node_state")}
    if before.tag != "node_state" or before.get("id") in known or _is_same(before, after):
        return
    state = ET.Element("node_state", {name: str(before.get(name)) for name in ("id", "uname")})
    attributes = before.find("transient_attributes")
    if attributes is not None:
        state.append(copy.deepcopy(attributes))
    _insert(status, len(status), state, 1)


def _stamp(root: ET.Element, new: Cib, user: str) -> None:
    epoch = root.get("epoch") or ""
    root.set("epoch", str(int(epoch) + 1) if epoch.isdecimal() else "1")
    root.set("num_updates", "0")
    root.set("cib-last-written", written_at(new.version.at))
    root.set("update-client", "crm")
    root.set("update-user", user)


@dataclass(slots=True)
class _Merge:
    """Puts what differs between two texts into a third one, the document."""

    document: ET.Element
    before: ET.Element
    _by_id: dict[str, ET.Element] = field(init=False)
    _objects_before: dict[_Key, ET.Element] = field(init=False)

    def __post_init__(self) -> None:
        self._by_id = {identifier: each for each in self.document.iter() if (identifier := each.get("id"))}
        self._objects_before = {
            ("resource", str(each.get("id"))): each for each in self.before.iter() if each.tag in _RESOURCES
        }

    def element(self, element: ET.Element, old: ET.Element, new: ET.Element, depth: int) -> None:
        """Make of an element of the document, which stands for `old`, what `new` says."""
        if old.tag != new.tag or element.tag != old.tag or "id-ref" in element.attrib:
            raise _MismatchError
        for name in {**old.attrib, **new.attrib}:
            value = new.get(name)
            if old.get(name) == value or (name == "id" and element.tag not in _OBJECTS):
                continue
            if value is None:
                element.attrib.pop(name, None)
            else:
                element.set(name, value)
        self._children(element, old, new, depth)

    def _children(self, element: ET.Element, old: ET.Element, new: ET.Element, depth: int) -> None:
        here, before, after = self._keyed(element), self._keyed(old), self._keyed(new)
        for key, child in before.items():
            if key not in after:
                if key not in here:
                    raise _MismatchError
                _remove(element, here.pop(key))
                continue
            if not _is_same(child, after[key]):
                self._child(element, here, key, (child, after[key]), depth)
        kept = [key for key in after if key in before]
        if kept != [key for key in before if key in after]:
            _reorder(element, [here[key] for key in kept if key in here])
        last: ET.Element | None = None
        for key, child in after.items():
            if key not in before:
                place = list(element).index(last) + 1 if last is not None else self._beginning(element)
                here[key] = self._inserted(element, place, child, depth)
            last = here.get(key, last)

    def _beginning(self, element: ET.Element) -> int:
        """Return the place of what comes first: after comments that describe the whole."""
        children = list(element)
        return next((number for number, each in enumerate(children) if _is_element(each)), len(children))

    def _child(
        self, element: ET.Element, here: dict[_Key, ET.Element], key: _Key,
        texts: tuple[ET.Element, ET.Element], depth: int,
    ) -> None:  # fmt: skip
        if key not in here:
            raise _MismatchError
        try:
            trial = copy.deepcopy(here[key])
            _Merge.element(self, trial, *texts, depth + 1)
            place = list(element).index(here[key])
            trial.tail = here[key].tail
            element[place] = trial
            here[key] = trial
        except _MismatchError:
            if key[0] in ("configuration", "resources", "constraints", "nodes", "status"):
                raise
            place = list(element).index(here[key])
            _remove(element, here[key])
            here[key] = self._inserted(element, place, texts[1], depth)

    def _inserted(self, element: ET.Element, place: int, child: ET.Element, depth: int) -> ET.Element:
        """Put a new child in; an object that stood somewhere else comes as it was written there."""
        made = copy.deepcopy(child)
        self._with_own_words(made)
        for each in made.iter():
            identifier = each.get("id")
            if identifier and each.tag not in _OBJECTS and identifier in self._by_id:
                each.set("id", self._fresh(identifier))
            if each.get("id"):
                self._by_id[str(each.get("id"))] = each
        _insert(element, place, made, depth)
        return made

    def _with_own_words(self, made: ET.Element) -> None:
        """Write resources inside as the document has them, where they are what they were."""
        for number, child in enumerate(list(made)):
            key = ("resource", str(child.get("id")))
            before, own = self._objects_before.get(key), self._by_id.get(key[1])
            if child.tag in _RESOURCES and before is not None and own is not None and _is_same(before, child):
                made[number] = copy.deepcopy(own)
            else:
                self._with_own_words(child)

    def _fresh(self, wanted: str) -> str:
        count = 2
        while f"{wanted}-{count}" in self._by_id:
            count += 1
        return f"{wanted}-{count}"

    def _keyed(self, element: ET.Element) -> dict[_Key, ET.Element]:
        found: dict[_Key, ET.Element] = {}
        counts: dict[str, int] = {}
        for child in element:
            if not _is_element(child):
                continue
            counts[child.tag] = counts.get(child.tag, 0) + 1
            key = self._key(child, counts[child.tag])
            found.setdefault(key, child)
        return found

    def _key(self, element: ET.Element, number: int) -> _Key:
        identifier = element.get("id") or element.get("id-ref") or ""
        if element.tag in _RESOURCES:
            return ("resource", identifier)
        if element.tag == "nvpair":
            referred = self._by_id.get(element.get("id-ref") or "")
            name = element.get("name") or (referred.get("name") if referred is not None else None)
            return ("nvpair", name or identifier)
        if element.tag in _OBJECTS and identifier:
            return (element.tag, identifier)
        return (element.tag, str(number))


def _is_element(element: ET.Element) -> bool:
    """Tell an element from a comment or an instruction, which have a function for their tag."""
    return not callable(element.tag)


def _is_same(one: ET.Element, other: ET.Element) -> bool:
    return (
        one.tag == other.tag
        and _meaning(one) == _meaning(other)
        and len(one) == len(other)
        and all(map(_is_same, one, other))
    )


def _meaning(element: ET.Element) -> dict[str, str]:
    """Return an element's attributes, without the id that this package has made up."""
    return {name: value for name, value in element.attrib.items() if name != "id" or element.tag in _OBJECTS}


def _reorder(element: ET.Element, wanted: list[ET.Element]) -> None:
    """Put some children into an order, at the places that they have now."""
    places = sorted(list(element).index(each) for each in wanted)
    tails = [element[place].tail for place in places]
    for place, child, tail in zip(places, wanted, tails, strict=True):
        element[place] = child
        child.tail = tail


def _insert(parent: ET.Element, place: int, child: ET.Element, depth: int) -> None:
    """Put a child in, on a line of its own; `depth` is the parent's."""
    ET.indent(child, _INDENT, depth + 1)
    inner, outer = "\n" + _INDENT * (depth + 1), "\n" + _INDENT * depth
    if not len(parent):
        parent.text, child.tail = inner, outer
    elif place == 0:
        child.tail = inner
    else:
        before = parent[place - 1]
        child.tail, before.tail = before.tail, inner
    parent.insert(place, child)


def _remove(parent: ET.Element, child: ET.Element) -> None:
    """Take a child out with its line."""
    place = list(parent).index(child)
    if place == len(parent) - 1:
        if place:
            parent[place - 1].tail = child.tail
        else:
            parent.text = None
    parent.remove(child)


def _parsed(document: str) -> ET.Element:
    """Read a document that was read before: it declares nothing, and is no larger than is allowed."""
    builder = ET.TreeBuilder(insert_comments=True, insert_pis=True)
    return ET.fromstring(document, ET.XMLParser(target=builder))


_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")


def _edges(document: str) -> tuple[str, str]:
    """Return what comes before and after the root: the declaration, comments."""
    found: list[int] = []
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda _tag, _attributes: found.append(parser.CurrentByteIndex) if not found else None
    data = _DECLARATION.sub("", document, count=1).encode()
    begin = document.encode()[: len(document.encode()) - len(data)]
    parser.Parse(data, True)  # noqa: FBT003 (it takes no names)
    end = data.rindex(b">") + 1
    behind = data[end:]
    return (begin + data[: found[0]]).decode(), behind.decode()


def _text(element: ET.Element) -> str:
    return "".join(_written(element))


def _written(element: ET.Element) -> Iterator[str]:
    if not _is_element(element):
        kind: object = element.tag
        yield f"<!--{element.text}-->" if kind is ET.Comment else f"<?{element.text}?>"
        return
    words = "".join(f" {name}={quoted(value)}" for name, value in element.attrib.items())
    if not len(element) and not (element.text or "").strip():
        yield f"<{element.tag}{words}/>"
        return
    yield f"<{element.tag}{words}>{escape(element.text or '', {})}"
    for child in element:
        yield from _written(child)
        yield escape(child.tail or "", {})
    yield f"</{element.tag}>"
