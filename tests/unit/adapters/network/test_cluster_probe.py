"""A search for a living cluster hears it without its credentials, and takes nothing else for it."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haclusterd.adapters.network import cluster_probe
from haclusterd.adapters.network.certificates import tls_context
from haclusterd.adapters.network.cluster_probe import Presence, probe
from haclusterd.entry_points.cluster_setup import make_bundles
from haclusterd.model.cluster import Member
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE, load

N1 = NodeName("n1")


@contextmanager
def listening() -> Iterator[tuple[socket.socket, tuple[str, int]]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener, listener.getsockname()


@contextmanager
def answering(listener: socket.socket, context: ssl.SSLContext | None) -> Iterator[None]:
    """Take one caller, as a daemon does, or say something else."""

    def serve() -> None:
        stream, _ = listener.accept()
        with stream:
            if context is None:
                stream.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                return
            try:
                context.wrap_socket(stream, server_side=True).close()
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    yield
    thread.join(20)


def presence(cluster: str, address: tuple[str, int]) -> Presence:
    (heard,) = probe(cluster, {N1: [address]})
    assert (heard.node, heard.address) == (N1, address)
    return heard.presence


def test_a_daemon_of_the_cluster_is_heard_and_one_of_another_is_not(tmp_path: Path) -> None:
    bundle = make_bundles("web", [Member(N1, (("127.0.0.1", 7400),))], tmp_path)[N1]
    cluster = load(bundle / CONFIGURATION_FILE).cluster_uuid
    context = tls_context(bundle, is_server=True)
    for asked, found in ((cluster, Presence.HEARD), ("another", Presence.OTHER)):
        with listening() as (listener, address), answering(listener, context):
            assert presence(asked, address) is found


def test_another_program_is_not_taken_for_a_daemon() -> None:
    with listening() as (listener, address), answering(listener, None):
        assert presence("uuid", address) is Presence.OTHER


def test_who_listens_and_says_nothing_may_be_a_stopped_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_probe, "TIMEOUT_S", 0.2)
    with listening() as (_, address):
        assert presence("uuid", address) is Presence.UNSURE


@pytest.mark.parametrize("is_reset", [True, False])
def test_who_breaks_off_before_it_shows_a_certificate_may_be_a_daemon(is_reset: bool) -> None:
    # Otherwise a cluster is recovered beside the one that lives, from a daemon that was beginning or ending just then.
    def serve(listener: socket.socket) -> None:
        stream, _ = listener.accept()
        with stream:
            stream.recv(65536)
            if is_reset:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with listening() as (listener, address):
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        assert presence("uuid", address) is Presence.UNSURE
        thread.join(20)


def test_nobody_is_silent() -> None:
    with listening() as (_, address):
        pass
    assert presence("uuid", address) is Presence.SILENT
    assert probe("uuid", {}) == ()
