"""Which texts may be attribute names and values, the same in every format.

A name must be writable in crm syntax (no `=`, no space, no leading `$` or `@`); a value must survive a line of text and
an environment variable: no control characters but the tab, no unpaired surrogates.
"""

import re

ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_#][A-Za-z0-9_.#:/@+-]*\Z")

WRITTEN_PLAINLY = re.compile(r"[A-Za-z0-9_#%][A-Za-z0-9_.#:/@+%-]*\Z")
"""A node attribute that a rule asks for, as it may be written without quotes; `%0` to `%9`: submatches of a pattern."""

HIDDEN = "******"
"""What is shown in the place of a secret, by crmsh too."""

SECRET_CHARACTERS_MIN = 3
"""What is shorter cannot be taken out of an agent's words."""
SECRET_CHARACTERS_MAX = 1024
"""Of the value of a secret."""

_BAD = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


_ESCAPED = ('"', "\\", "\t")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f]")
_SHORTLY_ESCAPED = "\b\n\f\r"


def bytes_in_log(text: str) -> int:
    """Return how many bytes a text takes in an entry of the log, which is JSON: a control character takes six."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    size += sum(map(text.count, _ESCAPED))
    if text.isprintable():
        return size
    return size + 5 * len(_CONTROLS.findall(text)) - 4 * sum(map(text.count, _SHORTLY_ESCAPED))


def unfit_for_name(name: str) -> str | None:
    """Return the first character that no environment variable can have in its name; None when there is none."""
    return "U+003D" if "=" in name else bad_character(name)


def bad_character(value: str) -> str | None:
    """Return the first character that a value cannot have, written out; None when there is none."""
    found = _BAD.search(value)
    return f"U+{ord(found.group()):04X}" if found else None
