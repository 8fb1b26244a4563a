"""The interactive shell: a prompt, completion, history; everything else is the interpreter's.

On a terminal that can do it lines are read by prompt_toolkit (`prompting`); on others as plain lines, with Python's
readline where it is there. ^C abandons what was typed and leaves nothing half done; ^D leaves a level, then `crm`.
"""

from collections.abc import Callable

from haclusterd.cli.command_table import ROOT
from haclusterd.cli.completing.completion import offers, typed_words
from haclusterd.cli.completing.known_names import KnownNames
from haclusterd.cli.completing.offers import Offer
from haclusterd.cli.grammar import Level
from haclusterd.cli.interactive.typed_lines import LENGTH, TypedLines, history_file
from haclusterd.cli.interpreter import Interpreter, LeftInterpreterError, logical_lines
from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.session import Session
from haclusterd.model.records import dataclass
from haclusterd.model.requests import Options, Request, ShownReport

LIVE = "live"
_ENDS_MAX = 3
"""After so many questions in a row to which the input ended, nobody is there to be asked any more."""
_MEMBERS = Request("prompt", "cluster.members", {}, Options())

Read = Callable[[str], str]
"""Shows a prompt and returns what is typed; KeyboardInterrupt: abandoned, EOFError: there is nothing more."""


@dataclass(slots=True)
class Shell:
    """One interactive shell."""

    session: Session
    interpreter: Interpreter
    names: KnownNames
    node: str = ""
    """Who answers."""
    is_led: bool = True
    """Whether it answers, and knows a leader."""

    def prompt(self) -> str:
        """Return `crm(live/n1)configure# `; `*`: changes wait, `!`: no quorum, or no answer."""
        where = self.session.place()
        mark = ("*" if self.session.pending else "") + ("" if self.is_led or where != LIVE else "!")
        place = f"{where}{mark}/{self.node}" if self.node else where + mark
        return f"crm({place}){self.interpreter.level.name}# "

    def look(self, *, is_first: bool = False) -> None:
        """Find out who answers; the first time, say when nobody does."""
        self.names.forget()
        response = self.session.client.call(_MEMBERS, lambda _: None)
        answer = fields(response.data)
        self.node = text(answer, "answered_by") or (self.node if response.exit else "")
        self.is_led = response.exit == 0 and text(answer, "leader") != ""
        if is_first and response.exit:
            self.session.tell(response.reports)

    def offered(self, line: str) -> list[Offer]:
        """Return what may come next on a line, with what it means."""
        return offers(typed_words(line), self.names, self.interpreter.level, in_shell=True)

    def execute(self, typed: str) -> int:
        """Carry out what was typed, one statement after the other; return the last one's status."""
        status = 0
        for _, statement in logical_lines(typed):
            number = sum(each.count("\n") + 1 for _, each in self.session.pending) + 1
            status = self.interpreter.execute(statement, number)
        return status


def run_shell(session: Session, level: Level = ROOT) -> int:
    """Read commands until `quit` or the end of the input; return the status of the last one."""
    interpreter = Interpreter(session, is_script=False)
    if level is not ROOT:
        interpreter.levels.append(level)
    shell = Shell(session, interpreter, KnownNames(session))
    shell.look(is_first=True)
    read = _reader(shell)
    status = ends = 0
    while ends < _ENDS_MAX:
        asked = session.serial
        try:
            typed = read(shell.prompt())
        except KeyboardInterrupt:
            continue
        except (EOFError, OSError):
            # OSError: the terminal is gone.
            typed = "quit" if interpreter.level is ROOT else "up"
        try:
            status = shell.execute(typed)
            ends = 0
            if typed.strip():
                shell.look()
        except LeftInterpreterError:
            return status
        except EOFError:
            # Instead of an answer to a question: nothing is done.
            session.streams.stdout.write("\n")
            ends += 1
        except KeyboardInterrupt:
            shown = "interrupted; what was begun continues: status" if session.serial != asked else ""
            session.streams.stderr.write(f"\n{shown}\n" if shown else "\n")
    if session.pending:
        session.tell([ShownReport("warning", "LEFT_OUT", "the input has ended; changes were not committed")])
    return status


def _reader(shell: Shell) -> Read:
    """Return how lines are read here; say why it is the plain way, where a person would expect the other."""
    session = shell.session
    lines = TypedLines(history_file(session.environment))
    if not (session.streams.stdin.isatty() and session.streams.stdout.isatty()):
        return _plain(shell, lines)
    problem = ""
    if session.environment.get("TERM", "") in ("", "dumb", "unknown"):
        problem = "the terminal is dumb (TERM)"
    else:
        try:
            from haclusterd.cli.interactive.prompting import LinePrompt
        except ImportError:
            problem = "prompt_toolkit is not installed"
        else:
            return LinePrompt(session.streams, lines, shell.offered, has_colour=session.screen.has_colour)
    session.tell([ShownReport("info", "REQUESTED", f"plain input, without menus: {problem}")])
    return _plain(shell, lines)


def _plain(shell: Shell, lines: TypedLines) -> Read:
    """Return how lines are read without prompt_toolkit: Tab and history as far as this Python has readline."""
    _prepare_readline(shell, lines)
    out = shell.session.streams.stdout

    def read(prompt: str) -> str:
        typed = ""
        try:
            typed = input(prompt)
            while typed.endswith("\\"):
                typed += "\n" + input("> ")
        except KeyboardInterrupt:
            out.write("^C\n")
            raise
        except EOFError:
            out.write("\n")
            if not typed:
                raise
            return ""
        lines.append(typed)
        return typed

    return read


def _prepare_readline(shell: Shell, lines: TypedLines) -> None:
    try:
        import readline
    except ImportError:
        return

    def complete(_word: str, state: int) -> str | None:
        found = shell.offered(readline.get_line_buffer()[: readline.get_endidx()])
        return found[state].word + ("" if found[state].continues else " ") if state < len(found) else None

    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(LENGTH)
    for line in lines.read():
        readline.add_history(line)
