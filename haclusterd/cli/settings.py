"""`crm options`: how one person likes `crm`, kept in a file of theirs.

At the prompt a change is kept at once; in a session it counts until its end, and `save` keeps it. A line of the file
that means nothing is named, and counts for nothing.
"""

import os
from collections.abc import Mapping

from haclusterd.cli.grammar import Invocation
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Response, ShownReport, refused

COLOURS: Mapping[str, str] = {
    "normal": "0", "black": "30", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35",
    "cyan": "36", "white": "37",
}  # fmt: skip
"""SGR codes."""
_YES_NO = ("no", "yes")


@dataclass(frozen=True, slots=True)
class Known:
    """A setting that there is."""

    name: str
    default: str
    choices: tuple[str, ...] = ()


KNOWN = (
    Known("editor", ""), Known("pager", ""),
    Known("output", "color", ("plain", "color", "color-always")),
    Known("colorscheme", "yellow,normal,cyan,red,green,magenta"),
    Known("wait", "no", _YES_NO), Known("sort-elements", "yes", _YES_NO),
    Known("check-frequency", "always", ("always", "on-verify", "never")),
    Known("check-mode", "strict", ("strict", "relaxed")),
    Known("compat", "none", ("none", "crmsh")),
)  # fmt: skip
_BY_NAME = {each.name: each for each in KNOWN}


@dataclass(slots=True)
class Settings:
    """What one person has set, and where it is kept."""

    path: str | None = None
    """None: nowhere."""
    values: dict[str, str] = field(default_factory=dict)
    """Without those that are as they were made."""
    problems: tuple[str, ...] = ()
    """What the file has and nobody understands."""

    def get(self, name: str) -> str:
        """Return the value of a setting."""
        return self.values.get(name, _BY_NAME[name].default)

    def is_on(self, name: str) -> bool:
        """Tell whether a setting of yes or no is yes."""
        return self.get(name) == "yes"

    @property
    def scheme(self) -> tuple[str, ...]:
        """The SGR codes of keywords, ids, names, values, scores and references."""
        return tuple(COLOURS[word] for word in self.get("colorscheme").split(","))

    def save(self) -> None:
        """Write the file as a whole; raises OSError."""
        from pathlib import Path

        from haclusterd.cli.replacing import replace_file

        assert self.path is not None
        path = Path(self.path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = "".join(f"{name} = {value}\n" for name, value in sorted(self.values.items()))
        replace_file(path, text.encode())


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return a person's settings; without a file, or a home for it, those that `crm` is made with."""
    home = environment.get("HOME", "")
    base = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    if not base:
        return Settings()
    # Every call of `crm` comes here: without pathlib, which costs more than the rest of it.
    path = os.path.join(base, "haclusterd", "crm.conf")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return Settings(path)
    except (OSError, UnicodeError) as error:
        return Settings(path, problems=(f"{path} cannot be read: {error}",))
    return _read(path, text)


def _read(path: str, text: str) -> Settings:
    settings, problems = Settings(path), []
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        problem = objection(name, value) if equals else "it is not NAME = VALUE"
        if problem:
            problems.append(f"{path}:{number}: {problem}")
        else:
            settings.values[name] = value
    settings.problems = tuple(problems)
    return settings


def objection(name: str, value: str) -> str:
    """Say what is wrong with a setting; empty: nothing."""
    known = _BY_NAME.get(name)
    if known is None:
        # Late: every call of `crm` reads the settings, and few name one that does not exist.
        from haclusterd.reports.suggestions import nearest

        guess = nearest(name, list(_BY_NAME))
        return f"there is no setting {name}" + (f"; did you mean {guess}?" if guess else "")
    if known.choices and value not in known.choices:
        return f"{name}: {value!r} is not one of: {', '.join(known.choices)}"
    if name == "colorscheme" and (len(value.split(",")) != 6 or not set(value.split(",")) <= COLOURS.keys()):
        return f"colorscheme: {value!r} is not six of: {', '.join(COLOURS)}, with commas"
    return "" if value.isprintable() else f"{name}: the value cannot be printed"


def _canonical(name: str, value: str) -> str:
    """Return `yes` or `no` for a boolean in another spelling, where a setting has these two."""
    known = _BY_NAME.get(name)
    if known is None or set(known.choices) != {"yes", "no"}:
        return value
    return {"true": "yes", "on": "yes", "1": "yes", "false": "no", "off": "no", "0": "no"}.get(value.lower(), value)


def carry_out(settings: Settings, invocation: Invocation, *, is_kept: bool) -> Response:
    """Carry out a command of the level; `is_kept`: a change is written at once."""
    name = invocation.command.name
    arguments = invocation.arguments
    match name:
        case "show":
            return _shown(settings, str(arguments.get("name") or ""))
        case "save":
            return _kept(settings, f"kept in {settings.path}")
        case "reset":
            settings.values.clear()
            return _kept(settings, "all settings are as they were made") if is_kept else Response("", 0)
        case "set":
            return _set(settings, str(arguments["name"]), str(arguments["value"]), is_kept=is_kept)
        case _:
            return _set(settings, name, str(arguments["value"]), is_kept=is_kept)


def _shown(settings: Settings, name: str) -> Response:
    if name not in ("", "all", *_BY_NAME):
        return _refused(objection(name, ""))
    from haclusterd.verbs.answers.answer import as_json
    from haclusterd.verbs.answers.crm import Setting, ShownSettings

    rows = tuple(
        Setting(each.name, settings.get(each.name), is_changed=each.name in settings.values)
        for each in KNOWN if name in ("", "all", each.name)
    )  # fmt: skip
    return Response("", 0, (), as_json(ShownSettings(rows)))


def _set(settings: Settings, name: str, value: str, *, is_kept: bool) -> Response:
    value = _canonical(name, value)
    problem = objection(name, value)
    if problem:
        return _refused(problem)
    settings.values.pop(name, None)
    if value != _BY_NAME[name].default:
        settings.values[name] = value
    return _kept(settings, f"{name} = {value}, kept in {settings.path}") if is_kept else Response("", 0)


def _kept(settings: Settings, said: str) -> Response:
    if settings.path is None:
        return refused("INPUT_OUTPUT", "there is no place for settings", "set HOME or XDG_CONFIG_HOME", 74)
    try:
        settings.save()
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{settings.path}: {error.strerror or error}", "", 74)
    return Response("", 0, (ShownReport("info", "REQUESTED", said),))


def _refused(problem: str) -> Response:
    return refused("BAD_ARGUMENT", problem, "crm options show", 2)
