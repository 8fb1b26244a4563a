"""When a resource's claim of a device may end: when nothing that may be the resource's uses the device any more."""

import pytest

from haclusterd.model.device_reports import DeviceUse, DeviceUser, obstacle_to_release
from haclusterd.model.devices import DeviceClaim, DeviceId
from haclusterd.model.ids import OrderKey, ResourceId

GPU, DB, WEB = DeviceId("GPU-1"), ResourceId("db"), ResourceId("web")
CLAIMS = tuple(DeviceClaim(name, OrderKey(f"start-{name}"), memory_mib=1000) for name in (DB, WEB))
OWN, OTHERS, NOBODYS = (DeviceUser(f"7 {name}", name) for name in (DB, WEB, ""))


@pytest.mark.parametrize(
    ("users", "is_kept"),
    [((), False), ((OTHERS,), False), ((OWN,), True), ((OTHERS, OWN), True), ((NOBODYS,), True)],
)
def test_a_device_is_kept_for_what_uses_it_unless_another_claim_covers_that(
    users: tuple[DeviceUser, ...], *, is_kept: bool
) -> None:
    use = DeviceUse({GPU: users} if users else {})
    assert bool(obstacle_to_release(use, GPU, DB, CLAIMS)) is is_kept


def test_a_device_of_which_nobody_can_say_is_kept() -> None:
    assert "nobody can say" in obstacle_to_release(DeviceUse(unknown=(GPU,)), GPU, DB, CLAIMS)
