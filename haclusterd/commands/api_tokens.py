"""Verbs about API tokens, and who it is that shows one.

A token is made where it is asked for, and only its digest is sent here, so that neither the log, nor the history, nor
a daemon's memory ever has the token itself.
"""

from typing import Never

from haclusterd.cib.commands import AddApiToken, RevokeApiToken
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.permissions import ROLE_FOR
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model import durations
from haclusterd.model.access import SimpleRole
from haclusterd.model.api_tokens import DIGEST, TOKEN_CHARACTERS_MAX, TOKENS_MAX, ApiToken, digest_of
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NCNAME, NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.requests import VIA
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.answer import extended
from haclusterd.verbs.answers.cluster import Identity, ShownToken, Token, Tokens
from haclusterd.verbs.arguments import Arguments

DEFAULT_VALID_MS = 90 * 86_400_000
LONGEST_VALID_MS = 10 * 365 * 86_400_000
NEVER = "never"
LONGEST_NAME = 64


def bearer_of(cib: Cib, credential: str, now: WallTime) -> ApiToken | ReportItem:
    """Return the token that this is, or why it is not accepted."""
    if not credential:
        return report(Code.NOT_AUTHENTICATED, problem="the request carries no token")
    digest = digest_of(credential) if len(credential) <= TOKEN_CHARACTERS_MAX else ""
    found = next((each for each in cib.api_tokens.values() if each.digest == digest), None)
    if found is None:
        return report(Code.NOT_AUTHENTICATED, problem="this token is not known here, or was revoked")
    if found.is_expired(now):
        return report(Code.NOT_AUTHENTICATED, problem=f"the token {found.name} has expired")
    return found


def known_as(name: str, node: NodeName) -> str:
    """Return who the bearer of a token is in the history: the token, and the node that was asked."""
    return f"token:{name}@{node}"


def add(context: Context, arguments: Arguments) -> Outcome[Token]:
    """Accept a token (schema `haclusterd.api_token/1`)."""
    name, digest = arguments.word("name"), arguments.word("digest")
    objections: list[ReportItem] = []
    if not NCNAME.match(name) or len(name) > LONGEST_NAME:
        objections.append(report(Code.BAD_ID, id=name[:LONGEST_NAME]))
    if not DIGEST.match(digest):
        problem = "must be the SHA-256 of the token, in 64 hexadecimal digits"
        objections.append(report(Code.BAD_ARGUMENT, name="digest", problem=problem))
    valid_ms = _valid_ms(arguments.word("valid"))
    if isinstance(valid_ms, ReportItem):
        objections.append(valid_ms)
    if name in context.cib.api_tokens:
        remedy = f"choose another name, or first: crm api token revoke {name}"
        objections.append(report(Code.EXISTS, kind="API token", id=name, remedy=remedy))
    role = arguments.word("role")
    roles = (*SimpleRole, *context.cib.configuration.acl_roles)
    if role not in roles:
        remedy = did_you_mean(role, roles, f"one of: {', '.join(roles)}")
        objections.append(report(Code.UNKNOWN_ROLE, where=f"API token {name[:LONGEST_NAME]}", role=role, remedy=remedy))
    if len(context.cib.api_tokens) >= TOKENS_MAX:
        problem = f"there are {TOKENS_MAX} API tokens"
        objections.append(report(Code.REFUSED, problem=problem, remedy="revoke some: crm api token list"))
    if objections or isinstance(valid_ms, ReportItem):
        return refusal(*objections)
    expires_at = WallTime(context.now + valid_ms if valid_ms else 0)
    token = ApiToken(name, digest, role, context.author, context.now, expires_at)
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"API token {name} is accepted, role {token.role}"),),
        commands=(AddApiToken(token, context.author, context.reason),),
        answer=extended(Token, _shown(context, token), now=context.now),
    )


def _valid_ms(text: str) -> int | ReportItem:
    """Read for how long a token is good; 0: for ever."""
    if text == NEVER:
        return 0
    try:
        found = durations.parse(text) if text else DEFAULT_VALID_MS
    except ValueError:
        found = 0
    if not 0 < found <= LONGEST_VALID_MS:
        problem = f"{text!r} is no span up to ten years (write it like 720h, or {NEVER})"
        return report(Code.BAD_ARGUMENT, name="valid", problem=problem)
    return found


def listed(context: Context, _arguments: Arguments) -> Outcome[Tokens]:
    """Answer the tokens, without their digests (schema `haclusterd.api_tokens/1`)."""
    rows = tuple(_shown(context, each) for _, each in sorted(context.cib.api_tokens.items()))
    return Outcome(answer=Tokens(now=context.now, tokens=rows))


def _shown(context: Context, token: ApiToken) -> ShownToken:
    return ShownToken(
        name=token.name,
        role=str(token.role),
        author=token.author,
        created_at=token.created_at,
        expires_at=token.expires_at or None,
        is_expired=token.is_expired(context.now),
    )


def revoke(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Revoke a token."""
    name = arguments.word("name")
    if name not in context.cib.api_tokens:
        remedy = did_you_mean(name, tuple(context.cib.api_tokens), "see: crm api token list")
        return refusal(report(Code.NO_SUCH_TOKEN, name=repr(name), remedy=remedy))
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"API token {name} is revoked"),),
        commands=(RevokeApiToken(name, context.author, context.reason),),
    )


def whoami(context: Context, _arguments: Arguments) -> Outcome[Identity]:
    """Answer as whom one is known here, and what one may (schema `haclusterd.whoami/1`)."""
    access = context.access
    role = ", ".join(access.roles) or str(ROLE_FOR[access.permission])
    return Outcome(
        answer=Identity(
            author=context.author.partition(VIA)[0],
            permission=str(access.permission),
            role=role,
            why=access.why,
            is_restricted=access.rules is not None,
        )
    )


VERBS = (
    carry_out_by("api.whoami", whoami, answers(Identity)),
    carry_out_by("api.token_list", listed, answers(Tokens)),
    carry_out_by("api.token_add", add, answers(Token)),
    carry_out_by("api.token_revoke", revoke, answers()),
)
