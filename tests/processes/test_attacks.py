"""A client that reaches a daemon's ports and sockets without belonging there is refused, which is logged once, and
disturbs nothing: the cluster goes on with the same processes and the same DC, and gives back what an attack took.

A revoked certificate: test_certificates.py.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.raft.unauthenticated import UNAUTHENTICATED_MAX
from tests.processes.attackers import ATTACKS, FLOOD, Attacker, Recorder, flood
from tests.processes.daemons import Scenario

pytestmark = pytest.mark.processes

REFUSALS_MAX = 6
"""Reasons of one attack."""
GROWTH_KIB_MAX = 16_000
"""Of a process, over all attacks: nothing of an attack may be kept, but what the allocator keeps for its reuse."""
DESCRIPTORS_MORE_MAX = UNAUTHENTICATED_MAX + 40
"""While it lasts."""


class Victim:
    """A running cluster, and what its DC was like before anything happened."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.commits = 0
        self.descriptors: dict[int, int] = {}
        self.resident_kib: dict[int, int] = {}
        self.look()

    def look(self) -> None:
        """See who reigns now: an election between two attacks is the harm of neither.

        What a process holds is compared with when it was looked at first, over all attacks.
        """
        scenario = self.scenario
        scenario.until("all nodes online", lambda: scenario.online() == set(scenario.cluster.names))
        scenario.settle()
        self.dc = scenario.dc()
        # A node that has answered this has heard of the newest term.
        self.commit()
        self.term = scenario.status()["term"]
        self.node = scenario.cluster.nodes[self.dc]
        self.stolen = next(node for name, node in sorted(scenario.cluster.nodes.items()) if name != self.dc)
        self.pids = {what: getattr(scenario, what)(self.dc).pid for what in ("brain", "pacer")}
        for pid in self.pids.values():
            self.descriptors.setdefault(pid, _descriptors(pid))
            self.resident_kib.setdefault(pid, _resident_kib(pid))

    def commit(self) -> None:
        self.commits += 1
        value = str(self.commits)
        self.scenario.must("node.attribute", node=self.dc, action="set", name="n", value=value, lifetime="reboot")

    def must_be_unharmed(self) -> None:
        """The same processes, the same reign, and they work."""
        self.commit()
        scenario = self.scenario
        assert {what: getattr(scenario, what)(self.dc).poll() for what in self.pids} == {"brain": None, "pacer": None}
        assert (scenario.status()["dc"], scenario.status()["term"]) == (self.dc, self.term)
        assert scenario.online() == set(scenario.cluster.names)
        for what, pid in self.pids.items():
            assert _resident_kib(pid) - self.resident_kib[pid] < GROWTH_KIB_MAX, what
            scenario.until(
                f"the descriptors of the {what} to be as few as before",
                lambda pid=pid: _descriptors(pid) <= self.descriptors[pid] + 3,
            )

    def logged(self, source: str) -> list[str]:
        lines = "".join(self.scenario.log(self.dc, what) for what in self.pids).splitlines()
        return [line for line in lines if source in line]

    def lines(self) -> Counter[str]:
        return Counter(line for what in self.pids for line in self.scenario.log(self.dc, what).splitlines())


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


@pytest.fixture(scope="module")
def victim_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    scenario = Scenario(tmp_path_factory.mktemp("attacks") / "cluster")
    try:
        yield Victim(scenario.form())
    finally:
        scenario.close()


@pytest.fixture
def victim(victim_of_all: Victim) -> Victim:
    victim_of_all.look()
    return victim_of_all


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_is_refused_logged_once_and_harms_nothing(
    victim: Victim, attack: Callable[[Attacker], bytes], tmp_path: Path
) -> None:
    host = f"127.0.66.{1 + ATTACKS.index(attack)}"
    attacker = Attacker(host, victim.node, victim.stolen, tmp_path)
    before = victim.lines()
    assert attack(attacker) == b""
    victim.must_be_unharmed()
    assert not attacker.proof.exists()
    if attack.__name__ not in ("local_sockets", "idle_clients"):  # They come from no address.
        victim.scenario.until("it to be logged", lambda: bool(victim.logged(host)))
    logged = Counter(victim.logged(host))
    assert len(logged) <= REFUSALS_MAX, logged
    assert set(logged.values()) <= {1}, logged
    more = victim.lines() - before
    # Each use of stolen files replaces the true member's session, which comes back: its lines are no refusals.
    more = Counter({line: count for line, count in more.items() if " store.links " not in line})
    assert more.total() <= 3 * REFUSALS_MAX, "\n".join(more)


def test_while_connections_are_left_half_open_few_are_held_and_the_cluster_works(
    victim: Victim, tmp_path: Path
) -> None:
    attacker = Attacker("127.0.66.100", victim.node, victim.stolen, tmp_path)
    with attacker.half_open(FLOOD):
        brain = victim.pids["brain"]
        most = max(_descriptors(brain) for _ in range(50))
        victim.commit()
    assert most <= victim.descriptors[brain] + DESCRIPTORS_MORE_MAX
    victim.must_be_unharmed()


def test_a_member_comes_back_through_a_flood_of_connections(victim: Victim, tmp_path: Path) -> None:
    """It has no session when it comes, and waits behind the flood like everybody."""
    scenario, name = victim.scenario, str(victim.stolen.name)

    def commits() -> bool:
        arguments = {"node": name, "action": "set", "name": "back", "value": "yes", "lifetime": "reboot"}
        return bool(scenario.cluster.call(name, "node.attribute", **arguments).exit == 0)

    attacker = Attacker("127.0.66.101", victim.node, victim.stolen, tmp_path)
    with flood(attacker):
        scenario.until("the flood to be felt", lambda: bool(victim.logged(attacker.host)))
        scenario.brain(name).kill()
        scenario.restart_brain(name)
        scenario.until("it to be back", lambda: commits() and scenario.online() == set(scenario.cluster.names))
        victim.commit()
    victim.must_be_unharmed()
    assert max(Counter(victim.logged(attacker.host)).values()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="recording from a device is root's")
def test_recorded_heartbeats_of_a_member_do_not_make_it_live(victim: Victim) -> None:
    """What a member sent is sent again while it stands still, from its own address, faster than it did."""
    scenario = victim.scenario
    recorder = Recorder(victim.stolen.port, victim.node.port)
    try:
        recorded = recorder.record(20)
    finally:
        recorder.close()
    name = str(victim.stolen.name)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:

        def is_lost() -> bool:
            for datagram in recorded:
                link.sendto(datagram, ("127.0.0.1", victim.node.port))
            # The DC is asked: another one may be the one that stands still.
            return {node["name"]: node["state"] for node in scenario.status(victim.dc)["nodes"]}[name] != "online"

        scenario.cluster.silence(name)
        try:
            scenario.until(f"{name} to be lost", is_lost, 15)
        finally:
            scenario.cluster.resume(name)
    scenario.until(f"{name} to be back", lambda: scenario.online() == set(scenario.cluster.names))
    assert scenario.status(victim.dc)["term"] == victim.term
