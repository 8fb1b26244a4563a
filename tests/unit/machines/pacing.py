"""The pacer of n1 among three voters: its settings, its page, and what it did."""

from collections.abc import Iterable

from haclusterd.machines.pacer import (
    Effect,
    PacerMachine,
    PublishLease,
    Report,
    SendHeartbeat,
)
from haclusterd.machines.watchdog_feeding import FeedWatchdog
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import (
    BrainState,
    HeardNode,
    Heartbeat,
    HeldLease,
    PacerReport,
    PacerSettings,
    PageReading,
    PeerAddress,
    Receipt,
)
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

T = 2000
PERIOD = T // 10
"""node-timeout; so h = 200, L = 2000, a stall is more than 500."""
BRAIN_TIMEOUT = 10_000
BEGIN = 100_000
OWN = Incarnation("boot-1", "00000000000000a1")
OTHER_OWN = Incarnation("boot-1", "00000000000000a2")
EVERYBODY = ("n1", "n2", "n3")


def life(node: str, number: int = 1, boot: int = 1) -> Incarnation:
    return Incarnation(f"boot-{node}-{boot}", f"{int(node[1:]):08x}{number:08x}")


def settings(voters: Iterable[str] = EVERYBODY, others: Iterable[str] = (), own: Incarnation = OWN) -> PacerSettings:
    """Those of n1, with one link to each peer."""
    voters = tuple(voters)
    peers = sorted({*voters, *others} - {"n1"})
    return PacerSettings(
        node=NodeName("n1"),
        incarnation=own,
        is_voter="n1" in voters,
        listen=(("127.0.0.1", 5001),),
        peers=tuple(
            PeerAddress(NodeName(name), (("127.0.0.1", 5000 + int(name[1:])),), b"k" * 32, name in voters)
            for name in peers
        ),
        node_timeout_ms=T,
        brain_timeout_ms=BRAIN_TIMEOUT,
    )


def page(known_by: Incarnation | None = OWN, withdrawn: Iterable[str] = (), stamped_at: int = 0) -> PageReading:
    return PageReading(
        known_by=known_by and known_by.token,
        withdrawn=frozenset(NodeName(name) for name in withdrawn),
        main_stamped_at=Instant(stamped_at),
        raft_stamped_at=Instant(stamped_at),
    )


class Subject:
    """The machine of n1, its page, and what it did."""

    def __init__(
        self,
        given: PacerSettings | None = None,
        *,
        at: int = BEGIN,
        inherited: HeldLease | None = None,
        rules: SafetyRules = ALL_RULES,
    ) -> None:
        self.machine = PacerMachine(Instant(at), inherited, rules)
        self.page = page()
        self.now = at
        self.lease = inherited
        """What its page shows."""
        self.sent: list[SendHeartbeat] = []
        self.reports: list[PacerReport] = []
        self.feeds: list[FeedWatchdog] = []
        self.peer_clock: dict[str, int] = {}
        if given is not None:
            self.configure(given)

    def take(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case PublishLease(lease):
                    self.lease = lease
                case SendHeartbeat():
                    self.sent.append(effect)
                case Report(report):
                    self.reports.append(report)
                case FeedWatchdog():
                    self.feeds.append(effect)

    def configure(self, given: PacerSettings) -> None:
        self.take(self.machine.configured(given, Instant(self.now)))

    def tick(self) -> None:
        self.take(self.machine.tick(self.page, Instant(self.now)))

    def run_until(self, end: int) -> None:
        while self.machine.wake_at <= end:
            self.now = max(self.now, self.machine.wake_at)
            self.tick()
        self.now = end

    def hear(
        self,
        name: str,
        *,
        echo: int | None = None,
        own: Incarnation = OWN,
        number: int = 1,
        boot: int = 1,
        seen: int | None = None,
        sent_at: int | None = None,
        brain: BrainState = BrainState.ALIVE,
    ) -> None:
        """Let n1 hear a peer that echoes its heartbeat of `echo`, and has seen that of `seen` (else: the newest)."""
        if sent_at is None:
            sent_at = self.peer_clock.get(name, 7_000) + 1
        self.peer_clock[name] = sent_at
        if seen is None and self.sent:
            seen = self.sent[-1].heartbeat.sent_at
        heartbeat = Heartbeat(
            sender=NodeName(name),
            receiver=NodeName("n1"),
            incarnation=life(name, number, boot),
            sent_at=Instant(sent_at),
            brain=brain,
            brain_since_ms=0,
            echo=None if echo is None else Receipt(own.token, Instant(echo)),
            seen=None if seen is None else Receipt(own.token, Instant(seen)),
            heard=(),
        )
        self.take(self.machine.heartbeat_received(NodeName(name), heartbeat, Instant(self.now)))

    def lease_until(self) -> int:
        assert self.lease is not None
        return self.lease.until

    def last_to(self, name: str) -> Heartbeat:
        return next(effect.heartbeat for effect in reversed(self.sent) if effect.peer == name)

    def node(self, name: str) -> HeardNode:
        return next(node for node in self.reports[-1].nodes if node.name == name)


def begun() -> Subject:
    """Return n1, which has just sent its first heartbeat."""
    made = Subject(settings())
    made.tick()
    return made
