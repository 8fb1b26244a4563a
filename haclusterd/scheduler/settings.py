"""The cluster's properties as the phases need them, read once."""

from dataclasses import dataclass

from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.scheduler.options import ScheduleOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that holds for the whole plan."""

    now: WallTime
    options: ScheduleOptions
    is_symmetric: bool
    is_maintenance: bool
    stops_all: bool
    stops_removed: bool
    cancels_removed: bool
    is_fencing_enabled: bool
    fencing_action: str
    fencing_timeout_ms: int
    is_startup_fencing: bool
    resource_defaults: dict[str, str]
    operation_defaults: dict[str, str]


def unpack_settings(configuration: Configuration, now: WallTime, options: ScheduleOptions) -> Settings:
    """Read the properties; an invalid value counts as unset."""
    properties = ClusterProperties(configuration)
    is_fencing_enabled = properties.boolean("fencing-enabled")
    return Settings(
        now=now,
        options=options,
        is_symmetric=properties.boolean("symmetric-cluster"),
        is_maintenance=properties.boolean("maintenance-mode"),
        stops_all=properties.boolean("stop-all-resources"),
        stops_removed=properties.boolean("stop-removed-resources"),
        cancels_removed=properties.boolean("cancel-removed-actions"),
        is_fencing_enabled=is_fencing_enabled,
        fencing_action=properties.text("fencing-action"),
        fencing_timeout_ms=properties.duration_ms("fencing-timeout"),
        is_startup_fencing=is_fencing_enabled and properties.boolean("startup-fencing"),
        resource_defaults=effective(configuration.resource_defaults),
        operation_defaults=effective(configuration.operation_defaults),
    )
