"""What a seed dwells on follows from its number, and a campaign of days comes to everything several times."""

from collections import Counter

from haclusterd.simulator import swarm
from haclusterd.simulator.faults.moments import PAIRS
from haclusterd.simulator.subjects import Subject

SEEDS_OF_48_HOURS = 1700


def test_a_campaign_of_two_days_prefers_every_pair_and_every_subject_several_times() -> None:
    for first in (1, 3000, 70_001):
        dwelt_on = [swarm.emphasis(seed) for seed in range(first, first + SEEDS_OF_48_HOURS)]
        pairs = Counter(pair for each in dwelt_on for pair in each.pairs)
        assert min(pairs[pair] for pair in PAIRS) >= 6
        subjects = Counter(each.subject for each in dwelt_on)
        assert min(subjects[subject] for subject in Subject) >= 50


def test_a_campaign_of_an_hour_prefers_most_pairs() -> None:
    dwelt_on = [swarm.emphasis(seed) for seed in range(1, 1 + SEEDS_OF_48_HOURS // 48)]
    pairs = {pair for each in dwelt_on for pair in each.pairs}
    assert len(pairs) >= len(PAIRS) // 2


def test_a_seed_dwells_on_nothing_that_cannot_be() -> None:
    for seed in range(2000):
        mode, dwells_on = swarm.mode_of(seed), swarm.emphasis(seed)
        if mode in swarm.ALONE:
            assert not dwells_on.pairs
        elif mode is swarm.Mode.LIAR:
            assert dwells_on.pairs
            assert {interruption for interruption, _ in dwells_on.pairs} <= {"kill the brain", "reload"}
