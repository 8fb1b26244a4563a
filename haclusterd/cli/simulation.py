"""`crm simulate`: a plan for the running cluster, for a state file, or for CIBs of Pacemaker read in this process.

A file of Pacemaker needs no daemon and no cluster; nothing is changed by any of this.
"""

import json
from collections.abc import Mapping, Sequence

from haclusterd.cli.parsing import UsageError
from haclusterd.cli.reading import read_text, shown_name
from haclusterd.cli.render import answers as render
from haclusterd.cli.render.fields import fields
from haclusterd.cli.render.simulation import render_dot
from haclusterd.cli.session import Session
from haclusterd.cli.shadow_files import LIVE
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response
from haclusterd.protocol.control import report_as_json
from haclusterd.verbs.answers.answer import read
from haclusterd.verbs.answers.simulation import Simulation, Simulations


def simulate(session: Session, arguments: Mapping[str, Json]) -> int:
    """Plan once, or once for each file; return the exit status of the first that was refused."""
    format_ = arguments.get("format")
    _refuse_words(arguments.get("words"))
    sources = arguments.get("cib")
    names = [str(name) for name in sources] if isinstance(sources, Sequence) else []
    question = {name: value for name, value in arguments.items() if name not in ("cib", "format", "words")}
    if session.pending:
        question["pending"] = session.pending_text()
    if not names and (session.supposed or session.supposed_of != LIVE):
        from haclusterd.cli.own.supposing import ask_for_plan, question_with

        answers = [("", ask_for_plan(session, question_with(session, question)))]
    elif not names:
        answers = [("", session.ask("simulate", question))]
    else:
        answers = [(name, _planned(session, name, question)) for name in names]
    if format_ == "json" or session.is_json:
        _write_json(session, answers)
    else:
        _write_text(session, answers, is_dot=format_ == "dot")
    return next((answer.exit for _, answer in answers if answer.exit), 0)


def _refuse_words(words: Json) -> None:
    """Refuse words of crmsh's `simulate` for which there is another command; the others change nothing here."""
    for word in words if isinstance(words, Sequence) else ():
        if word in ("scores", "utilization"):
            what = "crm resource scores" if word == "scores" else "crm node show, crm resource utilization NAME show"
            raise UsageError(f"simulate does not show {word}", what)
        if word not in ("nograph", "actions"):
            raise UsageError(f"simulate: {word!r} is not one of: actions, nograph")


def _planned(session: Session, name: str, question: Mapping[str, Json]) -> Response:
    """Plan for one file of Pacemaker."""
    from haclusterd.cli.without_cluster import ask_without_cluster
    from haclusterd.commands.simulate import SIMULATE

    text = read_text(name, session.streams.stdin)
    if isinstance(text, Response):
        return text
    asked = {"text": text or " ", "source": shown_name(name), **question}
    return ask_without_cluster(SIMULATE, asked, session.options)


def _write_json(session: Session, answers: Sequence[tuple[str, Response]]) -> None:
    """Write one document, or an object with all of them; what was refused is reported on the standard error."""
    for _, answer in answers:
        if answer.exit:
            session.streams.stderr.write(render.error_as_json(answer) + "\n")
    documents = [
        {**fields(answer.data), "source": name, "reports": [report_as_json(each) for each in answer.reports]}
        for name, answer in answers
        if answer.data is not None
    ]
    written: Json = documents[0] if len(answers) == 1 and documents else None
    if len(answers) > 1:
        written = {"schema": Simulations.SCHEMA, "simulations": documents}
    if written is not None:
        session.streams.stdout.write(json.dumps(written, ensure_ascii=False) + "\n")
    session.streams.stdout.flush()


def _write_text(session: Session, answers: Sequence[tuple[str, Response]], *, is_dot: bool) -> None:
    for name, answer in answers:
        if len(answers) > 1 and not is_dot:
            session.streams.stdout.write(f"== {name}\n")
        if is_dot and answer.data is not None:
            session.write(render_dot(session.screen, read(Simulation, answer.data)))
            session.tell(answer.reports)
        else:
            session.show(answer)
