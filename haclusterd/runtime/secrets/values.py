"""Agents get the values of secrets in place of references, and their output comes back without them.

A value exists from here to the agent's environment or standard input, and nowhere else: what is committed, logged,
recorded and planned with has the reference. Source: docs/design/0017-secrets.md; agents-and-fencing.md §1.5, §3.1.
"""

from collections.abc import Callable, Mapping

from haclusterd.model.agent_calls import REASON_MAX, AgentCall, AgentResult, FenceCall, FenceCallResult
from haclusterd.model.agents import Validation, ValidationQuestion
from haclusterd.model.ids import AgentReference, ResourceId, base_of
from haclusterd.model.instants import after
from haclusterd.model.ocf import BEGINNINGS, ActionName, ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, replace
from haclusterd.model.secrets import PACEMAKERS, Secrets, is_kept, is_reference, masked, reference_of, sealed_value
from haclusterd.ports.agents import AdoptedAction, AgentMetadata, AgentRunner
from haclusterd.ports.background import Background
from haclusterd.ports.clock import Clock, Timer
from haclusterd.ports.fencing import FenceAgents, FenceMetadata
from haclusterd.ports.secrets import SecretKeeper

KEY_WAIT_MS = 5_000
"""How long an action waits until another member has given this one the secret key."""
_BEGINNINGS = (*BEGINNINGS, ActionName.RELOAD_AGENT, "reload")
TRACES = ("trace_ra", "trace_dir")
"""Parameters that make an agent trace its commands, with all values, into a file."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Parameters with values in place of references."""

    parameters: Mapping[str, str]
    """Without those that have no value."""
    values: frozenset[str] = frozenset()
    problem: str = ""
    """Why a parameter has no value; empty: each has one."""
    is_unknown: bool = False
    """Whether the secret exists on no node."""
    may_come: bool = False
    """Whether it is only that this node does not have the key yet."""
    is_closed: bool = False
    """Whether there is a secret that this node cannot open."""


class SecretValues:
    """Finds the values of references on this node."""

    def __init__(self, keeper: SecretKeeper, secrets: Callable[[], Secrets], background: Background) -> None:
        self._keeper = keeper
        self._secrets = secrets
        self._background = background

    def resolve(
        self, resource: str, parameters: Mapping[str, str], done: Callable[[Resolved], None], *, exactly: bool = False
    ) -> None:
        """Call `done` with the parameters: at once, unless Pacemaker's secret files have to be read.

        `exactly`: with the values of the revisions they name alone; otherwise the newest stands for one that is not
        kept.
        """
        if PACEMAKERS not in parameters.values():
            done(self._resolved(parameters, {}, exactly=exactly))
            return
        names = [name for name, value in parameters.items() if value == PACEMAKERS]
        owner = base_of(resource)
        self._background.run(
            lambda: {name: self._keeper.read_pacemakers(owner, name) for name in names},
            lambda found: done(self._resolved(parameters, found, exactly=exactly)),
        )

    def _resolved(
        self, parameters: Mapping[str, str], from_files: Mapping[str, str | None], *, exactly: bool
    ) -> Resolved:
        secrets = self._secrets()
        made: dict[str, str] = {}
        values: set[str] = set()
        unknown: list[str] = []
        closed: list[str] = []
        is_closed = False
        for name, text in parameters.items():
            reference = reference_of(text)
            if reference is None and text != PACEMAKERS:
                made[name] = text
                continue
            if reference is None:
                value = from_files.get(name)
                if value is None:
                    closed.append(f"{name}: Pacemaker's file of the secret is not on this node, or damaged")
            else:
                sealed = sealed_value(secrets, *reference)
                value = None if sealed is None else self._keeper.open(secrets, reference[0], sealed)
                if sealed is None:
                    unknown.append(f"{name}: there is no secret {reference[0]}")
                elif exactly and not is_kept(secrets, *reference):
                    # Another value would be recorded as this one, and neither find nor end what it has started.
                    unknown.append(f"{name}: secret {reference[0]} was changed since this was decided")
                    value = None
                elif value is None:
                    closed.append(f"{name}: this node cannot open secret {reference[0]}")
                    is_closed = True
            if value is not None:
                made[name] = value
                values.add(value)
        if values:
            made = {name: value for name, value in made.items() if name not in TRACES}
        may_come = bool(closed) and bool(secrets.key_id) and not self._keeper.has_key(secrets)
        return Resolved(made, frozenset(values), "; ".join((*unknown, *closed)), bool(unknown), may_come, is_closed)


def _refers(values: Mapping[str, str]) -> bool:
    return any(map(is_reference, values.values()))


@dataclass(slots=True)
class _Held:
    """An action that waits for the key."""

    call: AgentCall
    done: Callable[[AgentResult], None]
    timer: Timer


class SecretAgents:
    """An `AgentRunner` whose agents get values in place of references."""

    def __init__(self, inner: AgentRunner, values: SecretValues, clock: Clock) -> None:
        self._inner = inner
        self._values = values
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._killed: set[str] = set()
        """Keys of actions that were ended while their values were read."""
        self._reading: set[str] = set()

    def run(self, call: AgentCall, done: Callable[[AgentResult], None]) -> None:
        """See `AgentRunner.run`."""
        if _refers(call.parameters):
            self._try(call, done, is_last=False)
        else:
            self._inner.run(call, lambda result: done(_without(result, frozenset())))

    def look_again(self) -> None:
        """Retry the actions that wait for the key; called when the secrets have changed."""
        for key, held in tuple(self._held.items()):
            held.timer.cancel()
            del self._held[key]
            self._try(held.call, held.done, is_last=False)

    def _try(self, call: AgentCall, done: Callable[[AgentResult], None], *, is_last: bool) -> None:
        self._reading.add(call.key)
        self._values.resolve(
            call.resource, call.parameters, lambda found: self._found(call, done, found, is_last=is_last),
            exactly=_begins_or_looks(call),
        )  # fmt: skip

    def _found(self, call: AgentCall, done: Callable[[AgentResult], None], found: Resolved, *, is_last: bool) -> None:
        self._reading.discard(call.key)
        if call.key in self._killed:
            self._killed.discard(call.key)
            self._answer(call, done, int(ExitCode.ERROR), ExecutionStatus.CANCELLED, "cancelled")
        elif found.may_come and not is_last:
            at = after(self._clock.now(), KEY_WAIT_MS)
            self._held[call.key] = _Held(call, done, self._clock.call_at(at, lambda: self._give_up(call.key)))
        elif found.problem and (call.action != ActionName.STOP or found.is_closed):
            # A stop without the value by which something was started would find nothing, and say that it has ended.
            # If there is no such secret, no other node can do it either; otherwise only this one cannot.
            code = ExitCode.NOT_CONFIGURED if found.is_unknown else ExitCode.ARGUMENTS
            self._answer(call, done, int(code), ExecutionStatus.DONE, found.problem)
        else:
            ready = replace(call, parameters=found.parameters)
            self._inner.run(ready, lambda result: done(_without(result, found.values)))

    def _give_up(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._try(held.call, held.done, is_last=True)

    def _answer(
        self, call: AgentCall, done: Callable[[AgentResult], None], code: int, status: ExecutionStatus, reason: str
    ) -> None:
        result = AgentResult(call.key, code, status, reason, "", "", 0, 0)
        self._clock.call_soon(lambda: done(result))

    def kill(self, key: str) -> None:
        """See `AgentRunner.kill`."""
        held = self._held.pop(key, None)
        if held is not None:
            held.timer.cancel()
            self._answer(held.call, held.done, int(ExitCode.ERROR), ExecutionStatus.CANCELLED, "cancelled")
        elif key in self._reading:
            self._killed.add(key)
        else:
            self._inner.kill(key)

    def adopt(self, ended: Callable[[str], None]) -> tuple[AdoptedAction, ...]:
        """See `AgentRunner.adopt`."""
        return self._inner.adopt(ended)

    def watch(self, resource: ResourceId, instance: str, died: Callable[[ResourceId], None]) -> None:
        """See `AgentRunner.watch`."""
        self._inner.watch(resource, instance, died)

    def unwatch(self, resource: ResourceId) -> None:
        """See `AgentRunner.unwatch`."""
        self._inner.unwatch(resource)

    def metadata(self, agent: AgentReference, done: Callable[[AgentMetadata | None], None]) -> None:
        """See `AgentRunner.metadata`."""
        self._inner.metadata(agent, done)

    def validate(self, question: ValidationQuestion, timeout_ms: int, done: Callable[[Validation], None]) -> None:
        """See `AgentRunner.validate`; an agent is not asked about parameters that have no value."""
        parameters = dict(question.parameters)
        if not _refers(parameters):
            self._inner.validate(question, timeout_ms, lambda said: done(_shortened(said, frozenset())))
            return

        def found(resolved: Resolved) -> None:
            if resolved.problem:
                self._clock.call_soon(lambda: done(Validation(None, resolved.problem)))
                return
            asked = replace(question, parameters=tuple(sorted(resolved.parameters.items())))
            self._inner.validate(asked, timeout_ms, lambda said: done(_shortened(said, resolved.values)))

        self._values.resolve(question.resource, parameters, found)

    def waits(self) -> tuple[str, ...]:
        """See `AgentRunner.waits`."""
        own = [f"{held.call.action} of {held.call.resource} waits for the key of the secrets"
               for _, held in sorted(self._held.items())]  # fmt: skip
        return (*own, *self._inner.waits())

    def exists(self, agent: AgentReference) -> bool:
        """See `AgentRunner.exists`."""
        return self._inner.exists(agent)

    def installed(self) -> tuple[AgentReference, ...]:
        """See `AgentRunner.installed`."""
        return self._inner.installed()


class SecretFenceAgents:
    """`FenceAgents` that get values in place of references; without a value the call fails."""

    def __init__(self, inner: FenceAgents, values: SecretValues, clock: Clock) -> None:
        self._inner = inner
        self._values = values
        self._clock = clock

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        """See `FenceAgents.call`."""
        if not _refers(call.parameters):
            self._inner.call(call, done)
            return

        def found(resolved: Resolved) -> None:
            if resolved.problem:
                code = int(ExitCode.ERROR)
                result = FenceCallResult(call.key, code, timed_out=False, reason=resolved.problem, output="")
                self._clock.call_soon(lambda: done(result))
                return
            ready = replace(call, parameters=resolved.parameters)
            self._inner.call(ready, lambda result: done(replace(
                result, reason=masked(result.reason, resolved.values), output=masked(result.output, resolved.values)
            )))  # fmt: skip

        self._values.resolve(call.device, call.parameters, found)

    def exists(self, agent: str) -> bool:
        """See `FenceAgents.exists`."""
        return self._inner.exists(agent)

    def metadata(self, agent: str, done: Callable[[FenceMetadata | None], None]) -> None:
        """See `FenceAgents.metadata`."""
        self._inner.metadata(agent, done)


def _begins_or_looks(call: AgentCall) -> bool:
    """Return whether what an action finds or makes is recorded with the revisions that its parameters name.

    A recurring monitor, and whatever follows, has those of the record, of which an operation's own may be older.
    """
    is_probe = call.action == ActionName.MONITOR and call.meta.get("interval", "0") in {"", "0"}
    return is_probe or call.action in _BEGINNINGS


def _without(result: AgentResult, values: frozenset[str]) -> AgentResult:
    return replace(
        result,
        exit_reason=masked(result.exit_reason, values)[:REASON_MAX],
        stdout=masked(result.stdout, values),
        stderr=masked(result.stderr, values),
    )


def _shortened(said: Validation, values: frozenset[str]) -> Validation:
    return replace(said, reason=masked(said.reason, values)[:REASON_MAX])
