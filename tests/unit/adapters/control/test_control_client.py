"""The client of the control socket, against a real socket: every way an answer can fail to come is reported."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haclusterd.adapters.control import client as control_client
from haclusterd.adapters.control.client import ControlClient
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import decode, encode
from haclusterd.wire.framing import HEADER_BYTES

Serve = Callable[[socket.socket], None]


@contextmanager
def listening(path: Path, *serves: Serve) -> Iterator[str]:
    """Accept one connection after the other, and let each be served."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            for serve in serves:
                connection, _ = listener.accept()
                with connection:
                    serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield str(path)
        finally:
            thread.join(10)
            assert not thread.is_alive()


def receive(connection: socket.socket) -> Request:
    size = int.from_bytes(connection.recv(HEADER_BYTES, socket.MSG_WAITALL), "big")
    request = decode(connection.recv(size, socket.MSG_WAITALL))
    assert isinstance(request, Request)
    return request


def no_progress(_news: Progress) -> None:
    raise AssertionError


def ask(path: str) -> Response:
    client = ControlClient(path)
    try:
        return client.call(Request("1", "status"), no_progress)
    finally:
        client.close()


def codes(response: Response) -> list[str]:
    return [reports.code for reports in response.reports]


def test_progress_and_answer(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        request = receive(connection)
        wire = encode(Progress(request.id, "web to run", 1000)) + encode(Response("other", 1))
        wire += encode(Response(request.id, 3, data={"verb": request.verb}))
        for byte in wire:
            connection.sendall(bytes([byte]))

    news: list[Progress] = []
    with listening(tmp_path / "s", serve) as path:
        client = ControlClient(path)
        response = client.call(Request("9", "status"), news.append)
        client.close()
    assert response == Response("9", 3, data={"verb": "status"})
    assert news == [Progress("9", "web to run", 1000)]


def test_one_connection_serves_many_requests(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        for _ in range(3):
            connection.sendall(encode(Response(receive(connection).id, 0)))

    with listening(tmp_path / "s", serve) as path:
        client = ControlClient(path)
        answers = [client.call(Request(str(number), "status"), no_progress).id for number in range(3)]
        client.close()
    assert answers == ["0", "1", "2"]


def test_after_a_broken_connection_it_connects_again(tmp_path: Path) -> None:
    def hang_up(connection: socket.socket) -> None:
        receive(connection)

    def serve(connection: socket.socket) -> None:
        connection.sendall(encode(Response(receive(connection).id, 0)))

    with listening(tmp_path / "s", hang_up, serve) as path:
        client = ControlClient(path)
        first, second = (client.call(Request(str(number), "status"), no_progress) for number in (1, 2))
        client.close()
    assert (codes(first), first.exit) == (["DISCONNECTED"], 102)
    assert second == Response("2", 0)


@pytest.mark.parametrize(
    ("answer", "exit_status"),
    [(b"\xff\xff\xff\xff", 65), (b"\0\0\0\x01x", 65), (encode(Response("1", 0))[:-1], 102)],
)
def test_what_cannot_be_read(tmp_path: Path, answer: bytes, exit_status: int) -> None:
    def serve(connection: socket.socket) -> None:
        receive(connection)
        connection.sendall(answer)

    with listening(tmp_path / "s", serve) as path:
        assert ask(path).exit == exit_status


def test_a_daemon_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_client, "SILENCE_TIMEOUT_S", 0.1)
    given_up = threading.Event()

    def serve(connection: socket.socket) -> None:
        receive(connection)
        given_up.wait(10)

    with listening(tmp_path / "s", serve) as path:
        response = ask(path)
        given_up.set()
    assert (codes(response), response.exit) == (["OUTCOME_UNKNOWN"], 112)


def test_a_request_that_no_daemon_takes_is_not_sent(tmp_path: Path) -> None:
    client = ControlClient(str(tmp_path / "s"))
    response = client.call(Request("1", "resource.cleanup", {"resources": ["a"] * 60_000}), no_progress)
    assert codes(response) == ["TOO_LARGE"]


def test_nobody_listens(tmp_path: Path) -> None:
    response = ask(str(tmp_path / "s"))
    assert (codes(response), response.exit) == (["NOT_RUNNING"], 69)
    assert "HACLUSTERD_SOCKET" in response.reports[0].remedy


def test_a_socket_whose_daemon_has_died(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
    assert codes(ask(str(tmp_path / "s"))) == ["NOT_RUNNING"]


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    assert codes(ask(str(tmp_path / ("s" * 200)))) == ["NOT_RUNNING"]
