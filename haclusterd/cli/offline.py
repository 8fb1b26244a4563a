"""Verbs on a state file, in this process: no daemon, no cluster, the same answers.

The file holds one CIB as `cib.codec` writes it (`crm cluster export` makes one). A change is folded with the same
`apply` that daemons use, and the file is replaced as a whole or not at all. In a CIB of Pacemaker, as XML, what a
change does not touch stays as it is written (`formats.cib_xml.merging`).

What only changes need is imported for them: to show a file takes a third of the time without it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from haclusterd.cli.replacing import replace_file
from haclusterd.cli.without_cluster import response_to, wall_clock, without_collector
from haclusterd.commands.configure import showing
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome, Outcome
from haclusterd.commands.planning.planning import context_of
from haclusterd.commands.verb import run_verb
from haclusterd.formats.cib_xml.document import CibReading, read_cib
from haclusterd.model.agents import AgentFacts
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import AgentReference, NodeName, RequestId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.model.requests import Progress, Request, Response
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report

if TYPE_CHECKING:
    from haclusterd.cib.commands import Command

PROPOSER = NodeName("offline")
Survey = Callable[[Iterable[AgentReference]], Mapping[str, AgentFacts]]
"""What this machine's agents say of themselves, by `str(AgentReference)`."""
_ADVICE = re.compile(r"^\s*default[-_]timeouts\b", re.MULTILINE)


class OfflineClient:
    """Carries out verbs on a file."""

    def __init__(
        self, path: str, author: str, clock: Callable[[], WallTime] = wall_clock, survey: Survey | None = None
    ) -> None:
        self._path = Path(path)
        self._survey = survey
        self._author = author
        self._clock = clock
        self._foreign: CibReading | None = None
        """What was read, when the file is Pacemaker's."""
        self._data = b""
        """What stood in the file when it was read."""

    def describe(self) -> str:
        """Return the file's name."""
        return self._path.name

    def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        """Carry out a request."""
        with without_collector():
            return self._answered(request)

    def _answered(self, request: Request) -> Response:
        cib = self._read()
        if isinstance(cib, ReportItem):
            return response_to(request, Outcome((cib,)))
        context = self._context(cib, request)
        outcome = _carried_out(request, context)
        if request.options.dry_run:
            from haclusterd.commands.planning.preview import preview

            outcome = preview(context, outcome)
        if outcome.is_refused or not outcome.commands:
            return response_to(request, outcome)
        problem = self._change(cib, outcome.commands, context.now)
        return response_to(request, outcome if problem is None else Outcome((problem,)))

    def _context(self, cib: Cib, request: Request) -> Context:
        context = Context(
            cib, self._clock(), self._author, request.options.reason, is_forced=request.options.force,
            is_preview=request.options.dry_run, if_version=request.options.if_version, agents=self._asked(cib, request),
        )
        if self._foreign is None:
            return context
        # A tool that shows the document shows it as it is written.
        return replace(context_of(self._foreign, context), seen_xml=lambda: self._data.decode(errors="replace"))

    def _asked(self, cib: Cib, request: Request) -> Mapping[str, AgentFacts] | None:
        """Return what this machine's agents say, where nothing can be done without it; else None.

        A file may be about a cluster whose agents are not installed here.
        """
        asks = request.verb == "configure.default_timeouts" or (
            request.verb == "configure.script" and _ADVICE.search(str(request.arguments.get("text", ""))) is not None
        )
        if self._survey is None or not asks:
            return None
        agents = {each.agent for each in cib.configuration.primitives()}
        agents |= {each.agent for each in cib.configuration.templates.values()}
        return self._survey(sorted(agents, key=str))

    def _read(self) -> Cib | ReportItem:
        try:
            self._foreign = None
            data = self._data = self._path.read_bytes()
            return self._read_xml(data) if data.lstrip()[:1] == b"<" else self._read_state(data)
        except FileNotFoundError as error:
            remedy = "make an empty one: crm cib empty FILE"
            return report(Code.NO_INPUT, file=self._path, problem=error.strerror, remedy=remedy)
        except OSError as error:
            return report(Code.NO_INPUT, file=self._path, problem=error.strerror or "unreadable")

    def _read_state(self, data: bytes) -> Cib | ReportItem:
        from haclusterd.cib.codec import CodecError, decode_cib

        try:
            return decode_cib(data)
        except CodecError as error:
            return report(Code.UNREADABLE, what=self._path, problem=error)

    def _read_xml(self, data: bytes) -> Cib | ReportItem:
        reading = self._foreign = read_cib(data.decode(errors="replace"), self._path.name)
        objection = next((each for each in reading.reports if each.severity is Severity.ERROR), None)
        return objection or reading.cib

    def _change(self, cib: Cib, commands: "tuple[Command, ...]", now: WallTime) -> ReportItem | None:
        from haclusterd.cib.apply import apply
        from haclusterd.cib.codec import encode_cib
        from haclusterd.cib.commands import Envelope

        before = cib
        for command in commands:
            controller = cib.status.controller
            request = RequestId(f"offline-{cib.index + 1}")
            term = Term(0) if controller is None else controller.term
            applied = apply(cib, Envelope(request, PROPOSER, now, command), index=cib.index + 1, term=term)
            if applied.refusal is not None:
                return report(Code.REFUSED, problem=applied.refusal.text)
            cib = applied.cib
        try:
            if self._path.read_bytes() != self._data:
                return report(Code.INPUT_OUTPUT, what=self._path, problem="another program has changed it meanwhile")
            content = encode_cib(cib) if self._foreign is None else self._merged(before, cib)
            replace_file(self._path, content, self._path.stat().st_mode & 0o777)
        except OSError as error:
            return report(Code.INPUT_OUTPUT, what=self._path, problem=error.strerror or "cannot be written")
        return None

    def _merged(self, before: Cib, after: Cib) -> bytes:
        """Return the document of Pacemaker with a change."""
        from haclusterd.formats.cib_xml.merging import merged

        return merged(self._data.decode(errors="replace"), before, after, self._author.partition("@")[0]).encode()


def _carried_out(request: Request, context: Context) -> AnyOutcome:
    """Carry out a verb; to show the configuration, without the table of all verbs."""
    (show,) = showing.VERBS
    if request.verb == show.name:
        return run_verb(show, request.arguments, context)
    from haclusterd.commands import registry

    return registry.run(request.verb, request.arguments, context)
