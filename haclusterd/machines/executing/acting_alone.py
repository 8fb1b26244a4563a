"""What a node does on its own when it has lost the cluster: it stops its resources (safety.md §4).

Each resource that may be active here goes through the states in the tables below. Stops follow the order of the
constraints; resources without an order are stopped in parallel. Unmanaged resources are left alone, and so are those
that would have to stop after an unmanaged one: a monitor first checks whether that one runs, as its recurring monitor
has ended. With no-quorum-policy=demote, promotable resources are only demoted, and run on.

Invariant: nothing is started or promoted here. What is not proven to have stopped counts as possibly active for the
rest of this incarnation.
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
from haclusterd.model.ids import AgentReference, NodeName, ResourceId, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.scheduler.unpack.management import unmanaged

RECORDED_DEAD: Final = "this node is recorded as fenced, though it lives"


class Step(StrEnum):
    """The state of one resource on a node that acts alone."""

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
    """What changes that state."""

    TURN = "its turn has come"
    ENDED_WELL = "the agent has succeeded"
    ENDED_BADLY = "the agent has failed"
    OTHER_WAY = "the agent has succeeded, and it may run by other parameters"
    UNMANAGED = "it is unmanaged, or held by what is"
    FOUND_STOPPED = "the monitor has not found it"
    MAY_RUN = "the monitor has found it, or has failed"


WAITING: Final = (Step.TO_DEMOTE, Step.TO_DEMOTE_ONLY, Step.TO_STOP)
"""States in which an agent is to be called as soon as possible."""
UNFINISHED: Final = (*WAITING, Step.DEMOTING)
"""States in which an agent is still to be called, now or after the one that runs."""
NOT_OURS: Final = (Step.LEFT_ALONE, Step.TO_LOOK, Step.LOOKING, Step.FOUND_STOPPED, Step.HELD)
"""The resource, or what must stop before it, is unmanaged. The administrator may start what was found stopped."""
POLICY_KEEPS: Final = (Step.TO_DEMOTE_ONLY, Step.DEMOTING_ONLY, Step.KEPT)
"""It is not stopped, because of no-quorum-policy=demote."""

_ENDED = (StepEvent.ENDED_WELL, StepEvent.ENDED_BADLY)
STEPS: Final = TransitionTable(
    "A resource of a node that acts alone",
    "From when a node must stop by itself to when its incarnation ends. A node that is recorded as fenced begins once "
    "more with what it kept or left alone, and one whose no-quorum-policy no longer keeps something with that.",
    (*WAITING, Step.KEPT, Step.LEFT_ALONE, Step.TO_LOOK, Step.HELD, Step.UNKNOWN),
    (
        Transition((Step.TO_DEMOTE,), StepEvent.TURN, Step.DEMOTING),
        Transition((Step.TO_DEMOTE_ONLY,), StepEvent.TURN, Step.DEMOTING_ONLY),
        Transition((Step.TO_STOP,), StepEvent.TURN, Step.STOPPING),
        # Whatever the result of the demotion, the stop follows.
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
        # What would have to stop first is running, or it is unmanaged itself; otherwise its stop is planned.
        Transition((Step.HELD,), StepEvent.UNMANAGED, Step.LEFT_ALONE),
        # Results of actions that were started before the resource was planned again, or given up, change nothing.
        *(
            Transition((step,), event, step)
            for step in (*WAITING, Step.LEFT_ALONE, Step.TO_LOOK, Step.HELD, Step.UNKNOWN)
            for event in (*_ENDED, StepEvent.FOUND_STOPPED, StepEvent.MAY_RUN)
        ),
    ),
)


class Reset(StrEnum):
    """Whether this node asks its watchdog for a reset."""

    NOT_WANTED = "not wanted"
    WANTED = "wanted instead of its stops"
    AWAITED = "awaited before anything else"


class ResetEvent(StrEnum):
    """What changes that."""

    FENCES_ITSELF = "it acts alone, with no-quorum-policy=fence"
    GIVEN_UP = "it finds itself lost or recorded as fenced, with fence-reaction=panic"
    NEW_INCARNATION = "its next incarnation begins"


RESETS: Final = TransitionTable(
    "The wish of a node to be reset by its watchdog",
    "While it is there, the watchdog is not fed. A node that awaits its reset begins no other incarnation.",
    (Reset.NOT_WANTED,),
    (
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.FENCES_ITSELF, Reset.WANTED),
        Transition((Reset.AWAITED,), ResetEvent.FENCES_ITSELF, Reset.AWAITED),
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.GIVEN_UP, Reset.AWAITED),
        Transition((Reset.NOT_WANTED, Reset.WANTED), ResetEvent.NEW_INCARNATION, Reset.NOT_WANTED),
        # The runtime waits for the reset; if an incarnation starts nevertheless, the watchdog stays unfed.
        Transition((Reset.AWAITED,), ResetEvent.NEW_INCARNATION, Reset.AWAITED),
    ),
)


class ResetWish:
    """This node's request to be reset by its watchdog."""

    def __init__(self) -> None:
        self.state = Reset.NOT_WANTED

    def happened(self, event: ResetEvent) -> Sequence[Effect]:
        """Enter the next state; return the effect that informs the watchdog's feeder."""
        before, self.state = self.state, RESETS.after(self.state, event)
        is_wanted = self.state is not Reset.NOT_WANTED
        if event is ResetEvent.GIVEN_UP or (before is not Reset.NOT_WANTED) != is_wanted:
            return (Condemn(is_condemned=is_wanted),)
        return ()


_ACTIONS: Final = {Step.TO_STOP: ActionName.STOP, Step.TO_LOOK: ActionName.MONITOR}
"""The action of each of these steps; the other waiting steps call a demotion."""

Origin = Callable[[ResourceId], tuple[Way, ...]]
"""Alternative agents and parameters by which a resource may run here; empty: unknown."""


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
    """One alternative by which a resource is demoted and stopped."""

    agent: AgentReference
    parameters: Mapping[str, str]
    timeout_ms: int
    before: frozenset[ResourceId]
    """What must have stopped first."""
    others: tuple[Way, ...] = ()
    """Further alternatives, after a reload that did not finish: the resource may run by either set of parameters."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a node that acts alone knows."""

    cib: Cib
    in_force: NodeStatus | None
    """The CIB's newest status of this node in this boot."""
    is_recorded_dead: bool
    """Whether this boot is recorded as dead: by that record, nothing runs here."""
    policy: LonePolicy
    wall: WallTime


class ActingAlone:
    """The stops of one incarnation that acts alone; dropped with that incarnation."""

    def __init__(
        self, node: NodeName, rules: SafetyRules, active: frozenset[ResourceId], situation: Situation, origin: Origin
    ) -> None:
        """Plan to stop what is `active`, except what must be left alone."""
        self._node = node
        self._rules = rules
        self._steps: dict[ResourceId, Step] = {}
        self._ways: dict[ResourceId, _Way] = {}
        self._faced = active
        """What was known or suspected to be active here when the stops were planned."""
        self._arriving = migrating_to_or_from(situation.cib, node)
        """What may still arrive by migration after everything has stopped: a stop does not prove that it does not
        run."""
        before = stops_before(situation.cib.in_force, active)
        self.untouched = self._unmanaged(active, situation)
        """Resources that are unmanaged at the beginning: even an action under way is not ended."""
        self.held = held_by(before, self.untouched)
        """Resources that would have to stop after an unmanaged one."""
        self._steps.update(dict.fromkeys(self.untouched, Step.LEFT_ALONE))
        self._steps.update(dict.fromkeys(self.held, Step.HELD))
        self._plan_looks(before, situation, origin)
        self._plan(active - self.untouched - self.held, before, situation, origin)

    def describe(self) -> str:
        """Describe, at the beginning, what is done with what is active; empty where that is fence devices only."""
        kept = self._in(*POLICY_KEEPS)
        return described(frozenset(self._steps) - self.untouched - self.held - kept, self.untouched, self.held, kept)

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
        """Return the actions to start now; `stopping`: resources on which a lone action is at work."""
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
        """Take the result of a lone action; return whether the resource is proven to have stopped."""
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
        """Stop the resource by its next alternative, now that it does not run by this one."""
        way = self._ways[resource]
        (agent, parameters), *others = way.others
        self._ways[resource] = replace(way, agent=agent, parameters=parameters, others=tuple(others))
        self._happened(resource, StepEvent.OTHER_WAY)

    def _happened(self, resource: ResourceId, event: StepEvent) -> None:
        self._steps[resource] = STEPS.after(self._steps[resource], event)

    def stop_what_nothing_holds(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """When all checks are done, stop what no unmanaged resource holds; leave the rest alone. Return the former."""
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
        """Stop also what was left alone, once this node is recorded as fenced; return it."""
        left = self._in(*NOT_OURS, *POLICY_KEEPS)
        if not left or not situation.is_recorded_dead or not self._rules.recorded_death_ends_all:
            return frozenset()
        self._plan_again(left, situation, active, origin)
        return left

    def stop_what_was_kept(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """Stop also what no-quorum-policy=demote has kept and the policy in force does not keep; return it.

        While that is still demote, it keeps no resource that can no longer be promoted: people have changed its clone.
        """
        kept = frozenset[ResourceId]() if situation.policy.keeps_running else self._in(Step.TO_DEMOTE_ONLY, Step.KEPT)
        if kept and situation.policy is LonePolicy.DEMOTE:
            promotable = promotable_resources(situation.cib.in_force)
            kept = frozenset(each for each in kept if base_of(each) not in promotable)
        if kept:
            self._plan_again(kept, situation, active, origin)
        return kept

    def _plan_again(
        self,
        resources: frozenset[ResourceId],
        situation: Situation,
        active: Callable[[], frozenset[ResourceId]],
        origin: Origin,
    ) -> None:
        before = stops_before(situation.cib.in_force, active() | resources)
        for resource in resources:
            del self._steps[resource]
        self._plan(resources, before, situation, origin)

    def stop_what_has_come(
        self, situation: Situation, active: Callable[[], frozenset[ResourceId]], origin: Origin
    ) -> frozenset[ResourceId]:
        """Stop also what migrated here before the lease ended, if this node learns of it only now; return it."""
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
        """Stop no further what became unmanaged while this node stops it (safety.md §4); return a description of it."""
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

        An incarnation that is recorded as fenced leaves nothing alone: by the record nothing runs here, so everything
        may be started on other nodes as soon as it is managed again.
        """
        if situation.is_recorded_dead and self._rules.recorded_death_ends_all:
            return frozenset()
        return unmanaged(situation.cib, self._node, active, situation.wall)

    def _plan_looks(
        self, before: Mapping[ResourceId, frozenset[ResourceId]], situation: Situation, origin: Origin
    ) -> None:
        """Plan a monitor of what is unmanaged and must stop before something managed."""
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
            is_promotable = base_of(resource) in promotable
            is_promoted = in_force is not None and (
                known_promoted(in_force, resource) or (is_promotable and possibly_promoted(in_force, resource))
            )
            # With several alternatives a demotion may miss the running one; stopping by all of them misses none.
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
    kept: frozenset[ResourceId] = NOTHING,
) -> str:
    """Describe what a node that acts alone does with what may be active on it."""
    parts = (
        ("stopping", stopped, ""),
        ("keeping unpromoted", kept, " (no-quorum-policy=demote)"),
        ("leaving alone", untouched, " (unmanaged)"),
        ("not stopping", held, " (it must stop after what is unmanaged, if that runs)"),
    )
    return "; ".join(f"{what} {', '.join(sorted(names))}{why}" for what, names, why in parts if names)
