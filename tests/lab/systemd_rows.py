"""What people and machines do to nodes under systemd, and what must come of it (docs/design/safety.md §8).

A row is played on a whole cluster and leaves behind what can become whole again. It says what it asked for: whose
fencing, how long an outage, how many restarts. Everything else is unasked for.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from haclusterd.model.records import dataclass, field
from tests.lab.machine import REPOSITORY
from tests.lab.nspawn import NspawnError
from tests.lab.site import NotAsExpectedError
from tests.lab.systemd_lab import SystemdLab
from tests.lab.systemd_machine import STATE, SystemdMachine

PACKAGE = "/opt/haclusterd-1/lib/python3*/site-packages/haclusterd"
DRAIN_MS = 8_000
"""Two stops, two starts, an election when the node led; the rest is for a machine that has other work."""
RECOVERY_MS = 15_000
JOIN_S = 90.0
UPGRADES = 20
PIP = "/opt/haclusterd-1/bin/pip install --quiet --no-index --find-links /wheels"


@dataclass(slots=True)
class Asked:
    """What a row asked for."""

    may_be_fenced: tuple[str, ...] = ()
    outage_ms: int = 500
    restarts: int = 0
    """How often systemd may have started any one unit again."""


@dataclass(frozen=True, slots=True)
class Row:
    """One act."""

    name: str
    play: Callable[[SystemdLab], Asked] = field(repr=False)


def other(lab: SystemdLab) -> SystemdMachine:
    """Return a machine that neither holds the service nor leads."""
    holder, dc = lab.holder(), lab.dc()
    return lab.machine(next(name for name in lab.machines if name not in (holder, dc)))


def is_active(machine: SystemdMachine) -> bool:
    return machine.shows("haclusterd", "ActiveState") == "active"


BEGINS = {"haclusterd-pacer": " serving ", "haclusterd": "daemon\\.start "}
"""What each unit says once in the life of each image: the pacer when it has its settings, the daemon when it begins."""


def images(machine: SystemdMachine, unit: str) -> int:
    """Return how many images of a unit have begun in the machine's present boot."""
    script = f"journalctl -b -o cat -u {unit} | grep -c '{BEGINS[unit]}'"
    return int(machine.shell(script, is_checked=False) or 0)


# -- stops, in all orders -------------------------------------------------------------------------------------------


def _stopping(command: str) -> Callable[[SystemdLab], Asked]:
    def play(lab: SystemdLab) -> Asked:
        machine = lab.machine(lab.holder())
        machine.shell(command, is_checked=False)
        lab.until("the service to answer", lab.client.is_served, 30)
        # What was asked of systemd may have been refused; either way a start must make it whole.
        lab.hold("nobody is fenced", lambda: not lab.fenced(lab.began), 4)
        machine.shell("systemctl start haclusterd")
        lab.until("it to run", lambda: is_active(machine), 30)
        return Asked(outage_ms=DRAIN_MS)

    return play


STOPS = {
    "stop-pacer-brain": "systemctl stop haclusterd-pacer haclusterd",
    "stop-brain-pacer": "systemctl stop haclusterd haclusterd-pacer",
    "stop-all": "systemctl stop 'haclusterd*'",
    "stop-pacer": "systemctl stop haclusterd-pacer",
    "stop-brain": "systemctl stop haclusterd",
    "restart-pacer": "systemctl restart haclusterd-pacer",
    "restart-all": "systemctl restart 'haclusterd*'",
    "restart-brain": "systemctl restart haclusterd",
}


def _kill(unit: str) -> Callable[[SystemdLab], Asked]:
    def play(lab: SystemdLab) -> Asked:
        machine = lab.machine(lab.holder())
        before = images(machine, unit)
        machine.shell(f"kill -9 {machine.shows(unit, 'MainPID')}")
        # A pacer that was killed has no settings until the daemon connects: the next fault must not come before that.
        lab.until("another process at work", lambda: images(machine, unit) > before, 30)
        return Asked(restarts=1)

    return play


def stall(lab: SystemdLab) -> Asked:
    """Stop the daemon in its tracks: systemd's watchdog starts it again before its node is fenced for it."""
    machine = lab.machine(lab.holder())
    before = machine.shows("haclusterd", "MainPID")
    machine.shell(f"kill -STOP {before}")
    lab.until("another process", lambda: machine.shows("haclusterd", "MainPID") not in (before, "0", ""), 30)
    return Asked(restarts=1)


# -- what a machine lacks -------------------------------------------------------------------------------------------


def _restart(lab: SystemdLab, machine: SystemdMachine) -> None:
    machine.shell("systemctl poweroff --no-block", is_checked=False)
    lab.until(f"{machine.name} to have shut down", lambda: machine.container is None, 90)
    lab.until(f"{machine.name} to boot", machine.is_booted, 60)


def _drop_in(machine: SystemdMachine, unit: str, text: str) -> None:
    machine.shell(f"mkdir -p /etc/systemd/system/{unit}.service.d")
    machine.run("tee", f"/etc/systemd/system/{unit}.service.d/lab.conf", stdin=text)
    machine.shell("systemctl daemon-reload")


def _no_drop_in(machine: SystemdMachine, unit: str) -> None:
    machine.shell(f"rm -rf /etc/systemd/system/{unit}.service.d; systemctl daemon-reload")


def real_time_forbidden(lab: SystemdLab) -> Asked:
    machine = lab.machine(lab.holder())
    _drop_in(machine, "haclusterd-pacer", "[Service]\nSystemCallFilter=~sched_setscheduler\n")
    machine.options = ["--drop-capability=CAP_SYS_NICE"]
    try:
        _restart(lab, machine)
        lab.until("all to be well without real time", lab.is_whole, JOIN_S)
        lines = lab.journal(machine.name, "-b", "-u", "haclusterd-pacer")
        logged = " ".join(str(line.get("MESSAGE")) for line in lines)
        if "no real-time priority" not in logged:
            raise NotAsExpectedError(f"the pacer does not say that it has no real-time priority: {logged[-400:]}")
        if lab.restarts()[f"{machine.name}:haclusterd-pacer"]:
            raise NotAsExpectedError("the pacer was started more than once")
    finally:
        machine.options = []
        _no_drop_in(machine, "haclusterd-pacer")
    _restart(lab, machine)
    return Asked(outage_ms=DRAIN_MS)


def no_pacer(lab: SystemdLab) -> Asked:
    machine = other(lab)
    machine.shell("systemctl stop haclusterd")
    _drop_in(machine, "haclusterd-pacer", "[Service]\nExecStart=\nExecStart=/bin/false\nRestartSec=1s\n")
    try:
        machine.shell("systemctl start haclusterd", is_checked=False)
        lab.until("words about it", lambda: "haclusterd-pacer does not answer" in
                  machine.run("crm", "status", is_checked=False), 30)  # fmt: skip
        lab.hold("it stays outside", lambda: machine.name not in lab.online(), 8)
    finally:
        _no_drop_in(machine, "haclusterd-pacer")
    lab.until("it to join by itself", lambda: machine.name in lab.online(), JOIN_S)
    return Asked(restarts=60)


def full_disk(lab: SystemdLab) -> Asked:
    machine = lab.machine(lab.holder())
    name = machine.name
    fill = f"dd if=/dev/zero of={STATE}/ballast bs=64k 2>/dev/null; dd if=/dev/zero of={STATE}/more bs=1 2>/dev/null"
    machine.shell(fill, is_checked=False)
    for _ in range(3):
        lab.write()
    lab.until("the service to answer", lab.client.is_served, 60)
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and lab.fenced(lab.began).count(name) < 2:
        time.sleep(0.2)
    if lab.fenced(lab.began).count(name) > 1:
        raise NotAsExpectedError(f"{name} is fenced again and again because its disk is full")
    lab.until(f"{name} to be on", machine.is_booted, 60)
    since = f"--since=@{lab.began_wall_ms / 1000:.3f}"
    logged = " ".join(str(line.get("MESSAGE")) for line in lab.journal(name, since, "-u", "haclusterd"))
    machine.shell(f"rm -f {STATE}/ballast {STATE}/more")
    for words in ("store.failed", "Make room"):
        if words not in logged:
            raise NotAsExpectedError(f"the journal of {name} does not say {words!r}: {logged[-600:]}")
    return Asked(may_be_fenced=(name,), outage_ms=RECOVERY_MS, restarts=20)


def emptied_run(lab: SystemdLab) -> Asked:
    machine = lab.machine(lab.holder())
    machine.shell("rm -rf /run/haclusterd/*")
    lab.until("the control socket to be there again",
              lambda: "control.sock" in machine.shell("ls /run/haclusterd", is_checked=False), 20)  # fmt: skip
    lab.until("the daemon to answer", lambda: lab.status(machine.name)["dc"] is not None, 20)
    lab.until("all to be well", lab.is_whole, JOIN_S)
    machine.shell("systemctl reload haclusterd")
    lab.hold("the service answers", lab.client.is_served, 4)
    # Without its page the pacer begins again, and the lease with it: what runs there may be stopped, and is started.
    return Asked(outage_ms=DRAIN_MS, restarts=1)


def empty_state(lab: SystemdLab) -> Asked:
    machine = other(lab)
    machine.shell(f"systemctl stop haclusterd; mkdir /var/tmp/aside; mv {STATE}/* /var/tmp/aside/")
    machine.shell("systemctl start haclusterd", is_checked=False)
    lab.hold("it is not started again", lambda: machine.shows("haclusterd", "NRestarts") == "0", 5)
    if machine.shows("haclusterd", "ActiveState") != "failed":
        raise NotAsExpectedError(f"the unit is {machine.shows('haclusterd', 'ActiveState')}")
    logged = " ".join(str(line.get("MESSAGE")) for line in lab.journal(machine.name, "-b", "-u", "haclusterd"))
    if "crm cluster remove" not in logged:
        raise NotAsExpectedError("the refusal does not say what to do")
    machine.shell(f"mv /var/tmp/aside/* {STATE}/; rmdir /var/tmp/aside; systemctl reset-failed haclusterd")
    machine.shell("systemctl start haclusterd")
    return Asked(outage_ms=DRAIN_MS)


# -- upgrades -------------------------------------------------------------------------------------------------------


def _reload(lab: SystemdLab, machine: SystemdMachine) -> None:
    """Reload both, and wait for the new images: `systemctl reload` returns before they are executed."""
    before = {unit: images(machine, unit) for unit in BEGINS}
    machine.shell("systemctl reload haclusterd-pacer && systemctl reload haclusterd")
    lab.until("new images of pacer and daemon",
              lambda: all(images(machine, unit) > count for unit, count in before.items()), 30)  # fmt: skip


def upgrade(lab: SystemdLab) -> Asked:
    """Half of them into the directory that is in use, half of them by a link that is switched."""
    machine = lab.machine(lab.holder())
    machine.shell("python3 -m venv /opt/haclusterd-2")
    machine.shell("/opt/haclusterd-2/bin/pip install --quiet --no-index --find-links /wheels haclusterd")
    for number in range(UPGRADES):
        if number % 2:
            target = f"haclusterd-{2 - number // 2 % 2}"
            machine.shell(f"ln -s {target} /opt/haclusterd.new && mv -T /opt/haclusterd.new /opt/haclusterd")
        else:
            machine.shell(f"{PIP} --force-reinstall --no-deps haclusterd")
        _reload(lab, machine)
        lab.until("its daemon to answer", lambda: lab.status(machine.name)["dc"] is not None, 30)
        lab.until("it to be online", lambda: machine.name in lab.online(), 30)
    failed = [event for event in lab.events(lab.began_wall_ms) if event["kind"] == "operation-failed"]
    if failed:
        raise NotAsExpectedError(f"{len(failed)} operations failed, the first: {failed[0]['text']}")
    machine.shell("ln -sfn haclusterd-1 /opt/haclusterd; rm -rf /opt/haclusterd-2")
    return Asked()


def broken_reload(lab: SystemdLab) -> Asked:
    machine = lab.machine(lab.holder())
    _refuse_reload(lab, machine)
    machine.shell("systemctl reload haclusterd")
    return Asked()


def _refuse_reload(lab: SystemdLab, machine: SystemdMachine) -> None:
    """Break the package, ask for a reload in both ways, see them refused, and repair it."""
    pid = machine.shows("haclusterd", "MainPID")
    module = machine.shell(f"echo {PACKAGE}/runtime/node.py").strip()
    machine.shell(f"cp {module} /var/tmp/node.py; echo 'raise RuntimeError' >> {module}")
    try:
        if "ok" in machine.shell("systemctl reload haclusterd && echo ok", is_checked=False):
            raise NotAsExpectedError("systemctl reload took a broken package")
        machine.shell(f"kill -HUP {pid}")
        lab.until("the refusal", lambda: any("daemon.reload-refused" in str(line.get("MESSAGE")) for line in
                                             lab.journal(machine.name, "-b", "-u", "haclusterd")), 60)  # fmt: skip
        lab.hold("the same process runs", lambda: machine.shows("haclusterd", "MainPID") == pid, 2)
    finally:
        machine.shell(f"cp /var/tmp/node.py {module}")


def power_cut_in_upgrade(lab: SystemdLab) -> Asked:
    """Follow docs/howto/upgrade.md, with the power going at some moment of it."""
    machine = other(lab)
    for after_s in (0.5, 2.0, 6.0):
        began = time.monotonic()
        container = machine.container
        assert container is not None
        script = ("rm -rf /opt/haclusterd-3; python3 -m venv /opt/haclusterd-3 && /opt/haclusterd-3/bin/pip install "
                  "--quiet --no-index --find-links /wheels haclusterd && ln -sfn haclusterd-3 /opt/haclusterd.new && "
                  "mv -T /opt/haclusterd.new /opt/haclusterd && systemctl reload haclusterd")  # fmt: skip
        machine.shell(f"({script}) >/dev/null 2>&1 &")
        while time.monotonic() < began + after_s:
            time.sleep(0.05)
        machine.switch_off()
        lab.until("it to be fenced", lambda: machine.name in lab.fenced(lab.began), 30)
        lab.until("it to boot", machine.is_booted, 60)
        lab.until("all to be well", lab.is_whole, JOIN_S)
    # The last switch may have happened before its power cut: rows that follow break the first installation.
    machine.shell("haclusterd --check; ln -sfn haclusterd-1 /opt/haclusterd")
    _reload(lab, machine)
    machine.shell("rm -rf /opt/haclusterd-3")
    return Asked(may_be_fenced=(machine.name,))


# -- shutting down --------------------------------------------------------------------------------------------------

NETWORK_MOUNT = """[Unit]
Description=Stand-in for a network file system
DefaultDependencies=no
Conflicts=umount.target
Before=remote-fs.target umount.target
After=network.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/bin/sh -c 'if pgrep -f [l]ab-service; then touch /var/tmp/too-early; fi'

[Install]
WantedBy=remote-fs.target
"""


def network_mount(lab: SystemdLab) -> Asked:
    machine = lab.machine(lab.holder())
    machine.run("tee", "/etc/systemd/system/lab-mount.service", stdin=NETWORK_MOUNT)
    machine.shell("systemctl daemon-reload; systemctl enable --now lab-mount.service")
    _restart(lab, machine)
    early = machine.shell("ls /var/tmp/too-early", is_checked=False)
    machine.shell("systemctl disable lab-mount.service; rm -f /var/tmp/too-early /etc/systemd/system/lab-mount.service")
    if early:
        raise NotAsExpectedError("the network file system went before the service that may use it")
    return Asked(outage_ms=DRAIN_MS)


# -- what the journal says --------------------------------------------------------------------------------------------

PAGE = REPOSITORY / "docs" / "howto" / "read-the-log.md"
PRIORITIES = {"critical": "2", "error": "3", "warning": "4", "notice": "5"}
EVENTS = (
    "cib.configuration-changed", "cib.operation-failed", "daemon.reload-refused", "runtime-files.restored",
    "cib.node-leaving", "cib.node-left", "cib.dc-elected", "cib.node-joined",
    "cib.node-lost", "cib.fencing-ordered", "cib.node-fenced",
)  # fmt: skip


def journal_lines(lab: SystemdLab) -> Asked:
    """Let one thing after the other happen, and read in the journal of a node that sees them all how urgent it was."""
    witness, leader = other(lab), lab.machine(lab.dc())
    lab.write()
    holder = lab.machine(lab.holder())
    holder.shell("kill -9 $(pgrep -f [l]ab-service)")
    lab.until("the client to notice", lambda: not lab.client.is_served(), 5)
    lab.until("the service to answer", lab.client.is_served, 30)
    _refuse_reload(lab, witness)
    witness.shell("rm -rf /run/haclusterd/*")
    lab.until("words about the files", lambda: "runtime-files.restored" in _said(lab, witness), 20)
    lab.until("all to be well", lab.is_whole, JOIN_S)
    leader.shell("systemctl stop haclusterd")
    lab.until("another DC", lambda: lab.dc() not in (leader.name, "None"), 30)
    leader.shell("systemctl start haclusterd")
    lab.until("it to be back", lab.is_whole, JOIN_S)
    leader.switch_off()
    lab.until("it to be fenced", lambda: leader.name in lab.fenced(lab.began), 30)
    lab.until("all to be well", lab.is_whole, JOIN_S)
    found: dict[str, set[str]] = {}
    for line in _lines(lab, witness):
        found.setdefault(str(line.get("MESSAGE")).split()[0], set()).add(str(line.get("PRIORITY")))
    for event in EVENTS:
        row = next(line for line in PAGE.read_text().splitlines() if f"`{event}`" in line)
        wanted = PRIORITIES[row.split("|")[1].strip()]
        if found.get(event) != {wanted}:
            raise NotAsExpectedError(f"{event} stands in the journal with priorities {found.get(event)}, not {wanted}")
    return Asked(may_be_fenced=(leader.name,), outage_ms=RECOVERY_MS, restarts=1)


def _lines(lab: SystemdLab, machine: SystemdMachine) -> list[Mapping[str, Any]]:
    """Return what the daemon of a machine has written since the row began."""
    since = f"--since=@{lab.began_wall_ms / 1000:.3f}"
    return [each for each in lab.journal(machine.name, since, "-u", "haclusterd") if each.get("MESSAGE")]


def _said(lab: SystemdLab, machine: SystemdMachine) -> str:
    return " ".join(str(line["MESSAGE"]) for line in _lines(lab, machine))


# -- units as resources ---------------------------------------------------------------------------------------------

UNIT_FILE = "/usr/local/lib/systemd/system/lab-unit.service"
UNIT = """[Unit]
Description=Unit of the lab

[Service]
Type=notify
NotifyAccess=all
ExecStart=/bin/sh -c 'sleep $(cat /var/tmp/lab-unit-start 2>/dev/null || echo 0); systemd-notify --ready; exec sleep 1d'
ExecStop=/bin/sh -c 'sleep $(cat /var/tmp/lab-unit-stop 2>/dev/null || echo 0)'
Restart=always
"""
"""It becomes ready, and ends, after as many seconds as two files say. By itself systemd would start it again."""
KILLED_MS, STOPPED_BY_HAND_MS = 3_000, 3_000
TARGET = "haclusterd-resources.target"
LONG_S = {"start": 15, "stop": 2}
"""How long the unit takes while the daemon is killed: its start, longer than brain-timeout."""


def _unit_states(lab: SystemdLab) -> dict[str, str]:
    """Return the state of the unit on every machine that is on."""
    machines = [lab.machine(name) for name in lab.machines]
    return {each.name: each.shows("lab-unit", "ActiveState") for each in machines if each.is_on}


def _unit_home(lab: SystemdLab) -> str:
    """Return the one machine on which the unit runs; empty while it runs on none."""
    busy = [name for name, state in _unit_states(lab).items() if state not in {"inactive", "failed", ""}]
    if len(busy) > 1:
        raise NotAsExpectedError(f"lab-unit is not at rest on {busy}")
    return busy[0] if busy and _unit_states(lab)[busy[0]] == "active" else ""


def _home(lab: SystemdLab) -> SystemdMachine:
    """Return the machine on which the unit runs, once nothing is under way: a restart passes through other states."""
    found = ""

    def is_at_rest() -> bool:
        nonlocal found
        found = _unit_home(lab) if lab.is_whole() else ""
        return bool(found)

    lab.until("the unit to run, and nothing to be under way", is_at_rest, 30)
    return lab.machine(found)


def _has_come_back(lab: SystemdLab, what: str, bound_ms: int, pid: str, home: SystemdMachine) -> None:
    began = time.monotonic()
    lab.until(f"the unit to be back after {what}", lambda: home.shows("lab-unit", "MainPID") not in (pid, "0", "") and
              home.shows("lab-unit", "ActiveState") == "active", 30)  # fmt: skip
    took_ms = round((time.monotonic() - began) * 1000)
    print(f"  lab-unit was back {took_ms} ms after {what}", flush=True)
    if took_ms > bound_ms:
        raise NotAsExpectedError(f"the unit came back {took_ms} ms after {what}, not within {bound_ms} ms")


def _with_unit(play: Callable[[SystemdLab], Asked]) -> Callable[[SystemdLab], Asked]:
    """Play with a unit that is a resource, and take it away again."""

    def whole(lab: SystemdLab) -> Asked:
        for name in lab.machines:
            lab.machine(name).run("mkdir", "-p", UNIT_FILE.rpartition("/")[0])
            lab.machine(name).run("tee", UNIT_FILE, stdin=UNIT)
            lab.machine(name).shell("rm -f /var/tmp/lab-unit-*; systemctl daemon-reload")
        first = lab.machine(next(iter(lab.machines)))
        first.run(
            "crm", "configure", "primitive", "unit", "systemd:lab-unit", "op", "start", "timeout=20s", "op", "stop",
            "timeout=20s", "op", "monitor", "interval=10s", "timeout=20s",
        )  # fmt: skip
        lab.until("the unit to run", lambda: _unit_home(lab), 30)
        try:
            return play(lab)
        finally:
            lab.until("all machines to be there", lambda: lab.online() == set(lab.machines), JOIN_S)
            first.run("crm", "resource", "stop", "unit", is_checked=False)
            lab.until("the unit to stop", lambda: not _unit_home(lab), 60)
            first.run("crm", "configure", "delete", "unit", is_checked=False)
            for name in lab.machines:
                _has_no_drop_in(lab, lab.machine(name))
                lab.machine(name).shell(f"rm -f /var/tmp/lab-unit-* {UNIT_FILE}; systemctl daemon-reload")

    return whole


def _has_no_drop_in(lab: SystemdLab, machine: SystemdMachine) -> None:
    """What died is started again without a reload, so its drop-in goes some seconds after its stop."""
    look = "ls -d /run/systemd/system/lab-unit.service.d"
    lab.until(f"{machine.name} to have no drop-in any more", lambda: not machine.shell(look, is_checked=False), 15)


def unit_resource(lab: SystemdLab) -> Asked:
    """Kill it, stop it by hand, kill the daemon while it starts and while it stops, mask it."""
    home = _home(lab)
    if home.shows("lab-unit", "Restart") != "no" or TARGET not in home.shows("lab-unit", "Before"):
        raise NotAsExpectedError("the drop-in is not in force")
    pid = home.shows("lab-unit", "MainPID")
    home.shell(f"kill -9 {pid}")
    _has_come_back(lab, "a kill", KILLED_MS, pid, home)
    pid = home.shows("lab-unit", "MainPID")
    home.shell("systemctl stop lab-unit")
    _has_come_back(lab, "a stop by hand", STOPPED_BY_HAND_MS, pid, home)
    for what, file, signs in (("start", "lab-unit-start", "activating"), ("stop", "lab-unit-stop", "deactivating")):
        _kill_the_daemon_while(lab, what, file, signs)
    home = _home(lab)
    home.shell("systemctl mask lab-unit; systemctl stop lab-unit")
    lab.until("the unit to run on another machine", lambda: _unit_home(lab) not in ("", home.name), 30)
    home.shell("systemctl unmask lab-unit")
    home.run("crm", "resource", "cleanup", "unit")
    return Asked(restarts=2)


def _kill_the_daemon_while(lab: SystemdLab, what: str, file: str, signs: str) -> None:
    home = _home(lab)
    home.shell(f"echo {LONG_S[what]} > /var/tmp/{file}")
    home.shell("crm resource restart unit >/dev/null 2>&1 &")
    lab.until(f"its {what} to be under way", lambda: home.shows("lab-unit", "ActiveState") == signs, 30)
    pid = home.shows("haclusterd", "MainPID")
    home.shell(f"kill -9 {pid}; rm /var/tmp/{file}")
    lab.until("another daemon to be there", lambda: home.shows("haclusterd", "MainPID") not in (pid, "0", "") and
              home.shows("haclusterd", "ActiveState") == "active", 30)  # fmt: skip
    if what == "start" and home.shows("lab-unit", "ActiveState") != signs:
        raise NotAsExpectedError("the daemon was started again only after the start of the unit had ended")
    lab.until("all to be online", lambda: lab.online() == set(lab.machines), 30)
    lab.until(f"the unit to run after a kill of the daemon in its {what}", lambda: _unit_home(lab), 30)


def unit_shutdown(lab: SystemdLab) -> Asked:
    """Stop the daemon, shut the machine down, cut its power: the unit goes in order, and nothing waits for itself."""
    home = _home(lab)
    began = time.monotonic()
    home.shell("systemctl stop haclusterd")
    took_ms = round((time.monotonic() - began) * 1000)
    print(f"  systemctl stop haclusterd took {took_ms} ms", flush=True)
    if took_ms > DRAIN_MS or home.shows("lab-unit", "ActiveState") != "inactive":
        raise NotAsExpectedError(f"the drain took {took_ms} ms and left {_unit_states(lab)}")
    lab.until("the unit to run on another machine", lambda: _unit_home(lab) not in ("", home.name), 30)
    home.shell("systemctl start haclusterd")
    lab.until("the daemon to be back", lambda: lab.online() == set(lab.machines), 30)
    home = _home(lab)
    _restart(lab, home)
    logged = " ".join(str(line.get("MESSAGE")) for line in lab.journal(home.name, "-b", "-1", "-u", "haclusterd"))
    if "operation-failed" in logged.rpartition("node-leaving")[2]:
        raise NotAsExpectedError("something failed in the shutdown")
    lab.until("all to be online", lambda: lab.online() == set(lab.machines), JOIN_S)
    home = _home(lab)
    home.switch_off()
    began = time.monotonic()
    lab.until("the unit to run on another machine", lambda: _unit_home(lab) not in ("", home.name), 30)
    print(f"  lab-unit was back {round((time.monotonic() - began) * 1000)} ms after a power cut", flush=True)
    return Asked(may_be_fenced=(home.name,), outage_ms=RECOVERY_MS)


ROWS = (
    Row("systemd-unit-resource", _with_unit(unit_resource)),
    Row("systemd-unit-shutdown", _with_unit(unit_shutdown)),
    *(Row(f"systemd-{name}", _stopping(command)) for name, command in STOPS.items()),
    Row("systemd-kill-brain", _kill("haclusterd")),
    Row("systemd-kill-pacer", _kill("haclusterd-pacer")),
    Row("systemd-stall-brain", stall),
    Row("systemd-no-pacer", no_pacer),
    Row("systemd-real-time-forbidden", real_time_forbidden),
    Row("systemd-emptied-run", emptied_run),
    Row("systemd-empty-state", empty_state),
    Row("systemd-broken-reload", broken_reload),
    Row("systemd-network-mount", network_mount),
    Row("systemd-upgrade", upgrade),
    Row("systemd-power-cut-in-upgrade", power_cut_in_upgrade),
    Row("systemd-journal", journal_lines),
    Row("systemd-full-disk", full_disk),
)


@dataclass(slots=True)
class Played:
    """What came of one row."""

    row: Row
    problems: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    """Who was fenced though nothing asked for it."""
    loops: list[str] = field(default_factory=list)
    double_holders: list[str] = field(default_factory=list)
    is_whole: bool = True


def play(lab: SystemdLab, row: Row) -> Played:
    """Play a row, wait until the cluster is whole again, and judge."""
    since = lab.began = time.monotonic_ns()
    lab.began_wall_ms = time.time_ns() // 1_000_000
    played, asked = Played(row), Asked(may_be_fenced=tuple(lab.machines), outage_ms=10**9, restarts=10**9)
    before = lab.restarts()
    try:
        asked = row.play(lab)
    except (NotAsExpectedError, NspawnError, AssertionError) as finding:
        played.problems.append(str(finding))
    try:
        lab.until("all to be well again", lab.is_whole, JOIN_S)
    except (NotAsExpectedError, NspawnError) as finding:
        played.problems.append(str(finding))
        played.is_whole = False
    played.unasked = [node for node in lab.fenced(since) if node not in asked.may_be_fenced]
    after = lab.restarts()
    played.loops = [f"{unit} {count - min(count, before.get(unit, 0))} times" for unit, count in after.items()
                    if count - min(count, before.get(unit, 0)) > asked.restarts]  # fmt: skip
    played.double_holders = lab.double_holders(since)
    outage = lab.client.outage(since)
    if outage.longest_ms > asked.outage_ms:
        played.problems.append(f"outage of {outage.longest_ms} ms, more than {asked.outage_ms} ms: {outage.reasons}")
    _show(lab, played, outage.longest_ms, (time.monotonic_ns() - since) / 1e9)
    return played


def _show(lab: SystemdLab, played: Played, outage_ms: int, took_s: float) -> None:
    found = [
        *played.problems,
        *(f"fenced without need: {node}" for node in played.unasked),
        *(f"started again: {each}" for each in played.loops),
        *(f"HELD TWICE: {each}" for each in played.double_holders),
    ]
    word = "NOT AS EXPECTED" if found else "ok"
    fenced = ",".join(lab.fenced(lab.began)) or "none"
    print(f"{played.row.name:32s} {word:4s} outage {outage_ms:6d} ms  {took_s:6.1f} s  fenced: {fenced}", flush=True)
    for each in found:
        print(f"       {each}", flush=True)
    if found:
        for event in lab.events(lab.began_wall_ms)[-30:]:
            print(f"       {int(event['at']) - lab.began_wall_ms:6d} ms  {event['text']}", flush=True)


def result(played: list[Played], broken: int) -> str:
    """Return the last line; `broken`: how often the lab itself failed, and rows that were not played."""
    counts: dict[str, Any] = {
        "rows": len(played),
        "unexpected": sum(1 for each in played if each.problems) + broken,
        "fencings_unasked": sum(len(each.unasked) for each in played),
        "restart_loops": sum(len(each.loops) for each in played),
        "double_holders": sum(len(each.double_holders) for each in played),
    }
    return "RESULT " + " ".join(f"{name}={value}" for name, value in counts.items())


def is_good(played: list[Played]) -> bool:
    return all(not (each.problems or each.unasked or each.loops or each.double_holders) for each in played)
