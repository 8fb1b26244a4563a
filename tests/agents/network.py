"""Two network namespaces with a cable between them: a network of its own for one test."""

import os
import subprocess
import time

import pytest

NEAR_CABLE, FAR_CABLE = "near0", "far0"


class Segment:
    """The two ends: 10.77.0.1 and fd77::1 at near0, 10.77.0.2 and fd77::2 at far0."""

    def __init__(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("making network namespaces is root's")
        self._holders = [_namespace() for _ in range(2)]
        self.near, self.far = (["nsenter", f"--net=/proc/{each.pid}/ns/net"] for each in self._holders)
        far = self._holders[1].pid
        self.do(self.near, f"ip link add {NEAR_CABLE} type veth peer name {FAR_CABLE} netns {far}")
        for side, cable, number in ((self.near, NEAR_CABLE, 1), (self.far, FAR_CABLE, 2)):
            self.do(side, f"ip addr add 10.77.0.{number}/24 dev {cable}")
            self.do(side, f"ip -6 addr add fd77::{number}/64 dev {cable} nodad")
            self.do(side, f"ip link set {cable} up")
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        """Wait until both ends take part in IPv6: what comes before is not heard."""
        deadline = time.monotonic() + 20
        for side, cable in ((self.near, NEAR_CABLE), (self.far, FAR_CABLE)):
            while "state UP" not in (shown := self.do(side, f"ip -6 addr show {cable}")) or "tentative" in shown or (
                "scope link" not in shown
            ):
                assert time.monotonic() < deadline, shown
                time.sleep(0.02)

    def __enter__(self) -> "Segment":
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._holders:
            each.kill()
            each.wait(10)

    def do(self, side: list[str], command: str) -> str:
        """Run a command on one side; return what it printed."""
        done = subprocess.run([*side, "sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def mac(self, side: list[str], cable: str) -> str:
        """Hardware address of an end."""
        return self.do(side, f"ip -o link show {cable}").split("link/ether ")[1].split()[0]

    def addresses(self) -> set[str]:
        """Addresses of the near side, with their prefix lengths."""
        lines = self.do(self.near, "ip -o addr show scope global").splitlines()
        return {line.split()[3] for line in lines}


def _namespace() -> subprocess.Popen[bytes]:
    own = os.readlink("/proc/self/ns/net")
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    deadline = time.monotonic() + 10
    while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
        assert time.monotonic() < deadline, "the namespace never came"
    return holder
