"""`crm script` and `crm template`: statements are made for a person, and configured as if typed.

A script defines what was not there: an id that exists is refused, by the verb that defines it.
"""

import json
import re
import shlex
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from haclusterd.cli.editing import edited_text
from haclusterd.cli.grammar import Invocation
from haclusterd.cli.own.well_known import SCRIPTS
from haclusterd.cli.reading import FILE_NAME
from haclusterd.cli.replacing import replace_file
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Response, ShownReport, refused
from haclusterd.reports.suggestions import nearest
from haclusterd.verbs.answers.answer import as_json
from haclusterd.verbs.answers.crm import Script, Scripts, ShownTemplates

_OWN = ("dry_run", "nodes", "action")
"""Parameters of crmsh's scripts that are about their run."""


class BadParametersError(Exception):
    """What a script was given does not fit it; the first argument says why, the second what to do."""


def script(session: Session, invocation: Invocation) -> int:
    """Carry out a command of the level `script`."""
    arguments = invocation.arguments
    name = invocation.command.name
    if name == "list":
        return _list(session, _words(arguments.get("words")))
    if name == "json":
        return _json(session, str(arguments["request"]))
    try:
        found = _find(str(arguments["script"]))
        if name == "show":
            return session.show(Response("", 0, (), as_json(Scripts((found,)))))
        statements = rendered(found, _pairs(_words(arguments.get("values"))))
    except BadParametersError as error:
        return session.fail("BAD_ARGUMENT", str(error.args[0]), str(error.args[1]), 2)
    if name == "verify":
        return session.show(_configured(session, statements, found.name, dry_run=True))
    return session.show(_configured(session, statements, found.name))


def _words(value: Json) -> list[str]:
    return [str(word) for word in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def _find(name: str) -> Script:
    if name not in SCRIPTS:
        guess = nearest(name, list(SCRIPTS))
        raise BadParametersError(f"there is no script {name}", f"did you mean {guess}?" if guess else "crm script list")
    return SCRIPTS[name]


def _pairs(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise BadParametersError(f"{word!r} is not NAME=VALUE", "crm script show NAME")
        found[name] = value
    return found


def rendered(found: Script, given: Mapping[str, str]) -> str:
    """Return the statements of a script, or raise BadParametersError with all that is wrong."""
    known = {each.name: each for each in found.parameters}
    values = {name: value for name, value in given.items() if name not in _OWN}
    unknown = [name for name in values if name not in known]
    missing = [name for name, each in known.items() if each.is_required and not values.get(name)]
    if unknown or missing:
        problems = [f"there is no parameter {', '.join(unknown)}"] if unknown else []
        problems += [f"{', '.join(missing)} must be given"] if missing else []
        raise BadParametersError(f"{found.name}: {'; '.join(problems)}", f"crm script show {found.name}")
    values = {each.name: values.get(each.name) or each.default for each in found.parameters}
    values = {name: value.replace("{id}", values["id"]) for name, value in values.items()}
    written = {name: shlex.quote(value) if re.search(r"[\s'\"\\]", value) else value for name, value in values.items()}
    return _joined(line.format_map(written) for line in _said_lines(found.statements, values))


def _said_lines(statements: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines without words of parameters that have no value, and without lines of which no more is left."""
    for line in statements.splitlines():
        words = [word for word in line.split() if all(values[name] for name in _names_in(word))]
        indent = line[: len(line) - len(line.lstrip())]
        if len(words) > 1:
            yield indent + " ".join(words)


def _names_in(word: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(word) if name]


def _joined(lines: Iterable[str]) -> str:
    """Write a line that continues in the next one as crm text has it."""
    return re.sub(r"\n(?=\s)", " \\\\\n", "\n".join(lines)) + "\n"


def _configured(session: Session, statements: str, source: str, *, dry_run: bool = False) -> Response:
    options = replace(session.options, dry_run=True) if dry_run else session.options
    return session.ask("configure.script", {"text": statements, "source": source}, options)


def _list(session: Session, words: Sequence[str]) -> int:
    if "names" in words:
        session.write(SCRIPTS)
        return 0
    return session.show(Response("", 0, (), as_json(Scripts(tuple(SCRIPTS.values())))))


def _json(session: Session, request: str) -> int:
    """Answer a request in JSON by lines of JSON; the last one is `"end"`."""
    try:
        asked = json.loads(request)
    except ValueError as error:
        return session.fail("BAD_ARGUMENT", f"no JSON: {error}", """crm script json '["list"]'""", 65)
    words = asked if isinstance(asked, list) and asked else [""]
    values = words[2] if len(words) > 2 and isinstance(words[2], dict) else {}
    given = {str(name): str(value) for name, value in values.items() if not isinstance(value, dict)}
    try:
        lines, status = _answered(session, str(words[0]), str(words[1]) if len(words) > 1 else "", given)
    except BadParametersError as error:
        lines, status = [{"error": str(error.args[0])}], 2
    session.write([*(json.dumps(line, ensure_ascii=False) for line in lines), '"end"'])
    return status


def _answered(session: Session, verb: str, name: str, given: Mapping[str, str]) -> tuple[list[Json], int]:
    if verb == "list":
        return [{"name": each.name, "shortdesc": each.help, "category": each.category} for each in SCRIPTS.values()], 0
    found = _find(name)
    if verb == "show":
        parameters: list[Json] = [
            {"name": each.name, "shortdesc": each.help, "required": each.is_required, "value": each.default,
             "example": each.example}
            for each in found.parameters
        ]  # fmt: skip
        steps: list[Json] = [{"name": "", "shortdesc": found.help, "required": True, "parameters": parameters}]
        shown: Json = {"name": name, "shortdesc": found.help, "category": found.category, "steps": steps}
        return [shown], 0
    statements = rendered(found, given)
    if verb == "verify":
        return [{"shortdesc": found.help, "text": statements, "nodes": ""}], 0
    if verb != "run":
        raise BadParametersError(f"{verb!r} is not one of: list, show, verify, run", "")
    answer = _configured(session, statements, name)
    said = "; ".join(each.message for each in answer.reports)
    line: Json = {"shortdesc": found.help, "rc": answer.exit, "error" if answer.exit else "output": said}
    return [line], answer.exit


# Configurations in preparation


def template(session: Session, invocation: Invocation) -> int:
    """Carry out a command of the level `template`."""
    try:
        return session.show(_TEMPLATE[invocation.command.name](session, invocation.arguments))
    except BadParametersError as error:
        return session.fail("BAD_ARGUMENT", str(error.args[0]), str(error.args[1]), 2)
    except OSError as error:
        where = error.filename or _directory(session)
        return session.fail("INPUT_OUTPUT", f"{where}: {error.strerror or error}", "", 74)


def _directory(session: Session) -> Path:
    base = session.environment.get("XDG_STATE_HOME") or f"{session.environment.get('HOME', '')}/.local/state"
    return Path(base) / "haclusterd" / "templates"


def _prepared(session: Session) -> list[str]:
    return sorted(path.name for path in _directory(session).glob("*") if FILE_NAME.match(path.name))


def _named(session: Session, arguments: Mapping[str, Json]) -> Path:
    name = str(arguments.get("name") or session.template)
    if not name:
        raise BadParametersError("which configuration is not said", "crm template list configs")
    if name not in _prepared(session):
        known = ", ".join(_prepared(session)) or "none"
        raise BadParametersError(f"there is no configuration {name} in preparation", f"there are: {known}")
    return _directory(session) / name


def _new(session: Session, arguments: Mapping[str, Json]) -> Response:
    """Write `%script NAME` and `PARAMETER VALUE` lines, for a person to fill in."""
    words = _words(arguments.get("words"))
    at = words.index("params") if "params" in words else len(words)
    names, given = words[:at], _pairs(words[at + 1 :])
    name = names[0] if names and names[0] not in SCRIPTS else _unused(session, names[0] if names else "")
    scripts = [_find(each) for each in (names[1:] if name == names[0] else names)]
    if not FILE_NAME.match(name) or not scripts:
        raise BadParametersError("a configuration needs a name and a script", "crm template new NAME SCRIPT")
    if name in _prepared(session) and not session.options.force:
        raise BadParametersError(f"a configuration {name} is there already", "--force replaces it")
    unknown = [key for key in given if not any(each.name == key for found in scripts for each in found.parameters)]
    if unknown:
        raise BadParametersError(f"there is no parameter {', '.join(unknown)}", f"crm script show {scripts[0].name}")
    lines = []
    for found in scripts:
        own_id = name if len(scripts) == 1 else f"{name}-{found.name}"
        values = {"id": own_id, **{each.name: each.default for each in found.parameters if each.name != "id"}, **given}
        lines += [f"%script {found.name}", f"# {found.help}"]
        for each in found.parameters:
            lines.append(f"# {each.help}{', needed' if each.is_required else ''}")
            lines.append(f"{each.name} {values[each.name]}".strip())
        lines.append("")
    directory = _directory(session)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(directory / name, "\n".join(lines).encode())
    session.template = name
    return _said(f"{name} is in preparation; crm template edit {name}, crm template apply update {name}")


def _unused(session: Session, base: str) -> str:
    known = _prepared(session)
    return next(name for number in count(1) if (name := f"{base}-{number}") not in known)


def _statements(path: Path) -> str:
    """Return what a configuration in preparation makes."""
    parts: list[tuple[Script, dict[str, str]]] = []
    for line in path.read_text().splitlines():
        first, _, rest = line.strip().partition(" ")
        if first == "%script":
            parts.append((_find(rest.strip()), {}))
        elif first and not first.startswith("#"):
            if not parts:
                problem = f"{path.name}: {first} comes before %script"
                raise BadParametersError(problem, f"crm template edit {path.name}")
            parts[-1][1][first] = rest.strip()
    return "".join(rendered(found, values) for found, values in parts)


def _listed(session: Session, arguments: Mapping[str, Json]) -> Response:
    what = arguments.get("what")
    configs = () if what == "templates" else tuple(_prepared(session))
    templates = () if what == "configs" else tuple(SCRIPTS)
    return Response("", 0, (), as_json(ShownTemplates(configs, templates, session.template)))


def _load(session: Session, arguments: Mapping[str, Json]) -> Response:
    session.template = _named(session, arguments).name
    return _said(f"{session.template} is loaded in this crm")


def _edit(session: Session, arguments: Mapping[str, Json]) -> Response:
    path = _named(session, arguments)
    written = edited_text(path.read_text(), session.settings.get("editor"))
    if isinstance(written, Response):
        return written
    replace_file(path, written.encode())
    return Response("", 0)


def _show(session: Session, arguments: Mapping[str, Json]) -> Response:
    session.write(_statements(_named(session, arguments)).splitlines())
    return Response("", 0)


def _apply(session: Session, arguments: Mapping[str, Json]) -> Response:
    path = _named(session, arguments)
    mode = str(arguments.get("method") or "update")
    asked: dict[str, Json] = {"mode": mode, "text": _statements(path), "source": path.name, "format": "crm"}
    return session.ask_and_confirm("configure.load", asked)


def _delete(session: Session, arguments: Mapping[str, Json]) -> Response:
    path = _named(session, arguments)
    if path.name == session.template and not arguments.get("force") and not session.options.force:
        return refused("REFUSED", f"{path.name} is loaded", f"crm template delete {path.name} force", 107)
    if not session.options.dry_run:
        path.unlink()
    session.template = "" if path.name == session.template else session.template
    return _said(f"{path.name} is deleted")


def _said(what: str) -> Response:
    return Response("", 0, (ShownReport("info", "REQUESTED", what),))


_TEMPLATE: Mapping[str, Callable[[Session, Mapping[str, Json]], Response]] = {
    "new": _new, "list": _listed, "load": _load, "edit": _edit, "show": _show, "apply": _apply, "delete": _delete,
}  # fmt: skip
