"""Pictures of `crm monitor`: a cluster, a size and keys make lines; each of them ends in a bar at the last column.

`draw SITUATION COLUMNSxROWS [KEY...] [NAME=VALUE...]`; see datadriven.py. Names are fields of what is known.
"""

from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path

import pytest

from haclusterd.cli.live.picture import Aside, Known, Size, draw, question_of, selectable
from haclusterd.cli.live.view import Pane, View, pressed
from haclusterd.cli.render.lines import width_of
from haclusterd.cli.render.terminal import Screen
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Request
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.history import Events
from haclusterd.verbs.answers.status import Status
from tests.administered_clusters import SITUATIONS, Cluster, ClusterClient, with_events
from tests.golden.busy_cluster import busy
from tests.golden.datadriven import Directive, run_file

FILES = sorted(Path(__file__).parent.joinpath("monitor").glob("*.txt"))


def many() -> Cluster:
    """Return a cluster with more nodes and resources than a small terminal has room for."""
    cluster = SITUATIONS["healthy"]()
    cluster.configure("".join(f"primitive service-{n:02} ocf:haclusterd:dummy\n" for n in range(40)))
    return cluster


def with_gpus() -> Cluster:
    """Return a cluster in which gpu-health has published what it found on one node."""
    cluster = SITUATIONS["healthy"]()
    values = {"gpu-driver": "535.129.03", "gpu-usable": "1", "gpu-0000:1a:00-state": "ok",
              "gpu-0000:1b:00-state": "failed", "gpu-0000:1b:00-why": "xid 79"}  # fmt: skip
    cluster.put(replace(cluster.node("n2"), attributes=values))
    return cluster


CLUSTERS: Mapping[str, Callable[[], Cluster]] = {**SITUATIONS, "busy": busy, "many": many, "gpus": with_gpus}


def asked(cluster: Cluster, verb: str, arguments: Mapping[str, Json]) -> Json:
    return ClusterClient(cluster).call(Request("", verb, arguments), lambda _: None).data


def shown(directive: Directive) -> str:
    situation, size_, *words = directive.words
    cluster = with_events(CLUSTERS[situation]())
    status = read(Status, asked(cluster, "status", {}))
    events = read(Events, asked(cluster, "history.events", {})).events
    columns, rows = map(int, size_.split("x"))
    view, facts = View(), dict[str, str]()
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name:
            facts[name] = value
        else:
            view = pressed(view, " " if word == "space" else word, selectable(view, status))
    known = Known(
        status, int(facts.get("age_ms", 0)), facts.get("problem", ""), facts.get("remedy", ""),
        facts.get("is_followed", "yes") == "yes", events,
    )  # fmt: skip
    question = question_of(view, status)
    if question is not None and facts.get("answered", "yes") == "yes":
        known = replace(known, aside=Aside(*question, data=asked(cluster, *question)))
    lines = draw(Screen(zone=UTC), known, view, Size(columns, rows))
    assert len(lines) == rows
    return "\n".join(f"{line}{' ' * (columns - width_of(line))}|" for line in lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pictures(path: Path) -> None:
    run_file(path, shown)


@pytest.mark.parametrize("situation", ["healthy", "busy", "many", "no-quorum", "not-formed"])
def test_a_picture_fits_into_every_terminal(situation: str) -> None:
    cluster = with_events(CLUSTERS[situation]())
    status = read(Status, asked(cluster, "status", {}))
    events = read(Events, asked(cluster, "history.events", {})).events
    known = Known(status, 3000, "nobody answers on a socket with a long name", "start it", events=events)
    for columns in (1, 2, 7, 20, 80, 200):
        for rows in (1, 2, 3, 5, 6, 10, 24, 60):
            for pane in Pane:
                for is_by_node in (False, True):
                    view = View(pane=pane, is_by_node=is_by_node, scroll=9)
                    lines = draw(Screen(has_colour=True, zone=UTC), known, view, Size(columns, rows))
                    assert len(lines) == rows
                    assert max(map(width_of, lines)) <= columns
