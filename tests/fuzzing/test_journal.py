"""A sample of `make fuzz-journal`: real files are damaged, and their writer is killed, and nothing changes silently."""

from pathlib import Path

from tests.fuzzing.journal import damaged_at_rest, killed_inside


def test_damaged_files_are_refused_or_lose_no_more_than_the_last_write(tmp_path: Path) -> None:
    counts = damaged_at_rest(tmp_path, 37)
    assert counts.examples == []
    assert counts.truncations > 20
    assert counts.flips > 150
    assert counts.refused > counts.torn > 0


def test_a_writer_that_is_killed_at_any_call_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    counts = killed_inside(tmp_path, 5)
    assert counts.examples == []
    assert counts.kills > 20
