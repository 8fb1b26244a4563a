"""What a plan interrupts, and for how long at most."""

from typing import Any

from haclusterd.commands.planning.interruptions import interruptions
from haclusterd.model.graph import ActionKind, GraphAction, Plan, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId


def action(number: int, name: str, resource: str, node: str, *inputs: int, **more: Any) -> GraphAction:
    kind = more.pop("kind", ActionKind.RESOURCE)
    return GraphAction(number, kind, name, ResourceId(resource), NodeName(node), inputs, **more)


def interrupted(*actions: GraphAction) -> Any:
    return interruptions(Plan(TransitionGraph({each.id: each for each in actions}), {}))


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
