"""Verbs about secrets: values that the configuration refers to and does not hold (docs/design/0017-secrets.md).

A value comes in as an argument, is sealed here, and is in nothing that is proposed, answered or reported; only `show`
answers one, on a node's own socket, after the history has noted it.
"""

from collections.abc import Mapping
from typing import Never

from haclusterd.cib.commands import Command, DeleteSecret, NoteSecretShown, PutSecret, RotateSecrets
from haclusterd.cib.secrets.apply_secrets import lacks_key, used_by
from haclusterd.commands.attribute_sets import with_value, without
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context, SecretBox
from haclusterd.commands.names import find_resource
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.planning import settled
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.cluster import Cib, NodeState
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.model.secrets import (
    NAME,
    PACEMAKERS,
    PREFIX,
    Secret,
    Secrets,
    is_reference,
    objection_to,
    reference_of,
)
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.reports.suggestions import did_you_mean
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.secrets import SecretRow, SecretTable, SecretValue
from haclusterd.verbs.arguments import Arguments

SETTLES = "the cluster to settle"
ANOTHER_NODE = "ask a node that can; which cannot, says: crm secret list"


def listed(context: Context, _arguments: Arguments) -> Outcome[SecretTable]:
    """Answer the secrets without their values (schema `haclusterd.secrets/1`)."""
    configuration = context.cib.configuration
    rows = tuple(
        SecretRow(name=name, used_by=used_by(configuration, name), author=each.author, set_at=each.at)
        for name, each in sorted(context.cib.secrets.values.items())
    )
    return Outcome(answer=SecretTable(now=context.now, secrets=rows, cannot_open=_cannot_open(context.cib)))


def set_(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Give a secret its value; what refers to it is reloaded or restarted, as for any parameter."""
    name = arguments.word("name")
    made = _sealed(context, name, arguments.word("value"))
    if isinstance(made, ReportItem):
        return refusal(made)
    if made is None:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"secret {name} has this value already"),))
    users = used_by(context.cib.configuration, name)
    more = f"used by {', '.join(users)}" if users else f"use it as PARAMETER={PREFIX}{name}"
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"secret {name} is set; {more}"),),
        commands=(made,),
        until=settled(context.now) if users else None,
        until_plans=True,
        waiting_for=SETTLES,
    )


def show(context: Context, arguments: Arguments) -> Outcome[SecretValue]:
    """Answer the value of a secret (schema `haclusterd.secret/1`), once the history says to whom."""
    return _shown(context, arguments.word("name"))


def delete(context: Context, arguments: Arguments) -> Outcome[Never]:
    """Forget a secret that nothing refers to."""
    name = arguments.word("name")
    if name not in context.cib.secrets.values:
        return refusal(_unknown(context, name))
    users = used_by(context.cib.configuration, name)
    if users:
        problem = f"{', '.join(users)} refers to secret {name}"
        return refusal(report(Code.REFUSED, problem=problem, remedy="change these parameters first"))
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"secret {name} is deleted"),),
        commands=(DeleteSecret(name, context.author, context.reason),),
    )


def rotate(context: Context, _arguments: Arguments) -> Outcome[Never]:
    """Seal all secrets by another key, which only those have who are members now."""
    secrets, box = context.cib.secrets, context.secrets
    if box is None:
        return refusal(report(Code.NOT_OFFLINE, what="another secret key"))
    if not secrets.key_id:
        return Outcome((report(Code.NOTHING_TO_DO, state="there is no secret yet, and no key"),))
    key_id, keys = box.new_key(_public_keys(context.cib))
    new = Secrets(key_id=key_id, keys=keys)
    values: dict[str, Secret] = {}
    lost: list[str] = []
    for name, each in secrets.values.items():
        again = _sealed_again(box, secrets, new, name, each)
        if again is None:
            lost.append(name)
        else:
            values[name] = again
    if lost and not context.is_forced:
        problem = f"this node cannot open {', '.join(lost)}"
        remedy = f"{ANOTHER_NODE}; where none can: --force forgets them, set them again"
        return refusal(report(Code.REFUSED, problem=problem, remedy=remedy))
    if not box.has_key(new):
        return refusal(_closed(context, "another key"))
    more = f", without {', '.join(lost)}: set them again" if lost else ""
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"the secrets are sealed by another key{more}"),),
        commands=(RotateSecrets(secrets.version, key_id, keys, values, context.author, context.reason),),
    )


def of_resource(context: Context, arguments: Arguments) -> Outcome[SecretValue | Change]:
    """Do what Pacemaker's `cibsecret` does with a parameter of a resource."""
    found = find_resource(context, arguments.word("resource"))
    if isinstance(found, ReportItem):
        return refusal(found)
    primitive = context.cib.configuration.resources[found]
    if not isinstance(primitive, Primitive):
        return refusal(report(Code.BAD_ARGUMENT, name="resource", problem="only primitives have such parameters"))
    parameter, action = arguments.word("parameter"), arguments.word("action")
    text = effective(primitive.parameters).get(parameter)
    if action == "set":
        return _set_of(context, primitive, parameter, arguments.word("value"))
    if text is None:
        return refusal(report(Code.UNKNOWN_OBJECT, id=f"{parameter} of {found}"))
    if action == "stash":
        return _stashed(context, primitive, parameter, text)
    return _of_reference(context, primitive, parameter, text, action)


def _stashed(context: Context, primitive: Primitive, parameter: str, text: str) -> Outcome[Change]:
    """Make a secret of a value that is in the configuration."""
    if is_reference(text):
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{parameter} of {primitive.id} is a secret"),))
    stashed = _set_of(context, primitive, parameter, text)
    warning = report(Code.SECRET_WAS_CLEAR, what=f"{parameter} of {primitive.id}")
    return stashed if stashed.is_refused else replace(stashed, reports=(*stashed.reports, warning))


def _of_reference(
    context: Context, primitive: Primitive, parameter: str, text: str, action: str
) -> Outcome[SecretValue | Change]:
    reference = reference_of(text)
    if reference is None:
        where = "in Pacemaker's files of each node" if text == PACEMAKERS else "in the configuration, in plain text"
        problem = f"the value of {parameter} of {primitive.id} is {where}"
        remedy = f"crm resource secret {primitive.id} set {parameter}"
        return refusal(report(Code.REFUSED, problem=problem, remedy=remedy))
    name = reference[0]
    match action:
        case "show":
            return _shown(context, name)
        case "check":
            return _checked(context, name, f"{parameter} of {primitive.id}")
        case _:
            return _taken_from(context, primitive, parameter, name, is_kept=action == "unstash")


def _checked(context: Context, name: str, what: str) -> Outcome[Never]:
    opened = _opened(context, name)
    if isinstance(opened, ReportItem):
        return refusal(opened)
    without_key = _cannot_open(context.cib)
    more = f"; not by {', '.join(without_key)}" if without_key else ""
    return Outcome((report(Code.REQUESTED, what=f"{what} is secret {name}, which can be opened here{more}"),))


def _set_of(context: Context, primitive: Primitive, parameter: str, value: str) -> Outcome[Change]:
    text = effective(primitive.parameters).get(parameter, "")
    known = reference_of(text)
    name = known[0] if known is not None else f"{primitive.id}.{parameter}"
    made = _sealed(context, name, value)
    if isinstance(made, ReportItem):
        return refusal(made)
    commands: tuple[Command, ...] = () if made is None else (made,)
    if known is not None:
        if made is None:
            return Outcome((report(Code.NOTHING_TO_DO, state=f"secret {name} has this value already"),))
        others = [each for each in used_by(context.cib.configuration, name) if each != f"{primitive.id} {parameter}"]
        more = f", of {', '.join(others)} too" if others else ""
        return Outcome(
            reports=(report(Code.REQUESTED, what=f"{primitive.id}: {parameter} has another value{more}"),),
            commands=commands, until=settled(context.now), until_plans=True, waiting_for=SETTLES,
        )  # fmt: skip
    new = _with_parameter(context.cib.configuration, primitive, parameter, f"{PREFIX}{name}")
    known_names = {**context.cib.secrets.values, name: Secret(0, "")}
    cib = replace(context.cib, secrets=replace(context.cib.secrets, values=known_names))
    done = f"{primitive.id}: {parameter}={PREFIX}{name}"
    outcome = change(replace(context, cib=cib, no_validate=True), new, done=done)
    return outcome if outcome.is_refused else replace(outcome, commands=(*commands, *outcome.commands))


def _taken_from(
    context: Context, primitive: Primitive, parameter: str, name: str, *, is_kept: bool
) -> Outcome[Change]:
    """Take a secret out of a parameter, which gets its value in clear (`is_kept`) or goes; then forget the secret."""
    configuration = context.cib.configuration
    if is_kept:
        if context.is_token:
            return refusal(_not_by_token())
        value = _opened(context, name)
        if isinstance(value, ReportItem):
            return refusal(value)
        new = _with_parameter(configuration, primitive, parameter, value)
        done = f"{primitive.id}: {parameter} has its value in the configuration, in plain text"
    else:
        left = replace(primitive, parameters=without(primitive.parameters, parameter))
        new = replace(configuration, resources={**configuration.resources, ResourceId(primitive.id): left})
        done = f"{primitive.id}: {parameter} deleted"
    outcome = change(context, new, done=done)
    if outcome.is_refused or used_by(new, name):
        return outcome

    def forget(cib: Cib, is_met: bool) -> Outcome[Never]:
        if name not in cib.secrets.values or used_by(cib.configuration, name):
            return Outcome()
        if not is_met:
            what = f"secret {name} is kept, since something may still run with it: crm secret delete {name}"
            return Outcome((report(Code.REQUESTED, what=what),))
        return Outcome(commands=(DeleteSecret(name, context.author, context.reason),))

    return replace(outcome, afterwards=forget)


def _with_parameter(configuration: Configuration, primitive: Primitive, name: str, value: str) -> Configuration:
    blocks = with_value(primitive.parameters, owner=primitive.id, section="params", name=name, value=value)
    changed = replace(primitive, parameters=blocks)
    return replace(configuration, resources={**configuration.resources, ResourceId(primitive.id): changed})


def _sealed(context: Context, name: str, value: str) -> PutSecret | ReportItem | None:
    """Return the command that gives a secret its value; None: it has it already."""
    box, secrets = context.secrets, context.cib.secrets
    if box is None:
        return report(Code.NOT_OFFLINE, what="a secret")
    if not NAME.match(name):
        remedy = "at most 64 letters, digits, '.', '-' and '_', a letter or '_' first; crm secret set NAME takes any"
        return report(Code.BAD_ID, id=name[:80], remedy=remedy)
    objection = objection_to(value)
    if objection:
        return report(Code.BAD_ARGUMENT, name="value", problem=objection)
    known = secrets.values.get(name)
    if known is not None and box.open(secrets, name, known.sealed) == value:
        return None
    keys: Mapping[NodeName, object] = {}
    if not secrets.key_id:
        key_id, first_keys = box.new_key(_public_keys(context.cib))
        keys, secrets = first_keys, replace(secrets, key_id=key_id, keys=first_keys)
    sealed = box.seal(secrets, name, value)
    if sealed is None:
        return _closed(context, f"secret {name}")
    return PutSecret(
        context.cib.secrets.version, name, sealed, secrets.key_id, context.author, context.reason,
        secrets.keys if keys else {},
    )  # fmt: skip


def _sealed_again(box: SecretBox, old: Secrets, new: Secrets, name: str, secret: Secret) -> Secret | None:
    """Return a secret sealed by another key; None: it cannot be opened."""
    again: dict[str, str] = {}
    for revision, sealed in {**secret.earlier, "": secret.sealed}.items():
        value = box.open(old, name, sealed)
        sealed_again = None if value is None else box.seal(new, name, value)
        if sealed_again is None:
            return None
        again[revision] = sealed_again
    newest = again.pop("")
    return replace(secret, sealed=newest, earlier=again)


def _shown(context: Context, name: str) -> Outcome[SecretValue]:
    if context.is_token:
        return refusal(_not_by_token())
    value = _opened(context, name)
    if isinstance(value, ReportItem):
        return refusal(value)
    # What is only tried leaves no note, and so shows no value.
    answer = None if context.is_preview else SecretValue(name=name, value=value)
    return Outcome(commands=(NoteSecretShown(name, context.author, context.reason),), answer=answer)


def _opened(context: Context, name: str) -> str | ReportItem:
    box, secret = context.secrets, context.cib.secrets.values.get(name)
    if box is None:
        return report(Code.NOT_OFFLINE, what="the value of a secret")
    if secret is None:
        return _unknown(context, name)
    value = box.open(context.cib.secrets, name, secret.sealed)
    return _closed(context, f"secret {name}") if value is None else value


def _unknown(context: Context, name: str) -> ReportItem:
    remedy = did_you_mean(name, tuple(context.cib.secrets.values), "see: crm secret list")
    return report(Code.NO_SUCH_SECRET, name=name[:80], remedy=remedy)


def _closed(context: Context, what: str) -> ReportItem:
    """Return why the answering node cannot use the key; one that has not joined has published none of its own yet."""
    cib, node = context.cib, None if context.live is None else context.live.node
    own = None if node is None or node not in cib.members else cib.status.nodes.get(node)
    if own is None or not (own.secret_key or own.state is NodeState.ONLINE):
        return report(Code.TRY_AGAIN, problem="this node has not joined the cluster yet, so it cannot use the key")
    return report(Code.SECRET_CLOSED, what=what, problem="it does not have the key", remedy=ANOTHER_NODE)


def _not_by_token() -> ReportItem:
    problem = "the value of a secret is not shown over the network"
    return report(Code.REFUSED, problem=problem, remedy="as root on a node: crm secret show NAME")


def _public_keys(cib: Cib) -> dict[NodeName, str]:
    found: dict[NodeName, str] = {}
    for name in sorted(cib.members):
        status, known = cib.status.nodes.get(name), cib.secrets.keys.get(name)
        key = (status.secret_key if status is not None else "") or (known.public_key if known is not None else "")
        if key:
            found[name] = key
    return found


def _cannot_open(cib: Cib) -> tuple[str, ...]:
    """Return the members that cannot open the secrets."""
    if not cib.secrets.key_id:
        return ()
    lacking = {name for name, _ in lacks_key(cib)}
    return tuple(str(name) for name in sorted(cib.members) if name in lacking or name not in cib.secrets.keys)


VERBS = (
    carry_out_by("secret.list", listed, answers(SecretTable)),
    carry_out_by("secret.set", set_, answers()),
    carry_out_by("secret.show", show, answers(SecretValue)),
    carry_out_by("secret.delete", delete, answers()),
    carry_out_by("secret.rotate", rotate, answers()),
    carry_out_by("resource.secret", of_resource, answers(SecretValue, Change)),
)
