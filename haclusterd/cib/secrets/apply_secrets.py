"""`apply` for secrets: sealed values, the key that seals them, and who has it (docs/design/0017-secrets.md).

Nothing here can open a sealed text, so its content is as the proposer says. What is decided here is the sequence: no
change overwrites another one, and no value is forgotten with which something may still run.
"""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.cib.changes import ChangeKind, RefusalCode
from haclusterd.cib.commands import DeleteSecret, NoteSecretShown, PutSecret, RotateSecrets, ShareSecretKey
from haclusterd.cib.verdict import Entry, Verdict, accept, by, change, refuse
from haclusterd.model.activity import may_be_active, started_as
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import BEGINNINGS, ActionName
from haclusterd.model.orders import Order
from haclusterd.model.records import replace
from haclusterd.model.secrets import (
    ALL_SEALED_MAX,
    EARLIER_MAX,
    NAME,
    SEALED_MAX,
    SECRETS_MAX,
    Secret,
    Secrets,
    WrappedKey,
    is_kept,
    parameter_blocks,
    reference_of,
    references_of,
    size_of,
)

KEY_CHARACTERS_MAX = 1024
"""Maximum size of a key's id, a public key, or a sealed key."""


def put_secret(cib: Cib, command: PutSecret, entry: Entry) -> Verdict:
    """Set the value of a secret; values with which something may still run are kept beside it."""
    secrets = cib.secrets
    if command.expected_version != secrets.version:
        return _conflict(cib, command.expected_version)
    if not NAME.match(command.name) or not 0 < len(command.sealed) <= SEALED_MAX:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, "this is no name of a secret, or no sealed value")
    if command.keys and secrets.key_id:
        return refuse(cib, RefusalCode.DUPLICATE_KEY, "there is a secret key already")
    keys = _sound(cib, command.keys) if command.keys else secrets.keys
    if not keys or not command.key_id or command.key_id != (secrets.key_id or command.key_id):
        return refuse(cib, RefusalCode.UNKNOWN_KEY, "it is sealed by a key that is not in force")
    known = secrets.values.get(command.name)
    if known is None and len(secrets.values) >= SECRETS_MAX:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, f"there are {SECRETS_MAX} secrets: delete some first")
    others = sum(size_of(name, each.sealed) for name, each in secrets.values.items() if name != command.name)
    if others + size_of(command.name, command.sealed) > ALL_SEALED_MAX:
        return refuse(cib, RefusalCode.WRONG_NODE_STATE, "the secrets together are too large: delete some first")
    earlier = {} if known is None else _still_used(cib, command.name, known)
    if len(earlier) > EARLIER_MAX:
        text = f"something may still run with each of the {EARLIER_MAX} values before; wait until it was restarted"
        return refuse(cib, RefusalCode.STILL_ACTIVE, text)
    made = Secret(entry.index, command.sealed, entry.at, command.author, earlier)
    values = dict(sorted({**secrets.values, command.name: made}.items()))
    after = replace(secrets, version=secrets.version + 1, key_id=command.key_id, keys=keys, values=values)
    text = f"secret {command.name} {'changed' if known else 'made'}{by(command.author, command.reason)}"
    return accept(replace(cib, secrets=after), change(ChangeKind.SECRET_CHANGED, text))


def delete_secret(cib: Cib, command: DeleteSecret, entry: Entry) -> Verdict:
    """Forget a secret that is not in use; an unknown one is accepted as forgotten."""
    name, secrets = command.name, cib.secrets
    if name not in secrets.values:
        return accept(cib)
    users = used_by(cib.configuration, name)
    if users:
        return refuse(cib, RefusalCode.UNSAFE_CONFIGURATION, f"{', '.join(users)} refers to secret {name}")
    running = [f"{resource} on {node}" for node, resource, found, _ in _in_use(cib) if found == name]
    if running:
        text = f"{', '.join(dict.fromkeys(running))} may still run with secret {name}"
        return refuse(cib, RefusalCode.STILL_ACTIVE, text)
    values = {key: each for key, each in secrets.values.items() if key != name}
    after = replace(secrets, version=secrets.version + 1, values=values)
    text = f"secret {name} deleted{by(command.author, command.reason)}"
    return accept(replace(cib, secrets=after), change(ChangeKind.SECRET_CHANGED, text))


def rotate_secrets(cib: Cib, command: RotateSecrets, entry: Entry) -> Verdict:
    """Seal everything with another key; values and revisions stay the same."""
    secrets = cib.secrets
    if command.expected_version != secrets.version:
        return _conflict(cib, command.expected_version)
    keys = _sound(cib, command.keys)
    if not keys or not command.key_id or command.key_id == secrets.key_id:
        return refuse(cib, RefusalCode.DUPLICATE_KEY, "this is no new key for members of this cluster")
    for name, each in command.values.items():
        known = secrets.values.get(name)
        is_same = known is not None and (each.revision, set(each.earlier)) == (known.revision, set(known.earlier))
        if not is_same or any(not 0 < len(text) <= SEALED_MAX for text in (each.sealed, *each.earlier.values())):
            return refuse(cib, RefusalCode.UNKNOWN_KEY, f"this is not secret {name[:64]} as it is known here")
    lost = sorted(set(secrets.values) - set(command.values))
    running = [f"{resource} on {node}" for node, resource, found in _started_with(cib) if found in lost]
    if running:
        who = ", ".join(dict.fromkeys(running))
        text = f"{who} may run with a secret that would be lost: nothing finds or ends it then; fence the node first"
        return refuse(cib, RefusalCode.STILL_ACTIVE, text)
    values = {
        name: replace(known, sealed=command.values[name].sealed, earlier=command.values[name].earlier)
        for name, known in secrets.values.items()
        if name in command.values
    }
    after = Secrets(secrets.version + 1, command.key_id, keys, values)
    more = f", without {', '.join(lost)}, which nobody can open" if lost else ""
    text = f"secrets sealed by another key{more}{by(command.author, command.reason)}"
    kind = ChangeKind.SECRET_CHANGED if lost else ChangeKind.SECRET_KEY_CHANGED
    return accept(replace(cib, secrets=after), change(kind, text))


def share_secret_key(cib: Cib, command: ShareSecretKey, entry: Entry) -> Verdict:
    """Give members the key in force; keys that another node has given already stay."""
    secrets = cib.secrets
    if command.key_id != secrets.key_id:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, "this secret key is not in force any more")
    lacking = dict(lacks_key(cib))
    new = {name: each for name, each in _sound(cib, command.keys).items() if lacking.get(name) == each.public_key}
    if not new:
        return accept(cib)
    keys = dict(sorted({**secrets.keys, **new}.items()))
    text = f"{', '.join(new)} can open the cluster's secrets now"
    return accept(
        replace(cib, secrets=replace(secrets, version=secrets.version + 1, keys=keys)),
        change(ChangeKind.SECRET_KEY_CHANGED, text),
    )


def note_secret_shown(cib: Cib, command: NoteSecretShown, entry: Entry) -> Verdict:
    """Record in the history who is shown a value."""
    if command.name not in cib.secrets.values:
        return refuse(cib, RefusalCode.UNKNOWN_KEY, f"there is no secret {command.name[:64]}")
    text = f"secret {command.name} shown{by(command.author, command.reason)}"
    return accept(cib, change(ChangeKind.SECRET_SHOWN, text))


def without_keys_of(cib: Cib, dropped: Iterable[NodeName]) -> Cib:
    """Return a CIB in which former members cannot open what is sealed from now on."""
    gone = set(dropped) & set(cib.secrets.keys)
    if not gone:
        return cib
    keys = {name: each for name, each in cib.secrets.keys.items() if name not in gone}
    return replace(cib, secrets=replace(cib.secrets, version=cib.secrets.version + 1, keys=keys))


def lacks_key(cib: Cib) -> Iterator[tuple[NodeName, str]]:
    """Yield the members that cannot open the secrets, with their public keys; those without one are left out."""
    for name in sorted(cib.members):
        status = cib.status.nodes.get(name)
        wanted = status.secret_key if status is not None else ""
        has = cib.secrets.keys.get(name)
        if wanted and (has is None or has.public_key != wanted):
            yield name, wanted


def used_by(configuration: Configuration, name: str) -> tuple[str, ...]:
    """Return the references to a secret, as `RESOURCE PARAMETER`."""
    return tuple(dict.fromkeys(
        f"{owner} {parameter}"
        for _, owner, _, blocks in parameter_blocks(configuration)
        for parameter, found in references_of(blocks)
        if found == name
    ))  # fmt: skip


def _conflict(cib: Cib, expected: int) -> Verdict:
    text = f"the secrets are at version {cib.secrets.version}, the change was made over {expected}"
    return refuse(cib, RefusalCode.CONFIGURATION_CONFLICT, text)


def _sound(cib: Cib, keys: Mapping[NodeName, WrappedKey]) -> dict[NodeName, WrappedKey]:
    """Return the keys that are for members, and of a plausible size."""
    return {
        name: each
        for name, each in sorted(keys.items())
        if name in cib.members and max(len(each.public_key), len(each.sealed)) <= KEY_CHARACTERS_MAX
    }


def forgotten_value(cib: Cib, status: NodeStatus, order: Order) -> str | None:
    """Return the secret of which an order, by an earlier plan, names a value that is not kept; None: there is none.

    It would be carried out with another value than it is recorded with. What may run is asked as it was started, and
    its values are kept; so nothing that ends or watches it is held up.
    """
    is_new = order.action in (*BEGINNINGS, ActionName.RELOAD_AGENT) or started_as(status, order.resource) is None
    if order.action is ActionName.STOP or not is_new:
        return None
    for value in (*order.parameters.values(), *order.lasting_parameters.values()):
        found = reference_of(value)
        if found is not None and found[0] in cib.secrets.values and not is_kept(cib.secrets, *found):
            return found[0]
    return None


def _started_with(cib: Cib) -> Iterator[tuple[NodeName, str, str]]:
    """Yield the secrets by which something was started that may run: node, resource, secret.

    What has ended and is in doubt again is looked for as it is configured (`started_as`), and needs none of them.
    """
    return (
        (node, resource, name)
        for node, resource, name, _ in _in_use(cib)
        if started_as(cib.status.nodes[node], ResourceId(resource)) is not None
    )


def _still_used(cib: Cib, name: str, known: Secret) -> dict[str, str]:
    """Return the values of a secret, by revision, with which something may run, or is about to."""
    held = {**known.earlier, str(known.revision): known.sealed}
    used = {str(revision) for _, _, found, revision in _in_use(cib) if found == name}
    return {revision: sealed for revision, sealed in held.items() if revision in used}


def _in_use(cib: Cib) -> Iterator[tuple[NodeName, str, str, int | None]]:
    """Yield the secrets with which something may run: node, resource, secret, revision."""
    for node, status in cib.status.nodes.items():
        parameters: list[tuple[str, Mapping[str, str]]] = [
            (order.resource, {**order.parameters, **order.lasting_parameters}) for order in status.orders.values()
        ]
        for resource, history in status.histories.items():
            if may_be_active(status, resource):
                parameters.append((resource, history.parameters))
                parameters += [(resource, reload.parameters) for reload in history.reloads]
        for resource_name, values in parameters:
            for value in values.values():
                found = reference_of(value)
                if found is not None:
                    yield node, resource_name, *found
