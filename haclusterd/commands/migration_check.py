"""`crm migrate check`: whether the configuration of a Pacemaker cluster may come in as it is.

The answer says what loads, what changes its meaning, what this machine lacks, which nodes nobody can fence, and what a
cluster of ours would do first with what the CIB says is running. A CIB may come in when it loads as a whole, its agents
are here, and the first plan neither ends nor moves anything that runs. It is judged by the same reading, checks and
scheduler as `configure load xml` and the running cluster; nothing is changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from haclusterd.commands.configure.adoption import adopt
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.planning import as_pacemaker, plan
from haclusterd.commands.planning.simulated_state import State, state_after
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.cib_xml.document import CibReading, read_cib
from haclusterd.model.agents import AgentFacts
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import Clone, Configuration, Primitive, contained, effective
from haclusterd.model.graph import ChangeKind, Plan
from haclusterd.model.ids import AgentReference, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.properties import collective_flag
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.verbs.answers.simulation import (
    FirstPlan,
    MigrationCheck,
    MigrationFinding,
    MissingAgent,
    PlannedChange,
    SizeOfCib,
)

MAY_NOT_COME_IN = 10
"""The exit status of `crm migrate check` for a CIB that may not come in as it is."""
_FENCING = frozenset({Code.FENCING_DISABLED, Code.NODE_NOT_COVERED})
_INTERRUPTING = frozenset(
    {
        ChangeKind.STOP, ChangeKind.MOVE, ChangeKind.RESTART, ChangeKind.RECOVER, ChangeKind.DEMOTE,
        ChangeKind.REPROMOTE, ChangeKind.MIGRATE,
    }
)  # fmt: skip
"""Changes of what runs. A start, a promotion or a reload takes nothing away from anybody."""


def named_agents(text: str, source: str) -> tuple[AgentReference, ...]:
    """Return the agents that a CIB names, each once; none when it cannot be read."""
    configuration = read_cib(text, source).cib.configuration
    return tuple(sorted({each.agent for each in configuration.primitives()}, key=str))


def check_migration(text: str, source: str, agents: Mapping[str, AgentFacts], now: WallTime) -> Outcome:
    """Judge a CIB (XML); `agents` are the installed ones of those that it names, by `str(AgentReference)`.

    Answers `haclusterd.migration_check/1`, with exit status 0 when it may come in and MAY_NOT_COME_IN when not; a text
    that is no CIB is refused.
    """
    reading = read_cib(text, source)
    if not reading.cib.members and has_errors(reading.reports):
        return Outcome(reading.reports)
    adopted, reports, is_judged = _judged(text, source, reading, agents)
    found = _Findings(reading, adopted, reports, is_judged, agents, reading.execution_date or now)
    answer = found.answer(source)
    return Outcome(answer=answer, exit_status=0 if answer.may_come_in else MAY_NOT_COME_IN)


def _judged(
    text: str, source: str, reading: CibReading, agents: Mapping[str, AgentFacts]
) -> tuple[Configuration, tuple[ReportItem, ...], bool]:
    """Return what would be loaded, everything that loading it would say, and whether it could be judged as a whole."""
    made = adopt(text, source, Configuration())
    reports = [*made.reports, *reading.reports]
    is_judged = not has_errors(made.reports)
    if is_judged:
        members = {name: each for name, each in reading.cib.members.items() if name in made.configuration.nodes}
        reports += verify(made.configuration, members=members, agents=agents, places=made.places)
    unique: dict[tuple[str, str], ReportItem] = {}
    for item in reports:
        unique.setdefault((str(item.place or ""), item.message), item)
    return made.configuration if is_judged else reading.cib.configuration, tuple(unique.values()), is_judged


@dataclass(frozen=True, slots=True)
class _Findings:
    """What was found out about one CIB."""

    reading: CibReading
    adopted: Configuration
    """What would be loaded; where it cannot be, what was read."""
    reports: tuple[ReportItem, ...]
    is_judged: bool
    """Whether it could be judged as a whole: with what cannot be loaded in it, it is not known who can fence whom."""
    agents: Mapping[str, AgentFacts]
    now: WallTime

    def answer(self, source: str) -> MigrationCheck:
        """Return it all."""
        configuration, first = self.reading.cib.configuration, self._planned()
        properties, objections = effective(configuration.properties), tuple(self._objections(first))
        return MigrationCheck(
            source=source,
            pacemaker=properties.get("dc-version", ""),
            cluster=properties.get("cluster-name", ""),
            size=SizeOfCib(
                nodes=len(configuration.nodes),
                resources=sum(1 for _ in configuration.primitives()),
                constraints=len(configuration.constraints),
            ),
            may_come_in=not objections,
            objections=objections,
            refused=tuple(map(_shown, self._refused())),
            changed=tuple(map(_shown, self._changed())),
            missing_agents=tuple(
                MissingAgent(agent, tuple(resources)) for agent, resources in self._missing().items()
            ),
            is_judged=self.is_judged,
            unfenced=tuple(_shown(each) for each in self.reports if each.code in _FENCING),
            plan=first,
        )

    def _objections(self, first: FirstPlan) -> Iterator[str]:
        """Yield why it may not come in as it is, each as a clause; none: it may."""
        refused, missing = self._refused(), self._missing()
        if refused:
            yield f"{_counted(len(refused), 'part')} of it cannot be loaded"
        if missing:
            yield f"{_counted(len(missing), 'agent')} {'is' if len(missing) == 1 else 'are'} not installed here"
        if first.problem:
            yield "no plan can be made for it"
        ended = first.interrupted
        if ended:
            interrupts = f"the first plan interrupts {_counted(len(ended), 'resource or node', 'resources or nodes')}"
            if ended == first.by_pacemaker_too:
                interrupts += ", as Pacemaker would at that moment: check again when the cluster is at rest"
            yield interrupts

    def _refused(self) -> list[ReportItem]:
        return [
            each for each in self.reports if each.severity is Severity.ERROR and each.code is not Code.UNKNOWN_AGENT
        ]

    def _changed(self) -> list[ReportItem]:
        """Return what loads and does not mean, or not do, here what it does there."""
        return [
            each
            for each in self.reports
            if each.severity is Severity.WARNING and each.code not in {*_FENCING, Code.UNKNOWN_AGENT}
        ]

    def _missing(self) -> dict[str, list[str]]:
        missing: dict[str, list[str]] = {}
        for each in self.reading.cib.configuration.primitives():
            if _is_for_an_agent(each) and str(each.agent) not in self.agents:
                missing.setdefault(str(each.agent), []).append(each.id)
        return dict(sorted(missing.items()))

    # The first plan

    def _planned(self) -> FirstPlan:
        """Return what this cluster would do first with what the CIB says is running, and where Pacemaker differs."""
        cib = self.reading.cib
        is_known = any(each.state is NodeState.ONLINE for each in cib.status.nodes.values())
        if not is_known:
            return FirstPlan(is_known=False, problem="")
        theirs = as_pacemaker(self.reading)
        ours = ScheduleOptions(has_quorum=theirs.has_quorum)
        here = replace(cib, configuration=self.adopted)
        found, foreign = plan(here, self.now, options=ours), plan(cib, self.now, options=theirs)
        for each in (found, foreign):
            if isinstance(each, ReportItem):
                return FirstPlan(is_known=True, problem=each.message)
        assert isinstance(found, Plan)
        assert isinstance(foreign, Plan)
        changes = SimulationDocument(here, found, self.now).summary()
        by_pacemaker = {_change(each) for each in SimulationDocument(cib, foreign, self.now).summary()}
        interrupting = [each for each in changes if _is_interrupting(each)]
        return FirstPlan(
            is_known=True,
            problem="",
            interrupted=tuple(map(_in_words, interrupting)),
            by_pacemaker_too=tuple(_in_words(each) for each in interrupting if _change(each) in by_pacemaker),
            changes=changes,
            otherwise=tuple(otherwise(self.adopted, state_after(found), state_after(foreign))),
        )


def _is_for_an_agent(primitive: Primitive) -> bool:
    """Tell whether a program of this machine is meant; a connection to a remote node is the cluster's own."""
    agent = primitive.agent
    return (agent.provider, agent.type) != ("pacemaker", "remote")


def _is_interrupting(change: PlannedChange) -> bool:
    """Tell whether a change ends or moves what runs now."""
    return change.action == "fence" or (change.action in set(map(str, _INTERRUPTING)) and not change.impossible)


def _change(change: PlannedChange) -> tuple[str, str | None]:
    """Return what tells one change from another, whatever the reason for it."""
    return change.action, change.node if change.action == "fence" else change.resource


def _in_words(change: PlannedChange) -> str:
    if change.action == "fence":
        return f"fence {change.node}: {change.reason}"
    origin = "" if change.from_ is None else f" on {change.from_}"
    reason = "" if change.reason is None else f": {change.reason}"
    return f"{change.action} {change.resource}{origin}{reason}"


def otherwise(configuration: Configuration, ours: State, theirs: State) -> Iterator[str]:
    """Yield what would run somewhere else, or in another role, than with Pacemaker.

    The instances of an anonymous clone are alike: which of them runs on a node says nothing.
    """
    here, there = (_alike(configuration, each) for each in (ours, theirs))
    for name in sorted({*here, *there}):
        if here.get(name, []) != there.get(name, []):
            yield f"{name}: here {_where(here, name)}, with Pacemaker {_where(there, name)}"


_Placed = Mapping[str, Sequence[tuple[str, str]]]
"""Of each resource, or of all instances of an anonymous clone, the nodes and the roles there."""


def _alike(configuration: Configuration, state: State) -> _Placed:
    numbered = {
        name
        for clone in configuration.resources.values()
        if isinstance(clone, Clone) and collective_flag(configuration, clone, "globally-unique")
        for name in (clone.child, *_inside(configuration, clone.child))
    }
    found: dict[str, list[tuple[str, str]]] = {}
    for name, nodes in state.items():
        plain, colon, number = name.rpartition(":")
        is_alike = colon and number.isdecimal() and plain not in numbered
        found.setdefault(plain if is_alike else name, []).extend((str(node), str(role)) for node, role in nodes.items())
    return {name: sorted(placed) for name, placed in found.items()}


def _inside(configuration: Configuration, id_: ResourceId) -> Sequence[ResourceId]:
    found = configuration.resources.get(id_)
    return contained(found) if found is not None else ()


def _where(placed: _Placed, name: str) -> str:
    return ", ".join(f"{role} on {node}" for node, role in placed.get(name, ())) or "stopped"


def _shown(item: ReportItem) -> MigrationFinding:
    place = "" if item.place is None else str(item.place)
    return MigrationFinding(code=str(item.code), place=place, message=item.message, remedy=item.remedy)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"1 {one}" if number == 1 else f"{number} {many or one + 's'}"
