"""The section `status` of CIB XML: nodes, their transient attributes, what is recorded of resources, tickets."""

from haclusterd.formats.cib_xml.fail_counts import FailCounts
from haclusterd.formats.cib_xml.histories import HistoryReader
from haclusterd.formats.cib_xml.membership import is_set, judge
from haclusterd.formats.cib_xml.nodes import NodeNames
from haclusterd.formats.cib_xml.notes import Notes
from haclusterd.formats.cib_xml.sets import SetReader
from haclusterd.formats.cib_xml.tree import Element
from haclusterd.model.cluster import DesignatedController, NodeState, NodeStatus, Status, TicketState
from haclusterd.model.configuration import Bundle, Configuration, Primitive, effective
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId, Term, base_of
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.reports.codes import Code, Severity

INCARNATION = Incarnation("cib-xml", "0" * 16)
"""Of every node that is online: Pacemaker knows none."""

UNKNOWN_AGENT = AgentReference("unknown", None, "unknown")
"""Of a resource that is known by its fail counts only."""

_NODE_STATE = (
    "id", "uname", "in_ccm", "crmd", "join", "expected", "crm-debug-origin", "ha", "shutdown", "clear_shutdown",
    "node_fenced", "node_in_maintenance", "remote_node",
)  # fmt: skip
_TRANSIENT = ("instance_attributes", "utilization", "attributes")
_OUTDATED = frozenset({"probe_complete"})
"""Attributes that meant something to old releases only."""


class StatusReader:
    """Reads the whole section."""

    def __init__(self, root: Element, configuration: Configuration, names: NodeNames, notes: Notes) -> None:
        self._root = root
        self._configuration = configuration
        self._names = names
        self._remote_names = _RemoteNames(configuration, root)
        self._notes = notes
        self._sets = SetReader(root, notes)
        self._histories = HistoryReader(notes)
        properties = ClusterProperties(configuration)
        self._is_fencing_enabled = properties.boolean("fencing-enabled")
        self._is_startup_fencing = self._is_fencing_enabled and properties.boolean("startup-fencing")
        self._nodes: dict[NodeName, NodeStatus] = {}
        self._tickets: dict[str, TicketState] = {}

    def read(self) -> Status:
        """Read it, nodes in document order; a configured member without any state has not been seen."""
        for section in self._root.all("status"):
            for element in section.children:
                if element.tag == "node_state":
                    self._node_state(element)
                elif element.tag == "tickets":
                    self._tickets.update(read_tickets(element, self._notes))
                else:
                    self._notes.not_yet(element, f"<{element.tag}>", has_effect=False)
        for name, entry in self._configuration.nodes.items():
            if name not in self._nodes and not entry.is_remote:
                lost = NodeStatus(name, NodeState.LOST, detail="node is unclean", is_condemned=True)
                self._nodes[name] = lost if self._is_startup_fencing else NodeStatus(name, NodeState.LEFT)
        controller = self._names.find(self._root.get("dc-uuid"), None)
        designated = None if controller is None else DesignatedController(controller, INCARNATION, Term(1))
        return Status(controller=designated, nodes=self._nodes, tickets=self._tickets)

    def _node_state(self, element: Element) -> None:
        self._notes.expect_only(element, _NODE_STATE, ("lrm", "transient_attributes"))
        name = self._names.find(element.get("id"), element.get("uname"))
        entry = self._configuration.nodes.get(name) if name is not None else None
        written = NodeName(element.get("uname") or element.get("id") or "")
        if entry is None and (element.get("remote_node") is not None or written in self._remote_names):
            name = written
        if name is None:
            where, node = "<node_state>", element.get("uname") or element.get("id")
            self._notes.note(Code.UNKNOWN_NODE, element, severity=Severity.WARNING, where=where, node=node)
            return
        counts = FailCounts()
        attributes = self._attributes(element, counts)
        histories = self._all_histories(element, counts)
        utilization = self._utilization(element)
        if entry is None or entry.is_remote:
            self._nodes[name] = NodeStatus(
                name,
                NodeState.LEFT,
                attributes=attributes,
                utilization=utilization,
                histories=histories,
                locks=self._locks(element),
                is_remote_fenced=self._notes.number(element, "node_fenced", 0) != 0,
                is_remote_maintenance=is_set(element.get("node_in_maintenance")),
            )
            return
        membership = judge(element, attributes, is_fencing_enabled=self._is_fencing_enabled)
        self._nodes[name] = NodeStatus(
            name,
            membership.state,
            INCARNATION if membership.state is NodeState.ONLINE else None,
            since=membership.since,
            detail=membership.detail,
            is_leaving=membership.is_leaving,
            is_joining=membership.is_joining,
            is_condemned=membership.is_condemned,
            attributes=attributes,
            utilization=utilization,
            histories=histories,
            locks=self._locks(element),
        )

    def _attributes(self, element: Element, counts: FailCounts) -> dict[str, str]:
        kept: dict[str, str] = {}
        for block in element.all("transient_attributes"):
            self._notes.expect_only(block, ("id",), (*_TRANSIENT, "nvpair"))
            for stray in block.all("nvpair"):
                problem = f"the attribute {stray.get('name')}: it is in no <instance_attributes>"
                self._notes.note(Code.LEFT_OUT, stray, severity=Severity.WARNING, problem=problem)
            for name, value in effective(self._sets.read(block, "instance_attributes")).items():
                if not counts.take(name, value) and name not in _OUTDATED:
                    kept[name] = value
        return kept

    def _utilization(self, element: Element) -> dict[str, str]:
        blocks = element.all("transient_attributes")
        return effective(tuple(each for block in blocks for each in self._sets.read(block, "utilization")))

    def _locks(self, element: Element) -> dict[ResourceId, WallTime]:
        """Read what is kept for a node that was shut down cleanly, and since when."""
        recorded = (
            each for lrm in element.all("lrm") for resources in lrm.all("lrm_resources")
            for each in resources.all("lrm_resource")
        )  # fmt: skip
        found = {each.get("id") or "": self._notes.number(each, "shutdown-lock", 0) for each in recorded}
        return {ResourceId(name): WallTime(seconds * 1000) for name, seconds in found.items() if seconds > 0}

    def _all_histories(self, element: Element, counts: FailCounts) -> dict[ResourceId, ResourceHistory]:
        """Read histories in document order; then those of which nothing but failures is known."""
        found: dict[ResourceId, ResourceHistory] = {}
        for lrm in element.all("lrm"):
            for resources in lrm.all("lrm_resources"):
                for each in resources.all("lrm_resource"):
                    history = self._histories.read(each, counts)
                    if history is not None:
                        found[history.resource] = history
        for resource in counts.counts:
            if resource not in found:
                primitive = self._configuration.resources.get(base_of(resource))
                agent = primitive.agent if isinstance(primitive, Primitive) else UNKNOWN_AGENT
                found[resource] = ResourceHistory(resource, agent, fail_counts=counts.of(resource))
        return found


class _RemoteNames:
    """Names of remote and guest nodes, which resources make and the section `nodes` need not name.

    A connection that is no longer configured, but recorded, still leads to its node.
    """

    def __init__(self, configuration: Configuration, root: Element) -> None:
        self._named: set[str] = set()
        self._bundles: set[str] = set()
        for resource in configuration.resources.values():
            self._named.update(value for block in resource.meta for name, value in block.pairs if name == "remote-node")
            if isinstance(resource, Primitive) and str(resource.agent) == "ocf:pacemaker:remote":
                self._named.add(resource.id)
            elif isinstance(resource, Bundle):
                self._bundles.add(resource.id)
        for section in root.all("status"):
            recorded = (each for each in section.every() if each.tag == "lrm_resource")
            self._named.update(each.get("id") or "" for each in recorded if each.get("type") == "remote")

    def __contains__(self, name: str) -> bool:
        bundle, _dash, number = name.rpartition("-")
        return name in self._named or (number.isdecimal() and bundle in self._bundles)


_STATE = ("id", "granted", "standby", "last-granted")


def read_tickets(section: Element, notes: Notes) -> dict[str, TicketState]:
    """Read the section `tickets`, in document order."""
    notes.expect_only(section, (), ("ticket_state",))
    found: dict[str, TicketState] = {}
    for element in section.all("ticket_state"):
        identifier = notes.required(element, "id")
        if identifier is not None:
            found[identifier] = TicketState(
                identifier,
                is_set(element.get("granted")),
                is_set(element.get("standby")),
                WallTime(notes.number(element, "last-granted", 0) * 1000),
                {name: value for name, value in element.attributes.items() if name not in _STATE},
            )
    return found
