"""Finds ports for what a cluster on one machine listens on: nobody is there to choose them.

Between finding a port and listening on it nothing holds it. So it is none of those that the kernel gives to outgoing
connections (ip(7), `ip_local_port_range`): somebody's next connection could have it then. It is drawn, so that two who
look at the same time rarely find the same.
"""

import random
import socket
from collections.abc import Callable
from pathlib import Path

LOCAL_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_RANGE = (32_768, 60_999)
LOWEST = 10_000
"""Below are the ports that services are known by."""
HIGHEST = 65_534


def free_ports(host: str, count: int) -> list[int]:
    """Return ports that are free for TCP and UDP now; raise OSError where there are not so many."""
    return _draw(count, lambda port: _is_free(host, port))


def free_port_pairs(host: str, count: int) -> list[int]:
    """Return ports that are free for TCP and UDP now, each with the next one free too."""
    return _draw(count, lambda port: _is_free(host, port) and _is_free(host, port + 1), apart=2)


def _draw(count: int, is_wanted: Callable[[int], bool], apart: int = 1) -> list[int]:
    first, last = _local_port_range()
    candidates = [port for port in range(LOWEST, HIGHEST) if not first <= port <= last]
    random.SystemRandom().shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            break
        if all(abs(port - other) >= apart for other in found) and is_wanted(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} ports are free outside of {first}-{last}, which {LOCAL_PORT_RANGE} reserves")
    return found


def _local_port_range() -> tuple[int, int]:
    try:
        first, last = LOCAL_PORT_RANGE.read_text().split()
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
