"""`configure edit` and `filter`: the configuration, or objects of it, in an editor or a program, and back.

Invariant: what comes back is used whole or not at all, and only when nobody has changed the configuration meanwhile.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.reading import read_text
from haclusterd.cli.render.fields import fields, number, text
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response, ShownReport, refused

DEFAULT_EDITOR = "vi"


def edit(session: Session, invocation: Invocation) -> int:
    """Show, edit, load; a person may correct what is refused."""
    shown = session.ask(invocation.command.verb, dict(invocation.arguments))
    if shown.exit:
        return session.show(shown)
    before = written = text(fields(shown.data), "text")
    arguments = _loading(session, invocation, shown, "edited text")
    while True:
        edited = edited_text(written, session.settings.get("editor"))
        if isinstance(edited, Response):
            return session.show(edited)
        if edited == before:
            session.streams.stderr.write("nothing was changed\n")
            return 0
        written = edited
        try:
            status = session.show(session.ask_and_confirm("configure.load", {**arguments, "text": written}))
            is_over = not status or not _wants_again(session)
        except KeyboardInterrupt:
            _keep(session, written, arguments)
            raise
        if is_over and status:
            _keep(session, written, arguments)
        if is_over:
            return status


def filter_(session: Session, invocation: Invocation) -> int:
    """Send the configuration, or objects of it, through a program, and load what comes out."""
    asked = dict(invocation.arguments)
    program = _words(str(asked.pop("program")))
    if not program:
        return session.fail("USAGE", "the program is not written as a shell would read it", "nothing was changed", 64)
    shown = session.ask(invocation.command.verb, asked)
    if shown.exit:
        return session.show(shown)
    before = text(fields(shown.data), "text")
    try:
        ended = subprocess.run(program, input=before, capture_output=True, check=False, text=True)
    except (OSError, UnicodeError) as error:
        problem = (error.strerror if isinstance(error, OSError) else "") or "what it writes is no text"
        return session.fail("INPUT_OUTPUT", f"{' '.join(program)}: {problem}", "nothing was changed", 74)
    if ended.returncode:
        printed = ended.stderr.strip().partition("\n")[0] or f"it ended with status {ended.returncode}"
        return session.fail("INPUT_OUTPUT", f"{program[0]}: {printed}", "nothing was changed", 74)
    if ended.stdout == before:
        session.streams.stderr.write("nothing was changed\n")
        return 0
    arguments = _loading(session, invocation, shown, "filtered text")
    return session.show(session.ask_and_confirm("configure.load", {**arguments, "text": ended.stdout}))


def _words(command: str) -> list[str]:
    """Split a command line; nothing when its quotes do not end."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _loading(session: Session, invocation: Invocation, shown: Response, source: str) -> dict[str, Json]:
    """Return with what a changed text is loaded: over the version that was shown, in the place of what was shown."""
    asked = invocation.arguments.get("ids")
    ids = [each for each in asked if isinstance(each, str)] if isinstance(asked, list | tuple) else []
    is_xml = ids[:1] == ["xml"]
    ids = ids[1:] if is_xml else ids
    arguments: dict[str, Json] = {
        "mode": "update" if ids else "replace",
        "source": source,
        "format": "xml" if is_xml else "crm",
        "over": number(fields(shown.data), "version"),
    }
    if ids:
        arguments["edited"] = ids
    if session.is_as_crmsh:
        arguments["as_crmsh"] = True
    return arguments


def edited_text(written: str, wanted: str = "") -> str | Response:
    """Let a person edit a text in the wanted editor, or another.

    An answer that says why, when there is no such editor, it failed, or what it wrote cannot be read.
    """
    named = wanted or os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR
    editor = _words(named) or [named]
    try:
        path = _written(written)
    except OSError as error:
        problem = f"there is no place for the text to be edited: {error.strerror or error}"
        return _failed(problem, f"for a directory other than {tempfile.gettempdir()}: TMPDIR")
    try:
        ended = subprocess.run([*editor, path], check=False)
        if ended.returncode < 0:
            return _failed(f"the editor {editor[0]} was ended by {signal.Signals(-ended.returncode).name}")
        if ended.returncode:
            return _failed(f"the editor {editor[0]} ended with status {ended.returncode}")
        if not os.path.exists(path):
            return _failed(f"the editor {editor[0]} removed the text that was to be edited")
        return read_text(path, sys.stdin)
    except OSError as error:
        return _failed(f"the editor {editor[0]} cannot be run: {error.strerror or error}")
    finally:
        with suppress(OSError):
            os.unlink(path)


def _written(text: str) -> str:
    """Put a text into a new file that only its owner reads; return its path. Raises OSError."""
    with tempfile.NamedTemporaryFile("wb", prefix="crm-", suffix=".crm", delete=False) as file:
        try:
            file.write(text.encode())
            file.flush()
        except OSError:
            os.unlink(file.name)
            raise
        return file.name


def _failed(problem: str, remedy: str = "for another editor: EDITOR=nano, or crm options editor nano") -> Response:
    return refused("INPUT_OUTPUT", problem, f"nothing was changed; {remedy}", 74)


def _keep(session: Session, written: str, loading: Mapping[str, Json]) -> None:
    """Leave a person what they have typed and what was refused; what a program wrote, it writes again."""
    if not session.streams.is_interactive:
        return
    with suppress(OSError):
        words = ["xml"] if loading["format"] == "xml" else []
        command = " ".join(["crm configure load", *words, str(loading["mode"]), _written(written)])
        said = f"the edited text is kept; when it is right: {command}"
        session.tell([ShownReport("info", "REQUESTED", said)])


def _wants_again(session: Session) -> bool:
    if not session.streams.is_interactive:
        return False
    session.streams.stderr.write("Edit again? [y/N] ")
    session.streams.stderr.flush()
    return session.streams.stdin.readline().strip().lower() in ("y", "yes")
