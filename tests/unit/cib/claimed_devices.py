"""Devices of nodes, and the commands by which they are claimed, proven and released."""

from haclusterd.cib import commands
from haclusterd.cib.changes import Applied
from haclusterd.cib.commands import ProvenClaim, PublishDevices, ReleaseDevices
from haclusterd.model.devices import Device, DeviceId, DeviceState, NodeDevices
from haclusterd.model.ids import NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.orders import Order, ResultKind
from haclusterd.model.records import replace
from tests.unit.situations import (
    DB,
    N2,
    Log,
    issue,
    life,
    order,
    result,
)

A, B, C = (DeviceId(f"GPU-{name}") for name in "abc")


def device(name: DeviceId, state: DeviceState = DeviceState.OK, *, memory_mib: int = 80_000) -> Device:
    reasons = () if state is DeviceState.OK else (f"test: it is {state}",)
    return Device(name, memory_mib=memory_mib, state=state, reasons=reasons)


def publish(*devices: Device, node: NodeName = N2, driver: str = "", trouble: str = "") -> PublishDevices:
    return PublishDevices(node, life(node), devices, driver, trouble)


def wants(
    key: str, *devices: DeviceId, resource: ResourceId = DB, node: NodeName = N2, memory_mib: int = 0,
    action: ActionName = ActionName.START,
) -> Order:  # fmt: skip
    made = order(key, action, resource=resource, node=node)
    return replace(made, devices=devices, device_memory_mib=memory_mib)


def ended(
    log: Log, key: str, operation: str = "start", exit_code: ExitCode = ExitCode.OK, *, call_id: int = 1,
    kind: ResultKind = ResultKind.FINISHED, resource: ResourceId = DB, node: NodeName = N2, token: int = 1,
    target: ExitCode = ExitCode.OK,
) -> Applied:  # fmt: skip
    item = result(key, operation, exit_code, kind=kind, call_id=call_id, target=target)
    return log.must(commands.RecordResults(node, life(node, token=token), (replace(item, resource=resource),)))


def stopped(log: Log, *, call_id: int = 2, resource: ResourceId = DB, exit_code: ExitCode = ExitCode.OK) -> None:
    log.must(issue(order(f"stop{call_id}", ActionName.STOP, resource=resource)))
    ended(log, f"stop{call_id}", "stop", exit_code, call_id=call_id, resource=resource)


def known(log: Log, node: NodeName = N2) -> NodeDevices:
    return log.cib.status.devices[node]


def claims(log: Log, node: NodeName = N2) -> dict[DeviceId, list[tuple[str, bool]]]:
    standing = known(log, node).claims
    return {name: [(claim.resource, claim.is_over) for claim in each] for name, each in standing.items()}


def proven(device: DeviceId = A, key: str = "start", resource: ResourceId = DB) -> ProvenClaim:
    return ProvenClaim(device, resource, OrderKey(key))


def release(*claims: ProvenClaim, token: int = 1) -> ReleaseDevices:
    return ReleaseDevices(N2, life(N2, token=token), claims)
