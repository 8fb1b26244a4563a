"""crm_mon: the state of the cluster as Pacemaker's text and XML (crm_mon(8) of Pacemaker 2.1.5, api-version 2.25).

Agents search the XML line by line with regular expressions (pgsql, redis, galera), so every element stands on a line of
its own with its attributes in Pacemaker's order. Times are UTC.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.call import FEATURE_SET, Given, Tool, ToolCall, ToolUsageError, printed
from haclusterd.commands.tools.rows import CloneRow, GroupRow, NodeRow, PrimitiveRow, Row, Rows, primitives_in
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.formats.cib_xml.status_writer import recorded, records_of
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model import durations, scores
from haclusterd.model.cluster import NodeStatus
from haclusterd.model.configuration import Location, Primitive, effective
from haclusterd.model.fencing import FenceOutcome
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.verbs.verb import Cost

STACK = "haclusterd"
DC_VERSION = "2.1.5-haclusterd"
SECTIONS = ("summary", "nodes", "resources", "attributes", "operations", "failures", "fencing", "tickets", "bans")
_OF_TEXT = frozenset({"summary", "nodes", "resources", "failures", "fencing"})
_PARTS_OF_SUMMARY = frozenset({"counts", "dc", "options", "stack", "times", "maint-mode"})
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
_NOT_ACTIVE_PROBES = frozenset({ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.NOT_INSTALLED, ExitCode.PROMOTED})


def monitor(context: Context, call: ToolCall, given: Given) -> Outcome:
    """crm_mon: print the state once; a call that would watch for ever prints it once, too."""
    if given.any_of("daemonize", "html", "external_agent"):
        raise ToolUsageError("it prints once here, as text or XML; what happens is watched with: crm history events")
    form = "xml" if "xml" in given else given.text("output", "text")
    if form not in ("xml", "text", "console", "none"):
        raise ToolUsageError(f"--output-as={form}: text or xml")
    if form == "none":
        return printed()
    if "simple" in given:
        return _simple(Rows(context))
    sections = _sections(given, is_xml=form == "xml")
    if form == "xml":
        lines = list(_Xml(context, sections).lines())
        if "xml" in given:
            return printed("\n".join(['<crm_mon version="2.1.5">', *lines, "</crm_mon>", ""]))
        request = quoted(" ".join((call.tool, *call.words)))
        head = f'<pacemaker-result api-version="2.25" request={request}>'
        return printed("\n".join([head, *lines, '  <status code="0" message="OK"/>', "</pacemaker-result>", ""]))
    return printed("\n".join(_Text(context, sections, given).lines()) + "\n")


def _sections(given: Given, *, is_xml: bool) -> frozenset[str]:
    chosen = set(SECTIONS) if is_xml else set(_OF_TEXT)
    more = {"attributes": "attributes", "operations": "operations", "timing": "operations", "failcounts": "operations",
            "bans": "bans", "tickets": "tickets", "fence_history": "fencing"}  # fmt: skip
    chosen.update(section for option, section in more.items() if option in given)
    for option, text in given.pairs:
        if option in ("include", "exclude"):
            for word in filter(None, text.split(",")):
                _choose(chosen, word.strip(), is_in=option == "include", is_xml=is_xml)
    return frozenset(chosen)


def _choose(chosen: set[str], word: str, *, is_in: bool, is_xml: bool) -> None:
    every = {"all": set(SECTIONS), "default": set(SECTIONS) if is_xml else set(_OF_TEXT), "none": set[str]()}
    if word in every:
        wanted = every[word] if is_in else set(SECTIONS) - every[word] if word == "none" else set[str]()
        chosen.clear()
        chosen.update(wanted)
        return
    name = "operations" if word == "failcounts" else "fencing" if word.startswith("fenc") else word
    name = "summary" if name in _PARTS_OF_SUMMARY else name
    if name.startswith("bans:"):
        name = "bans"
    if name not in SECTIONS:
        raise ToolUsageError(f"there is no section {word}: {', '.join(SECTIONS)}")
    (chosen.add if is_in else chosen.discard)(name)


def _simple(rows: Rows) -> Outcome:
    """Print one line for a monitoring system, and end with its status (0 fine, 1 warning)."""
    nodes = rows.nodes()
    offline = [node for node in nodes if not node.is_online]
    standby = [node for node in nodes if node.is_online and node.is_standby]
    if rows.dc is None:
        return printed("CLUSTER WARN: No DC\n", status=1)
    if offline:
        words = "".join(f" offline node: {node.name}" for node in offline)
        return printed(f"CLUSTER WARN:{words}\n", status=1)
    online = len(nodes) - len(standby)
    more = f", {_counted(len(standby), 'standby node')}" if standby else ""
    count = _counted(sum(1 for _ in rows.primitives()), "resource instance")
    return printed(f"CLUSTER OK: {_counted(online, 'node')} online{more}, {count} configured\n")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


class _View:
    """What both forms read."""

    def __init__(self, context: Context, sections: frozenset[str]) -> None:
        self.context = replace(context, cib=context.cib.as_in_force())
        self.sections = sections
        self.rows = Rows(context)
        self.nodes = self.rows.nodes()
        self.properties = self.rows.overview.properties
        self.has_quorum = context.live is not None and context.live.has_quorum
        self.primitives = tuple(self.rows.primitives())

    def shown(self, *sections: Callable[[], Iterator[str]]) -> Iterator[Iterator[str]]:
        """Yield the lines of those of all sections, in the order of `SECTIONS`, that were asked for."""
        return (lines() for name, lines in zip(SECTIONS, sections, strict=True) if name in self.sections)

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

    def failures(self) -> Iterator[tuple[NodeStatus, ResourceHistory, OperationRecord]]:
        """Yield failures that are not forgotten, of nodes that are online."""
        for _, status in self.online():
            for history in recorded(status):
                for record in records_of(history):
                    is_quiet = record.is_probe and record.exit_code in _NOT_ACTIVE_PROBES
                    is_quiet = is_quiet and record.status in (ExecutionStatus.DONE, ExecutionStatus.ERROR)
                    if record.is_failure and not is_quiet:
                        yield status, history, record

    def bans(self) -> Iterator[Location]:
        """Yield the constraints that keep something away from a node, the newest first."""
        for each in reversed(tuple(self.context.cib.configuration.constraints.values())):
            if isinstance(each, Location) and each.node and each.score < 0:
                yield each


def code_words(code: ExitCode) -> str:
    """Write an exit code as Pacemaker's tools do."""
    return _CODE_WORDS.get(code, code.name.lower().replace("_", " "))


def status_words(record: OperationRecord) -> str:
    """Write how an execution went as Pacemaker's tools do."""
    return _STATUS_WORDS.get(record.status, "complete")


def _instances_configured(view: _View) -> tuple[int, int, int]:
    """Return how many instances there are, how many of them are disabled, how many blocked."""
    disabled = sum(row.is_disabled for row in view.primitives)
    return len(view.primitives), disabled, sum(row.is_blocked for row in view.primitives)


# XML


def _tag(name: str, indent: int, /, **attributes: object) -> str:
    words = "".join(f" {key.rstrip('_').replace('__', '-')}={quoted(_word(value))}" for key, value in
                    attributes.items() if value is not None)  # fmt: skip
    return f"{' ' * indent}<{name}{words}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Xml(_View):
    def lines(self) -> Iterator[str]:
        """Yield the document's inside."""
        sections = self.shown(
            self._summary, self._nodes, self._resources, self._attributes, self._history,
            self._failures, self._fencing, self._tickets, self._bans,
        )  # fmt: skip
        for section in sections:
            yield from section

    def _summary(self) -> Iterator[str]:
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        yield "  <summary>"
        yield _tag("stack", 4, type=STACK) + "/>"
        if self.rows.dc is None:
            yield _tag("current_dc", 4, present=False) + "/>"
        else:
            yield _tag("current_dc", 4, present=True, version=DC_VERSION, name=self.rows.dc,
                       id=self.rows.numbers[self.rows.dc], with_quorum=self.has_quorum, mixed_version=False) + "/>"
        yield _tag("last_update", 4, time=written_at(self.context.now)) + "/>"
        yield _tag("last_change", 4, time=written_at(version.at), user=user, client="crm" if user else "",
                   origin=origin) + "/>"
        yield _tag("nodes_configured", 4, number=len(self.nodes)) + "/>"
        count, disabled, blocked = _instances_configured(self)
        yield _tag("resources_configured", 4, number=count, disabled=disabled, blocked=blocked) + "/>"
        text, flag = self.properties.text, self.properties.boolean
        options = {
            "stonith__enabled": flag("fencing-enabled"),
            "symmetric__cluster": flag("symmetric-cluster"),
            "no__quorum__policy": text("no-quorum-policy"),
            "maintenance__mode": flag("maintenance-mode"),
            "stop__all__resources": flag("stop-all-resources"),
            "stonith__timeout__ms": self.properties.duration_ms("fencing-timeout"),
            "priority__fencing__delay__ms": self.properties.duration_ms("priority-fencing-delay"),
        }
        yield _tag("cluster_options", 4, **options) + "/>"
        yield "  </summary>"

    def _nodes(self) -> Iterator[str]:
        yield "  <nodes>"
        for node in self.nodes:
            yield _tag(
                "node", 4, name=node.name, id=node.number, online=node.is_online, standby=node.is_standby,
                standby_onfail=False, maintenance=node.is_maintenance, pending=node.is_pending,
                unclean=node.is_unclean, health=node.health, feature_set=FEATURE_SET if node.is_online else None,
                shutdown=node.is_leaving, expected_up=node.is_expected, is_dc=node.is_dc,
                resources_running=node.running, type="member",
            ) + "/>"  # fmt: skip
        yield "  </nodes>"

    def _resources(self) -> Iterator[str]:
        yield "  <resources>"
        for row in self.rows.resources:
            yield from self._resource(row, 4)
        yield "  </resources>"

    def _resource(self, row: Row, indent: int) -> Iterator[str]:
        if isinstance(row, PrimitiveRow):
            yield from self._primitive(row, indent)
            return
        end = " " * indent
        if isinstance(row, GroupRow):
            yield _tag("group", indent, id=row.id, number_resources=len(row.members), managed=row.is_managed,
                       disabled=row.is_disabled) + ">"
            for member in row.members:
                yield from self._primitive(member, indent + 2)
            yield f"{end}</group>"
            return
        yield _tag("clone", indent, id=row.id, multi_state=row.is_promotable, unique=row.is_unique,
                   managed=row.is_managed, disabled=row.is_disabled, failed=False, failure_ignored=False,
                   target_role=row.target_role or None) + ">"
        for each in row.instances:
            yield from self._resource(each, indent + 2)
        yield f"{end}</clone>"

    def _primitive(self, row: PrimitiveRow, indent: int) -> Iterator[str]:
        start = _tag(
            "resource", indent, id=row.id, resource_agent=row.agent, role=row.role,
            target_role=row.target_role or None, active=row.is_active, orphaned=row.is_orphaned,
            blocked=row.is_blocked, managed=row.is_managed, failed=row.is_failed, failure_ignored=False,
            nodes_running_on=len(row.nodes), locked_to=row.is_locked or None,
        )  # fmt: skip
        if not row.nodes:
            yield f"{start}/>"
            return
        yield f"{start}>"
        for node in row.nodes:
            is_online = self.rows.node(node).is_online
            yield _tag("node", indent + 2, name=node, id=self.rows.numbers.get(node, node), cached=is_online) + "/>"
        yield f"{' ' * indent}</resource>"

    def _attributes(self) -> Iterator[str]:
        lines: list[str] = []
        for node, status in self.online():
            shown = self.shown_attributes(status)
            if shown:
                lines.append(_tag("node", 4, name=node.name) + ">")
                lines += (_tag("attribute", 6, name=key, value=value) + "/>" for key, value in shown.items())
                lines.append("    </node>")
        if lines:
            yield from ("  <node_attributes>", *lines, "  </node_attributes>")

    def _history(self) -> Iterator[str]:
        yield "  <node_history>"
        for node, status in self.online():
            lines = [line for history in recorded(status) for line in self._of_resource(history)]
            if lines:
                yield _tag("node", 4, name=node.name) + ">"
                yield from lines
                yield "    </node>"
        yield "  </node_history>"

    def _of_resource(self, history: ResourceHistory) -> Iterator[str]:
        listed = self.operations(history)
        if not listed:
            return
        is_orphan = base_of(history.resource) not in self.context.cib.configuration.resources
        count, failed_at = fail_count(history)
        yield _tag(
            "resource_history", 6, id=history.resource, orphan=is_orphan,
            migration__threshold=self.threshold(history), fail__count=count or None,
            last__failure=written_at(failed_at) if count else None,
        ) + ">"  # fmt: skip
        for number, task, interval_ms, record in listed:
            yield _tag(
                "operation_history", 8, call=number, task=task, rc=record.exit_code.value,
                rc_text=code_words(record.exit_code), interval=f"{interval_ms}ms" if interval_ms else None,
                last__rc__change=written_at(record.changed_at), exec__time=f"{record.executed_ms}ms",
                queue__time=f"{record.queued_ms}ms",
            ) + "/>"  # fmt: skip
        yield "      </resource_history>"

    def _failures(self) -> Iterator[str]:
        lines = [
            _tag(
                "failure", 4, op_key=f"{history.resource}_{record.operation}_{record.interval_ms}", node=status.name,
                exitstatus=code_words(record.exit_code), exitreason=record.exit_reason,
                exitcode=record.exit_code.value, call=record.call_id, status=status_words(record),
                last__rc__change=_stamp(record.changed_at), queued=record.queued_ms, exec_=record.executed_ms,
                interval=record.interval_ms, task=record.operation,
            ) + "/>"
            for status, history, record in self.failures()
        ]  # fmt: skip
        if lines:
            yield from ("  <failures>", *lines, "  </failures>")

    def _fencing(self) -> Iterator[str]:
        status = self.context.cib.status
        lines = [
            _tag("fence_event", 4, action=order.action, target=order.target, client="haclusterd", origin=order.executor,
                 status="pending", delegate=order.executor) + "/>"
            for _, order in sorted(status.fence_orders.items())
        ]  # fmt: skip
        lines += (
            _tag("fence_event", 4, action=each.action, target=each.target, client="haclusterd", origin=each.executor,
                 status="success" if each.outcome in (FenceOutcome.FENCED, FenceOutcome.CONFIRMED) else "failed",
                 delegate=each.executor, completed=_stamp(each.ended_at)) + "/>"
            for each in reversed(status.fencing_history)
        )  # fmt: skip
        if lines:
            yield from (_tag("fence_history", 2, status=0) + ">", *lines, "  </fence_history>")

    def _tickets(self) -> Iterator[str]:
        lines = [
            _tag("ticket", 4, id=name, status="granted" if state.is_granted else "revoked", standby=state.is_standby,
                 last__granted=written_at(state.last_granted) if state.last_granted else None) + "/>"
            for name, state in sorted(self.context.cib.status.tickets.items())
        ]  # fmt: skip
        if lines:
            yield from ("  <tickets>", *lines, "  </tickets>")

    def _bans(self) -> Iterator[str]:
        lines = [
            _tag("ban", 4, id=each.id, resource=each.resource, node=each.node, weight=each.score,
                 promoted__only=each.role == "Promoted", master_only=each.role == "Promoted") + "/>"
            for each in self.bans()
        ]  # fmt: skip
        if lines:
            yield from ("  <bans>", *lines, "  </bans>")


def fail_count(history: ResourceHistory) -> tuple[int, WallTime]:
    """Return how often a resource failed on a node, and when last."""
    counts = history.fail_counts.values()
    last = max((each.failed_at for each in counts), default=WallTime(0))
    return min(scores.INFINITY, sum(each.count for each in counts)), last


def _stamp(at: WallTime) -> str:
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


# Text


class _Text(_View):
    def __init__(self, context: Context, sections: frozenset[str], given: Given) -> None:
        super().__init__(context, sections)
        self.is_inactive = "inactive" in given
        self.is_by_node = "by_node" in given
        self.has_times = "timing" in given
        self.has_places = True
        self.has_operations = self.has_times or "operations" in given or "operations" in given.text("include")

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
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        yield "Cluster Summary:"
        yield f"  * Stack: {STACK}"
        quorum = "partition with quorum" if self.has_quorum else "partition WITHOUT quorum"
        dc = "NONE" if self.rows.dc is None else f"{self.rows.dc} (version {DC_VERSION}) - {quorum}"
        yield f"  * Current DC: {dc}"
        yield f"  * Last updated: {written_at(self.context.now)}"
        by = f" by {user} via crm on {origin}" if user else ""
        yield f"  * Last change:  {written_at(version.at)}{by}"
        yield f"  * {_counted(len(self.nodes), 'node')} configured"
        count, disabled, blocked = _instances_configured(self)
        more = [f"{disabled} DISABLED"] if disabled else []
        more += [f"{blocked} BLOCKED from further action due to failure"] if blocked else []
        words = f" ({', '.join(more)})" if more else ""
        yield f"  * {_counted(count, 'resource instance')} configured{words}"
        if self.properties.boolean("maintenance-mode"):
            yield ""
            yield "              *** Resource management is DISABLED ***"
            yield "  The cluster will not attempt to start, stop or recover services"

    def _nodes(self) -> Iterator[str]:
        yield "Node List:"
        if self.is_by_node:
            for node in self.nodes:
                yield f"  * Node {node.name}: {_node_words(node)}:"
                yield "    * Resources:"
                yield from (f"      * {self.words(row, where=False)}" for row in self._on(node))
            return
        online = [node.name for node in self.nodes if _node_words(node) == "online"]
        offline = [node.name for node in self.nodes if _node_words(node) == "OFFLINE"]
        for node in self.nodes:
            if node.name not in online and node.name not in offline:
                yield f"  * Node {node.name}: {_node_words(node)}"
        if online:
            yield f"  * Online: [ {' '.join(online)} ]"
        if offline:
            yield f"  * OFFLINE: [ {' '.join(offline)} ]"

    def _on(self, node: NodeRow) -> list[PrimitiveRow]:
        """Return what runs on a node, in the order in which it was recorded there."""
        status = self.context.cib.status.nodes.get(node.name, NodeStatus(node.name))
        places = {base_of(history.resource): at for at, history in enumerate(recorded(status))}
        found = (row for row in self.primitives if node.name in row.nodes)
        return sorted(found, key=lambda row: places.get(row.id, len(places)))

    def _resources(self) -> Iterator[str]:
        shown: list[str] = []
        for row in self.rows.resources:
            if self.is_by_node and not self._is_partly_idle(row):
                continue
            shown += self.row_lines(row, 1)
        if self.is_by_node:
            yield from ("Inactive Resources:", *shown) if shown and self.is_inactive else ()
            return
        yield "Full List of Resources:" if self.is_inactive else "Active Resources:"
        yield from shown or ["  * No resources" if self.is_inactive else "  * No active resources"]

    def _is_partly_idle(self, row: Row) -> bool:
        return any(not each.is_active for each in primitives_in(row))

    def row_lines(self, row: Row, level: int) -> Iterator[str]:
        """Yield a resource with what it contains; nothing of what does not run, unless that is wanted."""
        if not self.is_inactive and not any(each.is_active for each in primitives_in(row)):
            return
        pad = "  " * level
        if isinstance(row, PrimitiveRow):
            yield f"{pad}* {self.words(row, where=self.has_places)}"
        elif isinstance(row, GroupRow):
            idle = 0 if self.is_inactive else sum(not each.is_active for each in row.members)
            hidden = f" ({_counted(idle, 'member')} inactive)" if idle else ""
            yield f"{pad}* Resource Group: {row.id}{_flags(row)}{hidden}:"
            for member in row.members:
                yield from self.row_lines(member, level + 1)
        else:
            kind = " (promotable" if row.is_promotable else ""
            kind += ", unique" if row.is_unique and kind else " (unique" if row.is_unique else ""
            kind += ", " if kind and _flags(row) else ") " if kind else ""
            flags = _flags(row).strip(" ()")
            head = f"{kind.rstrip()} {flags})" if kind.endswith(", ") else f"{kind.rstrip()}{_flags(row)}"
            yield f"{pad}* Clone Set: {row.id} [{row.child}]{head}:"
            yield from self._clone(row, level + 1)

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
                yield f"{pad}* {role}: [ {' '.join(sorted(by_role[role]))} ]"
        used = {
            node for each in row.instances for part in primitives_in(each) for node in part.nodes
            if part.is_managed or self.rows.node(node).is_online
        }  # fmt: skip
        free = [node.name for node in self.nodes if node.name not in used]
        if free and self.is_inactive and not row.is_unique:
            yield f"{pad}* Stopped{' (disabled)' if row.is_disabled else ''}: [ {' '.join(free)} ]"

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
        flags += ["disabled"] if row.is_disabled else []
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
                lines.append(f"  * Node: {node.name}:")
                lines += (f"    * {name:<32}\t: {value:<10}" for name, value in shown.items())
        if lines:
            yield from ("Node Attributes:", *lines)

    def _history(self) -> Iterator[str]:
        yield "Operations:" if self.has_operations else "Migration Summary:"
        for node, status in self.online():
            lines: list[str] = []
            for history in recorded(status):
                count, failed_at = fail_count(history)
                if not self.operations(history) or (not self.has_operations and not count):
                    continue
                words = f" fail-count={count} last-failure='{written_at(failed_at)}'" if count else ""
                end = ":" if self.has_operations else ""
                lines.append(f"    * {history.resource}: migration-threshold={self.threshold(history)}{words}{end}")
                if self.has_operations:
                    lines += (f"      * {text}" for text in self._operation_words(history))
            if lines:
                yield f"  * Node: {node.name}:"
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
        lines = [_failure_words(*each) for each in self.failures()]
        if lines:
            yield from ("Failed Resource Actions:", *lines)

    def _fencing(self) -> Iterator[str]:
        status = self.context.cib.status
        failed = [each for each in reversed(status.fencing_history) if each.outcome is FenceOutcome.FAILED]
        if failed:
            yield "Failed Fencing Actions:"
            for each in failed:
                yield (f"  * {each.action} of {each.target} failed: delegate={each.executor}, client=haclusterd, "
                       f"origin={each.executor}, last-failed='{_stamp(each.ended_at)}'")  # fmt: skip
        if status.fence_orders:
            yield "Pending Fencing Actions:"
            for _, order in sorted(status.fence_orders.items()):
                yield f"  * {order.action} of {order.target} pending: client=haclusterd, origin={order.executor}"

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
            only = " in Promoted role" if each.role == "Promoted" else ""
            yield f"  * {each.id}\tprevents {each.resource} from running{only} on {each.node}"


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


def _span(span_ms: int) -> str:
    """Write a span as Pacemaker does: `22ms`, `1.5s`."""
    if span_ms < 1000:
        return f"{span_ms}ms"
    return f"{span_ms // 1000}.{span_ms % 1000:03}s" if span_ms % 1000 else f"{span_ms // 1000}s"


def sections_as_xml(context: Context, *sections: str) -> list[str]:
    """Return sections of the XML, for other tools."""
    return list(_Xml(context, frozenset(sections)).lines())


def resource_lines(context: Context, only: str = "") -> list[str]:
    """Return the full list of resources as text, without the nodes; or one of them, with."""
    view = _Text(context, frozenset({"resources"}), Given((("inactive", ""),)))
    rows = view.rows.resources
    if not only:
        view.has_places = False
        return [line for row in rows for line in view.row_lines(row, 1)]
    found = next((row for row in rows if row.id == only), None) or next(
        (each for each in view.primitives if each.id == only), None
    )
    return [] if found is None else list(view.row_lines(found, 1))


def cluster_lines(context: Context) -> list[str]:
    """Return nodes and resources as text, as crm_simulate shows them."""
    view = _Text(context, frozenset({"nodes", "resources"}), Given((("inactive", ""),)))
    bullets = ("Node List:", "Full List of Resources:")
    return [f"* {line}" if line in bullets else line for line in view.lines()]


def operation_lines(context: Context, node: str, resource: str) -> list[str]:
    """Return recorded operations as `crm_resource --list-operations` prints them, of one node or resource or all."""
    view = _Text(context, frozenset(), Given((("inactive", ""),)))
    known = {(row.id, each): row for row in view.primitives for each in row.nodes}
    lines = []
    for _, status in view.online():
        for history in recorded(status):
            base = base_of(history.resource)
            if node not in ("", status.name) or resource not in ("", history.resource, base):
                continue
            row = known.get((base, status.name), PrimitiveRow(base, str(history.agent)))
            for record in records_of(history):
                key = f"{history.resource}_{record.operation}_{record.interval_ms}"
                at = written_at(record.changed_at)
                lines.append(
                    f"{view.words(row, where=False)}: {key} (node={status.name}, call={record.call_id}, "
                    f"rc={record.exit_code.value}, last-rc-change='{at}', exec={record.executed_ms}ms): "
                    f"{status_words(record)}"
                )
    return lines


TOOLS = {
    "crm_mon": Tool(monitor, {
        "once": "1 one-shot", "output": "output-as:", "xml": "X as-xml", "inactive": "r inactive",
        "by_node": "n group-by-node", "failcounts": "f failcounts", "operations": "o operations",
        "timing": "t timing-details", "attributes": "A show-node-attributes", "tickets": "c tickets",
        "bans": "L neg-locations", "fence_history": "m fence-history?", "brief": "b brief", "detail": "R show-detail",
        "include": "I: include:", "exclude": "U: exclude:", "hide": "D hide-headers", "simple": "s simple-status",
        "interval": "i: interval:", "quiet": "Q quiet", "plain": "N disable-ncurses", "fancy": "text-fancy",
        "daemonize": "d daemonize", "pid": "p: pid-file:", "html": "h: w as-html: web-cgi output-to:",
        "external_agent": "E: external-agent:", "external_recipient": "e: external-recipient:",
        "watch_fencing": "W watch-fencing",
    }, cost=Cost.WHOLE),
}  # fmt: skip
