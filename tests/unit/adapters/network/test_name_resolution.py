"""Names to numbers: on threads of their own, with a deadline, and with what was known last when nothing answers."""

import asyncio
from collections.abc import Iterator

import pytest

from haclusterd.adapters.network import name_resolution
from haclusterd.adapters.network.name_resolution import NameResolver, is_numeric
from tests.unit.adapters.network.name_server import NameServer


@pytest.fixture
def resolver() -> Iterator[NameResolver]:
    made = NameResolver()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("fe80::1%lo", True), ("localhost", False), ("n1.x", False), ("", False)],
)
def test_what_is_numeric(host: str, expected: bool) -> None:
    assert is_numeric(host) is expected


async def test_numbers_are_not_looked_up(resolver: NameResolver, monkeypatch: pytest.MonkeyPatch) -> None:
    server = NameServer(monkeypatch)
    assert await resolver.resolve(("::1", 7)) == (("::1", 7),)
    assert server.asked == []


async def test_a_name_of_the_hosts_file_is_known(resolver: NameResolver) -> None:
    found = await resolver.resolve(("localhost", 7))
    assert found
    assert {host for host, _ in found} <= {"127.0.0.1", "::1"}


async def test_a_name_is_looked_up_each_time_and_the_last_answer_outlives_the_server(
    resolver: NameResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = NameServer(monkeypatch)
    with pytest.raises(OSError, match="n2 is not known"):
        await resolver.resolve(("n2", 7))
    server.names["n2"] = ["192.0.2.1", "192.0.2.1", "2001:db8::1"]
    assert await resolver.resolve(("n2", 7)) == (("192.0.2.1", 7), ("2001:db8::1", 7))
    server.names["n2"] = ["192.0.2.9"]
    assert await resolver.resolve(("n2", 7)) == (("192.0.2.9", 7),)
    server.names.clear()
    assert await resolver.resolve(("n2", 7)) == (("192.0.2.9", 7),)
    assert resolver.known(("n2", 7)) == (("192.0.2.9", 7),)


async def test_a_name_server_that_hangs_takes_one_thread_and_no_more_than_its_time(
    resolver: NameResolver, monkeypatch: pytest.MonkeyPatch, until
) -> None:
    monkeypatch.setattr(name_resolution, "LOOKUP_TIMEOUT_S", 0.05)
    server = NameServer(monkeypatch)
    server.hanging.clear()
    for _ in range(3):
        with pytest.raises(OSError, match="n2 is not known"):
            await resolver.resolve(("n2", 7))
    await until(lambda: server.asked)
    assert server.asked == ["n2"]
    # The loop's own threads, on which the disk is written, are free.
    assert await asyncio.get_running_loop().run_in_executor(None, lambda: "written") == "written"
    server.names["n2"] = ["192.0.2.1"]
    server.hanging.set()
    async with asyncio.timeout(10):
        while True:
            try:
                assert await resolver.resolve(("n2", 7)) == (("192.0.2.1", 7),)
                return
            except OSError:
                await asyncio.sleep(0.01)
