"""The proxy: connections reach a backend that answers, and a stop lets them end."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from haclusterd.agents.process_table import is_running, read_stat
from haclusterd.entry_points.free_ports import free_ports
from tests.agents.conftest import AGENTS, AgentUnderTest

OK, ERROR, NOT_CONFIGURED, NOT_RUNNING, DEGRADED = 0, 1, 6, 7, 190
PATIENCE_S = 15.0


class Backend:
    """Greets with its name, and then says everything twice."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.port = name, port
        self._listener = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.sendall(self.name.encode())
            while data := connection.recv(65536):
                connection.sendall(data)
                connection.sendall(data)
            connection.sendall(b"end")
            connection.close()
        except OSError:
            return

    def end(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)
        for each in self._open:
            each.close()


class Proxied:
    """An agent in front of three ports, of which backends may take some."""

    def __init__(self, make_agent: Callable[..., AgentUnderTest], state: Path) -> None:
        self.port, *self.ports = free_ports("127.0.0.1", 4)
        self.up: dict[str, Backend] = {}
        self.agent = make_agent(
            "tcp-proxy", listen=f"127.0.0.1:{self.port}", backends=self.places("a", "b"), balance="first",
            check_interval="100ms", log_file=str(state / "log"), CRM_meta_interval="10000",
        )  # fmt: skip

    def places(self, *names: str) -> str:
        return " ".join(f"127.0.0.1:{self.ports['abc'.index(each)]}" for each in names)

    def raise_up(self, *names: str) -> None:
        for name in names:
            self.up[name] = Backend(name, self.ports["abc".index(name)])

    def end(self, *names: str) -> None:
        for name in names or list(self.up):
            self.up.pop(name).end()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def greeting(self) -> str:
        """Return the name of the backend that a new connection reaches; empty when it is closed at once."""
        with closing(self.connect()) as connection:
            try:
                return connection.recv(1).decode()
            except ConnectionResetError:
                return ""


@pytest.fixture
def proxied(make_agent, tmp_path: Path) -> Iterator[Proxied]:
    made = Proxied(make_agent, tmp_path)
    yield made
    made.end()


@pytest.fixture
def served(proxied: Proxied) -> Proxied:
    proxied.raise_up("a", "b")
    assert proxied.agent.code("start") == OK
    return proxied


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.02)


def test_what_is_sent_arrives_in_both_directions_and_each_end_is_passed_on(served: Proxied) -> None:
    assert [served.agent.code("monitor", level=level) for level in (0, 10)] == [OK, OK]
    text = os.urandom(300_000)
    with closing(served.connect()) as connection:
        writer = threading.Thread(target=lambda: (connection.sendall(text), connection.shutdown(socket.SHUT_WR)))
        writer.start()
        answer = b""
        while data := connection.recv(65536):
            answer += data
        writer.join()
    assert (answer[:1], len(answer), answer[-3:]) == (b"a", 600_004, b"end")


def test_a_connection_reaches_a_backend_that_answers(served: Proxied) -> None:
    assert served.greeting() == "a"
    served.end("a")
    assert served.greeting() == "b"
    assert served.agent.code("monitor") == OK
    served.raise_up("a")
    until(lambda: served.greeting() == "a")


def test_without_any_backend_it_is_degraded_and_recovers_by_itself(served: Proxied) -> None:
    served.end()
    until(lambda: served.agent.code("monitor") == DEGRADED)
    done = served.agent.run("monitor")
    assert f"backends-down: none answers (backends={served.places('a').split()[0]}," in done.stderr
    assert served.greeting() == ""
    served.raise_up("b")
    until(lambda: served.agent.code("monitor") == OK)


def test_new_backends_are_taken_over_while_connections_stay(served: Proxied) -> None:
    served.raise_up("c")
    pid = served.agent.pid()
    with closing(served.connect()) as old:
        assert old.recv(1) == b"a"
        served.agent.parameters["backends"] = served.places("c")
        assert served.agent.code("reload-agent") == OK
        assert served.greeting() == "c"
        old.sendall(b"x")
        assert old.recv(1) == b"x"
    assert served.agent.pid() == pid


@pytest.mark.parametrize(("balance", "names"), [("round-robin", {"a", "b"}), ("least", {"a", "b"}), ("first", {"a"})])
def test_how_connections_are_spread(proxied: Proxied, balance: str, names: set[str]) -> None:
    proxied.raise_up("a", "b")
    proxied.agent.parameters["balance"] = balance
    assert proxied.agent.code("start") == OK
    connections = [proxied.connect() for _ in range(4)]
    try:
        assert {each.recv(1).decode() for each in connections} == names
    finally:
        for each in connections:
            each.close()


def test_a_stop_lets_open_connections_end_and_takes_no_new_ones(served: Proxied) -> None:
    with closing(served.connect()) as connection:
        assert connection.recv(1) == b"a"
        stopping = threading.Thread(target=lambda: codes.append(served.agent.code("stop", drain_seconds="30s")))
        codes: list[int] = []
        stopping.start()
        until(lambda: _is_refused(served.port))
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
        assert stopping.is_alive()
    stopping.join(PATIENCE_S)
    assert codes == [OK]
    assert served.agent.code("monitor") == NOT_RUNNING


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_stop_waits_no_longer_than_given(served: Proxied) -> None:
    with closing(served.connect()) as connection:
        assert connection.recv(1) == b"a"
        began = time.monotonic()
        assert served.agent.code("stop", drain_seconds="300ms") == OK
        assert time.monotonic() - began < 10
        assert connection.recv(1) == b""


def test_a_proxy_that_hangs_is_stalled_and_can_be_stopped(served: Proxied) -> None:
    pid = served.agent.pid()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: served.agent.code("monitor") == ERROR)
    assert "stalled: " in served.agent.run("monitor").stderr
    stat = read_stat(pid)
    assert stat is not None
    assert served.agent.code("stop") == OK
    assert not is_running(pid, stat.start_time)


def test_more_connections_than_given_are_closed(proxied: Proxied) -> None:
    proxied.raise_up("a")
    proxied.agent.parameters["max_connections"] = "1"
    assert proxied.agent.code("start") == OK
    with closing(proxied.connect()) as first:
        assert first.recv(1) == b"a"
        assert proxied.greeting() == ""
    until(lambda: proxied.greeting() == "a")


def test_a_silent_connection_is_closed_where_that_is_wanted(proxied: Proxied) -> None:
    proxied.raise_up("a")
    proxied.agent.parameters["idle_timeout"] = "200ms"
    assert proxied.agent.code("start") == OK
    with closing(proxied.connect()) as connection:
        assert connection.recv(1) == b"a"
        assert connection.recv(1) == b""


def test_a_port_that_is_taken_is_named(proxied: Proxied) -> None:
    with socket.create_server(("127.0.0.1", proxied.port)):
        done = proxied.agent.run("start")
    assert (done.returncode, "ddress already in use" in done.stderr) == (ERROR, True)
    assert proxied.agent.code("monitor") == NOT_RUNNING


def test_it_runs_as_another_user(proxied: Proxied) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs a process as another user")
    proxied.raise_up("a")
    proxied.agent.parameters["user"] = "nobody"
    proxied.agent.environment["HA_RSCTMP"] = place = subprocess.check_output(["mktemp", "-d"], text=True).strip()
    os.chmod(place, 0o755)
    proxied.agent.parameters.pop("log_file")
    try:
        assert proxied.agent.code("start") == OK
        assert proxied.greeting() == "a"
        assert proxied.agent.code("reload-agent") == OK
        assert proxied.agent.code("stop") == OK
    finally:
        subprocess.run(["rm", "-r", place], check=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"listen": "8080"}, {"listen": "127.0.0.1:x"}, {"backends": "  "}, {"backends": "db1:70000"},
        {"balance": "fair"}, {"check_interval": "0s"}, {"connect_timeout": "soon"}, {"max_connections": "0"},
        {"drain_seconds": "a while"}, {"listen": None},
    ],
)  # fmt: skip
def test_impossible_values_are_wrong_everywhere(proxied: Proxied, wrong: dict[str, str | None]) -> None:
    done = proxied.agent.run("start", **wrong)
    assert (done.returncode, next(iter(wrong)) in done.stderr) == (NOT_CONFIGURED, True)


def test_its_program_is_found_beside_the_library() -> None:
    assert (AGENTS.parent / "haclusterd" / "agents" / "tcp_proxy.py").is_file()
