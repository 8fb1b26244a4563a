"""An agent's way to the daemon that started it: ask a verb on the control socket.

Stands alone, like all of this room: agents and the tools that stock agents call (attrd_updater, crm_attribute) are
started for every action, so this speaks the frames of `protocol/control.py` by itself (a length in 4 bytes, then JSON)
and imports nothing that is slow. It must never wait without a deadline: without quorum a write is refused in seconds.
"""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False  # As typing says it; importing that takes longer than all that these tools do.
if TYPE_CHECKING:
    from typing import Any

SOCKET_VARIABLE = "HACLUSTERD_SOCKET"
"""In the environment of an agent: the control socket of its daemon."""
INTERPRETER_VARIABLE = "HACLUSTERD_PYTHON"
"""In the environment of an agent: the Python whose packages are this program's dependencies."""
LIBRARY_VARIABLE = "HACLUSTERD_AGENT_LIBRARY"
"""In the environment of an agent: the directory in which `haclusterd.agents` is, and `agent.sh` in it."""
DEFAULT_SOCKET = "/run/haclusterd/control.sock"
TIMEOUT_S = 10.0
LONGEST_ANSWER = 8 * 1024 * 1024


class ClusterError(Exception):
    """The daemon refused, or did not answer; `status` is the exit status that says how (Pacemaker's codes)."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ClusterLink:
    """One connection to the daemon; ask as often as needed."""

    def __init__(self, path: str = "", timeout_s: float = TIMEOUT_S) -> None:
        import socket

        self._path = path or os.environ.get(SOCKET_VARIABLE, "") or DEFAULT_SOCKET
        self._deadline = time.monotonic() + timeout_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.settimeout(timeout_s)
            self._socket.connect(self._path)
        except OSError as error:
            self._socket.close()
            raise ClusterError(f"{self._path}: {error.strerror or error}", 102) from None

    def __enter__(self) -> ClusterLink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Carry out a verb; return its data. Raises ClusterError when it is refused or not answered in time."""
        request = {"v": 1, "kind": "request", "id": "1", "verb": verb, "arguments": arguments, "options": {},
                   "origin": "agent"}  # fmt: skip
        payload = json.dumps(request, separators=(",", ":")).encode()
        try:
            self._socket.sendall(len(payload).to_bytes(4, "big") + payload)
            while True:
                answer = json.loads(self._receive(int.from_bytes(self._receive(4), "big")))
                if answer.get("kind") == "response":
                    return _data_of(answer)
        except TimeoutError:
            raise ClusterError("the daemon did not answer in time", 124) from None
        except (OSError, ValueError) as error:
            raise ClusterError(f"{self._path}: {error}", 102) from None

    def _receive(self, size: int) -> bytes:
        if size > LONGEST_ANSWER:
            raise ValueError(f"an answer of {size} bytes")
        data = b""
        while len(data) < size:
            self._socket.settimeout(max(0.001, self._deadline - time.monotonic()))
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ValueError("the daemon hung up")
            data += piece
        return data


def _data_of(answer: dict[str, Any]) -> Any:
    status = int(answer.get("exit") or 0)
    if status:
        messages = [item["message"] for item in answer.get("reports", []) if item.get("severity") == "error"]
        raise ClusterError("; ".join(messages) or f"refused with status {status}", status)
    return answer.get("data")
