"""An authority that signs certificates for servers and clients, and a daemon that notes what it is asked."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Progress, Request, Response


class Authority:
    """Signs certificates, and writes them where a server and its clients find them."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = directory / f"{name}.pem"
        made = self._built(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None), until=2090)
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _built(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: Any, until: int
    ) -> x509.Certificate:
        begin, end = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(until, 1, 1, tzinfo=dt.UTC)
        builder = x509.CertificateBuilder(
            self._name, name, key.public_key(), x509.random_serial_number(), begin, end
        )  # fmt: skip
        for each in extensions:
            builder = builder.add_extension(each, critical=isinstance(each, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def signed(self, name: str, *alternatives: x509.GeneralName, until: int = 2090) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        more = [x509.SubjectAlternativeName(alternatives)] if alternatives else []
        made = self._built(subject, key, *more, until=until)
        file = self.directory / f"{name}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
        return file


    def revoked(self, *files: Path, until: int = 2090) -> Path:
        """Write the list of certificates that this authority has revoked."""
        begin, end = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(until, 1, 1, tzinfo=dt.UTC)
        builder = x509.CertificateRevocationListBuilder(self._name, begin, end)
        for each in files:
            number = x509.load_pem_x509_certificate(each.read_bytes()).serial_number
            one = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(begin).build()
            builder = builder.add_revoked_certificate(one)
        made = builder.sign(self._key, hashes.SHA256())
        file = self.directory / "revoked.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return file


@dataclass
class Daemon:
    """Answers everything, and notes what it was asked."""

    asked: list[Request] = field(default_factory=list)

    async def call(self, request: Request, _progress: Callable[[Progress], None]) -> Response:
        self.asked.append(request)
        who = {"schema": "haclusterd.whoami/1", "author": "token:ops@n1", "role": "operator", "is_restricted": False}
        return Response(request.id, 0, (), who)
