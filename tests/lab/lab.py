"""A whole cluster in the lab: our daemons and stock agents on the machines of a site.

The lab only ever asks the daemons through their control sockets, as a person does.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from haclusterd.adapters.control.client import ControlClient
from haclusterd.entry_points.cluster_setup import NodePlaces, make_bundles
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.model.watchdog import WatchdogSettings
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.lab.machine import FREEZER, Machine, missing_tools
from tests.lab.namespaces import ENVIRONMENT, LabError
from tests.lab.site import Site
from tests.lab.switch import RINGS, SERVICE_ADDRESS, address
from tests.lab.witnesses import SERVICE_PORT

REPOSITORY = Path(__file__).parents[2]
STOCK_ADDRESS_AGENT = Path("/usr/lib/ocf/resource.d/heartbeat/IPaddr2")
RAFT_PORT = 7400
UNREACHABLE = 69


class Lab(Site):
    """Nodes of haclusterd. `monitors` is the interval of the resources' monitors; `settings` are lines of crm.

    With `watchdog_ms` each machine has a watchdog device with this T_wd, and no power switch fences it.
    The service runs under the shipped `exec` agent, or, to be measured beside another manager, under `agent`.
    """

    def __init__(self, directory: Path, size: int = 3, *, monitors: str = "2s", settings: tuple[str, ...] = (),
                 agent: str = "", watchdog_ms: int = 0) -> None:  # fmt: skip
        super().__init__(directory, size)
        self.sockets = directory
        """Where the machines see the sockets of power switch and witnesses."""
        self.monitors, self.settings, self.agent, self.watchdog_ms = monitors, settings, agent, watchdog_ms
        self._set_up()

    def _set_up(self) -> None:
        members = [
            Member(NodeName(each.name), tuple((address(each.index, ring), RAFT_PORT) for ring in RINGS))
            for each in self.machines.values()
        ]
        places = {
            NodeName(each.name): NodePlaces(
                each.state / "haclusterd",
                Path("/run/haclusterd"),
                each.boot_id,
                is_development=bool(self.watchdog_ms),
                watchdog=WatchdogSettings(str(each.watchdog), self.watchdog_ms) if self.watchdog_ms else None,
            )
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

    def prepare(self) -> None:
        for machine in self.machines.values():
            self._initialize(machine)
            machine.watchdog_ms = self.watchdog_ms

    def has_formed(self) -> bool:
        return self.online() == set(self.machines)

    def _initialize(self, machine: Machine) -> None:
        """Prepare the state directory, which can be seen from inside only."""
        services, machine.services = machine.services, []
        machine.switch_on()
        arguments = [str(word) for word in services[1]["arguments"]]
        assert machine.namespaces is not None
        machine.namespaces.run("env", f"PYTHONPATH={REPOSITORY}", *arguments, "--initialize")
        machine.switch_off()
        machine.services = services

    def configure(self) -> None:
        names = " ".join(self.machines)
        every = f"op monitor interval={self.monitors} timeout=20s op start timeout=20s op stop timeout=20s"
        web = (
            f"{self.agent} params port={SERVICE_PORT} witness={self.sockets / 'beats'}"
            if self.agent
            else "ocf:haclusterd:exec params command=/usr/local/sbin/lab-service "
            f'args="{SERVICE_PORT} {self.sockets / "beats"}" ready_cmd="true"'
        )
        lines = (
            f'primitive power stonith:fence_lab params socket={self.sockets / "power"} pcmk_host_list="{names}" '
            "op monitor interval=60s timeout=10s",
            f"primitive vip ocf:heartbeat:IPaddr2 params ip={SERVICE_ADDRESS} cidr_netmask=24 nic=eth0 {every}",
            f"primitive web {web} {every}",
            "group site vip web",
            "rsc_defaults resource-stickiness=100",
            "property fencing-loop-limit=0",  # One fault follows another here: that is no loop.
            *self.settings,
        )
        if self.watchdog_ms:
            lines = (*lines[1:], "property watchdog-fencing=true")
        self.script(*lines)

    def script(self, *lines: str) -> None:
        """Change the configuration, in the language of crm."""
        answer = self.answer("configure.script", text="\n".join(lines) + "\n", source="lab")
        if answer is None or answer.exit:
            raise LabError(f"the configuration was refused: {answer and answer.reports}")

    def takes(self, *lines: str) -> bool:
        """Try to change the configuration; tell whether it did. The node that is asked may end at that moment."""
        answer = self.answer("configure.script", text="\n".join(lines) + "\n", source="lab")
        return answer is not None and not answer.exit

    def write(self) -> None:
        """Let the cluster commit something that every node must put on its disk."""
        self._written += 1
        text = f"property cluster-recheck-interval={900 + self._written}s\n"
        self.answer("configure.script", text=text, source="lab")

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

    def is_whole(self) -> bool:
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

    def unexplained_stops(self) -> list[str]:
        """Say what does not run without a reason in status, while its first screen says that all is well."""
        status = self.status()
        is_shown = any(headline["gravity"] > 0 for headline in status["headlines"])
        found = []
        for entry in status["resources"]:
            for each in entry["members"] or [entry]:
                is_started = any(instance["state"] == "started" for instance in each["instances"])
                if not is_started and not each["why_stopped"] and not is_shown:
                    found.append(f"{each['id']} does not run, and status does not say why")
        return found

    def events(self, since_wall_ms: int) -> list[Mapping[str, Any]]:
        answer = self.answer("history.events", limit=500)
        data = answer.data if answer is not None and isinstance(answer.data, Mapping) else {}
        events: Any = data.get("events", ())
        return [event for event in events if int(event["at"]) >= since_wall_ms]


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
    if not FREEZER.parent.is_dir():
        return f"missing: {FREEZER.parent} (cgroup version 1)"
    return ""
