"""A whole cluster in the lab: machines with real daemons and stock agents, a client, a power switch, witnesses.

The lab only ever asks the daemons through their control sockets, as a person does.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from haclusterd.adapters.control_client import ControlClient
from haclusterd.entry_points.cluster_setup import NodePlaces, make_bundles
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.lab.machine import Machine, missing_tools, sweep_freezer
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.power import PowerSwitch
from tests.lab.switch import RINGS, SERVICE_ADDRESS, Switch, address
from tests.lab.witnesses import SERVICE_PORT, Addresses, Beats, OutsideClient

REPOSITORY = Path(__file__).parents[2]
STOCK_ADDRESS_AGENT = Path("/usr/lib/ocf/resource.d/heartbeat/IPaddr2")
RAFT_PORT = 7400
POLL_S = 0.05
UNREACHABLE = 69


class Lab:
    """`start`, then faults; `close` whatever happened."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        self.directory = directory
        self.began = time.monotonic_ns()
        self.notes: list[tuple[int, str, str]] = []
        self._closers: list[Callable[[], None]] = []
        self.switch = Switch()
        self._closers.append(self.switch.close)
        self.machines: dict[str, Machine] = {}
        for index in range(1, size + 1):
            name = f"n{index}"
            machine = Machine(name, index, directory / name, self.switch)
            self.machines[name] = machine
            self._closers.append(machine.close)
        self.power = PowerSwitch(directory / "power", self.machines, self.note)
        self._closers.append(self.power.close)
        self.beats = Beats(directory / "beats")
        self._closers.append(self.beats.close)
        self.addresses = Addresses()
        self._is_closed = threading.Event()
        self._written = 0
        self._set_up()

    def _set_up(self) -> None:
        members = [
            Member(NodeName(each.name), tuple((address(each.index, ring), RAFT_PORT) for ring in RINGS))
            for each in self.machines.values()
        ]
        places = {
            NodeName(each.name): NodePlaces(each.state / "haclusterd", Path("/run/haclusterd"), each.boot_id)
            for each in self.machines.values()
        }
        bundles = make_bundles("lab", members, self.directory / "setup", places=places)
        for machine in self.machines.values():
            configuration = str(bundles[NodeName(machine.name)] / CONFIGURATION_FILE)
            machine.services = [
                self._service(machine, "pacer", "haclusterd.entry_points.pacer"),
                self._service(machine, "brain", "haclusterd.entry_points.haclusterd", "--configuration", configuration),
            ]

    @staticmethod
    def _service(machine: Machine, name: str, module: str, *arguments: str) -> dict[str, object]:
        environment = {
            **ENVIRONMENT,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
            "OCF_ROOT": "/usr/lib/ocf",
        }
        return {
            "name": name, "arguments": [sys.executable, "-m", module, *arguments],
            "environment": environment, "log": str(machine.logs / f"{name}.log"),
        }  # fmt: skip

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Switch everything on for the first time, form the cluster, and let it run the service."""
        for machine in self.machines.values():
            self._initialize(machine)
        threading.Thread(target=self._watch_boots, daemon=True).start()
        for machine in self.machines.values():
            machine.switch_on()
        self.until("all nodes to be online", lambda: self.online() == set(self.machines), 60)
        self._configure()
        self.client = OutsideClient(self.switch, self.machines)
        self._closers.append(self.client.close)
        self.until("the service to answer", self.is_whole, 60)

    def _initialize(self, machine: Machine) -> None:
        """Prepare the state directory, which can be seen from inside only."""
        services, machine.services = machine.services, []
        machine.switch_on()
        arguments = [str(word) for word in services[1]["arguments"]]  # type: ignore[attr-defined]
        assert machine.namespaces is not None
        machine.namespaces.run("env", f"PYTHONPATH={REPOSITORY}", *arguments, "--initialize")
        machine.switch_off()
        machine.services = services

    def _watch_boots(self) -> None:
        seen: dict[str, object] = {}
        while not self._is_closed.is_set():
            for machine in self.machines.values():
                boot = machine.namespaces
                if boot is not None and seen.get(machine.name) is not boot:
                    seen[machine.name] = boot
                    self.addresses.watch(machine)
            time.sleep(0.02)

    def _configure(self) -> None:
        names = " ".join(self.machines)
        lines = (
            f'primitive power stonith:fence_lab params socket={self.directory / "power"} pcmk_host_list="{names}" '
            "op monitor interval=60s timeout=10s",
            f"primitive vip ocf:heartbeat:IPaddr2 params ip={SERVICE_ADDRESS} cidr_netmask=24 nic=eth0 "
            "op monitor interval=2s timeout=20s op start timeout=20s op stop timeout=20s",
            "primitive web ocf:haclusterd:exec params command=/usr/local/sbin/lab-service "
            f'args="{SERVICE_PORT} {self.beats.path}" ready_cmd="true" '
            "op monitor interval=2s timeout=20s op start timeout=20s op stop timeout=20s",
            "group site vip web",
            "rsc_defaults resource-stickiness=100",
        )
        answer = self.answer("configure.script", text="\n".join(lines) + "\n", source="lab")
        if answer is None or answer.exit:
            raise LabError(f"the configuration was refused: {answer and answer.reports}")

    def write(self) -> None:
        """Let the cluster commit something that every node must put on its disk."""
        self._written += 1
        text = f"property cluster-recheck-interval={900 + self._written}s\n"
        self.answer("configure.script", text=text, source="lab")

    def close(self) -> None:
        self._is_closed.set()
        for close in reversed(self._closers):
            try:
                close()
            except (OSError, LabError) as error:
                print(f"lab: {error}", file=sys.stderr)
        sweep_freezer()

    def note(self, what: str, node: str) -> None:
        self.notes.append((time.monotonic_ns(), what, node))

    def fenced(self, since: int, what: str = "fence-done") -> list[str]:
        return [node for at, said, node in self.notes if at >= since and said == what]

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, name: str, verb: str, **arguments: Any) -> Response | None:
        """Carry out a verb on a node's daemon; None when there is none."""
        machine = self.machines[name]
        namespaces = machine.namespaces
        if namespaces is None or machine.is_stopped:
            return None
        client = ControlClient(f"/proc/{namespaces.init}/root/run/haclusterd/control.sock")
        try:
            answer = client.call(Request("1", verb, arguments, Options(wait_ms=None)), _quiet)
        finally:
            client.close()
        return None if answer.exit == UNREACHABLE else answer

    def answer(self, verb: str, **arguments: Any) -> Response | None:
        """Ask any node."""
        answers = (self.ask(name, verb, **arguments) for name in self.machines)
        return next((each for each in answers if each is not None), None)

    def status(self, node: str | None = None) -> Mapping[str, Any]:
        answer = self.ask(node, "status") if node else self.answer("status")
        if answer is None or not isinstance(answer.data, Mapping):
            return {"dc": None, "nodes": [], "orders": [], "transition": None, "headlines": [], "quorum": {}}
        return answer.data

    def online(self) -> set[str]:
        return {str(node["name"]) for node in self.status()["nodes"] if node["state"] == "online"}

    def dc(self) -> str:
        return str(self.status()["dc"])

    def holder(self) -> str:
        self.until("the service to answer", self.client.is_served, 30)
        holder = self.client.holder()
        return holder if holder is not None else self.holder()

    def others(self, *names: str) -> list[str]:
        return [name for name in self.machines if name not in names]

    def is_whole(self) -> bool:
        """Tell whether every node is on and online, all agree, nothing is in flight, and the client is served."""
        if not all(machine.is_on for machine in self.machines.values()) or not self.client.is_served():
            return False
        found = [self.status(name) for name in self.machines]
        return all(self._is_settled(each) for each in found)

    def _is_settled(self, status: Mapping[str, Any]) -> bool:
        states = {node["name"]: node["state"] for node in status["nodes"]}
        return (
            status["dc"] is not None
            and not status["orders"]
            and status["transition"] is None
            and states == dict.fromkeys(self.machines, "online")
            and not (status.get("fencing") or {}).get("open")
        )

    def digests(self) -> dict[str, str]:
        """Return each node's whole state as text, by node."""
        found = {}
        for name in self.machines:
            answer = self.ask(name, "cluster.export")
            found[name] = "" if answer is None else json.dumps(answer.data, sort_keys=True)
        return found

    def events(self, since_wall_ms: int) -> list[Mapping[str, Any]]:
        answer = self.answer("history.events", limit=500)
        data = answer.data if answer is not None and isinstance(answer.data, Mapping) else {}
        events: Any = data.get("events", ())
        return [event for event in events if int(event["at"]) >= since_wall_ms]

    # -- waiting ----------------------------------------------------------------------------------------------------

    def until(self, what: str, condition: Callable[[], bool], patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > deadline:
                raise NotAsExpected(f"waited {patience_s:g} s in vain for {what}")
            time.sleep(POLL_S)

    def hold(self, what: str, condition: Callable[[], bool], for_s: float) -> None:
        """Demand that something stays so."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            if not condition():
                raise NotAsExpected(f"not any more: {what}")
            time.sleep(POLL_S)


class NotAsExpected(Exception):  # noqa: N818 (a finding, not an error of the lab)
    """The cluster did something else than its verdict says."""


def _quiet(progress: Progress) -> None:
    """Nobody watches."""


def obstacle() -> str:
    """Say why the lab cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return "it needs root"
    missing = missing_tools()
    if missing:
        return f"missing: {', '.join(missing)} (Debian: apt-get install iproute2 nftables ethtool e2fsprogs)"
    if not STOCK_ADDRESS_AGENT.exists():
        return f"missing: {STOCK_ADDRESS_AGENT} (Debian: apt-get install resource-agents)"
    return ""
