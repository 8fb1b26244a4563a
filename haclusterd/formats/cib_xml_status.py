"""The section `status` of CIB XML: nodes, their transient attributes, what is recorded of resources."""

from dataclasses import replace

from haclusterd.formats.cib_xml_digests import Parameters
from haclusterd.formats.cib_xml_histories import FailCounts, HistoryReader, is_old_fail_count, is_outdated
from haclusterd.formats.cib_xml_membership import is_set, judge
from haclusterd.formats.cib_xml_nodes import NodeNames
from haclusterd.formats.cib_xml_notes import Notes
from haclusterd.formats.cib_xml_sets import SetReader
from haclusterd.formats.cib_xml_tree import Element
from haclusterd.model.activity import history_says_active
from haclusterd.model.cluster import DesignatedController, NodeState, NodeStatus, Status
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.history import ResourceHistory
from haclusterd.model.ids import Incarnation, NodeName, ResourceId, Term
from haclusterd.model.properties import ClusterProperties
from haclusterd.reports.codes import Code, Severity

INCARNATION = Incarnation("cib-xml", "0" * 16)
"""Of every node that is online: Pacemaker knows none."""

_NODE_STATE = (
    "id", "uname", "in_ccm", "crmd", "join", "expected", "crm-debug-origin", "ha", "shutdown", "clear_shutdown",
    "node_fenced", "node_in_maintenance", "remote_node",
)  # fmt: skip


class StatusReader:
    """Reads the whole section."""

    def __init__(self, root: Element, configuration: Configuration, names: NodeNames, notes: Notes) -> None:
        self._root = root
        self._configuration = configuration
        self._names = names
        self._notes = notes
        self._sets = SetReader(root, notes)
        self._histories = HistoryReader(Parameters(configuration), notes)
        properties = ClusterProperties(configuration)
        self._is_fencing_enabled = properties.boolean("fencing-enabled")
        self._is_startup_fencing = self._is_fencing_enabled and properties.boolean("startup-fencing")
        self._nodes: dict[NodeName, NodeStatus] = {}

    def read(self) -> Status:
        """Read it; a configured node without any state has not been seen."""
        for section in self._root.all("status"):
            for element in section.children:
                if element.tag == "node_state":
                    self._node_state(element)
                elif element.children or element.tag != "tickets":
                    self._notes.not_yet(element, f"<{element.tag}>")
        for name in self._configuration.nodes:
            if name not in self._nodes:
                lost = NodeStatus(name, NodeState.LOST, detail="node is unclean")
                self._nodes[name] = lost if self._is_startup_fencing else NodeStatus(name, NodeState.LEFT)
        controller = self._names.find(self._root.get("dc-uuid"), None)
        designated = None if controller is None else DesignatedController(controller, INCARNATION, Term(1))
        return Status(controller=designated, nodes=self._nodes)

    def _node_state(self, element: Element) -> None:
        name = self._names.find(element.get("id"), element.get("uname"))
        if element.get("remote_node") is not None:
            self._notes.not_yet(element, "the state of a Pacemaker Remote node")
            return
        if name is None:
            where, node = "<node_state>", element.get("uname") or element.get("id")
            self._notes.note(Code.UNKNOWN_NODE, element, severity=Severity.WARNING, where=where, node=node)
            return
        self._notes.expect_only(element, _NODE_STATE, ("lrm", "transient_attributes"))
        counts = FailCounts()
        attributes = self._attributes(element, counts)
        membership = judge(element, attributes, is_fencing_enabled=self._is_fencing_enabled)
        histories = self._all_histories(element, counts)
        made = NodeStatus(
            name,
            membership.state,
            INCARNATION if membership.state is NodeState.ONLINE else None,
            detail=membership.detail,
            is_leaving=membership.is_leaving,
            attributes=attributes,
            histories=histories,
        )
        self._nodes[name] = self._judged_by_histories(made)

    def _attributes(self, element: Element, counts: FailCounts) -> dict[str, str]:
        kept: dict[str, str] = {}
        for block in element.all("transient_attributes"):
            self._notes.expect_only(block, ("id",), ("instance_attributes", "attributes"))
            for name, value in effective(self._sets.read(block, "instance_attributes")).items():
                if counts.take(name, value) or is_outdated(name):
                    continue
                if is_old_fail_count(name):
                    self._notes.not_yet(block, f"the old attribute {name}", has_effect=False)
                else:
                    kept[name] = value
        return kept

    def _all_histories(self, element: Element, counts: FailCounts) -> dict[ResourceId, ResourceHistory]:
        found: dict[ResourceId, ResourceHistory] = {}
        for lrm in element.all("lrm"):
            for resources in lrm.all("lrm_resources"):
                for each in resources.all("lrm_resource"):
                    history = self._histories.read(each, counts)
                    if history is not None:
                        found[history.resource] = history
        for resource in counts.counts:
            primitive = self._configuration.resources.get(resource)
            if resource not in found and isinstance(primitive, Primitive):
                found[resource] = ResourceHistory(resource, primitive.agent, fail_counts=counts.of(resource))
        return found

    def _judged_by_histories(self, made: NodeStatus) -> NodeStatus:
        """A node that is away although something is recorded as running there is lost."""
        if made.state is not NodeState.LEFT or not self._is_fencing_enabled or self._is_in_maintenance(made):
            return made
        active = [resource for resource, history in made.histories.items() if history_says_active(history)]
        if not active:
            return made
        return replace(made, state=NodeState.LOST, detail=f"{active[0]} is thought to be active there")

    def _is_in_maintenance(self, made: NodeStatus) -> bool:
        entry = self._configuration.nodes[made.name]
        return is_set({**effective(entry.attributes), **made.attributes}.get("maintenance"))
