"""Help, made from the tables of commands: at every level, with examples."""

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.options import HELP
from haclusterd.cli.parsing import UsageError, find_command, find_level, usage
from haclusterd.cli.render.terminal import Colour, Screen, columns, folded
from haclusterd.verbs.words import Takes

EXIT_CODES = (
    ("0", "done"),
    ("1, 2", "failed; a bad value"),
    ("64, 65, 78", "usage; text that cannot be read; an invalid configuration"),
    ("69, 75, 106", "no daemon answers; try again; no quorum"),
    ("68, 105, 108", "no such node; no such object; exists already"),
    ("77, 107", "not permitted; unsafe, needs --force"),
    ("103", "the configuration was changed meanwhile"),
    ("112, 124", "outcome unknown, check before repeating; timed out"),
)
"""The codes that a script asks for; all of them are in `reports/exit_codes.py`."""
TERMS = {
    "daemon": "haclusterd, one on each node: it holds the state and runs the agents. Services run on while it restarts",
    "dc": "the node that decides what runs where: the leader that the voters have chosen",
    "lease": "what a node needs to run anything: a majority of the voters has heard it just now",
    "pacer": "haclusterd-pacer, beside the daemon: it sends heartbeats and stops a node's services when its lease ends",
    "quorum": "more than half of the voters: without it nothing is started, recovered or fenced",
    "term": "counts the elections: a greater term is a later DC",
    "voter": "a member that counts for the quorum; a witness is one that runs nothing",
}
"""Words of status and of the log, for who knows none of them; docs/GLOSSARY.md has all."""


def help_for(screen: Screen, words: list[str], level: Level = ROOT) -> list[str]:
    """Return the help for what the words name, as far as they name something."""
    if level is ROOT and words:
        below = find_level(words[0])
        if below is not None and words[0] not in [command.name for command in ROOT.commands]:
            return help_for(screen, words[1:], below)
    if words:
        try:
            return _command(screen, level, find_command(level, words[0]))
        except UsageError as error:
            if level is ROOT:
                if words[0].lower() in TERMS:
                    return folded(f"{words[0]}: {TERMS[words[0].lower()]}.", later="  ")
                return _named_anywhere(screen, words[0]) or [f"{error.problem} ({error.remedy})", "", *_root(screen)]
            return [f"{error.problem} ({error.remedy})", "", *_level(level)]
    return _root(screen) if level is ROOT else _level(level)


def _named_anywhere(screen: Screen, word: str) -> list[str]:
    """Return the help of the commands of all levels that have this name; empty when none has it."""
    found = [
        _command(screen, level, command)
        for level in LEVELS
        for command in level.commands
        if word in (command.name, *command.aliases)
    ]
    return [line for lines in found for line in (*lines, "")][:-1]


def _root(screen: Screen) -> list[str]:
    lines = ["Usage: crm [OPTIONS] LEVEL COMMAND [ARGUMENTS]", "       crm [OPTIONS]    (interactive)", ""]
    lines += [screen.paint("Commands", Colour.BOLD), *_listed(ROOT), "", screen.paint("Levels", Colour.BOLD)]
    lines += columns(screen, [[level.name, level.help] for level in LEVELS], indent=2)
    lines += ["", screen.paint("Options", Colour.BOLD), *columns(screen, [list(row) for row in HELP], indent=2)]
    lines += ["", screen.paint("Exit codes", Colour.BOLD)]
    lines += columns(screen, [list(row) for row in EXIT_CODES], indent=2)
    return [*lines, "", "Examples: crm status; crm why web; crm configure load update web.yaml --dry-run",
            "Names may be shortened as long as they are clear: crm res mov web n2",
            f"Words of status (crm help dc): {', '.join(TERMS)}"]  # fmt: skip


def _level(level: Level) -> list[str]:
    lines = [f"Usage: crm {level.name} COMMAND [ARGUMENTS]", "", level.help + ".", "", *_listed(level), ""]
    return [*lines, f"More: crm {level.name} COMMAND --help"]


def _listed(level: Level) -> list[str]:
    return columns(Screen(), [[command.name, command.help] for command in level.commands], indent=2)


def _command(screen: Screen, level: Level, command: Command) -> list[str]:
    lines = [f"Usage: {usage(level, command)}", "", command.help + "."]
    if command.aliases:
        lines.append(f"Also: {', '.join(command.aliases)}.")
    arguments = [(each.label, each.help) for each in command.parameters if each.help and not each.grammar]
    lines += _explained(arguments)
    lines += _explained([(each.usage, each.help) for each in command.options])
    if any(each.takes is Takes.REST for each in command.parameters):
        lines += ["", "A statement of the configuration language; options of crm come before it."]
    if command.examples:
        lines += ["", screen.paint("Examples", Colour.BOLD), *(f"  {example}" for example in command.examples)]
    return lines


def _explained(rows: list[tuple[str, str]]) -> list[str]:
    """Return what words mean, a line for each; a meaning that is longer continues below."""
    width = max((len(label) for label, _ in rows), default=0)
    lines = [""] if rows else []
    for label, text in rows:
        lines += folded(text, indent=f"  {label:<{width}}  ", later=" " * (width + 4))
    return lines
