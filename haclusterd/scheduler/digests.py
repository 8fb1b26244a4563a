"""Digests of parameters: an action that ran with others than it would run with now has to be run again."""

import hashlib
import json
from collections.abc import Mapping

from haclusterd.scheduler.entities import Resource
from haclusterd.scheduler.operation_settings import parameters_for, timeout_ms
from haclusterd.scheduler.settings import Settings

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


def digest_of(parameters: Mapping[str, str], timeout: int | None = None) -> str:
    """Return the digest of parameters; for a recurring action its timeout counts too."""
    named: dict[str, str] = dict(parameters)
    if timeout is not None:
        named["CRM_meta_timeout"] = str(timeout)
    return hashlib.sha256(_encoder.encode(named).encode()).hexdigest()[:32]


class Digests:
    """Digests of a plan's actions, each computed once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[tuple[str, str, int], str] = {}

    def of(self, resource: Resource, name: str, interval_ms: int) -> str:
        """Return the digest that this action would be recorded with now."""
        key = (resource.id, name if interval_ms else "", interval_ms)
        found = self._known.get(key)
        if found is None:
            if interval_ms:
                timeout = timeout_ms(resource, name, interval_ms, self._settings)
                found = digest_of(parameters_for(resource, name, interval_ms), timeout)
            else:
                found = digest_of(resource.parameters)
            self._known[key] = found
        return found
