"""The two queues between the Raft thread and the main loop."""

import sys
import threading

from haclusterd.model.ids import NodeName, Term
from haclusterd.ports.store import Applied
from haclusterd.raft.queues import EVENTS_RESERVE, Propose, QueuePair, TransferLeadership

N1 = NodeName("n1")


class Pair:
    """A queue pair whose wake-ups are counted."""

    def __init__(self, **limits: int) -> None:
        self.woken: list[str] = []
        self.pair = QueuePair(
            wake_raft=lambda: self.woken.append("raft"), wake_main=lambda: self.woken.append("main"), **limits
        )


def applied(index: int) -> Applied:
    return Applied(index, Term(1), None, b"")


def test_a_side_is_woken_once_until_it_has_taken() -> None:
    bench = Pair()
    assert bench.pair.request(Propose(b"a"))
    assert bench.pair.request(TransferLeadership(N1))
    assert bench.woken == ["raft"]
    assert bench.pair.take_requests() == [Propose(b"a"), TransferLeadership(N1)]
    assert bench.pair.request(Propose(b"b"))
    assert bench.woken == ["raft", "raft"]
    bench.pair.deliver(applied(1))
    bench.pair.deliver(applied(2))
    assert bench.woken == ["raft", "raft", "main"]


def test_requests_are_refused_when_the_queue_is_full() -> None:
    bench = Pair(requests_max=2)
    assert [bench.pair.request(Propose(b"x")) for _ in range(3)] == [True, True, False]


def test_events_come_in_order_in_batches_and_the_rest_wakes_again() -> None:
    bench = Pair()
    for index in range(5):
        bench.pair.deliver(applied(index))
    assert bench.pair.take_events(3) == [applied(0), applied(1), applied(2)]
    assert bench.woken == ["main", "main"]
    assert bench.pair.take_events(3) == [applied(3), applied(4)]
    assert bench.woken == ["main", "main"]


def test_a_starved_raft_side_is_woken_when_there_is_room_again() -> None:
    bench = Pair(events_max=EVENTS_RESERVE + 2)
    for index in range(2):
        assert bench.pair.room() == 2 - index
        bench.pair.deliver(applied(index))
    assert bench.pair.room() == 0
    bench.pair.take_events(64)
    assert bench.woken == ["main", "raft"]
    assert bench.pair.room() == 2


def test_two_threads_lose_and_reorder_nothing() -> None:
    """The interpreter switches threads at nearly every instruction."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        raft_wakes, main_wakes = threading.Semaphore(0), threading.Semaphore(0)
        pair = QueuePair(
            wake_raft=raft_wakes.release, wake_main=main_wakes.release, requests_max=50, events_max=EVENTS_RESERVE + 20
        )
        count = 20_000
        seen: list[bytes] = []

        def raft_side() -> None:
            waiting: list[bytes] = []
            index = 0
            while index < count:
                assert raft_wakes.acquire(timeout=20)
                waiting += [request.entry for request in pair.take_requests() if isinstance(request, Propose)]
                while waiting and pair.room() > 0:
                    pair.deliver(Applied(index, Term(1), waiting.pop(0), b""))
                    index += 1

        thread = threading.Thread(target=raft_side)
        thread.start()
        asked = 0
        while len(seen) < count:
            while asked < count and pair.request(Propose(b"%d" % asked)):
                asked += 1
            assert main_wakes.acquire(timeout=20)
            for event in pair.take_events(7):
                assert isinstance(event, Applied)
                assert isinstance(event.outcome, bytes)
                seen.append(event.outcome)
        thread.join(20)
        assert seen == [b"%d" % number for number in range(count)]
    finally:
        sys.setswitchinterval(interval)
