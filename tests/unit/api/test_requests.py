"""What a request of HTTP becomes, and what an answer becomes, without a server."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.api import problems
from haclusterd.api.problems import STATUS_OF, reply_to
from haclusterd.api.routes import (
    OPTIONS_OF_CHANGES,
    RefusedError,
    Route,
    read_body,
    read_query,
    read_version,
    routes,
)
from haclusterd.commands.registry import VERBS
from haclusterd.model.requests import Basis, Options, Response, ShownReport
from haclusterd.reports.codes import CODES, Severity
from haclusterd.reports.exit_codes import ExitStatus

ROUTES = {(route.method, route.path): route for route in routes()}


def test_every_verb_has_a_way_and_what_changes_something_is_no_get() -> None:
    assert {route.verb.name for route in ROUTES.values()} == set(VERBS)
    assert [route.path for route in ROUTES.values() if route.method == "GET" and route.verb.may_change] == []
    assert ("POST", "/v1/configure/verify") in ROUTES
    assert ("GET", "/v1/api/token_list") in ROUTES
    assert len(ROUTES) == len(routes())


def test_no_argument_is_called_as_an_option_is() -> None:
    assert [route.path for route in routes() if {a.name for a in route.verb.arguments} & set(OPTIONS_OF_CHANGES)] == []


def test_a_query_gets_its_types() -> None:
    route = ROUTES["GET", "/v1/history/events"]
    pairs = [("kinds", "node-lost"), ("kinds", "node-fenced"), ("limit", "5"), ("consistent", "true")]
    expected = ({"kinds": ["node-lost", "node-fenced"], "limit": 5}, Options(is_consistent=True))
    assert read_query(route, pairs) == expected
    shown = read_query(ROUTES["GET", "/v1/configure/show"], [("structured", "true"), ("ids", "web")])
    assert shown == ({"structured": True, "ids": ["web"]}, Options())
    asked = [("dry_run", "true"), ("wait", "30s"), ("reason", "new disk"), ("force", "1")]
    standby = read_query(ROUTES["POST", "/v1/node/standby"], asked)
    assert standby == ({}, Options(30_000, dry_run=True, force=True, reason="new disk"))


@pytest.mark.parametrize(
    ("key", "pairs"),
    [
        (("GET", "/v1/node/show"), [("node", "n1"), ("node", "n2")]),
        (("POST", "/v1/node/standby"), [("node", "n1")]),
        (("POST", "/v1/node/standby"), [("dry_run", "perhaps")]),
        (("POST", "/v1/node/standby"), [("wait", "soon")]),
        (("POST", "/v1/node/standby"), [("wait", "2h")]),
        (("POST", "/v1/node/standby"), [("reason", "a\nb")]),
    ],
)
def test_a_wrong_query_is_refused(key: tuple[str, str], pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(RefusedError):
        read_query(ROUTES[key], pairs)


@given(st.sampled_from(sorted(ROUTES)), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4))
def test_no_query_is_too_strange(key: tuple[str, str], pairs: list[tuple[str, str]]) -> None:
    try:
        arguments, _ = read_query(ROUTES[key], pairs)
    except RefusedError:
        return
    assert set(arguments) <= {name for name, _ in pairs}


@given(st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]",:1e.\\u0dnNaI', max_size=60).map(str.encode)))
def test_no_body_is_too_strange(body: bytes) -> None:
    try:
        assert isinstance(read_body(body, "application/json"), dict)
    except RefusedError:
        return


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "text/plain", 415),
        (b"[1]", "application/json", None),
        (b'{"a":1.5}', "application/json", None),
        (b'{"a":NaN}', "application/json", None),
        (b'{"a":1,"a":2}', "application/json", None),
        (b"[" * 40_000, "application/json", None),
        (b'{"a":[' + b"[]," * 60_000 + b"1]}", "application/json", 413),
    ],
)
def test_a_wrong_body_is_refused(body: bytes, kind: str, status: int | None) -> None:
    with pytest.raises(RefusedError) as caught:
        read_body(body, kind)
    assert caught.value.status == status


def test_a_long_text_with_commas_is_no_array_of_nothings() -> None:
    text = "a,[{" * 100_000
    assert read_body(b'{"text":"' + text.encode() + b'\\""}', "application/json") == {"text": text + '"'}


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":"' + b'\\"' * 30_000,
        b"{" + b"".join(b'"%d":0,' % number for number in range(40_000)) + b'"39999":0}',
    ],
)
def test_who_shows_no_token_that_is_accepted_takes_no_seconds(body: bytes) -> None:
    """A body of 64 KiB is read before the daemon has judged the token."""
    began = time.process_time()
    with pytest.raises(RefusedError):
        read_body(body, "application/json")
    assert time.process_time() - began < 2


def test_a_version_is_read_from_its_tag() -> None:
    assert [read_version(each) for each in (None, "*", '"17"')] == [None, None, 17]
    for wrong in ("17", 'W/"17"', '"17", "18"', '"x"'):
        with pytest.raises(RefusedError):
            read_version(wrong)


def test_every_error_has_a_status_of_http() -> None:
    errors = {row.exit_status for row in CODES.values() if row.severity is Severity.ERROR}
    assert errors - {ExitStatus.OK} <= set(STATUS_OF)
    assert [status for status in problems.STATUS_OF.values() if not 400 <= status < 600] == []


CONFLICT = ShownReport("error", "CONFLICT", "changed meanwhile", "look", "f:1")
BASIS = Basis("n1", 17, 99, 0)


def test_a_conflict_is_a_failed_precondition_only_for_who_had_one() -> None:
    response = Response("1", 103, (CONFLICT,), None, BASIS)
    assert reply_to(response, is_reading=False).status == 409
    reply = reply_to(response, is_reading=False, has_precondition=True)
    assert (reply.status, reply.content_type, reply.code) == (412, "application/problem+json", "CONFLICT")
    assert b'"remedy":"look"' in reply.body
    assert b'"place":"f:1"' in reply.body


def test_a_question_that_was_answered_is_answered() -> None:
    wrong = ShownReport("error", "UNKNOWN_RESOURCE", "no web")
    response = Response("1", 78, (wrong,), {"schema": "haclusterd.verify/1", "is_valid": False}, BASIS)
    assert reply_to(response, is_reading=True).status == 200
    assert reply_to(response, is_reading=True, has_etag=True).headers["ETag"] == '"17"'
    assert reply_to(response, is_reading=False).status == 422


def test_a_route_says_what_it_is() -> None:
    show = ROUTES["GET", "/v1/configure/show"]
    assert isinstance(show, Route)
    assert show.has_etag
    assert not ROUTES["GET", "/v1/status"].has_etag
