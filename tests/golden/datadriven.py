"""Golden files of commands and answers: `command words`, lines of input, `----`, the answer, an empty line.

REWRITE=1 writes what is answered now into the file; read the difference before it is kept.
"""

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from haclusterd.model.records import dataclass

_BLOCK = re.compile(
    r"(?P<head>(?:^#.*\n|^[ \t]*\n)*)(?P<command>^\S.*\n)(?P<input>(?:^(?!----$).*\n)*)^----\n(?P<answer>(?:^.+\n)*)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Directive:
    """One command of a golden file."""

    command: str
    words: tuple[str, ...]
    input: str


def run_file(path: Path, handle: Callable[[Directive], str]) -> None:
    """Play a file and compare it, whole."""
    text = path.read_text()
    played: list[str] = []
    end = 0
    for match in _BLOCK.finditer(text):
        words = shlex.split(match["command"])
        answer = handle(Directive(words[0], tuple(words[1:]), match["input"])).rstrip("\n")
        played += [text[end : match.start("answer")], answer + "\n" if answer else ""]
        end = match.end("answer")
    played.append(text[end:])
    if os.environ.get("REWRITE"):
        path.write_text("".join(played))
    assert "".join(played) == text
