"""Did you mean ...?: the nearest of the known words."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like `word`, or has all parts of it, if there is any."""
    choices = sorted(known)
    found = get_close_matches(word, choices, n=1, cutoff=0.6)
    return found[0] if found else with_all_parts(word, choices)


def with_all_parts(word: str, known: Iterable[str]) -> str | None:
    """Return the shortest known word that has all parts of `word`, in whatever order; `resource-stickiness` has that
    of `stickiness`."""
    parts = _parts(word)
    found = [choice for choice in known if parts <= _parts(choice)]
    return min(found, key=lambda choice: (len(_parts(choice)), choice), default=None)


def _parts(word: str) -> frozenset[str]:
    return frozenset(word.lower().replace("_", "-").split("-"))


SHOW_ALL = "see: crm configure show"


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "remove it") -> str:
    """Write the remedy for an unknown word: the nearest known one, the whole list when it is short, or `otherwise`."""
    choices = sorted(known)
    guess = nearest(word, choices)
    if guess is not None:
        return f"did you mean {guess}?"
    if 0 < len(choices) <= 12:
        return f"one of: {', '.join(choices)}"
    return otherwise
