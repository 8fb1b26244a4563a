"""Did you mean ...?: the nearest of the known words."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like `word`, if any is like it at all."""
    choices = sorted(known)
    found = get_close_matches(word, choices, n=1, cutoff=0.6)
    if found:
        return found[0]
    by_lower = {choice.lower(): choice for choice in choices}
    return by_lower.get(word.lower())


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
