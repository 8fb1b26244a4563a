"""Real pacers on loopback, with the daemon's real link to them: leases, silence, stops, kills, forgeries."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, Heartbeat, Receipt
from haclusterd.model.records import replace
from haclusterd.protocol import heartbeat as protocol
from tests.processes.pacer_nodes import N1, N2, N3, NAMES, Node, boottime, incarnation, make_nodes, until

pytestmark = pytest.mark.processes


@asynccontextmanager
async def cluster(
    directory: Path, *, node_timeout_ms: int = 1_000, brain_timeout_ms: int = 2_000, only: tuple[NodeName, ...] = NAMES
) -> AsyncIterator[dict[NodeName, Node]]:
    """Three configured nodes, of which `only` these run."""
    nodes = make_nodes(directory, node_timeout_ms, brain_timeout_ms)
    async with AsyncExitStack() as stack:
        for name in only:
            stack.callback(nodes[name].end)
            nodes[name].start_pacer()
            nodes[name].start_brain()
        yield nodes


@asynccontextmanager
async def working_cluster(
    directory: Path, node_timeout_ms: int = 1_000, brain_timeout_ms: int = 2_000
) -> AsyncIterator[dict[NodeName, Node]]:
    """Three nodes that hold their leases and hear each other's daemons."""
    async with cluster(directory, node_timeout_ms=node_timeout_ms, brain_timeout_ms=brain_timeout_ms) as nodes:
        await until(lambda: all(node.has_lease() for node in nodes.values()))
        await until(
            lambda: all(
                node.hears(peer) and node.sees(peer).brain is BrainState.ALIVE
                for node in nodes.values()
                for peer in NAMES
                if peer != node.name
            )
        )
        yield nodes


async def test_leases_appear_and_everybody_hears_everybody(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        await until(lambda: set(nodes[N1].sees(N2).hears) == {N1, N3})
        assert nodes[N1].sees(N2).incarnation == incarnation(N2)
        assert nodes[N1].sees(N2).hears_token[N3] == incarnation(N3).token
        assert nodes[N1].reports[-1].errors == ()


async def test_two_of_three_hold_the_lease_and_one_alone_does_not(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N3].end()
        await until(lambda: (nodes[N1].sees(N3).age_ms or 0) >= 1_000)
        await nodes[N1].renewal()
        await nodes[N2].renewal()
        nodes[N2].end()
        await until(lambda: not nodes[N1].has_lease())


async def test_a_stopped_pacer_loses_its_lease_and_restarts_its_silence_clocks(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N1].signal(signal.SIGSTOP)
        await until(lambda: not nodes[N1].has_lease())
        await until(lambda: (nodes[N2].sees(N1).age_ms or 0) >= 1_000)
        await until(lambda: nodes[N3].sees(N2).hears[N1] >= 1_000)
        await nodes[N2].renewal()
        continued_at = boottime()
        nodes[N1].signal(signal.SIGCONT)
        await until(nodes[N1].has_lease)
        await until(lambda: (nodes[N1].reports[-1].stalled_at or 0) >= continued_at)
        stalled = next(report for report in nodes[N1].reports if (report.stalled_at or 0) >= continued_at)
        since_stall_ms = stalled.reported_at - (stalled.stalled_at or 0)
        assert all((node.age_ms or 0) <= since_stall_ms for node in stalled.nodes)
        await until(lambda: (nodes[N2].sees(N1).age_ms or 0) < 1_000)


async def test_a_brain_that_is_gone_or_hung_is_reported_and_heartbeats_go_on(tmp_path: Path) -> None:
    async with working_cluster(tmp_path, brain_timeout_ms=1_000) as nodes:
        nodes[N1].is_stamping = False
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.HUNG)
        nodes[N1].is_stamping = True
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.ALIVE)
        nodes[N1].link.stop()
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.RESTARTING)
        await until(lambda: nodes[N2].sees(N1).brain_since_ms >= 1_500)
        heard_at = nodes[N2].sees(N1).heard_at or 0
        await until(lambda: (nodes[N2].sees(N1).heard_at or 0) > heard_at)
        await nodes[N2].renewal()
        async with nodes[N1].pacer_stopped():
            nodes[N1].restart_brain(2)
            assert not nodes[N1].has_lease()
        await until(nodes[N1].has_lease)
        await until(lambda: nodes[N2].sees(N1).incarnation == incarnation(N1, 2))
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.ALIVE)


async def test_a_daemon_that_begins_a_new_life_in_place_gets_a_new_lease(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        async with nodes[N1].pacer_stopped():
            nodes[N1].link.configure(replace(nodes[N1].settings, incarnation=incarnation(N1, 2)))
            assert not nodes[N1].has_lease()
        await until(nodes[N1].has_lease)
        await until(lambda: nodes[N2].sees(N1).incarnation == incarnation(N1, 2))
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.ALIVE)


async def test_after_a_standstill_of_the_brain_alone_its_report_is_not_from_before(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        began = boottime()
        while boottime() < began + 2_500:
            pass
        report = nodes[N1].link.report()
        assert report is not None
        # Nor is it the first of those that came meanwhile. How new the newest is, is the pacers' affair.
        assert report.reported_at > began + 500
        assert all((node.heard_at or 0) > began + 500 for node in report.nodes)


async def test_a_killed_pacer_is_started_again_without_the_lease_ending(tmp_path: Path) -> None:
    async with working_cluster(tmp_path, node_timeout_ms=5_000) as nodes:
        nodes[N1].signal(signal.SIGKILL)
        assert nodes[N1].process is not None
        nodes[N1].process.wait()
        killed_at = boottime()
        nodes[N1].start_pacer()
        held: list[bool] = []
        await until(lambda: held.append(nodes[N1].has_lease()) or nodes[N1].reports[-1].reported_at > killed_at)
        renewed = nodes[N1].link.lease_until()
        await until(lambda: held.append(nodes[N1].has_lease()) or nodes[N1].link.lease_until() > renewed)
        assert all(held)


async def test_a_pacer_that_is_renewed_while_its_brain_is_away_sends_on(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N1].link.stop()
        await until(lambda: nodes[N2].sees(N1).brain is not BrainState.ALIVE)
        process = nodes[N1].process
        assert process is not None
        nodes[N1].signal(signal.SIGHUP)
        environment = Path(f"/proc/{process.pid}/environ")
        await until(lambda: b"HACLUSTERD_PACER_SETTINGS=" in environment.read_bytes(), "the new image")
        renewed_at = boottime()
        await until(lambda: (nodes[N2].sees(N1).heard_at or 0) > renewed_at + 1_000, "its heartbeats, without a brain")


async def test_a_withdrawn_node_loses_its_lease_until_it_is_reinstated(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N2].link.withdraw(N1, incarnation(N1))
        nodes[N3].link.withdraw(N1, incarnation(N1))
        withdrawn_at = boottime()
        await until(lambda: not nodes[N1].has_lease())
        assert nodes[N1].link.lease_until() <= withdrawn_at + 1_000
        nodes[N1].restart_brain(2)
        await until(lambda: nodes[N2].sees(N1).incarnation == incarnation(N1, 2))
        heard_at = nodes[N2].sees(N1).heard_at or 0
        await until(lambda: (nodes[N2].sees(N1).heard_at or 0) > heard_at + 500)
        assert not nodes[N1].has_lease()
        nodes[N2].link.reinstate(N1, incarnation(N1))
        await until(nodes[N1].has_lease)


async def test_a_pacer_whose_brain_has_not_vouched_echoes_nobody(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N3].end()
        nodes[N2].link.stop()
        nodes[N2].link = nodes[N2].new_link()
        nodes[N2].settings = replace(nodes[N2].settings, incarnation=incarnation(N2, 2))
        nodes[N2].link.start(nodes[N2].settings, nodes[N2].reports.append)
        await until(lambda: not nodes[N1].has_lease())
        nodes[N2].link.withdrawals_known()
        await until(nodes[N1].has_lease)


async def test_a_page_that_is_taken_away_ends_the_pacer_and_a_new_one_gets_all_again(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        nodes[N2].link.withdraw(N1, incarnation(N1))
        nodes[N3].link.withdraw(N1, incarnation(N1))
        (nodes[N2].directory / "pacer.page").unlink()
        process = nodes[N2].process
        assert process is not None
        await until(lambda: process.poll() == 1)
        nodes[N2].start_pacer()
        restarted_at = boottime()
        await until(lambda: nodes[N2].reports[-1].reported_at > restarted_at)
        await until(nodes[N2].has_lease)
        await until(lambda: not nodes[N1].has_lease())


async def test_a_port_in_use_is_reported_and_tried_again(tmp_path: Path) -> None:
    async with cluster(tmp_path, only=(N1,)) as nodes:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as squatter:
        squatter.bind(nodes[N1].settings.listen[0])
        node = Node(N1, nodes[N1].directory, nodes[N1].settings)
        try:
            node.start_pacer()
            node.start_brain()
            await until(lambda: node.reports and "Address already in use" in str(node.reports[-1].errors))
            squatter.close()
            await until(lambda: not any("listen" in error for error in node.reports[-1].errors))
        finally:
            node.end()


class ScriptedPeer:
    """n3's pacer, played by the test with the true key."""

    def __init__(self, nodes: dict[NodeName, Node]) -> None:
        self.subject = nodes[N1]
        own = next(peer for peer in self.subject.settings.peers if peer.name == N3)
        self.key = own.key
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(own.addresses[0])
        self.newest: Heartbeat | None = None
        self.beats = 0

    def read(self) -> bool:
        with suppress(BlockingIOError):
            while True:
                heard = protocol.decode(self.socket.recv(2_000), N3, {N1: self.key})
                assert isinstance(heard, Heartbeat)
                self.newest = heard
        return self.newest is not None

    def make(self, sent_at: int, number: int = 1, key: bytes | None = None, **changes: Any) -> bytes:
        assert self.newest is not None
        seen = Receipt(self.newest.incarnation.token, self.newest.sent_at)
        plain = Heartbeat(
            N3, N1, incarnation(N3, number), Instant(sent_at), BrainState.ALIVE, 0, echo=seen, seen=seen, heard=()
        )
        return protocol.encode(plain._replace(**changes), key or self.key)

    def send(self, datagram: bytes) -> None:
        self.socket.sendto(datagram, self.subject.settings.listen[0])

    def beat(self, number: int = 1) -> bytes:
        """Send the next heartbeat, and return it; a lease that comes of it lasts only if it echoes the newest."""
        self.read()
        self.beats += 1
        datagram = self.make(self.beats, number)
        self.send(datagram)
        return datagram

    def is_taken(self) -> bool:
        """Tell whether the pacer has answered the newest one, so that none is under way."""
        self.read()
        seen = None if self.newest is None else self.newest.seen
        return seen is not None and seen.sent_at == self.beats


async def test_forged_and_repeated_datagrams_are_no_sign_of_life(tmp_path: Path) -> None:
    async with cluster(tmp_path, only=(N1,)) as nodes:
        peer = ScriptedPeer(nodes)
        with peer.socket:
            await until(peer.read)
            sent: list[bytes] = []
            await until(lambda: sent.append(peer.beat()) or nodes[N1].has_lease())
            await until(peer.is_taken)
            await until(lambda: (nodes[N1].sees(N3).age_ms or 0) > 300)
            heard_at = nodes[N1].sees(N3).heard_at
            after = peer.beats + 1
            bad = [
                sent[0],
                sent[-1],
                peer.make(after, key=b"x" * 32),
                peer.make(after, number=7, key=b"x" * 32),
                peer.make(after, receiver=N2),
                peer.make(after, sender=N2),
                peer.make(after)[:-1],
                b"noise",
                b"",
            ]

            def is_silent() -> bool:
                for datagram in bad:
                    peer.send(datagram)
                return not nodes[N1].has_lease() and (nodes[N1].sees(N3).age_ms or 0) > 1_000

            await until(is_silent)
            assert nodes[N1].sees(N3).heard_at == heard_at
            await until(lambda: peer.beat() and nodes[N1].has_lease())


async def test_an_old_lifes_recordings_do_not_displace_the_new_life(tmp_path: Path) -> None:
    async with cluster(tmp_path, only=(N1,)) as nodes:
        peer = ScriptedPeer(nodes)
        with peer.socket:
            await until(peer.read)
            recorded = [peer.make(sent_at) for sent_at in range(1, 20)]
            peer.send(recorded[0])
            await until(lambda: nodes[N1].hears(N3))
            # Only an answer to what was sent since the old life was heard proves the new one.
            await until(lambda: peer.beat(number=2) and nodes[N1].sees(N3).incarnation == incarnation(N3, 2))
            for datagram in recorded[1:]:
                peer.send(datagram)
            reported = len(nodes[N1].reports)
            await until(lambda: len(nodes[N1].reports) > reported + 3)
            assert nodes[N1].sees(N3).incarnation == incarnation(N3, 2)


async def test_a_second_pacer_is_refused_and_the_first_not_disturbed(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        second = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "haclusterd.entry_points.pacer",
            "--runtime-directory",
            str(nodes[N1].directory),
            stderr=subprocess.PIPE,
        )
        _, errors = await second.communicate()
        assert second.returncode == 3
        assert b"another haclusterd-pacer serves" in errors
        await nodes[N1].renewal()


async def test_it_makes_the_runtime_directory_as_the_daemon_does(tmp_path: Path) -> None:
    directory = tmp_path / "run" / "haclusterd"
    pacer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "haclusterd.entry_points.pacer", "--runtime-directory", str(directory), umask=0o022
    )
    await until(lambda: (directory / "pacer.lock").exists() or pacer.returncode is not None)
    assert pacer.returncode is None
    assert directory.stat().st_mode & 0o777 == 0o751
    pacer.terminate()
    await pacer.wait()


async def test_sigterm_ends_it_and_leaves_the_page(tmp_path: Path) -> None:
    async with cluster(tmp_path, only=(N1,)) as nodes:
        await until(lambda: nodes[N1].reports)
        process = nodes[N1].process
        assert process is not None
        nodes[N1].signal(signal.SIGTERM)
        await until(lambda: process.poll() is not None)
        assert process.returncode == 0
        assert sorted(path.name for path in nodes[N1].directory.iterdir()) == ["pacer.lock", "pacer.page"]


async def test_noise_on_the_socket_is_refused_and_does_not_disturb_the_brain(tmp_path: Path) -> None:
    async with working_cluster(tmp_path) as nodes:
        path = nodes[N1].directory / "pacer.sock"
        assert path.stat().st_mode & 0o777 == 0o600
        for noise in (b"\xff" * 8, b"\0\0\0\2{}"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(noise)
            writer.write_eof()
            answer = await reader.read()
            assert (b"refusal" in answer) is noise.endswith(b"{}")
            writer.close()
        await nodes[N1].renewal()
        # A pause of this process is a hang of its daemons for a moment; only who is not connected is restarting.
        assert nodes[N2].sees(N1).brain is not BrainState.RESTARTING
        await until(lambda: nodes[N2].sees(N1).brain is BrainState.ALIVE)


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "behind"])
async def test_a_log_that_nobody_reads_holds_nothing_back(tmp_path: Path, is_gone: bool) -> None:
    async with cluster(tmp_path, only=()) as nodes:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while not is_gone:
                os.write(writer, b"x" * 4_096)
        os.set_blocking(writer, True)
        nodes[N1].start_pacer(stderr=writer)
        os.close(writer)
        if is_gone:
            os.close(reader)
        try:
            nodes[N1].start_brain()
            await until(lambda: len(nodes[N1].reports) > 3)
            nodes[N1].restart_brain(2)
            reported = len(nodes[N1].reports)
            await until(lambda: len(nodes[N1].reports) > reported + 3)
        finally:
            nodes[N1].end()
            if not is_gone:
                os.close(reader)


@pytest.mark.parametrize("is_journal", [True, False], ids=["the journal", "a terminal"])
async def test_lines_have_their_priority_where_the_journal_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_journal: bool
) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if is_journal:
        monkeypatch.setenv("JOURNAL_STREAM", "8:12345")
    async with cluster(tmp_path, only=()) as nodes:
        node = nodes[N1]
        try:
            with (tmp_path / "log").open("wb") as log:
                node.start_pacer(stderr=log.fileno())
                node.start_brain()
                await until(lambda: node.reports)
                second = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "haclusterd.entry_points.pacer", "--runtime-directory", str(node.directory),
                    stderr=log.fileno(),
                )  # fmt: skip
                await second.wait()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
                noise.sendto(b"noise", node.settings.listen[0])
            await until(lambda: "refused" in (tmp_path / "log").read_text())
        finally:
            node.end()
        lines = (tmp_path / "log").read_text().splitlines()
        for word, priority in (("another", 2), ("refused", 4), ("serving", 6)):
            (line,) = (line for line in lines if word in line)
            assert line.startswith(f"<{priority}>haclusterd-pacer: " if is_journal else "haclusterd-pacer: "), line


async def test_it_tells_the_service_manager_when_it_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.bind(str(tmp_path / "notify"))
        process = subprocess.Popen(
            [sys.executable, "-m", "haclusterd.entry_points.pacer", "--runtime-directory", str(tmp_path)],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        try:
            logged: list[bytes] = []

            def hear() -> bool:
                with suppress(BlockingIOError):
                    logged.append(manager.recv(100))
                return bool(logged)

            await until(hear)
            assert logged == [b"READY=1"]
            assert (tmp_path / "pacer.sock").is_socket()
        finally:
            process.kill()
            process.wait()


async def test_a_pacer_with_nothing_to_do_takes_little_of_a_processor(tmp_path: Path) -> None:
    """About 0.4 % of a core at this node-timeout, counted by the kernel; a loop that does not wait takes all of one."""
    async with working_cluster(tmp_path, node_timeout_ms=2_000) as nodes:
        process = nodes[N1].process
        assert process is not None

        def used_s() -> float:
            return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9

        before, began = used_s(), time.monotonic()
        end = boottime() + 2_000
        await until(lambda: nodes[N1].reports[-1].reported_at > end)
        assert used_s() - before < 0.05 * (time.monotonic() - began)
