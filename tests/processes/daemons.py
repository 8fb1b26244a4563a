"""Real clusters of real daemons for tests: what scenarios are written in."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from haclusterd.entry_points.local_cluster import LocalCluster

PATIENCE_S = 40.0
POLL_S = 0.02


class Scenario:
    """A running cluster with one service `svc` (a process) and a fence device for every node."""

    def __init__(
        self, directory: Path, *, host: str = "127.0.0.1", watchdog_ms: int = 0, **environment: str
    ) -> None:
        self.cluster = LocalCluster(
            directory, host=host, environment={"PYTHONUNBUFFERED": "1", **environment}, watchdog_ms=watchdog_ms
        )
        self.cluster.setup()

    # -- life -------------------------------------------------------------------------------------------------------

    def form(self) -> "Scenario":
        self.cluster.start()
        self.until("all nodes online", lambda: self.online() == set(self.cluster.names))
        return self

    def with_service(self, *more: str) -> "Scenario":
        self.configure(
            self.power(),
            'primitive svc ocf:haclusterd:exec params command=sleep args=100000 '
            "op monitor interval=1s timeout=10s op start timeout=20s op stop timeout=20s",
            "rsc_defaults resource-stickiness=100",
            *more,
        )
        self.until("the service to run", lambda: self.holder() is not None)
        self.settle()
        return self

    def power(self) -> str:
        """Return the line by which every node is fenced by the switch of local clusters."""
        return (
            f"primitive power stonith:fence_local params nodes_dir={self.cluster.nodes_directory} "
            'pcmk_host_list="n1 n2 n3"'
        )

    def settle(self) -> None:
        self.until("nothing in flight", self.is_idle)

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

    def is_idle(self) -> bool:
        """Ask the DC, who alone knows of a transition."""
        dc = self.status()["dc"]
        if dc is None:
            return False
        status = self.status(dc)
        return status["dc"] == dc and not status.get("orders") and status.get("transition") is None

    def events(self, kind: str | None = None) -> list[Mapping[str, Any]]:
        data = self.must("history.events", limit=200)
        return [event for event in data["events"] if kind is None or event["kind"] == kind]

    def holder(self) -> str | None:
        """Return the node whose service process lives, as the operating system knows it."""
        return next((name for name in self.cluster.names if self.service_pids(name)), None)

    def service_pids(self, node: str) -> list[int]:
        wanted = (b"OCF_RESOURCE_INSTANCE=svc", f"HACLUSTERD_NODE={node}".encode())
        found = []
        for pid in self.cluster.processes(node):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if all(mark in environment for mark in wanted) and command.startswith(b"sleep\0"):
                found.append(pid)
        return found

    def has_lease(self, node: str) -> bool:
        """Tell what a node's pacer said last of its lease."""
        log = self.log(node, "pacer")
        return log.rfind("lease held") > log.rfind("lease ended")

    def log(self, node: str, what: str = "brain") -> str:
        return (self.cluster.directory / node / "log" / f"{what}.log").read_text()

    # -- waiting ----------------------------------------------------------------------------------------------------

    def until(self, what: str, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > deadline:
                logs = {name: self.log(name)[-3000:] for name in self.cluster.names}
                raise AssertionError(f"waited {patience_s} s in vain for {what}\n" + "\n\n".join(logs.values()))
            time.sleep(POLL_S)

    def hold(self, what: str, condition: Callable[[], bool], for_s: float) -> None:
        """Demand that something stays so."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            assert condition(), f"not any more: {what}"
            time.sleep(POLL_S)

    def restart_brain(self, node: str) -> None:
        """Start a killed brain again, as systemd would."""
        process = self.brain(node)
        process.wait(10)
        self.cluster.start_brain(node)

    def brain(self, node: str) -> Any:
        process = self.cluster.nodes[node].brain  # type: ignore[index]
        assert process is not None
        return process

    def pacer(self, node: str) -> Any:
        process = self.cluster.nodes[node].pacer  # type: ignore[index]
        assert process is not None
        return process


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
