"""Changes of the configuration asked for while others are under way: all made, in one order, each at most once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.cib import commands
from haclusterd.cib.codec import decode_envelope
from haclusterd.cib.edits import PutResource
from haclusterd.commands.attribute_sets import effective
from haclusterd.model.requests import Options
from haclusterd.runtime.requests.changes_under_way import CHAIN_MAX
from haclusterd.runtime.requests.dialogue import COMMIT_WAIT_MS
from tests.unit.runtime.desk import Desk, put_on_another_node, status_of
from tests.unit.runtime.one_daemon import N2
from tests.unit.situations import primitive


def put(desk: Desk, name: str, value: str = "x") -> str:
    arguments = {"action": "set", "node": "n2", "name": name, "value": value, "lifetime": "forever"}
    return desk.ask("node.attribute", arguments, Options(wait_ms=0))


def attributes(desk: Desk) -> dict[str, str]:
    entry = desk.daemon.cib.configuration.nodes.get(N2)
    return {} if entry is None else dict(effective(entry.attributes))


def proposed(desk: Desk) -> list[Any]:
    found = (decode_envelope(entry).command for entry in desk.daemon.store.entries)
    return [command for command in found if isinstance(command, commands.ChangeConfiguration)]


def test_changes_that_are_asked_for_together_are_proposed_together_and_all_made() -> None:
    desk = Desk()
    names = [put(desk, f"a{number}") for number in range(10)]
    desk.daemon.clock.run()
    assert [command.expected_epoch for command in proposed(desk)] == list(range(10))
    assert all(desk.response(name) is None for name in names)
    desk.daemon.settle()
    assert [status_of(desk, name) for name in names] == [0] * 10
    assert attributes(desk) == {f"a{number}": "x" for number in range(10)}
    assert desk.daemon.cib.version.epoch == 10


def test_of_very_many_changes_some_wait_and_all_are_made() -> None:
    desk = Desk()
    names = [put(desk, f"a{number}") for number in range(CHAIN_MAX + 20)]
    desk.daemon.clock.run()
    assert len(proposed(desk)) == CHAIN_MAX
    desk.daemon.settle()
    assert [status_of(desk, name) for name in names] == [0] * (CHAIN_MAX + 20)
    assert desk.daemon.cib.version.epoch == CHAIN_MAX + 20


def test_a_change_from_another_node_comes_first_and_all_are_decided_upon_again() -> None:
    desk = Desk()
    names = [put(desk, f"a{number}") for number in range(5)]
    put_on_another_node(desk)
    desk.daemon.settle()
    assert [status_of(desk, name) for name in names] == [0] * 5
    assert desk.daemon.cib.version.epoch == 6


def test_a_change_is_not_made_to_what_somebody_else_committed_under_the_expected_number() -> None:
    desk = Desk()
    first, second = put(desk, "one"), put(desk, "two")
    desk.daemon.clock.run()
    entry_of_first, entry_of_second = desk.daemon.store.entries[-2:]
    put_on_another_node(desk)
    assert desk.daemon.store.commit(entry_of_second).refusal is not None
    assert attributes(desk) == {}
    desk.daemon.store.commit(entry_of_first)
    desk.daemon.settle()
    assert [status_of(desk, name) for name in (first, second)] == [0, 0]
    assert attributes(desk) == {"one": "x", "two": "x"}
    assert desk.daemon.cib.version.epoch == 3


def test_nothing_to_do_is_said_of_what_is_committed_only() -> None:
    desk = Desk()
    first, second = put(desk, "one"), put(desk, "one")
    desk.daemon.clock.run()
    assert desk.response(second) is None
    desk.daemon.settle()
    assert desk.codes(first) == ["CONFIGURATION_CHANGED"]
    assert desk.codes(second) == ["NOTHING_TO_DO"]


def test_a_refusal_that_rests_on_what_is_under_way_is_said_only_when_that_is_made() -> None:
    desk = Desk()
    desk.daemon.put(commands.ChangeConfiguration(0, (PutResource(primitive("svc", "ocf:x:y")),), "a", ""))
    desk.daemon.clock.run()
    gone = desk.ask("configure.delete", {"ids": ["svc"]}, Options(wait_ms=0))
    again = desk.ask("configure.delete", {"ids": ["svc"]}, Options(wait_ms=0))
    desk.daemon.clock.run()
    assert desk.response(again) is None
    desk.daemon.settle()
    assert status_of(desk, gone) == 0
    assert desk.codes(again) == ["UNKNOWN_OBJECT"]


def test_a_question_sees_nothing_that_is_not_committed() -> None:
    desk = Desk()
    put(desk, "one")
    asked = desk.ask("configure.show")
    response = desk.response(asked)
    assert response is not None
    assert "one" not in str(response.data)


def test_a_chain_whose_outcome_is_unknown_holds_nobody_up() -> None:
    desk = Desk()
    put(desk, "one")
    waiting = put(desk, "one")
    desk.daemon.store.entries.clear()
    desk.daemon.clock.run(COMMIT_WAIT_MS)
    desk.daemon.store.entries.clear()
    desk.daemon.clock.run(1000)
    desk.daemon.settle()
    assert status_of(desk, waiting) == 0
    assert attributes(desk) == {"one": "x"}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(("ask", "ask", "another", "commit", "commit", "all", "time")), max_size=40))
def test_whatever_the_order_each_change_is_made_once(steps: list[str]) -> None:
    desk = Desk()
    asked, others = [], 0
    for step in steps:
        if step == "ask":
            asked.append(put(desk, f"a{len(asked)}"))
        elif step == "another":
            put_on_another_node(desk)
            others += 1
        elif step == "commit" and desk.daemon.store.entries:
            desk.daemon.store.commit(desk.daemon.store.entries.pop(0))
        elif step == "all":
            desk.daemon.store.commit_all()
        else:
            desk.daemon.clock.run(5)
    desk.daemon.settle()
    assert [status_of(desk, name) for name in asked] == [0] * len(asked)
    assert attributes(desk) == {f"a{number}": "x" for number in range(len(asked))}
    assert desk.daemon.cib.version.epoch == len(asked) + others


@pytest.mark.parametrize("count", [2, 3])
def test_changes_of_several_kinds_stay_in_their_order(count: int) -> None:
    desk = Desk()
    names = []
    for number in range(count):
        names.append(put(desk, f"a{number}"))
        names.append(desk.ask("node.standby", {"node": "n2"}, Options(wait_ms=0)))
        names.append(desk.ask("node.online", {"node": "n2"}, Options(wait_ms=0)))
    desk.daemon.settle()
    assert [status_of(desk, name) for name in names] == [0] * (3 * count)
    assert "standby" not in attributes(desk)
