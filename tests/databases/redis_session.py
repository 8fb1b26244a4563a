"""A connection to redis with patience: its protocol, version 2, as far as one command at a time needs it."""

import time

from tests.databases.bounded_connection import BoundedConnection, RefusedError


class Session(BoundedConnection):
    """One connection."""

    def ask(self, *words: str, patience_s: float) -> list[str]:
        """Carry a command out; return its answer, a list of one where it is one value."""
        self._deadline = time.monotonic() + patience_s
        self._socket.settimeout(patience_s)
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        return self._answer()

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
