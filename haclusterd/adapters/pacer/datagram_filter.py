"""A filter on a UDP socket: the kernel queues only datagrams with given bytes at given places, and drops the rest.

It is classic BPF (the kernel's Documentation/networking/filter.rst), which needs no privilege. A dropped datagram costs
a fraction of a microsecond, takes no room in the socket's queue and does not wake the reader. Stdlib only: the pacer
imports this.
"""

import array
import socket
import struct
from collections.abc import Sequence

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
SO_MEMINFO = 55
"""socket(7) and the kernel's asm-generic/socket.h; the socket module does not know them."""
SK_MEMINFO_DROPS = 8
_MEMINFO = struct.Struct("=9I")
_INSTRUCTION = struct.Struct("=HBBI")
_PROGRAM = struct.Struct("@HP")
"""struct sock_fprog."""

UDP_HEADER_SIZE = 8
"""The filter of a UDP socket sees the UDP header before the data."""
_LOADS = {4: 0x20, 2: 0x28, 1: 0x30}
"""BPF_LD | BPF_ABS of a word, half a word, a byte, in network order."""
_LOAD_LENGTH = 0x80
_IF_EQUAL, _IF_GREATER, _IF_NOT_LESS = 0x15, 0x25, 0x35
_RETURN = 0x06
_WHOLE = 0xFFFF_FFFF
_NEXT = 0
_DROP = -1
"""Placeholder for the jump to the last instruction."""

Piece = tuple[int, bytes]
"""An offset in the datagram, and the bytes that must be there."""
_Instruction = tuple[int, int, int, int]
"""Operation, numbers of instructions to skip if the comparison holds and if not, operand."""


def program(pieces: Sequence[Piece], longest: int) -> tuple[_Instruction, ...]:
    """Return the instructions that accept a datagram with all the pieces and of at most `longest` bytes.

    Raises ValueError if a jump would be farther than 255 instructions: about 500 bytes can be compared.
    """
    least = max(place + len(wanted) for place, wanted in pieces)
    made = [
        (_LOAD_LENGTH, _NEXT, _NEXT, 0),
        (_IF_GREATER, _DROP, _NEXT, UDP_HEADER_SIZE + longest),
        (_IF_NOT_LESS, _NEXT, _DROP, UDP_HEADER_SIZE + least),
    ]
    for place, wanted in pieces:
        start = 0
        while start < len(wanted):
            size = next(size for size in _LOADS if size <= len(wanted) - start)
            made.append((_LOADS[size], _NEXT, _NEXT, UDP_HEADER_SIZE + place + start))
            made.append((_IF_EQUAL, _NEXT, _DROP, int.from_bytes(wanted[start : start + size])))
            start += size
    made += [(_RETURN, _NEXT, _NEXT, _WHOLE), (_RETURN, _NEXT, _NEXT, 0)]
    last = len(made) - 1
    if last > 0xFF:
        raise ValueError(f"{last + 1} instructions are too many for one jump")

    def way(jump: int, at: int) -> int:
        return last - at - 1 if jump == _DROP else jump

    return tuple((code, way(yes, at), way(no, at), operand) for at, (code, yes, no, operand) in enumerate(made))


def attach(filtered: socket.socket, pieces: Sequence[Piece], longest: int) -> None:
    """Put the filter on a socket, in place of an earlier one; what is queued stays. Raises OSError."""
    instructions = program(pieces, longest)
    memory = array.array("B", b"".join(_INSTRUCTION.pack(*each) for each in instructions))
    address, _ = memory.buffer_info()
    filtered.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM.pack(len(instructions), address))


def detach(filtered: socket.socket) -> None:
    """Remove the filter, if there is one. Raises OSError."""
    try:
        filtered.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    except FileNotFoundError:
        return


def dropped(counted: socket.socket) -> int:
    """Return how many datagrams the kernel has dropped on this socket, by a filter or because the queue was full.

    It is always 0 if the kernel does not report it (before Linux 4.12).
    """
    try:
        words = counted.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return 0
    return int(_MEMINFO.unpack(words)[SK_MEMINFO_DROPS]) if len(words) == _MEMINFO.size else 0
