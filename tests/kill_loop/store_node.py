"""One voter as a process: its clients append words to a replicated list, swap a register and read both through the log.

Usage: store_node.py DIRECTORY NAME LIFE. `cluster.json` in DIRECTORY describes the cluster; `record.NAME` receives a
line before anything is asked and one for each answer (record.py); a file `STOP` ends the asking, and from then on
`status.NAME` tells the state. SIGTERM ends the process. LIFE numbers the lives of this node: names are unique.
"""

import asyncio
import hashlib
import json
import logging
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgpack

from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR, RaftThread
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.steps import Steps
from haclusterd.ports.store import Applied, Restored, StoreEvent, StoreRefusedError, StoreUnwritableError, VoterSet
from haclusterd.raft.settings import RaftSettings, RaftTimers

RETRY_S = 1.0
IN_FLIGHT_MAX = 32
RESULTS_KEPT = 2000
DIGEST_EVERY = 50


class WordsAndRegister:
    """A list in which a word stands once, and a register; what was asked twice under one id is done once."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.register = ""
        self.results: dict[str, tuple[bool, str]] = {}
        self.digest = b""
        self.tail: deque[bytes] = deque()

    def appended(self, entry: bytes) -> None:
        self.tail.append(entry)

    def is_awaited(self, entry: bytes) -> bool:
        return False

    def removed(self, entry: bytes) -> None:
        assert self.tail.pop() == entry

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        assert self.tail.popleft() == entry
        request, kind, value, expected = msgpack.unpackb(entry)
        if request not in self.results:
            self.results[request] = self._do(kind, value, expected)
            if len(self.results) > RESULTS_KEPT:
                del self.results[next(iter(self.results))]
            self.digest = hashlib.sha256(self.digest + entry).digest()
        return request, self.results[request], self.digest.hex()

    def _do(self, kind: str, value: str, expected: str) -> tuple[bool, str]:
        if kind == "append":
            self.words.append(value)
        elif kind == "swap":
            if self.register != expected:
                return False, self.register
            self.register = value
        elif kind == "look":
            return True, str(len(self.words))
        return True, self.register

    def voter_set(self) -> VoterSet | None:
        return None

    def proposed_voters(self, entry: bytes) -> VoterSet | None:
        return None

    def may_change_voters(self, entry: bytes) -> bool:
        return False

    def apply_voters(self, index: int, term: Term, entry: bytes) -> object:
        raise AssertionError("nobody changes the voters here")

    def snapshot(self) -> Callable[[], bytes]:
        state = (list(self.words), self.register, list(self.results.items()), self.digest)
        return lambda: msgpack.packb(state)

    def prepare(self, entry: bytes) -> Steps[None] | None:
        return None

    def read(self, data: bytes) -> Steps[object]:
        yield
        return msgpack.unpackb(data)

    def restore(self, state: object) -> object:
        assert isinstance(state, list)
        words, self.register, results, self.digest = state
        self.words = list(words)
        self.results = {request: tuple(result) for request, result in results}
        self.tail.clear()
        return dict(self.results)


class Clients:
    """Everybody who asks through this node; what is not answered in time is asked again under its id."""

    def __init__(self, directory: Path, name: str, life: str) -> None:
        self.directory = directory
        self.name = f"{name}.{life}"
        self.store: RaftThread
        self.count = 0
        self.entries: dict[str, tuple[bytes, float]] = {}
        self.answered: dict[str, asyncio.Future[tuple[bool, str]]] = {}
        self.record = os.open(directory / f"record.{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.applied = 0

    @property
    def is_over(self) -> bool:
        return (self.directory / "STOP").exists()

    def note(self, *items: object) -> None:
        os.write(self.record, (json.dumps(items) + "\n").encode())

    def ask(self, kind: str, value: str, expected: str = "") -> "asyncio.Future[tuple[bool, str]]":
        self.count += 1
        request = f"{self.name}.{self.count}"
        value = value or request
        entry = msgpack.packb((request, kind, value, expected))
        self.note("ask", request, kind, time.monotonic_ns(), value, expected)
        self.entries[request] = (entry, time.monotonic())
        self.answered[request] = asyncio.get_running_loop().create_future()
        self.store.propose(entry)
        return self.answered[request]

    def repeat(self) -> None:
        now = time.monotonic()
        for request, (entry, asked) in list(self.entries.items()):
            if now - asked > RETRY_S and self.store.propose(entry):
                self.entries[request] = (entry, now)

    def deliver(self, event: StoreEvent) -> None:
        if isinstance(event, Applied):
            self.applied = event.index
            assert isinstance(event.outcome, tuple)
            request, result, digest = event.outcome
            self.answer(request, result)
            if event.index % DIGEST_EVERY == 0:
                self.note("digest", event.index, digest)
        elif isinstance(event, Restored):
            self.applied = event.index
            assert isinstance(event.outcome, dict)
            for request in set(event.outcome) & set(self.entries):
                self.answer(request, event.outcome[request])

    def answer(self, request: str, result: tuple[bool, str]) -> None:
        if self.entries.pop(request, None) is not None:
            self.note("answer", request, time.monotonic_ns(), *result)
            self.answered.pop(request).set_result(result)

    async def write(self, period_s: float) -> None:
        """Append at a rate, whatever is answered."""
        while not self.is_over:
            await asyncio.sleep(period_s)
            if not self.is_over and len(self.entries) < IN_FLIGHT_MAX:
                self.ask("append", "")

    async def swap(self, chance: random.Random) -> None:
        """Swap the register for something new, by what was last heard of it."""
        known = ""
        while not self.is_over:
            wanted = f"{self.name}.{self.count + 1}"
            done, found = await self.ask("swap", wanted, known)
            known = wanted if done else found
            await asyncio.sleep(chance.uniform(0, 0.4))

    async def look(self, chance: random.Random) -> None:
        """Read the register, or the length of the list."""
        while not self.is_over:
            await self.ask(chance.choice(("read", "look")), "?")
            await asyncio.sleep(chance.uniform(0.1, 0.5))


def fail(why: str) -> None:
    sys.stderr.write(f"fail-stop: {why}\n")
    sys.stderr.flush()
    os._exit(EXIT_CODE_IO_ERROR)


def make_store(directory: Path, name: str, machine: WordsAndRegister) -> RaftThread:
    cluster = json.loads((directory / "cluster.json").read_text())
    addresses = {NodeName(node): (host, port) for node, (host, port) in cluster["addresses"].items()}
    return RaftThread(
        settings=RaftSettings(
            cluster=cluster["uuid"],
            node=NodeName(name),
            voters=tuple(addresses),
            timers=RaftTimers.derive(cluster["node_timeout_ms"]),
            snapshot_every=cluster["snapshot_every"],
            retained_entries=20,
        ),
        directory=directory / name / "store",
        credentials=directory / name,
        addresses={node: (address,) for node, address in addresses.items()},
        machine=machine,
        call_main=asyncio.get_running_loop().call_soon_threadsafe,
        fail=fail,
    )


async def main(directory: Path, name: str, life: str) -> None:
    machine = WordsAndRegister()
    clients = Clients(directory, name, life)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    clients.store = store = make_store(directory, name, machine)
    try:
        store.start(clients.deliver)
    except (StoreRefusedError, StoreUnwritableError) as refusal:
        sys.exit(f"refused: {refusal}")
    chance = random.Random(f"{name}.{life}")
    period_s = 1 / json.loads((directory / "cluster.json").read_text())["rate"]
    asking = [
        asyncio.create_task(work) for work in (clients.write(period_s), clients.swap(chance), clients.look(chance))
    ]
    shown = None
    while not ended.is_set():
        await asyncio.sleep(0.1)
        clients.repeat()
        for task in asking:
            if task.done():
                task.result()
        state = (clients.applied, len(clients.entries), len(machine.tail))
        if clients.is_over and state != shown:
            shown = state
            tell(directory, name, machine, state)
    for task in asking:
        task.cancel()
    store.stop()


def tell(directory: Path, name: str, machine: WordsAndRegister, state: tuple[int, int, int]) -> None:
    applied, waiting, tail = state
    temporary = directory / f"status.{name}.new"
    status = {
        "applied": applied,
        "waiting": waiting,
        "tail": tail,
        "digest": machine.digest.hex(),
        "register": machine.register,
        "words": machine.words,
    }
    temporary.write_text(json.dumps(status))
    temporary.rename(directory / f"status.{name}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
