"""Admits new nodes: this daemon's invitations, and requests with a token.

An invitation is in this daemon's memory only, and its secret is not stored in clear. It is for one node: the first
request that proves the secret is the only one that it admits; the same request may be repeated, because an answer can
get lost. Every attempt is logged with the reason of its failure, never with what it carried.
"""

from functools import partial

from haclusterd.cib.codec import FEATURE_LEVEL
from haclusterd.cib.commands import ChangeMembers
from haclusterd.model.addresses import Address, address_text
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.durations import render as spell_duration
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, InvitationTerms, News
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import Instant, WallTime, after
from haclusterd.model.records import dataclass
from haclusterd.ports.enrolment import Applicant, Authority, AuthorityMissingError, EnrolmentListener
from haclusterd.ports.event_log import Priority
from haclusterd.protocol.enrolment import is_proven
from haclusterd.protocol.enrolment_token import SECRET_SIZE, Token, invitation_of, proof_key_of, write_token
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.members.member_change import InForce, MemberChange, Wait, with_members
from haclusterd.runtime.node import NodeRuntime
from haclusterd.verbs.answers.cluster import Invitation

PORT_OFFSET = 1
"""Offset from the Raft port to the listener's."""
CLOCKS_MAX_MS = 300_000
"""Maximum difference of clocks: a greater one would spoil certificates and histories."""
REPEAT_MS = 60_000
"""How long an admitted node may ask again: the answer may have been lost."""
WRONG_PROOFS_MAX = 5
"""Number of wrong proofs after which an invitation is withdrawn."""
INVITATIONS_MAX = 32
READ_MAX = 256
"""Number of parsed certificates that are cached."""


@dataclass(slots=True)
class _Invitation:
    name: str
    terms: InvitationTerms
    author: str
    key: bytes
    expires_at: Instant
    expires: WallTime
    wrong_proofs: int = 0
    admitted: Apply | None = None
    certificate: str = ""
    is_busy: bool = False


class EnrolmentService:
    """This daemon's invitations; see the module."""

    def __init__(self, runtime: NodeRuntime, authority: Authority, listener: EnrolmentListener) -> None:
        self._runtime = runtime
        self._authority = authority
        self._listener = listener
        self._serial = 0
        self._invitations: dict[str, _Invitation] = {}
        self._read: dict[str, CertificateFacts | None] = {}
        self.is_certificate_wanted = False
        """Whether members whose certificates are not in the CIB are to publish them: a new node needs them."""

    def certificates(self) -> dict[NodeName, CertificateFacts]:
        """Return the facts of the members' certificates; for this node, of the one in use."""
        members = self._runtime.cib.members
        shown = {name: member.certificate for name, member in members.items() if member.certificate}
        shown[self._runtime.settings.node] = self._authority.own_certificate()
        found = ((name, self._facts(pem)) for name, pem in shown.items())
        return {name: facts for name, facts in found if facts is not None}

    def _facts(self, pem: str) -> CertificateFacts | None:
        if pem not in self._read:
            if len(self._read) > READ_MAX:
                self._read.clear()
            self._read[pem] = self._authority.facts(pem)
        return self._read[pem]

    # -- inviting ---------------------------------------------------------------------------------------------------

    def invite(self, terms: InvitationTerms, author: str) -> tuple[tuple[ReportItem, ...], Invitation | None]:
        """Open the listener; return the invitation with its token, which is shown once and not stored."""
        runtime = self._runtime
        try:
            _, pin = self._authority.certificate(terms.authority)
        except AuthorityMissingError as error:
            return (report(Code.NO_AUTHORITY, problem=error),), None
        if len(self._invitations) >= INVITATIONS_MAX:
            problem = f"{INVITATIONS_MAX} invitations are open"
            return (report(Code.TRY_AGAIN, problem=problem, remedy="crm cluster invite --withdraw"),), None
        me = runtime.cib.members.get(runtime.settings.node)
        if me is None:
            return (report(Code.REFUSED, problem=f"{runtime.settings.node} is no member"),), None
        wanted = _listening_addresses(me, terms.port)
        entropy = runtime.ports.entropy
        secret = bytes.fromhex(entropy.token() + entropy.token())[:SECRET_SIZE]
        name = invitation_of(secret)
        try:
            opened = self._listener.open(wanted, partial(self._greeting, terms.authority), self._applied, self._noted)
        except OSError as error:
            what = ", ".join(map(address_text, wanted))
            return (report(Code.INPUT_OUTPUT, what=what, problem=error.strerror or str(error)),), None
        clock = runtime.ports.clock
        expires = WallTime(clock.wall() + terms.valid_ms)
        self._invitations[name] = _Invitation(
            name, terms, author, proof_key_of(secret), after(clock.now(), terms.valid_ms), expires
        )
        self.is_certificate_wanted = True
        clock.call_at(after(clock.now(), terms.valid_ms), self._tidy)
        self._log("invited", invitation=name, author=author, node=terms.node, valid_ms=terms.valid_ms)
        return (), self._answer(terms, write_token(Token(opened, pin, secret)), opened, expires)

    def _answer(self, terms: InvitationTerms, token: str, opened: tuple[Address, ...], expires: WallTime) -> Invitation:
        return Invitation(
            now=self._runtime.ports.clock.wall(),
            node=terms.node,
            token=token,
            expires=expires,
            listens_at=tuple(address_text(each) for each in opened),
            command=f"crm cluster join{f' --node {terms.node}' if terms.node else ''}",
        )

    def withdraw(self) -> int:
        """Withdraw all invitations; return how many there were."""
        count = len(self._invitations)
        self._invitations.clear()
        self._listener.close()
        self._log("withdrawn", count=count)
        return count

    def _tidy(self) -> None:
        """Forget expired invitations, and close the listener when none is left."""
        now = self._runtime.ports.clock.now()
        for name, invitation in list(self._invitations.items()):
            if now >= invitation.expires_at and not invitation.is_busy:
                del self._invitations[name]
                self._log("expired", invitation=name)
        if not self._invitations:
            self._listener.close()

    # -- applications -----------------------------------------------------------------------------------------------

    def _greeting(self, directory: str) -> Hello:
        cib, clock = self._runtime.cib, self._runtime.ports.clock
        try:
            certificate, _ = self._authority.certificate(directory)
        except AuthorityMissingError:
            certificate = ""
        return Hello(cib.cluster_uuid, cib.cluster_name, certificate, b"", clock.wall(), FEATURE_LEVEL)

    def _noted(self, address: str, why: str) -> None:
        self._log("turned-away", Priority.NOTICE, address=address, why=why)

    def _applied(self, applicant: Applicant, hello: Hello, application: Apply) -> None:
        invitation = self._invitations.get(application.invitation)
        objection = self._objection(invitation, applicant, hello, application)
        if objection is not None or invitation is None:
            assert objection is not None
            self._deny(applicant, application.node, objection)
            return
        self._log("admitting", invitation=invitation.name, node=str(application.node), address=applicant.address)
        try:
            invitation.certificate = invitation.certificate or self._authority.sign(
                invitation.terms.authority,
                application.request,
                application.node,
                [host for host, _ in application.addresses],
            )
        except AuthorityMissingError as error:
            self._deny(applicant, application.node, report(Code.NO_AUTHORITY, problem=error))
            return
        except ValueError as error:
            self._deny(applicant, application.node, report(Code.NOT_ADMITTED, problem=error))
            return
        invitation.admitted, invitation.is_busy = application, True
        self._serial += 1
        MemberChange(
            self._runtime,
            f"enrolment:{self._serial}",
            partial(self._wish, invitation, application),
            partial(self._ended, applicant, invitation, application),
            lambda text: applicant.tell(News(f"waiting: {text}")),
        ).begin()

    def _objection(
        self, invitation: _Invitation | None, applicant: Applicant, hello: Hello, application: Apply
    ) -> ReportItem | None:
        """Return why an applicant is refused; before the secret is proven, that reveals nothing about the cluster."""
        if invitation is None:
            problem = "this invitation is not known here: it is over, withdrawn, or the daemon was started again"
            return report(Code.NOT_ADMITTED, problem=problem, remedy="crm cluster invite, for another token")
        if not is_proven(invitation.key, hello, applicant.session_certificate, application):
            invitation.wrong_proofs += 1
            if invitation.wrong_proofs >= WRONG_PROOFS_MAX:
                self._invitations.pop(invitation.name, None)
            return report(Code.NOT_ADMITTED, problem="the token's secret is not proven")
        return self._objection_to_node(invitation, application)

    def _objection_to_node(self, invitation: _Invitation, application: Apply) -> ReportItem | None:
        terms, clock = invitation.terms, self._runtime.ports.clock
        if invitation.is_busy or clock.now() >= invitation.expires_at:
            problem = "an earlier attempt is still under way" if invitation.is_busy else "the token has expired"
            remedy = "try again in a moment" if invitation.is_busy else "crm cluster invite, for another token"
            return report(Code.NOT_ADMITTED, problem=problem, remedy=remedy)
        admitted = invitation.admitted
        if admitted is not None and (admitted.node, admitted.request) != (application.node, application.request):
            problem = f"the token was used already, by {admitted.node}"
            return report(Code.NOT_ADMITTED, problem=problem, remedy="crm cluster invite, for another token")
        if terms.node is not None and application.node != terms.node:
            remedy = f"add to the command: --node {terms.node}"
            return report(Code.NOT_ADMITTED, problem=f"the token is for {terms.node}", remedy=remedy)
        difference_ms = abs(application.now - clock.wall())
        if difference_ms > CLOCKS_MAX_MS:
            problem = f"the clocks differ by {spell_duration(difference_ms // 1000 * 1000)}"
            return report(Code.NOT_ADMITTED, problem=problem, remedy="set the clock of the new node (NTP, chrony)")
        level = self._runtime.cib.feature_level
        if application.feature_level < level:
            problem = f"it reads feature level {application.feature_level}, the cluster uses {level}"
            return report(Code.NOT_ADMITTED, problem=problem, remedy="install a newer version on the new node")
        return None

    def _wish(
        self, invitation: _Invitation, application: Apply, cib: Cib
    ) -> ChangeMembers | Wait | InForce | ReportItem:
        """Return the change that makes the applicant a learner; it becomes a voter when it has caught up."""
        known = cib.members.get(application.node)
        if known is not None and known.certificate == invitation.certificate:
            return InForce()
        objection = taken(cib, application.node, application.addresses)
        if objection is not None:
            return objection
        uncertified = [
            str(name)
            for name, status in sorted(cib.status.nodes.items())
            if status.state is NodeState.ONLINE and name in cib.members and not cib.members[name].certificate
        ]
        if uncertified:
            return Wait(f"{', '.join(uncertified)} must show a certificate")
        terms = invitation.terms
        member = Member(
            application.node,
            application.addresses,
            is_voter=False,
            is_witness=terms.is_witness,
            certificate=invitation.certificate,
            wants_vote=not terms.is_learner,
        )
        return with_members(cib, {member.name: member}, invitation.author, f"{application.node} joins")

    def _ended(
        self, applicant: Applicant, invitation: _Invitation, application: Apply, problem: ReportItem | None
    ) -> None:
        invitation.is_busy = False
        if problem is not None:
            # Nobody was admitted, so the invitation stays valid.
            invitation.admitted, invitation.certificate = None, ""
            self._deny(applicant, application.node, problem)
            return
        clock = self._runtime.ports.clock
        invitation.expires_at = min(invitation.expires_at, after(clock.now(), REPEAT_MS))
        clock.call_at(invitation.expires_at, self._tidy)
        cib = self._runtime.cib
        self._log("admitted", Priority.NOTICE, invitation=invitation.name, node=str(application.node))
        members = tuple(cib.members[name] for name in sorted(cib.members))
        node_timeout_ms = self._runtime.timing.node_timeout_ms
        applicant.tell(Admitted(invitation.certificate, cib.cluster_uuid, cib.cluster_name, members, node_timeout_ms))

    def _deny(self, applicant: Applicant, node: NodeName, item: ReportItem) -> None:
        self._log("denied", Priority.NOTICE, node=str(node), address=applicant.address, why=item.message)
        applicant.tell(Denied(str(item.code), item.message, item.remedy, int(item.exit_status)))

    def _log(self, what: str, priority: Priority = Priority.NOTICE, **fields: str | int | None) -> None:
        self._runtime.ports.log.write(f"enrolment.{what}", priority=priority, **fields)


def taken(cib: Cib, node: NodeName, addresses: tuple[Address, ...]) -> ReportItem | None:
    """Return why no new node can have this name or these addresses; None when it can."""
    if node in cib.membership.retired:
        problem = f"{node} was a member before: a name never comes back"
        return report(Code.NOT_ADMITTED, problem=problem, remedy="take another: --node NAME")
    if node in cib.members:
        return report(Code.EXISTS, kind="node", id=node, remedy="take another name: --node NAME")
    for name, member in sorted(cib.members.items()):
        same = sorted(set(member.addresses) & set(addresses))
        if same:
            problem = f"{address_text(same[0])} is the address of {name}"
            return report(Code.NOT_ADMITTED, problem=problem, remedy="name this machine's own: --address HOST:PORT")
    return None


def _listening_addresses(me: Member, port: int | None) -> tuple[Address, ...]:
    return tuple((host, port if port is not None else raft_port + PORT_OFFSET) for host, raft_port in me.addresses)
