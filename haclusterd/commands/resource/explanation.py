"""`resource why` and `resource scores`: the scheduler's sums with their named parts, and what would change them."""

from collections.abc import Iterator
from typing import TypeVar

from haclusterd.commands.context import Context, Event
from haclusterd.commands.history.history import moment_of
from haclusterd.commands.history.replay import replayed
from haclusterd.commands.history.transitions import EVENTS_MAX, causes_of, transition_of
from haclusterd.commands.names import find_given_node, find_resource, find_resources, parts_of, primitives_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.planning import plan, standing
from haclusterd.commands.status.overview import Overview, overview_of
from haclusterd.commands.status.resource_state import meta_flag
from haclusterd.model.change_kinds import ChangeKind
from haclusterd.model.configuration import Group, Primitive
from haclusterd.model.graph import NodeScore, Placement, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, Role
from haclusterd.model.records import replace
from haclusterd.model.remembered import HistoryQuery
from haclusterd.model.scores import INFINITY
from haclusterd.model.scores import render as render_score
from haclusterd.reports.items import ReportItem
from haclusterd.verbs.answers.resource import (
    Addend,
    Before,
    Explanation,
    InstanceInShort,
    Promotion,
    ScoreOfNode,
    Scores,
    Why,
)
from haclusterd.verbs.arguments import Arguments

_LOOKS = frozenset({ActionName.MONITOR, ActionName.NOTIFY, ActionName.CANCEL})
_Explained = TypeVar("_Explained", Why, Scores)


def why(context: Context, arguments: Arguments) -> Outcome[Why]:
    """Answer why a resource runs where it runs, or why not on a given node (schema `haclusterd.why/1`)."""
    at = moment_of(context, "at", arguments.word("at"))
    then = None if at is None or isinstance(at, ReportItem) else replayed(context, at)
    if isinstance(at, ReportItem) or isinstance(then, ReportItem):
        return refusal(*(each for each in (at, then) if isinstance(each, ReportItem)))
    now = context.now
    if at is not None and then is not None:
        context = replace(context, cib=then.cib, now=at, live=None)
    resource = find_resource(context, arguments.word("resource"))
    node = find_given_node(context, arguments.word("node"))
    objections = tuple(each for each in (resource, node) if isinstance(each, ReportItem))
    if objections or isinstance(resource, ReportItem) or isinstance(node, ReportItem):
        return refusal(*objections)
    outcome = _explained(context, Why, (resource,), node)
    if at is None or then is None or outcome.answer is None:
        return outcome
    resources = tuple(replace(each, advice=()) for each in outcome.answer.resources)
    answer = replace(
        outcome.answer, now=now, resources=resources, at=at, version=then.version,
        before=_before(context, resource, at),
    )  # fmt: skip
    return replace(outcome, reports=(*then.reports, *outcome.reports), answer=answer)


def _before(context: Context, resource: ResourceId, at: WallTime) -> tuple[Before, ...]:
    """Return what the newest transition that concerned a resource by then had ordered of it, and what led to that."""
    assert context.past is not None
    parts = tuple(dict.fromkeys((resource, *parts_of(context.cib.configuration, resource))))
    query = HistoryQuery(EVENTS_MAX, until=at, resources=parts, kinds=(str(ChangeKind.ORDER_ISSUED),))
    ordered = [transition_of(each.order) for each in context.past.recall(query).events if _changes_something(each)]
    if not ordered:
        return ()
    query = HistoryQuery(EVENTS_MAX, transition=ordered[-1])
    events = [each for each in context.past.recall(query).events if each.at <= at]
    its = [each for each in events if transition_of(each.order) == ordered[-1]]
    led = causes_of(events, ordered[-1], its[0].index) if its else []
    about = [each for each in its if each.change.resource in parts and _changes_something(each)]
    return tuple(Before(each.at, each.change.text, _reason(each)) for each in (*led, *about))


def _changes_something(event: Event) -> bool:
    """Tell whether an event is about an action that is more than a look or a message; old rows do not say."""
    return event.change.facts.action not in _LOOKS


def _reason(event: Event) -> str:
    """Return why something was ordered, where the event's text does not say it already."""
    reason = (event.change.facts.reason or event.reason) if event.change.kind is ChangeKind.ORDER_ISSUED else ""
    return "" if event.change.text.endswith(reason) else reason


def scores(context: Context, arguments: Arguments) -> Outcome[Scores]:
    """Answer the scores of some resources or all (schema `haclusterd.scores/1`)."""
    resources, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    return _explained(context, Scores, resources or tuple(context.cib.configuration.resources), None)


def _explained(
    context: Context, kind: type[_Explained], resources: tuple[ResourceId, ...], node: NodeName | None
) -> Outcome[_Explained]:
    stands = standing(context)
    found = plan(context.cib, context.now, is_explaining=True, options=stands.options)
    if isinstance(found, ReportItem):
        return refusal(found)
    configuration = context.cib.configuration
    primitives = dict.fromkeys(each for resource in resources for each in primitives_of(configuration, resource))
    overview = overview_of(context)
    parents = configuration.parents()
    explained: list[Explanation] = []
    for primitive in primitives:
        for placement in _placements(found, primitive, node):
            explained.append(_explain(overview, found, placement, parents.get(primitive), node))
    return Outcome(stands.reports, answer=kind(now=context.now, node=node, resources=tuple(explained)))


def _placements(found: Plan, primitive: ResourceId, node: NodeName | None) -> list[Placement]:
    """Return what was decided for a primitive, or for its instances; of these, with a node, those that concern it."""
    placements = [each for each in found.placements.values() if (each.base or each.resource) == primitive]
    if not placements:
        return [Placement(primitive, (), None, (), "the scheduler says nothing of it")]
    if node is None or len(placements) == 1:
        return placements
    there = [each for each in placements if node == each.next_on or node in each.now_on]
    nowhere = [each for each in placements if each.next_on is None]
    return there or nowhere[:1] or placements[:1]


def _explain(
    overview: Overview,
    found: Plan,
    placement: Placement,
    parent: ResourceId | None,
    node: NodeName | None,
) -> Explanation:
    primitive_id = placement.base or placement.resource
    primitive = overview.cib.configuration.resources[primitive_id]
    assert isinstance(primitive, Primitive)
    meta = overview.meta(primitive)
    not_wanted = overview.not_wanted(primitive)
    shown = [each for each in placement.scores if node in (None, each.node)]
    alone = overview.stopped_alone.get(primitive_id)
    container = overview.cib.configuration.resources.get(parent) if parent is not None else None
    is_promotable = placement.promotion is not None or placement.next_role is Role.PROMOTED
    return Explanation(
        resource=placement.resource,
        group=parent if isinstance(container, Group) else None,
        now_on=tuple(each for each in placement.now_on if each != alone),
        next_on=placement.next_on,
        next_role=str(placement.next_role) if is_promotable and placement.next_on is not None else "",
        promotion=_promotion(placement),
        verdict=f"{alone} has no lease and stopped it" if alone else placement.verdict,
        not_wanted=not_wanted,
        instances=tuple(
            InstanceInShort(node=each.node, state=str(each.state), detail=each.detail)
            for each in overview.instances(primitive_id)
            if placement.base is None or each.node in placement.now_on
        ),
        nodes=tuple(_score(each, placement) for each in sorted(shown, key=lambda each: (-each.score, each.node))),
        actions=tuple(
            f"{action.name} on {action.node}" + (f": {action.reason}" if action.reason else "")
            for _, action in sorted(found.graph.actions.items())
            if placement.resource in (action.resource, action.instance) and action.interval_ms == 0
        ),
        advice=tuple(_advice(overview, placement, not_wanted, node, is_managed=meta_flag(meta, "is-managed"))),
    )


def _promotion(placement: Placement) -> Promotion | None:
    promotion = placement.promotion
    if promotion is None:
        return None
    return Promotion(
        score=render_score(promotion.score),
        addends=tuple(Addend(render_score(each.score), each.source) for each in promotion.addends),
        to_be_promoted=tuple(promotion.to_be_promoted),
    )


def _score(score: NodeScore, placement: Placement) -> ScoreOfNode:
    return ScoreOfNode(
        node=score.node,
        score=render_score(score.score),
        is_eligible=score.is_eligible,
        objection=score.objection,
        is_now=score.node in placement.now_on,
        is_next=score.node == placement.next_on,
        addends=tuple(Addend(render_score(each.score), each.source) for each in score.addends),
        to_win=tuple(score.to_win),
    )


def _advice(
    overview: Overview, placement: Placement, not_wanted: str, node: NodeName | None, *, is_managed: bool
) -> Iterator[str]:
    """Say what would have to change for the answer to be another."""
    resource = placement.base or placement.resource
    if not_wanted == "target-role=Stopped":
        yield f"crm resource start {resource}"
    elif not_wanted.startswith("restart of "):
        yield "it runs again when it has stopped everywhere"
    elif not_wanted.startswith("ticket "):
        yield "crm ticket grant, if no other cluster holds it; crm ticket activate, if it is in standby"
    elif not_wanted:
        yield "crm configure property stop-all-resources=false"
    if not is_managed:
        yield f"{resource} is not managed: set is-managed=true"
    failed = [name for name in overview.failed_on(resource) if node in (None, name)]
    if failed:
        where = f" {failed[0]}" if len(failed) == 1 else ""
        yield f"it failed on {', '.join(failed)}; when the cause is gone: crm resource cleanup {resource}{where}"
    if node is not None and placement.next_on != node:
        yield from _to_win(placement, node)


def _to_win(placement: Placement, node: NodeName) -> Iterator[str]:
    """Say what would have to change for a node to be chosen."""
    score = next((each for each in placement.scores if each.node == node), None)
    if score is None:
        return
    for each in score.to_win:
        yield f"for {node}: {each}"
    can_be_moved = score.is_eligible and score.score > -INFINITY and placement.base is None
    if can_be_moved and placement.next_on is not None:
        yield f"or once: crm resource move {placement.resource} {node}"
