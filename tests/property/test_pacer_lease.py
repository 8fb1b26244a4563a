"""Whatever a network does with heartbeats, no pacer's lease outlasts what a majority of the voters has really heard."""

import heapq
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.machines.pacer import Effect, PacerMachine, PublishLease, SendHeartbeat
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import NO_LEASE, Heartbeat, PacerSettings, PageReading, PeerAddress
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from tests.examples import examples

T = 1_000
NAMES = tuple(NodeName(f"n{number}") for number in range(1, 6))
END = 8_000


@dataclass
class Node:
    """One pacer with its own clock, which is `ahead` of the world's."""

    name: NodeName
    ahead: int
    machine: PacerMachine
    life: int = 1
    is_known: bool = True
    withdrawn: frozenset[NodeName] = frozenset()
    lease_until: int = NO_LEASE
    withdrawn_at: dict[NodeName, int] = field(default_factory=dict)

    @property
    def incarnation(self) -> Incarnation:
        return Incarnation(f"boot-{self.name}", f"{int(self.name[1:]):08x}{self.life:08x}")

    def page(self) -> PageReading:
        return PageReading(self.incarnation.token if self.is_known else None, self.withdrawn)


class Cluster:
    """Voters on a virtual clock; `seed` decides what becomes of each datagram and what happens to the nodes."""

    def __init__(self, seed: int, voter_count: int, rules: SafetyRules) -> None:
        self.chance = random.Random(seed)
        self.loss = self.chance.choice((0.0, 0.1, 0.4))
        self.slowest = self.chance.choice((20, 300, 3 * T))
        self.voters = NAMES[:voter_count]
        self.now = 0
        self.queue: list[tuple[int, int, Heartbeat]] = []
        self.count = 0
        self.heard: dict[tuple[NodeName, Incarnation], dict[NodeName, int]] = {}
        """For each life: the newest send time that each voter got hold of, on the sender's clock."""
        self.nodes = {}
        for index, name in enumerate(self.voters):
            ahead = 1_000_000 * (index + 1)
            self.nodes[name] = Node(name, ahead, PacerMachine(Instant(ahead), rules=rules))
        for node in self.nodes.values():
            self.configure(node)

    def configure(self, node: Node) -> None:
        given = PacerSettings(
            node=node.name,
            incarnation=node.incarnation,
            is_voter=True,
            listen=(),
            peers=tuple(
                PeerAddress(name, (("127.0.0.1", 1),), b"", is_voter=True) for name in self.voters if name != node.name
            ),
            node_timeout_ms=T,
            brain_timeout_ms=10_000,
        )
        self.take(node, node.machine.configured(given, self.clock(node)))

    def clock(self, node: Node) -> Instant:
        return Instant(self.now + node.ahead)

    def take(self, node: Node, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, SendHeartbeat):
                self.send(effect.heartbeat)
            elif isinstance(effect, PublishLease):
                node.lease_until = effect.lease.until
                self.check(node)

    def send(self, heartbeat: Heartbeat) -> None:
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            if self.chance.random() >= self.loss:
                self.count += 1
                arrives_at = self.now + self.chance.randint(0, self.slowest)
                heapq.heappush(self.queue, (arrives_at, self.count, heartbeat))

    def deliver(self, heartbeat: Heartbeat) -> None:
        node = self.nodes[heartbeat.receiver]
        heard = self.heard.setdefault((heartbeat.sender, heartbeat.incarnation), {})
        heard[node.name] = max(heard.get(node.name, 0), heartbeat.sent_at)
        self.take(node, node.machine.heartbeat_received(heartbeat.sender, heartbeat, self.clock(node)))

    def happen(self) -> None:
        """Let one node withdraw another, forget or regain its withdrawn set, or begin a new life."""
        node = self.nodes[self.chance.choice(self.voters)]
        if self.now < 2 * T or self.chance.random() < 0.9:
            return
        match self.chance.choice(("withdraw", "unknown", "known", "known", "restart")):
            case "withdraw":
                other = self.chance.choice(self.voters)
                node.withdrawn |= {other}
                node.withdrawn_at.setdefault(other, self.now)
            case "unknown":
                node.is_known = False
            case "known":
                node.is_known = True
            case "restart":
                node.life += 1
                self.configure(node)

    def check(self, node: Node) -> None:
        """The lease is at most majority-th newest send time heard, + L; and what is withdrawn bounds it as well."""
        if node.lease_until == NO_LEASE:
            return
        heard = self.heard.get((node.name, node.incarnation), {})
        newest_first = sorted(heard.values(), reverse=True)
        majority = len(self.voters) // 2 + 1
        assert len(newest_first) >= majority, "a lease that no majority can have given"
        assert node.lease_until <= newest_first[majority - 1] + T
        withdrawn_at = sorted(
            other.withdrawn_at[node.name] for other in self.nodes.values() if node.name in other.withdrawn_at
        )
        if len(withdrawn_at) >= majority:
            assert node.lease_until <= withdrawn_at[majority - 1] + node.ahead + T

    def run(self) -> None:
        while self.now < END:
            wakes = [(node.machine.wake_at - node.ahead, node.name) for node in self.nodes.values()]
            wake_at, name = min(wakes)
            if self.queue and self.queue[0][0] <= wake_at:
                self.now, _, heartbeat = heapq.heappop(self.queue)
                self.deliver(heartbeat)
            else:
                self.now = max(self.now, wake_at)
                node = self.nodes[name]
                if node.is_known and node.name not in node.withdrawn:
                    self.heard.setdefault((node.name, node.incarnation), {})[node.name] = self.clock(node)
                self.take(node, node.machine.tick(node.page(), self.clock(node)))
                self.happen()


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), voter_count=st.integers(1, 5))
def test_no_lease_outlasts_what_a_majority_has_heard(seed: int, voter_count: int) -> None:
    Cluster(seed, voter_count, ALL_RULES).run()


def breaks_at(rules: SafetyRules) -> int | None:
    """Return the first seed of some at which three voters break the promise."""
    for seed in range(100):
        try:
            Cluster(seed, 3, rules).run()
        except AssertionError:
            return seed
    return None


@pytest.mark.parametrize("rule", ["echo_send_time", "withdraw_echo"])
def test_without_the_rule_some_network_breaks_it(rule: str) -> None:
    assert breaks_at(replace(ALL_RULES, **{rule: False})) is not None


def test_leases_are_held_most_of_the_time_in_a_good_network() -> None:
    """The promise is not kept by never giving a lease."""
    held = 0
    for seed in range(30):
        cluster = Cluster(seed, 3, ALL_RULES)
        cluster.loss, cluster.slowest = 0.0, 20
        cluster.happen = lambda: None
        cluster.run()
        held += all(node.lease_until > cluster.clock(node) for node in cluster.nodes.values())
    assert held == 30
