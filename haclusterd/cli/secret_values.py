"""`crm secret set`, `crm resource secret set`: a value is asked for, or read from the standard input.

It is never a word of the command: every user sees those in `ps`, and shells keep them in their history.
"""

import getpass

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.parsing import UsageError
from haclusterd.cli.session import Session
from haclusterd.model.words import SECRET_CHARACTERS_MAX


def carry_out(session: Session, invocation: Invocation) -> int:
    """Carry out a command about secrets, with the value where it sets one; return the exit status."""
    arguments = dict(invocation.arguments)
    words = arguments.pop("words", None)
    sets = arguments.get("action", "set") == "set"
    if words:
        problem = "a value is not taken from the command line: everybody sees it there (ps), and the shell keeps it"
        remedy = "leave it out; and take another value, since this one was seen" if sets else "leave it out"
        raise UsageError(problem, remedy)
    if sets:
        arguments["value"] = _read(session, str(arguments.get("name") or arguments.get("parameter")))
    return session.show(session.ask_and_confirm(invocation.command.verb, arguments))


def _read(session: Session, name: str) -> str:
    stdin = session.streams.stdin
    if not stdin.isatty():
        text = stdin.read(4 * SECRET_CHARACTERS_MAX)
        return text.removesuffix("\n").removesuffix("\r")
    first = getpass.getpass(f"value of {name}: ", session.streams.stderr)
    if getpass.getpass(f"value of {name}, again: ", session.streams.stderr) != first:
        raise UsageError("the two values differ", "nothing was changed; try again")
    return first
