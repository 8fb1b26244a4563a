"""Names for completion: of the cluster, of changes that wait, of this machine's agents."""

import io
from collections.abc import Mapping

from haclusterd.cli.completing.known_names import KnownNames
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response
from tests.administered_clusters import ClusterClient, running


def session() -> Session:
    streams = Streams(io.StringIO(), io.StringIO(), io.StringIO())
    return Session(ClusterClient(running()), streams, Screen(), Screen())


def test_a_line_costs_one_question_of_each_kind() -> None:
    made = session()
    names = KnownNames(made)
    assert list(names.names("node")) == list(names.names("node")) == ["n1", "n2", "n3"]
    assert isinstance(made.client, ClusterClient)
    assert len(made.client.requests) == 1
    names.forget()
    names.names("node")
    assert len(made.client.requests) == 2


def test_changes_that_wait_have_names_too() -> None:
    made = session()
    made.pending = [(1, "primitive x @common op monitor interval=10s"), (2, "rsc_template common ocf:haclusterd:exec"),
                    (3, "location l9 x 5: n1"), (4, "delete web"), (5, "property")]  # fmt: skip
    names = KnownNames(made)
    assert [name for name in names.names("resource") if name in ("x", "common", "l9")] == ["x"]
    assert {"x", "common", "l9", "db"} <= set(names.names("object"))
    assert [names.agent_of(name) for name in ("x", "common", "web", "nothing")] == [
        "ocf:haclusterd:exec", "ocf:haclusterd:exec", "ocf:haclusterd:http-service", ""
    ]  # fmt: skip


def test_a_template_of_itself_has_no_agent() -> None:
    made = session()
    made.pending = [(1, "rsc_template t @t")]
    assert KnownNames(made).agent_of("t") == ""


def test_an_agent_is_asked_once_what_it_says_of_itself() -> None:
    asked: list[Mapping[str, Json]] = []

    def info(arguments: Mapping[str, Json]) -> Response:
        asked.append(arguments)
        return Response("", 0, (), {"agent": "x", "parameters": [], "actions": []})

    made = session()
    made.tools = {"ra info": info}
    names = KnownNames(made)
    assert names.description("ocf:x:web") == names.description("ocf:x:web")
    names.forget()
    names.description("ocf:x:web")
    assert asked == [{"agent": "ocf:x:web"}]
    assert KnownNames(session()).description("ocf:x:web") == {}


def test_nobody_answers() -> None:
    made = session()
    made.client = OfflineClient("/nowhere/state.cib", "nobody")
    names = KnownNames(made)
    assert (list(names.names("node")), names.agent_of("web")) == ([], "")
