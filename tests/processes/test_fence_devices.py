"""Stock fence agents, unmodified, as devices of a running cluster; what they switch is the power of its nodes."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.processes.daemons import Scenario
from tests.processes.power_devices import PASSWORD, USER, Bmcs, RedfishService, SharedDisk, power_switch

pytestmark = [pytest.mark.processes, pytest.mark.slow]

SERVICE = (
    "primitive svc ocf:haclusterd:exec params command=sleep args=100000 "
    "op monitor interval=1s timeout=10s op start timeout=20s op stop timeout=20s"
)


def needs(*programs: str) -> pytest.MarkDecorator:
    places = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    missing = [program for program in programs if shutil.which(program, path=places) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def with_devices(scenario: Scenario, *devices: str) -> None:
    """Let these devices, and no others, fence the nodes before the service starts."""
    scenario.replace(scenario.power())
    scenario.until("the service to end", lambda: scenario.holder() is None)
    scenario.settle()
    scenario.replace(*devices, SERVICE, "rsc_defaults resource-stickiness=100")
    scenario.until("the service to run", lambda: scenario.holder() is not None)
    scenario.settle()


def kill_holder(scenario: Scenario) -> str:
    """Let the node that runs the service fall silent, but live on: only its device ends it. Return its name."""
    victim = scenario.holder()
    assert victim is not None
    assert scenario.cluster.silence(victim)
    scenario.until("the service on another node", lambda: scenario.holder() not in (None, victim))
    assert scenario.cluster.processes(victim) == [], "its device ended it before anything was recovered"
    scenario.settle()
    return victim


def records(scenario: Scenario) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = scenario.must("fencing.history")["records"]
    return found


def proofs(scenario: Scenario, node: str) -> dict[str, str]:
    [row] = scenario.must("fencing.list", node=node)["nodes"]
    return {device["device"]: device["proof"] for level in row["levels"] for device in level}


@needs("fence_ipmilan", "ipmi_sim", "ipmitool")
def test_fence_ipmilan_resets_a_node_through_its_bmc(running: Scenario, tmp_path: Path) -> None:
    bmcs = Bmcs(tmp_path / "bmcs", running.cluster)
    try:
        with_devices(running, *(
            f"primitive bmc-{node} stonith:fence_ipmilan params ip=127.0.0.1 ipport={port} username={USER} "
            f"password={PASSWORD} lanplus=1 cipher=3 power_wait=0 pcmk_host_list={node} op monitor interval=10s"
            for node, port in bmcs.ports.items()
        ))  # fmt: skip
        running.until("all devices to answer", lambda: len(started(running, "bmc-n1", "bmc-n2", "bmc-n3")) == 3)
        victim = kill_holder(running)
        [record] = records(running)
        assert (record["target"], record["devices"], record["outcome"]) == (victim, [f"bmc-{victim}"], "fenced")
        assert proofs(running, victim) == {f"bmc-{victim}": "tested"}
        assert all(PASSWORD not in running.log(node) for node in running.cluster.names)
    finally:
        bmcs.close()


def started(scenario: Scenario, *devices: str) -> list[str]:
    rows = scenario.must("resource.status", resources=list(devices))["resources"]
    return [row["id"] for row in rows if any(each["state"] == "started" for each in row["instances"])]


@needs("fence_redfish", "openssl")
def test_fence_redfish_resets_nodes_through_one_service(running: Scenario, tmp_path: Path) -> None:
    service = RedfishService(tmp_path / "redfish", running.cluster)
    systems = ";".join(f"{node}:/redfish/v1/Systems/{node}" for node in running.cluster.names)
    try:
        with_devices(
            running,
            f"primitive redfish stonith:fence_redfish params ip=127.0.0.1 ipport={service.port} username={USER} "
            f'password={PASSWORD} ssl_insecure=1 power_wait=0 systems_uri=dynamic pcmk_host_map="{systems}" '
            "pcmk_host_argument=systems_uri pcmk_monitor_action=metadata",
        )
        victim = kill_holder(running)
        assert service.requests == [(victim, "ForceOff"), (victim, "On")]
        assert records(running)[-1]["outcome"] == "fenced"
    finally:
        service.close()


@needs("fence_dummy")
def test_all_devices_of_a_level_cut_the_power_and_a_dummy_lets_nodes_in(running: Scenario, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    power = f"nodes_dir={running.cluster.nodes_directory}"
    with_devices(
        running,
        f"primitive power stonith:fence_local params {power}",
        f"primitive gate stonith:fence_dummy params type=file status_file={gate} meta provides=unfencing",
        "fencing_topology n1: gate,power n2: gate,power n3: gate,power",
    )
    assert gate.read_text() == "on"
    let_in = running.events("node-unfenced")
    assert {event["node"] for event in let_in} == {"n1", "n2", "n3"}
    first_start = next(event["index"] for event in running.events() if "start of svc" in event["text"])
    holder = running.holder()
    assert next(event["index"] for event in let_in if event["node"] == holder) < first_start

    victim = kill_holder(running)
    assert proofs(running, victim) == {"gate": "tested", "power": "tested"}
    assert gate.read_text() == "off", "it lets nobody in who may live: the node is let in when it joins"

    running.cluster.power_off(victim)
    running.cluster.boot(victim)
    running.cluster.start([victim])
    again = [*(event["node"] for event in let_in), victim]

    def is_let_in() -> bool:
        return [event["node"] for event in running.events("node-unfenced")] == again

    running.until(f"{victim} to be let in again", is_let_in)
    assert gate.read_text() == "on"
    running.settle()


@needs("fence_sbd", "sbd", "losetup")
def test_fence_sbd_leaves_its_message_on_the_shared_disk(running: Scenario, tmp_path: Path) -> None:
    try:
        disk = SharedDisk(tmp_path / "disk", running.cluster.names)
    except OSError as error:
        pytest.skip(f"no loop device: {error}")
    try:
        power = f"nodes_dir={running.cluster.nodes_directory}"
        with_devices(
            running,
            f"primitive power stonith:fence_local params {power}",
            f"primitive pill stonith:fence_sbd params devices={disk.device}",
            *(f"fencing_topology {node}: pill,power" for node in running.cluster.names[:1]),
            "property fencing-action=off",
        )
        assert [disk.message(node) for node in running.cluster.names] == ["clear"] * 3
        assert running.answer("fencing.test", node="n1").exit != 0, "not without --force"
        [step] = running.must("fencing.plan", node="n1")["steps"]
        assert [device["device"] for device in step["devices"]] == ["pill", "power"]
        assert running.cluster.silence("n1")
        running.until("n1 to be fenced", lambda: running.states().get("n1") == "fenced")
        assert disk.message("n1") == "off"
        assert proofs(running, "n1") == {"pill": "tested", "power": "tested"}
    finally:
        disk.close()


PLUGIN = """#!/bin/sh
# An external plugin as cluster-glue has them: it cuts a node's power, and gives it back.
switch() {{ printf 'action=%s\\nplug=%s\\nnodes_dir={nodes}\\n' "$1" "$2" | {switch}; }}
case $1 in
getinfo-xml) echo '<parameters><parameter name="hostlist" required="1"><content type="string"/></parameter>'
    echo '<parameter name="passwd"><content type="string"/></parameter></parameters>'; exit ;;
getconfignames) echo hostlist passwd; exit ;;
getinfo-*) exit ;;
esac
echo "$*" >>{log}
case $1 in
gethosts) {hosts} ;;
status) exit 0 ;;
reset) {reset} ;;
*) exit 1 ;;
esac
"""
HOSTS = "echo $hostlist"
RESET = 'switch off "$2" && switch on "$2"'


def write_plugin(scenario: Scenario, name: str, *, hosts: str = HOSTS, reset: str = RESET) -> Path:
    """Write an external plugin; return the file in which it notes what it is asked."""
    log = scenario.plugins / f".{name}.log"
    path = scenario.plugins / name
    scenario.plugins.mkdir(exist_ok=True)
    path.write_text(PLUGIN.format(
        nodes=scenario.cluster.nodes_directory, switch=power_switch(), log=log, hosts=hosts, reset=reset
    ))  # fmt: skip
    path.chmod(0o755)
    return log


def stonith_admin(scenario: Scenario, *words: str) -> str:
    """Call the tool as Pacemaker's users know it; return what it prints."""
    return str(scenario.must("tool.run", tool="stonith_admin", words=list(words), node="n1")["out"])


def test_an_external_plugin_of_cluster_glue_resets_a_node_that_it_lists(running: Scenario) -> None:
    """Which nodes a device can fence, the plugin is asked: no parameter for the cluster says it."""
    victim = running.holder()
    log = write_plugin(running, "power", hosts=f"echo {victim}")
    others = " ".join(name for name in running.cluster.names if name != victim)
    asked_in_vain = write_plugin(running, "others", hosts=f"echo {others}")
    missing = running.answer("configure.script", text="primitive x stonith:external/sbd params pcmk_delay_max=30s\n",
                             source="test")  # fmt: skip
    assert missing.exit != 0
    [refusal] = [each for each in missing.reports if "external/sbd" in each.message]
    assert "cluster-glue" in refusal.remedy
    assert "stonith:fence_sbd" in refusal.remedy

    with_devices(
        running,
        "primitive a-others stonith:external/others params hostlist=its-own op monitor interval=10s",
        f"primitive b-holder stonith:external/power params hostlist=its-own passwd={PASSWORD} pcmk_delay_base=10ms",
        f"location here svc inf: {victim}",
    )
    running.until("both devices to answer", lambda: len(started(running, "a-others", "b-holder")) == 2)
    assert "external/power" in stonith_admin(running, "-I").splitlines()
    assert '<parameter name="hostlist" unique="0" required="1">' in stonith_admin(running, "-M", "-a", "external/power")
    assert stonith_admin(running, "-L") == "a-others\nb-holder\n2 fence devices found\n"
    assert set(log.read_text().splitlines()) == {"status"}
    running.must("configure.delete", ids=["here"])
    running.settle()
    assert kill_holder(running) == victim
    failed, fenced = records(running)
    assert (failed["devices"], failed["outcome"]) == (["a-others"], "failed")
    assert f"a-others does not list {victim}" in failed["detail"]
    assert (fenced["devices"], fenced["outcome"], fenced["target"]) == (["b-holder"], "fenced", victim)
    assert proofs(running, victim)["b-holder"] == "tested"
    assert [line for line in log.read_text().splitlines() if line != "status"] == ["gethosts", f"reset {victim}"]
    assert [line for line in asked_in_vain.read_text().splitlines() if line != "status"] == ["gethosts"]
    assert all(PASSWORD not in running.log(node) for node in running.cluster.names)


def test_plugins_that_fail_in_every_way_leave_the_fencing_to_one_that_works(running: Scenario) -> None:
    hosts = " ".join(running.cluster.names)
    faulty = {
        "hangs": {"reset": "sleep 5100 & wait"},
        "fails": {"reset": "exit 300"},
        "silent": {"hosts": "exit 0"},
        "floods": {"hosts": "yes n1 n2 n3 | head -c 100000000"},
    }
    for name, words in faulty.items():
        write_plugin(running, name, **words)
    write_plugin(running, "works", reset=f"head -c 100000000 /dev/zero; {RESET}")
    with_devices(running, *(
        f'primitive {number}-{name} stonith:external/{name} params hostlist="{hosts}" pcmk_reboot_retries=1 '
        "pcmk_list_retries=1 pcmk_reboot_timeout=10s".replace("10s", "2s" if name == "hangs" else "10s")
        for number, name in zip("abcde", [*faulty, "works"], strict=True)
    ))  # fmt: skip
    victim = kill_holder(running)
    found = {each["devices"][0]: (each["outcome"], each["detail"]) for each in records(running)}
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "a-hangs": "timeout", "b-fails": "failed", "c-silent": "failed", "d-floods": "failed", "e-works": "fenced",
    }  # fmt: skip
    assert "exit status 44" in found["b-fails"][1]
    assert "lists no host" in found["c-silent"][1]
    assert "more than 65536 bytes" in found["d-floods"][1]
    assert proofs(running, victim)["e-works"] == "tested"


SBD_PLUGIN = Path("/usr/lib/stonith/plugins/external/sbd")


@needs("sbd", "losetup", "perl", str(SBD_PLUGIN))
def test_external_sbd_leaves_its_message_on_the_shared_disk(running: Scenario, tmp_path: Path) -> None:
    """It lists the slots of the disk, and asks crm_attribute for stonith-timeout before it acts."""
    running.plugins.mkdir(exist_ok=True)
    (running.plugins / "sbd").symlink_to(SBD_PLUGIN)
    try:
        disk = SharedDisk(tmp_path / "disk", running.cluster.names)
    except OSError as error:
        pytest.skip(f"no loop device: {error}")
    try:
        with_devices(
            running,
            f"primitive power stonith:fence_local params nodes_dir={running.cluster.nodes_directory}",
            f"primitive stonith-sbd stonith:external/sbd params sbd_device={disk.device} pcmk_delay_max=1s",
            "fencing_topology n1: stonith-sbd,power",
            "property stonith-action=off stonith-timeout=150s",
        )
        assert [disk.message(node) for node in running.cluster.names] == ["clear"] * 3
        assert running.cluster.silence("n1")
        running.until("n1 to be fenced", lambda: running.states().get("n1") == "fenced")
        assert disk.message("n1") == "off"
        assert proofs(running, "n1") == {"stonith-sbd": "tested", "power": "tested"}
        assert [record["outcome"] for record in records(running)] == ["fenced"]
    finally:
        disk.close()


def headline(scenario: Scenario, word: str) -> str:
    return next((each["verdict"] + ": " + each["text"] for each in scenario.status().get("headlines", [])
                 if word in each["verdict"]), "")  # fmt: skip


def records_of(scenario: Scenario, node: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = scenario.must("fencing.history", node=node)["records"]
    return found


def test_a_dead_device_holds_until_a_person_confirms(running: Scenario, tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    switch.mkdir()
    for file in running.cluster.nodes_directory.iterdir():
        (switch / file.name).write_bytes(file.read_bytes())
    with_devices(
        running,
        f"primitive power stonith:fence_local params nodes_dir={switch} pcmk_reboot_retries=1",
        "property fencing-max-attempts=3",
    )
    victim = running.holder()
    assert victim is not None
    for file in switch.iterdir():
        file.unlink()
    running.cluster.power_off(victim)
    running.until("three failed attempts", lambda: len(records_of(running, victim)) == 3)
    assert len({record["executor"] for record in records_of(running, victim)}) == 2, "from each node that is left"
    assert f"NO FAILOVER for {victim}" in headline(running, "NO FAILOVER")
    assert running.holder() is None

    answered = running.answer("fencing.confirm", node=victim)
    assert answered.exit != 0, "not without a look"
    assert running.holder() is None
    running.until("it to be silent long enough to be believed", lambda: confirms(running, victim))
    running.until("the service on another node", lambda: running.holder() is not None)
    assert records_of(running, victim)[-1]["outcome"] == "confirmed"
    running.must("fencing.cleanup")
    left = [record["outcome"] for record in records_of(running, victim)]
    assert left == ["confirmed"], "by which the node counts as ended until it joins"
    running.close()  # Its device is remembered as one that failed.


def confirms(scenario: Scenario, node: str) -> bool:
    return bool(scenario.answer("fencing.confirm", node=node, has_checked=True).exit == 0)
