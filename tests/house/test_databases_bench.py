"""What `make bench-databases` reads and judges: selections, losses, records, tables; without any database."""

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.databases import mysql_session, redis_session
from tests.databases.__main__ import DATABASES as ALL
from tests.databases.bounded_connection import RefusedError
from tests.databases.faults import Trial
from tests.databases.losses import Acknowledged, Culprit, Reason, judge
from tests.databases.redis import Redis
from tests.databases.selection import Selection, selected
from tests.databases.stores import STORES
from tests.databases.table import OURS, PEER, is_good, result, table

S = 1_000_000_000
DATABASES, FAULTS = ("pgsql", "postgres", "redis"), ("kill", "crash")


@pytest.mark.parametrize(
    ("words", "databases", "faults"),
    [
        (["*"], DATABASES, FAULTS),
        (["redis"], ("redis",), FAULTS),
        (["crash"], DATABASES, ("crash",)),
        (["redis", "p*", "kill"], DATABASES, ("kill",)),
        (["kill", "postgres"], ("postgres",), ("kill",)),
    ],
)
def test_words_name_databases_and_faults(words: list[str], databases: tuple[str, ...], faults: tuple[str, ...]) -> None:
    assert selected(words, DATABASES, FAULTS) == Selection(databases, faults)


def test_a_word_that_names_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a database nor a fault: oracle"):
        selected(["redis", "oracle"], DATABASES, FAULTS)


@pytest.mark.parametrize(
    ("lost", "has_commits_twice", "had_two", "culprit", "words"),
    [
        ([(7, 9.9, "n1")], False, False, Culprit.AGENT, "asynchronous"),
        ([(7, 9.9, "n1"), (8, 14.0, "n1"), (9, 14.2, "n1")], False, False, Culprit.AGENT, "on n1 alone"),
        ([(7, 9.9, "n1")], True, False, Culprit.CLUSTER, "a copy without it was promoted"),
        ([(7, 9.9, "n1")], False, True, Culprit.CLUSTER, "two nodes took writes"),
        ([(7, 12.0, "n2")], False, False, Culprit.CLUSTER, "after the fault, by another node than n1"),
        ([(5, 6.0, "n1"), (7, 9.9, "n1")], False, False, Culprit.CLUSTER, "up to 3900 ms old"),
    ],
)
def test_whose_doing_a_loss_is(
    lost: list[tuple[int, float, str]], has_commits_twice: bool, had_two: bool, culprit: Culprit, words: str
) -> None:
    rows = [Acknowledged(number, int(at * S), node) for number, at, node in lost]
    found = judge(rows, 10 * S, "n1", has_commits_twice=has_commits_twice, had_two_primaries=had_two)
    assert found.culprit is culprit
    assert words in found.text
    assert found.text.startswith(f"{len(lost)} of ")


def _trials() -> list[Trial]:
    lost = Reason(Culprit.AGENT, "2 of n1: copies are asynchronous")
    return [
        Trial("redis", OURS, "crash", outage_ms=4000, lost=2, acknowledged=90, reason=lost),
        Trial("redis", OURS, "crash", outage_ms=6000, acknowledged=80),
        Trial("redis", PEER, "crash", outage_ms=10_000, acknowledged=70, double_primaries=["n1 and n2"]),
        Trial("redis", OURS, "kill", outage_ms=1000, acknowledged=60),
    ]


def test_the_table_shows_each_fault_and_whose_doing_a_loss_is() -> None:
    lines = [" ".join(line.split()) for line in table(_trials()).splitlines()]
    assert lines[1:] == [
        "redis crash 5000 (4000-6000) [2] 2 0 10000 [1] 0 1 0.50",
        "redis kill 1000 [1] 0 0 - - - -",
        "lost: redis crash under haclusterd, by the agent: 2 of n1: copies are asynchronous",
    ]


def test_the_result_counts_ours_and_the_peers_apart() -> None:
    words = dict(word.split("=") for word in result(Redis(), _trials()).split()[1:])
    ours = {"runs": "3", "acknowledged": "230", "lost": "2", "lost_by_agent": "2", "lost_by_cluster": "0"}
    assert ours.items() <= words.items()
    assert (words["double_primaries"], words["peer_double_primaries"], words["crash_ratio"]) == ("0", "1", "0.500")


def test_what_a_database_may_lose_does_not_fail_the_bench_and_what_a_cluster_loses_does() -> None:
    trials = _trials()
    assert is_good(trials)
    trials[1].reason = Reason(Culprit.CLUSTER, "1 of n1")
    assert not is_good(trials)
    assert is_good([each for each in trials if each.manager == PEER])


@contextmanager
def _server(*answers: bytes) -> Iterator[tuple[tuple[str, int], io.BytesIO]]:
    """Answer one connection: the first of these at once, each other one when something was sent."""
    asked = io.BytesIO()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as connection:
                for answer in answers:
                    connection.sendall(answer)
                    asked.write(connection.recv(4096))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname(), asked
        thread.join()


def test_an_answer_of_redis_is_read() -> None:
    with _server(b"", b"*2\r\n$6\r\nmaster\r\n:5\r\n", b"-READONLY no\r\n") as (address, asked):
        session = redis_session.Session(address, 5.0)
        assert session.ask("ROLE", patience_s=5.0) == ["master", "5"]
        with pytest.raises(RefusedError, match="READONLY"):
            session.ask("ZADD", "ledger", "1", "1", patience_s=5.0)
        session.close()
    assert asked.getvalue().startswith(b"*1\r\n$4\r\nROLE\r\n*4\r\n")


def _packets(first: int, *bodies: bytes) -> bytes:
    numbered = enumerate(bodies, first)
    return b"".join(len(each).to_bytes(3, "little") + bytes([number]) + each for number, each in numbered)


GREETING = _packets(0, b"\x0a10.11\0" + bytes(40) + b"mysql_native_password\0")
END = b"\xfe\0\0\x02\0"


def test_an_answer_of_mariadb_is_read() -> None:
    long = b"b" * 251
    rows = _packets(1, b"\x02", b"\x03def name", b"\x03def value", END, b"\x01a\xfb", b"\xfc\xfb\0" + long + b"\0", END)
    refusal = _packets(1, b"\xff\x0a\x05#HY000read-only")
    with _server(GREETING, _packets(2, b"\xfe" + mysql_session.PLUGIN), _packets(4, b"\0\0\0\x02\0\0\0"), rows, refusal,
                 _packets(1, b"\0\x01\0\x02\0\0\0")) as (address, asked):  # fmt: skip
        session = mysql_session.Session(address, "bench", 5.0)
        assert session.ask("SHOW STATUS", 5.0) == [["a", ""], [long.decode(), ""]]
        with pytest.raises(RefusedError, match="1290"):
            session.ask("INSERT", 5.0)
        assert session.ask("INSERT", 5.0) == []
        session.close()
    assert b"bench\0\0mysql_native_password\0\x00\x00\x00\x03\x0c\x00\x00\x00\x03SHOW STATUS" in asked.getvalue()


def test_a_server_of_mariadb_that_refuses_a_connection_is_refused() -> None:
    refusal = _packets(0, b"\xff\x10\x04Too many connections")
    with _server(refusal) as (address, _asked), pytest.raises(RefusedError, match="1040"):
        mysql_session.Session(address, "bench", 5.0)


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_database_has_texts_and_a_store(name: str) -> None:
    database = ALL[name]()
    assert database.kind in STORES
    assert database.clone in database.configuration()


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_database_whose_programs_are_missing_says_which_packages_have_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    why = ALL[name]().obstacle()
    assert why.startswith("missing: ")
    assert "apt-get install " in why
