"""Finds ports for what a cluster on one machine listens on: nobody is there to choose them.

Between finding a port and listening on it nothing holds it. So it is none of those that the kernel gives to outgoing
connections (ip(7), `ip_local_port_range`): somebody's next connection could have it then. It is drawn, so that two who
look at the same time rarely find the same; where that must not happen, each is given ports of its own by the
environment: `HACLUSTERD_LOCAL_PORTS=20000-24999`.
"""

import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_RANGE = (32_768, 60_999)
LOWEST = 10_000
"""Below are the ports that services are known by."""
HIGHEST = 65_533
GIVEN = "HACLUSTERD_LOCAL_PORTS"


def free_ports(host: str, count: int) -> list[int]:
    """Return ports that are free for TCP and UDP now; raise OSError where there are not so many."""
    return _draw(count, lambda port: _is_free(host, port))


def free_port_pairs(host: str, count: int) -> list[int]:
    """Return ports that are free for TCP and UDP now, each with the next one free too."""
    return _draw(count, lambda port: _is_free(host, port) and _is_free(host, port + 1), apart=2)


def candidates() -> list[int]:
    """Return all ports that may be drawn, in order; raise OSError for a range that is none."""
    first, last = _range_of_outgoing()
    lowest, highest = _given_range()
    return [port for port in range(lowest, highest + 1) if not first <= port <= last]


def _draw(count: int, is_wanted: Callable[[int], bool], apart: int = 1) -> list[int]:
    drawn = candidates()
    random.SystemRandom().shuffle(drawn)
    found: list[int] = []
    for port in drawn:
        if len(found) == count:
            break
        if all(abs(port - other) >= apart for other in found) and is_wanted(port):
            found.append(port)
    if len(found) < count:
        where = "{}-{}, less what {} names".format(*_given_range(), OUTGOING)
        raise OSError(f"no {count} ports are free in {where}; {GIVEN}=FIRST-LAST moves that")
    return found


def _given_range() -> tuple[int, int]:
    given = os.environ.get(GIVEN, f"{LOWEST}-{HIGHEST}")
    first, _, last = given.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= HIGHEST):
        raise OSError(f"{GIVEN}={given} is no range of ports; it wants to be like 20000-24999")
    return int(first), int(last)


def _range_of_outgoing() -> tuple[int, int]:
    try:
        first, last = OUTGOING.read_text().split()
    except (OSError, ValueError):
        return USUAL_RANGE
    return int(first), int(last)


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(family, kind) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True
