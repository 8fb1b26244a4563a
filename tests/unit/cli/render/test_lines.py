"""Painted lines are measured, cut and folded by what a terminal shows of them, and nothing else passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cli.render.lines import cut, folded, plain, spans, width_of

RED = "\x1b[31mred\x1b[0m"


def test_a_line_is_parts_with_their_colours() -> None:
    assert list(spans(f"a {RED} b")) == [("a ", "0"), ("red", "31"), (" b", "0")]
    assert plain(f"a {RED} b") == "a red b"


@pytest.mark.parametrize(("line", "width"), [("abc", 3), (RED, 3), ("日本", 4), ("e\u0301", 1), ("", 0)])
def test_the_width_is_that_of_what_is_seen(line: str, width: int) -> None:
    assert width_of(line) == width


def test_what_is_cut_keeps_its_colour_and_ends_it() -> None:
    assert cut(f"a {RED} b", 4) == "a \x1b[31mre\x1b[0m"
    assert cut("日本", 3) == "日"
    assert cut(RED, 3) == RED


def test_what_is_folded_is_indented_like_its_line() -> None:
    assert folded("  one two three", 9) == ["  one two", "   three"]
    assert folded(f"one {RED} two", 7) == ["one \x1b[31mred\x1b[0m", "  two"]
    assert folded("incomprehensibilities", 8) == ["incompre", "  hensib", "  ilitie", "  s"]
    assert folded("", 8) == [""]


def test_no_control_character_passes_but_colours() -> None:
    assert cut("a\x1b[2Jb\rc\x07", 80) == "a?[2Jb?c?"
    assert folded("a\x1b]0;title\x07b", 80) == ["a?]0;title?b"]


@given(st.text(alphabet=st.sampled_from("ab \x1b[31m\x1b日e\u0301\t"), max_size=60), st.integers(1, 12))
def test_every_line_fits_and_folding_loses_no_word(line: str, width: int) -> None:
    parts = folded(line, width)
    # A character of two columns does not fit into one.
    assert all(width_of(each) <= max(width, 2) for each in parts)
    assert width_of(cut(line, width)) <= width
    assert "".join("".join(map(plain, parts)).split()) == "".join(plain(line).split())
