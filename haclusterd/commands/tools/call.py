"""One call of a tool of Pacemaker: its words read by a table of options, its answer as two texts and an exit status.

The tools themselves are small programs that pass their words on (`haclusterd.agents.cluster_tool`); what the words mean
is decided here, where the cluster is known. A tool never changes anything by itself: it carries out verbs, and each of
them checks what the caller may. An option that is not in a tool's table is refused by name, never ignored.
"""

import getopt
from collections.abc import Callable, Iterator, Mapping, Sequence

from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome, Outcome, refusal
from haclusterd.commands.verb import RunnableVerb
from haclusterd.model import durations
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field, replace
from haclusterd.reports.codes import Code
from haclusterd.reports.items import report
from haclusterd.verbs.answers.cluster import ToolOutput
from haclusterd.verbs.arguments import check
from haclusterd.verbs.verb import Cost, Permission

VERSION = "Pacemaker 2.1.5"
"""Whose options, output and exit statuses the tools have."""

OK, INSUFFICIENT_PRIVILEGES, USAGE, NO_SUCH_OBJECT = 0, 4, 64, 105
"""Exit statuses of Pacemaker's tools (`crm_error --list --exit`)."""
EVERYWHERE = {"verbose": "V verbose", "version": "$ version", "help": "? h help"}
"""Options that all tools have."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What was typed, and what the environment says of it."""

    tool: str
    words: tuple[str, ...]
    instance: str = ""
    """OCF_RESOURCE_INSTANCE of an agent."""
    node: str = ""
    """The node that an agent acts for, else the one it runs on."""
    text: str = ""
    """What was given on standard input or as a file."""
    other: str = ""
    """What was given as a second file (crm_diff)."""


class ToolUsageError(Exception):
    """Words that a tool does not understand, or does not do here; the text says which."""

    def __init__(self, problem: str, status: int = USAGE) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class Given:
    """The options of one call, by the names of the tool's table."""

    pairs: tuple[tuple[str, str], ...]

    def __contains__(self, name: object) -> bool:
        return any(each == name for each, _ in self.pairs)

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of an option."""
        return next((value for each, value in reversed(self.pairs) if each == name), default)

    def any_of(self, *names: str) -> str:
        """Return the last of these options that was given; empty when none was."""
        return next((each for each, _ in reversed(self.pairs) if each in names), "")


Options = Mapping[str, str]
"""By name: its spellings. A letter is a short option, a longer word a long one; with `:` it takes a value, with `?` at
the end it may: what is attached (`--promotion=NAME`, `-m3`), else the next word, unless that begins with `-`."""
ToolFunction = Callable[[Context, ToolCall, Given], Outcome[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    function: ToolFunction
    options: Options
    changes: frozenset[str] = frozenset()
    """Options with which it may change something."""
    cost: Cost = Cost.LIGHT
    """Of a call that only asks; a change costs what its verb does, the whole at most."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options that are not carried out here, by name: with what to do instead."""

    def read(self, words: Sequence[str]) -> Given:
        """Read a call's words. Raises ToolUsageError."""
        given = read_options(words, self.every_option())
        name = "" if given.any_of("help", "version") else given.any_of(*self.refused)
        if name:
            spelling = max(map(_plain, self.options[name].split()), key=len)
            raise ToolUsageError(f"--{spelling}: not done here: {self.refused[name]}")
        return given

    def every_option(self) -> Options:
        """Return the table of this tool with what all have; what it defines itself comes first (`crm_mon -h FILE`)."""
        own = {_plain(each) for spellings in self.options.values() for each in spellings.split()}
        common = {
            name: " ".join(each for each in spellings.split() if _plain(each) not in own)
            for name, spellings in EVERYWHERE.items()
        }
        return {**common, **self.options}

    def only_asks(self, given: Given) -> bool:
        """Tell whether a call changes nothing."""
        return not given.any_of(*self.changes) or "help" in given or "version" in given


def _plain(spelling: str) -> str:
    """Return a spelling without what it takes; `?` alone is one."""
    return spelling.rstrip(":?") or spelling


def read_options(words: Sequence[str], options: Options) -> Given:
    """Read words by a table, as getopt_long of the C library does. Raises ToolUsageError."""
    names: dict[str, str] = {}
    short, long = "", []
    optional: dict[str, str] = {}
    for name, spellings in options.items():
        for spelling in spellings.split():
            plain = _plain(spelling)
            takes = spelling[len(plain) :]
            names[f"-{plain}" if len(plain) == 1 else f"--{plain}"] = name
            if len(plain) == 1:
                short += plain + (":" if takes == ":" else "")
            else:
                long.append(plain + ("=" if takes else ""))
            if takes == "?":
                optional[plain] = next(each.rstrip("?") for each in spellings.split() if len(each) > 2)
    try:
        found, rest = getopt.gnu_getopt(list(_spelled(words, short, optional)), short, long)
    except getopt.GetoptError as error:
        raise ToolUsageError(_said(error)) from None
    if rest:
        raise ToolUsageError(f"unexpected: {rest[0]}")
    return Given(tuple((names[option.rstrip("=")], value) for option, value in found))


def _said(error: getopt.GetoptError) -> str:
    """Return what Pacemaker's tools say of an option that is wrong."""
    option = f"{'--' if len(error.opt) > 1 else '-'}{error.opt}"
    if error.msg.endswith("not recognized"):
        return f"Unknown option {option}"
    return f"Missing argument for {option}" if error.msg.endswith("requires argument") else error.msg


def _spelled(words: Sequence[str], short: str, optional: Mapping[str, str]) -> Iterator[str]:
    """Yield words as getopt reads them: a lone `-?` is a question for help, an option without its value has none.

    `optional` has the long spelling of what may have a value, by all of its spellings.
    """
    is_value = False
    for word, following in zip(words, (*words[1:], "-"), strict=False):
        if is_value or not word.startswith("-") or word == "-":
            yield word
            is_value = False
            continue
        letters = "" if word.startswith("--") else word[1:]
        cut = next((at for at, letter in enumerate(letters) if letter in optional or f"{letter}:" in short), None)
        is_last = cut == len(letters) - 1
        is_value = is_last and f"{letters[-1:]}:" in short
        has_value_next = not following.startswith("-")
        if word == "-?" or word.startswith("--help-"):
            yield "--help"
        elif word[2:] in optional and not letters:
            yield word if has_value_next else f"{word}="
            is_value = has_value_next
        elif cut is not None and letters[cut] in optional:
            yield from (f"-{letters[:cut]}",) if cut else ()
            is_value = is_last and has_value_next
            yield f"--{optional[letters[cut]]}" + ("" if is_value else f"={letters[cut + 1 :]}")
        else:
            yield word


def printed(out: str = "", err: str = "", status: int = OK) -> Outcome[ToolOutput]:
    """Answer with texts; an exit status other than 0 is an answer, too."""
    return Outcome(answer=output(out, err), exit_status=status)


def output(out: str, err: str = "", files: dict[str, str] | None = None) -> ToolOutput:
    """Return what a tool prints, and what it writes to files, as an answer."""
    return ToolOutput(out=out, err=err, files=files or None)


def to_file(outcome: Outcome[ToolOutput], name: str) -> Outcome[ToolOutput]:
    """Have what is printed written to a file instead."""
    answer = outcome.answer
    if answer is None or name == "-":
        return outcome
    shown = outcome.showing(output("", answer.err, {**(answer.files or {}), name: answer.out}))
    return replace(shown, exit_status=outcome.exit_status)


def not_found(call: ToolCall, problem: str = "") -> Outcome[ToolOutput]:
    """Answer that what was asked for is not there."""
    name = "crm_attribute" if call.tool in ("crm_master", "crm_standby") else call.tool
    message = problem or "Error performing operation: No such device or address"
    return printed(err=f"{name}: {message}\n", status=NO_SUCH_OBJECT)


def carry_out(
    context: Context, verb: RunnableVerb, arguments: Mapping[str, Json], out: str = ""
) -> Outcome[ToolOutput]:
    """Carry out a verb in the caller's name, and print `out` once what it proposes is applied."""
    outcome = ask(context, verb, arguments)
    return replace(outcome.showing(output(out)), waits_by_default=False)


def awaited(outcome: Outcome[ToolOutput], limit_ms: int) -> Outcome[ToolOutput]:
    """Answer when what was asked for is so, or with exit status 124 after so long; also what follows is waited for."""
    then = outcome.afterwards
    followed = None if then is None else lambda cib, is_met: awaited(then(cib, is_met), limit_ms)
    return replace(outcome, waits_by_default=True, wait_ms_max=limit_ms, afterwards=followed)


def limit_of(given: Given, usual_ms: int) -> int:
    """Return how long a call waits at most: its `-T` or `-t`, or what is usual. Raises ToolUsageError."""
    try:
        return (durations.parse(given.text("timeout")) if "timeout" in given else 0) or usual_ms
    except ValueError as error:
        raise ToolUsageError(f"--timeout: {error}") from None


def ask(context: Context, verb: RunnableVerb, arguments: Mapping[str, Json]) -> AnyOutcome:
    """Ask a verb in the caller's name, as the control socket would."""
    needed = verb.permission_for(arguments)
    if not context.access.permission.covers(needed):
        return refusal(report(Code.NOT_PERMITTED, verb=verb.name, permission=str(needed), remedy="be root"))
    checked, objections = check(verb.name, verb.arguments, arguments)
    if objections:
        return refusal(*objections)
    return verb.function(context, checked)


def may_administer(context: Context) -> bool:
    """Tell whether the caller may change the configuration."""
    return context.access.permission is Permission.ADMINISTER


def usage(tool: Tool, call: ToolCall) -> str:
    """Return what `--help` prints."""
    lines = [f"Usage: {call.tool} [options]", "", "Options:"]
    for name, spellings in tool.every_option().items():
        shown = []
        for spelling in spellings.split():
            plain = _plain(spelling)
            value = {":": " VALUE", "?": "[=VALUE]"}.get(spelling[len(plain) :], "")
            shown.append(f"{'-' if len(plain) == 1 else '--'}{plain}{value}")
        lines.append(f"  {', '.join(shown)}" + ("  (makes a change)" if name in tool.changes else ""))
    return "\n".join(lines) + "\n"
