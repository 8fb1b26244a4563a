"""Digests as Pacemaker records them: whether an action ran with the parameters that are configured now.

Source: docs/design/0006-cib-xml.md. A digest of Pacemaker means nothing to the scheduler, which compares its own;
so a record's digest is kept only when it says that the parameters have changed.
"""

import hashlib
from collections.abc import Mapping
from xml.sax.saxutils import escape

from haclusterd.model import durations
from haclusterd.model.configuration import Configuration, Operation, Primitive, effective
from haclusterd.model.ids import ResourceId

DEFAULT_TIMEOUT_MS = 20_000

_NOT_COUNTED = frozenset({"id", "crm_feature_set", "op-digest", "pcmk_external_ip"})
_NOT_SECURED = ("CRM_meta_", "pcmk_")
_QUOTES = {'"': "&quot;"}


def digest(parameters: Mapping[str, str]) -> str:
    """Return Pacemaker's digest of parameters."""
    counted = (
        (name, value)
        for name, value in sorted(parameters.items())
        if name not in _NOT_COUNTED and not name.startswith("on_node")
    )
    words = "".join(f' {name}="{escape(value, _QUOTES)}"' for name, value in counted)
    return hashlib.md5(f" <parameters{words}/>\n".encode(), usedforsecurity=False).hexdigest()


def restart_digest(parameters: Mapping[str, str], forcing: frozenset[str]) -> str:
    """Return the digest of the parameters whose change needs a restart; all of them when none are named."""
    return digest({name: value for name, value in parameters.items() if not forcing or name in forcing})


def secure_digest(parameters: Mapping[str, str], private: frozenset[str]) -> str:
    """Return the digest of the parameters that are not private; what is for the fencer itself does not count either."""
    return digest(
        {name: value for name, value in parameters.items() if name not in private and not name.startswith(_NOT_SECURED)}
    )


class Parameters:
    """What the operations of a configuration would run with now."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._parents = configuration.parents()
        self._default_timeout = effective(configuration.operation_defaults).get("timeout")
        self._digests: dict[tuple[ResourceId, str, int], str] = {}

    def digest_of(self, resource: ResourceId, operation: str, interval_ms: int) -> str | None:
        """Return the digest with which that operation would be recorded now; None when there is no such primitive."""
        key = (resource, operation, interval_ms)
        found = self._digests.get(key)
        if found is None:
            parameters = self.of(resource, operation, interval_ms)
            if parameters is None:
                return None
            found = self._digests[key] = digest(parameters)
        return found

    def of(self, resource: ResourceId, operation: str, interval_ms: int) -> dict[str, str] | None:
        """Return the parameters that count in a digest; None when there is no such primitive."""
        primitive = self._configuration.resources.get(resource)
        if not isinstance(primitive, Primitive):
            return None
        parent = self._parents.get(resource)
        inherited = effective(self._configuration.resources[parent].parameters) if parent is not None else {}
        found = _operation(primitive, operation, interval_ms)
        own = effective(found.parameters) if found is not None else {}
        named = {**own, **inherited, **effective(primitive.parameters)}
        if interval_ms:
            named["CRM_meta_timeout"] = str(self._timeout_ms(found))
        return named

    def _timeout_ms(self, found: Operation | None) -> int:
        if found is not None and found.timeout_ms is not None:
            return found.timeout_ms
        try:
            return durations.parse(self._default_timeout or "20s")
        except ValueError:
            return DEFAULT_TIMEOUT_MS


def _operation(primitive: Primitive, name: str, interval_ms: int) -> Operation | None:
    return next(
        (each for each in primitive.operations if each.name == name and each.interval_ms == interval_ms), None
    )
