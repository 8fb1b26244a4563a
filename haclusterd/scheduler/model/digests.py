"""Digests of parameters: an action that ran with others than it would run with now has to be run again.

Records of our own carry our digest; those that Pacemaker made carry Pacemaker's, which is computed here as well, so
that a cluster that is taken over does not restart what has not changed. Source: Pacemaker Explained, "Reloading an
Agent After a Definition Change"; docs/design/0006-cib-xml.md.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import Enum

from haclusterd.model.history import OperationRecord
from haclusterd.scheduler.model.entities import UNAME, Node, Resource
from haclusterd.scheduler.model.operation_settings import (
    find_operation,
    parameters_for,
    resource_parameters,
    timeout_ms,
)
from haclusterd.scheduler.model.settings import Settings

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)

_NOT_COUNTED = frozenset({"id", "crm_feature_set", "op-digest", "pcmk_external_ip"})
_NOT_SECURED = ("CRM_meta_", "pcmk_")
_WRITTEN = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\t": "    ", "\n": "\\n", "\r": "\\r",
    **{chr(code): f"\\{code:03o}" for code in (*range(1, 9), 11, 12, *range(14, 32), 127)},
})  # fmt: skip
"""How Pacemaker 2.1.5 writes what it takes the digest of; tried with `crm_resource --digests`."""
_TIMEOUT = "CRM_meta_timeout"


class Consequence(Enum):
    """What a changed configuration means for an action that ran before."""

    UNCHANGED = "unchanged"
    RESCHEDULE = "reschedule"
    """A recurring action is to be ordered again."""
    RELOAD = "reload"
    RESTART = "restart"


def depends_on_placement(resource: Resource) -> bool:
    """Tell whether it is a connection whose address is the node that its container is placed on."""
    return resource.definition.is_remote_connection and resource.definition.parameters.get("addr") == UNAME


def digest_of(parameters: Mapping[str, str], timeout: int | None = None) -> str:
    """Return our digest of parameters; for a recurring action its timeout counts too."""
    named: dict[str, str] = dict(parameters)
    if timeout is not None:
        named[_TIMEOUT] = str(timeout)
    return hashlib.sha256(_encoder.encode(named).encode()).hexdigest()[:32]


def restart_digest_of(parameters: Mapping[str, str], names: tuple[str, ...] | None) -> str:
    """Return our digest of those parameters that cannot change without a restart; without `names` of all."""
    return digest_of(_among(parameters, names))


def _among(parameters: Mapping[str, str], names: tuple[str, ...] | None) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if names is None or name in names}


def pacemaker_digest(parameters: Mapping[str, str]) -> str:
    """Return Pacemaker's digest of parameters: the MD5 of an XML element with them, in the order of their names."""
    counted = (
        (name, value)
        for name, value in sorted(parameters.items())
        if name not in _NOT_COUNTED
        and not name.startswith("on_node")
        and (name == _TIMEOUT or not name.startswith("CRM_meta_"))
    )
    words = "".join(f' {name}="{value.translate(_WRITTEN)}"' for name, value in counted)
    return hashlib.md5(f" <parameters{words}/>\n".encode(), usedforsecurity=False).hexdigest()


class ActionDigests:
    """Digests of a plan's actions, each computed once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known = settings.cache.digests
        self._foreign = settings.cache.foreign_digests

    def of(self, resource: Resource, name: str, interval_ms: int, node: Node) -> str:
        """Return the digest that this action would be recorded with now."""
        if not _has_one_digest(resource):
            return self._made(resource, name, interval_ms, node)
        key = (resource.id, name if interval_ms else "", interval_ms)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(resource, name, interval_ms, node)
        return found

    def _made(self, resource: Resource, name: str, interval_ms: int, node: Node) -> str:
        if not interval_ms:
            return digest_of(resource_parameters(resource, node, self._settings))
        timeout = timeout_ms(resource, name, interval_ms, self._settings)
        return digest_of(parameters_for(resource, name, interval_ms, self._settings, node), timeout)

    def ran_with_others(self, resource: Resource, node: Node, record: OperationRecord) -> bool:
        """Tell whether that action ran with other parameters than those of now, secret ones included."""
        if not record.digest:
            return False
        if record.pacemaker is None:
            return record.digest != self.of(resource, record.operation, record.interval_ms, node)
        now = self._foreign_parameters(resource, node, record)
        restart_digest = record.restart_digest
        if restart_digest and restart_digest != _foreign_restart_digest(record, now):
            return True
        return record.digest != pacemaker_digest(now)

    def judge(self, resource: Resource, node: Node, record: OperationRecord) -> Consequence:
        """Tell what has to be done because of what has changed since that record."""
        if record.pacemaker is not None:
            return self._judge_foreign(resource, node, record)
        if not record.digest or record.digest == self.of(resource, record.operation, record.interval_ms, node):
            return Consequence.UNCHANGED
        if record.interval_ms:
            return Consequence.RESCHEDULE
        if not record.restart_digest:
            return Consequence.RESTART
        parameters = resource_parameters(resource, node, self._settings)
        now = restart_digest_of(parameters, record.restart_parameters)
        return Consequence.RELOAD if record.restart_digest == now else Consequence.RESTART

    def pacemakers(self, resource: Resource, node: Node, record: OperationRecord) -> tuple[str, str]:
        """Return the digests that Pacemaker would record of that action now: of all parameters, and for a restart."""
        now = self._foreign_parameters(resource, node, record)
        return pacemaker_digest(now), _foreign_restart_digest(record, now)

    def _judge_foreign(self, resource: Resource, node: Node, record: OperationRecord) -> Consequence:
        key = (resource.id, record.operation, record.interval_ms)
        expected = self._foreign.get(key) if _has_one_digest(resource) else None
        if expected is None:
            expected = pacemaker_digest(self._foreign_parameters(resource, node, record))
            if _has_one_digest(resource):
                self._foreign[key] = expected
        is_same = record.digest == expected
        if is_same and not record.restart_digest:
            return Consequence.UNCHANGED
        now = self._foreign_parameters(resource, node, record)
        if not is_same and _is_private_only(record, now):
            return Consequence.UNCHANGED
        if record.restart_digest and record.restart_digest != _foreign_restart_digest(record, now):
            return Consequence.RESCHEDULE if record.interval_ms else Consequence.RESTART
        if is_same:
            return Consequence.UNCHANGED
        if record.interval_ms:
            return Consequence.RESCHEDULE
        operation = find_operation(resource, record.operation, record.interval_ms)
        has_own_parameters = operation is not None and bool(operation.parameters)
        return Consequence.RELOAD if record.restart_digest and not has_own_parameters else Consequence.RESTART

    def _foreign_parameters(self, resource: Resource, node: Node, record: OperationRecord) -> dict[str, str]:
        named = dict(parameters_for(resource, record.operation, record.interval_ms, self._settings, node))
        named.pop(_TIMEOUT, None)
        if record.interval_ms:
            timeout = timeout_ms(resource, record.operation, record.interval_ms, self._settings)
            named[_TIMEOUT] = str(timeout)
        return named


def _has_one_digest(resource: Resource) -> bool:
    """Tell whether its name says with which parameters it runs.

    They differ from node to node where rules set them. What is known only by its history may have the name of what is
    configured: `web:0` of a clone that was unique, beside the first instance of the anonymous one that it has become.
    """
    return not resource.definition.parameter_sets and not resource.found.is_removed


def _foreign_restart_digest(record: OperationRecord, now: Mapping[str, str]) -> str:
    return pacemaker_digest(_among(now, record.restart_parameters))


def _is_private_only(record: OperationRecord, now: Mapping[str, str]) -> bool:
    """A saved CIB has asterisks in the place of secrets: the digest without them is the one to believe."""
    mark = record.pacemaker
    if mark is None or not mark.secure_digest:
        return False
    names = mark.private_parameters
    known = {name: value for name, value in now.items() if name not in names and not name.startswith(_NOT_SECURED)}
    return mark.secure_digest == pacemaker_digest(known)
