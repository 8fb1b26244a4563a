"""A device that has to be recovered, and the commands of its recovery."""

from haclusterd.cib.commands import (
    BeginRecovery,
)
from haclusterd.cib.edits import PutSets
from haclusterd.model.configuration import AttributeSet
from haclusterd.model.devices import (
    Device,
    DeviceId,
    DeviceState,
    RecoveryPhase,
    Rung,
)
from haclusterd.model.properties import BOOTSTRAP_OPTIONS
from tests.unit.cib.claimed_devices import A, known
from tests.unit.situations import N2, Cluster


def bad(
    name: DeviceId = A, state: DeviceState = DeviceState.DRAIN, rung: str = "reset", *, strangers: tuple[str, ...] = (),
    is_partitioned: bool = False,
) -> Device:  # fmt: skip
    reasons = (f"xid-119: it is {state}",)
    return Device(name, state=state, reasons=reasons, rung=rung, strangers=strangers, is_partitioned=is_partitioned)


def having(log: Cluster, **properties: str) -> None:
    pairs = tuple((name.replace("_", "-"), value) for name, value in properties.items())
    log.configure(PutSets("properties", (AttributeSet(BOOTSTRAP_OPTIONS, pairs),)))


def begin(device: DeviceId = A, rung: Rung = Rung.RESET, *, is_automatic: bool = False) -> BeginRecovery:
    return BeginRecovery(N2, device, rung, "policy" if is_automatic else "root", "xid-119", is_automatic=is_automatic)


def phase(log: Cluster, device: DeviceId = A) -> RecoveryPhase | None:
    found = known(log).recoveries.get(device)
    return found.phase if found is not None else None
