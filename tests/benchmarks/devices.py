"""CPU time of plans in which resources claim devices: `make bench-gpu`.

Nodes with eight devices each and a service for every device. Planned from nothing, with everything running, and after
one device failed; the same services without devices beside it, as what the claims alone cost.
"""

import argparse
import time
from collections.abc import Mapping

from haclusterd.model.cluster import Cib
from haclusterd.model.devices import Device, DeviceClaim, DeviceId, DeviceState, NodeDevices
from haclusterd.model.graph import Plan
from haclusterd.model.ids import NodeName, OrderKey
from haclusterd.model.records import replace
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule
from tests.scheduled_clusters import BEGIN, ScheduledCluster, configured

PER_NODE = 8


def devices_of(node: str) -> NodeDevices:
    """Return the devices of one node, in two NVLink groups."""
    made = (
        Device(
            DeviceId(f"GPU-{node}-{number}"), bus=f"0000:{number:02x}:00.0", model="NVIDIA H200", memory_mib=143_771,
            link=str(number // 4),
        )
        for number in range(PER_NODE)
    )  # fmt: skip
    return NodeDevices(devices={device.id: device for device in made})


def cluster(nodes: int, services: int, *, has_devices: bool) -> ScheduledCluster:
    """Return a cluster in which nothing runs yet."""
    names = [f"n{number}" for number in range(1, nodes + 1)]
    made = ScheduledCluster.of(names)
    asks = " utilization gpus=1" if has_devices else ""
    lines = [f"primitive llm{number} ocf:haclusterd:dummy{asks}" for number in range(services)]
    made.configure(configured("\n".join(["property fencing-enabled=false enable-startup-probes=false", *lines])))
    if has_devices:
        made.cib = with_devices(made.cib, {NodeName(name): devices_of(name) for name in names})
    return made


def with_devices(cib: Cib, devices: Mapping[NodeName, NodeDevices]) -> Cib:
    """Return a CIB with these devices."""
    return replace(cib, status=replace(cib.status, devices=devices))


def run_all(made: ScheduledCluster, plan: Plan) -> None:
    """Let every start of a plan succeed, and hold its devices."""
    for action in plan.graph.actions.values():
        made.perform(action)
        known = dict(made.cib.status.devices)
        if action.node is not None and action.devices and not known[action.node].claims.keys() >= set(action.devices):
            assert action.resource is not None
            claims = {device: (DeviceClaim(action.resource, OrderKey("4.1.1")),) for device in action.devices}
            old = known[action.node]
            known[action.node] = replace(old, claims={**old.claims, **claims})
            made.cib = with_devices(made.cib, known)


def timed(cib: Cib, cache: PlanCache | None = None) -> tuple[float, Plan]:
    """Return the processor time of a plan in seconds, and the plan."""
    before = time.process_time()
    plan = schedule(cib, BEGIN, cache=cache)
    return time.process_time() - before, plan


def main() -> None:
    """Print a row for each plan, and RESULT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--services", type=int, default=1600)
    options = parser.parse_args()
    plain = cluster(options.nodes, options.services, has_devices=False)
    plain_s, _ = timed(plain.cib)
    made = cluster(options.nodes, options.services, has_devices=True)
    from_nothing_s, plan = timed(made.cib)
    starts = [action for action in plan.graph.actions.values() if action.devices]
    run_all(made, plan)
    cache = PlanCache()
    timed(made.cib, cache)
    steady_s, _ = timed(made.cib, cache)
    first = NodeName("n1")
    known = made.cib.status.devices[first]
    bad = next(iter(known.devices.values()))
    broken = replace(bad, state=DeviceState.FAILED, reasons=("xid-79: it has fallen off the bus",))
    devices = {**made.cib.status.devices, first: replace(known, devices={**known.devices, bad.id: broken})}
    failed = with_devices(made.cib, devices)
    replanned_s, plan = timed(failed, cache)
    touched = {action.resource for action in plan.graph.actions.values() if action.resource is not None}
    print(f"{options.nodes} nodes x {PER_NODE} devices, {options.services} services, processor time")
    print(f"  without devices, from nothing      {plain_s:7.3f} s")
    print(f"  with devices, from nothing         {from_nothing_s:7.3f} s   {len(starts)} starts with a device")
    print(f"  all running, planned again         {steady_s:7.3f} s")
    print(f"  one device failed, planned again   {replanned_s:7.3f} s   resources touched: {len(touched)}")
    print(
        f"RESULT plan_s={from_nothing_s:.3f} replan_s={replanned_s:.3f} steady_s={steady_s:.3f} "
        f"without_devices_s={plain_s:.3f} starts={len(starts)} touched={len(touched)}"
    )


if __name__ == "__main__":
    main()
