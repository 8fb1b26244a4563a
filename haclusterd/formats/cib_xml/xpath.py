"""XPath 1.0 as access control lists and Pacemaker's tools use it, over elements of a CIB, in bounded time.

Understood are absolute paths of names, `*` and `.` with `/` and `//`, joined by `|`; predicates on attributes and on
relative paths, with `=`, `!=`, `and`, `or`, `not()`, `starts-with()`, `contains()`; and a predicate that is a place
among siblings, `[1]` or `[last()]`. A question, which is not stored, may compare numbers besides: a place
(`[position() < 3]`), the `count()` of a relative path, an attribute. Everything else is refused by name.

Invariant: whatever the text is, a path takes at most STEPS_MAX times the elements times their depth: each step makes a
set of elements, and what a predicate says of an element is found once. A `Budget` bounds several paths together, each
comparison included.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.records import dataclass, field

LENGTH_MAX: Final = 1000
STEPS_MAX: Final = 32
"""In all paths of one text, those in predicates included."""
NESTED_MAX: Final = 4
"""Predicates in predicates."""
VISITS_MAX: Final = 4_000_000
"""Elements and attributes that are looked at for one principal's permissions, in 1 or 2 s."""
PLACES_OF_NUMBER: Final = 15
CHARACTERS_OF_VISIT: Final = 256
"""That are searched as soon as an element is looked at."""

_TOKENS = re.compile(
    r"""\s*(?P<token>//|/|\[|\]|\(|\)|@|,|\||!=|<=|>=|=|<|>|\*|\.\.|\.|::|"[^"]*"|'[^']*'|[0-9]+|[A-Za-z_][\w.-]*)"""
)
_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z")
_FUNCTIONS = ("starts-with", "contains")
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NUMBER = re.compile(r"\s*-?[0-9]{1,15}(?:\.[0-9]{1,15})?\s*", re.ASCII)


class XPathError(ValueError):
    """What is wrong with a text."""


class TooMuchError(Exception):
    """The budget is used up."""


@dataclass(slots=True)
class Budget:
    """How many elements and attributes may still be looked at."""

    left: int = VISITS_MAX

    def take(self, visits: int) -> None:
        """Count visits. Raises TooMuchError."""
        self.left -= visits
        if self.left < 0:
            raise TooMuchError


class Tree:
    """A document in which elements can be found by their names."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._by_tag: dict[str, list[Element]] | None = None
        self.places: dict[int, int] = {}
        """The place of each element in the document, by `id`."""

    def named(self, tag: str) -> list[Element]:
        """Return every element of that name, in document order."""
        if self._by_tag is None:
            self._by_tag = {}
            for place, element in enumerate(self.root.every()):
                self._by_tag.setdefault(element.tag, []).append(element)
                self.places[id(element)] = place
        return self._by_tag.get(tag, [])


Test = Callable[[Element, Budget], bool]


@dataclass(frozen=True, slots=True)
class _Place:
    """A predicate on the place among siblings; 0: the last."""

    number: int
    compared: str = "="


_Predicate = Test | _Place


@dataclass(frozen=True, slots=True)
class _Step:
    """One step: from elements to their children, or to everything below them."""

    name: str
    """`*`: any; `.`: the elements themselves."""
    is_deep: bool
    predicates: tuple[_Predicate, ...] = ()
    has_places: bool = False


@dataclass(frozen=True, slots=True)
class XPath:
    """A path that was understood."""

    text: str
    paths: tuple[tuple[_Step, ...], ...] = field(repr=False)

    def select(self, tree: Tree, budget: Budget) -> list[Element]:
        """Return what it names, each once, in the order of the paths. Raises TooMuchError."""
        found: dict[int, Element] = {}
        document = Element("", {}, 0, [tree.root])
        for steps in self.paths:
            selected = _followed([document], steps, budget, tree)
            found.update((id(each), each) for each in selected if each is not document)
        return list(found.values())


def parse_xpath(text: str, *, has_numbers: bool = False) -> XPath:
    """Read a path; only with `has_numbers` it may compare numbers. Raises XPathError."""
    if len(text) > LENGTH_MAX:
        raise XPathError(f"longer than {LENGTH_MAX} characters")
    return _Parser(text, has_numbers=has_numbers).parse()


def _followed(
    elements: list[Element], steps: Iterable[_Step], budget: Budget, tree: Tree | None = None
) -> list[Element]:
    """Follow steps; `tree` knows all elements where the first step starts from the document."""
    for step in steps:
        if tree is not None and step.is_deep and not step.has_places:
            found = _below_document(tree, step, budget)
        else:
            found = _children(elements, step, budget)
        for predicate in step.predicates:
            if not isinstance(predicate, _Place):
                found = [each for each in found if predicate(each, budget)]
        elements, tree = found, None
    return elements


def _below_document(tree: Tree, step: _Step, budget: Budget) -> list[Element]:
    found = list(tree.root.every()) if step.name in ("*", ".") else tree.named(step.name)
    budget.take(len(found) + 1)
    return found


def _children(elements: list[Element], step: _Step, budget: Budget) -> list[Element]:
    """Return what a step names from these elements, each once; places are counted among the children of one parent."""
    parents = _everything_below(elements, budget) if step.is_deep else elements
    if step.name == ".":
        return parents
    found: list[Element] = []
    for parent in parents:
        budget.take(len(parent.children) + 1)
        group = [each for each in parent.children if step.name in ("*", each.tag)]
        found += _placed(group, step, budget) if step.has_places else group
    return found


def _placed(group: list[Element], step: _Step, budget: Budget) -> list[Element]:
    """Return those of one parent's children that a step's predicates leave, in their order."""
    budget.take(len(step.predicates))
    for predicate in step.predicates:
        if not isinstance(predicate, _Place):
            group = [each for each in group if predicate(each, budget)]
            continue
        wanted, fits = predicate.number or len(group), _COMPARED[predicate.compared]
        budget.take(len(group))
        group = [each for place, each in enumerate(group, start=1) if fits(place, wanted)]
    return group


def _everything_below(elements: list[Element], budget: Budget) -> list[Element]:
    """Return elements and all that is in them, each once."""
    found: dict[int, Element] = {}
    for top in elements:
        pending = [top]
        while pending:
            element = pending.pop()
            if id(element) not in found:
                found[id(element)] = element
                pending.extend(reversed(element.children))
    budget.take(len(found))
    return list(found.values())


class _Parser:
    """Reads one text."""

    def __init__(self, text: str, *, has_numbers: bool) -> None:
        self._text = text
        self._compared = {key: each for key, each in _COMPARED.items() if has_numbers or key in ("=", "!=")}
        self._has_numbers = has_numbers
        self._tokens = list(_split(text))
        self._next = 0
        self._steps = 0
        self._depth = 0

    def parse(self) -> XPath:
        paths = [self._path(is_absolute=True)]
        while self._take_if("|"):
            paths.append(self._path(is_absolute=True))
        if self._peek() is not None:
            raise self._unexpected()
        return XPath(self._text, tuple(paths))

    def _peek(self, ahead: int = 0) -> str | None:
        at = self._next + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def _take(self) -> str:
        token = self._peek()
        if token is None:
            raise XPathError("it ends too early")
        self._next += 1
        return token

    def _take_if(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._next += 1
        return True

    def _need(self, token: str) -> None:
        if not self._take_if(token):
            raise self._unexpected(f", where {token} was expected")

    def _unexpected(self, where: str = "") -> XPathError:
        found = self._peek()
        return XPathError("it ends too early" if found is None else f"{found!r} is not understood here{where}")

    def _path(self, *, is_absolute: bool) -> tuple[_Step, ...]:
        steps: list[_Step] = []
        if is_absolute:
            if self._peek() not in ("/", "//"):
                raise XPathError("a path begins with / or //")
            steps.append(self._step(is_deep=self._take() == "//"))
        else:
            steps.append(self._step(is_deep=False))
        while self._peek() in ("/", "//"):
            steps.append(self._step(is_deep=self._take() == "//"))
        return tuple(steps)

    def _step(self, *, is_deep: bool) -> _Step:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise XPathError(f"it has more than {STEPS_MAX} steps")
        token = self._take()
        if token not in ("*", ".") and not _NAME.match(token):
            self._next -= 1
            what = {"@": "attributes are not selected, only elements", "..": ".. is not understood"}.get(token)
            raise XPathError(what) if what else self._unexpected()
        if self._peek() == "::":
            raise XPathError(f"axes ({token}::) are not understood")
        if self._peek() == "(":
            raise XPathError(f"{token}() is not understood here")
        predicates: list[_Predicate] = []
        while self._take_if("["):
            predicates.append(self._predicate())
            self._need("]")
        has_places = any(isinstance(each, _Place) for each in predicates)
        return _Step(token, is_deep, tuple(predicates), has_places)

    def _predicate(self) -> _Predicate:
        token = self._peek()
        if token is not None and (token.isdecimal() or (token == "last" and self._peek(1) == "(")):
            return _Place(self._place())
        if self._has_numbers and token == "position" and self._peek(1) == "(":
            self._next += 2
            self._need(")")
            return _Place(compared=self._operator(), number=self._place())
        self._depth += 1
        if self._depth > NESTED_MAX:
            raise XPathError(f"predicates are nested more than {NESTED_MAX} deep")
        test = _once(self._either())
        self._depth -= 1
        return test

    def _place(self) -> int:
        """Read a place; 0: the last."""
        if self._take_if("last"):
            self._need("(")
            self._need(")")
            return 0
        return self._number() or 2**60

    def _number(self) -> int:
        token = self._take()
        if not token.isdecimal() or len(token) > PLACES_OF_NUMBER:
            self._next -= 1
            raise self._unexpected(", where a whole number was expected")
        return int(token)

    def _operator(self) -> str:
        token = self._take()
        if token not in _COMPARED:
            self._next -= 1
            raise self._unexpected(f", where one of {' '.join(_COMPARED)} was expected")
        return token

    def _either(self) -> Test:
        tests = [self._both()]
        while self._take_if("or"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda each, budget: any(test(each, budget) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._take_if("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda each, budget: all(test(each, budget) for test in tests)

    def _one(self) -> Test:
        token = self._peek()
        if token == "(":
            return self._in_brackets()
        if token == "not" and self._peek(1) == "(":
            self._take()
            test = self._in_brackets()
            return lambda each, budget: not test(each, budget)
        if token in _FUNCTIONS and self._peek(1) == "(":
            return self._function()
        if self._has_numbers and token == "count" and self._peek(1) == "(":
            return self._count()
        return self._comparison()

    def _in_brackets(self) -> Test:
        self._depth += 1
        if self._depth > NESTED_MAX:
            raise XPathError(f"predicates are nested more than {NESTED_MAX} deep")
        self._need("(")
        test = self._either()
        self._need(")")
        self._depth -= 1
        return test

    def _function(self) -> Test:
        is_start = self._take() == "starts-with"
        self._need("(")
        attribute = self._attribute()
        self._need(",")
        text = self._literal()
        self._need(")")

        def ask(each: Element, budget: Budget) -> bool:
            value = each.attributes.get(attribute, "")
            budget.take(1 + len(value) // CHARACTERS_OF_VISIT)
            return value.startswith(text) if is_start else text in value

        return ask

    def _count(self) -> Test:
        """Read `count(PATH) = NUMBER`."""
        self._next += 2
        path = self._path(is_absolute=False)
        self._need(")")
        fits, wanted = _COMPARED[self._operator()], self._number()
        return lambda each, budget: fits(len(_followed([each], path, budget)), wanted)

    def _comparison(self) -> Test:
        path: tuple[_Step, ...] = ()
        if self._peek() != "@":
            path = self._path_to_attribute()
        if self._peek() != "@":
            return lambda each, budget: bool(_followed([each], path, budget))
        attribute = self._attribute()
        compared = self._peek() or ""
        if compared not in self._compared:
            return _over(path, lambda each: attribute in each.attributes)
        self._take()
        if compared not in ("=", "!="):
            fits, wanted = _COMPARED[compared], self._number()
            return _over(path, lambda each: _fits(each.attributes.get(attribute, ""), fits, wanted))
        text = self._literal()
        if compared == "=":
            return _over(path, lambda each: each.attributes.get(attribute) == text)
        return _over(path, lambda each: each.attributes.get(attribute, text) != text)

    def _path_to_attribute(self) -> tuple[_Step, ...]:
        """Read a relative path; one that ends in an attribute is read up to its `@`."""
        steps = [self._step(is_deep=False)]
        while self._peek() in ("/", "//"):
            if self._peek(1) == "@":
                if self._take() == "//":
                    raise XPathError("//@ is not understood; write //*/@")
                break
            steps.append(self._step(is_deep=self._take() == "//"))
        return tuple(steps)

    def _attribute(self) -> str:
        self._need("@")
        token = self._take()
        if not _NAME.match(token):
            self._next -= 1
            raise self._unexpected()
        return token

    def _literal(self) -> str:
        token = self._take()
        if token[0] in "'\"":
            return token[1:-1]
        if token.isdecimal():
            return token
        self._next -= 1
        raise self._unexpected(", where a text in quotes was expected")


def _fits(value: str, fits: Callable[[float, float], bool], wanted: int) -> bool:
    """Compare what an attribute says with a number; a text that is none fits nothing."""
    return _NUMBER.fullmatch(value) is not None and fits(float(value), wanted)


def _over(path: tuple[_Step, ...], test: Callable[[Element], bool]) -> Test:
    def ask(each: Element, budget: Budget) -> bool:
        found = _followed([each], path, budget) if path else [each]
        budget.take(len(found))
        return any(map(test, found))

    return ask


def _once(test: Test) -> Test:
    """Remember what a predicate says of each element while one path is followed: nested ones ask it again and again."""
    known: dict[int, bool] = {}
    owner: list[Budget | None] = [None]

    def ask(each: Element, budget: Budget) -> bool:
        if owner[0] is not budget:
            owner[0] = budget
            known.clear()
        found = known.get(id(each))
        if found is None:
            found = known[id(each)] = test(each, budget)
        return found

    return ask


def _split(text: str) -> Iterator[str]:
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        found = _TOKENS.match(stripped, at)
        if found is None:
            raise XPathError(f"{stripped[at : at + 10].strip()!r} is not understood")
        yield found["token"]
        at = found.end()


def by_id(tree: Tree) -> Mapping[str, Element]:
    """Return the elements by their ids; the first where several have one."""
    found: dict[str, Element] = {}
    for element in tree.root.every():
        name = element.get("id")
        if name is not None:
            found.setdefault(name, element)
    return found
