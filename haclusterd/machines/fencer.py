"""Executes fence orders that name this node: calls the fence agents, retries, and reports (safety.md §5).

An order is started at most once per incarnation, and every call that acts only under a fresh lease: other nodes must
know until when an agent of a lost node may act. An agent that was killed or failed never counts as success. All
devices of a level must succeed: a node with two power supplies is off only when both are. A reset with several devices
is therefore off on all of them and then on on all of them; once all are off the node is dead, and the result of `on`
no longer matters (Pacemaker Explained, "Fencing Levels").
"""

import zlib
from collections.abc import Mapping, Sequence

from haclusterd.cib.commands import RecordFenceAgent
from haclusterd.machines.effects import CallFenceAgent, Effect, Propose, Scope
from haclusterd.machines.moment import Moment
from haclusterd.model import durations
from haclusterd.model.agent_calls import REASON_MAX, FenceCall, FenceCallResult
from haclusterd.model.cluster import Cib
from haclusterd.model.configuration import Primitive, effective
from haclusterd.model.fence_parameters import (
    ATTEMPTS_DEFAULT,
    NOT_FOR_THE_AGENT,
    RETRY_PAUSE_MS,
    RETRY_SHARE_PERCENT,
    host_check,
    lets_nodes_in,
)
from haclusterd.model.fencing import FenceAction, FenceOrder, FenceOutcome, FenceState
from haclusterd.model.ids import FenceKey, Incarnation, NodeName, ResourceId
from haclusterd.model.instants import NEVER, Instant, after
from haclusterd.model.records import dataclass, field, replace
from haclusterd.model.templates import expanded
from haclusterd.model.watchdog import WATCHDOG

SPECIAL_PREFIXES = ("pcmk_", "CRM_meta_")
LIST, STATUS = "list", "status"
STATUS_CODES = (0, 2)
"""Answers of `status` that show that the device knows the host: on, off."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One call that an order needs: an action on a device."""

    device: ResourceId
    action: str
    """`off`, `on`, `reboot`; `list` or `status` to find out whether the device knows the target."""
    is_decisive: bool = True
    """Whether its failure makes the order fail."""

    @property
    def acts(self) -> bool:
        """Whether a late call could do harm. A query cannot, nor can `on` for a node that was just switched off."""
        return self.is_decisive and self.action not in (LIST, STATUS)


@dataclass(slots=True)
class _Job:
    order: FenceOrder
    steps: list[_Step]
    """The remaining steps, the present one first."""
    began_at: Instant
    """When the present step was started."""
    timeout_ms: int = 0
    attempts_left: int = 0
    attempts: int = 0
    """Calls of the whole order: each has a key of its own."""
    due_at: Instant = NEVER
    """When the next call is due: after a delay, or a pause between attempts."""
    is_calling: bool = False
    failure: str = ""
    reasons: list[str] = field(default_factory=list)

    @property
    def step(self) -> _Step:
        return self.steps[0]


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
        """Whether fence agents are at work, or will be called again."""
        return bool(self._jobs)

    def reincarnated(self, incarnation: Incarnation) -> None:
        """Start a new incarnation; no fence agent of the previous one outlives it."""
        assert not self._jobs
        self._incarnation = incarnation

    def cib_changed(self, cib: Cib, moment: Moment) -> Sequence[Effect]:
        """Start the fence orders of this incarnation that are new in the CIB."""
        self._cib = cib
        self._begun &= set(cib.status.fence_orders)
        effects: list[Effect] = []
        for order in cib.status.fence_orders.values():
            is_mine = order.executor == self._node and order.executor_incarnation == self._incarnation
            is_mine = is_mine and WATCHDOG not in order.devices
            if is_mine and order.state is FenceState.OPEN and order.key not in self._begun:
                self._begun.add(order.key)
                effects.extend(self._begin(order, moment))
        return effects

    def _begin(self, order: FenceOrder, moment: Moment) -> Sequence[Effect]:
        if not moment.has_lease:
            return (_answer(order, FenceOutcome.FAILED, f"{self._node} holds no lease"),)
        missing = [device for device in order.devices if self._device(device) is None]
        if missing:
            return (_answer(order, FenceOutcome.FAILED, f"{', '.join(missing)} is not configured"),)
        job = _Job(order, self._steps(order), moment.now)
        self._jobs[order.key] = job
        return self._begin_step(job, moment)

    def _steps(self, order: FenceOrder) -> list[_Step]:
        checks = []
        for device in order.devices:
            check = self._host_check(device)
            if check in ("dynamic-list", STATUS):
                checks.append(_Step(device, LIST if check == "dynamic-list" else STATUS))
        if order.action is not FenceAction.REBOOT or not order.others:
            return [*checks, *(_Step(device, str(order.action)) for device in order.devices)]
        off = [_Step(device, str(FenceAction.OFF)) for device in order.devices]
        on = [
            _Step(device, str(FenceAction.ON), is_decisive=False)
            for device in order.devices
            if device not in order.letting_in and self._turns_on(device)
        ]
        return [*checks, *off, *on]

    def _host_check(self, name: ResourceId) -> str:
        device = self._device(name)
        return host_check(device.agent.type, effective(device.parameters)) if device is not None else ""

    def _turns_on(self, device: ResourceId) -> bool:
        """Return whether a reset with this device ends with `on`; with `pcmk_reboot_action=off` the node stays off.

        Nor is a device that unfences asked for `on`: the node may be alive, and would get access to what others use by
        then. It is unfenced when it has joined (safety.md §5).
        """
        is_cut = self._parameters(device).get("pcmk_reboot_action", "reboot") == "off"
        return not is_cut and not lets_nodes_in(self._cib.in_force, device)

    def _begin_step(self, job: _Job, moment: Moment) -> Sequence[Effect]:
        parameters, step = self._parameters(job.step.device), job.step
        timeout_ms = _duration(parameters, f"pcmk_{step.action}_timeout", job.order.timeout_ms)
        job.timeout_ms = min(timeout_ms, max(job.order.longest_call_ms, job.order.timeout_ms))
        job.attempts_left = max(1, _integer(parameters, f"pcmk_{step.action}_retries", ATTEMPTS_DEFAULT))
        wait_ms = 0
        if step.action in (FenceAction.OFF, FenceAction.REBOOT):
            wait_ms = delay_ms(parameters, job.order) + (job.order.delay_ms if not job.attempts else 0)
        job.began_at = job.due_at = after(moment.now, wait_ms)
        return self._call_what_is_due(moment)

    def _call_what_is_due(self, moment: Moment) -> list[Effect]:
        """Call agents, at most `pcmk_action_limit` at once per device; further calls wait."""
        effects: list[Effect] = []
        for _, job in sorted(self._jobs.items()):
            if job.is_calling or job.due_at > moment.now:
                continue
            device = job.step.device
            limit = _integer(self._parameters(device), "pcmk_action_limit", 1)
            busy = sum(other.is_calling and other.step.device == device for other in self._jobs.values())
            if self._device(device) is None:
                problem = job.failure or f"{device} is not configured any more"
                effects.extend(self._end(job, FenceOutcome.FAILED, problem))
            elif job.step.acts and not moment.has_lease:
                effects.extend(self._end(job, FenceOutcome.FAILED, f"{self._node} holds no lease any more"))
            elif limit < 0 or busy < max(1, limit):
                job.began_at = job.began_at if job.failure else moment.now
                effects.append(self._call(job, moment))
        return effects

    def _call(self, job: _Job, moment: Moment) -> Effect:
        job.attempts += 1
        job.attempts_left -= 1
        job.is_calling = True
        device = self._device(job.step.device)
        assert device is not None
        parameters = effective(device.parameters)
        plain, host = fence_parameters(parameters, job.order.target)
        if job.step.action == LIST:
            # It is about no node: `nodename` is what is configured, as a plugin may want it (external/dracmc-telnet).
            del plain["nodename"]
            plain |= {name: value for name, value in parameters.items() if name == "nodename"}
        return CallFenceAgent(
            FenceCall(
                key=f"{job.order.key}/{job.attempts}",
                agent=device.agent.type,
                action=parameters.get(f"pcmk_{job.step.action}_action", job.step.action),
                parameters=plain,
                timeout_ms=max(1, job.timeout_ms - (moment.now - job.began_at)),
                host=host if job.step.action != LIST else None,
                needs_lease=job.step.acts,
                device=str(job.step.device),
            )
        )

    def agent_finished(self, result: FenceCallResult, moment: Moment) -> Sequence[Effect]:
        """Take the result of a fence agent."""
        job = self._jobs.get(FenceKey(result.key.rpartition("/")[0]))
        if job is None:
            return ()
        job.is_calling = False
        result = replace(result, reason=result.reason[:REASON_MAX])
        return [*self._take(job, result, moment), *self._call_what_is_due(moment)]

    def _take(self, job: _Job, result: FenceCallResult, moment: Moment) -> Sequence[Effect]:
        job.failure = self._objection(job, result)
        if not job.failure:
            job.reasons.extend(filter(None, (result.reason,)))
            return self._next_step(job, moment)
        elapsed_ms = moment.now - job.began_at
        may_retry = job.attempts_left > 0 and elapsed_ms * 100 < job.timeout_ms * RETRY_SHARE_PERCENT
        # A list without the node is an answer: to ask again would only delay the next device.
        has_failed = job.step.action != LIST or result.exit_code != 0
        if may_retry and has_failed and not result.timed_out:
            job.due_at = after(moment.now, RETRY_PAUSE_MS)
            return ()
        if not job.step.is_decisive:
            return self._next_step(job, moment)
        outcome = FenceOutcome.TIMEOUT if result.timed_out else FenceOutcome.FAILED
        return self._end(job, outcome, f"{job.failure} (attempt {job.attempts})")

    def _objection(self, job: _Job, result: FenceCallResult) -> str:
        """Return why a step did not succeed; empty when it did."""
        if result.timed_out:
            return result.reason or "timed out"
        if job.step.action == STATUS and result.exit_code in STATUS_CODES:
            return ""
        if result.exit_code != 0:
            return result.reason or f"exit code {result.exit_code}"
        if job.step.action != LIST:
            return ""
        host = self._host(job.step.device, job.order.target)
        listed = {line.partition(",")[0].strip().lower() for line in result.output.splitlines()}
        listed |= {line.partition(",")[2].strip().lower() for line in result.output.splitlines()}
        return "" if host.lower() in listed else f"{job.step.device} does not list {host}"

    def _next_step(self, job: _Job, moment: Moment) -> Sequence[Effect]:
        job.steps.pop(0)
        if job.steps:
            job.failure = ""
            return self._begin_step(job, moment)
        return self._end(job, FenceOutcome.FENCED, "; ".join(job.reasons)[:REASON_MAX])

    def _end(self, job: _Job, outcome: FenceOutcome, detail: str) -> Sequence[Effect]:
        del self._jobs[job.order.key]
        return (_answer(job.order, outcome, detail),)

    def ticked(self, moment: Moment) -> Sequence[Effect]:
        """Note that time has passed: call what is due."""
        return self._call_what_is_due(moment)

    def deadline(self) -> Instant:
        """Return when `ticked` must be called next."""
        waiting = [job.due_at for job in self._jobs.values() if not job.is_calling]
        return min(waiting, default=NEVER)

    def _device(self, name: ResourceId) -> Primitive | None:
        return _stonith_device(self._cib, name)

    def _parameters(self, name: ResourceId) -> Mapping[str, str]:
        device = self._device(name)
        return effective(device.parameters) if device is not None else {}

    def _host(self, device: ResourceId, target: NodeName) -> str:
        return host_map(self._parameters(device).get("pcmk_host_map", "")).get(target.lower(), str(target))


def _stonith_device(cib: Cib, name: ResourceId) -> Primitive | None:
    device = cib.in_force.resources.get(name)
    if not isinstance(device, Primitive) or device.agent.standard != "stonith":
        return None
    return expanded(device, cib.in_force)


def fence_parameters(parameters: Mapping[str, str], target: NodeName) -> tuple[dict[str, str], str | None]:
    """Return what the agent reads on standard input, without `action`, and the host's name if that is not among it.

    The node's name is always passed as `nodename`. Its name by the device is passed under the parameter that
    `pcmk_host_argument` names (`none`: not at all), unless that parameter has a fixed value; by default the agent's
    metadata says which parameter it is (Pacemaker Explained, "Fencing").
    """
    plain = {
        name: value
        for name, value in parameters.items()
        if name not in NOT_FOR_THE_AGENT and not name.startswith(SPECIAL_PREFIXES)
    }
    plain["nodename"] = str(target)
    host = host_map(parameters.get("pcmk_host_map", "")).get(target.lower(), str(target))
    argument = parameters.get("pcmk_host_argument", "")
    if not argument:
        return plain, host
    if argument != "none" and plain.get(argument, "dynamic") == "dynamic":
        plain[argument] = host
    return plain, None


def longest_call_ms(cib: Cib, devices: Sequence[ResourceId], timeout_ms: int) -> int:
    """Return how many ms one call of an agent for these devices takes at most."""
    found = timeout_ms
    for name in devices:
        device = _stonith_device(cib, name)
        parameters = effective(device.parameters) if device is not None else {}
        named = (f"pcmk_{action}_timeout" for action in (*FenceAction, LIST, STATUS))
        found = max(found, *(_duration(parameters, name, timeout_ms) for name in named))
    return found


def delay_ms(parameters: Mapping[str, str], order: FenceOrder) -> int:
    """Return the delay in ms of off and reboot: at random from `pcmk_delay_base` (for this target) to `pcmk_delay_max`.

    The random number follows from the order's key: another order draws again, a replay of this one does not.
    """
    least, most = delay_bounds_ms(parameters, order.target)
    return least + (zlib.crc32(order.key.encode()) % (most - least + 1))


def delay_bounds_ms(parameters: Mapping[str, str], target: NodeName) -> tuple[int, int]:
    """Return the bounds in ms between which the delay for a target is drawn."""
    text = parameters.get("pcmk_delay_base", "")
    by_node = host_map(text)
    base = _duration_of(by_node.get(target.lower(), "0") if by_node else text, 0)
    return base, max(base, _duration_of(parameters.get("pcmk_delay_max", ""), 0))


def host_map(text: str) -> dict[str, str]:
    """Parse `node:port;node2:port2` (separators `;`, space, tab; `=` for `:`); keys in lower case."""
    pairs: dict[str, str] = {}
    for item in text.replace(";", " ").split():
        name, separator, port = item.replace("=", ":", 1).partition(":") if ":" not in item else item.partition(":")
        if separator and name and port:
            pairs[name.lower()] = port
    return pairs


def _answer(order: FenceOrder, outcome: FenceOutcome, detail: str) -> Effect:
    return Propose(Scope.PROCESS, f"fence-agent:{order.key}", RecordFenceAgent(order.key, outcome, detail))


def _duration(parameters: Mapping[str, str], name: str, default_ms: int) -> int:
    return _duration_of(parameters[name], default_ms) if name in parameters else default_ms


def _duration_of(text: str, default_ms: int) -> int:
    try:
        return durations.parse(text) if text else default_ms
    except ValueError:
        return default_ms


def _integer(parameters: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(parameters.get(name, default))
    except ValueError:
        return default
