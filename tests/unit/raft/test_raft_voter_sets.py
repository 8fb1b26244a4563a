"""Whose votes count while changes of the voters are appended, truncated, applied and restored."""

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.ports.store import VoterSet
from haclusterd.raft.voter_sets import VoterSets


def voters(version: int, names: str) -> VoterSet:
    return VoterSet(version, tuple(NodeName(each) for each in names.split()))


THREE = voters(1, "a b c")
FOUR = voters(2, "a b c d")
FIVE = voters(3, "a b c d e")


def test_an_appended_set_counts_at_once_and_the_one_before_it_again_after_a_truncation() -> None:
    sets = VoterSets(THREE)
    sets.append(10, FOUR)
    assert (sets.newest, sets.newest_index) == (FOUR, 10)
    assert not sets.remove_from(11)
    assert sets.newest == FOUR
    assert sets.remove_from(10)
    assert sets.newest == THREE


def test_what_was_applied_is_kept_when_a_later_change_is_truncated() -> None:
    sets = VoterSets(THREE)
    sets.append(10, FOUR)
    sets.append(20, FIVE)
    sets.apply(10)
    assert sets.remove_from(15)
    assert (sets.newest, sets.newest_index) == (FOUR, 10)


def test_a_snapshot_replaces_all_of_them_and_without_voters_the_first_ones_count() -> None:
    sets = VoterSets(THREE)
    sets.append(10, FOUR)
    sets.restore(30, FIVE)
    assert (sets.newest, sets.newest_index) == (FIVE, 30)
    sets.restore(40, None)
    assert (sets.newest, sets.newest_index) == (THREE, 40)


@pytest.mark.parametrize(
    ("proposed", "expected"),
    [
        (FOUR, True),
        (voters(2, "a b"), True),
        (voters(2, "a b c"), True),
        (voters(2, "a b d"), False),
        (voters(2, "a b c d e"), False),
        (voters(3, "a b c d"), False),
        (voters(1, "a b c d"), False),
    ],
    ids=["one more", "one less", "learners only", "one exchanged", "two more", "a version skipped", "no new version"],
)
def test_a_step_changes_one_voter_and_counts_one_version(proposed: VoterSet, expected: bool) -> None:
    assert VoterSets(THREE).is_one_step(proposed) is expected
