"""`make demo`: three daemons on this machine, a service, and the death of the node that runs it.

No root, nothing outside the scratch directory, nothing left behind: whatever happens, every process of the cluster is
ended on the way out, unless `--keep` asks for the opposite.
"""

import argparse
import os
import shutil
import signal
import string
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from haclusterd.adapters.machine.installation import policies_directory
from haclusterd.entry_points import demo_service
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.entry_points.local_cluster import NODE_MARK, LocalCluster
from haclusterd.entry_points.service_meter import ServiceMeter
from haclusterd.model.requests import Response

SERVICE = "web"
SERVICE_HOST = "127.77.0.#"
POLL_S = 0.02
WAIT_S_MAX = 60.0
QUIET_EVENTS = frozenset({"operation-succeeded", "order-issued"})


class DemoFailedError(Exception):
    """Something did not happen; the message says what."""


class Demo:
    """The play, act by act."""

    def __init__(self, directory: Path) -> None:
        self.cluster = LocalCluster(directory, environment={"PYTHONUNBUFFERED": "1"})
        self._port, self._ready_port = free_ports("127.0.0.1", 2)
        addresses = {name: (SERVICE_HOST.replace("#", name[1:]), self._port) for name in self.cluster.names}
        self.meter = ServiceMeter(addresses)
        self._began_at = time.monotonic()

    # -- acts -------------------------------------------------------------------------------------------------------

    def form(self) -> None:
        """Start the daemons and wait until they are one cluster."""
        self.tell("starting three nodes (daemon and pacer each) on loopback ...")
        self.cluster.setup()
        began_at = time.monotonic()
        self.cluster.start()
        self.until("a DC", lambda: self.status()["dc"] is not None)
        self.until("all three nodes online", lambda: self.online() == 3)
        span_ms = round((time.monotonic() - began_at) * 1000)
        self.tell(f"quorum, a DC ({self.status()['dc']}) and all nodes online {span_ms} ms after their start")

    def configure(self) -> None:
        """Load the demonstration's policy."""
        path = policies_directory() / "demo.yaml"
        interpreter = f"{sys.executable} -S -E {demo_service.__file__}"
        variables = {
            "COMMAND": f"{interpreter} {SERVICE_HOST} {self._port} {self._ready_port}",
            "READY_URL": f"http://127.0.0.1:{self._ready_port}/",
            "NODES_DIR": str(self.cluster.nodes_directory),
        }
        text = string.Template(path.read_text()).substitute(variables)
        answer = self.call("configure.load", mode="replace", text=text, source=str(path), format="yaml")
        self.require(answer)
        self.tell(f"loaded {path.name}; waiting for the service")
        self.meter.start()
        self.until("the service to answer", lambda: self.meter.holder() is not None)
        self.until("everything to settle", self.is_idle)
        self.tell(f"the service answers on {self.meter.holder()}")

    def lose_node(self) -> int:
        """Let the node that runs the service lose its power; return the outage in ms."""
        victim = self.holder()
        self.tell(f"--- power loss of {victim}, which runs the service", gap=True)
        survivor = next(name for name in self.cluster.names if name != victim)
        lost_at, wall = time.monotonic(), time.time_ns() // 1_000_000
        count = self.cluster.silence(victim)
        self.tell(f"{count} processes of {victim} fell silent")
        shown: set[tuple[int, str]] = set()

        def is_recovered() -> bool:
            self.show_events(survivor, wall, shown)
            return self.meter.first_after(lost_at, not_from=victim) is not None

        self.until(f"the service to answer without {victim}", is_recovered)
        answer = self.meter.first_after(lost_at, not_from=victim)
        assert answer is not None
        self.show_events(survivor, wall, shown)
        outage_ms = self.meter.outage_ms(lost_at)
        span_ms = round((answer.answered_at - lost_at) * 1000)
        self.tell(f"+{span_ms:5d} ms  first good answer, from {answer.node}; outage {outage_ms} ms")
        left = self.cluster.processes(victim)
        if left:
            raise DemoFailedError(f"{victim} was not wholly killed by its fencing: {left}")
        self.until("everything to settle", self.is_idle)
        return outage_ms

    def kill_service(self) -> int:
        """Kill the service's process; return the outage in ms."""
        holder = self.holder()
        victims = self._service_processes(holder)
        self.tell(f"--- kill -9 of the service on {holder} (process {victims[0]})", gap=True)
        killed_at = time.monotonic()
        os.kill(victims[0], signal.SIGKILL)
        self.until("the service to answer again", lambda: self.meter.first_after(killed_at + 0.005) is not None)
        outage_ms = self.meter.outage_ms(killed_at)
        self.tell(f"the service answers on {self.holder()}; outage {outage_ms} ms")
        self.until("everything to settle", self.is_idle)
        return outage_ms

    def rejoin(self) -> None:
        """Boot the lost node again."""
        gone = [name for name in self.cluster.names if not self.cluster.processes(name)]
        for name in gone:
            self.tell(f"--- {name} boots again", gap=True)
            self.cluster.boot(name)
            self.cluster.start([name])
        self.until("all three nodes online", lambda: self.online() == 3)
        self.until("everything to settle", self.is_idle)
        self.tell(f"{', '.join(gone)} is back; the service is on {self.holder()}")

    def move(self) -> int:
        """Move the service by hand; return the outage in ms."""
        holder = self.holder()
        target = next(name for name in self.cluster.names if name != holder)
        self.tell(f"--- crm resource move {SERVICE} {target}", gap=True)
        moved_at = time.monotonic()
        self.require(self.call("resource.move", resource=SERVICE, node=target))
        self.until(f"the service to answer on {target}", lambda: self.holder() == target)
        self.until("everything to settle", self.is_idle)
        outage_ms = self.meter.outage_ms(moved_at)
        self.tell(f"the service answers on {target}; outage {outage_ms} ms")
        return outage_ms

    def _service_processes(self, node: str) -> list[int]:
        wanted = (f"OCF_RESOURCE_INSTANCE={SERVICE}".encode(), f"{NODE_MARK}={node}".encode())
        script = Path(demo_service.__file__).name.encode()
        found = []
        for pid in self.cluster.processes(node):
            entry = Path("/proc") / str(pid)
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if all(mark in environment for mark in wanted) and script in command:
                found.append(pid)
        if not found:
            raise DemoFailedError(f"the service's process on {node} was not found")
        return found

    # -- asking -----------------------------------------------------------------------------------------------------

    def call(self, verb: str, **arguments: Any) -> Response:
        """Carry out a verb on any node that answers."""
        answer = None
        for name in self.cluster.names:
            if self.cluster.processes(name):
                answer = self.cluster.call(name, verb, **arguments)
                if answer.exit != 69:
                    return answer
        if answer is None:
            raise DemoFailedError("no node is left")
        return answer

    def status(self) -> Mapping[str, Any]:
        """Return the data of `crm status`."""
        answer = self.call("status")
        return answer.data if isinstance(answer.data, Mapping) else {"dc": None, "nodes": []}

    def online(self) -> int:
        """Return how many nodes are online."""
        status = self.status()
        return sum(1 for node in status["nodes"] if node["state"] == "online") if status["dc"] is not None else 0

    def is_idle(self) -> bool:
        """Tell whether nothing is in flight."""
        status = self.status()
        return not status.get("orders") and status.get("transition") is None

    def holder(self) -> str:
        """Return the node that the service answers from."""
        self.until("the service to answer", lambda: self.meter.holder() is not None)
        holder = self.meter.holder()
        assert holder is not None
        return holder

    def show_events(self, node: str, since_wall: int, shown: set[tuple[int, str]]) -> None:
        """Print what the cluster did since `since_wall`, each thing once, as it happens."""
        answer = self.cluster.call(node, "history.events", limit=50)
        events = answer.data.get("events", ()) if isinstance(answer.data, Mapping) else ()
        for event in events if isinstance(events, (list, tuple)) else ():
            key = (int(event["index"]), str(event["text"]))
            if int(event["at"]) < since_wall or key in shown:
                continue
            shown.add(key)
            is_start = "start of" in str(event["text"])
            if event["kind"] not in QUIET_EVENTS or is_start:
                self.tell(f"+{int(event['at']) - since_wall:5d} ms  {event['text']}")

    def require(self, answer: Response) -> None:
        """Fail when a verb did."""
        if answer.exit:
            raise DemoFailedError("; ".join(item.message for item in answer.reports))

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for something to be so."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise DemoFailedError(f"waited {WAIT_S_MAX:.0f} s in vain for {what}")
            time.sleep(POLL_S)

    def tell(self, text: str, *, gap: bool = False) -> None:
        """Print one line of the timeline."""
        if gap:
            print()
        print(f"[{time.monotonic() - self._began_at:6.2f} s] {text}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Play; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="demo", description="A cluster of three nodes on this machine loses the node that runs its service."
    )
    parser.add_argument("--keep", action="store_true", help="leave the cluster running and say how to look at it")
    parser.add_argument("--end", type=Path, metavar="DIRECTORY", help="end a cluster that was kept, and remove it")
    parser.add_argument("--directory", type=Path, help="scratch directory (default: a temporary one)")
    for option, what in (("--power-off", "cut the power of"), ("--boot", "start")):
        help_ = f"{what} a node of the cluster that was kept in --directory"
        parser.add_argument(option, metavar="NODE", help=help_)
    options = parser.parse_args(arguments)
    if options.end is not None:
        return _end_kept(options.end)
    if options.power_off or options.boot:
        return _switch(options.directory, options.power_off or options.boot, is_on=bool(options.boot))
    signal.signal(signal.SIGTERM, _end)
    directory = Path(tempfile.mkdtemp(prefix="haclusterd-demo-")) if options.directory is None else options.directory
    try:
        demo = Demo(directory)
    except OSError as error:
        print(f"the demonstration cannot begin: {error}", file=sys.stderr)
        if options.directory is None:
            directory.rmdir()
        return 1
    try:
        return _play(demo, directory, keep=options.keep)
    except KeyboardInterrupt:
        print("\ninterrupted; ending every process of the demonstration", flush=True)
        return 130
    except DemoFailedError as failure:
        print(f"\nFAILED: {failure}", file=sys.stderr)
        _show_logs(directory)
        return 1
    finally:
        demo.meter.stop()
        if not options.keep:
            demo.cluster.sweep()
            shutil.rmtree(directory, ignore_errors=True)


def _play(demo: Demo, directory: Path, *, keep: bool) -> int:
    demo.form()
    demo.configure()
    node_crash_ms = demo.lose_node()
    service_kill_ms = demo.kill_service()
    demo.rejoin()
    move_ms = demo.move()
    double_holders = demo.meter.double_holders
    if keep:
        _explain(demo, directory)
    else:
        demo.tell("--- stopping everything", gap=True)
        demo.meter.stop()
        demo.cluster.stop()
    print(
        f"RESULT node_crash_ms={node_crash_ms} service_kill_ms={service_kill_ms} move_ms={move_ms} "
        f"double_holders={double_holders}",
        flush=True,
    )
    return 1 if double_holders else 0


def _explain(demo: Demo, directory: Path) -> None:
    crm = Path(sys.executable).parent / "crm"
    node, holder = demo.cluster.names[0], demo.holder()
    other = next(name for name in demo.cluster.names if name != holder)
    socket = demo.cluster.directory / node / "run" / "control.sock"
    url = "http://{}:{}/".format(*demo.meter.addresses[holder])
    again = f"{sys.executable} -m haclusterd.entry_points.demo"
    print(
        f"""
The cluster is left running below {directory}.
The service runs on {holder} and answers there, at {url} (on n1 at 127.77.0.1, and so on). Try:

  curl {url}
  export HACLUSTERD_SOCKET={socket}
  {crm} status
  {crm} resource why {SERVICE}
  {crm} resource move site {other}
  {crm} node standby {other}
  {crm} node online {other}
  {crm} configure show
  {crm} history events

The three nodes share the files of this machine. Of agents that keep their state in /run, as ocf:pacemaker:Dummy and
ocf:pacemaker:Stateful do, each node takes the others' instances for its own; take ocf:haclusterd:dummy and
ocf:haclusterd:stateful instead.

Cut the power of a node, and start it again (on this machine, nothing else does):

  {again} --directory {directory} --power-off {holder}
  {again} --directory {directory} --boot {holder}

End it with:

  {again} --end {directory}
"""
    )


def _switch(directory: Path | None, name: str, *, is_on: bool) -> int:
    """Start a node of a kept cluster, or cut its power, as far as there is anything to do."""
    try:
        cluster = LocalCluster.kept(directory or Path())
    except OSError as error:
        print(f"--directory must name a kept demonstration: {error}", file=sys.stderr)
        return 1
    if name not in cluster.names:
        print(f"there is no node {name!r} (one of: {', '.join(cluster.names)})", file=sys.stderr)
        return 1
    is_running = bool(cluster.processes(name))
    if is_running is is_on:
        print(f"{name} is {'running' if is_on else 'off'} already")
    elif is_on:
        cluster.boot(name)
        cluster.start([name])
        print(f"{name} is starting; see: crm status")
    else:
        cluster.power_off(name)
        print(f"{name} is off")
    return 0


def _end_kept(directory: Path) -> int:
    """End every process of a cluster that was kept."""
    cluster = LocalCluster(directory)
    try:
        cluster.mark = (cluster.nodes_directory / "local-cluster").read_text().strip()
    except OSError as error:
        print(f"{directory} is not a kept demonstration: {error}", file=sys.stderr)
        return 1
    cluster.sweep()
    shutil.rmtree(directory)
    print(f"ended; {directory} is removed")
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _show_logs(directory: Path) -> None:
    for log in sorted(directory.glob("*/log/*.log")):
        lines = log.read_text(errors="replace").splitlines()[-15:]
        print(f"\n{log}:\n  " + "\n  ".join(lines), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
