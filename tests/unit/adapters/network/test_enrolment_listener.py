"""The enrolment listener over real TLS on loopback: who is invited, who is mistaken, who floods it."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from haclusterd.adapters.network.authority_files import AuthorityFiles, utc_now
from haclusterd.adapters.network.certificates import (
    NODE_CERTIFICATE,
    Credentials,
    create_authority,
    issue_certificate,
    pin_of,
    request_certificate,
    require_credentials,
    write_authority,
    write_node_credentials,
)
from haclusterd.adapters.network.enrolment_client import NoMemberAnswersError, WrongAuthorityError, enrol
from haclusterd.adapters.network.enrolment_listener import APPLICANTS_MAX, TlsEnrolmentListener
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, News
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.ports.enrolment import Applicant, AuthorityMissingError
from haclusterd.protocol.enrolment import is_proven
from haclusterd.protocol.enrolment_token import Token, invitation_of, proof_key_of

N1, N2 = NodeName("n1"), NodeName("n2")
SECRET = b"s" * 16


class House:
    """One inviting daemon: its credentials, its listener, and what came to it."""

    def __init__(self, directory: Path) -> None:
        authority = create_authority("uuid", now=utc_now())
        write_authority(directory / "authority", authority)
        write_node_credentials(
            directory, authority.certificate, issue_certificate(authority, N1, ["127.0.0.1"], now=utc_now())
        )
        self.authority = AuthorityFiles(directory)
        self.listener = TlsEnrolmentListener(directory)
        self.noted: list[str] = []
        self.applicants: list[Applicant] = []
        self.pem = authority.certificate.decode()
        self.address = ("127.0.0.1", _free_port())
        self.token = Token((self.address,), pin_of(authority.certificate), SECRET)

    def open(self) -> None:
        opened = self.listener.open(
            (self.address,), self.greeting, self.applied, lambda _who, why: self.noted.append(why)
        )
        assert opened == (self.address,)

    def greeting(self) -> Hello:
        return Hello("uuid", "web", self.pem, b"", WallTime(1), 2)

    def applied(self, applicant: Applicant, hello: Hello, application: Apply) -> None:
        self.applicants.append(applicant)
        if not is_proven(proof_key_of(SECRET), hello, applicant.session_certificate, application):
            applicant.tell(Denied("NOT_ADMITTED", "no proof", "", 77))
            return
        assert application.invitation == invitation_of(SECRET)
        applicant.tell(News("signing"))
        hosts = [host for host, _ in application.addresses]
        signed = self.authority.sign("", application.request, application.node, hosts)
        applicant.tell(Admitted(signed, "uuid", "web", (), 2000))


def _free_port() -> int:
    return free_ports("127.0.0.1", 1)[0]


def apply(request: bytes) -> Callable[[Hello], Apply]:
    return lambda hello: Apply("", N2, (("127.0.0.2", 7400),), request.decode(), b"", WallTime(2), 2)


def live(directory: Path, scene: Callable[[House], Awaitable[None]]) -> None:
    async def run() -> None:
        house = House(directory)
        house.open()
        try:
            await scene(house)
        finally:
            house.listener.close()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_who_is_invited_gets_a_certificate_for_its_own_key(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        mine, lines = request_certificate(N2), list[str]()
        hello, answer = await asyncio.to_thread(enrol, house.token, apply(mine.request), lines.append)
        assert isinstance(answer, Admitted)
        require_credentials(hello.authority.encode(), N2, Credentials(answer.certificate.encode(), mine.key))
        assert lines == ["signing"]
        assert house.applicants[0].address.startswith("127.0.0.1:")
        with pytest.raises(ValueError, match="another node's"):
            require_credentials(hello.authority.encode(), N1, Credentials(answer.certificate.encode(), mine.key))

    live(tmp_path, scene)


def test_a_wrong_secret_is_refused(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        token = replace(house.token, secret=b"t" * 16)
        _, answer = await asyncio.to_thread(enrol, token, apply(request_certificate(N2).request), print)
        assert answer == Denied("NOT_ADMITTED", "no proof", "", 77)

    live(tmp_path, scene)


def test_nothing_is_said_to_another_cluster(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        hellos: list[Hello] = []

        def application(hello: Hello) -> Apply:
            hellos.append(hello)
            raise AssertionError("the joiner spoke")

        with pytest.raises(WrongAuthorityError, match="another cluster"):
            await asyncio.to_thread(enrol, replace(house.token, pin=b"x" * 32), application, print)
        assert hellos == house.applicants == []

    live(tmp_path, scene)


def test_a_server_that_shows_the_authority_without_a_certificate_of_it_is_not_believed(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        liar = House(tmp_path / "liar")
        liar.pem = house.pem
        liar.open()
        try:
            token = replace(house.token, addresses=(liar.address,))
            with pytest.raises(WrongAuthorityError, match="not of this cluster's authority"):
                await asyncio.to_thread(enrol, token, apply(request_certificate(N2).request), print)
        finally:
            liar.listener.close()

    live(tmp_path, scene)


def test_the_next_address_is_tried_and_a_closed_listener_is_named(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        nobody = ("127.0.0.1", _free_port())
        token = replace(house.token, addresses=(nobody, house.address))
        _, answer = await asyncio.to_thread(enrol, token, apply(request_certificate(N2).request), print)
        assert isinstance(answer, Admitted)
        house.listener.close()
        places = f"127.0.0.1:{nobody[1]}: .*refused; 127.0.0.1:{house.address[1]}"
        with pytest.raises(NoMemberAnswersError, match=places):
            await asyncio.to_thread(enrol, token, apply(b""), print)

    live(tmp_path, scene)


def test_garbage_is_noted_and_the_listener_stays_open(tmp_path: Path) -> None:
    def disturb(house: House) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for data in (b"GET / HTTP/1.0\r\n\r\n",):
            with socket.create_connection(house.address, 5) as stream, contextlib.suppress(OSError):
                stream.sendall(data)
                stream.recv(100)
        for data in (b"\xff\xff\xff\xff", b"\0\0\0\x02{}", b"\0\0\0\x05hello"):
            with socket.create_connection(house.address, 5) as stream, context.wrap_socket(stream) as secured:
                secured.sendall(data)
                with contextlib.suppress(OSError):
                    while secured.recv(4096):
                        pass

    async def scene(house: House) -> None:
        await asyncio.to_thread(disturb, house)
        async with asyncio.timeout(10):
            while len(house.noted) < 4:
                await asyncio.sleep(0.01)
        assert house.applicants == []
        assert any("a frame of 4294967295 bytes" in each for each in house.noted)
        assert "not JSON" in house.noted
        _, answer = await asyncio.to_thread(enrol, house.token, apply(request_certificate(N2).request), print)
        assert isinstance(answer, Admitted)

    live(tmp_path, scene)


def test_a_flood_is_cut_off(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        crowd = []
        for _ in range(APPLICANTS_MAX + 3):
            crowd.append(socket.create_connection(house.address, 5))
        async with asyncio.timeout(10):
            while house.noted.count("too many at a time") < 3:
                await asyncio.sleep(0.01)
        for each in crowd:
            each.close()
        async with asyncio.timeout(10):
            while len(house.noted) < APPLICANTS_MAX + 3:
                await asyncio.sleep(0.01)

    live(tmp_path, scene)


def test_a_disk_that_does_not_answer_delays_the_applicant_alone(tmp_path: Path) -> None:
    async def scene(house: House) -> None:
        certificate = tmp_path / NODE_CERTIFICATE
        certificate.unlink()
        os.mkfifo(certificate)
        with socket.create_connection(house.address, 5):
            disk = None
            async with asyncio.timeout(10):
                while disk is None:
                    await asyncio.sleep(0.01)
                    with contextlib.suppress(OSError):  # Nobody reads yet.
                        disk = os.open(certificate, os.O_WRONLY | os.O_NONBLOCK)
            os.write(disk, b"no certificate")
            os.close(disk)
            async with asyncio.timeout(10):
                while not house.noted:
                    await asyncio.sleep(0.01)

    live(tmp_path, scene)


def test_the_authority_is_named_where_it_is_missing(tmp_path: Path) -> None:
    house = House(tmp_path / "n1")
    with pytest.raises(AuthorityMissingError, match=r"other/?.*: No such file"):
        house.authority.certificate(str(tmp_path / "other"))
    other = create_authority("uuid", now=utc_now())
    write_authority(tmp_path / "mixed", Credentials(house.pem.encode(), other.key))
    with pytest.raises(AuthorityMissingError, match="do not belong together"):
        house.authority.sign(str(tmp_path / "mixed"), "", N2, ())


@pytest.mark.parametrize(
    ("node", "request_pem", "problem"),
    [
        (NodeName("n3"), request_certificate(N2).request, "the request names n2, not n3"),
        (N2, b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "asn1"),
        (N2, b"nothing", "PEM"),
    ],
)
def test_only_a_request_for_this_node_is_signed(
    tmp_path: Path, node: NodeName, request_pem: bytes, problem: str
) -> None:
    house = House(tmp_path)
    with pytest.raises(ValueError, match=problem):
        house.authority.sign("", request_pem.decode(), node, ())
