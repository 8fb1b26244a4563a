"""What a loop is held up by is reported, and what happened before it was to be measured is not."""

import asyncio
import gc
import time

from haclusterd.adapters.processes.collector import FullCollections, keep_what_is_built
from haclusterd.adapters.processes.measured_loops import MeasuredLoops
from haclusterd.model.loop_stalls import LoopStall


def measured(*calls: object) -> tuple[LoopStall, ...]:
    """Run calls on a measured loop, each in a turn of its own."""
    loops = MeasuredLoops()

    async def live() -> None:
        for call in calls:
            if call == "reset":
                loops.reset()
            else:
                assert callable(call)
                call()
            await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=loops.factory("main")) as runner:
        runner.run(live())
    return loops.longest()


def compute(span_ms: int = 60) -> None:
    until = time.thread_time() + span_ms / 1000
    while time.thread_time() < until:
        pass


def test_a_hold_is_reported_with_the_part_of_it_that_was_computing() -> None:
    (computed,) = measured(compute)
    assert computed.longest_ms >= 59
    assert computed.longest_work_ms >= 59
    (waited,) = measured(lambda: time.sleep(0.06))
    assert waited.longest_ms >= 59
    assert waited.longest_work_ms < 30


def test_what_was_before_the_reset_is_forgotten_the_hold_in_which_it_happens_included() -> None:
    loops = MeasuredLoops()

    async def live() -> None:
        compute(200)
        loops.reset()
        await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=loops.factory("main")) as runner:
        runner.run(live())
    (hold,) = loops.longest()
    assert hold.longest_work_ms < 150


def test_the_gaps_between_heartbeats_stand_beside_the_holds() -> None:
    loops = MeasuredLoops()
    sent = loops.heartbeats()
    for gap_ms in (50, 120, 60):
        sent(gap_ms)
    assert [(each.loop, each.longest_ms) for each in loops.longest()] == [("heartbeats", 120)]


def test_no_full_collection_while_anybody_builds_something() -> None:
    usual = gc.get_threshold()
    collections = FullCollections()
    with collections.avoided():
        with collections.avoided():
            assert gc.get_threshold()[:2] == usual[:2]
            assert gc.get_threshold()[2] > 1000 * usual[2]
        assert gc.get_threshold() != usual
    assert gc.get_threshold() == usual


def test_no_collection_looks_at_what_was_built_and_kept() -> None:
    gc.collect()
    before = gc.get_freeze_count()
    built = [[number] for number in range(1000)]
    keep_what_is_built()
    try:
        assert gc.get_freeze_count() - before > len(built)
        assert len(gc.get_objects()) < len(built)
    finally:
        gc.unfreeze()
