"""Links between real endpoints on loopback, and the list of attacks that must not get through."""

import asyncio
import contextlib
import hashlib
import pickle  # noqa: TID251 (it must be refused)
import socket
import ssl
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import pytest

from haclusterd.adapters.network.certificates import issue_certificate, tls_context, write_node_credentials
from haclusterd.adapters.raft.transport import GREETING_VERSION, PLACES_MARK
from haclusterd.model.ids import NodeName
from haclusterd.ports.store import PeerPlaces
from haclusterd.raft.settings import MAX_FRAME_BYTES
from tests.unit.adapters.raft.raft_links import CLUSTER, N1, N2, N3, NOW, Network, until


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[Network]:
    network = Network(tmp_path)
    yield network
    for end in network.ends:
        await end.transport.stop()


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def greeting(**changes: object) -> bytes:
    fields = {"version": GREETING_VERSION, "cluster": CLUSTER, "from": N2, "to": N1, "boot": "", **changes}
    return framed(msgpack.packb(list(fields.values())))


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the other end closes; whether it did so without a word."""
    try:
        async with asyncio.timeout(10):
            return await reader.read(100) == b""
    except OSError:
        return True


async def test_frames_arrive_whole_and_in_order(network: Network) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
    frames = [bytes([number]) * size for number, size in enumerate((1, 70_000, 3, MAX_FRAME_BYTES, 5))]
    for frame in frames:
        first.transport.send(N2, frame)
        second.transport.send(N1, frame)
    await until(lambda: len(first.frames) == len(second.frames) == len(frames))
    assert second.frames == [(N1, frame) for frame in frames]
    assert first.frames == [(N2, frame) for frame in frames]


async def test_an_idle_link_stays_up_by_pings(network: Network) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported and second.reported)
    loop = asyncio.get_running_loop()
    end = loop.time() + 3 * first.transport.timers.silence_ms / 1000
    await until(lambda: loop.time() > end)
    assert first.reported == ["+n2"]
    assert second.reported == ["+n1"]
    assert first.frames == second.frames == []


async def test_a_peer_that_comes_back_is_met_again(network: Network) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"])
    await second.transport.stop()
    await until(lambda: first.reported == ["+n2", "-n2"])
    again = await network.start(N2)
    await until(lambda: first.reported == ["+n2", "-n2", "+n2"] and again.reported == ["+n1"])
    again.transport.send(N1, b"back")
    await until(lambda: first.frames == [(N2, b"back")])


async def test_a_boot_that_is_objected_to_learns_why_and_comes_in_when_it_is_not_any_more(network: Network) -> None:
    first = await network.start(N1, second="n2 lives in another boot")
    second = await network.start(N2, boot_id="second")
    await until(lambda: second.kept_out)
    assert second.kept_out[0] == (N1, "n2 lives in another boot")
    assert first.reported == second.reported == []
    first.objections.clear()
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])


async def test_who_is_objected_to_does_not_disturb_who_is_there(network: Network) -> None:
    first = await network.start(N1, second="n2 lives in another boot")
    there = await network.start(N2, boot_id="first")
    await until(lambda: first.reported == ["+n2"] and there.reported == ["+n1"])
    network.addresses[N2] = network.spare
    copy = await network.start(N2, boot_id="second")
    await until(lambda: len(copy.kept_out) > 1)
    there.transport.send(N1, b"still here")
    await until(lambda: first.frames == [(N2, b"still here")])
    assert first.reported == ["+n2"]
    assert copy.reported == []


async def test_the_dialling_end_objects_as_well(network: Network) -> None:
    first = await network.start(N1, boot_id="second")
    second = await network.start(N2, second="n1 lives in another boot")
    await until(lambda: first.reported.count("-n2") > 1)
    assert second.reported == []
    second.objections.clear()
    await until(lambda: second.reported == ["+n1"])


async def test_a_voter_is_reached_at_any_of_its_addresses(network: Network) -> None:
    network.more_addresses[N1] = (network.spare,)
    with socket.create_server(network.addresses[N1]) as squatter:
        first, second = await network.start(N1), await network.start(N2)
        squatter.close()
        await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
        second.transport.send(N1, b"here")
        await until(lambda: first.frames == [(N2, b"here")])


async def test_an_address_that_comes_later_is_listened_on(network: Network) -> None:
    network.more_addresses[N1] = (network.spare,)
    with socket.create_server(network.addresses[N1]):
        await network.start(N1)

    async def is_met() -> bool:
        try:
            _, writer = await network.unauthenticated(N2)
        except OSError:
            return False
        writer.transport.abort()
        return True

    async with asyncio.timeout(10):
        while not await is_met():
            await asyncio.sleep(0.05)


async def test_without_any_address_the_transport_does_not_start(network: Network) -> None:
    with socket.create_server(network.addresses[N1]), pytest.raises(OSError, match="in use"):
        await network.start(N1)


async def test_a_silent_peer_is_given_up(network: Network) -> None:
    first = await network.start(N1)
    _reader, writer = await network.unauthenticated(N2)
    # Before it is heard, for any delay after that would be missing from what is measured.
    start = asyncio.get_running_loop().time()
    writer.write(greeting())
    await until(lambda: first.reported == ["+n2", "-n2"])
    assert asyncio.get_running_loop().time() - start >= first.transport.timers.silence_ms / 1000
    writer.transport.abort()


async def test_a_new_session_mutes_the_old_one(network: Network) -> None:
    first = await network.start(N1)
    _old_reader, old_writer = await network.unauthenticated(N2)
    old_writer.write(greeting() + framed(b"old"))
    await until(lambda: first.frames == [(N2, b"old")])
    _, new_writer = await network.unauthenticated(N2)
    new_writer.write(greeting())
    await until(lambda: first.reported == ["+n2", "-n2", "+n2"])
    with contextlib.suppress(OSError):
        old_writer.write(framed(b"too late"))
        await old_writer.drain()
    new_writer.write(framed(b"new"))
    await until(lambda: len(first.frames) == 2)
    assert first.frames == [(N2, b"old"), (N2, b"new")]
    assert first.reported == ["+n2", "-n2", "+n2"]
    old_writer.transport.abort()
    new_writer.transport.abort()


async def test_a_frame_that_arrives_while_its_session_is_replaced_is_dropped(network: Network) -> None:
    first = await network.start(N1)
    _reader, writer = await network.unauthenticated(N2)
    writer.write(greeting() + framed(b"in time"))
    await until(lambda: first.frames)
    first.transport._sessions[N2].is_muted = True
    writer.write(framed(b"too late"))
    await until(lambda: first.reported == ["+n2", "-n2"])
    assert first.frames == [(N2, b"in time")]
    writer.transport.abort()


async def test_a_frame_that_is_no_message_closes_the_session(network: Network) -> None:
    first = await network.start(N1)
    first.accepts = False
    _reader, writer = await network.unauthenticated(N2)
    writer.write(greeting() + framed(b"\x80\x02}."))
    await until(lambda: first.reported == ["+n2", "-n2"])
    writer.transport.abort()


async def test_a_peer_that_does_not_read_is_given_up_and_memory_stays_bounded(network: Network) -> None:
    first = await network.start(N1)
    _reader, writer = await network.unauthenticated(N2)
    writer.write(greeting())
    await until(lambda: first.reported == ["+n2"])
    writer.transport.pause_reading()
    for _ in range(64):
        first.transport.send(N2, bytes(MAX_FRAME_BYTES))
    await until(lambda: first.reported == ["+n2", "-n2"])
    writer.transport.abort()


async def test_a_busy_address_is_an_error_at_start(network: Network) -> None:
    await network.start(N1)
    with pytest.raises(OSError, match="Address already in use"):
        await network.start(N1)


ATTACKS = {
    "plain rubbish": (None, b"\0" * 5000),
    "plain HTTP": (None, b"GET / HTTP/1.1\r\nHost: n1\r\n\r\n"),
    "a plain pickle": (None, framed(zlib.compress(pickle.dumps({"type": "request_vote", "term": 999})))),
    "a plain greeting": (None, greeting()),
    "a foreign authority": ("foreign", greeting()),
    "a node that is no voter": ("n3", greeting(**{"from": N3})),
    "a node under another's name": ("n3", greeting()),
    "the node itself": ("n1", greeting(**{"from": N1})),
    "another cluster": ("n2", greeting(cluster=CLUSTER.replace("1", "9"))),
    "another version": ("n2", greeting(version=1)),
    "a boot id that is none": ("n2", greeting(boot=1)),
    "a greeting for another": ("n2", greeting(to=N3)),
    "a pickle as greeting": ("n2", framed(pickle.dumps([1, CLUSTER, N2, N1]))),
    "a huge greeting": ("n2", (2**31).to_bytes(4, "big")),
    "a frame instead of a greeting": ("n2", framed(b"x" * 1100)),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_never_become_a_session(network: Network, attack: str) -> None:
    first = await network.start(N1)
    credentials, data = ATTACKS[attack]
    try:
        reader, writer = await network.unauthenticated(credentials)
        writer.write(data + framed(b"forged"))
        assert await is_closed(reader)
        writer.transport.abort()
    except (OSError, ssl.SSLError):
        pass
    assert first.reported == []
    assert first.frames == []
    second = await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])


async def test_a_huge_frame_closes_the_session(network: Network) -> None:
    first = await network.start(N1)
    _reader, writer = await network.unauthenticated(N2)
    writer.write(greeting() + (MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
    await until(lambda: first.reported == ["+n2", "-n2"])
    assert first.frames == []
    writer.transport.abort()


async def test_tls_1_2_is_refused(network: Network) -> None:
    await network.start(N1)
    context = tls_context(network.directory / N2, is_server=False)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ConnectionError, ssl.SSLError)):
        await asyncio.open_connection(*network.addresses[N1], ssl=context)


async def test_no_certificate_is_refused(network: Network) -> None:
    first = await network.start(N1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(network.directory / N1 / "authority.pem")
    reader, writer = await asyncio.open_connection(*network.addresses[N1], ssl=context)
    writer.write(greeting())
    assert await is_closed(reader)
    writer.transport.abort()
    assert first.reported == []


async def test_the_dialling_end_checks_as_well(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    """n2 dials n1's address, where another node with a good certificate listens."""
    credentials = issue_certificate(network.authority, N3, ["127.0.0.1"], now=NOW)
    write_node_credentials(network.directory / "impostor", network.authority.certificate, credentials)
    await network.start(N1, credentials="impostor")
    second = await network.start(N2)
    await until(lambda: "the certificate names n3, which is no peer here" in caplog.text)
    assert second.reported == []


async def test_strangers_that_say_nothing_do_not_keep_peers_out(network: Network) -> None:
    first = await network.start(N1)
    silent = [await asyncio.open_connection(*network.addresses[N1]) for _ in range(20)]
    second = await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
    for _, writer in silent:
        writer.transport.abort()


def places(network: Network, version: int, *names: NodeName, revoked: frozenset[str] = frozenset()) -> PeerPlaces:
    return PeerPlaces(version, {name: (network.addresses[name],) for name in names}, revoked)


def fingerprint_of(network: Network, name: NodeName) -> str:
    pem = (network.directory / name / "node.pem").read_text()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


async def test_a_new_member_is_talked_to_as_soon_as_it_is_one(network: Network) -> None:
    network.addresses[N3] = network.spare
    first = await network.start(N1)
    first.transport.follow(places(network, 1, N1, N2))
    third = await network.start(N3)
    third.transport.follow(places(network, 1, N1, N2, N3))
    assert first.reported == []
    first.transport.follow(places(network, 2, N1, N2, N3))
    await until(lambda: first.reported == ["+n3"] and third.reported == ["+n1"])


async def test_who_was_away_hears_of_new_members_from_those_it_knows(network: Network) -> None:
    """n1 knows n2 only; n3, with the greater name, dials n1 in vain until n2 has reported n1 of it."""
    network.addresses[N3] = network.spare
    known = dict(network.addresses)
    third, second = await network.start(N3), await network.start(N2)
    del network.addresses[N3]
    first = await network.start(N1)
    network.addresses = known
    second.transport.follow(places(network, 3, N1, N2, N3))
    await until(lambda: {"+n2", "+n3"} <= set(first.reported) and "+n1" in third.reported)


async def test_the_end_with_the_lesser_name_dials_when_the_other_does_not(network: Network) -> None:
    """n1 has moved and n2 does not know where to: n1 dials."""
    second = await network.start(N2)
    network.addresses[N1] = network.spare
    first = await network.start(N1)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])


async def test_who_is_no_member_any_more_is_shut_out(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"])
    first.transport.follow(places(network, 1, N1))
    await until(lambda: first.reported == ["+n2", "-n2"] and second.reported[:2] == ["+n1", "-n1"])
    await until(lambda: "which is no peer here" in caplog.text)
    assert first.reported == ["+n2", "-n2"]


async def test_a_revoked_certificate_is_refused_and_the_next_one_is_not(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"])
    first.transport.follow(places(network, 1, N1, N2, revoked=frozenset({fingerprint_of(network, N2)})))
    await until(lambda: "the certificate of n2 is revoked" in caplog.text)
    await second.transport.stop()
    network.ends.remove(second)
    assert first.reported == ["+n2", "-n2"]
    network.admit(network.authority, N2)
    await network.start(N2)
    await until(lambda: first.reported == ["+n2", "-n2", "+n2"])


async def test_an_address_changes_while_everybody_is_connected(network: Network) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
    old, network.addresses[N2] = network.addresses[N2], network.spare
    second.transport.follow(places(network, 1, N1, N2))
    await until(lambda: first.transport.places.version == 1)
    reader, writer = await asyncio.open_connection(*network.addresses[N2])
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*old)
    del reader


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        msgpack.packb([1]),
        msgpack.packb([1, [], []]),
        msgpack.packb([1, [["n1", []]], []]),
        msgpack.packb([1, [["n1", [["h", 0]]]], []]),
        msgpack.packb([1, [["n1", [["h", 1]]]], ["short"]]),
        msgpack.packb([-1, [["n1", [["h", 1]]]], []]),
        msgpack.packb([1, [["../n1", [["h", 1]]]], []]),
        msgpack.packb([1, [[["n1"], [["h", 1]]]], []]),
        msgpack.packb([1, {"n1": 1}, []]),
        msgpack.packb([1, [["n1", [["h", 1]]]] * 300, []]),
    ],
)
async def test_a_list_of_members_that_is_none_ends_the_session(network: Network, frame: bytes) -> None:
    first, second = await network.start(N1), await network.start(N2)
    await until(lambda: first.reported == ["+n2"] and second.reported == ["+n1"])
    second.transport.send(N1, PLACES_MARK + frame)
    await until(lambda: first.reported[:2] == ["+n2", "-n2"])
    assert first.transport.places.version == 0
