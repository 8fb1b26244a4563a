"""`make tour`: a newcomer's first hour, played on fresh machines by the words of the documents, and written down.

What is typed here is what a person types; what comes back goes into docs/tour.md as it came. Only tokens are cut short.
A step that does not end as it should ends the tour with an error, and nothing is written.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.lab.lab import REPOSITORY, obstacle
from tests.lab.machine import Machine, sweep_groups
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.power import PowerSwitch
from tests.lab.switch import Switch, address
from tests.lab.tour_pages import HEAD, Page

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COMMAND_TIMEOUT_S = 300
WAIT_S_MAX = 90.0
POLL_S = 0.3
TOKEN = re.compile(r"hacl1-[A-Za-z0-9_-]+")
START = (
    "setsid haclusterd-pacer > haclusterd-pacer.log 2>&1 < /dev/null &",
    "setsid haclusterd > haclusterd.log 2>&1 < /dev/null &",
)


class Tour:
    """Seven machines, a switch, a power switch; and the page on which it is written down."""

    def __init__(self, directory: Path) -> None:
        self.page = Page()
        self._closers: list[Callable[[], None]] = []
        self.switch = Switch()
        self._closers.append(self.switch.close)
        self.shared = directory / "opt"
        self.tools = directory / "bin"
        for each in (self.shared, self.tools):
            each.mkdir(parents=True)
        self.machines: dict[str, Machine] = {}
        for index in range(1, 8):
            machine = Machine(f"n{index}", index, directory / f"n{index}", self.switch)
            self._furnish(machine)
            self.machines[machine.name] = machine
            self._closers.append(machine.close)
        self.power = PowerSwitch(directory / "power", self.machines, lambda what, node: None)
        self._closers.append(self.power.close)
        self.socket = directory / "power"

    def _furnish(self, machine: Machine) -> None:
        """Give a machine an /etc, /srv and /var/lib of its own; what is installed once is installed on all of them."""
        home = machine.home
        for name in ("srv", "lib", "etc", "work"):
            (home / name).mkdir()
        machine.mounts += [
            ("overlay", "/etc", "overlay", f"lowerdir=/etc,upperdir={home / 'etc'},workdir={home / 'work'}"),
            (str(home / "lib"), "/var/lib", "", ""),
            (str(home / "srv"), "/srv", "", ""),
            (str(self.shared), "/opt", "", ""),
            (str(self.tools), "/usr/local/bin", "", ""),
        ]

    def close(self) -> None:
        for close in reversed(self._closers):
            try:
                close()
            except (OSError, LabError) as error:
                print(f"lab: {error}", file=sys.stderr)
        sweep_groups()

    # -- typing -----------------------------------------------------------------------------------------------------

    def run(self, name: str, command: str, typed: str = "") -> tuple[int, str]:
        """Type a command on a machine, and what it asks for; return its exit status and what it printed, all of it."""
        namespaces = self.machines[name].namespaces
        assert namespaces is not None
        done = subprocess.run(
            ["nsenter", "-t", str(namespaces.init), "-m", "-u", "-i", "-n", "-p", "--", "sh", "-c",
             f"cd /srv; {command}"],
            env={**ENVIRONMENT, "PATH": PATH}, input=typed, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def type(self, name: str, command: str, *, status: int = 0, shown: str = "", typed: str = "") -> str:
        """Type a command that must end so, and write it down with what it printed (`shown`: as this, if too long).

        `typed`: what it asks for, which is not written down.
        """
        found, printed = self.run(name, command, typed)
        print(f"{name}# {command}\n{printed}", flush=True)
        if found != status:
            raise LabError(f"{name}# {command}: ended with {found}, not {status}: {printed}")
        self.page.typed(name, TOKEN.sub("hacl1-...", command), TOKEN.sub("hacl1-...", shown or printed), status)
        return printed

    def start(self, name: str) -> None:
        """Start the daemons by hand: no systemd runs on these machines."""
        for command in START:
            self.run(name, command)
        self.page.typed(name, "\n".join(START), "", 0)
        self.until(f"{name} to answer", lambda: self.run(name, "crm -o json status")[0] == 0)

    def asked(self, name: str, command: str) -> Any:
        status, printed = self.run(name, f"crm -o json {command} 2>/dev/null")
        return json.loads(printed) if status == 0 else {}

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"waited {WAIT_S_MAX:g} s in vain for {what}")
            time.sleep(POLL_S)

    def voters(self, name: str) -> set[str]:
        listed = self.asked(name, "cluster members").get("members", ())
        return {each["name"] for each in listed if each["is_voter"] and each["state"] == "online"}

    def where(self, name: str, resource: str) -> list[str]:
        found = self.asked(name, f"resource status {resource}").get("resources", ())
        return [item["node"] for each in found for item in each["instances"] if item["state"] == "started"]

    def is_idle(self, name: str) -> bool:
        status = self.asked(name, "status")
        return bool(status) and not status["orders"] and status["transition"] is None and status["dc"] is not None

    # -- the hour ---------------------------------------------------------------------------------------------------

    def play(self) -> None:
        self._install()
        self._begin()
        self._grow()
        self._protect()
        self._lose()
        self._replace()
        self._look_after()
        self._restore()

    def _install(self) -> None:
        self.page.heading("Install", "install")
        self._fetch()
        self.machines["n1"].switch_on()
        self.type("n1", "python3 -m venv /opt/haclusterd")
        self.type("n1", "/opt/haclusterd/bin/pip install --quiet --no-index --find-links /opt/wheels haclusterd")
        programs = " ".join(f"/opt/haclusterd/bin/{name}" for name in ("crm", "haclusterd", "haclusterd-pacer"))
        self.type("n1", f"ln -s {programs} /usr/local/bin/")
        self.type("n1", "crm --version")

    def _fetch(self) -> None:
        """Get the wheels on a machine that reaches an index, as for machines that do not."""
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(self.shared / "wheels")]
        done = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"the wheels cannot be made: {done.stderr[-500:]}")

    def _begin(self) -> None:
        self.page.heading("Begin with one machine", "begin")
        self.type("n1", "crm cluster init -n shop --interface eth0")
        self.page.text("start")
        self.start("n1")
        self.until("n1 to lead", lambda: self.asked("n1", "status").get("dc") == "n1")
        self.type("n1", "crm status")

    def join(self, name: str, by: str, words: str = "") -> None:
        """Invite a machine at one node and let it join; return when it votes."""
        self.machines[name].switch_on()
        printed = self.type(by, f"crm cluster invite{words}")
        found = TOKEN.search(printed)
        assert found is not None
        self.type(name, "crm cluster join", typed=found.group())
        self.start(name)
        self.until(f"{name} to vote", lambda: name in self.voters(by))

    def _grow(self) -> None:
        self.page.heading("Let two more in", "grow")
        self.join("n2", "n1")
        self.page.text("again")
        self.join("n3", "n1")
        self.type("n1", "crm cluster members")
        self.page.heading("A fence device, and a service", "protect")

    def _protect(self) -> None:
        names = " ".join(self.machines)
        socket = "/run/power"
        for machine in self.machines.values():
            if machine.is_on:
                self.run(machine.name, f"ln -sf {self.socket} {socket}")
        device = f'power stonith:fence_lab params socket={socket} pcmk_host_list="{names}"'
        self.type("n1", f"crm configure primitive {device}")
        self.type("n1", "crm configure primitive web ocf:haclusterd:http-service params "
                        'command="python3 -m http.server 8080" ready_url=http://127.0.0.1:8080/ '
                        "op monitor interval=5s timeout=20s")  # fmt: skip
        self.until("web to run", lambda: bool(self.where("n1", "web")) and self.is_idle("n1"))
        self.type("n2", "crm status")
        self.page.heading("From three to five", "five")
        for name in ("n4", "n5"):
            self.join(name, "n1")
            self.run(name, f"ln -sf {self.socket} {socket}")
        self.type("n4", "crm cluster members")

    def _lose(self) -> None:
        self.page.heading("Lose one", "lose")
        self.until("nothing in flight", lambda: self.is_idle("n1"))
        if self.where("n1", "web") != ["n3"]:
            self.type("n1", "crm resource move web n3")
        self.until("web to rest", lambda: self.where("n1", "web") == ["n3"] and self.is_idle("n1"))
        self.page.text("cord")
        self.power.reboots = False
        self.machines["n3"].switch_off()
        self.until("web to move", lambda: self.where("n1", "web") not in ([], ["n3"]) and self.is_idle("n1"))
        self.type("n1", "crm history events --node n3 --limit 6")
        self.type("n1", "crm status")

    def _replace(self) -> None:
        self.page.heading("Replace it", "replace")
        self.type("n1", 'crm cluster remove n3 --reason "its board is dead"')
        self.join("n6", "n1", " n6")
        self.run("n6", f"ln -sf {self.socket} /run/power")
        self.type("n1", "crm cluster invite n3", status=2)
        self.type("n1", "crm cluster members")

    def _look_after(self) -> None:
        self.page.heading("Look after it", "look-after")
        self.type("n1", "crm cluster certificates renew n2")
        self.type("n1", "crm cluster certificates")
        second = f"{address(4, 1)}:7400"
        self.type("n1", f"crm cluster address n4 {address(4, 0)}:7400,{second}")
        self.type("n1", "crm cluster transfer-leader n2")
        self.page.heading("Back it up, and restore it in another place", "restore")

    def _restore(self) -> None:
        self.type("n1", "crm cluster backup shop.backup")
        self.machines["n7"].switch_on()
        shutil.copy(self.machines["n1"].home / "srv" / "shop.backup", self.machines["n7"].home / "srv")
        own = f"n7={address(7, 0)}:7400"
        self.page.text("copied")
        self.type("n7", f"crm cluster restore shop.backup --into ./shop2 --node {own}", status=1)
        self.page.text("dead")
        for name in ("n1", "n2", "n4", "n5", "n6"):
            self.machines[name].switch_off()
        self.type("n7", f"crm cluster restore shop.backup --into ./shop2 --node {own}")
        self.type("n7", "cp -a shop2/n7 /etc/haclusterd && haclusterd --initialize")
        self.run("n7", f"ln -sf {self.socket} /run/power")
        self.start("n7")
        self.until("web to run again", lambda: self.where("n7", "web") == ["n7"] and self.is_idle("n7"))
        self.type("n7", "crm status")
        self.type("n7", "crm history config")
        self.page.text("end")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the tour; write the page when it went well."""
    parser = argparse.ArgumentParser(prog="tour", description=__doc__)
    parser.add_argument("--output", type=Path, default=REPOSITORY / "docs" / "tour.md")
    options = parser.parse_args(arguments)
    why = obstacle()
    if why:
        print(f"RESULT skipped=1 reason={why.replace(' ', '-')}")
        return 0
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-tour-"))
    began = time.monotonic()
    tour = Tour(directory)
    try:
        tour.play()
    except (LabError, subprocess.TimeoutExpired) as error:
        print(f"tour: {error}\nlogs: {directory}", file=sys.stderr)
        print(f"RESULT ok=0 commands={tour.page.commands}")
        return 1
    finally:
        tour.close()
    seconds = round(time.monotonic() - began)
    options.output.write_text(HEAD + tour.page.render())
    shutil.rmtree(directory, ignore_errors=True)
    print(f"RESULT ok=1 commands={tour.page.commands} seconds={seconds}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
