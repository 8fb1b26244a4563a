"""`apply` for API tokens: which programs may send requests, as whom (0010-requests.md, "In whose name")."""

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import AddApiToken, RevokeApiToken
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse
from haclusterd.model.api_tokens import DIGEST, TOKENS_MAX
from haclusterd.model.cluster import Cib
from haclusterd.model.records import replace


def add_api_token(cib: Cib, command: AddApiToken, entry: Entry) -> Verdict:
    """Accept a token from now on."""
    token = command.token
    if token.name in cib.api_tokens:
        return refuse(cib, RefusalCode.DUPLICATE_KEY, f"there is an API token {token.name} already")
    if not DIGEST.match(token.digest) or any(each.digest == token.digest for each in cib.api_tokens.values()):
        return refuse(cib, RefusalCode.DUPLICATE_KEY, "this is no digest of a new token")
    if len(cib.api_tokens) >= TOKENS_MAX:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"there are {TOKENS_MAX} API tokens: revoke some first")
    made = replace(token, created_at=entry.at, author=command.author)
    tokens = dict(sorted({**cib.api_tokens, token.name: made}.items()))
    text = f"API token {token.name} made, role {token.role}{by(command.author, command.reason)}"
    return accept(replace(cib, api_tokens=tokens), change(ChangeKind.API_TOKEN_CHANGED, text))


def revoke_api_token(cib: Cib, command: RevokeApiToken, entry: Entry) -> Verdict:
    """Forget a token; an unknown one is accepted as forgotten."""
    if command.name not in cib.api_tokens:
        return accept(cib)
    tokens = {name: each for name, each in cib.api_tokens.items() if name != command.name}
    text = f"API token {command.name} revoked{by(command.author, command.reason)}"
    return accept(replace(cib, api_tokens=tokens), change(ChangeKind.API_TOKEN_CHANGED, text))
