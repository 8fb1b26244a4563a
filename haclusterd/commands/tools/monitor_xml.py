"""The state of the cluster as the XML of crm_mon (Pacemaker 2.1.5, api-version 2.25).

Agents search it line by line with regular expressions (pgsql, redis, galera), so every element is on a line of its
own with its attributes in Pacemaker's order. Times are UTC.
"""

from collections.abc import Iterator

from haclusterd.commands.context import Context
from haclusterd.commands.status.resource_state import base_of
from haclusterd.commands.tools.monitor_view import (
    DC_VERSION,
    STACK,
    View,
    code_words,
    fail_count,
    instances_configured,
    is_done,
    stamp,
    status_words,
)
from haclusterd.commands.tools.rows import BundleRow, GroupRow, PrimitiveRow, Row
from haclusterd.formats.cib_xml.elements import quoted
from haclusterd.formats.cib_xml.writer import written_at
from haclusterd.model.fencing import FenceOrder, FencingRecord
from haclusterd.model.history import ResourceHistory


def _tag(name: str, indent: int, /, **attributes: object) -> str:
    words = "".join(f" {key.rstrip('_').replace('__', '-')}={quoted(_word(value))}" for key, value in
                    attributes.items() if value is not None)  # fmt: skip
    return f"{' ' * indent}<{name}{words}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class XmlView(View):
    """The state as XML."""

    is_xml = True

    def lines(self) -> Iterator[str]:
        """Yield the document's inside."""
        sections = self.shown(
            self._summary, self._nodes, self._resources, self._attributes, self._history,
            self._failures, self._fencing, self._tickets, self._bans,
        )  # fmt: skip
        for section in sections:
            yield from section

    def _summary(self) -> Iterator[str]:
        lines = [*self._summary_of_cluster(), *(self._options() if "options" in self.sections else ())]
        if lines:
            yield from ("  <summary>", *lines, "  </summary>")

    def _options(self) -> Iterator[str]:
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

    def _summary_of_cluster(self) -> Iterator[str]:
        version = self.context.cib.version
        user, _, origin = version.author.partition("@")
        if "stack" in self.sections:
            yield _tag("stack", 4, type=STACK) + "/>"
        if "dc" in self.sections and self.rows.dc is None:
            yield _tag("current_dc", 4, present=False) + "/>"
        elif "dc" in self.sections and self.rows.dc is not None:
            yield _tag("current_dc", 4, present=True, version=DC_VERSION, name=self.rows.dc,
                       id=self.rows.numbers[self.rows.dc], with_quorum=self.has_quorum, mixed_version=False) + "/>"
        if "times" in self.sections and not self.is_quiet:
            yield _tag("last_update", 4, time=written_at(self.context.now)) + "/>"
            yield _tag("last_change", 4, time=written_at(version.at) if version.at else "", user=user,
                       client="crm" if user else "", origin=origin) + "/>"
        if "counts" in self.sections:
            yield _tag("nodes_configured", 4, number=len(self.all_nodes)) + "/>"
            count, disabled, blocked = instances_configured(self)
            yield _tag("resources_configured", 4, number=count, disabled=disabled, blocked=blocked) + "/>"

    def _nodes(self) -> Iterator[str]:
        if not self.nodes:
            yield "  <nodes/>"
            return
        yield "  <nodes>"
        for node in self.nodes:
            inside = [line for row in self.on(node) for line in self.primitive(row, 6)] if self.is_by_node else []
            yield _tag(
                "node", 4, name=node.name, id=node.number, online=node.is_online, standby=node.is_standby,
                standby_onfail=node.is_failed_standby, maintenance=node.is_maintenance, pending=node.is_pending,
                unclean=node.is_unclean, health=node.health,
                feature_set=node.feature_set if node.is_online and not node.is_remote else None,
                shutdown=node.is_leaving, expected_up=node.is_expected, is_dc=node.is_dc,
                resources_running=node.running, type="remote" if node.is_remote else "member",
                id_as_resource=node.launcher or None,
            ) + (">" if inside else "/>")  # fmt: skip
            if inside:
                yield from (*inside, "    </node>")
        yield "  </nodes>"

    def _resources(self) -> Iterator[str]:
        shown = [row for row in self.resources if not self.is_by_node or self.is_partly_idle(row)]
        if not shown:
            yield from () if self.is_by_node and self.wanted is None else ("  <resources/>",)
            return
        yield "  <resources>"
        for row in shown:
            yield from self.resource(row, 4)
        yield "  </resources>"

    def resource(self, row: Row, indent: int) -> Iterator[str]:
        """Yield a resource with what is in it."""
        if isinstance(row, PrimitiveRow):
            yield from self.primitive(row, indent)
            return
        end = " " * indent
        if isinstance(row, GroupRow):
            yield _tag("group", indent, id=row.id, number_resources=row.size, managed=row.is_managed,
                       disabled=row.is_disabled) + ">"
            for member in row.members:
                yield from self.primitive(member, indent + 2)
            yield f"{end}</group>"
            return
        if isinstance(row, BundleRow):
            yield _tag("bundle", indent, id=row.id, type=row.engine, image=row.image, unique=row.is_unique,
                       managed=row.is_managed, failed=False) + ">"
            for replica in row.replicas:
                yield _tag("replica", indent + 2, id=replica.number) + ">"
                for part in replica.parts:
                    yield from self.primitive(part, indent + 4)
                yield f"{end}  </replica>"
            yield f"{end}</bundle>"
            return
        yield _tag("clone", indent, id=row.id, multi_state=row.is_promotable, unique=row.is_unique,
                   managed=row.is_managed, disabled=row.is_disabled, failed=False, failure_ignored=False,
                   target_role=row.target_role or None) + ">"
        for each in (*row.instances, *row.surplus):
            yield from self.resource(each, indent + 2)
        yield f"{end}</clone>"

    def primitive(self, row: PrimitiveRow, indent: int) -> Iterator[str]:
        """Yield a primitive, or one instance of a cloned one."""
        start = _tag(
            "resource", indent, id=row.id, resource_agent=row.agent, role=row.role,
            target_role=row.target_role or None, active=self._is_active(row), orphaned=row.is_orphaned,
            blocked=row.is_blocked, managed=row.is_managed, failed=row.is_failed,
            failure_ignored=row.is_failure_ignored, nodes_running_on=len(row.nodes),
            pending="Monitoring" if row.is_being_monitored else None, locked_to=row.is_locked or None,
        )  # fmt: skip
        if not row.nodes:
            yield f"{start}/>"
            return
        yield f"{start}>"
        for node in row.nodes:
            is_online = self.rows.node(node).is_online
            yield _tag("node", indent + 2, name=node, id=self.rows.numbers.get(node, node), cached=is_online) + "/>"
        yield f"{' ' * indent}</resource>"

    def _is_active(self, row: PrimitiveRow) -> bool:
        return any(node.is_online or node.is_unclean for node in map(self.rows.node, row.nodes))

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
        if not any(node.is_online for node in self.nodes):
            return
        lines: list[str] = []
        for node, status in self.online():
            inside = [line for history in self.histories_on(status) for line in self._of_resource(history)]
            lines += [_tag("node", 4, name=node.name) + ">", *inside, "    </node>"] if inside else []
        yield from ("  <node_history>", *lines, "  </node_history>") if lines else ("  <node_history/>",)

    def _of_resource(self, history: ResourceHistory) -> Iterator[str]:
        listed = self.operations(history)
        has_operations = "operations" in self.sections
        if not listed or not (has_operations or history.fail_counts):
            return
        is_orphan = base_of(history.resource) not in self.context.cib.configuration.resources
        count, failed_at = fail_count(history)
        yield _tag(
            "resource_history", 6, id=history.resource, orphan=is_orphan,
            migration__threshold=self.threshold(history), fail__count=count or None,
            last__failure=written_at(failed_at) if count else None,
        ) + (">" if has_operations else "/>")  # fmt: skip
        if not has_operations:
            return
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
                last__rc__change=stamp(record.changed_at), queued=record.queued_ms, exec_=record.executed_ms,
                interval=record.interval_ms, task=record.operation,
            ) + "/>"
            for status, history, record in self.failures()
        ]  # fmt: skip
        if lines:
            yield from ("  <failures>", *lines, "  </failures>")

    def _fencing(self) -> Iterator[str]:
        orders, records = self.fencings()
        lines = [*(fencing_as_xml(each, 4) for each in orders), *(fencing_as_xml(each, 4) for each in records)]
        if lines:
            yield from ("  <fence_history>", *lines, "  </fence_history>")

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
                 promoted__only=each.is_of_promoted, master_only=each.is_of_promoted) + "/>"
            for each in self.bans()
        ]  # fmt: skip
        if lines:
            yield from ("  <bans>", *lines, "  </bans>")


def fencing_as_xml(fencing: FenceOrder | FencingRecord, indent: int) -> str:
    """Return a fencing that is under way, or what became of one."""
    if isinstance(fencing, FenceOrder):
        return _tag("fence_event", indent, action=fencing.action, target=fencing.target, client="haclusterd",
                    origin=fencing.executor, status="pending", extended__status=1) + "/>"  # fmt: skip
    return _tag("fence_event", indent, action=fencing.action, target=fencing.target, client="haclusterd",
                origin=fencing.executor or "", status="success" if is_done(fencing) else "failed",
                delegate=fencing.executor, completed=stamp(fencing.ended_at)) + "/>"  # fmt: skip


def sections_as_xml(context: Context, *sections: str, has_pending: bool = True) -> list[str]:
    """Return sections of the XML, for other tools."""
    return list(XmlView(context, frozenset(sections), has_pending=has_pending).lines())


def resource_xml(context: Context, name: str) -> list[str]:
    """Return one resource, with what is in it; nothing of what there is not."""
    view = XmlView(context, frozenset({"resources"}))
    found = next((row for row in (*view.rows.resources, *view.primitives) if row.id == name), None)
    return [] if found is None else list(view.resource(found, 0))


def operation_xml(context: Context, node: str, resource: str) -> list[str]:
    """Return recorded operations as `crm_resource --list-operations` prints them, of one node or resource or all."""
    lines = [
        _tag(
            "operation", 2, op=f"{history.resource}_{record.operation}_{record.interval_ms}", node=status.name,
            call=record.call_id, rc=record.exit_code.value, status=status_words(record), rsc=base_of(history.resource),
            agent=_with_provider(str(history.agent)), last__rc__change=written_at(record.changed_at),
            exec__time=record.executed_ms,
        ) + "/>"
        for status, history, record in XmlView(context, frozenset()).recorded_operations(node, resource)
    ]  # fmt: skip
    return ["<operations>", *lines, "</operations>"] if lines else ["<operations/>"]


def _with_provider(agent: str) -> str:
    """Write an agent with a place for its provider, also when it has none: `stonith::fence_ipmilan`."""
    return agent if agent.count(":") > 1 else agent.replace(":", "::")
