"""Options that every command has; they may come before, between and after its words."""

from collections.abc import Sequence

from haclusterd.cli.parsing import UsageError, find_command, find_level
from haclusterd.model import durations
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Options
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.verbs.words import Takes

DEFAULT_WAIT_MS = 60_000
OUTPUTS = ("text", "json", "xml")
DISPLAYS = ("plain", "color", "color-always")


@dataclass(slots=True)
class GlobalOptions:
    """What was asked for beside the command."""

    output: str = "text"
    display: str = ""
    """Empty: as the person has set it."""
    wait_ms: int | None = None
    dry_run: bool = False
    force: bool = False
    reason: str = ""
    is_consistent: bool = False
    no_validate: bool = False
    socket: str = ""
    cib_file: str = ""
    shadow: str = ""
    """The shadow CIB that answers."""
    script: str = ""
    """A file of commands; `-` is the standard input."""
    wants_help: bool = False
    wants_version: bool = False
    words: list[str] = field(default_factory=list)

    def request_options(self) -> Options:
        """Return what goes with every request."""
        return Options(
            wait_ms=self.wait_ms,
            dry_run=self.dry_run,
            force=self.force,
            reason=self.reason,
            is_consistent=self.is_consistent,
            no_validate=self.no_validate,
        )


_FLAGS = {
    "-h": "help", "--help": "help", "--version": "version", "-w": "wait", "--wait": "wait", "--no-wait": "no-wait",
    "-n": "dry-run", "--dry-run": "dry-run", "-F": "force", "--force": "force",
    "--consistent": "consistent", "--no-validate": "no-validate",
}  # fmt: skip
_VALUES = {
    "-o": "output", "--output-format": "output", "-D": "display", "--display": "display", "--reason": "reason",
    "--socket": "socket", "--cib-file": "cib_file", "-f": "script", "--file": "script", "-c": "shadow",
}  # fmt: skip

GLOBAL_FLAGS = (*_FLAGS, *_VALUES)

HELP = (
    ("-o text|json|xml", "what to print; xml: status, configure show"),
    ("-w, --wait[=TIME]", "wait until it is done; after TIME (60s) exit with 124"),
    ("--no-wait", "do not wait, where a command waits by itself"),
    ("-n, --dry-run", "change nothing; show what would change and happen"),
    ("-F, --force", "do what is refused as unsafe; safety rules stay"),
    ("--no-validate", "do not let agents check new parameters"),
    ("--consistent", "answer from the newest state, as a majority confirms it"),
    ("--reason TEXT", "why; kept in the history"),
    ("--cib-file FILE", "work on a state file (or: environment CIB_file)"),
    ("-c NAME", "work on a shadow CIB (or: environment CIB_shadow)"),
    ("--socket PATH", "the daemon's (or: environment HACLUSTERD_SOCKET)"),
    ("-f, --file FILE", "run the commands in FILE, - for standard input"),
    ("-D plain|color", "colours (or: environment NO_COLOR)"),
    ("-h, --help", "help, also after every command"),
)


def flag_help(flag: str) -> str:
    """Return what an option of every command means, in one line."""
    meaning = (_FLAGS | _VALUES)[flag]
    for usage, help_ in HELP:
        names = [word.strip(",").partition("[")[0] for word in usage.split() if word.startswith("-")]
        if any((_FLAGS | _VALUES).get(name) == meaning for name in names):
            return help_
    return ""


def takes_value(word: str) -> bool:
    """Tell whether a word is an option of every command whose value is the next word."""
    return word in _VALUES


def parse_globals(argv: Sequence[str]) -> GlobalOptions:
    """Take the options of every command out of the words."""
    options = GlobalOptions()
    pending = list(argv)
    while pending:
        if _is_statement(options.words):
            options.words += _without_last_options(options, pending)
            break
        word = pending.pop(0)
        if word == "--":
            options.words += ["--", *pending]
            break
        name, has_value, value = word.partition("=")
        if _is_force(word, options.words):
            options.force = True
        elif word == "-n" and _is_naming(options.words):
            options.words.append(word)
        elif name in _FLAGS and (not has_value or _FLAGS[name] == "wait"):
            _set_flag(options, _FLAGS[name], value)
        elif name in _VALUES and (name not in ("-f", "-c") or not options.words):
            if not has_value:
                if not pending:
                    raise UsageError(f"{name} needs a value", "see: crm --help")
                value = pending.pop(0)
            _set_value(options, name, _VALUES[name], value)
        else:
            options.words.append(word)
    return options


def _is_force(word: str, words: Sequence[str]) -> bool:
    """Tell whether `-f` and `-y` mean what they mean to crmsh: delete what is running, too; every answer is yes."""
    if word == "-f":
        return len(words) > 1 and words[1] in ("delete", "rm")
    return word in ("-y", "--yes") and words[:1] == ["cluster"]


def _is_naming(words: Sequence[str]) -> bool:
    """Tell whether `-n` means what it means to crmsh: the name of the cluster that is begun."""
    return len(words) > 1 and words[1] == "init"


def _is_statement(words: Sequence[str]) -> bool:
    """Tell whether the rest belongs to a statement of the configuration language, whatever it looks like."""
    if len(words) < 3:
        return False
    level = find_level(words[0])
    if level is None or level.name != "configure":
        return False
    try:
        command = find_command(level, words[1])
    except UsageError:
        return False
    return bool(command.parameters) and command.parameters[0].takes is Takes.REST


_COMPARISONS = ("eq", "ne", "lt", "gt", "lte", "gte", "==", "!=")
"""What comes after one of these in a rule is a value, whatever it looks like."""


def _without_last_options(options: GlobalOptions, statement: Sequence[str]) -> list[str]:
    """Take the options that stand last out of a statement: nothing that a statement ends with looks like one."""
    words = list(statement)
    while words and (len(words) == 1 or words[-2] not in _COMPARISONS):
        name, has_value, value = words[-1].partition("=")
        if name in _FLAGS and (not has_value or _FLAGS[name] == "wait"):
            _set_flag(options, _FLAGS[name], value)
            del words[-1:]
        elif name in _VALUES and name.startswith("--") and has_value:
            _set_value(options, name, _VALUES[name], value)
            del words[-1:]
        elif len(words) > 1 and words[-2] in _VALUES and words[-2] not in ("-f", "-c"):
            _set_value(options, words[-2], _VALUES[words[-2]], words[-1])
            del words[-2:]
        else:
            break
    return words


def _set_flag(options: GlobalOptions, flag: str, value: str) -> None:
    match flag:
        case "help":
            options.wants_help = True
        case "version":
            options.wants_version = True
        case "wait":
            options.wait_ms = _wait(value)
        case "no-wait":
            options.wait_ms = 0
        case "dry-run":
            options.dry_run = True
        case "consistent":
            options.is_consistent = True
        case "no-validate":
            options.no_validate = True
        case _:
            assert flag == "force", flag
            options.force = True


def _wait(text: str) -> int:
    if not text:
        return DEFAULT_WAIT_MS
    try:
        return durations.parse(text)
    except ValueError as error:
        raise UsageError(f"--wait: {error}", status=ExitStatus.BAD_VALUE) from error


def _set_value(options: GlobalOptions, name: str, field_name: str, value: str) -> None:
    allowed = {"output": OUTPUTS, "display": DISPLAYS}.get(field_name, ())
    if allowed and value not in allowed:
        raise UsageError(f"{name}: {value!r} is not one of: {', '.join(allowed)}", status=ExitStatus.BAD_VALUE)
    setattr(options, field_name, value)
