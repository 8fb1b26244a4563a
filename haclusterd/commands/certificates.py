"""Verbs about the certificates of the members: how long they are good, revoke one.

What is in the CIB is PEM; until when it is valid comes from the daemon that answers, because only it reads ASN.1.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Final

from haclusterd.cib.commands import ChangeMembers, RequestCertificate
from haclusterd.commands.context import Context, LiveView
from haclusterd.commands.names import find_node
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.ids import NodeName
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.verbs.answers.node import Certificate, Certificates, Membership
from haclusterd.verbs.arguments import Arguments

WARN_BEFORE_MS: Final = 60 * 24 * 3600 * 1000
"""A certificate that ends sooner is named in the status."""
DAY_MS: Final = 24 * 3600 * 1000
DAYS_A_YEAR: Final = 365
DAYS_SHOWN: Final = 2 * DAYS_A_YEAR
FINGERPRINT_LENGTH: Final = 64
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def fingerprint_of(pem: str) -> str:
    """Return the SHA-256 of the certificate in DER form, in hexadecimal digits; empty when it is none."""
    body = pem.partition(_BEGIN)[2].partition(_END)[0]
    try:
        return hashlib.sha256(base64.b64decode("".join(body.split()), validate=True)).hexdigest() if body else ""
    except (binascii.Error, ValueError):
        return ""


def standing(facts: CertificateFacts, now: int) -> str:
    """Return how long a certificate is good, in words."""
    left_ms = facts.not_after - now
    if left_ms < 0:
        return f"ended {-left_ms // DAY_MS} days ago"
    if now < facts.not_before:
        return "is not good yet: look at the clocks"
    days = left_ms // DAY_MS
    return f"ends in {days} days" if days < DAYS_SHOWN else f"ends in {days // DAYS_A_YEAR} years"


def ending(context: Context) -> Iterator[tuple[NodeName, str]]:
    """Yield the members whose certificates end soon, with how soon."""
    known = context.live.certificates if context.live is not None else {}
    for name, facts in sorted(known.items()):
        is_near = facts.not_after - context.now < WARN_BEFORE_MS or context.now < facts.not_before
        if name in context.cib.members and is_near:
            yield name, standing(facts, context.now)


def certificates(context: Context, arguments: Arguments) -> Outcome[Certificates | Membership]:
    """Show the members' certificates, or revoke one."""
    action, node = arguments.word("action") or "show", arguments.word("node")
    if action == "show":
        return _show(context)
    if not node:
        return refusal(report(Code.MISSING_ARGUMENT, verb="cluster certificates", name="NODE", meaning="whose"))
    return _renew(context, node) if action == "renew" else _revoke(context, node)


def _renew(context: Context, word: str) -> Outcome[Membership]:
    """Let a node make another key, and have it signed by the node that has the authority's."""
    name = find_node(context, word)
    if isinstance(name, ReportItem):
        return refusal(name)
    member, status = context.cib.members.get(name), context.cib.status.nodes.get(name)
    if member is None or status is None or status.state is not NodeState.ONLINE:
        return refusal(report(Code.REFUSED, problem=f"{name} is not online", remedy="crm status"))
    before = member.certificate

    def is_renewed(cib: Cib, _: LiveView | None) -> bool:
        now = cib.members.get(name)
        return now is not None and name not in cib.membership.renewals and now.certificate != before

    return Outcome(
        (report(Code.REQUESTED, what=f"{name} has another certificate; its old one is revoked in a moment"),),
        commands=(RequestCertificate(name, "", context.author, context.reason),),
        answer=Membership(node=name, what="renewed", version=0),
        until=is_renewed,
        waiting_for=f"{name} to ask, and the node with the authority's key to answer",
        waits_by_default=True,
    )


def _show(context: Context) -> Outcome[Certificates]:
    """Answer every member's certificate and what is revoked (schema `haclusterd.certificates/1`)."""
    known = context.live.certificates if context.live is not None else {}
    rows: list[Certificate] = []
    for name in sorted(context.cib.members):
        facts = known.get(name)
        rows.append(
            Certificate(
                node=name,
                fingerprint=facts.fingerprint if facts else "",
                not_after=facts.not_after if facts else None,
                standing=standing(facts, context.now) if facts else "is not known here",
                is_revoked=facts is not None and facts.fingerprint in context.cib.membership.revoked,
            )
        )
    return Outcome(
        answer=Certificates(
            now=context.now,
            certificates=tuple(rows),
            revoked=tuple(context.cib.membership.revoked),
        )
    )


def _revoke(context: Context, name: str) -> Outcome[Membership]:
    """Accept a certificate no more: a node's, or the one with this fingerprint."""
    word = name.lower()
    is_fingerprint = len(word) == FINGERPRINT_LENGTH and all(digit in "0123456789abcdef" for digit in word)
    fingerprint = word if is_fingerprint else _fingerprint_of_node(context, name)
    if isinstance(fingerprint, ReportItem):
        return refusal(fingerprint)
    if fingerprint in context.cib.membership.revoked:
        return Outcome((report(Code.NOTHING_TO_DO, state="it is revoked"),))
    owner = _owner(context, fingerprint)
    if owner is not None and not context.is_forced and context.cib.status.nodes[owner].state is NodeState.ONLINE:
        problem = f"{owner} uses this certificate: without it, it is cut off, lost, and fenced"
        remedy = f"crm cluster certificates renew {owner}, which revokes the old one; or --force"
        return refusal(report(Code.UNSAFE, problem=problem, remedy=remedy))
    cib = context.cib
    members = tuple(cib.members[name] for name in sorted(cib.members))
    change = ChangeMembers(cib.membership.version + 1, members, (fingerprint,), context.author, context.reason)
    return Outcome(
        (report(Code.REQUESTED, what=f"the certificate {fingerprint[:16]} is not accepted any more"),),
        commands=(change,),
        answer=Membership(node=owner, what="revoked", version=change.version),
    )


def _fingerprint_of_node(context: Context, word: str) -> str | ReportItem:
    name = find_node(context, word)
    if isinstance(name, ReportItem):
        return name
    member = context.cib.members.get(name)
    live = context.live.certificates.get(name) if context.live is not None else None
    found = fingerprint_of(member.certificate) if member is not None and member.certificate else ""
    found = found or (live.fingerprint if live is not None else "")
    return found or report(Code.REFUSED, problem=f"the certificate of {name} is not known here",
                           remedy="name its fingerprint")  # fmt: skip


def _owner(context: Context, fingerprint: str) -> NodeName | None:
    known = context.live.certificates if context.live is not None else {}
    found = [name for name, facts in sorted(known.items()) if facts.fingerprint == fingerprint]
    return next((name for name in found if name in context.cib.members), None)


VERBS = (carry_out_by("cluster.certificates", certificates, answers(Certificates, Membership)),)
