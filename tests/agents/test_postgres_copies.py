"""Who may be promoted, by what is recorded: calculation alone, no server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.agents.postgres_copies import (
    Copy,
    NotEntitledError,
    Record,
    Records,
    check_entitled,
    is_entitled,
    lsn_text,
    read_forks,
    read_history,
    read_lsn,
    read_record,
)

NODES = ("n1", "n2", "n3")


def record(node: str, timeline: int, lsn: int, *standbys: str, **forks: int) -> Record:
    return Record(node, timeline, lsn, standbys, {int(name[1:]): at for name, at in forks.items()})


def records(*primaries: Record, **promotions: str) -> Records:
    return Records({each.node: each.text for each in primaries}, promotions)


@given(st.integers(0, 2**64 - 1))
def test_positions_are_written_as_they_are_read(lsn: int) -> None:
    assert read_lsn(lsn_text(lsn)) == lsn


@pytest.mark.parametrize("text", ["", "5", "0-5", "x/1", "1/"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no position|invalid literal"):
        read_lsn(text)


def test_a_record_is_written_as_it_is_read() -> None:
    text = record("n1", 4, 0x5000A0, "n2", "n3", t1=0x100, t3=0x300).text
    assert text == "timeline=4 position=0/5000A0 standbys=n2,n3 after=1@0/100,3@0/300"
    assert read_record("n1", text).text == text
    assert read_record("n1", record("n1", 1, 0).text).standbys == ()
    assert read_forks("-") == {}


@pytest.mark.parametrize("text", ["x", "timeline=1", "timeline=a position=0/1 standbys=- after=-"])
def test_a_damaged_record_entitles_nobody(text: str) -> None:
    with pytest.raises(ValueError, match="node n1 has a record that cannot be read"):
        Records({"n1": text}, {})


def test_a_history_file() -> None:
    assert read_history("1\t0/3000158\tno recovery target\n\n# x\n2\t0/5000000\tsay\n") == {1: 0x3000158, 2: 0x5000000}


def test_what_a_copy_holds() -> None:
    copy = Copy(3, 500, {1: 100, 2: 300})
    assert copy.holds(3, 500)
    assert not copy.holds(3, 501)
    assert copy.holds(2, 300)
    assert not copy.holds(2, 301)
    assert not copy.holds(4, 1)
    assert not Copy(3, 250, {2: 300}).holds(2, 300)


@pytest.mark.parametrize(
    ("node", "copy", "may"),
    [
        ("n1", Copy(2, 500, {1: 100}), True),
        ("n2", Copy(2, 500, {1: 100}), True),
        ("n2", Copy(3, 700, {1: 100, 2: 500}), True),
        ("n3", Copy(2, 900, {1: 100}), False),
        ("n1", Copy(2, 499, {1: 100}), False),
        ("n2", Copy(1, 900, {}), False),
        ("n2", Copy(3, 700, {1: 100, 2: 499}), False),
        ("n2", Copy(3, 700, {1: 500}), False),
    ],
)
def test_the_last_primary_and_its_standbys_may_be_promoted_if_they_hold_what_is_recorded(
    node: str, copy: Copy, may: bool
) -> None:
    known = records(record("n1", 2, 500, "n2", t1=100), record("n3", 1, 90, "n2"))
    assert is_entitled(node, copy, known, NODES, {}) is may


def test_a_refusal_names_both_positions_and_who_has_everything() -> None:
    with pytest.raises(NotEntitledError) as refusal:
        check_entitled("n3", Copy(1, 0x400, {}), records(record("n1", 2, 0x500, "n2")), NODES, {})
    for words in ("0/400 of timeline 1", "n1, was at 0/500 of timeline 2", "n1 and n2 need have"):
        assert words in str(refusal.value)


def test_without_a_record_the_first_of_all_is_promoted() -> None:
    known = {"n2": (1, 500), "n3": (1, 400)}
    assert is_entitled("n1", Copy(1, 500, {}), records(), NODES, known)
    assert not is_entitled("n1", Copy(1, 499, {}), records(), NODES, known)
    assert not is_entitled("n2", Copy(1, 500, {}), records(), NODES, {"n1": (1, 500), "n3": (1, 400)})
    assert not is_entitled("n1", Copy(9, 999, {}), records(), NODES, {"n2": (1, 500)})


def test_a_copy_that_went_on_where_the_primary_left_must_not_follow() -> None:
    primary = record("n2", 3, 900, "n1", t1=100, t2=500)
    assert not primary.is_left_by(Copy(2, 500, {1: 100}))
    assert primary.is_left_by(Copy(2, 501, {1: 100}))
    assert not primary.is_left_by(Copy(1, 100, {}))
    assert not primary.is_left_by(Copy(3, 10_000, {1: 100, 2: 500}))
    assert not record("n2", 2, 500).is_left_by(Copy(3, 700, {2: 600}))
    assert record("n2", 2, 500).is_left_by(Copy(3, 700, {1: 600}))
    unknown = record("n2", 4, 900, t1=100, t2=500)
    assert unknown.is_left_by(Copy(3, 1, {}))


def test_numbers_of_timelines_are_used_once() -> None:
    known = records(record("n1", 3, 1), n2="7 closed", n3="5")
    assert known.next_timeline(Copy(2, 1, {})) == 8
    assert known.next_timeline(Copy(9, 1, {})) == 10
    assert (known.taken("n2"), known.taken("n1")) == (7, 0)


def test_who_is_followed_and_who_is_a_rival() -> None:
    known = records(record("n1", 3, 1), n2="7 closed")
    assert (known.to_follow(), known.rival("n1", 3)) == ("n1", "")
    known = records(record("n1", 3, 1), n2="7")
    assert (known.to_follow(), known.rival("n1", 3), known.superior("n1", 3)) == ("n2", "n2", None)
    assert known.is_promoting("n2")
    known = records(record("n1", 3, 1), record("n2", 7, 1), n2="7 closed")
    assert (known.to_follow(), known.rival("n1", 3), str(known.superior("n1", 3))) == ("n2", "n2", "0/1 of timeline 7")
    assert records().to_follow() == ""
