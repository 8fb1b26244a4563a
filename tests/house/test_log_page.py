"""The page about the log names every line of a priority above info, and no line that nobody writes."""

import ast
import re
from collections.abc import Iterator
from itertools import product

from tests.documents import CHECKOUT

PAGE = CHECKOUT / "docs" / "howto" / "read-the-log.md"
ROOMS = ("adapters", "entry_points", "runtime")
PRIORITIES = ("critical", "error", "warning", "notice")


def alternatives(node: ast.expr) -> list[ast.expr]:
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def is_priority(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Priority"


def lines_of(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the kinds of line that a call writes, with their priorities; those that are put together are left out."""
    kinds = [each.value for each in alternatives(call.args[0]) if isinstance(each, ast.Constant)]
    given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "priority")]
    priorities = [each.attr for node in given for each in alternatives(node) if isinstance(each, ast.Attribute)]
    if priorities and all(is_priority(each) for node in given for each in alternatives(node)):
        both = zip(kinds, priorities, strict=True) if len(kinds) == len(priorities) else product(kinds, priorities)
        yield from ((str(kind), priority.lower()) for kind, priority in both)


def written() -> set[tuple[str, str]]:
    found = set()
    for room in ROOMS:
        for path in (CHECKOUT / "haclusterd" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and bool(node.args)
                if is_call and node.func.attr in ("write", "_log"):
                    found |= set(lines_of(node))
    return {(kind, priority) for kind, priority in found if priority in PRIORITIES and "." in kind}


def rows(text: str) -> dict[str, set[str]]:
    found = re.findall(r"^\| (\w+) \| `\w+` \| (.*) \|$", text, flags=re.MULTILINE)
    return {priority: set(re.findall(r"`([a-z-]+\.[a-z-]+)`", listed)) for priority, listed in found}


def test_every_line_above_info_stands_on_the_page_with_its_priority() -> None:
    listed = rows(PAGE.read_text())
    assert len(written()) > 20
    assert sorted(each for each in written() if each[0] not in listed[each[1]]) == []


def test_no_line_on_the_page_is_written_by_nobody() -> None:
    literal = {kind for kind, _ in written()}
    put_together = ("cib.", "devices.")
    listed = set().union(*(rows(PAGE.read_text())[each] for each in PRIORITIES))
    assert sorted(each for each in listed - literal if not each.startswith(put_together)) == []


def test_the_page_says_what_to_do_about_every_critical_line_and_every_error() -> None:
    text = PAGE.read_text()
    firsts = re.findall(r"^\| (`[a-z-]+\.[^|]*) \|", text.partition("## What to do")[2], flags=re.MULTILINE)
    answered = {kind for first in firsts for kind in re.findall(r"`([a-z-]+\.[a-z-]+)`", first)}
    listed = rows(text)
    grave = {each for each in listed["critical"] | listed["error"] if not each.startswith("cib.")}
    assert sorted(grave - answered) == []
