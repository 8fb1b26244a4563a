"""Texts in graphs: whatever a resource or an action is called, it is one quoted word of DOT."""

import re
import shutil
import subprocess

import pytest

from haclusterd.wire.dot_text import quoted

HARD = ['a"b', "back\\slash", 'both \\" of them', "two\nlines", "web:0 stop 0 n1", ""]


@pytest.mark.parametrize("text", HARD)
def test_a_text_is_one_word_and_can_be_read_back(text: str) -> None:
    word = quoted(text)
    assert re.fullmatch(r'"(?:[^"\\\n]|\\.)*"', word)
    assert re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], word[1:-1]) == text


def test_graphviz_reads_it() -> None:
    if shutil.which("dot") is None:
        pytest.skip("graphviz is not installed")
    nodes = "\n".join(f"{number} [label={quoted(text)}];" for number, text in enumerate(HARD))
    done = subprocess.run(
        ["dot", "-Tcanon"], input=f"digraph g {{\n{nodes}\n}}\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
