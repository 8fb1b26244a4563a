"""What the scheduler finds in a status of Pacemaker's, as text, before it decides anything.

cluster n1 n2 [remote=far]                    members, and nodes behind connections
configure                                     crm text; replaces the configuration
found [without-quorum]                        the status, line by line; shows nodes, resources, and what is to be done
    n1 lost "why" | n1 online name=value      a node: online, lost, left, joining, condemned, remote; its attributes
    n1 web start=0 monitor/10s=1@60s          what is recorded there, oldest first: CODE[!STATUS][~EXPECTED]
    n1 web migrate_to=0:n1>n2                 [@AGE][:SOURCE>TARGET][#other | #reload: parameters have changed]
    n1 web agent=ocf:pacemaker:Other          it was managed by another agent
    n1 web locked=1h                          a clean shutdown locked it to this node
    count n1 web monitor/10s 3 @60s           failures are counted
"""

import re
import shlex
from pathlib import Path

import pytest

from haclusterd.model import durations, scores
from haclusterd.model.cluster import Cib, Member, NodeState, NodeStatus, Status
from haclusterd.model.configuration import Configuration, NodeEntry
from haclusterd.model.history import FailCount, OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode, Role
from haclusterd.model.records import dataclass, field, replace
from haclusterd.scheduler.model.digests import ActionDigests, digest_of
from haclusterd.scheduler.model.entities import Node, Resource
from haclusterd.scheduler.model.inventory import Inventory
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.settings import unpack_settings
from haclusterd.scheduler.scores.own_scores import ban_after_failures, begin_scores
from haclusterd.scheduler.unpack.configuration_changes import find_configuration_changes
from haclusterd.scheduler.unpack.failures import Failures
from haclusterd.scheduler.unpack.nodes import unpack_nodes
from haclusterd.scheduler.unpack.resources import unpack_resources
from haclusterd.scheduler.unpack.unpack_history import unpack_history
from tests.golden.datadriven import Directive, run_file
from tests.scheduled_clusters import configured

FILES = sorted(Path(__file__).parent.joinpath("found_states").glob("*.txt"))
NOW = WallTime(1_767_268_800_000)
_OPERATION = re.compile(
    r"(?P<name>\w+)(?:/(?P<interval>\w+))?=(?P<code>\w+)(?:!(?P<status>[\w-]+))?(?:~(?P<expected>\d+))?"
    r"(?:@(?P<age>\w+))?(?::(?P<source>\w+)>(?P<target>\w+))?(?:#(?P<digest>\w+))?\Z"
)
_STATES = {"lost": NodeState.LOST, "left": NodeState.LEFT, "remote": NodeState.LEFT}
_FLAGS = ("is_removed", "is_blocked", "is_maintenance", "is_start_pending", "ignores_failure")


@dataclass(slots=True)
class Scenario:
    members: list[str] = field(default_factory=list)
    remote: list[str] = field(default_factory=list)
    configuration: Configuration = field(default_factory=Configuration)
    nodes: dict[NodeName, NodeStatus] = field(default_factory=dict)
    calls: int = 0

    def handle(self, directive: Directive) -> str:
        return getattr(self, f"do_{directive.command}")(directive, *directive.words) or ""

    def do_cluster(self, _: Directive, *words: str) -> None:
        self.members = [word for word in words if "=" not in word]
        self.remote = [word.partition("=")[2] for word in words if word.startswith("remote=")]

    def do_configure(self, directive: Directive) -> None:
        made = configured(directive.input)
        nodes = {**made.nodes, **{NodeName(name): NodeEntry(NodeName(name), is_remote=True) for name in self.remote}}
        self.configuration = replace(made, nodes=nodes)

    def do_found(self, directive: Directive, *words: str) -> str:
        self.nodes = {NodeName(name): NodeStatus(NodeName(name), NodeState.ONLINE) for name in self.members}
        for line in directive.input.splitlines():
            given = shlex.split(line)
            if given[0] == "count":
                self._count(*given[1:])
            elif "=" in given[-1] and len(given) > 2 and given[1] not in (*_STATES, "online", "joining", "condemned"):
                self._record(*given)
            else:
                self._node(*given)
        return self._shown(has_quorum="without-quorum" not in words)

    def _node(self, name: str, state: str, *more: str) -> None:
        reason = next((word for word in more if "=" not in word), "")
        attributes = dict(word.split("=", 1) for word in more if "=" in word)
        self.nodes[NodeName(name)] = NodeStatus(
            NodeName(name),
            _STATES.get(state, NodeState.ONLINE),
            detail=reason,
            attributes=attributes,
            is_leaving="shutdown" in attributes,
            is_joining=state == "joining",
            is_condemned=state == "condemned",
        )

    def _history(self, node: str, resource: str) -> ResourceHistory:
        agent = AgentReference("ocf", "pacemaker", "Dummy")
        primitive = self.configuration.resources.get(ResourceId(resource.partition(":")[0]))
        agent = getattr(primitive, "agent", agent)
        return self.nodes[NodeName(node)].histories.get(ResourceId(resource)) or ResourceHistory(
            ResourceId(resource), agent
        )

    def _keep(self, node: str, history: ResourceHistory) -> None:
        status = self.nodes[NodeName(node)]
        histories = {**status.histories, history.resource: history}
        self.nodes[status.name] = replace(status, histories=histories)

    def _lock(self, node: str, resource: str, since: WallTime) -> None:
        status = self.nodes[NodeName(node)]
        self.nodes[status.name] = replace(status, locks={**status.locks, ResourceId(resource): since})

    def _count(self, node: str, resource: str, operation: str, count: str, age: str = "@0s") -> None:
        name, _slash, interval = operation.partition("/")
        interval_ms = durations.parse(interval or "0")
        failed_at = WallTime(NOW - durations.parse(age.removeprefix("@")))
        failure = FailCount(name, interval_ms, scores.parse(count), failed_at)
        history = self._history(node, resource)
        counts = {**history.fail_counts, operation_key(name, interval_ms): failure}
        self._keep(node, replace(history, fail_counts=counts))

    def _record(self, node: str, resource: str, *operations: str) -> None:
        history = self._history(node, resource)
        records = dict(history.records)
        for word in operations:
            if word.startswith("agent="):
                history = replace(history, agent=AgentReference.parse(word.partition("=")[2]))
                continue
            if word.startswith("locked="):
                self._lock(node, resource, WallTime(NOW - durations.parse(word.partition("=")[2])))
                continue
            record = self._operation(word)
            records[operation_key(record.operation, record.interval_ms)] = record
            if record.is_failure:
                history = replace(history, last_failure=record)
        self._keep(node, replace(history, records=records))

    def _operation(self, word: str) -> OperationRecord:
        found = _OPERATION.match(word)
        assert found is not None, word
        self.calls += 1
        is_pending = found["code"] == "pending"
        code = ExitCode.UNKNOWN if is_pending else ExitCode.read(int(found["code"]))
        expected = ExitCode(int(found["expected"] or 0))
        status = ExecutionStatus.DONE if code is expected else ExecutionStatus.ERROR
        changed_at = WallTime(NOW - durations.parse(found["age"] or "1h"))
        return OperationRecord(
            found["name"],
            durations.parse(found["interval"] or "0"),
            self.calls,
            code,
            ExecutionStatus.PENDING if is_pending else ExecutionStatus(found["status"] or status),
            expected,
            changed_at,
            changed_at,
            digest="other" if found["digest"] else "",
            restart_digest=digest_of({}) if found["digest"] == "reload" else "",
            restart_parameters=() if found["digest"] == "reload" else None,
            migrate_source=NodeName(found["source"]) if found["source"] else None,
            migrate_target=NodeName(found["target"]) if found["target"] else None,
        )

    def _shown(self, *, has_quorum: bool) -> str:
        members = {NodeName(name): Member(NodeName(name), ()) for name in self.members}
        cib = Cib(members=members, configuration=self.configuration, status=Status(nodes=self.nodes))
        options = ScheduleOptions(has_quorum=has_quorum, is_pacemaker_compatible=True)
        settings = unpack_settings(self.configuration, NOW, options)
        inventory = unpack_resources(cib, unpack_nodes(cib, settings), settings)
        digests = ActionDigests(settings)
        failures = Failures(settings, digests)
        unpack_history(cib, inventory, failures, settings)
        begin_scores(inventory.tops)
        ban_after_failures(inventory, failures)
        changes = find_configuration_changes(inventory, failures, digests, settings)
        lines = [line for node in inventory.nodes if (line := _of_node(node))]
        lines += [line for resource in inventory.primitives() for line in _of_resource(resource)]
        lines += _bans(inventory)
        lines += [f"forget the lock of {resource.id} to {node.name}" for resource, node in inventory.expired_locks]
        lines += [f"cancel {item.resource.id} on {item.node.name}: {item.why}" for item in changes.cancellations]
        lines += [f"delete the history of {resource.id} on {node.name}" for resource, node in changes.deletions]
        lines += [f"forget failures of {each.resource.id} on {each.node.name}: {each.reason}"
                  for each in failures.clearings]  # fmt: skip
        if settings.time.recheck_at is not None:
            lines.append(f"look again in {durations.render(settings.time.recheck_at - NOW)}")
        return "\n".join(lines)


def _of_node(node: Node) -> str:
    holding = (
        (not node.is_online, "offline"),
        (node.is_pending, "joining"),
        (node.is_shutting_down, "leaving"),
        (node.is_maintenance, "in maintenance"),
        (node.is_standby, "in standby" + (" after a failure" if node.is_fail_standby else "")),
        (node.must_be_reset, "to be reset"),
        (node.is_unclean, f"to be fenced: {node.fence_reason}"),
    )
    words = [word for holds, word in holding if holds]
    return f"{node.name} {', '.join(words)}" if words else ""


def _of_resource(resource: Resource) -> list[str]:
    names = [node.name for node in resource.found.active_nodes]
    words = [f"{resource.found.original_role} on {' '.join(names)}" if names else str(resource.found.original_role)]
    if resource.found.history_id is not None:
        words.append(f"as {resource.found.history_id}")
    if resource.found.is_failed:
        words.append("failed, must stop" if resource.found.must_stop_when_failed else "failed")
    words += [name.removeprefix("is_").replace("_", " ") for name in _FLAGS if getattr(resource.found, name)]
    if not resource.is_managed:
        words.append("unmanaged")
    if resource.found.lock_node is not None:
        words.append(f"locked to {resource.found.lock_node.name}")
    if resource.found.next_role is not Role.UNKNOWN:
        words.append(f"next {resource.found.next_role}")
    if resource.found.pending_node is not None:
        words.append(f"{resource.found.pending_action} pending on {resource.found.pending_node.name}")
    if resource.found.partial_source is not None and resource.found.partial_target is not None:
        words.append(f"migrating from {resource.found.partial_source.name} to {resource.found.partial_target.name}")
    words += [f"left behind on {node.name}" for node in resource.found.dangling_sources]
    words += [f"monitored on {name} every {durations.render(span)}" for name, span in sorted(resource.found.registered)]
    lines = [f"{resource.id} {', '.join(words)}"]
    lines += [f"  stop on {name}" for name in sorted(resource.found.required_stops)]
    lines += [f"  perhaps stop on {name}" for name in sorted(resource.found.optional_stops)]
    lines += [f"  demote on {name}" for name in sorted(resource.found.required_demotes)]
    lines += [f"  monitor again on {name} every {durations.render(span)}" for name, span in
              sorted(resource.found.changed_recurring)]  # fmt: skip
    lines += ["  restart: its definition has changed"] if resource.found.definition_changed else []
    lines += [f"  reload on {node.name}" for node in resource.found.reload_on]
    return lines


def _bans(inventory: Inventory) -> list[str]:
    """Tell what is banned for itself, whatever contains it."""
    return [
        f"{resource.id} banned from {name}: {why}"
        for resource in inventory.by_id.values()
        for name, why in resource.scores.banned_by.items()
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_status(path: Path) -> None:
    run_file(path, Scenario().handle)


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 6
