"""Did you mean ...?"""

import pytest

from haclusterd.reports.suggestions import did_you_mean, nearest

KNOWN = ("clone-max", "clone-node-max", "failure-timeout", "is-managed", "ready_url", "resource-stickiness", "Started")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("clone_max", "clone-max"),
        ("max-clone", "clone-max"),
        ("stickiness", "resource-stickiness"),
        ("managed", "is-managed"),
        ("url", "ready_url"),
        ("STARTED", "Started"),
        ("clone-max-max-max", "clone-max"),
        ("stick", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_nearest_word_is_like_it_or_has_all_of_its_parts(word: str, meant: str | None) -> None:
    assert nearest(word, KNOWN) == meant


def test_a_short_list_is_shown_whole() -> None:
    assert did_you_mean("zzz", KNOWN).startswith("one of: Started, clone-max, ")
    assert did_you_mean("zzz", ()) == "remove it"
