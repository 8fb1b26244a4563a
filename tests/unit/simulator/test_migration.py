"""What a live migration does in the simulated world: one copy, which is on the target from the hand-over on."""

import random

import pytest

from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.ocf import ExecutionStatus
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.hosts.agents import AgentRun, AgentScript, HostAgents
from haclusterd.simulator.hosts.hosts import Host
from haclusterd.simulator.hosts.truth import Truth
from haclusterd.simulator.hosts.world import MS, World

N1, N2, VM = NodeName("n1"), NodeName("n2"), ResourceId("vm")


class Pair:
    """Two hosts, and a service that runs on the first."""

    def __init__(self) -> None:
        self.world = World(1)
        self.truth = Truth(self.world)
        self.agent_script = AgentScript(random.Random(1))
        self.hosts = {name: Host(self.world, self.truth, name) for name in (N1, N2)}
        for host in self.hosts.values():
            host.power_on()
        self.truth.service_begins(N1, VM)
        self.ends: list[int] = []

    def begin(self, action: str, node: NodeName, run: AgentRun) -> HostAgents:
        boot = self.hosts[node].boot
        assert boot is not None
        self.agent_script.write(VM, action, run, times=1)
        agents = HostAgents(self.world, self.truth, self.agent_script, node, boot)
        meta = {"migrate_source": "n1", "migrate_target": "n2"}
        agent = AgentReference("ocf", "simulated", "service")
        call = AgentCall(action, VM, VM, agent, action, {}, meta, 20_000, Incarnation("boot", "life"))
        agents.begin(call, lambda _status, code: self.ends.append(code))
        return agents

    def run_for(self, span_ms: int) -> None:
        self.world.run_until(self.world.now_us + span_ms * MS)


def test_the_one_copy_is_on_the_target_from_the_hand_over_on() -> None:
    pair = Pair()
    pair.begin("migrate_to", N1, AgentRun(1000, effect_at_percent=50, is_arrival_seen=True))
    pair.run_for(400)
    assert pair.truth.holders(VM) == (N1,)
    assert pair.truth.seems_active(N2, VM)
    pair.run_for(200)
    assert pair.truth.holders(VM) == (N2,)
    pair.run_for(500)
    assert pair.ends == [0]


@pytest.mark.parametrize("reboot", [False, True])
def test_a_service_stays_where_it_is_when_the_target_dies(reboot: bool) -> None:
    pair = Pair()
    pair.begin("migrate_to", N1, AgentRun(1000, effect_at_percent=50, is_arrival_seen=True))
    pair.run_for(300)
    pair.hosts[N2].power_off()
    if reboot:
        pair.hosts[N2].power_on()
    pair.run_for(1000)
    assert pair.truth.holders(VM) == (N1,)
    assert not pair.truth.seems_active(N2, VM)
    assert pair.ends == [1]


def test_what_has_arrived_when_the_source_dies_looks_like_the_service_until_it_is_stopped() -> None:
    pair = Pair()
    pair.begin("migrate_to", N1, AgentRun(1000, effect_at_percent=50, is_arrival_seen=True))
    pair.run_for(300)
    pair.hosts[N1].power_off()
    assert pair.truth.holders(VM) == ()
    pair.begin("monitor", N2, AgentRun(5))
    pair.run_for(10)
    pair.begin("stop", N2, AgentRun(5))
    pair.run_for(10)
    pair.begin("monitor", N2, AgentRun(5))
    pair.run_for(10)
    assert pair.ends == [0, 0, 7]


def test_a_migration_that_is_killed_moves_nothing_afterwards() -> None:
    pair = Pair()
    agents = pair.begin("migrate_to", N1, AgentRun(1000, effect_at_percent=50))
    pair.run_for(300)
    agents.kill("migrate_to", ExecutionStatus.TIMEOUT)
    pair.run_for(1000)
    assert pair.truth.holders(VM) == (N1,)


def test_migrate_from_succeeds_where_the_service_has_arrived() -> None:
    pair = Pair()
    pair.begin("migrate_from", N2, AgentRun(5))
    pair.run_for(10)
    pair.truth.service_moves(N1, N2, VM)
    pair.begin("migrate_from", N2, AgentRun(5))
    pair.run_for(10)
    assert pair.ends == [1, 0]


def test_what_was_promoted_ends_with_its_service() -> None:
    pair = Pair()
    pair.truth.service_begins(N1, ResourceId("vm^promoted"))
    pair.truth.service_ends(N1, VM)
    assert pair.truth.holders(ResourceId("vm^promoted")) == ()
