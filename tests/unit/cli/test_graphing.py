"""`configure graph FILE svg`: Graphviz draws what crm writes, and what keeps it from that is named."""

import io
from pathlib import Path

import pytest

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.model.requests import Response
from tests.administered_clusters import ClusterClient, running


def drawn(
    monkeypatch: pytest.MonkeyPatch, directory: Path, program: str, words: tuple[str, ...] = ("dot", "all.svg", "svg")
) -> tuple[int, str]:
    """Draw with a program in the place of Graphviz's; none when its text is empty."""
    if program:
        (directory / "dot").write_text(f"#!/bin/sh\n{program}\n")
        (directory / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/bin:/usr/bin" if program else str(directory))
    monkeypatch.chdir(directory)
    out = io.StringIO()
    client = ClusterClient(running())
    world = World(
        streams=Streams(io.StringIO(), out, out), environment={}, connect=lambda _: client, open_file=lambda _: client,
        setup=lambda _: Response("", 0), version=lambda: "0",
    )  # fmt: skip
    return run(["configure", "graph", *words], world), out.getvalue()


def test_the_picture_is_what_graphviz_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, tmp_path, 'echo "drawn with $*"; cat') == (0, "INFO: wrote all.svg\n")
    assert (tmp_path / "all.svg").read_text().startswith("drawn with -Tsvg\ndigraph configuration {")


@pytest.mark.parametrize(
    ("program", "printed"), [("", "there is no program dot"), ("echo cannot >&2; exit 3", "dot failed: cannot")]
)
def test_what_keeps_it_from_drawing_is_named(
    program: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, output = drawn(monkeypatch, tmp_path, program)
    assert (status, printed in output) == (74, True), output
    assert not (tmp_path / "all.svg").exists()


@pytest.mark.parametrize(
    ("words", "name", "beginning"),
    [
        (("dot", "all.svg"), "all.svg", "drawn with -Tsvg"), (("all.PNG",), "all.PNG", "drawn with -Tpng"),
        (("dot", "all.svg", "dot"), "all.svg", "digraph"), (("dot", "all.txt"), "all.txt", "digraph"),
        (("./svg",), "svg", "digraph"),
    ],
)  # fmt: skip
def test_the_ending_of_the_name_says_how_to_draw_when_nothing_else_does(
    words: tuple[str, ...], name: str, beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn(monkeypatch, tmp_path, 'echo "drawn with $*"', words)[0] == 0
    assert (tmp_path / name).read_text().startswith(beginning)


def test_a_form_without_a_file_is_not_taken_for_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, output = drawn(monkeypatch, tmp_path, "cat", ("svg",))
    assert (status, output) == (64, "ERROR: svg says how to draw, not where (name the file: crm configure graph dot "
                                    "graph.svg; or for a file of that name: ./svg)\n")  # fmt: skip
    assert not (tmp_path / "svg").exists()


def test_a_file_that_is_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all.svg").write_text("mine")
    status, output = drawn(monkeypatch, tmp_path, "cat")
    assert (status, output) == (74, "ERROR: all.svg: File exists (choose another name, or remove it first)\n")
    assert (tmp_path / "all.svg").read_text() == "mine"
