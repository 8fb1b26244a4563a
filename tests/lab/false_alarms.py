"""No false alarms (docs/design/safety.md §9): a cluster at defaults under everything that is no fault.

CPU hogs, memory pressure, fsync load, 500 monitors, 5 % loss, and clocks that are set an hour on and back. Nobody may
be lost or fenced, and there may be one election. The service's outages are shown, not judged.
"""

import random
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

from haclusterd.model.records import dataclass, field
from tests.lab.lab import Lab
from tests.lab.machine import Machine
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.site import NotAsExpectedError

NAME = "false-alarm"
MONITORS = 500
INTERVAL = "30s"
"""Shorter, and the monitors alone take more than what the hogs leave to them of two cores."""
LOSS_PERCENT = 5
MEMORY_MIB = 384
CPU_HOGS = 2
"""On each machine."""
STEP_S, STEP_EVERY_S = 3600, 60.0
SAY_EVERY_S = 60.0
ELECTIONS_MAX = 1
HERE = Path(__file__).parent


@dataclass(slots=True)
class _Clocks:
    """The machines' own wall clocks; without a C compiler they have none."""

    library: Path | None
    places: dict[str, Path] = field(default_factory=dict)
    steps: int = 0

    def give(self, machine: Machine) -> None:
        if self.library is None:
            return
        place = machine.home / "clock"
        place.write_bytes(struct.pack("=q", 0))
        self.places[machine.name] = place
        for service in machine.services:
            environment = service["environment"]
            assert isinstance(environment, dict)
            service["environment"] = {
                **environment, "LD_PRELOAD": str(self.library), "LAB_CLOCK_OFFSET": str(place)
            }  # fmt: skip

    def step(self, chance: random.Random) -> None:
        if self.places:
            place = self.places[chance.choice(sorted(self.places))]
            with open(place, "r+b") as file:
                file.write(struct.pack("=q", chance.choice((-STEP_S, 0, STEP_S))))
            self.steps += 1


def watch(directory: Path, minutes: float) -> bool:
    """Play; print the result in one line; return whether there was no false alarm."""
    settings = [f"primitive idle{number} ocf:lab:idle op monitor interval={INTERVAL} timeout=60s op start timeout=60s"
                for number in range(MONITORS)]  # fmt: skip
    lab = Lab(directory / "cluster", settings=tuple(settings))
    lab.wait_s_max = 300.0
    clocks = _Clocks(_compiled(directory))
    begin = directory / "begin"
    is_whole = False
    try:
        for machine in lab.machines.values():
            clocks.give(machine)
            machine.services += _hogs(machine, begin)
        print(f"3 nodes formed in {lab.start():.1f} s, {MONITORS} monitors run", flush=True)
        since = time.monotonic_ns()
        first = _elected(lab)
        _burden(lab, begin)
        _wait(lab, clocks, minutes * 60)
        begin.unlink()
        elections = len(_elected(lab) - first)
        outage = lab.client.outage(since)
        is_whole = True
    except (LabError, NotAsExpectedError) as error:
        print(f"lab: {error}", flush=True)
        return False
    finally:
        lab.close()
        if not is_whole:
            print("RESULT interrupted=1", flush=True)
    lost, fenced = _lost(lab), len(lab.fenced(since, "fence-asked"))
    print(f"RESULT minutes={minutes:g} lost={lost} fenced={fenced} elections={elections} clock_steps={clocks.steps} "
          f"outage_ms={outage.total_ms} longest_outage_ms={outage.longest_ms}", flush=True)  # fmt: skip
    return lost == 0 and fenced == 0 and elections <= ELECTIONS_MAX


def _compiled(directory: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        print("no clock is stepped: all machines have the kernel's, and there is no C compiler to give them their own")
        return None
    library = directory / "clock_offset.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "clock_offset.c"), "-ldl"],
                   check=True)  # fmt: skip
    return library


def _hogs(machine: Machine, begin: Path) -> list[dict[str, object]]:
    wanted = [*[("cpu", machine.home)] * CPU_HOGS, ("memory", machine.home), ("fsync", machine.state)]
    return [
        {
            "name": f"hog{number}", "environment": dict(ENVIRONMENT), "log": str(machine.logs / "hogs.log"),
            "arguments": ["/usr/bin/python3", "-I", "-S", str(HERE / "hog.py"), kind, str(begin), str(place)],
        }
        for number, (kind, place) in enumerate(wanted)
    ]  # fmt: skip


def _burden(lab: Lab, begin: Path) -> None:
    for machine in lab.machines.values():
        machine.limit_memory(MEMORY_MIB)
    lab.switch.lose(LOSS_PERCENT)
    begin.touch()


def _wait(lab: Lab, clocks: _Clocks, seconds: float) -> None:
    chance = random.Random(1)
    began = time.monotonic()
    stepped = reported_at = began
    while (now := time.monotonic()) - began < seconds:
        time.sleep(0.5)
        if now - stepped >= STEP_EVERY_S:
            stepped = now
            clocks.step(chance)
        if now - reported_at >= SAY_EVERY_S:
            reported_at = now
            status = lab.status()
            states = " ".join(f"{node['name']}={node['state']}" for node in status["nodes"])
            print(f"{(now - began) / 60:5.1f} min  {states}  term {status['term']}  lost {_lost(lab)}  "
                  f"fenced {len(lab.fenced(0, 'fence-asked'))}  clock steps {clocks.steps}", flush=True)  # fmt: skip


def _lost(lab: Lab) -> int:
    """Count what any daemon's log calls a loss, each once."""
    return len(_events(lab, r" cib\.node-lost index=(\d+) "))


def _elected(lab: Lab) -> set[str]:
    """Return the terms in which any daemon saw a leader."""
    return _events(lab, r" store\.leader term=(\d+) leader=")


def _events(lab: Lab, pattern: str) -> set[str]:
    found: set[str] = set()
    for machine in lab.machines.values():
        found |= set(re.findall(pattern, (machine.logs / "brain.log").read_text(errors="replace")))
    return found
