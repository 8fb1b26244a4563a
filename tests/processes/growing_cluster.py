"""A cluster that is begun, grown and repaired by `crm` alone: what scenarios about the life cycle are written in."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from haclusterd.entry_points.free_ports import free_port_pairs
from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE
from tests.processes.daemons import Scenario

REPOSITORY = Path(__file__).parents[2]
CRM_TIMEOUT_S = 120


class GrowingCluster(Scenario):
    """`begin` makes the first node, `join` the others; unless some are there at first, set up by files."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.cluster = LocalCluster(directory, names=names, environment={"PYTHONUNBUFFERED": "1"})
        self.cluster.setup()

    # -- nodes ------------------------------------------------------------------------------------------------------

    def machine(self, name: str) -> LocalNode:
        """Provide what a machine has before it is a node: empty directories, a boot id, a free address."""
        home = self.cluster.directory / name
        for part in ("state", "run", "log"):
            (home / part).mkdir(parents=True, mode=0o700)
        node = LocalNode(
            NodeName(name), home / "etc", home / "state", home / "run", home / "log", home / "boot_id",
            free_port_pairs(self.cluster.host, 1)[0],
        )  # fmt: skip
        (self.cluster.nodes_directory / f"{name}.node").write_text("")
        self.cluster.nodes[node.name] = node
        return node

    def begin(self, name: str = "n1") -> "GrowingCluster":
        node = self.machine(name)
        self.must_crm(None, "cluster", "init", "-n", "grown", *self._places(node))
        return self._start(node)

    def token(self, node: str, *words: str) -> str:
        return str(self.asked(node, "cluster", "invite", *words)["token"])

    def join(self, name: str, *words: str, by: str = "n1") -> "GrowingCluster":
        """Invite a new machine at one node, and let it join; return when it is online."""
        node = self.machine(name)
        token = self.token(by, *words)
        self.must_crm(None, "cluster", "join", "--token", "-", *self._places(node), stdin=token + "\n")
        self._start(node)
        self.until(f"{name} to be online", lambda: self.states().get(name) == "online")
        return self

    def grow(self, *names: str) -> "GrowingCluster":
        """Let machines join one after the other, until each votes."""
        for name in names:
            self.join(name)
            self.until(f"{name} to vote", lambda name=name: name in self.voters())
        return self

    def grow_by(self, inviter: str, name: str) -> "GrowingCluster":
        """Let a machine join by a node that has the authority's key only for that."""
        first = self.cluster.directory / "n1" / "etc" / "authority"
        self.join(name, "--authority", str(first), by=inviter)
        self.until(f"{name} to vote", lambda: name in self.voters())
        return self

    def power(self) -> str:
        return super().power().replace("n1 n2 n3", " ".join(f"n{number}" for number in range(1, 10)))

    def _places(self, node: LocalNode) -> list[str]:
        return [
            f"--node={node.name}", f"--address={self.cluster.host}:{node.port}", f"--directory={node.bundle}",
            f"--state-directory={node.state}", f"--runtime-directory={node.runtime}",
        ]  # fmt: skip

    def _start(self, node: LocalNode) -> "GrowingCluster":
        node.boot_id_file.write_text(f"{uuid.uuid4()}\n")
        file = node.bundle / CONFIGURATION_FILE
        document = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**document, "boot-id-file": str(node.boot_id_file), "development": True}))
        self.cluster.names = (*self.cluster.names, str(node.name))
        self.cluster.start([node.name])
        self.until(f"{node.name} to answer", lambda: self.cluster.call(node.name, "status").exit != 69)
        return self

    def forget(self, name: str) -> None:
        """A machine is gone: ask it no more."""
        self.cluster.power_off(name)
        self.cluster.names = tuple(each for each in self.cluster.names if each != name)

    # -- crm --------------------------------------------------------------------------------------------------------

    def crm(self, node: str | None, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        socket = {} if node is None else {"HACLUSTERD_SOCKET": str(self.cluster.nodes[NodeName(node)].socket)}
        return subprocess.run(
            [sys.executable, "-m", "haclusterd.entry_points.crm", *words],
            capture_output=True, text=True, timeout=CRM_TIMEOUT_S, check=False, cwd=REPOSITORY, input=stdin,
            env={**os.environ, **socket},
        )  # fmt: skip

    def must_crm(self, node: str | None, *words: str, stdin: str = "") -> str:
        done = self.crm(node, *words, stdin=stdin)
        assert done.returncode == 0, (words, done.stdout, done.stderr, self._logs())
        return done.stdout + done.stderr

    def asked(self, node: str, *words: str) -> Any:
        done = self.crm(node, "-o", "json", *words)
        assert done.returncode == 0, (words, done.stderr, self._logs())
        return json.loads(done.stdout)

    def _logs(self) -> str:
        return "\n".join(self.log(name)[-2000:] for name in self.cluster.names)

    # -- asking -----------------------------------------------------------------------------------------------------

    def members(self) -> dict[str, Mapping[str, Any]]:
        answer = self.answer("cluster.members")
        return {} if answer is None or answer.data is None else {each["name"]: each for each in answer.data["members"]}

    def voters(self) -> set[str]:
        return {name for name, member in self.members().items() if member["is_voter"]}

    def members_by_node(self) -> dict[str, tuple[str, ...]]:
        """Return what each node takes for the members."""
        found = {}
        for name in self.cluster.names:
            data = self.cluster.call(name, "cluster.members").data
            listed: Any = data.get("members") if isinstance(data, Mapping) else ()
            found[name] = tuple(f"{each['name']}{'' if each['is_voter'] else '-'}" for each in listed)
        return found
