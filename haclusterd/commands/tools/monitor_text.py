"""The state of the cluster as the text of crm_mon, and the parts of it that other tools print."""

from collections.abc import Iterable, Iterator, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import Given
from haclusterd.commands.tools.monitor_view import (
    DC_VERSION,
    FENCING,
    STACK,
    Ban,
    View,
    code_words,
    fail_count,
    instances_configured,
    is_done,
    stamp,
    status_words,
)
from haclusterd.commands.tools.rows import BundleRow, CloneRow, GroupRow, NodeRow, PrimitiveRow, Row, primitives_in
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model import durations
from haclusterd.model.cluster import Cib, NodeStatus, TicketState
from haclusterd.model.fencing import FenceAction, FenceOrder, FencingRecord
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ocf import ActionName, ExecutionStatus
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.rendering import counted
from haclusterd.scheduler.model.name_order import name_order

_POLICIES = {
    "stop": "Stop ALL resources", "freeze": "Freeze resources", "ignore": "Ignore", "suicide": "Suicide",
    "demote": "Demote promotable resources and stop all other resources",
}  # fmt: skip
MANAGEMENT_IS_DISABLED = (
    "              *** Resource management is DISABLED ***",
    "  The cluster will not attempt to start, stop or recover services",
)
_NODE_LISTS = {
    ("member", "online"): "Online", ("member", "OFFLINE"): "OFFLINE", ("remote", "online"): "RemoteOnline",
    ("remote", "OFFLINE"): "RemoteOFFLINE", ("guest", "online"): "GuestOnline",
}  # fmt: skip
_NODE_TITLES = {"member": "Node", "remote": "RemoteNode", "guest": "GuestNode"}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list, with what is listed under it."""

    text: str
    inside: "tuple[Item, ...]" = ()
    row: PrimitiveRow | None = None
    """The primitive that the line is about."""
    is_head: bool = False
    """It names what is under it."""
    further: int = 0
    """By how many levels more than usual what is under it is indented."""


class TextView(View):
    """The state as text."""

    def __init__(
        self, context: Context, sections: frozenset[str], given: Given, *, has_pending: bool = True
    ) -> None:
        super().__init__(context, sections, given, has_pending=has_pending)
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
            yield from ("", *MANAGEMENT_IS_DISABLED)

    def _summary_of_cluster(self) -> Iterator[str]:
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        if "stack" in self.sections:
            yield f"  * Stack: {STACK}"
        if "dc" in self.sections:
            quorum = "partition with quorum" if self.has_quorum else "partition WITHOUT quorum"
            acting = None if self.rows.dc is None else self.named(self.rows.node(self.rows.dc))
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
                yield f"  * {self.titled(node)}: {self._node_words(node)}:"
                yield "    * Resources:"
                yield from _listed(self.items_on(node), 3)
            return
        lists: dict[str, list[str]] = {title: [] for title in _NODE_LISTS.values()}
        for node in self.nodes:
            words = self._node_words(node)
            title = _NODE_LISTS.get((node.kind, words)) if not self.is_detailed else None
            if title is not None:
                lists[title].append(node.name)
            elif self.is_detailed or (node.kind, words) != ("guest", "OFFLINE"):
                yield f"  * {self.titled(node)}: {words}"
        yield from (f"  * {title}: [ {' '.join(names)} ]" for title, names in lists.items() if names)

    def items_on(self, node: NodeRow) -> Iterator[Item]:
        """Yield what runs on a node, or how many of each agent."""
        if self.is_brief:
            yield from self.per_agent(self.on(node), node=node.name)
        else:
            yield from (Item(self.words(row, where=False), row=row) for row in self.on(node))

    def named(self, node: NodeRow) -> str:
        """Return a node's name, in detail with its number."""
        return f"{node.name} ({node.number})" if self.is_detailed and not node.is_remote else node.name

    def titled(self, node: NodeRow) -> str:
        """Return a node's name and what it is; of a guest node in detail with the node that it runs on."""
        host = f"@{node.host}" if self.is_detailed and node.kind == "guest" else ""
        return f"{_NODE_TITLES[node.kind]} {self.named(node)}{host}"

    def has_feature_set(self, node: NodeRow) -> bool:
        """Tell whether a node's feature set is shown."""
        return self.is_detailed and node.is_online and not node.is_remote

    def _node_words(self, node: NodeRow) -> str:
        health = "" if node.health == "green" else f" (health is {node.health.upper()})"
        feature_set = f", feature set {node.feature_set}" if self.has_feature_set(node) else ""
        return f"{_node_words(node)}{feature_set}{health}"

    def _resources(self) -> Iterator[str]:
        shown = list(_listed(self.resource_items(), 1))
        if self.is_by_node:
            if self.is_inactive and (shown or self.wanted is not None):
                yield from ("Inactive Resources:", *(shown or ["  * No inactive resources"]))
            return
        yield "Full List of Resources:" if self.is_inactive else "Active Resources:"
        yield from shown or ["  * No resources" if self.is_inactive else "  * No active resources"]

    def resource_items(self) -> Iterator[Item]:
        """Yield the resources; by node, those of which something does not run."""
        is_counted = self.is_brief and not self.is_by_node
        if is_counted:
            alone = [row for row in self.resources if isinstance(row, PrimitiveRow)]
            yield from self.per_agent(alone, has_totals=self.is_inactive)
        for row in self.resources:
            is_left_out = self.is_by_node and not self.is_partly_idle(row)
            if not is_left_out and not (is_counted and isinstance(row, PrimitiveRow)):
                yield from self._item(row)

    def per_agent(
        self, rows: Sequence[PrimitiveRow], *, node: str = "", has_totals: bool = False
    ) -> Iterator[Item]:
        """Yield how many primitives of each agent are active, node by node (crm_mon --brief)."""
        for agent in sorted({row.agent for row in rows}):
            of_agent = [row for row in rows if row.agent == agent]
            places = sorted({each for row in of_agent if row.is_active for each in row.nodes if node in ("", each)})
            total = f"/{len(of_agent)}" if has_totals else ""
            for place in places:
                count = sum(place in row.nodes for row in of_agent if row.is_active)
                yield Item(f"{count}{total}\t({agent}):\tActive {'' if node else place}")
            if has_totals and not places:
                yield Item(f"0{total}\t({agent}):\tActive")

    def row_lines(self, row: Row, level: int) -> Iterator[str]:
        """Yield a resource with what it contains as text."""
        return _listed(self._item(row), level)

    def _item(self, row: Row) -> Iterator[Item]:
        """Yield a resource with what it contains; nothing of what does not run, unless that is wanted."""
        if not self.is_inactive and not any(each.is_active for each in primitives_in(row)):
            return
        if isinstance(row, PrimitiveRow):
            if self.is_detailed or not row.is_connection:
                yield self._primitive(row)
        elif isinstance(row, BundleRow):
            kind = "Container bundle" + (" set" if len(row.replicas) > 1 else "")
            remarks = ["unique"] * row.is_unique + ["unmanaged"] * (not row.is_managed)
            text = f"{kind}: {row.id} [{row.image}]" + (f" ({', '.join(remarks)})" if remarks else "")
            inside = self._replicas(row) if self.is_detailed else map(self._primitive, (
                each.shown for each in row.replicas))  # fmt: skip
            is_alone = self.is_detailed and len(row.replicas) == 1
            yield Item(text, tuple(inside), is_head=True, further=int(is_alone))
        elif isinstance(row, GroupRow):
            idle = 0 if self.is_inactive else sum(not each.is_active for each in row.members)
            flags = _flags(row, f"{counted(idle, 'member')} inactive" if idle else "")
            inside = self.per_agent(row.members, has_totals=True) if self.is_brief else (
                item for member in row.members for item in self._item(member)
            )  # fmt: skip
            yield Item(f"Resource Group: {row.id}{flags}", tuple(inside), is_head=True)
        else:
            kinds = ", ".join(["promotable"] * row.is_promotable + ["unique"] * row.is_unique)
            inside = (
                (item for each in self._all_of(row) for item in self._instance(each))
                if self.is_detailed or row.is_unique else self._clone(row)
            )  # fmt: skip
            yield Item(f"Clone Set: {row.id} [{row.child}]{_flags(row, kinds)}", tuple(inside), is_head=True)

    def _all_of(self, row: CloneRow) -> Iterator[PrimitiveRow | GroupRow]:
        yield from (*row.instances, *(row.surplus if self.is_detailed else ()))

    def _instance(self, row: PrimitiveRow | GroupRow) -> Iterator[Item]:
        if isinstance(row, PrimitiveRow):
            yield self._primitive(row)
        else:
            yield from self._item(row)

    def _primitive(self, row: PrimitiveRow) -> Item:
        return Item(self.words(row, where=self.has_places), row=row)

    def _replicas(self, row: BundleRow) -> Iterator[Item]:
        for each in row.replicas:
            parts = tuple(map(self._primitive, each.parts))
            yield from parts if len(row.replicas) == 1 else (Item(f"Replica[{each.number}]", parts),)

    def _clone(self, row: CloneRow) -> Iterator[Item]:
        by_role: dict[str, list[str]] = {}
        for each in row.instances:
            role, node = self._plain(each)
            if role:
                by_role.setdefault(role, []).append(node)
            elif any((part.is_active or part.pending_on) and not part.is_away for part in primitives_in(each)):
                yield from self._item(each)
        for role in ("Promoted", "Started", "Unpromoted"):
            if role in by_role:
                by_wish = " (target-role)" if role == "Unpromoted" and row.is_disabled else ""
                yield Item(f"{role}{by_wish}: [ {' '.join(sorted(by_role[role], key=name_order))} ]")
        whole = self._whole(row).instances
        used = {
            node for each in whole for part in primitives_in(each) for node in part.nodes
            if part.is_managed or self.rows.node(node).is_online
        }  # fmt: skip
        free = [node.name for node in self.nodes if node.name not in used and not node.is_of_bundle]
        free = [name for name in free if row.only_on is None or name in row.only_on]
        if free and self.is_inactive and not all(map(self._is_folded, whole)):
            by_wish = " (disabled)" if _is_stopped_by_wish(whole[0]) else ""
            yield Item(f"Stopped{by_wish}: [ {' '.join(free)} ]")

    def _is_folded(self, row: PrimitiveRow | GroupRow) -> bool:
        """Tell whether an instance is in a line of several, or one too many."""
        return self._plain(row) != ("", "") or any(part.is_orphaned for part in primitives_in(row))

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
            and all(part.is_active and part.is_managed and not (part.is_failed or part.is_orphaned) for part in parts)
            and roles <= {"Started", "Promoted", "Unpromoted"}
            and self.rows.node(next(iter(nodes))).is_online
        )
        return (roles.pop(), nodes.pop()) if is_plain else ("", "")

    def words(self, row: PrimitiveRow, *, where: bool) -> str:
        """Write one primitive, with the nodes where it runs or without."""
        role = "FAILED" if row.is_failed and row.role in ("Started", "Unpromoted", "Stopped") else row.role
        role = f"FAILED {row.role}" if row.is_failed and row.role == "Promoted" else role
        place = several = ""
        if where and len(row.nodes) < 2:
            node = row.nodes[0] if row.nodes else row.pending_on or row.is_locked
            place = f" {node}" if node else ""
        elif where:
            several = f" [ {' '.join(row.nodes)} ]"
        only = self.rows.node(row.nodes[0]) if where and len(row.nodes) == 1 else None
        flags = ["UNCLEAN"] if only is not None and only.is_unclean and not only.is_online else []
        flags += ["LOCKED"] if row.is_locked else []
        flags += ["Monitoring"] if row.is_being_monitored else []
        is_stopped = row.target_role.lower() == "stopped"
        flags += ["disabled" if is_stopped else f"target-role:{row.target_role}"] if row.is_disabled else []
        flags += ["blocked"] if row.is_blocked else []
        flags += ["unmanaged"] if not row.is_managed and not row.is_blocked else []
        flags += ["failure ignored"] if row.is_failure_ignored else []
        words = f" ({', '.join(flags)})" if flags else ""
        orphan = " ORPHANED" if row.is_orphaned else ""
        return f"{row.id}\t({row.agent}):\t{orphan} {role}{place}{words}{several}"

    def _attributes(self) -> Iterator[str]:
        lines: list[str] = []
        for node, status in self.online():
            shown = self.shown_attributes(status)
            if shown:
                lines.append(f"  * Node: {self.named(node)}:")
                lines += (f"    * {name:<32}\t: {value:<10}" for name, value in shown.items())
        if lines:
            yield from ("Node Attributes:", *lines)

    def _history(self) -> Iterator[str]:
        if any(node.is_online for node in self.nodes):
            yield "Operations:" if self.has_operations else "Migration Summary:"
            yield from _listed((replace(each, text=f"Node: {each.text}") for each in self.history_items()), 1)

    def history_items(self) -> Iterator[Item]:
        """Yield the nodes with what was done there, or with the failures that count."""
        for node, status in self.online():
            items: list[Item] = []
            for history in self.histories_on(status):
                count, failed_at = fail_count(history)
                if not self.operations(history) or (not self.has_operations and not count):
                    continue
                words = f" fail-count={count} last-failure='{written_at(failed_at)}'" if count else ""
                inside = map(Item, self._operation_words(history)) if self.has_operations else ()
                text = f"{history.resource}: migration-threshold={self.threshold(history)}{words}"
                items.append(Item(text, tuple(inside), is_head=self.has_operations))
            if items:
                yield Item(self.named(node), tuple(items), is_head=True)

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
        lines = [f"  * {each}" for each in self.failure_words()]
        if lines:
            yield from ("Failed Resource Actions:", *lines)

    def failure_words(self) -> Iterator[str]:
        """Write each failure that is not forgotten."""
        words = _failure_details if self.has_long_failures else _failure_words
        return (words(*each) for each in self.failures())

    def _fencing(self) -> Iterator[str]:
        is_first = True
        for title, lines in self.fencing_lists():
            yield from (() if is_first else ("",))
            yield from (f"{title}:", *(f"  * {each}" for each in lines))
            is_first = False

    def fencing_lists(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the lists of fencings that are not empty, with their titles."""
        orders, records = self.fencings()
        failed = [self._fencing_words(each) for each in records if not is_done(each)]
        others = [*map(self._fencing_words, orders), *(self._fencing_words(each) for each in records if is_done(each))]
        if failed:
            yield "Failed Fencing Actions", failed
        if others:
            yield "Fencing History" if "fencing-succeeded" in self.sections else "Pending Fencing Actions", others

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
            yield f"  * {name}: {ticket_words(state)}"

    def _bans(self) -> Iterator[str]:
        found = list(map(self.ban_words, self.bans()))
        if found:
            yield from ("Negative Location Constraints:", *(f"  * {each}" for each in found))

    def ban_words(self, ban: Ban) -> str:
        """Write what keeps a resource away."""
        only = " in Promoted role" if ban.is_of_promoted else ""
        return f"{ban.id}\tprevents {ban.resource} from running{only} on {self.named(self.rows.node(ban.node))}"


def ticket_words(state: TicketState) -> str:
    """Write how a ticket stands."""
    since = f' last-granted="{written_at(state.last_granted)}"' if state.last_granted else ""
    return f"{'granted' if state.is_granted else 'revoked'}{' [standby]' if state.is_standby else ''}{since}"


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


def _listed(items: Iterable[Item], level: int) -> Iterator[str]:
    """Yield items as text, each level deeper by two blanks."""
    for each in items:
        yield f"{'  ' * level}* {each.text}{':' if each.is_head else ''}"
        yield from _listed(each.inside, level + 1 + each.further)


def _is_stopped_by_wish(row: PrimitiveRow | GroupRow) -> bool:
    return row.is_disabled if isinstance(row, GroupRow) else row.target_role.lower() == "stopped"


def _flags(row: GroupRow | CloneRow, first: str) -> str:
    flags = [first] * bool(first) + ["unmanaged"] * (not row.is_managed) + ["disabled"] * row.is_disabled
    return f" ({', '.join(flags)})" if flags else ""


def _node_words(node: NodeRow) -> str:
    if node.is_unclean:
        return "UNCLEAN (online)" if node.is_online else "UNCLEAN (offline)"
    if node.is_pending:
        return "pending"
    if node.is_standby and node.is_online:
        active = "on-fail" if node.is_failed_standby else "with active resources" if node.running else ""
        return f"standby ({active})" if active else "standby"
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
    return f"{history.resource} {every}{task} on {status.name} {ending}{reason} at {at}{after}"


def _failure_details(status: NodeStatus, history: ResourceHistory, record: OperationRecord) -> str:
    key = f"{history.resource}_{record.operation}_{record.interval_ms}"
    reason = f"exitreason='{record.exit_reason}', " if record.exit_reason else ""
    return (f"{key} on {status.name} '{code_words(record.exit_code)}' ({record.exit_code.value}): "
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


def cluster_lines(context: Context, sections: frozenset[str], *, has_pending: bool = True) -> list[str]:
    """Return nodes, resources and more as text, as crm_simulate shows them; with what is under way or without."""
    view = TextView(context, sections, Given((("inactive", ""),)), has_pending=has_pending)
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
