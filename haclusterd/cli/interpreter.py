"""Commands line by line: levels, statements that wait for a commit, leaving.

A script and the interactive shell differ in two things only: a script stops at the first error and then has changed
nothing of the configuration; a person sees at once what is wrong with a statement.
"""

import shlex
import shutil
from collections.abc import Iterator, Sequence

from haclusterd.cli.command_table import BELOW, LEVELS, ROOT
from haclusterd.cli.dispatch import carry_out
from haclusterd.cli.grammar import Invocation, Level
from haclusterd.cli.help import help_for
from haclusterd.cli.options import parse_globals
from haclusterd.cli.parsing import UsageError, find_level, level_inside, parse
from haclusterd.cli.session import Session, is_unsafe
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.requests import Response, ShownReport
from haclusterd.verbs.table import VERBS
from haclusterd.verbs.verb import Permission

_LEAVE = ("quit", "exit", "bye")
_UP = ("up", "..", "end", "back")
_OF_CRM_ITSELF = ("agent", "history", "migrate", "options", "ra")
"""Levels whose own commands change nothing of the cluster."""
_FORCE = ("-f", "-F", "--force")
_ADDED_AS_CRMSH = {
    ("delete",): " --cascade --as-crmsh", ("rm",): " --cascade --as-crmsh", ("erase", "nodes"): " alone",
}  # fmt: skip
"""What is done beside, to do as crmsh does."""
_UNFINISHED = {
    "No escaped character": "the last line ends in a backslash, and the rest of the statement is missing",
    "No closing quotation": "a quotation mark is not closed",
}
"""What shlex says of a statement, and what that means."""
_TO_BE_JUDGED_LATER = (0, 78, 107)
"""What a commit may still correct or is asked about: a reference that comes later, something unsafe."""


class LeftInterpreterError(Exception):
    """Nothing more is to be read."""


@dataclass(slots=True)
class Interpreter:
    """Reads commands for one session; settings that they change count until its end."""

    session: Session
    is_script: bool
    levels: list[Level] = field(default_factory=lambda: [ROOT])
    errors: set[str] = field(default_factory=set)
    """What is wrong with the changes that wait, as far as they are kept all the same."""

    def __post_init__(self) -> None:
        self.session.is_prompt = False

    @property
    def level(self) -> Level:
        """Where commands are typed now."""
        return self.levels[-1]

    def execute(self, line: str, number: int) -> int:
        """Carry out one logical line; raises Left at `quit`."""
        text = line.strip()
        if not text or text.startswith("#"):
            return 0
        try:
            words = shlex.split(text.replace("\\\n", " "), comments=False)
            return self._words(words, line, number)
        except ValueError as error:
            return self._wrong(UsageError(_UNFINISHED.get(str(error), str(error))), number)
        except UsageError as error:
            return self._wrong(error, number)

    def _wrong(self, error: UsageError, number: int) -> int:
        place = f"{self.session.source}:{number}" if self.is_script else ""
        report = ShownReport("error", "USAGE", error.problem, error.remedy, place)
        return self.session.show(Response("", int(error.status), (report,)))

    def _words(self, words: list[str], line: str, number: int) -> int:
        first = words[0]
        if first in _LEAVE:
            status = self.leave_configure()
            if status:
                return status
            raise LeftInterpreterError
        if first in _UP or words in (["cd"], ["cd", ".."]):
            return self._up()
        if first == "cd":
            if len(words) == 2 and "/" in words[1]:
                return self._go(words[1])
            words = words[1:]
        if first in ("help", "?"):
            return self._print(help_for(self.session.screen, words[1:], self.level))
        if first == "ls":
            return self._print(self._here())
        below = self._below(words)
        if below is not None:
            self.levels.append(below)
            return 0
        return self._with_options(words, line, number)

    def _go(self, path: str) -> int:
        """Go to a level by its path, as `cd` does: `../node`, `configure/ra`, `/`."""
        while path.startswith("/") and len(self.levels) > 1:
            status = self._up()
            if status:
                return status
        for step in filter(None, path.split("/")):
            if step == "..":
                status = self._up()
                if status:
                    return status
                continue
            below = self._below([step])
            if below is None:
                raise UsageError(f"there is no level {step} here", "see: ls")
            self.levels.append(below)
        return 0

    def _here(self) -> list[str]:
        """Return the commands of the level; for a person in columns, with levels."""
        commands = [command.name for command in self.level.commands]
        if self.is_script:
            return [" ".join(commands)]
        levels = [level.name for level in LEVELS] if self.level is ROOT else ["..", *BELOW.get(self.level.name, ())]
        return in_columns(sorted({*levels, *commands}), shutil.get_terminal_size().columns)

    def _below(self, words: list[str]) -> Level | None:
        """Return the level that is entered by naming it."""
        if len(words) != 1:
            return None
        inside = level_inside(self.level, words[0])
        if self.level is not ROOT or inside is not None:
            return inside
        return find_level(words[0]) if words[0] not in [command.name for command in ROOT.commands] else None

    def _with_options(self, words: list[str], line: str, number: int) -> int:
        """Carry out a command; options of every command count for this line only."""
        if self.level.name == "configure" and level_inside(self.level, words[0]) is None:
            is_deletion = words[0] in ("delete", "rm")
            kept = [word for word in words if not (is_deletion and word in _FORCE)]
            return self._command(parse(kept, self.level), line, number)
        given = parse_globals(words)
        if given.wants_help:
            return self._print(help_for(self.session.screen, given.words, self.level))
        before = self.session.options
        self.session.options = replace(
            before,
            wait_ms=before.wait_ms if given.wait_ms is None else given.wait_ms,
            dry_run=before.dry_run or given.dry_run,
            force=before.force or given.force,
            reason=given.reason or before.reason,
            is_consistent=before.is_consistent or given.is_consistent,
            no_validate=before.no_validate or given.no_validate,
        )
        try:
            return self._command(parse(given.words, self.level), line, number)
        finally:
            self.session.options = before

    def _command(self, invocation: Invocation, line: str, number: int) -> int:
        if invocation.command.is_statement:
            return self._statement(invocation, line, number)
        if invocation.level == "configure":
            return self._of_configure(invocation)
        status = 0 if self._is_apart(invocation) else self.leave_configure()
        return status or carry_out(self.session, invocation)

    def _is_apart(self, invocation: Invocation) -> bool:
        """Tell whether a person may do this while changes wait: it changes nothing of the cluster."""
        if self.is_script:
            return False
        verb = VERBS.get(invocation.command.verb)
        return invocation.level in _OF_CRM_ITSELF or (verb is not None and verb.permission is Permission.READ)

    def _of_configure(self, invocation: Invocation) -> int:
        """Carry out what is no statement: some of it looks at the waiting changes, some commits them first."""
        match invocation.command.name:
            case "commit":
                words = invocation.arguments.get("words")
                return self.session.show(self.session.commit(is_forced=isinstance(words, list) and "force" in words))
            case "discard":
                self.session.pending.clear()
                return 0
            case "diff":
                return self._diff()
            case "load" | "apply" | "edit" | "filter" | "rollback":
                status = self.leave_configure()
                return status or carry_out(self.session, invocation)
            case _:
                return carry_out(self.session, invocation)

    def _statement(self, invocation: Invocation, line: str, number: int) -> int:
        """Keep a statement for the commit."""
        typed = line.lstrip()
        if self.level is ROOT:
            typed = typed.split(maxsplit=1)[1]
        name = invocation.command.name
        added = _ADDED_AS_CRMSH.get(invocation.words if name == "erase" else (name,), "")
        text = name + typed[len(invocation.words[0]) :] + (added if self.session.is_as_crmsh else "")
        self.session.pending.append((number, text))
        if self.is_script or self.session.settings.get("check-frequency") != "always":
            return 0
        try:
            return self._judge(invocation)
        except (KeyboardInterrupt, EOFError):
            self.session.pending.pop()
            raise

    def _judge(self, invocation: Invocation) -> int:
        """Judge the newest of the waiting changes with the others; keep it when it may become right."""
        arguments = {"text": self.session.pending_text(), "source": "uncommitted changes"}
        judged = self.session.ask("configure.script", arguments, replace(self.session.options, dry_run=True))
        found = {each.message for each in judged.errors}
        # What is deleted, renamed or set is there or is not; no later line makes it right.
        known = self.errors if len(self.session.pending) > 1 else set()
        new = replace(judged, reports=tuple(each for each in judged.reports if each.message in found - known))
        is_refused = bool(new.reports) and invocation.command.verb != "configure.statement"
        self.session.tell([each for each in judged.reports if each.severity != "info"])
        if is_refused and is_unsafe(new) and self.session.agrees(new):
            number, statement = self.session.pending.pop()
            self.session.pending.append((number, f"{statement} --force"))
            return 0
        if judged.exit in _TO_BE_JUDGED_LATER and not is_refused:
            self.errors = found
            return 0
        self.session.pending.pop()
        return judged.exit

    def _diff(self) -> int:
        if not self.session.pending:
            return 0
        arguments = {"text": self.session.pending_text(), "source": "uncommitted changes"}
        options = replace(self.session.options, dry_run=True)
        return self.session.show(self.session.ask("configure.script", arguments, options))

    def _up(self) -> int:
        if self.level.name == "configure":
            status = self.leave_configure()
            if status:
                return status
        if len(self.levels) > 1:
            self.levels.pop()
        return 0

    def leave_configure(self) -> int:
        """Commit what waits, or ask a person what to do with it; non-zero: stay."""
        if not self.session.pending:
            return 0
        if self.is_script:
            return self._commit_if_pending()
        answer = self._ask("There are changes that are not committed. Commit them? [y]es, [n]o, [s]tay: ")
        if answer.startswith("y"):
            return self._commit_if_pending()
        if answer.startswith("n"):
            self.session.pending.clear()
            return 0
        return 1

    def _ask(self, question: str) -> str:
        """Ask a person; raises EOFError where the input has ended."""
        self.session.streams.stderr.write(question)
        self.session.streams.stderr.flush()
        answer = self.session.streams.stdin.readline()
        if not answer:
            raise EOFError
        return answer.strip().lower()

    def _commit_if_pending(self) -> int:
        return self.session.show(self.session.commit()) if self.session.pending else 0

    def _print(self, lines: list[str]) -> int:
        self.session.streams.stdout.write("".join(f"{line}\n" for line in lines))
        return 0


def in_columns(words: Sequence[str], width: int) -> list[str]:
    """Return words below each other, in as many columns as a width in characters holds."""
    widest = max(map(len, words), default=0) + 2
    rows = -(-len(words) // max(1, width // widest))
    return ["".join(f"{word:<{widest}}" for word in words[row::rows]).rstrip() for row in range(rows)]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with the number on which they begin; one that ends in a backslash continues in the next."""
    pending: list[str] = []
    begins_on = 1
    for number, line in enumerate(text.split("\n"), 1):
        if not pending:
            begins_on = number
        pending.append(line)
        if line.endswith("\\"):
            continue
        yield begins_on, "\n".join(pending)
        pending = []
    if pending:
        yield begins_on, "\n".join(pending)


def run_script(session: Session, text: str, source: str, level: Level = ROOT) -> int:
    """Carry out a script; its changes of the configuration are made at once, when it leaves `configure`."""
    session.source = source
    interpreter = Interpreter(session, is_script=True)
    if level is not ROOT:
        interpreter.levels.append(level)
    try:
        for number, line in logical_lines(text):
            status = interpreter.execute(line, number)
            if status:
                return status
    except LeftInterpreterError:
        return 0
    return interpreter.leave_configure()
