"""What `crm_resource --constraints` and `--stack` show: where a resource prefers to run, and with which others."""

from collections.abc import Callable, Iterator

from haclusterd.commands.context import Context
from haclusterd.commands.names import whole as outermost
from haclusterd.commands.planning.planning import standing
from haclusterd.commands.tools.monitor_view import source_of
from haclusterd.formats.cib_xml.elements import element
from haclusterd.model import scores
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import Role
from haclusterd.scheduler.model.entities import ColocationPair, Resource

Line = tuple[int, str]
"""How deep it is, and the text."""


class Neighbourhood:
    """The constraints around resources, as the scheduler understands them."""

    def __init__(self, context: Context) -> None:
        from haclusterd.scheduler.schedule import find_constraints

        cib = context.cib.as_in_force()
        self._configuration = cib.configuration
        self._inventory, preferences = find_constraints(cib, context.now, standing(context).options)
        self._places: dict[str, list[tuple[str, str, int]]] = {}
        """By resource: identifier, node and score of what location constraints say, the newest first."""
        rules: dict[tuple[str, str], int] = {}
        for each in preferences:
            count = rules[each.source, each.resource.id] = rules.get((each.source, each.resource.id), -1) + 1
            source = source_of(self._configuration, each.source, count)
            found = [(source, node, score) for node, score in sorted(each.scores.items(), reverse=True)]
            self._places[each.resource.id] = [*found, *self._places.get(each.resource.id, ())]

    def find(self, name: ResourceId, *, is_alone: bool) -> Resource | None:
        """Return a resource, or what contains it; None: it is the part of a clone, of which nothing is said."""
        wanted = name if is_alone else outermost(self._configuration, name)
        return self._inventory.by_id.get(wanted)

    def text(self, resource: Resource, *, is_deep: bool) -> Iterator[str]:
        """Yield what is said of a resource, and of those that it is colocated with; deep: of theirs, too."""
        lines: list[Line] = list(self._located(resource, 0))
        for way in (_AFTER, _WITH):
            seen: set[str] = {resource.id}
            lines += self._colocated(resource, 0, way, seen, is_deep=is_deep)
        yield from (f"{'  ' * depth}{'* ' if depth else ''}{words}" for depth, words in lines)

    def _located(self, resource: Resource, depth: int) -> Iterator[Line]:
        places = self._places.get(resource.id, [])
        if places:
            yield depth, "Locations:"
        for source, node, score in places:
            yield depth + 1, f"Node {node} (score={scores.render(score)}, id={source}, rsc={resource.id})"

    def _colocated(
        self, resource: Resource, depth: int, way: "_Way", seen: set[str], *, is_deep: bool
    ) -> Iterator[Line]:
        pairs = [each for each in way.pairs(resource) if each.is_configured]
        if pairs:
            yield depth, way.title.format(resource.id)
        for pair in pairs:
            other = way.other(pair)
            if other.id in seen:
                yield depth + 1, f"{other.id} (id={pair.id} - loop)"
                continue
            seen.add(other.id)
            role = f"{way.role}={pair.primary_role}, " if pair.primary_role is not Role.UNKNOWN else ""
            yield depth + 1, f"{other.id} (score={scores.render(pair.score)}, {role}id={pair.id})"
            yield from self._located(other, depth + 2)
            if is_deep:
                yield from self._colocated(other, depth + 2, way, seen, is_deep=True)

    def xml(self, resource: Resource, *, is_deep: bool) -> Iterator[str]:
        """Yield the same as XML."""
        lines = list(self._located_xml(resource))
        for way in (_AFTER, _WITH):
            lines += self._colocated_xml(resource, way, {resource.id}, is_deep=is_deep)
        yield from element("constraints", {}, lines)

    def _located_xml(self, resource: Resource) -> Iterator[str]:
        for source, node, score in self._places.get(resource.id, []):
            text = scores.render(score)
            yield from element("rsc_location", {"node": node, "rsc": resource.id, "id": source, "score": text})

    def _colocated_xml(self, resource: Resource, way: "_Way", seen: set[str], *, is_deep: bool) -> Iterator[str]:
        for pair in way.pairs(resource):
            if not pair.is_configured:
                continue
            other = way.other(pair)
            roles = {"rsc-role": pair.dependent_role, "with-rsc-role": pair.primary_role}
            yield from element("rsc_colocation", {
                "id": pair.id, "rsc": pair.dependent.id, "with-rsc": pair.primary.id,
                "score": scores.render(pair.score),
                **{name: str(role) for name, role in roles.items() if role is not Role.UNKNOWN},
            })  # fmt: skip
            if other.id in seen:
                continue
            seen.add(other.id)
            yield from self._located_xml(other)
            if is_deep:
                yield from self._colocated_xml(other, way, seen, is_deep=True)


class _Way:
    """One direction in which colocations are followed."""

    def __init__(
        self, title: str, role: str, pairs: Callable[[Resource], list[ColocationPair]],
        other: Callable[[ColocationPair], Resource],
    ) -> None:  # fmt: skip
        self.title = title
        self.role = role
        self.pairs = pairs
        self.other = other


_AFTER = _Way(
    "Resources colocated with {}:", "needs role", lambda each: each.scores.with_this, lambda each: each.dependent
)
_WITH = _Way(
    "Resources {} is colocated with:", "with role", lambda each: each.scores.this_with, lambda each: each.primary
)
