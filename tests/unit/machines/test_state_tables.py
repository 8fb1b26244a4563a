"""Tables of transitions: nothing follows but what they say, and every state can be reached."""

import re
from enum import StrEnum
from typing import Any

import pytest

from haclusterd.machines.controller import DC_STATES, DcEvent, DcState
from haclusterd.machines.executing.acting_alone import POLICY_KEEPS, RESETS, STEPS, UNFINISHED, Step, StepEvent
from haclusterd.machines.executing.executor import INCARNATIONS
from haclusterd.machines.executing.resource_queue import QUEUES, QueueEvent, QueueState
from haclusterd.machines.joining import JOINING
from haclusterd.machines.planning import PLANS, PlanEvent, PlanState
from haclusterd.machines.transitions.tracked_actions import ACTIONS, ActionEvent, ActionState
from haclusterd.machines.transitions.transition import TRANSITIONS, TransitionEvent, TransitionState
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.runtime.leaving import PRESENCES, Presence, PresenceEvent
from haclusterd.runtime.members.member_change import CHANGES
from haclusterd.runtime.requests.dialogue import STAGES
from haclusterd.runtime.requests.event_followers import FOLLOWS, Follow, FollowEvent

TABLES = (
    DC_STATES, PLANS, TRANSITIONS, ACTIONS, QUEUES, INCARNATIONS, STEPS, RESETS, JOINING, STAGES, CHANGES, PRESENCES,
    FOLLOWS,
)  # fmt: skip


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"


class Push(StrEnum):
    PUSHED = "pushed"
    PULLED = "pulled"


DOOR = TransitionTable("Door", "", (Door.OPEN,), (Transition((Door.OPEN,), Push.PUSHED, Door.SHUT),))


def test_what_the_table_does_not_say_cannot_happen() -> None:
    assert DOOR.after(Door.OPEN, Push.PUSHED) is Door.SHUT
    with pytest.raises(AssertionError, match="Door: pushed cannot happen in state shut"):
        DOOR.after(Door.SHUT, Push.PUSHED)


def test_two_targets_for_one_state_and_event_are_refused() -> None:
    twice = (*DOOR.transitions, Transition((Door.OPEN,), Push.PUSHED, Door.OPEN))
    with pytest.raises(AssertionError, match="Door: two targets for open, pushed"):
        TransitionTable("Door", "", (Door.OPEN,), twice)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_event_and_state_is_used(table: TransitionTable[Any, Any]) -> None:
    events = type(table.transitions[0].event)
    assert {each.event for each in table.transitions} == set(events)
    met = {*table.initial, *(each.target for each in table.transitions)}
    met |= {source for each in table.transitions for source in each.sources}
    assert met == set(type(table.initial[0]))


IMPOSSIBLE: tuple[tuple[TransitionTable[Any, Any], StrEnum, StrEnum], ...] = (
    # A second agent beside one that is at work, of this life or of an older one.
    (QUEUES, QueueState.EXECUTING, QueueEvent.BEGIN_MONITOR),
    (QUEUES, QueueState.ABANDONED, QueueEvent.BEGIN_ORDER),
    (QUEUES, QueueState.HELD, QueueEvent.BEGIN_ALONE),
    # A DC that did not commit that it is, in the term in which it leads.
    (DC_STATES, DcState.FOLLOWER, DcEvent.CONFIRMED),
    # A plan that was made for another world is walked, or two are made at once.
    (PLANS, PlanState.OUTDATED, PlanEvent.ACCEPT),
    (PLANS, PlanState.OUTDATED_AND_DUE, PlanEvent.ACCEPT),
    (PLANS, PlanState.ASKED, PlanEvent.ASK),
    # An action is ordered before its inputs have succeeded, or twice; its order ends before it is in the CIB.
    (ACTIONS, ActionState.BLOCKED, ActionEvent.ORDER),
    (ACTIONS, ActionState.OPEN, ActionEvent.ORDER),
    (ACTIONS, ActionState.SPECULATED, ActionEvent.ORDER),
    (ACTIONS, ActionState.ORDERED, ActionEvent.SUCCEED),
    # One that waits asks twice at once, and the first answer hides what the second has seen.
    (FOLLOWS, Follow.ASKING, FollowEvent.LOOK),
    # A daemon that drains for others says twice that it has left, or does so although it takes part.
    (PRESENCES, Presence.STAYING, PresenceEvent.EMPTY),
    (PRESENCES, Presence.LEFT, PresenceEvent.EMPTY),
    # A walk goes on after its end.
    (TRANSITIONS, TransitionState.ABORTED, TransitionEvent.COMPLETE),
)


@pytest.mark.parametrize(("table", "state", "event"), IMPOSSIBLE, ids=lambda each: getattr(each, "name", ""))
def test_what_would_break_a_promise_has_no_line(
    table: TransitionTable[Any, Any], state: StrEnum, event: StrEnum
) -> None:
    with pytest.raises(AssertionError, match=re.escape(f"{table.name}: {event} cannot happen in state {state}")):
        table.after(state, event)


def test_what_a_lone_node_has_begun_comes_to_an_end() -> None:
    """No resource can be demoted or stopped for ever: along any line that changes the state an end is reached.

    It may run in a few ways, each of which is stopped once.
    """
    ends = {Step.STOPPED, Step.KEPT, Step.LEFT_ALONE, Step.FOUND_STOPPED, Step.UNKNOWN}
    following: dict[Step, set[Step]] = {step: set() for step in Step}
    for each in STEPS.transitions:
        for source in each.sources if each.event is not StepEvent.OTHER_WAY else ():
            following[source] |= {each.target} - {source}
    assert {step for step in Step if not following[step]} == ends

    def longest(step: Step, above: tuple[Step, ...] = ()) -> int:
        assert step not in above, "a circle"
        return 1 + max((longest(each, (*above, step)) for each in following[step]), default=0)

    assert max(map(longest, Step)) == 5
    assert ends.isdisjoint(UNFINISHED)
    assert Step.STOPPED not in POLICY_KEEPS
