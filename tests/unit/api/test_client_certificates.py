"""Certificates of clients, over real TLS: whom the handshake proves, and which token is then shown to the daemon."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api.client_certificates import ClientCertificates
from haclusterd.api.server import ApiServer, listen
from haclusterd.api.settings import ApiSettings, ApiSettingsError, load
from haclusterd.entry_points.api import reload, tls
from haclusterd.entry_points.free_ports import free_ports
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from tests.unit.api.certified_clients import Authority, Daemon

MOMENT = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
ALICE = {"subject": ((("commonName", "alice"),),), "notAfter": "Jan  1 00:00:00 2030 GMT"}
BEFORE, AFTER = (WallTime(int(MOMENT.timestamp() * 1000) + each) for each in (-1, 0))


@dataclass
class Served:
    """A server with a certificate that asks for others."""

    daemon: Daemon
    address: str
    authority: Authority

    async def ask(
        self, method: str, path: str, certificate: Path | None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], Any]:
        context = ssl.create_default_context(cafile=self.authority.file)
        if certificate is not None:
            context.load_cert_chain(certificate)
        jar = aiohttp.DummyCookieJar()
        body = {} if method == "POST" else None
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), cookie_jar=jar) as client,
            client.request(method, self.address + path, headers=headers, json=body) as answer,
        ):
            return answer.status, answer.headers, await answer.json(content_type=None)


def written(directory: Path, authority: Authority, clients: str, more: str = "") -> ApiSettings:
    """Write api.yaml with all that it names; return what is read of it."""
    (directory / "ops").write_text("hacl_ops\n")
    (directory / "ops").chmod(0o640)
    own = authority.signed("localhost", x509.DNSName("localhost"))
    (port,) = free_ports("127.0.0.1", 1)
    (directory / "api.yaml").write_text(
        f"listen: ['127.0.0.1:{port}']\ncertificate: {own.name}\nkey: {own.name}\n"
        f"client-ca: {authority.file.name}\nclients: {clients}\n{more}\n"
    )
    return load(directory / "api.yaml")


@asynccontextmanager
async def served(directory: Path, clients: str) -> AsyncIterator[Served]:
    authority, daemon = Authority(directory, "authority"), Daemon()
    settings = written(directory, authority, clients)
    known = ClientCertificates(lambda: WallTime(0), settings.clients)
    close = await listen(ApiServer(daemon, known), settings, SharedListeners(tls(settings)))
    try:
        yield Served(daemon, f"https://localhost:{settings.listen[0][1]}", authority)
    finally:
        await close()


def test_a_certificate_stands_for_a_token_and_the_history_learns_whose_it_was(tmp_path: Path) -> None:
    async def play() -> None:
        async with served(tmp_path, "{'CN:alice': ops, 'DNS:ansible.example.org': ops}") as at:
            alice, other = at.authority.signed("alice"), at.authority.signed("bob")
            program = at.authority.signed("x", x509.DNSName("ansible.example.org"))
            stop = "/v1/resource/stop"
            assert (await at.ask("POST", stop, alice))[0] == 200
            assert (await at.ask("POST", stop, program))[0] == 200
            shown = [(each.credential, each.origin) for each in at.daemon.asked]
            assert shown == [("hacl_ops", "REST for CN:alice"), ("hacl_ops", "REST for DNS:ansible.example.org")]
            assert (await at.ask("POST", stop, other))[0] == 401
            assert (await at.ask("POST", stop, None))[0] == 401
            token = {"Authorization": "Bearer hacl_own"}
            assert (await at.ask("POST", stop, alice, token))[0] == 200
            assert at.daemon.asked[-1].credential == "hacl_own"
            assert len(at.daemon.asked) == 3

    asyncio.run(play())


def test_who_has_a_certificate_signs_in_without_a_token_and_no_other_site_uses_it(tmp_path: Path) -> None:
    async def play() -> None:
        async with served(tmp_path, "{'CN:alice': ops}") as at:
            alice = at.authority.signed("alice")
            for site in ("cross-site", "same-site"):
                foreign = {"Sec-Fetch-Site": site}
                assert (await at.ask("POST", "/v1/session", alice, foreign))[0] == 403
                assert (await at.ask("GET", "/v1/status", alice, foreign))[0] == 403
            assert (await at.ask("POST", "/v1/resource/stop", alice, {"Origin": "https://other.example"}))[0] == 403
            assert at.daemon.asked == []
            own = {"Sec-Fetch-Site": "same-origin"}
            status, headers, session = await at.ask("POST", "/v1/session", alice, own)
            assert (status, session["author"], "hacl_ops" in str(session)) == (200, "token:ops@n1", False)
            cookie = headers["Set-Cookie"].partition(";")[0]
            assert cookie.startswith("__Host-")
            held = {**own, "Cookie": cookie}
            assert (await at.ask("POST", "/v1/resource/stop", alice, held))[0] == 403, "without the word of the session"
            held["Haclusterd-Csrf"] = session["csrf"]
            assert (await at.ask("POST", "/v1/resource/stop", alice, held))[0] == 200
            assert at.daemon.asked[-1].origin == "web for CN:alice"

    asyncio.run(play())


def test_certificates_of_others_and_old_ones_end_the_handshake(tmp_path: Path) -> None:
    async def play() -> None:
        async with served(tmp_path, "{'CN:alice': ops}") as at:
            (tmp_path / "other").mkdir()
            foreign = Authority(tmp_path / "other", "authority").signed("alice")
            old = at.authority.signed("alice", until=2021)
            for certificate in (foreign, old):
                with pytest.raises(aiohttp.ClientError):
                    await at.ask("GET", "/v1/status", certificate)
            assert at.daemon.asked == []

    asyncio.run(play())


def test_what_was_revoked_ends_the_handshake_and_a_reload_ends_connections(tmp_path: Path) -> None:
    async def play() -> None:
        authority, daemon = Authority(tmp_path, "authority"), Daemon()
        alice, bob = authority.signed("alice"), authority.signed("bob")
        authority.revoked(bob)
        settings = written(tmp_path, authority, "{'CN:alice': ops, 'CN:bob': ops}", "client-crl: revoked.pem")
        known = ClientCertificates(lambda: WallTime(0), settings.clients)
        listeners = SharedListeners(tls(settings))
        close = await listen(ApiServer(daemon, known), settings, listeners)
        at = Served(daemon, f"https://localhost:{settings.listen[0][1]}", authority)
        try:
            assert (await at.ask("GET", "/v1/status", alice))[0] == 200
            assert (await at.ask("GET", "/v1/openapi.json", None))[0] == 200
            with pytest.raises(aiohttp.ClientError):
                await at.ask("GET", "/v1/status", bob)
            context = ssl.create_default_context(cafile=authority.file)
            context.load_cert_chain(alice)
            reader, writer = await asyncio.open_connection("localhost", settings.listen[0][1], ssl=context)
            writer.write(b"GET /v1/session HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await reader.readline()
            authority.revoked(alice, bob)
            reload(tmp_path / "api.yaml", known, listeners)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
            with pytest.raises(aiohttp.ClientError):
                await at.ask("GET", "/v1/status", alice)
            (tmp_path / "revoked.pem").write_text("nothing")
            reload(tmp_path / "api.yaml", known, listeners)
            assert (await at.ask("GET", "/v1/openapi.json", None))[0] == 200, "what cannot be used changes nothing"
            authority.revoked(until=2021)
            reload(tmp_path / "api.yaml", known, listeners)
            with pytest.raises(aiohttp.ClientError):
                await at.ask("GET", "/v1/status", authority.signed("carol"))
        finally:
            await close()

    asyncio.run(play())


def test_revocations_without_an_authority_or_without_a_list_are_refused(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text("listen: ['127.0.0.1:1']\nclient-crl: revoked.pem\n")
    with pytest.raises(ApiSettingsError, match="client-crl"):
        load(tmp_path / "api.yaml")
    authority = Authority(tmp_path, "authority")
    (tmp_path / "revoked.pem").write_bytes(authority.file.read_bytes())
    with pytest.raises(ApiSettingsError, match="no list of revoked certificates"):
        tls(written(tmp_path, authority, "{'CN:alice': ops}", "client-crl: revoked.pem"))


def test_a_bearer_says_for_whom_it_asks_in_one_word(tmp_path: Path) -> None:
    async def play() -> None:
        async with served(tmp_path, "{'CN:alice': ops}") as at:
            asked = {"Authorization": "Bearer hacl_proxy", "Haclusterd-For": "bob@example.org"}
            assert (await at.ask("POST", "/v1/resource/stop", None, asked))[0] == 200
            assert at.daemon.asked[-1].origin == "REST for bob@example.org"
            for word in ("a b", "x" * 129, "caf\u00e9"):
                assert (await at.ask("POST", "/v1/resource/stop", None, {**asked, "Haclusterd-For": word}))[0] == 400
            assert len(at.daemon.asked) == 1

    asyncio.run(play())


def test_a_certificate_that_has_expired_meanwhile_shows_nobody() -> None:
    tokens = (("CN:alice", "t"),)
    assert ClientCertificates(lambda: BEFORE, tokens).find(ALICE) is not None
    assert ClientCertificates(lambda: AFTER, tokens).find(ALICE) is None
    assert ClientCertificates(lambda: BEFORE, tokens).find(None) is None


@pytest.mark.parametrize(
    ("clients", "named"),
    [
        ("{'alice': ops}", "'alice' is not KIND:NAME"),
        ("{'serial:1': ops}", "is not KIND:NAME"),
        ("{'CN:a b': ops}", "is not KIND:NAME"),
        ("[ops]", "expected a mapping"),
        ("{'CN:alice': missing}", "missing: No such file"),
        ("{'CN:alice': open}", "every user may open it"),
        ("{'CN:alice': two}", "expected one token"),
        ("{}", "client-ca and clients go together"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, clients: str, named: str) -> None:
    for name, text, mode in (("open", "t", 0o644), ("two", "t t", 0o600)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    with pytest.raises(ApiSettingsError, match=named):
        written(tmp_path, Authority(tmp_path, "authority"), clients)
