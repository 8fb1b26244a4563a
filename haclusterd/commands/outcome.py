"""What a verb answers: what to report, what to propose, what to show, and what to wait for.

An outcome is typed by its answer: `Outcome[Change | Fence]` shows one of the two or nothing. It is covariant, so that a
verb may hand on the outcome of a narrower one, and a refusal, which shows nothing, stands for any.

Invariant: an outcome with an error proposes nothing. The caller proposes `commands` in order and stops at the first
that is refused; with waiting it asks `until` after every change of the CIB, and then does what `afterwards` says.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, TypeVar

from haclusterd.commands.context import LiveView
from haclusterd.model.cluster import Cib
from haclusterd.model.enrolment import InvitationTerms
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.verbs.answers.answer import Answer, as_json

if TYPE_CHECKING:
    from haclusterd.cib.commands import Command

Condition = Callable[[Cib, LiveView | None], bool]
AnswerT_co = TypeVar("AnswerT_co", bound=Answer, covariant=True)
OtherT = TypeVar("OtherT", bound=Answer)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[AnswerT_co]):
    """The answer of a verb."""

    reports: tuple[ReportItem, ...] = ()
    commands: "tuple[Command, ...]" = ()
    answer: AnswerT_co | None = None
    """For who asked; None where reports say it all."""
    until: Condition | None = None
    """True once what was asked for is so; pure, and asked again after changes of the CIB."""
    until_plans: bool = False
    """Whether `until` asks the scheduler, and so is not asked on a main loop."""
    waiting_for: str = ""
    """What `until` waits for, for a progress line."""
    waits_by_default: bool = False
    afterwards: "Callable[[Cib, bool], Outcome[AnswerT_co]] | None" = None
    """Asked once when the waiting has ended, with whether `until` came true; its commands are proposed and its reports
    shown, errors among them or not. It is asked also when the client does not wait, or has gone away."""
    only_reports: bool = False
    """Whether `afterwards` only reports something: then it is not asked for a client that does not wait."""
    wait_ms_max: int | None = None
    """For how long `until` is waited for at most, whatever the caller wants; None: as the caller wants."""
    dampen_ms: int = 0
    """Commands that set transient node attributes wait so long for a newer value; answered at once. 0: no wait."""
    invite: InvitationTerms | Literal["withdraw"] | None = None
    """What only a daemon does: let a new node in, or take all invitations back; its answer becomes `data`."""
    exit_status: int | None = None
    """Of a successful verb whose status is an answer; None: 0."""

    @property
    def data(self) -> Json:
        """The answer as JSON, for rendering and for `-o json`; None where there is none."""
        return None if self.answer is None else as_json(self.answer)

    @property
    def is_refused(self) -> bool:
        """Whether any report is an error."""
        return has_errors(self.reports)

    def showing(self, answer: OtherT) -> "Outcome[OtherT]":
        """Return the same with another answer, which stays when the waiting has ended; a refusal shows nothing."""
        same: Outcome[Any] = self
        if self.is_refused:
            return replace(same, answer=None)
        then = self.afterwards
        without_answer = None if then is None else lambda cib, is_met: replace(then(cib, is_met), answer=None)
        return replace(same, answer=answer, afterwards=without_answer)


AnyOutcome = Outcome[Answer]
"""Of a verb that is not known."""


def refusal(*reports: ReportItem) -> Outcome[Never]:
    """Answer that nothing is done."""
    assert has_errors(reports)
    return Outcome(reports=reports)
