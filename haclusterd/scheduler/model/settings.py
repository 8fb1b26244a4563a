"""The cluster's properties as the phases need them, read once."""

from enum import Enum

from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.defaults import OperationDefaults, ResourceDefaults
from haclusterd.scheduler.model.looks import Looks
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.model.rules import RuleContext, evaluate


class NoQuorumPolicy(Enum):
    """What a partition without quorum does with its resources."""

    STOP = "stop"
    FREEZE = "freeze"
    IGNORE = "ignore"
    DEMOTE = "demote"
    FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that holds for the whole plan."""

    time: EffectiveTime
    """For which the plan is made, and what rules say about when to look again."""
    options: ScheduleOptions
    no_quorum_policy: NoQuorumPolicy
    is_symmetric: bool
    is_maintenance: bool
    is_probing_at_startup: bool
    stops_all: bool
    stops_removed: bool
    cancels_removed: bool
    is_fencing_enabled: bool
    is_fence_device_configured: bool
    """Some resource is a fence device, or nodes have a watchdog."""
    is_watchdog_fencing: bool
    """Nodes that have published a watchdog are silenced by it."""
    is_unfencing_used: bool
    fencing_action: str
    fencing_timeout_ms: int
    fencing_loop_limit: int
    fencing_failure_limit: int
    fencing_loop_window_ms: int
    fencing_max_attempts: int
    is_startup_fencing: bool
    is_fencing_concurrent: bool
    fences_remote_without_quorum: bool
    priority_fencing_delay_ms: int
    node_pending_timeout_ms: int
    has_shutdown_lock: bool
    shutdown_lock_limit_ms: int
    placement_strategy: str
    properties: ClusterProperties
    """Those of the cluster as they hold now, blocks under rules too."""
    cluster_name: str
    resource_defaults: ResourceDefaults
    operation_defaults: OperationDefaults
    cache: PlanCache
    """What this plan may take over from the one before, and leaves to the next."""
    looks: Looks
    """Which node attributes it has looked at."""

    @property
    def now(self) -> WallTime:
        """The time for which the plan is made."""
        return self.time.now


def unpack_settings(
    configuration: Configuration, now: WallTime, options: ScheduleOptions, cache: PlanCache | None = None
) -> Settings:
    """Read the properties; an invalid value counts as unset."""
    time = EffectiveTime(now)
    context = RuleContext(time)

    def counts(block: AttributeSet) -> bool:
        return block.rule is None or evaluate(block.rule, context)

    properties = ClusterProperties(configuration, counts)
    is_fencing_enabled = properties.boolean("fencing-enabled")
    return Settings(
        time=time,
        options=options,
        no_quorum_policy=_no_quorum_policy(properties, options, is_fencing_enabled),
        is_symmetric=properties.boolean("symmetric-cluster"),
        is_maintenance=properties.boolean("maintenance-mode"),
        is_probing_at_startup=properties.boolean("enable-startup-probes"),
        stops_all=properties.boolean("stop-all-resources"),
        stops_removed=properties.boolean("stop-removed-resources"),
        cancels_removed=properties.boolean("cancel-removed-actions"),
        is_fencing_enabled=is_fencing_enabled,
        is_fence_device_configured=properties.boolean("have-watchdog") or _has_fence_device(configuration),
        is_unfencing_used=_is_unfencing_used(configuration),
        is_watchdog_fencing=properties.boolean("watchdog-fencing"),
        fencing_action=properties.text("fencing-action"),
        fencing_timeout_ms=properties.duration_ms("fencing-timeout"),
        fencing_loop_limit=properties.integer("fencing-loop-limit"),
        fencing_failure_limit=properties.integer("fencing-failure-limit"),
        fencing_loop_window_ms=properties.duration_ms("fencing-loop-window"),
        fencing_max_attempts=properties.integer("fencing-max-attempts"),
        is_startup_fencing=is_fencing_enabled and properties.boolean("startup-fencing"),
        is_fencing_concurrent=properties.boolean("concurrent-fencing"),
        fences_remote_without_quorum=properties.boolean("fence-remote-without-quorum"),
        priority_fencing_delay_ms=properties.duration_ms("priority-fencing-delay"),
        node_pending_timeout_ms=properties.duration_ms("node-pending-timeout"),
        has_shutdown_lock=properties.boolean("shutdown-lock"),
        shutdown_lock_limit_ms=properties.duration_ms("shutdown-lock-limit"),
        properties=properties,
        cluster_name=properties.text("cluster-name"),
        placement_strategy=properties.text("placement-strategy"),
        resource_defaults=ResourceDefaults(configuration.resource_defaults, time),
        operation_defaults=OperationDefaults(configuration.operation_defaults, time),
        cache=(cache or PlanCache()).fit(configuration, options),
        looks=Looks(),
    )


def _no_quorum_policy(
    properties: ClusterProperties, options: ScheduleOptions, is_fencing_enabled: bool
) -> NoQuorumPolicy:
    """Read what was written: the table of properties refuses on a live cluster what only a CIB file may ask for."""
    word = properties.written.get("no-quorum-policy", "stop")
    if word == "suicide":
        word = "fence"
    policy = next((each for each in NoQuorumPolicy if each.value == word), NoQuorumPolicy.STOP)
    may_fence = is_fencing_enabled and (options.has_quorum or options.may_fence_without_quorum)
    if policy is NoQuorumPolicy.FENCE and not may_fence:
        return NoQuorumPolicy.STOP
    return policy


def _has_fence_device(configuration: Configuration) -> bool:
    return next(configuration.fence_devices(), None) is not None


def _is_unfencing_used(configuration: Configuration) -> bool:
    """Whether any block of meta-attributes, with a rule or not, says that unfencing is provided or required."""
    makers = (*configuration.resources.values(), *configuration.templates.values())
    blocks = [block for each in makers for block in each.meta]
    return any(
        name in ("provides", "requires") and value == "unfencing"
        for block in (*blocks, *configuration.resource_defaults)
        for name, value in block.pairs
    )
