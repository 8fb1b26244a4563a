"""Phase: what location constraints say, one preference for each resource that one means.

Source: Pacemaker Explained, "Deciding Which Nodes a Resource Can Run On", "Rules", "Resource Sets". A constraint means
one resource, all resources at the top whose ids fit a pattern, or sets of resources; it names a node with a score, or
has rules. A rule counts on each node where it holds, with its score or with that of a node attribute.
"""

from collections.abc import Iterator, Mapping

from haclusterd.model.configuration import Configuration, Location
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import Role
from haclusterd.model.patterns import compile_pattern
from haclusterd.model.records import dataclass, replace
from haclusterd.model.rules import Rule
from haclusterd.scheduler.model.definition import Discovery
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.node_values import attributes_on
from haclusterd.scheduler.model.operation_settings import resource_parameters
from haclusterd.scheduler.model.readings import score
from haclusterd.scheduler.model.references import cut_at_missing, expanded_sets, named_group
from haclusterd.scheduler.model.rules import RuleContext, evaluate, substituted
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.scores.location import Preference

_ROLES = {"stopped": Role.STOPPED, "promoted": Role.PROMOTED, "master": Role.PROMOTED}
_DISCOVERY = {"never": Discovery.NEVER, "exclusive": Discovery.EXCLUSIVE}


@dataclass(frozen=True, slots=True)
class _Meant:
    """One resource that a constraint means, and what is said of it in particular."""

    resource: Resource
    role: str | None
    score: int
    submatches: tuple[str, ...] = ()


def unpack_locations(inventory: Inventory, configuration: Configuration, settings: Settings) -> Iterator[Preference]:
    """Yield the preferences of the location constraints, in the order of the document."""
    reader = _Reader(inventory, settings)
    for location in configuration.constraints.values():
        if isinstance(location, Location):
            for meant in _meant(location, inventory, configuration):
                yield from reader.preferences(location, meant)


def _meant(location: Location, inventory: Inventory, configuration: Configuration) -> Iterator[_Meant]:
    if location.pattern:
        yield from _fitting(location, inventory)
    elif location.sets:
        expanded = expanded_sets(location.sets, inventory, configuration)
        for each in cut_at_missing(expanded, lambda name: inventory.find(name) is not None, keeps_members=True):
            score = location.score if each.score is None else each.score
            for name in each.members:
                resource = inventory.find(name)
                if resource is not None:
                    yield _Meant(resource, each.role or location.role, score)
    else:
        for name in named_group(location.resource, inventory, configuration) or (location.resource,):
            resource = inventory.find(name)
            if resource is not None:
                yield _Meant(resource, location.role, location.score)


def _fitting(location: Location, inventory: Inventory) -> Iterator[_Meant]:
    is_inverted = location.pattern.startswith("!")
    try:
        pattern = compile_pattern(location.pattern[1:] if is_inverted else location.pattern)
    except ValueError:
        return
    for top in inventory.tops:
        found = pattern.search(top.id)
        if (found is None) is is_inverted:
            yield _Meant(top, location.role, location.score, found or ())


class _Reader:
    """Reads one constraint after the other."""

    def __init__(self, inventory: Inventory, settings: Settings) -> None:
        self._inventory = inventory
        self._settings = settings
        self._names = {name.lower(): name for name in inventory.nodes_by_name}

    def preferences(self, location: Location, meant: _Meant) -> Iterator[Preference]:
        """Yield what a constraint says of one of its resources."""
        discovery = _DISCOVERY.get(location.discovery or "", Discovery.ALWAYS)
        if location.rules:
            for rule in location.rules:
                role = rule.role or self._role_beside_rules(meant)
                found = self._by_rule(rule, meant)
                yield Preference(meant.resource, location.id, found, _role(role), discovery)
        else:
            name = self._names.get(location.node.lower())
            if name is None:
                return
            yield Preference(meant.resource, location.id, {name: meant.score}, _role(meant.role), discovery)
        if discovery is Discovery.EXCLUSIVE:
            meant.resource.scores.has_exclusive_discovery = True

    def _role_beside_rules(self, meant: _Meant) -> str | None:
        """The role that counts for rules that give none: Pacemaker leaves that of the constraint or set out."""
        return None if self._settings.options.is_pacemaker_compatible else meant.role

    def _by_rule(self, rule: Rule, meant: _Meant) -> Mapping[NodeName, int]:
        resource = meant.resource
        context = RuleContext(
            self._settings.time,
            agent=resource.definition.agent,
            meta=resource.definition.meta,
            parameters=resource.definition.parameters,
            submatches=meant.submatches,
        )
        scores: dict[NodeName, int] = {}
        for node in self._inventory.nodes:
            score = _score(rule, node, meant)
            if score is None:
                continue
            parameters = resource_parameters(resource, node, self._settings)
            if evaluate(rule, replace(context, attributes=node.attributes, parameters=parameters)):
                scores[node.name] = score
        return scores


def _score(rule: Rule, node: Node, meant: _Meant) -> int | None:
    """What the rule is worth on a node; None: it says nothing there."""
    if rule.score_attribute is None:
        return rule.score if rule.score is not None else 0
    name = substituted(rule.score_attribute, meant.submatches)
    text = attributes_on(node, meant.resource).get(name)
    if text is None:
        return None
    return score(text, 0)


def _role(text: str | None) -> Role:
    return _ROLES.get((text or "").lower(), Role.UNKNOWN)
