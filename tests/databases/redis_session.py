"""A connection to redis with patience: its protocol, version 2, as far as one command at a time needs it."""

import socket
import time


class RefusedError(OSError):
    """The server said no."""


class Session:
    """One connection. Everything raises OSError when it is refused, or takes too long."""

    def __init__(self, address: tuple[str, int], patience_s: float) -> None:
        self._socket = socket.create_connection(address, timeout=patience_s)
        self._read = b""
        self._deadline = time.monotonic() + patience_s

    def ask(self, *words: str, patience_s: float) -> list[str]:
        """Carry a command out; return its answer, a list of one where it is one value."""
        self._deadline = time.monotonic() + patience_s
        self._socket.settimeout(patience_s)
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        return self._answer()

    def close(self) -> None:
        self._socket.close()

    def _answer(self) -> list[str]:
        line = self._line()
        kind, text = line[:1], line[1:]
        if kind == "-":
            raise RefusedError(text)
        if kind == "$":
            return [self._take(int(text) + 2)[:-2].decode()] if int(text) >= 0 else [""]
        if kind == "*":
            return [value for _ in range(int(text)) for value in self._answer()]
        return [text]

    def _line(self) -> str:
        while b"\r\n" not in self._read:
            self._more()
        line, _, self._read = self._read.partition(b"\r\n")
        return line.decode()

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            self._more()
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def _more(self) -> None:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(left_s)
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionResetError("it hung up")
        self._read += more
