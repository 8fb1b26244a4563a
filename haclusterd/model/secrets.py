"""Secrets: values that the configuration names (`password=secret:pdu`) and does not hold.

What is replicated is sealed: each value by the cluster's secret key, that key for each member by the public key which
the member published when it joined. So neither log, snapshot nor backup holds a value (docs/design/0017-secrets.md).

In the configuration as it is in force a reference carries the revision of its value, `secret:pdu@1234`. So a secret
that was changed is a parameter that was changed: its resource is reloaded or restarted, and what runs is watched and
stopped by the value that it was started with. A revision is the log index at which the value was set, and says nothing
of it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from haclusterd.model.configuration import AttributeSet, Configuration, Primitive, Resource, Template
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.words import SECRET_CHARACTERS_MAX, SECRET_CHARACTERS_MIN

PREFIX = "secret:"
PACEMAKERS = "lrm://"
"""A value that Pacemaker's `cibsecret` has put into files of each node."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")
_REFERENCE = re.compile(r"secret:([A-Za-z_][A-Za-z0-9_.-]{0,63})(?:@([0-9]+))?\Z")
SECRETS_MAX = 128
"""Of one cluster."""
SEALED_MAX = 6 * 1024
"""Characters of one sealed value, which `apply` accepts."""
ALL_SEALED_MAX = 40 * 1024
"""Characters of all together, so that one entry of the log seals them all by another key."""
EARLIER_MAX = 8
"""Earlier values of one secret by which something may still run."""
_REMEMBERED = 16
"""Configurations whose answers are kept; in_force is asked for often."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """The cluster's secret key, sealed for one member."""

    public_key: str
    """The member's, for which it was sealed; raw X25519, in base64."""
    sealed: str = field(repr=False)
    """HPKE, in base64."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One value, sealed by the cluster's secret key."""

    revision: int
    """The log index at which it was set."""
    sealed: str = field(repr=False)
    """AES-256-GCM, in base64."""
    at: WallTime = WallTime(0)
    """When it was set."""
    author: str = ""
    earlier: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Earlier values, by revision, by which something may still run; sealed."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """All secrets of a cluster, and its secret key as each member can open it."""

    version: int = 0
    """Counts the changes, so that nothing is decided over what has changed."""
    key_id: str = ""
    """Which key it is; empty: none was made yet."""
    keys: Mapping[NodeName, WrappedKey] = field(default_factory=dict)
    values: Mapping[str, Secret] = field(default_factory=dict)
    """By name."""


NO_SECRETS = Secrets()


def reference_of(value: str) -> tuple[str, int | None] | None:
    """Return the name and the revision that a parameter's value refers to; None: it is no reference."""
    found = _REFERENCE.match(value)
    return None if found is None else (found[1], int(found[2]) if found[2] else None)


def is_reference(value: str) -> bool:
    """Return whether a parameter's value only says where the value is."""
    return value == PACEMAKERS or reference_of(value) is not None


def is_without_revision(value: str) -> bool:
    """Return whether a parameter in force refers to a secret that did not exist."""
    found = reference_of(value)
    return found is not None and found[1] is None


def references_of(blocks: Iterable[AttributeSet]) -> Iterable[tuple[str, str]]:
    """Yield the parameters that refer to secrets: parameter and name of the secret."""
    for block in blocks:
        for name, value in block.pairs:
            found = reference_of(value)
            if found is not None:
                yield name, found[0]


def parameter_blocks(
    configuration: Configuration,
) -> Iterable[tuple[str, str, tuple[str, ...], tuple[AttributeSet, ...]]]:
    """Yield every place of a configuration in which a parameter may refer to a secret.

    Each as kind (`resource` or `template`), id, the way from there (`params`; `operation`, its number, `params`), and
    the blocks.
    """
    owners: list[tuple[str, Resource | Template]] = [("template", each) for each in configuration.templates.values()]
    owners += [("resource", each) for each in configuration.resources.values()]
    for kind, owner in owners:
        yield kind, owner.id, ("params",), owner.parameters
        if isinstance(owner, Primitive | Template):
            for number, operation in enumerate(owner.operations):
                yield kind, owner.id, ("operation", str(number), "params"), operation.parameters


def with_revisions(configuration: Configuration, secrets: Secrets) -> Configuration:
    """Return a configuration whose references carry the revisions of their values.

    The same object comes back for the same arguments, and for one without references to what is known.
    """
    key = (id(configuration), tuple((name, each.revision) for name, each in secrets.values.items()))
    found = _known.get(key)
    if found is None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        found = _known[key] = (configuration, _revised(configuration, secrets))
    return found[1]


_known: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[Configuration, Configuration]] = {}


def _revised(configuration: Configuration, secrets: Secrets) -> Configuration:
    if not any(True for *_, blocks in parameter_blocks(configuration) for _ in references_of(blocks)):
        return configuration
    resources = {name: _revised_owner(each, secrets) for name, each in configuration.resources.items()}
    templates = {name: _revised_owner(each, secrets) for name, each in configuration.templates.items()}
    return replace(configuration, resources=resources, templates=templates)


_Owner = TypeVar("_Owner", Resource, Template)


def _revised_owner(owner: _Owner, secrets: Secrets) -> _Owner:
    parameters = _revised_blocks(owner.parameters, secrets)
    if isinstance(owner, Primitive | Template):
        operations = tuple(
            replace(each, parameters=_revised_blocks(each.parameters, secrets)) for each in owner.operations
        )
        return owner if (parameters, operations) == (owner.parameters, owner.operations) else replace(
            owner, parameters=parameters, operations=operations
        )
    return owner if parameters == owner.parameters else replace(owner, parameters=parameters)


def _revised_blocks(blocks: tuple[AttributeSet, ...], secrets: Secrets) -> tuple[AttributeSet, ...]:
    return tuple(
        replace(block, pairs=tuple((name, _revised_value(value, secrets)) for name, value in block.pairs))
        for block in blocks
    )


def _revised_value(value: str, secrets: Secrets) -> str:
    found = reference_of(value)
    secret = None if found is None else secrets.values.get(found[0])
    return value if found is None or secret is None else f"{PREFIX}{found[0]}@{secret.revision}"


def sealed_value(secrets: Secrets, name: str, revision: int | None) -> str | None:
    """Return what is sealed under a name: the value of a revision while it is kept, else the newest; None: nothing."""
    secret = secrets.values.get(name)
    return None if secret is None else secret.earlier.get(str(revision), secret.sealed)


def is_kept(secrets: Secrets, name: str, revision: int | None) -> bool:
    """Return whether there is the very value of a revision; of none: whether there is no such secret."""
    secret = secrets.values.get(name)
    if secret is None:
        return revision is None
    return revision == secret.revision or str(revision) in secret.earlier


def size_of(name: str, sealed: str) -> int:
    """Return what a secret takes of `ALL_SEALED_MAX`: with its name, author and times."""
    return len(name) + len(sealed) + 200


def objection_to(value: str) -> str:
    """Return why a text cannot be the value of a secret; empty: it can."""
    if len(value) < SECRET_CHARACTERS_MIN:
        return f"it has fewer than {SECRET_CHARACTERS_MIN} characters, which cannot be kept out of what agents say"
    if len(value) > SECRET_CHARACTERS_MAX:
        return f"it has more than {SECRET_CHARACTERS_MAX} characters; put it into a file, and configure its path"
    if any(not each.isprintable() for each in value):
        return "it is not one line of printable characters; put it into a file, and configure its path"
    if reference_of(value) is not None or value.startswith(PACEMAKERS) or set(value) == {"*"}:
        return "it stands for a secret, and is none"
    return ""


def masked(text: str, values: Iterable[str]) -> str:
    """Return a text without values of secrets; one with spaces at its ends may be at the end of a line without."""
    given = tuple(values)
    for value in sorted({*given, *(value.strip() for value in given)}, key=lambda each: (-len(each), each)):
        if len(value) >= SECRET_CHARACTERS_MIN:
            text = text.replace(value, "***")
    return text
