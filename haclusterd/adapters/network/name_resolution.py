"""From names to numeric addresses, on separate threads: a name server that does not answer delays nothing else.

asyncio resolves names on the loop's default threads, on which the Raft thread also syncs its files; two lookups that
hang would stop every fsync. Here a numeric address costs nothing, a lookup has a deadline, and the last result is used
when a lookup fails, so that a cluster survives its name server.
"""

import asyncio
import socket
from collections.abc import Iterable
from functools import partial

from haclusterd.adapters.machine.ready_threads import ready_pool
from haclusterd.model.addresses import Address

LOOKUP_TIMEOUT_S = 2.0
THREADS = 2
ANSWERS_MAX = 8
"""Maximum number of numeric addresses of one name."""



def is_numeric(host: str) -> bool:
    """Return whether an address is numeric; IPv6 may carry a zone."""
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return bool(host)


class NameResolver:
    """Resolves names for one loop."""

    def __init__(self) -> None:
        self._threads = ready_pool(THREADS, "names")
        self._found: dict[Address, tuple[Address, ...]] = {}
        self._under_way: dict[Address, asyncio.Future[tuple[Address, ...]]] = {}

    async def resolve(self, address: Address) -> tuple[Address, ...]:
        """Return the present addresses of a name, or the last known ones; raises OSError when it was never resolved."""
        if is_numeric(address[0]):
            return (address,)
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                self._found[address] = await asyncio.shield(self._look_up(address))
        except (OSError, UnicodeError):
            if address not in self._found:
                raise OSError(f"the name {address[0]} is not known") from None
        return self._found[address]

    def known(self, address: Address) -> tuple[Address, ...]:
        """Return the last known addresses of a name; the argument itself when it is numeric or unknown."""
        return self._found.get(address, (address,))

    async def resolve_all(self, addresses: Iterable[Address]) -> None:
        """Resolve all names among these addresses, so that `known` has them."""
        names = sorted({address for address in addresses if not is_numeric(address[0])})
        await asyncio.gather(*(self.resolve(address) for address in names), return_exceptions=True)

    def _look_up(self, address: Address) -> "asyncio.Future[tuple[Address, ...]]":
        """Start a lookup, or join the one under way: a name that hangs takes one thread, not all."""
        found = self._under_way.get(address)
        if found is None:
            loop = asyncio.get_running_loop()
            found = loop.run_in_executor(self._threads, partial(_look_up, *address))
            found.add_done_callback(partial(self._ended, address))
            self._under_way[address] = found
        return found

    def _ended(self, address: Address, found: "asyncio.Future[tuple[Address, ...]]") -> None:
        del self._under_way[address]
        if not found.cancelled():
            # Handled here even if nobody waits for it any more.
            found.exception()

    def close(self) -> None:
        """Start no more lookups; one that hangs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> tuple[Address, ...]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = dict.fromkeys((str(answer[4][0]), port) for answer in answers)
    return tuple(found)[:ANSWERS_MAX]
