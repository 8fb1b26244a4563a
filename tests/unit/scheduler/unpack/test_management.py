"""Which resources the administrator has in hand, and when fencing would gain nothing."""

from collections.abc import Sequence

import pytest

from haclusterd.cib import commands
from haclusterd.cib.edits import Edit, PutNode, PutResource, PutSets, PutTemplate
from haclusterd.machines.moment import Moment
from haclusterd.machines.rule_judge import RuleJudge
from haclusterd.model.configuration import AttributeSet, Bundle, Clone, Group, NodeEntry, Primitive, Template
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.records import replace
from haclusterd.model.rules import DateExpression, ResourceExpression, Rule
from haclusterd.scheduler.unpack.management import is_fencing_pointless, unmanaged
from tests.unit.situations import DB, DUMMY, N1, N2, TERM, WEB, Cluster, life, primitive, started

NOW = WallTime(1_800_000_000_000)
ALL = frozenset({DB, WEB})


def block(rule: Rule | None = None, **pairs: str) -> tuple[AttributeSet, ...]:
    """Return one block of attributes; `_` stands for `-`."""
    named = tuple((name.replace("_", "-"), value) for name, value in pairs.items())
    return (AttributeSet("block", named, rule=rule),)


def cluster(*edits: Edit) -> Cluster:
    made = Cluster()
    made.configure(PutResource(primitive("db")), PutResource(primitive("web")), *edits)
    made.take(RuleJudge(TERM).step(made.cib, Moment(Instant(0), NOW, Instant(0))))
    return made


def configured(name: str, **meta: str) -> PutResource:
    return PutResource(replace(primitive(name), meta=block(**meta)))


def on_group(**meta: str) -> Edit:
    return PutResource(Group(ResourceId("g"), (DB, WEB), meta=block(**meta)))


def defaults(rule: Rule | None = None, **meta: str) -> Edit:
    return PutSets("resource_defaults", block(rule, **meta))


def properties(rule: Rule | None = None, **values: str) -> Edit:
    return PutSets("properties", block(rule, **values))


PAST = Rule("past", (DateExpression("lt", end="2020-01-01"),))
FUTURE = Rule("future", (DateExpression("gt", start="2020-01-01"),))
DUMMIES = Rule("dummies", (ResourceExpression(type="dummy"),))
OTHERS = Rule("others", (ResourceExpression(type="other"),))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], set()),
        ([configured("db", is_managed="false")], {DB}),
        ([configured("db", is_managed="no", maintenance="false")], {DB}),
        ([configured("db", maintenance="true")], {DB}),
        ([on_group(is_managed="false")], ALL),
        ([on_group(is_managed="false"), configured("db", is_managed="true")], {WEB}),
        ([on_group(maintenance="true"), configured("db", is_managed="true")], ALL),
        ([on_group(), PutResource(Clone(ResourceId("c"), ResourceId("g"), meta=block(is_managed="false")))],
         ALL),
        ([defaults(is_managed="false")], ALL),
        ([defaults(is_managed="false"), configured("db", is_managed="true")], {WEB}),
        ([defaults(FUTURE, is_managed="false")], ALL),
        ([defaults(PAST, is_managed="false")], set()),
        ([defaults(DUMMIES, is_managed="false")], ALL),
        ([defaults(OTHERS, is_managed="false")], set()),
        ([properties(maintenance_mode="true")], ALL),
        ([properties(maintenance_mode="true"), configured("db", is_managed="true")], ALL),
        ([properties(FUTURE, maintenance_mode="true")], ALL),
        ([properties(PAST, maintenance_mode="true")], set()),
        ([PutNode(NodeEntry(N2, block(maintenance="true")))], ALL),
        ([PutNode(NodeEntry(N1, block(maintenance="true")))], set()),
    ],
)  # fmt: skip
def test_what_is_unmanaged_on_a_node(edits: Sequence[Edit], expected: set[ResourceId]) -> None:
    assert unmanaged(cluster(*edits).cib, N2, ALL, NOW) == expected


def test_a_transient_attribute_takes_a_node_into_maintenance() -> None:
    made = cluster()
    made.must(commands.SetTransientAttribute(N2, "maintenance", "true", "admin", ""))
    assert unmanaged(made.cib, N2, ALL, NOW) == ALL


def test_a_template_speaks_for_its_primitives() -> None:
    made = cluster(
        PutTemplate(Template(ResourceId("t"), DUMMY, meta=block(is_managed="false"))),
        PutResource(Primitive(DB, DUMMY, template=ResourceId("t"))),
    )
    assert unmanaged(made.cib, N2, ALL, NOW) == {DB}


def test_instances_and_parts_of_bundles_are_known_by_what_they_were_made_for() -> None:
    bundle = Bundle(ResourceId("b"), "podman", "image", replicas=2, meta=block(is_managed="false"))
    made = cluster(PutResource(bundle), configured("db", is_managed="false"))
    names = {ResourceId(name) for name in ("db:1", "web:0", "b-podman-0", "gone")}
    assert unmanaged(made.cib, N2, names, NOW) == {"db:1", "b-podman-0"}


@pytest.mark.parametrize(
    ("edits", "is_pointless"),
    [
        ([], False),
        ([properties(maintenance_mode="true")], True),
        ([configured("db", is_managed="false")], False),
        ([configured("db", is_managed="false"), configured("web", is_managed="false")], True),
        ([PutNode(NodeEntry(N2, block(maintenance="true")))], False),
    ],
)
def test_fencing_gains_something_while_anything_is_managed(edits: Sequence[Edit], is_pointless: bool) -> None:
    made = cluster(*edits)
    made.lose(N2)
    assert is_fencing_pointless(made.cib, made.status(N2), NOW) is is_pointless


@pytest.mark.parametrize(("is_managed", "is_pointless"), [("false", True), ("true", False)])
def test_a_node_that_left_is_fenced_when_what_it_left_running_is_managed_again(
    is_managed: str, *, is_pointless: bool
) -> None:
    made = cluster(configured("db", is_managed="false"))
    started(made)
    made.must(commands.Leaving(N2, life(N2), (DB,)))
    assert made.status(N2).has_detached
    made.configure(configured("db", is_managed=is_managed))
    assert is_fencing_pointless(made.cib, made.status(N2), NOW) is is_pointless


def test_a_person_may_want_a_node_fenced_in_maintenance() -> None:
    made = cluster(properties(maintenance_mode="true"))
    made.must(commands.RequestFence(N2, made.status(N2).incarnation, "admin"))
    assert not is_fencing_pointless(made.cib, made.status(N2), NOW)


def test_without_resources_fencing_is_as_ever() -> None:
    made = Cluster()
    made.lose(N2)
    assert not is_fencing_pointless(made.cib, made.status(N2), NOW)
