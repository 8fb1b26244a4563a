"""Which of two recorded operations is the newer one.

Call ids grow on one node, so they tell on one node only; between nodes the times at which results changed do. An
operation that has not ended yet has no call id: then the plans that ordered the two tell, by their numbers. What cannot
be known counts as equally old. Source: Pacemaker Explained, "Status".
"""

from functools import cmp_to_key

from haclusterd.model.history import OperationRecord

_NO_CALL = -1


def compare_age(left: OperationRecord, right: OperationRecord, *, is_same_node: bool) -> int:
    """Return a negative number when `left` is older, a positive one when it is newer, 0 when nothing tells.

    `is_same_node` counts for our own records; Pacemaker's say themselves where they were made, those of old releases do
    not and are all taken for results of one node.
    """
    marks = left.pacemaker, right.pacemaker
    if marks[0] is not None and marks[1] is not None:
        is_same_node = marks[0].on_node == marks[1].on_node
        if is_same_node and marks[0].id == marks[1].id:
            return 0
    calls = left.call_id, right.call_id
    if calls == (_NO_CALL, _NO_CALL):
        return 0
    if _NO_CALL in calls:
        return _compare_plans(left, right)
    if is_same_node and calls[0] != calls[1]:
        return -1 if calls[0] < calls[1] else 1
    if not left.changed_at or not right.changed_at or left.changed_at == right.changed_at:
        return 0
    return -1 if left.changed_at < right.changed_at else 1


def _compare_plans(left: OperationRecord, right: OperationRecord) -> int:
    found = _plan(left), _plan(right)
    if found[0] is None or found[1] is None:
        return 0
    first, first_writer = found[0]
    second, second_writer = found[1]
    if first_writer != second_writer or first == second:
        return 1 if left.call_id == _NO_CALL else -1
    if first < 0 or second < 0:
        return 1 if first < 0 else -1
    return -1 if first < second else 1


def _plan(record: OperationRecord) -> tuple[int, str] | None:
    """Return the number of the plan that a record of Pacemaker answers, and who made that plan."""
    magic = record.pacemaker.transition_magic if record.pacemaker is not None else ""
    parts = magic.partition(";")[2].split(":")
    if len(parts) < 4 or not _is_number(parts[1]):
        return None
    return int(parts[1]), parts[3]


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= 18


def oldest_first(records: list[OperationRecord]) -> list[OperationRecord]:
    """Sort the records of one history; `records` come in document order, of two equally old ones the last is older."""
    if len(records) < 2:
        return records
    found = records[::-1]
    if min(record.call_id for record in found) > _NO_CALL and len({record.call_id for record in found}) == len(found):
        nodes = {record.pacemaker.on_node for record in found if record.pacemaker is not None}
        if len(nodes) < 2:
            return sorted(found, key=lambda record: record.call_id)
    return sorted(found, key=cmp_to_key(_compare_in_history))


def _compare_in_history(left: OperationRecord, right: OperationRecord) -> int:
    return compare_age(left, right, is_same_node=True)
