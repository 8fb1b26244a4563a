"""Operations of primitives: intervals, timeouts, attributes (Pacemaker Explained, "Resource Operations")."""

from difflib import get_close_matches

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.model import durations
from haclusterd.model.configuration import Operation, Primitive, Template
from haclusterd.model.operations import ONE_SHOT, OPERATION_ATTRIBUTES, RECURRING, operation_row
from haclusterd.model.templates import expanded
from haclusterd.reports.codes import Code
from haclusterd.reports.suggestions import did_you_mean

SHORTEST_TIMEOUT_MS = 100
"""No agent can start its interpreter, act and end in less."""
LONGEST_TIMEOUT_MS = 86_400_000
_ATTRIBUTES = tuple(row.name for row in OPERATION_ATTRIBUTES)
_ALIKE = 0.8
"""A parameter of an operation that is so like an attribute is the attribute misspelt."""
_NEVER_IGNORED = frozenset({"stop", "demote", "migrate_to", "migrate_from", "migrate"})
"""Operations whose failure leaves in doubt where the resource runs, or is promoted."""


def check_operations(judgement: Judgement) -> None:
    """Judge the operations of every template and primitive."""
    for template in judgement.configuration.templates.values():
        _check_all(judgement, template, "template")
    for primitive in judgement.configuration.primitives():
        _check_all(judgement, primitive, "resource")
        operations = expanded(primitive, judgement.configuration).operations
        is_watched = any(each.name == "monitor" and each.interval_ms for each in operations)
        if not is_watched and primitive.agent.standard != "stonith":
            judgement.note(Code.NO_MONITOR, ("resource", primitive.id), resource=primitive.id)


def _check_all(judgement: Judgement, owner: Primitive | Template, kind: str) -> None:
    _check_repetition(judgement, owner, kind)
    for index, operation in enumerate(owner.operations):
        path = (kind, owner.id, "operation", str(index))
        _check_operation(judgement, operation, f"{owner.id}: {operation.name}", path)
        if operation.interval_ms and operation.name not in (*RECURRING, *ONE_SHOT):
            what = f"{owner.id}: the recurring operation {operation.name}"
            meant = judgement.nearest(operation.name, (*RECURRING, *ONE_SHOT))
            why = f"only monitors recur; did you mean {meant}?" if meant else "only monitors recur"
            judgement.note(Code.WITHOUT_EFFECT, path, what=what, why=why)
        elif operation.interval_ms and operation.name not in RECURRING:
            judgement.note(
                Code.INTERVAL_OF_ONE_SHOT,
                (*path, "interval"),
                resource=owner.id,
                operation=operation.name,
                interval=durations.render(operation.interval_ms),
            )


def _check_repetition(judgement: Judgement, primitive: Primitive | Template, kind: str) -> None:
    """Two operations of one name and interval could not be distinguished, whatever their roles are."""
    seen: set[tuple[str, int]] = set()
    for index, operation in enumerate(primitive.operations):
        path = (kind, primitive.id, "operation", str(index))
        key = (operation.name, operation.interval_ms)
        if key in seen and operation.interval_ms:
            interval = durations.render(operation.interval_ms)
            judgement.note(Code.EQUAL_INTERVALS, path, resource=primitive.id, interval=interval)
        elif key in seen:
            judgement.note(Code.OPERATION_TWICE, path, resource=primitive.id, operation=operation.name)
        seen.add(key)


def _check_operation(judgement: Judgement, operation: Operation, where: str, path: tuple[str, ...]) -> None:
    on_fail = operation_row("on-fail")
    assert on_fail is not None
    if operation.on_fail is not None:
        judgement.check_value(on_fail, operation.on_fail, f"{where}: on-fail", (*path, "on-fail"))
    chosen = operation.on_fail or dict(pairs(operation.meta)).get("on-fail")
    if chosen == "ignore" and operation.name in _NEVER_IGNORED:
        why = "what may still run is never taken for stopped or moved: it counts as if on-fail were not given"
        judgement.note(Code.WITHOUT_EFFECT, (*path, "on-fail"), what=f"{where}: on-fail=ignore", why=why)
    pending = operation_row("record-pending")
    assert pending is not None
    if operation.record_pending is not None:
        value = str(operation.record_pending).lower()
        judgement.check_value(pending, value, f"{where}: record-pending", (*path, "record-pending"))
    for name, value in pairs(operation.meta):
        row = operation_row(name)
        if row is None:
            remedy = did_you_mean(name, (row.name for row in OPERATION_ATTRIBUTES))
            own = (*path, "meta", name)
            judgement.unknown(Code.UNKNOWN_OPERATION_ATTRIBUTE, own, remedy=remedy, where=where, name=name)
        else:
            judgement.check_value(row, value, f"{where}: {name}", (*path, "meta", name))
    for name, _ in pairs(operation.parameters):
        meant = get_close_matches(name, _ATTRIBUTES, n=1, cutoff=_ALIKE)
        if meant and name not in _ATTRIBUTES:
            what, why = f"{where}: {name}", f"the agent gets it as a parameter; did you mean {meant[0]}?"
            judgement.note(Code.WITHOUT_EFFECT, (*path, "params", name), what=what, why=why)
    _check_timeout(judgement, operation.timeout_ms, where, (*path, "timeout"))


def _check_timeout(judgement: Judgement, timeout_ms: int | None, where: str, path: tuple[str, ...]) -> None:
    if timeout_ms is None:
        return
    timeout = durations.render(timeout_ms)
    if timeout_ms < SHORTEST_TIMEOUT_MS:
        judgement.note(Code.TIMEOUT_TOO_SHORT, path, where=where, timeout=timeout)
    elif timeout_ms > LONGEST_TIMEOUT_MS:
        judgement.note(Code.TIMEOUT_TOO_LONG, path, where=where, timeout=timeout)
