"""Copies frames between two interfaces, each after a delay: a long cable, where the kernel has no netem."""

import heapq
import random
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened.bind((interface, ETH_P_ALL))
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, (1).to_bytes(4, "little"))
    opened.settimeout(0)
    return opened


def main(near: str, far: str, delay_ms: float, jitter_ms: float) -> None:
    """Copy for ever."""
    ends = (_open(near), _open(far))
    other = {ends[0].fileno(): ends[1], ends[1].fileno(): ends[0]}
    by_descriptor = {end.fileno(): end for end in ends}
    poller = select.epoll()
    for descriptor in by_descriptor:
        poller.register(descriptor, select.EPOLLIN)
    queue: list[tuple[int, int, socket.socket, bytes]] = []
    count = 0
    while True:
        wait_s = -1.0 if not queue else max(0.0, (queue[0][0] - time.monotonic_ns()) / 1e9)
        for descriptor, _ in poller.poll(wait_s):
            while True:
                try:
                    frame = by_descriptor[descriptor].recv(65536)
                except OSError:
                    break
                count += 1
                due = time.monotonic_ns() + int((delay_ms + random.uniform(-jitter_ms, jitter_ms)) * 1e6)
                heapq.heappush(queue, (due, count, other[descriptor], frame))
        now = time.monotonic_ns()
        while queue and queue[0][0] <= now:
            _, _, out, frame = heapq.heappop(queue)
            try:
                out.send(frame)
            except OSError:
                continue


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
