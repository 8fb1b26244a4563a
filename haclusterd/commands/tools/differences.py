"""crm_diff: what differs between two CIBs, as a patch, and a CIB with a patch applied.

Patches have the second format of Pacemaker (`<diff format="2">`), which cibadmin(8) and crm_diff(8) of 2.1.5 write and
read: what is deleted first; then, in the order of the new document, what is created, changed and moved. An element is
the same by its name and `id`; without an `id`, by its place among those of its name.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.tools.call import Given, Tool, ToolCall, ToolUsageError, printed
from haclusterd.commands.tools.documents import parsed, written
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.verb import Cost

DIFFERENT, BAD_DATA = 1, 65
_Element = ET.Element
_VERSION = ("admin_epoch", "epoch", "num_updates")
_POSITION = re.compile(r"[0-9]{1,9}")
_STEP = re.compile(r"/([\w.-]+)(?:\[@id=(?:'([^']*)'|\"([^\"]*)\")\])?")


class PatchError(Exception):
    """Why a patch cannot be applied."""


def compare(_context: Context, call: ToolCall, given: Given) -> Outcome[ToolOutput]:
    """crm_diff: print the patch from one CIB to another and end with 1, or nothing and 0; or apply a patch."""
    old = _read(given.text("old_text") or call.text)
    second = given.any_of("new", "new_text", "patch")
    new = _read(given.text("new_text") if second == "new_text" else call.other)
    if old is None or new is None:
        name = "first" if old is None else "second"
        return printed(err=f"Could not parse the {name} XML fragment\n", status=BAD_DATA)
    if second == "patch":
        try:
            patch(old, new)
        except PatchError as problem:
            return printed(err=f"Could not apply patch: {problem}\n", status=DIFFERENT)
        return printed(written(old))
    if old.tag != "cib" or new.tag != "cib":
        raise ToolUsageError(f"<{old.tag if old.tag != 'cib' else new.tag}>: only whole CIBs are compared: cibadmin -Q")
    lines = list(difference(old, new, has_version="plain" not in given))
    return printed("".join(f"{line}\n" for line in lines), status=DIFFERENT if lines else 0)


def _read(text: str) -> _Element | None:
    try:
        return parsed(text)
    except ToolUsageError:
        return None


# What differs


def difference(old: _Element, new: _Element, *, has_version: bool = True) -> Iterator[str]:
    """Yield a patch, line by line; nothing when nothing differs. It has no digest: its readers then check none."""
    ignored = _VERSION if not has_version else ()
    changes = [*_deleted(old, new, "/cib"), *_changed(old, new, "/cib", ignored)]
    if not changes:
        return
    yield '<diff format="2">'
    if has_version:
        yield "  <version>"
        for name, element in (("source", old), ("target", new)):
            words = "".join(f" {each}={quoted(element.get(each, '0'))}" for each in _VERSION)
            yield f"    <{name}{words}/>"
        yield "  </version>"
    yield from (f"  {line}" for line in changes)
    yield "</diff>"


def _keys(element: _Element) -> list[tuple[str, str, int]]:
    """Return by what each child is known: its name, its id, and for one without an id its place."""
    counts: dict[str, int] = {}
    keys = []
    for child in element:
        number = 0
        if child.get("id") is None:
            number = counts[child.tag] = counts.get(child.tag, -1) + 1
        keys.append((child.tag, child.get("id", ""), number))
    return keys


def _pairs(old: _Element, new: _Element) -> list[tuple[_Element | None, _Element]]:
    """Return the children of the new element with what each was before."""
    known = dict(zip(_keys(old), old, strict=True))
    return [(known.get(key), child) for key, child in zip(_keys(new), new, strict=True)]


def _path(parent: str, child: _Element) -> str:
    name = child.get("id")
    return f"{parent}/{child.tag}" + (f"[@id='{name}']" if name is not None else "")


def _deleted(old: _Element, new: _Element, path: str) -> Iterator[str]:
    kept = dict(zip(_keys(new), new, strict=True))
    for key, child in zip(_keys(old), old, strict=True):
        same = kept.get(key)
        if same is None:
            yield f'<change operation="delete" path={quoted(_path(path, child))}/>'
        else:
            yield from _deleted(child, same, _path(path, child))


def _changed(old: _Element, new: _Element, path: str, ignored: tuple[str, ...] = ()) -> Iterator[str]:
    yield from _attributes(old, new, path, ignored)
    pairs = _pairs(old, new)
    kept = [each for each, _ in pairs if each is not None]
    known = {id(each) for each in kept}
    moved = _moved(kept, [each for each in old if id(each) in known])
    for place, (before, child) in enumerate(pairs):
        if before is None:
            yield f'<change operation="create" path={quoted(path)} position="{place}">'
            yield from (f"  {line}" for line in written(child).splitlines())
            yield "</change>"
            continue
        yield from _changed(before, child, _path(path, child))
        if before in moved:
            yield f'<change operation="move" path={quoted(_path(path, child))} position="{place}"/>'


def _attributes(old: _Element, new: _Element, path: str, ignored: tuple[str, ...]) -> Iterator[str]:
    """Yield what changed of the attributes, whatever their order."""
    put = [(name, value) for name, value in new.attrib.items() if name not in ignored and old.get(name) != value]
    gone = [name for name in old.attrib if name not in new.attrib and name not in ignored]
    if not put and not gone:
        return
    yield f'<change operation="modify" path={quoted(path)}>'
    yield "  <change-list>"
    yield from (f'    <change-attr name={quoted(name)} operation="set" value={quoted(value)}/>' for name, value in put)
    yield from (f'    <change-attr name={quoted(name)} operation="unset"/>' for name in gone)
    yield "  </change-list>"
    yield "  <change-result>"
    yield f"    {written(ET.Element(new.tag, new.attrib)).rstrip()}"
    yield "  </change-result>"
    yield "</change>"


def _moved(after: list[_Element], before: list[_Element]) -> set[_Element]:
    """Return which of the same elements have to be moved, one after the other, to get from one order to the other."""
    moved: set[_Element] = set()
    old, new = list(before), list(after)
    for each in before:
        was, is_now = old.index(each), new.index(each)
        if was != is_now:
            moved.add(each)
            if was < is_now:
                new.remove(each)
            else:
                old.remove(each)
    return moved


# A patch applied


def patch(root: _Element, diff: _Element) -> None:
    """Change a CIB as a patch says. Raises PatchError; the CIB is then changed in part.

    Paths are those of the old CIB, positions those of the new: what is moved is taken out first, then everything is put
    in from the front to the back.
    """
    if diff.tag != "diff" or diff.get("format") != "2":
        raise PatchError('only a <diff format="2"> is applied')
    put: list[tuple[int, _Element, _Element]] = []
    for change, (element, parent) in [(each, _found(root, each.get("path", ""))) for each in diff.findall("change")]:
        operation, path = change.get("operation"), change.get("path", "")
        if operation == "create":
            put.append((_place(change), element, _only(change, path)))
        elif operation == "modify":
            result = change.find("change-result")
            changed = _only(result if result is not None else change, path)
            element.attrib.clear()
            element.attrib.update(changed.attrib)
        elif operation not in ("delete", "move"):
            raise PatchError(f"there is no operation {operation}")
        elif parent is None or element not in parent:
            raise PatchError(f"{path}: it is neither deleted nor moved, or not twice")
        else:
            parent.remove(element)
            put += [(_place(change), parent, element)] if operation == "move" else []
    for place, parent, element in sorted(put, key=lambda each: each[0]):
        parent.insert(place, element)


def _only(change: _Element, path: str) -> _Element:
    if len(change) != 1:
        raise PatchError(f"{path}: one element is created or changed at a time")
    return change[0]


def _place(change: _Element) -> int:
    text = change.get("position", "")
    if _POSITION.fullmatch(text) is None:
        raise PatchError(f"{change.get('path')}: no position: {text[:20]!r}")
    return int(text)


def _found(root: _Element, path: str) -> tuple[_Element, _Element | None]:
    """Return the element that a path names, and what contains it. Raises PatchError."""
    steps = list(_STEP.finditer(path))
    if not steps or "".join(each[0] for each in steps) != path or steps[0][1] != root.tag:
        raise PatchError(f"this path is not understood: {path}")
    element, parent = root, None
    for step in steps[1:]:
        name = step[2] if step[2] is not None else step[3]
        fitting = (each for each in element if each.tag == step[1] and name in (None, each.get("id")))
        child = next(fitting, None)
        if child is None:
            raise PatchError(f"there is no {path}")
        element, parent = child, element
    return element, parent


TOOLS = {
    "crm_diff": Tool(compare, {
        "old": "o: original:", "old_text": "O: original-string:", "new": "n: new:", "new_text": "N: new-string:",
        "patch": "p: patch:", "cib": "c cib", "plain": "u no-version", "stdin": "s stdin",
    }, cost=Cost.LONG, refused={"stdin": "both documents are files or texts: -o FILE -n FILE"}),
}  # fmt: skip
