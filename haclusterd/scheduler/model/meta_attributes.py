"""Meta-attributes: who says what about a resource, and what follows for it (Pacemaker Explained, "Resource Options").

The order of strength: the resource's own blocks, those of what contains it from the inside out, the resource defaults,
at last what has been worked out for what contains it. What is invalid counts as unset.
"""

from collections.abc import Mapping

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.ids import AgentReference
from haclusterd.model.ocf import Role
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.model.entities import MultipleActive, Needs, Resource, Variant
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
    inherited = parent.meta if parent is not None else NOTHING
    levels = [blocks for blocks in (own, *outer) if blocks]
    if not levels and not inherited:
        return defaults
    context = RuleContext(settings.time, agent=agent)
    meta = {**inherited, **defaults}
    for blocks in reversed(levels):
        meta.update(merge(by_strength(blocks), context))
    return meta


def apply_meta(resource: Resource, meta: Mapping[str, str], settings: Settings) -> None:
    """Fill in what the meta-attributes say."""
    resource.meta = meta
    _read_needs(resource, meta.get("requires"), settings)
    resource.is_migratable = _is_true_or_unset(meta, "allow-migrate") and (
        "allow-migrate" in meta or _is_remote_node(resource, meta)
    )
    if settings.is_maintenance:
        resource.is_managed, resource.is_maintenance = False, True
    if not meta:
        return
    resource.priority = score(meta.get("priority"), 0)
    resource.stickiness = score(meta.get("resource-stickiness"), 0) if resource.variant is not Variant.GROUP else 0
    threshold = score(meta.get("migration-threshold"), INFINITY)
    resource.migration_threshold = threshold if threshold >= 0 else INFINITY
    resource.failure_timeout_ms = duration_ms(meta.get("failure-timeout"), 0)
    resource.is_critical = _is_true_or_unset(meta, "critical")
    resource.allows_unhealthy_nodes = boolean(meta.get("allow-unhealthy-nodes"), default=False)
    resource.uses_host_attributes = meta.get("container-attribute-target", "").lower() == "host"
    resource.multiple_active = _MULTIPLE_ACTIVE.get(meta.get("multiple-active", "").lower(), MultipleActive.STOP_START)
    _read_management(resource, meta, settings)
    _read_target_role(resource, meta.get("target-role"))


def _is_true_or_unset(meta: Mapping[str, str], name: str) -> bool:
    return name not in meta or boolean(meta[name], default=False)


def _is_remote_node(resource: Resource, meta: Mapping[str, str]) -> bool:
    """Whether it is a connection to a remote node that is no guest."""
    return resource.is_remote_connection and "container" not in meta


def is_left_alone(meta: Mapping[str, str], settings: Settings) -> bool:
    """Tell whether a resource with these meta-attributes is unmanaged, or in maintenance, wherever it runs."""
    is_maintenance = settings.is_maintenance or boolean(meta.get("maintenance"), default=False)
    return is_maintenance or not _is_true_or_unset(meta, "is-managed")


def _read_management(resource: Resource, meta: Mapping[str, str], settings: Settings) -> None:
    resource.is_managed = not is_left_alone(meta, settings)
    if boolean(meta.get("maintenance"), default=False):
        resource.is_maintenance = True


def _read_target_role(resource: Resource, text: str | None) -> None:
    if text is None:
        return
    role = _TARGET_ROLES.get(text.strip().lower(), Role.UNKNOWN)
    if role.value > Role.STARTED.value and not resource.is_promotable:
        return
    resource.target_role = role
    resource.target_role_stopped = role is Role.STOPPED
    if role in (Role.STOPPED, Role.UNPROMOTED):
        resource.next_role = role


def _read_needs(resource: Resource, text: str | None, settings: Settings) -> None:
    word = (text or "").strip().lower()
    if word not in ("nothing", "quorum", "fencing", "unfencing"):
        word = _default_needs(resource, settings)
    is_pointless = resource.is_fence_device or not settings.is_fencing_enabled
    if is_pointless and (word == "unfencing" or (word == "fencing" and not settings.options.is_pacemaker_compatible)):
        word = "quorum"
    resource.needs_unfencing = word == "unfencing"
    resource.needs = Needs.FENCING if resource.needs_unfencing else Needs(word)


def _default_needs(resource: Resource, settings: Settings) -> str:
    if resource.is_fence_device or resource.is_remote_connection:
        return "quorum"
    if settings.is_unfencing_used:
        return "unfencing"
    if settings.is_fencing_enabled:
        return "fencing"
    return "nothing" if settings.no_quorum_policy is NoQuorumPolicy.IGNORE else "quorum"
