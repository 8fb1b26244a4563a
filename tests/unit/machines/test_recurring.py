"""When a recurring monitor is due, and which of its answers are news."""

import pytest

from haclusterd.machines.executing.recurring import HURRY_FIRST_MS, HURRY_MAX_MS, Recurring
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import DB, order

INTERVAL_MS = 10_000
OK, FAILED = (ExitCode.OK, ""), (ExitCode.NOT_RUNNING, "")


def answer(exit_code: ExitCode, reason: str = "") -> OperationResult:
    status = ExecutionStatus.DONE if exit_code is ExitCode.OK else ExecutionStatus.ERROR
    return OperationResult(
        ResultKind.FINISHED, order("m").key, DB, "monitor", INTERVAL_MS, exit_code, status, 1, WallTime(0),
        exit_reason=reason,
    )  # fmt: skip


def monitor(start_delay_ms: int = 0) -> Recurring:
    wanted = replace(order("m", ActionName.MONITOR, interval_ms=INTERVAL_MS), start_delay_ms=start_delay_ms)
    return Recurring.begin(wanted, Instant(0))


@pytest.mark.parametrize("delay_ms", [0, 5000])
def test_the_first_run_is_due_after_the_start_delay(delay_ms: int) -> None:
    assert monitor(delay_ms).due_at == delay_ms


def test_the_next_run_is_due_an_interval_after_the_end_of_the_last() -> None:
    recurring = monitor()
    recurring.answered(answer(ExitCode.OK), Instant(700))
    assert recurring.due_at == 700 + INTERVAL_MS


@pytest.mark.parametrize(
    ("answers", "reported"),
    [
        ([OK], ["m"]),
        ([OK, OK, OK], ["m", "-", "-"]),
        ([OK, FAILED], ["m", None]),
        ([OK, FAILED, FAILED, OK], ["m", None, "-", None]),
        ([FAILED, (ExitCode.NOT_RUNNING, "another reason")], ["m", None]),
    ],
)
def test_the_first_answer_is_its_orders_and_then_only_changes_are_reported(
    answers: list[tuple[ExitCode, str]], reported: list[str | None]
) -> None:
    """`-`: nothing is reported; None: reported without an order."""
    recurring = monitor()
    found = [recurring.answered(answer(*each), Instant(0)) for each in answers]
    assert ["-" if result is None else result.order for result in found] == reported


def test_a_death_is_looked_at_at_once_and_false_alarms_ever_later() -> None:
    recurring = monitor()
    now = 0
    waits = []
    for _ in range(12):
        recurring.hurry(Instant(now))
        waits.append(recurring.due_at - now)
        now = recurring.due_at
        recurring.answered(answer(ExitCode.OK), Instant(now))
    assert waits[:4] == [0, HURRY_FIRST_MS, 2 * HURRY_FIRST_MS, 4 * HURRY_FIRST_MS]
    assert max(waits) <= min(INTERVAL_MS, HURRY_MAX_MS)


def test_a_death_that_the_agent_does_not_see_is_looked_at_again_a_few_times() -> None:
    recurring = monitor()
    recurring.answered(answer(ExitCode.OK), Instant(0))
    recurring.hurry(Instant(0))
    looks = []
    for _ in range(7):
        looks.append(recurring.due_at)
        recurring.answered(answer(ExitCode.OK), recurring.due_at)
    assert looks == [0, 200, 600, 1400, 3000, 6200, 6200 + INTERVAL_MS]


def test_a_death_that_is_seen_is_not_looked_at_again() -> None:
    recurring = monitor()
    recurring.hurry(Instant(0))
    recurring.answered(answer(ExitCode.OK), Instant(0))
    recurring.answered(answer(ExitCode.NOT_RUNNING), Instant(200))
    assert recurring.due_at == 200 + INTERVAL_MS


def test_a_true_alarm_restores_the_allowance() -> None:
    recurring = monitor()
    for code in (ExitCode.OK, ExitCode.OK, ExitCode.NOT_RUNNING):
        recurring.hurry(Instant(0))
        recurring.answered(answer(code), Instant(0))
    recurring.hurry(Instant(0))
    assert recurring.due_at == HURRY_FIRST_MS


def test_a_hurry_never_delays_what_is_due_earlier() -> None:
    recurring = monitor()
    recurring.hurry(Instant(0))
    recurring.answered(answer(ExitCode.OK), Instant(0))
    recurring.due_at = Instant(50)
    recurring.hurry(Instant(10))
    assert recurring.due_at == 50
