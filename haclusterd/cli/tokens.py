"""`crm api token`: a token is made here, and only its digest is sent to the cluster; it is shown once."""

import secrets
from collections.abc import Mapping

from haclusterd.cli.parsing import UsageError
from haclusterd.cli.render.fields import fields
from haclusterd.cli.session import Session
from haclusterd.model.api_tokens import TOKEN_BYTES, TOKEN_PREFIX, digest_of
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace


def token(session: Session, arguments: Mapping[str, Json]) -> int:
    """Carry out `crm api token add|list|revoke`; return the exit status."""
    action = str(arguments["action"])
    given = {name: value for name, value in arguments.items() if name != "action" and value is not None}
    if action == "list":
        return session.show(session.ask("api.token_list", given))
    if "name" not in given:
        raise UsageError("the name of the token is missing", f"crm api token {action} NAME")
    if action == "revoke":
        return session.show(session.ask("api.token_revoke", given))
    return _add(session, given)


def _add(session: Session, given: Mapping[str, Json]) -> int:
    if "role" not in given:
        raise UsageError("the role of the token is missing", "add --role viewer, operator or admin")
    made = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    answer = session.ask("api.token_add", {**given, "digest": digest_of(made)})
    if answer.exit == 0 and not session.options.dry_run:
        answer = replace(answer, data={**fields(answer.data), "token": made})
    return session.show(answer)
