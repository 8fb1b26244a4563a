"""One voter as a process: appends unique words to a replicated list, and writes down what it asked and what was done.

Usage: store_node.py DIRECTORY NAME. `cluster.json` in DIRECTORY describes the cluster; `ops.NAME` receives a line
`INV word time` before a word is proposed and `ACK word time index` once it was applied here; a file `STOP` ends the
writing, and from then on `status.NAME` tells the state. SIGTERM ends the process.
"""

import asyncio
import hashlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgpack

from haclusterd.adapters.raft_settings import RaftSettings, RaftTimers
from haclusterd.adapters.raft_thread import EXIT_CODE_IO_ERROR, RaftThread
from haclusterd.model.ids import NodeName, Term
from haclusterd.ports.store import Applied, Restored, StoreEvent

RETRY_S = 1.0
IN_FLIGHT_MAX = 32


class Words:
    """A list in which a word stands once, however often it was proposed."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.known: set[str] = set()
        self.digest = b""
        self.tail = 0

    def appended(self, entry: bytes) -> None:
        self.tail += 1

    def removed(self, entry: bytes) -> None:
        self.tail -= 1

    def apply(self, index: int, term: Term, entry: bytes) -> object:
        self.tail -= 1
        word = entry.decode()
        if word not in self.known:
            self.known.add(word)
            self.words.append(word)
            self.digest = hashlib.sha256(self.digest + entry).digest()
        return word

    def snapshot(self) -> Callable[[], bytes]:
        words, digest = tuple(self.words), self.digest
        return lambda: msgpack.packb([words, digest])

    def restore(self, data: bytes) -> object:
        words, self.digest = msgpack.unpackb(data)
        self.words = list(words)
        self.known = set(words)
        self.tail = 0
        return tuple(words)


class Client:
    """Proposes words, and again when they are not applied in time."""

    def __init__(self, directory: Path, name: str, rate: float) -> None:
        self.directory = directory
        self.name = name
        self.period_s = 1 / rate
        self.life = time.time_ns()
        self.count = 0
        self.waiting: dict[str, float] = {}
        self.ops = os.open(directory / f"ops.{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.applied = 0

    def note(self, *words: object) -> None:
        os.write(self.ops, (" ".join(str(word) for word in words) + "\n").encode())

    def deliver(self, event: StoreEvent) -> None:
        if isinstance(event, Applied):
            self.applied = event.index
            self.done(str(event.outcome), event.index)
        elif isinstance(event, Restored):
            self.applied = event.index
            assert isinstance(event.outcome, tuple)
            for word in set(event.outcome) & set(self.waiting):
                self.done(word, event.index)

    def done(self, word: str, index: int) -> None:
        if self.waiting.pop(word, None) is not None:
            self.note("ACK", word, time.monotonic_ns(), index)

    async def write(self, store: RaftThread) -> None:
        while not (self.directory / "STOP").exists():
            await asyncio.sleep(self.period_s)
            self.repeat(store)
            if len(self.waiting) < IN_FLIGHT_MAX:
                self.count += 1
                word = f"{self.name}-{self.life}-{self.count}"
                self.note("INV", word, time.monotonic_ns())
                self.waiting[word] = time.monotonic()
                store.propose(word.encode())

    def repeat(self, store: RaftThread) -> None:
        now = time.monotonic()
        for word, asked in list(self.waiting.items()):
            if now - asked > RETRY_S and store.propose(word.encode()):
                self.waiting[word] = now


async def main(directory: Path, name: str) -> None:
    cluster = json.loads((directory / "cluster.json").read_text())
    loop = asyncio.get_running_loop()
    client = Client(directory, name, cluster["rate"])
    machine = Words()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    addresses = {NodeName(node): tuple(address) for node, address in cluster["addresses"].items()}

    def fail(why: str) -> None:
        sys.stderr.write(f"fail-stop: {why}\n")
        sys.stderr.flush()
        os._exit(EXIT_CODE_IO_ERROR)

    store = RaftThread(
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
        listen=(addresses[NodeName(name)],),
        peers={node: (address,) for node, address in addresses.items() if node != name},
        machine=machine,
        call_main=loop.call_soon_threadsafe,
        fail=fail,
    )
    store.start(client.deliver)
    writing = asyncio.create_task(client.write(store))
    while not ended.is_set():
        await asyncio.sleep(0.1)
        if writing.done():
            writing.result()
            client.repeat(store)
            state = {
                "applied": client.applied,
                "digest": machine.digest.hex(),
                "waiting": len(client.waiting),
                "tail": machine.tail,
                "words": machine.words,
            }
            temporary = directory / f"status.{name}.new"
            temporary.write_text(json.dumps(state))
            temporary.rename(directory / f"status.{name}")
    writing.cancel()
    store.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
