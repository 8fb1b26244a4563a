"""The matrix of trials of `crm agent test`: everything that the cluster relies on, tried with the real agent.

Each trial begins with a stopped resource (OCF Resource Agent API 1.1; agents-and-fencing.md §1).

Every trial ends with the resource stopped and its processes killed, whatever its result. A trial that cannot be made is
skipped with a reason; it is never counted as passed.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from haclusterd.adapters.agent_checks import family
from haclusterd.adapters.agent_checks.one_action import UNKNOWN_ACTION, Answer, Program, code_name, perform
from haclusterd.adapters.agents.metadata import MetadataError, read_agent_metadata
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import dataclass, field, replace
from haclusterd.ports.agents import AgentMetadata

USUAL_TIMEOUT_MS = 20_000
ACTIVE = frozenset({ExitCode.OK, ExitCode.PROMOTED, ExitCode.DEGRADED, ExitCode.DEGRADED_PROMOTED})
INTERRUPTED_AFTER_S = (0.02, 0.1)
RECURRING: Mapping[str, str] = {"interval": "10000"}
PROBE: Mapping[str, str] = {"interval": "0"}
ODD_INSTANCE = "odd-name.of_it:0"
ODD_TEXT = "a b'c d'\"e f\" é"
"""A value with blanks, both quotes, and a non-ASCII letter."""
LISTENS_AFTER_S = 1.0
"""How long after its start a service may take to listen."""


class TrialResult(StrEnum):
    """The result of a trial."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class TrialFailedError(Exception):
    """The agent did not do what the cluster relies on; the message says what."""


class TrialSkippedError(Exception):
    """The trial cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trial and its result."""

    name: str
    what: str
    verdict: TrialResult
    detail: str
    wall_ms: int


@dataclass(slots=True)
class Trial:
    """One agent under trial; each helper raises TrialFailedError."""

    program: Program
    metadata: AgentMetadata
    directory: Path
    """Directory of this trial; a file that appears there proves that a parameter was executed as a command."""
    levels: tuple[str, ...] = ("0",)
    """OCF_CHECK_LEVEL of the monitors that its meta-data advises."""
    scores: Callable[[], Mapping[str, str]] = dict
    """Attributes of the stand-in cluster's node."""
    timeout_ms: int | None = None
    """Timeout in ms that replaces those in the meta-data."""
    longest: dict[str, int] = field(default_factory=dict)
    """The longest duration of each action so far, in ms."""

    @property
    def is_promotable(self) -> bool:
        """Whether it has promote."""
        return "promote" in self.metadata.actions

    def timeout_of(self, action: str) -> int:
        """Return the timeout of an action, in ms."""
        advised = self.metadata.actions.get(action)
        return self.timeout_ms or (advised.timeout_ms if advised else None) or USUAL_TIMEOUT_MS

    def ask(
        self, action: str, *, level: str | None = None, program: Program | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run an action; a monitor is a recurring one, unless it gets the meta-attributes of a probe."""
        given = meta if meta is not None else RECURRING if action == "monitor" else {}
        answer = perform(program or self.program, action, self.timeout_of(action), level, given)
        self.longest[action] = max(self.longest.get(action, 0), answer.wall_ms)
        return answer

    def expect(
        self, action: str, *codes: int, after: str = "", level: str | None = None, program: Program | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run an action that must end with one of these codes."""
        answer = self.ask(action, level=level, program=program, meta=meta)
        if answer.code not in codes:
            raise TrialFailedError(_unexpected(answer, codes, after))
        return answer

    def begin(self) -> list[family.Process]:
        """Start the resource; return its processes."""
        self.expect("start", 0)
        return family.members()

    def nobody_left(self, after: str) -> None:
        """Fail if processes are left that should be gone."""
        left = family.lasting()
        if left:
            raise TrialFailedError(f"{after}, {family.names(left)} still runs")

    def skip_passing(self) -> None:
        """Skip a trial of processes if they are not the service: they end by themselves, and it is active without them.

        An example are those with which IPaddr2 announces its address.
        """
        self.clean()
        self.begin()
        if not family.lasting() and self.ask("monitor").code in ACTIVE:
            raise TrialSkippedError("it has no processes of its own: those of its start end by themselves")

    def clean(self) -> None:
        """Stop the resource, and kill what is left."""
        with suppress(OSError):
            self.ask("stop")
        family.end(family.members())


def _unexpected(answer: Answer, codes: Sequence[int], after: str) -> str:
    wanted = " or ".join(code_name(code) for code in codes)
    reason_text = f": {answer.reason}" if answer.reason else ""
    return f"{answer.action}{f' {after}' if after else ''}: {answer.name}, not {wanted}{reason_text}"


def _meta_data(trial: Trial) -> str:
    done = subprocess.run(
        [str(trial.program.path), "meta-data"], env={"PATH": os.defpath, "OCF_ROOT": "/usr/lib/ocf"}, cwd="/",
        capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise TrialFailedError(f"without the cluster's environment it ends with {code_name(done.returncode)}")
    try:
        read_agent_metadata(done.stdout.decode(errors="replace"), trial.program.agent)
    except MetadataError as error:
        raise TrialFailedError(f"without the cluster's environment: {error}") from None
    return ""


def _unknown_action(trial: Trial) -> str:
    trial.expect(UNKNOWN_ACTION, ExitCode.UNIMPLEMENTED)
    return ""


def _validate(trial: Trial) -> str:
    if "validate-all" not in trial.metadata.actions:
        raise TrialSkippedError("its meta-data names no validate-all")
    trial.expect("validate-all", 0)
    return ""


def _stop_before_start(trial: Trial) -> str:
    trial.expect("stop", 0, after="of what never ran")
    return ""


def _clean_probe(trial: Trial) -> str:
    trial.expect("monitor", ExitCode.NOT_RUNNING, after="of what never ran", meta=PROBE)
    return ""


def _start(trial: Trial) -> str:
    processes = trial.begin()
    for level in trial.levels:
        trial.expect("monitor", 0, after=f"with level {level}", level=level)
    trial.expect("monitor", 0, after="as a probe", meta=PROBE)
    return f"{len(processes)} processes: {family.names(processes)}" if processes else "no processes of its own"


def _start_twice(trial: Trial) -> str:
    before = {process.pid for process in trial.begin()[:1]}
    trial.expect("start", 0, after="of what runs")
    trial.expect("monitor", 0)
    if before and before != {process.pid for process in family.members()[:1]}:
        # The first monitor may have run before the end of a process that the second start killed.
        trial.expect("monitor", 0)
        trial.skip_passing()
        raise TrialFailedError("a second start put another process in the first one's place")
    return ""


def _stop_twice(trial: Trial) -> str:
    trial.begin()
    trial.expect("stop", 0)
    trial.expect("monitor", ExitCode.NOT_RUNNING, after="after stop")
    trial.expect("stop", 0, after="of what is stopped")
    trial.expect("start", 0, after="after stop")
    trial.expect("monitor", 0)
    return ""


def _nothing_left(trial: Trial) -> str:
    _with_processes(trial)
    trial.expect("stop", 0)
    trial.nobody_left("after stop")
    return ""


def _with_processes(trial: Trial) -> list[family.Process]:
    processes = trial.begin()
    if not processes:
        raise TrialSkippedError("it has no processes of its own")
    return processes


def _killed(trial: Trial) -> str:
    family.end(_with_processes(trial))
    answer = trial.ask("monitor")
    if answer.code is None or answer.code in ACTIVE:
        trial.skip_passing()
        raise TrialFailedError(f"monitor after all its processes were killed: {answer.name}")
    trial.expect("stop", 0, after="after all its processes were killed")
    trial.expect("start", 0, after="after all its processes were killed")
    trial.expect("monitor", 0)
    return f"monitor: {answer.name}"


def _main_killed(trial: Trial) -> str:
    processes = _with_processes(trial)
    family.end(processes[:1])
    trial.expect("stop", 0, after=f"after {family.names(processes[:1]) or 'its first process'} was killed")
    trial.nobody_left("after stop")
    trial.expect("start", 0)
    return ""


def _hung(trial: Trial) -> str:
    family.end(_with_processes(trial), signal.SIGSTOP)
    trial.expect("stop", 0, after="of processes that hang (SIGSTOP)")
    left = family.lasting()
    if left:
        trial.skip_passing()
        raise TrialFailedError(f"after stop, {family.names(left)} still runs")
    return ""


def _interrupted(trial: Trial) -> str:
    environment = trial.program.environment("start", trial.timeout_of("start"))
    for after_s in INTERRUPTED_AFTER_S:
        with subprocess.Popen(
            [str(trial.program.path), "start"], env=environment, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
        ) as started:  # fmt: skip
            with suppress(subprocess.TimeoutExpired):
                started.wait(after_s)
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        trial.expect("stop", 0, after="after start was killed in mid-action")
        trial.nobody_left("after start was killed in mid-action and stop")
    trial.expect("start", 0)
    return ""


def _port_taken(trial: Trial) -> str:
    addresses = _listening(_with_processes(trial))
    if not addresses:
        raise TrialSkippedError("it listens at no TCP port")
    trial.expect("stop", 0)
    trial.nobody_left("after stop")
    kind, host, port = addresses[0]
    with socket.socket(kind, socket.SOCK_STREAM) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen()
        answer = trial.ask("start")
        if answer.code is None or answer.code in (*ACTIVE, ExitCode.NOT_CONFIGURED):
            raise TrialFailedError(f"start while port {port} is taken: {answer.name}")
        trial.expect("stop", 0, after=f"while port {port} is taken")
        trial.nobody_left(f"after a start that failed because port {port} is taken, and stop,")
    return f"port {port}: {answer.name}{f': {answer.reason}' if answer.reason else ''}"[:160]


def _listening(processes: Sequence[family.Process]) -> list[family.Address]:
    deadline = time.monotonic() + LISTENS_AFTER_S
    while not (found := family.listening(processes)) and time.monotonic() < deadline:
        time.sleep(family.LOOK_S)
    return found


def _required(trial: Trial) -> str:
    wanted = [name for name, facts in trial.metadata.parameters.items() if facts.is_required]
    given = [name for name in wanted if name in trial.program.parameters]
    if not wanted:
        raise TrialSkippedError("it requires no parameter")
    for name in given:
        rest = {each: value for each, value in trial.program.parameters.items() if each != name}
        program = replace(trial.program, parameters=rest)
        trial.expect("start", ExitCode.NOT_CONFIGURED, after=f"without {name}", program=program)
    return ", ".join(given)


def _missing_program(trial: Trial) -> str:
    named = {name: value for name, value in trial.program.parameters.items() if _is_program(value)}
    defaults = {
        name: facts.default
        for name, facts in trial.metadata.parameters.items()
        if name not in trial.program.parameters and _is_program(facts.default or "")
    }
    if not named and not defaults:
        raise TrialSkippedError("no parameter names a program")
    for name in {**defaults, **named}:
        program = replace(trial.program, parameters={**trial.program.parameters, name: "/no/such/program"})
        trial.expect("start", ExitCode.NOT_INSTALLED, after=f"with {name}=/no/such/program", program=program)
        trial.expect("stop", 0, after=f"with {name}=/no/such/program", program=program)
        trial.expect(
            "monitor", ExitCode.NOT_RUNNING, ExitCode.NOT_INSTALLED, after=f"(probe) with {name}=/no/such/program",
            program=program, meta=PROBE,
        )  # fmt: skip
    return ", ".join({**defaults, **named})


def _is_program(text: str) -> bool:
    try:
        first = shlex.split(text)[:1]
    except ValueError:
        return False
    path = shutil.which(first[0]) if first else None
    return path is not None and first[0] not in ("true", "false", "yes", "test")


def _odd_values(trial: Trial) -> str:
    """Try values with shell metacharacters: nothing in them may be executed."""
    names = [name for name, facts in trial.metadata.parameters.items() if facts.content_type == "string"]
    if not names:
        raise TrialSkippedError("it has no parameter that is a text")
    proof = trial.directory / "carried-out"
    for name in names:
        odd = f"{ODD_TEXT};touch {proof};$(touch {proof})`touch {proof}`"
        program = replace(trial.program, parameters={**trial.program.parameters, name: odd})
        for action in ("validate-all", "monitor"):
            answer = trial.ask(action, program=program, meta=PROBE)
            if proof.exists():
                proof.unlink()
                raise TrialFailedError(f"{action}: what is written in {name} is carried out as a command")
            if answer.code is None:
                raise TrialFailedError(f"{action} with odd characters in {name}: {answer.name}")
            complaint = _complaint(answer.stderr)
            if complaint:
                raise TrialFailedError(f"{action} with odd characters in {name}: {complaint}")
    return f"{len(names)} parameters"


def _complaint(stderr: str) -> str:
    """Return the error message of a shell or an interpreter about the program's own text."""
    signs = ("syntax error", "unexpected operator", "too many arguments", "binary operator expected",
             "unary operator expected", "traceback (most recent", "unterminated quoted")  # fmt: skip
    return next((line.strip() for line in stderr.splitlines() if any(sign in line.lower() for sign in signs)), "")


def _odd_instance(trial: Trial) -> str:
    program = replace(trial.program, instance=ODD_INSTANCE)
    try:
        for action, code in (("start", 0), ("monitor", 0), ("stop", 0), ("monitor", int(ExitCode.NOT_RUNNING))):
            trial.expect(action, code, after=f"as instance {ODD_INSTANCE}", program=program)
    finally:
        trial.ask("stop", program=program)
    return ""


def _reload(trial: Trial) -> str:
    if "reload-agent" not in trial.metadata.actions:
        raise TrialSkippedError("its meta-data names no reload-agent")
    before = [process.pid for process in trial.begin()]
    trial.expect("reload-agent", 0)
    trial.expect("monitor", 0)
    if before[:1] != [process.pid for process in family.members()][:1]:
        # The first monitor may have run before the end of a process that reload-agent killed.
        trial.expect("monitor", 0)
        raise TrialFailedError("reload-agent put another process in the first one's place")
    return ""


def _promotable(trial: Trial) -> None:
    if not trial.is_promotable:
        raise TrialSkippedError("its meta-data names no promote")


def _skip_where_promotion_is_not_configured(trial: Trial) -> None:
    """Skip trials of promotion if the parameters rule it out, as they may; say what is missing."""
    answer = trial.ask("promote")
    if answer.code == ExitCode.NOT_CONFIGURED:
        reason = answer.reason or "it does not say why"
        raise TrialSkippedError(f"with these parameters it is not promotable, give those that it needs: {reason}")
    trial.expect("demote", 0)


def _promote(trial: Trial) -> str:
    _promotable(trial)
    trial.begin()
    trial.expect("monitor", 0, after="before promote")
    _skip_where_promotion_is_not_configured(trial)
    for after in ("", "of what is promoted"):
        trial.expect("promote", 0, after=after)
        trial.expect("monitor", ExitCode.PROMOTED, after="after promote")
    for after in ("", "of what is not promoted"):
        trial.expect("demote", 0, after=after)
        trial.expect("monitor", 0, after="after demote")
    trial.expect("promote", 0, after="again")
    trial.expect("stop", 0, after="of what is promoted")
    trial.expect("monitor", ExitCode.NOT_RUNNING, after="after stop")
    trial.nobody_left("after stop")
    trial.expect("start", 0, after="after stop of what was promoted")
    trial.expect("monitor", 0, after="after stop of what was promoted, and start")
    return ""


def _score(trial: Trial) -> str:
    _promotable(trial)
    trial.begin()
    trial.expect("monitor", 0)
    found = {name: value for name, value in trial.scores().items() if name.startswith(("master-", "promotion-"))}
    if not found:
        _skip_where_promotion_is_not_configured(trial)
        raise TrialFailedError("neither start nor monitor sets a promotion score: nothing would be promoted anywhere")
    trial.expect("stop", 0)
    return " ".join(f"{name}={value}" for name, value in sorted(found.items()))


def _notify(trial: Trial) -> str:
    if "notify" not in trial.metadata.actions:
        raise TrialSkippedError("its meta-data names no notify")
    trial.begin()
    count = 0
    for operation in ("start", "stop", "promote", "demote"):
        if operation in ("promote", "demote") and not trial.is_promotable:
            continue
        for when in ("pre", "post"):
            answer = trial.ask("notify", meta=_notification(trial, when, operation))
            if answer.code != 0:
                raise TrialFailedError(_unexpected(answer, (0,), f"{when}-{operation}"))
            count += 1
    trial.expect("monitor", 0, after="after notifications")
    return f"{count} notifications"


def _notification(trial: Trial, when: str, operation: str) -> dict[str, str]:
    """Return the variables of a notification about the other node's instance; empty lists are a blank."""
    node, other = trial.program.surroundings.node, "node-b"
    names = ("start", "stop", "promote", "demote", "promoted", "unpromoted", "inactive")
    lists: dict[str, list[str]] = {name: [] for name in names}
    lists["active"] = [node] if operation == "start" else [node, other]
    lists["unpromoted"] = list(lists["active"])
    lists[operation] = [other]
    if operation == "demote":
        lists["promoted"], lists["unpromoted"] = [other], [node]
    found = {"notify_type": when, "notify_operation": operation, "notify_key_type": when}
    for name, nodes in lists.items():
        older = {"promoted": "master", "unpromoted": "slave"}.get(name, name)
        for each in {name, older}:
            found[f"notify_{each}_uname"] = " ".join(nodes) or " "
            instances = [f"{trial.program.instance}:{int(node == other)}" for node in nodes]
            found[f"notify_{each}_resource"] = " ".join(instances) or " "
    return {**found, "notify_available_uname": f"{node} {other}", "notify_all_uname": f"{node} {other}"}


def _durations(trial: Trial) -> str:
    slow = []
    for action, took_ms in sorted(trial.longest.items()):
        advised = trial.metadata.actions.get(action)
        if advised is not None and advised.timeout_ms and took_ms * 2 > advised.timeout_ms:
            slow.append(f"{action} took {took_ms} ms of the advised {advised.timeout_ms}")
    if slow:
        raise TrialFailedError("; ".join(slow))
    shown = ("start", "monitor", "stop", "promote", "demote")
    return " ".join(f"{each}={trial.longest[each]}ms" for each in shown if each in trial.longest)


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the matrix."""

    name: str
    what: str
    perform: Callable[[Trial], str]
    needs_start: bool = True


CHECKS = (
    Check("meta-data", "meta-data without any environment", _meta_data, needs_start=False),
    Check("unknown-action", "an action that there is not is answered 3", _unknown_action, needs_start=False),
    Check("validate", "validate-all accepts the parameters", _validate, needs_start=False),
    Check("stop-first", "stop of what never ran", _stop_before_start, needs_start=False),
    Check("clean-probe", "a probe of what never ran says 7", _clean_probe, needs_start=False),
    Check("start", "start, then monitor at each level", _start, needs_start=False),
    Check("start-twice", "a second start changes nothing", _start_twice),
    Check("stop-twice", "stop, monitor says 7, stop again, start again", _stop_twice),
    Check("leak", "no process is left after stop", _nothing_left),
    Check("killed", "monitor sees that all processes were killed", _killed),
    Check("main-killed", "stop cleans up when the first process was killed", _main_killed),
    Check("hung", "stop ends processes that hang", _hung),
    Check("interrupted", "stop cleans up after a start that was killed", _interrupted),
    Check("port-taken", "start fails while its port is taken, and stop cleans up", _port_taken),
    Check("required", "start without a required parameter says 6", _required),
    Check("missing-program", "a program that is missing is 5, and stop works", _missing_program),
    Check("odd-values", "odd characters in parameters do no harm", _odd_values),
    Check("odd-instance", "an instance with odd characters in its name", _odd_instance),
    Check("reload", "reload-agent keeps the service running", _reload),
    Check("promote", "promote and demote, twice each; stop of what is promoted", _promote),
    Check("score", "a promotion score is set by start or monitor", _score),
    Check("notify", "every notification is answered 0", _notify),
    Check("durations", "no action takes more than half its advised timeout", _durations),
)  # fmt: skip


def run(trial: Trial, only: Sequence[str] = ()) -> Iterator[Row]:
    """Make the trials in order; if the resource does not start, none of those that need a start."""
    has_started: bool | None = None
    for check in CHECKS:
        if only and check.name not in only:
            continue
        begun = time.monotonic()
        if check.needs_start and has_started is False:
            row = Row(check.name, check.what, TrialResult.SKIPPED, "it does not start", 0)
        else:
            verdict, detail = _attempt(trial, check)
            row = Row(check.name, check.what, verdict, detail, int((time.monotonic() - begun) * 1000))
        if check.name == "start":
            has_started = row.verdict is TrialResult.PASSED
        yield row


def _attempt(trial: Trial, check: Check) -> tuple[TrialResult, str]:
    with _cleaned(trial):
        try:
            return TrialResult.PASSED, check.perform(trial)
        except TrialSkippedError as reason:
            return TrialResult.SKIPPED, str(reason)
        except TrialFailedError as finding:
            return TrialResult.FAILED, str(finding)
        except subprocess.TimeoutExpired as error:
            return TrialResult.FAILED, f"{error.cmd[-1]} did not end within {error.timeout:.0f} s"


@contextmanager
def _cleaned(trial: Trial) -> Iterator[None]:
    try:
        yield
    finally:
        trial.clean()
