"""The lab's network: two bridges in a namespace of their own, the cables to the machines, and what can go wrong there.

The client and the ARP witness live here too, outside every machine, on the first bridge. Frames are dropped by nft in
the bridge family, so that a machine cannot know (its carrier stays), or the far end of a cable is taken down, so that
it can.
"""

import subprocess
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.lab.namespaces import ENVIRONMENT, LabError, Namespaces

RINGS = (0, 1)
NETWORK = "10.77"
CLIENT_HOST = 254
SERVICE_HOST = 100
SERVICE_ADDRESS = f"{NETWORK}.0.{SERVICE_HOST}"
HOOKS = ("forward", "input", "output")
RELAY = Path(__file__).with_name("relay.py")


def address(index: int, ring: int) -> str:
    """Return the address of the machine with this number."""
    return f"{NETWORK}.{ring}.{index}"


def mac(index: int, ring: int) -> str:
    return f"02:77:00:{ring:02x}:{index:02x}:01"


def port(index: int, ring: int) -> str:
    """Return the name of the switch's end of a cable."""
    return f"p{index}-{ring}"


class Switch:
    """Bridges, ports and rules."""

    def __init__(self) -> None:
        self.namespaces = Namespaces(
            {"hostname": "switch", "groups": [], "mounts": [], "directories": [], "services": []}
        )
        self._lock = threading.Lock()
        for ring in RINGS:
            # Without one of its own, a bridge changes its address with its ports, and the client would be another host
            # to the machines whenever one of them is switched off or on.
            words = ("address", mac(CLIENT_HOST, ring), "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
            self.ip("link", "add", f"br{ring}", *words)
            self.ip("link", "set", f"br{ring}", "up")
        self.ip("addr", "add", f"{address(CLIENT_HOST, 0)}/24", "dev", "br0")
        self.ip("link", "add", "wit0", "type", "veth", "peer", "name", "wit1")
        self.ip("link", "set", "wit1", "master", "br0", "up")
        self.ip("link", "set", "wit0", "up")
        hooks = [f"add chain bridge lab {hook} {{ type filter hook {hook} priority 0; }}" for hook in HOOKS]
        self.rules("add table bridge lab", *hooks)
        self._unplugged: set[tuple[int, int]] = set()
        self._relays: list[subprocess.Popen[bytes]] = []

    def ip(self, *words: str, is_checked: bool = True) -> None:
        self.namespaces.run("ip", *words, is_checked=is_checked, only_network=True)

    def rules(self, *lines: str) -> None:
        self.namespaces.run("nft", "-f", "-", stdin="\n".join(lines) + "\n")

    # -- cables -----------------------------------------------------------------------------------------------------

    def plug(self, index: int, init: int) -> None:
        """Connect a machine that has just been switched on."""
        for ring in RINGS:
            name = port(index, ring)
            self.ip("link", "del", name, is_checked=False)
            self.ip("link", "add", name, "type", "veth", "peer", "name", f"eth{ring}", "address", mac(index, ring),
                    "netns", str(init))  # fmt: skip
            # Healing goes on beside a machine's start: whichever comes last must know of the other.
            with self._lock:
                up = "down" if (index, ring) in self._unplugged else "up"
                self.ip("link", "set", name, "master", f"br{ring}", up)
            for words in (
                ("link", "set", f"eth{ring}", "up"),
                ("addr", "add", f"{address(index, ring)}/24", "brd", "+", "dev", f"eth{ring}"),
            ):
                done = subprocess.run(
                    ["nsenter", "-t", str(init), "-n", "ip", *words], env=ENVIRONMENT, check=False, capture_output=True
                )
                if done.returncode:
                    raise LabError(f"ip {' '.join(words)} in machine {index}: {done.stderr!r}")

    def silence(self, index: int) -> None:
        """Let nothing out of a machine any more, not even the last words of its kernel."""
        with self._lock:
            batch = "".join(f"link set {port(index, ring)} down\n" for ring in RINGS)
            self.namespaces.run("ip", "-force", "-batch", "-", stdin=batch, is_checked=False)

    def disconnect(self, index: int) -> None:
        """Take the cables of a dead machine away: its kernel's network may outlive its processes for a while."""
        for ring in RINGS:
            self.ip("link", "del", port(index, ring), is_checked=False)

    def unplug(self, index: int, rings: Iterable[int] = RINGS) -> None:
        """Pull cables; the machine sees that its carrier is gone."""
        with self._lock:
            for ring in rings:
                self._unplugged.add((index, ring))
                self.ip("link", "set", port(index, ring), "down")

    def drop(self, source: int, target: int, rings: Iterable[int] = RINGS, *, only_ip: bool = False) -> None:
        """Lose all frames from one machine to another; with `only_ip` they go on to answer each other's ARP.

        Without an answer a machine stops sending the other way too, within a minute, when its kernel next asks.
        """
        kind = "ether type ip " * only_ip
        self.rules(*(
            f'add rule bridge lab forward iifname "{port(source, ring)}" oifname "{port(target, ring)}" {kind}drop'
            for ring in rings
        ))  # fmt: skip

    def filter(self, index: int, protocol: str) -> None:
        """Lose all that a machine and the others say to each other over TCP (`tcp`), or over UDP (`udp`)."""
        self.rules(*(f'add rule bridge lab forward {end} "{port(index, ring)}" ip protocol {protocol} drop'
                     for ring in RINGS for end in ("iifname", "oifname")))  # fmt: skip

    def deafen(self, index: int) -> None:
        """Let a machine hear nobody, while all hear it."""
        self.rules(*(f'add rule bridge lab {hook} oifname "{port(index, ring)}" drop'
                     for ring in RINGS for hook in ("forward", "output")))  # fmt: skip

    def mute(self, index: int) -> None:
        """Let nobody hear a machine, while it hears all."""
        self.rules(*(f'add rule bridge lab {hook} iifname "{port(index, ring)}" drop'
                     for ring in RINGS for hook in ("forward", "input")))  # fmt: skip

    def lose(self, percent: int) -> None:
        """Lose some of all frames between machines, each way."""
        self.rules(*(f'add rule bridge lab forward iifname "p*" oifname "p*" numgen random mod 100 < {percent} drop',))

    def delay(self, index: int, inits: Sequence[int], delay_ms: int, jitter_ms: int) -> None:
        """Hold frames of both cables of a machine back, each way.

        A frame that is copied must have all its sums, so nobody (`inits`: all machines) may leave them to a device.
        """
        for ring in RINGS:
            name, near, far = port(index, ring), f"r{index}-{ring}", f"s{index}-{ring}"
            self.ip("link", "add", near, "type", "veth", "peer", "name", far)
            here = self.namespaces.init
            places = [(here, name), (here, far), (here, f"br{ring}"), *((init, f"eth{ring}") for init in inits)]
            for place, each in places:
                subprocess.run(
                    ["nsenter", "-t", str(place), "-n", "ethtool", "-K", each,
                     "tx", "off", "gso", "off", "tso", "off", "gro", "off"],
                    env=ENVIRONMENT, check=False, capture_output=True,
                )  # fmt: skip
            self.ip("link", "set", name, "nomaster")
            self.ip("link", "set", near, "master", f"br{ring}", "up")
            self.ip("link", "set", far, "up")
            self._relays.append(self.popen("/usr/bin/python3", "-I", "-S", str(RELAY), name, far,
                                           str(delay_ms), str(jitter_ms)))  # fmt: skip

    def heal(self, indices: Iterable[int]) -> None:
        """Undo everything."""
        for relay in self._relays:
            relay.kill()
            relay.wait()
        self.rules(*(f"flush chain bridge lab {hook}" for hook in HOOKS))
        with self._lock:
            self._unplugged.clear()
            for index in indices:
                for ring in RINGS:
                    if self._relays:
                        self.ip("link", "del", f"r{index}-{ring}", is_checked=False)
                        self.ip("link", "set", port(index, ring), "master", f"br{ring}", is_checked=False)
                    self.ip("link", "set", port(index, ring), "up", is_checked=False)
        self._relays.clear()

    def popen(self, *command: str, stdout: int | None = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """Start a process in the switch's network."""
        return subprocess.Popen(
            ["nsenter", "-t", str(self.namespaces.init), "-n", "--", *command],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=stdout,
        )  # fmt: skip

    def close(self) -> None:
        for relay in self._relays:
            relay.kill()
            relay.wait()
        self.namespaces.end()
