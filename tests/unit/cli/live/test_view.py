"""What keys change of what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.cli.live.view import KEYS, PANES, Pane, View, pressed

RESOURCES = ("a", "b", "c")


def after(*keys: str) -> View:
    view = View()
    for key in keys:
        view = pressed(view, key, RESOURCES)
    return view


@pytest.mark.parametrize(("keys", "selected"), [
    (("down",), "b"), (("j", "j", "j", "j"), "c"), (("down", "k"), "a"), (("up",), "a"), (("end",), "c"),
    (("end", "home"), "a"),
])  # fmt: skip
def test_a_resource_is_selected_and_never_one_that_is_not_there(keys: tuple[str, ...], selected: str) -> None:
    assert after(*keys).selected == selected
    assert pressed(View("gone"), "down", RESOURCES).selected == "b"
    assert pressed(View(), "down", ()) == View()


@pytest.mark.parametrize("key", sorted(PANES))
def test_a_key_opens_its_pane_and_closes_it(key: str) -> None:
    opened = pressed(View(pane=Pane.NONE, scroll=7), key, RESOURCES)
    assert (opened.pane, opened.scroll) == (PANES[key], 0)
    assert pressed(opened, key, RESOURCES).pane is Pane.NONE


def test_letters_are_of_the_filter_until_it_is_ended() -> None:
    typed = after("/", "q", "w", "backspace", " ")
    assert (typed.filter, typed.is_typing, typed.is_over, typed.is_paused) == ("q ", True, False, False)
    assert after("/", "q", "enter", "q").is_over
    assert after("/", "q", "escape").filter == ""
    assert after("/", "q", "enter", "escape").filter == ""
    assert after("escape").pane is Pane.NONE


def test_the_other_keys() -> None:
    assert after("n").is_by_node
    assert not after("r").has_stopped
    assert after(" ").is_paused
    assert not after(" ", " ").is_paused
    assert after("pagedown", "pagedown", "pageup").scroll == 5
    assert after("pageup").scroll == 0
    assert after("q").is_over
    assert after("x", "ä", "f12") == View()


def test_help_names_every_key() -> None:
    named = " ".join(keys for keys, _ in KEYS).replace(",", " ").split()
    known = {"Space": " ", "Esc": "escape", "Enter": "enter", "^C": "q"}
    assert {known.get(each, each.lower()) for each in named} >= {*PANES, "q", "n", "r", "/", " "} - {"?"}


@given(st.lists(st.one_of(st.text(max_size=2), st.sampled_from(["up", "down", "enter", "escape", "/", "pagedown"]))))
def test_any_keys_leave_a_view(keys: list[str]) -> None:
    assert isinstance(after(*keys), View)
