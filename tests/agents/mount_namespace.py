"""A mount namespace of its own for one test, and what is done in it."""

import os
import subprocess
from pathlib import Path

import pytest


class MountNamespace:
    """Nothing that is mounted here is seen by others; `within` is the command that runs another one in it."""

    def __init__(self, directory: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("mounting is root's")
        self.directory = directory
        self.point = directory / "mounted"
        self.holders: list[subprocess.Popen[bytes]] = []
        """What runs in it until the test ends."""
        self.within = self.made()

    def __enter__(self) -> "MountNamespace":
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.holders:
            each.kill()
            each.communicate(timeout=10)

    def made(self, *before: str) -> list[str]:
        """Make a further mount namespace; return what runs a command in it."""
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep infinity"]
        holder = subprocess.Popen([*before, *words], stdout=subprocess.PIPE)
        self.holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        return ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]

    def do(self, *words: object) -> str:
        """Run a command in it; return what it printed."""
        done = subprocess.run(
            [*self.within, *(str(word) for word in words)], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def user(self, script: str) -> subprocess.Popen[bytes]:
        """Run something in it that uses the mount; return when it does: it says so with an empty line."""
        process = subprocess.Popen([*self.within, "sh", "-c", script], stdout=subprocess.PIPE)
        self.holders.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        return process

    @property
    def mounted(self) -> list[str]:
        """Where something is mounted below the test's directory."""
        return [line.split()[4] for line in self.do("cat", "/proc/self/mountinfo").splitlines()
                if str(self.directory) in line]  # fmt: skip
