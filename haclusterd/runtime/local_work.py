"""What a daemon has done on its own node: agents and fence agents are run, devices are looked at and reset.

The machines' effects become calls of the ports, each with a line in the log. The end of each call goes to the machine
that asked for it. Before the executor judges the end of an agent, it is given the newest CIB: what it starts next must
still be wanted.
"""

from collections.abc import Callable, Sequence
from functools import partial

from haclusterd.machines.devices import DevicesMachine
from haclusterd.machines.effects import (
    CallFenceAgent,
    Effect,
    ExamineDevice,
    KillAgent,
    LookAtDevices,
    RecoverDevice,
    RunAgent,
    UnwatchService,
    WatchService,
)
from haclusterd.machines.executing.device_proofs import is_of_a_start
from haclusterd.machines.executing.device_recovery import DeviceRecoveryMachine, is_of_a_recovery
from haclusterd.machines.executing.executor import ExecutorMachine
from haclusterd.machines.fencer import FencerMachine
from haclusterd.machines.moment import Moment
from haclusterd.model.agent_calls import AgentResult, FenceCallResult
from haclusterd.model.device_reports import DevicesReport, DeviceUse, RecoveryAnswer
from haclusterd.model.devices import DeviceId
from haclusterd.model.ids import ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.ports.event_log import Priority
from haclusterd.runtime.ports import NodePorts

EXPECTED = frozenset({ExitCode.OK, ExitCode.NOT_RUNNING, ExitCode.PROMOTED})
"""Ordinary results of a monitor. Whether one was expected is decided by the scheduler; others are logged as
failures."""


class LocalWork:
    """The agents, fence agents and devices of one daemon; see the module."""

    def __init__(
        self,
        ports: NodePorts,
        *,
        executor: ExecutorMachine,
        fencer: FencerMachine,
        devices: DevicesMachine,
        recovery: DeviceRecoveryMachine,
        moment: Callable[[], Moment],
        show_cib: Callable[[], object],
        conclude: Callable[[Sequence[Effect]], None],
    ) -> None:
        """`show_cib` passes the newest applied CIB to the executor; `conclude` performs effects, then wakes."""
        self._ports = ports
        self._executor, self._fencer, self._devices, self._recovery = executor, fencer, devices, recovery
        self._moment = moment
        self._show_cib = show_cib
        self._conclude = conclude
        self._monitors: set[str] = set()
        """Keys of running monitors: they are many, and rarely worth a log line."""

    def adopt(self) -> None:
        """Take over the agents that an earlier daemon of this boot left at work."""
        adopted = self._ports.agents.adopt(self._adopted_ended)
        for action in adopted:
            self._log("agent.adopted", key=action.key, resource=str(action.resource), action=action.action)
        self._executor.adopted(adopted)

    def watch_devices(self) -> None:
        """Pass every report about this node's devices to their machine."""
        self._ports.devices.watch(self._devices_reported)

    # -- effects ----------------------------------------------------------------------------------------------------

    def use_agents(self, effect: RunAgent | KillAgent | WatchService | UnwatchService) -> None:
        """Run or kill an agent, or watch what it has started."""
        agents = self._ports.agents
        match effect:
            case RunAgent(call=call):
                priority = Priority.INFO
                if call.action == ActionName.MONITOR:
                    self._monitors.add(call.key)
                    priority = Priority.DEBUG
                self._log("effect.run-agent", priority, key=call.key, resource=str(call.resource), action=call.action)
                agents.run(call, self._agent_finished)
            case KillAgent(key=key):
                self._log("effect.kill-agent", key=key)
                agents.kill(key)
            case WatchService(resource=resource, instance=instance):
                agents.watch(resource, instance, self._service_died)
            case UnwatchService(resource=resource):
                agents.unwatch(resource)

    def fence(self, effect: CallFenceAgent) -> None:
        """Call a fence agent."""
        call = effect.call
        self._log("effect.fence", Priority.NOTICE, key=call.key, agent=call.agent, action=call.action)
        self._ports.fence_agents.call(call, self._fence_agent_finished)

    def use_devices(self, effect: LookAtDevices | RecoverDevice | ExamineDevice) -> None:
        """Look at devices, reset one, or test one."""
        devices = self._ports.devices
        match effect:
            case LookAtDevices(key=key, devices=looked_at):
                devices.look(looked_at, partial(self._devices_looked, key, looked_at))
            case RecoverDevice(key=key, device=device, rung=rung):
                self._log("effect.recover-device", Priority.WARNING, device=str(device), rung=str(rung))
                devices.recover(device, rung, partial(self._device_answered, key))
            case ExamineDevice(key=key, device=device, program=program, timeout_ms=timeout_ms):
                self._log("effect.test-device", Priority.NOTICE, device=str(device), program=program)
                devices.test(device, program, timeout_ms, partial(self._device_answered, key))

    # -- their ends -------------------------------------------------------------------------------------------------

    def _agent_finished(self, result: AgentResult) -> None:
        is_monitor = result.key in self._monitors
        self._monitors.discard(result.key)
        self._log(
            "event.agent-finished",
            Priority.DEBUG if is_monitor and result.exit_code in EXPECTED else Priority.INFO,
            key=result.key,
            exit_code=result.exit_code,
            status=str(result.status),
            executed_ms=result.executed_ms,
            exit_reason=result.exit_reason or None,
        )
        self._show_cib()
        self._conclude(self._executor.agent_finished(result, self._moment()))

    def _adopted_ended(self, key: str) -> None:
        self._log("event.adopted-ended", key=key)
        self._show_cib()
        self._conclude(self._executor.adopted_ended(key, self._moment()))

    def _service_died(self, resource: ResourceId) -> None:
        self._log("event.service-died", Priority.NOTICE, resource=str(resource))
        self._show_cib()
        self._conclude(self._executor.service_died(resource, self._moment()))

    def _fence_agent_finished(self, result: FenceCallResult) -> None:
        self._log(
            "event.fence-agent-finished",
            Priority.NOTICE,
            key=result.key,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            reason=result.reason or None,
        )
        self._conclude(self._fencer.agent_finished(result, self._moment()))

    def _devices_reported(self, report: DevicesReport) -> None:
        self._devices.reported(report)
        self._conclude(())

    def _devices_looked(self, key: str, devices: tuple[DeviceId, ...], use: DeviceUse) -> None:
        effects: Sequence[Effect] = ()
        if is_of_a_start(key):
            self._devices.seen_before_start(devices, use, self._ports.clock.now())
            self._show_cib()
            effects = self._executor.devices_looked(key, use, self._moment())
        elif is_of_a_recovery(key):
            self._recovery.looked(key, use, self._ports.clock.now())
        else:
            self._devices.looked(key, use)
        self._conclude(effects)

    def _device_answered(self, key: str, answer: RecoveryAnswer) -> None:
        self._log("event.device-recovery", Priority.NOTICE, key=key, is_done=answer.is_done, text=answer.text)
        self._recovery.answered(key, answer)
        self._conclude(())

    def _log(self, kind: str, priority: Priority = Priority.INFO, /, **fields: str | int | bool | None) -> None:
        self._ports.log.write(kind, priority=priority, **fields)
