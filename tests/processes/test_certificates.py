"""Real daemons: certificates are renewed under load and revoked, and who is not invited does not come in."""

import contextlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from haclusterd.adapters.network.certificates import facts_of
from haclusterd.model.ids import NodeName
from haclusterd.protocol.enrolment_token import read_token, write_token
from tests.processes.growing_cluster import REPOSITORY, GrowingCluster

pytestmark = pytest.mark.processes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GrowingCluster]:
    made = GrowingCluster(tmp_path / "cluster")
    try:
        yield made
    finally:
        made.close()


def fingerprint(cluster: GrowingCluster, name: str) -> str:
    return facts_of((cluster.cluster.nodes[NodeName(name)].bundle / "node.pem").read_bytes()).fingerprint


PAUSE_S = 0.1
"""Between two changes of the load."""


class Load:
    """Somebody who changes the configuration all the time; every change must be acknowledged."""

    def __init__(self, cluster: GrowingCluster) -> None:
        self._cluster, self._is_over = cluster, threading.Event()
        self.acknowledged, self.refused = 0, list[str]()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            text = f"property cluster-recheck-interval={600 + self.acknowledged}s\n"
            answer = self._cluster.answer("configure.script", text=text, source="load")
            if answer is not None and answer.exit == 0:
                self.acknowledged += 1
            else:
                self.refused.append(str(answer))

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


def test_certificates_are_renewed_under_load_and_the_old_ones_are_worth_nothing(
    cluster: GrowingCluster, tmp_path: Path
) -> None:
    cluster.begin("n1").grow("n2", "n3")
    cluster.with_service()
    stolen = shutil.copytree(cluster.cluster.nodes[NodeName("n3")].bundle, tmp_path / "stolen")
    old = {name: fingerprint(cluster, name) for name in ("n1", "n2", "n3")}
    term = cluster.asked("n1", "cluster", "members")["leader"]
    load = Load(cluster)
    try:
        for name in ("n3", "n1"):
            cluster.must_crm("n2", "cluster", "certificates", "renew", name)
        revoked = {old["n1"], old["n3"]}
        cluster.until("the old ones to be revoked", lambda: revoked <= set(
            cluster.asked("n2", "cluster", "certificates")["revoked"]))  # fmt: skip
        cluster.hold("all nodes online", lambda: cluster.online() == {"n1", "n2", "n3"}, 5)
        cluster.until("a load that deserves the name", lambda: load.acknowledged > 50)
    finally:
        load.end()
    assert load.refused == []
    assert fingerprint(cluster, "n1") != old["n1"]
    assert fingerprint(cluster, "n2") == old["n2"]
    assert fingerprint(cluster, "n3") != old["n3"]
    assert cluster.events("node-lost") == []
    assert cluster.asked("n1", "cluster", "members")["leader"] == term
    # Everybody is heard with the new keys, and after a restart as well.
    cluster.brain("n3").kill()
    cluster.restart_brain("n3")
    cluster.until("n3 to be whole again", lambda: cluster.online() == {"n1", "n2", "n3"} and cluster.is_idle())
    assert cluster.events("node-lost") == []
    # Who has the old files cannot even speak with the others, and that is said once.
    port, n3 = cluster.cluster.nodes[NodeName("n2")].port, cluster.cluster.nodes[NodeName("n3")]
    boot_id = n3.boot_id_file.read_text().strip()
    for _ in range(5):
        assert not _is_welcome(stolen, boot_id, cluster.cluster.host, port)
    assert _is_welcome(n3.bundle, boot_id, cluster.cluster.host, port)
    cluster.until("it to be said", lambda: "the certificate of n3 is revoked" in cluster.log("n2"))
    assert cluster.log("n2").count("the certificate of n3 is revoked") == 1
    unsafe = cluster.crm("n1", "cluster", "certificates", "revoke", "n2")
    assert (unsafe.returncode, "n2 uses this certificate" in unsafe.stderr) == (107, True), unsafe.stderr


def _is_welcome(credentials: Path, boot_id: str, host: str, port: int) -> bool:
    """Tell whether a peer with these files is greeted: whether the daemon answers its greeting at all."""
    code = (
        "import sys, socket, msgpack, yaml\n"
        "from pathlib import Path\n"
        "from haclusterd.adapters.network.certificates import tls_context\n"
        "from haclusterd.adapters.raft.transport import GREETING_VERSION\n"
        "directory, boot_id, host, port = Path(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4])\n"
        "uuid = yaml.safe_load((directory / 'haclusterd.yaml').read_text())['cluster']['uuid']\n"
        "greeting = msgpack.packb([GREETING_VERSION, uuid, 'n3', 'n2', boot_id])\n"
        "stream = tls_context(directory, is_server=False).wrap_socket(socket.create_connection((host, port), 5))\n"
        "stream.sendall(len(greeting).to_bytes(4, 'big') + greeting)\n"
        "try:\n"
        "    sys.exit(0 if stream.recv(4) else 1)\n"
        "except OSError:\n"
        "    sys.exit(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(credentials), boot_id, host, str(port)],
        cwd=REPOSITORY,
        check=False,
        timeout=30,
    )
    return done.returncode == 0


def test_who_is_not_invited_does_not_come_in(cluster: GrowingCluster, tmp_path: Path) -> None:
    cluster.begin("n1")
    cluster.until("n1 to be the DC", lambda: cluster.status()["dc"] == "n1")
    host, directory = cluster.cluster.host, tmp_path / "nobody"

    def join(token: str, *words: str, name: str = "n2") -> tuple[int, str]:
        port = 7400 if name == "n2" else cluster.cluster.nodes[NodeName("n1")].port
        done = cluster.crm(
            None, "cluster", "join", "--token", "-", f"--node={name}", f"--address={host}:{port}",
            f"--directory={directory}", f"--state-directory={tmp_path / 'state'}",
            f"--runtime-directory={tmp_path / 'run'}", *words, stdin=token + "\n",
        )  # fmt: skip
        assert not (directory / "haclusterd.yaml").exists()
        return done.returncode, done.stderr

    good = read_token(cluster.token("n1", "n2"))
    other_secret = write_token(type(good)(good.addresses, good.pin, b"x" * 16))
    other_cluster = write_token(type(good)(good.addresses, b"x" * 32, good.secret))
    expired = cluster.token("n1", "--valid", "1s")
    cluster.until("it to be over", lambda: "enrolment.expired" in cluster.log("n1"))
    with socket.create_connection(good.addresses[0], 5) as garbage:
        garbage.sendall(b"GET / HTTP/1.0\r\n\r\n")
        # It is closed without being read, so that the other end of it sees a reset.
        with contextlib.suppress(ConnectionResetError):
            assert garbage.recv(100) == b""
    for found, wanted in (
        (join("hacl1-nonsense"), (2, "it is damaged")),
        (join(other_secret), (77, "this invitation is not known here")),
        (join(other_cluster), (77, "the token was made by another cluster")),
        (join(expired), (77, "this invitation is not known here")),
        (join(write_token(good), name="n9"), (77, "the token is for n2")),
        (join(cluster.token("n1"), name="n1"), (108, "node n1 exists already")),
        (join(cluster.token("n1"), name="n8"), (77, "is the address of n1")),
    ):
        assert found[0] == wanted[0], found
        assert wanted[1] in found[1], found
    assert list(cluster.members()) == ["n1"]
    cluster.until("all denials to be said", lambda: cluster.log("n1").count("enrolment.denied") >= 5)
    log = cluster.log("n1")
    assert log.count("enrolment.denied") == 5
    assert "enrolment.turned-away" in log
    assert good.secret.hex() not in log
    assert write_token(good) not in log
    assert cluster.must_crm("n1", "cluster", "invite", "--withdraw")
    assert join(write_token(good)) == (69, join(write_token(good))[1])
    assert cluster.brain("n1").poll() is None
