"""`crm history events --follow`: what happened, and then what happens, each event once.

A daemon that is away for a while is waited for: the position in the history tells where to continue, also after its
restart. With `-o json` each event is one line, and so is what is missing among them.
"""

import json
import time
from collections.abc import Callable, Mapping

from haclusterd.cli.parsing import UsageError
from haclusterd.cli.render.fields import Fields, fields, listed, part, text
from haclusterd.cli.render.tables import event_lines
from haclusterd.cli.render.terminal import Colour
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.history import Events

RETRY_S = 1.0
PASSING = frozenset({"NOT_RUNNING", "DISCONNECTED", "OUTCOME_UNKNOWN", "TRY_AGAIN", "TAKES_TOO_LONG"})
"""After these the same question may be answered later."""


def follow(session: Session, arguments: Mapping[str, Json], pause: Callable[[float], None] = time.sleep) -> int:
    """Show events until the person interrupts it, or the daemon refuses; return the exit status."""
    asked = {name: value for name, value in arguments.items() if name != "follow"}
    if asked.get("until"):
        raise UsageError("--follow and --until exclude each other", "leave one of them out")
    first = session.ask("history.events", asked)
    if first.exit:
        return session.show(first)
    _show(session, fields(first.data))
    session.tell(first.reports)
    conditions = {name: asked[name] for name in ("node", "resource", "kinds") if asked.get(name)}
    try:
        return _go_on(session, conditions, text(fields(first.data), "next"), pause)
    except KeyboardInterrupt:
        return 0  # Its only end.


def _go_on(session: Session, conditions: Mapping[str, Json], position: str, pause: Callable[[float], None]) -> int:
    shown = ""
    while True:
        response = session.ask("history.follow", {**conditions, "after": position})
        problem = response.error_code
        if not problem:
            _show(session, fields(response.data))
            position = text(fields(response.data), "next")
        elif problem not in PASSING:
            return session.show(response)
        else:
            if problem != shown:
                session.tell(response.reports)
            pause(RETRY_S)
        shown = problem


def _show(session: Session, answer: Fields) -> None:
    missing = part(answer, "missing")
    out = session.streams.stdout
    if session.is_json:
        lines = [json.dumps(each, ensure_ascii=False) for each in listed(answer, "events")]
        lines += [json.dumps({"missing": missing}, ensure_ascii=False)] if missing else []
    else:
        lines = event_lines(session.screen, read(Events, answer))
        lines += [session.screen.paint(f"missing: {text(missing, 'text')}", Colour.YELLOW)] if missing else []
    out.write("".join(f"{line}\n" for line in lines))
    out.flush()
