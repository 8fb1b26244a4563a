"""Text that a person names: a file, or `-` for the standard input; what is no UTF-8 is refused with its place."""

import io
import re
from typing import TextIO

from haclusterd.model.requests import Response, refused
from haclusterd.reports.exit_codes import ExitStatus

STANDARD_INPUT = "-"
"""What is written to `-` goes to the standard output."""
FILE_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}\Z", re.ASCII)
"""What a shadow CIB, a session of the past or a template may be called: each is a file of that name."""


def read_text(name: str, stdin: TextIO) -> str | Response:
    """Return the text, or the answer that says why there is none."""
    try:
        if name != STANDARD_INPUT:
            with open(name, "rb") as file:
                data = file.read()
        elif isinstance(stdin, io.TextIOWrapper):
            data = stdin.buffer.read()
        else:
            return stdin.read()
    except OSError as error:
        remedy = "name a file that can be read, or - for the standard input"
        return _refused(f"cannot read {name}: {error.strerror or error}", remedy)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        place = f"{shown_name(name)}:{before.count(bytes([10])) + 1}:{column}"
        problem = f"the byte 0x{data[error.start]:02x} is no UTF-8 text"
        return _refused(problem, "save the text as UTF-8, as with: iconv -f LATIN1 -t UTF-8", place)
    return text.replace("\r\n", "\n")


def shown_name(name: str) -> str:
    """Return what messages call the text."""
    return "standard input" if name == STANDARD_INPUT else name


def _refused(problem: str, remedy: str, place: str = "") -> Response:
    return refused("NO_INPUT", problem, remedy, ExitStatus.NO_INPUT, place=place)
