"""A cluster of one as a process: lone_voter.py DIRECTORY PORT [BYTES].

Prints `LOADED` once it leads, then every word that is applied; writes words without end when BYTES is given, and may
then write no file beyond that many bytes, as on a full disk.
"""

import asyncio
import os
import resource
import sys
from pathlib import Path

from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR, RaftThread
from haclusterd.model.ids import NodeName
from haclusterd.ports.store import Applied, LeadershipChanged, StoreEvent
from haclusterd.raft.settings import RaftSettings, RaftTimers
from tests.simulation.store_world import CLUSTER, ListMachine

N1 = NodeName("n1")


def fail(why: str) -> None:
    sys.stderr.write(why + "\n")
    sys.stderr.flush()
    os._exit(EXIT_CODE_IO_ERROR)


async def main(directory: Path, port: int, limit_bytes: int | None) -> None:
    loop = asyncio.get_running_loop()
    led = asyncio.Event()

    def deliver(event: StoreEvent) -> None:
        if isinstance(event, Applied):
            assert isinstance(event.outcome, tuple)
            print(event.outcome[0].decode(), flush=True)
        elif isinstance(event, LeadershipChanged) and event.is_self:
            led.set()

    store = RaftThread(
        settings=RaftSettings(
            cluster=CLUSTER, node=N1, voters=(N1,), timers=RaftTimers.derive(600), snapshot_every=10**9
        ),
        directory=directory / "store",
        credentials=directory,
        addresses={N1: (("127.0.0.1", port),)},
        machine=ListMachine(),
        call_main=loop.call_soon_threadsafe,
        fail=fail,
    )
    store.start(deliver)
    await led.wait()
    print("LOADED", flush=True)
    if limit_bytes is None:
        await asyncio.Event().wait()
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    number = 0
    while True:
        number += 1
        store.propose(b"word-%d" % number)
        await asyncio.sleep(0.001)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
