"""What happens to a running service when its cluster manager is killed, stopped, renewed or asked to leave."""

import fcntl
import os
import shutil
import signal
from pathlib import Path

import pytest

from haclusterd.adapters.machine.installation import resource_agents_directory
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.processes.daemons import Scenario, is_watched, kill

pytestmark = pytest.mark.processes


def test_three_daemons_form_a_cluster_and_run_a_service(scenario: Scenario) -> None:
    scenario.form().with_service()
    scenario.until("all to be well", lambda: scenario.status()["verdict"] == "HEALTHY")
    assert scenario.events("node-lost") == []


def test_kill_9_of_the_dcs_brain_disturbs_no_service(running: Scenario) -> None:
    dc, holder = running.dc(), running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    running.brain(dc).kill()
    running.until("another DC", lambda: running.status()["dc"] not in (None, dc))
    running.restart_brain(dc)
    running.until("all nodes online", lambda: running.online() == {"n1", "n2", "n3"})
    running.settle()
    assert running.service_pids(holder) == before
    assert running.events("node-lost") == []


def test_kill_9_of_the_holders_brain_and_the_new_one_takes_the_service_over(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    running.brain(holder).kill()
    running.restart_brain(holder)
    running.until("the node to rejoin", lambda: f"{holder} restarted" in str(running.events("node-joined")))
    running.settle()
    assert running.service_pids(holder) == before

    kill(before[0])
    running.until("the service to be restarted", lambda: running.service_pids(holder) not in ([], before))


def test_kill_9_of_a_pacer_fences_nobody(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    before, leases = running.service_pids(holder), running.log(holder, "pacer").count("lease held")
    running.pacer(holder).kill()
    running.pacer(holder).wait(10)
    running.cluster.start_pacer(holder)
    running.until("the pacer to serve again", lambda: running.log(holder, "pacer").count("lease held") > leases)
    running.hold("the service runs on", lambda: running.service_pids(holder) == before, for_s=3)
    assert running.events("node-lost") == []


def test_a_killed_service_is_restarted_at_once_without_waiting_for_its_monitor(running: Scenario) -> None:
    running.configure("primitive slow ocf:haclusterd:exec params command=sleep args=99999 "
                      "op monitor interval=10min timeout=10s")
    running.settle()
    holder = running.holder()
    assert holder is not None
    brain = running.brain(holder).pid
    running.until("its daemon to watch it", lambda: is_watched(brain, running.service_pids(holder)))
    kill(running.service_pids(holder)[0])
    running.until("an event", lambda: "event.service-died" in running.log(holder))
    running.until("a new process", lambda: running.holder() == holder)
    running.settle()
    assert any("monitor of svc" in event["text"] for event in running.events("operation-failed"))


def test_a_brain_that_is_stopped_for_a_while_costs_nothing(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    kill(running.brain(holder).pid, signal.SIGSTOP)
    others = [name for name in running.cluster.names if name != holder]
    running.until("a DC on another node", lambda: running.status(others[0])["dc"] in others)
    running.hold("nobody is lost", lambda: running.service_pids(holder) == before, for_s=4)
    kill(running.brain(holder).pid, signal.SIGCONT)
    running.until("everybody online and idle", lambda: len(running.online()) == 3 and running.is_idle())
    assert running.service_pids(holder) == before
    assert running.events("node-lost") == []


def test_sighup_renews_the_brain_in_place(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    before, pid, starts = running.service_pids(holder), running.brain(holder).pid, starts_of(running, holder)
    kill(pid, signal.SIGHUP)
    running.until("the new image", lambda: starts_of(running, holder) == starts + 1)
    running.until("the node to rejoin", lambda: f"{holder} restarted" in str(running.events("node-joined")))
    running.settle()
    assert running.brain(holder).pid == pid
    assert running.brain(holder).poll() is None
    assert running.service_pids(holder) == before
    assert running.events("node-lost") == []


def starts_of(scenario: Scenario, node: str) -> int:
    return scenario.log(node).count("daemon.start")


def test_an_emptied_runtime_directory_is_filled_again_and_nothing_runs_twice(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    runtime = running.cluster.nodes[NodeName(holder)].runtime
    socket = runtime / "control.sock"
    socket.unlink()
    shutil.rmtree(runtime / "agent-state")
    running.until("the socket to be back", socket.exists)
    running.until("the daemon to answer", lambda: running.status(holder)["dc"] is not None)
    assert "runtime-files.restored" in running.log(holder)
    running.hold("the one service", lambda: running.service_pids(holder) == before, for_s=3)
    assert running.events("operation-failed") == []


def test_sighup_is_refused_while_the_program_could_not_go_on(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    brain, starts = running.brain(holder), starts_of(running, holder)
    configuration = running.cluster.nodes[NodeName(holder)].bundle / CONFIGURATION_FILE
    good = configuration.read_text()
    configuration.write_text(f"{good}\nnonsense: 1\n")
    brain.send_signal(signal.SIGHUP)
    running.until("the refusal", lambda: "daemon.reload-refused" in running.log(holder))
    assert "nonsense" in running.log(holder)
    assert brain.poll() is None
    assert running.status(holder)["dc"] is not None
    configuration.write_text(good)
    brain.send_signal(signal.SIGHUP)
    running.until("the new image", lambda: starts_of(running, holder) == starts + 1)
    running.until("everybody online", lambda: running.online() == set(running.cluster.names))
    assert running.events("node-lost") == []


def test_sigterm_drains_the_node_and_leaves(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    running.brain(holder).terminate()
    assert running.brain(holder).wait(30) == 0
    running.until("the service on another node", lambda: running.holder() not in (None, holder))
    assert running.service_pids(holder) == []
    running.until("its leave to be known", lambda: running.states().get(holder) == "left")
    assert running.events("node-lost") == []


def test_a_daemon_waits_for_its_pacer_before_it_joins(running: Scenario) -> None:
    node = next(name for name in running.cluster.names if name not in (running.dc(), running.holder()))
    running.brain(node).terminate()
    assert running.brain(node).wait(30) == 0
    running.pacer(node).terminate()
    assert running.pacer(node).wait(10) == 0
    running.cluster.start_brain(node)

    def words() -> str:
        found = [each["held_join"] for each in running.status(node)["nodes"] if each["name"] == node]
        return found[0] if found else ""

    running.until("words about the pacer", lambda: "haclusterd-pacer does not answer" in words())
    running.hold("the node is outside", lambda: running.states()[node] == "left", for_s=4)
    running.cluster.start_pacer(node)
    running.until("the node to join", lambda: running.states()[node] == "online")
    assert running.events("node-lost") == []


def test_every_node_shows_what_the_dcs_plan_warns_of(running: Scenario) -> None:
    running.configure(
        'primitive stuck ocf:haclusterd:flaky params on_start="rc=1" op start timeout=20s on-fail=block '
        "op monitor interval=10s timeout=20s"
    )

    def says_so(name: str) -> bool:
        return any("stuck" in text for text in running.status(name)["warnings"])

    running.until("all nodes to say that it is blocked", lambda: all(map(says_so, running.cluster.names)))
    running.must("configure.delete", ids=["stuck"], force=True)
    running.must("resource.cleanup")
    running.until("nothing to be said", lambda: not any(map(says_so, running.cluster.names)))


def test_a_slow_start_delays_nothing_else(running: Scenario) -> None:
    holder, dc = running.holder(), running.dc()
    assert holder is not None
    stuck = running.cluster.directory / "stuck"
    term = running.status()["term"]
    running.configure(
        f'primitive heavy ocf:haclusterd:dummy params sleep_start=10 state={stuck} op start timeout=30s',
        f"location heavy-there heavy inf: {holder}",
    )
    running.until("its start", lambda: "resource=heavy action=start" in running.log(holder))
    before = monitors(running, holder)
    running.until("the other monitor to go on", lambda: monitors(running, holder) >= before + 4)
    assert "start of heavy" not in str(running.events("operation-succeeded"))
    running.until("the start's end", lambda: "start of heavy" in str(running.events("operation-succeeded")))
    assert (running.status()["term"], running.dc()) == (term, dc)


def monitors(scenario: Scenario, node: str) -> int:
    return scenario.log(node).count("resource=svc action=monitor")


def test_an_exec_that_is_stuck_for_5_s_delays_nothing_else(running: Scenario, tmp_path: Path) -> None:
    agent = running.agents / "test" / "stuck"
    agent.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(resource_agents_directory() / "dummy", agent)
    ignored = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        holder, dc = running.holder(), running.dc()
        assert holder is not None
        running.configure(
            f"primitive stuck ocf:test:stuck params state={tmp_path}/state meta target-role=Stopped "
            "op start timeout=30s op monitor interval=10s timeout=10s",
            f"location stuck-there stuck inf: {holder}",
        )
        running.settle()
        term = running.status()["term"]
        # A lease on the agent's file: a process that executes it waits in the kernel until the file is closed here.
        descriptor = os.open(agent, os.O_RDONLY)
        running.until("nobody else to have it open", lambda: is_leased(descriptor))
        running.must("resource.start", resources=["stuck"], wait_ms=0)
        running.until("the start", lambda: "resource=stuck action=start" in running.log(holder))
        before = monitors(running, holder)
        running.hold("it is stuck", lambda: "start of stuck" not in str(running.events("operation-succeeded")), 5)
        running.until("the other monitor to go on", lambda: monitors(running, holder) >= before + 4)
        assert "start of stuck" not in str(running.events("operation-succeeded"))
        os.close(descriptor)
        running.until("its start", lambda: "start of stuck" in str(running.events("operation-succeeded")))
        assert (running.status()["term"], running.dc()) == (term, dc), "no election"
        assert running.events("node-lost") == []
    finally:
        signal.signal(signal.SIGIO, ignored)


def is_leased(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    return True


def test_everything_is_stopped_and_started_again_with_its_state(running: Scenario) -> None:
    epoch = running.status()["configuration"]["version"]
    running.cluster.stop()
    assert running.holder() is None
    for name in running.cluster.names:
        running.cluster.boot(name)
    running.form()
    running.until("the service to run", lambda: running.holder() is not None)
    assert running.status()["configuration"]["version"] == epoch


def test_a_power_loss_of_all_nodes_keeps_what_was_acknowledged(running: Scenario) -> None:
    epoch = running.status()["configuration"]["version"]
    for name in running.cluster.names:
        running.cluster.silence(name)
    for name in running.cluster.names:
        running.cluster.power_off(name)
    for name in running.cluster.names:
        running.cluster.boot(name)
    running.form()
    running.until("the service to run", lambda: running.holder() is not None)
    assert running.status()["configuration"]["version"] == epoch
    assert running.events("node-lost") == []


def test_a_silent_node_is_fenced_and_its_service_recovered_on_another(running: Scenario) -> None:
    holder = running.holder()
    assert holder is not None
    running.cluster.silence(holder)
    running.until("the fencing", lambda: running.cluster.processes(holder) == [])
    running.until("the service on another node", lambda: running.holder() not in (None, holder))
    running.until("the record", lambda: running.states().get(holder) == "fenced")


def test_a_frozen_node_without_a_lease_runs_on(running: Scenario) -> None:
    running.configure("property no-quorum-policy=freeze")
    holder = running.holder()
    assert holder is not None
    before = running.service_pids(holder)
    others = [name for name in running.cluster.names if name != holder]
    for name in others:
        kill(running.pacer(name).pid, signal.SIGSTOP)
    running.until("the end of its lease", lambda: not running.has_lease(holder))
    running.hold("the service runs on", lambda: running.service_pids(holder) == before, for_s=3)
    for name in others:
        kill(running.pacer(name).pid, signal.SIGCONT)
    running.until("the lease again", lambda: running.has_lease(holder))
    running.until("all nodes online", lambda: len(running.online()) == 3)
    assert running.service_pids(holder) == before
