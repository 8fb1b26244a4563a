"""Every answer of an executor fits into the log, whatever its agent has printed."""

import pytest

from haclusterd.cib.codec import encode_envelope
from haclusterd.cib.commands import Envelope, RecordResults
from haclusterd.machines.executing.order_answers import RESULTS_MAX, OrderAnswers
from haclusterd.model.agent_calls import AgentResult
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.words import bytes_in_log
from haclusterd.ports.store import MAX_ENTRY_BYTES

N1 = NodeName("n1")
INCARNATION = Incarnation("boot-1", "00000000000000aa")
NOW = WallTime(1_700_000_000_000)
PRINTED = "0\0\x1b\n\r\t\"\\\x7fé\u2028\u5931\U0001f600"


def order(number: int) -> Order:
    return Order(
        OrderKey(f"1.1.{number}-aaaaaaaa"), N1, INCARNATION, Term(1), ResourceId(f"r{number}"), ActionName.START, 0,
        AgentReference("ocf", "test", "any"), {}, {}, 20_000, 20_000, ExitCode.OK,
    )  # fmt: skip


def size_of(command: RecordResults) -> int:
    return len(encode_envelope(Envelope(RequestId("n1:session:1"), N1, NOW, command)))


def answered(count: int, text: str, *, code: int = 1, names: tuple[str, ...] | None = None) -> list[RecordResults]:
    answers = OrderAnswers(N1)
    for number in range(count):
        done = AgentResult("key", code, ExecutionStatus.DONE, text, text, text, 0, 0, restart_parameters=names)
        one = order(number)
        answers.add(answers.of_agent(one.resource, one, done, queued_ms=0, wall=NOW))
    commands = [each.command for each in answers.proposals(INCARNATION)]
    assert all(isinstance(each, RecordResults) for each in commands)
    return commands


@pytest.mark.parametrize("character", [*PRINTED])
def test_results_fit_into_entries_whatever_was_printed(character: str) -> None:
    commands = answered(25, character * 100_000)
    assert [result.resource for each in commands for result in each.results] == [f"r{number}" for number in range(25)]
    assert max(map(size_of, commands)) <= MAX_ENTRY_BYTES
    assert max(len(each.results) for each in commands) <= RESULTS_MAX


def test_the_result_of_a_start_with_thousands_of_parameters_fits_into_an_entry() -> None:
    names = tuple(f"parameter_{number}" for number in range(20_000))
    (few,) = answered(1, "", code=0, names=names[:3])
    (many,) = answered(1, "", code=0, names=names)
    assert few.results[0].restart_parameters == names[:3]
    assert (many.results[0].restart_digest, many.results[0].restart_parameters) == ("", ())
    assert size_of(many) <= MAX_ENTRY_BYTES


@pytest.mark.parametrize("character", [*PRINTED])
def test_the_size_of_a_text_is_known_before_it_is_written(character: str) -> None:
    def written(text: str) -> int:
        (command,) = answered(1, text)
        return size_of(command)

    # It is there three times: as the reason, and on both outputs.
    assert written(character * 101) - written(character) == 300 * bytes_in_log(character)
