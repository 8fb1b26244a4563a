"""Requests of administrators to one daemon: who asks, what they may do, and how many requests run at once."""

from haclusterd.commands import registry
from haclusterd.commands.api_tokens import bearer_of, known_as
from haclusterd.commands.permissions import access_of
from haclusterd.model.access import SUPERUSER, Principal
from haclusterd.model.requests import Request
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.members.enrolment import EnrolmentService
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.requests.dialogue import Dialogue
from haclusterd.runtime.requests.request_services import Answer, Caller, HangUp, RequestServices, nothing, response
from haclusterd.verbs.verb import Permission

REQUESTS_MAX = 128
"""Maximum number of requests carried out at once."""
REQUESTS_OF_OTHERS_MAX = 96
"""Maximum of them by users other than root and the daemon's own, together."""


class ControlService:
    """Takes requests from the control socket and runs a dialogue for each."""

    def __init__(self, runtime: NodeRuntime, enrolment: EnrolmentService | None = None) -> None:
        """`enrolment`: how this daemon admits new nodes; None where it cannot."""
        self._runtime = runtime
        self._services = RequestServices(runtime, enrolment)
        self._serial = 0
        self._running = 0
        self._of_others = 0

    def handle(self, request: Request, caller: Caller, answer: Answer) -> HangUp:
        """Carry out a request; `answer` gets progress messages and then one response, on the main loop.

        Return the function to call if the client disconnects before that.
        """
        if caller.objection is not None:
            answer(response(request, (caller.objection,)))
            return nothing
        needed = _permission_for(request)
        access = access_of(self._runtime.cib.in_force, caller.principal)
        if not access.permission.covers(needed):
            remedy = caller.remedy(access, needed)
            item = report(Code.NOT_PERMITTED, verb=request.verb, permission=str(needed), remedy=remedy)
            answer(response(request, (item,)))
            return nothing
        problem = self._crowding(caller)
        if problem:
            answer(response(request, (report(Code.TRY_AGAIN, problem=problem),)))
            return nothing
        self._running += 1
        self._of_others += not caller.is_trusted
        self._serial += 1
        dialogue = Dialogue(self._services, self._serial, request, caller, answer, ended=lambda: self._ended(caller))
        dialogue.begin()
        return dialogue.hang_up

    def _crowding(self, caller: Caller) -> str:
        """Return why no further request of a caller is carried out now; empty when one is."""
        if self._running >= REQUESTS_MAX:
            return f"{REQUESTS_MAX} requests are under way"
        if not caller.is_trusted and self._of_others >= REQUESTS_OF_OTHERS_MAX:
            return f"{REQUESTS_OF_OTHERS_MAX} requests of users other than root are under way"
        return ""

    def caller(self, author: str, *, is_trusted: bool, groups: tuple[str, ...] = ()) -> Caller:
        """Return the caller as known from the socket; `groups` are the names of the user's groups."""
        user = author.partition("@")[0]
        is_superuser = is_trusted or user == SUPERUSER
        return Caller(author, Principal(user, groups, is_superuser=is_superuser), is_trusted=is_trusted)

    def bearer(self, credential: str) -> Caller:
        """Return the caller of an API token, whichever program passes it on; root gains nothing by a token."""
        runtime = self._runtime
        found = bearer_of(runtime.cib, credential, runtime.ports.clock.wall())
        if isinstance(found, ReportItem):
            return Caller("", Principal(), is_trusted=False, objection=found)
        author = known_as(found.name, runtime.settings.node)
        return Caller(author, Principal(token=found.name, token_role=found.role), is_trusted=False)

    def _ended(self, caller: Caller) -> None:
        self._running -= 1
        self._of_others -= not caller.is_trusted


def _permission_for(request: Request) -> Permission:
    verb = registry.find(request.verb)
    return Permission.READ if verb is None else verb.permission_for(request.arguments)
