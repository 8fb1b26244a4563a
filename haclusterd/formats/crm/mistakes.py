"""Frequent mistakes in a statement that was refused: a colon or an equals sign that is missing, that stands apart from
its word, or that is in another place.

What the readers say of such a statement is true of the word at which they stopped, and seldom names the mistake: after
`order o Mandatory db web` there is no resource `Mandatory`. Nothing here is asked about a statement that can be read.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from haclusterd.formats.constraint_words import KINDS
from haclusterd.formats.crm.tokens import Token
from haclusterd.model.records import dataclass

LONGEST_EXAMPLE = 100
"""Characters of a corrected statement in a message."""
WORDS_MAX = 200
"""So many words of a statement are looked at."""

_SCORE = re.compile(r"[+-]?(\d+|inf|infinity)|mandatory|advisory", re.IGNORECASE)
_NAME = re.compile(r"[$#]?[A-Za-z_][\w.-]*")
_SECTIONS = frozenset({"params", "meta", "utilization", "operations", "op", "op_params", "op_meta", "attributes"})
_OF_AGENTS = ("primitive", "resource", "rsc_template")
"""Statements whose second word after the keyword is an agent."""
_OPERATORS = {"=": "eq", "==": "eq", "!=": "ne"}


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was probably meant."""

    at: Token
    """Where it begins."""
    found: str
    expected: str
    remedy: str


def mistake(tokens: Sequence[Token]) -> Mistake | None:
    """Return the first frequent mistake in the words of a statement; None: it is another one."""
    tokens = tokens[:WORDS_MAX]
    construct = tokens[0].text.lower()
    own = _OF_STATEMENTS.get({"collocation": "colocation", "master": "ms"}.get(construct, construct))
    for find in (_apart_from_equals, _apart_from_colon, _without_equals, *([own] if own is not None else [])):
        found = find(tokens)
        if found is not None:
            return found
    return None


def is_kind_or_score(word: str) -> bool:
    """Tell whether a word without a colon is one that needs it before the resources of an ordering."""
    return word.lower() in KINDS or _SCORE.fullmatch(word) is not None


def _apart_from_equals(tokens: Sequence[Token]) -> Mistake | None:
    """Find `name = value`, `name =value` and `name= value`; in a rule, an operator of other languages."""
    has_rule = any(each.text.lower() == "rule" for each in tokens)
    for before, token, *after in _following(tokens):
        text, value = token.text, after[0].text if after else ""
        if has_rule and not before.text.startswith("$") and text in _OPERATORS and not token.is_quoted:
            return Mistake(token, text, _OPERATORS[text], f"write: {before.text} {_OPERATORS[text]} {value}")
        is_agent = before is tokens[2] and tokens[0].text.lower() in _OF_AGENTS
        if token.is_quoted or is_agent or not _NAME.fullmatch(before.text):
            continue
        if text == "=" and before is tokens[1] and tokens[0].text.lower() in _OF_STATEMENTS:
            return Mistake(token, text, "no equals sign", f"write {tokens[0].text} {before.text} without it")
        if text == "=" and after:
            return _joined(before, f"{before.text} = {value}", f"{before.text}={value}")
        if text.startswith("=") and len(text) > 1:
            return _joined(before, f"{before.text} {text}", f"{before.text}{text}")
    for before, token in pairwise(tokens[1:]):
        is_open = before.text.endswith("=") and _NAME.fullmatch(before.text[:-1]) is not None and not before.is_quoted
        if is_open and "=" not in token.text and token.text.lower() not in _SECTIONS:
            return _joined(before, f"{before.text} {token.text}", f"{before.text}{token.text}")
    return None


def _following(tokens: Sequence[Token]) -> Sequence[Sequence[Token]]:
    """Return each word with the one before it and, where there is one, the one after it."""
    return [tokens[n - 1 : n + 2] for n in range(2, len(tokens))]


def _joined(at: Token, found: str, meant: str) -> Mistake:
    return Mistake(at, found, meant, f"write it without a space: {meant}")


def _apart_from_colon(tokens: Sequence[Token]) -> Mistake | None:
    """Find `Mandatory : db` and `Mandatory :db`."""
    for before, token, *_ in _following(tokens):
        if token.is_quoted or not token.text.startswith(":"):
            continue
        is_label = token.text == ":" or is_kind_or_score(before.text)
        meant = f"{before.text}: {token.text[1:]}".strip() if is_label else f"{before.text}{token.text}"
        return _joined(before, f"{before.text} {token.text}", meant)
    return None


def _without_equals(tokens: Sequence[Token]) -> Mistake | None:
    """Find `meta clone-max 2` and `params state /run/x`: a name, and then what can be no name."""
    is_inside = is_operation = False
    for before, token in pairwise(tokens[1:]):
        is_inside |= before.text.lower() in _SECTIONS
        is_value = _NAME.fullmatch(token.text) is None and not set(token.text) & set("=:$@#(){}")
        is_name = _NAME.fullmatch(before.text) is not None and before.text.lower() not in _SECTIONS
        is_name &= not before.is_quoted and not is_operation
        is_operation = before.text.lower() == "op"
        if is_inside and is_name and is_value:
            meant = f"{before.text}={token.text}"
            return Mistake(before, f"{before.text} {token.text}", meant, f"write: {meant}")
    return None


def _of_order(tokens: Sequence[Token]) -> Mistake | None:
    return _of_label(tokens, "the kind", is_kind_or_score, ("kind", "score"))


def _of_colocation(tokens: Sequence[Token]) -> Mistake | None:
    found = _of_label(tokens, "the score", _is_score, ("score",))
    if found is None and len(tokens) > 3 and not tokens[2].text.endswith(":"):
        return Mistake(tokens[2], tokens[2].text, "a score and a colon", _example(tokens, "inf:", 2, ()))
    return found


def _is_score(word: str) -> bool:
    return _SCORE.fullmatch(word) is not None


def _of_label(
    tokens: Sequence[Token], what: str, is_label: Callable[[str], bool], names: Sequence[str]
) -> Mistake | None:
    """Find a word that comes first, with a colon, and is without one, behind the resources, or an attribute."""
    for n, token in enumerate(tokens[2:], start=2):
        name, equals, value = token.text.partition("=")
        is_attribute = bool(equals) and name.lower() in names
        word = value if is_attribute else token.text.removesuffix(":")
        if not is_attribute and (token.is_quoted or not is_label(word)):
            continue
        if n == 2 and token.text.endswith(":"):
            return None
        is_first = n == 2 and not is_attribute
        expected = f"{word}:" if is_first else f"{what} before the resources, with a colon"
        return Mistake(token, token.text, expected, _example(tokens, f"{word}:", 2, (n,)))
    return None


def _of_location(tokens: Sequence[Token]) -> Mistake | None:
    """Find a score without its colon, before the resource, behind the node, or none."""
    for token, after in pairwise(tokens[3:]):
        if token.text.lower() == "rule" and _is_score(after.text):
            return Mistake(after, after.text, f"{after.text}:", f"write: rule {after.text}:")
    tokens = [token for token in tokens if "=" not in token.text]
    words = [token.text for token in tokens]
    scores = [n for n in range(2, len(tokens)) if _is_score(words[n].removesuffix(":"))]
    if any(word.lower() == "rule" or word.startswith("{") for word in words) or len(tokens) < 4:
        return None
    if not scores and words[3].endswith(":"):
        return None
    if not scores:
        score, colon, node = words[3].partition(":")
        if colon and node and _SCORE.fullmatch(score):
            return Mistake(tokens[3], words[3], f"{score}: {node}", f"write: {' '.join(words[:3])} {score}: {node}")
        example = _example(tokens, "100:", 3, ())
        return Mistake(tokens[3], words[3], "a score and a colon before the node", example)
    at = scores[0]
    word = words[at].removesuffix(":")
    expected = f"{word}:" if at == 3 else "the score between the resource and the node, with a colon"
    is_right = at == 3 and words[at].endswith(":")
    return None if is_right else Mistake(tokens[at], words[at], expected, _example(tokens, f"{word}:", 3, (at,)))


def _of_ticket(tokens: Sequence[Token]) -> Mistake | None:
    if len(tokens) < 4 or tokens[2].text.endswith(":"):
        return None
    at = next((n for n in range(3, len(tokens)) if tokens[n].text.endswith(":")), 2)
    word = tokens[at].text.removesuffix(":")
    expected = f"{word}:" if at == 2 else "the ticket before the resources, with a colon"
    return Mistake(tokens[at], tokens[at].text, expected, _example(tokens, f"{word}:", 2, (at,)))


def _of_members(tokens: Sequence[Token]) -> Mistake | None:
    """Find a colon behind an id in a statement that has none."""
    for token in tokens[1:]:
        if token.text.lower() in _SECTIONS or "=" in token.text:
            return None
        word = token.text.removesuffix(":")
        if word != token.text and _NAME.fullmatch(word):
            return Mistake(token, token.text, word, f"write it without the colon: {word}")
    return None


def _example(tokens: Sequence[Token], label: str, place: int, moved: Sequence[int]) -> str:
    """Return the statement with a label at its place, and without the words that it stands for."""
    words = [token.text.removesuffix(":") if place == 3 <= n else token.text for n, token in enumerate(tokens)]
    kept = [word for n, word in enumerate(words) if n not in moved]
    text = " ".join([*kept[:place], label, *kept[place:]])
    return f"write: {text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + ' ...'}"


_OF_STATEMENTS: Mapping[str, Callable[[Sequence[Token]], Mistake | None]] = {
    "order": _of_order, "colocation": _of_colocation, "location": _of_location, "rsc_ticket": _of_ticket,
    "group": _of_members, "clone": _of_members, "ms": _of_members,
}  # fmt: skip
