"""Nodes that are linked by TLS over the loopback, as Raft's transport sees them."""

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path

from haclusterd.adapters.network.certificates import (
    Credentials,
    create_authority,
    issue_certificate,
    tls_context,
    write_node_credentials,
)
from haclusterd.adapters.raft.transport import Links, RaftTransport
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.addresses import Address
from haclusterd.model.ids import NodeName
from haclusterd.ports.store import PeerPlaces
from haclusterd.raft.settings import RaftTimers

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CLUSTER = "11111111-2222-3333-4444-555555555555"
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")


def free_address() -> Address:
    [port] = free_ports("127.0.0.1", 1)
    return "127.0.0.1", port


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


class End:
    """One voter's transport, and what it reported."""

    def __init__(
        self, network: "Network", name: NodeName, cluster: str = CLUSTER, credentials: str = "", boot_id: str = ""
    ) -> None:
        self.name = name
        self.kept_out: list[tuple[NodeName, str]] = []
        self.objections: dict[str, str] = {}
        self.reported: list[str] = []
        self.frames: list[tuple[NodeName, bytes]] = []
        self.accepts = True
        directory = network.directory / (credentials or name)
        self.transport = RaftTransport(
            node=name,
            cluster=cluster,
            places=PeerPlaces(
                0,
                {
                    peer: (address, *network.more_addresses.get(peer, ()))
                    for peer, address in network.addresses.items()
                },
            ),
            server_context=tls_context(directory, is_server=True),
            client_context=tls_context(directory, is_server=False),
            timers=RaftTimers.derive(600),
            boot_id=boot_id,
            objection=lambda _peer, boot_id: self.objections.get(boot_id, ""),
            kept_out=lambda peer, why: self.kept_out.append((peer, why)),
        )

    async def start(self) -> None:
        def received(peer: NodeName, frame: bytes) -> bool:
            self.frames.append((peer, frame))
            return self.accepts

        await self.transport.start(
            Links(
                connected=lambda peer: self.reported.append(f"+{peer}"),
                disconnected=lambda peer: self.reported.append(f"-{peer}"),
                received=received,
            )
        )


class Network:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # In one draw: those of two may be the same.
        first, second, spare = free_ports("127.0.0.1", 3)
        self.addresses: dict[NodeName, Address] = {N1: ("127.0.0.1", first), N2: ("127.0.0.1", second)}
        self.spare: Address = ("127.0.0.1", spare)
        """For another node, or for another address of one."""
        self.more_addresses: dict[NodeName, tuple[Address, ...]] = {}
        self.ends: list[End] = []
        self.authority = create_authority(CLUSTER, now=NOW)
        for name in (N1, N2, N3):
            self.admit(self.authority, name)
        self.admit(create_authority(CLUSTER, now=NOW), N2, "foreign")

    def admit(self, authority: Credentials, name: NodeName, directory: str = "") -> None:
        credentials = issue_certificate(authority, name, ["127.0.0.1"], now=NOW)
        write_node_credentials(self.directory / (directory or name), self.authority.certificate, credentials)

    async def start(
        self, name: NodeName, cluster: str = CLUSTER, credentials: str = "", *, boot_id: str = "", **objections: str
    ) -> End:
        end = End(self, name, cluster, credentials, boot_id)
        end.objections.update(objections)
        self.ends.append(end)
        await end.start()
        return end

    async def unauthenticated(self, credentials: str | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to n1 with somebody's credentials, or without TLS."""
        context = None if credentials is None else tls_context(self.directory / credentials, is_server=False)
        return await asyncio.open_connection(*self.addresses[N1], ssl=context)
