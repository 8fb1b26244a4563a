"""Reading typed fields out of a YAML tree; what does not fit is reported and reading continues.

Every function returns something usable whatever it finds, so that one reading reports all faults of a file.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from haclusterd.formats.policy.yaml_tree import List, Map, Scalar, Tree
from haclusterd.model.ids import NCNAME
from haclusterd.model.records import dataclass, field
from haclusterd.model.words import bad_character
from haclusterd.reports.codes import Code
from haclusterd.reports.items import FAULTS_MAX, Place, ReportItem, report_with
from haclusterd.reports.places import Path
from haclusterd.reports.suggestions import did_you_mean

_Read = TypeVar("_Read")


@dataclass(slots=True)
class Findings:
    """What reading has brought to light so far."""

    reports: list[ReportItem] = field(default_factory=list)
    places: dict[Path, Place] = field(default_factory=dict)

    def note(self, code: Code, place: Place, /, *, remedy: str | None = None, **parameters: object) -> None:
        """Report a fault and continue."""
        self.reports.append(report_with(code, parameters, place=place, remedy=remedy))


def kind_of(tree: Tree) -> str:
    """Say what a tree is, for messages."""
    match tree:
        case Scalar(text=None):
            return "nothing"
        case Scalar():
            return "a single value"
        case List():
            return "a list"
        case Map():
            return "a mapping"


def as_map(findings: Findings, tree: Tree, name: str) -> Map:
    """Return the mapping; an absent value counts as an empty one."""
    if isinstance(tree, Map):
        return tree
    if not (isinstance(tree, Scalar) and tree.text is None):
        findings.note(Code.WRONG_TYPE, tree.place, name=name, expected="a mapping", found=kind_of(tree))
    return Map(tree.place)


def as_list(findings: Findings, tree: Tree, name: str) -> Sequence[Tree]:
    """Return the items; an absent value counts as an empty list."""
    if isinstance(tree, List):
        return tree.items
    if not (isinstance(tree, Scalar) and tree.text is None):
        findings.note(Code.WRONG_TYPE, tree.place, name=name, expected="a list", found=kind_of(tree))
    return ()


def as_text(findings: Findings, tree: Tree, name: str) -> str | None:
    """Return a single value as it is spelled; None (reported) when it is none."""
    if not isinstance(tree, Scalar) or tree.text is None:
        remedy = 'write "" for an empty value' if isinstance(tree, Scalar) else None
        findings.note(
            Code.WRONG_TYPE, tree.place, remedy=remedy, name=name, expected="a single value", found=kind_of(tree)
        )
        return None
    if tree.is_faulty:
        return None
    character = bad_character(tree.text)
    if character:
        findings.note(Code.BAD_CHARACTER, tree.place, name=name, character=character)
        return None
    return tree.text


class Fields:
    """The entries of one mapping with a fixed set of keys."""

    def __init__(
        self, findings: Findings, where: str, tree: Tree, known: Sequence[str], required: Sequence[str] = ()
    ) -> None:
        self.findings = findings
        self.where = where
        self.map = as_map(findings, tree, where)
        for key, place in self.map.key_places.items():
            if key not in known:
                remedy = did_you_mean(key, known) if len(findings.reports) < FAULTS_MAX else None
                findings.note(Code.UNKNOWN_KEY, place, remedy=remedy, where=where, key=key)
        for key in required:
            if key not in self.map.entries:
                findings.note(Code.MISSING_KEY, self.map.place, where=where, key=key)

    def mark(self, key: str, *path: str) -> None:
        """Note where a key's value stands."""
        tree = self.map.entries.get(key)
        if tree is not None:
            self.findings.places[path] = tree.place

    def tree(self, key: str) -> Tree | None:
        """Return what is under the key."""
        return self.map.entries.get(key)

    def text(self, key: str) -> str | None:
        """Return a single value, None when it is absent or wrong."""
        tree = self.tree(key)
        return None if tree is None else as_text(self.findings, tree, f"{self.where}: {key}")

    def value(self, key: str, read: Callable[[str], _Read]) -> _Read | None:
        """Return a typed value, None when it is absent or wrong; `read` raises ValueError."""
        tree, text = self.tree(key), self.text(key)
        if tree is None or text is None:
            return None
        try:
            return read(text)
        except ValueError as error:
            self.findings.note(Code.BAD_VALUE, tree.place, name=f"{self.where}: {key}", problem=error)
            return None

    def items(self, key: str) -> Sequence[Tree]:
        """Return a list's items."""
        tree = self.tree(key)
        return () if tree is None else as_list(self.findings, tree, f"{self.where}: {key}")


def read_id(text: str) -> str:
    """Read an id; raise ValueError otherwise."""
    if not NCNAME.match(text):
        raise ValueError(f"{text!r} cannot be an id (begin with a letter or _)")
    return text
