"""The REST interface with real daemons: what it answers, to whom, and what it withstands."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography import x509

from haclusterd.api.events import STREAMS_OF_ROLE
from haclusterd.api.routes import routes
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass, field
from tests.processes.daemons import Scenario
from tests.processes.rest_interface import CHECKOUT, Answer, Api, crm, history, started
from tests.unit.api.certified_clients import Authority
from tests.who_may import BARE, LIMITED, ROLES, TABLE, Asked

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    made = Scenario(tmp_path_factory.mktemp("rest") / "cluster")
    try:
        yield made.form().with_service()
    finally:
        made.close()


@pytest.fixture(scope="module")
def api(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = started(scenario, "n1", tmp_path_factory.mktemp("api"))
    try:
        for role in ("viewer", "operator", "admin"):
            token = crm(scenario, "n2", "api", "token", "add", f"test-{role}", "--role", role)
            made.tokens[role] = token["token"]
        made.tokens["wrong"] = "hacl_guessed"
        yield made
    finally:
        made.process.terminate()
        assert made.process.wait(20) == 0


MOVING = frozenset({
    "now", "stale_ms", "heard_age_ms", "lease_remaining_ms", "age_ms", "round_trip_ms", "longest_ms", "recent_ms",
    "longest_work_ms", "index", "hears", "brain_since_ms",
})  # fmt: skip
"""What differs between two answers for no other reason than that time passed."""


def still(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: still(each) for name, each in value.items() if name not in MOVING}
    return [still(each) for each in value] if isinstance(value, list) else value


ASKED: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("status",), "/v1/status", {}),
    (("status", "simple"), "/v1/status", {"form": "simple"}),
    (("node", "show"), "/v1/node/show", {}),
    (("node", "show", "n2"), "/v1/node/show", {"node": "n2"}),
    (("resource", "status"), "/v1/resource/status", {}),
    (("resource", "why", "svc"), "/v1/resource/why", {"resource": "svc"}),
    (("resource", "scores", "svc"), "/v1/resource/scores", {"resources": ["svc"]}),
    (("resource", "constraints", "svc"), "/v1/resource/constraints", {"resource": "svc"}),
    (("configure", "show"), "/v1/configure/show", {"structured": "true"}),
    (("configure", "get_property", "node-timeout"), "/v1/configure/get_property", {"names": ["node-timeout"]}),
    (("configure", "verify"), "/v1/configure/verify", {}),
    (("fencing", "list"), "/v1/fencing/list", {}),
    (("fencing", "topology"), "/v1/fencing/topology", {}),
    (("fencing", "history"), "/v1/fencing/history", {}),
    (("fencing", "plan", "n3"), "/v1/fencing/plan", {"node": "n3"}),
    (("history", "events", "--limit", "5"), "/v1/history/events", {"limit": 5}),
    (("history", "config"), "/v1/history/config", {}),
    (("cluster", "members"), "/v1/cluster/members", {}),
    (("cluster", "timing"), "/v1/cluster/timing", {}),
    (("ticket", "show"), "/v1/ticket/show", {}),
    (("api", "token", "list"), "/v1/api/token_list", {}),
]


@pytest.mark.parametrize(("words", "path", "query"), ASKED, ids=[" ".join(words) for words, _, _ in ASKED])
def test_an_answer_is_what_crm_prints(
    scenario: Scenario, api: Api, words: tuple[str, ...], path: str, query: dict[str, Any]
) -> None:
    answer = api.get(path, **query)
    assert answer.status == 200, answer.body
    assert still(answer.json) == still(crm(scenario, "n1", *words))
    assert answer.headers["Haclusterd-Node"] == "n1"
    assert answer.headers["Haclusterd-Stale-Ms"] == "0"


# Changes.


def version(api: Api) -> int:
    return int(api.get("/v1/configure/show").headers["Haclusterd-Version"])


def test_a_change_is_made_for_one_version_once_and_its_author_is_the_token(scenario: Scenario, api: Api) -> None:
    tag = api.get("/v1/configure/show").headers["ETag"]
    words = {"words": ["node", "n1", "attributes", "rack=4"]}
    changed = api.ask("POST", "/v1/configure/statement?reason=moved", body=words, If_Match=tag)
    assert (changed.status, changed.json["schema"]) == (200, "haclusterd.change/1")
    late = api.ask("POST", "/v1/configure/delete", body={"ids": ["svc"]}, If_Match=tag)
    assert (late.status, late.json["code"]) == (412, "CONFLICT")
    (event,) = [each for each in scenario.events("configuration-changed") if "moved" in each["reason"]]
    assert event["author"] == "token:test-admin@n1 via REST"


def test_a_dry_run_changes_nothing(api: Api) -> None:
    before = version(api)
    shown = api.ask("POST", "/v1/resource/stop?dry_run=true", role="operator", body={"resources": ["svc"]})
    assert (shown.status, shown.json["schema"]) == (200, "haclusterd.preview/1")
    assert version(api) == before


def test_a_key_is_carried_out_once(api: Api) -> None:
    words = {"words": ["node", "n2", "attributes", "rack=5"]}
    first = api.ask("POST", "/v1/configure/statement", body=words, Idempotency_Key="k1")
    again = api.ask("POST", "/v1/configure/statement", body=words, Idempotency_Key="k1")
    assert (first.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")
    assert "Idempotency-Replayed" not in first.headers
    other = api.ask("POST", "/v1/configure/statement", body={"words": ["x"]}, Idempotency_Key="k1")
    assert other.status == 422
    own = api.ask("POST", "/v1/resource/cleanup", role="operator", body={}, Idempotency_Key="k1")
    assert own.status == 200, "a key belongs to its bearer"


def test_long_work_goes_on_without_its_client(scenario: Scenario, api: Api) -> None:
    begun = api.ask("POST", "/v1/resource/restart", role="operator", body={"resource": "svc"}, Prefer="respond-async")
    assert (begun.status, begun.json["schema"]) == (202, "haclusterd.operation/1")
    where = begun.headers["Location"]
    scenario.until("it to end", lambda: api.ask("GET", where, role="operator").json["state"] == "ended")
    ended = api.ask("GET", where, role="operator").json
    assert (ended["status"], ended["verb"]) == (200, "resource.restart")
    assert ended["result"]["reports"]
    assert api.ask("GET", where, role="admin").status == 404, "another's"


def test_a_text_is_applied_once_and_pruned(api: Api) -> None:
    text = "primitive declared ocf:haclusterd:dummy meta target-role=Stopped op monitor interval=10s timeout=20s\n"
    body = {"text": text, "prune": "ours"}
    first, again = (api.ask("POST", "/v1/configure/apply?wait=0", body=body) for _ in range(2))
    assert (first.status, first.json["changed"], first.headers["Haclusterd-Exit"]) == (200, True, "10"), first.body
    assert (again.status, again.json["changed"], again.headers["Haclusterd-Exit"]) == (200, False, "0")
    empty = {"text": "# nothing", "prune": "ours"}
    asks_first = api.ask("POST", "/v1/configure/apply?wait=0", body=empty)
    assert (asks_first.status, asks_first.json["code"]) == (409, "UNSAFE")
    assert api.ask("POST", "/v1/configure/apply?wait=0&force=true", body=empty).status == 200
    assert "declared" not in api.get("/v1/configure/show").json["text"]


# Who may.

BELOW = {"operate": ("viewer",), "administer": ("viewer", "operator")}


@pytest.mark.parametrize("route", routes(), ids=lambda each: f"{each.method} {each.path}")
def test_no_verb_escapes_the_check(api: Api, route: Any) -> None:
    for role, status in (("", 401), ("wrong", 401), *((low, 403) for low in BELOW.get(route.verb.permission, ()))):
        answer = api.ask(route.method, route.path, role=role, body={} if route.has_body else None)
        assert answer.status == status, (role, answer.body)
        assert answer.headers["Content-Type"] == "application/problem+json"


def by_rest(api: Api, asked: Asked, role: str) -> Answer:
    """Ask a verb, without doing anything."""
    route = next(each for each in routes() if each.verb.name == asked.verb)
    if route.has_body:
        return api.ask(route.method, f"{route.path}?dry_run=true&force=true", role=role, body=asked.arguments)
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in asked.arguments.items()}
    return api.ask(route.method, f"{route.path}?{urlencode(given, doseq=True)}", role=role)


def test_who_may_is_the_same_over_rest(scenario: Scenario, api: Api) -> None:
    """Each verb by a role of access control lists; some by others (all routes: `test_no_verb_escapes_the_check`)."""
    crm(scenario, "n1", "configure", "load", "update", str(written(scenario, ROLES)))
    crm(scenario, "n1", "cluster", "transfer-leader", "n1")  # The table asks n3 to lead, which is something to do.
    for role in (LIMITED, BARE):
        api.tokens[role] = crm(scenario, "n1", "api", "token", "add", f"t-{role}", "--role", role)["token"]
    wrong = []
    for number, asked in enumerate(TABLE):
        for role in (LIMITED, *([asked.least, BARE] if number % 6 == 0 else [])):
            answer = by_rest(api, asked, role)
            is_permitted = answer.status not in (401, 403)
            if is_permitted is not asked.is_permitted(role) or answer.status >= 500:
                wrong.append((asked.verb, role, answer.status, answer.body[:300]))
    assert wrong == []


def test_what_a_token_may_not_read_is_in_no_answer_over_rest(scenario: Scenario, api: Api) -> None:
    """Not in state, reasons, metrics, the history, nor its stream."""
    text = 'role blind read cib deny ref:svc deny xpath:"//lrm_resource[@id=\'svc\']" deny xpath:"//acls"\n'
    crm(scenario, "n1", "configure", "load", "update", str(written(scenario, text)))
    api.tokens["blind"] = crm(scenario, "n1", "api", "token", "add", "blind", "--role", "blind")["token"]
    for path in ("/v1/status", "/v1/configure/show?structured=true", "/v1/history/events", "/v1/resource/status",
                 "/v1/resource/scores", "/metrics", "/v1/history/follow?after=0&wait_s=0"):  # fmt: skip
        answer = api.ask("GET", path, role="blind")
        assert answer.status == 200, answer.body
        assert not re.search(rb"\bsvc\b", answer.body), (path, answer.body[:2000])
        assert b"n1" in answer.body or "configure" in path
    with urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{api.port}/v1/events?after=0",
                               headers={"Authorization": f"Bearer {api.tokens['blind']}"}), timeout=60
    ) as stream:  # fmt: skip
        seen = stream.read1(65536) + stream.read1(65536)
    assert b"data:" in seen
    assert not re.search(rb"\bsvc\b", seen)


def written(scenario: Scenario, text: str) -> Path:
    file = Path(scenario.cluster.nodes_directory).parent / "roles.crm"
    file.write_text(text)
    return file


def test_a_revoked_token_is_not_accepted_any_more(scenario: Scenario, api: Api) -> None:
    api.tokens["short"] = crm(scenario, "n3", "api", "token", "add", "short", "--role", "viewer")["token"]
    scenario.until("it to be known", lambda: api.ask("GET", "/v1/api/whoami", role="short").status == 200)
    assert api.ask("GET", "/v1/api/whoami", role="short").json["author"] == "token:short@n1"
    crm(scenario, "n3", "api", "token", "revoke", "short")
    scenario.until("it to be refused", lambda: api.ask("GET", "/v1/api/whoami", role="short").status == 401)
    logs = "".join(scenario.log(name) for name in scenario.cluster.names)
    assert api.tokens["short"] not in logs + json.dumps(scenario.events())


# Events.


@dataclass
class Stream:
    """A client of /v1/events; it comes again with the last id that it saw, as browsers do."""

    api: Api
    query: str
    role: str = "admin"
    last: str = ""
    seen: list[Any] = field(default_factory=list)
    named: list[tuple[str, Any]] = field(default_factory=list)

    def read(self, enough: Callable[["Stream"], bool]) -> "Stream":
        """Receive until it is enough, then hang up."""
        headers = {"Authorization": f"Bearer {self.api.tokens[self.role]}", "Last-Event-ID": self.last}
        url = f"http://127.0.0.1:{self.api.port}/v1/events?{self.query}"
        kind = ""
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            while not enough(self):
                name, _, value = answer.readline().decode().rstrip("\n").partition(": ")
                if name == "id":
                    self.last = value
                elif name == "event":
                    kind = value
                elif name == "data" and kind:
                    self.named.append((kind, json.loads(value)))
                elif name == "data":
                    self.seen.append(json.loads(value))
                elif not name:
                    kind = ""
        return self


def test_a_stream_is_exactly_the_history_across_changes_of_dc_and_of_the_node_that_is_asked(
    scenario: Scenario, api: Api, tmp_path: Path
) -> None:
    other = started(scenario, "n2", tmp_path)
    other.tokens |= api.tokens
    try:
        stream = Stream(api, "after=0")
        for number, (asked, dc) in enumerate(((api, "n2"), (other, "n3"))):
            crm(scenario, "n1", "cluster", "transfer-leader", dc)
            crm(scenario, "n1", "node", "status-attr", "n3", "set", "seen", str(number))
            stream.api = asked
            wanted = f"seen={number}"
            stream.read(lambda it, wanted=wanted: any(wanted in each["text"] for each in it.seen[-40:]))
    finally:
        other.process.terminate()
        assert other.process.wait(20) == 0
    known = history(scenario, "n3")
    assert stream.seen == known[: len(stream.seen)]
    assert [kind for kind, _ in stream.named if kind != "state"] == []
    elected = [each["node"] for each in stream.seen if each["kind"] == "dc-elected"]
    assert {"n2", "n3"} <= set(elected)


def test_a_stream_has_what_was_asked_for(scenario: Scenario, api: Api) -> None:
    stream = Stream(api, "after=0&kinds=node-joined&node=n2", "viewer").read(lambda it: bool(it.seen))
    assert [(each["kind"], each["node"]) for each in stream.seen] == [("node-joined", "n2")]
    assert stream.seen == history(scenario, "n1", node="n2", kinds=["node-joined"])[:1]


def test_who_has_seen_nothing_yet_misses_nothing_while_they_come_again(scenario: Scenario, api: Api) -> None:
    stream = Stream(api, "kinds=attribute-changed").read(lambda it: bool(it.named))
    assert (stream.named[0][0], stream.named[0][1]["node"], stream.named[0][1]["stale_ms"]) == ("state", "n1", 0)
    for number in range(3):
        crm(scenario, "n2", "node", "status-attr", "n2", "set", "between", f"v{number}")
    stream.read(lambda it: len(it.seen) == 3)
    assert [f"v{number}" in each["text"] for number, each in enumerate(stream.seen)] == [True] * 3


def test_a_stream_of_a_token_that_is_revoked_ends_and_says_why(scenario: Scenario, api: Api) -> None:
    api.tokens["gone"] = crm(scenario, "n1", "api", "token", "add", "gone", "--role", "viewer")["token"]
    stream = Stream(api, "since=10min&kinds=api-token-changed", "gone")

    revoked = count()

    def has_ended(it: Stream) -> bool:
        if it.seen and next(revoked) == 0:
            crm(scenario, "n1", "api", "token", "revoke", "gone")
        return bool(it.named) and it.named[-1][0] == "end"

    stream.read(has_ended)
    assert stream.named[-1][1]["code"] == "NOT_AUTHENTICATED"
    assert api.ask("GET", "/v1/events", role="gone").status == 401


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [("after=x", {}, 400), ("since=soon", {}, 400), ("what=1", {}, 400), ("after=1&after=2", {}, 400),
     ("", {"Last_Event_ID": "1;2"}, 400)],
)  # fmt: skip
def test_a_wrong_stream_is_refused(api: Api, query: str, headers: dict[str, str], status: int) -> None:
    answer = api.ask("GET", f"/v1/events?{query}", **headers)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert api.ask("GET", "/v1/events", role="wrong").status == 401


def test_streams_that_are_never_read_have_their_number_and_keep_nobody_out(scenario: Scenario, api: Api) -> None:
    head = f"GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.tokens['viewer']}\r\n\r\n"
    opened = [socket.create_connection(("127.0.0.1", api.port), timeout=60) for _ in range(STREAMS_OF_ROLE["viewer"])]
    try:
        for each in opened:
            each.sendall(head.encode())
        assert all(each.recv(15) == b"HTTP/1.1 200 OK" for each in opened)
        refused = api.ask("GET", "/v1/events", role="viewer")
        assert (refused.status, refused.json["code"]) == (503, "TRY_AGAIN")
        Stream(api, "after=0", "operator").read(lambda it: bool(it.seen))
    finally:
        for each in opened:
            each.close()
    scenario.until("a place to be free", lambda: api.ask("GET", "/v1/events?after=x", role="viewer").status == 400)
    Stream(api, "after=0", "viewer").read(lambda it: bool(it.seen))


def test_crm_follows_the_history(scenario: Scenario) -> None:
    crm(scenario, "n2", "node", "status-attr", "n2", "set", "followed", "before")
    following = subprocess.Popen(
        [sys.executable, "-m", "haclusterd.entry_points.crm", "-o", "json", "history", "events", "--follow",
         "--limit", "1", "--kind", "attribute-changed"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=CHECKOUT, text=True,
        env={**os.environ, "HACLUSTERD_SOCKET": str(scenario.cluster.nodes[NodeName("n1")].socket)},
    )  # fmt: skip
    assert following.stdout is not None
    try:
        newest = json.loads(following.stdout.readline())
        for value in ("a", "b"):
            crm(scenario, "n2", "node", "status-attr", "n2", "set", "followed", value)
        texts = [json.loads(following.stdout.readline())["text"] for _ in range(2)]
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=20)
    assert newest["kind"] == "attribute-changed"
    assert ["a" in texts[0], "b" in texts[1]] == [True, True]
    assert following.returncode == 0


# Metrics.


def metric(api: Api, name: str) -> list[float]:
    text = api.ask("GET", "/metrics", role="viewer").body.decode()
    return [float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)]


def test_metrics_are_for_those_who_show_a_token(scenario: Scenario, api: Api) -> None:
    answer = api.ask("GET", "/metrics", role="viewer")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b'\nhaclusterd_info{cluster="' in b"\n" + answer.body
    assert [api.ask("GET", "/metrics", role=role).status for role in ("", "wrong")] == [401, 401]
    changes = 'haclusterd_events_total{kind="attribute-changed"}'
    before = metric(api, changes) or [0.0]
    crm(scenario, "n2", "node", "status-attr", "n2", "set", "counted", "yes")
    scenario.until("it to be counted", lambda: metric(api, changes) > before)


# The web page, and its sessions.


def test_the_page_is_served_with_its_types_and_shut_in(api: Api) -> None:
    page = api.ask("GET", "/", role="")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html")
    policy = page.headers["Content-Security-Policy"]
    expected = ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'")
    assert tuple(policy.split("; ")[: len(expected)]) == expected
    assert "unsafe" not in policy
    named = re.findall(rb'(?:href|src)="(/[^"]*)"', page.body)
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert {name.decode().rpartition(".")[2] for name in named} == set(types)
    for name in named:
        asset = api.ask("GET", name.decode(), role="")
        assert (asset.status, asset.headers["Content-Type"]) == (200, types[name.decode().rpartition(".")[2]])
        assert asset.headers["Content-Security-Policy"] == policy
        assert asset.headers["X-Content-Type-Options"] == "nosniff"
        again = api.ask("GET", name.decode(), role="", If_None_Match=asset.headers["ETag"])
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/page/", "/page/../server.py", "/page/%2e%2e/server.py", "/page/..%2fserver.py", "/page//etc/passwd",
        "/page/main.js%00", "/page/index.html", "/server.py",
    ],
)  # fmt: skip
def test_nothing_but_the_files_of_the_page_is_served(api: Api, path: str) -> None:
    answer = api.ask("GET", path, role="")
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/problem+json")


def signed_in(api: Api, role: str) -> dict[str, str]:
    """Sign in as the page does; return the headers of its requests that change something."""
    answer = api.ask("POST", "/v1/session", role=role)
    assert answer.status == 200, answer.body
    cookie = answer.headers["Set-Cookie"]
    assert re.fullmatch(rf"haclusterd-{api.port}=[\w-]{{43}}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict", cookie)
    assert api.tokens[role] not in cookie + answer.body.decode()
    return {"Cookie": cookie.partition(";")[0], "Haclusterd_Csrf": answer.json["csrf"], "Sec_Fetch_Site": "same-origin"}


def test_a_session_may_what_its_token_may_until_it_is_ended(api: Api) -> None:
    assert api.ask("POST", "/v1/session", role="wrong").status == 401
    headers = signed_in(api, "operator")
    assert api.ask("GET", "/v1/status", role="", **headers).status == 200
    assert api.ask("GET", "/v1/session", role="", **headers).json["role"] == "operator"
    stop = {"resources": ["svc"]}
    path = "/v1/resource/stop?dry_run=true"
    assert api.ask("POST", path, role="", body=stop, **headers).status == 200
    high = api.ask("POST", "/v1/configure/delete?dry_run=true", role="", body={"ids": ["svc"]}, **headers)
    assert high.status == 403
    ended = api.ask("DELETE", "/v1/session", role="", **headers)
    assert (ended.status, "Max-Age=0" in ended.headers["Set-Cookie"]) == (200, True)
    assert api.ask("GET", "/v1/status", role="", **headers).status == 401


def test_no_other_site_changes_anything_with_the_cookie(api: Api) -> None:
    headers = signed_in(api, "admin")
    own = f"http://127.0.0.1:{api.port}"
    changes = {
        "another word": ({"Haclusterd_Csrf": "guessed"}, 403),
        "no word": ({"Haclusterd_Csrf": ""}, 403),
        "another site": ({"Sec_Fetch_Site": "cross-site"}, 403),
        "another port": ({"Sec_Fetch_Site": "same-site"}, 403),
        "an old browser, another origin": ({"Sec_Fetch_Site": None, "Origin": "http://127.0.0.1:1"}, 403),
        "an old browser, no origin": ({"Sec_Fetch_Site": None}, 403),
        "an old browser": ({"Sec_Fetch_Site": None, "Origin": own}, 200),
    }
    for what, (other, status) in changes.items():
        sent = {name: value for name, value in {**headers, **other}.items() if value is not None}
        answer = api.ask("POST", "/v1/resource/stop?dry_run=true", role="", body={"resources": ["svc"]}, **sent)
        assert answer.status == status, (what, answer.body)
        assert "Access-Control-Allow-Origin" not in answer.headers
    assert api.ask("GET", "/v1/status", role="", Cookie=headers["Cookie"], Sec_Fetch_Site="cross-site").status == 403
    assert api.ask("OPTIONS", "/v1/session", role="", Origin="http://other.example").status == 405


def test_a_session_and_its_streams_end_with_its_token(scenario: Scenario, api: Api) -> None:
    api.tokens["lent"] = crm(scenario, "n1", "api", "token", "add", "lent", "--role", "viewer")["token"]
    headers = signed_in(api, "lent")
    other = signed_in(api, "lent")
    with socket.create_connection(("127.0.0.1", api.port), timeout=30) as stream:
        head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nCookie: {other['Cookie']}\r\n\r\n"
        stream.sendall(head.encode())
        assert stream.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert api.ask("DELETE", "/v1/session", role="", **other).status == 200
        with suppress(ConnectionResetError):
            while stream.recv(4096):
                pass
    assert api.ask("GET", "/v1/status", role="", **headers).status == 200, "the other one goes on"
    crm(scenario, "n1", "api", "token", "revoke", "lent")
    assert api.ask("GET", "/v1/status", role="", **headers).status == 401
    assert api.ask("GET", "/v1/session", role="", **headers).status == 401


# Bad input.


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/../etc/passwd", 404),
        ("GET", "/v1/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/v1/operations/..%2f..%2fetc", 404),
        ("DELETE", "/v1/status", 405),
        ("POST", "/v1/status", 405),
        ("GET", "/v1/status?form=loud", 400),
        ("GET", "/v1/status?form=a%0d%0aSet-Cookie:%20x=1", 400),
        ("GET", "/v1/status?unknown=1", 400),
        ("GET", "/v1/node/show?node=n9", 404),
        ("GET", "/v1/history/diff?old=1e3", 400),
        ("POST", "/v1/node/standby?dry_run=perhaps", 400),
    ],
)
def test_a_wrong_request_is_refused_with_a_code(api: Api, method: str, path: str, status: int) -> None:
    answer = api.ask(method, path, body={} if method == "POST" else None)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json"), answer.body
    assert answer.json["code"]
    assert answer.json["status"] == status
    assert "Set-Cookie" not in answer.headers


def test_a_signal_has_certificates_revocations_and_tokens_read_again(
    scenario: Scenario, api: Api, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    alice, own = authority.signed("alice"), authority.signed("localhost", x509.DNSName("localhost"))
    authority.revoked()
    token = tmp_path / "ops"
    token.write_text(api.tokens["viewer"])
    token.chmod(0o640)
    served = started(
        scenario, "n2", tmp_path,
        f"certificate: {own.name}\nkey: {own.name}\nclient-ca: {authority.file.name}\nclient-crl: revoked.pem\n"
        "clients: {'CN:alice': ops}\n",
    )  # fmt: skip

    def asked() -> int:
        """Return the status with which alice is answered; 0: the handshake ended."""
        context = ssl.create_default_context(cafile=authority.file)
        context.load_cert_chain(alice)
        connection = http.client.HTTPSConnection("localhost", served.port, context=context, timeout=20)
        try:
            connection.request("GET", "/v1/status")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def read_again(what: str, status: int) -> None:
        served.process.send_signal(signal.SIGHUP)
        scenario.until(what, lambda: asked() == status)

    try:
        assert asked() == 200
        token.write_text("hacl_guessed\n")
        assert asked() == 200, "nothing is read before the signal"
        read_again("the other token is shown", 401)
        token.write_text(api.tokens["viewer"])
        authority.revoked(alice)
        read_again("the certificate is refused", 0)
        authority.revoked()
        read_again("the certificate is taken again", 200)
    finally:
        served.process.terminate()
        assert served.process.wait(20) == 0


def test_bodies_that_are_no_arguments_are_refused(api: Api) -> None:
    path = "/v1/configure/load"
    sent = {raw: api.ask("POST", path, raw=raw) for raw in (b"{", b"[]", b'{"a":1.5}', b'{"mode":"update"}', b"\xff")}
    assert [answer.status for answer in sent.values()] == [400] * 5
    assert api.ask("POST", path, raw=b"{}", Content_Type="text/plain").status == 415
    unknown = api.ask("POST", path, body={"mode": "update", "text": "# x", "txet": ""})
    assert (unknown.status, unknown.json["code"]) == (400, "UNKNOWN_ARGUMENT")


def sent_raw(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        return connection.recv(65536)


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(api: Api) -> None:
    head = f"POST /v1/configure/load HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.tokens['admin']}\r\n"
    announced = f"{head}Content-Type: application/json\r\nContent-Length: {2**30}\r\n\r\n".encode()
    assert sent_raw(api.port, announced).startswith(b"HTTP/1.1 413 ")
    for unreadable in (f"{head}X: {'y' * 100_000}\r\n\r\n".encode(), b"no HTTP at all\r\n\r\n"):
        reply = sent_raw(api.port, unreadable)
        assert b" 400 " in reply[:20]
        assert b"application/problem+json" in reply
        assert b"yyyy" not in reply


def test_thousands_of_connections_and_clients_that_read_nothing_leave_room(scenario: Scenario, api: Api) -> None:
    opened: list[socket.socket] = []
    lazy = f"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.tokens['viewer']}\r\n\r\n".encode()
    try:
        for number in range(1500):
            connection = socket.socket()
            connection.settimeout(0)
            connection.connect_ex(("127.0.0.1", api.port))
            opened.append(connection)
            if number < 20:
                connection.settimeout(None)
                connection.settimeout(10)
                connection.sendall(lazy * 20)
        assert api.ask("GET", "/v1/api/whoami", timeout=60).status == 200, "those that ask nothing give way"
    finally:
        for connection in opened:
            connection.close()
    assert api.get("/v1/status").status == 200, "those that have gone keep nobody out"
    assert api.resident_kib() < 200 * 1024
    assert scenario.online() == set(scenario.cluster.names)


# What the page shows.


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_the_page_types_works(api: Api, tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "howto" / "rest-api.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert sum(block.count("curl ") for block in blocks) >= 6
    done = subprocess.run(
        ["bash", "-euc", "".join(blocks)], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=100,
        env={**os.environ, "TOKEN": api.tokens["admin"], "API": f"http://127.0.0.1:{api.port}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "haclusterd.status/1" in done.stdout


# Without a quorum.


def test_without_a_quorum_reads_are_answered_and_say_how_old_they_are(scenario: Scenario, api: Api) -> None:
    """The last of this file: the cluster does not come back."""
    for name in ("n2", "n3"):
        scenario.cluster.power_off(name)
    scenario.until("n1 to know", lambda: int(api.get("/v1/status").headers["Haclusterd-Stale-Ms"]) > 0)
    shown = api.get("/v1/configure/show")
    assert (shown.status, "primitive svc" in shown.json["text"]) == (200, True)
    assert (metric(api, "haclusterd_has_quorum "), metric(api, "haclusterd_up ")) == ([0.0], [1.0])
    assert metric(api, "haclusterd_stale_seconds ") > [0.0]
    refused = api.ask("POST", "/v1/configure/statement", body={"words": ["node", "n3", "attributes", "rack=9"]})
    assert (refused.status, refused.json["code"]) == (503, "NO_QUORUM")
    assert "n2, n3" in refused.json["detail"]
    scenario.brain("n1").kill()
    scenario.brain("n1").wait(10)
    assert (metric(api, "haclusterd_up "), metric(api, "haclusterd_has_quorum ")) == ([0.0], [])
    away = api.get("/v1/status")
    assert (away.status, away.json["code"]) == (503, "NOT_RUNNING")
