"""`make agents-matrix`: agents x actions, by the executor that the daemon has, with the verdict on each agent.

Everything happens in namespaces: processes, network, mounts. `/etc`, `/run` and `/var` are layers above the machine's
own, so whatever agents write and start ends with the matrix.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from haclusterd.adapters.agents.ocf import OcfAgents
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.installation import agent_library, share_directory
from haclusterd.entry_points.stand_in_cluster import NODE, StandInCluster
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, ResourceId
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import dataclass, field
from haclusterd.ports.agents import AgentCall, AgentMetadata, AgentResult
from tests.agents_matrix.cases import (
    CASES,
    INTERFACE,
    NEIGHBOUR,
    OWN_ADDRESS,
    PREFIX,
    SECOND_ADDRESS,
    CannotRunError,
    Case,
)

SKIPPED = 77
TIMEOUT_MS = 120_000
INSIDE = "HACLUSTERD_AGENTS_MATRIX"
INCARNATION = Incarnation("matrix", "00000000000000aa")
LAYERS = ("/etc", "/var", "/usr/local")
COLUMNS = ("meta-data", "validate-all", "probe", "start", "monitor", "level", "reload", "notify", "promote", "demote",
           "stop", "stopped")  # fmt: skip
RUNNING = (ExitCode.OK, ExitCode.PROMOTED)
REAPER = ("sh", "-c", '"$@"; exit $?', "reaper")
"""Process 1 must reap what agents leave: they wait until a process is gone, and a zombie is not."""
NOTIFIED = ("start", "stop", "active", "inactive", "promote", "demote", "promoted", "unpromoted", "master", "slave")


@dataclass(slots=True)
class Line:
    """What came of one agent."""

    case: Case
    cells: dict[str, str] = field(default_factory=dict)
    finding: str = ""
    """The first action that ended otherwise than the cluster relies on, with the agent's words."""
    why_not: str = ""
    longest_ms: int = 0


class Player:
    """One agent, as the executor runs it, and a cluster that answers its tools."""

    def __init__(self, case: Case, here: Path, hands: OcfAgents, parameters: Mapping[str, str]) -> None:
        self.case, self.hands, self.parameters = case, hands, parameters
        self.agent = AgentReference.parse(f"ocf:{case.agent}")
        self.resource = case.agent.partition(":")[2].lower()
        self.line = Line(case)
        self._count = 0

    async def metadata(self) -> AgentMetadata | None:
        answer: asyncio.Future[AgentMetadata | None] = asyncio.get_running_loop().create_future()
        self.hands.metadata(self.agent, answer.set_result)
        return await answer

    async def act(self, action: str, level: str | None = None, **meta: str) -> AgentResult:
        self._count += 1
        ended: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        usual = {"interval": "0", "name": action, "timeout": str(TIMEOUT_MS), **self.case.meta, **meta}
        call = AgentCall(
            key=f"matrix-{self._count}", resource=ResourceId(self.resource), instance=self.resource, agent=self.agent,
            action=action, parameters=self.parameters, meta=usual, timeout_ms=TIMEOUT_MS, incarnation=INCARNATION,
            check_level=level,
        )  # fmt: skip
        self.hands.run(call, ended.set_result)
        return await ended

    async def expect(self, column: str, action: str, *codes: int, level: str | None = None, **meta: str) -> bool:
        """Run an action, and note in its column how it ended; tell whether that is one of these codes."""
        began = asyncio.get_running_loop().time()
        result = await self.act(action, level, **meta)
        self.line.longest_ms = max(self.line.longest_ms, round((asyncio.get_running_loop().time() - began) * 1000))
        is_exit = result.status is ExecutionStatus.DONE
        shown = str(int(result.exit_code)) if is_exit else str(result.status)
        is_good = is_exit and result.exit_code in codes
        self.line.cells[column] = shown if is_good else f"{shown}!"
        if not is_good and not self.line.finding:
            wanted = "/".join(str(int(code)) for code in codes)
            self.line.finding = f"{action}: {shown}, not {wanted}: {result.exit_reason or 'it says nothing'}"
        return is_good

    async def play(self) -> Line:
        """Run every action that the agent has, in the order of a resource's life."""
        metadata = await self.metadata()
        if metadata is None:
            self.line.cells["meta-data"] = "!"
            self.line.finding = "meta-data cannot be read"
            return self.line
        self.line.cells["meta-data"] = "0"
        has = metadata.actions.keys()
        if "validate-all" in has:
            await self.expect("validate-all", "validate-all", 0)
        await self.expect("probe", "monitor", ExitCode.NOT_RUNNING)
        if await self.expect("start", "start", 0):
            await self._while_it_runs(frozenset(has))
        await self.expect("stop", "stop", 0)
        await self.expect("stopped", "monitor", ExitCode.NOT_RUNNING)
        return self.line

    async def _while_it_runs(self, has: frozenset[str]) -> None:
        await self.expect("monitor", "monitor", *RUNNING, interval="10000")
        if self.case.level is not None:
            await self.expect("level", "monitor", *RUNNING, level=self.case.level, interval="20000")
        reload = "reload-agent" if "reload-agent" in has else "reload" if "reload" in has else ""
        if reload:
            await self.expect("reload", reload, 0)
            await self.expect("monitor", "monitor", *RUNNING, interval="10000")
        if "notify" in has:
            await self.expect("notify", "notify", 0, **_notification(self.resource, "post", "start"))
        if "promote" in has and self.case.meta.get("promotable"):
            for operation in ("promote", "demote"):
                await self._to_other_role(operation, is_notified="notify" in has)

    async def _to_other_role(self, operation: str, *, is_notified: bool) -> None:
        """Promote or demote as the cluster does: agents prepare it when they are notified before."""
        if is_notified:
            await self.expect("notify", "notify", 0, **_notification(self.resource, "pre", operation))
        await self.expect(operation, operation, 0)
        if is_notified:
            await self.expect("notify", "notify", 0, **_notification(self.resource, "post", operation))
        code, interval, role = {
            "promote": (ExitCode.PROMOTED, "10000", "Promoted"), "demote": (ExitCode.OK, "11000", "Unpromoted"),
        }[operation]  # fmt: skip
        await self.expect(operation, "monitor", code, interval=interval, role=role)


def _notification(resource: str, when: str, operation: str) -> dict[str, str]:
    """Return what is said of an operation on the only instance there is."""
    lists = {f"notify_{name}_{kind}": " " for name in NOTIFIED for kind in ("resource", "uname")}
    role = ("promoted", "master") if operation == "demote" else ("unpromoted", "slave")
    for name in (operation, "active", *role):
        lists |= {f"notify_{name}_resource": resource, f"notify_{name}_uname": NODE}
    return {**lists, "notify_available_uname": f"{NODE} node-b", "notify_type": when, "notify_operation": operation,
            "notify": "true"}  # fmt: skip


def obstacle(case: Case) -> str:
    """Say why an agent is not run here; empty: it can be tried."""
    missing = [program for program in case.programs if shutil.which(program) is None]
    directories = AgentDirectories(shipped=share_directory() / "resource_agents")
    is_here = directories.find(AgentReference.parse(f"ocf:{case.agent}"))
    return case.why_not or ("" if is_here else "the agent is not installed") or (
        f"missing: {', '.join(missing)}" if missing else ""
    )


def tried(case: Case, here: Path) -> tuple[Counter[str], list[str], str]:
    """Put an agent through `crm agent test`; return how many trials passed, failed, were skipped, what failed, and
    why it was not tried."""
    here.chmod(0o755)
    try:
        parameters = case.prepare(here)
    except (CannotRunError, OSError) as error:
        return Counter(), [], str(error)
    words = [f"{name}={value}" for name, value in parameters.items()]
    crm = Path(sys.executable).parent / "crm"
    command = [str(crm), "-o", "json", "agent", "test", f"ocf:{case.agent}", *words, "--timeout", f"{TIMEOUT_MS}ms"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        trials = json.loads(done.stdout)["trials"]
    except (ValueError, KeyError, TypeError):
        return Counter(), [], (done.stderr or done.stdout).strip()[-200:]
    found = [f"{each['name']}: {each['detail']}" for each in trials if each["verdict"] == "failed"]
    return Counter(str(each["verdict"]) for each in trials), found, ""


def _try_all(chosen: Sequence[Case], directory: Path) -> int:
    totals: Counter[str] = Counter()
    agents, own_failed = 0, 0
    for number, case in enumerate(chosen):
        here = directory / str(number)
        here.mkdir()
        why_not = obstacle(case)
        counts, found, why_not = tried(case, here) if not why_not else (Counter[str](), [], why_not)
        if why_not:
            print(f"{case.name:40s} not run: {why_not}", flush=True)
            continue
        agents += 1
        totals += counts
        own_failed += bool(found) and case.agent.startswith("haclusterd:")
        shown = "  ".join(f"{counts[word]:3d} {word}" for word in ("passed", "failed", "skipped"))
        print(f"{case.name:40s} {shown}", *(f"{'':42s}{each}" for each in found), sep="\n", flush=True)
    print(f"RESULT agents={agents} not_run={len(chosen) - agents} passed={totals['passed']} failed={totals['failed']}"
          f" skipped={totals['skipped']} own_failed={own_failed}")  # fmt: skip
    return 1 if own_failed or not agents else 0


async def play(case: Case, here: Path) -> Line:
    """Play one case in a directory of its own."""
    agent = AgentReference.parse(f"ocf:{case.agent}")
    share = share_directory()
    directories = AgentDirectories(
        shipped=share / "resource_agents", shims=share / "shims", library=agent_library(share),
        control_socket=here / "cluster" / "control.sock",
    )  # fmt: skip
    why_not = obstacle(case)
    if why_not:
        return Line(case, why_not=why_not)
    (here / "cluster").mkdir()
    (here / "own").mkdir()
    here.chmod(0o755)
    try:
        parameters = case.prepare(here / "own")
    except (CannotRunError, OSError) as error:
        return Line(case, why_not=str(error))
    hands = OcfAgents(
        BoottimeClock(asyncio.get_running_loop()), asyncio.get_running_loop(), runtime_directory=here / "run",
        node=NodeName(NODE), incarnation=INCARNATION, directories=directories,
    )  # fmt: skip
    player = Player(case, here, hands, parameters)
    is_promotable = bool(case.meta.get("promotable"))
    with StandInCluster(here / "cluster", agent, player.resource, is_promotable=is_promotable):
        return await player.play()


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; return 0 when every agent of ours that ran did as the cluster relies on, 77 when nothing can be played."""
    parser = argparse.ArgumentParser(prog="agents_matrix", description=__doc__)
    help_ = "agents, comma separated, * allowed: heartbeat:nginx,haclusterd:*"
    parser.add_argument("--only", default="*", help=help_)
    help_ = "put the agents through `crm agent test`, instead of once through each action"
    parser.add_argument("--trials", action="store_true", help=help_)
    options = parser.parse_args(arguments)
    if INSIDE not in os.environ:
        return _go_inside(sys.argv[1:] if arguments is None else list(arguments))
    _prepare_namespaces()
    chosen = [case for case in CASES if any(fnmatchcase(case.agent, each) for each in options.only.split(","))]
    with tempfile.TemporaryDirectory(prefix="agents-matrix-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        return _try_all(chosen, Path(name)) if options.trials else _play_all(chosen, Path(name))


def _play_all(chosen: Sequence[Case], directory: Path) -> int:
    lines = []
    print(f"{'agent':40s} " + " ".join(f"{name:>12s}" for name in COLUMNS) + "  longest")
    for number, case in enumerate(chosen):
        here = directory / str(number)
        here.mkdir()
        lines.append(asyncio.run(play(case, here)))
        _show(lines[-1])
    return _result(lines)


def _show(line: Line) -> None:
    if line.why_not:
        print(f"{line.case.name:40s} not run: {line.why_not}", flush=True)
        return
    cells = " ".join(f"{line.cells.get(name, '-'):>12s}" for name in COLUMNS)
    print(f"{line.case.name:40s} {cells}  {line.longest_ms} ms", flush=True)
    print(f"{'':40s} {line.finding or 'works, unmodified'}", flush=True)


def _result(lines: list[Line]) -> int:
    ran = [line for line in lines if not line.why_not]
    own = [line for line in ran if line.finding and line.case.agent.startswith("haclusterd:")]
    counts = {
        "agents": len(lines), "ran": len(ran), "unmodified": sum(not line.finding for line in ran),
        "with_findings": sum(bool(line.finding) for line in ran), "not_run": len(lines) - len(ran),
        "actions": sum(len(line.cells) for line in ran), "own_failed": len(own),
    }  # fmt: skip
    print("RESULT " + " ".join(f"{name}={value}" for name, value in counts.items()))
    return 1 if own or not ran else 0


# -- namespaces -----------------------------------------------------------------------------------------------------


def _go_inside(arguments: list[str]) -> int:
    """Run this program in namespaces of its own."""
    missing = [name for name in ("unshare", "mount", "ip") if shutil.which(name) is None]
    why = "it needs root" if os.geteuid() else f"missing: {', '.join(missing)}" if missing else ""
    if why:
        print(f"RESULT skipped=1 reason={'-'.join(why.split())}")
        return SKIPPED
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts",
               "--propagation", "private", "--", *REAPER, sys.executable, "-m", "tests.agents_matrix",
               *arguments]  # fmt: skip
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode


def _prepare_namespaces() -> None:
    upper = tempfile.mkdtemp(prefix="agents-matrix-layers-", dir="/run")
    script = f"mount -t tmpfs -o mode=755 tmpfs {upper}\n"
    for number, place in enumerate(LAYERS):
        at = f"{upper}/{number}"
        script += f"mkdir -p {at}/upper {at}/work\n"
        script += f"mount -t overlay overlay -o lowerdir={place},upperdir={at}/upper,workdir={at}/work {place}\n"
    script += f"""
        mount -t sysfs sysfs /sys
        mount -t tmpfs -o mode=755 tmpfs /run
        mount -t tmpfs -o mode=1777 tmpfs /var/tmp
        mkdir -p /run/lock /run/resource-agents
        hostname {NODE}
        echo 127.0.0.1 {NODE} >>/etc/hosts
        ip link set lo up
        ip link add {INTERFACE} type veth peer name {NEIGHBOUR}
        ip link set {INTERFACE} up
        ip link set {NEIGHBOUR} up
        ip address add {OWN_ADDRESS}/{PREFIX} dev {INTERFACE}
        ip address add {SECOND_ADDRESS}/{PREFIX} dev {INTERFACE}
        ip route add default via 10.77.0.254
    """
    subprocess.run(["sh", "-e", "-c", script], check=True)


if __name__ == "__main__":
    sys.exit(main())
