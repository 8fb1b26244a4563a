"""The process `haclusterd-api`: REST for those who are no users of this machine.

It runs as a user of its own and reaches the daemon through the control socket alone, which lets that user do nothing
but pass on requests with a token each. So whatever happens to it, the daemon continues.
"""

import argparse
import asyncio
import logging
import signal
import ssl
import sys
from pathlib import Path

from haclusterd.adapters.control.link import ControlLink
from haclusterd.adapters.machine.clock_boottime import BoottimeClock
from haclusterd.adapters.machine.service_notification import notify
from haclusterd.adapters.network.shared_listening import SharedListeners
from haclusterd.api.client_certificates import ClientCertificates
from haclusterd.api.server import ApiServer, listen
from haclusterd.api.settings import CONFIGURATION_FILE, ApiSettings, ApiSettingsError, load

EXIT_BUSY = 69
EXIT_CONFIGURATION = 78
CONNECTIONS_TO_DAEMON = 4
_log = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Run the process; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        settings = load(options.configuration)
        context = tls(settings)
        if options.check:
            return 0
        asyncio.run(_live(options.configuration, settings, context))
    except ApiSettingsError as error:
        return _refuse(str(error), EXIT_CONFIGURATION)
    except OSError as error:
        return _refuse(str(error), EXIT_BUSY)
    return 0


async def _live(configuration: Path, settings: ApiSettings, context: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    link = ControlLink(settings.socket, CONNECTIONS_TO_DAEMON)
    clients = ClientCertificates(BoottimeClock(loop).wall, settings.clients)
    listeners = SharedListeners(context)
    close = await listen(ApiServer(link, clients), settings, listeners)
    loop.add_signal_handler(signal.SIGHUP, reload, configuration, clients, listeners)
    notify("READY=1")
    await ended.wait()
    notify("STOPPING=1")
    await close()
    link.close()


def reload(configuration: Path, clients: ClientCertificates, listeners: SharedListeners) -> None:
    """Take certificates, revocations and tokens as they are now, and end every connection that rests on older ones.

    What cannot be used is logged, and everything stays as it was. Where it listens is taken at the next start.
    """
    try:
        settings = load(configuration)
        context = tls(settings)
    except ApiSettingsError as error:
        _log.error("not reloaded: %s", error)
        return
    clients.take(settings.clients)
    listeners.take(context)
    _log.info("reloaded: %s", configuration)


def tls(settings: ApiSettings) -> ssl.SSLContext | None:
    """Return how connections are secured; None: not at all. Raises ApiSettingsError when a file cannot be used."""
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except OSError as error:
        problem = f"{settings.certificate}, {settings.key}: {error.strerror or error}"
        raise ApiSettingsError(f"{problem} (both must be PEM, and readable for the user haclusterd-api)") from error
    if settings.client_ca is not None:
        # Optional: who shows no certificate may show a token. One that is not of this authority ends the handshake.
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(settings.client_ca)
        except OSError as error:
            problem = f"{settings.client_ca}: {error.strerror or error}"
            raise ApiSettingsError(f"{problem} (client-ca must be PEM)") from error
    if settings.client_crl is not None:
        _take_revocations(context, settings.client_crl)
    return context


def _take_revocations(context: ssl.SSLContext, lists: Path) -> None:
    """Let what an authority has revoked end the handshake; so does a list that has expired, as it may lack the newest.

    Raises ApiSettingsError when there is no list in the file.
    """
    try:
        context.load_verify_locations(lists)
    except OSError as error:
        problem = f"{lists}: {error.strerror or error}"
        raise ApiSettingsError(f"{problem} (client-crl must be PEM)") from error
    if not context.cert_store_stats()["crl"]:
        raise ApiSettingsError(f"{lists}: there is no list of revoked certificates in it (BEGIN X509 CRL)")
    context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _refuse(message: str, code: int) -> int:
    print(f"haclusterd-api: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="haclusterd-api", description="The REST interface of one cluster node.")
    parser.add_argument(
        "--configuration", type=Path, default=CONFIGURATION_FILE, metavar="FILE",
        help="where to listen, with which certificate (default: %(default)s; it need not exist)",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="judge the configuration, and end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
