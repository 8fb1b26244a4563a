"""Sends datagrams as fast as it goes, from its own address or (root) from one that it forges; a program.

    python tests/flooder.py --to HOST:PORT [--forge HOST:PORT] [--datagram HEX] [--rate PER_SECOND] [--seconds S]

It ends after its time, or by SIGTERM, and says how many it sent a second. IPv4 only.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
import time

BATCH = 64
NOISE = b"haH\x01" + b"\x02n9\x02n9" + bytes(96)
UDP_HEADER = struct.Struct(">HHHH")
IP_HEADER = struct.Struct(">BBHHHBBH4s4s")


class _Slice(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint), ("slices", ctypes.POINTER(_Slice)),
        ("slice_count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )  # fmt: skip


class _Message(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (("header", _Header), ("sent", ctypes.c_uint))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _packets(datagram: bytes, to: tuple[str, int], forged: tuple[str, int] | None) -> list[bytes]:
    """Return datagrams that differ, with the headers that a raw socket needs."""
    made = []
    for _ in range(BATCH):
        data = datagram[:-16] + os.urandom(16)
        if forged is not None:
            data = UDP_HEADER.pack(forged[1], to[1], UDP_HEADER.size + len(data), 0) + data
            ends = socket.inet_aton(forged[0]), socket.inet_aton(to[0])
            data = IP_HEADER.pack(0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0, *ends) + data
        made.append(data)
    return made


def _messages(packets: list[bytes]) -> tuple[ctypes.Array[_Message], list[object]]:
    """Return what sendmmsg(2) takes, and what must live as long."""
    buffers = [ctypes.create_string_buffer(packet, len(packet)) for packet in packets]
    slices = [_Slice(ctypes.addressof(buffer), len(buffer)) for buffer in buffers]
    messages = (_Message * len(packets))()
    for message, each in zip(messages, slices, strict=True):
        message.header.slices = ctypes.pointer(each)
        message.header.slice_count = 1
    return messages, [*buffers, *slices]


def main() -> int:
    """Flood until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=_address, required=True)
    parser.add_argument("--source", default="", help="an own address to send from")
    parser.add_argument("--forge", type=_address, help="an address that is somebody else's; root")
    parser.add_argument("--datagram", type=bytes.fromhex, default=NOISE)
    parser.add_argument("--rate", type=int, default=0, help="a second; 0: as fast as it goes")
    parser.add_argument("--seconds", type=float, default=3600.0)
    arguments = parser.parse_args()
    if arguments.forge is None:
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        out.bind((arguments.source, 0))
    else:
        out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    out.connect(arguments.to)
    messages, kept = _messages(_packets(arguments.datagram, arguments.to, arguments.forge))
    send = ctypes.CDLL(None, use_errno=True).sendmmsg
    is_over = False

    def end(*_: object) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, end)
    sent, began = 0, time.monotonic()
    while not is_over and (spent := time.monotonic() - began) < arguments.seconds:
        if arguments.rate and sent >= arguments.rate * spent:
            time.sleep(0.001)
            continue
        sent += max(0, send(out.fileno(), ctypes.byref(messages), len(messages), 0))
    assert kept
    with contextlib.suppress(BrokenPipeError):
        print(f"RESULT sent={sent} per_second={round(sent / (time.monotonic() - began))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
