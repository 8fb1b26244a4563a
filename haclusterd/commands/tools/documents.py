"""XML that a user gives or is shown: read within bounds, written as Pacemaker's tools write it, searched by XPath.

XPath is what access control lists know of it (`formats.cib_xml.xpath`), with axes that only lengthen a path, and with
a last step upwards, sideways or to an attribute; more is refused by name.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from haclusterd.commands.tools.call import ToolUsageError
from haclusterd.formats.cib_xml.elements import element as element_lines
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.cib_xml.xpath import Budget, TooMuchError, Tree, XPathError, parse_xpath

_Element = ET.Element
_DEEPEST = 64


def select(root: _Element, xpath: str) -> list[_Element]:
    """Return what an XPath names, in bounded time. Raises ToolUsageError for one that is not understood."""
    place = _PLACE.fullmatch(xpath)
    if place is not None:
        every = select(root, place[1])
        at = len(every) if place[2] == "last()" else int(place[2])
        return every[at - 1 : at] if at else []
    path = xpath if xpath.startswith("/") else f"//{xpath}"
    path = _NAMED.sub(_as_names, path)
    for axis, instead in _DOWNWARD:
        path = path.replace(axis, instead)
    steps: list[tuple[str, str]] = []
    while (last := _LAST_STEP.search(path)) is not None:
        axis, name = (last[1], last[2]) if last[1] else ("@", last[3]) if last[3] else ("parent", "*")
        steps.insert(0, (axis, name))
        path = path[: last.start()]
    twins: dict[int, _Element] = {}
    budget = Budget()
    try:
        found = parse_xpath(path, has_numbers=True).select(Tree(_twin(root, twins)), budget)
        chosen = [twins[id(each)] for each in found]
        for axis, name in steps:
            chosen = list(_along(root, chosen, axis, name, budget))
    except XPathError as error:
        raise ToolUsageError(f"this XPath is not understood here: {xpath[:200]} ({error})") from None
    except TooMuchError:
        raise ToolUsageError(f"this XPath looks at too many elements; write a narrower one: {xpath[:200]}") from None
    places = {each: at for at, each in enumerate(root.iter())}
    return sorted(dict.fromkeys(chosen), key=places.__getitem__)


_PLACE = re.compile(r"\((//?[^()|]*(?:\[[^()]*\][^()|]*)*)\)\[([0-9]{1,9}|last\(\))\]")
"""One of all that a path leads to: `(//primitive)[1]`."""
_NAMED = re.compile(
    r"(\*|[\w.-]+)\[(?:self::([\w.-]+)|(?:local-)?name\(\)\s*=\s*(?:'([\w.-]+)'|\"([\w.-]+)\"))\]"
)
"""An element by its name, written as a condition: `*[self::group]`, `*[name()='group']`."""


def _as_names(match: re.Match[str]) -> str:
    name = match[2] or match[3] or match[4]
    return name if match[1] in ("*", name) else match[0]


_DOWNWARD = (("child::", ""), ("/descendant-or-self::node()/", "//"), ("/descendant::", "//"), ("attribute::", "@"))
"""Axes by which a path may be written longer than need be."""
_LAST_STEP = re.compile(
    r"/(?:\.\.|(parent|ancestor|ancestor-or-self|following-sibling|preceding-sibling|self)::([\w*.-]+)|@([\w.*-]+))$"
)
"""Steps that are understood at the end of a path: what is upwards or beside, and an attribute, which stands for the
element that has it."""


def _along(root: _Element, chosen: list[_Element], axis: str, name: str, budget: Budget) -> Iterator[_Element]:
    """Yield what is reached from elements by one of the last steps, each once."""
    parents = {child: parent for parent in root.iter() for child in parent}
    seen: set[_Element] = set()
    for start in chosen:
        for each in _reached(start, axis, name, parents):
            budget.take(1)
            if each in seen:
                if axis.startswith("ancestor"):
                    break  # What is above it was seen, too.
                continue
            seen.add(each)
            if axis == "@" or name in ("*", each.tag):
                yield each


def _reached(start: _Element, axis: str, name: str, parents: dict[_Element, _Element]) -> Iterator[_Element]:
    parent = parents.get(start)
    has_attribute = axis == "@" and (bool(start.attrib) if name == "*" else name in start.attrib)
    if has_attribute or axis in ("self", "ancestor-or-self"):
        yield start
    if axis == "parent" and parent is not None:
        yield parent
    elif axis.startswith("ancestor"):
        while parent is not None:
            yield parent
            parent = parents.get(parent)
    elif axis.endswith("sibling") and parent is not None:
        place = list(parent).index(start)
        yield from parent[place + 1 :] if axis.startswith("following") else parent[:place]


def _twin(element: _Element, twins: dict[int, _Element]) -> Element:
    """Return an element as `formats.cib_xml` knows it; note which one each stands for, by `id`."""
    made = Element(element.tag, dict(element.attrib), 0, [_twin(child, twins) for child in element])
    twins[id(made)] = element
    return made


def path_of(root: _Element, wanted: _Element) -> str:
    """Return the path to an element, with ids."""
    parents = {child: parent for parent in root.iter() for child in parent}
    steps = []
    step: _Element | None = wanted
    while step is not None:
        identity = f"[@id='{step.get('id')}']" if step.get("id") else ""
        steps.append(f"/{step.tag}{identity}")
        step = parents.get(step)
    return "".join(reversed(steps))


def parsed(text: str) -> _Element:
    """Read XML that a user gave. Raises ToolUsageError; a document type, which could grow without bound, is refused."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ToolUsageError("XML with a document type is not read")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ToolUsageError(f"this is no XML: {error}") from None
    pending = [(root, 1)]
    while pending:
        element, depth = pending.pop()
        if depth > _DEEPEST:
            raise ToolUsageError(f"XML is nested deeper than {_DEEPEST}")
        pending += ((child, depth + 1) for child in element)
    return root


def written(element: _Element) -> str:
    """Write an element with what is in it, indented."""
    return "".join(f"{line}\n" for line in _lines(element))


def _lines(item: _Element) -> list[str]:
    return list(element_lines(item.tag, item.attrib, [line for child in item for line in _lines(child)]))
