"""The process `haclusterd`: picks the adapters, runs one node.

SIGTERM and SIGINT drain this node and leave the cluster; a second one ends at once, as a crash would. SIGHUP puts a new
image into the same process (an upgrade), whose services run on. Any uncaught error ends the process loudly: systemd
starts it again, resources run on, and if it does not come back its peers fence the node.
"""

import argparse
import asyncio
import errno
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from haclusterd.adapters.agents.alert_agents import ProcessAlertAgents
from haclusterd.adapters.agents.by_class import AgentsByClass
from haclusterd.adapters.agents.copies import copy_agents, last_start
from haclusterd.adapters.agents.fence_agents import FenceAgentPrograms
from haclusterd.adapters.agents.fence_directories import FenceDirectories
from haclusterd.adapters.agents.ocf import OcfAgents, own_marks
from haclusterd.adapters.agents.seals import Seals
from haclusterd.adapters.agents.service import ServiceAgents
from haclusterd.adapters.agents.service_groups import delegated_group
from haclusterd.adapters.agents.stonith import StonithAgents
from haclusterd.adapters.agents.surroundings import AgentDirectories
from haclusterd.adapters.agents.systemd import SystemdAgents, SystemdPlaces
from haclusterd.adapters.agents.systemd_bus import DEFAULT_ADDRESS
from haclusterd.adapters.control.admission import PeerCredentials
from haclusterd.adapters.control.server import Answer, ControlServer, ControlSocketBusyError, HangUp
from haclusterd.adapters.devices.gpu_watch import FAULTS_FILE, LOCK_FILE, RECOVERED_FILE, SIMULATED_FILE, GpuWatch
from haclusterd.adapters.history.event_log import standard_event_log
from haclusterd.adapters.history.sqlite import SqliteHistory
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.entropy_system import SystemEntropy
from haclusterd.adapters.machine.installation import (
    InstallationIncompleteError,
    agent_library,
    agent_search_path,
    share_directory,
)
from haclusterd.adapters.machine.machine_identity import machine_marks
from haclusterd.adapters.machine.machine_load import KernelLoad
from haclusterd.adapters.machine.no_devices import NoDevices
from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.adapters.machine.real_time import LOOP_PRIORITY, run_first
from haclusterd.adapters.machine.service_notification import notify
from haclusterd.adapters.network.authority_files import AuthorityFiles
from haclusterd.adapters.network.certificates import NODE_CERTIFICATE, complete_adoption, heartbeat_keys
from haclusterd.adapters.network.enrolment_listener import TlsEnrolmentListener
from haclusterd.adapters.network.peer_messages import RaftPeerMessages
from haclusterd.adapters.network.secret_keeper import SealingKeeper
from haclusterd.adapters.pacer.link import PacerLink
from haclusterd.adapters.processes.background_threads import BackgroundThreads
from haclusterd.adapters.processes.crash_records import CrashFile
from haclusterd.adapters.processes.failed_plans import FailedPlans
from haclusterd.adapters.processes.measured_loops import MeasuredLoops
from haclusterd.adapters.processes.own_command import own_command
from haclusterd.adapters.processes.planner_process import PlannerProcess
from haclusterd.adapters.processes.program_check import why_not_to_go_on
from haclusterd.adapters.processes.spawner_link import Spawner
from haclusterd.adapters.raft.thread import EXIT_CODE_IO_ERROR, RaftThread
from haclusterd.agents.gpu_inventory import on_bus
from haclusterd.cib.codec import iter_fragments
from haclusterd.commands.planning.planning import load_scheduler
from haclusterd.entry_points.cluster_setup import initialize, read_keys, remember_members
from haclusterd.model.cluster import Member
from haclusterd.model.ids import Incarnation, NodeName, base_of
from haclusterd.model.records import replace
from haclusterd.model.requests import Request
from haclusterd.model.timing import derive
from haclusterd.ports.agents import AgentRunner
from haclusterd.ports.devices import DeviceWatch
from haclusterd.ports.event_log import EventLog, Priority
from haclusterd.ports.store import StoreBusyError, StoreDamagedError, StoreRefusedError, StoreUnwritableError
from haclusterd.protocol.pacer_socket import RUNTIME_MODE
from haclusterd.raft.settings import RaftSettings, RaftTimers
from haclusterd.runtime.members.enrolment import EnrolmentService
from haclusterd.runtime.members.own_certificate import OwnCertificate
from haclusterd.runtime.members.renewal import RenewalService
from haclusterd.runtime.node import NodeRuntime
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.replica import Replica
from haclusterd.runtime.requests.control import ControlService
from haclusterd.runtime.service_status import standing
from haclusterd.runtime.settings import (
    CONFIGURATION_DIRECTORY,
    CONFIGURATION_FILE,
    Installation,
    NodeSettings,
    SettingsError,
    load,
)

UNWRITABLE = (
    "this node does not join: {problem}. Make room, or replace the disk; it is tried again every few seconds"
)
EXIT_USAGE = 64
EXIT_DAMAGED = 65
EXIT_REFUSED = 66
EXIT_REMOVED = 67
EXIT_BUSY = 69
EXIT_CRASHED = 70
EXIT_CONFIGURATION = 78
OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""Errors at the start that are those of a disk."""
PASSING = OF_DISKS | frozenset({
    errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EADDRINUSE, errno.EADDRNOTAVAIL,
})  # fmt: skip
"""Errors at the start that end without anybody's correcting the configuration."""
CODES: dict[type[Exception], int] = {
    SettingsError: EXIT_CONFIGURATION,
    InstallationIncompleteError: EXIT_CONFIGURATION,
    ControlSocketBusyError: EXIT_BUSY,
    StoreBusyError: EXIT_BUSY,
    StoreRefusedError: EXIT_REFUSED,
    StoreDamagedError: EXIT_DAMAGED,
    ValueError: EXIT_CONFIGURATION,
}
"""What the daemon ends with when it cannot start; of several that fit the first counts."""
AGAIN_AFTER_S = {EXIT_BUSY: 2.0, EXIT_CODE_IO_ERROR: 5.0}
"""How long a daemon that cannot start for the moment waits before it ends."""
FLUSH_MS = 2000
LOAD_SCHEDULER_AFTER_S = 5.0
"""When this node has joined, as a rule; what asks for a plan before loads it itself."""
SWITCH_INTERVAL_S = 0.001
"""For how long one thread keeps the interpreter when another wants it."""
RUNTIME_FILES_EVERY_S = 1.0
RAFT_SILENT_S = 2.0
"""If the Raft thread has answered nothing for so long, the service manager's watchdog is not fed."""
WATCH_VARIABLE = "HACLUSTERD_GPU_WATCH"
"""Settings of the watcher of GPUs as JSON, in development only: the lab has its own kernel log, and shorter times."""
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WHILE_NOBODY_FEEDS_US = 120_000_000
"""The service manager's watchdog while a new image starts, or this process ends."""
CONTROL_SOCKET = "control.sock"
FAILED_PLANS = "failed-plans"

REMOVED = """\
haclusterd: {node} was removed from the cluster, and ends. It never comes back under this name.
To make a new node of this machine: systemctl disable --now haclusterd, move /etc/haclusterd and
/var/lib/haclusterd away, then: crm cluster join, with a new token and another name."""

EPILOG = f"""\
signals:
  TERM, INT  move everything away, leave the cluster, end
  HUP        check the program that is installed now, then execute it in place; services run on

exit codes:
  0   left the cluster, or prepared the state directory
  2   wrong call
  {EXIT_USAGE}  python -O, which removes the program's own checks
  {EXIT_DAMAGED}  the state directory is damaged
  {EXIT_REFUSED}  the state directory is empty, or of another cluster, node or machine
  {EXIT_REMOVED}  this node was removed from the cluster
  {EXIT_BUSY}  socket, state directory, address or port is in use, or not there yet
  {EXIT_CRASHED}  an error of the program; start it again, services run on
  {EXIT_CODE_IO_ERROR}  the disk cannot be written, or the machine lacks something for the moment
  {EXIT_CONFIGURATION}  the configuration cannot be used

After {EXIT_BUSY}, {EXIT_CRASHED} and {EXIT_CODE_IO_ERROR} it is to be started again, and systemd does.
The others are final: a person has to act first.

examples:
  haclusterd --initialize
  haclusterd --check
  haclusterd --configuration /etc/haclusterd/haclusterd.yaml
"""


class Daemon:
    """One node in this process."""

    def __init__(
        self, installation: Installation, log: EventLog, loop: asyncio.AbstractEventLoop, loops: MeasuredLoops
    ) -> None:
        self._installation = installation
        self._loops = loops
        self._background = BackgroundThreads(loop)
        self._log = log
        self._gpus: GpuWatch | None = None
        self._loop = loop
        self._ended: asyncio.Future[int] = loop.create_future()
        self._status = ""
        self._is_draining = False
        self._raft_seen_at = 0.0
        """When the Raft thread last answered, on the monotonic clock."""
        self._is_checking = False
        """Whether the program that is to replace this one is being checked."""
        self._writer = ready_pool(1, "members")
        complete_adoption(installation.directory)
        authority = AuthorityFiles(installation.directory)
        settings = replace(_node_settings(installation), adopt=self._adopt)
        self._group = delegated_group()
        self._spawner = Spawner() if self._group is not None else None
        self._pacer = PacerLink(installation.runtime_directory, BoottimeClock(loop), loop)
        self._peer_messages = RaftPeerMessages()
        self._replica = Replica(self._pacer)
        self._runtime = NodeRuntime(
            settings,
            self._ports(settings),
            left=partial(self._end, 0),
            retired=partial(self._end, EXIT_REMOVED),
            members_changed=self._members_changed,
        )
        self._renewal = RenewalService(self._runtime, authority)
        self._listener = TlsEnrolmentListener(installation.directory)
        enrolment = EnrolmentService(self._runtime, authority, self._listener)
        self._own_certificate = OwnCertificate(
            self._runtime, authority.own_certificate, lambda: enrolment.is_certificate_wanted
        )
        control = ControlService(self._runtime, enrolment)
        self._server = ControlServer(
            installation.runtime_directory / CONTROL_SOCKET, partial(_handle, control)
        )

    def _ports(self, settings: NodeSettings) -> NodePorts:
        installation, loop = self._installation, self._loop
        clock = BoottimeClock(loop)
        agents, seals = self._agents()
        shipped = agents / "resource_agents"
        marks = own_marks(os.environ)
        incarnation = Incarnation(settings.boot_id, SystemEntropy().token())

        def has_lease() -> bool:
            return clock.now() < self._pacer.lease_until()

        fence_agents = FenceAgentPrograms(
            clock,
            loop,
            runtime_directory=installation.runtime_directory,
            node=settings.node,
            incarnation=incarnation,
            directories=FenceDirectories.installed(agents, installation.runtime_directory / CONTROL_SOCKET),
            allows_development=installation.is_development,
            own_environment=marks,
            has_lease=has_lease,
        )
        self._ocf = OcfAgents(
            clock,
            loop,
            runtime_directory=installation.runtime_directory,
            node=settings.node,
            incarnation=incarnation,
            service_group=self._group,
            spawner=self._spawner,
            directories=AgentDirectories(
                shipped=shipped,
                search=agent_search_path(),
                shims=agents / "shims",
                library=agent_library(agents),
                control_socket=installation.runtime_directory / CONTROL_SOCKET,
                own_environment=marks,
                seals=seals,
            ),
            has_lease=has_lease,
        )
        return NodePorts(
            clock=clock,
            entropy=SystemEntropy(),
            store=self._store(settings),
            pacer=self._pacer,
            peer_messages=self._peer_messages,
            agents=self._agents_by_class(clock, incarnation, has_lease, StonithAgents(clock, fence_agents)),
            fence_agents=fence_agents,
            alerts=ProcessAlertAgents(clock, loop, own_environment=marks),
            log=self._log,
            history=SqliteHistory(
                installation.state_directory / "history.sqlite",
                self._call_main,
                node=settings.node,
                peer_messages=self._peer_messages,
            ),
            planner=PlannerProcess(
                clock,
                loop,
                fragments=iter_fragments,
                failed=FailedPlans(installation.state_directory / FAILED_PLANS, iter_fragments),
            ),
            crashes=CrashFile(installation.runtime_directory / "crashes.json"),
            loop_stalls=self._loops,
            load=KernelLoad(),
            devices=self._device_watch(clock, seals),
            background=self._background,
            secrets=self._secret_keeper(),
        )

    def _secret_keeper(self) -> SealingKeeper:
        installation = self._installation
        keeper = SealingKeeper(installation.directory, installation.node)
        if keeper.problem:
            self._log.write("secrets.no-key", priority=Priority.ERROR, problem=keeper.problem)
        return keeper

    def _device_watch(self, clock: BoottimeClock, seals: Seals) -> DeviceWatch:
        """Return who watches devices: nobody where neither the PCI bus nor this node's settings name a GPU."""
        installation = self._installation
        if not installation.gpus and not on_bus():
            return NoDevices(clock)

        def say(kind: str, text: str) -> None:
            self._log.write(f"devices.{kind}", priority=Priority.WARNING, text=text)

        settings = {
            "declared": installation.gpus,
            "faults": str(installation.directory / FAULTS_FILE),
            "pretended": str(installation.runtime_directory / SIMULATED_FILE),
            "lock": str(installation.runtime_directory / LOCK_FILE),
            "recovered": str(installation.runtime_directory / RECOVERED_FILE),
        }
        if installation.is_development:
            settings.update(json.loads(os.environ.get(WATCH_VARIABLE, "{}")))
        self._gpus = GpuWatch(clock, self._loop, settings, say=say, seals=(seals.key, seals.since))
        return self._gpus

    def _agents_by_class(
        self, clock: BoottimeClock, incarnation: Incarnation, has_lease: Callable[[], bool], devices: AgentRunner
    ) -> AgentsByClass:
        runtime_directory = self._installation.runtime_directory
        self._units = SystemdAgents(
            clock,
            self._loop,
            runtime_directory=runtime_directory,
            incarnation=incarnation,
            places=SystemdPlaces(os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", DEFAULT_ADDRESS)),
            has_lease=has_lease,
            is_configured=lambda resource: base_of(resource) in self._runtime.cib.in_force.resources,
        )
        self._services = ServiceAgents(
            clock,
            runtime_directory=runtime_directory,
            incarnation=incarnation,
            scripts=self._ocf,
            units=self._units,
        )
        runners: dict[str, AgentRunner] = {
            "ocf": self._ocf,
            "lsb": self._ocf,
            "systemd": self._units,
            "service": self._services,
            "stonith": devices,
        }
        return AgentsByClass(clock, runners)

    def _agents(self) -> tuple[Path, Seals]:
        """Return where this daemon's agents are, which no upgrade of the package changes under it, and the seals."""
        state = self._installation.state_directory
        earlier_start = last_start(state)
        agents = self._own_agents()
        return agents, Seals.kept_in(state, earlier_start, last_start(state))

    def _own_agents(self) -> Path:
        share = share_directory()
        try:
            return copy_agents(share, self._installation.state_directory)
        except OSError as error:
            self._log.write("agents.not-copied", priority=Priority.WARNING, problem=str(error), used=str(share))
            return share

    def _store(self, settings: NodeSettings) -> RaftThread:
        return RaftThread(
            settings=RaftSettings(
                cluster=settings.cluster_uuid,
                node=settings.node,
                voters=tuple(member.name for member in settings.members if member.is_voter),
                learners=tuple(member.name for member in settings.members if not member.is_voter),
                timers=RaftTimers.derive(settings.timing.node_timeout_ms),
                boot_id=settings.boot_id,
                machine=machine_marks(self._installation.machine_id_file),
            ),
            directory=self._installation.state_directory,
            credentials=self._installation.directory,
            addresses={member.name: member.addresses for member in settings.members},
            machine=self._replica,
            call_main=self._call_main,
            fail=self._fail_stop,
            alive=self._raft_is_alive,
            main_silence_ms=self._pacer.main_silence_ms,
            loop_factory=self._loops.factory("raft"),
            peer_messages=self._peer_messages,
            heartbeat_sent=self._loops.heartbeats(),
            objection=self._objection,
            kept_out=self._kept_out,
        )

    def _raft_is_alive(self) -> None:
        self._raft_seen_at = time.monotonic()
        self._pacer.stamp_raft()

    def _objection(self, peer: NodeName, boot_id: str) -> str:
        """Judge, on the Raft thread, whether a boot of a peer may be talked to."""
        runtime = self._runtime
        return runtime.copied_nodes.objection(
            peer,
            boot_id,
            joined=self._replica.incarnation_of(peer),
            report=self._pacer.known_report(),
            now=runtime.ports.clock.now(),
            heartbeat_ms=runtime.timing.heartbeat_ms,
        )

    def _kept_out(self, peer: NodeName, why: str) -> None:
        self._runtime.copied_nodes.kept_out(peer, why, self._runtime.ports.clock.now())

    def _call_main(self, call: Callable[[], None]) -> None:
        """Make a call on the main loop, from any thread; a loop that has ended needs none."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    async def run(self) -> int:
        """Run until this node has left, or was asked to end; return the exit code."""
        self._loop.set_exception_handler(self._crash)
        await self._server.start()
        self._runtime.start()
        for number, act in ((signal.SIGTERM, self._drain), (signal.SIGINT, self._drain), (signal.SIGHUP, self._reload)):
            self._loop.add_signal_handler(number, act)
        gc.collect()
        gc.freeze()
        self._loops.reset()
        notify("READY=1")
        if WATCHDOG_VARIABLE in os.environ:
            notify(f"WATCHDOG_USEC={os.environ[WATCHDOG_VARIABLE]}")
        keeper = self._loop.create_task(self._keep_runtime_files())
        self._loop.call_later(LOAD_SCHEDULER_AFTER_S, self._background.load, load_scheduler)
        code = await self._ended
        if code == EXIT_REMOVED:
            print(REMOVED.format(node=self._installation.node), file=sys.stderr)
        keeper.cancel()
        notify(f"WATCHDOG_USEC={WHILE_NOBODY_FEEDS_US}")
        self._server.stop()
        self._listener.close()
        self._runtime.stop()
        if self._gpus is not None:
            self._gpus.stop()
        self._background.stop()
        self._units.stop()
        if self._spawner is not None:
            self._spawner.close()
        return code

    async def _keep_runtime_files(self) -> None:
        """Put back what somebody took out of the runtime directory: the control socket, records of running actions."""
        problem = ""
        while True:
            await asyncio.sleep(RUNTIME_FILES_EVERY_S)
            self._tell_systemd()
            try:
                has_listened = await self._server.listen_again()
                records = sum(each.keep_records() for each in (self._ocf, self._units, self._services))
                problem = ""
            except OSError as error:
                if str(error) != problem:
                    self._log.write("runtime-files.not-restored", priority=Priority.ERROR, problem=str(error))
                problem = str(error)
                continue
            if has_listened or records:
                directory = str(self._installation.runtime_directory)
                self._log.write("runtime-files.restored", priority=Priority.WARNING, directory=directory,
                                socket=has_listened, action_records=records)  # fmt: skip

    def _tell_systemd(self) -> None:
        """Keep its watchdog from expiring, as long as both loops live; say where this node stands, when that is new."""
        if time.monotonic() - self._raft_seen_at < RAFT_SILENT_S:
            notify("WATCHDOG=1")
        status = standing(self._runtime)
        if status != self._status:
            self._status = status
            notify(f"STATUS={status}")

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    def _adopt(self, certificate: str) -> bool:
        return self._renewal.adopt(certificate)

    def _members_changed(self, members: tuple[Member, ...]) -> None:
        """Remember them for the next start, off the main loop; a daemon that cannot write continues without."""

        def work() -> None:
            try:
                remember_members(self._installation, members)
            except OSError as error:
                self._log.write("members.not-written", priority=Priority.WARNING, problem=str(error))

        # One thread: what is newest is written last.
        self._loop.run_in_executor(self._writer, work)

    def _drain(self) -> None:
        if self._is_draining:
            self._end(EXIT_CRASHED)
            return
        self._is_draining = True
        notify("STOPPING=1")
        self._runtime.drain()

    def _reload(self) -> None:
        """Replace this program by the one that is installed now, if that one could continue; otherwise say why not."""
        if self._is_draining or self._is_checking:
            return
        self._is_checking = True
        self._background.run(why_not_to_go_on, self._checked)

    def _checked(self, problem: str) -> None:
        self._is_checking = False
        if problem:
            self._log.write("daemon.reload-refused", priority=Priority.ERROR, problem=problem)
            notify(f"STATUS=reload refused, the running program continues: {problem.splitlines()[0]}")
        elif not self._is_draining:
            self._renew()

    def _renew(self) -> None:
        """Put a new image into this process; its children stay its children, and are adopted by the new image."""
        self._log.write("daemon.renewed", priority=Priority.NOTICE)
        notify(f"RELOADING=1\nWATCHDOG_USEC={WHILE_NOBODY_FEEDS_US}")
        self._server.stop()
        self._runtime.stop()
        if self._gpus is not None:
            self._gpus.stop()
        self._background.stop()
        if self._spawner is not None:
            self._spawner.close()
        self._log.flush(FLUSH_MS)
        command = own_command()
        os.execv(command[0], command)

    def _crash(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody caught: record it, say it, end."""
        error = context.get("exception")
        detail = f"{context.get('message')}: {error!r}"
        trace = "".join(traceback.format_exception(error)) if isinstance(error, BaseException) else ""
        self._runtime.crashed(detail)
        self._log.write("daemon.crashed", priority=Priority.CRITICAL, detail=detail, trace=trace)
        self._log.flush(FLUSH_MS)
        os._exit(EXIT_CRASHED)

    def _fail_stop(self, reason: str) -> NoReturn:
        """The disk failed: memory may be ahead of it, so nothing more may be said to anybody (0002-store.md, 2)."""
        self._log.write("store.failed", priority=Priority.CRITICAL, reason=reason)
        self._log.flush(FLUSH_MS)
        os._exit(EXIT_CODE_IO_ERROR)


def _handle(control: ControlService, request: Request, peer: PeerCredentials, answer: Answer) -> HangUp:
    if request.credential is not None or peer.is_gateway:
        return control.handle(request, control.bearer(request.credential or ""), answer)
    return control.handle(request, control.caller(peer.author, is_trusted=peer.is_trusted, groups=peer.groups), answer)


def _node_settings(installation: Installation) -> NodeSettings:
    return NodeSettings(
        node=installation.node,
        cluster_uuid=installation.cluster_uuid,
        cluster_name=installation.cluster_name,
        members=_members(installation),
        boot_id=installation.boot_id(),
        keys=read_keys(installation.directory),
        timing=derive(installation.node_timeout_ms),
        watchdog=installation.watchdog,
        actions_max=max(8, 2 * (os.cpu_count() or 4)),
        derive_key=partial(_derive_key, installation),
    )


def _members(installation: Installation) -> tuple[Member, ...]:
    """Return the members; the first node of a cluster shows its certificate from the beginning."""
    if len(installation.members) > 1:
        return installation.members
    own = (installation.directory / NODE_CERTIFICATE).read_text()
    return tuple(replace(member, certificate=own) for member in installation.members)


def _derive_key(installation: Installation, peer: NodeName, certificate: str) -> bytes | None:
    """Return the heartbeat key shared with a member; None when its certificate is not one of this cluster's."""
    try:
        pem = {peer: certificate.encode()}
        return heartbeat_keys(installation.directory, installation.cluster_uuid, installation.node, pem)[peer]
    except (OSError, ValueError):
        return None


def main(arguments: list[str] | None = None) -> int:
    """Run the daemon; return the exit code."""
    options = _parser().parse_args(arguments)
    if not __debug__:
        return _refuse("python -O removes the checks that keep data safe; run without it", EXIT_USAGE)
    try:
        if options.check:
            return _check(options.configuration)
        installation = load(options.configuration)
        if options.initialize:
            print(f"prepared {initialize(installation)} for node {installation.node}")
            return 0
        installation.runtime_directory.mkdir(parents=True, exist_ok=True, mode=RUNTIME_MODE)
        return _run(installation)
    except StoreUnwritableError as error:
        return _refuse(UNWRITABLE.format(problem=error), EXIT_CODE_IO_ERROR)
    except tuple(CODES) as error:
        return _refuse(str(error), next(code for kind, code in CODES.items() if isinstance(error, kind)))
    except OSError as error:
        text = UNWRITABLE.format(problem=error) if error.errno in OF_DISKS else str(error)
        return _refuse(text, EXIT_CODE_IO_ERROR if error.errno in PASSING else EXIT_CONFIGURATION)


def _run(installation: Installation) -> int:
    log = standard_event_log()
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    _excepthook(log)

    run_first(LOOP_PRIORITY)
    # The Raft thread waits for the interpreter whenever it returns from the network or the disk: briefly.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    loops = MeasuredLoops()

    async def live() -> int:
        return await Daemon(installation, log, asyncio.get_running_loop(), loops).run()

    with asyncio.Runner(loop_factory=loops.factory("main")) as runner:
        code = runner.run(live())
    log.flush(FLUSH_MS)
    return code


def _excepthook(log: EventLog) -> None:
    """Let an error of any thread end the process: a daemon that lost a part of itself must not continue."""
    def ended(context: threading.ExceptHookArgs) -> None:
        log.write("daemon.crashed", priority=Priority.CRITICAL, detail=repr(context.exc_value))
        log.flush(FLUSH_MS)
        os._exit(EXIT_CRASHED)

    threading.excepthook = ended


def _check(configuration: Path) -> int:
    """Say whether this program could continue where the running one is."""
    from haclusterd.entry_points.self_check import problems

    found = problems(configuration)
    for problem in found:
        print(f"haclusterd: {problem}", file=sys.stderr)
    return EXIT_CONFIGURATION if found else 0


def _refuse(message: str, code: int) -> int:
    """Say why not; where it may work later, let a moment pass: systemd starts the daemon again at once, each time."""
    mark = f"<{Priority.CRITICAL}>" if "JOURNAL_STREAM" in os.environ else ""
    print(f"{mark}haclusterd: {message}", file=sys.stderr)
    if code in AGAIN_AFTER_S:
        notify(f"STATUS={message}")
        time.sleep(AGAIN_AFTER_S[code])
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haclusterd",
        description="The peer daemon of one cluster node.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--configuration",
        type=Path,
        default=CONFIGURATION_DIRECTORY / CONFIGURATION_FILE,
        metavar="FILE",
        help="who this node is (default: %(default)s)",
    )
    parser.add_argument(
        "--initialize",
        action="store_true",
        help="prepare the empty state directory of a new member, once, and end",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="say whether this program is whole and could continue where a running one is, and end; changes nothing",
    )
    return parser
