"""The power switch: fences out of band, through a socket that no network fault can cut.

One line in, one line out: `off NODE`, `on NODE`, `reboot NODE`, `status NODE`, `list`. It can be dead, slow, or lie.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.lab.machine import Machine
from tests.lab.unix_server import serve

BOOT_DELAY_S = 1.0


class PowerSwitch:
    """`noted(what, node)` is called for every request before and after it is carried out."""

    def __init__(self, path: Path, machines: Mapping[str, Machine], noted: Callable[[str, str], None]) -> None:
        self._path, self._machines, self._noted = path, machines, noted
        self.is_dead = False
        self.is_lying = False
        self.delay_s = 0.0
        self.reboots = True
        self._timers: list[threading.Timer] = []
        self._is_closed = False
        self._socket = serve(path, self._answer)

    def restore(self) -> None:
        """Be a good switch again."""
        self.is_dead = self.is_lying = False
        self.delay_s = 0.0
        self.reboots = True

    def _answer(self, connection: socket.socket) -> None:
        # Who has asked may be gone when the answer comes.
        with contextlib.suppress(OSError), connection:
            action, _, node = connection.recv(256).decode().strip().partition(" ")
            connection.sendall(f"{self._carry_out(action, node)}\n".encode())

    def _carry_out(self, action: str, node: str) -> str:
        if self.is_dead:
            return "error the power switch is dead"
        if action == "list":
            return "ok " + " ".join(self._machines)
        machine = self._machines.get(node)
        if machine is None:
            return f"error no such node: {node}"
        if action == "status":
            return f"ok {'on' if machine.is_on else 'off'}"
        self._noted("fence-asked", node)
        time.sleep(self.delay_s)
        if not self.is_lying:
            if action in ("off", "reboot"):
                machine.switch_off()
            if action == "on" or (action == "reboot" and self.reboots):
                self.boot_later(machine)
        self._noted("fence-lied" if self.is_lying else "fence-done", node)
        return "ok"

    def boot_later(self, machine: Machine) -> None:
        """Let a machine boot after a moment."""

        def boot() -> None:
            if not self._is_closed:
                machine.switch_on()

        timer = threading.Timer(BOOT_DELAY_S, boot)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def close(self) -> None:
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
            timer.join(5)
        self._socket.close()
        self._path.unlink(missing_ok=True)
