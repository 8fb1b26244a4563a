"""Real clusters of real daemons for tests: what scenarios are written in."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from haclusterd.agents.process_table import INSTANCE_MARK, NODE_MARK, read_arguments, read_marks
from haclusterd.entry_points.local_cluster import LocalCluster

SYSTEM_AGENTS = "/usr/lib/ocf/resource.d"
WAIT_S_MAX = 40.0
POLL_S = 0.05
OFTEN_S = 0.02
"""Between two looks: each costs the daemons and this process some milliseconds."""


class Scenario:
    """A running cluster with one service `svc` (a process) and a fence device for every node.

    Several tests may share one (`SharedCluster`): events and logs are then those since a test began.
    """

    first_event = 0
    log_starts: Mapping[tuple[str, str], int] = MappingProxyType({})

    def __init__(self, directory: Path, *, host: str = "127.0.0.1", watchdog_ms: int = 0) -> None:
        self.agents = directory / "ocf"
        """Where agents of a test's own are found, as PROVIDER/TYPE, before the system's."""
        self.plugins = directory / "plugins"
        """Where external fence plugins of a test's own are found, and no others."""
        agents = {"OCF_RA_PATH": f"{self.agents}:{SYSTEM_AGENTS}", "STONITH_PLUGIN_PATH": str(self.plugins)}
        self.cluster = LocalCluster(
            directory, host=host, environment={"PYTHONUNBUFFERED": "1", **agents}, watchdog_ms=watchdog_ms
        )
        self.cluster.setup()

    # -- life -------------------------------------------------------------------------------------------------------

    def form(self) -> "Scenario":
        self.cluster.start()
        self.until("all nodes online", lambda: self.online() == set(self.cluster.names))
        return self

    def with_service(self, *more: str) -> "Scenario":
        self.configure(self._service_text(), *more)
        self.until("the service to run", lambda: self.holder() is not None)
        self.settle()
        return self

    def _service_text(self) -> str:
        return "\n".join((
            self.power(),
            "primitive svc ocf:haclusterd:exec params command=sleep args=100000 "
            "op monitor interval=1s timeout=10s op start timeout=20s op stop timeout=20s",
            "rsc_defaults resource-stickiness=100",
        ))  # fmt: skip

    def power(self) -> str:
        """Return the line by which every node is fenced by the switch of local clusters."""
        return (
            f"primitive power stonith:fence_local params nodes_dir={self.cluster.nodes_directory} "
            'pcmk_host_list="n1 n2 n3"'
        )

    def settle(self) -> None:
        self.until("nothing in flight", self.is_idle)

    def begin(self) -> None:
        """Forget what happened before."""
        self.first_event = max((event["index"] for event in self.events()), default=-1) + 1
        self.log_starts = {
            (name, what): len(self._whole_log(name, what)) for name in self.cluster.names for what in ("brain", "pacer")
        }

    def restore(self) -> None:
        """Make of a cluster with its service, whatever a test did to it, what `form` and `with_service` made of it."""
        for name in self.cluster.names:
            self.revive(name)
        self.until("all nodes online", lambda: self.online() == set(self.cluster.names))
        self.dc()
        self.replace(self._service_text())
        for name in self.cluster.names:
            self.must("node.online", node=name)
            for attribute in self.attributes().get(name, ()):
                self.must("node.attribute", node=name, action="delete", name=attribute, lifetime="reboot")
        self.settle()
        self.must("resource.cleanup")
        self.must("fencing.cleanup")
        self.until("the service alone to run, and all to be well", self._is_as_new)

    def _is_as_new(self) -> bool:
        if not self.is_idle() or self.status()["verdict"] != "HEALTHY" or self.holder() is None:
            return False
        return sorted(row["id"] for row in self.must("resource.status")["resources"]) == ["power", "svc"]

    def replace(self, *lines: str) -> None:
        """Let this be the whole configuration; what it does not name is stopped."""
        text = "\n".join(lines) + "\n"
        self.must("configure.load", mode="replace", text=text, source="test", format="crm", force=True)

    def has_majority(self) -> bool:
        alive = [name for name in self.cluster.names if self._is_alive(name)]
        return 2 * len(alive) > len(self.cluster.names)

    def _is_alive(self, name: str) -> bool:
        return self.brain(name).poll() is None and self.pacer(name).poll() is None

    def revive(self, name: str) -> None:
        """Boot a machine whose daemon or pacer has ended, when the others know of it."""
        if self._is_alive(name):
            return
        self.cluster.power_off(name)
        self.until(f"{name} to be known as gone", lambda: self.states()[name] in ("fenced", "left"))
        self.cluster.boot(name)
        self.cluster.start([name])

    def close(self) -> None:
        self.cluster.sweep()

    # -- asking -----------------------------------------------------------------------------------------------------

    def answer(self, verb: str, /, **arguments: Any) -> Any:
        """Ask any node that answers; None while none does."""
        for name in self.cluster.names:
            response = self.cluster.call(name, verb, **arguments)
            if response.exit != 69:
                return response
        return None

    def must(self, verb: str, /, **arguments: Any) -> Any:
        response = self.answer(verb, **arguments)
        assert response is not None
        assert response.exit == 0, response.reports
        return response.data

    def configure(self, *lines: str) -> None:
        self.must("configure.script", text="\n".join(lines) + "\n", source="test")

    def status(self, node: str | None = None) -> Mapping[str, Any]:
        response = self.cluster.call(node, "status") if node else self.answer("status")
        if response is None or not isinstance(response.data, Mapping):
            return {"dc": None, "nodes": [], "orders": [], "transition": None}
        return response.data

    def dc(self) -> str:
        self.until("a DC", lambda: self.status()["dc"] is not None)
        return str(self.status()["dc"])

    def states(self) -> dict[str, str]:
        return {node["name"]: node["state"] for node in self.status()["nodes"]}

    def online(self) -> set[str]:
        return {name for name, state in self.states().items() if state == "online"}

    def attributes(self) -> dict[str, dict[str, str]]:
        """Return the transient attributes of every node; nothing while nobody knows them."""
        response = self.answer("node.attributes", all=True, lifetime="reboot")
        nodes = response.data["nodes"] if response is not None and response.exit == 0 else ()
        return {node["name"]: node["reboot"] for node in nodes}

    def is_idle(self) -> bool:
        """Ask the DC, who alone knows of a transition."""
        dc = self.status()["dc"]
        if dc is None:
            return False
        status = self.status(dc)
        return status["dc"] == dc and not status.get("orders") and status.get("transition") is None

    def events(self, kind: str | None = None) -> list[Mapping[str, Any]]:
        data = self.must("history.events", limit=200)
        found = [event for event in data["events"] if event["index"] >= self.first_event]
        return [event for event in found if kind is None or event["kind"] == kind]

    def holder(self) -> str | None:
        """Return the node whose service process lives, as the operating system knows it."""
        return min((node for node, _ in self._service_processes(None)), default=None)

    def service_pids(self, node: str) -> list[int]:
        return [pid for _, pid in self._service_processes(node)]

    def _service_processes(self, node: str | None) -> Iterator[tuple[str, int]]:
        for pid in self.cluster.processes(node):
            marks = read_marks(pid)
            if marks.get(INSTANCE_MARK) == "svc" and read_arguments(pid)[:1] == ["sleep"]:
                yield marks[NODE_MARK], pid

    def has_lease(self, node: str) -> bool:
        """Tell what a node's pacer said last of its lease."""
        log = self._whole_log(node, "pacer")
        return log.rfind("lease held") > log.rfind("lease ended")

    def log(self, node: str, what: str = "brain") -> str:
        return self._whole_log(node, what)[self.log_starts.get((node, what), 0) :]

    def _whole_log(self, node: str, what: str) -> str:
        return (self.cluster.directory / node / "log" / f"{what}.log").read_text()

    # -- waiting ----------------------------------------------------------------------------------------------------

    def until(
        self, what: str, condition: Callable[[], bool], wait_s_max: float = WAIT_S_MAX, poll_s: float = POLL_S
    ) -> None:
        deadline = time.monotonic() + wait_s_max
        while not condition():
            if time.monotonic() > deadline:
                logs = {name: self.log(name)[-3000:] for name in self.cluster.names}
                status = self.status()
                seen = {key: status.get(key) for key in ("verdict", "headlines", "dc", "transition", "orders")}
                raise AssertionError(
                    f"waited {wait_s_max} s in vain for {what}: {seen}\n" + "\n\n".join(logs.values())
                )
            time.sleep(poll_s)

    def hold(self, what: str, condition: Callable[[], bool], for_s: float) -> None:
        """Demand that something stays so."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            assert condition(), f"not any more: {what}"
            time.sleep(OFTEN_S)

    def restart_brain(self, node: str) -> None:
        """Start a killed daemon again, as systemd would."""
        process = self.brain(node)
        process.wait(10)
        self.cluster.start_brain(node)

    def brain(self, node: str) -> Any:
        process = self.cluster.nodes[node].brain
        assert process is not None
        return process

    def pacer(self, node: str) -> Any:
        process = self.cluster.nodes[node].pacer
        assert process is not None
        return process


class SharedCluster:
    """A cluster with its service that tests have one after the other, each as if it were new.

    One that cannot be restored fails the next test, and those after it have another.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0
        self._scenario: Scenario | None = None

    def get(self) -> Scenario:
        """Return it, restored, or another one when too few of its daemons live for that."""
        scenario, self._scenario = self._scenario, None
        if scenario is not None and not scenario.has_majority():
            scenario.close()
            scenario = None
        if scenario is None:
            self._made += 1
            scenario = Scenario(self._directory / f"cluster-{self._made}")
            self._open(scenario, lambda: scenario.form().with_service())
        else:
            self._open(scenario, scenario.restore)
        scenario.begin()
        self._scenario = scenario
        return scenario

    @staticmethod
    def _open(scenario: Scenario, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException:
            scenario.close()
            raise

    def close(self) -> None:
        scenario, self._scenario = self._scenario, None
        if scenario is not None:
            scenario.close()


def is_watched(brain: int, pids: Iterable[int]) -> bool:
    """Tell whether a daemon would see at once that one of some processes dies: it holds a pidfd of it."""
    watched = set()
    for entry in Path(f"/proc/{brain}/fdinfo").iterdir():
        with suppress(OSError):
            lines = entry.read_text().splitlines()
            watched |= {int(line.split()[1]) for line in lines if line.startswith("Pid:")}
    return bool(watched.intersection(pids))


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
