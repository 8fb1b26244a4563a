"""Who sends requests to a daemon, and what all requests share."""

from collections.abc import Callable

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.permissions import ROLE_FOR, Access, access_of
from haclusterd.model.access import Principal
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, replace
from haclusterd.model.requests import ORIGIN, VIA, Basis, Progress, Request, Response
from haclusterd.protocol.control import EncodedResponse, shown_report
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, exit_status, report
from haclusterd.runtime.members.enrolment import EnrolmentService
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.requests.agent_catalogue import AgentCatalogue, AgentValidations
from haclusterd.runtime.requests.changes_under_way import ChangesUnderWay
from haclusterd.runtime.requests.dampened_attributes import DampenedAttributes
from haclusterd.runtime.requests.event_followers import EventFollowers
from haclusterd.runtime.requests.live_view import live_view
from haclusterd.runtime.requests.past_catalogue import PastCatalogue, VersionCatalogue
from haclusterd.verbs.verb import Permission

WIDEN = (
    "be root; or root lets the whole group haclient do it, on every node: "
    "crm configure property control-group-permission={}"
)
"""Remedy for a missing permission, for a user of this machine."""
OTHER_TOKEN = "use a token of role {0}; one is made with: crm api token add NAME --role {0}"

GRANT = "be root; or root gives you a role that may: crm configure acl_target USER ROLE; see: crm acl whoami"
"""The same where access control lists are in force."""
SUPER = Principal("root", is_superuser=True)

Answer = Callable[[Progress | Response | EncodedResponse], None]
HangUp = Callable[[], None]
"""Called when the client has disconnected; harmless after the answer."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, by the socket's credentials or a token."""

    author: str
    principal: Principal = SUPER
    is_trusted: bool = True
    """Whether this is root, or the user that runs the daemon."""
    objection: ReportItem | None = None
    """Why every request is refused; empty: it is not."""

    def remedy(self, access: Access, needed: Permission) -> str:
        """Return the remedy for a missing permission."""
        if self.principal.token:
            return OTHER_TOKEN.format(ROLE_FOR[needed])
        return f"{WIDEN.format(needed)}, or gives you a role, see: crm acl whoami" if access.rules is None else GRANT

    @property
    def whose(self) -> str:
        """The user for whom `Background.apart` works."""
        return "" if self.is_trusted else self.author


class RequestServices:
    """What all requests to one daemon share."""

    def __init__(self, runtime: NodeRuntime, enrolment: EnrolmentService | None) -> None:
        self.runtime = runtime
        self._enrolment = enrolment
        self.dampened = DampenedAttributes(runtime)
        self.changes = ChangesUnderWay()
        ports = runtime.ports
        self.followers = EventFollowers(ports.clock, ports.history, lambda: runtime.leaderless_since is None)
        runtime.watch_history(self.followers.recorded)

    def invite(self, outcome: AnyOutcome, author: str) -> AnyOutcome:
        """Do the part of a verb that only a daemon can do; return the outcome with its result."""
        if self._enrolment is None or outcome.invite is None:
            return replace(outcome, reports=(report(Code.NOT_OFFLINE, what="an invitation"),))
        if outcome.invite == "withdraw":
            self._enrolment.withdraw()
            return outcome
        reports, answer = self._enrolment.invite(outcome.invite, author)
        return replace(outcome, reports=(*outcome.reports, *reports), answer=answer)

    def context(
        self,
        request: Request,
        caller: Caller,
        *,
        now: WallTime,
        cib: Cib,
        agents: AgentCatalogue,
        versions: VersionCatalogue,
        past: PastCatalogue,
        validations: AgentValidations | None = None,
    ) -> Context:
        """Return what a verb may look at: `cib` is the state it decides by, `now` when it was asked."""
        return Context(
            cib=cib,
            now=now,
            author=_author(request, caller),
            reason=request.options.reason,
            access=access_of(cib.in_force, caller.principal),
            if_version=request.options.if_version,
            live=replace(
                live_view(self.runtime),
                pending_attributes=self.dampened.values(),
                certificates={} if self._enrolment is None else self._enrolment.certificates(),
            ),
            agents=agents,
            versions=versions,
            past=past,
            validations=validations,
            secrets=self.runtime.ports.secrets,
            is_token=bool(caller.principal.token),
            is_forced=request.options.force,
            is_preview=request.options.dry_run,
            no_validate=request.options.no_validate,
        )


def _author(request: Request, caller: Caller) -> str:
    """Return the author for the history: the user or token, and the interface if it was not crm."""
    tool = request.arguments.get("tool") if request.verb == "tool.run" else None
    origin = request.origin or (tool if isinstance(tool, str) and ORIGIN.match(tool) else "")
    return f"{caller.author}{VIA}{origin}" if origin else caller.author


def nothing() -> None:
    """Do nothing."""
    return


def response(
    request: Request,
    reports: tuple[ReportItem, ...],
    data: Json = None,
    status: int | None = None,
    basis: Basis | None = None,
) -> Response:
    """Return the answer to a request; its exit status is that of its first error, or else `status`."""
    found = int(exit_status(reports))
    return Response(request.id, found or (status or 0), tuple(shown_report(item) for item in reports), data, basis)
