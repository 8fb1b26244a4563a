"""What docs/howto/single-sign-on.md shows, in a real nginx, with a stand-in for oauth2-proxy."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api.server import ApiServer, listen
from haclusterd.api.settings import ApiSettings
from haclusterd.entry_points.free_ports import free_ports
from tests.documents import CHECKOUT
from tests.unit.api.certified_clients import Authority, Daemon

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
PAGE = CHECKOUT / "docs" / "howto" / "single-sign-on.md"
PEOPLE = {"alice": "staff,ops", "bob": "staff", "carol": "guests"}
"""Who has signed in at the provider, and in which groups they are."""


async def _judge(request: web.Request) -> web.Response:
    person = request.cookies.get("_oauth2_proxy", "")
    if person not in PEOPLE:
        return web.Response(status=401)
    said = {"X-Auth-Request-Email": f"{person}@example.org", "X-Auth-Request-Groups": PEOPLE[person]}
    return web.Response(status=202, headers=said)


async def _ask_to_sign_in(_request: web.Request) -> web.Response:
    return web.Response(status=403, text="sign in")


def _written(directory: Path, ports: Mapping[str, int], certificate: Path) -> Path:
    """Write what the page shows, for other ports and files; return the main file."""
    tokens, server, _ = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for number, name in enumerate(("sso-operators", "sso-viewers")):
        tokens = re.sub(rf'"Bearer hacl_\.\.\.";( +# {name})', rf'"Bearer hacl_{number}";\1', tokens)
    assert "..." not in tokens
    (directory / "tokens.conf").write_text(tokens)
    for old, new in {
        "/etc/nginx/haclusterd-tokens.conf": str(directory / "tokens.conf"),
        "192.0.2.1:443 ": f"127.0.0.1:{ports['proxy']} ",
        "/etc/nginx/cluster.pem": str(certificate),
        "/etc/nginx/cluster.key": str(certificate),
        "127.0.0.1:7443": f"127.0.0.1:{ports['api']}",
        "127.0.0.1:4180": f"127.0.0.1:{ports['oauth2']}",
    }.items():
        assert old in server
        server = server.replace(old, new)
    kept = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {directory}/{name};\n" for name in kept)
    main = directory / "nginx.conf"
    main.write_text(
        f"daemon off; master_process off; pid {directory}/pid; error_log {directory}/errors;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}{server}\n}}\n"
    )
    return main


class Proxied:
    """A page or a program behind the proxy."""

    def __init__(self, daemon: Daemon, address: str, client: aiohttp.ClientSession) -> None:
        self.daemon = daemon
        self.address = address
        self._client = client

    async def ask(self, method: str, path: str, person: str, cookie: str = "", **headers: str) -> tuple[int, Any]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        cookies = f"_oauth2_proxy={person}" + (f"; {cookie}" if cookie else "")
        body = {} if method == "POST" else None
        async with self._client.request(
            method, self.address + path, headers={"Cookie": cookies, **sent}, json=body, ssl=False
        ) as answer:
            return answer.status, answer


@asynccontextmanager
async def proxied(directory: Path) -> AsyncIterator[Proxied]:
    ports = dict(zip(("proxy", "api", "oauth2"), free_ports("127.0.0.1", 3), strict=True))
    daemon = Daemon()
    close = await listen(ApiServer(daemon), ApiSettings((("127.0.0.1", ports["api"]),)), SharedListeners(None))
    provider = web.Application()
    provider.router.add_get("/oauth2/auth", _judge)
    provider.router.add_get("/oauth2/sign_in", _ask_to_sign_in)
    runner = web.AppRunner(provider)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", ports["oauth2"]).start()
    main = _written(directory, ports, Authority(directory, "authority").signed("localhost"))
    assert NGINX is not None
    nginx = await asyncio.create_subprocess_exec(NGINX, "-e", f"{directory}/errors", "-c", str(main))
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client, asyncio.timeout(60):
            at = Proxied(daemon, f"https://127.0.0.1:{ports['proxy']}", client)
            while nginx.returncode is None:
                try:
                    await at.ask("GET", "/", "alice")
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.05)
                else:
                    break
            assert nginx.returncode is None, (directory / "errors").read_text()
            yield at
    finally:
        if nginx.returncode is None:
            nginx.terminate()
        await nginx.wait()
        await runner.cleanup()
        await close()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_the_proxy_of_the_page_gives_each_group_its_token_and_names_the_person(tmp_path: Path) -> None:
    async def play() -> None:
        async with proxied(tmp_path) as at:
            stop, own = "/v1/resource/stop", {"Sec_Fetch_Site": "same-origin"}
            assert (await at.ask("POST", stop, "alice"))[0] == 200
            forged = {"Authorization": "Bearer hacl_0", "Haclusterd_For": "alice@example.org"}
            assert (await at.ask("POST", stop, "bob", **forged))[0] == 200
            shown = [(each.credential, each.origin) for each in at.daemon.asked]
            assert shown == [("hacl_0", "REST for alice@example.org"), ("hacl_1", "REST for bob@example.org")]
            assert (await at.ask("POST", stop, "carol"))[0] == 401
            assert (await at.ask("GET", "/v1/status", "nobody"))[0] == 403, "asked to sign in at the provider"
            assert (await at.ask("POST", stop, "alice", Sec_Fetch_Site="cross-site"))[0] == 403
            assert len(at.daemon.asked) == 2
            status, session = await at.ask("POST", "/v1/session", "alice", **own)
            assert status == 200
            cookie = session.headers["Set-Cookie"].partition(";")[0]
            assert (await at.ask("POST", stop, "alice", cookie, **own))[0] == 200
            assert at.daemon.asked[-1].origin == "web for alice@example.org"

    asyncio.run(play())
