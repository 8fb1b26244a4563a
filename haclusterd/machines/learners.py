"""Learners become voters: the DC gives the vote to learners that are to have one and have caught up, one at a time.

A voter that lacks the log would delay every commit until it has it, so a new member first gets the log without a vote
(Raft thesis §4.2.1). The number of voters is not decided here: the administrator chose it when adding the member.
"""

from collections.abc import Collection, Sequence

from haclusterd.cib.apply_members import VOTERS_MAX, waits_for
from haclusterd.cib.commands import ChangeMembers
from haclusterd.machines.effects import Effect, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName, Term
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules

RETRY_MS = 500
"""Pause between two attempts: the leader may be unable to change the members at the moment."""


class LearnersMachine:
    """Promotes learners to voters, on the DC."""

    def __init__(self, rules: SafetyRules = ALL_RULES) -> None:
        self._rules = rules
        self._ready: tuple[NodeName, ...] = ()
        self._attempt = 0
        self._retry_at = Instant(0)
        self._is_waiting = False

    def ready(self, learners: tuple[NodeName, ...]) -> None:
        """Take the learners that have caught up, as Raft reports them."""
        self._ready = learners

    def step(self, cib: Cib, term: Term, moment: Moment, heard: Collection[NodeName]) -> Sequence[Effect]:
        """Propose the next voter, if one is due.

        `heard`: the nodes with heartbeats in both directions. A voter that cannot echo would end the leases of others.
        """
        command = next_voter(cib, tuple(name for name in self._ready if name in heard), self._rules)
        self._is_waiting = command is not None
        if command is None or moment.now < self._retry_at:
            return ()
        self._attempt += 1
        self._retry_at = after(moment.now, RETRY_MS)
        return (Propose(Scope.DC, f"voter:{term}:{command.version}:{self._attempt}", command),)

    def deadline(self) -> Instant:
        """Return when `step` must be called next."""
        return self._retry_at if self._is_waiting else NEVER


def next_voter(
    cib: Cib, ready: tuple[NodeName, ...], rules: SafetyRules = ALL_RULES
) -> ChangeMembers | None:
    """Return the change that makes the next learner a voter; None when there is none, or it must wait."""
    if len(cib.voters()) >= VOTERS_MAX:
        return None
    for name in sorted(ready):
        member = cib.members.get(name)
        status = cib.status.nodes.get(name)
        if member is None or member.is_voter or not member.wants_vote:
            continue
        if status is None or status.state is not NodeState.ONLINE or status.is_leaving:
            continue
        members = {**cib.members, name: replace(member, is_voter=True, wants_vote=False)}
        command = ChangeMembers(
            cib.membership.version + 1,
            tuple(members[each] for each in sorted(members)),
            (),
            "the cluster",
            f"{name} has caught up",
        )
        return None if waits_for(cib, command, rules) else command
    return None
