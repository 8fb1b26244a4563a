"""The service as a client outside the cluster sees it, and who answers ARP for its address.

Asks over and over, whether or not earlier askings are answered, each over a connection of its own, with 250 ms of
patience; and asks by ARP as often who has the address. One line of output an event, times in ns of CLOCK_MONOTONIC:

    h ASKED ENDED 1 NODE       a good answer
    h ASKED ENDED 0 REASON     none
    a AT MAC                   an answer to an ARP request
"""

import errno
import select
import socket
import struct
import sys
import time

WAIT_NS_MAX = 250_000_000
ETH_P_ARP = 0x0806


class Client:
    """One process's loop."""

    def __init__(self, address: str, port: int, period_ms: int) -> None:
        self._target = (address, port)
        self._period_ns = period_ms * 1_000_000
        self._poller = select.epoll()
        self._open: dict[int, tuple[socket.socket, int]] = {}
        self._lines: list[str] = []
        self._arp = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
        self._arp.bind(("wit0", ETH_P_ARP))
        self._arp.settimeout(0)
        self._poller.register(self._arp, select.EPOLLIN)
        mac = self._arp.getsockname()[4]
        self._wanted = socket.inet_aton(address)
        head = struct.pack("!HHHBBH", ETH_P_ARP, 1, 0x0800, 6, 4, 1)
        self._question = (b"\xff" * 6 + mac + head + mac + bytes(4) + bytes(6) + self._wanted).ljust(60, b"\0")

    def run(self) -> None:
        """Ask for ever."""
        due = time.monotonic_ns()
        while True:
            now = time.monotonic_ns()
            if now >= due:
                due = max(due + self._period_ns, now - self._period_ns)
                self._ask(now)
                sys.stdout.write("".join(self._lines))
                sys.stdout.flush()
                self._lines.clear()
            for descriptor in [each for each, (_, asked) in self._open.items() if now - asked > WAIT_NS_MAX]:
                self._end(descriptor, "timeout")
            for descriptor, events in self._poller.poll(max(0.0, (due - time.monotonic_ns()) / 1e9)):
                if descriptor == self._arp.fileno():
                    self._hear_arp()
                elif descriptor in self._open:
                    self._go_on(descriptor, events)

    def _ask(self, now: int) -> None:
        connection = socket.socket()
        connection.settimeout(0)
        code = connection.connect_ex(self._target)
        self._open[connection.fileno()] = (connection, now)
        self._poller.register(connection, select.EPOLLOUT)
        if code not in (0, errno.EINPROGRESS):
            self._end(connection.fileno(), errno.errorcode.get(code, str(code)))
        try:
            self._arp.send(self._question)
        except OSError:
            return

    def _go_on(self, descriptor: int, events: int) -> None:
        connection = self._open[descriptor][0]
        try:
            if not events & select.EPOLLOUT:
                words = connection.recv(4096).split(b"\r\n\r\n")[-1].split()
                self._end(descriptor, "" if words else "closed", words[0].decode() if words else "")
                return
            connection.send(b"GET / HTTP/1.0\r\n\r\n")
            self._poller.modify(connection, select.EPOLLIN)
        except OSError as error:
            self._end(descriptor, errno.errorcode.get(error.errno or 0, "error"))

    def _end(self, descriptor: int, reason: str, node: str = "") -> None:
        connection, asked = self._open.pop(descriptor)
        self._poller.unregister(connection)
        connection.close()
        self._lines.append(f"h {asked} {time.monotonic_ns()} {int(not reason)} {reason or node}\n")

    def _hear_arp(self) -> None:
        try:
            frame = self._arp.recv(2048)
        except OSError:
            return
        if len(frame) >= 42 and frame[20:22] == b"\0\2" and frame[28:32] == self._wanted:
            self._lines.append(f"a {time.monotonic_ns()} {frame[22:28].hex(':')}\n")


if __name__ == "__main__":
    try:
        Client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
