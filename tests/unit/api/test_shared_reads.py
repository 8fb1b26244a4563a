"""Equal questions share an answer that was begun after all of them, and no other."""

import asyncio

import pytest

from haclusterd.api.problems import Reply
from haclusterd.api.shared_reads import SharedReads


class Daemon:
    """Answers with how many questions it had begun, when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_answer = asyncio.Semaphore(0)
        self.fails = False

    async def ask(self) -> Reply:
        self.begun += 1
        mine = self.begun
        await self.may_answer.acquire()
        if self.fails:
            raise ConnectionError
        return Reply(200, str(mine).encode())


async def asked(reads: SharedReads, daemon: Daemon, count: int, question: str = "status") -> list[asyncio.Task[Reply]]:
    made = [asyncio.create_task(reads.answer(question, daemon.ask)) for _ in range(count)]
    for _ in range(5):
        await asyncio.sleep(0)
    return made


async def test_who_asks_while_an_answer_is_made_gets_the_next_one_together_with_all_others() -> None:
    reads, daemon = SharedReads(), Daemon()
    first = await asked(reads, daemon, 3)
    later = [*await asked(reads, daemon, 40), *await asked(reads, daemon, 60)]
    assert daemon.begun == 1
    daemon.may_answer.release()
    assert {(await each).body for each in first} == {b"1"}
    daemon.may_answer.release()
    assert {(await each).body for each in later} == {b"2"}
    last = await asked(reads, daemon, 1)
    daemon.may_answer.release()
    assert [(await each).body for each in last] == [b"3"]
    assert daemon.begun == 3
    assert not reads._waiting
    assert not reads._under_way


async def test_other_questions_do_not_wait() -> None:
    reads, daemon = SharedReads(), Daemon()
    tasks = [*await asked(reads, daemon, 1, "one"), *await asked(reads, daemon, 1, "other")]
    assert daemon.begun == 2
    daemon.may_answer.release()
    daemon.may_answer.release()
    assert {(await each).body for each in tasks} == {b"1", b"2"}


async def test_a_failure_is_that_of_all_who_share_it_and_of_nobody_else() -> None:
    reads, daemon = SharedReads(), Daemon()
    first = await asked(reads, daemon, 2)
    later = await asked(reads, daemon, 2)
    daemon.fails = True
    daemon.may_answer.release()
    for each in first:
        with pytest.raises(ConnectionError):
            await each
    daemon.fails = False
    daemon.may_answer.release()
    assert {(await each).body for each in later} == {b"2"}


async def test_who_goes_takes_nobody_elses_answer_along() -> None:
    reads, daemon = SharedReads(), Daemon()
    stays, goes = await asked(reads, daemon, 2)
    goes.cancel()
    daemon.may_answer.release()
    assert (await stays).body == b"1"
