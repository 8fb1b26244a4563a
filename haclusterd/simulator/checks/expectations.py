"""What should run where, by a simple reading of the configuration and the hosts' facts, apart from the scheduler.

This is the judge of liveness: some time after the last fault has ended, everything that could run does, and what may
not run does not. It is simpler than the scheduler on purpose, and says nothing where a configuration is beyond it
(rules, patterns, sets, strategies): there the scheduler's own empty plan must do.

Source: Pacemaker Explained, "Resource Meta-Attributes", "Deciding Which Nodes a Resource Can Run On", "Colocation",
"Ordering", "Tickets".
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from haclusterd.model.activity import may_be_active
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import (
    Clone,
    Colocation,
    Constraint,
    Group,
    Location,
    Ordering,
    OrderingKind,
    Primitive,
    TicketConstraint,
    effective,
)
from haclusterd.model.devices import DeviceState, NodeDevices
from haclusterd.model.fencing import UNFENCED_MARK, FenceOutcome
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.records import dataclass
from haclusterd.model.rows import read_boolean, read_boolean_or
from haclusterd.model.scores import INFINITY
from haclusterd.simulator.checks import health, targets
from haclusterd.simulator.checks.shapes import Limits, limits_of
from haclusterd.simulator.hosts.truth import Truth, base_of, is_promoted, number_of, promoted

MINUTE_MS = 60_000


def objection(cib: Cib, truth: Truth) -> str:
    """Say what runs and may not, or does not run and could; empty when everything is as it should be."""
    reading = _Reading(cib, truth)
    return next((text for text in reading.objections() if text), "")


def stay_on_unhealthy(cib: Cib, truth: Truth) -> str:
    """Say what runs where the health of a node forbids it and nothing keeps it there; empty when nothing does."""
    reading = _Reading(cib, truth)
    return next((text for text in reading.objections_to_health() if text), "")


def fencing_pause_ms(cib: Cib) -> int:
    """Return the longest pause that a fencing may have to wait for, by the fencings that are recorded now.

    The rule, as `fencing-loop-limit` says it: a node that was fenced so often waits a minute before it is fenced once
    more, twice as long with each further fencing, ten minutes at most. All remembered fencings count, since people may
    have set clocks; and one more, since a node may be about to be fenced.
    """
    limit = ClusterProperties(cib.in_force).integer("fencing-loop-limit")
    if not limit:
        return 0
    fenced = Counter(record.target for record in cib.status.fencing_history if record.outcome is FenceOutcome.FENCED)
    return max((_pause_ms(count + 1 - limit) for count in fenced.values()), default=0)


def _pause_ms(excess: int) -> int:
    return 0 if excess < 0 else min(10 * MINUTE_MS, MINUTE_MS << min(excess, 4))


@dataclass(frozen=True)
class _Reading:
    """One configuration, and what is the case."""

    cib: Cib
    truth: Truth

    def objections(self) -> Iterator[str]:
        configured = {primitive.id for primitive in self.cib.in_force.primitives()}
        for primitive in self.cib.in_force.primitives():
            if primitive.agent.standard != "stonith":
                yield self._of_primitive(primitive)
        if self._properties.boolean("maintenance-mode") or not self._properties.boolean("stop-removed-resources"):
            return
        for name, status in self.cib.status.nodes.items():
            for resource in self.truth.services_on(name):
                is_known = base_of(resource) in configured
                if not is_known and status.state is NodeState.ONLINE and not self._is_left_alone(resource):
                    yield f"{resource} is not configured, and runs on {name}"

    def _is_left_alone(self, resource: ResourceId) -> bool:
        """Whether what is configured no more runs on a node in maintenance too: then it is unmanaged on all.

        So crm_simulate 2.1.5 decides.
        """
        nodes = self.cib.status.nodes
        return any(name in nodes and self._is_maintained(nodes[name]) for name in self.truth.active_nodes(resource))

    def _of_primitive(self, primitive: Primitive) -> str:
        resource = primitive.id
        if not self._is_managed(resource):
            return ""
        holders = self.truth.copies_of(resource)
        if self._is_left_alone_somewhere(resource, holders):
            return ""
        if self._is_kept_stopped(resource):
            is_due = holders and not self._is_in_use(resource)
            return f"{resource} runs on {', '.join(holders)}, and is to be stopped" if is_due else ""
        if self._is_beyond(resource):
            return ""
        wrong = self._wrong_copies(resource, holders)
        if wrong:
            return wrong
        allowed = self._allowed(resource)
        if self._clone_of(resource) is not None:
            return self._of_clone(resource, holders, allowed)
        if not holders and allowed:
            return f"{resource} runs nowhere, and could on {', '.join(sorted(allowed))}"
        return ""

    def objections_to_health(self) -> Iterator[str]:
        for primitive in self.cib.in_force.primitives():
            resource = primitive.id
            holders = self.truth.copies_of(resource)
            if primitive.agent.standard == "stonith" or not holders or not self._is_managed(resource):
                continue
            if not self._is_left_alone_somewhere(resource, holders):
                yield self._unhealthy_copies(resource, holders)

    def _is_left_alone_somewhere(self, resource: ResourceId, holders: tuple[NodeName, ...]) -> bool:
        return any(self._leaves_alone(status, resource, holders) for status in self.cib.status.nodes.values())

    def _wrong_copies(self, resource: ResourceId, holders: tuple[NodeName, ...]) -> str:
        surplus = self._surplus(resource)
        if surplus:
            return f"{resource} runs as {', '.join(surplus)}: more than is wanted"
        return self._unhealthy_copies(resource, holders)

    def _unhealthy_copies(self, resource: ResourceId, holders: tuple[NodeName, ...]) -> str:
        """Say where a resource runs that health forbids, unless a failure or what uses it keeps it there."""
        forbidden = [name for name in holders if self._health_of(name, resource) <= -INFINITY]
        if not forbidden or self._is_in_use(resource) or resource in self._frozen_by_tickets:
            return ""
        is_kept = any(name in self._put_aside for name in self._chain(resource)) or self._has_failed_before(resource)
        nodes = self.cib.status.nodes
        found = [name for name in forbidden if not is_kept and not self._failures(nodes[name], resource)]
        return f"{resource} runs on {', '.join(found)}, whose health forbids it" if found else ""

    def _health_of(self, node: NodeName, resource: ResourceId) -> int:
        """Return what the health of a node is worth to a resource."""
        score = self._healths.get(node, 0)
        return score if score > 0 or self._chain(resource)[-1] not in self._allowing_unhealthy else 0

    @cached_property
    def _healths(self) -> Mapping[NodeName, int]:
        return health.scores(self.cib)

    @cached_property
    def _allowing_unhealthy(self) -> frozenset[ResourceId]:
        return health.allowing(self.cib.in_force)

    def _surplus(self, resource: ResourceId) -> tuple[str, ...]:
        """Return the copies of a primitive where there are more than its shape allows, or others."""
        held = [(each, name) for name in self.cib.status.nodes for each in self.truth.services_on(name)
                if base_of(each) == resource]  # fmt: skip
        limits = self._limits[resource]
        plain = [f"{each} on {name}" for each, name in held if each == resource]
        roles = [f"{each} on {name}" for each, name in held if is_promoted(each)]
        numbered = [(each, name) for each, name in held if number_of(each) is not None and not is_promoted(each)]
        strange = [f"{each} on {name}" for each, name in numbered if (number_of(each) or 0) >= limits.instances]
        on_node = max(Counter(name for each, name in held if is_promoted(each)).values(), default=0)
        is_surplus = len(plain) > limits.copies or len(roles) > limits.promoted or on_node > limits.promoted_on_node
        return (*plain, *roles, *strange) if is_surplus or strange else ()

    @cached_property
    def _limits(self) -> Mapping[ResourceId, Limits]:
        members = sum(not member.is_witness for member in self.cib.members.values())
        return limits_of(self.cib.in_force, members)

    def _of_clone(self, resource: ResourceId, holders: tuple[NodeName, ...], allowed: frozenset[NodeName]) -> str:
        clone = self._clone_of(resource)
        assert clone is not None
        meta = self._meta(resource)
        most = min(int(meta.get("clone-max", "1000")), len(allowed))
        if meta.get("gpu-gang") == "all" and (holders or most < int(meta["clone-max"])):
            is_part = 0 < len(holders) < int(meta["clone-max"])
            return f"{resource} runs on {', '.join(holders)}, and is a part of its gang" if is_part else ""
        if len(holders) < most:
            return f"{resource} runs on {', '.join(holders) or 'no node'}, and could on {', '.join(sorted(allowed))}"
        if not read_boolean(meta.get("promotable", "false")) or meta.get("target-role", "").lower() == "unpromoted":
            return ""
        limits = self._limits[resource]
        if limits.instances or not limits.promoted or not limits.promoted_on_node:
            # Instances that differ have scores of their own.
            return ""
        if self._is_promotion_beyond(resource):
            return ""
        candidates = [name for name in holders if name in allowed and self._promotion_score(name, resource) >= 0]
        if candidates and not self.truth.active_nodes(promoted(resource)):
            return f"{resource} is promoted nowhere, and could be on {', '.join(candidates)}"
        return ""

    # -- what the configuration says --------------------------------------------------------------------------------

    @cached_property
    def _properties(self) -> ClusterProperties:
        return ClusterProperties(self.cib.in_force)

    @cached_property
    def _parents(self) -> Mapping[ResourceId, ResourceId]:
        return self.cib.in_force.parents()

    def _chain(self, resource: ResourceId) -> tuple[ResourceId, ...]:
        """Return a resource and what it is in, from the inside out."""
        chain = [resource]
        while chain[-1] in self._parents:
            chain.append(self._parents[chain[-1]])
        return tuple(chain)

    def _clone_of(self, resource: ResourceId) -> Clone | None:
        each = self.cib.in_force.resources[self._chain(resource)[-1]]
        return each if isinstance(each, Clone) else None

    def _meta(self, resource: ResourceId) -> dict[str, str]:
        """Return meta-attributes in force: the inner one's own come first, then what it is in, then the defaults."""
        configuration = self.cib.in_force
        merged = effective(configuration.resource_defaults)
        for name in reversed(self._chain(resource)):
            each = configuration.resources[name]
            if isinstance(each, Primitive) and each.template is not None and each.template in configuration.templates:
                merged.update(effective(configuration.templates[each.template].meta))
            merged.update(effective(each.meta))
        return merged

    def _is_managed(self, resource: ResourceId) -> bool:
        meta = self._meta(resource)
        is_maintained = read_boolean_or(meta.get("maintenance"), default=False)
        is_left_alone = is_maintained or self._properties.boolean("maintenance-mode")
        return not is_left_alone and read_boolean(meta.get("is-managed", "true"))

    def _is_kept_stopped(self, resource: ResourceId) -> bool:
        """Tell whether it must not run anywhere, whatever else is so."""
        if self._properties.boolean("stop-all-resources"):
            return True
        return self._wants_stopped(resource)

    def _wants_stopped(self, name: ResourceId) -> bool:
        return self._meta(name).get("target-role", "").lower() == "stopped"

    def _is_in_use(self, resource: ResourceId) -> bool:
        """Tell whether something runs that would have to stop first and is left alone (`crm_simulate`: "blocked")."""
        reached, pending = {resource}, [resource]
        while pending:
            for user in self._users(pending.pop()):
                if user in reached:
                    continue
                if self._runs_on(user):
                    return True
                reached.add(user)
                pending.append(user)
        return False

    def _runs_on(self, resource: ResourceId) -> bool:
        """Tell whether it is active, and the cluster may not stop it."""
        if not self.truth.active_nodes(resource) or resource not in self.cib.in_force.resources:
            # Edits of the faults reach the log without a verb's checks: a group may name what is not configured.
            return False
        return resource in self._frozen_by_tickets or not self._is_managed(resource)

    def _users(self, resource: ResourceId) -> Iterator[ResourceId]:
        """Yield what stops before a resource: the members after it, and what an ordering puts after it."""
        chain = self._chain(resource)
        for member, name in itertools.pairwise(chain):
            each = self.cib.in_force.resources[name]
            if isinstance(each, Group):
                yield from each.members[each.members.index(member) + 1 :]
        for constraint in self.cib.in_force.constraints.values():
            if isinstance(constraint, Ordering) and constraint.first in chain and constraint.is_symmetrical:
                yield from self._insides(constraint.then)

    def _is_beyond(self, resource: ResourceId) -> bool:
        """Tell whether something more than this judge understands has a say about a resource."""
        configuration, chain = self.cib.in_force, self._chain(resource)
        is_default = self._properties.text("placement-strategy") == "default"
        if not is_default or not self._properties.boolean("symmetric-cluster"):
            return True
        if any(name in self._put_aside for name in chain) or self._has_failed_before(resource):
            return True
        if any(name in status.locks for status in self.cib.status.nodes.values() for name in chain):
            return True
        if any(self._wants_stopped(name) for name in chain):
            # A member of what is stopped has a target-role of its own, which wins.
            return True
        groups: set[str] = {tag.id for tag in configuration.tags.values() if set(tag.references) & set(chain)}
        groups |= {each.template for each in configuration.primitives() if each.id in chain and each.template}
        if any(_named(constraint) & groups for constraint in configuration.constraints.values()):
            return True
        if chain[-1] in self._in_circles:
            return True
        return any(self._is_intricate(constraint, chain) for constraint in configuration.constraints.values())

    @cached_property
    def _put_aside(self) -> frozenset[ResourceId]:
        """Return what failed and is then not simply started again (`on-fail`), with what it is in."""
        found: set[ResourceId] = set()
        for primitive in self.cib.in_force.primitives():
            policies = {each.on_fail for each in primitive.operations} - {None, "restart", "fence"}
            policies |= {self._usual_on_fail} - {None, "restart", "fence"}
            if policies and any(self._failures(status, primitive.id) for status in self.cib.status.nodes.values()):
                found.update(self._chain(primitive.id))
        return frozenset(found)

    def _failures(self, status: NodeStatus, resource: ResourceId) -> bool:
        history = status.histories.get(resource)
        return history is not None and _has_failed(history)

    def _has_failed_before(self, resource: ResourceId) -> bool:
        """Tell whether it failed under the name that it had in another shape.

        That name is configured no more and has no failure-timeout: where the limits of fencing hold a failed stop back,
        a person has to look.
        """
        is_numbered = self._limits[resource].instances > 0
        return any(
            _has_failed(history)
            for status in self.cib.status.nodes.values()
            for name, history in status.histories.items()
            if base_of(name) == resource and (number_of(name) is not None) is not is_numbered
        )

    def _is_on_standby_for_failure(self, status: NodeStatus) -> bool:
        """Tell whether something failed on a node that is to be on standby then."""
        return any(
            self._failures(status, primitive.id)
            for primitive in self.cib.in_force.primitives()
            if "standby" in (self._usual_on_fail, *(operation.on_fail for operation in primitive.operations))
        )

    @cached_property
    def _usual_on_fail(self) -> str | None:
        return effective(self.cib.in_force.operation_defaults).get("on-fail")

    @cached_property
    def _in_circles(self) -> frozenset[ResourceId]:
        """Return the outermost resources that come, by their orderings, before themselves, and what follows those."""
        then: dict[ResourceId, set[ResourceId]] = {}
        for constraint in self.cib.in_force.constraints.values():
            if isinstance(constraint, Ordering) and not constraint.sets:
                ends = [self._chain(name)[-1] for name in (constraint.first, constraint.then)]
                then.setdefault(ends[0], set()).add(ends[1])
        circles = {name for name in then if name in _reached(name, then)}
        return frozenset(circles.union(*(_reached(name, then) for name in circles)))

    def _is_intricate(self, constraint: Constraint, chain: tuple[ResourceId, ...]) -> bool:
        match constraint:
            case Location(sets=sets) | Colocation(sets=sets) | Ordering(sets=sets) if sets:
                return True
            case Location(resource=resource, rules=rules, pattern=pattern, role=role):
                return bool(pattern) or (resource in chain and bool(rules or role))
            case TicketConstraint(resource=resource, sets=sets):
                return bool(sets) or resource in chain
            case Colocation(dependent=dependent, dependent_role=role, node_attribute=attribute):
                return dependent in chain and bool(role or attribute)
            case _:
                return False

    def _is_promotion_beyond(self, resource: ResourceId) -> bool:
        chain = self._chain(resource)
        for constraint in self.cib.in_force.constraints.values():
            match constraint:
                case Location(resource=named, role=role) if named in chain and role:
                    return True
                case Colocation(dependent=named) | TicketConstraint(resource=named) if named in chain:
                    return True
                case Ordering(then=named) if named in chain:
                    return True
                case _:
                    pass
        return False

    # -- where it may run -------------------------------------------------------------------------------------------

    def _allowed(self, resource: ResourceId) -> frozenset[NodeName]:
        """Return the nodes on which a resource could run, given where the others are."""
        found = frozenset(
            name for name, status in self.cib.status.nodes.items() if self._may_run_on(status, resource)
        )
        for name in self._chain(resource):
            found &= self._beside_others(name, found)
            if not self._is_its_turn(name):
                return frozenset()
        return found & self._beside_fellows(resource, found)

    def _may_run_on(self, status: NodeStatus, resource: ResourceId) -> bool:
        name = status.name
        member = self.cib.members.get(name)
        if status.state is not NodeState.ONLINE or member is None or member.is_witness:
            return False
        is_on_standby = read_boolean_or(self._attribute(status, "standby"), default=False)
        if self._is_maintained(status) or is_on_standby or status.is_leaving:
            return False
        if self._has_failed_on(status, resource) or self._is_on_standby_for_failure(status):
            return False
        if not self._has_devices_for(name, resource) or self._is_shut_out(status, resource):
            return False
        chain = self._chain(resource)
        score = sum(
            max(-INFINITY, constraint.score)
            for constraint in self.cib.in_force.constraints.values()
            if isinstance(constraint, Location) and constraint.node == name and constraint.resource in chain
        )
        worth = self._health_of(name, resource)
        return score >= 0 and worth > -INFINITY and score + min(worth, 0) >= 0

    def _is_shut_out(self, status: NodeStatus, resource: ResourceId) -> bool:
        """Tell whether a resource waits for a node to be let in that is on the list of no device that does that."""
        lists = self._lists_of_let_in
        if not lists or self._meta(resource).get("requires", "unfencing") != "unfencing":
            return False
        is_let_in = self._attribute(status, UNFENCED_MARK) is not None
        return not is_let_in and all(names and status.name not in names for names in lists)

    @cached_property
    def _lists_of_let_in(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that each device lists that lets nodes in; one that lists none is for all."""
        devices = [each for each in self.cib.in_force.primitives() if each.agent.standard == "stonith"]
        if not self._properties.boolean("fencing-enabled"):
            return ()
        return tuple(
            targets.served_by(each)
            for each in devices if self._meta(each.id).get("provides") == "unfencing"
        )  # fmt: skip

    def _has_devices_for(self, node: NodeName, resource: ResourceId) -> bool:
        """Tell whether a node has as many devices as a resource claims that nobody else does, side by side if it is to
        be so."""
        primitive = next(each for each in self.cib.in_force.primitives() if each.id == resource)
        count = int(effective(primitive.utilization).get("gpus", "0"))
        if not count:
            return True
        known, meta = self.cib.status.devices.get(node, NodeDevices()), self._meta(resource)
        share = 30_000 if meta.get("gpu-sharing") else 0
        free: Counter[str] = Counter()
        for name, device in known.devices.items():
            others = [claim.memory_mib for claim in known.claims.get(name, ()) if base_of(claim.resource) != resource]
            is_fit = device.state is DeviceState.OK and not device.strangers and name not in known.holds
            has_room = not others or (share and all(others) and share + sum(others) <= device.memory_mib)
            if is_fit and has_room and name not in known.unaccepted and name not in known.recoveries:
                free[device.link] += 1
        return max(free.values(), default=0) >= count if meta.get("gpu-link") else free.total() >= count

    def _has_failed_on(self, status: NodeStatus, resource: ResourceId) -> bool:
        """Tell whether failures keep it away: that is judged by the scheduler alone."""
        chain = self._chain(resource)
        fellows = {resource}
        for name in chain:
            each = self.cib.in_force.resources[name]
            if isinstance(each, Group):
                fellows |= set(each.members)
        return any(
            history.fail_counts
            for fellow in fellows
            if (history := status.histories.get(fellow)) is not None
        )

    def _beside_others(self, resource: ResourceId, allowed: frozenset[NodeName]) -> frozenset[NodeName]:
        """Return where colocations that are mandatory let it run."""
        for constraint in self.cib.in_force.constraints.values():
            if not isinstance(constraint, Colocation) or constraint.dependent != resource:
                continue
            is_promoted = (constraint.primary_role or "").lower() in ("promoted", "master")
            if constraint.score >= INFINITY:
                allowed &= self._places(constraint.primary, is_promoted=is_promoted)
            elif constraint.score <= -INFINITY:
                allowed -= self._touched(constraint.primary, is_promoted=is_promoted)
        return allowed

    def _touched(self, resource: ResourceId, *, is_promoted: bool) -> frozenset[NodeName]:
        """Return where anything of a resource runs: of a group one member is enough to keep others away."""
        parts = map(promoted, self._insides(resource)) if is_promoted else self._insides(resource)
        return frozenset(node for part in parts for node in self.truth.active_nodes(part))

    def _places(self, resource: ResourceId, *, is_promoted: bool = False) -> frozenset[NodeName]:
        """Return where all of a resource runs."""
        each = self.cib.in_force.resources.get(resource)
        if isinstance(each, Group):
            places = [self._places(member) for member in each.members]
            return frozenset.intersection(*places) if places else frozenset()
        if isinstance(each, Clone):
            return self._places(each.child, is_promoted=is_promoted)
        return frozenset(self.truth.active_nodes(promoted(resource) if is_promoted else resource))

    def _is_its_turn(self, resource: ResourceId) -> bool:
        """Tell whether everything runs that must run before it."""
        for constraint in self.cib.in_force.constraints.values():
            if not isinstance(constraint, Ordering) or constraint.then != resource:
                continue
            if constraint.kind is not OrderingKind.MANDATORY:
                continue
            is_start = (constraint.then_action or constraint.first_action) in ("start", "promote")
            if not is_start or self._frozen_by_tickets & set(self._insides(constraint.first)):
                return False
            places = self._places(constraint.first, is_promoted=constraint.first_action == "promote")
            if len(places) < max(1, self._least_of(constraint.first)):
                return False
        return True

    def _least_of(self, resource: ResourceId) -> int:
        """Return how many instances of a clone must run before what comes after it (`clone-min`)."""
        is_clone = isinstance(self.cib.in_force.resources.get(resource), Clone)
        return int(self._meta(resource).get("clone-min", "0")) if is_clone else 0

    @cached_property
    def _frozen_by_tickets(self) -> frozenset[ResourceId]:
        """Return what stays where it is because its ticket is lost: it cannot start, so nothing comes after it."""
        tickets = self.cib.status.tickets
        return frozenset(
            inside
            for constraint in self.cib.in_force.constraints.values()
            if isinstance(constraint, TicketConstraint) and constraint.loss_policy == "freeze"
            if (state := tickets.get(constraint.ticket)) is None or not state.is_granted
            for inside in self._insides(constraint.resource)
        )

    def _insides(self, resource: ResourceId) -> tuple[ResourceId, ...]:
        """Return a resource and what is in it."""
        match self.cib.in_force.resources.get(resource):
            case Group(members=members):
                return (resource, *members)
            case Clone(child=child):
                return (resource, *self._insides(child))
            case _:
                return (resource,)

    def _beside_fellows(self, resource: ResourceId, allowed: frozenset[NodeName]) -> frozenset[NodeName]:
        """Return where the members of its group let it run: those before it, and the colocations of all.

        Pacemaker 3 binds the first member by what every other one must be with; the others follow it. One after it
        that runs on would have to stop first (docs/design/0007).
        """
        group = next(
            (each for name in self._chain(resource)
             if isinstance(each := self.cib.in_force.resources[name], Group)), None
        )  # fmt: skip
        if group is None:
            return allowed
        place = group.members.index(resource)
        before, after = group.members[:place], group.members[place + 1 :]
        if self._frozen_by_tickets & set(before) or any(map(self._runs_on, after)):
            return frozenset()
        for member in before:
            allowed &= self._places(member)
        for member in group.members:
            allowed = self._beside_others(member, allowed)
        return allowed

    # -- nodes ------------------------------------------------------------------------------------------------------

    def _leaves_alone(self, status: NodeStatus, resource: ResourceId, holders: Collection[NodeName]) -> bool:
        """Tell whether a node in maintenance has a resource, or had it when it was watched last."""
        if not self._is_maintained(status):
            return False
        known = {*status.histories, *status.unverified}
        is_recorded = any(base_of(name) == resource and may_be_active(status, name) for name in known)
        return status.name in holders or is_recorded

    def _is_maintained(self, status: NodeStatus) -> bool:
        return read_boolean_or(self._attribute(status, "maintenance"), default=False)

    def _attribute(self, status: NodeStatus, name: str) -> str | None:
        if name in status.attributes:
            return status.attributes[name]
        entry = self.cib.in_force.nodes.get(status.name)
        return None if entry is None else effective(entry.attributes).get(name)

    def _promotion_score(self, node: NodeName, resource: ResourceId) -> int:
        status = self.cib.status.nodes[node]
        text = self._attribute(status, f"master-{resource}")
        return int(text) if text is not None and text.lstrip("-").isdigit() else -1


def _reached(start: ResourceId, then: Mapping[ResourceId, set[ResourceId]]) -> set[ResourceId]:
    """Return everything that comes after something."""
    found: set[ResourceId] = set()
    new = set(then[start])
    while new:
        found |= new
        new = {after for name in new for after in then.get(name, ())} - found
    return found


def _named(constraint: Constraint) -> set[str]:
    """Return whom a constraint is about, but not what that depends on."""
    match constraint:
        case Location(resource=name) | TicketConstraint(resource=name):
            return {name}
        case Colocation(dependent=name) | Ordering(then=name):
            return {name}


def _has_failed(history: ResourceHistory) -> bool:
    return bool(history.fail_counts) or any(record.is_failure for record in history.records.values())
