"""The state of the cluster as the text of crm_mon, and the parts of it that other tools print."""

from collections.abc import Iterator, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import Given
from haclusterd.commands.tools.monitor_view import (
    DC_VERSION,
    FENCING,
    STACK,
    View,
    code_words,
    fail_count,
    instances_configured,
    is_done,
    stamp,
    status_words,
)
from haclusterd.commands.tools.rows import CloneRow, GroupRow, NodeRow, PrimitiveRow, Row, primitives_in
from haclusterd.formats.cib_xml.status_writer import FEATURE_SET
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.fencing import FenceAction, FenceOrder, FencingRecord
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ocf import ActionName, ExecutionStatus
from haclusterd.reports.rendering import counted

_POLICIES = {
    "stop": "Stop ALL resources", "freeze": "Freeze resources", "ignore": "Ignore", "suicide": "Suicide",
    "demote": "Demote promotable resources and stop all other resources",
}  # fmt: skip


class TextView(View):
    """The state as text."""

    def __init__(self, context: Context, sections: frozenset[str], given: Given) -> None:
        super().__init__(context, sections, given)
        self.is_brief = "brief" in given
        self.is_detailed = "detail" in given
        self.has_long_failures = self.is_detailed
        self.has_times = "timing" in given
        self.has_places = True
        self.has_operations = "operations" in sections

    def lines(self) -> Iterator[str]:
        """Yield the text, sections apart."""
        sections = self.shown(
            self._summary, self._nodes, self._resources, self._attributes, self._history,
            self._failures, self._fencing, self._tickets, self._bans,
        )  # fmt: skip
        is_first = True
        for section in sections:
            block = list(section)
            if block:
                yield from (() if is_first else ("",))
                yield from block
                is_first = False

    def _summary(self) -> Iterator[str]:
        lines = [*self._summary_of_cluster(), *(self._options() if "options" in self.sections else ())]
        if lines:
            yield from ("Cluster Summary:", *lines)
        if "maint-mode" in self.sections and self.properties.boolean("maintenance-mode"):
            yield ""
            yield "              *** Resource management is DISABLED ***"
            yield "  The cluster will not attempt to start, stop or recover services"

    def _summary_of_cluster(self) -> Iterator[str]:
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        if "stack" in self.sections:
            yield f"  * Stack: {STACK}"
        if "dc" in self.sections:
            quorum = "partition with quorum" if self.has_quorum else "partition WITHOUT quorum"
            acting = None if self.rows.dc is None else self._named(self.rows.node(self.rows.dc))
            dc = "NONE" if acting is None else f"{acting} (version {DC_VERSION}) - {quorum}"
            yield f"  * Current DC: {dc}"
        if "times" in self.sections and not self.is_quiet:
            yield f"  * Last updated: {written_at(self.context.now)}"
            by = f" by {user} via crm on {origin}" if user else ""
            yield f"  * Last change:  {written_at(version.at) if version.at else ''}{by}"
        if "counts" in self.sections:
            yield f"  * {counted(len(self.all_nodes), 'node')} configured"
            count, disabled, blocked = instances_configured(self)
            more = [f"{disabled} DISABLED"] if disabled else []
            more += [f"{blocked} BLOCKED from further action due to failure"] if blocked else []
            words = f" ({', '.join(more)})" if more else ""
            yield f"  * {counted(count, 'resource instance')} configured{words}"

    def _options(self) -> Iterator[str]:
        yield f"  * STONITH of failed nodes {'en' if self.properties.boolean('fencing-enabled') else 'dis'}abled"
        yield f"  * Cluster is {'' if self.properties.boolean('symmetric-cluster') else 'a'}symmetric"
        policy = self.properties.text("no-quorum-policy")
        yield f"  * No quorum policy: {_POLICIES.get(policy, policy)}"

    def _nodes(self) -> Iterator[str]:
        if not self.nodes:
            return
        yield "Node List:"
        if self.is_by_node:
            for node in self.nodes:
                yield f"  * Node {self._named(node)}: {self._node_words(node)}:"
                yield "    * Resources:"
                if self.is_brief:
                    yield from self._counted(self.on(node), "      ", node=node.name)
                else:
                    yield from (f"      * {self.words(row, where=False)}" for row in self.on(node))
            return
        online = [node.name for node in self.nodes if self._node_words(node) == "online"]
        offline = [node.name for node in self.nodes if self._node_words(node) == "OFFLINE" and not self.is_detailed]
        for node in self.nodes:
            if node.name not in online and node.name not in offline:
                yield f"  * Node {self._named(node)}: {self._node_words(node)}"
        if online:
            yield f"  * Online: [ {' '.join(online)} ]"
        if offline:
            yield f"  * OFFLINE: [ {' '.join(offline)} ]"

    def _named(self, node: NodeRow) -> str:
        return f"{node.name} ({node.number})" if self.is_detailed else node.name

    def _node_words(self, node: NodeRow) -> str:
        return _node_words(node) + (f", feature set {FEATURE_SET}" if self.is_detailed and node.is_online else "")

    def _resources(self) -> Iterator[str]:
        shown: list[str] = []
        if self.is_brief and not self.is_by_node:
            alone = [row for row in self.resources if isinstance(row, PrimitiveRow)]
            shown += self._counted(alone, "  ", has_totals=self.is_inactive)
        for row in self.resources:
            if self.is_by_node and not self.is_partly_idle(row):
                continue
            if isinstance(row, PrimitiveRow) and self.is_brief and not self.is_by_node:
                continue
            shown += self.row_lines(row, 1)
        if self.is_by_node:
            if self.is_inactive and (shown or self.wanted is not None):
                yield from ("Inactive Resources:", *(shown or ["  * No inactive resources"]))
            return
        yield "Full List of Resources:" if self.is_inactive else "Active Resources:"
        yield from shown or ["  * No resources" if self.is_inactive else "  * No active resources"]

    def _counted(
        self, rows: Sequence[PrimitiveRow], pad: str, *, node: str = "", has_totals: bool = False
    ) -> Iterator[str]:
        """Yield how many primitives of each agent are active, node by node (crm_mon --brief)."""
        for agent in sorted({row.agent for row in rows}):
            of_agent = [row for row in rows if row.agent == agent]
            places = sorted({each for row in of_agent if row.is_active for each in row.nodes if node in ("", each)})
            total = f"/{len(of_agent)}" if has_totals else ""
            for place in places:
                count = sum(place in row.nodes for row in of_agent if row.is_active)
                yield f"{pad}* {count}{total}\t({agent}):\tActive {'' if node else place}"
            if has_totals and not places:
                yield f"{pad}* 0{total}\t({agent}):\tActive"

    def row_lines(self, row: Row, level: int) -> Iterator[str]:
        """Yield a resource with what it contains; nothing of what does not run, unless that is wanted."""
        if not self.is_inactive and not any(each.is_active for each in primitives_in(row)):
            return
        pad = "  " * level
        if isinstance(row, PrimitiveRow):
            yield f"{pad}* {self.words(row, where=self.has_places)}"
        elif isinstance(row, GroupRow):
            idle = 0 if self.is_inactive else sum(not each.is_active for each in row.members)
            hidden = f" ({counted(idle, 'member')} inactive)" if idle else ""
            yield f"{pad}* Resource Group: {row.id}{_flags(row)}{hidden}:"
            if self.is_brief:
                yield from self._counted(row.members, f"{pad}  ", has_totals=True)
                return
            for member in row.members:
                yield from self.row_lines(member, level + 1)
        else:
            kind = " (promotable" if row.is_promotable else ""
            kind += ", unique" if row.is_unique and kind else " (unique" if row.is_unique else ""
            kind += ", " if kind and _flags(row) else ") " if kind else ""
            flags = _flags(row).strip(" ()")
            head = f"{kind.rstrip()} {flags})" if kind.endswith(", ") else f"{kind.rstrip()}{_flags(row)}"
            yield f"{pad}* Clone Set: {row.id} [{row.child}]{head}:"
            if self.is_detailed:
                yield from (line for each in row.instances for line in self._instance(each, level + 1))
            else:
                yield from self._clone(row, level + 1)

    def _instance(self, row: PrimitiveRow | GroupRow, level: int) -> Iterator[str]:
        if isinstance(row, PrimitiveRow):
            yield f"{'  ' * level}* {self.words(row, where=self.has_places)}"
        else:
            yield from self.row_lines(row, level)

    def _clone(self, row: CloneRow, level: int) -> Iterator[str]:
        pad = "  " * level
        by_role: dict[str, list[str]] = {}
        for each in row.instances:
            role, node = self._plain(each)
            if role:
                by_role.setdefault(role, []).append(node)
            elif any(part.is_active for part in primitives_in(each)):
                yield from self.row_lines(each, level)
        for role in ("Promoted", "Started", "Unpromoted"):
            if role in by_role:
                by_wish = " (target-role)" if role == "Unpromoted" and row.is_disabled else ""
                yield f"{pad}* {role}{by_wish}: [ {' '.join(sorted(by_role[role]))} ]"
        used = {
            node for each in self._whole(row).instances for part in primitives_in(each) for node in part.nodes
            if part.is_managed or self.rows.node(node).is_online
        }  # fmt: skip
        free = [node.name for node in self.nodes if node.name not in used]
        if free and self.is_inactive and not row.is_unique:
            by_wish = " (disabled)" if row.target_role.lower() == "stopped" else ""
            yield f"{pad}* Stopped{by_wish}: [ {' '.join(free)} ]"

    def _whole(self, row: CloneRow) -> CloneRow:
        """Return a clone with the instances that are not shown."""
        return next((each for each in self.rows.resources if isinstance(each, CloneRow) and each.id == row.id), row)

    def _plain(self, row: PrimitiveRow | GroupRow) -> tuple[str, str]:
        """Return the role and node of an instance about which there is nothing else to say; empty: there is."""
        parts = list(primitives_in(row))
        nodes = {node for part in parts for node in part.nodes}
        roles = {part.role for part in parts}
        is_plain = (
            len(nodes) == 1
            and len(roles) == 1
            and all(part.is_active and part.is_managed and not part.is_failed for part in parts)
            and roles <= {"Started", "Promoted", "Unpromoted"}
            and not self.rows.node(next(iter(nodes))).is_unclean
        )
        return (roles.pop(), nodes.pop()) if is_plain else ("", "")

    def words(self, row: PrimitiveRow, *, where: bool) -> str:
        """Write one primitive, with the nodes where it runs or without."""
        role = "FAILED" if row.is_failed and row.role in ("Started", "Unpromoted") else row.role
        role = f"FAILED {row.role}" if row.is_failed and row.role == "Promoted" else role
        place = ""
        if where and len(row.nodes) == 1:
            place = f" {row.nodes[0]}"
        elif where and row.nodes:
            place = f" [ {' '.join(row.nodes)} ]"
        is_sure = not where or len(row.nodes) != 1 or self.rows.node(row.nodes[0]).is_online
        flags = [] if is_sure else ["UNCLEAN"]
        flags += ["LOCKED"] if row.is_locked else []
        is_stopped = row.target_role.lower() == "stopped"
        flags += ["disabled" if is_stopped else f"target-role:{row.target_role}"] if row.is_disabled else []
        flags += ["blocked"] if row.is_blocked else []
        flags += ["unmanaged"] if not row.is_managed and not row.is_blocked else []
        words = f" ({', '.join(flags)})" if flags else ""
        orphan = " ORPHANED" if row.is_orphaned else ""
        return f"{row.id}\t({row.agent}):\t{orphan} {role}{place}{words}"

    def _attributes(self) -> Iterator[str]:
        lines: list[str] = []
        for node, status in self.online():
            shown = self.shown_attributes(status)
            if shown:
                lines.append(f"  * Node: {self._named(node)}:")
                lines += (f"    * {name:<32}\t: {value:<10}" for name, value in shown.items())
        if lines:
            yield from ("Node Attributes:", *lines)

    def _history(self) -> Iterator[str]:
        if not any(node.is_online for node in self.nodes):
            return
        yield "Operations:" if self.has_operations else "Migration Summary:"
        for node, status in self.online():
            lines: list[str] = []
            for history in self.histories_on(status):
                count, failed_at = fail_count(history)
                if not self.operations(history) or (not self.has_operations and not count):
                    continue
                words = f" fail-count={count} last-failure='{written_at(failed_at)}'" if count else ""
                end = ":" if self.has_operations else ""
                lines.append(f"    * {history.resource}: migration-threshold={self.threshold(history)}{words}{end}")
                if self.has_operations:
                    lines += (f"      * {text}" for text in self._operation_words(history))
            if lines:
                yield f"  * Node: {self._named(node)}:"
                yield from lines

    def _operation_words(self, history: ResourceHistory) -> Iterator[str]:
        for number, task, interval_ms, record in self.operations(history):
            text = f"({number}) {task}"
            text += ":" if interval_ms or self.has_times else ""
            text += f' interval="{interval_ms}ms"' if interval_ms else ""
            if self.has_times:
                text += f' last-rc-change="{written_at(record.changed_at)}" exec-time="{record.executed_ms}ms"'
                code = record.exit_code
                text += f' queue-time="{record.queued_ms}ms" rc={code.value} ({code_words(code)})'
            yield text

    def _failures(self) -> Iterator[str]:
        words = _failure_details if self.has_long_failures else _failure_words
        lines = [words(*each) for each in self.failures()]
        if lines:
            yield from ("Failed Resource Actions:", *lines)

    def _fencing(self) -> Iterator[str]:
        orders, records = self.fencings()
        pending = [f"  * {self._fencing_words(each)}" for each in orders]
        failed = [f"  * {self._fencing_words(each)}" for each in records if not is_done(each)]
        done = [f"  * {self._fencing_words(each)}" for each in records if is_done(each)]
        is_history = "fencing-succeeded" in self.sections
        yield from ("Failed Fencing Actions:", *failed) if failed else ()
        if pending or done:
            yield from ("",) if failed else ()
            yield from ("Fencing History:" if is_history else "Pending Fencing Actions:", *pending, *done)

    def _fencing_words(self, fencing: FenceOrder | FencingRecord) -> str:
        is_whole = self.sections >= FENCING
        if self.has_long_failures:
            return fencing_details(fencing, self.context.cib, is_whole=is_whole)
        by, at = "", ""
        if isinstance(fencing, FencingRecord):
            by = f" by {fencing.executor}" if fencing.executor else ""
            at = f" at {stamp(fencing.ended_at)}{_later(fencing, self.context.cib)}"
        word = f"{'' if is_whole else 'last '}{_fencing_state(fencing)}{at}"
        return f"{_FENCING_WORDS[fencing.action]} of {fencing.target}{by} for {_CLIENT}@{fencing.executor or ''} {word}"

    def _tickets(self) -> Iterator[str]:
        tickets = sorted(self.context.cib.status.tickets.items())
        if tickets:
            yield "Tickets:"
        for name, state in tickets:
            since = f' last-granted="{written_at(state.last_granted)}"' if state.last_granted else ""
            word = "granted" if state.is_granted else "revoked"
            yield f"  * {name}: {word}{' [standby]' if state.is_standby else ''}{since}"

    def _bans(self) -> Iterator[str]:
        found = list(self.bans())
        if found:
            yield "Negative Location Constraints:"
        for each in found:
            only = " in Promoted role" if each.is_of_promoted else ""
            node = self._named(self.rows.node(each.node))
            yield f"  * {each.id}\tprevents {each.resource} from running{only} on {node}"


def fencing_details(fencing: FenceOrder | FencingRecord, cib: Cib, *, is_whole: bool) -> str:
    """Return what became of a fencing in detail; `is_whole`: among all, not as the last of its kind."""
    state, origin = _fencing_state(fencing), f"client={_CLIENT}, origin={fencing.executor or ''}"
    what = f"{_FENCING_WORDS[fencing.action]} of {fencing.target} {state}: "
    if isinstance(fencing, FenceOrder):
        return f"{what}{origin}"
    by = f"delegate={fencing.executor}, " if fencing.executor else ""
    when = "completed" if is_whole else f"last-{state}"
    return f"{what}{by}{origin}, {when}='{stamp(fencing.ended_at)}'{_later(fencing, cib)}"


def _fencing_state(fencing: FenceOrder | FencingRecord) -> str:
    return "pending" if isinstance(fencing, FenceOrder) else "successful" if is_done(fencing) else "failed"


def _later(record: FencingRecord, cib: Cib) -> str:
    """Say that a fencing that failed succeeded later."""
    same = (each for each in cib.status.fencing_history if (each.target, each.action) == (record.target, record.action))
    later = next((each for each in same if is_done(each) and each.ended_at > record.ended_at), None)
    if is_done(record) or later is None:
        return ""
    return f" (a later attempt from {later.executor} succeeded)"


_CLIENT = "haclusterd"
_FENCING_WORDS = {FenceAction.REBOOT: "reboot", FenceAction.OFF: "turning off", FenceAction.ON: "unfencing"}


def _flags(row: GroupRow | CloneRow) -> str:
    flags = (["disabled"] if row.is_disabled else []) + ([] if row.is_managed else ["unmanaged"])
    return f" ({', '.join(flags)})" if flags else ""


def _node_words(node: NodeRow) -> str:
    if node.is_unclean:
        return "UNCLEAN (online)" if node.is_online else "UNCLEAN (offline)"
    if node.is_pending:
        return "pending"
    if node.is_standby and node.is_online:
        return "standby (with active resources)" if node.running else "standby"
    if node.is_maintenance:
        return "maintenance" if node.is_online else "OFFLINE (maintenance)"
    if node.is_standby and not node.is_online:
        return "OFFLINE (standby)"
    return "online" if node.is_online else "OFFLINE"


def _failure_words(status: NodeStatus, history: ResourceHistory, record: OperationRecord) -> str:
    every = f"{durations.render(record.interval_ms)}-interval " if record.interval_ms else ""
    task = "probe" if record.is_probe and record.operation == ActionName.MONITOR else record.operation
    if record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR):
        ending = f"returned '{code_words(record.exit_code)}'"
    else:
        ending = f"could not be executed ({status_words(record)})"
    reason = f" ({record.exit_reason})" if record.exit_reason else ""
    after = f" after {_span(record.executed_ms)}" if record.executed_ms else ""
    at = written_at(record.changed_at)
    return f"  * {history.resource} {every}{task} on {status.name} {ending}{reason} at {at}{after}"


def _failure_details(status: NodeStatus, history: ResourceHistory, record: OperationRecord) -> str:
    key = f"{history.resource}_{record.operation}_{record.interval_ms}"
    reason = f"exitreason='{record.exit_reason}', " if record.exit_reason else ""
    return (f"  * {key} on {status.name} '{code_words(record.exit_code)}' ({record.exit_code.value}): "
            f"call={record.call_id}, status='{status_words(record)}', {reason}"
            f"last-rc-change='{written_at(record.changed_at)}', queued={record.queued_ms}ms, "
            f"exec={record.executed_ms}ms")  # fmt: skip


def _span(span_ms: int) -> str:
    """Write a span as Pacemaker does: `22ms`, `1.5s`."""
    if span_ms < 1000:
        return f"{span_ms}ms"
    return f"{span_ms // 1000}.{span_ms % 1000:03}s" if span_ms % 1000 else f"{span_ms // 1000}s"


def resource_lines(context: Context) -> list[str]:
    """Return the full list of resources as text, without the nodes."""
    view = TextView(context, frozenset({"resources"}), Given((("inactive", ""),)))
    view.has_places = False
    return [line for row in view.rows.resources for line in view.row_lines(row, 1)]


def one_resource(context: Context, name: str) -> list[str]:
    """Return a primitive as text, or what is active of a group or clone."""
    view = TextView(context, frozenset({"resources"}), Given(()))
    found = next((row for row in (*view.rows.resources, *view.primitives) if row.id == name), None)
    if found is None:
        return []
    if isinstance(found, PrimitiveRow):
        return [view.words(found, where=True)]
    return [line.strip().removeprefix("* ") for line in view.row_lines(found, 1)][1:]


def cluster_lines(context: Context, sections: frozenset[str]) -> list[str]:
    """Return nodes, resources and more as text, as crm_simulate shows them."""
    view = TextView(context, sections, Given((("inactive", ""),)))
    view.has_long_failures = True
    return [f"* {line}" if line and not line.startswith(" ") else line for line in view.lines()]


def instances_in(context: Context) -> tuple[int, int, int]:
    """Return how many instances there are, how many of them are disabled, how many blocked."""
    return instances_configured(View(context, frozenset()))


def operation_lines(context: Context, node: str, resource: str) -> list[str]:
    """Return recorded operations as `crm_resource --list-operations` prints them, of one node or resource or all."""
    view = TextView(context, frozenset(), Given((("inactive", ""),)))
    known = {row.id: row for row in reversed(view.primitives)}
    lines = []
    for status, history, record in view.recorded_operations(node, resource):
        base = base_of(history.resource)
        row = known.get(base, PrimitiveRow(base, str(history.agent)))
        key = f"{history.resource}_{record.operation}_{record.interval_ms}"
        lines.append(
            f"{view.words(row, where=False)}: {key} (node={status.name}, call={record.call_id}, "
            f"rc={record.exit_code.value}, last-rc-change='{written_at(record.changed_at)}', "
            f"exec={record.executed_ms}ms): {status_words(record)}"
        )
    return lines
