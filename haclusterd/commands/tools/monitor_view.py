"""What crm_mon shows, before it is text or XML: which sections, whose attributes, operations and failures.

Words for exit codes and endings are Pacemaker's.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from haclusterd.commands.context import Context
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import Given
from haclusterd.commands.tools.rows import NodeRow, PrimitiveRow, Row, Rows, primitives_in
from haclusterd.formats.cib_xml.status_writer import recorded, records_of
from haclusterd.model import scores
from haclusterd.model.cluster import NodeStatus
from haclusterd.model.configuration import Location, Primitive, effective
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.quorum import has_quorum
from haclusterd.model.records import replace

_NOTHING = Given(())
STACK = "haclusterd"
DC_VERSION = "2.1.5-haclusterd"
SECTIONS = ("summary", "nodes", "resources", "attributes", "operations", "failures", "fencing", "tickets", "bans")
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


class View:
    """What crm_mon shows of one CIB; its text and its XML are made of it."""

    def __init__(self, context: Context, sections: frozenset[str], given: Given = _NOTHING) -> None:
        self.context = replace(context, cib=context.cib.as_in_force())
        self.sections = sections
        self.given = given
        self.is_inactive = "inactive" in given
        self.is_by_node = "by_node" in given
        self.is_quiet = "quiet" in given
        self.rows = Rows(context)
        self.nodes = self.rows.nodes()
        self.properties = self.rows.overview.properties
        self.has_quorum = has_quorum(context.cib) if context.live is None else context.live.has_quorum
        self.primitives = tuple(self.rows.primitives())

    def shown(self, *sections: Callable[[], Iterator[str]]) -> Iterator[Iterator[str]]:
        """Yield the lines of those of all sections, in the order of `SECTIONS`, that were asked for."""
        return (lines() for name, lines in zip(SECTIONS, sections, strict=True) if name in self.sections)

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
            for number, each in sorted(kept.items())
            if not (each.is_probe and each.exit_code is ExitCode.NOT_RUNNING)
        ]

    def recorded_operations(
        self, node: str, resource: str
    ) -> Iterator[tuple[NodeStatus, ResourceHistory, OperationRecord]]:
        """Yield what is recorded, of nodes that are online; of one node or resource, or of all."""
        for _, status in self.online():
            for history in recorded(status):
                is_wanted = resource in ("", history.resource, base_of(history.resource))
                if is_wanted and node in ("", status.name):
                    yield from ((status, history, record) for record in records_of(history))

    def failures(self) -> Iterator[tuple[NodeStatus, ResourceHistory, OperationRecord]]:
        """Yield failures that are not forgotten, of nodes that are online."""
        for _, status in self.online():
            for history in recorded(status):
                for record in records_of(history):
                    is_quiet = record.is_probe and record.exit_code in _ORDINARY_PROBES
                    is_quiet = is_quiet and record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
                    if record.is_failure and not is_quiet:
                        yield status, history, record

    def on(self, node: NodeRow) -> list[PrimitiveRow]:
        """Return what runs on a node, in the order in which it was recorded there."""
        status = self.context.cib.status.nodes.get(node.name, NodeStatus(node.name))
        places = {base_of(history.resource): at for at, history in enumerate(recorded(status))}
        found = (row for row in self.primitives if node.name in row.nodes)
        return sorted(found, key=lambda row: places.get(row.id, len(places)))

    def bans(self) -> Iterator[Location]:
        """Yield the constraints that keep something away from a node, the newest first; those of the wanted prefix."""
        for each in reversed(tuple(self.context.cib.configuration.constraints.values())):
            is_wanted = each.id.startswith(self.given.text("bans"))
            if isinstance(each, Location) and each.node and each.score < 0 and is_wanted:
                yield each


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
