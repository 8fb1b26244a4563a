"""One use of `crm`: asks what answers, shows what comes back, keeps the changes that wait for a commit.

Invariant: what was found out goes to the standard output, reports about it to the standard error, and the exit
status says whether it is so.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from haclusterd.cli.grammar import Invocation
from haclusterd.cli.reading import STANDARD_INPUT, read_text, shown_name
from haclusterd.cli.render import answers as render
from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.render.lines import folded
from haclusterd.cli.render.terminal import Screen, harmless, span
from haclusterd.cli.replacing import replace_file, write_new_file
from haclusterd.cli.settings import Settings
from haclusterd.cli.shadow_files import Shadows
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.requests import Options, Progress, Request, Response, ShownReport, refused
from haclusterd.ports.control import CommandClient, DaemonLink
from haclusterd.verbs.table import VERBS

if TYPE_CHECKING:
    from pathlib import Path

    from haclusterd.verbs.answers.crm import PastView

SHOW_PROGRESS_AFTER_MS = 1500
_MAY_BE_LOST = (102, 112)
"""Exit statuses where nobody said what became of a request."""
COMPATIBILITY = "CRM_COMPAT"
"""The variable that says whose behaviour is wanted where ours is another one: `crmsh`."""
AS_CRMSH: Mapping[str, Mapping[str, Json]] = {
    "configure.delete": {"cascade": True, "as_crmsh": True},
    "configure.statement": {"as_crmsh": True},
    "resource.move": {"constraint": True, "as_crmsh": True},
    "resource.ban": {"as_crmsh": True},
    "configure.erase": {"as_crmsh": True},
    "node.maintenance": {"as_crmsh": True},
}
"""What verbs are asked beside, to do as crmsh does (docs/howto/come-from-pacemaker.md)."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a person or a program reads and writes."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked."""
        return self.stdin.isatty() and self.stderr.isatty()


@dataclass(slots=True)
class Session:
    """Everything that commands of one `crm` share."""

    client: CommandClient
    streams: Streams
    screen: Screen
    errors: Screen
    options: Options = Options()
    is_json: bool = False
    is_xml: bool = False
    pending: list[tuple[int, str]] = field(default_factory=list)
    """Statements that wait for a commit, each with the line it begins on."""
    source: str = "command line"
    """What messages call the place where the pending statements stand."""
    serial: int = 0
    setup: Callable[[Mapping[str, Json]], Response] | None = None
    """Makes the files of a new cluster."""
    tools: Mapping[str, Callable[[Mapping[str, Json]], Response]] = field(default_factory=dict)
    """What works without asking anybody, by the command with its level."""
    link: Callable[[], DaemonLink] | None = None
    """Reaches the daemon on an event loop; None: no daemon is asked."""
    environment: Mapping[str, str] = field(default_factory=dict)
    shadows: Shadows | None = None
    settings: Settings = field(default_factory=Settings)
    is_prompt: bool = True
    """Whether one command was typed at the shell's prompt; else others come after it."""
    supposed: dict[str, list[str]] = field(default_factory=dict)
    """What `crm cibstatus` supposes: arguments of the verb `simulate`."""
    supposed_of: str = "live"
    """The state about which that is supposed: `live`, `shadow:NAME` or a file."""
    past: "PastView | None" = None
    """What of the past is looked at; None: all that the cluster remembers (`cli.own.past`)."""
    template: str = ""
    """The configuration in preparation that the commands of `template` are about."""
    is_changing: bool = False
    """Whether a change was asked for that is not answered yet."""
    has_changed: bool = False
    """Whether a change was made."""

    @property
    def is_as_crmsh(self) -> bool:
        """Whether the behaviour of crmsh is wanted where ours is another one."""
        return "crmsh" in (self.environment.get(COMPATIBILITY), self.settings.get("compat"))

    def ask(self, verb: str, arguments: Mapping[str, Json], options: Options | None = None) -> Response:
        """Send a request; a person sees how long it takes."""
        self.serial += 1
        request = Request(str(self.serial), verb, arguments, options or self.options)
        shown = False

        def progress(news: Progress) -> None:
            nonlocal shown
            if self.streams.stderr.isatty() and news.elapsed_ms >= SHOW_PROGRESS_AFTER_MS:
                shown = True
                self.streams.stderr.write(f"\r\x1b[Kwaiting for {news.text}, {span(news.elapsed_ms)}")
                self.streams.stderr.flush()

        sent_at = time.time_ns() // 1_000_000
        self.is_changing = _may_change(request)
        response = self.client.call(request, progress)
        self.has_changed |= self.is_changing and not response.exit
        self.is_changing = False
        if shown:
            self.streams.stderr.write("\r\x1b[K")
        if response.exit in _MAY_BE_LOST:
            from haclusterd.cli.lost_answers import found_out, is_lost

            if is_lost(request, response):
                return found_out(self.client, response, sent_at, self.streams.stderr)
        return response

    def show(self, response: Response) -> int:
        """Write an answer and return the exit status."""
        if self.is_json:
            self._show_json(response)
        else:
            self.write(render.render_data(self._fitting_screen(), response.data))
            self.tell(response.reports)
        return response.exit

    def write(self, lines: Iterable[str]) -> None:
        """Write lines to the standard output; what is longer than a terminal goes through the person's pager."""
        text_ = "".join(f"{line}\n" for line in lines)
        if self.streams.stdout.isatty():
            text_ = harmless(text_)
        pager = self.settings.get("pager")
        is_long = self.streams.stdout.isatty() and text_.count("\n") >= _terminal_size().lines
        if pager and is_long and _paged(pager, text_):
            return
        self.streams.stdout.write(text_)
        self.streams.stdout.flush()

    def write_fitting(self, lines: Iterable[str]) -> None:
        """Write lines that a tool of Pacemaker prints; what is wider than the terminal is broken at spaces."""
        width = self._fitting_screen().terminal_columns
        self.write(part for line in lines for part in (folded(line.expandtabs(), width) if width else [line]))

    def _fitting_screen(self) -> Screen:
        """Return the screen as the terminal is now."""
        is_terminal = self.streams.stdout.isatty()
        return replace(self.screen, terminal_columns=_terminal_size().columns) if is_terminal else self.screen

    def _show_json(self, response: Response) -> None:
        if response.exit and response.errors:
            self.streams.stderr.write(render.error_as_json(response) + "\n")
            if response.data is None:
                return
        self.streams.stdout.write(render.answer_as_json(response) + "\n")

    def tell(self, reports: Sequence[ShownReport]) -> None:
        """Write reports to the standard error."""
        for report in reports:
            self.streams.stderr.write(render.render_report(self.errors, report) + "\n")
        self.streams.stderr.flush()

    def fail(self, code: str, message: str, remedy: str, status: int) -> int:
        """Write an error that was found without asking anybody."""
        return self.show(refused(code, message, remedy, status))

    def run(self, invocation: Invocation) -> int:
        """Carry out a command and show its answer."""
        response = self.carry_out(invocation)
        return self.show(response)

    def carry_out(self, invocation: Invocation) -> Response:
        """Carry out a command that asks a verb."""
        arguments = dict(invocation.arguments)
        if self.is_as_crmsh:
            arguments = {**AS_CRMSH.get(invocation.command.verb, {}), **arguments}
        target = arguments.pop("target", None)
        if isinstance(target, Sequence) and not isinstance(target, str):
            arguments["ids"], target = list(target[:-1]), target[-1]
        objection = _named_file(target) or _read_input(self, arguments)
        if objection is not None:
            return objection
        if invocation.command.verb == "configure.show":
            arguments["structured"] = self.is_json
            if self.is_xml:
                arguments["format"] = "xml"
            is_saved = target is not None and not self.is_as_crmsh
            if is_saved or not self.settings.is_on("sort-elements"):
                arguments.setdefault("document", True)
        if invocation.command.verb in ("configure.show", "configure.verify") and self.pending:
            arguments["pending"] = self.pending_text()
        response = self.ask_and_confirm(invocation.command.verb, arguments)
        if target is None or response.exit:
            return response
        return _write_output(str(target), response, self.streams, replaces=self.options.force or self.is_as_crmsh)

    def ask_and_confirm(self, verb: str, arguments: Mapping[str, Json]) -> Response:
        """Ask a verb; what it refuses as unsafe is done nevertheless when a person says so."""
        response = self.ask(verb, arguments)
        if is_unsafe(response) and self.agrees(response):
            response = self.ask(verb, arguments, replace(self.options, force=True))
        return response

    def agrees(self, response: Response) -> bool:
        """Ask a person whether to do it nevertheless."""
        if not self.streams.is_interactive or self.options.dry_run or self.options.force:
            return False
        self.streams.stderr.write(f"{response.errors[0].message}. Do it nevertheless? [y/N] ")
        self.streams.stderr.flush()
        return self.streams.stdin.readline().strip().lower() in ("y", "yes")

    def place(self) -> str:
        """Return where commands are sent: `live`, the name of a shadow CIB or of a state file."""
        return (self.shadows.used if self.shadows is not None else "") or self.client.describe()

    # Waiting changes

    def pending_text(self) -> str:
        """Return the waiting statements, each on the line where it was read."""
        lines: list[str] = []
        for number, statement in self.pending:
            lines += [""] * (number - 1 - len(lines))
            lines += statement.split("\n")
        return "\n".join(lines)

    def commit(self, *, is_forced: bool = False) -> Response:
        """Make the waiting changes, with `is_forced` also what is unsafe; they wait on when that fails."""
        if not self.pending:
            return Response("", 0)
        asked: dict[str, Json] = {"text": self.pending_text(), "source": self.source}
        if self.is_as_crmsh:
            asked["as_crmsh"] = True
        if is_forced:
            response = self.ask("configure.script", asked, replace(self.options, force=True))
        else:
            response = self.ask_and_confirm("configure.script", asked)
        if response.exit == 0 and not self.options.dry_run:
            self.pending.clear()
        return response


def _may_change(request: Request) -> bool:
    verb = VERBS.get(request.verb)
    may_change = verb is not None and verb.may_change and not verb.only_asks(request.arguments)
    return may_change and not request.options.dry_run


def _terminal_size() -> "os.terminal_size":
    import shutil

    return shutil.get_terminal_size()


def _paged(pager: str, shown: str) -> bool:
    """Show a text through a program; say whether there is such a program."""
    import shlex
    import subprocess

    try:
        subprocess.run(shlex.split(pager), input=shown.encode(), check=False)
    except (OSError, ValueError):
        return False
    return True


def is_unsafe(response: Response) -> bool:
    """Tell whether something was refused for nothing but that it is unsafe, so that a person may insist."""
    codes = {each.code for each in response.errors}
    return bool(codes) and codes <= {"UNSAFE", "MOVE_HAS_NO_EFFECT"}


def _named_file(target: Json) -> Response | None:
    """Refuse the word of a format where the name of a file was left out."""
    if target != "xml":
        return None
    problem, remedy = "configure save: FILE is missing", "crm configure save xml FILE"
    return Response("", 64, (ShownReport("error", "USAGE", problem, remedy),))


def _write_output(name: str, response: Response, streams: Streams, *, replaces: bool) -> Response:
    """Put the answer's text into a file that only its owner reads, or on the standard output.

    The file is a new one, or replaces another one if that is wanted.
    """
    from pathlib import Path

    content = text(fields(response.data), "text")
    if name == STANDARD_INPUT:
        streams.stdout.write(content)
        return replace(response, data=None)
    path = Path(name)
    try:
        if replaces and path.is_file():
            replace_file(path, content.encode())
        else:
            _write(path, content.encode(), is_made=not (replaces and path.exists()))
    except OSError as error:
        problem = error.strerror or "it cannot be written"
        remedy = "take another name, or replace it: --force" if isinstance(error, FileExistsError) else ""
        return Response(response.id, 74, (ShownReport("error", "INPUT_OUTPUT", f"{name}: {problem}", remedy),))
    return Response(response.id, 0, (*response.reports, ShownReport("info", "REQUESTED", f"wrote {name}")))


def _write(path: "Path", content: bytes, *, is_made: bool) -> None:
    """Write a new file, or what is no file, as `/dev/stdout`."""
    if is_made:
        write_new_file(path, lambda file: file.write(content))
        return
    with open(os.open(path, os.O_WRONLY), "wb") as file:
        file.write(content)


def _read_input(session: Session, arguments: dict[str, Json]) -> Response | None:
    """Replace the argument `file` by the text in it."""
    name = arguments.pop("file", None)
    if not isinstance(name, str):
        return None
    text = read_text(name, session.streams.stdin)
    if isinstance(text, Response):
        return text
    arguments["text"] = text
    arguments["source"] = shown_name(name)
    return None
