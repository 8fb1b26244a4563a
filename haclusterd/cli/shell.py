"""The interactive shell: a prompt, completion, history; everything else is the interpreter's."""

import os
from collections.abc import Callable
from pathlib import Path

from haclusterd.cli.command_table import ROOT
from haclusterd.cli.completion import candidates
from haclusterd.cli.grammar import Level
from haclusterd.cli.interpreter import Interpreter, LeftInterpreterError
from haclusterd.cli.render.fields import fields, text, texts
from haclusterd.cli.session import Session

HISTORY_LENGTH = 2000


def history_file() -> Path:
    """Return where what was typed is kept."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "haclusterd" / "crm_history"


def run_shell(session: Session, level: Level = ROOT, read: Callable[[str], str] = input) -> int:
    """Read commands until `quit` or the end of the input."""
    interpreter = Interpreter(session, is_script=False)
    if level is not ROOT:
        interpreter.levels.append(level)
    node = _answering_node(session)
    _prepare(interpreter)
    status = 0
    number = 0
    while True:
        try:
            line = read(_prompt(interpreter, node))
            while line.endswith("\\"):
                line += "\n" + read("> ")
            number = sum(statement.count("\n") + 1 for _, statement in session.pending) + 1
            status = interpreter.execute(line, number)
        except LeftInterpreterError:
            break
        except EOFError:
            session.streams.stdout.write("\n")
            if len(interpreter.levels) == 1:
                break
            status = interpreter.execute("up", number)
        except KeyboardInterrupt:
            session.streams.stdout.write("^C\n")
    _keep_history()
    return status


def _prompt(interpreter: Interpreter, node: str) -> str:
    changed = "*" if interpreter.session.pending else ""
    where = interpreter.session.client.describe()
    place = f"{where}/{node}" if node else where
    return f"crm({place}){interpreter.level.name}{changed}# "


def _answering_node(session: Session) -> str:
    """Ask who answers; say at once when nobody does."""
    response = session.ask("cluster.members", {})
    if response.exit:
        session.tell(response.reports)
    return text(fields(response.data), "answered_by")


def lookup_names(session: Session) -> Callable[[str], list[str]]:
    """Return a way to ask for names of one kind; nothing when nobody answers."""

    def lookup(kind: str) -> list[str]:
        return texts(fields(session.ask("cluster.names", {"kind": kind}).data), kind)

    return lookup


def _prepare(interpreter: Interpreter) -> None:
    """Set up completion and history, where this Python has them."""
    try:
        import readline
    except ImportError:
        return
    lookup = lookup_names(interpreter.session)

    def complete(_word: str, state: int) -> str | None:
        line = readline.get_line_buffer()[: readline.get_endidx()]
        words = line.split(" ")
        found = candidates([word for word in words[:-1] if word] + [words[-1]], lookup, interpreter.level)
        return found[state] + ("" if found[state].endswith("=") else " ") if state < len(found) else None

    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(HISTORY_LENGTH)
    try:
        readline.read_history_file(history_file())
    except OSError:
        return


def _keep_history() -> None:
    try:
        import readline

        history_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        readline.write_history_file(history_file())
    except (ImportError, OSError):
        return
