"""What `api.yaml` says: where `haclusterd-api` listens, with which certificate, whose certificates stand for which
tokens, and where the daemon is.

Everything has a default: without a file it listens on loopback, without TLS. A token must not be heard on the way, so
any other address needs a certificate.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path

import yaml

from haclusterd.api.client_certificates import NAME_KINDS, REST, TOKEN
from haclusterd.model.addresses import Address, read_address
from haclusterd.model.records import dataclass
from haclusterd.model.requests import ORIGIN
from haclusterd.protocol.control import DEFAULT_SOCKET
from haclusterd.wire import plain_yaml

CONFIGURATION_FILE = Path("/etc/haclusterd/api.yaml")
DEFAULT_LISTEN = ("127.0.0.1:7443", "[::1]:7443")
_KNOWN = ("listen", "certificate", "key", "client-ca", "client-crl", "clients", "socket")
_OTHERS = 0o007


class ApiSettingsError(Exception):
    """The file cannot be used; the message names the file, the place and what is wanted."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How one `haclusterd-api` runs."""

    listen: tuple[tuple[str, int], ...]
    """Addresses and TCP ports."""
    certificate: Path | None = None
    """PEM, with the chain."""
    key: Path | None = None
    socket: str = DEFAULT_SOCKET
    client_ca: Path | None = None
    """PEM: who may have signed the certificates of clients; None: clients are not asked for one."""
    client_crl: Path | None = None
    """PEM: the lists of certificates that their authorities have revoked; None: nobody asks for them."""
    clients: tuple[tuple[str, str], ...] = ()
    """Names in certificates (`api.client_certificates`), each with the token that it stands for; the first counts."""
    is_default: bool = False
    """Whether nobody wrote where to listen: an address that this machine does not have is then passed over."""


def load(path: Path) -> ApiSettings:
    """Read the file; without one, the defaults hold. Raise ApiSettingsError."""
    try:
        document = plain_yaml.load(path.read_text())
    except FileNotFoundError:
        document = None
    except OSError as error:
        raise ApiSettingsError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ApiSettingsError(f"{path}: not YAML: {error}") from error
    return read(path, {} if document is None else document)


def read(path: Path, document: object) -> ApiSettings:
    """Read what the file says; raise ApiSettingsError."""
    if not isinstance(document, Mapping):
        raise ApiSettingsError(f"{path}: expected a mapping with the keys {', '.join(_KNOWN)}")
    unknown = sorted(str(name) for name in set(document) - set(_KNOWN))
    if unknown:
        raise ApiSettingsError(f"{path}: {unknown[0]}: unknown key; known are {', '.join(_KNOWN)}")
    listed = document.get("listen", list(DEFAULT_LISTEN))
    if not isinstance(listed, list) or not listed:
        raise ApiSettingsError(f"{path}: listen: expected a list like [192.0.2.1:7443]")
    listen = tuple(_address(path, each) for each in listed)
    certificate, key = (_file(path, document, name) for name in ("certificate", "key"))
    if (certificate is None) is not (key is None):
        raise ApiSettingsError(f"{path}: certificate and key go together: name both, or none")
    open_to_others = [host for host, _ in listen if not _is_loopback(host)]
    if open_to_others and certificate is None:
        raise ApiSettingsError(
            f"{path}: listen: {open_to_others[0]} is not loopback, and tokens would be read on the way: "
            "name a certificate and a key"
        )
    client_ca = _file(path, document, "client-ca")
    clients = _clients(path, document.get("clients", {}))
    if (client_ca is None) is bool(clients) or (client_ca is not None and certificate is None):
        raise ApiSettingsError(
            f"{path}: client-ca and clients go together, with certificate and key: name all, or none"
        )
    client_crl = _file(path, document, "client-crl")
    if client_crl is not None and client_ca is None:
        raise ApiSettingsError(f"{path}: client-crl: revoked certificates go together with client-ca: name both")
    socket = document.get("socket", DEFAULT_SOCKET)
    if not isinstance(socket, str) or not socket:
        raise ApiSettingsError(f"{path}: socket: expected a path")
    return ApiSettings(
        listen, certificate, key, socket, client_ca, client_crl, clients, is_default="listen" not in document
    )


def _clients(path: Path, document: object) -> tuple[tuple[str, str], ...]:
    """Read what certificates stand for: `CN:alice: tokens/alice`, a file with one token beside this one."""
    if not isinstance(document, Mapping):
        raise ApiSettingsError(f"{path}: clients: expected a mapping like {{'CN:alice': tokens/alice}}")
    found = []
    for name, file in document.items():
        kind, separator, value = str(name).partition(":")
        if not separator or kind not in NAME_KINDS or not ORIGIN.match(f"{REST} for {kind}:{value}"):
            raise ApiSettingsError(
                f"{path}: clients: {name!r} is not KIND:NAME, where KIND is one of {', '.join(NAME_KINDS)}, "
                "and NAME at most 120 letters, digits and _.@:/=,+$-"
            )
        found.append((f"{kind}:{value}", _token(path, str(name), file)))
    return tuple(found)


def _token(path: Path, name: str, file: object) -> str:
    if not isinstance(file, str) or not file:
        raise ApiSettingsError(f"{path}: clients: {name}: expected a file with a token")
    place = path.parent / file
    try:
        if place.stat().st_mode & _OTHERS:
            raise ApiSettingsError(f"{place}: every user may open it: chmod o= {place}")
        text = place.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ApiSettingsError(f"{place}: {getattr(error, 'strerror', None) or 'not a text'}") from error
    if not TOKEN.fullmatch(text):
        raise ApiSettingsError(f"{place}: expected one token, as crm api token add prints it")
    return text


def _address(path: Path, item: object) -> Address:
    try:
        return read_address(str(item))
    except ValueError:
        raise ApiSettingsError(f"{path}: listen: {item!r} is not HOST:PORT") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _file(path: Path, document: Mapping[object, object], name: str) -> Path | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ApiSettingsError(f"{path}: {name}: expected a file")
    return path.parent / value
