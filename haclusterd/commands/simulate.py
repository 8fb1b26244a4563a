"""`simulate`: what the cluster would do, now or at another time, with its own CIB or with Pacemaker's."""

from collections.abc import Mapping
from datetime import UTC, datetime

from haclusterd.commands.configure.settling import bad_values, settle
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.injection import SUPPOSITIONS, suppose
from haclusterd.commands.planning.planning import as_pacemaker, plan, rows_afterwards, standing
from haclusterd.commands.planning.simulation_document import SimulationDocument
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, has_errors, in_reading_order, report
from haclusterd.scheduler.model.options import DEFAULT_OPTIONS, ScheduleOptions
from haclusterd.verbs.answers.simulation import Simulation
from haclusterd.verbs.arguments import Arguments

_SHOWN_AT_MOST = 20


def simulate(context: Context, arguments: Arguments) -> Outcome[Simulation]:
    """Answer the plan as a document (schema `haclusterd.simulate/1`).

    A CIB of Pacemaker that cannot be held as a whole is refused; forced, what cannot be held is left out. A daemon
    takes none at all: how long a foreign CIB keeps the scheduler busy is nothing that a cluster should depend on.
    """
    date = moment_of(arguments.word("date"))
    if isinstance(date, ReportItem):
        return refusal(date)
    wanted = {name: arguments.words(name) for name in SUPPOSITIONS}
    if arguments.word("pending"):
        from haclusterd.commands.configure.script import read_script

        made = read_script(context, arguments.word("pending"), "uncommitted changes")
        if has_errors(made.reports):
            return Outcome(made.reports)
        settled, _ = settle(made.configuration, made.places)
        context = replace(context, cib=replace(context.cib, configuration=settled))
    if not arguments.word("text"):
        return _simulate_own(context, wanted, date or context.now, arguments.word("quorum"))
    if context.live is not None:
        problem = "a file is planned for where it is, not by a node of a running cluster"
        return refusal(report(Code.BAD_ARGUMENT, name="text", problem=problem))
    reading = read_cib(arguments.word("text"), arguments.word("source") or "cib.xml")
    is_usable = bool(reading.cib.members) and context.is_forced
    if has_errors(reading.reports) and not is_usable:
        return Outcome(reading.reports)
    options = as_pacemaker(reading)
    options = replace(options, has_quorum=options.has_quorum and arguments.word("quorum") != "lost")
    now = date or reading.execution_date or context.now
    cib = suppose(reading.cib, wanted, now)
    if isinstance(cib, tuple):
        return refusal(*cib)
    doubts = bad_values(reading.cib.configuration, reading.places)
    return _planned(cib, now, options, in_reading_order((*map(_as_warning, reading.reports), *doubts)))


def _simulate_own(
    context: Context, wanted: Mapping[str, tuple[str, ...]], now: WallTime, quorum: str
) -> Outcome[Simulation]:
    """Plan for this cluster; whether it has a quorum follows from who is there, unless that is supposed as well."""
    cib = suppose(context.cib, wanted, now)
    if isinstance(cib, tuple):
        return refusal(*cib)
    if quorum:
        return _planned(cib, now, replace(DEFAULT_OPTIONS, has_quorum=quorum == "present"), ())
    stands = standing(context, cib)
    return _planned(cib, now, stands.options, stands.reports)


def _planned(cib: Cib, now: WallTime, options: ScheduleOptions, reports: tuple[ReportItem, ...]) -> Outcome[Simulation]:
    from haclusterd.scheduler.model.plan_cache import PlanCache

    cache = PlanCache()
    found = plan(cib, now, options=options, cache=cache)
    if isinstance(found, ReportItem):
        return refusal(found)
    rows = rows_afterwards(cib, found, now, options, cache) if options.is_pacemaker_compatible else None
    return Outcome(reports, answer=SimulationDocument(cib, found, now, rows).write())


def _as_warning(item: ReportItem) -> ReportItem:
    """What was accepted with --force refuses nothing any more."""
    if item.severity is not Severity.ERROR:
        return item
    return report(Code.LEFT_OUT, place=item.place, problem=item.message)


def moment_of(text: str) -> WallTime | ReportItem | None:
    """Read a date as ISO 8601 or as seconds since 1970; without a zone it is UTC."""
    if not text:
        return None
    try:
        if text.isdecimal() and len(text) <= 12:
            return WallTime(int(text) * 1000)
        found = datetime.fromisoformat(text)
        moment = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return WallTime(int(moment.timestamp()) * 1000)
    except (ValueError, OverflowError):
        problem = f"{text[:_SHOWN_AT_MOST]!r} is no date (write it like 2026-06-01T12:00:00Z)"
        return report(Code.BAD_ARGUMENT, name="date", problem=problem)


SIMULATE = carry_out_by("simulate", simulate, answers(Simulation))
VERBS = (SIMULATE,)
