"""What is one service becomes several, a member of a group, promotable, or nothing, while it is active or about to be.

A resource takes one shape after another: at drawn instants, or while an agent of its own is at work, and daemons are
killed on the way. It is done as one atomic change of the configuration, as `crm configure edit` makes one, or by single
verbs. That a change is refused is right as well; it is counted apart (`checks.coverage`).
"""

import random
from collections.abc import Sequence
from functools import partial

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import Delete, Edit, PutConstraint, PutResource
from haclusterd.model.configuration import (
    AttributeSet,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    Group,
    Location,
    Operation,
    Ordering,
    Primitive,
    Resource,
    TicketConstraint,
    contained,
)
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field, replace
from haclusterd.simulator.checks.activities import Activity, Begun
from haclusterd.simulator.checks.coverage import OF_A_SHAPE
from haclusterd.simulator.faults.base import Drawn, End, Kind
from haclusterd.simulator.faults.edits import CLONE, GUEST
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.truth import base_of
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
CHANGELING = "changeling"
SUBJECTS = (CHANGELING, CHANGELING, CHANGELING, "cache", "db", "front", GUEST, "pg", "pg")
"""What takes other shapes; what a seed does not have is brought."""
PRIMITIVE, CLONED, UNIQUE = "a primitive", "a clone", "a unique clone"
PROMOTABLE, UNIQUE_PROMOTABLE = "a promotable clone", "a unique promotable clone"
MEMBER, CLONED_GROUP, UNIQUE_GROUP = "a member of a group", "a member of a cloned group", "a member of a unique group"
NOTHING, OTHER_GROUP, OTHER_CLONE = "nothing", "a group of that name", "a clone of that name"
FENCE_DEVICE = "a fence device of that name"
SHAPES = (
    PRIMITIVE, PRIMITIVE, CLONED, CLONED, UNIQUE, UNIQUE, PROMOTABLE, PROMOTABLE, UNIQUE_PROMOTABLE, MEMBER,
    CLONED_GROUP, UNIQUE_GROUP, NOTHING, OTHER_GROUP, OTHER_CLONE, FENCE_DEVICE,
)  # fmt: skip
ON_NODE, ON_NODE_VALUES = "promoted-node-max", ("1", "2")
_OF_CLONES = frozenset({CLONED, UNIQUE, PROMOTABLE, UNIQUE_PROMOTABLE, CLONED_GROUP, UNIQUE_GROUP, OTHER_CLONE})
_OF_UNIQUES = frozenset({UNIQUE, UNIQUE_PROMOTABLE, UNIQUE_GROUP})
_OF_PROMOTABLES = frozenset({PROMOTABLE, UNIQUE_PROMOTABLE})
_OF_GROUPS = frozenset({MEMBER, CLONED_GROUP, UNIQUE_GROUP})
MET = (
    Activity.START, Activity.START, Activity.STOP, Activity.PROMOTE, Activity.DEMOTE, Activity.MIGRATE_TO,
    Activity.MIGRATE_FROM, Activity.PROBE,
)  # fmt: skip
DELAYS_MS = (0, 0, 1, 20, 100, 400, 1500)
WAITS_MS = (50, 300, 1000, 2500, 6000)
MEETS_WITHIN_MS = 4000
BY_VERBS_SHARE = 0.3
PUT_BACK_SHARE = 0.75
SPANS_MS = (0, 0, 300, 1500, 5000)
"""How long its starts, stops, promotes and demotes last; 0: as all others."""
SLOW = ("start", "stop", "promote", "demote")
BETWEEN_VERBS_MS = 400
NOBODY = "nobody"
"""What a fence device can fence that has a service's name: no node."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a resource is to be."""

    kind: str
    meta: tuple[tuple[str, str], ...] = ()
    """Of the clone."""
    is_first: bool = False
    """Of a member: it comes before the other one."""

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.meta)
        return f"{self.kind} ({words})" if words else self.kind


@dataclass(frozen=True, slots=True)
class Step:
    """One change: after so many ms, or when an activity of the resource has begun; and what else happens meanwhile."""

    shape: Shape
    wait_ms: int
    met: Activity | None
    is_by_verbs: bool
    killed: str
    """Whose daemon is killed: `there`, `the DC`, a node, or nobody's."""
    kill_ms: int
    """After the change was asked for."""
    moved_to: NodeName | None
    """Where it is to move afterwards."""


def _draw_shape(chance: Chance) -> Shape:
    kind = chance.choice(SHAPES)
    if kind not in _OF_CLONES:
        return Shape(kind, is_first=chance.random() < 0.5)
    meta: dict[str, str] = {"interleave": chance.choice(("true", "false"))}
    most, on_node = chance.choice((("", ""), ("1", "1"), ("2", "1"), ("2", "2"), ("3", "1"), ("3", "3"), ("4", "2")))
    meta |= {"clone-max": most, "clone-node-max": on_node}
    if kind in _OF_UNIQUES:
        meta["globally-unique"] = "true"
    if kind in _OF_PROMOTABLES:
        meta |= {"promotable": "true", "promoted-max": chance.choice(("", "1", "1", "2")),
                 "notify": chance.choice(("", "true"))}  # fmt: skip
        # From a copy of the generator, so that whatever else a seed draws stays what it is.
        apart = random.Random()
        apart.setstate(chance.getstate())
        meta[ON_NODE] = random.Random(apart.getrandbits(64)).choice(("", "", *ON_NODE_VALUES))
    return Shape(kind, tuple((name, value) for name, value in meta.items() if value), chance.random() < 0.5)


def _draw_step(chance: Chance, nodes: Nodes) -> Step:
    return Step(
        shape=_draw_shape(chance),
        wait_ms=chance.choice(WAITS_MS),
        met=chance.choice((None, *MET)),
        is_by_verbs=chance.random() < BY_VERBS_SHARE,
        killed=chance.choice(("", "", "", "there", "the DC", chance.choice(nodes))),
        kill_ms=chance.choice(DELAYS_MS),
        moved_to=chance.choice((None, None, chance.choice(nodes))),
    )


def change_shape(chance: Chance, nodes: Nodes) -> Drawn[Cluster]:
    """A resource takes one shape after another; what other seeds' faults count on is mostly put back at the end."""
    subject = chance.choice(SUBJECTS)
    steps = tuple(_draw_step(chance, nodes) for _ in range(chance.choice((2, 3, 4, 6))))
    span_ms, effect = chance.choice(SPANS_MS), chance.randint(5, 95)
    run = AgentRun(span_ms, effect_at_percent=effect) if span_ms else None
    is_put_back = chance.random() < PUT_BACK_SHARE
    scores = tuple(chance.choice((1, 50, 200)) for _ in nodes)

    def begin(cluster: Cluster) -> End:
        known = ResourceId(subject) in cluster.cib.configuration.resources
        name = subject if known else CHANGELING
        changes = _ChangesOfShape(cluster, name, steps, run, is_put_back=is_put_back and known)
        changes.begin(dict(zip(nodes, scores, strict=True)))
        return changes.end

    text = f"{subject} becomes {', then '.join(str(step.shape) for step in steps)}"
    return Drawn(text, begin, sum(step.wait_ms for step in steps) + chance.randint(2000, 15_000))


@dataclass(slots=True)
class _ChangesOfShape:
    """One resource on its way through its shapes."""

    cluster: Cluster
    name: str
    steps: tuple[Step, ...]
    run: AgentRun | None
    is_put_back: bool
    _before: Configuration = field(init=False)
    _is_over: bool = False

    def begin(self, scores: dict[NodeName, int]) -> None:
        """Bring it, have its agents take their time, and give its instances promotion scores."""
        cluster = self.cluster
        self._before = cluster.cib.configuration
        if self.run is not None:
            names = (self.name, *(f"{self.name}:{number}" for number in range(4)))
            for name in names:
                for action in SLOW:
                    cluster.agent_script.write(name, action, self.run)
        for node, score in scores.items():
            for name in (self.name, f"{self.name}:0", f"{self.name}:1"):
                arguments: dict[str, Json] = {"node": node, "action": "set", "name": f"master-{name}",
                                              "value": str(score), "lifetime": "reboot"}  # fmt: skip
                ask(cluster, "node.attribute", arguments)
        if ResourceId(self.name) not in self._before.resources:
            self._ask(edits_to(self._before, self.name, Shape(PRIMITIVE)), PRIMITIVE)
        self._go_on(0)

    def end(self) -> None:
        """Let its agents be as all others, and mostly put back what was there before."""
        self._is_over = True
        if self.run is not None:
            self.cluster.agent_script.remove(self.run)
        if self.is_put_back:
            self._ask(edits_back(self.cluster.cib.configuration, self._before, self.name), "as it was")

    def _go_on(self, place: int) -> None:
        if place >= len(self.steps) or self._is_over:
            return
        step = self.steps[place]
        if step.met is None:
            self.cluster.world.after(step.wait_ms * MS, lambda: self._do(place, None))
            return
        is_done: list[bool] = []

        def meet(begun: Begun | None) -> None:
            if not is_done:
                is_done.append(True)
                stop_waiting()
                self._do(place, begun)

        def has_begun(begun: Begun) -> bool:
            is_met = begun.activity is step.met and begun.resource is not None and base_of(begun.resource) == self.name
            if is_met and not is_done:
                self.cluster.world.after(min(step.wait_ms, 1000) * MS // 5, lambda: meet(begun))
            return False

        stop_waiting = self.cluster.activities.wait_for(has_begun)
        self.cluster.world.after(MEETS_WITHIN_MS * MS, lambda: meet(None))

    def _do(self, place: int, begun: Begun | None) -> None:
        if self._is_over:
            return
        cluster, step = self.cluster, self.steps[place]
        cluster.world.record(f"{self.name} becomes {step.shape}" + (f", while {begun.activity} runs" if begun else ""))
        for key, value in step.shape.meta:
            if key == ON_NODE:
                cluster.coverage.count(ON_NODE, value)
        if step.is_by_verbs:
            self._ask_by_verbs(step.shape)
        else:
            self._ask(edits_to(cluster.cib.configuration, self.name, step.shape), step.shape.kind)
        if step.killed:
            cluster.world.after(step.kill_ms * MS, lambda: self._kill(step.killed, begun))
        if step.moved_to is not None:
            cluster.world.after(step.wait_ms * MS // 3, partial(self._move, step.moved_to))
        self._go_on(place + 1)

    def _kill(self, whom: str, begun: Begun | None) -> None:
        controller = self.cluster.cib.status.controller
        node = NodeName(whom) if whom in self.cluster.names else None
        if whom == "there" and begun is not None:
            node = begun.node
        elif node is None and controller is not None:
            node = controller.node
        if node is not None and node in self.cluster.names:
            self.cluster.kill_brain(node)

    def _move(self, node: NodeName) -> None:
        top = self.cluster.cib.configuration.top_of(ResourceId(self.name))
        ask(self.cluster, "resource.move", {"resource": top, "node": node})

    def _ask(self, edits: tuple[Edit, ...], kind: str) -> None:
        epoch = self.cluster.cib.version.epoch
        self.cluster.administer(ChangeConfiguration(epoch, edits, "swarm", f"{OF_A_SHAPE}{kind}"))

    def _ask_by_verbs(self, shape: Shape) -> None:
        """Take away what contains it, and say a little later what it is to be."""
        configuration, name = self.cluster.cib.configuration, self.name
        clone = _clone_of(configuration, name)
        counted = partial(self._answered, shape.kind)
        if clone is not None and shape.kind in _OF_CLONES and shape.kind not in (*_OF_GROUPS, OTHER_CLONE):
            for key, value in shape.meta:
                arguments: dict[str, Json] = {"resource": clone, "section": "meta", "action": "set", "name": key,
                                              "value": value}  # fmt: skip
                ask(self.cluster, "resource.setting", arguments, answered=counted)
            return
        containers: list[Json] = [str(each) for each in _containers(configuration, name)]
        if containers:
            ask(self.cluster, "configure.delete", {"ids": containers, "cascade": True}, answered=counted)
        words = _words(name, shape)
        if words:
            arguments = {"words": list(words)}
            call = partial(ask, self.cluster, "configure.statement", arguments, answered=counted)
            self.cluster.world.after(BETWEEN_VERBS_MS * MS, call)
        elif shape.kind == NOTHING:
            ask(self.cluster, "configure.delete", {"ids": [name], "cascade": True}, answered=counted)

    def _answered(self, kind: str, is_done: bool) -> None:
        self.cluster.coverage.count_shape(kind, is_refused=not is_done)


def _words(name: str, shape: Shape) -> tuple[str, ...]:
    if shape.kind == MEMBER:
        return ("group", f"{name}-group", name)
    if shape.kind in _OF_CLONES and shape.kind not in (*_OF_GROUPS, OTHER_CLONE):
        return ("clone", f"{name}-whole", name, "meta", *(f"{key}={value}" for key, value in shape.meta))
    return ()


def _containers(configuration: Configuration, name: str) -> list[ResourceId]:
    """Return what contains a resource, the outermost first."""
    parents, found, each = configuration.parents(), list[ResourceId](), ResourceId(name)
    while each in parents:
        each = parents[each]
        found.insert(0, each)
    return found


def _clone_of(configuration: Configuration, name: str) -> ResourceId | None:
    parent = configuration.parents().get(ResourceId(name))
    return parent if parent is not None and isinstance(configuration.resources[parent], Clone) else None


def edits_to(configuration: Configuration, name: str, shape: Shape) -> tuple[Edit, ...]:
    """Return the atomic change after which a resource has a shape, whatever it has now.

    What contains it is dissolved, other members stay; what the shapes before have brought goes; so do the constraints
    that name the resource or what has contained it, whose meaning would be another one.
    """
    own, known = ResourceId(name), configuration.resources.get(ResourceId(name))
    is_group = isinstance(known, Group) and name == "front"
    put: dict[ResourceId, Resource] = {}
    gone = {*_containers(configuration, name), *(ResourceId(f"{name}-{part}") for part in ("fellow", "inner"))}
    for container in _containers(configuration, name):
        each = configuration.resources[container]
        others = tuple(member for member in contained(each) if member != own and member not in gone)
        if isinstance(each, Group) and others:
            gone.discard(container)
            put[container] = replace(each, members=others)
    if shape.kind in (NOTHING, OTHER_GROUP, OTHER_CLONE) and not is_group:
        gone.add(own)
        if shape.kind != NOTHING:
            inner = ResourceId(f"{name}-inner")
            put[inner] = _primitive(inner)
            put[own] = Group(own, (inner,)) if shape.kind == OTHER_GROUP else Clone(own, inner, meta=_meta(own, shape))
    elif shape.kind == FENCE_DEVICE and not is_group:
        put[own] = configurations.device([NOBODY], name).resource
    else:
        is_kept = is_group or (isinstance(known, Primitive) and known.agent.standard != "stonith")
        put[own] = known if known is not None and is_kept else _primitive(own)
        put |= _containing(own, shape, is_group=is_group)
    edits: list[Edit] = [Delete("constraint", each) for each in _constraints_on(configuration, {own, *gone})]
    edits += [Delete("resource", each) for each in sorted(gone) if each in configuration.resources]
    edits += [PutResource(each) for key, each in put.items() if configuration.resources.get(key) != each or key in gone]
    return tuple(edits)


def _containing(own: ResourceId, shape: Shape, *, is_group: bool) -> dict[ResourceId, Resource]:
    """Return what is to contain a resource, and its fellow in a group."""
    put: dict[ResourceId, Resource] = {}
    inside = own
    if shape.kind in _OF_GROUPS and not is_group:
        fellow, inside = ResourceId(f"{own}-fellow"), ResourceId(f"{own}-group")
        put[fellow] = _primitive(fellow)
        put[inside] = Group(inside, (own, fellow) if shape.is_first else (fellow, own))
    if shape.kind in _OF_CLONES:
        whole = ResourceId(CLONE) if own == "pg" else ResourceId(f"{own}-whole")
        put[whole] = Clone(whole, inside, meta=_meta(whole, shape))
    return put


def edits_back(configuration: Configuration, before: Configuration, name: str) -> tuple[Edit, ...]:
    """Return the atomic change that puts a resource, what contained it, and its constraints back."""
    own = ResourceId(name)
    old = [own, *_containers(before, name)]
    new = {*_containers(configuration, name), *(ResourceId(f"{name}-{part}") for part in ("fellow", "inner"))}
    edits: list[Edit] = [Delete("resource", each) for each in sorted(new - set(old)) if each in configuration.resources]
    edits += [PutResource(_without_secrets(before.resources[each])) for each in old if each in before.resources]
    back = _constraints_on(before, set(old))
    edits += [PutConstraint(before.constraints[each]) for each in back if _ends(before.constraints[each]) <=
              {*configuration.resources, *old} - (new - set(old))]  # fmt: skip
    return tuple(edits)


def _without_secrets(resource: Resource) -> Resource:
    """Return a resource without references to secrets: the fault that wrote them may have deleted the secret since."""
    if not isinstance(resource, Primitive):
        return resource
    kept = (
        replace(each, pairs=tuple(pair for pair in each.pairs if not pair[1].startswith("secret:")))
        for each in resource.parameters
    )
    return replace(resource, parameters=tuple(kept))


def _constraints_on(configuration: Configuration, names: set[ResourceId]) -> list[ConstraintId]:
    return [each.id for each in configuration.constraints.values() if _ends(each) & names]


def _ends(constraint: Constraint) -> set[str]:
    match constraint:
        case Location(resource=name) | TicketConstraint(resource=name):
            return {name}
        case Colocation(dependent=one, primary=other) | Ordering(first=one, then=other):
            return {one, other}


def _meta(owner: ResourceId, shape: Shape) -> tuple[AttributeSet, ...]:
    return (AttributeSet(f"{owner}-meta", shape.meta),)


def _primitive(name: ResourceId) -> Primitive:
    """Return what can be promoted where it is to be."""
    operations = (
        *(Operation(f"{name}-{action}", action, timeout_ms=20_000) for action in SLOW),
        Operation(f"{name}-monitor", "monitor", interval_ms=1000, timeout_ms=5000),
        Operation(f"{name}-promoted", "monitor", interval_ms=1100, timeout_ms=5000, role="Promoted"),
    )
    meta = (AttributeSet(f"{name}-meta", (("failure-timeout", "10s"),)),)
    return Primitive(name, configurations.SERVICE, meta=meta, operations=operations)


OF_SHAPES: tuple[Kind[Cluster], ...] = (Kind("change a shape", 3, change_shape),)
DENSE: tuple[Kind[Cluster], ...] = (Kind("change a shape", 25, change_shape),)
"""Of a seed that dwells on it."""
ALL_SHAPES = tuple(dict.fromkeys(SHAPES))
