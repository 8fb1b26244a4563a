"""One request on the control socket: decide, propose, wait, answer.

A verb decides by the newest applied CIB; its commands are proposed in order, and each must be applied before the next.
If the configuration changes meanwhile, the verb runs again, for CONFLICT_RETRY_MS. What was proposed is finished even
when the client has disconnected; everything else of its request ends then.

Invariant: every wait and every repetition of a request has a named bound, after which it is answered with a code
(docs/design/0010-requests.md lists them). A request has one time, that of its arrival, however often its verb runs.
"""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

from haclusterd.cib.changes import Applied, Refusal, RefusalCode
from haclusterd.cib.commands import ChangeConfiguration, Command, ReadBarrier, SetTransientAttribute, StageChange
from haclusterd.cib.staging import staged
from haclusterd.commands import registry
from haclusterd.commands.access import gate
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import AnyOutcome
from haclusterd.commands.permissions import access_of
from haclusterd.commands.planning.planning import staleness
from haclusterd.commands.planning.preview import preview
from haclusterd.commands.validation import VALIDATES
from haclusterd.model.instants import NEVER, Instant, after, elapsed_ms
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.model.requests import Basis, Progress, Request, Response
from haclusterd.model.state_tables import Transition, TransitionTable
from haclusterd.ports.background import WorkFailed
from haclusterd.ports.clock import Timer
from haclusterd.ports.store import MAX_ENTRY_BYTES
from haclusterd.protocol.control import EncodedResponse, encode
from haclusterd.reports.codes import Code, Severity
from haclusterd.reports.items import ReportItem, report
from haclusterd.runtime.members.member_change import TOO_EARLY
from haclusterd.runtime.proposer import EntryTooLargeError, NeedsUpgradeError
from haclusterd.runtime.requests.agent_catalogue import BESIDE_A_CHANGE, THOROUGH, AgentCatalogue, AgentValidations
from haclusterd.runtime.requests.live_view import live_view, other_voters, stale_ms, voters
from haclusterd.runtime.requests.past_catalogue import PastCatalogue, VersionCatalogue
from haclusterd.runtime.requests.request_services import Answer, Caller, RequestServices, nothing, response
from haclusterd.verbs.verb import Cost

COMMIT_WAIT_MS = 15_000
"""How long a command may take to be applied before its outcome is called unknown."""
NO_LEADER_WAIT_MS = 5_000
"""How long a leader may be unknown before requests that need one are refused."""
NO_LEADER_WAIT_MIN_MS = 200
"""How long such a request of an agent waits at least. An agent writes several attributes while it demotes or stops what
a node without a lease must not keep running: that it waits once is enough. Others always wait the whole time."""
AGENTS_ORIGIN = "agent"
TOOL_VERB = "tool.run"
DEFAULT_WAIT_MS = 60_000
CATCH_UP_WAIT_MS = 3_000
"""How long a request waits for a daemon that is still catching up with the log."""
MEMBERS_WAIT_MS = 60_000
"""How long a change of the members waits for its turn."""
MEMBERS_PAUSE_MS = 250
PROGRESS_MS = 1000
LARGE_RESOURCES = 200
"""From this number of resources on, work of Cost.WHOLE is not done on the main loop."""
LARGE_EDITS = 500
"""This number of edits certainly exceeds one log entry."""
LONG_TEXT = 4 * 1024
"""An argument of this many characters takes long to parse: YAML takes 7 ms per 1024, on an idle machine."""
MANY_WORDS = 64
"""So many words in one argument take long: of each that names nothing the nearest name is looked for, in 0.5 ms."""
CONFLICT_RETRY_MS = 5_000
"""How long a change is decided again and again because other changes were committed first."""
READINGS_MAX = 32
"""How often a verb may run again after something it looked up was read."""
READING_WAIT_MS = 25_000
"""Time limit of one reading: less than the silence that a client accepts."""

MUST_READ, ANSWERED = b"R", b"A"
"""The answers of a verb that was run in another process."""
IS_MET, IS_NOT_MET = b"1", b"0"


class Stage(StrEnum):
    """The state of a request."""

    NEW = "new"
    CATCHING_UP = "waits until this daemon knows what the others know"
    CONFIRMING = "an entry that means nothing goes through the log"
    QUEUED = "waits for changes under way"
    DECIDING = "the verb runs"
    READING = "what the verb looked at is being read"
    PROPOSING = "a command is on its way"
    PAUSED = "waits for the members"
    WAITING = "what was asked for is waited for"
    LOOKING = "it is found out whether it is so"
    FOLLOWING = "it is found out what follows"
    OVER = "over"


class StageEvent(StrEnum):
    """What changes that state."""

    IS_BEHIND = "this daemon has just started"
    MUST_CONFIRM = "it must be consistent"
    MUST_QUEUE = "other changes are under way"
    DECIDE = "it can be decided, or decided again"
    MUST_READ = "the verb has looked at what is not known"
    PROPOSE = "the verb wants a change"
    TOO_EARLY = "the members do not follow yet"
    AWAIT = "its commands are applied, or it has none and only waits"
    LOOK = "the CIB has changed"
    NOT_YET = "it is not so"
    WAITED = "it is so, or the time is over"
    END = "it is answered, or its client has gone"


_BEFORE_IT_DECIDES = (Stage.NEW, Stage.CATCHING_UP, Stage.CONFIRMING)
STAGES: Final = TransitionTable(
    "A request on the control socket",
    "What was proposed is finished, whether or not the client is still there.",
    (Stage.NEW,),
    (
        Transition((Stage.NEW,), StageEvent.IS_BEHIND, Stage.CATCHING_UP),
        Transition((Stage.NEW, Stage.CATCHING_UP), StageEvent.MUST_CONFIRM, Stage.CONFIRMING),
        Transition(
            (*_BEFORE_IT_DECIDES, Stage.DECIDING, Stage.READING, Stage.PROPOSING), StageEvent.MUST_QUEUE, Stage.QUEUED
        ),
        Transition(
            (*_BEFORE_IT_DECIDES, Stage.QUEUED, Stage.DECIDING, Stage.READING, Stage.PROPOSING, Stage.PAUSED),
            StageEvent.DECIDE,
            Stage.DECIDING,
        ),
        Transition((Stage.DECIDING,), StageEvent.MUST_READ, Stage.READING),
        Transition((Stage.DECIDING, Stage.PROPOSING, Stage.FOLLOWING), StageEvent.PROPOSE, Stage.PROPOSING),
        Transition((Stage.PROPOSING,), StageEvent.TOO_EARLY, Stage.PAUSED),
        Transition((Stage.DECIDING, Stage.PROPOSING, Stage.FOLLOWING), StageEvent.AWAIT, Stage.WAITING),
        Transition((Stage.WAITING,), StageEvent.LOOK, Stage.LOOKING),
        Transition((Stage.LOOKING,), StageEvent.NOT_YET, Stage.WAITING),
        # A wait may end during a check, whose result is then dropped.
        Transition((Stage.WAITING, Stage.LOOKING), StageEvent.WAITED, Stage.FOLLOWING),
        Transition(tuple(stage for stage in Stage if stage is not Stage.OVER), StageEvent.END, Stage.OVER),
    ),
)
_AWAITS = (Stage.WAITING, Stage.LOOKING)


class Dialogue:
    """One request from its arrival to its answer."""

    def __init__(
        self,
        services: RequestServices,
        serial: int,
        request: Request,
        caller: Caller,
        answer: Answer,
        *,
        ended: Callable[[], None],
    ) -> None:
        """`answer` gets progress messages and then one response; `ended` is called once, when nothing is left to do."""
        self._services = services
        self._runtime = services.runtime
        self._ended = ended
        self._key = f"control:{serial}"
        self._request = request
        self._caller = caller
        self._answer = answer
        self._began_at = self._runtime.ports.clock.now()
        self._asked_at = self._runtime.ports.clock.wall()
        """The verb's `now`. It stays the same when the verb runs again, because lookups may depend on it."""
        self._attempts = 0
        self._readings = 0
        self._has_proposed = False
        self._has_client_left = False
        """Whether the client has disconnected."""
        self._stage = Stage.NEW
        self._may_decide_again = True
        self._is_change = _may_change(request)
        verb = registry.find(request.verb)
        self._cost = Cost.LIGHT if verb is None else verb.cost_of(request.arguments)
        self._base = self._runtime.cib
        """The CIB by which the verb decided."""
        self._agents = AgentCatalogue(self._runtime.ports.agents)
        is_asking = request.verb == VALIDATES
        self._validations = AgentValidations(self._runtime.ports.agents, THOROUGH if is_asking else BESIDE_A_CHANGE)
        self._versions = VersionCatalogue(self._runtime.ports.history)
        self._past = PastCatalogue(
            self._runtime.ports.history, services.followers, other_voters(self._runtime), caller.author
        )
        self._reports: tuple[ReportItem, ...] = ()
        self._confirmed: tuple[ReportItem, ...] = ()
        """The report on the freshness of a consistent read."""
        self._timer: Timer | None = None
        self._unwatch: Callable[[], None] = nothing
        self._wait_until = NEVER
        """The end of the wait for the requested condition."""
        self._must_follow = False
        """Whether something is to be done when the wait has ended."""
        self._stop_apart: Callable[[], None] = nothing
        """Ends the work that is done in another process for this request."""

    @property
    def _is_over(self) -> bool:
        return self._stage is Stage.OVER

    def _happened(self, event: StageEvent) -> None:
        self._stage = STAGES.after(self._stage, event)

    def hang_up(self) -> None:
        """End what only the client waited for; finish what was proposed, and what must follow it."""
        self._has_client_left = True
        self._answer = _ignore
        is_only_waiting = self._stage in _AWAITS and not self._must_follow
        is_wanted = self._has_proposed and not is_only_waiting
        if not is_wanted and self._stage not in (Stage.CONFIRMING, Stage.OVER):
            self._leave()

    def _leave(self) -> None:
        self._happened(StageEvent.END)
        self._unwatch()
        self._stop_clock()
        self._stop_apart()
        self._past.leave()
        self._ended()

    def begin(self) -> None:
        """Wait until a daemon that has just started has caught up; then run the verb."""
        if not self._runtime.is_catching_up:
            self._confirm()
            return
        self._happened(StageEvent.IS_BEHIND)
        self._unwatch = self._runtime.watch(self._caught_up)
        self._call_in(CATCH_UP_WAIT_MS, self._give_up_catching_up)

    def _caught_up(self) -> None:
        if not self._runtime.is_catching_up:
            self._give_up_catching_up()

    def _give_up_catching_up(self) -> None:
        self._unwatch()
        self._unwatch = nothing
        self._stop_clock()
        self._confirm()

    def _confirm(self) -> None:
        """For a consistent read, first have a read barrier applied."""
        if not self._request.options.is_consistent:
            self._run()
            return
        key = f"{self._key}:barrier"

        def applied(result: Applied) -> None:
            self._stop_clock()
            took_ms = self._runtime.ports.clock.now() - self._began_at
            self._confirmed = (report(Code.READ_CONFIRMED, took_ms=took_ms, index=result.cib.index),)
            self._run()

        wait_ms = self._commit_wait_ms()
        self._happened(StageEvent.MUST_CONFIRM)
        self._runtime.propose(key, ReadBarrier(), applied)
        self._call_in(wait_ms, lambda: self._unanswered(key))

    def _commit_wait_ms(self) -> int:
        """Return how long a command that is proposed now may take to be applied."""
        since = self._runtime.leaderless_since
        if since is None:
            return COMMIT_WAIT_MS
        is_agents = self._request.verb == TOOL_VERB or self._request.origin == AGENTS_ORIGIN
        waited_ms = elapsed_ms(since, self._now()) if is_agents else 0
        return max(NO_LEADER_WAIT_MIN_MS, NO_LEADER_WAIT_MS - waited_ms)

    def _run(self) -> None:
        if self._has_client_left and not self._is_over:
            self._leave()
        if self._is_over:
            return
        changes = self._services.changes
        if self._is_change and changes.must_wait(is_long=self._is_long):
            self._happened(StageEvent.MUST_QUEUE)
            changes.wait(self._decide)
        else:
            self._decide()

    def _decide(self) -> None:
        if self._is_over:
            return
        self._happened(StageEvent.DECIDE)
        self._attempts += 1
        self._base = self._services.changes.base(self._runtime.cib) if self._is_change else self._runtime.cib
        context = self._services.context(
            self._request,
            self._caller,
            now=self._asked_at,
            cib=self._base,
            agents=self._agents,
            versions=self._versions,
            past=self._past,
            validations=self._validations,
        )
        work = partial(_outcome_of, self._request, context, lambda: self._knows_all)
        if not self._is_long:
            self._decided(work())
        elif self._is_change:
            self._services.changes.deciding(is_deciding=True)
            cut = partial(_in_parts, work, self._runtime.ports.entropy.token())
            self._runtime.ports.background.run(cut, self._decided_in_background)
        else:
            self._do_apart(partial(self._answer_or_reads, work), self._answered_apart, "the answer")

    @property
    def _knows_all(self) -> bool:
        """Whether everything that was looked up is known."""
        return all(each.is_complete for each in self._catalogues)

    @property
    def _catalogues(self) -> tuple[AgentCatalogue, VersionCatalogue, PastCatalogue, AgentValidations]:
        return self._agents, self._versions, self._past, self._validations

    @property
    def _is_long(self) -> bool:
        """Whether the verb may take longer than the main loop can wait for it."""
        request = self._request
        is_large = len(self._runtime.cib.configuration.resources) >= LARGE_RESOURCES and self._cost is Cost.WHOLE
        is_costly = is_large or request.options.dry_run or self._cost is Cost.LONG
        return is_costly or _has_long_text(request) or self._is_restricted

    @property
    def _is_restricted(self) -> bool:
        """Whether access control lists are applied to the whole CIB for this request: their XPaths may take seconds."""
        return access_of(self._runtime.cib.in_force, self._caller.principal).rules is not None

    def _decided_in_background(self, outcome: AnyOutcome) -> None:
        """Take a background decision; if the configuration has changed meanwhile, decide again, for a limited time."""
        changes = self._services.changes
        changes.deciding(is_deciding=False)
        if self._is_over:
            changes.go_on()
            return
        version = changes.base(self._runtime.cib).version
        if version == self._base.version:
            self._decided(outcome)
        elif self._now() - self._began_at < CONFLICT_RETRY_MS:
            self._attempts -= 1
            self._run()
        else:
            self._fail(report(Code.CONFLICT, author=version.author or "somebody", version=version.epoch))
        changes.go_on()

    # -- in another process -----------------------------------------------------------------------------------------

    def _do_apart(self, work: Callable[[], bytes], done: Callable[[bytes | WorkFailed], None], what: str) -> None:
        """Do work in another process, and send the client progress messages meanwhile."""
        began_at = self._now()

        def tell() -> None:
            self._answer(Progress(self._request.id, what, self._now() - began_at))
            self._call_in(PROGRESS_MS, tell)

        def ended(result: bytes | WorkFailed) -> None:
            self._stop_apart = nothing
            self._stop_clock()
            if not self._is_over:
                done(result)

        self._call_in(PROGRESS_MS, tell)
        self._stop_apart = self._runtime.ports.background.apart(work, ended, self._caller.whose)

    def _answer_or_reads(self, work: Callable[[], AnyOutcome]) -> bytes:
        """Run the verb; return what must be read first, as JSON, or the frame of its answer."""
        outcome = work()
        if not self._knows_all:
            return MUST_READ + json.dumps([each.noted() for each in self._catalogues]).encode()
        reports = (*self._confirmed, *outcome.reports)
        return ANSWERED + encode(
            response(self._request, reports, outcome.data, outcome.exit_status, self._basis())
        )

    def _answered_apart(self, result: bytes | WorkFailed) -> None:
        if isinstance(result, WorkFailed):
            self._fail(_no_answer(result))
        elif result.startswith(ANSWERED):
            self._leave()
            self._answer(EncodedResponse(result.removeprefix(ANSWERED)))
        else:
            noted = json.loads(result.removeprefix(MUST_READ))
            self._agents.note(noted[0])
            self._versions.note(noted[1])
            self._past.note(noted[2])
            self._validations.note(noted[3])
            incomplete = (each for each in self._catalogues if not each.is_complete)
            self._read(next(incomplete).read)

    def _decided(self, outcome: AnyOutcome) -> None:
        if self._is_over:
            return
        for catalogue in self._catalogues:
            if not catalogue.is_complete:
                self._attempts -= 1
                self._read(catalogue.read)
                return
        if self._is_ahead and not _is_one_change(outcome):
            self._wait_for_changes()
            return
        if outcome.invite is not None and not outcome.is_refused and not self._request.options.dry_run:
            outcome = self._services.invite(outcome, self._caller.author)
        self._reports = outcome.reports
        if outcome.is_refused or not (outcome.commands or outcome.waits_by_default):
            self._finish(outcome)
        elif outcome.commands:
            self._carry_out(outcome)
        else:
            self._wait(outcome)

    def _carry_out(self, outcome: AnyOutcome) -> None:
        for command in outcome.commands:
            if isinstance(command, SetTransientAttribute):
                self._services.dampened.put(command, outcome.dampen_ms)
        if outcome.dampen_ms:
            self._finish(outcome)
            return
        self._propose(outcome, 0)

    def _read(self, read: Callable[[Callable[[], None]], None]) -> None:
        """Read what the verb looked up and run it again; fail if that was done too often, or takes too long."""
        self._happened(StageEvent.MUST_READ)
        self._readings += 1
        number = self._readings
        if number > READINGS_MAX:
            self._fail(report(Code.NOT_ANSWERED, problem=f"the verb asked for more than {READINGS_MAX} readings"))
            return
        self._call_in(READING_WAIT_MS, self._give_up_reading)

        def done() -> None:
            if not self._is_over and number == self._readings:
                self._stop_clock()
                self._run()

        read(done)

    def _give_up_reading(self) -> None:
        what = f"reading the history, or the meta-data of agents, takes more than {READING_WAIT_MS // 1000} s"
        self._fail(report(Code.TAKES_TOO_LONG, problem=what))

    # -- proposing --------------------------------------------------------------------------------------------------

    @property
    def _is_ahead(self) -> bool:
        """Whether the verb decided by changes that are not committed yet."""
        return self._base.version != self._runtime.cib.version

    def _wait_for_changes(self) -> None:
        """Decide again by the committed version, once nothing is under way."""
        self._happened(StageEvent.MUST_QUEUE)
        self._attempts -= 1
        self._services.changes.wait(self._decide, for_end=True)

    def _propose(self, outcome: AnyOutcome, position: int) -> None:
        self._has_proposed = True
        if position == len(outcome.commands):
            self._wait(outcome)
            return
        self._happened(StageEvent.PROPOSE)
        key = f"{self._key}:{self._attempts}:{position}"

        def applied(result: Applied) -> None:
            self._stop_clock()
            self._services.changes.ended(key, is_made=result.refusal is None)
            self._applied(outcome, position, result)
            self._services.changes.go_on()

        wait_ms = self._commit_wait_ms()
        command = outcome.commands[position]
        try:
            request = self._runtime.propose(key, command, applied)
        except NeedsUpgradeError as error:
            self._fail(report(Code.NEEDS_UPGRADE, level=error.level, nodes=", ".join(error.behind)))
            return
        except EntryTooLargeError:
            if self._is_ahead:
                self._wait_for_changes()
            else:
                self._propose_in_parts(outcome, position)
            return
        if isinstance(command, ChangeConfiguration) and _is_one_change(outcome):
            at = self._runtime.ports.clock.wall()
            self._services.changes.proposed(key, self._base, command, request, at)
        self._call_in(wait_ms, lambda: self._unanswered(key))

    def _propose_in_parts(self, outcome: AnyOutcome, position: int) -> None:
        """Replace a change that is larger than one entry by its parts, and continue with them."""
        command = outcome.commands[position]
        if not isinstance(command, ChangeConfiguration):
            self._fail(report(Code.TOO_LARGE, what="this change", limit=f"{MAX_ENTRY_BYTES // 1024} KiB"))
            return
        parts = staged(command, self._runtime.ports.entropy.token())
        commands = (*outcome.commands[:position], *parts, *outcome.commands[position + 1 :])
        self._propose(replace(outcome, commands=commands), position)

    def _applied(self, outcome: AnyOutcome, position: int, result: Applied) -> None:
        refusal = result.refusal
        version = result.cib.version
        if refusal is None:
            self._propose(outcome, position + 1)
        elif self._may_begin_again(outcome, position, refusal):
            self._decide()
        elif refusal.code in TOO_EARLY and self._began_at + MEMBERS_WAIT_MS > self._now():
            self._happened(StageEvent.TOO_EARLY)
            self._answer(Progress(self._request.id, refusal.text, self._now() - self._began_at))
            self._call_in(MEMBERS_PAUSE_MS, self._decide)
        elif refusal.code is RefusalCode.CONFIGURATION_CONFLICT:
            self._fail(report(Code.CONFLICT, author=version.author or "somebody", version=version.epoch))
        else:
            self._fail(report(Code.REFUSED, problem=refusal.text))

    def _may_begin_again(self, outcome: AnyOutcome, position: int, refusal: Refusal) -> bool:
        """Return whether the configuration has changed meanwhile, and nothing was done yet but to stage this change."""
        is_untouched = all(isinstance(command, StageChange) for command in outcome.commands[:position])
        is_conflict = refusal.code is RefusalCode.CONFIGURATION_CONFLICT
        may_retry = self._now() - self._began_at < CONFLICT_RETRY_MS
        return is_conflict and is_untouched and self._may_decide_again and may_retry

    def _now(self) -> Instant:
        return self._runtime.ports.clock.now()

    def _unanswered(self, key: str) -> None:
        """Answer that the outcome of a command is unknown; that it has none only if no leader was known all the time.

        What is proposed without a leader reaches nobody (`Store.propose`).
        """
        self._runtime.forget(key)
        self._services.changes.ended(key, is_made=False)
        self._services.changes.go_on()
        view = live_view(self._runtime)
        names = voters(self._runtime)
        missing = sorted(set(names) - set(view.connected_voters))
        if view.has_quorum:
            self._fail(report(Code.OUTCOME_UNKNOWN, problem=f"not committed within {COMMIT_WAIT_MS} ms"))
            return
        absent = ", ".join(missing) or "a leader"
        connected = len(view.connected_voters)
        since = self._runtime.leaderless_since
        if self._has_proposed and (since is None or since > self._began_at):
            problem = f"the leader was lost meanwhile, and may have it; missing: {absent}"
            self._fail(report(Code.OUTCOME_UNKNOWN, problem=problem))
        else:
            self._fail(report(Code.NO_QUORUM, missing=absent, connected=connected, total=len(names)))

    # -- waiting ----------------------------------------------------------------------------------------------------

    def _wait(self, outcome: AnyOutcome) -> None:
        wanted_ms = self._request.options.wait_ms
        is_awaited = outcome.waits_by_default if wanted_ms is None else wanted_ms > 0
        is_wanted = is_awaited and not self._has_client_left
        must_follow = outcome.afterwards is not None and not outcome.only_reports
        if outcome.until is None or not (is_wanted or must_follow):
            self._finish(outcome)
            return
        if not is_awaited:
            # The verb's final action is done even if the client has disconnected.
            self._answer(
                response(self._request, self._reports, outcome.data, outcome.exit_status, self._basis())
            )
            self._answer = _ignore
        self._happened(StageEvent.AWAIT)
        now = self._runtime.ports.clock.now()
        self._must_follow = must_follow
        self._wait_until = after(now, outcome.wait_ms_max or wanted_ms or DEFAULT_WAIT_MS)
        self._unwatch = self._runtime.watch(lambda: self._look(outcome))
        self._tell_progress(outcome)
        self._look(outcome)

    def _look(self, outcome: AnyOutcome) -> None:
        """Check whether the awaited condition holds; that may take a plan."""
        if self._stage is not Stage.WAITING:
            return
        assert outcome.until is not None
        self._happened(StageEvent.LOOK)
        look = partial(outcome.until, self._runtime.cib, live_view(self._runtime))
        if not outcome.until_plans and len(self._runtime.cib.configuration.resources) < LARGE_RESOURCES:
            self._looked(outcome, None, is_met=look())
            return
        index = self._runtime.cib.index
        self._stop_apart = self._runtime.ports.background.apart(
            lambda: IS_MET if look() else IS_NOT_MET,
            lambda result: self._looked(outcome, index, is_met=result == IS_MET),
            self._caller.whose,
        )

    def _looked(self, outcome: AnyOutcome, index: int | None, *, is_met: bool) -> None:
        self._stop_apart = nothing
        if is_met:
            self._waited(outcome, is_met=True)
            return
        self._happened(StageEvent.NOT_YET)
        if index is not None and index != self._runtime.cib.index:
            self._look(outcome)

    def _tell_progress(self, outcome: AnyOutcome) -> None:
        if self._stage not in _AWAITS:
            return
        now = self._runtime.ports.clock.now()
        if now >= self._wait_until:
            self._waited(outcome, is_met=False)
            return
        self._answer(Progress(self._request.id, outcome.waiting_for, now - self._began_at))
        self._call_in(min(PROGRESS_MS, self._wait_until - now), lambda: self._tell_progress(outcome))

    def _waited(self, outcome: AnyOutcome, *, is_met: bool) -> None:
        waited_s = (self._runtime.ports.clock.now() - self._began_at) // 1000
        self._happened(StageEvent.WAITED)
        self._unwatch()
        self._stop_clock()
        self._stop_apart()
        if not is_met and outcome.afterwards is None:
            self._reports = (*self._reports, report(Code.TIMEOUT, time=f"{waited_s} s", what=outcome.waiting_for))
        if outcome.afterwards is None:
            self._finish(outcome)
            return
        self._follow(outcome, is_met=is_met)

    def _follow(self, outcome: AnyOutcome, *, is_met: bool) -> None:
        """Find out what is to be done now that the wait has ended; that may take a plan."""
        assert self._stage is Stage.FOLLOWING
        cib = self._runtime.cib
        assert outcome.afterwards is not None
        work = partial(outcome.afterwards, cib, is_met)

        def found(following: AnyOutcome) -> None:
            is_late = self._now() - followed_at >= CONFLICT_RETRY_MS
            if self._runtime.cib.version != cib.version and not is_late:
                self._follow(outcome, is_met=is_met)
            else:
                self._followed(outcome, following)

        followed_at = self._now()
        is_large = len(cib.configuration.resources) >= LARGE_RESOURCES
        if self._cost is Cost.LONG or (is_large and self._cost is Cost.WHOLE):
            self._runtime.ports.background.run(work, found)
        else:
            found(work())

    def _followed(self, outcome: AnyOutcome, following: AnyOutcome) -> None:
        self._reports = (*self._reports, *following.reports)
        self._may_decide_again = False
        if following.answer is None:
            following = replace(following, answer=outcome.answer)
        self._propose(following, 0)

    # -- ending -----------------------------------------------------------------------------------------------------

    def _fail(self, item: ReportItem) -> None:
        kept_reports = (each for each in self._reports if each.severity is not Severity.INFO)
        self._reports = (*kept_reports, item)
        self._respond(None, None)

    def _finish(self, outcome: AnyOutcome) -> None:
        self._respond(outcome.data, outcome.exit_status)

    def _respond(self, data: Json, status: int | None) -> None:
        self._leave()
        self._answer(response(self._request, (*self._confirmed, *self._reports), data, status, self._basis()))

    def _basis(self) -> Basis:
        runtime = self._runtime
        cib = runtime.cib if self._has_proposed else self._base
        return Basis(runtime.settings.node, cib.version.epoch, cib.index, stale_ms(runtime, self._now()))

    def _call_in(self, span_ms: int, call: Callable[[], None]) -> None:
        self._stop_clock()
        clock = self._runtime.ports.clock
        self._timer = clock.call_at(after(clock.now(), span_ms), call)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _may_change(request: Request) -> bool:
    verb = registry.find(request.verb)
    may_change = verb is not None and verb.may_change and not verb.only_asks(request.arguments)
    return may_change and not request.options.dry_run


def _has_long_text(request: Request) -> bool:
    for value in request.arguments.values():
        texts = value if isinstance(value, Sequence) else ()
        most = LONG_TEXT if isinstance(value, str) else MANY_WORDS
        if len(texts) >= most or sum(len(each) for each in texts if isinstance(each, str)) >= LONG_TEXT:
            return True
    return False


def _no_answer(failure: WorkFailed) -> ReportItem:
    if failure.is_too_long:
        return report(Code.TAKES_TOO_LONG, problem=failure.problem)
    return report(Code.NOT_ANSWERED, problem=failure.problem)


def _is_one_change(outcome: AnyOutcome) -> bool:
    """Return whether an outcome proposes exactly one change, against the configuration that it was decided by."""
    return not outcome.is_refused and len(outcome.commands) == 1 and isinstance(
        outcome.commands[0], ChangeConfiguration
    )


def _outcome_of(request: Request, context: Context, knows_all: Callable[[], bool]) -> AnyOutcome:
    """Decide; note in the catalogues what turns out to be unknown."""
    outcome = registry.run(request.verb, request.arguments, context)
    if request.options.dry_run and knows_all():
        return gate.cleaned(context, request.arguments, preview(context, outcome))
    if _may_change(request) and request.verb != TOOL_VERB and not outcome.commands and not outcome.is_refused:
        # What is so already by an old state may be otherwise by now.
        stale = (each for each in staleness(context) if each not in outcome.reports)
        return replace(outcome, reports=(*outcome.reports, *stale))
    return outcome


def _in_parts(work: Callable[[], AnyOutcome], transaction: str) -> AnyOutcome:
    """Decide, and split what is sure to exceed one entry: that takes long too."""
    outcome = work()
    commands: list[Command] = []
    for number, command in enumerate(outcome.commands):
        if isinstance(command, ChangeConfiguration) and len(command.edits) >= LARGE_EDITS:
            commands.extend(staged(command, f"{transaction}-{number}"))
        else:
            commands.append(command)
    return replace(outcome, commands=tuple(commands))


def _ignore(_message: Progress | Response | EncodedResponse) -> None:
    return None
