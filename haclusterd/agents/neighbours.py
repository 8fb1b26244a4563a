"""Who answers for an address on an Ethernet, and telling all who ask that it is here: ARP (RFC 826, 5227) and
neighbour discovery (RFC 4861, 4862).

The kernel detects duplicates for IPv6 only, and only of an address that it has already. This asks before the address
is anywhere: an IPv4 probe from 0.0.0.0, an IPv6 solicitation from `::`, which change nobody's tables. Another node that
asks for the same address at the same moment counts as one that has it (RFC 5227 §2.1.1): of two, one must give way.
"""

from __future__ import annotations

import select
import socket
import struct
import time

from haclusterd.agents.addresses import Link

_ARP, _IPV6 = 0x0806, 0x86DD
_ARP_FRAME = struct.Struct("!6s6sHHHBBH6s4s6s4s")
_REQUEST, _REPLY = 1, 2
_SOLICITATION, _ADVERTISEMENT = 135, 136
_OVERRIDE = 0x20000000
_TARGET_MAC = 2
_ICMP = 58
_PACKET, _JOIN, _MULTICAST = 263, 1, 0
"""SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST (packet(7)); not all of them are in the socket module."""
_EVERYBODY = b"\xff" * 6
_ALL_NODES = bytes.fromhex("ff020000000000000000000000000001")


def find_other(link: Link, own: set[bytes], packed: bytes, probes: int, wait_s: float) -> bytes | None:
    """Return the hardware address of somebody else who has an address; None when nobody answered.

    `own` are this node's hardware addresses, `probes` go out evenly over `wait_s`. Raises OSError.
    """
    is_ipv4 = len(packed) == 4
    with _open(link, _ARP if is_ipv4 else _IPV6) as wire:
        if not is_ipv4:
            # Those who ask for it at this moment do so at the address of the group alone.
            request = struct.pack("=iHH8s", link.index, _MULTICAST, 6, _group_mac(_solicited(packed)))
            wire.setsockopt(_PACKET, _JOIN, request)
        probe = _arp(link.mac, bytes(4), packed, _REQUEST) if is_ipv4 else _solicitation(link.mac, packed)
        for _ in range(probes):
            wire.send(probe)
            deadline = time.monotonic() + wait_s / probes
            while (left_s := deadline - time.monotonic()) > 0 and select.select([wire], [], [], left_s)[0]:
                other = _claimant(wire.recv(2048), packed)
                if other is not None and other not in own:
                    return other
    return None


def announce(link: Link, packed: bytes, count: int, interval_s: float) -> None:
    """Tell all on the link, `count` times, that an address is at this interface's hardware address. Raises OSError."""
    is_ipv4 = len(packed) == 4
    # Some devices believe only the one kind, others only the other.
    frames = (
        [_arp(link.mac, packed, packed, kind) for kind in (_REQUEST, _REPLY)]
        if is_ipv4
        else [_advertisement(link.mac, packed)]
    )
    with _open(link, _ARP if is_ipv4 else _IPV6) as wire:
        for number in range(count):
            if number:
                time.sleep(interval_s)
            for frame in frames:
                wire.send(frame)


def mac_text(mac: bytes) -> str:
    """Return a hardware address as it is written."""
    return ":".join(f"{byte:02x}" for byte in mac)


def _open(link: Link, protocol: int) -> socket.socket:
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        wire.bind((link.name, protocol))
    except OSError:
        wire.close()
        raise
    return wire


def _claimant(frame: bytes, packed: bytes) -> bytes | None:
    """Return whose frame this is, if it says that its sender has the address, or wants it."""
    if len(packed) == 4:
        if len(frame) < _ARP_FRAME.size:
            return None
        _, _, kind, _, _, _, _, operation, mac, sender, _, target = _ARP_FRAME.unpack_from(frame)
        probes_too = operation == _REQUEST and sender == bytes(4) and target == packed
        return bytes(mac) if kind == _ARP and (sender == packed or probes_too) else None
    if len(frame) < 78 or frame[12:14] != b"\x86\xdd" or frame[20] != _ICMP or frame[62:78] != packed:
        return None
    is_asked_by_nobody = frame[54] == _SOLICITATION and frame[22:38] == bytes(16)
    return frame[6:12] if frame[54] == _ADVERTISEMENT or is_asked_by_nobody else None


def _arp(mac: bytes, sender: bytes, target: bytes, operation: int) -> bytes:
    asked = _EVERYBODY if operation == _REPLY else bytes(6)
    return _ARP_FRAME.pack(_EVERYBODY, mac, _ARP, 1, 0x0800, 6, 4, operation, mac, sender, asked, target)


def _solicited(packed: bytes) -> bytes:
    return bytes.fromhex("ff0200000000000000000001ff") + packed[-3:]


def _group_mac(group: bytes) -> bytes:
    return b"\x33\x33" + group[-4:]


def _solicitation(mac: bytes, packed: bytes) -> bytes:
    return _ipv6(mac, bytes(16), _solicited(packed), struct.pack("!BBHI16s", _SOLICITATION, 0, 0, 0, packed))


def _advertisement(mac: bytes, packed: bytes) -> bytes:
    option = struct.pack("!BB6s", _TARGET_MAC, 1, mac)
    body = struct.pack("!BBHI16s", _ADVERTISEMENT, 0, 0, _OVERRIDE, packed) + option
    return _ipv6(mac, packed, _ALL_NODES, body)


def _ipv6(mac: bytes, source: bytes, target: bytes, body: bytes) -> bytes:
    pseudo = source + target + struct.pack("!IxxxB", len(body), _ICMP) + body
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    body = body[:2] + struct.pack("!H", checksum) + body[4:]
    header = struct.pack("!IHBB16s16s", 6 << 28, len(body), _ICMP, 255, source, target)
    return _group_mac(target) + mac + struct.pack("!H", _IPV6) + header + body
