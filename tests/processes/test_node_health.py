"""Node health end to end: real agents measure, real daemons act; nothing of ours is replaced, only the machine is."""

import os
from pathlib import Path

import pytest

from tests.agents.kernel_files import KernelFiles
from tests.agents.nvml_stub import build_nvml_stub
from tests.processes.daemons import Scenario

pytestmark = [pytest.mark.processes, pytest.mark.slow]

NODES = ("n1", "n2", "n3")
PREFERRED = "n2"


class Machines:
    """What the kernels of three nodes tell."""

    def __init__(self, directory: Path) -> None:
        self.kernels = {name: KernelFiles(directory / name / "proc") for name in NODES}

    def watchers(self) -> list[str]:
        """One watcher on each node: every node has a /proc of its own here."""
        lines = []
        for name, kernel in self.kernels.items():
            lines += [
                f"primitive watch-{name} ocf:haclusterd:sys-health "
                f"params procfs={kernel.directory} checks=memory raise_after=2 clear_after=2 "
                "meta allow-unhealthy-nodes=true op monitor interval=500ms timeout=30s op start timeout=60s",
                f"location watch-{name}-there watch-{name} inf: {name}",
                *(f"location watch-{name}-not-{other} watch-{name} -inf: {other}" for other in NODES if other != name),
            ]
        return lines


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path / "machines")


def colours(scenario: Scenario, name: str) -> list[str | None]:
    found = scenario.attributes()
    return [found.get(node, {}).get(f"#health-{name}") for node in NODES]


def wait_for_colours(scenario: Scenario, name: str, *expected: str) -> None:
    scenario.until(f"{name} to be {expected}", lambda: colours(scenario, name) == list(expected))


def active_on(scenario: Scenario, resource: str) -> list[str]:
    rows = scenario.must("resource.status", resources=[resource])["resources"]
    return [each["node"] for row in rows for each in row["instances"] if each["state"] == "started"]


def watched(scenario: Scenario, machines: Machines, strategy: str) -> None:
    scenario.configure(
        f"property node-health-strategy={strategy}",
        f"location svc-prefers svc 500: {PREFERRED}",
        *machines.watchers(),
    )
    wait_for_colours(scenario, "memory", "green", "green", "green")
    scenario.until("the service where it likes to be", lambda: scenario.holder() == PREFERRED)
    scenario.settle()


def test_a_red_nodes_services_leave_and_may_return_when_it_is_green(running: Scenario, machines: Machines) -> None:
    watched(running, machines, "migrate-on-red")
    machines.kernels[PREFERRED].memory(99)
    wait_for_colours(running, "memory", "green", "red", "green")
    running.until("the service on another node", lambda: running.holder() not in (None, PREFERRED))
    running.settle()
    assert running.service_pids(PREFERRED) == []
    assert active_on(running, f"watch-{PREFERRED}") == [PREFERRED], "who watches stays"

    machines.kernels[PREFERRED].calm()
    wait_for_colours(running, "memory", "green", "green", "green")
    running.until("the service to return", lambda: running.holder() == PREFERRED)
    running.settle()
    assert running.events("node-lost") == []
    assert running.events("operation-failed") == []


def test_yellow_moves_nothing_with_migrate_on_red_and_everything_with_only_green(
    running: Scenario, machines: Machines
) -> None:
    watched(running, machines, "migrate-on-red")
    before = running.service_pids(PREFERRED)
    machines.kernels[PREFERRED].memory(92)
    wait_for_colours(running, "memory", "green", "yellow", "green")
    running.hold("the service stays", lambda: running.service_pids(PREFERRED) == before, for_s=2)
    running.configure("property node-health-strategy=only-green")
    running.until("the service on another node", lambda: running.holder() not in (None, PREFERRED))


def test_a_steady_node_writes_nothing(running: Scenario, machines: Machines) -> None:
    watched(running, machines, "migrate-on-red")
    runs = running.log("n1").count("resource=watch-n1 action=monitor")
    changes = len(running.events("attribute-changed"))
    running.until(
        "more samples", lambda: running.log("n1").count("resource=watch-n1 action=monitor") >= runs + 5
    )
    assert len(running.events("attribute-changed")) == changes


def test_a_node_that_loses_its_gpu_is_red_and_its_services_leave(running: Scenario, tmp_path: Path) -> None:
    libraries = {}
    lines = []
    for name in NODES:
        directory = tmp_path / "libraries" / name
        directory.mkdir(parents=True)
        libraries[name] = build_nvml_stub(directory) / "nvml_stub"
        libraries[name].write_text("gpus=2\n")
        (directory / "kmsg").write_text("")
        lines += [
            f"primitive gpus-{name} ocf:haclusterd:gpu-health params library_path={directory} "
            f"kernel_log={directory}/kmsg expected=2 device_timeout=5s "
            "meta allow-unhealthy-nodes=true op monitor interval=500ms timeout=60s op start timeout=120s",
            f"location gpus-{name}-there gpus-{name} inf: {name}",
            *(f"location gpus-{name}-not-{other} gpus-{name} -inf: {other}" for other in NODES if other != name),
        ]
    running.configure(
        "property node-health-strategy=migrate-on-red", f"location svc-prefers svc 500: {PREFERRED}", *lines
    )
    wait_for_colours(running, "gpu", "green", "green", "green")
    running.until("the service where it likes to be", lambda: running.holder() == PREFERRED)

    rename(libraries[PREFERRED], "gpus=2\ng0.any=!15\n")
    wait_for_colours(running, "gpu", "green", "yellow", "green")
    running.settle()
    assert running.holder() == PREFERRED, "the other device serves"
    running.until(
        "the device to be named", lambda: running.attributes()[PREFERRED]["gpu-0000:1a:00-state"] == "failed"
    )

    rename(libraries[PREFERRED], "gpus=2\nany=@hang\n")
    wait_for_colours(running, "gpu", "green", "red", "green")
    running.until("the service on another node", lambda: running.holder() not in (None, PREFERRED))
    running.settle()
    assert running.events("operation-failed") == [], "a hanging driver fails no monitor"


def rename(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_cloned_watcher_stays_on_an_unhealthy_node_and_takes_new_thresholds_over(running: Scenario) -> None:
    watcher = (
        "primitive watch ocf:haclusterd:sys-health params checks=memory memory_yellow={yellow} memory_red={red} "
        "op monitor interval=500ms timeout=30s op start timeout=60s"
    )
    running.configure(
        "property node-health-strategy=migrate-on-red",
        f"location svc-prefers svc 500: {PREFERRED}",
        watcher.format(yellow="never", red="never"),
        "clone watch-everywhere watch meta allow-unhealthy-nodes=true",
    )
    wait_for_colours(running, "memory", "green", "green", "green")
    running.until("the service where it likes to be", lambda: running.holder() == PREFERRED)

    running.must("node.attribute", node=PREFERRED, action="set", name="#health-try", value="red")
    running.until("the service on another node", lambda: running.holder() not in (None, PREFERRED))
    running.settle()
    assert sorted(active_on(running, "watch")) == list(NODES)
    running.must("node.attribute", node=PREFERRED, action="delete", name="#health-try")
    running.until("the service to return", lambda: running.holder() == PREFERRED)

    changed = watcher.format(yellow="0", red="never") + "\n"
    running.must("configure.load", mode="update", text=changed, source="test", format="crm")
    wait_for_colours(running, "memory", "yellow", "yellow", "yellow")
    running.settle()
    logged = [event["text"] for event in running.events("operation-succeeded")]
    assert sum(text.startswith("reload-agent of watch") for text in logged) == len(NODES)
    assert sum(text.startswith("stop of watch") for text in logged) == 0

    assert not [event for event in running.events("attribute-changed") if "deleted" in event["text"]
                and "#health-memory" in event["text"]]  # fmt: skip


PUBLISHER = """#!/bin/sh
# Publishes as stock agents do: what it finds on its path, its environment, dampening.
case "$1" in
meta-data) cat <<END
<?xml version="1.0"?>
<resource-agent name="publisher" version="1.0"><version>1.1</version><longdesc/><shortdesc/><parameters/>
<actions><action name="start" timeout="20s"/><action name="stop" timeout="20s"/><action name="monitor" timeout="20s"/>
<action name="meta-data" timeout="5s"/></actions></resource-agent>
END
    ;;
start)
    [ "$(command -v attrd_updater)" = "$HA_SBIN_DIR/attrd_updater" ] || exit 5
    attrd_updater -n pingd -U 100 -d 2s || exit 1
    attrd_updater -n pingd -Q | grep -q 'value="100"' || exit 1
    crm_master -l reboot -v 15 && [ "$(crm_master -l reboot -G -q)" = 15 ] || exit 1
    touch "$HA_RSCTMP/publisher" ;;
stop) rm -f "$HA_RSCTMP/publisher"; attrd_updater -n pingd -D; crm_master -l reboot -D >/dev/null ;;
monitor) [ -e "$HA_RSCTMP/publisher" ] || exit 7 ;;
esac
"""


def test_a_stock_agent_publishes_with_the_tools_that_it_knows(running: Scenario) -> None:
    agent = running.agents / "test" / "publisher"
    agent.parent.mkdir(parents=True, exist_ok=True)
    agent.write_text(PUBLISHER)
    os.chmod(agent, 0o755)
    running.configure("primitive pub ocf:test:publisher op monitor interval=1s timeout=20s")
    running.until("the dampened value", lambda: "pingd=100" in str(running.events("attribute-changed")))
    (holder,) = active_on(running, "pub")
    assert running.attributes()[holder] == {"master-pub": "15", "pingd": "100"}
    running.must("resource.stop", resources=["pub"], wait_ms=20_000)
    running.until("nothing to be published", lambda: running.attributes()[holder] == {})
