"""The identity of nodes: the cluster's authority, one certificate per node, and the keys for heartbeats.

The common name of a node's certificate is its node name; peers are recognised by nothing else. All keys are on P-256,
so that one certificate serves TLS and, by static Diffie-Hellman, a pairwise heartbeat key that no third node knows.

Invariant: private keys have mode 0600 before their first byte is written. A key must never be sent or logged.
"""

import base64
import binascii
import datetime as dt
import hashlib
import ipaddress
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from haclusterd.model.certificates import CertificateFacts
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass

AUTHORITY_CERTIFICATE = "authority.pem"
AUTHORITY_KEY = "authority.key"
NODE_CERTIFICATE = "node.pem"
NODE_KEY = "node.key"
NEXT_CERTIFICATE = "node-next.pem"
NEXT_KEY = "node-next.key"
"""Key and certificate of a renewal under way."""

YEARS_VALID = 20
HEARTBEAT_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Credentials(...)"


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """What an authority is to sign (PKCS #10, PEM; public), and the private key, which never leaves the node."""

    request: bytes
    key: bytes

    def __repr__(self) -> str:
        return "CertificateRequest(...)"


def authority_name(cluster: str) -> str:
    """Return the common name of a cluster's authority."""
    return f"haclusterd {cluster}"


def create_authority(cluster: str, *, now: dt.datetime) -> Credentials:
    """Make the authority of a cluster (its uuid as text); `now` must be timezone-aware."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name(cluster))])
    certificate = (
        _builder(name, name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _credentials(certificate, key)


def issue_certificate(
    authority: Credentials, node: NodeName, addresses: Iterable[str], *, now: dt.datetime
) -> Credentials:
    """Make a node's certificate; `addresses` are the host names and IP addresses that it is reached by."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _credentials(_issue(authority, node, addresses, key.public_key(), now), key)


def request_certificate(node: NodeName) -> CertificateRequest:
    """Make a key and a request for its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return CertificateRequest(request.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def sign_request(
    authority: Credentials, request: bytes, node: NodeName, addresses: Iterable[str], *, now: dt.datetime
) -> bytes:
    """Return the certificate (PEM) for a request; nothing but the key is taken from it.

    Raises ValueError when the request is not one that `request_certificate` makes for this node.
    """
    asked = x509.load_pem_x509_csr(request)
    names = [name.value for name in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [node]:
        raise ValueError(f"the request names {', '.join(map(str, names)) or 'nobody'}, not {node}")
    key = asked.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the request is for a key of an unexpected kind")
    if not asked.is_signature_valid:
        raise ValueError("the request is not signed with its own key")
    return _issue(authority, node, addresses, key, now).public_bytes(serialization.Encoding.PEM)


def sign_renewal(
    authority: Credentials, asked: str, node: NodeName, hosts: Iterable[str], *, present: bytes, now: dt.datetime
) -> bytes:
    """Return a new certificate for a node that asks with `begin_renewal`, proven by the key of its present one.

    Raises ValueError when the proof is not by that key, or as `sign_request` does.
    """
    request, _, signature = asked.rpartition("\n")
    public = _verified_key(x509.load_pem_x509_certificate(authority.certificate), node, present)
    try:
        public.verify(base64.b64decode(signature), request.encode(), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        raise ValueError(f"the request is not signed with the key of {node}") from None
    return sign_request(authority, request.encode(), node, hosts, now=now)


def begin_renewal(directory: Path, node: NodeName) -> str:
    """Make a new key, store it beside the one in force, and return the request to the authority; raises OSError."""
    made = request_certificate(node)
    write_private(directory / NEXT_KEY, made.key)
    present = _private_key((directory / NODE_KEY).read_bytes())
    signature = present.sign(made.request, ec.ECDSA(hashes.SHA256()))
    return made.request.decode() + "\n" + base64.b64encode(signature).decode()


def adopt_certificate(directory: Path, certificate: bytes) -> bool:
    """Start using a certificate with the key that was made for it; return False when there is no such key here.

    If the process is killed on the way, the next start continues: `complete_adoption`. Raises OSError.
    """
    try:
        _require_pair(x509.load_pem_x509_certificate(certificate), (directory / NEXT_KEY).read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    _write(directory / NEXT_CERTIFICATE, certificate, 0o644)
    complete_adoption(directory)
    return True


def complete_adoption(directory: Path) -> None:
    """Move the next key and certificate to the places of those in force, as far as that is not done yet."""
    key, certificate = directory / NEXT_KEY, directory / NEXT_CERTIFICATE
    if not certificate.exists():
        return
    if key.exists():
        key.rename(directory / NODE_KEY)
    certificate.rename(directory / NODE_CERTIFICATE)


def read_authority(directory: Path) -> Credentials:
    """Read an authority with its key; raises OSError, or ValueError when the two do not belong together."""
    found = Credentials((directory / AUTHORITY_CERTIFICATE).read_bytes(), (directory / AUTHORITY_KEY).read_bytes())
    _require_pair(x509.load_pem_x509_certificate(found.certificate), found.key)
    return found


def require_credentials(authority_certificate: bytes, node: NodeName, own: Credentials) -> None:
    """Raise ValueError unless this is a node's certificate of this authority, with its key."""
    _verified_key(x509.load_pem_x509_certificate(authority_certificate), node, own.certificate)
    _require_pair(x509.load_pem_x509_certificate(own.certificate), own.key)


def _require_pair(certificate: x509.Certificate, key: bytes) -> None:
    if _private_key(key).public_key() != certificate.public_key():
        raise ValueError("the certificate and the private key do not belong together")


def fingerprint_of(certificate: bytes) -> str:
    """Return the SHA-256 of a certificate in DER form, in hexadecimal digits."""
    return hashlib.sha256(certificate).hexdigest()


def pin_of(certificate: bytes) -> bytes:
    """Return the SHA-256 of a certificate given as PEM; raises ValueError when it is invalid."""
    return x509.load_pem_x509_certificate(certificate).fingerprint(hashes.SHA256())


def facts_of(certificate: bytes) -> CertificateFacts:
    """Return the facts in a node's certificate (PEM), unverified; raises ValueError when it is invalid."""
    found = x509.load_pem_x509_certificate(certificate)
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return CertificateFacts(
        node=NodeName(str(names[0].value) if names else ""),
        fingerprint=found.fingerprint(hashes.SHA256()).hex(),
        not_before=WallTime(int(found.not_valid_before_utc.timestamp() * 1000)),
        not_after=WallTime(int(found.not_valid_after_utc.timestamp() * 1000)),
    )


def require_issued(authority_certificate: bytes, certificate: bytes, *, now: dt.datetime) -> NodeName:
    """Return the node in a certificate (DER); ValueError unless this authority (PEM) issued it and it is valid now."""
    found = x509.load_der_x509_certificate(certificate)
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    node = NodeName(str(names[0].value) if len(names) == 1 else "")
    pem = found.public_bytes(serialization.Encoding.PEM)
    _verified_key(x509.load_pem_x509_certificate(authority_certificate), node, pem)
    if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
        raise ValueError(f"the certificate of {node} is not valid now, {now:%Y-%m-%d %H:%M} UTC by this clock")
    return node


def write_node_credentials(directory: Path, authority_certificate: bytes, node: Credentials) -> None:
    """Write what a node needs (never the authority's key); certificates 0644, the key 0600."""
    _write(directory / AUTHORITY_CERTIFICATE, authority_certificate, 0o644)
    _write(directory / NODE_KEY, node.key, 0o600)
    _write(directory / NODE_CERTIFICATE, node.certificate, 0o644)


def write_authority(directory: Path, authority: Credentials) -> None:
    """Write the authority's files on the node that admits new members."""
    _write(directory / AUTHORITY_KEY, authority.key, 0o600)
    _write(directory / AUTHORITY_CERTIFICATE, authority.certificate, 0o644)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read; it is durable when this returns."""
    _write(path, data, 0o600)


def tls_context(directory: Path, *, is_server: bool) -> ssl.SSLContext:
    """Return a context for TLS 1.3 only, and only with holders of a certificate of this authority.

    Host names are not compared; the user of the connection compares the peer's node name. Raises OSError
    (ssl.SSLError).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(directory / AUTHORITY_CERTIFICATE)
    context.load_cert_chain(directory / NODE_CERTIFICATE, directory / NODE_KEY)
    if is_server:
        context.num_tickets = 0
    return context


def node_name_of(certificate: Mapping[str, object]) -> NodeName | None:
    """Return the node name in the result of `SSLSocket.getpeercert`; None unless there is exactly one."""
    subject = certificate.get("subject")
    if not isinstance(subject, tuple):
        return None
    names = [value for relative in subject for key, value in relative if key == "commonName"]
    return NodeName(names[0]) if len(names) == 1 else None


def issuer_name_of(certificate: bytes) -> str:
    """Return the common name of the issuer of a certificate (DER), unverified; empty when there is none."""
    try:
        names = x509.load_der_x509_certificate(certificate).issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    return str(names[0].value) if names else ""


def heartbeat_keys(
    directory: Path, cluster: str, node: NodeName, peer_certificates: Mapping[NodeName, bytes]
) -> dict[NodeName, bytes]:
    """Return the key shared with each peer, the same on both ends: HKDF over static Diffie-Hellman.

    `peer_certificates` are PEM; each must be issued by this cluster's authority and carry its peer's name, otherwise
    ValueError is raised. Raises OSError when this node's files cannot be read.
    """
    authority = x509.load_pem_x509_certificate((directory / AUTHORITY_CERTIFICATE).read_bytes())
    own = _private_key((directory / NODE_KEY).read_bytes())
    keys = {}
    for peer in sorted(peer_certificates):
        public = _verified_key(authority, peer, peer_certificates[peer])
        pair = "\0".join(sorted((node, peer)))
        derivation = HKDF(
            algorithm=hashes.SHA256(),
            length=HEARTBEAT_KEY_BYTES,
            salt=cluster.encode(),
            info=b"haclusterd heartbeat 1\0" + pair.encode(),
        )
        keys[peer] = derivation.derive(own.exchange(ec.ECDH(), public))
    return keys


def _issue(
    authority: Credentials, node: NodeName, addresses: Iterable[str], key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.Certificate:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = _private_key(authority.key)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
    names: list[x509.GeneralName] = [x509.DNSName(node)]
    names += [_general_name(address) for address in addresses if address != node]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        _builder(name, issuer.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _verified_key(authority: x509.Certificate, peer: NodeName, pem: bytes) -> ec.EllipticCurvePublicKey:
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise ValueError(f"the certificate of {peer} is not of this cluster's authority") from None
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if [name.value for name in names] != [peer]:
        raise ValueError(f"the certificate given for {peer} is another node's")
    public = certificate.public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise ValueError(f"the certificate of {peer} has a key of an unexpected kind")
    return public


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    # A day's tolerance: the clocks of a cluster's machines need not agree.
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=365 * YEARS_VALID))
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_agreement=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("a private key of an unexpected kind")
    return key


def _credentials(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Credentials:
    return Credentials(
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=_key_pem(key),
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    temporary.rename(path)
