"""What may come next: one function for the interactive shell and for bash."""

from collections.abc import Callable, Sequence

from haclusterd.cli.command_table import LEVELS, ROOT
from haclusterd.cli.grammar import Command, Level
from haclusterd.cli.options import GLOBAL_FLAGS
from haclusterd.cli.parsing import UsageError, find_command, find_level
from haclusterd.verbs.words import Completes, Option, Parameter, Takes

Lookup = Callable[[str], Sequence[str]]
"""Names of one kind (node, resource, object, agent), from the cluster; empty when it cannot be asked."""

BASH_SCRIPT = """\
_crm() {
    local IFS=$'\\n'
    COMPREPLY=( $(crm --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
    [ "${#COMPREPLY[@]}" -gt 0 ] || compopt -o default
}
complete -F _crm crm
"""

_FROM_THE_CLUSTER = frozenset({
    Completes.NODE, Completes.RESOURCE, Completes.OBJECT, Completes.TICKET, Completes.VERSION, Completes.TRANSITION,
})  # fmt: skip
_STATEMENT_WORDS = ("params", "meta", "op", "utilization")
_OPERATION_WORDS = ("start", "stop", "monitor", "promote", "demote", "notify", "migrate_to", "migrate_from")


def candidates(words: Sequence[str], lookup: Lookup, level: Level = ROOT) -> list[str]:
    """Return what the last word, which may be empty, can become after the words before it."""
    *before, current = words or [""]
    found = _next_words(before, current, lookup, level)
    return sorted({word for word in found if word.startswith(current)})


def _next_words(before: list[str], current: str, lookup: Lookup, level: Level) -> Sequence[str]:
    before = _without_global_options(before)
    if level is ROOT and before:
        below = find_level(before[0])
        if below is not None and before[0] not in [command.name for command in ROOT.commands]:
            return _next_words(before[1:], current, lookup, below)
    if not before:
        names = [command.name for command in level.commands]
        flags = GLOBAL_FLAGS if current.startswith("-") else ()
        return [*names, *flags, *([each.name for each in LEVELS] if level is ROOT else [])]
    try:
        command = find_command(level, before[0])
    except UsageError:
        return []
    return _of_command(command, before[1:], current, lookup)


def _without_global_options(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-D", "--reason", "--socket", "--cib-file", "-f", "--file"):
            skip = True
        elif not (word.startswith("-") and word.partition("=")[0] in GLOBAL_FLAGS):
            kept.append(word)
    return kept


def _of_command(command: Command, given: list[str], current: str, lookup: Lookup) -> Sequence[str]:
    if command.is_statement and command.parameters[0].takes is Takes.REST:
        return _of_statement(command, given, lookup)
    options = {each.flag: each for each in command.options}
    if given and given[-1] in options:
        option = options[given[-1]]
        values = _values(option, lookup)
        if values or option.takes != "nothing":
            return values
    if current.startswith("-"):
        return [*options, *GLOBAL_FLAGS]
    words = [word for word in given if not word.startswith("-")]
    before, parameters = _keyword_before(command)
    if before and words[:1] == [before]:
        words, before = words[1:], ""
    candidates = [before] if before and not words else []
    for index, parameter in enumerate(parameters):
        if index == len(words) or (index < len(words) and parameter.takes is Takes.MANY):
            return candidates + [word for word in _values(parameter, lookup) if word not in given]
    return candidates


def _keyword_before(command: Command) -> tuple[str, tuple[Parameter, ...]]:
    """Return the word that may stand before the others and may be left out, and the parameters without it."""
    first, *others = command.parameters or (Parameter(""),)
    if first.is_optional and len(first.choices) == 1 and others:
        return first.choices[0], tuple(others)
    return "", command.parameters


def _values(what: Parameter | Option, lookup: Lookup) -> Sequence[str]:
    if what.choices:
        return what.choices
    if what.completes in _FROM_THE_CLUSTER:
        return lookup(what.completes.value)
    if what.completes is Completes.PROPERTY:
        return _property_names()
    return _kinds() if what.completes is Completes.KIND else []


def _kinds() -> list[str]:
    from haclusterd.model.change_kinds import ChangeKind

    return [str(kind) for kind in ChangeKind]


def _property_names() -> list[str]:
    from haclusterd.model.properties import CLUSTER_PROPERTIES

    return [row.name for row in CLUSTER_PROPERTIES]


def _meta_names() -> list[str]:
    from haclusterd.model.properties import META_ATTRIBUTES

    return [row.name for row in META_ATTRIBUTES]


def _of_statement(command: Command, given: list[str], lookup: Lookup) -> Sequence[str]:
    """Return what may follow in a statement of the configuration language."""
    if command.name == "property":
        return [f"{name}=" for name in _property_names()]
    if command.name == "rsc_defaults":
        return [f"{name}=" for name in _meta_names()]
    if command.name == "primitive":
        return _of_primitive(given, lookup)
    if command.name in ("group", "colocation", "order", "monitor", "clone", "ms", "tag", "rsc_ticket"):
        return lookup("resource") if given or command.name == "monitor" else []
    if command.name == "location":
        return lookup("resource") if len(given) == 1 else lookup("node") if len(given) > 2 else []
    return lookup("node") if command.name == "node" and not given else []


def _of_primitive(given: list[str], lookup: Lookup) -> Sequence[str]:
    if not given:
        return []
    if len(given) == 1:
        return lookup("agent")
    section = next((word for word in reversed(given) if word in _STATEMENT_WORDS), "")
    if section == "meta":
        return [*(f"{name}=" for name in _meta_names()), *_STATEMENT_WORDS]
    if given[-1] == "op":
        return _OPERATION_WORDS
    if section == "op":
        return ["interval=", "timeout=", "on-fail=", *_STATEMENT_WORDS]
    return _STATEMENT_WORDS
