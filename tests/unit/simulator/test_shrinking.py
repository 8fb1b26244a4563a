"""Shrinking leaves what is needed and nothing else; a campaign stops at a violation and shows its shortest run."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.simulator.campaign import Campaign, Limit
from haclusterd.simulator.shrinking import minimised
from haclusterd.simulator.swarm import Outcome


@given(st.sets(st.integers(0, 40), max_size=5), st.integers(1, 41))
def test_what_is_needed_together_stays_and_all_else_goes(needed: set[int], length: int) -> None:
    numbers = [*range(length), *(number for number in sorted(needed) if number >= length)]
    assert set(minimised(numbers, lambda some: needed <= set(some))) == needed


def test_without_time_the_plan_stays_whole() -> None:
    assert minimised([1, 2, 3], lambda _: False) == (1, 2, 3)


def run_seed(seed: int, only: Sequence[int] | None) -> Outcome:
    """Seed 5 breaks a rule when its third and eighth fault come together."""
    begun = tuple(range(12)) if only is None else tuple(only)
    is_broken = seed == 5 and {3, 8} <= set(begun)
    return Outcome(
        seed=seed,
        problem="NeverTwoActive: db is on n1 and n2" if is_broken else "",
        rule="NeverTwoActive" if is_broken else "",
        simulated_ms=60_000,
        trace="",
        faults=tuple(f"{number}: at {number}00 ms n1 loses power" for number in begun),
        begun=begun,
        counts=(("lost", 1),),
        recorded=("the newest event",),
    )


def campaign() -> Campaign:
    return Campaign(run_seed, replay="replay --seed {seed}", jobs=2, shrink_seconds=20)


def test_a_campaign_shows_the_shortest_run_of_a_violation(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign().run(1, Limit(seconds=60)) == 1
    output = capsys.readouterr().out
    assert "seed 5: NeverTwoActive: db is on n1 and n2" in output
    assert "2 of its 12 faults are enough:\n  3: at 300 ms n1 loses power\n  8: at 800 ms n1 loses power\n" in output
    assert "replay only these with: replay --seed 5 --faults 3,8" in output
    assert "violations=1" in output.splitlines()[-1]


def test_a_campaign_without_violations_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign().run(10, Limit(count=6)) == 0
    assert "RESULT seeds=6 simulated_hours=0.10 " in capsys.readouterr().out
    assert campaign().run(10, Limit(seconds=0)) == 0


def test_a_campaign_by_hours_ends_when_they_were_simulated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("haclusterd.simulator.campaign.PROGRESS_EVERY_S", 0)
    assert campaign().run(10, Limit(hours=0.1)) == 0
    output = capsys.readouterr().out.splitlines()
    hours = float(output[-1].split("simulated_hours=")[1].split()[0])
    assert 0.1 <= hours <= 0.1 + 2 / 60, "seeds of a minute each, two at a time"
    assert re.fullmatch(
        r"0:00:\d\d elapsed: 0\.\d\d simulated hours, \d seeds, 0 violations; about 0:00:\d\d left", output[0]
    )


def test_lost_is_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    campaign().run(10, Limit(count=3))
    assert capsys.readouterr().out.endswith("violations=0 lost=3\n")
