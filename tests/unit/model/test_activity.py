"""What a node's history and orders leave active or promoted: in doubt, it is."""

import pytest

from haclusterd.model.activity import (
    history_says_active,
    history_says_promoted,
    may_hold_anything,
    possibly_active,
    possibly_promoted,
    started_as,
)
from haclusterd.model.cluster import NodeState, NodeStatus
from haclusterd.model.history import OperationRecord, ReloadInDoubt, ResourceHistory
from haclusterd.model.ids import Incarnation, NodeName, OrderKey, Term
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from tests.unit.recorded_operations import AGENT, DB, history, record

LIFE = Incarnation("boot", "0" * 16)

OK, ERROR, NOT_RUNNING = ExitCode.OK, ExitCode.ERROR, ExitCode.NOT_RUNNING
PROMOTED, FAILED_PROMOTED = ExitCode.PROMOTED, ExitCode.FAILED_PROMOTED


def running_before(*records: OperationRecord) -> ResourceHistory:
    """Return the history of what was started, and then had these operations."""
    return history(record(1, "start", OK), *records)


CANNOT = ExecutionStatus.NOT_INSTALLED
IN_VAIN = (ExitCode.ARGUMENTS, ExitCode.NOT_INSTALLED, ExitCode.NOT_CONFIGURED)
"""What a probe answers that cannot look."""


@pytest.mark.parametrize(
    ("found", "is_active"),
    [
        (history(), False),
        (history(record(1, "start", OK)), True),
        (history(record(1, "start", ERROR)), True),
        (history(record(1, "start", ERROR, status=ExecutionStatus.TIMEOUT)), True),
        (history(record(1, "start", ExitCode.NOT_INSTALLED, status=ExecutionStatus.ERROR)), False),
        (running_before(record(2, "stop", OK)), False),
        (running_before(record(2, "stop", ERROR)), True),
        (running_before(record(2, "stop", OK, status=ExecutionStatus.TIMEOUT)), True),
        (running_before(record(2, "stop", OK, status=ExecutionStatus.PENDING)), True),
        (history(record(1, "start", OK, status=ExecutionStatus.PENDING)), True),
        (history(record(1, "monitor", OK, status=ExecutionStatus.PENDING)), False),
        (running_before(record(2, "monitor", NOT_RUNNING, status=ExecutionStatus.PENDING, interval_ms=10_000)), True),
        (running_before(record(2, "monitor", ERROR, interval_ms=10_000)), True),
        (running_before(record(2, "monitor", NOT_RUNNING, interval_ms=10_000)), False),
        (running_before(record(2, "monitor", ExitCode.ARGUMENTS, interval_ms=10_000)), True),
        (running_before(record(2, "stop", OK), record(3, "monitor", ExitCode.ARGUMENTS, interval_ms=10_000)), True),
        (running_before(record(2, "promote", ERROR)), True),
        (running_before(record(2, "demote", ERROR)), True),
        (history(record(1, "monitor", OK)), True),
        (history(record(1, "monitor", NOT_RUNNING)), False),
        (history(record(1, "monitor", ExitCode.ARGUMENTS)), False),
        (history(record(1, "monitor", ERROR)), True),
        *((running_before(record(2, "monitor", code)), True) for code in IN_VAIN),
        *((running_before(record(2, "stop", OK), record(3, "monitor", code)), False) for code in IN_VAIN),
        (running_before(record(2, "monitor", ERROR, status=CANNOT)), True),
    ],
)  # fmt: skip
def test_what_may_run_counts_as_active(found: ResourceHistory, is_active: bool) -> None:
    assert history_says_active(found) is is_active


@pytest.mark.parametrize(
    ("found", "is_ended"),
    [
        (history(), False),
        (history(record(1, "start", ERROR)), False),
        (history(record(1, "start", ExitCode.NOT_INSTALLED, status=ExecutionStatus.ERROR)), False),
        (running_before(), False),
        (running_before(record(2, "stop", OK)), True),
        (running_before(record(2, "stop", ERROR)), False),
        (running_before(record(2, "stop", OK, status=ExecutionStatus.TIMEOUT)), False),
        (running_before(record(2, "stop", OK), record(3, "start", ERROR)), False),
        (running_before(record(2, "monitor", NOT_RUNNING, interval_ms=10_000)), True),
        (history(record(1, "monitor", NOT_RUNNING)), True),
        (history(record(1, "monitor", OK)), False),
        *((running_before(record(2, "stop", OK), record(3, "monitor", code)), True) for code in IN_VAIN),
        *((running_before(record(2, "monitor", code)), False) for code in IN_VAIN),
        (replace(running_before(record(2, "stop", OK)), reloads=(ReloadInDoubt({}),)), False),
    ],
)  # fmt: skip
def test_what_may_be_in_doubt_again_is_looked_for_as_it_was_started_unless_it_is_proven_that_it_has_ended(
    found: ResourceHistory, is_ended: bool
) -> None:
    status = NodeStatus(NodeName("n1"), NodeState.ONLINE, histories={DB: found}, unverified=frozenset({DB}))
    assert started_as(status, DB) == (None if is_ended else found)
    begun = order(ActionName.START)
    assert started_as(replace(status, orders={begun.key: begun}), DB) == begun


def test_what_was_asked_for_by_a_secret_that_did_not_exist_was_run_with_nothing() -> None:
    # Once the secret is made, it is probed by it: by the reference without a value it would be looked for in vain.
    found = replace(history(record(1, "monitor", ERROR)), parameters={"pidfile": "secret:db", "port": "80"})
    status = NodeStatus(NodeName("n1"), NodeState.ONLINE, histories={DB: found}, unverified=frozenset({DB}))
    assert started_as(status, DB) is None
    of_a_value = replace(found, parameters={"pidfile": "secret:db@5"})
    assert started_as(replace(status, histories={DB: of_a_value}), DB) == of_a_value


@pytest.mark.parametrize(
    ("found", "is_promoted"),
    [
        (history(), False),
        (running_before(), False),
        (running_before(record(2, "promote", OK)), True),
        (running_before(record(2, "promote", ERROR)), True),
        (running_before(record(2, "promote", OK), record(3, "demote", OK)), False),
        (running_before(record(2, "promote", OK), record(3, "demote", ERROR)), True),
        (running_before(record(2, "promote", OK), record(3, "demote", NOT_RUNNING, status=ExecutionStatus.ERROR)),
         False),
        (running_before(record(2, "promote", OK), record(3, "stop", ERROR)), True),
        (running_before(record(2, "promote", OK), record(3, "stop", OK)), False),
        (running_before(record(2, "stop", ERROR)), False),
        (running_before(record(2, "promote", OK), record(3, "demote", OK), record(4, "stop", ERROR)), False),
        (running_before(record(2, "promote", OK), record(3, "demote", ERROR), record(4, "stop", ERROR)), True),
        (history(record(1, "monitor", PROMOTED), record(2, "stop", ERROR)), True),
        (history(record(1, "stop", ERROR)), True),
        (running_before(record(2, "monitor", PROMOTED, interval_ms=10_000)), True),
        (running_before(record(2, "monitor", FAILED_PROMOTED, interval_ms=10_000)), True),
        (history(record(1, "monitor", PROMOTED)), True),
        (history(record(1, "monitor", OK)), False),
    ],
)  # fmt: skip
def test_what_may_be_promoted_counts_as_promoted(found: ResourceHistory, is_promoted: bool) -> None:
    assert history_says_promoted(found) is is_promoted


def order(action: ActionName, *, is_voided: bool = False) -> Order:
    return Order(
        key=OrderKey("1.1.1"), node=NodeName("n1"), incarnation=LIFE, dc_term=Term(1), resource=DB, action=action,
        interval_ms=0, agent=AGENT, parameters={}, meta={}, timeout_ms=20_000, deadline_ms=20_000,
        target_exit_code=OK, is_voided=is_voided,
    )  # fmt: skip


def node(state: NodeState = NodeState.ONLINE) -> NodeStatus:
    return NodeStatus(NodeName("n1"), state=state, incarnation=LIFE)


def doubtful_nodes() -> list[tuple[str, NodeStatus]]:
    promote, start = order(ActionName.PROMOTE), order(ActionName.START)
    return [
        ("an open start", replace(node(), orders={start.key: start})),
        ("a voided start", replace(node(), orders={start.key: order(ActionName.START, is_voided=True)})),
        ("an open promote", replace(node(), orders={promote.key: promote})),
        ("unverified", replace(node(), unverified=frozenset({DB}))),
        ("a record", replace(node(), histories={DB: history(record(1, "start", OK))})),
    ]


@pytest.mark.parametrize("state", [NodeState.ONLINE, NodeState.LOST])
@pytest.mark.parametrize(("what", "status"), doubtful_nodes(), ids=lambda each: each if isinstance(each, str) else "")
def test_each_cause_of_doubt_counts_until_the_fencing_is_recorded(
    what: str, status: NodeStatus, state: NodeState
) -> None:
    there = replace(status, state=state)
    assert possibly_active(there) == {DB}
    assert may_hold_anything(there)
    assert possibly_promoted(there, DB) is (what in ("an open promote", "unverified"))


@pytest.mark.parametrize("state", [NodeState.FENCED, NodeState.LEFT, NodeState.UNSEEN])
def test_nothing_counts_on_a_node_that_is_not_there(state: NodeState) -> None:
    for _, status in doubtful_nodes():
        gone = replace(status, state=state)
        assert possibly_active(gone) == frozenset()
        assert not may_hold_anything(gone)
        assert not possibly_promoted(gone, DB)
