"""Verbs about resources: status, start, stop, restart, move, ban, clear, cleanup, why, scores."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Never

from haclusterd.cib.commands import CleanUp, Command, EndRestart, RestartResource
from haclusterd.commands.configure.change import change
from haclusterd.commands.context import Context
from haclusterd.commands.names import find_given_node, find_resource, find_resources, node_names, primitives_of
from haclusterd.commands.outcome import Outcome, refusal
from haclusterd.commands.planning.planning import over_with, settled, staleness
from haclusterd.commands.resource import explanation, moving
from haclusterd.commands.resource.settings import TARGET_ROLE, with_meta
from haclusterd.commands.status.overview import Overview
from haclusterd.commands.status.resource_state import (
    Failure,
    active_nodes,
    failures,
    is_stopped,
    new_failure,
    recorded_names,
)
from haclusterd.commands.status.status import resource_answer
from haclusterd.commands.verb import answers, carry_out_by
from haclusterd.model.activity import possibly_active
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Configuration
from haclusterd.model.ids import NodeName, ResourceId, base_of
from haclusterd.model.records import dataclass, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import ReportItem, report
from haclusterd.scheduler.unpack.management import unmanaged
from haclusterd.verbs.answers.configuration import Change
from haclusterd.verbs.answers.resource import Scores, Why
from haclusterd.verbs.answers.status import Cleanup, Resources, Restart
from haclusterd.verbs.arguments import Arguments

RESTART_LIMIT_MS: Final = 20 * 60 * 1000
"""After so long what is being restarted may run again, whatever has not stopped."""


def status(context: Context, arguments: Arguments) -> Outcome[Resources]:
    """Answer how resources are (schema `haclusterd.resources/1`)."""
    found, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    configuration = context.cib.configuration
    parents = configuration.parents()
    chosen = found or tuple(each for each in configuration.resources if each not in parents)
    overview = Overview(context.cib)
    shown = tuple(resource_answer(overview, configuration.resources[each]) for each in chosen)
    return Outcome(tuple(staleness(context)), answer=Resources(now=context.now, resources=shown))


def start(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Let resources run."""
    found, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    new = with_meta(context.cib.configuration, found, TARGET_ROLE, "Started")
    wanted = _primitives(new, found)
    outcome = change(
        context,
        new,
        done=f"{', '.join(found)} may run",
        until=lambda cib, _live: not _not_active(cib, wanted),
        waiting_for=f"{', '.join(found)} to run",
    )
    return _or_failed(context, outcome, wanted, lambda cib: _not_active(cib, wanted), Code.NOT_STARTED)


def stop(context: Context, arguments: Arguments) -> Outcome[Change]:
    """Stop resources and keep them stopped."""
    found, unknown = find_resources(context, arguments.words("resources"))
    if unknown:
        return refusal(*unknown)
    new = with_meta(context.cib.configuration, found, TARGET_ROLE, "Stopped")
    primitives = _primitives(new, found)
    outcome = change(
        context,
        new,
        done=f"{', '.join(found)} is to stop" if len(found) == 1 else f"{', '.join(found)} are to stop",
        until=lambda cib, _live: is_stopped(cib, primitives),
        waiting_for=f"{', '.join(found)} to be stopped",
    )
    return _or_failed(context, outcome, primitives, lambda cib: _not_stopped(cib, primitives), Code.NOT_STOPPED)


def _or_failed(
    context: Context,
    outcome: Outcome[Change],
    primitives: Collection[ResourceId],
    missing: Callable[[Cib], list[ResourceId]],
    code: Code,
) -> Outcome[Change]:
    """End the wait also when a primitive has failed and nothing is left to try; name what is `missing`, and why."""
    if outcome.until is None or not outcome.commands:
        return outcome
    before = failures(context.cib)

    def tell(cib: Cib, is_over: bool) -> Outcome[Never]:
        late = () if is_over else (report(Code.TIMEOUT, time="the time given", what=outcome.waiting_for),)
        whys = {each: new_failure(cib, before, (each,)) for each in missing(cib)}
        return Outcome((*late, *(report(code, resource=each, why=why) for each, why in whys.items() if why)))

    return replace(
        outcome, until=over_with(context, lambda cib: new_failure(cib, before, primitives), outcome.until),
        until_plans=True, afterwards=tell, only_reports=True,
    )  # fmt: skip


def restart(context: Context, arguments: Arguments) -> Outcome[Restart]:
    """Stop resources everywhere and let them run again; the cluster finishes that also when who asked for it is gone.

    All are judged before any is stopped. Each may run again as soon as it has stopped everywhere. The waiting ends
    when they run, or when the cluster has nothing left to try.
    """
    words = tuple(dict.fromkeys((arguments.word("resource"), *arguments.words("others"))))
    found, unknown = find_resources(context, words)
    if unknown:
        resources, nodes = context.cib.configuration.resources, node_names(context.cib)
        named = [word for word in words[1:] if word not in resources and word in nodes]
        return refusal(*map(_no_restart_on, named), *(() if named else unknown))
    if context.live is None:
        return refusal(report(Code.NOT_OFFLINE, what="restarting"))
    objections = [each for resource in found for each in _against_restart(context, resource)]
    if objections:
        return refusal(*objections)
    primitives = _primitives(context.cib.configuration, found)
    running = _not_stopped(context.cib, primitives)
    unwanted = _unwanted(context, running)
    expected = tuple(each for each in running if each not in unwanted)
    again = _RunningAgain(context, found, expected, failures(context.cib))
    return Outcome(
        reports=(report(Code.REQUESTED, what=f"{again.names} {'restarts' if len(found) == 1 else 'restart'}"),),
        commands=tuple(RestartResource(each, RESTART_LIMIT_MS, context.author, context.reason) for each in found),
        answer=Restart(resource=found[0], limit_ms=RESTART_LIMIT_MS, others=found[1:]),
        until=lambda cib, _live: not any(each in cib.status.restarts for each in found),
        waiting_for=f"{again.names} to be stopped",
        waits_by_default=True,
        afterwards=again.wait,
    )


@dataclass(frozen=True, slots=True)
class _RunningAgain:
    """The second half of a restart: what was stopped is waited for until it runs again, or has failed to."""

    context: Context
    """As of the request."""
    resources: tuple[ResourceId, ...]
    primitives: tuple[ResourceId, ...]
    """Those of the resources that ran, and are to run again."""
    before: tuple[Failure, ...]
    """What had failed before the request."""

    @property
    def names(self) -> str:
        """The resources, as text."""
        return ", ".join(self.resources)

    def wait(self, cib: Cib, is_down: bool) -> Outcome[Never]:
        """End the restarts that have taken too long, and wait until everything runs; `is_down`: all has stopped."""
        known = {name: each for name, each in cib.status.restarts.items() if name in self.resources}
        return Outcome(
            reports=() if is_down else (self._late("to be stopped"),),
            commands=tuple(
                EndRestart(name, each.at, "who asked for it waits no longer") for name, each in known.items()
            ),
            until=over_with(
                self.context,
                lambda cib: self._failure(cib, self.primitives),
                lambda cib, _live: not _not_active(cib, self.primitives),
            ),
            until_plans=True,
            waiting_for=f"{self.names} to run again",
            waits_by_default=True,
            afterwards=self._end,
            only_reports=True,
        )

    def _end(self, cib: Cib, is_over: bool) -> Outcome[Never]:
        whys = {each: self._failure(cib, (each,)) for each in _not_active(cib, self.primitives)}
        failed = (report(Code.NOT_STARTED_AGAIN, resource=each, why=why) for each, why in whys.items() if why)
        again = report(Code.REQUESTED, what=f"{self.names} {'runs' if len(self.resources) == 1 else 'run'} again")
        late = () if is_over else (self._late("to run again"),)
        return Outcome((*late, *failed) if whys else (again,))

    def _failure(self, cib: Cib, primitives: Collection[ResourceId]) -> str:
        return new_failure(cib, self.before, primitives)

    def _late(self, what: str) -> ReportItem:
        return report(Code.TIMEOUT, time="the time given", what=f"{self.names} {what}")


def _not_active(cib: Cib, primitives: Iterable[ResourceId]) -> list[ResourceId]:
    return [each for each in primitives if not active_nodes(cib, each)]


def _not_stopped(cib: Cib, primitives: Iterable[ResourceId]) -> list[ResourceId]:
    return [each for each in primitives if not is_stopped(cib, (each,))]


def _no_restart_on(node: str) -> ReportItem:
    """Refuse a node where resources are named: a restart stops its resources everywhere."""
    problem = f"{node} is a node, not a resource: a restart stops a resource everywhere"
    remedy = f"on {node} alone: crm resource ban RESOURCE {node}, then crm resource clear RESOURCE {node}"
    return report(Code.BAD_ARGUMENT, name="others", problem=problem, remedy=remedy)


def _against_restart(context: Context, resource: ResourceId) -> Iterator[ReportItem]:
    """Yield why a resource cannot be restarted."""
    primitives = _primitives(context.cib.configuration, (resource,))
    if is_stopped(context.cib, primitives):
        yield report(Code.NOT_ACTIVE, resource=resource, remedy=f"crm resource start {resource}")
        return
    untouched = _unmanaged_on(context, primitives)
    if untouched:
        yield report(Code.UNMANAGED, resource=resource, nodes=", ".join(untouched))
        return
    running = [each for each in primitives if active_nodes(context.cib, each)]
    unwanted = _unwanted(context, running)
    if unwanted and len(unwanted) == len(running):
        problem = f"{resource} is not to run ({unwanted[running[0]]}), and would only stop"
        yield report(Code.REFUSED, problem=problem, remedy=f"crm resource start {resource}")


def _unwanted(context: Context, running: Iterable[ResourceId]) -> dict[ResourceId, str]:
    """Return which of these primitives are not to run, and by whose wish."""
    overview = Overview(context.cib)
    own = {each.id: each for each in overview.cib.configuration.primitives()}
    wishes = {each: overview.not_wanted(own[each]) for each in running}
    return {each: wish for each, wish in wishes.items() if wish and not wish.startswith("restart of ")}


def _unmanaged_on(context: Context, primitives: Iterable[ResourceId]) -> list[NodeName]:
    """Return the nodes on which something of these primitives may run that the cluster does not stop."""
    wanted = frozenset(primitives)
    found = []
    for status in context.cib.status.nodes.values():
        there = {each for each in possibly_active(status) if base_of(each) in wanted}
        if unmanaged(context.cib, status.name, there, context.now):
            found.append(status.name)
    return sorted(found)


def _primitives(configuration: Configuration, resources: Iterable[ResourceId]) -> tuple[ResourceId, ...]:
    return tuple(dict.fromkeys(each for resource in resources for each in primitives_of(configuration, resource)))


def chosen_records(
    context: Context, arguments: Arguments
) -> tuple[tuple[ResourceId, ...] | None, NodeName | None] | Outcome[Never]:
    """Look up which primitives and which node are asked about; None: all."""
    resource = find_recorded(context, arguments.word("resource")) if arguments.word("resource") else None
    node = find_given_node(context, arguments.word("node"))
    objections = tuple(each for each in (resource, node) if isinstance(each, ReportItem))
    if objections or isinstance(resource, ReportItem) or isinstance(node, ReportItem):
        return refusal(*objections)
    # What was deleted and is still recorded is no resource of the configuration.
    named = None if resource is None else primitives_of(context.cib.configuration, resource) or (resource,)
    return named, node


def cleanup(context: Context, arguments: Arguments) -> Outcome[Cleanup]:
    """Forget failures of one resource or all, on one node or all."""
    chosen = chosen_records(context, arguments)
    if isinstance(chosen, Outcome):
        return chosen
    named, node = chosen
    reprobe = arguments.flag("reprobe")
    forgotten = [
        each
        for each in failures(context.cib)
        if (named is None or base_of(each.resource) in named) and node in (None, each.node)
    ]
    if not forgotten and not reprobe:
        return Outcome((report(Code.NOTHING_TO_DO, state="no failures are remembered"),))
    commands: tuple[Command, ...] = (CleanUp(None, node, reprobe, context.author, context.reason),)
    if named is not None:
        recorded = (name for each in named for status in context.cib.status.nodes.values()
                    for name in recorded_names(status, each))  # fmt: skip
        commands = tuple(
            CleanUp(each, node, reprobe, context.author, context.reason) for each in dict.fromkeys((*named, *recorded))
        )
    words = ", ".join(dict.fromkeys(f"{each.resource} on {each.node}" for each in forgotten))
    whose = "everything" if named is None else ", ".join(named)
    what = [f"forgot the failures of {words}"] if forgotten else []
    what += [f"{whose} is probed again on {node or 'all nodes'}"] if reprobe else []
    return Outcome(
        reports=(report(Code.REQUESTED, what="; ".join(what)),),
        commands=commands,
        answer=Cleanup(forgotten=len(forgotten)),
        until=settled(context.now),
        until_plans=True,
        waiting_for="the cluster to settle",
    )


def find_recorded(context: Context, word: str) -> ResourceId | ReportItem:
    """Look up a resource, or what was deleted and of which a node still has records."""
    statuses = context.cib.status.nodes.values()
    recorded = {base_of(name) for status in statuses for name in (*status.histories, *status.unverified)}
    found = find_resource(context, word)
    return ResourceId(word) if isinstance(found, ReportItem) and ResourceId(word) in recorded else found


VERBS = (
    carry_out_by("resource.status", status, answers(Resources)),
    carry_out_by("resource.start", start, answers(Change)),
    carry_out_by("resource.stop", stop, answers(Change)),
    carry_out_by("resource.restart", restart, answers(Restart)),
    carry_out_by("resource.move", moving.move, answers(Change)),
    carry_out_by("resource.ban", moving.ban, answers(Change)),
    carry_out_by("resource.clear", moving.clear, answers(Change)),
    carry_out_by("resource.cleanup", cleanup, answers(Cleanup)),
    carry_out_by("resource.why", explanation.why, answers(Why)),
    carry_out_by("resource.scores", explanation.scores, answers(Scores)),
)
