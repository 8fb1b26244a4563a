"""Verbs that bring everything they need with them, in this process: no daemon, no cluster, no state file.

It imports no table of verbs: a plan for a file of Pacemaker waits only for what that verb needs.
"""

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.verb import RunnableVerb, run_verb
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Options, Request, Response
from haclusterd.protocol.control import shown_report
from haclusterd.reports.items import exit_status


def wall_clock() -> WallTime:
    """Return this machine's wall clock."""
    return WallTime(time.time_ns() // 1_000_000)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector off: what one request makes of a file is needed until it is answered.

    For a plan of 1,000 resources it would take a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def ask_without_cluster(verb: RunnableVerb, arguments: Mapping[str, Json], options: Options) -> Response:
    """Carry out a verb that brings everything it needs with it."""
    context = Context(Cib(), wall_clock(), "offline", options.reason, is_forced=options.force)
    with without_collector():
        return response_to(Request("", verb.name, arguments, options), run_verb(verb, arguments, context))


def response_to(request: Request, outcome: AnyOutcome) -> Response:
    """Return what a client is answered with an outcome."""
    status = int(exit_status(outcome.reports)) or outcome.exit_status or 0
    return Response(request.id, status, tuple(map(shown_report, outcome.reports)), outcome.data)
