"""Moments of the past by crmsh's words: versions counted back, transitions in the place of versions, what was then.

crmsh names them by PE input files; here a version of the configuration is a number and a transition is TERM.NUMBER.
Source: crmsh 4.4, "history" (show, diff, transition).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import HtmlDiff, unified_diff

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.own.past import LIVE, events, graph, view_of
from haclusterd.cli.own.past import carry_out as look_back
from haclusterd.cli.render.answers import render_data
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session
from haclusterd.model.change_kinds import ChangeKind
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response, refused
from haclusterd.verbs.answers.answer import as_json, read
from haclusterd.verbs.answers.configuration import ConfigurationText
from haclusterd.verbs.answers.crm import TransitionTags
from haclusterd.verbs.answers.history import ComparedVersion, Difference, Events, Transition
from haclusterd.verbs.history import LIMIT_MAX

_TRANSITION = re.compile(r"[0-9]{1,15}\.[0-9]{1,15}", re.ASCII)
_COUNTED = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_CHANGE_NOTHING = frozenset({"nograph", "actions"})
_FOR_OTHERS = {
    "scores": "crm resource scores; of then: crm why RESOURCE --at TIME",
    "utilization": "crm node show, crm resource utilization NAME show",
}  # fmt: skip
_EXPECTED = frozenset({str(ChangeKind.ORDER_ISSUED), str(ChangeKind.OPERATION_SUCCEEDED)})
"""Kinds of events that every transition has."""


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out show, diff or transition; of a report, what it holds is shown as it is."""
    if view_of(session).source != LIVE:
        return look_back(session, invocation)
    return _OWN[invocation.command.name](session, invocation.arguments)


def _show(session: Session, arguments: Mapping[str, Json]) -> int:
    """Show a version of the configuration, or the state of the cluster then."""
    which = str(arguments["version"])
    asked = {name: value for name, value in arguments.items() if name == "secrets"}
    answer = _status_then(session, which) if arguments.get("status") else _configuration_then(session, which, asked)
    return session.show(answer)


def _diff(session: Session, arguments: Mapping[str, Json]) -> int:
    """Show what differs between two versions, or between the states of the cluster then."""
    words = _words(arguments, "forms")
    old, new = str(arguments["old"]), str(arguments.get("new") or LIVE)
    if not words:
        first = _version(session, old)
        if isinstance(first, Response):
            return session.show(first)
        last = _version(session, new)
        if isinstance(last, Response):
            return session.show(last)
        return session.show(session.ask("history.diff", {"old": first, "new": last}))
    then = _status_then if "status" in words else _configuration_then
    answers = [then(session, word) for word in (old, new)]
    for answer in answers:
        if answer.exit:
            return session.show(answer)
    before, after = (render_data(Screen(), answer.data) for answer in answers)
    if "html" in words:
        session.write(HtmlDiff(wrapcolumn=80).make_file(before, after, old, new, context=True).splitlines())
        return 0
    text = "\n".join(unified_diff(before, after, old, new, lineterm=""))
    compared = Difference(ComparedVersion(old), ComparedVersion(new), text)
    return session.show(Response("", 0, tuple(each for answer in answers for each in answer.reports),
                                 as_json(compared)))  # fmt: skip


def _transition(session: Session, arguments: Mapping[str, Json]) -> int:
    """Show a transition, what happened meanwhile, or the kinds of that; draw it; keep the state at its beginning."""
    action = str(arguments.get("action") or "")
    words = [str(arguments["transition"])] if arguments.get("transition") else []
    words += _words(arguments, "words")
    for word in words:
        if word in _FOR_OTHERS:
            return session.fail("USAGE", f"transition does not show {word}", _FOR_OTHERS[word], 64)
    named = [word for word in words if word not in _CHANGE_NOTHING and not re.fullmatch("v+", word)]
    if len(named) > (2 if action == "save" else 1):
        return session.fail("USAGE", f"history transition: too many words: {' '.join(named[1:])}",
                            "crm history transition --help", 64)  # fmt: skip
    asked: dict[str, Json] = {"transition": named[0]} if named else {}
    if action == "showdot":
        return session.show(graph(session, asked))
    answer = session.ask("history.transition", asked)
    if not action or answer.exit:
        return session.show(answer)
    found = read(Transition, answer.data)
    if action == "save":
        from haclusterd.cli.shadows import save_past

        name = named[1] if len(named) > 1 else f"transition-{found.transition}"
        return session.show(save_past(session, name, _iso(found.at)))
    ended = [each.ended_at for each in found.actions]
    meanwhile: dict[str, Json] = {"since": _iso(found.at), "limit": LIMIT_MAX}
    if None not in ended:
        meanwhile["until"] = _iso(max(at for at in ended if at is not None))
    if action == "log":
        return events(session, meanwhile)
    return session.show(_tags(session, found, meanwhile))


def _tags(session: Session, found: Transition, meanwhile: Mapping[str, Json]) -> Response:
    answer = session.ask("history.events", meanwhile)
    if answer.exit:
        return answer
    kinds = {each.kind for each in read(Events, answer.data).events} - _EXPECTED
    if any(each.is_failed for each in found.actions):
        kinds.add("error")
    return Response("", 0, answer.reports, as_json(TransitionTags(found.transition, tuple(sorted(kinds)))))


def _words(arguments: Mapping[str, Json], name: str) -> list[str]:
    words = arguments.get(name)
    return [str(word) for word in words] if isinstance(words, Sequence) else []


def _version(session: Session, word: str) -> int | Response:
    """Return which version is meant, as the verbs count: -1 is the newest, 0 the present one."""
    if word == LIVE:
        return 0
    if _COUNTED.fullmatch(word):
        return int(word)
    if not _TRANSITION.fullmatch(word):
        return refused("BAD_ARGUMENT", f"{word!r} is no version and no transition",
                       "crm history config, crm history transitions", 2)  # fmt: skip
    answer = session.ask("history.transition", {"transition": word})
    if answer.exit:
        return answer
    version = read(Transition, answer.data).version
    if version is None:
        return refused("NO_SUCH_OBJECT", f"which version was in force in transition {word} is not known",
                       "crm history config", 105)  # fmt: skip
    return version


def _configuration_then(session: Session, word: str, more: Mapping[str, Json] | None = None) -> Response:
    version = _version(session, word)
    if isinstance(version, Response):
        return version
    return session.ask("history.show", {"version": version, **(more or {})})


def _status_then(session: Session, word: str) -> Response:
    """Return the state of the cluster when a transition began, or when a version came into force; live: now."""
    if word in (LIVE, "0"):
        return session.ask("history.status", {})
    if _TRANSITION.fullmatch(word):
        answer = session.ask("history.transition", {"transition": word})
        at = None if answer.exit else read(Transition, answer.data).at
    else:
        answer = _configuration_then(session, word)
        at = None if answer.exit else read(ConfigurationText, answer.data).at
    return answer if at is None else session.ask("history.status", {"at": _iso(at)})


def _iso(at: int) -> str:
    """Write a time in epoch ms as the verbs take it."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at)).isoformat()


_OWN: Mapping[str, Callable[[Session, Mapping[str, Json]], int]] = {
    "show": _show, "diff": _diff, "transition": _transition,
}  # fmt: skip
