"""A new certificate for a member, through the log: the member asks, and the node with the authority's key answers.

The member signs its request with its present key, so that nobody else can ask in its name. Its new key never leaves
it. The answer changes the members; the member starts using the new key when it applies that change, and once its links
use it, the old certificate is revoked.
"""

from functools import partial

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import ChangeMembers, RequestCertificate
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, after
from haclusterd.ports.enrolment import Authority, AuthorityMissingError
from haclusterd.ports.event_log import Priority
from haclusterd.reports.items import ReportItem
from haclusterd.runtime.members.member_change import InForce, MemberChange, Wait, with_certificate, with_members
from haclusterd.runtime.node import NodeRuntime

REVOKE_AFTER_MS = 10_000
"""Time in which every link has been established again."""
PAUSE_MS = 10_000
"""Pause after a failed attempt."""
AUTHORITY = "the authority"


class RenewalService:
    """This daemon's part in renewals: as the member that asks, and as the node that has the authority's key."""

    def __init__(self, runtime: NodeRuntime, authority: Authority) -> None:
        self._runtime = runtime
        self._authority = authority
        self._serial = 0
        self._is_busy = False
        self._retry_at = Instant(0)
        self._refused: tuple[NodeName, str] | None = None
        """The newest request that cannot be granted."""
        runtime.watch(self._look)

    def adopt(self, certificate: str) -> bool:
        """Start using this node's new certificate, and have the old one revoked soon; return whether it was new."""
        old = self._authority.own_certificate()
        if certificate == old or not self._authority.adopt(certificate):
            return False
        facts = self._authority.facts(old)
        if facts is not None:
            clock = self._runtime.ports.clock
            clock.call_at(after(clock.now(), REVOKE_AFTER_MS), partial(self._revoke, facts.fingerprint))
        return True

    def _look(self) -> None:
        renewals = self._runtime.cib.membership.renewals
        if not renewals or self._is_busy or self._runtime.ports.clock.now() < self._retry_at:
            return
        node = self._runtime.settings.node
        if renewals.get(node) == "":
            self._ask(node)
        elif self._authority.has_key():
            asked = [(name, request) for name, request in sorted(renewals.items()) if request]
            for name, request in asked:
                if (name, request) != self._refused:
                    self._answer(name, request)
                    return

    def _ask(self, node: NodeName) -> None:
        """Make the request; a member whose certificate is not in the CIB yet publishes it first."""
        if not self._runtime.cib.members[node].certificate:
            return
        request = self._authority.begin_renewal(node)
        if not request:
            self._pause("the new key cannot be kept")
            return
        self._is_busy = True
        self._serial += 1
        command = RequestCertificate(node, request, str(node))
        self._runtime.propose(f"renewal:{self._serial}", command, self._asked)

    def _asked(self, _: Applied) -> None:
        self._is_busy = False

    def _answer(self, node: NodeName, request: str) -> None:
        member = self._runtime.cib.members[node]
        hosts = [host for host, _ in member.addresses]
        try:
            certificate = self._authority.sign_renewal(request, node, hosts, member.certificate)
        except (AuthorityMissingError, ValueError) as error:
            self._refused = (node, request)
            self._log("refused", node=str(node), why=str(error))
            return
        self._is_busy = True
        self._serial += 1
        self._log("signed", node=str(node))
        wish = partial(self._wish, node, request, certificate)
        MemberChange(self._runtime, f"renewal:{self._serial}", wish, self._ended).begin()

    @staticmethod
    def _wish(
        node: NodeName, request: str, certificate: str, cib: Cib
    ) -> ChangeMembers | Wait | InForce | ReportItem:
        member: Member | None = cib.members.get(node)
        if member is None or cib.membership.renewals.get(node) != request:
            return InForce()
        return with_certificate(cib, member, certificate, AUTHORITY)

    def _revoke(self, fingerprint: str) -> None:
        def wish(cib: Cib) -> ChangeMembers | Wait | InForce | ReportItem:
            if fingerprint in cib.membership.revoked:
                return InForce()
            return with_members(cib, {}, str(self._runtime.settings.node), "replaced", (fingerprint,))

        self._serial += 1
        MemberChange(self._runtime, f"renewal:{self._serial}", wish, self._ended).begin()

    def _ended(self, problem: ReportItem | None) -> None:
        self._is_busy = False
        if problem is not None:
            self._pause(problem.message)

    def _pause(self, why: str) -> None:
        self._retry_at = after(self._runtime.ports.clock.now(), PAUSE_MS)
        self._log("failed", why=why)

    def _log(self, what: str, **fields: str) -> None:
        self._runtime.ports.log.write(f"renewal.{what}", priority=Priority.NOTICE, **fields)
