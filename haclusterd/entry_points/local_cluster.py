"""A cluster of real daemons on this machine: each node a directory, a boot id, a daemon and a pacer of its own.

For the demonstration, the tests and development. Every process of a node carries two marks in its environment, so that
the power switch (`fence_local`) and `sweep` find all of them and nothing else.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from haclusterd.adapters.control.client import ControlClient
from haclusterd.adapters.machine.installation import resource_agents_directory
from haclusterd.agents.process_table import list_pids, read_environment, read_stat
from haclusterd.entry_points.cluster_setup import NodePlaces, initialize, make_bundles
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.model.json_value import Json
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Options, Progress, Request, Response
from haclusterd.model.watchdog import WatchdogSettings
from haclusterd.runtime.settings import CONFIGURATION_FILE, load

CLUSTER_MARK = "HACLUSTERD_LOCAL_CLUSTER"
NODE_MARK = "HACLUSTERD_NODE"
SWEEP_ROUNDS = 50
REAP_TIMEOUT_S = 10.0
"""How long a killed process may take to end: what the kernel keeps longer is left behind."""


@dataclass(slots=True)
class LocalNode:
    """One node's directories and its processes."""

    name: NodeName
    bundle: Path
    state: Path
    runtime: Path
    logs: Path
    boot_id_file: Path
    port: int
    brain: subprocess.Popen[bytes] | None = None
    pacer: subprocess.Popen[bytes] | None = None
    watchdog: subprocess.Popen[bytes] | None = None
    """The stand-in for its watchdog device, which is no process of the node: it lives on when the node dies."""

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.runtime / "control.sock"


@dataclass(slots=True)
class LocalCluster:
    """Nodes on loopback; `setup` once, then `start`."""

    directory: Path
    names: Sequence[str] = ("n1", "n2", "n3")
    host: str = "127.0.0.1"
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to every process's environment."""
    watchdog_ms: int = 0
    """T_wd of every node's watchdog, a stand-in that ends the node's processes; 0: there are none."""
    mark: str = ""
    nodes: dict[NodeName, LocalNode] = field(default_factory=dict)

    @property
    def nodes_directory(self) -> Path:
        """What `fence_local` reads as `nodes_dir`."""
        return self.directory / "nodes"

    @classmethod
    def kept(cls, directory: Path) -> "LocalCluster":
        """Return a cluster that another process has made; raise OSError where there is none."""
        nodes = directory / "nodes"
        mark = (nodes / "local-cluster").read_text().strip()
        cluster = cls(directory, tuple(sorted(path.stem for path in nodes.glob("*.node"))), mark=mark)
        for name in map(NodeName, cluster.names):
            home, bundle = directory / name, directory / "setup" / name
            (port,) = (member.addresses[0][1] for member in load(bundle / CONFIGURATION_FILE).members
                       if member.name == name)  # fmt: skip
            cluster.nodes[name] = LocalNode(
                name, bundle, home / "state", home / "run", home / "log", home / "boot_id", port
            )
        return cluster

    def setup(self) -> None:
        """Make certificates, configuration and directories of all nodes."""
        self.mark = self.mark or f"local-{uuid.uuid4().hex[:12]}"
        ports = free_ports(self.host, len(self.names))
        members = []
        places: dict[NodeName, NodePlaces] = {}
        self.nodes_directory.mkdir(parents=True)
        (self.nodes_directory / "local-cluster").write_text(self.mark + "\n")
        for text, port in zip(self.names, ports, strict=True):
            name = NodeName(text)
            home = self.directory / text
            for part in ("state", "run", "log"):
                (home / part).mkdir(parents=True, mode=0o700, exist_ok=True)
            boot_id_file = home / "boot_id"
            watchdog = WatchdogSettings(str(home / "watchdog"), self.watchdog_ms) if self.watchdog_ms else None
            places[name] = NodePlaces(
                home / "state", home / "run", boot_id_file, is_development=True, watchdog=watchdog
            )
            members.append(Member(name, ((self.host, port),)))
            (self.nodes_directory / f"{text}.node").write_text("")
            bundle = self.directory / "setup" / text
            self.nodes[name] = LocalNode(
                name, bundle, home / "state", home / "run", home / "log", boot_id_file, port
            )
        make_bundles("local", members, self.directory / "setup", places=places)
        for node in self.nodes.values():
            initialize(load(node.bundle / CONFIGURATION_FILE))
            self.boot(node.name)

    def boot(self, name: str) -> None:
        """Give a node a new boot id and an empty runtime directory, as a reboot does."""
        node = self.nodes[NodeName(name)]
        node.boot_id_file.write_text(str(uuid.uuid4()) + "\n")
        shutil.rmtree(node.runtime, ignore_errors=True)
        node.runtime.mkdir(mode=0o700)
        (self.nodes_directory / f"{name}.off").unlink(missing_ok=True)
        if self.watchdog_ms:
            self._start_watchdog(node)

    def _start_watchdog(self, node: LocalNode) -> None:
        """Make the node's watchdog device again: with the power its count goes as well."""
        if node.watchdog is not None:
            node.watchdog.kill()
            node.watchdog.wait()
        path = self.directory / str(node.name) / "watchdog"
        request = f"action=off\\nplug={node.name}\\nnodes_dir={self.nodes_directory}\\n"
        switch = f"printf '{request}' | {shlex.quote(str(resource_agents_directory() / 'fence_local'))}"
        with open(node.logs / "watchdog.log", "ab") as log:
            node.watchdog = subprocess.Popen(
                [sys.executable, "-m", "haclusterd.entry_points.watchdog_stand_in", str(path),
                 "--timeout-ms", str(self.watchdog_ms), "--", "/bin/sh", "-c", switch],
                env={**os.environ, CLUSTER_MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def start(self, names: Iterable[str] | None = None) -> None:
        """Start pacer and daemon of the nodes."""
        for name in names if names is not None else self.names:
            self.start_pacer(name)
            self.start_brain(name)

    def start_pacer(self, name: str) -> None:
        """Start a node's pacer."""
        node = self.nodes[NodeName(name)]
        arguments = ["haclusterd.entry_points.pacer", "--runtime-directory", str(node.runtime)]
        node.pacer = self._spawn(node, "pacer", arguments)

    def start_brain(self, name: str) -> None:
        """Start a node's daemon."""
        node = self.nodes[NodeName(name)]
        arguments = ["haclusterd.entry_points.haclusterd", "--configuration", str(node.bundle / CONFIGURATION_FILE)]
        node.brain = self._spawn(node, "brain", arguments)

    def _spawn(self, node: LocalNode, what: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        with open(node.logs / f"{what}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env=self._environment(node),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _environment(self, node: LocalNode) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        return {**kept, **self.environment, CLUSTER_MARK: self.mark, NODE_MARK: str(node.name)}

    # -- faults -----------------------------------------------------------------------------------------------------

    def silence(self, name: str) -> int:
        """Stop every process of a node in its tracks: its sockets go quiet and nothing is closed, as when power fails.

        Return how many there were.
        """
        return self._signal_all(name, signal.SIGSTOP)

    def resume(self, name: str) -> int:
        """Let a silenced node continue, as a machine that was paused."""
        return self._signal_all(name, signal.SIGCONT)

    def power_off(self, name: str) -> None:
        """Silence a node, then kill every process of it."""
        for _ in range(SWEEP_ROUNDS):
            self.silence(name)
            if not self._signal_all(name, signal.SIGKILL):
                break
        node = self.nodes[NodeName(name)]
        if node.watchdog is not None:
            node.watchdog.kill()
        self._reap(node)

    def _signal_all(self, name: str, number: int) -> int:
        found: set[int] = set()
        for _ in range(SWEEP_ROUNDS):
            new = set(self.processes(name)) - found
            if not new:
                break
            for pid in new:
                _signal(pid, number)
            found |= new
        return len(found)

    def processes(self, name: str | None = None) -> list[int]:
        """Return the ids of all living processes of a node, or of all nodes."""
        wanted = [f"\0{CLUSTER_MARK}={self.mark}\0".encode()]
        if name is not None:
            wanted.append(f"\0{NODE_MARK}={name}\0".encode())
        return sorted(pid for pid in list_pids() if pid != os.getpid() and _is_marked(pid, wanted))

    def stop(self, timeout_s: float = 30.0) -> None:
        """Ask every daemon to leave, wait for them, then end the pacers."""
        for node in self.nodes.values():
            if node.brain is not None and node.brain.poll() is None:
                node.brain.terminate()
        deadline = time.monotonic() + timeout_s
        for node in self.nodes.values():
            if node.brain is not None:
                node.brain.wait(max(0.1, deadline - time.monotonic()))
        for node in self.nodes.values():
            if node.pacer is not None and node.pacer.poll() is None:
                node.pacer.terminate()
                node.pacer.wait(5)

    def sweep(self) -> None:
        """Kill whatever is left of any node; harmless when nothing is."""
        for _ in range(SWEEP_ROUNDS):
            left = self.processes()
            if not left:
                break
            for pid in left:
                _signal(pid, signal.SIGKILL)
            for node in self.nodes.values():
                self._reap(node)

    @staticmethod
    def _reap(node: LocalNode) -> None:
        """See a node's own processes end: until then they hold its locks, whatever /proc still shows of them."""
        for process in (node.brain, node.pacer, node.watchdog):
            if process is not None:
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(REAP_TIMEOUT_S)

    # -- asking -----------------------------------------------------------------------------------------------------

    def call(
        self, name: str, verb: str, /, *, wait_ms: int | None = None, force: bool = False, **arguments: Json
    ) -> Response:
        """Carry out a verb on a node's daemon."""
        node = self.nodes[NodeName(name)]
        request = Request("1", verb, arguments, Options(force=force, wait_ms=wait_ms))
        client = ControlClient(str(node.socket))
        try:
            return client.call(request, _quiet)
        finally:
            client.close()


def _quiet(progress: Progress) -> None:
    """Nobody watches."""


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _is_marked(pid: int, wanted: Iterable[bytes]) -> bool:
    """Tell whether a process that lives has all these marks in its environment."""
    environment = b"\0" + read_environment(pid)
    if not all(mark in environment for mark in wanted):
        return False
    stat = read_stat(pid)
    return stat is not None and not stat.is_dead
