"""What a node does by itself when it has lost the cluster: it stops what it runs (safety.md §4).

Each resource that may be active here goes through states of its own, as the tables below say. Stops keep the order of
the constraints; what is not ordered is stopped in parallel. What is unmanaged is left alone, and so is what would have
to stop after it: a monitor looks first whether it runs at all, since no other one recurs here. With
no-quorum-policy=demote what can be promoted is only demoted, and runs on.

Invariant: nothing is started or promoted here. What was not proven to have stopped counts as possibly active for as
long as this life lasts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Final

from haclusterd.cib.activity import known_promoted, possibly_promoted
from haclusterd.machines.effects import Condemn, Effect
from haclusterd.machines.executing.stop_plan import held_by, stops_before, timeout_of
from haclusterd.machines.no_quorum import LonePolicy, promotable_resources
from haclusterd.model.activity import Way, migrating_to_or_from
from haclusterd.model.agent_calls import AgentResult
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.scheduler.unpack.management import unmanaged

RECORDED_DEAD: Final = "this node is recorded as fenced, though it lives"


class Step(StrEnum):
    """Where one resource stands on a node that acts alone."""

    TO_DEMOTE = "to be demoted, then stopped"
    TO_DEMOTE_ONLY = "to be demoted, and kept"
    TO_STOP = "to be stopped"
    DEMOTING = "being demoted, then stopped"
    DEMOTING_ONLY = "being demoted, and kept"
    STOPPING = "being stopped"
    STOPPED = "stopped"
    KEPT = "runs on unpromoted"
    LEFT_ALONE = "left alone"
    TO_LOOK = "unmanaged, to be looked at"
    LOOKING = "unmanaged, being looked at"
    FOUND_STOPPED = "unmanaged, found stopped"
    HELD = "to be stopped after what is looked at"
    UNKNOWN = "may be active"


class StepEvent(StrEnum):
    """What happens to it."""

    TURN = "its turn has come"
    ENDED_WELL = "the agent has succeeded"
    ENDED_BADLY = "the agent has failed"
    OTHER_WAY = "the agent has succeeded, and it may run by other parameters"
    UNMANAGED = "it is unmanaged, or held by what is"
    FOUND_STOPPED = "the monitor has not found it"
    MAY_RUN = "the monitor has found it, or has failed"


WAITING: Final = (Step.TO_DEMOTE, Step.TO_DEMOTE_ONLY, Step.TO_STOP)
"""An agent is to be called when its turn comes."""
UNFINISHED: Final = (*WAITING, Step.DEMOTING)
"""An agent is still to be called, now or after the one that runs."""
NOT_OURS: Final = (Step.LEFT_ALONE, Step.TO_LOOK, Step.LOOKING, Step.FOUND_STOPPED, Step.HELD)
"""A person has it in hand, or what must stop before it. A person may start what was found stopped."""
POLICY_KEEPS: Final = (Step.TO_DEMOTE_ONLY, Step.DEMOTING_ONLY, Step.KEPT)
"""It is not stopped, because of no-quorum-policy=demote."""

_ENDED = (StepEvent.ENDED_WELL, StepEvent.ENDED_BADLY)
STEPS: Final = TransitionTable(
    "A resource of a node that acts alone",
    "From when a node must stop by itself to when its life ends. A node that is recorded as fenced begins once more "
    "with what it kept or left alone.",
    (*WAITING, Step.KEPT, Step.LEFT_ALONE, Step.TO_LOOK, Step.HELD, Step.UNKNOWN),
    (
        Transition((Step.TO_DEMOTE,), StepEvent.TURN, Step.DEMOTING),
        Transition((Step.TO_DEMOTE_ONLY,), StepEvent.TURN, Step.DEMOTING_ONLY),
        Transition((Step.TO_STOP,), StepEvent.TURN, Step.STOPPING),
        # However the demotion ends: the stop follows.
        *(Transition((Step.DEMOTING,), event, Step.TO_STOP) for event in _ENDED),
        Transition((Step.DEMOTING_ONLY,), StepEvent.ENDED_WELL, Step.KEPT),
        Transition((Step.DEMOTING_ONLY,), StepEvent.ENDED_BADLY, Step.TO_STOP),
        Transition((Step.STOPPING,), StepEvent.ENDED_WELL, Step.STOPPED),
        Transition((Step.STOPPING,), StepEvent.ENDED_BADLY, Step.UNKNOWN),
        Transition((Step.STOPPING,), StepEvent.OTHER_WAY, Step.TO_STOP),
        Transition(UNFINISHED, StepEvent.UNMANAGED, Step.LEFT_ALONE),
        Transition((Step.TO_LOOK,), StepEvent.TURN, Step.LOOKING),
        Transition((Step.LOOKING,), StepEvent.FOUND_STOPPED, Step.FOUND_STOPPED),
        Transition((Step.LOOKING,), StepEvent.MAY_RUN, Step.LEFT_ALONE),
        # What it would have to stop after runs, or it is unmanaged itself; otherwise its stop is planned.
        Transition((Step.HELD,), StepEvent.UNMANAGED, Step.LEFT_ALONE),
        # What was begun before the plan for this resource was made again, or was given up, changes nothing.
        *(
            Transition((step,), event, step)
            for step in (*WAITING, Step.LEFT_ALONE, Step.TO_LOOK, Step.HELD, Step.UNKNOWN)
            for event in (*_ENDED, StepEvent.FOUND_STOPPED, StepEvent.MAY_RUN)
        ),
    ),
)


class Reset(StrEnum):
    """Whether this node wants its watchdog to reset it."""

    NOT_WANTED = "not wanted"
    WANTED = "wanted instead of its stops"
    AWAITED = "awaited before anything else"


class ResetEvent(StrEnum):
    """What makes it want that."""

    FENCES_ITSELF = "it acts alone, with no-quorum-policy=fence"
    GIVEN_UP = "it finds itself lost or recorded as fenced, with fence-reaction=panic"
    NEW_LIFE = "its next life begins"


RESETS: Final = TransitionTable(
    "The wish of a node to be reset by its watchdog",
    "While it is there, the watchdog is not fed. A node that awaits its reset begins no other life.",
    (Reset.NOT_WANTED,),
    (
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.FENCES_ITSELF, Reset.WANTED),
        Transition((Reset.AWAITED,), ResetEvent.FENCES_ITSELF, Reset.AWAITED),
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.GIVEN_UP, Reset.AWAITED),
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.NEW_LIFE, Reset.NOT_WANTED),
        # The runtime waits for the reset; if a life begins all the same, the watchdog stays unfed.
        Transition((Reset.AWAITED,), ResetEvent.NEW_LIFE, Reset.AWAITED),
    ),
)


class ResetWish:
    """This node's wish to be reset by its watchdog."""

    def __init__(self) -> None:
        self.state = Reset.NOT_WANTED

    def happened(self, event: ResetEvent) -> Sequence[Effect]:
        """Enter the next state; say so where the watchdog's feeder must know."""
        before, self.state = self.state, RESETS.after(self.state, event)
        is_wanted = self.state is not Reset.NOT_WANTED
        if event is ResetEvent.GIVEN_UP or (before is not Reset.NOT_WANTED) != is_wanted:
            return (Condemn(is_condemned=is_wanted),)
        return ()


_ACTIONS: Final = {Step.TO_STOP: ActionName.STOP, Step.TO_LOOK: ActionName.MONITOR}
"""What is called in these steps; in the other ones that wait, a demotion."""

Origin = Callable[[ResourceId], tuple[Way, ...]]
"""By which agent and parameters a resource may run here, in one of several ways; none: nobody knows."""


@dataclass(frozen=True, slots=True)
class LoneAction:
    """An agent to be called without an order."""

    resource: ResourceId
    action: ActionName
    agent: AgentReference
    parameters: Mapping[str, str]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class _Way:
    """How a resource is demoted and stopped."""

    agent: AgentReference
    parameters: Mapping[str, str]
    timeout_ms: int
    before: frozenset[ResourceId]
    """What must have stopped first."""
    others: tuple[Way, ...] = ()
    """How else it may run, since a reload did not come to its end: what one way stops may run by another."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a node that acts alone knows."""

    cib: Cib
    in_force: NodeStatus | None
    """What the CIB last knew of this node in this boot."""
    is_recorded_dead: bool
    """Whether the death of this boot is recorded: by that record nothing runs here."""
    policy: LonePolicy
    wall: WallTime


class ActingAlone:
    """One life's own stops: made when it must act alone, and dropped with that life."""

    def __init__(
        self, node: NodeName, rules: SafetyRules, active: frozenset[ResourceId], situation: Situation, origin: Origin
    ) -> None:
        """Plan to stop what is `active`, but for what must be left alone."""
        self._node = node
        self._rules = rules
        self._steps: dict[ResourceId, Step] = {}
        self._ways: dict[ResourceId, _Way] = {}
        self._faced = active
        """What was known to be active here, or in doubt, when it was decided what to stop."""
        self._arriving = migrating_to_or_from(situation.cib, node)
        """What may arrive when everything here has stopped: no stop proves that it does not run."""
        before = stops_before(situation.cib.in_force, active)
        self.untouched = self._unmanaged(active, situation)
        """What is unmanaged at the beginning: not even an action that is under way is ended."""
        self.held = held_by(before, self.untouched)
        """What would have to stop after it."""
        self._steps.update(dict.fromkeys(self.untouched, Step.LEFT_ALONE))
        self._steps.update(dict.fromkeys(self.held, Step.HELD))
        self._plan_looks(before, situation, origin)
        self._plan(active - self.untouched - self.held, before, situation, origin)

    def describe(self, active: frozenset[ResourceId]) -> str:
        """Say, at the beginning, what is done with what is active."""
        return described(active - self.untouched - self.held, self.untouched, self.held)

    @property
    def has_more_to_begin(self) -> bool:
        """Whether an agent is still to be called."""
        return any(step in UNFINISHED for step in self._steps.values())

    @property
    def is_proven_empty(self) -> bool:
        """Whether everything that may have been active here is proven to have stopped."""
        if self._arriving or self._in(*UNFINISHED, *POLICY_KEEPS, Step.UNKNOWN):
            return False
        return not (self._in(*NOT_OURS) and self._rules.unmanaged_is_not_empty)

    def _in(self, *steps: Step) -> frozenset[ResourceId]:
        return frozenset(resource for resource, step in self._steps.items() if step in steps)

    # -- events -----------------------------------------------------------------------------------------------------

    def next_actions(self, is_free: Callable[[ResourceId], bool], stopping: Collection[ResourceId]) -> list[LoneAction]:
        """Return what begins now; `stopping`: on what an agent called by `next_actions` is at work."""
        unfinished = {*self._in(*UNFINISHED), *stopping}
        ready = [
            resource
            for resource in sorted(self._in(*WAITING, Step.TO_LOOK))
            if is_free(resource) and not self._ways[resource].before & unfinished
        ]
        return [self._begin(resource) for resource in ready]

    def _begin(self, resource: ResourceId) -> LoneAction:
        action = _ACTIONS.get(self._steps[resource], ActionName.DEMOTE)
        self._happened(resource, StepEvent.TURN)
        way = self._ways[resource]
        return LoneAction(resource, action, way.agent, way.parameters, way.timeout_ms)

    def ended(self, resource: ResourceId, action: str, result: AgentResult) -> bool:
        """An agent called by `next_actions` has ended; return whether the resource is proven to have stopped."""
        is_whole = result.status is ExecutionStatus.DONE
        if action == ActionName.MONITOR:
            is_answer = is_whole and not self._ways[resource].others
            is_stopped = is_answer and result.exit_code == ExitCode.NOT_RUNNING
            self._happened(resource, StepEvent.FOUND_STOPPED if is_stopped else StepEvent.MAY_RUN)
            return False
        is_well = is_whole and result.exit_code == ExitCode.OK
        is_stop = self._steps[resource] is Step.STOPPING
        if is_stop and is_well and self._ways[resource].others:
            self._take_next_way(resource)
            return False
        is_proof = is_well and not (is_stop and resource in self._arriving)
        self._happened(resource, StepEvent.ENDED_WELL if is_proof else StepEvent.ENDED_BADLY)
        return self._steps[resource] is Step.STOPPED

    def _take_next_way(self, resource: ResourceId) -> None:
        """Stop it in the next way in which it may run, now that it does not run in this one."""
        way = self._ways[resource]
        (agent, parameters), *others = way.others
        self._ways[resource] = replace(way, agent=agent, parameters=parameters, others=tuple(others))
        self._happened(resource, StepEvent.OTHER_WAY)

    def _happened(self, resource: ResourceId, event: StepEvent) -> None:
        self._steps[resource] = STEPS.after(self._steps[resource], event)

    def stop_what_nothing_holds(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """When all has been looked at, stop what nothing holds that may run; leave the rest alone. Return the first."""
        waiting = self._in(Step.HELD)
        if not waiting or self._in(Step.TO_LOOK, Step.LOOKING):
            return frozenset()
        before = stops_before(situation.cib.in_force, active() | waiting)
        untouched = self._unmanaged(waiting, situation) | self._in(Step.LEFT_ALONE)
        left = waiting & (untouched | held_by(before, untouched))
        for resource in left:
            self._happened(resource, StepEvent.UNMANAGED)
        self._plan(waiting - left, before, situation, origin)
        return waiting - left

    def end_what_was_left(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """Stop what this node has left alone too, once it is recorded as fenced; return what that is."""
        left = self._in(*NOT_OURS, *POLICY_KEEPS)
        if not left or not situation.is_recorded_dead or not self._rules.recorded_death_ends_all:
            return frozenset()
        before = stops_before(situation.cib.in_force, active() | left)
        for resource in left:
            del self._steps[resource]
        self._plan(left, before, situation, origin)
        return left

    def stop_what_has_come(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """Stop also what was migrated here before the lease ended, when this node learns of it only now; return it."""
        in_force = situation.in_force
        if in_force is None or in_force.unverified <= self._faced:
            return frozenset()
        now_active = active()
        come = (in_force.unverified & now_active) - self._faced
        self._faced |= in_force.unverified
        if come:
            self._arriving |= migrating_to_or_from(situation.cib, self._node)
            self._plan(come, stops_before(situation.cib.in_force, now_active), situation, origin)
        return come

    def leave_what_became_unmanaged(self, situation: Situation) -> str:
        """Begin no further step of what a person takes in hand while this node stops it (safety.md §4); describe it."""
        unfinished = self._in(*UNFINISHED)
        untouched = self._unmanaged(unfinished, situation)
        if not untouched:
            return ""
        held = held_by({resource: self._ways[resource].before for resource in unfinished}, untouched)
        for resource in untouched | held:
            self._happened(resource, StepEvent.UNMANAGED)
        return described(untouched=untouched, held=held)

    # -- plans ------------------------------------------------------------------------------------------------------

    def _unmanaged(self, active: frozenset[ResourceId], situation: Situation) -> frozenset[ResourceId]:
        """Return what is unmanaged here: the cluster must not stop it (Pacemaker Explained, "is-managed").

        A life that is recorded as fenced leaves nothing alone: by the record nothing runs here, so everything may be
        started on other nodes from the moment on in which it is managed again.
        """
        if situation.is_recorded_dead and self._rules.recorded_death_ends_all:
            return frozenset()
        return unmanaged(situation.cib, self._node, active, situation.wall)

    def _plan_looks(
        self, before: Mapping[ResourceId, frozenset[ResourceId]], situation: Situation, origin: Origin
    ) -> None:
        """Have a monitor look at what is unmanaged and must stop before something that is not."""
        holding = frozenset[ResourceId]().union(*(before[resource] for resource in self.held))
        for resource in sorted(self.untouched & holding):
            ways = origin(resource)
            if not ways:
                continue
            (agent, parameters), *others = ways
            timeout_ms = timeout_of(ActionName.MONITOR, situation.cib.in_force, resource, situation.wall)
            self._ways[resource] = _Way(agent, parameters, timeout_ms, frozenset(), tuple(others))
            self._steps[resource] = Step.TO_LOOK

    def _plan(
        self,
        active: frozenset[ResourceId],
        before: Mapping[ResourceId, frozenset[ResourceId]],
        situation: Situation,
        origin: Origin,
    ) -> None:
        configuration, in_force = situation.cib.in_force, situation.in_force
        is_demoting = situation.policy is LonePolicy.DEMOTE and not situation.is_recorded_dead
        promotable = promotable_resources(configuration)
        for resource in sorted(active):
            ways = origin(resource)
            if not ways:
                self._steps[resource] = Step.UNKNOWN
                continue
            (agent, parameters), *others = ways
            if agent.standard == "stonith":
                continue
            timeout_ms = timeout_of(ActionName.STOP, configuration, resource, situation.wall)
            self._ways[resource] = _Way(agent, parameters, timeout_ms, before[resource], tuple(others))
            is_promotable = ResourceId(resource.partition(":")[0]) in promotable
            is_promoted = in_force is not None and (
                known_promoted(in_force, resource) or (is_promotable and possibly_promoted(in_force, resource))
            )
            # Where it may run in several ways, a demotion may miss it; nothing misses it when all of them were stopped.
            is_kept = is_demoting and is_promotable and not others
            self._steps[resource] = _first_step(is_promoted=is_promoted, is_kept=is_kept)


def _first_step(*, is_promoted: bool, is_kept: bool) -> Step:
    if is_promoted:
        return Step.TO_DEMOTE_ONLY if is_kept else Step.TO_DEMOTE
    return Step.KEPT if is_kept else Step.TO_STOP


NOTHING: Final[frozenset[ResourceId]] = frozenset()


def described(
    stopped: frozenset[ResourceId] = NOTHING,
    untouched: frozenset[ResourceId] = NOTHING,
    held: frozenset[ResourceId] = NOTHING,
) -> str:
    """Say what a node that acts alone does with what may be active on it."""
    parts = (
        ("stopping", stopped, ""),
        ("leaving alone", untouched, " (unmanaged)"),
        ("not stopping", held, " (it must stop after what is unmanaged, if that runs)"),
    )
    return "; ".join(f"{what} {', '.join(sorted(names))}{why}" for what, names, why in parts if names)
