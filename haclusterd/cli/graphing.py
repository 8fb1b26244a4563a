"""`configure graph`: the configuration for Graphviz, written into a file, as text or as the picture it draws."""

import subprocess
from collections.abc import Mapping

from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.replacing import write_new_file
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response, ShownReport, refused

TEXT = "dot"
PICTURES = ("svg", "png")
LONGEST_DRAWING_S = 60


def graph(session: Session, arguments: Mapping[str, Json]) -> int:
    """Ask for the graph, and show it or put it into a new file."""
    asked: dict[str, Json] = {"pending": session.pending_text()} if session.pending else {}
    answer = session.ask("configure.graph", asked)
    target = arguments.get("target")
    if answer.exit or target is None:
        return session.show(answer)
    return session.show(written(str(target), arguments.get("picture"), text(fields(answer.data), "text")))


def written(name: str, wanted: Json, graph_text: str) -> Response:
    """Put a graph into a new file: as text or drawn as is wanted, else as the ending of the file's name says."""
    if name in PICTURES and wanted is None:
        remedy = f"name the file: crm configure graph dot graph.{name}; or for a file of that name: ./{name}"
        return refused("USAGE", f"{name} says how to draw, not where", remedy, 64)
    ending = name.rpartition(".")[2].lower()
    picture = str(wanted) if wanted is not None else ending if ending in PICTURES else TEXT
    data: bytes | Response = graph_text.encode() if picture == TEXT else _drawn(picture, graph_text)
    if isinstance(data, Response):
        return data
    try:
        write_new_file(name, lambda file: file.write(data), 0o666)
    except OSError as error:
        remedy = "choose another name, or remove it first" if isinstance(error, FileExistsError) else ""
        return refused("INPUT_OUTPUT", f"{name}: {error.strerror or 'it cannot be written'}", remedy, 74)
    return Response("", 0, (ShownReport("info", "REQUESTED", f"wrote {name}"),))


def _drawn(picture: str, graph_text: str) -> bytes | Response:
    """Let Graphviz draw; it is a program of its own."""
    try:
        drawn = subprocess.run(
            ["dot", f"-T{picture}"], input=graph_text.encode(), capture_output=True, check=False,
            timeout=LONGEST_DRAWING_S,
        )  # fmt: skip
    except FileNotFoundError:
        remedy = "install graphviz; or write the text, and draw it where Graphviz is: crm configure graph dot FILE"
        return refused("INPUT_OUTPUT", "there is no program dot to draw with", remedy, 74)
    except subprocess.TimeoutExpired:
        remedy = "draw it apart from crm: crm configure graph dot FILE"
        return refused("INPUT_OUTPUT", f"dot does not end within {LONGEST_DRAWING_S} s", remedy, 124)
    if drawn.returncode:
        return refused("INPUT_OUTPUT", f"dot failed: {drawn.stderr.decode(errors='replace').strip()[:200]}", "", 74)
    return drawn.stdout
