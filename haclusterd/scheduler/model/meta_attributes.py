"""Meta-attributes: who says what about a resource, and what follows for it (Pacemaker Explained, "Resource Options").

The order of strength: the resource's own blocks, those of what contains it from the inside out, the resource defaults,
at last what has been worked out for what contains it. What is invalid counts as unset.
"""

from collections.abc import Mapping

from haclusterd.model.configuration import AttributeSet, Operation
from haclusterd.model.ids import AgentReference
from haclusterd.model.ocf import Role
from haclusterd.model.properties import is_own_meta
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.definition import Definition, MultipleActive, Needs, Variant
from haclusterd.scheduler.model.entities import Resource
from haclusterd.scheduler.model.readings import boolean, duration_ms, pacemakers_score
from haclusterd.scheduler.model.readings import score as own_score
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge
from haclusterd.scheduler.model.settings import NoQuorumPolicy, Settings

NOTHING: Mapping[str, str] = {}
NO_AMOUNTS: Mapping[str, int] = {}

_MULTIPLE_ACTIVE = {choice.value: choice for choice in MultipleActive}
_TARGET_ROLES = {
    "stopped": Role.STOPPED,
    "started": Role.STARTED,
    "unpromoted": Role.UNPROMOTED,
    "slave": Role.UNPROMOTED,
    "promoted": Role.PROMOTED,
    "master": Role.PROMOTED,
}
_REMOTE = AgentReference("ocf", "pacemaker", "remote")


def is_remote_agent(agent: AgentReference | None) -> bool:
    """Tell whether it is the agent that stands for a connection to a Pacemaker Remote node."""
    return agent == _REMOTE


def resolve_meta(
    own: tuple[AttributeSet, ...],
    outer: tuple[tuple[AttributeSet, ...], ...],
    parent: Resource | None,
    agent: AgentReference | None,
    settings: Settings,
) -> Mapping[str, str]:
    """Return all meta-attributes of a resource; `outer` are the blocks of what contains it, the nearest first."""
    defaults = settings.resource_defaults.of(agent)
    inherited = parent.definition.meta if parent is not None else NOTHING
    levels = [blocks for blocks in (own, *outer) if blocks]
    if not levels and not inherited:
        return defaults
    context = RuleContext(settings.time, agent=agent)
    meta = {**inherited, **defaults}
    for blocks in reversed(levels):
        meta.update(merge(by_strength(blocks), context))
    return meta


def define(
    inherited: Definition,
    variant: Variant,
    meta: Mapping[str, str],
    settings: Settings,
    *,
    agent: AgentReference | None = None,
    operations: tuple[Operation, ...] = (),
    parameters: Mapping[str, str] = NOTHING,
    parameter_sets: tuple[AttributeSet, ...] = (),
    utilization: Mapping[str, int] = NO_AMOUNTS,
) -> Definition:
    """Return what the meta-attributes, and of a primitive the rest of its configuration, say of a resource.

    `inherited`: what is true of what contains it. The fields of collectives alone are as they are by default.
    """
    is_fence_device = agent is not None and agent.standard == "stonith"
    is_connection = is_remote_agent(agent)
    needs, needs_unfencing = _needs(
        meta.get("requires"), settings, is_fence_device=is_fence_device, is_connection=is_connection
    )
    score = pacemakers_score if settings.options.is_pacemaker_compatible else own_score
    threshold = score(meta.get("migration-threshold"), INFINITY)
    interval = parameters.get("reconnect_interval") if is_connection else None
    interval_ms = duration_ms(interval, 0)
    return Definition(
        meta=meta,
        own_meta={name: value for name, value in meta.items() if is_own_meta(name)},
        agent=agent,
        operations=operations,
        parameters=parameters,
        parameter_sets=parameter_sets,
        utilization=utilization,
        is_fence_device=is_fence_device,
        is_remote_connection=is_connection,
        priority=score(meta.get("priority"), 0),
        stickiness=score(meta.get("resource-stickiness"), 0) if variant is not Variant.GROUP else 0,
        migration_threshold=threshold if threshold >= 0 else INFINITY,
        # the failures of a try to connect expire when the next one is due
        failure_timeout_ms=duration_ms(meta.get("failure-timeout"), 0) if interval is None else interval_ms,
        reconnect_interval_ms=interval_ms,
        multiple_active=_MULTIPLE_ACTIVE.get(meta.get("multiple-active", "").lower(), MultipleActive.STOP_START),
        needs=needs,
        needs_unfencing=needs_unfencing,
        is_critical=_is_true_or_unset(meta, "critical"),
        is_managed=not is_left_alone(meta, settings),
        is_maintenance=settings.is_maintenance or boolean(meta.get("maintenance"), default=False),
        target_role=_target_role(meta.get("target-role"), is_promotable=inherited.is_promotable),
        is_migratable=_may_migrate(meta, is_connection=is_connection),
        allows_unhealthy_nodes=boolean(meta.get("allow-unhealthy-nodes"), default=False),
        uses_host_attributes=meta.get("container-attribute-target", "").lower() == "host",
        is_unique=inherited.is_unique,
        is_promotable=inherited.is_promotable,
        notifies=inherited.notifies,
    )


def _is_true_or_unset(meta: Mapping[str, str], name: str) -> bool:
    return name not in meta or boolean(meta[name], default=False)


def _may_migrate(meta: Mapping[str, str], *, is_connection: bool) -> bool:
    """Of what says nothing only the connection to a remote node that is no guest."""
    if "allow-migrate" in meta:
        return boolean(meta["allow-migrate"], default=False)
    return is_connection and "container" not in meta


def is_left_alone(meta: Mapping[str, str], settings: Settings) -> bool:
    """Tell whether a resource with these meta-attributes is unmanaged, or in maintenance, wherever it runs."""
    is_maintenance = settings.is_maintenance or boolean(meta.get("maintenance"), default=False)
    return is_maintenance or not _is_true_or_unset(meta, "is-managed")


def _target_role(text: str | None, *, is_promotable: bool) -> Role:
    role = _TARGET_ROLES.get(text.strip().lower(), Role.UNKNOWN) if text is not None else Role.UNKNOWN
    return role if is_promotable or role.value <= Role.STARTED.value else Role.UNKNOWN


def _needs(
    text: str | None, settings: Settings, *, is_fence_device: bool, is_connection: bool
) -> tuple[Needs, bool]:
    """Return what it needs before it may start, and whether unfencing is part of that."""
    word = (text or "").strip().lower()
    if word not in ("nothing", "quorum", "fencing", "unfencing"):
        word = "quorum" if is_fence_device or is_connection else _default_needs(settings)
    is_pointless = is_fence_device or not settings.is_fencing_enabled
    if is_pointless and (word == "unfencing" or (word == "fencing" and not settings.options.is_pacemaker_compatible)):
        word = "quorum"
    return (Needs.FENCING, True) if word == "unfencing" else (Needs(word), False)


def _default_needs(settings: Settings) -> str:
    if settings.is_unfencing_used:
        return "unfencing"
    if settings.is_fencing_enabled:
        return "fencing"
    return "nothing" if settings.no_quorum_policy is NoQuorumPolicy.IGNORE else "quorum"
