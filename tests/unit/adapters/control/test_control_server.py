"""The control socket's server, on a real socket: who takes too much loses their place, and nobody else's."""

import asyncio
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from haclusterd.adapters.control import admission as control_admission
from haclusterd.adapters.control import server as control_server
from haclusterd.adapters.control.admission import (
    CONNECTIONS_MAX,
    CONNECTIONS_OF_OTHERS_MAX,
    CONNECTIONS_OF_USER_MAX,
    REQUEST_BYTES_OF_USER_MAX,
    WAITING_MAX,
    ClientRecognition,
    PeerCredentials,
    Places,
)
from haclusterd.adapters.control.client import ControlClient
from haclusterd.adapters.control.server import REQUESTS_OF_CONNECTION_MAX, Answer, ControlServer, HangUp
from haclusterd.entry_points import daemon
from haclusterd.model.records import replace
from haclusterd.model.requests import Options, Request, Response
from haclusterd.protocol.control import decode, encode
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.wire.framing import HEADER_BYTES
from tests.unit.runtime.desk import Desk


def somebody(uid: int) -> PeerCredentials:
    return PeerCredentials(1, uid, uid, f"user{uid}@here")


ROOT, ALICE, BOB, CAROL, DAVE = somebody(0), somebody(4001), somebody(4002), somebody(4003), somebody(4004)


def test_a_user_keeps_neither_another_nor_root_out() -> None:
    places = Places()
    assert [places.take(ALICE) for _ in range(CONNECTIONS_OF_USER_MAX)] == [None] * CONNECTIONS_OF_USER_MAX
    assert places.take(ALICE) == "too many connections of one user at a time"
    assert places.take(BOB) is None
    places.leave(ALICE)
    assert places.take(ALICE) is None


def test_all_others_together_leave_room_for_root() -> None:
    places = Places()
    for who in (ALICE, BOB, CAROL):
        for _ in range(CONNECTIONS_OF_USER_MAX):
            assert places.take(who) is None
    assert places.take(DAVE) == "too many connections at a time"
    room = CONNECTIONS_MAX - CONNECTIONS_OF_OTHERS_MAX
    assert [places.take(ROOT) for _ in range(room)] == [None] * room
    assert places.take(ROOT) == "too many connections at a time"


def test_what_is_begun_counts_until_it_has_ended() -> None:
    places = Places()
    places.take(ALICE)
    assert places.hold(ALICE, REQUEST_BYTES_OF_USER_MAX) is None
    assert places.hold(ALICE, 1) == "too much begun and not ended"
    assert places.hold(BOB, 1) is None
    assert places.hold(ALICE, -REQUEST_BYTES_OF_USER_MAX - 1) is None
    assert places.hold(ALICE, 1) is None


async def turns() -> None:
    """Let the loop do what it can do at once."""
    for _ in range(4):
        await asyncio.sleep(0)


async def test_a_place_that_is_left_soon_is_waited_for_by_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places()
    for _ in range(CONNECTIONS_OF_USER_MAX):
        assert places.take(ALICE) is None
    waiting = [asyncio.create_task(places.take_soon(ALICE)) for _ in range(WAITING_MAX + 1)]
    await turns()
    assert [each.done() for each in waiting] == [True] + [False] * WAITING_MAX, "the newest may be the one that lives"
    assert await waiting[0] == "too many connections of one user at a time"
    places.leave(ALICE)
    assert await waiting[1] is None
    monkeypatch.setattr(control_admission, "PLACE_WAIT_S", 0.01)
    assert await places.take_soon(BOB) is None
    for each in waiting[2:]:
        each.cancel()
    await asyncio.wait(waiting[2:])
    assert await places.take_soon(ALICE) == "too many connections of one user at a time"


async def test_who_has_most_waiting_takes_nobody_elses_turn() -> None:
    places = Places()
    for number in range(CONNECTIONS_OF_OTHERS_MAX):
        assert places.take(replace(ALICE, uid=5000 + number)) is None
    bob = asyncio.create_task(places.take_soon(BOB))
    await turns()
    crowd = [asyncio.create_task(places.take_soon(ALICE)) for _ in range(2 * WAITING_MAX)]
    await turns()
    assert not bob.done()
    assert [each.done() for each in crowd] == [True] * (WAITING_MAX + 1) + [False] * (WAITING_MAX - 1)
    places.leave(replace(ALICE, uid=5000))
    assert await bob is None
    for each in crowd:
        each.cancel()
    await asyncio.wait(crowd)


def not_awaited() -> None:
    raise AssertionError("it is answered")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Path]:
    def handle(request: Request, who: PeerCredentials, answer: Answer) -> HangUp:
        answer(Response(request.id, 0, data={"author": who.author}))
        return not_awaited

    path = tmp_path / "control.sock"
    serving = ControlServer(path, handle)
    await serving.start()
    yield path
    serving.stop()


async def asked(path: Path, frame: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(frame)
    answer = await reader.read(65536)
    writer.close()
    return answer


async def test_the_own_user_is_answered_by_name(server: Path) -> None:
    answer = decode((await asked(server, encode(Request("7", "status"))))[HEADER_BYTES:])
    assert isinstance(answer, Response)
    assert answer.data["author"].endswith(f"@{socket.gethostname()}")


def frame_of(payload: bytes) -> bytes:
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


async def test_a_request_with_a_fraction_is_answered_with_its_place_and_the_next_one_too(server: Path) -> None:
    with_a_fraction = b'{"v":1,"kind":"request","id":"7","verb":"status","arguments":{"scores":[1,0.5]}}'
    reader, writer = await asyncio.open_unix_connection(str(server))
    writer.write(frame_of(with_a_fraction) + encode(Request("8", "status")))
    answers = []
    for _ in range(2):
        size = int.from_bytes(await reader.readexactly(HEADER_BYTES), "big")
        answers.append(decode(await reader.readexactly(size)))
    writer.close()
    refused, answered = answers
    assert isinstance(refused, Response)
    assert refused.id == "7"
    assert refused.exit == ExitStatus.BAD_VALUE
    assert refused.reports[0].message == "request: arguments.scores[1]: 0.5 is not a whole number"
    assert isinstance(answered, Response)
    assert (answered.id, answered.exit) == ("8", 0)


async def test_a_client_that_comes_right_after_a_crowd_has_gone_is_answered(server: Path) -> None:
    """The daemon accepts it before it has seen that the others have ended."""

    def crowd(size: int) -> list[socket.socket]:
        links = [socket.socket(socket.AF_UNIX) for _ in range(size)]
        for link in links:
            link.settimeout(0)
            link.connect(str(server))
        return links

    staying = crowd(60)
    await asked(server, encode(Request("6", "status")))  # Thus they are accepted.
    for gone in crowd(90):
        gone.close()
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(0)
    link.connect(str(server))
    link.send(encode(Request("7", "status")))
    answer = decode((await asyncio.get_running_loop().sock_recv(link, 65536))[HEADER_BYTES:])
    for each in (link, *staying):
        each.close()
    assert isinstance(answer, Response)
    assert answer.exit == 0


async def test_what_is_no_request_ends_its_connection(server: Path) -> None:
    assert await asked(server, frame_of(b'{"kind":"request"')) == b""


async def test_what_would_take_the_loop_for_seconds_ends_its_connection(server: Path) -> None:
    """A few bytes for each value: 8 MiB of them are minutes on a busy machine, and such a daemon is fenced."""
    head = b'{"v":1,"kind":"request","id":"7","verb":"status","arguments":{'
    many_values = head + b'"ids":[' + b"[]," * 2_000_000 + b"0]}}"
    named_twice = head + b"".join(b'"%d":0,' % number for number in range(700_000)) + b'"699999":0}}'
    began = time.process_time()
    assert await asked(server, frame_of(many_values)) == b""
    assert await asked(server, frame_of(named_twice)) == b""
    assert time.process_time() - began < 3


async def test_the_socket_is_closed_to_all_but_its_group(server: Path) -> None:
    assert stat.S_IMODE(os.stat(server).st_mode) == 0o660


async def test_a_request_that_does_not_end_ends_its_connection(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_server, "REQUEST_TIMEOUT_S", 0.2)
    assert await asked(server, b"\x00\x00\x10\x00{") == b""


async def test_a_quiet_connection_is_kept(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`crm_mon` and completion keep theirs open between requests."""
    monkeypatch.setattr(control_server, "REQUEST_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_unix_connection(str(server))
    for number in range(2):
        writer.write(encode(Request(str(number), "status")))
        assert await reader.readexactly(HEADER_BYTES)
        size = await asyncio.wait_for(reader.read(65536), 5)
        assert size
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.3)
    writer.close()


async def test_a_name_service_that_does_not_answer_lets_nobody_in_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()

    def look_up(uid: int) -> tuple[str, bool]:
        answers.wait(0 if uid == os.geteuid() else 20)
        return control_admission._Known(f"user{uid}@here", is_member=True)

    monkeypatch.setattr(control_admission, "_look_up", look_up)
    monkeypatch.setattr(control_admission, "LOOK_UP_TIMEOUT_S", 0.1)
    recognition = ClientRecognition()
    assert (await recognition.identify(ALICE))[1] == "the name service does not answer"
    own = somebody(os.geteuid())
    assert await recognition.identify(own) == (own, None)
    answers.set()
    recognition.close()


async def test_who_waits_for_the_name_service_has_a_place_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise as many as like could wait."""
    monkeypatch.setattr(ClientRecognition, "recognise", lambda *_: ALICE)
    answers, asked = asyncio.Event(), 0

    async def identify(_: ClientRecognition, who: PeerCredentials) -> tuple[PeerCredentials, str | None]:
        nonlocal asked
        asked += 1
        await answers.wait()
        return who, None

    monkeypatch.setattr(ClientRecognition, "identify", identify)
    path = tmp_path / "control.sock"
    serving = ControlServer(path, lambda *_: not_awaited)
    await serving.start()
    connections = [await asyncio.open_unix_connection(str(path)) for _ in range(CONNECTIONS_OF_USER_MAX + 1)]
    assert await asyncio.wait_for(connections[-1][0].read(1), 10) == b""
    assert asked == CONNECTIONS_OF_USER_MAX
    answers.set()
    serving.stop()
    for _, writer in connections:
        writer.close()


class Unanswered:
    """What carries out requests and answers none."""

    def __init__(self) -> None:
        self.begun = 0
        self.turns: list[int] = []
        """How many were begun when the loop had its turn."""
        self.hung_up = asyncio.Event()
        self.hang_ups = 0

    def handle(self, _request: Request, _who: PeerCredentials, _answer: Answer) -> HangUp:
        self.begun += 1
        asyncio.get_running_loop().call_soon(lambda: self.turns.append(self.begun))
        return self._hang_up

    def _hang_up(self) -> None:
        self.hang_ups += 1
        if self.hang_ups == REQUESTS_OF_CONNECTION_MAX:
            self.hung_up.set()


async def test_a_connection_has_so_many_requests_which_end_with_it_and_the_loop_has_its_turn_between(
    tmp_path: Path,
) -> None:
    work = Unanswered()
    serving = ControlServer(tmp_path / "control.sock", work.handle)
    await serving.start()
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
    writer.write(b"".join(encode(Request(str(number), "status")) for number in range(REQUESTS_OF_CONNECTION_MAX + 1)))
    size = int.from_bytes(await asyncio.wait_for(reader.readexactly(HEADER_BYTES), 5), "big")
    refused = decode(await reader.readexactly(size))
    assert isinstance(refused, Response)
    assert (refused.id, refused.exit) == (str(REQUESTS_OF_CONNECTION_MAX), ExitStatus.TRY_AGAIN)
    assert work.turns[:3] == [1, 2, 3]
    assert work.hang_ups == 0
    writer.close()
    await asyncio.wait_for(work.hung_up.wait(), 5)
    assert work.begun == REQUESTS_OF_CONNECTION_MAX
    serving.stop()


NOBODY = 65534


def codes_for_another_user(path: Path, requests: tuple[Request, ...]) -> list[str]:
    """Ask as another user of this machine, in a process of their own; return the codes of the reports."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        client = ControlClient(str(path))
        reports = [",".join(each.code for each in client.call(request, lambda _: None).reports) for request in requests]
        os.write(sending, "\n".join(reports).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as stream:
        codes = stream.read()
    os.waitpid(pid, 0)
    return codes.split("\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="being another user is root's")
async def test_another_user_of_the_control_group_operates_and_names_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names an agent and its parameters is root on every node."""
    known = control_admission._Known("eve@here", is_member=True)
    monkeypatch.setattr(control_admission, "_look_up", lambda uid: known)
    desk = Desk()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o711)
        path = Path(directory) / "control.sock"
        serving = ControlServer(path, partial(daemon._handle, desk.control))
        await serving.start()
        path.chmod(0o666)
        statement = ["primitive", "x", "ocf:haclusterd:exec", "params", "command=id"]
        requests = (
            Request("1", "node.show"),
            Request("2", "configure.statement", {"words": statement}),
            Request("3", "resource.setting", {"resource": "x", "section": "params", "action": "set", "name": "a"}),
            Request("4", "node.standby", {"node": "n2", "lifetime": "reboot"}, Options(dry_run=True)),
        )
        codes = await asyncio.get_running_loop().run_in_executor(None, codes_for_another_user, path, requests)
        serving.stop()
    assert codes[:3] == ["", "NOT_PERMITTED", "NOT_PERMITTED"]
    assert "DRY_RUN" in codes[3]


@pytest.mark.skipif(os.geteuid() != 0, reason="being another user is root's")
async def test_the_user_of_the_api_does_nothing_but_what_a_token_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A REST process that was taken over may do no more than the tokens that it is shown."""
    known = control_admission._Known("haclusterd-api@here", is_gateway=True)
    monkeypatch.setattr(control_admission, "_look_up", lambda uid: known)
    desk = Desk()
    desk.accept_token("viewer", "hacl_watcher")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o711)
        path = Path(directory) / "control.sock"
        serving = ControlServer(path, partial(daemon._handle, desk.control))
        await serving.start()
        path.chmod(0o666)
        standby = {"node": "n2", "lifetime": "reboot"}
        requests = (
            Request("1", "node.show"),
            Request("2", "node.show", credential="hacl_guessed"),
            Request("3", "node.show", credential="hacl_watcher"),
            Request("4", "node.standby", standby, Options(dry_run=True), credential="hacl_watcher"),
        )
        codes = await asyncio.get_running_loop().run_in_executor(None, codes_for_another_user, path, requests)
        serving.stop()
    assert codes == ["NOT_AUTHENTICATED", "NOT_AUTHENTICATED", "", "NOT_PERMITTED"]
