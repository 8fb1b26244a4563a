"""The verb behind `/metrics`: what monitoring systems read of one node.

Families whose name begins with `ha_cluster_` mean what ClusterLabs' ha_cluster_exporter documents under that name
(doc/metrics.md), so that its dashboards and rules work. Everything else is `haclusterd_`.

An answer has whole numbers only; `divisor` says by what a sample is to be divided (1000: the samples are in ms, and the
name says seconds). A sample is its labels in the order of `labels`, and then its value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from haclusterd.cib.derived.wishes import node_flag
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.status import fencing_cover
from haclusterd.commands.status.devices import claimable, storm_of, usable
from haclusterd.commands.status.headlines import cut_from_here, headlines, missing_voters
from haclusterd.commands.status.overview import Overview
from haclusterd.commands.status.resource_state import Instance, InstanceState
from haclusterd.commands.status.status import acting_dc
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.alerts import targets
from haclusterd.model.availability import ServiceState, Sums, resource_of
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import Bundle, Clone, Group, Location, Primitive, effective
from haclusterd.model.counted import BUCKETS_MS, Spans
from haclusterd.model.devices import DeviceState, RecoveryPhase, state_in_force
from haclusterd.model.fencing import DeviceProof
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.properties import read_boolean_or
from haclusterd.model.records import dataclass
from haclusterd.model.sbd_disks import DISK_PARAMETERS, disks_of
from haclusterd.model.scores import INFINITY
from haclusterd.model.scores import parse as parse_score
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.cluster import Metric, Metrics
from haclusterd.verbs.arguments import Arguments

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
MS = 1000
"""What samples in ms are divided by."""
UNBOUNDED: Mapping[int, str] = {INFINITY: "+Inf", -INFINITY: "-Inf"}
Sample = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, and what it means."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: str = GAUGE
    divisor: int = 1

    def of(self, samples: Iterable[Sample]) -> Metric:
        """Return it with its samples, in order."""
        return Metric(
            name=self.name, help=self.help, kind=self.kind, labels=tuple(self.labels),
            divisor=self.divisor, samples=tuple(map(tuple, samples)),
        )  # fmt: skip


def metrics(context: Context, _arguments: Arguments) -> Outcome[Metrics]:
    """Answer every metric of this node and of the cluster as it knows it (schema `haclusterd.metrics/1`)."""
    if context.live is None:
        return refusal(report(Code.NOT_OFFLINE, what="metrics"))
    overview = Overview(context.cib)
    sources = (
        *_of_daemon(context, context.live, overview), *_of_nodes(context, context.live),
        *_of_resources(overview), *_of_services(context), *_of_alerts(context.cib), *_of_fencing(context),
        *_of_devices(context.cib), *_of_tally(context.live), *_of_exporter(context, overview),
    )  # fmt: skip
    return Outcome(answer=Metrics(families=tuple(family.of(each) for family, each in sources)))


Source = tuple[Family, Iterable[Sample]]


def _score(value: int) -> str | int:
    return UNBOUNDED.get(value, value)


def _one(value: int) -> Iterable[Sample]:
    return ((value,),)


def _of_daemon(context: Context, live: LiveView, overview: Overview) -> Iterator[Source]:
    cib, voters, dc = context.cib, context.cib.voters(), acting_dc(context)
    named = Family("haclusterd_info", "The cluster, and the node that answers.", ("cluster", "node"))
    yield named, ((cib.cluster_name, live.node, 1),)
    plain: tuple[tuple[str, str, int], ...] = (
        ("up", "1: the daemon of this node answers.", 1),
        ("gravity", "What `crm status` says first: 0 all is well, 1 look at it, 2 something is down or unprotected.",
         int(headlines(context, overview)[0].gravity)),
        ("warnings", "What is amiss with this node's pacer, and whom it keeps out.", len(live.warnings)),
        ("has_quorum", "1: this node is connected to a majority.", int(live.has_quorum)),
        ("voters", "Members that vote.", len(voters)),
        ("voters_connected", "Voters that this node reaches, itself included.",
         len(voters) - len(missing_voters(cib, live))),
        ("is_dc", "1: this node controls the cluster.", int(dc == live.node)),
        ("has_dc", "1: some node controls the cluster, as far as this one knows.", int(dc is not None)),
        ("raft_term", "The Raft term: it rises with every election.", int(live.term)),
        ("raft_applied_index", "The newest log entry that was applied.", cib.index),
        ("configuration_version", "The version of the configuration.", cib.version.epoch),
        ("safe_mode", "1: this node takes no part in decisions (crm status says why).", int(bool(live.safe_mode))),
        ("scheduler_failed", "1: the newest plan could not be made.", int(bool(live.scheduler_error))),
        ("history_incomplete", "1: this node cannot write its history.", int(bool(live.history_problem))),
        ("failures", "Failed operations that are not forgotten.", len(overview.failures)),
        ("orders_open", "Actions that were ordered and have not ended.",
         sum(len(status.orders) for status in cib.status.nodes.values())),
        ("fencing_enabled", "1: nodes are fenced.", int(fencing_cover.is_enabled(cib))),
    )  # fmt: skip
    for name, text, value in plain:
        yield Family(f"haclusterd_{name}", text), _one(value)
    spans: tuple[tuple[str, str, int | None], ...] = (
        ("start_time", "When the daemon started, in seconds since 1970.", live.started_at),
        ("stale", "How old this node's knowledge may be; 0: it is current.", live.stale_ms),
        ("lease_remaining", "How long this node may continue without a majority; absent: not at all.",
         live.lease_remaining_ms),
    )  # fmt: skip
    for name, text, ms in spans:
        yield Family(f"haclusterd_{name}_seconds", text, divisor=MS), () if ms is None else _one(ms)
    text = (
        "The longest time for which a loop of the daemon did not look at what came; `recent`: in this minute or the "
        "one before, `longest`: since its start, `work`: the most that its thread computed at once."
    )
    yield Family("haclusterd_loop_hold_seconds", text, ("loop", "window"), divisor=MS), (
        (each.loop, window, value)
        for each in live.loop_stalls
        for window, value in (("recent", each.recent_ms), ("longest", each.longest_ms), ("work", each.longest_work_ms))
    )


def _of_devices(cib: Cib) -> Iterator[Source]:
    known = sorted(cib.status.devices.items())
    text = "Devices of a node that resources can claim: all, those that something new may use, and those that are held."
    yield Family("haclusterd_devices", text, ("node", "count")), (
        (node, word, count)
        for node, each in known
        for word, count in (
            ("all", len(claimable(each))),
            ("usable", usable(each)),
            ("held", sum(bool(each.claims.get(device.id)) for device in claimable(each))),
        )
    )
    text = "Devices of a node that are recovered, have to prove that they are well, or wait for a person after that."
    yield Family("haclusterd_device_recoveries", text, ("node", "phase")), (
        (node, str(phase), sum(recovery.phase is phase for recovery in each.recoveries.values()))
        for node, each in known
        for phase in RecoveryPhase
    )
    text = "1 while so many devices went bad at once that none is recovered by policy."
    yield Family("haclusterd_device_storm", text, ()), ((int(bool(storm_of(cib))),),) if known else ()
    text = "The state of each device: 1 for the state that counts, which is what is seen and what persons want."
    yield Family("haclusterd_device_state", text, ("node", "device", "state")), (
        (node, device, str(state), int(state_in_force(each, device) is state))
        for node, each in known
        for device in each.devices
        for state in DeviceState
    )


def _of_nodes(context: Context, live: LiveView) -> Iterator[Source]:
    names = sorted(context.cib.members)
    nodes = {name: context.cib.status.nodes.get(name, NodeStatus(name)) for name in names}
    states = tuple(NodeState)
    text = "The state of each member: 1 for the state that it has."
    yield Family("haclusterd_node_state", text, ("node", "state")), (
        (name, str(state), int(nodes[name].state is state)) for name in names for state in states
    )
    age = Family("haclusterd_node_heard_age_seconds", "How long ago this node heard a member.", ("node",), divisor=MS)
    ages = {name: live.heard[name].age_ms for name in names if name in live.heard}
    yield age, ((name, each) for name, each in ages.items() if each is not None)
    trip = Family("haclusterd_node_round_trip_seconds", "The network to a member and back.", ("node",), divisor=MS)
    trips = {name: live.heard[name].round_trip_ms for name in names if name in live.heard}
    yield trip, ((name, each) for name, each in trips.items() if each is not None)
    text = "Resources of which it is not known whether they run on a node."
    yield Family("haclusterd_node_unverified_resources", text, ("node",)), (
        (name, len(nodes[name].unverified)) for name in names
    )


def _of_resources(overview: Overview) -> Iterator[Source]:
    cib = overview.cib
    primitives = [each for each in cib.configuration.resources.values() if isinstance(each, Primitive)]
    text = "Instances of each primitive by what they do; fence devices included."
    yield Family("haclusterd_resource_instances", text, ("resource", "state")), (
        (primitive.id, str(state), sum(each.state is state for each in overview.instances(primitive.id)))
        for primitive in primitives
        for state in InstanceState
    )
    text = "1: somebody wants the primitive to run (no target-role=Stopped, no lost ticket)."
    yield Family("haclusterd_resource_wanted", text, ("resource",)), (
        (primitive.id, int(not overview.not_wanted(primitive))) for primitive in primitives
    )
    tickets = sorted(cib.status.tickets.items())
    yield Family("haclusterd_ticket_granted", "1: this cluster holds the ticket.", ("ticket",)), (
        (name, int(ticket.is_granted)) for name, ticket in tickets
    )


def _of_services(context: Context) -> Iterator[Source]:
    accounts = []
    for service, account in sorted(context.cib.status.availability.services.items()):
        accounts.append(((resource_of(service), service.partition("/")[2]), account))
    labels = ("resource", "role")
    text = "1: the service is up; 0: it is down, or nobody knows. With role=promoted: an instance is promoted."
    yield Family("haclusterd_service_up", text, labels), (
        (*name, int(account.state is ServiceState.UP)) for name, account in accounts
    )
    text = "How long a service was up, down as a person had asked (planned), down (unplanned), and nobody knows; " \
           "equal on all nodes, and kept when daemons restart."
    yield Family("haclusterd_service_seconds_total", text, (*labels, "state"), COUNTER, MS), (
        (*name, state, value) for name, account in accounts for state, value in _times(account.until(context.now))
    )
    text = "Outages of a service that have ended, by kind: planned or unplanned."
    yield Family("haclusterd_service_outages_total", text, (*labels, "kind"), COUNTER), (
        (*name, kind, value)
        for name, account in accounts
        for kind, value in (("planned", account.sums.planned), ("unplanned", account.sums.unplanned))
    )
    text = "How long services were away, by cause (see crm availability); equal on all nodes."
    outage = Family("haclusterd_service_outage_seconds", text, ("cause", "le"), HISTOGRAM, MS)
    yield outage, _histogram(context.cib.status.availability.outages)


def _times(sums: Sums) -> Iterator[tuple[str, int]]:
    yield "up", sums.up_ms
    yield "planned", sums.planned_ms
    yield "unplanned", sums.unplanned_ms
    yield "unknown", sums.unknown_ms


def _of_alerts(cib: Cib) -> Iterator[Source]:
    found = [(target.alert.id, target.key, target) for target in targets(cib.configuration)]
    queue = cib.status.alerts
    text = "Events that a recipient of alerts has not got yet."
    yield Family("haclusterd_alert_events_waiting", text, ("alert", "recipient")), (
        (alert, key, queue.waiting(target)) for alert, key, target in found
    )
    text = "Events that a recipient of alerts will never get: it took longer for them than they took to happen."
    yield Family("haclusterd_alert_events_dropped_total", text, ("alert", "recipient"), COUNTER), (
        (alert, key, queue.dropped.get(key, 0)) for alert, key, _ in found
    )


def _of_fencing(context: Context) -> Iterator[Source]:
    cib = context.cib
    text = "Fencings that were ordered and have not ended."
    yield Family("haclusterd_fencings_open", text, ("target",)), (
        (name, sum(order.target == name for order in cib.status.fence_orders.values())) for name in sorted(cib.members)
    )
    text = "Whether a device was seen to work against a target: 1 for the state that it has."
    yield Family("haclusterd_fence_device", text, ("target", "device", "state")), (
        (target, device, "untested" if proof is None else str(proof.state), 1)
        for target, device, proof in _devices(cib)
    )


def _devices(cib: Cib) -> Iterator[tuple[NodeName, ResourceId, DeviceProof | None]]:
    for name, member in sorted(cib.members.items()):
        if not member.is_witness:
            for device in fencing_cover.devices_for(cib, name):
                yield name, device, fencing_cover.proof(cib, device, name)


def _of_tally(live: LiveView) -> Iterator[Source]:
    counted = live.counted
    since = "since this daemon's start; every node counts all."
    yield Family("haclusterd_events_total", f"Events of the history by kind, {since}", ("kind",), COUNTER), (
        (kind, count) for kind, count in sorted(counted.events.items())
    )
    yield Family("haclusterd_operations_total", f"Ended operations, {since}", ("operation", "outcome"), COUNTER), (
        (*key, count) for key, count in sorted(counted.operations.items())
    )
    text = f"What operations took, {since}"
    yield Family("haclusterd_operation_seconds_total", text, ("operation",), COUNTER, MS), sorted(
        counted.operations_ms.items()
    )
    of_fencing = ("target", "action", "outcome")
    yield Family("haclusterd_fencings_total", f"Ended fencings, {since}", of_fencing, COUNTER), (
        (*key, count) for key, count in sorted(counted.fencings.items())
    )
    text = (
        "How long a primitive served nowhere, until it served again: by a node that was lost or fenced, by its own "
        f"failure, or planned (stopped and started by one transition), {since}"
    )
    outage = Family("haclusterd_outage_seconds", text, ("cause", "le"), HISTOGRAM, MS)
    yield outage, _histogram(counted.outages)


def _histogram(of: Mapping[str, Spans]) -> Iterator[Sample]:
    for cause, spans in sorted(of.items()):
        for limit, count in zip(BUCKETS_MS, spans.within, strict=True):
            yield cause, limit, count
        yield cause, "+Inf", spans.count
        yield cause, "sum", spans.sum_ms


# -- the names of ha_cluster_exporter --------------------------------------------------------------------------------


def _of_exporter(context: Context, overview: Overview) -> Iterator[Source]:
    cib = context.cib
    yield Family("ha_cluster_pacemaker_config_last_change", "When the configuration changed last.", divisor=MS), _one(
        cib.version.at
    )
    yield Family("ha_cluster_pacemaker_stonith_enabled", "Whether nodes are fenced."), _one(
        int(fencing_cover.is_enabled(cib))
    )
    yield Family("ha_cluster_pacemaker_nodes", "The status of each node.", ("node", "status", "type")), _nodes(context)
    attributes = Family("ha_cluster_pacemaker_node_attributes", "Node attributes.", ("node", "name", "value"))
    yield attributes, _attributes(cib)
    counts = [each for each in overview.failures if each.count is not None]
    totals: dict[tuple[str, str], int] = {}
    for each in counts:
        key = each.node, str(each.resource)
        totals[key] = min(INFINITY, totals.get(key, 0) + (0 if each.count is None else each.count.count))
    yield Family("ha_cluster_pacemaker_fail_count", "Fail counts.", ("node", "resource")), (
        (node, resource, _score(count)) for (node, resource), count in sorted(totals.items())
    )
    yield Family("ha_cluster_pacemaker_migration_threshold", "Failures after which a resource leaves a node.",
                 ("node", "resource")), _thresholds(overview)  # fmt: skip
    of_location = ("constraint", "node", "resource", "role")
    locations = (each for each in cib.configuration.constraints.values() if isinstance(each, Location) and each.node)
    yield Family("ha_cluster_pacemaker_location_constraints", "Location constraints with a node.", of_location), (
        (each.id, each.node, each.resource, (each.role or "").lower(), _score(each.score))
        for each in locations
    )
    of_resource = ("node", "resource", "role", "managed", "status", "agent", "group", "clone")
    yield Family("ha_cluster_pacemaker_resources", "The status of each resource.", of_resource), _resources(overview)
    yield from _of_corosync(context)
    yield Family("ha_cluster_sbd_devices", "Disks that fence devices use.", ("device", "status")), dict.fromkeys(
        _of_sbd(overview)
    )


def _of_corosync(context: Context) -> Iterator[Source]:
    live, voters = context.live, context.cib.voters()
    assert live is not None
    yield Family("ha_cluster_corosync_quorate", "Whether this node has quorum."), _one(int(live.has_quorum))
    connected = len(voters) - len(missing_voters(context.cib, live))
    votes = (("expected_votes", len(voters)), ("highest_expected", len(voters)), ("total_votes", connected),
             ("quorum", len(voters) // 2 + 1))  # fmt: skip
    yield Family("ha_cluster_corosync_quorum_votes", "Votes.", ("type",)), votes
    labels = ("node_id", "node", "local")
    yield Family("ha_cluster_corosync_member_votes", "The votes of each connected member.", labels), (
        (str(number), name, str(name == live.node).lower(), 1)
        for number, name in enumerate(sorted(context.cib.members), 1)
        if name in live.connected_voters
    )
    # A ring of Corosync connects all; here each pair of nodes has its links, of which one is enough.
    yield Family("ha_cluster_corosync_ring_errors", "Nodes that this one and they do not hear on any link."), _one(
        len(cut_from_here(context.cib, live))
    )


def _of_sbd(overview: Overview) -> Iterator[Sample]:
    """Yield the disks of each fence device that uses some: healthy while the device's monitors say so."""
    for device in overview.cib.configuration.fence_devices():
        if device.agent.type in DISK_PARAMETERS:
            found = [_statuses(each) for each in overview.instances(device.id)]
            is_healthy = any(each["active"] for each in found) and not any(each["failed"] for each in found)
            for disk in disks_of(device):
                yield disk, "healthy" if is_healthy else "unhealthy", 1


def _nodes(context: Context) -> Iterator[Sample]:
    cib, dc = context.cib, acting_dc(context)
    for name in sorted(cib.members):
        status = cib.status.nodes.get(name, NodeStatus(name))
        is_online = status.state is NodeState.ONLINE
        found = {
            "online": is_online,
            "standby": node_flag(cib, name, "standby"),
            "standby_onfail": False,
            "maintenance": node_flag(cib, name, "maintenance"),
            "pending": status.is_joining,
            "unclean": status.state is NodeState.LOST,
            "shutdown": status.is_leaving,
            "expected_up": is_online or status.state is NodeState.LOST,
            "dc": dc == name,
        }
        yield from ((name, word, "member", int(holds)) for word, holds in found.items())


def _attributes(cib: Cib) -> Iterator[Sample]:
    for name in sorted(cib.members):
        entry, status = cib.configuration.nodes.get(name), cib.status.nodes.get(name)
        transient = {} if status is None else status.attributes
        configured = {} if entry is None else effective(entry.attributes)
        for attribute, value in sorted({**transient, **configured}.items()):
            yield name, attribute, value, 1


def _thresholds(overview: Overview) -> Iterator[Sample]:
    for resource in overview.cib.configuration.resources.values():
        if isinstance(resource, Primitive):
            text = overview.meta(resource).get("migration-threshold", "")
            try:
                score = parse_score(text) if text else INFINITY
            except ValueError:
                continue  # configure verify says so.
            for instance in overview.instances(resource.id):
                yield instance.node, resource.id, _score(score)


_ROLES: Mapping[InstanceState, str] = {InstanceState.STARTING: "starting", InstanceState.STOPPING: "stopping"}


def _resources(overview: Overview) -> Iterator[Sample]:
    configuration = overview.cib.configuration
    parents = configuration.parents()
    for resource in configuration.resources.values():
        if not isinstance(resource, Primitive):
            continue
        group, clone, step = "", "", resource.id
        while step in parents:
            step = parents[step]
            above = configuration.resources.get(step)
            group = step if isinstance(above, Group) else group
            clone = step if isinstance(above, Clone | Bundle) else clone
        meta = overview.meta(resource)
        managed = str(read_boolean_or(meta.get("is-managed", "true"), default=True)).lower()
        for instance in overview.instances(resource.id) or (None,):
            node = "" if instance is None else instance.node
            role = _role(overview, resource.id, instance)
            for word, holds in _statuses(instance).items():
                yield node, resource.id, role, managed, word, str(resource.agent), group, clone, int(holds)
    histories = (name for status in overview.cib.status.nodes.values() for name in status.histories)
    for name in sorted({base_of(each) for each in histories} - set(configuration.resources)):
        for instance in overview.instances(name):
            yield instance.node, name, "started", "true", "orphaned", "", "", "", 1


def _role(overview: Overview, resource: ResourceId, instance: Instance | None) -> str:
    if instance is None:
        return "stopped"
    if instance.state in _ROLES:
        return _ROLES[instance.state]
    if overview.is_promotable(resource):
        return "master" if instance.is_promoted else "slave"
    return "started"


def _statuses(instance: Instance | None) -> Mapping[str, bool]:
    state = None if instance is None else instance.state
    return {
        "active": state not in (None, InstanceState.STARTING),
        "orphaned": False,
        "blocked": state is InstanceState.BLOCKED,
        "failed": state in (InstanceState.FAILED, InstanceState.BLOCKED),
        "failure_ignored": False,
    }


VERBS = (carry_out_by("metrics", metrics, answers(Metrics)),)
