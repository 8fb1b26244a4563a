"""Clusters to try verbs on: made by the commands that make real ones, in situations that have a name."""

import random
from collections.abc import Callable, Mapping

from haclusterd.cib import commands
from haclusterd.cib.apply import apply
from haclusterd.cib.changes import Change, ChangeKind
from haclusterd.commands import registry
from haclusterd.commands.context import (
    Context,
    Event,
    Followed,
    HeardFrom,
    ListedVersion,
    LiveView,
    Recollection,
    TransitionProgress,
)
from haclusterd.commands.outcome import AnyOutcome, Outcome
from haclusterd.commands.planning.preview import preview
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus
from haclusterd.model.configuration import Configuration, Primitive
from haclusterd.model.devices import Device, DeviceClaim, DeviceId, DeviceState
from haclusterd.model.fencing import (
    DeviceProof,
    FenceAction,
    FenceOrder,
    FenceOutcome,
    FenceState,
    FencingRecord,
    ProofState,
)
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.remembered import Comparison, FollowQuery, HistoryQuery, Position
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.protocol.control import shown_report
from haclusterd.reports.items import exit_status, has_errors
from haclusterd.runtime.safe_mode import AFTER_CRASHES
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.verbs.answers.answer import as_json, name_of, read
from haclusterd.verbs.table import VERBS

NOW = WallTime(1_767_268_800_000)
"""2026-01-01 12:00:00 UTC."""

CONFIGURATION = """
primitive address ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive web ocf:haclusterd:http-service params command=/bin/true op monitor interval=10s timeout=20s
primitive db ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes op monitor interval=60s
group site address web
location db-likes-n2 db 100: n2
order db-first Mandatory: db site
rsc_defaults resource-stickiness=100
"""


CLONES = """
primitive power stonith:fence_local params pcmk_host_list="n1 n2 n3" nodes_dir=/nodes op monitor interval=60s
rsc_template worker ocf:haclusterd:dummy op monitor interval=10s timeout=20s
primitive db ocf:haclusterd:stateful op monitor interval=10s role=Promoted op monitor interval=11s role=Unpromoted
primitive cache @worker
primitive web @worker utilization memory=2000
primitive log @worker
clone db-clone db meta promotable=true notify=true
clone cache-clone cache meta interleave=true
group site web log
tag front: site
colocation site-with-db inf: site db-clone:Promoted
order db-then-site Mandatory: db-clone:promote site:start
location cache-prefers cache-clone rule 50: defined fast or #uname eq n2
rsc_ticket site-needs-paris paris: site loss-policy=stop
fencing_topology n1: power n2: power n3: power
"""


def configured(text: str, base: Configuration | None = None) -> Configuration:
    """Read crm text that must be right."""
    script = parse_script(text, "test")
    made = assemble(script.statements, base=base)
    assert not has_errors((*script.reports, *made.reports)), (script.reports, made.reports)
    return made.configuration


@dataclass(slots=True)
class ListedPast:
    """A history as a list, and what a comparison of all nodes' would say."""

    events: tuple[Event, ...] = ()
    comparison: Comparison = Comparison(())
    trouble: str = ""

    def recall(self, query: HistoryQuery) -> Recollection:
        found = [event for event in self.events if _fits(event, query)]
        return Recollection(tuple(found[-query.limit :]), max(0, len(found) - query.limit), self.trouble)

    def follow(self, query: FollowQuery, wait_ms: int) -> Followed:
        del wait_ms
        after = query.after or Position(self.events[-1].index if self.events else 0)
        found = [event for event in self.events if event.index > after.index][: query.limit]
        return Followed(
            tuple((Position(event.index), event) for event in found), Position(found[-1].index) if found else after
        )

    def compared(self) -> Comparison:
        return self.comparison


def _fits(event: Event, query: HistoryQuery) -> bool:
    return (
        (query.since is None or event.at >= query.since)
        and (query.until is None or event.at <= query.until)
        and (not query.nodes or event.change.node in query.nodes)
        and (not query.resources or event.change.resource in query.resources)
        and (not query.kinds or event.change.kind in query.kinds)
    )


@dataclass(slots=True)
class Cluster:
    """A CIB on its way to a situation."""

    cib: Cib = field(default_factory=Cib)
    live: LiveView | None = None
    past: ListedPast | None = None

    def do(self, command: commands.Command) -> None:
        """Fold a command, which must be accepted."""
        index = self.cib.index + 1
        envelope = commands.Envelope(RequestId(f"r{index}"), NodeName("n1"), NOW, command)
        applied = apply(self.cib, envelope, index=index, term=Term(4))
        assert applied.refusal is None, applied.refusal
        self.cib = applied.cib

    def node(self, name: str) -> NodeStatus:
        """Return a node's status."""
        return self.cib.status.nodes[NodeName(name)]

    def put(self, status: NodeStatus) -> None:
        """Replace a node's status."""
        nodes = {**self.cib.status.nodes, status.name: status}
        self.cib = replace(self.cib, status=replace(self.cib.status, nodes=nodes))

    def configure(self, text: str) -> None:
        """Add crm statements."""
        self.cib = replace(self.cib, configuration=configured(text, self.cib.configuration))

    def record(
        self,
        resource: str,
        node: str,
        operation: str,
        code: ExitCode = ExitCode.OK,
        *,
        target: ExitCode = ExitCode.OK,
        interval_ms: int = 0,
        reason: str = "",
        status: ExecutionStatus | None = None,
    ) -> None:
        """Add a result to a node's history."""
        before = self.node(node)
        primitive = self.cib.configuration.resources[ResourceId(resource)]
        assert isinstance(primitive, Primitive)
        history = before.histories.get(primitive.id, ResourceHistory(primitive.id, primitive.agent))
        call_id = before.last_call_id + 1
        ended = status or (ExecutionStatus.DONE if code is target else ExecutionStatus.ERROR)
        record = OperationRecord(
            operation, interval_ms, call_id, code, ended, target, NOW, WallTime(NOW - 90_000), exit_reason=reason
        )
        key = operation_key(operation, interval_ms)
        history = replace(history, records={**history.records, key: record})
        histories = {**before.histories, primitive.id: history}
        self.put(replace(before, histories=histories, last_call_id=call_id))

    def run(self, resource: str, node: str) -> None:
        """Let a resource run on a node, and be probed on the others."""
        for name in sorted(self.cib.status.nodes):
            if name != node and self.node(name).state is NodeState.ONLINE:
                status = self.node(name)
                self.put(replace(status, probed=status.probed | {ResourceId(resource)}))
        self.record(resource, node, "start")
        self.record(resource, node, "monitor", interval_ms=10_000)

    def count_failure(self, resource: str, node: str, operation: str, interval_ms: int, count: int) -> None:
        """Remember failures."""
        status = self.node(node)
        history = status.histories[ResourceId(resource)]
        key = operation_key(operation, interval_ms)
        counts = {**history.fail_counts, key: FailCount(operation, interval_ms, count, WallTime(NOW - 90_000))}
        histories = {**status.histories, ResourceId(resource): replace(history, fail_counts=counts)}
        self.put(replace(status, histories=histories))

    def order(self, resource: str, node: str, action: ActionName, reason: str = "", *, is_probe: bool = False) -> None:
        """Have an order under way."""
        primitive = self.cib.configuration.resources[ResourceId(resource)]
        assert isinstance(primitive, Primitive)
        status = self.node(node)
        assert status.incarnation is not None
        key = OrderKey(f"4:{len(status.orders)}:{resource}")
        order = Order(
            key, status.name, status.incarnation, Term(4), primitive.id, action, 0, primitive.agent, {}, {}, 20_000,
            20_000, ExitCode.OK, reason=reason, issued_at=WallTime(NOW - 1200), is_probe=is_probe,
        )  # fmt: skip
        self.put(replace(status, orders={**status.orders, key: order}))

    def state(self, node: str, state: NodeState, detail: str = "") -> None:
        """Let a node be in a state for 4 s."""
        self.put(replace(self.node(node), state=state, since=WallTime(NOW - 4000), detail=detail))

    def prove(self, node: str, state: ProofState = ProofState.TESTED, detail: str = "") -> None:
        """Have evidence about the device `power`."""
        proofs = {**self.cib.status.proofs, f"power/{node}": DeviceProof(state, WallTime(NOW - 86_400_000), detail)}
        self.cib = replace(self.cib, status=replace(self.cib.status, proofs=proofs))


def live_view(**changes: object) -> LiveView:
    """Return what n1 knows when all is well."""
    view = LiveView(
        node=NodeName("n1"),
        leader=NodeName("n1"),
        term=Term(4),
        has_quorum=True,
        connected_voters=(NodeName("n1"), NodeName("n2"), NodeName("n3")),
        lease_remaining_ms=1800,
        heard={NodeName("n2"): HeardFrom(40, round_trip_ms=1), NodeName("n3"): HeardFrom(120, round_trip_ms=2)},
        started_at=WallTime(NOW - 3_600_000),
    )
    return replace(view, **changes)


def incarnation(number: int) -> Incarnation:
    """Return node number's first life."""
    return Incarnation(f"boot-{number}", f"{number:016x}")


def formed(count: int = 3, *, witness: bool = False) -> Cluster:
    """Return a cluster whose nodes have just joined."""
    cluster = Cluster()
    members = tuple(
        Member(NodeName(f"n{n}"), ((f"10.0.0.{n}", 7400),), is_witness=witness and n == count)
        for n in range(1, count + 1)
    )
    cluster.do(commands.FormCluster("0b6f", "demo", members))
    cluster.do(commands.Join(NodeName("n1"), incarnation(1), secret_key="public key of n1"))
    cluster.do(commands.DcElected(NodeName("n1"), incarnation(1), Term(4)))
    for number in range(2, count + 1):
        key = f"public key of n{number}"
        cluster.do(commands.Join(NodeName(f"n{number}"), incarnation(number), secret_key=key))
    names = tuple(NodeName(f"n{n}") for n in range(1, count + 1))
    cluster.live = live_view(connected_voters=names)
    return cluster


def running(text: str = CONFIGURATION) -> Cluster:
    """Return a cluster in which everything runs: the site on n1, db on n2."""
    cluster = formed()
    cluster.configure(text)
    version = replace(cluster.cib.version, epoch=7, author="root@n1", at=WallTime(NOW - 300_000), reason="first site")
    cluster.cib = replace(cluster.cib, version=version)
    for resource, node in (("power", "n3"), ("address", "n1"), ("web", "n1"), ("db", "n2")):
        cluster.run(resource, node)
    for node in ("n1", "n2", "n3"):
        cluster.prove(node)
    return cluster


def fence_order(target: str) -> FenceOrder:
    """Return an order to fence a node."""
    return FenceOrder(
        FenceKey("f1"), NodeName(target), incarnation(int(target[1:])), FenceAction.REBOOT, ResourceId("power"),
        NodeName("n1"), incarnation(1), Term(4), 10_000, 1, WallTime(NOW - 800), "lost", FenceState.OPEN,
    )  # fmt: skip


def fencing_record(target: str, outcome: FenceOutcome, detail: str = "") -> FencingRecord:
    """Return what became of an order to fence a node."""
    order = fence_order(target)
    return FencingRecord(
        order.key, order.target, order.target_incarnation, order.action, order.device, order.executor, outcome, detail,
        order.issued_at, WallTime(NOW - 300), "lost",
    )  # fmt: skip


# Situations


def _healthy() -> Cluster:
    return running()


def _fencing_unproven() -> Cluster:
    cluster = running()
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, proofs={}))
    return cluster


def _node_lost() -> Cluster:
    cluster = running()
    cluster.state("n2", NodeState.LOST, "no voter heard it for 2004 ms (n1 2004, n3 2011)")
    status = replace(cluster.cib.status, fence_orders={FenceKey("f1"): fence_order("n2")})
    cluster.cib = replace(cluster.cib, status=status)
    names = (NodeName("n1"), NodeName("n3"))
    cluster.live = live_view(connected_voters=names, transition=TransitionProgress(9, 0, 3))
    return cluster


def _fencing_fails() -> Cluster:
    cluster = running()
    cluster.state("n2", NodeState.LOST, "no voter heard it for 2004 ms (n1 2004, n3 2011)")
    cluster.put(replace(cluster.node("n2"), since=WallTime(NOW - 720_000)))
    failed = fencing_record("n2", FenceOutcome.TIMEOUT)
    records = (replace(failed, attempt=14, ended_at=WallTime(NOW - 7000), detail="timed out"),)
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=records))
    cluster.live = live_view(connected_voters=(NodeName("n1"), NodeName("n3")), transition=TransitionProgress(9, 0, 3))
    return cluster


def _recovering() -> Cluster:
    cluster = running()
    cluster.state("n2", NodeState.FENCED)
    cluster.put(replace(cluster.node("n2"), histories={}))
    records = (fencing_record("n2", FenceOutcome.FENCED),)
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=records))
    cluster.order("db", "n3", ActionName.START, "n2 was lost")
    cluster.live = live_view(connected_voters=(NodeName("n1"), NodeName("n3")), transition=TransitionProgress(9, 1, 2))
    return cluster


def _resource_failed() -> Cluster:
    cluster = running()
    cluster.record("web", "n1", "monitor", ExitCode.ERROR, interval_ms=10_000, reason="connection refused")
    cluster.count_failure("web", "n1", "monitor", 10_000, 2)
    cluster.order("web", "n1", ActionName.STOP, "its monitor failed")
    return cluster


def _stop_failed() -> Cluster:
    cluster = running()
    cluster.record("web", "n1", "stop", ExitCode.ERROR, status=ExecutionStatus.TIMEOUT)
    cluster.count_failure("web", "n1", "stop", 0, 1_000_000)
    return cluster


def _no_quorum() -> Cluster:
    cluster = running()
    cluster.live = live_view(
        leader=None, has_quorum=False, connected_voters=(NodeName("n1"),), lease_remaining_ms=None, stale_ms=12_000,
        heard={NodeName("n2"): HeardFrom(12_000), NodeName("n3"): HeardFrom(12_100)},
    )  # fmt: skip
    return cluster


def _election() -> Cluster:
    cluster = running()
    cluster.live = live_view(leader=None, has_quorum=False, stale_ms=300)
    return cluster


def _new_leader() -> Cluster:
    cluster = running()
    cluster.live = live_view(leader=NodeName("n2"), term=Term(5))
    return cluster


def _safe_mode() -> Cluster:
    cluster = running()
    cluster.live = live_view(
        safe_mode="the controller crashed 3 times at configuration 7: KeyError: 'web'",
        safe_mode_remedy=AFTER_CRASHES,
    )
    return cluster


def _no_device() -> Cluster:
    text = CONFIGURATION.replace('"n1 n2 n3"', '"n2 n3"')
    return running(text)


def _fencing_disabled() -> Cluster:
    return running(CONFIGURATION + "property fencing-enabled=false\n")


def _two_voters() -> Cluster:
    cluster = formed(2)
    cluster.configure('primitive power stonith:fence_local params pcmk_host_list="n1 n2" nodes_dir=/nodes')
    cluster.run("power", "n1")
    return cluster


def _moved_and_standby() -> Cluster:
    cluster = running(CONFIGURATION + "location cli-prefer-site site inf: n1\nlocation cli-ban-db-on-n3 db -inf: n3\n")
    cluster.configure("node n3 attributes standby=on")
    return cluster


def _stopped_and_unmanaged() -> Cluster:
    cluster = formed()
    text = CONFIGURATION.replace("group site address web", "group site address web meta target-role=Stopped")
    cluster.configure(text.replace("db ocf:haclusterd:dummy", "db ocf:haclusterd:dummy meta is-managed=no"))
    cluster.run("power", "n3")
    cluster.run("db", "n2")
    return cluster


def _rejoining() -> Cluster:
    cluster = running()
    cluster.state("n3", NodeState.UNSEEN)
    cluster.put(replace(cluster.node("n2"), unverified=frozenset({ResourceId("db")})))
    cluster.order("db", "n2", ActionName.MONITOR, is_probe=True)
    cluster.order("web", "n2", ActionName.MONITOR, is_probe=True)
    cluster.prove("n1", ProofState.LIED, "n1 was heard 200 ms after the agent said ok")
    records = (fencing_record("n3", FenceOutcome.TIMEOUT, "the agent did not end within 10 s"),)
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=records))
    cluster.live = live_view(
        held_joins={NodeName("n3"): "its fencing is in flight"},
        heard={NodeName("n2"): HeardFrom(40, brain="restarting", brain_since_ms=2500)},
        warnings=("udp 10.0.0.1:7400: address in use",),
    )
    return cluster


def _clones() -> Cluster:
    """The db is promoted on n1, where the site runs; its third instance, and that of the cache, are missing on n3."""
    cluster = formed()
    cluster.configure(CLONES)
    version = replace(cluster.cib.version, epoch=7, author="root@n1", at=WallTime(NOW - 300_000), reason="first site")
    cluster.cib = replace(cluster.cib, version=version)
    cluster.run("power", "n3")
    for node in ("n1", "n2"):
        for resource in ("db", "cache"):
            cluster.record(resource, node, "start")
            cluster.record(resource, node, "monitor", interval_ms=11_000 if resource == "db" else 10_000)
    cluster.record("db", "n1", "promote")
    for resource in ("web", "log"):
        cluster.run(resource, "n1")
    n3 = cluster.node("n3")
    cluster.put(replace(n3, probed=n3.probed | {ResourceId("db"), ResourceId("cache")}))
    cluster.do(commands.SetTicket("paris", commands.TicketChange.GRANT, "root@n1"))
    for node in ("n1", "n2", "n3"):
        cluster.do(commands.SetTransientAttribute(NodeName(node), "master-db", "10" if node == "n1" else "5"))
        cluster.prove(node)
    return cluster


def _daemon_away() -> Cluster:
    """All is recorded as well; the pacers say that one daemon hangs."""
    cluster = running()
    heard = {NodeName("n2"): HeardFrom(40, brain="hung", brain_since_ms=4200), NodeName("n3"): HeardFrom(120)}
    cluster.live = live_view(heard=heard)
    return cluster


def _last_quorum() -> Cluster:
    """n3 cannot be reached by this node, and nobody has lost it yet."""
    cluster = running()
    heard = {NodeName("n2"): HeardFrom(40), NodeName("n3"): HeardFrom(1400)}
    cluster.live = live_view(connected_voters=(NodeName("n1"), NodeName("n2")), heard=heard)
    return cluster


def _fenced_again() -> Cluster:
    """n3 is back, for the third time."""
    cluster = running()
    records = tuple(
        replace(fencing_record("n3", FenceOutcome.FENCED), key=FenceKey(f"f{number}"),
                ended_at=WallTime(NOW - 1000 * number), reason="stop of db failed on n3")
        for number in (8, 5, 2)
    )  # fmt: skip
    cluster.cib = replace(cluster.cib, status=replace(cluster.cib.status, fencing_history=records))
    return cluster


def _failed_and_back() -> Cluster:
    """The web has failed on n1, and runs there again; n2 is left alone."""
    cluster = running()
    cluster.record("web", "n1", "monitor", ExitCode.ERROR, interval_ms=10_000, reason="bind: Address already in use")
    cluster.count_failure("web", "n1", "monitor", 10_000, 1)
    cluster.record("web", "n1", "start")
    cluster.configure("node n2 attributes maintenance=on")
    return cluster


def _empty() -> Cluster:
    return Cluster(live=live_view(connected_voters=(NodeName("n1"),)))


def _orders_in_a_circle() -> Cluster:
    cluster = formed()
    cluster.configure(CONFIGURATION.replace("order db-first Mandatory: db site", "order x Serialize: web site"))
    for resource, node in (("power", "n3"), ("db", "n2")):
        cluster.run(resource, node)
    for node in ("n1", "n2", "n3"):
        cluster.prove(node)
    return cluster


def _deleted_and_failed() -> Cluster:
    cluster = _resource_failed()
    cluster.put(replace(cluster.node("n1"), orders={}))
    kept = "\n".join(line for line in CONFIGURATION.splitlines() if not line.startswith(("primitive web", "group")))
    cluster.cib = replace(cluster.cib, configuration=configured(kept.replace("db site", "db address")))
    return cluster


def _devices() -> Cluster:
    """Three services hold the GPUs of n1, of which one has failed; n2 has a new one, and a stranger on another."""
    cluster = formed()
    services = "\n".join(f"primitive llm{n} ocf:haclusterd:dummy utilization gpus=1" for n in range(3))
    cluster.configure(f"{DEVICE_HEAD}\n{services}")
    seen = {
        "n1": [(DeviceState.OK, ()), (DeviceState.FAILED, ("xid-79: GPU has fallen off the bus",)),
               (DeviceState.DEGRADED, ("remap-pending: a row of memory waits for a reset to be replaced",))],
        "n2": [(DeviceState.OK, ()), (DeviceState.OK, ())],
    }  # fmt: skip
    for node, states in seen.items():
        devices = tuple(_device(node, number, *state) for number, state in enumerate(states))
        which = cluster.node(node).incarnation
        assert which is not None
        cluster.do(commands.PublishDevices(NodeName(node), which, devices, "580.159.04"))
    which = cluster.node("n2").incarnation
    assert which is not None
    known = cluster.cib.status.devices[NodeName("n2")].devices
    stranger = replace(_device("n2", 0), strangers=("4711 python3",))
    later = (stranger, known[DeviceId("GPU-n2-1")], _device("n2", 2))
    cluster.do(commands.PublishDevices(NodeName("n2"), which, later, "580.159.04"))
    claims = {
        DeviceId(f"GPU-n1-{number}"): (DeviceClaim(ResourceId(f"llm{number}"), OrderKey(f"4:{number}:llm")),)
        for number in range(3)
    }
    status = cluster.cib.status
    made = replace(status.devices[NodeName("n1")], claims=claims)
    cluster.cib = replace(cluster.cib, status=replace(status, devices={**status.devices, NodeName("n1"): made}))
    for number in range(3):
        cluster.run(f"llm{number}", "n1")
    return cluster


DEVICE_HEAD = "property fencing-enabled=false"


def _device(node: str, number: int, state: DeviceState = DeviceState.OK, reasons: tuple[str, ...] = ()) -> Device:
    return Device(
        DeviceId(f"GPU-{node}-{number}"), bus=f"0000:{0x1a + number:02x}:00.0", model="NVIDIA H200", numa=0,
        memory_mib=143_771, link="nvlink-0000:1a:00.0", has_ecc=True, state=state, reasons=reasons,
    )  # fmt: skip


SITUATIONS: Mapping[str, Callable[[], Cluster]] = {
    "healthy": _healthy,
    "fencing-unproven": _fencing_unproven,
    "node-lost": _node_lost,
    "fencing-fails": _fencing_fails,
    "recovering": _recovering,
    "resource-failed": _resource_failed,
    "stop-failed": _stop_failed,
    "no-quorum": _no_quorum,
    "election": _election,
    "new-leader": _new_leader,
    "safe-mode": _safe_mode,
    "no-device": _no_device,
    "fencing-disabled": _fencing_disabled,
    "two-voters": _two_voters,
    "moved-and-standby": _moved_and_standby,
    "stopped-and-unmanaged": _stopped_and_unmanaged,
    "rejoining": _rejoining,
    "clones": _clones,
    "daemon-away": _daemon_away,
    "last-quorum": _last_quorum,
    "fenced-again": _fenced_again,
    "failed-and-back": _failed_and_back,
    "not-formed": _empty,
    "orders-in-a-circle": _orders_in_a_circle,
    "deleted-and-failed": _deleted_and_failed,
    "devices": _devices,
}


def with_events(cluster: Cluster) -> Cluster:
    """Let the daemon remember some events."""
    assert cluster.live is not None
    db, n2 = ResourceId("db"), NodeName("n2")
    events = (
        Event(40, WallTime(NOW - 90_000_000), Change(ChangeKind.CLUSTER_FORMED, None, None, "cluster demo formed")),
        Event(51, WallTime(NOW - 60_000), Change(ChangeKind.OPERATION_FAILED, n2, db, "monitor of db failed on n2")),
        Event(52, WallTime(NOW - 59_000), Change(ChangeKind.ORDER_ISSUED, n2, db, "stop db on n2"),
              reason="monitor failed", order="4.2.7"),
        Event(53, WallTime(NOW - 58_900), Change(ChangeKind.OPERATION_SUCCEEDED, n2, db, "stop of db on n2 succeeded"),
              order="4.2.7"),
        Event(53, WallTime(NOW - 58_900), Change(ChangeKind.ORDER_ISSUED, n2, db, "start db on n2"), order="4.2.8"),
        Event(54, WallTime(NOW - 50_000), Change(ChangeKind.OPERATION_FAILED, n2, db, "start of db on n2 failed"),
              order="4.2.8"),
        Event(55, WallTime(NOW - 50_000), Change(ChangeKind.ORDER_ISSUED, n2, db, "stop db on n2"), order="4.3.2"),
    )  # fmt: skip
    cluster.past = ListedPast(events)
    return cluster


@dataclass(slots=True)
class KeptVersions:
    """A history of the configuration, with what each version holds."""

    versions: tuple[ListedVersion, ...] = ()
    contents: Mapping[int, Configuration] = field(default_factory=dict)
    trouble: str = ""

    def listed(self) -> tuple[ListedVersion, ...]:
        return self.versions

    def configuration(self, number: int) -> Configuration | None:
        return self.contents.get(number)

    def problem(self) -> str:
        return self.trouble


def with_versions(cluster: Cluster) -> KeptVersions:
    """Return a history in which versions 1 and 3 are missing, and 7 is what is configured."""
    now = cluster.cib.configuration
    named = (
        (2, "alice@n1", "", configured("primitive db ocf:haclusterd:dummy params state=/a op monitor interval=10s")),
        (4, "alice@n1", "more memory", configured("property batch-limit=5", now)),
        (5, "bob@n2", "", configured("property batch-limit=5\nlocation web-n1 web 5: n1", now)),
        (6, "alice@n1", "less at once", configured("property batch-limit=3\nlocation web-n1 web 5: n1", now)),
        (7, "root@n1", "first site", now),
    )
    return KeptVersions(
        tuple(
            ListedVersion(number, WallTime(NOW - (10 - number) * 100_000), author, reason, f"{number:064x}")
            for number, author, reason, _ in named
        ),
        {number: configuration for number, _, _, configuration in named},
    )


class ContentAgents:
    """Agents that object to nothing."""

    def answer(self, question: ValidationQuestion) -> Validation | None:
        """See `commands.context.Validations`."""
        return Validation(0, f"{question.resource} is fine")


def check_answer(verb: str, outcome: Outcome) -> None:
    """See that a verb answers what its description says, and that the answer is what its type says."""
    answer = outcome.answer
    if answer is not None:
        assert name_of(answer.SCHEMA) in (*VERBS[verb].answers, "preview"), verb
        assert read(type(answer), as_json(answer)) == answer
    elif outcome.data is not None:
        assert isinstance(outcome.data, dict)
        assert name_of(outcome.data["schema"]) in VERBS[verb].answers


@dataclass(slots=True)
class ClusterClient:
    """Carries out verbs on a cluster of this file, as a daemon does, without a socket; nothing moves by itself."""

    cluster: Cluster
    requests: list[Request] = field(default_factory=list)
    versions: KeptVersions = field(default_factory=KeptVersions)
    secrets: SimulatedKeeper = field(default_factory=lambda: SimulatedKeeper(NodeName("n1"), random.Random(1)))
    outcomes: list[tuple[str, AnyOutcome]] = field(default_factory=list)
    """Of each request: the verb, and what it answered."""

    def describe(self) -> str:
        """Return what a daemon's client returns."""
        return "live"

    def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        """Carry out a request."""
        self.requests.append(request)
        context = Context(
            self.cluster.cib, NOW, "root@n1", request.options.reason, self.cluster.live,
            versions=self.versions, past=self.cluster.past or ListedPast(), is_forced=request.options.force,
            is_preview=request.options.dry_run, validations=ContentAgents(), secrets=self.secrets,
        )  # fmt: skip
        outcome = registry.run(request.verb, request.arguments, context)
        if request.options.dry_run:
            outcome = preview(context, outcome)
        check_answer(request.verb, outcome)
        self.outcomes.append((request.verb, outcome))
        for command in outcome.commands:
            self.cluster.do(command)
        status = int(exit_status(outcome.reports)) or outcome.exit_status or 0
        return Response(request.id, status, tuple(map(shown_report, outcome.reports)), outcome.data)
