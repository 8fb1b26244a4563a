"""Moves as transactions: a preference that lives only until the resource runs where it was asked to.

A move puts the classic constraint (`cli-prefer-RSC`, or `cli-ban-RSC-on-NODE` without a target), waits, and takes it
away again: when the resource runs there and is watched, or when it did not come to in time. It is kept, and said to be,
only where taking it away would move the resource back, or demote it. If the daemon that waits dies first, it stays and
`status` shows it. With a lifetime the constraint stays until then, and the DC takes it away (`machines.rule_judge`).
"""

from collections.abc import Callable
from datetime import UTC, datetime

from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_given_node, find_node, find_resource, primitives_of, whole
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.planning import over_with, plan
from haclusterd.commands.status.resource_state import (
    active_nodes,
    failures,
    instances,
    is_at_rest,
    is_promotable,
    is_running_only_on,
    meta_of,
    new_failure,
    why_not_wanted,
)
from haclusterd.model import durations
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Bundle, Clone, Configuration, Location, Primitive
from haclusterd.model.graph import Placement, Plan
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import Role
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass, replace
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.model.lifetimes import BAN, PREFER, lasting, moves, node_of
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.arguments import Arguments


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be moved or banned."""

    context: Context
    """With `force` where that word was typed."""
    target: ResourceId
    node: NodeName | None
    end: WallTime | None
    """None: it lasts."""


_FORCE = "force"


def _asked(context: Context, arguments: Arguments) -> _Asked | Outcome[Change]:
    """Read the words after the resource, of which each may be left out: `[NODE] [LIFETIME] [force]`."""
    words = [each for each in map(arguments.word, ("node", "lifetime", "anyway")) if each]
    found = find_resource(context, arguments.word("resource"))
    if words and words[-1] == _FORCE:
        context, words = replace(context, is_forced=True), words[:-1]
    lifetime, problem = _lifetime_ms(words[-1]) if words else (None, "")
    is_named = bool(words) and not isinstance(find_node(context, words[-1]), ReportItem)
    if lifetime is not None and not is_named:
        words = words[:-1]
    node = find_node(context, words[0]) if words else None
    objections = [each for each in (found, node) if isinstance(each, ReportItem)]
    if len(words) > 1:
        objections.append(report(Code.BAD_ARGUMENT, name="lifetime", problem=problem))
    if objections or isinstance(found, ReportItem) or isinstance(node, ReportItem):
        return refusal(*objections)
    end = None if lifetime is None or is_named else WallTime((context.now + lifetime + 999) // 1000 * 1000)
    return _Asked(context, _target(context.cib.configuration, found, arguments), node, end)


def _target(configuration: Configuration, found: ResourceId, arguments: Arguments) -> ResourceId:
    """Return what a constraint names: the outermost container, or as crmsh writes it, the member of a group itself."""
    top = whole(configuration, found)
    is_of_clone = any(isinstance(configuration.resources[each], Clone | Bundle) for each in (top, found))
    return found if arguments.flag("as_crmsh") and not is_of_clone else top


def _lifetime_ms(text: str) -> tuple[int | None, str]:
    """Return how long a word says, and what is wrong with it if it says nothing."""
    try:
        return durations.parse(text), ""
    except ValueError as error:
        return None, f"{error}; from now on, as PT5M or 5min"


def move(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Move a resource (and its group) to a node, or away from where it runs."""
    asked = _asked(context, arguments)
    if isinstance(asked, Outcome):
        return asked
    context, target, node, end = asked.context, asked.target, asked.node, asked.end
    keep = arguments.flag("constraint")
    if isinstance(context.cib.configuration.resources[target], Clone | Bundle):
        return _move_promoted(context, target, node, role=_role(arguments) or "Promoted", keep=keep, end=end)
    if node is None:
        return _move_away(context, target, keep=keep, end=end)
    primitives = _wanted(context.cib.configuration, target)
    if end is None and primitives and is_running_only_on(context.cib, primitives, node):
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{target} runs on {node}"),))
    return _moved(
        context,
        Location(ConstraintId(f"{PREFER}{target}"), target, node, INFINITY, role=_role(arguments)),
        lambda new: _objection(context, new, target, node),
        done=f"{target} moves to {node}",
        is_there=lambda cib: is_running_only_on(cib, primitives, node),
        waiting_for=f"{target} to run on {node}",
        where=f"on {node}",
        keep=keep,
        end=end,
    )


def _moved(
    context: Context,
    location: Location,
    objection_to: Callable[[Configuration], ReportItem | None],
    *,
    done: str,
    is_there: Callable[[Cib], bool],
    waiting_for: str,
    where: str,
    keep: bool,
    end: WallTime | None,
) -> Outcome[Change]:
    """Put the only constraint of a move, unless that has no effect; it ends with the move if it is not to be kept."""
    target = location.resource
    if end is not None:
        location, done = lasting(location, end), f"{done} until {_moment(end)}"
    new = _with_only(context.cib.configuration, target, location)
    objection = objection_to(new)
    if objection is not None and not context.is_forced:
        return refusal(objection)
    primitives, before = primitives_of(context.cib.configuration, target), failures(context.cib)

    def until(cib: Cib, _live: object) -> bool:
        return is_there(cib) and is_at_rest(cib, primitives)

    if end is not None or keep or context.live is None:
        outcome = change(context, new, done=done, until=until, waiting_for=waiting_for, waits_by_default=True)
        return outcome if end is not None else _kept(outcome, target, location, keep=keep)

    def failed(cib: Cib) -> str:
        return new_failure(cib, before, primitives)

    over = over_with(context, failed, until)
    outcome = change(
        context, new, done=done, until=over, until_plans=True, waiting_for=waiting_for, waits_by_default=True
    )
    if outcome.is_refused or not outcome.commands:
        return outcome
    return replace(outcome, afterwards=_end(context, location, where, is_there, failed))


def _move_promoted(
    context: Context, target: ResourceId, node: NodeName | None, *, role: str, keep: bool, end: WallTime | None
) -> Outcome[Change]:
    """Move the promoted role of a clone that has one; other clones run on several nodes, and do not move."""
    configuration = context.cib.configuration
    primitives = primitives_of(configuration, target)
    if not any(is_promotable(configuration, primitive) for primitive in primitives):
        remedy = f"keep it away from a node: crm resource ban {target} NODE"
        return refusal(report(Code.BAD_ARGUMENT, name="resource", problem=f"{target} runs on several nodes",
                              remedy=remedy))  # fmt: skip
    if node is None:
        return _move_promoted_away(context, target, role=role, keep=keep, end=end)
    if end is None and _promoted_on(context.cib, target) == (node,):
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{target} is promoted on {node}"),))
    return _moved(
        context,
        Location(ConstraintId(f"{PREFER}{target}"), target, node, INFINITY, role=role),
        lambda new: None if role == "Started" else _objection_to_promotion(context, new, target, node),
        done=f"{target} is to be promoted on {node}",
        is_there=lambda cib: _promoted_on(cib, target) == (node,),
        waiting_for=f"{target} to be promoted on {node}",
        where=f"promoted on {node}",
        keep=keep,
        end=end,
    )


def _move_promoted_away(
    context: Context, target: ResourceId, *, role: str, keep: bool, end: WallTime | None
) -> Outcome[Change]:
    """Have another instance promoted than the only one that is, as `crm_resource --move` does without a node."""
    promoted = _promoted_on(context.cib, target)
    if len(promoted) != 1:
        remedy = f"name the node where {target} is to be promoted"
        return refusal(report(Code.MISSING_ARGUMENT, verb="move", name="NODE", meaning="where to", remedy=remedy))
    (left,) = promoted

    def is_there(cib: Cib) -> bool:
        now = _promoted_on(cib, target)
        return bool(now) and left not in now

    return _moved(
        context,
        replace(_ban(target, left), role=role),
        lambda new: _promoted_nowhere(context, new, target),
        done=f"{target} is to be promoted on another node than {left}",
        is_there=is_there,
        waiting_for=f"{target} to be promoted on another node than {left}",
        where=f"promoted on another node than {left}",
        keep=keep,
        end=end,
    )


def _promoted_on(cib: Cib, target: ResourceId) -> tuple[NodeName, ...]:
    """Return the nodes with promoted instances, by name."""
    primitives = primitives_of(cib.configuration, target)
    found = {each.node for primitive in primitives for each in instances(cib, primitive) if each.is_promoted}
    return tuple(sorted(found))


def _promoted_nowhere(context: Context, new: Configuration, target: ResourceId) -> ReportItem | None:
    """Say that the scheduler would promote no other instance."""
    if _promoted_by_plan(replace(context.cib, configuration=new), context, target) != ():
        return None
    why = "no instance on another node is promoted by the scheduler"
    return report(
        Code.MOVE_HAS_NO_EFFECT, resource=target, node="another node", why=why, remedy=f"crm resource why {target}"
    )


def _objection_to_promotion(
    context: Context, new: Configuration, target: ResourceId, node: NodeName
) -> ReportItem | None:
    """Say that no instance would be promoted on the node even with the preference."""
    if _promoted_by_plan(replace(context.cib, configuration=new), context, target) in (None, (node,)):
        return None
    why = "no instance there is promoted by the scheduler"
    return report(Code.MOVE_HAS_NO_EFFECT, resource=target, node=node, why=why, remedy=f"crm resource why {target}")


def _promoted_by_plan(cib: Cib, context: Context, target: ResourceId) -> tuple[NodeName, ...] | None:
    """Return where the next plan promotes; None: there is no plan."""
    found = plan(cib, context.now)
    if not isinstance(found, Plan):
        return None
    primitives = primitives_of(cib.configuration, target)
    return tuple(
        each.next_on
        for each in found.placements.values()
        if (each.base or each.resource) in primitives and each.next_role is Role.PROMOTED and each.next_on is not None
    )


def _move_away(context: Context, target: ResourceId, *, keep: bool, end: WallTime | None) -> Outcome[Change]:
    located = _runs_on(context.cib, target)
    if located is None:
        return refusal(report(Code.NOT_ACTIVE, resource=target, remedy="name the node to move it to"))
    return _moved(
        context,
        _ban(target, located),
        lambda new: _nowhere_else(context, new, target),
        done=f"{target} moves away from {located}",
        is_there=lambda cib: _runs_on_another(cib, target, located),
        waiting_for=f"{target} to run on another node than {located}",
        where=f"on another node than {located}",
        keep=keep,
        end=end,
    )


def ban(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Keep a resource (and its group) away from a node until `clear`, or for a time."""
    asked = _asked(context, arguments)
    if isinstance(asked, Outcome):
        return asked
    context, target, node = asked.context, asked.target, asked.node
    if node is None and isinstance(context.cib.configuration.resources[target], Clone | Bundle):
        remedy = f"{target} runs on several nodes: name the one"
        return refusal(report(Code.MISSING_ARGUMENT, verb="ban", name="NODE", meaning="which node", remedy=remedy))
    banned = node or _runs_on(context.cib, target)
    if banned is None:
        return refusal(report(Code.NOT_ACTIVE, resource=target, remedy="name the node to ban it from"))
    location = replace(_ban(target, banned), role=_role(arguments))
    ends_with = f"until: crm resource clear {target}"
    if asked.end is not None:
        location, ends_with = lasting(location, asked.end), f"until {_moment(asked.end)}"
    constraints = {**context.cib.configuration.constraints, location.id: location}
    new = replace(context.cib.configuration, constraints=constraints)
    is_of_promoted = location.role == "Promoted"
    return change(
        context,
        new,
        done=f"{target} is {'not to be promoted on' if is_of_promoted else 'banned from'} {banned} {ends_with}",
        until=lambda cib, _live: not any(
            each.node == banned and (each.is_promoted or not is_of_promoted)
            for primitive in primitives_of(new, target) for each in instances(cib, primitive)
        ),
        waiting_for=f"{target} to {'be demoted on' if is_of_promoted else 'leave'} {banned}",
    )


def clear(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Take away what `move` and `ban` left for a resource."""
    found = find_resource(context, arguments.word("resource"))
    node = find_given_node(context, arguments.word("node"))
    objections = tuple(each for each in (found, node) if isinstance(each, ReportItem))
    if objections or isinstance(found, ReportItem) or isinstance(node, ReportItem):
        return refusal(*objections)
    configuration = context.cib.configuration
    named = {found, whole(configuration, found)}
    left = moves(configuration)
    gone = [each.id for each in left if each.resource in named and node in (None, node_of(each))]
    if not gone:
        return Outcome((report(Code.NOTHING_TO_DO, state=f"{found} is neither moved nor banned"),))
    return change(context, _without(configuration, gone), done=f"removed {', '.join(gone)}")


def _moment(end: WallTime) -> str:
    return datetime.fromtimestamp(end // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _role(arguments: Arguments) -> str | None:
    """Return the role that a constraint names; `Started` is every role, and says no more than none."""
    return arguments.word("role") or ("Started" if arguments.flag("as_crmsh") else None)


def _ban(target: ResourceId, node: NodeName) -> Location:
    return Location(ConstraintId(f"{BAN}{target}-on-{node}"), target, node, -INFINITY)


def _with_only(configuration: Configuration, target: ResourceId, location: Location) -> Configuration:
    """Add the constraint, in place of what earlier moves left for the resource."""
    gone = [each.id for each in moves(configuration) if each.resource == target]
    left = _without(configuration, gone)
    return replace(left, constraints={**left.constraints, location.id: location})


def _without(configuration: Configuration, gone: list[ConstraintId]) -> Configuration:
    constraints = {key: each for key, each in configuration.constraints.items() if key not in gone}
    return replace(configuration, constraints=constraints)


def _wanted(configuration: Configuration, target: ResourceId) -> tuple[ResourceId, ...]:
    """Return the primitives of a resource that are to run."""
    properties = ClusterProperties(configuration)
    return tuple(
        primitive.id
        for primitive in (configuration.resources[each] for each in primitives_of(configuration, target))
        if isinstance(primitive, Primitive)
        and not why_not_wanted(properties, primitive, meta_of(configuration, primitive.id))
    )


def _runs_on(cib: Cib, target: ResourceId) -> NodeName | None:
    for primitive in primitives_of(cib.configuration, target):
        for node in active_nodes(cib, primitive):
            return node
    return None


def _runs_on_another(cib: Cib, target: ResourceId, left: NodeName) -> bool:
    located = _runs_on(cib, target)
    if located in (None, left) or target not in cib.configuration.resources:
        return False
    wanted = _wanted(cib.configuration, target)
    return is_running_only_on(cib, wanted, located)


def _placements(cib: Cib, context: Context, target: ResourceId) -> tuple[Placement, ...] | None:
    found = plan(cib, context.now, is_explaining=True)
    if not isinstance(found, Plan):
        return None
    wanted = _wanted(cib.configuration, target)
    return tuple(found.placements[primitive] for primitive in wanted if primitive in found.placements)


def _objection(context: Context, new: Configuration, target: ResourceId, node: NodeName) -> ReportItem | None:
    """Say why the resource would not run on the node even with the preference."""
    if not _wanted(new, target):
        return _is_stopped(target, node)
    placements = _placements(replace(context.cib, configuration=new), context, target) or ()
    for placement in placements:
        if placement.next_on == node:
            continue
        score = next((each for each in placement.scores if each.node == node), None)
        objection = score.objection if score is not None else ""
        why = objection or placement.verdict or "the scheduler places it on another node"
        return report(
            Code.MOVE_HAS_NO_EFFECT, resource=placement.resource, node=node, why=why,
            remedy=f"crm resource why {placement.resource} {node}",
        )  # fmt: skip
    return None


def _nowhere_else(context: Context, new: Configuration, target: ResourceId) -> ReportItem | None:
    """Say why no other node would run the resource."""
    if not _wanted(new, target):
        return _is_stopped(target, "another node")
    for placement in _placements(replace(context.cib, configuration=new), context, target) or ():
        if placement.next_on is None:
            why = placement.verdict or "no other node can run it"
            return report(
                Code.MOVE_HAS_NO_EFFECT, resource=placement.resource, node="another node", why=why,
                remedy=f"crm resource why {placement.resource}",
            )  # fmt: skip
    return None


def _is_stopped(target: ResourceId, node: str) -> ReportItem:
    remedy = f"crm resource start {target}"
    return report(Code.MOVE_HAS_NO_EFFECT, resource=target, node=node, why="it is to be stopped", remedy=remedy)


def _kept(outcome: Outcome[Change], target: ResourceId, location: Location, *, keep: bool) -> Outcome[Change]:
    """Say that the constraint stays, and why."""
    if outcome.is_refused or not outcome.commands:
        return outcome
    why = "it was asked for" if keep else "nothing moves in a file"
    kept = report(Code.MOVE_KEPT, constraint=location.id, resource=target, why=why)
    return replace(outcome, reports=(*outcome.reports, kept))


def _end(
    context: Context, location: Location, where: str, is_there: Callable[[Cib], bool], failed: Callable[[Cib], str]
) -> Callable[[Cib, bool], Outcome[Change]]:
    """Say what becomes of the constraint once the resource has moved, or nothing is left to try, or time is up."""

    target = location.resource

    def end(cib: Cib, is_over: bool) -> Outcome[Change]:
        if cib.configuration.constraints.get(location.id) != location:
            return Outcome()
        later = replace(context, cib=cib, reason=context.reason or f"end of the move of {target}")
        new = _without(cib.configuration, [location.id])
        why = failed(cib)
        if not is_over or (why and not is_there(cib)):
            why = why or "not in the time given"
            withdrawn = report(Code.MOVE_WITHDRAWN, resource=target, where=where, why=why, constraint=location.id)
            outcome = change(later, new, done=f"removed {location.id}")
            return replace(outcome, reports=(withdrawn,), until=None)
        undone = _undone_by(later, new, target, location)
        if undone:
            why = f"without it {target} would {undone}"
            return Outcome((report(Code.MOVE_KEPT, constraint=location.id, resource=target, why=why),))
        outcome = change(later, new, done="")
        there = next(iter(_promoted_on(cib, target)), None) if location.role == "Promoted" else _runs_on(cib, target)
        node = there or location.node
        moved = report(Code.MOVED, resource=target, node=node, constraint=location.id)
        return replace(outcome, reports=(moved,), until=None)

    return end


def _undone_by(context: Context, new: Configuration, target: ResourceId, location: Location) -> str:
    """Say what would become of the resource if the constraint were taken away now; empty: it stays.

    An agent that sets promotion scores only while nothing is promoted leaves none where the preference alone promoted.
    """
    if location.role == "Promoted":
        promoted = _promoted_by_plan(replace(context.cib, configuration=new), context, target)
        others = [node for node in promoted or () if node not in _promoted_on(context.cib, target)]
        if others:
            return f"go back to {others[0]}"
        return "be promoted nowhere" if promoted == () else ""
    for placement in _placements(replace(context.cib, configuration=new), context, target) or ():
        if placement.next_on is not None and placement.next_on not in active_nodes(context.cib, placement.resource):
            return f"go back to {placement.next_on}"
    return ""
