"""Operations of resources in CIB XML (Pacemaker Explained, "Resource Operations")."""

from haclusterd.formats.cib_xml.notes import AS_IN_PACEMAKER, Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.formats.stated import stated_enabled
from haclusterd.model import durations
from haclusterd.model.configuration import AttributeSet, Operation, effective
from haclusterd.model.operations import OPERATION_ATTRIBUTES
from haclusterd.model.records import replace

_KEYS = tuple(dict.fromkeys((*(row.name for row in OPERATION_ATTRIBUTES), "record-pending", "interval-origin")))
_KEPT_IN_META = ("start-delay", "interval-origin", "enabled")
"""Plans read them where they stand; `enabled` counts at the operation alone, as in Pacemaker."""
_DEFAULT_TIMEOUT_MS = next(durations.parse(row.default) for row in OPERATION_ATTRIBUTES if row.name == "timeout")
_WITHOUT_EFFECT = ("can_fail", "role_after_failure")
"""Attributes that Pacemaker's newest schema drops."""
_KNOWN = ("id", "name", "description", *_KEYS, *_WITHOUT_EFFECT)


class OperationReader:
    """Reads `operations` and what is in it."""

    def __init__(self, sets: SetReader, notes: Notes) -> None:
        self._sets = sets
        self._notes = notes

    @staticmethod
    def read_id(resource: Element) -> str:
        """Return what the list of operations of a resource or template is called; empty: it has no name of its own."""
        return next((given for each in resource.all("operations") if (given := each.get("id"))), "")

    def read(self, resource: Element) -> tuple[Operation, ...]:
        """Return the operations of a resource or template, in document order."""
        found = []
        for written in resource.all("operations"):
            block = self._sets.references.resolve(written)
            if block is None:
                continue
            self._notes.expect_only(block, ("id", "description"), ("op",))
            self._notes.left_out(block, "description", "only resources have a description here")
            found += [self._operation(each) for each in block.all("op")]
        return tuple(operation for operation in found if operation is not None)

    def _operation(self, written: Element) -> Operation | None:
        notes = self._notes
        element = self._sets.references.resolve(written)
        name = None if element is None else notes.required(element, "name")
        if element is None or name is None:
            return None
        notes.expect_only(element, _KNOWN, ("meta_attributes", "instance_attributes"))
        for obsolete in _WITHOUT_EFFECT:
            if element.get(obsolete) is not None:
                problem = f"<op {obsolete}>: Pacemaker's newest schema has no such attribute"
                notes.dropped(element, problem, "leave it out")
        notes.left_out(element, "description", "only resources have a description here")
        element, meta = self._with_own_meta(element)
        interval_ms = notes.duration_ms(element, "interval") or 0
        has_pending = element.get("record-pending") is not None
        return Operation(
            element.get("id") or f"{name}-{durations.render(interval_ms)}",
            name,
            interval_ms,
            self._timeout_ms(element),
            notes.role(element, "role"),
            element.get("on-fail"),
            self._start_delay_ms(element),
            notes.boolean(element, "enabled", default=True),
            element.get("requires"),
            self._sets.read(element, "instance_attributes"),
            meta,
            element.get("interval-origin"),
            notes.boolean(element, "record-pending", default=True) if has_pending else None,
            (
                *durations.spellings(
                    interval=element.get("interval"), timeout=element.get("timeout"),
                    start_delay=element.get("start-delay"),
                ),
                *stated_enabled(element.get("enabled")),
            ),
        )  # fmt: skip

    def _timeout_ms(self, element: Element) -> int | None:
        """Read the timeout; one that cannot be read is the default, whatever the operation defaults say."""
        read = self._notes.duration_ms(element, "timeout", is_timeout=True)
        return _DEFAULT_TIMEOUT_MS if read is None and element.get("timeout") is not None else read

    def _start_delay_ms(self, element: Element) -> int | None:
        """Read the delay; one that cannot be read is none, whatever the operation defaults say."""
        read = self._notes.duration_ms(element, "start-delay")
        return 0 if read is None and element.get("start-delay") is not None else read

    def _with_own_meta(self, element: Element) -> tuple[Element, tuple[AttributeSet, ...]]:
        """Give what an operation's meta block says to the operation itself, whose own attributes win."""
        settings, kept = settings_in_meta(self._sets.read(element, "meta_attributes"))
        if any(block.rule is None and block.get("enabled") is not None for block in kept):
            problem = f"enabled in the meta-attributes of <op>: it counts at the operation alone, {AS_IN_PACEMAKER}"
            self._notes.dropped(element, problem, "write it at the operation: <op enabled=...>")
        return Element(element.tag, {**settings, **element.attributes}, element.line, element.children), kept


def settings_in_meta(blocks: tuple[AttributeSet, ...]) -> tuple[dict[str, str], tuple[AttributeSet, ...]]:
    """Take out of an operation's meta-attributes what is read at the operation alone, and return both parts.

    Nothing where a rule decides which of them count.
    """
    if any(block.rule is not None for block in blocks):
        return {}, blocks
    settings = {name: value for name, value in effective(blocks).items() if name in _KEYS and name not in _KEPT_IN_META}
    kept = (replace(block, pairs=tuple(each for each in block.pairs if each[0] not in settings)) for block in blocks)
    return settings, tuple(block for block in kept if block.pairs)
