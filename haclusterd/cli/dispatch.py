"""From an invocation to what carries it out, the same at the prompt, in scripts and in the shell.

What is more than a question to a verb stands in a file of its own, which is imported only when it is asked for.
"""

from collections.abc import Callable, Mapping

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.session import Session


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out a command and show the answer; return the exit status."""
    special = _SPECIAL.get((invocation.level, invocation.command.name)) or _SPECIAL.get((invocation.level, ""))
    if special is not None:
        return special(session, invocation)
    if invocation.arguments.get("follow"):
        from haclusterd.cli.following import follow

        return follow(session, invocation.arguments)
    return session.run(invocation)


def _simulate(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.simulation import simulate

    return simulate(session, invocation.arguments)


def _edit(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.editing import edit

    return edit(session, invocation)


def _filter(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.editing import filter_

    return filter_(session, invocation)


def _graph(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.graphing import graph

    return graph(session, invocation.arguments)


def _shadows(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli import shadows

    return session.show(shadows.carry_out(session, invocation))


def _wait_for_startup(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.startup import USUAL_S, wait_for_startup

    seconds = invocation.arguments.get("timeout", USUAL_S)
    return session.show(wait_for_startup(session, seconds if isinstance(seconds, int) else USUAL_S))


def _report(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.bundle import report

    return session.show(report(session, invocation.arguments))


def _token(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.tokens import token

    return token(session, invocation.arguments)


_SPECIAL: Mapping[tuple[str, str], Callable[[Session, Invocation], int]] = {
    ("", "simulate"): _simulate,
    ("", "report"): _report,
    ("configure", "simulate"): _simulate,
    ("configure", "edit"): _edit,
    ("configure", "filter"): _filter,
    ("configure", "graph"): _graph,
    ("cib", ""): _shadows,
    ("cluster", "wait_for_startup"): _wait_for_startup,
    ("api", "token"): _token,
}
"""By level and command; without a command: all of the level."""
