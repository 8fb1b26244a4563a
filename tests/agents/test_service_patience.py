"""How long a start waits for its service, on a clock that only waiting moves."""

import os

import pytest

from haclusterd.agents import ocf, service
from haclusterd.agents.process_table import boot_id, read_stat


class Clock:
    """Stands for the module `time` in the rooms that ask it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class NeverReady(service.ServiceAgent):
    """Each question whether it is ready takes so long, and at most what it is given."""

    parameters = service.COMMON_PARAMETERS

    def __init__(self, clock: Clock, answer_s: float) -> None:
        super().__init__()
        self.clock = clock
        self.answer_s = answer_s

    def check_ready(self, timeout_s: float) -> None:
        self.clock.sleep(min(timeout_s, self.answer_s))
        raise ocf.ActionError("asked in vain")


@pytest.mark.parametrize("answer_s", [0.0, 0.3, 60.0])
@pytest.mark.parametrize(
    ("timeout_ms", "ready_timeout", "left_s"), [(2500, "", 1.0), (2500, "60s", 1.0), (20_000, "1s", 19.0)]
)
def test_a_start_gives_up_while_there_is_time_to_end_the_service(
    monkeypatch: pytest.MonkeyPatch, answer_s: float, timeout_ms: int, ready_timeout: str, left_s: float
) -> None:
    clock = Clock()
    for room in (ocf, service):
        monkeypatch.setattr(room, "time", clock)
    monkeypatch.setenv("OCF_RESKEY_CRM_meta_timeout", str(timeout_ms))
    monkeypatch.setenv("OCF_RESKEY_ready_timeout", ready_timeout)
    agent = NeverReady(clock, answer_s)
    living = read_stat(os.getpid())
    with pytest.raises(ocf.ActionError, match="not ready in time: asked in vain"):
        agent._wait_ready(service.Identity(living.pid, living.start_time, "mark", boot_id()))
    assert agent.remaining() == pytest.approx(left_s, abs=0.15)
