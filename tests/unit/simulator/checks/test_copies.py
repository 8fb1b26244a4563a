"""How many copies the judge allows while a resource changes its shape: by what was ordered when, and what runs."""

from collections.abc import Sequence
from typing import cast

import pytest

from haclusterd.model.cluster import Cib, Member
from haclusterd.model.configuration import AttributeSet, Clone, Configuration, Group, Primitive, Resource
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.records import replace
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.checker import Log, Scene, ViolationError
from haclusterd.simulator.checks.checkers_of_copies import NeverTwoActive
from haclusterd.simulator.checks.shapes import Limits, limits_of
from haclusterd.simulator.hosts.truth import Truth
from haclusterd.simulator.hosts.world import World
from tests.unit.situations import order

SERVICE = AgentReference("ocf", "simulated", "service")
DB, FELLOW, WHOLE, TEAM = (ResourceId(name) for name in ("db", "fellow", "whole", "team"))
ALONE, FELLOW_ALONE = Primitive(DB, SERVICE), Primitive(FELLOW, SERVICE)


def whole(**meta: str) -> Clone:
    pairs = tuple((name.replace("_", "-"), value) for name, value in meta.items())
    return Clone(WHOLE, DB, meta=(AttributeSet("whole-meta", pairs),))


UNIQUE, PROMOTABLE = {"globally_unique": "true"}, {"promotable": "true"}
EXPECTED: Sequence[tuple[tuple[Resource, ...], Limits]] = (
    ((ALONE,), Limits(1, 0, 0)),
    ((ALONE, whole()), Limits(3, 0, 0)),
    ((ALONE, whole(clone_max="2")), Limits(2, 0, 0)),
    ((ALONE, whole(clone_node_max="2", clone_max="4")), Limits(0, 4, 0)),
    ((ALONE, whole(**UNIQUE)), Limits(0, 3, 0)),
    ((ALONE, whole(clone_node_max="2", globally_unique="false")), Limits(3, 0, 0)),
    ((ALONE, whole(**PROMOTABLE)), Limits(3, 0, 1, 1)),
    ((ALONE, whole(promoted_max="2")), Limits(3, 0, 0)),
    ((ALONE, whole(promoted_max="2", **PROMOTABLE)), Limits(3, 0, 2, 1)),
    ((ALONE, whole(promoted_max="2", promoted_node_max="2", **PROMOTABLE)), Limits(3, 0, 2, 2)),
    ((ALONE, Group(TEAM, (DB,))), Limits(1, 0, 0)),
    ((ALONE, Group(TEAM, (DB,)), replace(whole(clone_max="2"), child=TEAM)), Limits(2, 0, 0)),
)


@pytest.mark.parametrize(("resources", "limits"), EXPECTED)
def test_limits_follow_from_what_people_write(resources: Sequence[Resource], limits: Limits) -> None:
    configuration = Configuration(resources={each.id: each for each in resources})
    assert limits_of(configuration, 3)[DB] == limits


class Stage:
    """The hosts' facts, people's configurations and the DC's orders, with the judge looking on."""

    def __init__(self, *resources: Resource) -> None:
        self.log = Log()
        self.truth = Truth(World(1))
        self.judge = NeverTwoActive(cast("Scene", None), self.log)
        self.truth.show_to(self.judge)
        self.configure(ALONE, *resources)

    def configure(self, *resources: Resource) -> None:
        """Let people write this instead of what was there."""
        members = {name: Member(name, ()) for name in map(NodeName, ("n1", "n2", "n3"))}
        configuration = Configuration(resources={each.id: each for each in resources})
        self.log.shapes.configured(Cib(configuration=configuration, members=members))

    def issue(self, key: str) -> AgentCall:
        """Issue an order by the configuration of now; what it begins is said later."""
        self.log.orders[OrderKey(key)] = replace(order(key), key=OrderKey(key))
        self.log.shapes.issued(OrderKey(key))
        return AgentCall(key, DB, "db", SERVICE, "start", {}, {}, 5000, Incarnation("boot", "life"))

    def begin(self, call: AgentCall, node: str, name: str = "db", action: str = "start") -> None:
        """Let an agent begin."""
        call = replace(call, resource=ResourceId(name), action=action)
        made = ResourceId(f"{name}^promoted" if action == "promote" else name)
        self.truth.agent_begins(NodeName(node), call)
        self.truth.start_begins(NodeName(node), made)
        self.truth.service_begins(NodeName(node), made)
        self.truth.start_ends(NodeName(node), made)

    def run(self, node: str, name: str = "db", action: str = "start") -> None:
        """Have something ordered and begun at once."""
        self.begin(self.issue(f"1.1.{len(self.log.orders)}"), node, name, action)

    def stop(self, node: str, name: str = "db") -> None:
        """Let it end."""
        self.truth.service_ends(NodeName(node), ResourceId(name))

    def refuses(self, node: str, name: str = "db", action: str = "start") -> bool:
        """Tell whether the judge objects to something that is ordered and begun at once; it does not stay."""
        made = ResourceId(f"{name}^promoted" if action == "promote" else name)
        try:
            self.run(node, name, action)
        except ViolationError:
            self.truth.start_ends(NodeName(node), made)
            return True
        self.stop(node, made)
        return False


def test_of_a_primitive_there_is_one() -> None:
    stage = Stage()
    stage.run("n1")
    assert stage.refuses("n2")
    stage.run("n1")  # A start where it runs makes no second copy.
    stage.stop("n1")
    assert not stage.refuses("n2")


def test_of_a_clone_there_are_as_many_as_clone_max_says() -> None:
    stage = Stage(whole(clone_max="2"))
    stage.run("n1")
    stage.run("n2")
    assert stage.refuses("n3")
    stage.configure(ALONE, whole())
    assert not stage.refuses("n3")


def test_on_one_node_as_many_are_promoted_as_promoted_node_max_says() -> None:
    many = {**UNIQUE, **PROMOTABLE, "promoted_max": "3", "clone_node_max": "2"}
    stage = Stage(whole(**many))
    stage.run("n1", "db:0", "promote")
    assert stage.refuses("n1", "db:1", "promote")
    assert not stage.refuses("n2", "db:1", "promote")
    stage.configure(ALONE, whole(promoted_node_max="2", **many))
    assert not stage.refuses("n1", "db:1", "promote")


def test_what_was_a_clone_begins_no_second_copy_by_an_order_of_the_new_shape() -> None:
    stage = Stage(whole())
    stage.run("n1")
    stage.run("n2")
    stage.configure(ALONE)
    assert stage.refuses("n3"), "also while two of the old shape are there"
    stage.stop("n1")
    assert stage.refuses("n3")
    stage.stop("n2")
    assert not stage.refuses("n3")


def test_what_was_ordered_by_the_old_shape_may_still_begin() -> None:
    stage = Stage(whole())
    stage.run("n1")
    late = stage.issue("late")
    stage.configure(ALONE)
    stage.begin(late, "n2")
    with pytest.raises(ViolationError, match="db is, or may be, active on n3 and n1 and n2"):
        stage.run("n3")


def test_what_is_started_right_after_its_removal_is_measured_by_its_last_shape() -> None:
    """An order that was on its way then is accepted: what is not configured is left to plans."""
    stage = Stage(whole(clone_max="2", **UNIQUE))
    stage.configure()
    stage.run("n1", "db:0")
    stage.run("n2", "db:1")
    assert stage.refuses("n3", "db:2")
    stage.configure(FELLOW_ALONE)
    assert stage.refuses("n3", "db:2")


def test_a_shape_in_between_counts_for_what_was_ordered_before_it() -> None:
    stage = Stage()
    early = stage.issue("early")
    stage.configure(ALONE, whole(clone_max="2"))
    stage.run("n1")
    stage.configure(ALONE)
    stage.begin(early, "n2")
    assert stage.refuses("n3")


def test_an_instance_of_a_unique_clone_runs_once_whatever_the_shape_was() -> None:
    stage = Stage(whole(**UNIQUE))
    stage.run("n1", "db:0")
    stage.run("n1", "db:1")
    late = stage.issue("late")
    stage.configure(ALONE, whole())
    for node in ("n2", "n3"):
        assert stage.refuses(node, "db:0")
    with pytest.raises(ViolationError, match="run once"):
        stage.begin(late, "n3", "db:1")


def test_no_instance_begins_with_a_number_beyond_clone_max() -> None:
    stage = Stage(whole(clone_max="2", **UNIQUE))
    stage.run("n1", "db:0")
    assert stage.refuses("n2", "db:2")
    assert not stage.refuses("n2", "db:1")


def test_no_instance_begins_beside_as_many_others_as_clone_max_says() -> None:
    stage = Stage(whole(clone_max="2", **UNIQUE))
    stage.run("n1", "db:1")
    late = stage.issue("late")
    stage.configure(ALONE, whole(clone_max="1", **UNIQUE))
    assert stage.refuses("n2", "db:0")
    stage.begin(late, "n2", "db:0")


def test_the_numbered_and_the_plain_name_are_never_there_together() -> None:
    stage = Stage(whole())
    stage.run("n1")
    late = stage.issue("late")
    stage.configure(ALONE, whole(**UNIQUE))
    assert stage.refuses("n2", "db:0"), "though both shapes allow three copies"
    stage.stop("n1")
    stage.run("n2", "db:0")
    with pytest.raises(ViolationError, match="which is one service"):
        stage.begin(late, "n1")


def test_as_many_are_promoted_as_promoted_max_says_by_whatever_names() -> None:
    stage = Stage(whole(**PROMOTABLE, **UNIQUE))
    stage.run("n1", "db:0")
    stage.run("n2", "db:1")
    stage.run("n1", "db:0", "promote")
    assert stage.refuses("n2", "db:1", "promote")
    stage.configure(ALONE, whole(**PROMOTABLE, **UNIQUE, promoted_max="2"))
    late = stage.issue("late")
    stage.configure(ALONE, whole(**PROMOTABLE, **UNIQUE))
    assert stage.refuses("n2", "db:1", "promote"), "by an order of now"
    stage.begin(late, "n2", "db:1", "promote")


def test_two_copies_never_meet_on_one_node() -> None:
    stage = Stage(whole())
    stage.run("n1")
    stage.run("n2")
    with pytest.raises(ViolationError, match="db is, or may be, active twice on n2"):
        stage.truth.service_moves(NodeName("n1"), NodeName("n2"), DB)


def test_a_copy_that_moves_makes_no_more_of_them() -> None:
    stage = Stage(whole())
    stage.run("n1")
    stage.run("n2")
    stage.configure(ALONE)
    stage.truth.service_moves(NodeName("n1"), NodeName("n3"), DB)
    assert stage.refuses("n1")


def test_what_is_removed_and_comes_again_as_something_else_has_ended_first() -> None:
    stage = Stage(whole(**UNIQUE))
    stage.run("n3", "db:2")
    stage.configure()
    stage.configure(ALONE)
    assert stage.refuses("n1")
    stage.stop("n3", "db:2")
    assert not stage.refuses("n1")
