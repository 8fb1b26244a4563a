"""Three machines that have nothing, of which the role makes a cluster; each is a directory on this machine."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from haclusterd.model.ids import NodeName
from tests.ansible_collection.environment import CHECKOUT, Ansible
from tests.processes.growing_cluster import GrowingCluster

if TYPE_CHECKING:
    from tests.ansible_collection.__main__ import Trial

HOSTS = ("n1", "n2", "n3")
CONFIGURATION = "primitive svc ocf:haclusterd:dummy op monitor interval=10s timeout=20s\n"


class ZeroCluster(GrowingCluster):
    """Machines whose daemons are started when the role asks for it, since no systemd runs for them."""

    def __init__(self, directory: Path, ansible: Ansible) -> None:
        super().__init__(directory)
        self._directory = directory
        self._ansible = ansible
        for name in HOSTS:
            self.machine(name)
        self._inventory().write_text(yaml.safe_dump({"all": {"hosts": {name: self._host(name) for name in HOSTS}}}))

    def _inventory(self) -> Path:
        return self._directory / "inventory.yml"

    def _host(self, name: str) -> dict[str, Any]:
        node = self.cluster.nodes[NodeName(name)]
        places = {"directory": node.bundle, "state-directory": node.state, "runtime-directory": node.runtime}
        return {
            "ansible_connection": "local",
            "ansible_python_interpreter": self._ansible.program("python"),
            "cluster_addresses": [f"{self.cluster.host}:{node.port}"],
            "cluster_directory": str(node.bundle),
            "cluster_options": [f"--{option}={path}" for option, path in places.items()],
            "cluster_socket": str(node.socket),
            "cluster_start_command": f"{sys.executable} -m tests.ansible_collection.started_node "
            f"{self.cluster.directory} {self.cluster.mark} {name} {node.port}",
        }

    def play(self, trial: "Trial") -> dict[str, int]:
        """Run the role four times; return what is to be counted."""
        asked = self._run(trial, "role, asked", "--check", "--diff")
        first = self._run(trial, "role, done", "--diff")
        self.cluster.names = HOSTS
        self.until("all nodes online", lambda: self.online() == set(HOSTS))
        again = self._run(trial, "role, again", "--diff")
        changed = CONFIGURATION.replace("20s", "30s")
        predicted = self._run(trial, "role, other configuration, asked", "--check", "--diff", configuration=changed)
        done = self._run(trial, "role, other configuration, done", "--diff", configuration=changed)
        # Before there is a cluster, only that it would be made can be said.
        if not asked <= first or len(asked) != len(HOSTS):
            trial.wrong("check_mode_wrong", f"role: {sorted(asked)}, then {sorted(first)}")
        if again:
            trial.wrong("changed_second", f"role: {sorted(again)}")
        if predicted != done or not done:
            trial.wrong("check_mode_wrong", f"role: {sorted(predicted)}, then {sorted(done)}")
        return {"role_nodes": len(self.voters()), "role_changed": len(first), "role_changed_second": len(again)}

    def _run(self, trial: "Trial", what: str, *words: str, configuration: str = CONFIGURATION) -> set[str]:
        """Return which tasks say that they changed something, each with its host and its difference."""
        play = {
            "name": "A cluster from zero", "hosts": "all", "gather_facts": False,
            "roles": [{"role": "haclusterd.cluster.cluster"}],
            "vars": {
                "cluster_name": "zero", "cluster_properties": {"fencing-timeout": "50s"},
                "cluster_configuration": configuration, "cluster_configuration_prune": "site",
            },
        }  # fmt: skip
        file = self._directory / "role.json"
        file.write_text(json.dumps([play]))
        more = {"PYTHONPATH": str(CHECKOUT)}
        done = self._ansible.run("ansible-playbook", "-i", str(self._inventory()), *words, str(file), more=more)
        trial.counts["runs"] += 1
        if done.returncode:
            trial.wrong("failed", f"{what}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
        parts = re.split(r"^TASK \[", done.stdout.partition("PLAY RECAP")[0], flags=re.MULTILINE)
        found = set()
        for part in parts[1:]:
            task, body = part.split("]", 1)
            difference = body.partition("\n--- ")[2] and body[body.index("\n--- ") :].split("changed:")[0].strip()
            found |= {f"{task}: {host}: {difference}" for host in re.findall(r"^changed: \[(\w+)", body, re.MULTILINE)}
        return found
