"""One change of the members, from the request to the entry in force.

Only one change is under way at a time in a cluster, and each waits until every online node follows the one before. So
a request is turned into a command by the newest CIB, proposed, and made again when it was too early or another change
came first; until it is in force, refused for good, or its time is over.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from haclusterd.cib.apply_members import objection_to, waits_for
from haclusterd.cib.changes import Applied, RefusalCode
from haclusterd.cib.commands import ChangeMembers
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import after
from haclusterd.model.records import dataclass, replace
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.ports.clock import Timer
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.node import NodeRuntime

WISH_MS = 60_000
PAUSE_MS = 200
ANSWER_MS = 5_000
"""How long a proposal may be in flight before the user is informed what is missing."""

TOO_EARLY = frozenset({RefusalCode.MEMBERS_NOT_NOW, RefusalCode.MEMBERS_CONFLICT})


@dataclass(frozen=True, slots=True)
class Wait:
    """Not possible yet; `text` names what is awaited."""

    text: str


@dataclass(frozen=True, slots=True)
class InForce:
    """The requested state already holds."""


Wish = Callable[[Cib], ChangeMembers | Wait | InForce | ReportItem]
"""Returns, by a CIB, the command to propose; a report says why the change can never be made."""


class ChangeState(StrEnum):
    """The state of a change of the members."""

    WAITING = "waits for its turn"
    CONSIDERED = "is made into a command"
    PROPOSED = "a majority is asked"
    ENDED = "in force, refused, or given up"


class ChangeEvent(StrEnum):
    """What changes that state."""

    CONSIDER = "its turn has come"
    PROPOSE = "it may be made now"
    TOO_EARLY = "another change is under way"
    SILENCE = "a majority does not answer"
    END = "it is decided, or the time is over"


CHANGES: Final = TransitionTable(
    "A change of the members",
    "One at a time in a cluster; what came too early is considered again over the newest CIB.",
    (ChangeState.WAITING,),
    (
        Transition((ChangeState.WAITING,), ChangeEvent.CONSIDER, ChangeState.CONSIDERED),
        Transition((ChangeState.CONSIDERED,), ChangeEvent.PROPOSE, ChangeState.PROPOSED),
        Transition((ChangeState.CONSIDERED, ChangeState.PROPOSED), ChangeEvent.TOO_EARLY, ChangeState.WAITING),
        Transition((ChangeState.PROPOSED,), ChangeEvent.SILENCE, ChangeState.PROPOSED),
        Transition((ChangeState.CONSIDERED, ChangeState.PROPOSED), ChangeEvent.END, ChangeState.ENDED),
    ),
)


class MemberChange:
    """One change; see the module."""

    def __init__(
        self,
        runtime: NodeRuntime,
        key: str,
        wish: Wish,
        done: Callable[[ReportItem | None], None],
        waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`done` is called once, with the problem or None; `waiting` with what is awaited, when that changes."""
        self._runtime = runtime
        self._key = key
        self._wish = wish
        self._done = done
        self._waiting = waiting
        self._said = ""
        self._attempt = 0
        self._clock = runtime.ports.clock
        self._until = after(self._clock.now(), WISH_MS)
        self._timer: Timer | None = None
        self._state = ChangeState.WAITING

    def _happened(self, event: ChangeEvent) -> None:
        self._state = CHANGES.after(self._state, event)

    def begin(self) -> None:
        """Start the change; `done` may be called at once."""
        self._happened(ChangeEvent.CONSIDER)
        cib = self._runtime.cib
        wanted = self._wish(cib)
        match wanted:
            case InForce():
                self._end(None)
            case ReportItem():
                self._end(wanted)
            case Wait(text=text):
                self._again(text)
            case ChangeMembers():
                self._propose(cib, wanted)

    def _propose(self, cib: Cib, command: ChangeMembers) -> None:
        objection = objection_to(cib, command)
        if objection:
            self._end(report(Code.REFUSED, problem=objection))
            return
        waiting = waits_for(cib, command)
        if waiting:
            self._again(waiting)
            return
        self._happened(ChangeEvent.PROPOSE)
        self._attempt += 1
        self._tell("a majority is to agree on the change of the members")
        self._runtime.propose(self._proposal, command, self._applied)
        self._call_in(ANSWER_MS, self._unanswered)

    @property
    def _proposal(self) -> str:
        return f"{self._key}:{self._attempt}"

    def _applied(self, applied: Applied) -> None:
        self._stop()
        if applied.refusal is None:
            self._end(None)
        elif applied.refusal.code in TOO_EARLY:
            self._again(applied.refusal.text)
        else:
            self._end(report(Code.REFUSED, problem=applied.refusal.text))

    def _again(self, why: str) -> None:
        if self._clock.now() >= self._until:
            self._end(report(Code.TRY_AGAIN, problem=why))
            return
        self._happened(ChangeEvent.TOO_EARLY)
        self._tell(why)
        self._call_in(PAUSE_MS, self.begin)

    def _unanswered(self) -> None:
        """Report what is missing, and continue: the proposal is repeated until its time is over."""
        if self._clock.now() < self._until:
            self._happened(ChangeEvent.SILENCE)
            self._tell("a majority does not answer")
            self._call_in(ANSWER_MS, self._unanswered)
            return
        self._runtime.forget(self._proposal)
        self._end(report(Code.OUTCOME_UNKNOWN, problem="no majority answered"))

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._waiting(text)

    def _end(self, problem: ReportItem | None) -> None:
        self._happened(ChangeEvent.END)
        self._stop()
        self._done(problem)

    def _call_in(self, span_ms: int, call: Callable[[], None]) -> None:
        self._stop()
        self._timer = self._clock.call_at(after(self._clock.now(), span_ms), call)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def with_members(
    cib: Cib, changed: Mapping[NodeName, Member], author: str, reason: str, revoked: tuple[str, ...] = ()
) -> ChangeMembers:
    """Return the change that adds or replaces members, and revokes certificates."""
    members = {**cib.members, **changed}
    listed = tuple(members[name] for name in sorted(members))
    return ChangeMembers(cib.membership.version + 1, listed, revoked, author, reason)


def with_certificate(cib: Cib, member: Member, certificate: str, author: str) -> ChangeMembers:
    """Return the change by which the others get a member's certificate."""
    return with_members(cib, {member.name: replace(member, certificate=certificate)}, author, "")
