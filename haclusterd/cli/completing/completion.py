"""What may come next, and what it means: one function for the interactive shell, bash, zsh and fish.

The words of commands come from the command table, what is in a statement from `statement_words`, names and what
agents say of their parameters from a `Source`.
"""

import re
from collections.abc import Iterable, Sequence

from haclusterd.cli.command_table import BELOW, LEVELS, ROOT
from haclusterd.cli.completing.offers import Offer, Source
from haclusterd.cli.completing.statement_words import (
    action_names,
    meta_names,
    meta_values,
    of_statement,
    parameter_names,
    parameter_values,
    property_names,
    setting_paths,
    setting_values,
)
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.options import GLOBAL_FLAGS, flag_help, takes_value
from haclusterd.cli.parsing import UsageError, before_the_last, find_command, find_level, level_inside
from haclusterd.verbs.words import Completes, Option, OptionValue, Parameter, Takes

SHELL_WORDS = (
    Offer("..", "One level up"),
    Offer("back", "One level up"),
    Offer("cd", "Go to another level: cd .., cd ../node, cd /"),
    Offer("end", "One level up"),
    Offer("help", "Help on a command or level"),
    Offer("ls", "List the commands and levels that are here"),
    Offer("quit", "Leave crm"),
    Offer("up", "One level up"),
)
"""What the shell knows in every level."""
_FROM_THE_CLUSTER = frozenset({
    Completes.NODE, Completes.RESOURCE, Completes.OBJECT, Completes.TICKET, Completes.VERSION, Completes.TRANSITION,
    Completes.DEVICE,
})  # fmt: skip
_TYPED = re.compile(r"""(?:"(?:\\.|[^"])*"?|'[^']*'?|\\.|[^\s"'\\])+""")


def typed_words(line: str) -> list[str]:
    """Split what was typed so far; the last word is the one under the cursor, and may be empty."""
    text = line.replace("\\\n", " ")
    words = list(_TYPED.finditer(text))
    found = [word[0] for word in words]
    return found if words and words[-1].end() == len(text) else [*found, ""]


def candidates(words: Sequence[str], source: Source, level: Level = ROOT) -> list[str]:
    """Return what the last word, which may be empty, can become after the words before it."""
    return [offer.word for offer in offers(words, source, level)]


def offers(words: Sequence[str], source: Source, level: Level = ROOT, *, in_shell: bool = False) -> list[Offer]:
    """Return the same, each with what it means; `in_shell`: the words of the interactive shell too."""
    *before, current = words or [""]
    found = _next_offers(before, current, source, level)
    if in_shell:
        found = [*found, *_of_the_shell(before, level)]
    by_word = {offer.word: offer for offer in found if offer.word.startswith(current)}
    return sorted(by_word.values())


def _of_the_shell(before: list[str], level: Level) -> Sequence[Offer]:
    below = [find_level(name) for name in BELOW.get(level.name, ())]
    levels = [Offer(each.name, each.help) for each in below if each is not None]
    if not before:
        return [*SHELL_WORDS, *levels]
    if before[0] == "help" and len(before) == 2:
        named = _level_below(level, before[1])
        return [] if named is None else _named(named.commands)
    if len(before) > 1 or before[0] not in ("cd", "help"):
        return []
    if level is ROOT:
        levels = _all_levels()
    if before[0] == "cd":
        return [*levels, Offer("..", "One level up")] if level is not ROOT else levels
    return [*levels, *_named(level.commands)]


def _named(commands: Iterable[Command]) -> list[Offer]:
    return [Offer(command.name, command.help) for command in commands]


def _next_offers(before: list[str], current: str, source: Source, level: Level) -> Sequence[Offer]:
    before = _without_global_options(before)
    if before:
        below = _level_below(level, before[0])
        if below is not None:
            return _next_offers(before[1:], current, source, below)
    if not before:
        levels = _all_levels() if level is ROOT else []
        return [*_named(level.commands), *(_global_flags() if current.startswith("-") else ()), *levels]
    if level is ROOT and before[0] == "help":
        return _helped(before[1:])
    try:
        command = find_command(level, before[0])
    except UsageError:
        return []
    return _of_command(command, before[1:], current, source)


def _all_levels() -> list[Offer]:
    return [Offer(each.name, each.help) for each in LEVELS]


def _helped(before: list[str]) -> list[Offer]:
    """Return what help can be asked on, after the words before it."""
    if not before:
        return [*_named(ROOT.commands), *_all_levels()]
    named = _level_below(ROOT, before[0]) if len(before) == 1 else None
    return [] if named is None else _named(named.commands)


def _level_below(level: Level, word: str) -> Level | None:
    if level is not ROOT:
        return level_inside(level, word)
    return None if word in [command.name for command in ROOT.commands] else find_level(word)


def _global_flags() -> list[Offer]:
    return [Offer(flag, flag_help(flag)) for flag in GLOBAL_FLAGS]


def _without_global_options(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif takes_value(word) and (word != "-f" or not kept):
            skip = True
        elif not (word.startswith("-") and word.partition("=")[0] in GLOBAL_FLAGS):
            kept.append(word)
    return kept


def _of_command(command: Command, given: list[str], current: str, source: Source) -> Sequence[Offer]:
    if command.is_statement and command.parameters[0].takes is Takes.REST:
        return of_statement(command.name, given, current, source)
    options = {each.flag: each for each in command.options}
    option = options.get(given[-1]) if given else None
    if option is not None and option.takes is not OptionValue.NOTHING:
        return _values(option, source)
    if current.startswith("-"):
        return [*(Offer(each.flag, each.help) for each in command.options), *_global_flags()]
    words = _without_options(given, options)
    special = _of_the_verb(command.verb, words, current, source)
    if special is not None:
        return special
    before, parameters = _keyword_before(command)
    if before and words[:1] == [before]:
        words, before = words[1:], ""
    found = [Offer(before)] if before and not words else []
    for index, parameter in enumerate(parameters):
        if index == len(words) or (index < len(words) and parameter.takes is Takes.MANY):
            section = command.fixed.get("section")
            if isinstance(section, str) and parameter.name == "name" and words[1] in ("set", "delete", "show"):
                return [*found, *_settings(section, words, source)]
            if isinstance(section, str) and parameter.name == "value" and words[1] == "set":
                return _setting_values(section, words, source)
            values = _values_here(parameter, parameters, words, source)
            return [*found, *(offer for offer in values if offer.word not in given)]
    return found


def _values_here(
    parameter: Parameter, parameters: tuple[Parameter, ...], words: list[str], source: Source
) -> Sequence[Offer]:
    """Return what a parameter may be; for one that takes all words also the last word behind it, which ends them."""
    _, last = before_the_last(parameters)
    if last is None or parameter.takes is not Takes.MANY:
        return _values(parameter, source)
    return [] if words[-1] in last.choices else [*_values(parameter, source), *_values(last, source)]


def _of_the_verb(verb: str, words: list[str], current: str, source: Source) -> Sequence[Offer] | None:
    """Return what comes next where the parameters alone do not say it; None where they do."""
    if verb == "configure.set":
        path, *more = words or [""]
        return [] if more else setting_values(source, path) if words else setting_paths(source, current)
    if verb == "configure.modgroup" and len(words) in (1, 3):
        return list(map(Offer, ("add", "remove") if len(words) == 1 else ("after", "before")))
    return None


def _settings(section: str, words: list[str], source: Source) -> Sequence[Offer]:
    """Return the names that a setting of a resource may have."""
    if section == "meta":
        return meta_names("")
    return parameter_names(source, source.agent_of(words[0]), "") if section == "params" else []


def _setting_values(section: str, words: list[str], source: Source) -> Sequence[Offer]:
    """Return the values that a setting of a resource may have, as far as they are known."""
    if section == "meta":
        return meta_values(words[2])
    return parameter_values(source, source.agent_of(words[0]), words[2]) if section == "params" else []


def _without_options(given: list[str], options: dict[str, Option]) -> list[str]:
    """Return the words that are neither options nor their values."""
    kept: list[str] = []
    skip = False
    for word in given:
        option = options.get(word)
        if skip or option is not None or word.startswith("-"):
            skip = not skip and option is not None and option.takes is not OptionValue.NOTHING
        else:
            kept.append(word)
    return kept


def _keyword_before(command: Command) -> tuple[str, tuple[Parameter, ...]]:
    """Return the word that may come before the others and may be left out, and the parameters without it."""
    first, *others = command.parameters or (Parameter(""),)
    if first.is_optional and len(first.choices) == 1 and others:
        return first.choices[0], tuple(others)
    return "", command.parameters


def _values(what: Parameter | Option, source: Source) -> Sequence[Offer]:
    if what.choices:
        return list(map(Offer, what.choices))
    if what.completes in _FROM_THE_CLUSTER:
        return list(map(Offer, source.names(what.completes.value)))
    if isinstance(what, Parameter) and what.name == "operation":
        return action_names()
    if what.completes is Completes.PROPERTY:
        return property_names("")
    if what.completes is Completes.KIND:
        from haclusterd.model.change_kinds import ChangeKind

        return [Offer(str(kind)) for kind in ChangeKind]
    is_agent = isinstance(what, Parameter) and what.name == "agent"
    return list(map(Offer, source.names("agent"))) if is_agent else []
