"""What a plan interrupts, and for how long at most."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from haclusterd.cib.changes import Change, ChangeKind, Facts
from haclusterd.commands.context import Context, Event
from haclusterd.commands.planning.interruptions import interruptions
from haclusterd.commands.planning.measured import Measured
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.graph import ActionKind, GraphAction, Plan, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from tests.administered_clusters import NOW, ListedPast, fencing_record, running


def action(number: int, name: str, resource: str, node: str, *inputs: int, **more: Any) -> GraphAction:
    kind = more.pop("kind", ActionKind.RESOURCE)
    return GraphAction(number, kind, name, ResourceId(resource), NodeName(node), inputs, **more)


def interrupted(*actions: GraphAction, took: Mapping[str, int] = MappingProxyType({})) -> Any:
    plan = Plan(TransitionGraph({each.id: each for each in actions}), {})
    return interruptions(plan, lambda action: took.get(action.name))


def test_what_is_expected_is_as_it_was_measured_along_the_longest_way() -> None:
    move = (
        action(1, "stop", "web", "n1", timeout_ms=7000),
        action(2, "start", "web", "n2", 1, timeout_ms=5000),
    )
    assert [each.expected_ms for each in interrupted(*move, took={"stop": 300, "start": 1100})] == [1400]
    assert [each.expected_ms for each in interrupted(*move, took={"start": 1100})] == [None], "the stop never was"


def test_the_time_is_that_of_the_longest_way_to_the_new_start() -> None:
    found = interrupted(
        action(1, "stop", "web", "n1", timeout_ms=7000),
        action(2, "stop", "db", "n1", 1, timeout_ms=10_000),
        action(3, "start", "db", "n2", 2, timeout_ms=30_000),
        action(4, "start", "web", "n2", 1, 3, timeout_ms=5000),
    )
    assert [(each.resource, each.node, each.to, each.at_most_ms) for each in found] == [
        ("web", "n1", "n2", 52_000), ("db", "n1", "n2", 47_000),
    ]  # fmt: skip


def test_what_is_begun_nowhere_has_no_end() -> None:
    (found,) = interrupted(action(1, "stop", "web", "n1"))
    assert (found.to, found.at_most_ms) == (None, None)


def test_what_a_fenced_node_ran_is_interrupted_for_as_long_as_the_fencing_takes_too() -> None:
    (found,) = interrupted(
        GraphAction(1, ActionKind.FENCE, "reboot", None, NodeName("n1"), timeout_ms=60_000),
        action(2, "stop", "web", "n1", 1, kind=ActionKind.PSEUDO),
        action(3, "start", "web", "n2", 2, timeout_ms=20_000),
    )
    assert (found.node, found.to, found.at_most_ms) == ("n1", "n2", 80_000)


def test_a_role_goes_to_another_instance() -> None:
    (found,) = interrupted(
        action(1, "demote", "db", "n1", instance=ResourceId("db:0")),
        action(2, "promote", "db", "n2", 1, instance=ResourceId("db:1")),
    )
    assert (found.role, found.to) == ("Promoted", "n2")


def test_a_live_migration_interrupts_nothing() -> None:
    assert not interrupted(
        action(1, "migrate_to", "vm", "n1"), action(2, "migrate_from", "vm", "n2", 1), action(3, "stop", "vm", "n1", 2)
    )


def done(number: int, what: str, node: str, took_ms: int) -> Event:
    text = f"{what} of db on {node} succeeded in {took_ms} ms"
    kind, facts = ChangeKind.OPERATION_SUCCEEDED, Facts(action=what, outcome="ok")
    return Event(number, WallTime(NOW - 1000 + number), Change(kind, NodeName(node), ResourceId("db"), text, facts))


def test_the_newest_measurement_counts_and_records_where_the_history_says_nothing() -> None:
    cluster = running()
    past = ListedPast((done(1, "start", "n1", 500), done(2, "start", "n2", 900), done(3, "stop", "n2", 40)))
    actions = [action(number, name, "db", "n1") for number, name in enumerate(("stop", "start", "promote"))]
    context = Context(cluster.cib, NOW, "root@n1", past=past)
    assert [Measured(context, actions).of(each) for each in actions] == [40, 900, None]
    without = Measured(replace(context, past=None), actions)
    assert [without.of(each) for each in actions] == [None, 0, None], "db was started in no time, its record says"
    pseudo = action(4, "stopped", "db", "n1", kind=ActionKind.PSEUDO)
    fence = action(5, "off", "", "n2", kind=ActionKind.FENCE)
    assert [without.of(pseudo), without.of(fence)] == [0, None]
    fenced = fencing_record("n1", FenceOutcome.FENCED)
    status = replace(cluster.cib.status, fencing_history=(fenced,))
    took_ms = fenced.ended_at - fenced.issued_at
    assert Measured(replace(context, cib=replace(cluster.cib, status=status)), ()).of(fence) == took_ms > 0
