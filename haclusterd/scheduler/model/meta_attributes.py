"""Meta-attributes: who says what about a resource, and what follows for it (Pacemaker Explained, "Resource Options").

The order of strength: the resource's own blocks, those of what contains it from the inside out, the resource defaults,
at last what has been worked out for what contains it. What is invalid counts as unset.
"""

from collections.abc import Mapping
from dataclasses import replace

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import AgentReference
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.entities import Definition, MultipleActive, Needs, Resource, Variant
from haclusterd.scheduler.model.readings import boolean, duration_ms, score
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge
from haclusterd.scheduler.model.settings import NoQuorumPolicy, Settings

NOTHING: Mapping[str, str] = {}

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


def define(base: Definition, variant: Variant, meta: Mapping[str, str], settings: Settings) -> Definition:
    """Return a definition with what the meta-attributes say."""
    needs, needs_unfencing = _needs(base, meta.get("requires"), settings)
    is_migratable = _is_true_or_unset(meta, "allow-migrate") and (
        "allow-migrate" in meta or _is_remote_node(base, meta)
    )
    if not meta:
        return replace(
            base,
            meta=meta,
            needs=needs,
            needs_unfencing=needs_unfencing,
            is_migratable=is_migratable,
            is_managed=not settings.is_maintenance,
            is_maintenance=settings.is_maintenance,
        )
    threshold = score(meta.get("migration-threshold"), INFINITY)
    return replace(
        base,
        meta=meta,
        needs=needs,
        needs_unfencing=needs_unfencing,
        is_migratable=is_migratable,
        is_managed=not is_left_alone(meta, settings),
        is_maintenance=settings.is_maintenance or boolean(meta.get("maintenance"), default=False),
        priority=score(meta.get("priority"), 0),
        stickiness=score(meta.get("resource-stickiness"), 0) if variant is not Variant.GROUP else 0,
        migration_threshold=threshold if threshold >= 0 else INFINITY,
        failure_timeout_ms=duration_ms(meta.get("failure-timeout"), 0),
        is_critical=_is_true_or_unset(meta, "critical"),
        allows_unhealthy_nodes=boolean(meta.get("allow-unhealthy-nodes"), default=False),
        uses_host_attributes=meta.get("container-attribute-target", "").lower() == "host",
        multiple_active=_MULTIPLE_ACTIVE.get(meta.get("multiple-active", "").lower(), MultipleActive.STOP_START),
        target_role=_target_role(meta.get("target-role"), is_promotable=base.is_promotable),
    )


def _is_true_or_unset(meta: Mapping[str, str], name: str) -> bool:
    return name not in meta or boolean(meta[name], default=False)


def _is_remote_node(base: Definition, meta: Mapping[str, str]) -> bool:
    """Whether it is a connection to a remote node that is no guest."""
    return base.is_remote_connection and "container" not in meta


def is_left_alone(meta: Mapping[str, str], settings: Settings) -> bool:
    """Tell whether a resource with these meta-attributes is unmanaged, or in maintenance, wherever it runs."""
    is_maintenance = settings.is_maintenance or boolean(meta.get("maintenance"), default=False)
    return is_maintenance or not _is_true_or_unset(meta, "is-managed")


def _target_role(text: str | None, *, is_promotable: bool) -> Role:
    role = _TARGET_ROLES.get(text.strip().lower(), Role.UNKNOWN) if text is not None else Role.UNKNOWN
    return role if is_promotable or role.value <= Role.STARTED.value else Role.UNKNOWN


def _needs(base: Definition, text: str | None, settings: Settings) -> tuple[Needs, bool]:
    """Return what it needs before it may start, and whether unfencing is part of that."""
    word = (text or "").strip().lower()
    if word not in ("nothing", "quorum", "fencing", "unfencing"):
        word = _default_needs(base, settings)
    is_pointless = base.is_fence_device or not settings.is_fencing_enabled
    if is_pointless and (word == "unfencing" or (word == "fencing" and not settings.options.is_pacemaker_compatible)):
        word = "quorum"
    return (Needs.FENCING, True) if word == "unfencing" else (Needs(word), False)


def _default_needs(base: Definition, settings: Settings) -> str:
    if base.is_fence_device or base.is_remote_connection:
        return "quorum"
    if settings.is_unfencing_used:
        return "unfencing"
    if settings.is_fencing_enabled:
        return "fencing"
    return "nothing" if settings.no_quorum_policy is NoQuorumPolicy.IGNORE else "quorum"
