"""Which of two recorded operations is the newer one."""

import pytest

from haclusterd.model.history import OperationRecord, PacemakerMark
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.operation_age import compare_age, oldest_first

OLDER, SAME, NEWER = -1, 0, 1


def record(
    call_id: int, *, at: int = 0, node: str | None = None, name: str = "", plan: int | None = None, uuid: str = "u"
) -> OperationRecord:
    magic = "" if plan is None else f"0:0;7:{plan}:0:{uuid}"
    mark = None if node is None else PacemakerMark(name or str(call_id), node, magic)
    return OperationRecord(
        "start", 0, call_id, ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK, WallTime(at), WallTime(at), pacemaker=mark
    )


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (record(3), record(4), OLDER),
        (record(3, node="n1"), record(4, node="n1"), OLDER),
        (record(3, node="n1", name="x"), record(4, node="n1", name="x"), SAME),
        (record(3, node="n1", at=9), record(4, node="n2", at=8), NEWER),
        (record(3, node="n1", at=0), record(4, node="n2", at=8), SAME),
        (record(4, node="n1", at=8, name="a"), record(4, node="n1", at=9, name="b"), OLDER),
        (record(-1, node="n1", name="a"), record(-1, node="n1", name="b"), SAME),
        (record(-1, node="n1", plan=5), record(4, node="n1", plan=6), OLDER),
        (record(-1, node="n1", plan=7), record(4, node="n1", plan=6), NEWER),
        (record(-1, node="n1", plan=6), record(4, node="n1", plan=6), NEWER),
        (record(4, node="n1", plan=6), record(-1, node="n1", plan=2, uuid="v"), OLDER),
        (record(4, node="n1", plan=-1), record(-1, node="n1", plan=2), NEWER),
        (record(4, node="n1"), record(-1, node="n1", plan=2), SAME),
    ],
)
def test_which_is_newer(left: OperationRecord, right: OperationRecord, expected: int) -> None:
    assert compare_age(left, right, is_same_node=True) == expected
    assert compare_age(right, left, is_same_node=True) == -expected


def test_our_own_records_of_two_nodes_are_distinguished_by_their_times() -> None:
    assert compare_age(record(9, at=5), record(2, at=6), is_same_node=False) == OLDER


def test_of_equally_old_records_the_last_in_the_document_is_older() -> None:
    first, second = record(-1, node="n1", name="a"), record(-1, node="n1", name="b")
    assert oldest_first([first, second]) == [second, first]
    assert oldest_first([record(5), record(4)]) == [record(4), record(5)]
