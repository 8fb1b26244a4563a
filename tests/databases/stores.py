"""The databases as their clients see them: write a number, tell which are there, tell whether writes are taken."""

import errno
from typing import Protocol

from tests.databases import postgres_session, redis_session
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


class Postgres:
    """PostgreSQL, its table `ledger`."""

    PORT = 5432

    def __init__(self, address: str, patience_s: float) -> None:
        self._session = postgres_session.Session((address, self.PORT), "postgres", patience_s)
        self.node = self._session.ask(HOSTNAME, patience_s)[0]

    def write(self, number: int, patience_s: float) -> None:
        self._session.ask(f"INSERT INTO ledger VALUES ({number})", patience_s)

    def numbers(self, since: int, patience_s: float) -> set[int]:
        return {int(row) for row in self._session.ask(f"SELECT n FROM ledger WHERE n >= {since}", patience_s)}

    def takes_writes_with(self, patience_s: float) -> str:
        answer = self._session.ask("SELECT NOT pg_is_in_recovery()", patience_s)
        return ALONE if answer == ["t"] else ""

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


STORES: dict[str, type[Store]] = {"postgresql": Postgres, "redis": Redis}


def reason(error: OSError) -> str:
    """Return one word."""
    if isinstance(error, RefusedError):
        return f"refused:{'-'.join(str(error).split())}"
    if isinstance(error, TimeoutError):
        return "timeout"
    return errno.errorcode.get(error.errno or 0, "closed")
