"""Regular expressions of POSIX, in time that grows with the name only."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a", "bab", ("a",)),
        ("^a", "ba", None),
        ("(.*)-(.*)", "vm-web-1", ("vm-web-1", "vm-web", "1")),
        ("^(vm|db)-[0-9]+$", "db-12", ("db-12", "db")),
        ("(ab)?c", "c", ("c", "")),
        ("a|ab", "abc", ("ab",)),
        ("a{2,3}", "aaaa", ("aaa",)),
        ("a{2}", "a", None),
        ("a{2,}", "baaaa", ("aaaa",)),
        ("[^a-c]+", "abcxyz", ("xyz",)),
        ("[]x-]+", "a]-x", ("]-x",)),
        ("[[:digit:][:upper:]]+", "ab12Cd", ("12C",)),
        (r"\.", "a.b", (".",)),
        (r"\w+", "-a_1-", ("a_1",)),
        ("(^a|b)c", "bc", ("bc", "b")),
        ("(a*)*", "b", ("", "")),
        ("", "x", ("",)),
        ("^$", "", ("",)),
    ],
)
def test_what_matches(pattern: str, name: str, expected: tuple[str, ...] | None) -> None:
    assert compile_pattern(pattern).search(name) == expected


def test_case_can_be_ignored() -> None:
    assert compile_pattern("^GPU[a-f]+[0-9]$", is_case_ignored=True).search("gpuAB1") == ("gpuAB1",)
    assert compile_pattern("^GPU").search("gpu1") is None


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "(a?){50}a{50}b", "(((a*)*)*)*b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert compile_pattern(pattern).search("a" * 400 + "!") is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "a ( is not closed"),
        (")", "unmatched ) at character 1"),
        ("[", "a [ is not closed"),
        ("[[:gods:]]", "there is no such class of characters"),
        ("[z-a]", "the range z-a ends before it begins"),
        ("*a", "nothing to repeat at character 1"),
        ("a{3,1}", "repetitions are from 0 to 255, the fewer first"),
        ("a{x}", "what is in { } is no number of repetitions"),
        ("a{1", "what is in { } is no number of repetitions"),
        ("a\\", "it ends with a backslash"),
        ("a" * 1001, "a pattern has at most 1000 characters"),
        ("((a{255}){255}){255}", "the pattern is too large"),
        ("(" * 31 + ")" * 31, "groups are nested more than 30 deep"),
    ],
)
def test_what_is_no_pattern(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        compile_pattern(pattern)


PIECES = ["a", "b", "c", ".", "(a|b)", "(ab)", "[ab]", "|", "^", "$"]
REPEATED = ["a*", "b+", "(ab)?", "[bc]{1,2}", ".*", "(a|bc)+"]


@given(parts=st.lists(st.sampled_from(PIECES + REPEATED), max_size=6).map("".join), name=st.text("abc", max_size=8))
def test_the_same_matches_as_by_backtracking_and_never_a_shorter_one(parts: str, name: str) -> None:
    found, other = compile_pattern(parts).search(name), re.search(parts, name)
    assert (found is None) == (other is None)
    if found is not None and other is not None:
        assert len(found[0]) >= len(other[0])
        assert name.index(found[0]) <= other.start()


@given(text=st.text("ab()[]{}|*+?^$\\-:,0129.", max_size=12), name=st.text("ab01", max_size=6))
def test_any_text_is_a_pattern_or_a_reported_error(text: str, name: str) -> None:
    with contextlib.suppress(ValueError):
        compile_pattern(text).search(name)
