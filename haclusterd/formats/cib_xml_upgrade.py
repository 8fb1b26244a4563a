"""What older releases of Pacemaker wrote, brought to where it stands today.

Names of properties stay as they are written (`model.properties` knows the aliases); what is moved is what stands in
another place today: defaults that were cluster properties, values that have another name.
"""

from dataclasses import replace

from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.properties import property_row

_MOVED_TO_RESOURCE_DEFAULTS = {
    "default-resource-stickiness": "resource-stickiness",
    "default-migration-threshold": "migration-threshold",
    "is-managed-default": "is-managed",
}
_MOVED_TO_OPERATION_DEFAULTS = {"default-action-timeout": "timeout"}
_RENAMED_VALUES = {("fencing-action", "poweroff"): "off", ("no-quorum-policy", "suicide"): "fence"}


def upgraded(configuration: Configuration) -> Configuration:
    """Bring what older releases wrote to where it stands today."""
    resource_defaults: list[tuple[str, str]] = []
    operation_defaults: list[tuple[str, str]] = []
    properties: list[AttributeSet] = []
    for block in configuration.properties:
        kept: list[tuple[str, str]] = []
        for written, value in block.pairs:
            name = _newer_name(written)
            if name in _MOVED_TO_RESOURCE_DEFAULTS:
                resource_defaults.append((_MOVED_TO_RESOURCE_DEFAULTS[name], value))
            elif name in _MOVED_TO_OPERATION_DEFAULTS:
                operation_defaults.append((_MOVED_TO_OPERATION_DEFAULTS[name], value))
            else:
                row = property_row(name)
                kept.append((name, _RENAMED_VALUES.get((row.name if row else name, value), value)))
        properties.append(replace(block, pairs=tuple(kept)))
    return replace(
        configuration,
        properties=tuple(properties),
        resource_defaults=_with(configuration.resource_defaults, "upgraded-rsc-defaults", resource_defaults),
        operation_defaults=_with(configuration.operation_defaults, "upgraded-op-defaults", operation_defaults),
    )


def _newer_name(written: str) -> str:
    """Return the name with dashes that releases before 1.0 wrote with underscores."""
    dashed = written.replace("_", "-")
    is_known = property_row(dashed) is not None or dashed in _MOVED_TO_RESOURCE_DEFAULTS
    return dashed if is_known or dashed in _MOVED_TO_OPERATION_DEFAULTS else written


def _with(blocks: tuple[AttributeSet, ...], identifier: str, pairs: list[tuple[str, str]]) -> tuple[AttributeSet, ...]:
    """Put moved defaults first: of blocks with equal scores the last one wins, and what stood there before wins."""
    return (AttributeSet(identifier, tuple(pairs)), *blocks) if pairs else blocks
