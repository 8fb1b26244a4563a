"""What happens to a running service when its cluster manager is killed, stopped, renewed or asked to leave."""

import fcntl
import os
import shutil
import signal
from pathlib import Path

import pytest

from haclusterd.adapters.installation import resource_agents_directory
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.processes.daemons import Scenario, is_watched, kill

pytestmark = pytest.mark.processes


def test_three_daemons_form_a_cluster_and_run_a_service(scenario: Scenario) -> None:
    scenario.form().with_service()
    scenario.until("all to be well", lambda: scenario.status()["verdict"] == "HEALTHY")
    assert scenario.events("node-lost") == []


def test_kill_9_of_the_dcs_brain_disturbs_no_service(scenario: Scenario) -> None:
    scenario.form().with_service()
    dc, holder = scenario.dc(), scenario.holder()
    assert holder is not None
    before = scenario.service_pids(holder)
    scenario.brain(dc).kill()
    scenario.until("another DC", lambda: scenario.status()["dc"] not in (None, dc))
    scenario.restart_brain(dc)
    scenario.until("all nodes online", lambda: scenario.online() == {"n1", "n2", "n3"})
    scenario.settle()
    assert scenario.service_pids(holder) == before
    assert scenario.events("node-lost") == []


def test_kill_9_of_the_holders_brain_and_the_new_one_takes_the_service_over(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    before = scenario.service_pids(holder)
    scenario.brain(holder).kill()
    scenario.restart_brain(holder)
    scenario.until("the node to rejoin", lambda: f"{holder} restarted" in str(scenario.events("node-joined")))
    scenario.settle()
    assert scenario.service_pids(holder) == before

    kill(before[0])
    scenario.until("the service to be restarted", lambda: scenario.service_pids(holder) not in ([], before))


def test_kill_9_of_a_pacer_fences_nobody(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    before, leases = scenario.service_pids(holder), scenario.log(holder, "pacer").count("lease held")
    scenario.pacer(holder).kill()
    scenario.pacer(holder).wait(10)
    scenario.cluster.start_pacer(holder)
    scenario.until("the pacer to serve again", lambda: scenario.log(holder, "pacer").count("lease held") > leases)
    scenario.hold("the service runs on", lambda: scenario.service_pids(holder) == before, for_s=3)
    assert scenario.events("node-lost") == []


def test_a_killed_service_is_restarted_at_once_without_waiting_for_its_monitor(scenario: Scenario) -> None:
    scenario.form().with_service("primitive slow ocf:haclusterd:exec params command=sleep args=99999 "
                                 "op monitor interval=10min timeout=10s")
    scenario.settle()
    holder = scenario.holder()
    assert holder is not None
    brain = scenario.brain(holder).pid
    scenario.until("its daemon to watch it", lambda: is_watched(brain, scenario.service_pids(holder)))
    kill(scenario.service_pids(holder)[0])
    scenario.until("an event", lambda: "event.service-died" in scenario.log(holder))
    scenario.until("a new process", lambda: scenario.holder() == holder)
    scenario.settle()
    assert any("monitor of svc" in event["text"] for event in scenario.events("operation-failed"))


def test_a_brain_that_is_stopped_for_a_while_costs_nothing(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    before = scenario.service_pids(holder)
    kill(scenario.brain(holder).pid, signal.SIGSTOP)
    others = [name for name in scenario.cluster.names if name != holder]
    scenario.until("a DC elsewhere", lambda: scenario.status(others[0])["dc"] in others)
    scenario.hold("nobody is lost", lambda: scenario.service_pids(holder) == before, for_s=4)
    kill(scenario.brain(holder).pid, signal.SIGCONT)
    scenario.until("everybody online and idle", lambda: len(scenario.online()) == 3 and scenario.is_idle())
    assert scenario.service_pids(holder) == before
    assert scenario.events("node-lost") == []


def test_sighup_renews_the_brain_in_place(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    before, pid = scenario.service_pids(holder), scenario.brain(holder).pid
    kill(pid, signal.SIGHUP)
    scenario.until("the new image", lambda: scenario.log(holder).count("daemon.start") == 2)
    scenario.until("the node to rejoin", lambda: f"{holder} restarted" in str(scenario.events("node-joined")))
    scenario.settle()
    assert scenario.brain(holder).pid == pid
    assert scenario.brain(holder).poll() is None
    assert scenario.service_pids(holder) == before
    assert scenario.events("node-lost") == []


def test_an_emptied_runtime_directory_is_filled_again_and_nothing_runs_twice(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    before = scenario.service_pids(holder)
    runtime = scenario.cluster.nodes[NodeName(holder)].runtime
    socket = runtime / "control.sock"
    socket.unlink()
    shutil.rmtree(runtime / "agent-state")
    scenario.until("the socket to be back", socket.exists)
    scenario.until("the daemon to answer", lambda: scenario.status(holder)["dc"] is not None)
    assert "runtime-files.restored" in scenario.log(holder)
    scenario.hold("the one service", lambda: scenario.service_pids(holder) == before, for_s=3)
    assert scenario.events("operation-failed") == []


def test_sighup_is_refused_while_the_program_could_not_go_on(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    brain = scenario.brain(holder)
    configuration = scenario.cluster.nodes[NodeName(holder)].bundle / CONFIGURATION_FILE
    good = configuration.read_text()
    configuration.write_text(f"{good}\nnonsense: 1\n")
    brain.send_signal(signal.SIGHUP)
    scenario.until("the refusal", lambda: "daemon.reload-refused" in scenario.log(holder))
    assert "nonsense" in scenario.log(holder)
    assert brain.poll() is None
    assert scenario.status(holder)["dc"] is not None
    configuration.write_text(good)
    brain.send_signal(signal.SIGHUP)
    scenario.until("the new image", lambda: scenario.log(holder).count("daemon.start") == 2)
    scenario.until("everybody online", lambda: scenario.online() == set(scenario.cluster.names))
    assert scenario.events("node-lost") == []


def test_sigterm_drains_the_node_and_leaves(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    scenario.brain(holder).terminate()
    assert scenario.brain(holder).wait(30) == 0
    scenario.until("the service elsewhere", lambda: scenario.holder() not in (None, holder))
    assert scenario.service_pids(holder) == []
    scenario.until("its leave to be known", lambda: scenario.states().get(holder) == "left")
    assert scenario.events("node-lost") == []


def test_a_daemon_waits_for_its_pacer_before_it_joins(scenario: Scenario) -> None:
    scenario.form().with_service()
    node = next(name for name in scenario.cluster.names if name not in (scenario.dc(), scenario.holder()))
    scenario.brain(node).terminate()
    assert scenario.brain(node).wait(30) == 0
    scenario.pacer(node).terminate()
    assert scenario.pacer(node).wait(10) == 0
    scenario.cluster.start_brain(node)

    def words() -> str:
        found = [each["held_join"] for each in scenario.status(node)["nodes"] if each["name"] == node]
        return found[0] if found else ""

    scenario.until("words about the pacer", lambda: "haclusterd-pacer does not answer" in words())
    scenario.hold("the node is outside", lambda: scenario.states()[node] == "left", for_s=4)
    scenario.cluster.start_pacer(node)
    scenario.until("the node to join", lambda: scenario.states()[node] == "online")
    assert scenario.events("node-lost") == []


def test_a_slow_start_delays_nothing_else(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder, dc = scenario.holder(), scenario.dc()
    assert holder is not None
    stuck = scenario.cluster.directory / "stuck"
    term = scenario.status()["term"]
    scenario.configure(
        f'primitive heavy ocf:haclusterd:dummy params sleep_start=10 state={stuck} op start timeout=30s',
        f"location heavy-there heavy inf: {holder}",
    )
    scenario.until("its start", lambda: "resource=heavy action=start" in scenario.log(holder))
    before = monitors(scenario, holder)
    scenario.until("the other monitor to go on", lambda: monitors(scenario, holder) >= before + 4)
    assert "start of heavy" not in str(scenario.events("operation-succeeded"))
    scenario.until("the start's end", lambda: "start of heavy" in str(scenario.events("operation-succeeded")))
    assert (scenario.status()["term"], scenario.dc()) == (term, dc)


def monitors(scenario: Scenario, node: str) -> int:
    return scenario.log(node).count("resource=svc action=monitor")


def test_an_exec_that_is_stuck_for_5_s_delays_nothing_else(tmp_path: Path) -> None:
    agent = tmp_path / "ocf" / "test" / "stuck"
    agent.parent.mkdir(parents=True)
    shutil.copy(resource_agents_directory() / "dummy", agent)
    scenario = Scenario(tmp_path / "cluster", OCF_RA_PATH=str(tmp_path / "ocf"))
    ignored = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        scenario.form().with_service(
            f"primitive stuck ocf:test:stuck params state={tmp_path}/state meta target-role=Stopped "
            "op start timeout=30s op monitor interval=10s timeout=10s"
        )
        holder, dc = scenario.holder(), scenario.dc()
        assert holder is not None
        scenario.configure(f"location stuck-there stuck inf: {holder}")
        scenario.settle()
        term = scenario.status()["term"]
        # A lease on the agent's file: whoever executes it waits in the kernel until the file is closed here.
        descriptor = os.open(agent, os.O_RDONLY)
        scenario.until("nobody else to have it open", lambda: is_leased(descriptor))
        scenario.must("resource.start", resources=["stuck"], wait_ms=0)
        scenario.until("the start", lambda: "resource=stuck action=start" in scenario.log(holder))
        before = monitors(scenario, holder)
        scenario.hold("it is stuck", lambda: "start of stuck" not in str(scenario.events("operation-succeeded")), 5)
        scenario.until("the other monitor to go on", lambda: monitors(scenario, holder) >= before + 4)
        assert "start of stuck" not in str(scenario.events("operation-succeeded"))
        os.close(descriptor)
        scenario.until("its start", lambda: "start of stuck" in str(scenario.events("operation-succeeded")))
        assert (scenario.status()["term"], scenario.dc()) == (term, dc), "no election"
        assert scenario.events("node-lost") == []
    finally:
        signal.signal(signal.SIGIO, ignored)
        scenario.close()


def is_leased(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return False
    return True


def test_everything_is_stopped_and_started_again_with_its_state(scenario: Scenario) -> None:
    scenario.form().with_service()
    epoch = scenario.status()["configuration"]["version"]
    scenario.cluster.stop()
    assert scenario.holder() is None
    for name in scenario.cluster.names:
        scenario.cluster.boot(name)
    scenario.form()
    scenario.until("the service to run", lambda: scenario.holder() is not None)
    assert scenario.status()["configuration"]["version"] == epoch


def test_a_power_loss_of_all_nodes_keeps_what_was_acknowledged(scenario: Scenario) -> None:
    scenario.form().with_service()
    epoch = scenario.status()["configuration"]["version"]
    for name in scenario.cluster.names:
        scenario.cluster.silence(name)
    for name in scenario.cluster.names:
        scenario.cluster.power_off(name)
    for name in scenario.cluster.names:
        scenario.cluster.boot(name)
    scenario.form()
    scenario.until("the service to run", lambda: scenario.holder() is not None)
    assert scenario.status()["configuration"]["version"] == epoch
    assert scenario.events("node-lost") == []


def test_a_silent_node_is_fenced_and_its_service_recovered_elsewhere(scenario: Scenario) -> None:
    scenario.form().with_service()
    holder = scenario.holder()
    assert holder is not None
    scenario.cluster.silence(holder)
    scenario.until("the fencing", lambda: scenario.cluster.processes(holder) == [])
    scenario.until("the service elsewhere", lambda: scenario.holder() not in (None, holder))
    scenario.until("the record", lambda: scenario.states().get(holder) == "fenced")
