"""`crm cibstatus`: what is supposed of the state, for the plans of `configure simulate` in the same `crm`.

A supposition that the planner refuses is not kept. Nothing of it touches the cluster.

Source: crmsh 4.4, "cibstatus"; Pacemaker Administration, "crm_simulate" (injected changes).
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.reading import read_text
from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.replacing import write_new_file
from haclusterd.cli.session import Session
from haclusterd.cli.shadow_files import LIVE
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Request, Response, ShownReport, refused
from haclusterd.verbs.answers.answer import as_json, read
from haclusterd.verbs.answers.crm import ShownSuppositions
from haclusterd.verbs.answers.status import Resources, ShownResource

SHADOW = "shadow:"
_CODES: Mapping[str, int] = {
    "success": 0, "generic": 1, "args": 2, "unimplemented": 3, "perm": 4, "installed": 5, "configured": 6,
    "not_running": 7, "master": 8, "promoted": 8, "failed_master": 9, "failed_promoted": 9,
}  # fmt: skip
"""What crmsh calls the exit codes of agents."""
_STATUSES: Mapping[str, int | None] = {
    "done": None, "pending": None, "cancelled": None, "timeout": 1, "notsupported": 3, "error": 1,
}  # fmt: skip
"""What an operation ended with, by its status; None: its exit code counts."""
_TICKETS = {"grant": "granted", "revoke": "revoked", "standby": "standby", "activate": "active"}


def carry_out(session: Session, invocation: Invocation) -> Response:
    """Carry out a command of the level but `simulate`, which is one of the root."""
    arguments = invocation.arguments
    match invocation.command.name:
        case "load":
            return _load(session, str(arguments["source"]))
        case "save":
            return _save(session, str(arguments["target"]))
        case "origin":
            return _said(session.supposed_of)
        case "show":
            return _show(session) if arguments.get("changed") else _status(session)
        case "node":
            name = "node_up" if arguments["state"] == "online" else "node_down"
            return _supposed(session, name, str(arguments["node"]))
        case "quorum":
            return _quorum(session, str(arguments["value"]))
        case "ticket":
            return _supposed(session, "ticket", f"{arguments['ticket']}={_TICKETS[str(arguments['action'])]}")
        case _:
            return _operation(session, arguments)


def question(session: Session) -> dict[str, Json]:
    """Return what is supposed, as arguments of the verb `simulate`."""
    asked: dict[str, Json] = {name: list(values) for name, values in session.supposed.items() if name != "quorum"}
    if "quorum" in session.supposed:
        asked["quorum"] = session.supposed["quorum"][0]
    return asked


def question_with(session: Session, asked: Mapping[str, Json]) -> dict[str, Json]:
    """Return a question about a plan with what is supposed beside what it supposes itself."""
    both = {**asked, **question(session)}
    for name, values in session.supposed.items():
        own = asked.get(name)
        if name != "quorum" and isinstance(own, Sequence) and not isinstance(own, str):
            both[name] = [*values, *own]
    return both


def ask_for_plan(session: Session, asked: Mapping[str, Json]) -> Response:
    """Ask what would happen in the state that is supposed."""
    if session.supposed_of == LIVE:
        return session.ask("simulate", asked)
    return _objection(session) or _ask(session, "simulate", asked)


def _ask(session: Session, verb: str, asked: Mapping[str, Json]) -> Response:
    """Ask a verb about the state that is not the cluster's own."""
    assert session.shadows is not None
    place = session.supposed_of.removeprefix(SHADOW)
    is_shadow = session.supposed_of.startswith(SHADOW)
    client = session.shadows.client(place) if is_shadow else session.shadows.open_file(place)
    return client.call(Request("1", verb, asked, session.options), lambda _: None)


def _objection(session: Session) -> Response | None:
    """Return why the state that is not the cluster's own cannot be asked; None: it can."""
    assert session.shadows is not None
    place = session.supposed_of
    if place.startswith(SHADOW) and place.removeprefix(SHADOW) not in session.shadows.names():
        return refused("NO_SUCH_OBJECT", f"there is no shadow CIB {place.removeprefix(SHADOW)}", "crm cib list", 105)
    if not place.startswith(SHADOW) and not Path(place).is_file():
        return refused("NO_INPUT", f"there is no file {place}", "crm cibstatus load live", 66)
    return None


def _load(session: Session, source: str) -> Response:
    before = session.supposed_of
    session.supposed_of = source
    answer = ask_for_plan(session, {})
    if answer.exit:
        session.supposed_of = before
        return answer
    session.supposed.clear()
    return _said(f"plans begin with {source}; nothing is supposed")


def _supposed(session: Session, name: str, value: str) -> Response:
    """Keep a supposition that the planner understands; the newest about a node or ticket counts."""
    before = {key: list(values) for key, values in session.supposed.items()}
    about = value.partition("=")[0]
    others = {"node_up": ("node_up", "node_down"), "node_down": ("node_up", "node_down")}.get(name, (name,))
    for each in others:
        kept = [known for known in session.supposed.get(each, []) if known.partition("=")[0] != about]
        session.supposed[each] = kept
    session.supposed[name].append(value)
    session.supposed = {key: values for key, values in session.supposed.items() if values}
    return _shown_if_planned(session, before)


def _quorum(session: Session, value: str) -> Response:
    from haclusterd.model.properties import read_boolean

    try:
        state = "present" if read_boolean(value) else "lost"
    except ValueError:
        return refused("BAD_ARGUMENT", f"{value!r} is neither true nor false", "crm cibstatus quorum false", 2)
    before = dict(session.supposed)
    session.supposed["quorum"] = [state]
    return _shown_if_planned(session, before)


def _shown_if_planned(session: Session, before: dict[str, list[str]]) -> Response:
    """Show what is supposed; if the planner refuses it, suppose what was supposed `before`."""
    answer = ask_for_plan(session, question(session))
    if answer.exit:
        session.supposed = before
        return answer
    return _show(session)


def _operation(session: Session, arguments: Mapping[str, Json]) -> Response:
    """Read `op ACTION RESOURCE CODE [STATUS] [NODE]`; the words after the resource are in any order."""
    code, node = None, ""
    given = arguments["words"]
    for word in map(str, given) if isinstance(given, Sequence) else ():
        if word in _STATUSES:
            code = _STATUSES[word] if _STATUSES[word] is not None else code
        elif word in _CODES or (word.isascii() and word.isdecimal()):
            code = _CODES[word] if word in _CODES else int(word[:6]) if code is None else code
        else:
            node = word
    resource = str(arguments["resource"])
    if code is None:
        return refused("USAGE", "how the operation ended is not said", f"a code, or one of: {', '.join(_CODES)}", 64)
    node = node or _where(session, resource)
    if not node:
        return refused("USAGE", f"{resource} runs on no node or on several: name the node", "", 64)
    action, _, interval = str(arguments["action"]).partition(":")
    action, interval = ("monitor", "0") if action == "probe" else (action, interval)
    kind = f"{action}:{interval}" if interval else action
    return _supposed(session, "op_fail", f"{resource}:{kind}@{node}={code}")


def _where(session: Session, resource: str) -> str:
    """Return the only node where a resource runs; empty when it is not one."""
    asked: dict[str, Json] = {"resources": [resource]}
    is_live = session.supposed_of == LIVE
    answer = session.ask("resource.status", asked) if is_live else _ask(session, "resource.status", asked)
    nodes = set(_nodes(read(Resources, answer.data).resources)) if answer.data is not None else set()
    return nodes.pop() if len(nodes) == 1 else ""


def _nodes(rows: tuple[ShownResource, ...]) -> list[str]:
    found = [each.node for row in rows for each in row.instances or ()]
    return found + [node for row in rows for node in _nodes(row.members or ())]


def _show(session: Session) -> Response:
    lines = tuple(f"{name.replace('_', '-')} {value}" for name, values in session.supposed.items() for value in values)
    return Response("", 0, (), as_json(ShownSuppositions(session.supposed_of, lines)))


def _status(session: Session) -> Response:
    """Show the state as `crm status` would, were it so."""
    data = _encoded(session)
    if isinstance(data, Response):
        return data
    assert session.shadows is not None
    with tempfile.TemporaryDirectory(prefix="crm-") as directory:
        path = Path(directory) / "supposed"
        path.write_bytes(data)
        path.chmod(0o600)
        return session.shadows.open_file(str(path)).call(Request("1", "status", {}, session.options), lambda _: None)


def _save(session: Session, name: str) -> Response:
    data = _encoded(session)
    if isinstance(data, Response):
        return data
    if name.startswith(SHADOW):
        assert session.shadows is not None
        session.shadows.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        session.shadows.base(name.removeprefix(SHADOW)).write_text("0")
        name = str(session.shadows.path(name.removeprefix(SHADOW)))
    try:
        write_new_file(name, lambda file: file.write(data))
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{name}: {error.strerror or error}", "name a new file", 74)
    said = _said(f"wrote {name}")
    if "quorum" not in session.supposed:
        return said
    warning = ShownReport("warning", "LEFT_OUT", "a state file does not say whether there is a quorum")
    return replace(said, reports=(warning, *said.reports))


def _encoded(session: Session) -> bytes | Response:
    """Return the state with what is supposed, as a state file."""
    from haclusterd.cib.codec import CodecError, decode_cib, encode_cib
    from haclusterd.cli.without_cluster import wall_clock
    from haclusterd.commands.planning.injection import SUPPOSITIONS, suppose
    from haclusterd.formats.cib_xml.document import read_cib
    from haclusterd.protocol.control import shown_report

    if session.supposed_of == LIVE:
        answer = session.ask("cluster.export", {})
        if answer.exit:
            return answer
        cib = decode_cib(text(fields(answer.data), "text").encode())
    else:
        assert session.shadows is not None
        is_shadow = session.supposed_of.startswith(SHADOW)
        path = session.shadows.path(session.supposed_of.removeprefix(SHADOW)) if is_shadow else session.supposed_of
        written = read_text(str(path), session.streams.stdin)
        if isinstance(written, Response):
            return written
        try:
            is_xml = written.lstrip().startswith("<")
            cib = read_cib(written, str(path)).cib if is_xml else decode_cib(written.encode())
        except CodecError as error:
            return refused("UNREADABLE", f"{path}: {error}", "", 65)
    wanted = {name: tuple(session.supposed.get(name, ())) for name in SUPPOSITIONS}
    found = suppose(cib, wanted, wall_clock())
    if isinstance(found, tuple):
        return Response("", 2, tuple(map(shown_report, found)))
    return encode_cib(found)


def _said(what: str) -> Response:
    return Response("", 0, (ShownReport("info", "REQUESTED", what),))
