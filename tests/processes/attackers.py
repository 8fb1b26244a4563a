"""What somebody does who reaches a daemon's ports and sockets without belonging there, or with what was stolen."""

import contextlib
import os
import pickle  # noqa: TID251 (it must be refused)
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import yaml

from haclusterd.adapters.network.certificates import (
    AUTHORITY_CERTIFICATE,
    create_authority,
    issue_certificate,
    tls_context,
    write_node_credentials,
)
from haclusterd.adapters.raft.transport import GREETING_BYTES_MAX, GREETING_VERSION
from haclusterd.entry_points.cluster_setup import utc_now
from haclusterd.entry_points.local_cluster import LocalNode
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.raft.settings import MAX_FRAME_BYTES

WAIT_S_MAX = 10.0
REPEATS = 8
FLOOD = 300
FLOODING = Path(__file__).parents[1] / "flooder.py"
ETH_P_IP = 0x0800
IP_HEADER, UDP_HEADER = 20, 8


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@dataclass(frozen=True)
class Attacker:
    """Somebody at an address of their own."""

    host: str
    target: LocalNode
    stolen: LocalNode
    """A member whose files they have, where the attack needs that."""
    directory: Path

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.target.port

    @property
    def proof(self) -> Path:
        """What is there when a pickle was executed."""
        return self.directory / "executed"

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, WAIT_S_MAX, source_address=(self.host, 0))

    def throw(self, data: bytes, *, is_over: bool = True) -> bytes:
        """Send bytes, and return what comes until the other end closes."""
        with self.connect() as link:
            return _converse(link, data, is_over=is_over)

    def speak(self, credentials: Path | ssl.SSLContext, data: bytes) -> bytes:
        """Send bytes within TLS, and return what is answered within it."""
        context = credentials if isinstance(credentials, ssl.SSLContext) else tls_context(credentials, is_server=False)
        try:
            with self.connect() as link, context.wrap_socket(link) as secure:
                return _converse(secure, data, is_over=False)
        except OSError:
            return b""

    def greeting(self, **changes: object) -> bytes:
        uuid = yaml.safe_load((self.target.bundle / "haclusterd.yaml").read_text())["cluster"]["uuid"]
        boot_id = self.stolen.boot_id_file.read_text().strip()
        ends = {"from": self.stolen.name, "to": self.target.name}
        fields = {"version": GREETING_VERSION, "cluster": uuid, **ends, "boot": boot_id, **changes}
        return framed(msgpack.packb(list(fields.values())))

    def bomb(self) -> bytes:
        return pickle.dumps(Bomb(self.proof), protocol=2)

    def foreign_credentials(self) -> Path:
        """Make a certificate for the member, by an authority of their own, beside the cluster's authority."""
        authority = create_authority("local", now=utc_now())
        made = issue_certificate(authority, NodeName(self.stolen.name), ["127.0.0.1"], now=utc_now())
        own = self.directory / "foreign"
        write_node_credentials(own, (self.stolen.bundle / AUTHORITY_CERTIFICATE).read_bytes(), made)
        return own

    @contextlib.contextmanager
    def half_open(self, count: int) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.connect()) for _ in range(count)]


def _converse(link: socket.socket, data: bytes, *, is_over: bool) -> bytes:
    """Return what came until the other end closed; TimeoutError when it does not."""
    answer = b""
    try:
        link.sendall(data)
        if is_over:
            link.shutdown(socket.SHUT_WR)
        while more := link.recv(65536):
            answer += more
    except TimeoutError:
        raise
    except OSError:
        pass
    return answer


def anybody() -> ssl.SSLContext:
    """Return a context that trusts any peer, and shows nothing of itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Attacks on the port of the members. Each returns what was answered beyond TLS alerts; there should be nothing.


def garbage(attacker: Attacker) -> bytes:
    for data in (b"", b"\0" * 5000, b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100_000, b"\x16\x03\x01\x40\x00" + b"x" * 99):
        for _ in range(REPEATS):
            assert len(attacker.throw(data)) < 10, "more than an alert"
    return b""


def pickle_bombs(attacker: Attacker) -> bytes:
    for data in (attacker.bomb(), framed(attacker.bomb())):
        for _ in range(REPEATS):
            assert len(attacker.throw(data)) < 10, "more than an alert"
    return attacker.speak(attacker.stolen.bundle, framed(attacker.bomb()))


def oversized_record(attacker: Attacker) -> bytes:
    return b"".join(attacker.throw(struct.pack(">I", 2**32 - 1) + b"x" * 100_000)[10:] for _ in range(REPEATS))


def half_open_flood(attacker: Attacker) -> bytes:
    with attacker.half_open(FLOOD) as links:
        limit_s = time.monotonic() + WAIT_S_MAX
        for link in links:
            link.settimeout(max(0.1, limit_s - time.monotonic()))
            with contextlib.suppress(ConnectionResetError):
                assert link.recv(100) == b""
    return b""


def slow_loris(attacker: Attacker) -> bytes:
    """Begin a handshake, and never come to its end; a byte comes again and again."""
    began = time.monotonic()
    with attacker.half_open(40) as links:
        waiting = list(links)
        for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500:
            waiting = [link for link in waiting if _is_open(link, bytes((byte,)))]
            if not waiting:
                break
        assert not waiting, "still listened to"
    assert time.monotonic() - began < WAIT_S_MAX
    return b""


def _is_open(link: socket.socket, data: bytes) -> bool:
    link.settimeout(0.005)
    try:
        link.sendall(data)
        return link.recv(100) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def no_certificate(attacker: Attacker) -> bytes:
    return b"".join(attacker.speak(anybody(), attacker.greeting()) for _ in range(REPEATS))


def old_tls(attacker: Attacker) -> bytes:
    context = tls_context(attacker.stolen.bundle, is_server=False)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return b"".join(attacker.speak(context, attacker.greeting()) for _ in range(REPEATS))


def foreign_authority(attacker: Attacker) -> bytes:
    own = attacker.foreign_credentials()
    return b"".join(attacker.speak(own, attacker.greeting()) for _ in range(REPEATS))


def another_members_name(attacker: Attacker) -> bytes:
    """The certificate is one member's, the greeting says that it is another, or the daemon itself."""
    names = {"n1", "n2", "n3"} - {str(attacker.stolen.name)}
    return b"".join(
        attacker.speak(attacker.stolen.bundle, attacker.greeting(**{"from": name}))
        for name in sorted(names) * REPEATS
    )


def another_cluster(attacker: Attacker) -> bytes:
    uuid = "99999999-9999-4999-8999-999999999999"
    greetings = [attacker.greeting(cluster=uuid), attacker.greeting(cluster=uuid[::-1]), attacker.greeting(version=1)]
    return b"".join(attacker.speak(attacker.stolen.bundle, greeting) for greeting in greetings * REPEATS)


def oversized_greeting(attacker: Attacker) -> bytes:
    sizes = (GREETING_BYTES_MAX + 1, 2**20, 2**31, 2**32 - 1)
    return b"".join(
        attacker.speak(attacker.stolen.bundle, struct.pack(">I", size) + b"x" * 5000) for size in sizes * REPEATS
    )


def replayed_stream(attacker: Attacker) -> bytes:
    """Record what a member says, handshake and greeting, and say it again, byte for byte."""
    recorded = _recorded(attacker)
    assert len(recorded) > 1000
    return b"".join(attacker.throw(recorded, is_over=False)[4096:] for _ in range(REPEATS))


def _recorded(attacker: Attacker) -> bytes:
    """Speak TLS with a member's files, with a greeting that is refused, and keep all that was sent."""
    incoming, outgoing, kept = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    secure = tls_context(attacker.stolen.bundle, is_server=False).wrap_bio(incoming, outgoing)
    with attacker.connect() as link:
        while True:
            try:
                secure.do_handshake()
                break
            except ssl.SSLWantReadError:
                kept += _flush(outgoing, link)
                incoming.write(link.recv(65536))
        secure.write(attacker.greeting(version=9))
        kept += _flush(outgoing, link)
    return kept


def _flush(outgoing: ssl.MemoryBIO, link: socket.socket) -> bytes:
    data = outgoing.read()
    link.sendall(data)
    return data


def oversized_frame(attacker: Attacker) -> bytes:
    """A true greeting, with stolen files; then a frame that is too long. It costs that member its session."""
    data = attacker.greeting() + struct.pack(">I", MAX_FRAME_BYTES + 1) + b"x" * 5000
    attacker.speak(attacker.stolen.bundle, data)
    return b""


def bombs_in_a_session(attacker: Attacker) -> bytes:
    """A true greeting, with stolen files; then frames that are none, and frames that were Raft's once."""
    for frame in (attacker.bomb(), b"\xc1" + attacker.bomb(), msgpack.packb([99, 1, 2, 3]), os.urandom(999)):
        attacker.speak(attacker.stolen.bundle, attacker.greeting() + framed(frame))
    return b""


# Attacks on the heartbeats' port.


def datagrams(attacker: Attacker) -> bytes:
    """Noise, and what looks like a member's heartbeat, but for the code."""
    ends = (attacker.stolen.name, attacker.target.name)
    sender, receiver = (bytes((len(name),)) + str(name).encode() for name in ends)
    forged = b"haH\x01" + sender + receiver + b"\0" * 60
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind((attacker.host, 0))
        for data in (b"", b"noise" * 100, attacker.bomb(), forged, forged.replace(sender, b"\2nx"), b"x" * 9000):
            for _ in range(20 * REPEATS):
                link.sendto(data, attacker.address)
    return b""


def datagram_flood(attacker: Attacker) -> bytes:
    """As many as go out in two seconds, none of them a heartbeat."""
    command = [sys.executable, str(FLOODING), "--to", f"127.0.0.1:{attacker.target.port}", "--source", attacker.host]
    subprocess.run(["nice", "-n", "10", *command, "--seconds", "2"], check=True, stdout=subprocess.DEVNULL)
    return b""


class Recorder:
    """Reads the heartbeats of one member to another off the loopback device; root only."""

    def __init__(self, source: int, destination: int) -> None:
        self._ports = struct.pack(">HH", source, destination)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        self._socket.bind(("lo", ETH_P_IP))
        self._socket.settimeout(WAIT_S_MAX)

    def record(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        while len(found) < count:
            packet = self._socket.recv(65536)
            if packet[9] == socket.IPPROTO_UDP and packet[IP_HEADER : IP_HEADER + 4] == self._ports:
                found.append(packet[IP_HEADER + UDP_HEADER :])
        return found

    def close(self) -> None:
        self._socket.close()


# Attacks on the Unix sockets, by a program of the daemon's own user.


def local_sockets(attacker: Attacker) -> bytes:
    answers = b""
    deep = b'{"v":1,"kind":"request","id":"1","verb":"status","arguments":' + b"[" * 50_000
    for data in (
        b"\xff" * 8, struct.pack(">I", 2**31), struct.pack(">I", 8 * 2**20 + 1) + b"x" * 99_999, framed(b"{}"),
        framed(attacker.bomb()), framed(b"[" * 200_000), framed(deep), framed(b'{"v":1,"kind":"response"}'),
        struct.pack(">I", 2**20) + b"half of it" * 1000,
    ):  # fmt: skip
        for path in (attacker.target.socket, attacker.target.runtime / "pacer.sock") * 3:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(WAIT_S_MAX)
                link.connect(str(path))
                answer = _converse(link, data, is_over=True)
                answers += b"" if b"refusal" in answer else answer
    return answers


def idle_clients(attacker: Attacker) -> bytes:
    """More connections than are taken, which say nothing."""
    with contextlib.ExitStack() as stack:
        for path in (attacker.target.socket, attacker.target.runtime / "pacer.sock"):
            for _ in range(200):
                link = stack.enter_context(socket.socket(socket.AF_UNIX))
                link.settimeout(0)
                with contextlib.suppress(OSError):
                    link.connect(str(path))
    return b""


ATTACKS = (
    garbage, pickle_bombs, oversized_record, half_open_flood, slow_loris, no_certificate, old_tls, foreign_authority,
    another_members_name, another_cluster, oversized_greeting, replayed_stream, oversized_frame, bombs_in_a_session,
    datagrams, datagram_flood, local_sockets, idle_clients,
)  # fmt: skip

FLOODER = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
host, port = sys.argv[1], int(sys.argv[2])
held = []
while True:
    try:
        held.append(socket.create_connection(("127.0.0.1", port), 2, source_address=(host, 0)))
        context.wrap_socket(socket.create_connection(("127.0.0.1", port), 2, source_address=(host, 0))).close()
    except OSError:
        pass
    del held[:-400]
"""


@contextlib.contextmanager
def flood(attacker: Attacker) -> Iterator[None]:
    """Connect without end, at every other time with a handshake, until this is left."""
    command = ["nice", "-n", "10", sys.executable, "-c", FLOODER, attacker.host, str(attacker.target.port)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()
