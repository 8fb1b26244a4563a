"""What crm_mon shows, before it is text or XML: which sections, whose attributes, operations and failures.

Words for exit codes and endings are Pacemaker's.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from haclusterd.commands.context import Context
from haclusterd.commands.planning.planning import standing
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import Given
from haclusterd.commands.tools.foreign_rows import rows_of
from haclusterd.commands.tools.rows import (
    BundleRow,
    CloneRow,
    GroupRow,
    NodeRow,
    PrimitiveRow,
    Row,
    primitives_in,
)
from haclusterd.formats.cib_xml.status_writer import recorded, records_of, with_probes
from haclusterd.model import scores
from haclusterd.model.cluster import NodeStatus
from haclusterd.model.configuration import Configuration, Location, Primitive, effective
from haclusterd.model.fencing import FenceOrder, FenceOutcome, FencingRecord
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import ConstraintId, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode, Role
from haclusterd.model.quorum import has_quorum
from haclusterd.model.records import dataclass, replace

_NOTHING = Given(())
STACK = "haclusterd"
DC_VERSION = "2.1.5-haclusterd"
SUMMARY = frozenset({"stack", "dc", "times", "counts", "maint-mode"})
FENCING = frozenset({"fencing-failed", "fencing-pending", "fencing-succeeded"})
_BLOCKS = (
    SUMMARY | {"options"}, {"nodes"}, {"resources"}, {"attributes"}, {"operations", "failcounts"}, {"failures"},
    FENCING, {"tickets"}, {"bans"},
)  # fmt: skip
"""What stands together in the answer, in order."""
SECTIONS = tuple(section for block in _BLOCKS for section in sorted(block))
"""All that can be chosen or left out (`crm_mon --include`, `--exclude`)."""
_CODE_WORDS = {
    ExitCode.ARGUMENTS: "invalid parameter",
    ExitCode.UNIMPLEMENTED: "unimplemented feature",
    ExitCode.PERMISSIONS: "insufficient privileges",
    ExitCode.FAILED_PROMOTED: "promoted (failed)",
    ExitCode.DEGRADED_PROMOTED: "promoted (degraded)",
}
_STATUS_WORDS = {
    ExecutionStatus.PENDING: "pending",
    ExecutionStatus.CANCELLED: "Cancelled",
    ExecutionStatus.TIMEOUT: "Timed Out",
    ExecutionStatus.NOT_SUPPORTED: "NOT SUPPORTED",
    ExecutionStatus.UNKNOWN: "Error",
    ExecutionStatus.HARD_ERROR: "Hard error",
    ExecutionStatus.FATAL_ERROR: "Fatal error",
    ExecutionStatus.NOT_INSTALLED: "Not installed",
    ExecutionStatus.NOT_CONNECTED: "Internal communication failure",
    ExecutionStatus.INVALID: "Cannot execute now",
    ExecutionStatus.NO_FENCE_DEVICE: "No fence device",
    ExecutionStatus.NO_SECRETS: "CIB secrets unavailable",
}
_ORDINARY_PROBES = frozenset({ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.NOT_INSTALLED, ExitCode.PROMOTED})
"""What a probe may answer without being listed as a failure, expected or not."""


@dataclass(frozen=True, slots=True)
class Ban:
    """What keeps a resource away from a node."""

    id: str
    """Of a constraint, or of its rule."""
    resource: str
    node: NodeName
    score: int
    is_of_promoted: bool


def _prefix(given: Given) -> str:
    """Return how the ids of shown bans begin: the last that was given with `-L` or `--include`."""
    words = (word.strip() for name, text in given.pairs for word in (text.split(",") if name == "include" else
             [f"bans:{text}"] if name == "bans" else []))  # fmt: skip
    return next((word.partition(":")[2] for word in reversed([*words]) if word.partition(":")[0] == "bans"), "")


Line = TypeVar("Line")


class View:
    """What crm_mon shows of one CIB; its text and its XML are made of it."""

    is_xml = False

    def __init__(
        self, context: Context, sections: frozenset[str], given: Given = _NOTHING, *, has_pending: bool = True
    ) -> None:
        """`has_pending`: of a CIB of Pacemaker, what is under way is shown as such."""
        self.context = replace(context, cib=context.cib.as_in_force())
        self.sections = sections
        self.given = given
        self.is_inactive = "inactive" in given
        self.is_by_node = "by_node" in given
        self.is_quiet = "quiet" in given
        self.has_whole_history = self.is_xml or given.text("fence_history") == "3"
        self.prefix = _prefix(given)
        self.rows = rows_of(context, has_pending=has_pending)
        self.all_nodes = self.rows.nodes()
        names = self._meant(given.text("node"))
        self.nodes = tuple(each for each in self.all_nodes if names is None or names & {each.name, each.number})
        self.has_all_nodes = names is None
        self.wanted = self._meant(given.text("resource"))
        self.resources = tuple(self._chosen())
        self.properties = self.rows.overview.properties
        self.has_quorum = has_quorum(context.cib) if context.live is None else context.live.has_quorum
        self.primitives = tuple(self.rows.primitives())

    def shown(self, *sections: Callable[[], Iterator[Line]]) -> Iterator[Iterator[Line]]:
        """Yield the lines, or elements, of those of all blocks, in their order, of which something was asked for."""
        return (lines() for block, lines in zip(_BLOCKS, sections, strict=True) if block & self.sections)

    def _meant(self, name: str) -> frozenset[str] | None:
        """Return what a name of one thing or of a tag stands for; None: everything."""
        tag = self.context.cib.configuration.tags.get(name)
        return (frozenset({name}) if tag is None else frozenset(tag.references)) if name else None

    def _chosen(self) -> Iterator[Row]:
        """Yield the resources that are shown, without those of their parts that are not."""
        for row in self.rows.resources:
            found = _of_name(row, self.wanted)
            found = found if self.has_all_nodes or found is None else self._on_chosen_nodes(found)
            if found is not None:
                yield found

    def _on_chosen_nodes(self, row: Row) -> Row | None:
        """Leave out what is active, and only on other nodes."""
        names = {each.name for each in self.nodes}
        parts = tuple(primitives_in(row))
        everywhere = {node for each in parts for node in each.nodes}
        if not self.is_by_node and everywhere and not everywhere & names:
            return None
        if not isinstance(row, CloneRow):
            return row
        nodes = ({node for part in primitives_in(each) for node in part.nodes} for each in row.instances)
        kept = (each for each, own in zip(row.instances, nodes, strict=True) if not own or own & names)
        return replace(row, instances=tuple(kept))

    def _is_shown(self, resource: ResourceId) -> bool:
        """Tell whether what happened to a primitive is shown."""
        return self.wanted is None or any(resource == part.id for row in self.resources for part in primitives_in(row))

    def is_partly_idle(self, row: Row) -> bool:
        """Tell whether something of a resource does not run."""
        return any(not each.is_active for each in primitives_in(row))

    def online(self) -> Iterator[tuple[NodeRow, NodeStatus]]:
        """Yield the nodes that are online, with their status."""
        for node in self.nodes:
            status = self.context.cib.status.nodes.get(node.name)
            if node.is_online and status is not None:
                yield node, status

    def shown_attributes(self, status: NodeStatus) -> dict[str, str]:
        """Return a node's attributes, those that agents and administrators see."""
        entry = self.context.cib.configuration.nodes.get(status.name)
        both = {**({} if entry is None else effective(entry.attributes)), **status.attributes}
        hidden = ("standby", "maintenance", "terminate")
        return {name: value for name, value in sorted(both.items()) if name[:1] != "#" and name not in hidden}

    def threshold(self, history: ResourceHistory) -> int:
        """Return a resource's migration-threshold."""
        resource = self.context.cib.configuration.resources.get(base_of(history.resource))
        meta = self.rows.overview.meta(resource) if isinstance(resource, Primitive) else {}
        try:
            found = scores.parse(meta.get("migration-threshold", "INFINITY"))
        except ValueError:
            found = scores.INFINITY
        return found or scores.INFINITY

    def operations(self, history: ResourceHistory) -> list[tuple[int, str, int, OperationRecord]]:
        """Return (call, task, interval in ms, record) of one history, oldest first."""
        kept = {each.call_id: each for each in records_of(history)}
        return [
            (number, "probe" if each.is_probe else each.operation, each.interval_ms, each)
            for number, each in sorted(kept.items(), key=lambda item: (item[0] < 0, item[0]))
            if not (each.is_probe and each.exit_code is ExitCode.NOT_RUNNING)
        ]

    def recorded_operations(
        self, node: str, resource: str
    ) -> Iterator[tuple[NodeStatus, ResourceHistory, OperationRecord]]:
        """Yield what is recorded, of nodes that are online; of one node or resource, or of all."""
        nodes = with_probes(self.context.cib).status.nodes
        for _, status in self.online():
            for history in recorded(nodes[status.name]):
                is_wanted = resource in ("", history.resource, base_of(history.resource))
                if is_wanted and node in ("", status.name):
                    yield from ((status, history, record) for record in records_of(history))

    def histories_on(self, status: NodeStatus) -> Iterator[ResourceHistory]:
        """Yield what is recorded of the shown resources on one node."""
        return (history for history in recorded(status) if self._is_shown(base_of(history.resource)))

    def failures(self) -> Iterator[tuple[NodeStatus, ResourceHistory, OperationRecord]]:
        """Yield failures that are not forgotten, of nodes that are online."""
        for _, status in self.online():
            for history in self.histories_on(status):
                for record in records_of(history):
                    is_quiet = record.is_probe and record.exit_code in _ORDINARY_PROBES
                    is_quiet = is_quiet and record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
                    if record.is_failure and not is_quiet:
                        yield status, history, record

    def on(self, node: NodeRow) -> list[PrimitiveRow]:
        """Return what runs on a node, in the order in which it was recorded there; all of what is shown in part."""
        places = self.rows.places_on(node.name)
        rows = (row for row in self.rows.resources if _of_name(row, self.wanted) is not None)
        parts = (part for row in rows for part in primitives_in(row))
        found = (part for part in parts if node.name in part.nodes and not part.is_connection)
        return sorted(found, key=lambda row: places.get(row.id, len(places)))

    def fencings(self) -> tuple[list[FenceOrder], list[FencingRecord]]:
        """Return what is being fenced, and what was, the last first; below level 3 the last of each kind only."""
        names = {each.name for each in self.nodes}
        status = self.context.cib.status
        orders = [each for _, each in sorted(status.fence_orders.items()) if each.target in names]
        found: dict[object, FencingRecord] = {}
        for each in reversed(status.fencing_history):
            shown = "fencing-succeeded" if is_done(each) else "fencing-failed"
            if each.target in names and shown in self.sections:
                kind = (each.target, each.action, each.executor, is_done(each))
                found.setdefault(len(found) if self.has_whole_history else kind, each)
        return (orders if "fencing-pending" in self.sections else []), list(found.values())

    def bans(self) -> Iterator[Ban]:
        """Yield what keeps resources away from nodes, the newest first; of the wanted prefix and resources."""
        constraints = self.context.cib.configuration.constraints.values()
        locations = [each for each in constraints if isinstance(each, Location) and _may_ban(each)]
        known = self.context.cib.configuration.resources
        if all(each.resource in known and not each.rules for each in locations):
            found = [Ban(each.id, each.resource, each.node, each.score, each.role == "Promoted") for each in locations]
        else:
            found = list(_judged(self.context))
        names = self._asked_for()
        for ban in reversed(found):
            is_wanted = ban.id.startswith(self.prefix) and (names is None or ban.resource in names)
            if ban.score < 0 and is_wanted and ban.node in self.rows.numbers:
                yield ban

    def _asked_for(self) -> frozenset[str] | None:
        """Return the resources that were asked for by name, with what they contain."""
        if self.wanted is None:
            return None
        whole = [row for row in self.rows.resources if row.id in self.wanted]
        return self.wanted | {part.id for row in whole for part in primitives_in(row)}


def _may_ban(location: Location) -> bool:
    """Tell whether a constraint may keep something away; else nobody needs to judge it, which takes long."""
    if location.rules:
        return any(rule.score_attribute is not None or (rule.score or 0) < 0 for rule in location.rules)
    return min([location.score, *(each.score or 0 for each in location.sets)]) < 0


def _judged(context: Context) -> Iterator[Ban]:
    """Yield what location constraints say of nodes as the scheduler understands them, in the order of the document."""
    from haclusterd.scheduler.schedule import find_constraints

    cib = context.cib
    counts: dict[tuple[str, str], int] = {}
    for each in find_constraints(cib, context.now, standing(context).options)[1]:
        key = (each.source, each.resource.id)
        number = counts[key] = counts.get(key, -1) + 1
        identifier = source_of(cib.configuration, each.source, number)
        for node, score in sorted(each.scores.items()):
            yield Ban(identifier, each.resource.id, node, score, each.role is Role.PROMOTED)


def source_of(configuration: Configuration, identifier: str, number: int) -> str:
    """Return the id of what a preference comes from: of a location's rule, if it has rules."""
    constraint = configuration.constraints.get(ConstraintId(identifier))
    rules = constraint.rules if isinstance(constraint, Location) else ()
    return (rules[number % len(rules)].id or identifier) if rules else identifier


def _of_name(row: Row, wanted: frozenset[str] | None) -> Row | None:
    """Leave out what was not asked for; None: nothing was. Of a clone, an instance may be meant (`web:0`)."""
    if wanted is None or row.id in wanted:
        return row
    if isinstance(row, BundleRow):
        names = {part.id for part in primitives_in(row)}
        kept_replicas = tuple(each for each in row.replicas if {each.shown.id, *names} & wanted)
        return replace(row, replicas=kept_replicas) if kept_replicas else None
    if isinstance(row, CloneRow):
        if row.child in wanted or any(part.id in wanted for part in primitives_in(row)):
            return row
        numbered = enumerate(row.instances)
        kept = tuple(each for at, each in numbered if _instance_names(each, at) & wanted)
        return replace(row, instances=kept) if kept else None
    if isinstance(row, GroupRow):
        members = tuple(each for each in row.members if each.id in wanted)
        return replace(row, members=members) if members else None
    return None


def _instance_names(row: PrimitiveRow | GroupRow, number: int) -> set[str]:
    own = {row.id} if isinstance(row, GroupRow) else set[str]()
    return own | {f"{part.id}:{number}" for part in primitives_in(row)}


def is_done(record: FencingRecord) -> bool:
    """Tell whether a fencing succeeded."""
    return record.outcome in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED, FenceOutcome.UNFENCED)


def code_words(code: ExitCode) -> str:
    """Write an exit code as Pacemaker's tools do."""
    return _CODE_WORDS.get(code, code.name.lower().replace("_", " "))


def status_words(record: OperationRecord) -> str:
    """Write how an execution went as Pacemaker's tools do."""
    return _STATUS_WORDS.get(record.status, "complete")


def instances_configured(view: View) -> tuple[int, int, int]:
    """Return how many instances there are, how many of them are disabled, how many blocked."""
    disabled = sum(row.is_disabled for row in view.primitives)
    return len(view.primitives), disabled, sum(row.is_blocked for row in view.primitives)


def fail_count(history: ResourceHistory) -> tuple[int, WallTime]:
    """Return how often a resource failed on a node, and when last."""
    counts = history.fail_counts.values()
    last = max((each.failed_at for each in counts), default=WallTime(0))
    return min(scores.INFINITY, sum(each.count for each in counts)), last


def stamp(at: WallTime) -> str:
    """Write a time in UTC, to the second."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
