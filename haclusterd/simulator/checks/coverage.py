"""What runs of the swarm have exercised, counted; and the table of it, in which a zero says that nobody looked there.

A count is a pair of words: what kind of thing (`command`, `effect`, ...), and which. The tables know from the code what
there is, so that a new command or effect is in them, with a zero, before anybody thinks of drawing it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import (
    BeginRecovery,
    ChangeConfiguration,
    Command,
    IssueOrders,
    RecordRecovery,
    RecordResults,
)
from haclusterd.cib.edits import Edit
from haclusterd.machines.effects import Effect
from haclusterd.model.ids import NodeName
from haclusterd.model.ocf import ActionName, ExecutionStatus, ExitCode
from haclusterd.model.orders import Order
from haclusterd.model.records import dataclass
from haclusterd.ports.agents import AgentCall
from haclusterd.simulator.checks.activities import AGENTS, Activity, activity_of
from haclusterd.simulator.checks.checker import Checker, Log, Scene
from haclusterd.simulator.hosts.fence_devices import AGENT, PLUGIN

Counts = Counter[tuple[str, str]]
FENCE_AGENT = "fence agent"
"""The section of what fence agents are called for."""
_QUESTIONS = (("list", AGENT), ("status", AGENT), ("list", PLUGIN))
"""What they are asked before they act."""
SHAPE = "shape"
"""The section of what resources have become (`faults.shapes`)."""
ANSWER = "answer"
"""The section of what probes and recurring monitors have said: of the latter what is recorded, so what is new."""
ANSWERS = (ExitCode.OK, ExitCode.ERROR, ExitCode.NOT_RUNNING, ExitCode.PROMOTED, ExitCode.FAILED_PROMOTED)
OF_A_SHAPE = "a shape: "
"""How the reason of a change begins that gives a resource another shape; the name of the shape follows."""


class Coverage(Checker):
    """Counts what one run exercises."""

    def __init__(self, scene: Scene, log: Log) -> None:
        super().__init__(scene, log)
        self.counts: Counts = Counter()

    def count(self, section: str, name: str) -> None:
        """Count one thing."""
        self.counts[section, name] += 1

    def agent_begins(self, node: NodeName, call: AgentCall) -> None:  # noqa: ARG002 (where it is makes no difference)
        """See `Checker`."""
        activity = activity_of(call, self.log)
        if activity is not None:
            self.counts["activity", activity.value] += 1

    def first_applied(self, applied: Applied) -> None:
        """See `Checker`."""
        counts, envelope = self.counts, applied.envelope
        if envelope is None or applied.is_repetition:
            return
        command = envelope.command
        self._count_edits(command, is_refused=applied.refusal is not None)
        if applied.refusal is not None:
            counts["refusal", applied.refusal.code.value] += 1
            return
        counts["command", type(command).__name__] += 1
        if isinstance(command, BeginRecovery):
            by_whom = "by policy" if command.is_automatic else "by a person"
            counts["recovery of a device", f"{command.rung} {by_whom}"] += 1
        elif isinstance(command, RecordRecovery):
            counts["recovery of a device", f"it is {command.outcome}"] += 1
        if isinstance(command, IssueOrders):
            for order in command.orders:
                self._count_claim(order)
        for result in command.results if isinstance(command, RecordResults) else ():
            if result.operation == ActionName.MONITOR and result.status in _SAID:
                counts[ANSWER, _answer(result.interval_ms, result.exit_code)] += 1
        for change in applied.changes:
            counts["change", change.kind.value] += 1

    def _count_edits(self, command: Command, *, is_refused: bool) -> None:
        if not isinstance(command, ChangeConfiguration):
            return
        if command.reason.startswith(OF_A_SHAPE):
            self.count_shape(command.reason.removeprefix(OF_A_SHAPE), is_refused=is_refused)
        for edit in () if is_refused else command.edits:
            self.counts["edit", type(edit).__name__] += 1

    def count_shape(self, shape: str, *, is_refused: bool) -> None:
        """Count a change of a resource's shape that was accepted or refused; either may be right."""
        self.counts["shape refused" if is_refused else SHAPE, shape] += 1

    def _count_claim(self, order: Order) -> None:
        kinds = {
            "shared": bool(order.devices and order.device_memory_mib),
            "alone": bool(order.devices and not order.device_memory_mib),
            "gang": bool(order.devices and "gang_size" in order.meta),
            "gang is placed again": "its gang starts together" in order.reason,
            "preempted": "whose priority is higher, takes its devices" in order.reason,
        }
        for kind, is_so in kinds.items():
            if is_so:
                self.counts["claim", kind] += 1

    def count_pairs(self, fault: str, activities: Iterable[Activity]) -> None:
        """Count a fault with each activity that is under way when it begins."""
        for activity in activities:
            self.counts["pair", f"{fault} × {activity.value}"] += 1


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the table: what there is, and what is not drawn, with its reason."""

    title: str
    names: tuple[str, ...]
    exempt: Mapping[str, str]


_SAID = (ExecutionStatus.DONE, ExecutionStatus.ERROR)


def _answer(interval_ms: int, code: ExitCode) -> str:
    return f"{'monitor' if interval_ms else 'probe'} says {code.name.lower().replace('_', ' ')}"


def answers() -> Section:
    """Return what probes and monitors should have said."""
    return Section(ANSWER, tuple(_answer(interval_ms, code) for interval_ms in (0, 1) for code in ANSWERS), {})


_COMMANDS = {
    "RequestCertificate": "certificates are of the adapters: tests/processes renew them",
    "RecordProof": "a switch lies about a node that nobody hears: no seed does that, a directed scenario does",
    "Forget": "a run is shorter than the shortest memory",
}


def sections(faults: Iterable[str], pairs: Iterable[str]) -> tuple[Section, ...]:
    """Return everything that a whole campaign should have exercised."""
    return (
        Section("command", tuple(kind.__name__ for kind in get_args(Command)), _COMMANDS),
        Section("edit", tuple(kind.__name__ for kind in get_args(Edit)), {}),
        Section("effect", tuple(kind.__name__ for kind in get_args(Effect)), {}),
        Section("activity", tuple(activity.value for activity in Activity if activity in AGENTS), {}),
        answers(),
        Section(FENCE_AGENT, tuple(f"{action} by {agent}" for action, agent in _QUESTIONS), {}),
        Section("fault", tuple(dict.fromkeys(faults)), {}),
        Section("pair", tuple(dict.fromkeys(pairs)), {}),
    )


def zeros(counts: Counts, wanted: Iterable[Section]) -> tuple[str, ...]:
    """Return what was never exercised, and is not exempt."""
    return tuple(
        f"{section.title} {name}"
        for section in wanted
        for name in section.names
        if not counts[section.title, name] and name not in section.exempt
    )


def table(counts: Counts, wanted: Iterable[Section]) -> str:
    """Return the table, for people."""
    lines: list[str] = []
    known = {section.title: section for section in wanted}
    titles = dict.fromkeys([*known, *sorted({title for title, _ in counts})])
    for title in titles:
        section = known.get(title, Section(title, (), {}))
        others = sorted(name for kind, name in counts if kind == title and name not in section.names)
        lines.append(f"{title}:")
        for name in (*section.names, *others):
            why = f"  ({section.exempt[name]})" if name in section.exempt else ""
            lines.append(f"  {counts[title, name]:>9}  {name}{why}")
    return "\n".join(lines)

