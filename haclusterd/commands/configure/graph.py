"""The configuration as a graph in the language of Graphviz: resources in what contains them, constraints as edges."""

from collections.abc import Iterator
from itertools import pairwise

from haclusterd.commands.configure.script import with_pending
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.configuration import (
    Colocation,
    Configuration,
    Constraint,
    Location,
    Ordering,
    Primitive,
    Resource,
    TicketConstraint,
    contained,
)
from haclusterd.model.ids import ResourceId
from haclusterd.model.scores import render as render_score
from haclusterd.verbs.answers.configuration import Graph
from haclusterd.verbs.arguments import Arguments
from haclusterd.wire.dot_text import quoted


def graph(context: Context, arguments: Arguments) -> Outcome[Graph]:
    """Answer the configuration as a graph (schema `haclusterd.graph/1`)."""
    configuration, objections = with_pending(context, arguments.word("pending"))
    if objections:
        return Outcome(objections)
    return Outcome(answer=Graph(dot(configuration)))


def dot(configuration: Configuration) -> str:
    """Return the text of the graph."""
    lines = ["digraph configuration {", "  compound=true; rankdir=LR; node [shape=box style=rounded];"]
    parents = configuration.parents()
    for name in configuration.resources:
        if name not in parents:
            lines += _drawn(configuration, name, 1)
    lines += [f"  {quoted(name)} [shape=ellipse];" for name in _nodes(configuration)]
    lines += [f"  {quoted(name)} [shape=diamond];" for name in _tickets(configuration)]
    for constraint in configuration.constraints.values():
        lines += [f"  {edge}" for edge in _edges(configuration, constraint)]
    return "\n".join([*lines, "}", ""])


def _drawn(configuration: Configuration, name: ResourceId, depth: int) -> Iterator[str]:
    """Yield a primitive, or a frame with what it contains."""
    resource = configuration.resources.get(name)
    indent = "  " * depth
    parts = contained(resource) if resource is not None else ()
    if resource is None or not parts:
        yield f"{indent}{quoted(name)} [label={quoted(_label(name, resource))}];"
        return
    yield f"{indent}subgraph {quoted(f'cluster_{name}')} {{"
    yield f"{indent}  label={quoted(_label(name, resource))};"
    for part in parts:
        yield from _drawn(configuration, part, depth + 1)
    yield f"{indent}}}"


def _label(name: str, resource: Resource | None) -> str:
    if isinstance(resource, Primitive):
        return f"{name}\n{resource.agent}"
    return name if resource is None else f"{type(resource).__name__.lower()} {name}"


def _nodes(configuration: Configuration) -> list[str]:
    named = (each.node for each in configuration.constraints.values() if isinstance(each, Location) and each.node)
    return list(dict.fromkeys(named))


def _tickets(configuration: Configuration) -> list[str]:
    constraints = configuration.constraints.values()
    return list(dict.fromkeys(f"ticket {each.ticket}" for each in constraints if isinstance(each, TicketConstraint)))


def _edges(configuration: Configuration, constraint: Constraint) -> Iterator[str]:
    """Yield the edges of a constraint; of one with sets, from each member to the next and from set to set."""
    chain = [member for each in constraint.sets for member in each.members]
    name = constraint.id
    match constraint:
        case Location(node=node, score=score):
            for each in (chain or [constraint.resource or ResourceId(constraint.pattern)]) if node else ():
                yield _edge(configuration, each, node, f"{name} {render_score(score)}", "dashed")
        case TicketConstraint(ticket=ticket, resource=resource):
            for each in chain or [resource]:
                yield _edge(configuration, each, f"ticket {ticket}", name, "dotted")
        case Ordering(kind=kind):
            for first, then in pairwise(chain or [constraint.first, constraint.then]):
                yield _edge(configuration, first, then, f"{name} {kind}", "solid")
        case Colocation(score=score):
            for first, then in pairwise(chain or [constraint.dependent, constraint.primary]):
                yield _edge(configuration, first, then, f"{name} {render_score(score)}", "bold")


def _edge(configuration: Configuration, first: str, then: str, label: str, style: str) -> str:
    ends = (_anchor(configuration, first), _anchor(configuration, then))
    frames = "".join(
        f' {side}={quoted(f"cluster_{end}")}'
        for side, end, anchor in (("ltail", first, ends[0]), ("lhead", then, ends[1])) if end != anchor
    )  # fmt: skip
    return f"{quoted(ends[0])} -> {quoted(ends[1])} [label={quoted(label)} style={style}{frames}];"


def _anchor(configuration: Configuration, name: str) -> str:
    """Return the box inside a frame at which an edge ends: Graphviz draws edges between boxes alone."""
    seen = {name}
    resource = configuration.resources.get(ResourceId(name))
    while resource is not None and contained(resource) and contained(resource)[0] not in seen:
        name = contained(resource)[0]
        seen.add(name)
        resource = configuration.resources.get(ResourceId(name))
    return name


VERBS = (carry_out_by("configure.graph", graph, answers(Graph)),)
