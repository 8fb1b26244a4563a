"""The library is pinned, checked, and cannot reach pickle."""

import pickle  # noqa: TID251 (it must be refused)
from typing import Any

import pysyncobj.journal
import pysyncobj.pickle
import pysyncobj.serializer
import pysyncobj.syncobj
import pysyncobj.tcp_connection
import pysyncobj.version
import pytest

from haclusterd.adapters.raft.library import PickleRefusedError
from haclusterd.ports.store import StoreRefusedError
from tests.simulation.store_world import World
from tests.unit.raft.raft_bench import Bench


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pysyncobj.version, "VERSION", "0.3.18")
    with pytest.raises(StoreRefusedError, match=r"pysyncobj 0\.3\.18 is installed, only 0\.3\.17 is supported"):
        Bench()


def test_a_release_that_lacks_a_private_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pysyncobj.syncobj.SyncObj, "_SyncObj__setCurrentTerm")
    with pytest.raises(StoreRefusedError, match="lacks _SyncObj__setCurrentTerm"):
        Bench()


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a payload was executed",))


@pytest.mark.parametrize(
    "refused",
    [
        pysyncobj.pickle.loads,
        pysyncobj.syncobj.pickle.loads,
        pysyncobj.serializer.pickle.loads,
        pysyncobj.tcp_connection.pickle.loads,
        pysyncobj.journal.loads,
    ],
)
def test_the_library_unpickles_nothing(refused: Any) -> None:
    with pytest.raises(PickleRefusedError):
        refused(pickle.dumps(Payload()))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_on_the_wire_and_in_files_are_not_executed(protocol: int) -> None:
    payload = pickle.dumps(Payload(), protocol)
    bench = Bench()
    assert not bench.core.receive(bench.settings.peers[0], payload)
    bench.core.propose(payload)
    bench.core.stop()
    for name in ("journal", "snapshot", "identity"):
        bench.disk.put(name, payload)
        with pytest.raises(Exception, match=f"disk/{name}"):
            bench.start()
        bench.disk.put_back(bench.disk.copy())


def test_a_cluster_lives_and_transfers_a_snapshot_without_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, explode)
    world = World(3, snapshot_every=20)
    world.wait_for_leader()
    behind = next(name for name in world.names if name != world.leader())
    world.crash(behind)
    leader = world.nodes[world.wait_for_leader()]
    for number in range(100):
        leader.core.propose(b"%d " % number + b"x" * 20_000)
        world.run(20)
    world.restart(behind)
    world.run_until(world.is_settled)
    world.check()
    assert world.nodes[behind].core.status().base_index > 50
    assert len(world.nodes[behind].machine.items) == 100
