"""The daemon's end of the pacer, without a pacer: what was said before one comes is in its page before it counts."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.pacer import link as pacer_link
from haclusterd.adapters.pacer.link import PacerLink
from haclusterd.adapters.pacer.page_file import PAGE_NAME, SOCKET_NAME, make_page, open_page
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, HeldLease, PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import replace
from haclusterd.protocol import pacer_socket
from haclusterd.protocol.pacer_page import PAGE_SIZE
from haclusterd.wire.framing import FrameBuffer
from tests.unit.adapters.network.name_server import NameServer

N1, N2 = NodeName("n1"), NodeName("n2")
BOTH = (N1, N2)
OWN = Incarnation("boot", "00000000000000a1")
LOST, LOST_LATER = Incarnation("boot", "00000000000000b1"), Incarnation("boot", "00000000000000b2")
SETTINGS = PacerSettings(
    N1, OWN, is_voter=True, listen=(), peers=(), node_timeout_ms=2_000, brain_timeout_ms=10_000
)
NEVER_JOINED = Incarnation("never-joined", "0" * 16)


def new_link(directory: Path) -> PacerLink:
    loop = asyncio.get_running_loop()
    return PacerLink(directory, BoottimeClock(loop), loop)


class Pacer:
    """The listening end, as far as a link can tell."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[pacer_socket.Message] = asyncio.Queue()
        self.writer: asyncio.StreamWriter | None = None
        self.ended = 0
        self.begun = 0

    @asynccontextmanager
    async def serving(self, directory: Path, link: PacerLink) -> AsyncIterator[None]:
        """Serve; then stop the link and wait until its connections have ended on both sides."""
        async with await asyncio.start_unix_server(self.take, directory / SOCKET_NAME):
            yield
            link.stop()
            while self.ended < self.begun:
                await asyncio.sleep(0.001)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.begun += 1
        frames = FrameBuffer(pacer_socket.MAXIMUM_SIZE)
        while received := await reader.read(65536):
            for payload in frames.feed(received):
                self.received.put_nowait(pacer_socket.decode(payload))
        writer.close()
        await writer.wait_closed()
        self.ended += 1


async def test_without_a_pacer_there_is_no_lease_and_nothing_fails(tmp_path: Path) -> None:
    link = new_link(tmp_path)
    link.start(SETTINGS, lambda report: None)
    link.stamp_main()
    link.stamp_raft()
    link.set_empty(is_empty=True)
    link.withdraw(N2, LOST)
    link.withdrawals_known()
    assert (link.lease_until(), link.report()) == (NO_LEASE, None)
    link.stop()


async def test_start_revokes_what_an_earlier_brain_said_at_once(tmp_path: Path) -> None:
    page = make_page(tmp_path).page
    page.withdraw(N2)
    page.say_known("00000000000000a0")
    link = new_link(tmp_path)
    link.start(SETTINGS, lambda report: None)
    assert page.read(BOTH).known_by is None
    link.withdraw(N1, NEVER_JOINED)
    link.withdrawals_known()
    assert (page.read(BOTH).known_by, page.read(BOTH).withdrawn) == (OWN.token, {N1})
    link.stop()


async def test_a_pacer_that_comes_later_gets_all_that_was_said(tmp_path: Path) -> None:
    link = new_link(tmp_path)
    link.start(SETTINGS, lambda report: None)
    link.withdraw(N2, LOST)
    link.set_empty(is_empty=True)
    link.withdrawals_known()
    page = make_page(tmp_path).page
    assert page.read(BOTH).known_by is None
    pacer = Pacer()
    async with pacer.serving(tmp_path, link):
        assert await pacer.received.get() == SETTINGS
        assert (page.read(BOTH).known_by, page.read(BOTH).withdrawn, page.read(BOTH).is_empty) == (
            OWN.token,
            {N2},
            True,
        )
        page.publish_lease(HeldLease(OWN.token, Instant(900)))
        assert link.lease_until() == 900


async def test_the_pacer_gets_numbers_for_names_and_again_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacer_link, "NAMES_EVERY_S", 0.01)
    server = NameServer(monkeypatch)
    server.names = {"n1.example": ["127.0.1.1"], "n2.example": ["192.0.2.2"]}
    make_page(tmp_path)
    addresses = (("2001:db8::2", 7100), ("n2.example", 7100), ("n9.example", 7100))
    peer = PeerAddress(N2, addresses, b"k" * 32, is_voter=True)
    named = replace(SETTINGS, listen=(("127.0.0.1", 7100), ("n1.example", 7100)), peers=(peer,))
    pacer = Pacer()
    link = new_link(tmp_path)

    async def until_received(numeric: str) -> None:
        wanted = (("2001:db8::2", 7100), (numeric, 7100), ("n9.example", 7100))
        listen = (("127.0.0.1", 7100), ("0.0.0.0", 7100))
        while True:
            received = await pacer.received.get()
            assert isinstance(received, PacerSettings)
            if received == replace(named, listen=listen, peers=(replace(peer, addresses=wanted),)):
                return

    async with asyncio.timeout(10), pacer.serving(tmp_path, link):
        link.start(named, lambda report: None)
        await until_received("192.0.2.2")
        server.names["n2.example"] = ["192.0.2.22"]
        await until_received("192.0.2.22")


async def test_a_node_is_withdrawn_as_long_as_one_of_its_incarnations_is(tmp_path: Path) -> None:
    page = make_page(tmp_path).page
    link = new_link(tmp_path)
    link.start(SETTINGS, lambda report: None)
    link.withdraw(N2, LOST)
    link.withdraw(N2, LOST_LATER)
    link.reinstate(N2, LOST)
    assert page.read(BOTH).withdrawn == {N2}
    link.reinstate(N2, LOST_LATER)
    link.reinstate(N2, LOST_LATER)
    assert page.read(BOTH).withdrawn == set()
    link.stop()


async def test_a_new_incarnation_of_the_daemon_has_no_lease_and_knows_what_is_withdrawn(tmp_path: Path) -> None:
    page = make_page(tmp_path).page
    link = new_link(tmp_path)
    link.start(SETTINGS, lambda report: None)
    link.withdraw(N2, LOST)
    link.withdrawals_known()
    page.publish_lease(HeldLease(OWN.token, Instant(900)))
    assert link.lease_until() == 900
    again = Incarnation("boot", "00000000000000a2")
    link.configure(replace(SETTINGS, incarnation=again))
    assert link.lease_until() == NO_LEASE
    assert (page.read(BOTH).known_by, page.read(BOTH).withdrawn) == (again.token, {N2})
    link.stop()


async def test_settings_reports_and_refusals_go_over_the_socket(tmp_path: Path) -> None:
    make_page(tmp_path)
    pacer = Pacer()
    received: asyncio.Queue[PacerReport] = asyncio.Queue()
    link = new_link(tmp_path)
    async with pacer.serving(tmp_path, link):
        link.start(SETTINGS, received.put_nowait)
        assert await pacer.received.get() == SETTINGS
        link.configure(replace(SETTINGS, node_timeout_ms=3_000))
        assert await pacer.received.get() == replace(SETTINGS, node_timeout_ms=3_000)
        assert pacer.writer is not None
        report = PacerReport(Instant(5), None, (), ("a port is in use",))
        pacer.writer.write(pacer_socket.encode(report))
        assert await received.get() == link.report() == report
        pacer.writer.write(pacer_socket.encode(pacer_socket.Refusal("version 9")))
        assert "version 9" in (await received.get()).errors[0]
        pacer.writer.close()
        assert await pacer.received.get() == replace(SETTINGS, node_timeout_ms=3_000)


async def test_the_newest_report_is_known_before_the_loop_gets_to_it(tmp_path: Path) -> None:
    make_page(tmp_path)
    pacer = Pacer()
    received: asyncio.Queue[PacerReport] = asyncio.Queue()
    link = new_link(tmp_path)
    async with pacer.serving(tmp_path, link):
        link.start(SETTINGS, received.put_nowait)
        await pacer.received.get()
        assert pacer.writer is not None
        for moment in range(1, 50):
            pacer.writer.write(pacer_socket.encode(PacerReport(Instant(moment), None, ())))
        report = link.report()
        assert report is not None
        assert report.reported_at == 49
        assert (await received.get(), received.empty()) == (report, True)


async def test_an_error_of_the_brain_at_a_report_is_not_swallowed(tmp_path: Path) -> None:
    make_page(tmp_path)
    pacer = Pacer()
    link = new_link(tmp_path)
    failures: asyncio.Queue[object] = asyncio.Queue()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.put_nowait(context.get("exception")))

    def raise_it(report: PacerReport) -> None:
        raise AssertionError("a programmer's error")

    async with pacer.serving(tmp_path, link):
        link.start(SETTINGS, raise_it)
        await pacer.received.get()
        assert pacer.writer is not None
        pacer.writer.write(pacer_socket.encode(PacerReport(Instant(5), None, ())))
        assert "a programmer's error" in str(await failures.get())


async def test_withdrawals_from_the_raft_thread_survive_a_change_of_page(tmp_path: Path) -> None:
    make_page(tmp_path)
    pacer = Pacer()
    link = new_link(tmp_path)
    nodes = tuple(NodeName(f"x{number}") for number in range(200))

    def withdraw_all() -> None:
        for node in nodes:
            link.withdraw(node, LOST)
        link.withdrawals_known()

    async with pacer.serving(tmp_path, link):
        link.start(SETTINGS, lambda report: None)
        await pacer.received.get()
        thread = threading.Thread(target=withdraw_all)
        thread.start()
        (tmp_path / PAGE_NAME).unlink()
        page = make_page(tmp_path).page
        assert pacer.writer is not None
        pacer.writer.close()
        await pacer.received.get()
        await asyncio.get_running_loop().run_in_executor(None, thread.join)
        assert page.read(nodes).withdrawn == set(nodes)
        assert page.read(nodes).known_by == OWN.token


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * PAGE_SIZE])
def test_a_page_of_another_layout_is_replaced_and_not_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / PAGE_NAME
    path.write_bytes(content)
    with path.open("rb") as old:
        assert open_page(tmp_path) is None
        made = make_page(tmp_path)
        assert old.read() == content
    assert made.page.is_formatted()
    assert made.is_in_place()
    found = open_page(tmp_path)
    assert found is not None
    assert found.identity == made.identity
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    assert not made.is_in_place()


def test_a_page_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"\0" * PAGE_SIZE)
    (tmp_path / PAGE_NAME).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        open_page(tmp_path)
