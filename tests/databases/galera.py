"""MariaDB Galera Cluster on machines of the lab, set up with the texts of docs/howto/run-galera.md."""

from collections.abc import Mapping

from tests.databases.mariadb_server import MariaDbServer
from tests.lab.machine import Machine

STATUS = "SHOW STATUS LIKE 'wsrep%'"
SYNCED = "4"


class Galera(MariaDbServer):
    """Under resource-agents' galera; all three nodes take writes, and the address is on one of them."""

    name = "galera"
    kind = "galera"
    agent = "ocf:heartbeat:galera"
    clone = "galera-clone"
    moved = "galera-ip"
    page = "run-galera.md"

    def needs(self) -> Mapping[str, str]:
        return {**super().needs(), "/usr/lib/galera/libgalera_smm.so": "galera-4", "/usr/bin/rsync": "rsync"}

    def is_ready(self, primary: Machine, copies: int) -> bool:
        return len(self._members(primary)) >= copies + 1

    def candidates(self, primary: Machine) -> set[str]:
        return self._members(primary) - {primary.name}

    def _members(self, primary: Machine) -> set[str]:
        """Return the nodes of the group, none while this one has not everything."""
        status = {row[0]: row[-1] for row in self.query(primary, STATUS)}
        if status.get("wsrep_local_state") != SYNCED:
            return set()
        return {each.partition(":")[0] for each in status.get("wsrep_incoming_addresses", "").split(",")} - {"", "AUTO"}
