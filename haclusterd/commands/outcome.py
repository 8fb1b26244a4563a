"""What a verb answers: what to tell, what to propose, what to show, and what to wait for.

Invariant: an outcome with an error proposes nothing. The caller proposes `commands` in order and stops at the first
that is refused; with waiting it asks `until` after every change of the CIB, and then does what `afterwards` says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from haclusterd.cib.commands import Command
from haclusterd.commands.context import LiveView
from haclusterd.model.cluster import Cib
from haclusterd.model.enrolment import InvitationTerms
from haclusterd.model.json_value import Json
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.verbs.answers.answer import Answer, as_json

Condition = Callable[[Cib, LiveView | None], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a verb."""

    reports: tuple[ReportItem, ...] = ()
    commands: tuple[Command, ...] = ()
    answer: Answer | None = None
    """For who asked; None where reports say it all."""
    until: Condition | None = None
    """True once what was asked for is so; pure, and asked again after changes of the CIB."""
    until_plans: bool = False
    """Whether `until` asks the scheduler, and so is not asked on a main loop."""
    waiting_for: str = ""
    """What `until` waits for, for a progress line."""
    waits_by_default: bool = False
    afterwards: "Callable[[Cib, bool], Outcome] | None" = None
    """Asked once when the waiting has ended, with whether `until` came true; its commands are proposed and its reports
    shown, errors among them or not. It is asked also when the client does not wait, or has gone away."""
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


def refusal(*reports: ReportItem) -> Outcome:
    """Answer that nothing is done."""
    assert has_errors(reports)
    return Outcome(reports=reports)
