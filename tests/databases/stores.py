"""The databases as their clients see them: write a number, tell which are there, tell whether writes are taken."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from haclusterd.agents import postgres_session
from haclusterd.agents.ocf import ActionError
from tests.databases import mysql_session, redis_session
from tests.databases.bounded_connection import RefusedError

HOSTNAME = "SELECT trim(E'\\n' from pg_read_file('/proc/sys/kernel/hostname'))"
ALONE = "-"


class Store(Protocol):
    """A connection. Everything raises OSError."""

    node: str
    """Who answers."""

    def __init__(self, address: str, patience_s: float) -> None: ...

    def write(self, number: int, patience_s: float) -> None:
        """Return when it is acknowledged."""

    def numbers(self, since: int, patience_s: float) -> set[int]:
        """Return those that are there, from this one on."""

    def takes_writes_with(self, patience_s: float) -> str:
        """Return the nodes that take writes together with this one, as n1+n2; ALONE; empty: it takes none."""

    def close(self) -> None: ...


@contextmanager
def _with_os_errors() -> Iterator[None]:
    """What the agent's session raises, as a store does."""
    try:
        yield
    except postgres_session.RefusedError as refusal:
        raise RefusedError(refusal.code) from refusal
    except postgres_session.SilentError as silence:
        raise TimeoutError(str(silence)) from silence
    except ActionError as error:
        raise ConnectionResetError(str(error)) from error


class Postgres:
    """PostgreSQL, its table `ledger`."""

    PORT = 5432

    def __init__(self, address: str, patience_s: float) -> None:
        with _with_os_errors():
            self._session = postgres_session.Session((address, self.PORT), "postgres", "postgres", patience_s)
        self.node = self._ask(HOSTNAME, patience_s)[0][0]

    def _ask(self, statement: str, patience_s: float) -> list[list[str]]:
        with _with_os_errors():
            return self._session.ask(statement, patience_s)

    def write(self, number: int, patience_s: float) -> None:
        self._ask(f"INSERT INTO ledger VALUES ({number})", patience_s)

    def numbers(self, since: int, patience_s: float) -> set[int]:
        return {int(row[0]) for row in self._ask(f"SELECT n FROM ledger WHERE n >= {since}", patience_s)}

    def takes_writes_with(self, patience_s: float) -> str:
        answer = self._ask("SELECT NOT pg_is_in_recovery()", patience_s)
        return ALONE if answer == [["t"]] else ""

    def close(self) -> None:
        self._session.close()


class Redis:
    """redis, its sorted set `ledger`."""

    PORT = 6379

    def __init__(self, address: str, patience_s: float) -> None:
        self._session = redis_session.Session((address, self.PORT), patience_s)
        self.node = self._session.ask("CONFIG", "GET", "cluster-announce-hostname", patience_s=patience_s)[1]

    def write(self, number: int, patience_s: float) -> None:
        self._session.ask("ZADD", "ledger", str(number), str(number), patience_s=patience_s)

    def numbers(self, since: int, patience_s: float) -> set[int]:
        found = self._session.ask("ZRANGEBYSCORE", "ledger", str(since), "+inf", patience_s=patience_s)
        return set(map(int, found))

    def takes_writes_with(self, patience_s: float) -> str:
        return ALONE if self._session.ask("ROLE", patience_s=patience_s)[:1] == ["master"] else ""

    def close(self) -> None:
        self._session.close()


class MariaDb:
    """MariaDB that replicates from one primary, its table `bench.ledger`."""

    PORT = 3306
    USER = "bench"

    def __init__(self, address: str, patience_s: float) -> None:
        self._session = mysql_session.Session((address, self.PORT), self.USER, patience_s)
        self.node = self._session.ask("SELECT @@hostname", patience_s)[0][0]

    def write(self, number: int, patience_s: float) -> None:
        self._session.ask(f"INSERT INTO bench.ledger VALUES ({number})", patience_s)

    def numbers(self, since: int, patience_s: float) -> set[int]:
        return {int(row[0]) for row in self._session.ask(f"SELECT n FROM bench.ledger WHERE n >= {since}", patience_s)}

    def takes_writes_with(self, patience_s: float) -> str:
        return ALONE if self._session.ask("SELECT @@global.read_only", patience_s) == [["0"]] else ""

    def close(self) -> None:
        self._session.close()


class Galera(MariaDb):
    """MariaDB whose nodes take writes together."""

    def numbers(self, since: int, patience_s: float) -> set[int]:
        # A node reads what it has applied, which others may be ahead of.
        self._session.ask("SET SESSION wsrep_sync_wait = 1", patience_s)
        return super().numbers(since, patience_s)

    def takes_writes_with(self, patience_s: float) -> str:
        status = {row[0]: row[1] for row in self._session.ask("SHOW STATUS LIKE 'wsrep%'", patience_s)}
        if (status["wsrep_ready"], status["wsrep_cluster_status"]) != ("ON", "Primary"):
            return ""
        members = [each.partition(":")[0] for each in status["wsrep_incoming_addresses"].split(",")]
        return "+".join(sorted({self.node, *members} - {"", "AUTO"}))


STORES: dict[str, type[Store]] = {"postgresql": Postgres, "redis": Redis, "mariadb": MariaDb, "galera": Galera}


def reason(error: OSError) -> str:
    """Return one word."""
    if isinstance(error, RefusedError):
        return f"refused:{'-'.join(str(error).split())}"
    if isinstance(error, TimeoutError):
        return "timeout"
    return errno.errorcode.get(error.errno or 0, "closed")
