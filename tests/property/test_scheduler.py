"""What holds for every plan: it exists, it is the same for equal CIBs, it leads somewhere, and it never makes two.

Small names from small sets make values that meet each other; the whole type's values (`values_of`) make those that do
not. Time, results and truth are `ScheduledCluster`'s.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import (
    AttributeSet,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    Group,
    Location,
    Operation,
    Ordering,
    OrderingKind,
    Primitive,
    Resource,
)
from haclusterd.model.copies import Copies
from haclusterd.model.graph import ActionKind, GraphAction
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, ConstraintId, Incarnation, NodeName, OrderKey, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.examples import examples
from tests.replicated_values import values_of
from tests.scheduled_clusters import ScheduledCluster

NODES = tuple(map(NodeName, ("n1", "n2", "n3")))
PRIMITIVES = tuple(map(ResourceId, ("a", "b", "c", "d", "e")))
GROUP = ResourceId("g")
CLONE = ResourceId("many")
CLONED = ResourceId("e")
FENCE = ResourceId("power")
DUMMY = AgentReference("ocf", "haclusterd", "dummy")
INTERVAL_MS = 10_000
NOW = WallTime(1_767_268_800_000)


def often(count: int) -> settings:
    """So many examples; a busy machine is no failure."""
    return settings(max_examples=examples(count), deadline=None, suppress_health_check=[HealthCheck.too_slow])


_K = TypeVar("_K")
_V = TypeVar("_V")

_meta = st.dictionaries(
    st.sampled_from(
        ["resource-stickiness", "priority", "target-role", "is-managed", "migration-threshold", "failure-timeout",
         "multiple-active", "maintenance", "critical", "requires"]
    ),
    st.sampled_from(["0", "1", "100", "INFINITY", "Stopped", "false", "true", "block", "stop_only", "quorum", "60s"]),
    max_size=3,
).map(lambda pairs: (AttributeSet("m", tuple(pairs.items())),))  # fmt: skip
_sane_meta = st.dictionaries(
    st.sampled_from(["resource-stickiness", "priority", "migration-threshold", "allow-migrate"]),
    st.sampled_from(["0", "1", "100", "INFINITY", "true"]),
    max_size=2,
).map(lambda pairs: (AttributeSet("m", tuple(pairs.items())),))
_clone_meta = st.dictionaries(
    st.sampled_from(["interleave", "ordered", "notify", "promotable", "clone-max", "promoted-max"]),
    st.sampled_from(["true", "false", "1", "2"]),
    max_size=4,
).map(lambda pairs: (AttributeSet("m", tuple(pairs.items())),))
_scores = st.sampled_from([INFINITY, -INFINITY, 100, -100, 50, 1])
_ends = st.sampled_from([*PRIMITIVES, GROUP, CLONE])


@st.composite
def configurations(draw: st.DrawFn, *, is_sane: bool = False) -> Configuration:
    """Primitives, perhaps a group, a fence device, and constraints between them; sane: nothing that ends in a hold."""
    meta = _sane_meta if is_sane else _meta
    on_fail = st.none() if is_sane else st.sampled_from([None, "ignore", "block", "stop", "standby", "fence"])
    primitives = [
        Primitive(
            name,
            DUMMY,
            meta=draw(meta),
            operations=(Operation(f"{name}-mon", "monitor", INTERVAL_MS, on_fail=draw(on_fail)),),
        )
        for name in draw(st.permutations(PRIMITIVES))
    ]
    is_cloned = draw(st.booleans())
    free = [name for name in PRIMITIVES if not (is_cloned and name == CLONED)]
    members = draw(st.lists(st.sampled_from(free), unique=True, max_size=3))
    resources: dict[ResourceId, Resource] = {primitive.id: primitive for primitive in primitives}
    if members:
        resources[GROUP] = Group(GROUP, tuple(members), meta=draw(meta))
    if is_cloned:
        resources[CLONE] = Clone(CLONE, CLONED, meta=draw(_clone_meta))
    if is_sane or draw(st.booleans()):
        resources[FENCE] = Primitive(FENCE, AgentReference("stonith", None, "fence_local"))
    constraints: dict[ConstraintId, Constraint] = {}
    for number, constraint in enumerate(draw(st.lists(_constraints(is_sane=is_sane), max_size=5))):
        key = ConstraintId(f"k{number}")
        if is_sane and _is_within(constraint, {*members, GROUP}):
            continue
        constraints[key] = replace(constraint, id=key)
    values = {} if is_sane else draw(_properties)
    return Configuration(
        resources=resources,
        constraints=constraints,
        properties=(AttributeSet("cib-bootstrap-options", tuple(values.items())),),
    )


def _is_within(constraint: Constraint, names: set[ResourceId]) -> bool:
    """Tell whether both ends are in one group, which has said already how they go together."""
    return isinstance(constraint, Colocation | Ordering) and names.issuperset(_ends_of(constraint))


def _ends_of(constraint: Colocation | Ordering) -> tuple[ResourceId, ResourceId]:
    if isinstance(constraint, Colocation):
        return constraint.dependent, constraint.primary
    return constraint.first, constraint.then


_properties = st.dictionaries(
    st.sampled_from(
        ["symmetric-cluster", "maintenance-mode", "stop-all-resources", "fencing-enabled", "startup-fencing"]
    ),
    st.sampled_from(["true", "false"]),
    max_size=2,
)


def _constraints(*, is_sane: bool) -> st.SearchStrategy[Constraint]:
    key = ConstraintId("")
    locations = st.builds(Location, st.just(key), _ends, st.sampled_from(NODES), _scores)
    pairs = st.tuples(_ends, _ends) if not is_sane else st.tuples(_ends, _ends).map(lambda ends: tuple(sorted(ends)))
    colocation = st.builds(
        lambda ends, score, influence: Colocation(key, score, ends[1], ends[0], influence=influence),
        pairs,
        _scores,
        st.sampled_from([None, False, True]),
    )
    orders = st.builds(
        lambda ends, kind, is_symmetrical: Ordering(key, ends[0], ends[1], kind, is_symmetrical=is_symmetrical),
        pairs,
        st.sampled_from(OrderingKind),
        st.booleans(),
    )
    return st.one_of(locations, colocation, orders)


@st.composite
def histories(draw: st.DrawFn, resource: ResourceId) -> ResourceHistory:
    """Whatever may be recorded of a resource."""
    records: dict[str, OperationRecord] = {}
    kinds = st.tuples(
        st.sampled_from(["start", "stop", "monitor", "promote"]), st.sampled_from([0, INTERVAL_MS, 20_000])
    )
    for call_id, (name, interval_ms) in enumerate(draw(st.lists(kinds, max_size=4))):
        record = OperationRecord(
            name,
            interval_ms,
            call_id,
            draw(st.sampled_from(ExitCode)),
            draw(st.sampled_from(ExecutionStatus)),
            draw(st.sampled_from([ExitCode.OK, ExitCode.NOT_RUNNING])),
            NOW,
            draw(st.sampled_from([NOW, WallTime(NOW - 120_000)])),
            digest=draw(st.sampled_from(["", "other"])),
        )
        records[operation_key(name, interval_ms)] = record
    counts = draw(st.sampled_from([0, 1, 3, INFINITY]))
    fail_counts = {"start_0": FailCount("start", 0, counts, WallTime(NOW - 90_000))} if counts else {}
    last = draw(st.sampled_from([None, *records.values()]))
    agent = draw(st.sampled_from([DUMMY, AgentReference("ocf", "haclusterd", "exec")]))
    return ResourceHistory(resource, agent, records, fail_counts, last_failure=last)


def _open_order(node: NodeName, resource: ResourceId, action: ActionName, number: int) -> Order:
    return Order(
        OrderKey(f"1.1.{number}"), node, Incarnation("boot", "0" * 16), Term(1), resource, action, 0, DUMMY, {}, {},
        20_000, 20_000, ExitCode.OK,
    )  # fmt: skip


@st.composite
def statuses(draw: st.DrawFn, node: NodeName) -> NodeStatus:
    """Any state of a node with any past."""
    known = [*PRIMITIVES, FENCE, ResourceId("gone")]
    chosen = draw(st.lists(st.sampled_from(known), unique=True, max_size=4))
    ordered = draw(
        st.lists(st.tuples(st.sampled_from(known), st.sampled_from([ActionName.START, ActionName.STOP])), max_size=2)
    )
    orders = [_open_order(node, resource, action, number) for number, (resource, action) in enumerate(ordered)]
    return NodeStatus(
        node,
        draw(st.sampled_from([NodeState.ONLINE, NodeState.ONLINE, NodeState.LOST, *NodeState])),
        draw(st.sampled_from([None, Incarnation("boot", "0" * 16)])),
        is_leaving=draw(st.booleans()) and draw(st.booleans()),
        attributes=draw(st.sampled_from([{}, {}, {"standby": "true"}, {"maintenance": "true"}])),
        histories={resource: draw(histories(resource)) for resource in chosen},
        probed=frozenset(draw(st.lists(st.sampled_from(known), unique=True))),
        unverified=frozenset(draw(st.lists(st.sampled_from(known), max_size=2))),
        orders={order.key: order for order in orders},
    )


@st.composite
def cibs(draw: st.DrawFn) -> Cib:
    """CIBs whose names belong together."""
    members = {node: Member(node, (), is_witness=draw(st.integers(0, 9)) == 0) for node in NODES}
    nodes = {node: draw(statuses(node)) for node in NODES}
    return Cib(members=members, configuration=draw(configurations()), status=Status(nodes=nodes))


def _reversed(mapping: Mapping[_K, _V]) -> dict[_K, _V]:
    return dict(reversed(mapping.items()))


@settings(often(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(values_of(Cib), st.integers(0, 2**45))
def test_a_plan_exists_for_any_value(cib: Cib, now: int) -> None:
    schedule(cib, WallTime(now))


@often(250)
@given(cibs())
def test_a_plan_exists_for_any_situation(cib: Cib) -> None:
    plan = schedule(cib, NOW)
    for number, action in plan.graph.actions.items():
        assert action.id == number
        assert all(before < number for before in action.inputs)
        assert action.reason
    instances = {placement.base or name for name, placement in plan.placements.items()}
    for resource in PRIMITIVES:
        is_cloned = resource == CLONED and CLONE in cib.configuration.resources
        assert is_cloned or resource in instances


@often(100)
@given(cibs())
def test_the_order_of_the_status_does_not_matter(cib: Cib) -> None:
    nodes = {
        name: replace(status, histories=_reversed(status.histories), orders=_reversed(status.orders))
        for name, status in _reversed(cib.status.nodes).items()
    }
    shuffled = replace(cib, members=_reversed(cib.members), status=replace(cib.status, nodes=nodes))
    assert schedule(shuffled, NOW) == schedule(cib, NOW)


@often(100)
@given(cibs())
def test_explaining_changes_nothing(cib: Cib) -> None:
    explained = schedule(cib, NOW, options=ScheduleOptions(is_explaining=True))
    plain = schedule(cib, NOW)
    assert explained.graph == plain.graph
    assert explained.warnings == plain.warnings


@often(250)
@given(cibs())
def test_nothing_in_flight_is_ordered_again_or_overtaken(cib: Cib) -> None:
    plan = schedule(cib, NOW)
    busy = {
        (order.resource, node if order.resource == CLONED and CLONE in cib.configuration.resources else None)
        for node, status in cib.status.nodes.items()
        if status.state is NodeState.ONLINE and not cib.members[node].is_witness
        for order in status.orders.values()
    }
    for action in plan.graph.actions.values():
        is_role_change = action.kind is ActionKind.RESOURCE and action.name in (ActionName.START, ActionName.STOP)
        keys = {(action.resource, None), (action.resource, action.node)}
        assert not (is_role_change and keys & busy), action


class Careful(ScheduledCluster):
    """A cluster that objects when a resource becomes active twice, or a lost node's before that is fenced."""

    __slots__ = ()

    def perform(self, action: GraphAction) -> bool:
        if action.is_named(ActionName.START) and action.resource is not None and action.node is not None:
            assert (action.resource, action.node) not in self.not_installed
            where = sorted(node for resource, node in self.running if resource == action.resource)
            most = Copies(self.cib.configuration, len(NODES)).most(action.resource)
            assert len({*where, action.node}) <= most, f"{action.key} on {action.node}, and it is active on {where}"
        return super().perform(action)


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("lose"), st.sampled_from(NODES)),
        st.tuples(st.just("join"), st.sampled_from(NODES)),
        st.tuples(st.just("restart"), st.sampled_from(NODES)),
        st.tuples(st.just("standby"), st.sampled_from(NODES)),
        st.tuples(st.just("fail"), st.sampled_from(PRIMITIVES)),
        st.tuples(st.just("perform"), st.integers(1, 12)),
        st.tuples(st.just("configure"), configurations(is_sane=True)),
    ),
    max_size=12,
)


@often(120)
@given(
    configurations(is_sane=True),
    st.sets(st.tuples(st.sampled_from(PRIMITIVES), st.sampled_from(NODES)), max_size=3),
    _steps,
)
def test_plans_lead_to_rest_and_never_to_two_copies(
    first: Configuration, not_installed: set[tuple[ResourceId, NodeName]], steps: list[tuple[str, object]]
) -> None:
    cluster = ScheduledCluster.of(NODES)
    careful = Careful(cib=cluster.cib, calls=cluster.calls, not_installed=not_installed)
    careful.configure(first)
    for what, subject in steps:
        _take(careful, what, subject)
    careful.settle(rounds=40)
    assert not careful.plan().graph.actions
    copies = Copies(careful.cib.configuration, len(NODES))
    for resource, count in Counter(resource for resource, _ in careful.running).items():
        assert count <= copies.most(resource), careful.running
    for resource, count in Counter(resource for resource, _ in careful.promoted).items():
        assert count <= copies.most_promoted(resource), careful.promoted


def _take(cluster: ScheduledCluster, what: str, subject: object) -> None:
    if isinstance(subject, Configuration):
        cluster.configure(subject)
    elif isinstance(subject, int):
        for action in list(cluster.plan().graph.actions.values())[:subject]:
            if not cluster.perform(action):
                break
    elif what == "fail":
        _fail(cluster, ResourceId(str(subject)))
    else:
        _change_node(cluster, what, NodeName(str(subject)))


def _fail(cluster: ScheduledCluster, resource: ResourceId) -> None:
    """Let what runs, and is monitored, be found dead."""
    for name, status in cluster.cib.status.nodes.items():
        history = status.histories.get(resource)
        is_watched = history is not None and operation_key("monitor", INTERVAL_MS) in history.records
        if status.state is NodeState.ONLINE and is_watched and (resource, name) in cluster.running:
            cluster.fail(resource, name, "monitor", INTERVAL_MS, ExitCode.NOT_RUNNING, "dead")
            return


def _change_node(cluster: ScheduledCluster, what: str, node: NodeName) -> None:
    status = cluster.cib.status.nodes[node]
    others = [
        name for name, other in cluster.cib.status.nodes.items() if other.state is NodeState.ONLINE and name != node
    ]
    if what == "lose" and status.state is NodeState.ONLINE and others:
        cluster.lose(node)
    elif what == "join" and status.state is not NodeState.ONLINE:
        cluster.join(node)
    elif what == "restart" and status.state is NodeState.ONLINE:
        cluster.join(node, same_boot=True)
    elif what == "standby":
        value = None if status.attributes.get("standby") else "true"
        cluster.do(commands.SetTransientAttribute(node, "standby", value))
