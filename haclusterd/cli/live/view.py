"""What the person at the terminal wants to see, and what each key changes of it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from haclusterd.model.records import dataclass, replace


class Pane(StrEnum):
    """What is shown below the resources."""

    NONE = ""
    TIMELINE = "the last failover"
    WHY = "why"
    HISTORY = "what happened"
    FAILURES = "failures and fencing"
    ATTRIBUTES = "attributes of nodes"
    GPUS = "GPUs"
    HELP = "keys"


@dataclass(frozen=True, slots=True)
class View:
    """What is wanted now."""

    selected: str = ""
    """A resource; empty: the first."""
    pane: Pane = Pane.TIMELINE
    scroll: int = 0
    """Lines of the pane above the first that is shown."""
    is_by_node: bool = False
    has_stopped: bool = True
    """Whether resources are shown that are not to run."""
    filter: str = ""
    """Only resources are shown in whose name, or the name of a node they run on, this stands."""
    is_typing: bool = False
    """Whether keys are letters of the filter."""
    is_paused: bool = False
    is_over: bool = False


KEYS = (
    ("Up, Down, k, j", "select a resource"),
    ("w, Enter", "why it runs where it runs, or does not"),
    ("t", "the last failover, step by step"),
    ("h", "what happened, newest last"),
    ("f", "failures and fencing"),
    ("a", "attributes of nodes"),
    ("g", "GPUs, where an agent watches them"),
    ("PageUp, PageDown", "go through a pane"),
    ("n", "by node, or by resource"),
    ("r", "with or without what is stopped on request"),
    ("/", "only resources with this in their name or on such a node"),
    ("Esc", "end the filter; close the pane"),
    ("Space", "pause, or continue"),
    ("q, ^C", "end"),
)
PANES: Mapping[str, Pane] = {
    "w": Pane.WHY, "enter": Pane.WHY, "t": Pane.TIMELINE, "h": Pane.HISTORY, "f": Pane.FAILURES,
    "a": Pane.ATTRIBUTES, "g": Pane.GPUS, "?": Pane.HELP,
}  # fmt: skip
PAGE_LINES = 5
_CHANGES: Mapping[str, Callable[[View], View]] = {
    "q": lambda view: replace(view, is_over=True),
    "n": lambda view: replace(view, is_by_node=not view.is_by_node),
    "r": lambda view: replace(view, has_stopped=not view.has_stopped),
    " ": lambda view: replace(view, is_paused=not view.is_paused),
    "/": lambda view: replace(view, is_typing=True, filter=""),
    "pageup": lambda view: replace(view, scroll=max(0, view.scroll - PAGE_LINES)),
    "pagedown": lambda view: replace(view, scroll=view.scroll + PAGE_LINES),
    "escape": lambda view: (
        replace(view, filter="") if view.filter else replace(view, pane=Pane.NONE, scroll=0)
    ),
}  # fmt: skip
_STEPS: Mapping[str, int] = {"up": -1, "k": -1, "down": 1, "j": 1}


def pressed(view: View, key: str, resources: Sequence[str]) -> View:
    """Return the view after a key; `resources` are those that can be selected, in their order."""
    if view.is_typing:
        return _typed(view, key)
    if key in PANES:
        pane = Pane.NONE if view.pane is PANES[key] else PANES[key]
        return replace(view, pane=pane, scroll=0)
    if key in _STEPS or key in ("home", "end"):
        return _selecting(view, key, resources)
    change = _CHANGES.get(key)
    return change(view) if change is not None else view


def _typed(view: View, key: str) -> View:
    if key == "enter":
        return replace(view, is_typing=False)
    if key == "escape":
        return replace(view, is_typing=False, filter="")
    if key == "backspace":
        return replace(view, filter=view.filter[:-1])
    return replace(view, filter=view.filter + key) if len(key) == 1 and key.isprintable() else view


def _selecting(view: View, key: str, resources: Sequence[str]) -> View:
    if not resources:
        return view
    place = resources.index(view.selected) if view.selected in resources else 0
    place = {"home": 0, "end": len(resources) - 1}.get(key, place + _STEPS.get(key, 0))
    selected = resources[max(0, min(place, len(resources) - 1))]
    scroll = view.scroll if view.pane is not Pane.WHY else 0
    return replace(view, selected=selected, scroll=scroll)
