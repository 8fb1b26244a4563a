"""`resource why` and `resource scores`: the scheduler's sums with their named parts, and what would change them."""

from collections.abc import Iterator

from haclusterd.commands.arguments import Arguments
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_node, find_resource, find_resources, primitives_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.overview import Overview
from haclusterd.commands.planning import plan
from haclusterd.commands.resource_state import meta_flag
from haclusterd.model.configuration import Primitive
from haclusterd.model.graph import NodeScore, Placement, Plan
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.scores import render as render_score
from haclusterd.reports.items import ReportItem


def why(context: Context, arguments: Arguments) -> Outcome:
    """Answer why a resource runs where it runs, or why not on a given node (schema `haclusterd.why/1`)."""
    resource = find_resource(context, arguments.word("resource"))
    node = find_node(context, arguments.word("node")) if arguments.word("node") else None
    objections = tuple(each for each in (resource, node) if isinstance(each, ReportItem))
    if objections or isinstance(resource, ReportItem) or isinstance(node, ReportItem):
        return refusal(*objections)
    return _explained(context, "haclusterd.why/1", (resource,), node)


def scores(context: Context, arguments: Arguments) -> Outcome:
    """Answer the scores of some resources or all (schema `haclusterd.scores/1`)."""
    resources, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    return _explained(context, "haclusterd.scores/1", resources or tuple(context.cib.configuration.resources), None)


def _explained(
    context: Context, schema: str, resources: tuple[ResourceId, ...], node: NodeName | None
) -> Outcome:
    found = plan(context.cib, context.now, is_explaining=True)
    if isinstance(found, ReportItem):
        return refusal(found)
    configuration = context.cib.configuration
    primitives = dict.fromkeys(each for resource in resources for each in primitives_of(configuration, resource))
    overview = Overview(context.cib)
    parents = configuration.parents()
    explained = [_primitive(overview, found, primitive, parents.get(primitive), node) for primitive in primitives]
    return Outcome(data={"schema": schema, "now": context.now, "node": node, "resources": explained})


def _primitive(
    overview: Overview, found: Plan, resource: ResourceId, group: ResourceId | None, node: NodeName | None
) -> Json:
    placement = found.placements.get(resource, Placement(resource, (), None, (), "the scheduler says nothing of it"))
    primitive = overview.cib.configuration.resources[resource]
    assert isinstance(primitive, Primitive)
    meta = overview.meta(primitive)
    not_wanted = overview.not_wanted(primitive)
    shown = [each for each in placement.scores if node in (None, each.node)]
    return {
        "resource": resource,
        "group": group,
        "now_on": list(placement.now_on),
        "next_on": placement.next_on,
        "verdict": placement.verdict,
        "not_wanted": not_wanted,
        "instances": [
            {"node": each.node, "state": str(each.state), "detail": each.detail}
            for each in overview.instances(resource)
        ],
        "nodes": [_score(each, placement) for each in sorted(shown, key=lambda each: (-each.score, each.node))],
        "actions": [
            f"{action.name} on {action.node}" + (f": {action.reason}" if action.reason else "")
            for _, action in sorted(found.graph.actions.items())
            if action.resource == resource and action.interval_ms == 0
        ],
        "advice": list(_advice(overview, placement, not_wanted, node, is_managed=meta_flag(meta, "is-managed"))),
    }


def _score(score: NodeScore, placement: Placement) -> Json:
    return {
        "node": score.node,
        "score": render_score(score.score),
        "is_eligible": score.is_eligible,
        "objection": score.objection,
        "is_now": score.node in placement.now_on,
        "is_next": score.node == placement.next_on,
        "addends": [{"score": render_score(each.score), "source": each.source} for each in score.addends],
    }


def _advice(
    overview: Overview, placement: Placement, not_wanted: str, node: NodeName | None, *, is_managed: bool
) -> Iterator[str]:
    """Say what would have to change for the answer to be another."""
    resource = placement.resource
    if not_wanted == "target-role=Stopped":
        yield f"crm resource start {resource}"
    elif not_wanted:
        yield "crm configure property stop-all-resources=false"
    if not is_managed:
        yield f"{resource} is not managed: set is-managed=true"
    for name in overview.failed_on(resource):
        if node in (None, name):
            yield f"it failed on {name}; when the cause is gone: crm resource cleanup {resource} {name}"
    if node is not None and placement.next_on not in (None, node):
        yield from _lift(placement, node)


def _lift(placement: Placement, node: NodeName) -> Iterator[str]:
    """Say how much is missing for a node to win."""
    by_node = {each.node: each for each in placement.scores}
    here = by_node.get(node)
    winner = by_node.get(placement.next_on) if placement.next_on is not None else None
    if here is None or winner is None:
        return
    if not here.is_eligible:
        yield f"{node} cannot run it now" + (f": {here.objection}" if here.objection else "")
        return
    missing = winner.score - here.score
    yield (
        f"{node} has {render_score(here.score)}, {winner.node} has {render_score(winner.score)}: a location with more "
        f"than {missing} for {node} would move it, or once: crm resource move {placement.resource} {node}"
    )
