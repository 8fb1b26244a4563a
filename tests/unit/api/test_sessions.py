"""Sessions of the page are bounded in number and in time."""

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import Request

from haclusterd.api.routes import RefusedError
from haclusterd.api.sessions import IDLE_S, LIFE_S, SESSIONS_MAX, SESSIONS_OF_TOKEN_MAX, Sessions


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def request(cookie: str = "", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return make_mocked_request("GET", "/v1/status", {**named, **({"Cookie": cookie} if cookie else {})})


def begun(sessions: Sessions, token: str) -> Request:
    """Begin a session; return a request that comes with it."""
    _, cookie = sessions.begin(request(), token, f"token:{token}@n1", "viewer")
    return request(cookie.partition(";")[0])


def is_known(sessions: Sessions, each: Request) -> bool:
    return sessions.find(each) is not None


def test_a_session_that_asks_nothing_ends() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    used, idle = begun(sessions, "a"), begun(sessions, "a")
    clock.now += IDLE_S - 1
    assert is_known(sessions, used)
    clock.now += 2
    assert is_known(sessions, used)
    assert not is_known(sessions, idle)


def test_a_session_that_is_used_ends_too() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    used = begun(sessions, "a")
    while clock.now < 1000 + LIFE_S:
        assert sessions.token_of(used) == "a"
        clock.now += IDLE_S / 2
    clock.now = 1001 + LIFE_S
    with pytest.raises(RefusedError):
        sessions.token_of(used)


def test_of_one_token_and_of_all_there_are_so_many_and_those_used_last_stay() -> None:
    sessions = Sessions(Clock())
    of_one = [begun(sessions, "a") for _ in range(SESSIONS_OF_TOKEN_MAX)]
    assert is_known(sessions, of_one[0])
    begun(sessions, "a")
    assert [is_known(sessions, each) for each in of_one[:3]] == [True, False, True]
    for number in range(SESSIONS_MAX):
        begun(sessions, f"t{number}")
    assert not any(is_known(sessions, each) for each in of_one)


def test_a_token_in_a_header_wins_and_over_tls_the_cookie_is_for_this_host_alone() -> None:
    sessions = Sessions(Clock())
    cookie = begun(sessions, "a").headers["Cookie"]
    assert sessions.token_of(request(cookie, Authorization="Bearer b")) == "b"
    _, secure = sessions.begin(request(Origin="https://n1.example"), "a", "x", "viewer")
    assert secure.startswith("__Host-haclusterd-")
    assert secure.endswith("; Secure")
