"""MariaDB with one primary and copies that follow it, set up with the texts of docs/howto/run-mariadb.md."""

from tests.databases.mariadb_server import NODES, MariaDbServer
from tests.lab.machine import Machine
from tests.lab.switch import RINGS, address

STATE = "SHOW STATUS LIKE 'Rpl_semi_sync_master_status'"
FOLLOWERS = "SELECT host FROM information_schema.processlist WHERE command = 'Binlog Dump'"


class MariaDb(MariaDbServer):
    """Under resource-agents' mariadb, semi-synchronous."""

    name = "mariadb"
    kind = "mariadb"
    agent = "ocf:heartbeat:mariadb"
    clone = "mariadb-clone"
    page = "run-mariadb.md"

    def is_ready(self, primary: Machine, copies: int) -> bool:
        is_on = self.query(primary, STATE) == [["Rpl_semi_sync_master_status", "ON"]]
        return is_on and len(self.candidates(primary)) >= copies

    def candidates(self, primary: Machine) -> set[str]:
        nodes = {address(index, ring): f"n{index}" for index in range(1, NODES + 1) for ring in RINGS}
        hosts = {row[0].partition(":")[0] for row in self.query(primary, FOLLOWERS)}
        return {nodes[host] for host in hosts if host in nodes}
