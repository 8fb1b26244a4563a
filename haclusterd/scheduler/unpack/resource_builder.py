"""Makes the scheduler's resources from the configured ones: primitives, groups, clones and their instances.

Each configured resource belongs to one parent at most: the first that names it. What a primitive says is worked out
once, however many instances it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import MAX_INSTANCES, AttributeSet, Clone, Group, Primitive, contained
from haclusterd.model.configuration import Resource as Configured
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.records import dataclass, replace
from haclusterd.model.templates import expanded
from haclusterd.scheduler.model.definition import Definition, Variant
from haclusterd.scheduler.model.entities import NodeKind, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.meta_attributes import define, is_remote_agent, resolve_meta
from haclusterd.scheduler.model.plan_cache import KeptDefinition
from haclusterd.scheduler.model.readings import at_least, boolean, integer
from haclusterd.scheduler.model.rules import RuleContext, by_strength, looks_at_nodes, merge
from haclusterd.scheduler.model.settings import Settings
from haclusterd.scheduler.unpack.remote_nodes import add_remote_node

_CAN_BE_UNIQUE = ("ocf", "stonith")
_PROMOTABLE = "ocf"
_ALONE = Definition(is_unique=True)

Outer = tuple[tuple[AttributeSet, ...], ...]


@dataclass(frozen=True, slots=True)
class Around:
    """What a resource is made inside of; the blocks of what contains it come the nearest first."""

    parent: Resource | None = None
    number: int | None = None
    meta: Outer = ()
    parameters: Outer = ()


TOP = Around()


class ResourceBuilder:
    """Builds resources and registers them in the inventory."""

    def __init__(self, cib: Cib, inventory: Inventory, settings: Settings) -> None:
        self.configuration = cib.configuration
        self.cib = cib
        self.inventory = inventory
        self.settings = settings
        self._context = RuleContext(settings.time)
        self._parents = self._claims()
        self._definitions: dict[ResourceId, KeptDefinition] = {}
        self._clones: dict[ResourceId, tuple[Clone, Around]] = {}
        self._reached: set[ResourceId] = set()
        self._scores: dict[NodeName, int] = {}
        self.take_nodes()

    def take_nodes(self) -> None:
        """Look again which nodes there are: every resource made from now on may prefer them."""
        nodes = self.inventory.nodes
        self._scores = {node.name: node.base_score for node in nodes if not node.is_bundle_node}

    def warn(self, text: str) -> None:
        """Tell the administrator what was left out."""
        self.inventory.warnings.append(text)

    def is_contained(self, item: Configured) -> bool:
        """Tell whether another resource contains it."""
        return item.id in self._parents

    def _claims(self) -> dict[ResourceId, ResourceId]:
        claims: dict[ResourceId, ResourceId] = {}
        for item in self.configuration.resources.values():
            for child in contained(item):
                owner = claims.setdefault(child, item.id)
                if owner != item.id:
                    self.warn(f"{child} is in {owner} already: {item.id} does without it")
        return claims

    def taken(self, names: Iterable[str]) -> str:
        """Return the first of these names that is another resource's; nothing when there is none."""
        inventory, configured = self.inventory.by_id, self.configuration.resources
        return next((name for name in map(ResourceId, names) if name in configured or name in inventory), "")

    def warn_of_unreached(self) -> None:
        """Tell of what is contained in something that cannot contain it."""
        for identifier in self.configuration.resources:
            if identifier in self._parents and identifier not in self._reached:
                self.warn(f"{identifier} is left out: {self._parents[identifier]} cannot contain it")

    def contained_in(self, parent: ResourceId, child: ResourceId) -> Primitive | Group | None:
        """Return the primitive or group `child`, if there is one and `parent` is its only parent."""
        found = self.configuration.resources.get(child)
        if not isinstance(found, Primitive | Group) or self._parents.get(child) != parent:
            return None
        self._reached.add(child)
        return found

    def primitive(self, item: Primitive, around: Around = TOP) -> Resource | None:
        """Make a primitive; None when the template that it is made from is missing."""
        kept = self._definitions.get(item.id) or self._kept(item) or self._read(item, around)
        if kept is None:
            return None
        resource = self.new(item.id, Variant.PRIMITIVE, kept.definition, around)
        if kept.definition.is_remote_connection:
            self._connect(resource)
        self.take_scores(resource)
        return resource

    def removed(self, item: Primitive) -> Resource | None:
        """Make a resource at the top of something that is not configured, or not there; its name may be known.

        A removed connection leads to a node that is on its way out.
        """
        known = self._definitions.pop(item.id, None)
        name = NodeName(item.id)
        if is_remote_agent(item.agent) and name not in self.inventory.nodes_by_name:
            node = add_remote_node(self.cib, self.inventory, name, NodeKind.REMOTE, self.settings)
            node.is_shutting_down = True
        made = self.primitive(item)
        self._definitions.pop(item.id, None)
        if known is not None:
            self._definitions[item.id] = known
        return made

    def _read(self, item: Primitive, around: Around) -> KeptDefinition | None:
        """Work out what a primitive says, its template's words and those of what it is in included."""
        if item.template is not None:
            if item.template not in self.configuration.templates:
                self.warn(f"{item.id} is left out: there is no template {item.template}")
                return None
            self.inventory.template_users.setdefault(item.template, []).append(item.id)
        whole = expanded(item, self.configuration)
        levels = [by_strength(blocks) for blocks in (whole.parameters, *around.parameters) if blocks]
        blocks = tuple(block for level in levels for block in level)
        depends_on_node = any(block.rule is not None and looks_at_nodes(block.rule) for block in blocks)
        utilization = merge(by_strength(whole.utilization), self._context) if whole.utilization else {}
        definition = define(
            _inherited(around),
            Variant.PRIMITIVE,
            resolve_meta(whole.meta, around.meta, around.parent, whole.agent, self.settings),
            self.settings,
            agent=whole.agent,
            operations=whole.operations,
            parameters=merge(blocks, self._context),
            parameter_sets=blocks if depends_on_node else (),
            utilization={name: integer(value, 0) for name, value in utilization.items()},
        )
        kept = KeptDefinition(item, definition)
        self._definitions[item.id] = kept
        if item.template is None and self.configuration.resources.get(item.id) is item:
            self.settings.cache.definitions[item.id] = kept
        return kept

    def _kept(self, item: Primitive) -> KeptDefinition | None:
        """Return what an earlier plan for this very configuration worked out."""
        kept = self.settings.cache.definitions.get(item.id)
        if kept is None or kept.configured is not item:
            return None
        self._definitions[item.id] = kept
        return kept

    def _connect(self, connection: Resource) -> None:
        """A connection to a Pacemaker Remote node has the name of its node."""
        node = self.inventory.nodes_by_name.get(NodeName(connection.id))
        if node is not None and node.is_remote and node.connection is None:
            node.connection = connection
            connection.remote_node = node

    def group(self, item: Group, around: Around = TOP) -> Resource | None:
        """Make a group with its members; None when it has none."""
        meta = resolve_meta(item.meta, around.meta, around.parent, None, self.settings)
        definition = replace(
            define(_inherited(around), Variant.GROUP, meta, self.settings),
            is_ordered=boolean(meta.get("ordered"), default=True),
            is_collocated=boolean(meta.get("collocated"), default=True),
        )
        group = self.new(item.id, Variant.GROUP, definition, around)
        inside = Around(group, around.number, (item.meta, *around.meta), (item.parameters, *around.parameters))
        for member in dict.fromkeys(item.members):
            found = self.contained_in(item.id, member)
            if not isinstance(found, Primitive):
                self.warn(f"{item.id} does without {member}: it is no primitive of its own")
                continue
            if group.definition.is_promotable and expanded(found, self.configuration).agent.standard != _PROMOTABLE:
                if not around.number:
                    self.warn(f"{item.id} does without {member}: only agents of the class ocf can be promoted")
                continue
            child = self.primitive(found, inside)
            if child is not None:
                group.children.append(child)
        if not group.children:
            self.warn(f"{item.id} is left out: it has no members")
            del self.inventory.by_id[group.id]
            return None
        self.take_scores(group)
        return group

    def clone(self, item: Clone, around: Around = TOP, inside: Primitive | None = None) -> Resource | None:
        """Make a clone with its instances; None when there is nothing that it could be a clone of.

        `inside` is what a bundle's clone copies, which nobody configured.
        """
        child = inside or self.contained_in(item.id, item.child)
        if child is None:
            self.warn(f"{item.id} is left out: {item.child} cannot be cloned by it")
            return None
        meta = resolve_meta(item.meta, around.meta, around.parent, None, self.settings)
        named = item.id if around.parent is None else around.parent.id
        is_promotable = boolean(meta.get("promotable"), default=False)
        inherited = replace(_ALONE, is_promotable=is_promotable)
        of_all = define(inherited, Variant.CLONE, {"resource-stickiness": "1", **meta}, self.settings)
        standards = [agent.standard for agent in self._agents_of(child)]
        definition, problem = self._read_clone(of_all, named, meta, standards)
        clone = self.new(item.id, Variant.CLONE, definition, around)
        self._clones[item.id] = item, around
        if not problem:
            for number in range(max(definition.clone_max, 1)):
                if self._make_instance(clone, number) is None:
                    break
            problem = "" if clone.children else f"{child.id} cannot be made"
        if problem:
            self.warn(f"{named} is left out: {problem}")
            del self.inventory.by_id[clone.id]
            return None
        if definition.clone_max == 0:
            _mark_removed(clone.children[0])
        self.take_scores(clone)
        return clone

    def _agents_of(self, item: Primitive | Group) -> list[AgentReference]:
        if isinstance(item, Primitive):
            return [expanded(item, self.configuration).agent]
        members = (self.configuration.resources.get(member) for member in item.members)
        return [expanded(member, self.configuration).agent for member in members if isinstance(member, Primitive)]

    def _read_clone(
        self, base: Definition, named: ResourceId, meta: Mapping[str, str], standards: list[str]
    ) -> tuple[Definition, str]:
        """Return a definition with what only clones have; and why it cannot be, or nothing. `named`: for people."""
        is_promotable = base.is_promotable
        if is_promotable and all(standard != _PROMOTABLE for standard in standards):
            return base, "only agents of the class ocf can be promoted"
        nodes = max(1, len(self.inventory.nodes))
        clone_max = at_least(meta.get("clone-max"), 0, nodes)
        # A running cluster continues with what it has accepted; verification counts the members for it.
        each = max(1, len(standards)) if self.settings.options.is_pacemaker_compatible else 1
        if clone_max * each > max(nodes * each, MAX_INSTANCES):
            of_members = f" of {each} members" if each > 1 else ""
            return base, f"it asks for {clone_max} instances{of_members}, more than {MAX_INSTANCES}"
        clone_node_max = at_least(meta.get("clone-node-max"), 0, 1)
        is_unique = boolean(meta.get("globally-unique"), default=False)
        if "globally-unique" not in meta:
            is_unique = clone_node_max > 1
        if is_unique and any(standard not in _CAN_BE_UNIQUE for standard in standards):
            self.warn(f"{named}: its instances cannot be distinguished, globally-unique counts as false")
            is_unique = False
            clone_max = min(clone_max, nodes)
        return replace(
            base,
            is_unique=is_unique,
            clone_max=clone_max,
            clone_node_max=clone_node_max if is_unique else min(clone_node_max, 1),
            clone_min=at_least(meta.get("clone-min"), 0, 0),
            promoted_max=at_least(meta.get("promoted-max"), 0, 1) if is_promotable else 0,
            promoted_node_max=at_least(meta.get("promoted-node-max"), 0, 1) if is_promotable else 0,
            is_ordered=boolean(meta.get("ordered"), default=False),
            is_interleaved=boolean(meta.get("interleave"), default=False),
            notifies=boolean(meta.get("notify"), default=False),
            is_gang=meta.get("gpu-gang", "").lower() == "all",
        ), ""

    def add_instance(self, clone: Resource) -> Resource:
        """Make one more instance of a clone than it should have: it is to be removed, whatever it is found to do."""
        instance = self._make_instance(clone, len(clone.children))
        assert instance is not None, "as the others could be made, so can this one"
        _mark_removed(instance)
        self.inventory.forget_leaves()
        return instance

    def _make_instance(self, clone: Resource, number: int) -> Resource | None:
        item, around = self._clones[clone.id]
        child = self.configuration.resources[item.child]
        inside = Around(clone, number, (item.meta, *around.meta), (item.parameters, *around.parameters))
        made = self.primitive(child, inside) if isinstance(child, Primitive) else None
        if isinstance(child, Group):
            made = self.group(child, inside)
        if made is not None:
            clone.children.append(made)
        return made

    def new(
        self, identifier: ResourceId, variant: Variant, definition: Definition, around: Around = TOP
    ) -> Resource:
        """Make a resource and register it."""
        name = identifier if around.number is None else ResourceId(f"{identifier}:{around.number}")
        made = Resource(
            name, variant, definition, base_id=identifier, number=around.number, parent=around.parent
        )
        self.inventory.by_id[name] = made
        return made

    def take_scores(self, resource: Resource) -> None:
        """Let every node have the score that it has for everybody; connections of guests need an entry for all."""
        definition = resource.definition
        is_of_guest = definition.is_remote_connection and "container" in definition.meta
        if self.settings.is_symmetric or is_of_guest:
            resource.base_scores.allowed = dict(self._scores)
        if self.settings.options.is_explaining:
            allowed = resource.base_scores.allowed
            named = {name: [(score, f"score of {name}")] for name, score in allowed.items() if score}
            resource.base_scores.addends = named


def _inherited(around: Around) -> Definition:
    """Return what a resource has from what contains it; from a bundle it has nothing."""
    parent = around.parent
    if parent is None or parent.variant is Variant.BUNDLE:
        return _ALONE
    outer = parent.definition
    return Definition(is_unique=outer.is_unique, is_promotable=outer.is_promotable, notifies=outer.notifies)


def _mark_removed(resource: Resource) -> None:
    resource.found.is_removed = True
    for child in resource.children:
        _mark_removed(child)
