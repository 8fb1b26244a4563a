"""Blocks of name-value pairs in CIB XML (Pacemaker Explained, "Sets of Name/Value Pairs")."""

from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.references import References
from haclusterd.formats.cib_xml.rules import RuleReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.configuration import AttributeSet, PairNote
from haclusterd.model.properties import meta_row
from haclusterd.reports.codes import Code, Severity

DEFAULT_MARK = "#default"
"""As a value: the same as if the name were not given."""

_CLONE_MAX = "clone-max"
_DIGITS_MAX = 20


class SetReader:
    """Reads blocks; a block or pair that only refers to another one is read as that one."""

    def __init__(self, root: Element, notes: Notes, *, keeps_ids: bool = False) -> None:
        """`keeps_ids`: ids of pairs are kept although nothing refers to them, because a user has written them."""
        self._notes = notes
        self._keeps_ids = keeps_ids
        self.references = References(root, notes)
        self.rules = RuleReader(self.references, notes)

    def read(self, parent: Element, tag: str) -> tuple[AttributeSet, ...]:
        """Return the blocks of that name below an element."""
        found = (self._block(each) for each in parent.all(tag))
        return tuple(block for block in found if block is not None)

    def _block(self, element: Element) -> AttributeSet | None:
        block = self.references.resolve(element)
        if block is None:
            return None
        self._notes.expect_only(block, ("id", "score"), ("nvpair", "rule"))
        written = block.first("rule")
        rule = None if written is None else self.rules.read(written)
        if written is not None and rule is None:
            return None
        if len(list(block.all("rule"))) > 1:
            remedy = "put them into one: <rule boolean-op=...>"
            self._notes.not_yet(block, f"<{block.tag}> with several rules", remedy=remedy)
        pairs: dict[str, str] = {}
        notes: list[PairNote] = []
        for child in block.all("nvpair"):
            pair = self.references.resolve(child)
            if pair is None or not self._is_sensible(pair):
                continue
            added = self._add(pairs, pair, child.get("name"))
            note = None if added is None else self._note(block, child, pair, added)
            if note is not None:
                notes.append(note)
        return AttributeSet(
            block.get("id") or "", tuple(pairs.items()), self._notes.score(block, "score", 0), rule, tuple(notes)
        )

    def _note(self, block: Element, child: Element, pair: Element, name: str) -> PairNote | None:
        """Return what is said of a pair: that it refers to another one, or its id, if that is referred to."""
        given = pair.get("id")
        if given is None:
            return None
        if child is not pair:
            return PairNote(name, given, is_reference=True, says_name=child.get("name") is not None)
        is_kept = self._keeps_ids or self.references.is_referred(pair)
        return PairNote(name, given) if is_kept and given != f"{block.get('id')}-{name}" else None

    def _add(self, pairs: dict[str, str], pair: Element, other_name: str | None) -> str | None:
        """Put a pair in; return its name, or None if it says nothing new."""
        self._notes.expect_only(pair, ("id", "name", "value"))
        name = other_name or self._notes.required(pair, "name")
        value = pair.get("value")
        if name is None or value is None or value == DEFAULT_MARK:
            return None
        if name in pairs:
            self._notes.note(Code.DUPLICATE_NAME, pair, severity=Severity.WARNING, name=name)
            return None
        pairs[name] = value
        return name

    def _is_sensible(self, pair: Element) -> bool:
        """Tell whether no number is beyond all reason: of instances, each costs time."""
        text = (pair.get("value") or "").strip()
        if pair.get("name") != _CLONE_MAX or not text.isdecimal():
            return True
        row = meta_row(_CLONE_MAX)
        assert row is not None, "it is in the table"
        assert row.maximum is not None, "it has a limit"
        if len(text) < _DIGITS_MAX and int(text) <= row.maximum:
            return True
        self._notes.bad_value(pair, _CLONE_MAX, f"{text[:20]} is more than {row.maximum}")
        return False
