"""XML as a tree of elements that know their lines: the first step of reading a Pacemaker CIB.

Whatever the bytes are, the answer is a tree or a report, in time and memory proportional to the text. Nothing is ever
expanded or fetched: a document type declaration, which is where entities would be declared, ends the reading.
"""

from collections.abc import Iterator
from xml.parsers import expat

from haclusterd.model.records import dataclass, field
from haclusterd.reports.codes import Code
from haclusterd.reports.items import Place, ReportItem, report

MAX_LENGTH = 256 * 1024 * 1024
"""Characters of a document: a hundred nodes with a thousand probed resources take fifty million."""
MAX_ELEMENTS = 2_000_000
MAX_DEPTH = 64


@dataclass(slots=True)
class Element:
    """One element; text between elements has no meaning in a CIB and is not kept."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)

    def get(self, name: str) -> str | None:
        """Return an attribute."""
        return self.attributes.get(name)

    def all(self, tag: str) -> Iterator["Element"]:
        """Yield the children of that name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> "Element | None":
        """Return the first child of that name."""
        return next(self.all(tag), None)

    def every(self) -> Iterator["Element"]:
        """Yield this element and everything below it, in document order."""
        pending = [self]
        while pending:
            element = pending.pop()
            yield element
            pending.extend(reversed(element.children))


class _RefusedError(Exception):
    """The document is not read to its end."""

    def __init__(self, found: ReportItem) -> None:
        super().__init__()
        self.report = found


class _Builder:
    """Collects what the parser sees."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._stack: list[Element] = []
        self._count = 0
        self.root: Element | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._refuse_declaration

    def parse(self, text: str) -> Element:
        try:
            self._parser.Parse(text, True)  # noqa: FBT003 (it takes no names)
        except expat.ExpatError as error:
            problem = f"this is no well-formed XML: {expat.errors.messages[error.code]}"
            place = Place(self._source, error.lineno, error.offset + 1)
            raise _RefusedError(report(Code.SYNTAX, problem=problem, place=place)) from error
        assert self.root is not None, "a document that was parsed has a root"
        return self.root

    def _place(self) -> Place:
        return Place(self._source, self._parser.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._stack) >= MAX_DEPTH:
            problem = f"elements are nested more than {MAX_DEPTH} deep"
            raise _RefusedError(report(Code.SYNTAX, problem=problem, place=self._place()))
        if self._count > MAX_ELEMENTS:
            raise _RefusedError(report(Code.TOO_LARGE, what="the document", limit=f"{MAX_ELEMENTS} elements"))
        element = Element(tag, attributes, self._parser.CurrentLineNumber)
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self.root = element
        self._stack.append(element)

    def _end(self, _tag: str) -> None:
        self._stack.pop()

    def _refuse_declaration(self, *_declared: object) -> None:
        problem = "a document type declaration is not allowed: a CIB has none"
        raise _RefusedError(report(Code.SYNTAX, problem=problem, place=self._place(), remedy="delete <!DOCTYPE ...>"))


def parse_tree(text: str, source: str) -> Element | ReportItem:
    """Read a document; `source` is what reports call it."""
    if len(text) > MAX_LENGTH:
        return report(Code.TOO_LARGE, what=source, limit=f"{MAX_LENGTH // 1024 // 1024} MiB")
    try:
        return _Builder(source).parse(text)
    except _RefusedError as refused:
        return refused.report
    except UnicodeEncodeError:
        return report(Code.SYNTAX, problem=f"{source} is not Unicode text")
