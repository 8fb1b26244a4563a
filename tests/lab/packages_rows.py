"""What administrators do with the packages: upgrade node by node while everything runs, go back, remove, purge.

The rpm is installed by rpm itself, beside Debian's packages, whose names it cannot know: without its dependencies.
"""

from collections.abc import Callable

from tests.lab.packages_lab import INSTALL, RELEASES, PackagesLab
from tests.lab.site import NotAsExpectedError
from tests.lab.systemd_lab import SystemdLab
from tests.lab.systemd_machine import STATE, SystemdMachine
from tests.lab.systemd_rows import BEGINS, DRAIN_MS, JOIN_S, Asked, Row, images, is_active

PROGRAMS = ("crm", "haclusterd", "haclusterd-pacer", "haclusterd-api")
KEPT = ("/etc/haclusterd/haclusterd.yaml", f"{STATE}/history.sqlite")


def upgrade(lab: SystemdLab) -> Asked:
    """Every node to the next release and back, one after the other, under monitors of 100 ms."""
    assert isinstance(lab, PackagesLab)
    for release in reversed(RELEASES):
        for name in lab.machines:
            _upgraded(lab, lab.machine(name), release, lab.install)
    _nothing_failed(lab)
    return Asked()


def _upgraded(
    lab: PackagesLab, machine: SystemdMachine, release: str, install: Callable[[SystemdMachine, str], None]
) -> None:
    """Install a release on a node whose daemons run, and wait until they run that release."""
    before = {unit: images(machine, unit) for unit in BEGINS}
    install(machine, release)
    lab.until("new images of pacer and daemon",
              lambda: all(images(machine, unit) > count for unit, count in before.items()), 60)  # fmt: skip
    lab.until("it to be online", lambda: machine.name in lab.online(), 30)
    _runs(lab, machine, release)


def _nothing_failed(lab: PackagesLab) -> None:
    failed = [event for event in lab.events(lab.began_wall_ms) if event["kind"] == "operation-failed"]
    if failed:
        raise NotAsExpectedError(f"{len(failed)} operations failed, the first: {failed[0]['text']}")


def _runs(lab: PackagesLab, machine: SystemdMachine, release: str) -> None:
    if lab.release(machine) != release:
        raise NotAsExpectedError(f"{machine.name}: release {release} was installed, {lab.release(machine)} is current")
    for unit in BEGINS:
        words = machine.shell(f"tr '\\0' ' ' < /proc/{machine.shows(unit, 'MainPID')}/cmdline")
        if f"-{release}-" not in words:
            raise NotAsExpectedError(f"{machine.name}: after the upgrade {unit} runs {words}")


def remove(lab: SystemdLab) -> Asked:
    """Remove the package from the node with the service, purge it, install it again: the node returns as it was."""
    assert isinstance(lab, PackagesLab)
    machine = lab.machine(lab.holder())
    there = [each for each in KEPT if machine.shell(f"ls {each}", is_checked=False)]
    machine.shell(f"{INSTALL} remove haclusterd", timeout_s=300)
    lab.until("the service to answer", lab.client.is_served, 30)
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began), 4)
    for word in ("ActiveState", "LoadState"):
        if machine.shows("haclusterd", word) not in ("inactive", "not-found"):
            raise NotAsExpectedError(f"removed, and haclusterd.service is {machine.shows('haclusterd', word)}")
    _nothing_left(machine)
    machine.shell(f"{INSTALL} purge haclusterd")
    _nothing_left(machine)
    gone = [each for each in there if not machine.shell(f"ls {each}", is_checked=False)]
    if gone or not there:
        raise NotAsExpectedError(f"purged without being asked for data, and {gone or KEPT} are gone")
    lab.install(machine, RELEASES[0])
    machine.shell("systemctl enable --now haclusterd", timeout_s=120)
    lab.until("it to run", lambda: is_active(machine), 60)
    return Asked(outage_ms=DRAIN_MS)


def rpm(lab: SystemdLab) -> Asked:
    """Put the rpm in the deb's place on the node with the service, upgrade it under monitors, erase it, go back."""
    assert isinstance(lab, PackagesLab)
    machine = lab.machine(lab.holder())
    machine.shell(f"{INSTALL} remove haclusterd && {INSTALL} install rpm", timeout_s=300)
    _install_rpm(lab, machine, RELEASES[0])
    lab.starts_nothing(machine)
    machine.shell("systemctl enable --now haclusterd", timeout_s=120)
    lab.until("all to be well", lab.is_whole, JOIN_S)
    _upgraded(lab, machine, RELEASES[1], lambda machine, release: _install_rpm(lab, machine, release))
    differing = machine.shell("rpm -V --nodeps haclusterd", is_checked=False)
    if differing:
        raise NotAsExpectedError(f"not as the rpm has it: {differing}")
    _nothing_failed(lab)
    machine.shell("rpm -e --nodeps --force-debian haclusterd", timeout_s=120)
    lab.until("the service to answer", lab.client.is_served, 30)
    lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began), 4)
    _nothing_left(machine)
    gone = [each for each in KEPT if not machine.shell(f"ls {each}", is_checked=False)]
    if gone:
        raise NotAsExpectedError(f"the rpm was erased, and {gone} are gone")
    lab.install(machine, RELEASES[0])
    machine.shell("systemctl enable --now haclusterd", timeout_s=120)
    lab.until("it to run", lambda: is_active(machine), 60)
    return Asked(outage_ms=DRAIN_MS)


def _install_rpm(lab: PackagesLab, machine: SystemdMachine, release: str) -> None:
    machine.shell(f"rpm -U --nodeps --force-debian {lab.debian.rpms[release]}", timeout_s=120)


def _nothing_left(machine: SystemdMachine) -> None:
    script = (
        "pgrep -a haclusterd; ls -d /usr/lib/haclusterd /usr/lib/ocf/resource.d/haclusterd /usr/share/haclusterd "
        "/usr/lib/systemd/system/haclusterd* /usr/lib/sysusers.d/haclusterd* /etc/systemd/system/*/haclusterd* "
        f"2>/dev/null; for each in {' '.join(PROGRAMS)}; do command -v $each; done"
    )
    left = machine.shell(script, is_checked=False)
    if left:
        raise NotAsExpectedError(f"removed, and there is still: {left.strip()}")


ROWS = (
    Row("systemd-packages", upgrade),
    Row("systemd-packages-removed", remove),
    Row("systemd-packages-rpm", rpm),
)
