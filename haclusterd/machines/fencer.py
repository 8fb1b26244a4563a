"""Executes fence orders that name this node: the fence agent, its retries, its answer (safety.md §5).

An order is begun at most once per incarnation, and only under a fresh lease. A killed or failed agent is a failure,
never a success.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from haclusterd.cib.commands import RecordFenceAgent
from haclusterd.machines.effects import CallFenceAgent, Effect, Propose
from haclusterd.machines.moment import Moment
from haclusterd.model import durations
from haclusterd.model.agent_calls import FenceCall, FenceCallResult
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.fencing import FenceOrder, FenceOutcome, FenceState
from haclusterd.model.ids import FenceKey, Incarnation, NodeName
from haclusterd.model.instants import NEVER, Instant, after

ATTEMPTS_DEFAULT = 2
"""`pcmk_<action>_retries`: how often the agent is called at most."""
RETRY_PAUSE_MS = 1000
RETRY_SHARE_PERCENT = 70
"""No retry after this share of the timeout."""
SPECIAL_PREFIXES = ("pcmk_", "CRM_meta_")
SPECIAL_NAMES = frozenset({"action", "provides", "stonith-timeout", "crm_feature_set"})


@dataclass(slots=True)
class _Job:
    order: FenceOrder
    began_at: Instant
    timeout_ms: int
    attempts_left: int
    attempts: int = 0
    retry_at: Instant = NEVER
    failure: str = ""


class FencerMachine:
    """This node's execution of fence orders; see the module."""

    def __init__(self, node: NodeName, incarnation: Incarnation) -> None:
        self._node = node
        self._incarnation = incarnation
        self._cib = Cib()
        self._jobs: dict[FenceKey, _Job] = {}
        self._begun: set[FenceKey] = set()

    @property
    def is_fencing(self) -> bool:
        """Whether fence agents are at work, or will be tried again."""
        return bool(self._jobs)

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Begin a new life, which no fence agent of the old one outlives."""
        assert not self._jobs
        self._incarnation = incarnation

    def cib_changed(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Look for fence orders of this incarnation."""
        self._cib = cib
        self._begun &= set(cib.status.fence_orders)
        effects: list[Effect] = []
        for order in cib.status.fence_orders.values():
            is_mine = order.executor == self._node and order.executor_incarnation == self._incarnation
            if is_mine and order.state is FenceState.OPEN and order.key not in self._begun:
                self._begun.add(order.key)
                effects.extend(self._begin(order, moment))
        return effects

    def _begin(self, order: FenceOrder, moment: Moment) -> Sequence[Effect]:
        device = self._device(order)
        if not moment.has_lease:
            return (_answer(order, FenceOutcome.FAILED, f"{self._node} holds no lease"),)
        if device is None:
            return (_answer(order, FenceOutcome.FAILED, f"{order.device} is not configured"),)
        parameters = effective(device.parameters)
        timeout_ms = _duration(parameters, f"pcmk_{order.action}_timeout", order.timeout_ms)
        attempts = _integer(parameters, f"pcmk_{order.action}_retries", ATTEMPTS_DEFAULT)
        job = _Job(order, moment.now, timeout_ms, attempts_left=max(1, attempts))
        self._jobs[order.key] = job
        return (self._call(job, device, moment),)

    def _call(self, job: _Job, device: Primitive, moment: Moment) -> Effect:
        job.attempts += 1
        job.attempts_left -= 1
        job.retry_at = NEVER
        order = job.order
        parameters = effective(device.parameters)
        remaining_ms = max(1, job.timeout_ms - (moment.now - job.began_at))
        return CallFenceAgent(
            FenceCall(
                key=f"{order.key}/{job.attempts}",
                agent=device.agent.type,
                action=parameters.get(f"pcmk_{order.action}_action", str(order.action)),
                parameters=fence_parameters(parameters, order.target),
                timeout_ms=remaining_ms,
            )
        )

    def agent_finished(self, result: FenceCallResult, moment: Moment) -> Sequence[Effect]:
        """A fence agent has ended."""
        key = FenceKey(result.key.rpartition("/")[0])
        job = self._jobs.get(key)
        if job is None:
            return ()
        if result.exit_code == 0 and not result.timed_out:
            del self._jobs[key]
            return (_answer(job.order, FenceOutcome.FENCED, result.reason),)
        elapsed_ms = moment.now - job.began_at
        may_retry = job.attempts_left > 0 and elapsed_ms * 100 < job.timeout_ms * RETRY_SHARE_PERCENT
        job.failure = result.reason or f"exit code {result.exit_code}"
        if result.timed_out or not may_retry:
            del self._jobs[key]
            outcome = FenceOutcome.TIMEOUT if result.timed_out else FenceOutcome.FAILED
            return (_answer(job.order, outcome, f"{job.failure} (attempt {job.attempts})"),)
        job.retry_at = after(moment.now, RETRY_PAUSE_MS)
        return ()

    def ticked(self, moment: Moment) -> Sequence[Effect]:
        """Time has passed: retry what is due."""
        effects: list[Effect] = []
        for key, job in sorted(self._jobs.items()):
            if job.retry_at > moment.now:
                continue
            device = self._device(job.order)
            if device is None:
                del self._jobs[key]
                effects.append(_answer(job.order, FenceOutcome.FAILED, job.failure))
            else:
                effects.append(self._call(job, device, moment))
        return effects

    def deadline(self) -> Instant:
        """Return when `ticked` is wanted next."""
        return min((job.retry_at for job in self._jobs.values()), default=NEVER)

    def _device(self, order: FenceOrder) -> Primitive | None:
        device = self._cib.configuration.resources.get(order.device)
        return device if isinstance(device, Primitive) and device.agent.standard == "stonith" else None


def fence_parameters(parameters: dict[str, str], target: NodeName) -> dict[str, str]:
    """Return what the agent reads on standard input, without `action` (Pacemaker Explained, "Fencing").

    The node's name always travels as `nodename`; its port under the device's host argument, `port` unless
    `pcmk_host_argument` says otherwise (`none` suppresses it), unless it is configured to a fixed value.
    """
    plain = {
        name: value
        for name, value in parameters.items()
        if name not in SPECIAL_NAMES and not name.startswith(SPECIAL_PREFIXES)
    }
    argument = parameters.get("pcmk_host_argument", "port")
    if argument != "none" and plain.get(argument, "dynamic") == "dynamic":
        plain[argument] = host_map(parameters.get("pcmk_host_map", "")).get(target.lower(), str(target))
    plain["nodename"] = str(target)
    return plain


def host_map(text: str) -> dict[str, str]:
    """Read `node:port;node2:port2` (separators `;`, space, tab; `=` for `:`); keys in lower case."""
    pairs: dict[str, str] = {}
    for item in text.replace(";", " ").split():
        name, separator, port = item.replace("=", ":", 1).partition(":") if ":" not in item else item.partition(":")
        if separator and name and port:
            pairs[name.lower()] = port
    return pairs


def _answer(order: FenceOrder, outcome: FenceOutcome, detail: str) -> Effect:
    return Propose(f"fence-agent:{order.key}", RecordFenceAgent(order.key, outcome, detail))


def _duration(parameters: dict[str, str], name: str, default_ms: int) -> int:
    try:
        return durations.parse(parameters[name]) if name in parameters else default_ms
    except ValueError:
        return default_ms


def _integer(parameters: dict[str, str], name: str, default: int) -> int:
    try:
        return int(parameters.get(name, default))
    except ValueError:
        return default
