"""`crm cib`: shadow CIBs, which are copies of the state in files; what is tried on one touches no cluster.

`use` answers to everything with the copy until it ends; `commit` makes the cluster's configuration that of the copy,
only over the version from which the copy was made.

Source: crmsh 4.4, "cib"; Pacemaker Administration, "crm_shadow".
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.reading import FILE_NAME, read_text
from haclusterd.cli.render.fields import fields, number, text
from haclusterd.cli.replacing import replace_file, write_new_file
from haclusterd.cli.session import Session, is_unsafe
from haclusterd.cli.shadow_files import LIVE, VARIABLE, Shadows
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Options, Request, Response, ShownReport, refused
from haclusterd.ports.control import CommandClient
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Shadow, ShownShadows
from haclusterd.verbs.answers.history import ComparedVersion, Difference

_PLAIN = Options()


def carry_out(session: Session, invocation: Invocation) -> Response:
    """Carry out a command of the level `cib`."""
    shadows = session.shadows
    assert shadows is not None
    try:
        return _COMMANDS[invocation.command.name](shadows, session, invocation.arguments)
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{shadows.directory}: {error.strerror or error}", "", 74)


def _reported(what: str) -> Response:
    return Response("", 0, (ShownReport("info", "REQUESTED", what),))


def _ask(client: CommandClient, verb: str, arguments: Mapping[str, Json], options: Options = _PLAIN) -> Response:
    return client.call(Request("1", verb, arguments, options), lambda _: None)


def _named(shadows: Shadows, arguments: Mapping[str, Json]) -> str | Response:
    """Return the copy that is meant: the named one, or the one that is used."""
    name = str(arguments.get("name") or shadows.used)
    if not name:
        return refused("USAGE", "no shadow CIB is named", "crm cib list", 64)
    if name not in shadows.names():
        known = ", ".join(shadows.names()) or "none"
        return refused("NO_SUCH_OBJECT", f"there is no shadow CIB {name}", f"there are: {known}", 105)
    return name


def _new(shadows: Shadows, session: Session, arguments: Mapping[str, Json]) -> Response:
    """Copy the cluster's state, or make an empty one."""
    words = set(_words(arguments))
    names = words - {"withstatus", "force", "empty"}
    if len(names) > 1:
        return refused("USAGE", f"one name, not {' '.join(sorted(names))}", "crm cib new NAME [force] [empty]", 64)
    name = next(iter(names), "shadow")
    if not FILE_NAME.match(name) or name == LIVE:
        return refused("BAD_ARGUMENT", f"{name!r} is no name for a shadow CIB", "letters, digits, _ . -", 2)
    if name in shadows.names() and "force" not in words and not session.options.force:
        return refused("EXISTS", f"shadow CIB {name} exists already", "crm cib new NAME force replaces it", 108)
    made = _make(shadows, name, is_empty="empty" in words)
    return made or _use(shadows, session, {"name": name})


def _words(arguments: Mapping[str, Json]) -> list[str]:
    """Return the words after a command."""
    words = arguments.get("words")
    return [str(word) for word in words] if isinstance(words, Sequence) else []


def _make(shadows: Shadows, name: str, *, is_empty: bool) -> Response | None:
    """Write a copy; return what keeps it from being written."""
    from haclusterd.cib.codec import encode_cib
    from haclusterd.model.cluster import Cib

    if is_empty:
        _write(shadows, name, encode_cib(Cib()), 0)
        return None
    answer = _ask(shadows.live, "cluster.export", {})
    if answer.exit:
        return answer
    _keep(shadows, name, answer)
    return None


def _keep(shadows: Shadows, name: str, exported: Response) -> None:
    """Write a copy of an exported state."""
    from haclusterd.cib.codec import decode_cib

    data = text(fields(exported.data), "text").encode()
    _write(shadows, name, data, decode_cib(data).version.epoch)


def save_past(session: Session, name: str, at: str) -> Response:
    """Make a copy of the state as it was at a time (ISO 8601)."""
    shadows = session.shadows
    assert shadows is not None
    if not FILE_NAME.match(name) or name == LIVE:
        return refused("BAD_ARGUMENT", f"{name!r} is no name for a shadow CIB", "letters, digits, _ . -", 2)
    if name in shadows.names() and not session.options.force:
        return refused("EXISTS", f"shadow CIB {name} exists already", "--force replaces it, or give another name", 108)
    exported = session.ask("cluster.export", {"at": at})
    if exported.exit:
        return exported
    try:
        _keep(shadows, name, exported)
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{shadows.directory}: {error.strerror or error}", "", 74)
    said = ShownReport("info", "REQUESTED", f"shadow CIB {name} is made; to look at it: crm cib use {name}")
    return Response("", 0, (*exported.reports, said))


def _write(shadows: Shadows, name: str, data: bytes, version: int) -> None:
    """Put a copy in place as a whole; it holds secrets, so only its owner reads it."""
    shadows.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, content in ((shadows.base(name), str(version).encode()), (shadows.path(name), data)):
        replace_file(path, content)


def _use(shadows: Shadows, session: Session, arguments: Mapping[str, Json]) -> Response:
    """Let a copy answer, or the cluster again."""
    name = str(arguments.get("name") or LIVE)
    if name == LIVE:
        shadows.used = ""
        session.client = shadows.live
        return _reported("the cluster answers again")
    found = _named(shadows, {"name": name})
    if isinstance(found, Response):
        return found
    shadows.used = found
    session.client = shadows.client(found)
    return _reported(f"shadow CIB {found} answers in this crm; for a command of its own: {VARIABLE}={found} crm ...")


def _list(shadows: Shadows, _session: Session, _arguments: Mapping[str, Json]) -> Response:
    rows = tuple(
        Shadow(name, _version(shadows, name), is_used=name == shadows.used) for name in shadows.names()
    )
    return Response("", 0, (), as_json(ShownShadows(rows)))


def _version(shadows: Shadows, name: str) -> int:
    """Return the version from which a copy was made; 0: of no cluster's."""
    written = shadows.base(name).read_text() if shadows.base(name).exists() else ""
    return int(written) if written.isdecimal() else 0


def _diff(shadows: Shadows, _session: Session, arguments: Mapping[str, Json]) -> Response:
    name = _named(shadows, arguments)
    if isinstance(name, Response):
        return name
    answers = [_ask(client, "configure.show", {}) for client in (shadows.live, shadows.client(name))]
    for answer in answers:
        if answer.exit:
            return answer
    live, own = (text(fields(answer.data), "text").splitlines() for answer in answers)
    difference = "\n".join(unified_diff(live, own, LIVE, name, lineterm=""))
    compared = Difference(ComparedVersion(LIVE), ComparedVersion(name), difference)
    return Response("", 0, (), as_json(compared))


def _reset(shadows: Shadows, _session: Session, arguments: Mapping[str, Json]) -> Response:
    """Copy the cluster's state again."""
    name = _named(shadows, arguments)
    if isinstance(name, Response):
        return name
    refused = _make(shadows, name, is_empty=False)
    return refused or _reported(f"shadow CIB {name} is a copy of the cluster's state again")


def _commit(shadows: Shadows, session: Session, arguments: Mapping[str, Json]) -> Response:
    """Make the cluster's configuration that of a copy, over the version from which that was made."""
    name = _named(shadows, arguments)
    if isinstance(name, Response):
        return name
    own = _ask(shadows.client(name), "configure.show", {"secrets": True, "document": True})
    if own.exit:
        return own
    asked: dict[str, Json] = {
        "mode": "replace", "text": text(fields(own.data), "text"), "format": "crm", "source": f"shadow CIB {name}",
    }  # fmt: skip
    version = _version(shadows, name)
    if version and not session.options.force:
        asked["over"] = version
    done = _ask(shadows.live, "configure.load", asked, session.options)
    if is_unsafe(done) and session.agrees(done):
        done = _ask(shadows.live, "configure.load", asked, replace(session.options, force=True))
    if done.exit == 0 and not session.options.dry_run:
        shadows.base(name).write_text(str(number(fields(done.data), "to_version")))
    return done


def _delete(shadows: Shadows, session: Session, arguments: Mapping[str, Json]) -> Response:
    name = _named(shadows, arguments)
    if isinstance(name, Response):
        return name
    if name == shadows.used:
        return refused("REFUSED", f"shadow CIB {name} is in use", "crm cib use live", 1)
    if not session.options.dry_run:
        shadows.path(name).unlink()
        shadows.base(name).unlink(missing_ok=True)
    return _reported(f"shadow CIB {name} is deleted")


def _import(shadows: Shadows, session: Session, arguments: Mapping[str, Json]) -> Response:
    """Make a copy of a CIB of Pacemaker, as its XML is read."""
    from haclusterd.cib.codec import encode_cib
    from haclusterd.formats.cib_xml.document import read_cib
    from haclusterd.protocol.control import shown_report

    source = str(arguments["cib"])
    name = str(arguments.get("name") or Path(source).stem)
    if not FILE_NAME.match(name) or name == LIVE:
        return refused("BAD_ARGUMENT", f"{name!r} is no name for a shadow CIB", "name it: crm cib import FILE NAME", 2)
    if name in shadows.names() and not session.options.force:
        return refused("EXISTS", f"shadow CIB {name} exists already", "--force replaces it", 108)
    written = read_text(source, session.streams.stdin)
    if isinstance(written, Response):
        return written
    reading = read_cib(written, Path(source).name)
    reports = tuple(map(shown_report, reading.reports))
    if any(each.severity == "error" for each in reports) and not session.options.force:
        return Response("", 78, reports)
    _write(shadows, name, encode_cib(reading.cib), 0)
    used = _use(shadows, session, {"name": name})
    return replace(used, reports=(*reports, *used.reports))


def _empty(_shadows: Shadows, _session: Session, arguments: Mapping[str, Json]) -> Response:
    """Write an empty state, or an empty CIB of Pacemaker, into a new file."""
    from haclusterd.cib.codec import encode_cib
    from haclusterd.formats.cib_xml.document import write_configuration
    from haclusterd.model.cluster import Cib
    from haclusterd.model.configuration import Configuration

    path = Path(str(arguments["target"]))
    is_xml = path.suffix == ".xml"
    try:
        content = write_configuration(Configuration()).encode() if is_xml else encode_cib(Cib())
        write_new_file(path, lambda file: file.write(content))
    except FileExistsError:
        return refused("EXISTS", f"{path} exists already", "nothing was changed; name another file", 108)
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{path}: {error.strerror or error}", "", 74)
    return _reported(f"wrote {path}; for a command: crm --cib-file {path} ...")


_COMMANDS: Mapping[str, Callable[[Shadows, Session, Mapping[str, Json]], Response]] = {
    "new": _new, "use": _use, "list": _list, "diff": _diff, "reset": _reset, "commit": _commit, "delete": _delete,
    "import": _import, "empty": _empty,
}  # fmt: skip
