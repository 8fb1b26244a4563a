"""Addresses of network interfaces, by the kernel's own interface (rtnetlink(7)): listed, added, removed.

No program is started, so none can be missing on a node. It only says and does; which address belongs where is the
agent's business. Every call is one question to the kernel, which answers at once.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

_NEW_LINK, _GET_LINK = 16, 18
_NEW_ADDRESS, _REMOVE_ADDRESS, _GET_ADDRESS = 20, 21, 22
_REQUEST, _ACKNOWLEDGE, _DUMP, _CREATE, _EXCLUSIVE = 0x1, 0x4, 0x300, 0x400, 0x200
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBi")
_ATTRIBUTE = struct.Struct("=HH")
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST, _IFA_CACHE, _IFA_FLAGS = 1, 2, 4, 6, 8
_LINK_MAC, _LINK_NAME, _LINK_MASTER, _LINK_INFO, _INFO_KIND = 1, 3, 10, 18, 1
_NESTED = 0x3FFF
_ETHERNET = 1
FOREVER = 0xFFFFFFFF
TIMEOUT_S = 5.0

_UP, _NO_ARP, _LOWER_UP = 0x1, 0x80, 0x10000
_SECONDARY, _NO_DAD, _DAD_FAILED = 0x01, 0x02, 0x08


class Link:
    """A network interface; `mac` is its hardware address, `master` the index of the bond or bridge it is a port of."""

    def __init__(self, index: int, hardware: int, flags: int, attributes: dict[int, bytes]) -> None:
        self.index = index
        self.name = attributes.get(_LINK_NAME, b"").rstrip(b"\0").decode("utf-8", "replace")
        self.mac = attributes.get(_LINK_MAC, b"")
        self.master = int.from_bytes(attributes.get(_LINK_MASTER, b""), "little")
        self.kind = _attributes(attributes.get(_LINK_INFO, b"")).get(_INFO_KIND, b"").rstrip(b"\0").decode()
        self.is_up = bool(flags & _UP)
        self.has_carrier = bool(flags & _LOWER_UP)
        self.asks_neighbours = hardware == _ETHERNET and not flags & _NO_ARP and len(self.mac) == 6
        """It is an Ethernet, where ARP and neighbour discovery are spoken."""


class Address:
    """An address of an interface: `packed` in network order, its prefix length, and what the kernel says of it."""

    def __init__(self, family: int, prefix: int, flags: int, index: int, attributes: dict[int, bytes]) -> None:
        self.family = family
        self.prefix = prefix
        self.index = index
        self.packed = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS, b"")
        flags = int.from_bytes(attributes.get(_IFA_FLAGS, b"") or bytes([flags]), "little")
        self.is_secondary = bool(flags & _SECONDARY) and family == socket.AF_INET
        self.is_duplicate = bool(flags & _DAD_FAILED)
        """The kernel found another node that has it (IPv6), and does not use it."""

    def contains(self, packed: bytes) -> bool:
        """Tell whether another address is in the network of this one."""
        shift = len(self.packed) * 8 - self.prefix
        mine, other = int.from_bytes(self.packed, "big"), int.from_bytes(packed, "big")
        return len(packed) == len(self.packed) and mine >> shift == other >> shift


def links() -> list[Link]:
    """Return the interfaces of this network namespace."""
    found = []
    for kind, data in _ask(_GET_LINK, _DUMP, _LINK.pack(0, 0, 0, 0, 0)):
        if kind == _NEW_LINK:
            _, hardware, index, flags, _ = _LINK.unpack_from(data)
            found.append(Link(index, hardware, flags, _attributes(data[_LINK.size :])))
    return found


def addresses() -> list[Address]:
    """Return the addresses of all interfaces."""
    found = []
    for kind, data in _ask(_GET_ADDRESS, _DUMP, _ADDRESS.pack(0, 0, 0, 0, 0)):
        if kind == _NEW_ADDRESS:
            family, prefix, flags, _, index = _ADDRESS.unpack_from(data)
            if family in (socket.AF_INET, socket.AF_INET6):
                found.append(Address(family, prefix, flags, index, _attributes(data[_ADDRESS.size :])))
    return found


def add_address(index: int, packed: bytes, prefix: int, preferred_s: int = FOREVER) -> None:
    """Give an interface an address, for use at once: whether it is a duplicate has been found out. Raises OSError."""
    cache = struct.pack("=IIII", preferred_s, FOREVER, 0, 0)
    attributes = [(_IFA_CACHE, cache), (_IFA_FLAGS, struct.pack("=I", _NO_DAD))]
    if len(packed) == 4 and prefix < 31:
        host = (1 << (32 - prefix)) - 1
        attributes.append((_IFA_BROADCAST, (int.from_bytes(packed, "big") | host).to_bytes(4, "big")))
    _ask_change(_NEW_ADDRESS, _CREATE | _EXCLUSIVE, _body(index, packed, prefix, attributes))


def remove_address(address: Address) -> None:
    """Take an address away; one that is gone already is no error.

    With the first IPv4 address of a network the kernel takes the further ones of that network too, unless
    promote_secondaries is set: those are given back, they belong to others. Raises OSError.
    """
    before = [each for each in addresses() if each.index == address.index and each.is_secondary]
    try:
        _ask_change(_REMOVE_ADDRESS, 0, _body(address.index, address.packed, address.prefix, []))
    except OSError as error:
        if error.errno not in (19, 99):  # ENODEV, EADDRNOTAVAIL
            raise
    kept = {(each.index, each.packed) for each in addresses()}
    for each in before:
        if (each.index, each.packed) not in kept and each.packed != address.packed:
            add_address(each.index, each.packed, each.prefix)


def _body(index: int, packed: bytes, prefix: int, attributes: list[tuple[int, bytes]]) -> bytes:
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    body = _ADDRESS.pack(family, prefix, 0, 0, index)
    for number, value in [(_IFA_LOCAL, packed), (_IFA_ADDRESS, packed), *attributes]:
        body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), number) + value + bytes(-len(value) % 4)
    return body


def _ask_change(kind: int, flags: int, body: bytes) -> None:
    for _ in _ask(kind, _ACKNOWLEDGE | flags, body):
        continue


def _ask(kind: int, flags: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    """Ask the kernel; yield type and payload of each message of its answer. Raises OSError when it refuses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as kernel:
        kernel.settimeout(TIMEOUT_S)
        kernel.sendto(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, 1, 0) + body, (0, 0))
        while True:
            data = kernel.recv(1024 * 1024)
            while len(data) >= _HEADER.size:
                size, answer, _, _, _ = _HEADER.unpack_from(data)
                payload, data = data[_HEADER.size : size], data[(size + 3) & ~3 :]
                if answer == _DONE:
                    return
                if answer == _ERROR:
                    number = -int.from_bytes(payload[:4], "little", signed=True)
                    if number:
                        raise OSError(number, os.strerror(number))
                    return
                yield answer, payload


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        size, number = _ATTRIBUTE.unpack_from(data)
        if size < _ATTRIBUTE.size:
            break
        found[number & _NESTED] = data[_ATTRIBUTE.size : size]
        data = data[(size + 3) & ~3 :]
    return found
