"""The words of `crm history` about how the past is looked at: a time, nodes, what is left out, and from which source.

They count in one `crm`, as in crmsh; `session save` keeps them, with all that a report holds, for later. Of a report
(`crm report`), what it holds can be asked, and nothing else.
"""

import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.moments import FORMS, moment
from haclusterd.cli.reading import FILE_NAME
from haclusterd.cli.render.history import transition_as_dot
from haclusterd.cli.render.terminal import folded
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Response, ShownReport, refused
from haclusterd.verbs.answers.answer import as_json, read
from haclusterd.verbs.answers.configuration import Graph
from haclusterd.verbs.answers.crm import PastView
from haclusterd.verbs.answers.history import Events, HistoryInfo, Transition

LIVE = "live"
EVENTS_MAX = 10_000
_IN_A_REPORT: Mapping[str, str] = {
    "history.events": "events", "history.transitions": "transitions", "history.config": "versions",
    "history.show": "configuration",
}  # fmt: skip
"""Which file of a report answers a verb."""


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out a command of the level, in the view that is set."""
    own = _OWN.get(invocation.command.name)
    if own is not None:
        return session.show(own(session, invocation.arguments))
    view = view_of(session)
    if invocation.arguments.get("follow") and view.source == LIVE:
        from haclusterd.cli.following import follow

        return follow(session, invocation.arguments)
    if invocation.command.verb == "history.events":
        return events(session, invocation.arguments)
    if view.source != LIVE:
        return session.show(_from_report(view.source, invocation.command.verb))
    return session.run(invocation)


def view_of(session: Session) -> PastView:
    """Return what of the past a session looks at: at first all of it, as the cluster remembers it."""
    return session.past or PastView(LIVE, "", "", (), (), 0, ())


def events(session: Session, arguments: Mapping[str, Json]) -> int:
    """Show events, in the view that is set; words that name no node or resource are regular expressions."""
    view = view_of(session)
    asked = {name: value for name, value in arguments.items() if name != "follow"}
    if view.source == LIVE:
        objection = _expand(session, asked)
        if objection is not None:
            return session.show(objection)
    if view.since:
        asked.setdefault("since", view.since)
    if view.until:
        asked.setdefault("until", view.until)
    if view.nodes or view.excluded or view.detail:
        asked.setdefault("limit", EVENTS_MAX)
    verb = "history.events"
    answer = session.ask(verb, asked) if view.source == LIVE else _from_report(view.source, verb)
    if answer.exit or answer.data is None:
        return session.show(answer)
    found = read(Events, answer.data)
    patterns = [re.compile(each) for each in view.excluded]
    kept = tuple(
        each for each in found.events
        if (not view.nodes or each.node in view.nodes) and not any(pattern.search(each.text) for pattern in patterns)
        and (view.source == LIVE or _fits(asked, each.node, each.resource, each.kind))
    )  # fmt: skip
    shown = replace(answer, data=as_json(replace(found, events=kept)))
    if not view.detail or session.is_json:
        return session.show(shown)
    for each in kept:
        about = " ".join(filter(None, (each.node, each.resource, each.author and f"by {each.author}", each.order)))
        first = f"{session.screen.clock(each.at, found.now)} {each.index:>6}  "
        session.write(folded(f"{each.kind}: {each.text} ({about or 'all'}) {each.reason}", indent=first,
                             later=" " * len(first), width=100))  # fmt: skip
    session.tell(answer.reports)
    return 0


def _fits(asked: Mapping[str, Json], node: str | None, resource: str | None, kind: str) -> bool:
    """Tell whether an event of a report is asked for."""
    kinds = asked.get("kinds")
    return (
        asked.get("node") in (None, node) and asked.get("resource") in (None, resource)
        and _is_named(asked.get("nodes"), node) and _is_named(asked.get("resources"), resource)
        and (not kinds or kind in str(kinds))
    )  # fmt: skip


def _is_named(words: Json, name: str | None) -> bool:
    """Tell whether a name is one of the words or fits one of them, or nothing is asked for."""
    if not isinstance(words, Sequence) or not words:
        return True
    return name is not None and any(name == word or _fits_whole(str(word), name) for word in words)


def _fits_whole(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _expand(session: Session, asked: dict[str, Json]) -> Response | None:
    """Put names in the place of regular expressions; return what is wrong with them.

    They are matched here and not by the daemon, for which an expression could take any time.
    """
    for argument in ("nodes", "resources"):
        words = asked.get(argument)
        if not isinstance(words, Sequence) or not any(re.escape(str(word)) != word for word in words):
            continue
        answer = session.ask("history.info", {})
        if answer.exit:
            return answer
        info = read(HistoryInfo, answer.data)
        known = info.nodes if argument == "nodes" else info.resources
        found: list[str] = []
        for word in map(str, words):
            try:
                fitting = [name for name in known if re.fullmatch(word, name)]
            except re.error as error:
                return refused("BAD_ARGUMENT", f"{word!r} is no regular expression: {error}", "", 2)
            found += [word] if word in known or not fitting else fitting
        asked[argument] = list(dict.fromkeys(found))
    return None


def _from_report(name: str, verb: str) -> Response:
    """Return what a report holds as the answer of a verb."""
    title = _IN_A_REPORT.get(verb)
    if title is None:
        return refused("REFUSED", f"{verb} cannot be asked of a report", "crm history source live", 1)
    try:
        with tarfile.open(name) as archive:
            member = archive.extractfile(f"crm-report/{title}.json")
            data = json.loads(member.read()) if member is not None else None
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        return refused("NO_INPUT", f"{name} is no report of crm: {error}", "crm report FILE writes one", 66)
    return Response("", 0, (), data)


# The view


def _limit(session: Session, arguments: Mapping[str, Json]) -> Response:
    written = [str(arguments.get(name) or "") for name in ("since", "until")]
    found = [moment(each) for each in written]
    if None in found:
        return refused("BAD_ARGUMENT", f"{written[found.index(None)]!r} is no time", FORMS, 2)
    session.past = replace(view_of(session), since=str(found[0]), until=str(found[1]))
    return _shown(session)


def _detail(session: Session, arguments: Mapping[str, Json]) -> Response:
    session.past = replace(view_of(session), detail=int(str(arguments["level"])))
    return _shown(session)


def _exclude(session: Session, arguments: Mapping[str, Json]) -> Response:
    pattern = str(arguments.get("pattern") or "")
    if pattern == "clear":
        session.past = replace(view_of(session), excluded=())
    elif pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            return refused("BAD_ARGUMENT", f"{pattern!r} is no regular expression: {error}", "", 2)
        session.past = replace(view_of(session), excluded=(*view_of(session).excluded, pattern))
    return _shown(session)


def _setnodes(session: Session, arguments: Mapping[str, Json]) -> Response:
    words = arguments["nodes"]
    nodes = tuple(str(word) for word in words if word != "node") if isinstance(words, list) else ()
    session.past = replace(view_of(session), nodes=nodes)
    return _shown(session)


def _source(session: Session, arguments: Mapping[str, Json]) -> Response:
    source = str(arguments.get("source") or "")
    if source and source != LIVE:
        held = _from_report(source, "history.events")
        if held.exit:
            return held
    session.past = replace(view_of(session), source=source or view_of(session).source)
    return _shown(session)


def _refresh(session: Session, _: Mapping[str, Json]) -> Response:
    return session.ask("history.info", {}) if view_of(session).source == LIVE else _shown(session)


def _shown(session: Session) -> Response:
    return Response("", 0, (), as_json(replace(view_of(session), sessions=tuple(_kept(session)))))


# Sessions


def _directory(session: Session) -> Path:
    base = session.environment.get("XDG_STATE_HOME") or f"{session.environment.get('HOME', '')}/.local/state"
    return Path(base) / "haclusterd" / "history"


def _kept(session: Session) -> list[str]:
    return sorted(path.stem for path in _directory(session).glob("*.json"))


def _session(session: Session, arguments: Mapping[str, Json]) -> Response:
    action, name = str(arguments.get("action") or "list"), str(arguments.get("name") or "")
    if action == "list":
        return _shown(session)
    if not FILE_NAME.match(name):
        return refused("BAD_ARGUMENT", f"{name!r} is no name for a session", "crm history session save NAME", 2)
    if action not in ("save",) and name not in _kept(session):
        known = ", ".join(_kept(session)) or "none"
        return refused("NO_SUCH_OBJECT", f"there is no session {name}", f"there are: {known}", 105)
    try:
        return _SESSIONS[action](session, _directory(session) / name)
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{error.filename or name}: {error.strerror or error}", "", 74)


def _save(session: Session, path: Path) -> Response:
    """Keep the view, and of the cluster's own past a report."""
    from haclusterd.cli.bundle import report

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = view_of(session)
    bundle, source = path.with_suffix(".tar.gz"), seen.source
    reports: tuple[ShownReport, ...] = ()
    if source == LIVE:
        bundle.unlink(missing_ok=True)
        answer = report(session, {"target": str(bundle), "since": seen.since, "until": seen.until})
        if answer.exit:
            return answer
        source, reports = str(bundle), answer.reports[:-1]
    view = as_json(replace(seen, source=source))
    handle = os.open(path.with_suffix(".json"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(view, file)
    said = ShownReport("info", "REQUESTED", f"session {path.name} is kept; crm history session load {path.name}")
    return Response("", 0, (*reports, said))


def _load(session: Session, path: Path) -> Response:
    view = read(PastView, json.loads(path.with_suffix(".json").read_text()))
    session.past = view
    return _shown(session)


def _delete(_: Session, path: Path) -> Response:
    for suffix in (".json", ".tar.gz"):
        path.with_suffix(suffix).unlink(missing_ok=True)
    return Response("", 0, (ShownReport("info", "REQUESTED", f"session {path.name} is deleted"),))


def _pack(session: Session, path: Path) -> Response:
    """Copy the report of a session here, to be given to somebody."""
    source = json.loads(path.with_suffix(".json").read_text())["source"]
    target = Path(f"{path.name}.tar.gz")
    if target.exists() and not session.options.force:
        return refused("EXISTS", f"{target} exists already", "--force replaces it", 108)
    shutil.copyfile(source, target)
    target.chmod(0o600)
    return Response("", 0, (ShownReport("info", "REQUESTED", f"wrote {target}"),))


_SESSIONS: Mapping[str, Callable[[Session, Path], Response]] = {
    "save": _save, "update": _save, "load": _load, "delete": _delete, "pack": _pack,
}  # fmt: skip


def graph(session: Session, arguments: Mapping[str, Json]) -> Response:
    """Draw what a transition ordered."""
    from haclusterd.cli.graphing import written

    asked = {"transition": arguments["transition"]} if arguments.get("transition") else {}
    answer = session.ask("history.transition", asked)
    if answer.exit or answer.data is None:
        return answer
    drawn = transition_as_dot(read(Transition, answer.data))
    target = arguments.get("target")
    if target is not None:
        return written(str(target), arguments.get("picture"), drawn)
    if session.is_json:
        return Response("", 0, (), as_json(Graph(drawn)))
    session.write(drawn.splitlines())
    return Response("", 0)


_OWN: Mapping[str, Callable[[Session, Mapping[str, Json]], Response]] = {
    "limit": _limit, "detail": _detail, "exclude": _exclude, "setnodes": _setnodes, "source": _source,
    "refresh": _refresh, "session": _session, "graph": graph,
}  # fmt: skip
