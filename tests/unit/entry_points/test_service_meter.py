"""The demonstration's client ends quietly, in whatever it is."""

import time

from haclusterd.entry_points.service_meter import ServiceMeter


def test_the_meter_goes_on_between_the_wish_to_end_and_the_end() -> None:
    meter = ServiceMeter({})
    meter.start()
    deadline = time.monotonic() + 20
    while not meter.rounds:
        assert time.monotonic() < deadline
    loop, ending, thread = meter._loop, meter._ending, meter._thread
    assert loop is not None
    assert ending is not None
    assert thread is not None
    meter._loop = None  # As `stop` leaves it, until the loop hears of it.
    before = meter.rounds
    while meter.rounds < before + 3:
        assert time.monotonic() < deadline
        assert thread.is_alive()
    loop.call_soon_threadsafe(ending.set)
    thread.join(20)
    assert not thread.is_alive()
