"""Where a plan of this cluster and one of Pacemaker place resources otherwise, and why.

A difference comes from loading when Pacemaker itself would place what was loaded otherwise than what was written; then
the line that changed it is named. Otherwise it comes from a decision that is made here in another way: each of those is
documented (docs/design/0005-scheduler.md, "Where we decide otherwise", and 0007). What follows from the place of
another resource says so. A difference that none of them explains is listed as unexplained; nothing is guessed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from haclusterd.commands.configure.dependants import named_by
from haclusterd.commands.planning.simulated_state import State, is_node_fencing, state_after
from haclusterd.model.cluster import Cib, NodeState, NodeStatus
from haclusterd.model.configuration import (
    Clone,
    Colocation,
    Configuration,
    Ordering,
    effective,
    parts_of,
    primitives_of,
)
from haclusterd.model.graph import Placement, Plan
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import Role
from haclusterd.model.properties import ClusterProperties, collective_flag, meta_values
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import ReportItem
from haclusterd.scheduler.unpack.fencing_capability import usable_devices_by_node
from haclusterd.verbs.answers.simulation import PlacedOtherwise

UNEXPLAINED = "none of the documented differences explains it: please report it, with the CIB"
_PROMOTION = "master-"
_ROLES = frozenset({str(Role.PROMOTED), str(Role.UNPROMOTED)})

Placed = Mapping[str, Sequence[tuple[str, str]]]
"""Of each resource, or of all instances of an anonymous clone, the nodes and the roles there."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A CIB and the plan that was made for it."""

    cib: Cib
    plan: Plan


def as_probed(cib: Cib) -> Cib:
    """Return a CIB as a running cluster would come to know it: probes find an anonymous clone under its plain name.

    Old releases of Pacemaker recorded its instances as `name:number`; here such a record is one of a unique clone that
    was removed, and its copy is stopped.
    """
    plain = set(_alike_names(cib.configuration))
    nodes = {name: _with_plain_names(status, plain) for name, status in cib.status.nodes.items()}
    return replace(cib, status=replace(cib.status, nodes=nodes))


def _alike_names(configuration: Configuration) -> Iterator[ResourceId]:
    for clone in configuration.resources.values():
        if isinstance(clone, Clone) and not collective_flag(configuration, clone, "globally-unique"):
            yield from primitives_of(configuration, clone.id)


def _with_plain_names(status: NodeStatus, plain: set[ResourceId]) -> NodeStatus:
    histories: dict[ResourceId, ResourceHistory] = {}
    for name, history in status.histories.items():
        base = ResourceId(name.rpartition(":")[0])
        key = base if base in plain else name
        if key not in histories or _is_longer(history, histories[key]):
            histories[key] = history
    attributes = {_plain_attribute(name, plain): value for name, value in status.attributes.items()}
    return replace(status, histories=histories, attributes=attributes)


def _plain_attribute(name: str, plain: set[ResourceId]) -> str:
    """Return the promotion score `master-web:0` as what it is called when instances are alike: `master-web`."""
    base = name.rpartition(":")[0]
    return base if base.removeprefix(_PROMOTION) in plain and base.startswith(_PROMOTION) else name


def _is_longer(one: ResourceHistory, other: ResourceHistory) -> bool:
    """Tell which of two records of one clone on one node says more: what only was probed has one record."""
    return len(one.records) > len(other.records)


def differences(
    theirs: Decision, loaded: Decision, ours: Decision, reports: Sequence[ReportItem]
) -> tuple[PlacedOtherwise, ...]:
    """Compare what would run after the plan of Pacemaker and after that of this cluster.

    `loaded` is Pacemaker's plan for what would be loaded; `reports` say what loading changes.
    """
    here, there, between = (_where_each(each) for each in (ours, theirs, loaded))
    names = [name for name in sorted({*here, *there}) if not _is_alike(here, there, name)]
    causes = _Causes(theirs, ours, reports)
    found = {
        name: causes.of_loading(name) if not _is_alike(between, there, name) else causes.of_decisions(name)
        for name in names
    }
    return tuple(
        PlacedOtherwise(name, _shown(here, name), _shown(there, name), found[name] or causes.of_others(name, found))
        for name in names
    )


def _is_alike(one: Placed, other: Placed, name: str) -> bool:
    return one.get(name, []) == other.get(name, [])


def _where_each(decision: Decision) -> Placed:
    return placed(decision.cib.configuration, state_after(decision.plan))


def placed(configuration: Configuration, state: State) -> Placed:
    """Return where everything is, and in which role.

    The instances of an anonymous clone are alike: which of them runs on a node says nothing. What can be promoted and
    was started is unpromoted, whether a monitor has said so or not.
    """
    numbered, promotable = (
        {name for clone in _clones(configuration, flag) for name in parts_of(configuration, clone.id)}
        for flag in ("globally-unique", "promotable")
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for name, nodes in state.items():
        plain, colon, number = name.rpartition(":")
        base = plain if colon and number.isdecimal() else name
        shown = found.setdefault(base if base not in numbered else name, [])
        roles = {str(role) for role in nodes.values()}
        has_roles = base in promotable or roles & _ROLES
        for node, role in nodes.items():
            is_started = role is Role.STARTED and has_roles
            shown.append((str(node), str(Role.UNPROMOTED if is_started else role)))
    return {name: sorted(each) for name, each in found.items()}


def _clones(configuration: Configuration, flag: str) -> Iterator[Clone]:
    for clone in configuration.resources.values():
        if isinstance(clone, Clone) and collective_flag(configuration, clone, flag):
            yield clone


def _shown(where: Placed, name: str) -> str:
    return ", ".join(f"{role} on {node}" for node, role in where.get(name, ())) or "stopped"


class _Causes:
    """Finds the reason of a difference."""

    def __init__(self, theirs: Decision, ours: Decision, reports: Sequence[ReportItem]) -> None:
        self._theirs = theirs
        self._ours = ours
        self._reports = reports
        self._configuration = ours.cib.configuration
        self._properties = ClusterProperties(self._configuration)
        self._parents = self._configuration.parents()
        self._beside: dict[ResourceId, set[ResourceId]] = {}
        for constraint in self._configuration.constraints.values():
            if isinstance(constraint, Colocation | Ordering):
                tops = {self._top(each) for each in named_by(constraint)}
                for each in tops:
                    self._beside.setdefault(each, set()).update(tops)
        self._devices = usable_devices_by_node(self._configuration, self._configuration.nodes)
        self._lost = {
            name: status for name, status in sorted(ours.cib.status.nodes.items())
            if status.state is NodeState.LOST or status.is_condemned
        }  # fmt: skip

    # What was loaded

    def of_loading(self, name: str) -> str:
        """Name the lines that changed what is loaded: those that name the resource, else all that were warned of."""
        top = self._top(name)
        named = [each for each in self._reports if {name, top} & {*" ".join(each.parameters.values()).split()}]
        chosen = named or [each for each in self._reports if each.severity is Severity.WARNING]
        if not chosen:
            return UNEXPLAINED
        lines = [f"{each.message}{f' (line {each.place.line})' if each.place else ''}" for each in chosen[:3]]
        more = f"; and {len(chosen) - 3} more lines" if len(chosen) > 3 else ""
        return f"loaded otherwise: {'; '.join(lines)}{more}"

    # What is decided otherwise

    def of_decisions(self, name: str) -> str:
        """Return which documented difference it is; the empty text: none that is its own."""
        for find in (
            self._of_remotes, self._of_devices, self._of_failure, self._of_lost_nodes,
            self._of_unseen_nodes, self._of_fencing, self._of_nodes_that_left, self._of_joining_nodes,
        ):  # fmt: skip
            reason = find(name)
            if reason:
                return reason
        return ""

    def _of_remotes(self, name: str) -> str:
        nodes, members = self._touched(name), self._configuration.nodes
        is_remote = any(node not in members or members[node].is_remote for node in nodes)
        is_part = any(each.part is not None for each in _of(self._theirs.plan, name))
        if not is_remote and not is_part:
            return ""
        return "there are no bundles, remote or guest nodes in a running cluster, and it needs them"

    def _of_failure(self, name: str) -> str:
        """A resource that failed to stop, or is to be fenced for, on a node that nobody can fence."""
        blocked = [each for each in _of(self._ours.plan, name) if each.is_blocked]
        nodes = [each for placement in blocked for each in placement.now_on if not self._devices.get(each)]
        if not nodes or any(each.is_blocked for each in _of(self._theirs.plan, name)):
            return ""
        where = _listed(nodes)
        return f"it failed on {where}, which no device can fence: it is left alone, and the node continues (0005)"

    def _of_lost_nodes(self, name: str) -> str:
        touched = [each for each in self._lost if self._may_be_on(name, each)]
        if not touched:
            return ""
        nodes = _being(touched)
        if not self._properties.boolean("fencing-enabled"):
            return f"{nodes} lost and fencing is disabled: what ran there is not started on another node (0005)"
        if not all(self._devices.get(each) for each in touched):
            return f"{nodes} lost and cannot be fenced: what ran there is not started on another node (0005)"
        needs = self._needs(name)
        if needs in ("nothing", "quorum"):
            return f"{nodes} lost: what ran there waits for its fencing, although requires={needs} (0005)"
        return ""

    def _of_fencing(self, name: str) -> str:
        """Name a node that only one of the two would fence."""
        ours, theirs = _fenced(self._ours.plan), _fenced(self._theirs.plan)
        touched = self._touched(name)
        for node in sorted(touched & ours.keys() - theirs.keys()):
            return f"here {node} is fenced first: {ours[node]}"
        for node in sorted(touched & theirs.keys() - ours.keys()):
            why = "" if self._devices.get(node) else ": no device can (0005)"
            return f"Pacemaker fences {node} first ({theirs[node]}), and here it is not fenced{why}"
        return ""

    def _of_nodes_that_left(self, name: str) -> str:
        """Pacemaker believes the records of a node that is not there; here a node leaves with everything stopped."""
        left = self._in(NodeState.LEFT) & self._touched(name)
        return f"{_being(sorted(left))} gone after a clean stop: what is recorded there does not run" if left else ""

    def _of_joining_nodes(self, _name: str) -> str:
        joining = [name for name, each in sorted(self._ours.cib.status.nodes.items()) if each.is_joining]
        return f"{_being(joining)} joining, and starts do not wait for that (0005)" if joining else ""

    def _in(self, state: NodeState) -> set[NodeName]:
        return {name for name, each in self._ours.cib.status.nodes.items() if each.state is state}

    def _touched(self, name: str) -> set[NodeName]:
        """Return all nodes where it is, or would be."""
        plans = (self._ours.plan, self._theirs.plan)
        return {node for plan in plans for each in _of(plan, name) for node in _on(each)}

    def _may_be_on(self, name: str, node: NodeName) -> bool:
        plans = (self._ours.plan, self._theirs.plan)
        return any(node in each.now_on for plan in plans for each in _of(plan, name))

    def _needs(self, name: str) -> str:
        resources = self._configuration.resources
        resource, top = resources.get(ResourceId(name)), resources.get(self._top(name))
        if resource is None or top is None:
            return ""
        own, parent = effective(resource.meta), effective(top.meta)
        return meta_values(self._configuration, own=own, parent=parent).get("requires", "").lower()

    def _of_unseen_nodes(self, _name: str) -> str:
        unseen = self._in(NodeState.UNSEEN)
        if not unseen or not self._properties.boolean("startup-fencing"):
            return ""
        nodes = _listed(sorted(unseen))
        return f"never seen: {nodes}; what may run there is not started before it joins, or is fenced (0005)"

    def _of_devices(self, _name: str) -> str:
        is_enabled = self._properties.boolean("fencing-enabled")
        if not is_enabled or next(iter(self._configuration.fence_devices()), None) is not None:
            return ""
        return "Pacemaker leaves all as it is while no fence device is configured; here it is managed (0005)"

    # What follows

    def of_others(self, name: str, found: Mapping[str, str]) -> str:
        """Say whose place it follows, when that has a reason of its own."""
        bound = self._bound(self._top(name))
        for other, reason in found.items():
            if reason and other != name and self._top(other) in bound:
                return f"it goes with {other}"
        return UNEXPLAINED

    def _top(self, name: str) -> ResourceId:
        id_, seen = ResourceId(name), set[ResourceId]()
        while id_ in self._parents and id_ not in seen:
            seen.add(id_)
            id_ = self._parents[id_]
        return id_

    def _bound(self, start: ResourceId) -> set[ResourceId]:
        """Return all that constraints bind to a resource, directly or by others; itself, for what is in it, too."""
        bound, waiting = {start}, [start]
        while waiting:
            for each in self._beside.get(waiting.pop(), ()):
                if each not in bound:
                    bound.add(each)
                    waiting.append(each)
        return bound


def _of(plan: Plan, name: str) -> Iterator[Placement]:
    for id_, placement in plan.placements.items():
        if id_ == name or id_.rpartition(":")[0] == name:
            yield placement


def _fenced(plan: Plan) -> dict[NodeName, str]:
    """Return the nodes that a plan fences, each with the reason."""
    actions = plan.graph.actions.values()
    return {each.node: each.reason for each in actions if each.node is not None and is_node_fencing(each)}


def _on(placement: Placement) -> tuple[NodeName, ...]:
    return placement.now_on if placement.next_on is None else (*placement.now_on, placement.next_on)


def _being(names: Sequence[str]) -> str:
    return f"{_listed(names)} {'is' if len(names) == 1 else 'are'}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
