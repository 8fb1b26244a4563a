"""`crm migrate check`: whether the configuration of a Pacemaker cluster may come in as it is.

The answer says what loads, what changes its meaning, what this machine lacks, which nodes nobody can fence, and what a
cluster of ours would do first with what the CIB says is running. A CIB may come in when it loads as a whole, its agents
are here, and the first plan neither ends nor moves anything that runs. It is judged by the same reading, checks and
scheduler as `configure load xml` and the running cluster; nothing is changed. A script of crmsh says the same without
what runs where, so that nothing is known of the first plan.

What is said of a configuration is of two kinds. What means something else here than in Pacemaker, or nothing, must be
known before the change; what means the same in both, and is worth a look, is advice, and would be as true without any
change.
"""

from collections.abc import Iterator, Mapping

from haclusterd.commands.configure.adoption import adopt
from haclusterd.commands.configure.script import Reading, founded, read_file
from haclusterd.commands.configure.settling import settle
from haclusterd.commands.context import Context
from haclusterd.commands.migration_differences import Decision, as_probed, differences
from haclusterd.commands.outcome import Outcome
from haclusterd.commands.planning.planning import as_pacemaker, plan
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.cib_xml.document import CibReading, read_cib
from haclusterd.formats.cib_xml.notes import AS_IN_PACEMAKER
from haclusterd.model.agents import AgentFacts
from haclusterd.model.cluster import Cib, Member, NodeState
from haclusterd.model.configuration import Configuration, Primitive, effective
from haclusterd.model.graph import ChangeKind, Plan
from haclusterd.model.ids import AgentReference
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import Place, ReportItem, has_errors
from haclusterd.reports.rendering import counted
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.verbs.answers.simulation import (
    FirstPlan,
    MigrationCheck,
    MigrationFinding,
    MissingAgent,
    PlacedOtherwise,
    PlannedChange,
    SizeOfCib,
)

MAY_NOT_COME_IN = 10
"""The exit status of `crm migrate check` for a CIB that may not come in as it is."""
_FENCING = frozenset({Code.FENCING_DISABLED, Code.NODE_NOT_COVERED, Code.DEVICE_NOT_USABLE})
_OF_BOTH = frozenset(
    {
        Code.UNKNOWN_RESOURCE, Code.UNKNOWN_NODE, Code.DUPLICATE_NAME, Code.OPERATION_TWICE, Code.TIMEOUT_TOO_LONG,
        Code.TIMEOUT_BELOW_ADVICE, Code.UNFENCING_NOT_SAID, Code.NO_MONITOR, Code.ORDERS_WAIT, Code.STOPS_WAIT,
        Code.LOCATION_NO_EFFECT, Code.NO_NODE_ALLOWED, Code.FENCE_DEVICE_IN_GROUP, Code.NOT_PROMOTABLE,
        Code.POLICY_NEEDS_FENCING, Code.RULE_WITHOUT_EFFECT, Code.COLOCATION_WITH_MEMBERS_APART,
    }
)  # fmt: skip
"""Warnings of what means the same in Pacemaker."""
_TOO_MANY = ": clone-max"
"""How a setting is named in the refusal of more instances than can be planned in time."""
_INTERRUPTING = frozenset(
    {
        ChangeKind.STOP, ChangeKind.MOVE, ChangeKind.RESTART, ChangeKind.RECOVER, ChangeKind.DEMOTE,
        ChangeKind.REPROMOTE, ChangeKind.MIGRATE,
    }
)  # fmt: skip
"""Changes of what runs. A start, a promotion or a reload takes nothing away from anybody."""


def named_agents(text: str, source: str) -> tuple[AgentReference, ...]:
    """Return the agents that a CIB or a script names, each once; none when it cannot be read."""
    configuration = _read(text, source).cib.configuration
    return tuple(sorted({each.agent for each in configuration.primitives()}, key=str))


def check_migration(text: str, source: str, agents: Mapping[str, AgentFacts], now: WallTime) -> Outcome[MigrationCheck]:
    """Judge a CIB (XML) or a script of crmsh; `agents` are the installed ones of those that it names, by their names.

    Answers `haclusterd.migration_check/1`, with exit status 0 when it may come in and MAY_NOT_COME_IN when not; a text
    that is neither is refused.
    """
    reading = _read(text, source)
    if not (reading.cib.members or reading.cib.configuration.resources) and has_errors(reading.reports):
        return Outcome(reading.reports)
    adopted, reports, is_judged = _judged(text, source, reading, agents)
    found = _Findings(reading, adopted, reports, is_judged, agents, reading.execution_date or now)
    answer = found.answer(source)
    return Outcome(answer=answer, exit_status=0 if answer.may_come_in else MAY_NOT_COME_IN)


def _is_script(text: str) -> bool:
    return bool(text.strip()) and not text.lstrip("\ufeff \t\r\n").startswith("<")


def _read_script(text: str, source: str) -> Reading:
    context = Context(Cib(), WallTime(0), "")
    return read_file(context, text, source, is_yaml=False, base=Configuration(), variables={})


def _read(text: str, source: str) -> CibReading:
    """Read a CIB, or a script of crmsh as one in which no node is up."""
    if not _is_script(text):
        return read_cib(text, source)
    made = _read_script(text, source)
    members = {name: Member(name, ()) for name in made.configuration.nodes}
    return CibReading(Cib(members=members, configuration=made.configuration), reports=made.reports, places=made.places)


def _judged(
    text: str, source: str, reading: CibReading, agents: Mapping[str, AgentFacts]
) -> tuple[Configuration, tuple[ReportItem, ...], bool]:
    """Return what would be loaded, everything that loading it would say, and whether it could be judged as a whole."""
    if _is_script(text):
        made = _read_script(text, source)
        adopted, on_the_way = settle(made.configuration, made.places)
    else:
        made, on_the_way = adopt(text, source, Configuration()), ()
        adopted = made.configuration
    is_judged = not has_errors(made.reports)
    reports = [*made.reports, *on_the_way, *reading.reports]
    if is_judged or _is_script(text):
        members = {name: each for name, each in reading.cib.members.items() if name in adopted.nodes}
        found = verify(adopted, members=members, agents=agents, places=made.places)
        reports += founded(found, made.unread)
    unique: dict[tuple[str, str], ReportItem] = {}
    for item in reports:
        unique.setdefault((str(item.place or ""), item.message), item)
    in_order = sorted(unique.values(), key=lambda item: (item.place is None, item.place or Place(source, 0)))
    return adopted if is_judged else reading.cib.configuration, tuple(in_order), is_judged


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
            reservations=tuple(self._reservations(first)),
            advice=tuple(_shown(each) for each in self._warnings() if _is_of_both(each)),
            notes=tuple(_shown(each) for each in self.reports if each.severity is Severity.INFO),
        )

    def _objections(self, first: FirstPlan) -> Iterator[str]:
        """Yield why it may not come in as it is, each as a clause; none: it may."""
        refused, missing = self._refused(), self._missing()
        if refused:
            yield f"{counted(len(refused), 'part')} of it cannot be loaded"
        if missing:
            yield f"{counted(len(missing), 'agent')} {'is' if len(missing) == 1 else 'are'} not installed here"
        if first.problem:
            yield "no plan can be made for it"
        ended = first.interrupted
        if ended:
            interrupts = f"the first plan interrupts {counted(len(ended), 'resource or node', 'resources or nodes')}"
            if ended == first.by_pacemaker_too:
                interrupts += ", as Pacemaker would at that moment: check again when the cluster is at rest"
            yield interrupts

    def _reservations(self, first: FirstPlan) -> Iterator[str]:
        """Yield what does not keep it out, and what nobody should find out later, each as a clause."""
        unfenced = [each for each in self.reports if each.code in _FENCING]
        if any(each.code is Code.FENCING_DISABLED for each in unfenced):
            yield "fencing is disabled, so that what a lost node ran is not started on another one"
        elif nodes := [each.parameters["node"] for each in unfenced if each.code is Code.NODE_NOT_COVERED]:
            yield f"nobody can fence {', '.join(nodes)}, so that what runs there is not recovered"
        changed = len(self._changed())
        if changed:
            yield f"{counted(changed, 'line means', 'lines mean')} something else here"
        if not first.is_known:
            yield "what would stop or move is not known, since the file does not say what runs where"
        elif first.differences:
            placed = counted(len(first.differences), "resource is", "resources are")
            yield f"{placed} placed in another way than by Pacemaker"

    def _refused(self) -> list[ReportItem]:
        return [
            each for each in self.reports if each.severity is Severity.ERROR and each.code is not Code.UNKNOWN_AGENT
        ]

    def _changed(self) -> list[ReportItem]:
        """Return what loads and does not mean, or not do, here what it does there."""
        return [each for each in self._warnings() if not _is_of_both(each)]

    def _warnings(self) -> Iterator[ReportItem]:
        apart = {*_FENCING, Code.UNKNOWN_AGENT}
        return (each for each in self.reports if each.severity is Severity.WARNING and each.code not in apart)

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
        endless = next((each for each in self._refused() if each.parameters.get("name", "").endswith(_TOO_MANY)), None)
        if endless is not None:
            return FirstPlan(is_known=True, problem=endless.message)
        theirs = as_pacemaker(self.reading)
        ours = ScheduleOptions(has_quorum=theirs.has_quorum)
        here = as_probed(replace(cib, configuration=self.adopted))
        found, foreign = plan(here, self.now, options=ours), plan(cib, self.now, options=theirs)
        for each in (found, foreign):
            if isinstance(each, ReportItem):
                return FirstPlan(is_known=True, problem=each.message)
        assert isinstance(found, Plan)
        assert isinstance(foreign, Plan)
        changes = SimulationDocument(here, found, self.now).summary()
        placed = self._otherwise(Decision(cib, foreign), Decision(here, found))
        by_pacemaker = {_change(each) for each in SimulationDocument(cib, foreign, self.now).summary()}
        interrupting = [each for each in changes if _is_interrupting(each)]
        return FirstPlan(
            is_known=True,
            problem="",
            interrupted=tuple(map(_in_words, interrupting)),
            by_pacemaker_too=tuple(_in_words(each) for each in interrupting if _change(each) in by_pacemaker),
            changes=changes,
            otherwise=tuple(f"{each.resource}: here {each.here}, with Pacemaker {each.pacemaker}" for each in placed),
            differences=placed,
        )

    def _otherwise(self, theirs: Decision, ours: Decision) -> tuple[PlacedOtherwise, ...]:
        """Return what would be placed in another way, each with its reason."""
        loaded = replace(theirs.cib, configuration=self.adopted)
        between = plan(loaded, self.now, options=as_pacemaker(self.reading))
        found = between if isinstance(between, Plan) else theirs.plan
        apart = {*_FENCING, *_OF_BOTH}
        reports = [each for each in self.reports if each.severity is not Severity.ERROR and each.code not in apart]
        return differences(theirs, Decision(loaded, found), ours, reports)


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


def _is_of_both(item: ReportItem) -> bool:
    """Tell whether what a warning is about means the same in Pacemaker."""
    return item.code in _OF_BOTH or AS_IN_PACEMAKER in item.message


def _shown(item: ReportItem) -> MigrationFinding:
    place = "" if item.place is None else str(item.place)
    return MigrationFinding(code=str(item.code), place=place, message=item.message, remedy=item.remedy)
