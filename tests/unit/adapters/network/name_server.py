"""A name server whose answers the test decides."""

import socket
import threading
from typing import Any

import pytest

from haclusterd.adapters.network import name_resolution


class NameServer:
    """Answers lookups as a test says; numeric addresses are read as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[str]] = {}
        self.hanging = threading.Event()
        self.hanging.set()
        self.asked: list[str] = []
        self._real = socket.getaddrinfo
        monkeypatch.setattr(name_resolution.socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, port: int | None, *arguments: Any, **named: Any) -> Any:
        if named.get("flags") == socket.AI_NUMERICHOST:
            return self._real(host, port, *arguments, **named)
        self.asked.append(host)
        self.hanging.wait(30)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, 0, 0, "", (address, port)) for address in self.names[host]]
