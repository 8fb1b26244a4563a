"""The real store on a thread of its own."""

import asyncio
import datetime as dt
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.adapters.network.certificates import create_authority, issue_certificate, write_node_credentials
from haclusterd.adapters.raft.thread import RaftThread
from haclusterd.model.addresses import Address
from haclusterd.model.ids import NodeName
from haclusterd.ports.store import Applied, LeadershipChanged, StoreDamagedError, StoreEvent, StoreRefusedError
from haclusterd.raft.identity import create_identity
from haclusterd.raft.settings import MAX_ENTRY_BYTES, RaftSettings, RaftTimers
from tests.simulation.store_world import CLUSTER, ListMachine
from tests.unit.adapters.raft.raft_links import free_address, until

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
N1 = NodeName("n1")


class Voter:
    """A cluster of one, for real."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = free_address()
        self.events: list[StoreEvent] = []
        self.failures: list[str] = []
        self.stamps = 0
        authority = create_authority(CLUSTER, now=NOW)
        credentials = issue_certificate(authority, N1, ["127.0.0.1"], now=NOW)
        write_node_credentials(directory, authority.certificate, credentials)
        files = FilesDirectory(directory / "store")
        create_identity(files, CLUSTER, N1)
        files.close()
        self.stores: list[RaftThread] = []

    def make(self, address: Address | None = None) -> RaftThread:
        loop = asyncio.get_running_loop()
        store = RaftThread(
            settings=RaftSettings(cluster=CLUSTER, node=N1, voters=(N1,), timers=RaftTimers.derive(600)),
            directory=self.directory / "store",
            credentials=self.directory,
            addresses={N1: (address or self.address,)},
            machine=ListMachine(),
            call_main=loop.call_soon_threadsafe,
            fail=self.failures.append,
            alive=self._stamp,
        )
        self.stores.append(store)
        return store

    def _stamp(self) -> None:
        assert threading.current_thread().name == "raft"
        self.stamps += 1

    def deliver(self, event: StoreEvent) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.events.append(event)

    async def begin(self) -> RaftThread:
        """Return a store that leads: what is proposed without a leader is dropped."""
        store = self.make()
        store.start(self.deliver)
        await until(lambda: any(isinstance(event, LeadershipChanged) and event.is_self for event in self.events))
        return store

    @property
    def entries(self) -> list[bytes]:
        return [event.outcome[0] for event in self.events if isinstance(event, Applied)]


@pytest.fixture
async def voter(tmp_path: Path) -> AsyncIterator[Voter]:
    voter = Voter(tmp_path)
    yield voter
    for store in voter.stores:
        store.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("raft")]


async def test_entries_are_applied_and_come_back_after_a_restart(voter: Voter) -> None:
    store = await voter.begin()
    for number in range(100):
        assert store.propose(b"%d" % number)
    await until(lambda: len(voter.entries) == 100)
    assert voter.entries == [b"%d" % number for number in range(100)]
    leaders = [event for event in voter.events if isinstance(event, LeadershipChanged)]
    assert leaders[-1].is_self
    store.stop()
    voter.events.clear()
    voter.make().start(voter.deliver)
    await until(lambda: len(voter.entries) == 100)
    assert voter.entries == [b"%d" % number for number in range(100)]
    assert voter.failures == []


async def test_the_thread_stamps_that_it_lives_while_nothing_happens(voter: Voter) -> None:
    voter.make().start(voter.deliver)
    await until(lambda: voter.stamps > 20)


async def test_a_disk_that_stands_still_stops_neither_thread_and_what_waits_for_it_is_not_reported(
    voter: Voter, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await voter.begin()
    store.propose(b"before")
    await until(lambda: voter.entries == [b"before"])
    may_go_on, real = threading.Event(), os.fdatasync

    def stuck(descriptor: int) -> None:
        assert threading.current_thread().name.startswith("raft-disk")
        may_go_on.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", stuck)
    store.propose(b"stuck")
    stamps = voter.stamps
    await until(lambda: voter.stamps > stamps + 20)
    assert voter.entries == [b"before"]
    may_go_on.set()
    await until(lambda: voter.entries == [b"before", b"stuck"])


async def test_nothing_is_delivered_after_stop(voter: Voter) -> None:
    store = voter.make()
    store.start(voter.deliver)
    await until(lambda: voter.events)
    store.propose(b"x")
    store.stop()
    voter.events.clear()
    await asyncio.sleep(0)
    assert voter.events == []
    store.propose(b"y")


async def test_an_entry_above_the_limit_is_a_programmers_error(voter: Voter) -> None:
    store = voter.make()
    store.start(voter.deliver)
    with pytest.raises(AssertionError):
        store.propose(bytes(MAX_ENTRY_BYTES + 1))


async def test_a_second_daemon_on_the_directory_is_refused(voter: Voter) -> None:
    voter.make().start(voter.deliver)
    with pytest.raises(StoreRefusedError, match="another process uses this data directory"):
        voter.make(free_address()).start(voter.deliver)


async def test_a_busy_port_is_refused_and_named(voter: Voter) -> None:
    server = await asyncio.start_server(lambda *_: None, *voter.address)
    with pytest.raises(StoreRefusedError, match=f"{voter.address[0]}:{voter.address[1]}.*in use"):
        voter.make().start(voter.deliver)
    server.close()
    voter.make().start(voter.deliver)


async def test_missing_credentials_are_refused(voter: Voter) -> None:
    (voter.directory / "node.key").unlink()
    with pytest.raises(StoreRefusedError):
        voter.make().start(voter.deliver)


async def test_a_damaged_journal_is_refused_and_left_as_it_is(voter: Voter) -> None:
    store = await voter.begin()
    store.propose(b"x")
    await until(lambda: voter.entries)
    store.stop()
    journal = voter.directory / "store" / "journal"
    data = bytearray(journal.read_bytes())
    data[60] ^= 1
    journal.write_bytes(data)
    with pytest.raises(StoreDamagedError, match=f"{journal}: damaged at offset"):
        voter.make().start(voter.deliver)
    assert journal.read_bytes() == data


async def test_a_raising_machine_ends_the_process(voter: Voter, caplog: pytest.LogCaptureFixture) -> None:
    store = await voter.begin()

    def raise_error(*_: object) -> object:
        raise ArithmeticError("apply must be total")

    store._machine.apply = raise_error
    store.propose(b"x")
    await until(lambda: voter.failures)
    assert "apply must be total" in voter.failures[0]
    assert "apply must be total" in caplog.text
