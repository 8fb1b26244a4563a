"""What crm_simulate shows of how nodes were chosen: scores (`-s`), and what nodes can take and resources use (`-U`).

The words are those of Pacemaker 2.1.5, the scores this scheduler's own: of each primitive by node, of promotions.
"""

from collections.abc import Iterator, Mapping, Sequence

from haclusterd.formats.cib_xml.elements import element
from haclusterd.model.configuration import AttributeSet, Configuration, NodeEntry, Primitive, effective
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.records import dataclass
from haclusterd.model.templates import expanded
from haclusterd.verbs.answers.resource import Explanation

_SCORED, _USED = "pcmk__primitive_assign", "pcmk__finalize_assignment"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, as text and as an element."""

    text: str
    tag: str
    attributes: Mapping[str, str | None]
    amounts: Mapping[str, str]
    """Of a capacity or a use."""

    def xml(self) -> Iterator[str]:
        """Yield the element."""
        inside = (line for name, amount in self.amounts.items() for line in element(name, {}, text=amount))
        return element(self.tag, self.attributes, inside)


def scores_of(resources: Sequence[Explanation]) -> Iterator[Line]:
    """Yield the scores of each resource by node, then those of promotions."""
    for entry in resources:
        for node, score in sorted((each.node, each.score) for each in entry.nodes):
            attributes = {"function": _SCORED, "node": node, "score": str(score), "id": entry.resource}
            text = f"{_SCORED}: {entry.resource} allocation score on {node}: {score}"
            yield Line(text, "node_weight", attributes, {})
        if entry.promotion is not None and entry.next_on is not None:
            attributes = {"id": entry.resource, "score": str(entry.promotion.score), "node": entry.next_on}
            text = f"{entry.resource} promotion score on {entry.next_on}: {entry.promotion.score}"
            yield Line(text, "promotion_score", attributes, {})


def utilization_of(configuration: Configuration, nodes: Sequence[NodeName], found: Plan) -> Iterator[Line]:
    """Yield the capacities, what each resource uses where it is to run, and what is left."""
    left = {name: _amounts(configuration.nodes.get(name, NodeEntry(name)).utilization) for name in nodes}
    yield from _capacities("Original", left)
    for name, placement in found.placements.items():
        node = placement.next_on
        if node is None or node not in left:
            continue
        used = _used(configuration, placement.base or base_of(name))
        for key, amount in used.items():
            left[node][key] = left[node].get(key, amount) - amount
        shown = {key: str(amount) for key, amount in used.items()}
        text = f"{_USED}: {name} utilization on {node}:{_written(used)}"
        yield Line(text, "utilization", {"resource": name, "node": node, "function": _USED}, shown)
    yield from _capacities("Remaining", left)


def _capacities(comment: str, left: Mapping[NodeName, Mapping[str, int]]) -> Iterator[Line]:
    for node, amounts in left.items():
        attributes = {"node": node, "comment": comment}
        shown = {name: str(amount) for name, amount in amounts.items()}
        yield Line(f"{comment}: {node} capacity:{_written(amounts)}", "capacity", attributes, shown)


def _used(configuration: Configuration, name: ResourceId) -> dict[str, int]:
    primitive = configuration.resources.get(name)
    return _amounts(expanded(primitive, configuration).utilization) if isinstance(primitive, Primitive) else {}


def _amounts(blocks: tuple[AttributeSet, ...]) -> dict[str, int]:
    """Return the amounts by name; what is no number counts nothing."""
    return {name: _number(value) for name, value in sorted(effective(blocks).items())}


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else 0


def _written(amounts: Mapping[str, int]) -> str:
    return "".join(f" {name}={amount}" for name, amount in amounts.items())
