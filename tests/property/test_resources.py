"""Whatever contains whatever: the inventory is a forest of what makes sense, and of the rest it tells."""

from hypothesis import example, given
from hypothesis import strategies as st

from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    Group,
    Location,
    NodeEntry,
    Ordering,
    Primitive,
    Resource,
    Template,
    contained,
)
from haclusterd.model.ids import AgentReference, ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.unpacked_cibs import NOW, unpacked

NAMES = tuple(map(ResourceId, ("a", "b", "c", "d", "e", "r")))
names = st.sampled_from(NAMES)
agents = st.sampled_from([AgentReference.parse(text) for text in (
    "ocf:pacemaker:Dummy", "ocf:pacemaker:remote", "lsb:web", "stonith:fence_dummy")])  # fmt: skip
metas = st.dictionaries(
    st.sampled_from(["container", "remote-node", "promotable", "globally-unique", "clone-max", "clone-node-max",
                     "target-role", "priority"]),
    st.sampled_from(["a", "b", "r", "guest", "n1", "true", "false", "0", "1", "3", "Stopped", "Promoted"]),
    max_size=3,
).map(lambda pairs: (AttributeSet("m", tuple(pairs.items())),))  # fmt: skip


@st.composite
def resources(draw: st.DrawFn, name: ResourceId) -> Resource:
    kind = draw(st.sampled_from(["primitive", "primitive", "group", "clone", "bundle"]))
    if kind == "group":
        return Group(name, tuple(draw(st.lists(names, max_size=3))), meta=draw(metas))
    if kind == "clone":
        return Clone(name, draw(names), meta=draw(metas))
    if kind == "bundle":
        network = BundleNetwork(draw(st.sampled_from(["", "10.0.0.253", "nowhere"])), draw(st.sampled_from(["", "9"])))
        counts = st.none() | st.integers(-1, 3)
        return Bundle(name, "docker", "image", draw(st.none() | names), draw(counts), draw(counts), draw(counts),
                      network=draw(st.none() | st.just(network)), meta=draw(metas))  # fmt: skip
    template = draw(st.none() | st.sampled_from([ResourceId("t"), ResourceId("missing")]))
    return Primitive(name, draw(agents), meta=draw(metas), template=template)


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    one, other = (ResourceId(draw(st.sampled_from([*NAMES, "t", "a:0", "r-docker-0", "r-0", "none"]))) for _ in "12")
    score = draw(st.sampled_from([INFINITY, -INFINITY, 100, -5]))
    kind = draw(st.sampled_from(["location", "colocation", "ordering"]))
    if kind == "location":
        return Location(ConstraintId(""), one, NodeName(draw(st.sampled_from(["n1", "r", "guest", "r-0"]))), score)
    if kind == "colocation":
        return Colocation(ConstraintId(""), score, one, other)
    return Ordering(ConstraintId(""), one, other)


@st.composite
def cibs(draw: st.DrawFn) -> Cib:
    order = draw(st.permutations(NAMES))
    made = {name: draw(resources(name)) for name in order}
    template = Template(ResourceId("t"), draw(agents), meta=draw(metas))
    members = {NodeName(name): Member(NodeName(name), ()) for name in ("n1", "n2")}
    states = {name: NodeStatus(name, draw(st.sampled_from([NodeState.ONLINE, NodeState.UNSEEN]))) for name in members}
    rules = draw(st.lists(constraints(), max_size=4))
    entries = {NodeName(name): NodeEntry(NodeName(name), is_remote=True) for name in draw(st.sets(names, max_size=2))}
    configuration = Configuration(
        entries,
        made,
        {ConstraintId(f"k{index}"): replace(each, id=ConstraintId(f"k{index}")) for index, each in enumerate(rules)},
        templates={template.id: template},
    )
    return Cib(members=members, configuration=configuration, status=Status(nodes=states))


@given(cibs())
def test_the_inventory_is_a_forest(cib: Cib) -> None:
    inventory, _ = unpacked(cib)
    reached = list(inventory.tops)
    for resource in reached:
        assert inventory.by_id[resource.id] is resource
        assert all(child.parent is resource for child in resource.children)
        reached += resource.children
    assert len({resource.id for resource in reached}) == len(reached) == len(inventory.by_id)
    assert all(top.parent is None for top in inventory.tops)
    assert all(resource.variant is Variant.PRIMITIVE or resource.children for resource in reached)


@given(cibs(), st.booleans())
def test_a_plan_is_made_of_it(cib: Cib, is_compatible: bool) -> None:
    plan = schedule(cib, NOW, options=ScheduleOptions(is_pacemaker_compatible=is_compatible))
    assert schedule(cib, NOW, options=ScheduleOptions(is_pacemaker_compatible=is_compatible)) == plan


NOT_PROMOTABLE = Primitive(ResourceId("c"), AgentReference.parse("lsb:web"))
BUNDLE = Bundle(ResourceId("d"), "docker", "image", NOT_PROMOTABLE.id, promoted_max=1,
                network=BundleNetwork(control_port="9"))  # fmt: skip


@given(cibs())
@example(Cib(configuration=Configuration({}, {BUNDLE.id: BUNDLE, NOT_PROMOTABLE.id: NOT_PROMOTABLE})))
def test_what_is_not_there_is_named(cib: Cib) -> None:
    inventory, _ = unpacked(cib)
    words = " ".join(inventory.warnings)
    bases = {resource.base_id for resource in inventory.by_id.values()}
    for name in cib.configuration.resources:
        around = [name, *(each.id for each in cib.configuration.resources.values() if name in contained(each))]
        assert name in bases or any(f"{each} " in words for each in around), name


@given(cibs())
def test_launchers_and_connections_know_each_other(cib: Cib) -> None:
    inventory, _ = unpacked(cib)
    for resource in inventory.by_id.values():
        assert all(launched.launcher is resource for launched in resource.launched)
        assert resource.launcher is None or resource in resource.launcher.launched
        node = resource.remote_node
        assert node is None or (node.connection is resource and node.is_remote and node in inventory.nodes)
    for node in inventory.nodes:
        assert not node.is_remote or node.connection is None or node.connection.remote_node is node
