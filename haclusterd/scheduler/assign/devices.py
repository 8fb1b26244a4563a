"""Which devices each resource gets, chosen together with its node (docs/design/0015-devices.md).

A resource keeps what it holds as long as that is fit for it. Whatever else it needs it takes from devices that nobody
holds; only a resource that would otherwise run nowhere takes what others with a lower priority hold, and then its start
waits until these are proven free. Equal arguments give equal choices: all candidates are ordered to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from haclusterd.model.devices import (
    DeviceDemand,
    DeviceId,
    DeviceKind,
    DeviceState,
    NodeDevices,
    claim_objection,
    demand_in,
    is_at_least,
    state_in_force,
    suits,
)
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import dataclass
from haclusterd.model.scores import INFINITY
from haclusterd.scheduler.assign.utilization import company_of, parts_of
from haclusterd.scheduler.model.definition import Variant
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.tasks import START

DEGRADED_PENALTY = 100
"""What a node loses in score where only degraded devices are left for a resource that is not there yet."""
_FIT_FOR_NEW = (DeviceState.OK, DeviceState.DEGRADED)
_SHORT = 12
"""Of a device's id so many characters are shown where several are named: `GPU-` and eight digits."""
_NAMED_MAX = 2
_STATES = {
    DeviceState.OK: "is in order",
    DeviceState.DEGRADED: "is degraded",
    DeviceState.UNKNOWN: "does not answer",
    DeviceState.DRAIN: "has to be drained",
    DeviceState.FAILED: "has failed",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices that a resource gets on a node."""

    devices: tuple[DeviceId, ...]
    change: str = ""
    """Why what runs there must be restarted with them; empty: it keeps what it holds, or does not run there."""
    preempted: tuple[ResourceId, ...] = ()
    """Those that run and have to stop for it."""
    awaited: tuple[ResourceId, ...] = ()
    """Those that have to give one of them back before a start: the preempted, and what has stopped and is not proven
    to."""
    has_degraded: bool = False
    """Whether a degraded one is new to the resource."""
    is_kept: bool = False
    """Whether a resource that runs there keeps the devices that it holds."""
    is_reserved: bool = True
    """Whether nobody else gets them in this plan. What runs without a claim uses something already, and needs these
    only if it is started again."""

    @property
    def wait(self) -> str:
        """Say what a start waits for; empty: nothing."""
        return f"it waits for devices that {', '.join(self.awaited)} must give back first" if self.awaited else ""


class Pool:
    """The devices of one node while resources are given to nodes."""

    def __init__(
        self,
        node: Node,
        known: NodeDevices,
        owners: Mapping[ResourceId, Resource],
        others: Mapping[ResourceId, Resource],
    ) -> None:
        self._node = node
        self._known = known
        self._owners = owners
        """The resources that run there, by the name under which they are recorded."""
        self._others_by_name = others
        """All configured resources, by the name under which they are recorded."""
        self._claimants = {claim.resource for claims in known.claims.values() for claim in claims}
        self._has_ending = any(claim.is_over for claims in known.claims.values() for claim in claims)
        self._lowest_priority = min((owner.assignment.priority for owner in owners.values()), default=INFINITY)
        self._taken: dict[DeviceId, dict[ResourceId, int]] = {}
        """Given out in this plan: to whom, and how much of the memory (0: all)."""

    def choose(self, resource: Resource, demand: DeviceDemand, *, takes_from_lower: bool = False) -> Choice | None:
        """Return what a resource would get here, None where that is not enough."""
        if takes_from_lower and not self._has_ending and resource.assignment.priority <= self._lowest_priority:
            return None
        is_here = self._node in resource.found.active_nodes
        held = self._held(resource)
        kept = [device for device in held if not is_here or not self._must_leave(device, demand)]
        kept = [device for device in kept if self._room(device, resource, demand, ()) is not None]
        missing = max(0, demand.count - len(kept))
        if not is_here:
            kept = [device for device in kept if not self._objection(device, resource, demand)]
            missing = max(0, demand.count - len(kept))
        if not missing and (is_here or self._is_grouped(kept, demand)):
            return Choice(tuple(kept), is_kept=is_here and bool(held))
        if not is_here:
            kept, missing = [], demand.count
        victims = self._victims(resource) if takes_from_lower else ()
        found = self._fill(resource, demand, kept, missing, victims)
        runs_without = is_here and not held
        if found is None:
            # It uses something already, and keeps that.
            return Choice(()) if runs_without else None
        chosen = (*kept, *found)
        # A device that is shared and has room for one more is given back by nobody.
        barred = [device for device in found if self._objection(device, resource, demand)]
        return Choice(
            tuple(chosen),
            self._why_changed(held, kept, demand) if is_here and held else "",
            tuple(sorted({name for device in barred for name in self._preempted_of(device, resource)})),
            tuple(sorted({name for device in barred for name in self._others(device, resource)})),
            has_degraded=any(self._state(device) is not DeviceState.OK for device in found),
            is_reserved=not runs_without or resource.found.is_failed,
        )

    def fits(self, parts: Sequence[tuple[Resource, DeviceDemand]], *, takes_from_lower: bool) -> Choice | None:
        """Return the first part's choice when all of these can have their devices here at once."""
        if len(parts) == 1:
            return self.choose(*parts[0], takes_from_lower=takes_from_lower)
        tried: list[Resource] = []
        first: Choice | None = None
        try:
            for resource, demand in parts:
                choice = self.choose(resource, demand, takes_from_lower=takes_from_lower)
                if choice is None:
                    return None
                first = first or choice
                self.take(resource, demand, choice)
                tried.append(resource)
            return first
        finally:
            for resource in tried:
                self.give_back(resource)

    def take(self, resource: Resource, demand: DeviceDemand, choice: Choice) -> None:
        """Count what was chosen as given out."""
        for device in choice.devices if choice.is_reserved else ():
            self._taken.setdefault(device, {})[resource.id] = demand.memory_mib if demand.is_shared else 0

    def give_back(self, resource: Resource) -> None:
        """Undo `take`."""
        for takers in self._taken.values():
            takers.pop(resource.id, None)

    def shortage(self, resource: Resource, demand: DeviceDemand) -> str:
        """Say, for a person, why a resource cannot have what it needs here."""
        if self._node in resource.found.active_nodes:
            left = [device for device in self._held(resource) if self._must_leave(device, demand)]
            if left:
                return f"device {left[0]} {self._words_of(left[0])}"
            takers = [taker for device in self._held(resource) for taker in self._taken.get(device, ())]
            if takers:
                return f"{takers[0]}, whose priority is higher, takes its devices"
        suitable = [device.id for device in self._known.devices.values() if suits(device, demand)]
        if not suitable:
            return f"it needs {demand}, which this node does not have"
        fit = [device for device in suitable if self._is_fit(device)]
        free = [device for device in fit if self._room(device, resource, demand, ()) is not None]
        words = f"it needs {demand}; {len(free)} of {len(suitable)} are free"
        unfit = [device for device in suitable if device not in fit]
        return f"{words}, {len(unfit)} unfit ({self._unfit_ones(unfit)})" if unfit else words

    def known_here(self) -> Iterable[ResourceId]:
        """Return the recorded names of what runs or has a claim here: what others are offered does not hold for it."""
        return {*self._claimants, *self._owners}

    # -- what is there ----------------------------------------------------------------------------------------------

    def _state(self, device: DeviceId) -> DeviceState:
        return state_in_force(self._known, device)

    def _is_fit(self, device: DeviceId) -> bool:
        """Tell whether a device is in a state to start something new on it, held or not."""
        return self._state(device) in _FIT_FOR_NEW and not self._known.devices[device].strangers

    def _unfit_ones(self, devices: Sequence[DeviceId]) -> str:
        """Say of some devices why nothing new can be started on them: of the first ones by name."""
        shown = [f"{device[:_SHORT]} {self._why_unfit(device)}" for device in devices[:_NAMED_MAX]]
        more = len(devices) - len(shown)
        return ", ".join([*shown, *([f"{more} more"] if more else [])])

    def _why_unfit(self, device: DeviceId) -> str:
        known = self._known.devices[device]
        if known.state not in _FIT_FOR_NEW:
            return self._words_of(device, is_short=True)
        if known.strangers:
            return f"is used by {known.strangers[0]}"
        if device in self._known.unaccepted:
            return "is not accepted"
        return "is drained by hand" if device in self._known.holds else "has to prove that it is well"

    def _words_of(self, device: DeviceId, *, is_short: bool = False) -> str:
        known = self._known.devices.get(device)
        if known is None:
            return "is gone"
        if device in self._known.holds:
            return "is drained by hand"
        reason = next(iter(known.reasons), "")
        return _STATES[known.state] + (f": {reason.partition(':')[0] if is_short else reason}" if reason else "")

    def _held(self, resource: Resource) -> list[DeviceId]:
        """Return what a resource claims here, in the order of the addresses."""
        name = resource.recorded_as
        held = [
            device for device, claims in self._known.claims.items() if any(claim.resource == name for claim in claims)
        ]
        return sorted(held, key=self._place)

    def _place(self, device: DeviceId) -> tuple[str, str]:
        known = self._known.devices.get(device)
        return (known.bus if known is not None else "", device)

    def _must_leave(self, device: DeviceId, demand: DeviceDemand) -> bool:
        state = self._state(device)
        limit = demand.leaves_at
        if limit is None or state is DeviceState.UNKNOWN or device in self._known.unaccepted:
            return False
        return is_at_least(state, limit)

    def _is_grouped(self, devices: list[DeviceId], demand: DeviceDemand) -> bool:
        """Tell whether what a stopped resource held last may be given to it again."""
        found = [self._known.devices.get(device) for device in devices]
        groups = {device.link for device in found if device is not None}
        is_linked = not demand.is_linked or demand.count == 1 or (len(groups) == 1 and "" not in groups)
        return is_linked and len(devices) == demand.count and all(
            device is not None and suits(device, demand) and self._is_fit(device.id) for device in found
        )

    def _objection(self, device: DeviceId, resource: Resource, demand: DeviceDemand) -> str:
        """Say with which words `apply` would refuse a start with a device; empty: it would not."""
        amount = demand.memory_mib if demand.is_shared else 0
        return claim_objection(self._known, device, resource.recorded_as, amount)

    def _others(self, device: DeviceId, resource: Resource) -> list[ResourceId]:
        name = resource.recorded_as
        return [claim.resource for claim in self._known.claims.get(device, ()) if claim.resource != name]

    def _room(
        self, device: DeviceId, resource: Resource, demand: DeviceDemand, victims: tuple[ResourceId, ...]
    ) -> int | None:
        """Return how much memory would be left of a device beside this resource (MiB); None: it cannot have it.

        Of one that it would have for itself alone that is 0.
        """
        claims = [
            claim for claim in self._known.claims.get(device, ())
            if claim.resource != resource.recorded_as and claim.resource not in victims
        ]
        amounts = {claim.resource: claim.memory_mib for claim in claims}
        takers = {name: amount for name, amount in self._taken.get(device, {}).items() if name != resource.id}
        # A resource that holds a device and has been given it again is in both tables.
        amounts = {name: amount for name, amount in amounts.items() if self._id_of(name) not in takers} | takers
        if not demand.is_shared:
            return 0 if not amounts else None
        known = self._known.devices.get(device)
        if known is None or not all(amounts.values()):
            return None
        left = known.memory_mib - sum(amounts.values()) - demand.memory_mib
        return left if left >= 0 else None

    def _id_of(self, recorded: ResourceId) -> ResourceId:
        owner = self._owners.get(recorded)
        return owner.id if owner is not None else recorded

    # -- what to take -----------------------------------------------------------------------------------------------

    def _victims(self, resource: Resource) -> tuple[ResourceId, ...]:
        """Return the resources whose devices may be taken: those of lower priority that are not placed yet.

        What has stopped is among them: otherwise it would start again with what was taken from it.
        """
        limit = resource.assignment.priority
        running = [name for name, owner in self._owners.items() if _is_below(owner, limit) and owner.is_managed]
        ended = {claim.resource for claims in self._known.claims.values() for claim in claims if claim.is_over}
        gone = [
            name for name in sorted(ended - self._owners.keys())
            if name not in self._others_by_name or _is_below(self._others_by_name[name], limit)
        ]
        return (*running, *gone)

    def _preempted_of(self, device: DeviceId, resource: Resource) -> list[ResourceId]:
        return [name for name in self._others(device, resource) if name in self._owners]

    def _fill(
        self,
        resource: Resource,
        demand: DeviceDemand,
        kept: list[DeviceId],
        missing: int,
        victims: tuple[ResourceId, ...],
    ) -> tuple[DeviceId, ...] | None:
        rooms: dict[DeviceId, int] = {}
        for device in self._known.devices.values():
            if device.id in kept or not suits(device, demand) or not self._is_fit(device.id):
                continue
            is_preempted = any(name in victims for name in self._others(device.id, resource))
            if not is_preempted and self._objection(device.id, resource, demand):
                continue
            room = self._room(device.id, resource, demand, victims)
            if room is not None:
                rooms[device.id] = room
        groups: dict[str, list[DeviceId]] = {}
        for device_id in rooms:
            groups.setdefault(self._group(device_id, demand), []).append(device_id)
        order = self._order(resource, demand, rooms)
        for members in groups.values():
            members.sort(key=order)
        is_linked = demand.is_linked and demand.count > 1
        wanted = {self._group(device, demand) for device in kept} if is_linked else set()
        able = [
            members
            for group, members in groups.items()
            if len(members) >= missing and not (is_linked and not group) and (not wanted or wanted == {group})
        ]
        if able:
            return tuple(min(able, key=lambda members: self._worth(members, missing, resource))[:missing])
        if is_linked or len(rooms) < missing:
            return None
        return tuple(sorted(rooms, key=order)[:missing])

    def _group(self, device: DeviceId, demand: DeviceDemand) -> str:
        known = self._known.devices[device]
        return known.parent if demand.kind is DeviceKind.MIG else known.link

    def _order(
        self, resource: Resource, demand: DeviceDemand, rooms: Mapping[DeviceId, int]
    ) -> Callable[[DeviceId], tuple[object, ...]]:
        def key(device: DeviceId) -> tuple[object, ...]:
            preempted = [self._owners[name] for name in self._preempted_of(device, resource)]
            return (
                self._state(device) is not DeviceState.OK,
                # A shared device that fits just so is better than one that is empty.
                rooms[device] if demand.is_shared else 0,
                len(preempted),
                sum(owner.assignment.priority for owner in preempted),
                -max((self._started_at(owner) for owner in preempted), default=0),
                self._place(device),
            )

        return key

    def _started_at(self, owner: Resource) -> int:
        history = owner.found.histories.get(self._node.name)
        record = history.records.get(f"{START}_0") if history is not None else None
        return int(record.run_at) if record is not None else 0

    def _worth(self, members: list[DeviceId], missing: int, resource: Resource) -> tuple[object, ...]:
        """Return the sort key of a group, the best first: healthy, nothing preempted, the smallest that suffices."""
        used = members[:missing]
        return (
            sum(self._state(device) is not DeviceState.OK for device in used),
            sum(bool(self._preempted_of(device, resource)) for device in used),
            sum(bool(self._others(device, resource)) for device in used),
            len(members),
            self._place(used[0]) if used else ("", ""),
        )

    def _why_changed(self, held: list[DeviceId], kept: list[DeviceId], demand: DeviceDemand) -> str:
        left = [device for device in held if device not in kept]
        if not left:
            return f"it needs {demand} and holds {len(held)}"
        return f"device {left[0]} {self._words_of(left[0])}"


def _is_below(owner: Resource, priority: int) -> bool:
    return owner.assignment.priority < priority and not owner.assignment.is_assigned


class _Offers:
    """What the nodes offer to a resource that has certain needs and neither runs nor has a claim there.

    It is the same for all resources with the same needs, and changes only where something was taken or given back:
    without that, plans with thousands of resources would take too long.
    """

    def __init__(self, demand: DeviceDemand, pools: Mapping[NodeName, Pool], nodes: Iterable[NodeName]) -> None:
        self._demand = demand
        self._pools = pools
        self._stale = set(pools)
        self.choices: dict[NodeName, Choice] = {}
        nothing = f"it needs {demand}, and this node has no devices"
        self.shortages: dict[NodeName, str] = {name: nothing for name in nodes if name not in pools}
        """What is said of the other nodes."""

    def changed(self, node: NodeName) -> None:
        """Look at a node again before it is asked for the next time."""
        self._stale.add(node)

    def look(self, resource: Resource, known_at: Collection[NodeName]) -> None:
        """Look at the changed nodes again for one resource; those where it is known are left for the next resource."""
        for name in sorted(self._stale.difference(known_at)):
            pool = self._pools[name]
            choice = pool.choose(resource, self._demand)
            if choice is None:
                self.choices.pop(name, None)
                self.shortages[name] = pool.shortage(resource, self._demand)
            else:
                self.shortages.pop(name, None)
                self.choices[name] = choice
        self._stale.intersection_update(known_at)


class DevicePools:
    """The devices of all nodes in one plan."""

    def __init__(self, inventory: Inventory) -> None:
        owners: dict[NodeName, dict[ResourceId, Resource]] = {}
        by_name: dict[ResourceId, Resource] = {}
        self.are_used = any(node.hardware is not None for node in inventory.nodes)
        """Whether any node has ever reported devices: without an inventory `gpus` is an ordinary capacity."""
        if self.are_used:
            for resource in inventory.primitives():
                by_name[resource.recorded_as] = resource
                for node in resource.found.active_nodes:
                    owners.setdefault(node.name, {})[resource.recorded_as] = resource
        self._pools: dict[NodeName, Pool] = {
            node.name: Pool(node, node.hardware, owners.get(node.name, {}), by_name)
            for node in inventory.nodes
            if node.hardware is not None
        }
        self._demands: dict[int, DeviceDemand | None] = {}
        """By the identity of a definition, which instances share."""
        self._offers: dict[DeviceDemand, _Offers] = {}
        self._known_at: dict[ResourceId, list[NodeName]] = {}
        """By recorded name: where a resource runs or has claims."""
        for name, pool in self._pools.items():
            for recorded in pool.known_here():
                self._known_at.setdefault(recorded, []).append(name)
        self._nodes = [node.name for node in inventory.nodes]

    def demand_of(self, resource: Resource) -> DeviceDemand | None:
        """Return which devices a primitive needs; None: none."""
        definition = resource.definition
        if id(definition) not in self._demands:
            self._demands[id(definition)] = demand_in(definition.utilization, definition.meta)
        return self._demands[id(definition)]

    def make_room(self, resource: Resource, can_use: Callable[[NodeName], bool]) -> None:
        """Forbid the nodes that have not the devices for a resource with its company, or else for itself alone.

        Where no node has free ones, those count whose devices are held by resources of lower priority.
        """
        demand = self.demand_of(resource)
        if demand is None:
            return
        offers = self._offers_for(resource, demand)
        company = self._rest_of_company(resource)
        fitting = self._fitting_together([(resource, demand), *company], can_use) if company else {}
        fitting = fitting or self._fitting_alone(resource, demand, offers, can_use)
        assignment, current = resource.assignment, resource.current_node()
        here = fitting.get(current.name) if current is not None else None
        if here is not None and current is not None and here.is_kept:
            # Without it, holders of devices would move to spread over the nodes whenever one device fails.
            assignment.add(current.name, 1, "it holds its devices there")
        for name, choice in fitting.items():
            if choice.has_degraded and choice is not here:
                assignment.add(name, -DEGRADED_PENALTY, "only degraded devices are left")
        said = offers.shortages
        known_at = [name for name in self._known_at.get(resource.recorded_as, ()) if name not in fitting]
        if known_at or company:
            others = (name for name in assignment.allowed if name in self._pools and name not in said)
            own = {name: self._pools[name].shortage(resource, demand) for name in (*known_at, *others)}
            said = {**said, **own}
        assignment.ban_all_but(fitting, said)

    def _fitting_alone(
        self, resource: Resource, demand: DeviceDemand, offers: _Offers, can_use: Callable[[NodeName], bool]
    ) -> dict[NodeName, Choice]:
        """Return the nodes that have the devices for one resource, the free ones first, and what it gets there."""
        known_at = self._known_at.get(resource.recorded_as, ())
        found = {
            name: choice for name, choice in offers.choices.items() if name not in known_at and can_use(name)
        }
        for name in known_at:
            choice = self._pools[name].choose(resource, demand) if can_use(name) else None
            if choice is not None:
                found[name] = choice
        return found or _with_fewest_preempted(self._holding([(resource, demand)], can_use, takes_from_lower=True))

    def _fitting_together(
        self, parts: Sequence[tuple[Resource, DeviceDemand]], can_use: Callable[[NodeName], bool]
    ) -> dict[NodeName, Choice]:
        found = self._holding(parts, can_use, takes_from_lower=False)
        return found or _with_fewest_preempted(self._holding(parts, can_use, takes_from_lower=True))

    def _holding(
        self,
        parts: Sequence[tuple[Resource, DeviceDemand]],
        can_use: Callable[[NodeName], bool],
        *,
        takes_from_lower: bool,
    ) -> dict[NodeName, Choice]:
        found: dict[NodeName, Choice] = {}
        for name, pool in self._pools.items():
            choice = pool.fits(parts, takes_from_lower=takes_from_lower) if can_use(name) else None
            if choice is not None:
                found[name] = choice
        return found

    def _offers_for(self, resource: Resource, demand: DeviceDemand) -> _Offers:
        offers = self._offers.get(demand)
        if offers is None:
            offers = self._offers[demand] = _Offers(demand, self._pools, self._nodes)
        offers.look(resource, self._known_at.get(resource.recorded_as, ()))
        return offers

    def _rest_of_company(self, resource: Resource) -> list[tuple[Resource, DeviceDemand]]:
        found = []
        for part in parts_of(company_of(resource)):
            demand = self.demand_of(part) if part is not resource else None
            if demand is not None:
                found.append((part, demand))
        return found

    def take(self, resource: Resource, node: Node) -> None:
        """Give a resource its devices where it was placed."""
        if resource.variant is not Variant.PRIMITIVE:
            return
        demand, pool = self.demand_of(resource), self._pools.get(node.name)
        if demand is None or pool is None:
            return
        choice = pool.choose(resource, demand) or pool.choose(resource, demand, takes_from_lower=True)
        if choice is not None:
            pool.take(resource, demand, choice)
            if not choice.is_kept or demand.is_shared:
                # What a resource keeps for itself alone was offered to nobody before, either.
                self._changed(node.name)
            resource.assignment.claim(choice.devices, demand.memory_mib if demand.is_shared else 0)
            resource.assignment.device_change, resource.assignment.device_wait = choice.change, choice.wait
            resource.assignment.lacks_devices = not choice.devices

    def give_back(self, resource: Resource, node: Node) -> None:
        """Undo `take`."""
        pool = self._pools.get(node.name)
        resource.assignment.lacks_devices = False
        if pool is not None and resource.assignment.devices:
            pool.give_back(resource)
            self._changed(node.name)
            resource.assignment.claim((), 0)
            resource.assignment.device_change = resource.assignment.device_wait = ""

    def _changed(self, node: NodeName) -> None:
        for offers in self._offers.values():
            offers.changed(node)


def _with_fewest_preempted(fitting: Mapping[NodeName, Choice]) -> dict[NodeName, Choice]:
    """Leave the nodes on which the fewest have to give their devices back."""
    fewest = min((len(choice.preempted) for choice in fitting.values()), default=0)
    return {name: choice for name, choice in fitting.items() if len(choice.preempted) == fewest}
