"""Who is measured: a site with a cluster manager on it, and how an administrator tells that manager what to do.

Both get the same machines, agents, fence device, monitors and client; what differs is what is measured.
"""

import sys
import xml.etree.ElementTree as ET
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from tests.benchmarks.failover_pacemaker import CRMSH, PacemakerSite
from tests.lab.lab import REPOSITORY, Lab
from tests.lab.site import Site

NODES = 3
AGENT = "ocf:lab:web"
CLIENT_PERIOD_MS = 10
SETTLED_S = 120.0
WHILE_AWAY = (("vip", "stop"), ("vip", "start"), ("web", "start"))
"""The agents' calls between the end of the service on one node and its beginning on another."""


class Contender(ABC):
    """One cluster, formed and configured."""

    name: ClassVar[str]

    def __init__(self, site: Site) -> None:
        self.site = site

    def start(self) -> float:
        """Form and configure; return the seconds that forming took."""
        return self.site.start(CLIENT_PERIOD_MS)

    def settle(self) -> None:
        """Wait until all is well and nothing is in flight."""
        self.site.until(f"{self.name} to settle", self.site.is_whole, SETTLED_S)

    @abstractmethod
    def move(self, node: str) -> None:
        """Ask for the service to run on a node."""

    @abstractmethod
    def end_move(self) -> None:
        """Take away what the move left, once the service runs there."""

    @abstractmethod
    def standby(self, node: str) -> None:
        """Empty a node."""

    @abstractmethod
    def online(self, node: str) -> None:
        """Let it run resources again."""

    @abstractmethod
    def forget_failures(self) -> None:
        """Clean up after a failure of the service."""

    @abstractmethod
    def status(self) -> str:
        """Return the CIB as XML."""

    def agents_ms(self, source: str, target: str) -> int:
        """Return how long the agents themselves ran while the service went from node to node, by the histories."""
        nodes = {"stop": source, "start": target}
        states = {str(each.get("uname")): each for each in ET.fromstring(self.status()).iter("node_state")}
        return sum(
            int(record.get("exec-time", "0"))
            for resource, operation in WHILE_AWAY
            for record in states[nodes[operation]].iterfind(
                f".//lrm_resource[@id='{resource}']/lrm_rsc_op[@operation='{operation}']"
            )
        )

    @abstractmethod
    def change_words(self, number: int) -> dict[str, tuple[str, ...]]:
        """Return, by the tool's name, the command that changes a property to a value made of this number."""


class Ours(Contender):
    """haclusterd. `node_timeout` "": its default."""

    name = "haclusterd"
    site: Lab

    def __init__(self, directory: Path, monitors: str, node_timeout: str = "") -> None:
        settings = (f"property node-timeout={node_timeout}",) if node_timeout else ()
        super().__init__(Lab(directory, NODES, monitors=monitors, settings=settings, agent=AGENT))

    def move(self, node: str) -> None:
        self.site.answer("resource.move", resource="site", node=node)

    def end_move(self) -> None:
        """Nothing stays behind."""

    def standby(self, node: str) -> None:
        self.site.answer("node.standby", node=node)

    def online(self, node: str) -> None:
        self.site.answer("node.online", node=node)

    def forget_failures(self) -> None:
        self.site.answer("resource.cleanup")

    def status(self) -> str:
        namespaces = next(each.namespaces for each in self.site.machines.values() if each.namespaces is not None)
        return namespaces.run(sys.executable, str(REPOSITORY / "shims" / "cibadmin"), "--query")

    def change_words(self, number: int) -> dict[str, tuple[str, ...]]:
        crm = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "haclusterd.entry_points.crm")
        return {"crm": (*crm, "configure", "property", f"cluster-recheck-interval={900 + number}s")}


class Pacemaker(Contender):
    """corosync and Pacemaker. `token_ms` None: corosync's defaults."""

    name = "pacemaker"
    site: PacemakerSite

    def __init__(self, directory: Path, monitors: str, token_ms: int | None = None) -> None:
        super().__init__(PacemakerSite(directory, NODES, monitors=monitors, token_ms=token_ms))

    def move(self, node: str) -> None:
        self.site.run("crm_resource", "--move", "-r", "site", "-N", node)

    def end_move(self) -> None:
        self.site.run("crm_resource", "--clear", "-r", "site")

    def standby(self, node: str) -> None:
        self.site.run("crm_attribute", "-N", node, "-n", "standby", "-v", "on", "-l", "forever")

    def online(self, node: str) -> None:
        self.site.run("crm_attribute", "-N", node, "-n", "standby", "-D", "-l", "forever")

    def forget_failures(self) -> None:
        self.site.run("crm_resource", "--cleanup")

    def status(self) -> str:
        return self.site.run("cibadmin", "--query")

    def change_words(self, number: int) -> dict[str, tuple[str, ...]]:
        name, value = "cluster-recheck-interval", f"{900 + number}s"
        words = {"crm_attribute": ("crm_attribute", "-t", "crm_config", "-n", name, "-v", value)}
        if CRMSH.exists():
            words["crm"] = (str(CRMSH), "configure", "property", f"{name}={value}")
        return words
