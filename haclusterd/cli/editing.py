"""`configure edit`: the configuration, or objects of it, in a person's editor, and back.

Invariant: what comes back is used whole or not at all, and only when nobody has changed the configuration meanwhile.
"""

import os
import shlex
import subprocess
import sys
import tempfile

from haclusterd.cli.fields import fields, number, text
from haclusterd.cli.grammar import Invocation
from haclusterd.cli.reading import read_text
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response

DEFAULT_EDITOR = "vi"


def edit(session: Session, invocation: Invocation) -> int:
    """Show, edit, load; a person may mend what is refused."""
    shown = session.ask(invocation.command.verb, dict(invocation.arguments))
    if shown.exit:
        return session.show(shown)
    data = fields(shown.data)
    before = written = text(data, "text")
    arguments: dict[str, Json] = {
        "mode": "update" if invocation.arguments.get("ids") else "replace",
        "source": "edited text",
        "format": "crm",
        "version": number(data, "version"),
    }
    while True:
        edited = _edited(written)
        if edited is None:
            return session.fail("INPUT_OUTPUT", "the editor ended with an error", "set EDITOR; nothing was changed", 74)
        if edited == before:
            session.streams.stderr.write("nothing was changed\n")
            return 0
        if isinstance(edited, Response):
            return session.show(edited)
        written = edited
        status = session.show(session.ask_and_confirm("configure.load", {**arguments, "text": written}))
        if not status or not _wants_again(session):
            return status


def _edited(written: str) -> str | Response | None:
    """Let a person edit a text; None when the editor failed, an answer when what it wrote cannot be read."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    with tempfile.NamedTemporaryFile("w+", suffix=".crm", encoding="utf-8") as file:
        file.write(written)
        file.flush()
        try:
            ended = subprocess.run([*editor, file.name], check=False)
        except OSError:
            return None
        if ended.returncode:
            return None
        return read_text(file.name, sys.stdin)


def _wants_again(session: Session) -> bool:
    if not session.streams.is_interactive:
        return False
    session.streams.stderr.write("Edit again? [y/N] ")
    session.streams.stderr.flush()
    return session.streams.stdin.readline().strip().lower() in ("y", "yes")
