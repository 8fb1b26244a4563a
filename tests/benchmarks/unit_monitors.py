"""`make bench-monitors UNITS=1`: hundreds of systemd units with frequent monitors on one node, under a real systemd.

    python -m tests.benchmarks.unit_monitors [--count 500] [--interval-s 10] [--seconds 120]

The machines are those of the systemd lab. No agent keeps a record here: a monitor is one question about one unit, and
the bus says when it was asked (`dbus-monitor --profile`). Between two questions about a unit lie its interval, the
answer and the delay. No process may be begun for a monitor: whatever got a process id on that machine meanwhile,
threads too, is counted.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from haclusterd.adapters.agents.systemd_bus import unit_path
from tests.benchmarks.monitors import STARTED_WITHIN_S, Figures, Load, load_of
from tests.lab.nspawn import LabUnavailableError, obstacle
from tests.lab.systemd_lab import SystemdLab
from tests.lab.systemd_machine import SystemdMachine

SKIPPED = 77
PROGRAMS = {"worker": b"planning_worker", "pacer": b"bin/haclusterd-pacer", "daemon": b"bin/haclusterd"}
UNIT_FILE = "/usr/local/lib/systemd/system/many@.service"
UNIT = "[Unit]\nDescription=One of many\n\n[Service]\nExecStart=/bin/sleep 1d\n"
FILTER = "type='method_call',interface='org.freedesktop.DBus.Properties',member='Get'"
PROCESSES_SHARE = 0.02
"""Processes that may have begun while so many monitors ran: the machine has other work, and so has who measures."""


def configuration(count: int, interval_s: int, home: str) -> str:
    """Return crm text of so many units, all at home on one node."""
    lines = []
    for number in range(count):
        lines += [
            f"primitive many{number} systemd:many@{number} op monitor interval={interval_s}s timeout=20s "
            "op start timeout=100s op stop timeout=100s",
            f"location many{number}-home many{number} inf: {home}",
        ]
    return "\n".join(lines) + "\n"


def delays_ms(profile: str, count: int, interval_ms: int) -> list[int]:
    """Return how much later than its interval each unit was asked for after the time before, in order of size.

    `profile` has a line for each message: kind, time in s since the epoch, serial, sender, receiver, path, ...
    """
    paths = {unit_path(f"many@{number}.service") for number in range(count)}
    asked: dict[str, list[float]] = defaultdict(list)
    for line in profile.splitlines():
        words = line.split("\t")
        if words[0] == "mc" and len(words) > 5 and words[5] in paths:
            asked[words[5]].append(float(words[1]))
    gaps = (later - earlier for times in asked.values() for earlier, later in pairwise(times))
    return sorted(round(gap * 1000) - interval_ms for gap in gaps)


def _load(machine: SystemdMachine) -> Load:
    proc = Path(f"/proc/{machine.init}/root/proc")
    pids = [int(each.name) for each in proc.iterdir() if each.name.isdecimal()]
    return load_of(pids, proc, PROGRAMS)


def _last_pid(machine: SystemdMachine) -> int:
    return int(machine.run("cat", "/proc/sys/kernel/ns_last_pid"))


def _running(lab: SystemdLab) -> int:
    return sum(1 for each in lab.status()["resources"] if each["id"].startswith("many") and each["instances"])


def _start(lab: SystemdLab, machine: SystemdMachine, figures: Figures) -> None:
    """Let nothing run but the units, and wait until each has had a monitor."""
    for number in (1, 2, 3):
        machine.run("crm", "resource", "stop", f"tick{number}")
    machine.run("mkdir", "-p", UNIT_FILE.rpartition("/")[0])
    machine.run("tee", UNIT_FILE, stdin=UNIT)
    # They run before they are resources: their starts are not what is measured.
    machine.shell(f"systemctl daemon-reload; systemctl start $(seq -f many@%g 0 {figures.count - 1})")
    began = time.monotonic()
    machine.run("crm", "configure", "load", "update", "-", stdin=configuration(
        figures.count, figures.interval_s, machine.name))  # fmt: skip
    lab.until("all units to be known to run", lambda: _running(lab) >= figures.count, STARTED_WITHIN_S)
    figures.started_s = time.monotonic() - began
    print(f"{figures.count} units run after {figures.started_s:.1f} s", flush=True)
    lab.until("all to be well", lab.is_whole, STARTED_WITHIN_S)
    time.sleep(figures.interval_s)


def _measure(lab: SystemdLab, machine: SystemdMachine, figures: Figures, seconds: float) -> int:
    """Ask nothing for a while, then read what was asked on the bus; return how many processes began meanwhile."""
    log = lab.directory / "bus"
    assert machine.container is not None
    with log.open("w") as out:
        watcher = subprocess.Popen(
            machine.container.enter("dbus-monitor", "--system", "--profile", FILTER), stdout=out, stderr=out
        )
    try:
        time.sleep(1)
        before, begun, began = _load(machine), _last_pid(machine), time.monotonic()
        time.sleep(seconds)
        figures.used(before, _load(machine), time.monotonic() - began)
        processes = _last_pid(machine) - begun - 1  # The second question is a process itself.
    finally:
        watcher.terminate()
        watcher.wait()
    figures.delays_ms = delays_ms(log.read_text(), figures.count, figures.interval_s * 1000)
    figures.is_dc = lab.dc() == machine.name
    return processes


def main() -> int:
    """Boot, load, wait, measure, print; 1 when a figure is above its bound, 77 where there is no systemd to be had."""
    parser = argparse.ArgumentParser(prog="bench-monitors UNITS=1", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--interval-s", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    why = obstacle() or ("" if shutil.which("dbus-monitor") else "missing: dbus-monitor (Debian: apt-get install dbus)")
    if why:
        print(f"RESULT skipped=1 reason={'-'.join(why.split())}")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # So that nothing is left running.
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-units-"))
    figures = Figures(options.count, options.interval_s)
    try:
        lab = SystemdLab(directory / "lab")
        try:
            lab.start()
            machine = lab.machine("n1")
            _start(lab, machine, figures)
            processes = _measure(lab, machine, figures, options.seconds)
        finally:
            lab.close()
    except LabUnavailableError as error:
        print(f"RESULT skipped=1 reason={'-'.join(str(error).split())}")
        return SKIPPED
    shutil.rmtree(directory, ignore_errors=True)
    print(f"{figures.line()} processes={processes}")
    return 0 if figures.is_good and processes <= PROCESSES_SHARE * len(figures.delays_ms) else 1


if __name__ == "__main__":
    sys.exit(main())
