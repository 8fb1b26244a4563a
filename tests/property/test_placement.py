"""What is said about scores is so: the parts make the whole, and with so many points more the other node wins."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haclusterd.model.configuration import Configuration, Location
from haclusterd.model.graph import NodeScore, Placement
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.scores import add
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.examples import examples
from tests.scheduled_clusters import ScheduledCluster, configured

NODES = ("n1", "n2", "n3")
RESOURCES = ("a", "b", "c")

_scores = st.one_of(st.integers(-300, 300), st.sampled_from(["inf", "-inf"]))


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """Crm text: primitives with stickiness and locations, some to be with or apart from others before them."""
    lines = ["property fencing-enabled=false"]
    lines += [
        f"primitive {name} ocf:haclusterd:dummy meta resource-stickiness={draw(st.integers(0, 200))}"
        for name in RESOURCES
    ]
    for number, (name, node) in enumerate(
        draw(st.lists(st.tuples(st.sampled_from(RESOURCES), st.sampled_from(NODES)), max_size=6, unique=True))
    ):
        lines.append(f"location l{number} {name} {draw(_scores)}: {node}")
    for number, (dependent, primary) in enumerate(
        draw(st.lists(st.sampled_from([("b", "a"), ("c", "a"), ("c", "b")]), max_size=3, unique=True))
    ):
        lines.append(f"colocation k{number} {draw(_scores)}: {dependent} {primary}")
    return "\n".join(lines) + "\n"


def _cluster(text: str) -> ScheduledCluster:
    cluster = ScheduledCluster.of(NODES)
    cluster.configure(configured(text))
    return cluster


def _placed(cluster: ScheduledCluster, extra: Location | None, resource: ResourceId) -> Placement:
    cib = cluster.cib
    if extra is not None:
        configuration: Configuration = cib.configuration
        constraints = {**configuration.constraints, extra.id: extra}
        cib = replace(cib, configuration=replace(configuration, constraints=constraints))
    return schedule(cib, cluster.now, options=ScheduleOptions(is_explaining=True)).placements[resource]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations(), st.booleans())
def test_named_parts_make_the_score(text: str, is_running: bool) -> None:
    cluster = _cluster(text)
    if is_running:
        cluster.settle()
    for placement in cluster.plan(is_explaining=True).placements.values():
        for score in placement.scores:
            total = 0
            for part in score.addends:
                assert part.source
                total = add(total, part.score)
            assert total == score.score


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations(), st.sampled_from(NODES), st.booleans())
def test_with_so_many_points_more_another_node_wins_and_with_one_less_it_does_not(
    text: str, node: str, is_running: bool
) -> None:
    """Of the resource that depends on none and is placed first: nothing else changes with its score."""
    alone = "\n".join(line for line in text.splitlines() if not line.startswith("colocation"))
    cluster = _cluster(alone + "\n")
    if is_running:
        cluster.settle()
    resource = ResourceId("a")
    before = _placed(cluster, None, resource)
    here = next(each for each in before.scores if each.node == node)
    points = _points(here)
    if points is None:
        return
    for number, is_chosen in ((points, True), (points - 1, False)):
        extra = Location(ConstraintId("more"), resource, node=NodeName(node), score=number)
        assert (_placed(cluster, extra, resource).next_on == node) is is_chosen


def _points(score: NodeScore) -> int | None:
    """How many are said to be missing, when nothing else is."""
    if len(score.to_win) != 1 or " more: " not in score.to_win[0]:
        return None
    return int(score.to_win[0].split()[0])
