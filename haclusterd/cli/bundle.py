"""`crm report`: what is known of the cluster in one file, to be given to somebody who looks for a fault.

It holds the answers of verbs as text and as JSON, and this machine's journal of the daemons. Values of secret
parameters are hidden in the answers, and taken out of the journal. It is left out where the asker may not see them.
"""

import io
import os
import platform
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import BinaryIO

from haclusterd.cli.moments import FORMS, moment
from haclusterd.cli.render import answers as render
from haclusterd.cli.render.fields import fields
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.replacing import write_new_file
from haclusterd.cli.session import Session
from haclusterd.model.json_value import Json
from haclusterd.model.requests import Response, ShownReport, refused
from haclusterd.model.words import HIDDEN

USUAL_SINCE = "12h"
EVENTS = 10_000
LONGEST_JOURNAL_S = 60
JOURNAL = ("journalctl", "--unit=haclusterd", "--unit=haclusterd-pacer", "--no-pager", "--output=short-iso-precise")
QUESTIONS: tuple[tuple[str, str], ...] = (
    ("status", "status"), ("members", "cluster.members"), ("timing", "cluster.timing"), ("nodes", "node.show"),
    ("resources", "resource.status"), ("configuration", "configure.show"), ("verify", "configure.verify"),
    ("properties", "configure.get_property"), ("operations", "resource.operations"),
    ("failcounts", "resource.failcount"), ("events", "history.events"), ("transitions", "history.transitions"),
    ("versions", "history.config"), ("fencing", "fencing.list"), ("fencing-history", "fencing.history"),
)  # fmt: skip
"""The names of the files, and the verbs whose answers they hold."""


def report(session: Session, arguments: Mapping[str, Json]) -> Response:
    """Write the file; it names what could not be learned."""
    name = str(arguments.get("target") or time.strftime("crm-report-%Y%m%d-%H%M%S"))
    name += "" if name.endswith((".tar.gz", ".tgz")) else ".tar.gz"
    written = [str(arguments.get(each) or "") for each in ("since", "until")]
    times = [moment(each) for each in written]
    if None in times:
        problem = f"{written[times.index(None)]!r} is no time"
        return Response("", 2, (ShownReport("error", "BAD_ARGUMENT", problem, FORMS),))
    since, until = times[0] or USUAL_SINCE, times[1] or ""
    period: dict[str, Json] = {"since": since, "limit": EVENTS}
    if until:
        period["until"] = until
    answers = {title: session.ask(verb, period if verb == "history.events" else {}) for title, verb in QUESTIONS}
    failed = {title: answer for title, answer in answers.items() if answer.data is None}
    if len(failed) == len(answers):
        return answers["status"]
    journal = _journal(session, since, until)
    texts = dict(_texts(answers))
    if isinstance(journal, str):
        texts["journal.txt"] = journal
    try:
        write_new_file(name, partial(_archive, texts))
    except OSError as error:
        return refused("INPUT_OUTPUT", f"{name}: {error.strerror or error}", "name another file: crm report FILE", 74)
    missing = [
        ShownReport("warning", "LEFT_OUT", f"{title} is not known", _why(answer)) for title, answer in failed.items()
    ]
    missing += [] if isinstance(journal, str) else [journal]
    return Response("", 0, (*missing, ShownReport("info", "REQUESTED", f"wrote {name}")))


def _why(answer: Response) -> str:
    return next((each.message for each in answer.errors), "")


def _texts(answers: Mapping[str, Response]) -> Iterator[tuple[str, str]]:
    """Yield the names of the files with what is in them."""
    yield "about.txt", f"{platform.platform()}\nPython {platform.python_version()}\n"
    for title, answer in answers.items():
        lines = [render.render_report(Screen(), each) for each in answer.reports]
        yield f"{title}.txt", "\n".join([*render.render_data(Screen(), answer.data), *lines, ""])
        yield f"{title}.json", render.answer_as_json(answer) + "\n"


def _journal(session: Session, since: str, until: str) -> str | ShownReport:
    """Return what the daemons of this machine wrote, without secrets, or say why it is left out."""
    asked: dict[str, Json] = {"structured": True}
    shown, whole = (session.ask("configure.show", {**asked, "secrets": secrets}) for secrets in (False, True))
    if whole.exit or shown.exit:
        problem = "the journal is left out: secrets in it cannot be recognized"
        return ShownReport("warning", "LEFT_OUT", problem, _why(whole))
    command = [*JOURNAL, f"--since={_moment(since)}", *([f"--until={_moment(until)}"] if until else [])]
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_JOURNAL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = "the journal is left out: journalctl does not answer"
        return ShownReport("warning", "LEFT_OUT", problem, str(error)[:200])
    if ended.returncode:
        printed = ended.stderr.decode(errors="replace").strip()[:200]
        return ShownReport("warning", "LEFT_OUT", "the journal is left out: journalctl failed", printed)
    text = ended.stdout.decode(errors="replace")
    found = set(_secrets(fields(shown.data).get("configuration"), fields(whole.data).get("configuration")))
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _moment(text: str) -> str:
    """Write how far back (10min) or when (ISO 8601; without a zone it is UTC) as journalctl reads it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return f"-{text}"
    stamp = found if found.tzinfo is not None else datetime.fromisoformat(f"{text}+00:00")
    return f"@{int(stamp.timestamp())}"


def _secrets(shown: Json, whole: Json) -> Iterator[str]:
    """Yield every text that one document hides and the other shows."""
    if isinstance(shown, str) and isinstance(whole, str):
        if shown == HIDDEN and whole not in ("", HIDDEN):
            yield whole
    elif isinstance(shown, Mapping) and isinstance(whole, Mapping):
        for name, value in shown.items():
            yield from _secrets(value, whole.get(name))
    elif isinstance(shown, Sequence) and isinstance(whole, Sequence):
        for one, other in zip(shown, whole, strict=False):
            yield from _secrets(one, other)


def _archive(texts: Mapping[str, str], file: BinaryIO) -> None:
    """Write what was collected, as members of one archive that was made now."""
    made_at = int(os.fstat(file.fileno()).st_mtime)
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for title, content in texts.items():
            data = content.encode()
            member = tarfile.TarInfo(f"crm-report/{title}")
            member.size, member.mtime, member.mode = len(data), made_at, 0o600
            archive.addfile(member, io.BytesIO(data))
