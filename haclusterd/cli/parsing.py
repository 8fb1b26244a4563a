"""From words to an invocation: levels, commands by name, alias or unique prefix, positional arguments and options.

Invariant: parsing needs no cluster. It raises UsageError with everything that a person needs to type it right.
"""

from collections.abc import Sequence

from haclusterd.cli.command_table import BELOW, LEVELS, ROOT
from haclusterd.cli.grammar import Command, Invocation, Level
from haclusterd.cli.other_tools import deeper, instead_of
from haclusterd.model.json_value import Json
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.verbs.words import Option, OptionValue, Parameter, Takes

_BEFORE_THE_LEVEL = ("-f", "-c")
"""Options of every command that are something else after one, for crmsh."""
_DIGITS_MAX = 18
OTHER_LEVELS_MAX = 4
"""Of more levels that have a command of one name, none is likely to be meant."""


class UsageError(Exception):
    """What was typed is no command."""

    def __init__(self, problem: str, remedy: str = "", status: ExitStatus = ExitStatus.USAGE) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.status = status


def find_level(word: str) -> Level | None:
    """Return the level of this name, alias or unique prefix of a name (of aliases, too many words would begin with)."""
    names = {name: level for level in LEVELS for name in (level.name, *level.aliases)}
    if word in names:
        return names[word]
    found = {level.name: level for level in LEVELS if level.name.startswith(word)}
    return next(iter(found.values())) if len(found) == 1 else None


def find_command(level: Level, word: str, following: Sequence[str] = ()) -> Command:
    """Return the command of this name, alias or unique prefix; no prefix is what another tool has as a word.

    `following` are the words after it: of another tool's command they say what is meant.
    """
    names = {name: command for command in level.commands for name in (command.name, *command.aliases)}
    if word in names:
        return names[word]
    found = {command.name: command for name, command in names.items() if word and name.startswith(word)}
    if not found or instead_of(level.name, word):
        raise unknown_word(level, word, following)
    if len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(f"{word} is ambiguous: {', '.join(sorted(found))}", "write more of it", ExitStatus.AMBIGUOUS)


def unknown_word(level: Level, word: str, following: Sequence[str] = ()) -> UsageError:
    """Return the error for a word that is no command: what to type instead, or what was probably meant.

    Nothing is guessed that stops, removes or restores something.
    """
    where = f" in {level.name}" if level.name else ""
    remedy = instead_of(level.name, word, following) or _in_this_order(level, word, following)
    if word in _BEFORE_THE_LEVEL:
        remedy = f"it comes before the level: crm {' '.join([word, *following[:1], level.name])}".strip()
    if not remedy and word.startswith("--"):
        return UsageError(f"there is no option {word}", "see: crm --help")
    if not remedy:
        from haclusterd.reports.suggestions import nearest

        guessed = (command for command in level.commands if command.is_guessed)
        known = [name for command in guessed for name in (command.name, *command.aliases)]
        known += [below.name for below in LEVELS] if level is ROOT else []
        guess = nearest(word, known)
        help_ = f"crm {level.name} --help" if level.name else "crm --help"
        other_levels = _in_other_levels(level, word)
        remedy = f"did you mean {guess}?" if guess and not other_levels else other_levels or f"see: {help_}"
    return UsageError(f"there is no command {word}{where}", remedy)


def _in_this_order(level: Level, word: str, following: Sequence[str]) -> str:
    """Say that the command comes before its object (`crm node n1 standby`), where the second word is one."""
    if level is ROOT or not following or not find_exactly(level, following[0]):
        return ""
    return f"the command comes first: crm {level.name} {following[0]} {word}"


def _in_other_levels(level: Level, word: str) -> str:
    """Say in which other levels there is a command of exactly this name; empty: in none, or in too many to mean one."""
    if level is not ROOT and find_exactly(ROOT, word):
        return f"there is: crm {word}"
    found = [f"crm {below.name} {word}" for below in LEVELS if below is not level and find_exactly(below, word)]
    return f"there is: {', '.join(found)}" if 0 < len(found) <= OTHER_LEVELS_MAX else ""


def find_exactly(level: Level, word: str) -> bool:
    """Tell whether a level has a command, or the root a level, of this name or alias."""
    named = [(each.name, *each.aliases) for each in level.commands]
    named += [(each.name, *each.aliases) for each in LEVELS] if level is ROOT else []
    return any(word in names for names in named)


def _in_a_level_of_another_tool(words: Sequence[str]) -> UsageError | None:
    """Return the error for `maintenance on` and the like: a level that is not here, and a command of it."""
    name, command = words[0], words[1] if len(words) > 1 else ""
    remedy = instead_of(name, command, words[2:])
    if not remedy or name in {level.name for level in LEVELS}:
        return None
    return UsageError(f"there is no command {name} {command}", remedy)


def _without_pcs(words: Sequence[str]) -> UsageError:
    """Return the error for a line that was written for pcs: what to type here for the rest of it."""
    try:
        parse(words)
    except UsageError as error:
        return UsageError("there is no command pcs", error.remedy)
    return UsageError("there is no command pcs", f"without that word: crm {' '.join(words)}")


def parse(words: Sequence[str], level: Level = ROOT) -> Invocation:
    """Read a command; at the root its first word may be a level."""
    if not words:
        raise UsageError("a command is missing", "see: crm --help")
    if level is ROOT:
        below = _level_below(words[0])
        if below is not None:
            return _in_level(below, words)
        other = _in_a_level_of_another_tool(words)
        if other is not None:
            raise other
        if words[0] == "pcs" and len(words) > 1:
            raise _without_pcs(words[1:])
    if level.name == words[0] == "ticket" and len(words) > 1:
        words = words[1:]  # crmsh: crm site ticket grant TICKET
    inside = level_inside(level, words[0])
    if inside is not None:
        return _in_level(inside, words)
    command = find_command(level, words[0], words[1:])
    try:
        arguments = _arguments(level, command, words[1:])
    except UsageError as error:
        remedy = deeper(level.name, command.name, words[1:]) or error.remedy or deeper(level.name, command.name, ("",))
        raise UsageError(error.problem, remedy, error.status) from None
    return Invocation(level.name, command, arguments, tuple(words))


def _in_level(level: Level, words: Sequence[str]) -> Invocation:
    if len(words) == 1:
        names = ", ".join(command.name for command in level.commands)
        raise UsageError(f"a command of {level.name} is missing", f"one of: {names}")
    return parse(words[1:], level)


def level_inside(level: Level, word: str) -> Level | None:
    """Return the level that a word names inside another one."""
    return find_level(word) if word in BELOW.get(level.name, ()) else None


def _level_below(word: str) -> Level | None:
    """Return the level that the first word names; None when it names a command of the root, or nothing."""
    commands = {name: command.name for command in ROOT.commands for name in (command.name, *command.aliases)}
    levels = {name: level.name for level in LEVELS for name in (level.name, *level.aliases)}
    if word in commands:
        return None
    if word not in levels:
        known = {**commands, **{name: name for name in levels.values()}}
        found = {full for name, full in known.items() if word and name.startswith(word)}
        if len(found) > 1:
            names = ", ".join(sorted(found))
            raise UsageError(f"{word} is ambiguous: {names}", "write more of it", ExitStatus.AMBIGUOUS)
    return find_level(word)


def _arguments(level: Level, command: Command, words: Sequence[str]) -> dict[str, Json]:
    if command.parameters and command.parameters[0].takes is Takes.REST:
        return {**command.fixed, command.parameters[0].name: [command.name, *words]}
    positional, arguments = _options(level, command, words)
    for parameter in _without_the_last(command, positional, arguments):
        if parameter.takes is Takes.ONE:
            if _is_passed_over(command, parameter, positional):
                continue
            if positional:
                arguments[parameter.name] = _chosen(parameter, positional.pop(0))
            elif not parameter.is_optional and parameter.name not in arguments:
                raise _missing(level, command, parameter)
            continue
        if not positional and not parameter.is_optional:
            raise _missing(level, command, parameter)
        if positional:
            arguments[parameter.name] = [_chosen(parameter, word) for word in positional]
        positional = []
    if positional:
        raise UsageError(f"{_called(level, command)}: too many words: {' '.join(positional)}", _usage(level, command))
    return {**command.fixed, **arguments}


def before_the_last(parameters: tuple[Parameter, ...]) -> tuple[tuple[Parameter, ...], Parameter | None]:
    """Set apart a parameter behind one that takes all words: it is the last word where that is one of its choices."""
    *before, last = parameters or (None,)
    is_behind = last is not None and bool(last.choices) and bool(before) and before[-1].takes is Takes.MANY
    return (parameters[:-1], last) if is_behind else (parameters, None)


def _without_the_last(
    command: Command, positional: list[str], arguments: dict[str, Json]
) -> tuple[Parameter, ...]:
    """Take the last word where it is one of the choices behind a list; return the other parameters."""
    parameters, last = before_the_last(command.parameters)
    if last is not None and positional and positional[-1] in last.choices:
        arguments[last.name] = positional.pop()
    return parameters


def _is_passed_over(command: Command, parameter: Parameter, positional: Sequence[str]) -> bool:
    """Tell whether a word that may be left out before others is left out."""
    if not parameter.is_optional or not parameter.choices or parameter is command.parameters[-1]:
        return False
    return not positional or positional[0] not in parameter.choices


def _options(
    level: Level, command: Command, words: Sequence[str]
) -> tuple[list[str], dict[str, Json]]:
    positional: list[str] = []
    arguments: dict[str, Json] = {}
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--":
            return [*positional, *pending], arguments
        flag, has_value, value = word.partition("=")
        option = next((each for each in command.options if each.flag == flag), None)
        if option is None and (not word.startswith("-") or word == "-" or word[1:].isdecimal()):
            positional.append(word)
            continue
        if option is None:
            known = ", ".join(each.flag for each in command.options) or "none"
            raise UsageError(f"{_called(level, command)}: unknown option {flag}", f"options: {known}")
        if option.takes is OptionValue.NOTHING:
            if has_value:
                raise UsageError(f"{flag} takes no value", _usage(level, command))
            arguments[option.argument] = True
            continue
        if not has_value:
            if not pending:
                raise UsageError(f"{flag} needs a value: {option.help}", _usage(level, command))
            value = pending.pop(0)
        _put(arguments, option, value)
    return positional, arguments


def _put(arguments: dict[str, Json], option: Option, text: str) -> None:
    """Set an option's argument; one that can be given several times is a list."""
    value: Json = text
    if option.takes is OptionValue.INTEGER:
        if not _is_number(text):
            raise UsageError(f"{option.flag} needs a number, not {text!r}", status=ExitStatus.BAD_VALUE)
        value = int(text)
    if option.choices and text not in option.choices:
        raise UsageError(f"{option.flag}: {text!r} is not one of: {', '.join(option.choices)}")
    if not option.repeats:
        arguments[option.argument] = value
        return
    before = arguments.get(option.argument)
    arguments[option.argument] = [*(before if isinstance(before, list) else []), value]


def _chosen(parameter: Parameter, word: str) -> str | int:
    if parameter.is_number:
        if not _is_number(word):
            remedy = parameter.help and f"expected: {parameter.help}"
            raise UsageError(f"{parameter.name}: {word!r} is no number", remedy, ExitStatus.BAD_VALUE)
        return int(word)
    if not parameter.choices or word in parameter.choices:
        return word
    found = [choice for choice in parameter.choices if choice.startswith(word)]
    if len(found) == 1:
        return found[0]
    raise UsageError(f"{parameter.name}: {word!r} is not one of: {', '.join(parameter.choices)}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


def _missing(level: Level, command: Command, parameter: Parameter) -> UsageError:
    return UsageError(f"{_called(level, command)}: {parameter.usage} is missing", _usage(level, command))


def _called(level: Level, command: Command) -> str:
    return " ".join(part for part in (level.name, command.name) if part)


def _usage(level: Level, command: Command) -> str:
    return f"usage: {usage(level, command)}"


def usage(level: Level, command: Command) -> str:
    """Return the usage line of a command."""
    parts = ["crm", level.name, command.name, *(each.usage for each in command.parameters)]
    parts += [f"[{each.usage}]" for each in command.options]
    return " ".join(part for part in parts if part)
