"""From an invocation to what carries it out, the same at the prompt, in scripts and in the shell.

What is more than a question to a verb is in a file of its own, which is imported only when it is asked for.
"""

from collections.abc import Callable, Mapping

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.session import Session
from haclusterd.model.records import replace
from haclusterd.model.requests import Response, ShownReport

_TIMES = ("since", "until", "at")
"""Arguments that are a span back or a time."""
_HAVE_XML = (("", "status"), ("configure", "show"))
"""Commands with an answer as XML."""


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out a command and show the answer; return the exit status."""
    invocation = _with_times(invocation)
    if session.is_xml and (invocation.level, invocation.command.name) not in _HAVE_XML:
        remedy = "as XML there are: crm status, crm configure show; everything is there with -o json"
        return session.fail("USAGE", f"{invocation.command.name} has no form in XML", remedy, 64)
    special = _SPECIAL.get((invocation.level, invocation.command.name)) or _SPECIAL.get((invocation.level, ""))
    if special is not None:
        return special(session, invocation)
    name = " ".join(part for part in (invocation.level, invocation.command.name) if part)
    if name in session.tools:
        return session.show(session.tools[name](invocation.arguments))
    return session.run(invocation)


def _with_times(invocation: Invocation) -> Invocation:
    """Let a time be typed in each form that `history timeframe` takes; what is none is refused by who is asked."""
    given = {name: invocation.arguments.get(name) for name in _TIMES}
    words = {name: word for name, word in given.items() if isinstance(word, str) and word}
    if not words:
        return invocation
    from haclusterd.cli.moments import moment

    times = {name: moment(word) or word for name, word in words.items()}
    return replace(invocation, arguments={**invocation.arguments, **times})


def _history(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.past import carry_out as look_back

    return look_back(session, invocation)


def _past_moments(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.past_moments import carry_out as look_at

    return look_at(session, invocation)


def _options(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.settings import carry_out as set_

    return session.show(set_(session.settings, invocation, is_kept=session.is_prompt))


def _cibstatus(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.supposing import carry_out as suppose

    return session.show(suppose(session, invocation))


def _script(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.scripts import script

    return script(session, invocation)


def _template(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.scripts import template

    return template(session, invocation)


def _services(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.own.services import carry_out as serve

    return session.show(serve(session, invocation))


def _monitor(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.live.monitor import monitor

    return monitor(session, invocation)


def _completion(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.completing.completion_scripts import SCRIPTS

    session.write(SCRIPTS[str(invocation.arguments["shell"])].splitlines())
    return 0


def _setup(session: Session, invocation: Invocation) -> int:
    assert session.setup is not None
    return session.show(session.setup(invocation.arguments))


def _nothing_waits(session: Session, _: Invocation) -> int:
    report = ShownReport("info", "NOTHING_TO_DO", "nothing waits for a commit: every command commits at once")
    return session.show(Response("", 0, (report,)))


def _status(session: Session, invocation: Invocation) -> int:
    is_plain = not invocation.arguments.get("forms") and not session.is_xml
    if is_plain and (session.is_json or not session.is_as_crmsh):
        return session.run(invocation)
    from haclusterd.cli.own.status_forms import status

    return status(session, invocation)


def _resources(session: Session, invocation: Invocation) -> int:
    if session.is_json or not session.is_as_crmsh:
        return session.run(invocation)
    from haclusterd.cli.own.status_forms import resources

    return resources(session, invocation)


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


def _secret(session: Session, invocation: Invocation) -> int:
    from haclusterd.cli.secret_values import carry_out as keep

    return keep(session, invocation)


_SPECIAL: Mapping[tuple[str, str], Callable[[Session, Invocation], int]] = {
    ("", "status"): _status,
    ("resource", "status"): _resources,
    ("", "simulate"): _simulate,
    ("", "report"): _report,
    ("", "monitor"): _monitor,
    ("configure", "simulate"): _simulate,
    ("configure", "edit"): _edit,
    ("configure", "filter"): _filter,
    ("configure", "graph"): _graph,
    ("cib", ""): _shadows,
    ("cluster", "wait_for_startup"): _wait_for_startup,
    ("api", "token"): _token,
    ("secret", "set"): _secret,
    ("resource", "secret"): _secret,
    ("", "completion"): _completion,
    ("cluster", "setup"): _setup,
    ("configure", "commit"): _nothing_waits,
    ("configure", "discard"): _nothing_waits,
    ("configure", "diff"): _nothing_waits,
    **{("history", name): _past_moments for name in ("show", "diff", "transition")},
    ("history", ""): _history,
    ("options", ""): _options,
    ("cibstatus", "simulate"): _simulate,
    ("cibstatus", ""): _cibstatus,
    ("script", ""): _script,
    ("template", ""): _template,
    **{("cluster", name): _services for name in
       ("start", "stop", "restart", "enable", "disable", "run", "copy", "diff")},
}
"""By level and command; without a command: all of the level."""
