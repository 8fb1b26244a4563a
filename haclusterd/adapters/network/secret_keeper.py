"""`SecretKeeper` with the primitives of `cryptography`: HPKE (RFC 9180) for keys, AES-256-GCM for values.

This node's private key is a file beside its certificate, mode 0600. The cluster's secret key is random, and exists in
clear only in memory, after it was opened. The associated data are the id of the key, and the member or secret that it
is for. So a value cannot be passed off as that of another secret, nor a key as that of another member.
"""

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from haclusterd.adapters.network.certificates import write_private
from haclusterd.model.ids import NodeName
from haclusterd.model.secrets import Secrets, WrappedKey
from haclusterd.model.words import SECRET_CHARACTERS_MAX

KEY_FILE = "secrets.key"
NONCE_BYTES = 12
PACEMAKERS_DIRECTORIES = (Path("/var/lib/pacemaker/lrm/secrets"), Path("/var/lib/pacemaker/lrm/cib/secrets"))
"""Where Pacemaker's `cibsecret` keeps values, as RESOURCE/PARAMETER, with their MD5 in a `.sign` file beside them."""
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class SealingKeeper:
    """Seals and opens; see the module and `ports.secrets`."""

    def __init__(
        self, directory: Path, node: NodeName, pacemakers: tuple[Path, ...] = PACEMAKERS_DIRECTORIES
    ) -> None:
        """`directory` has this node's certificate; the attribute `problem` says why there is no key, or is empty."""
        self._node = node
        self._pacemakers = pacemakers
        self._private: X25519PrivateKey | None = None
        self._opened: dict[str, bytes] = {}
        """Opened keys by their id, at most two: the one in force, and the one before."""
        self.problem = ""
        try:
            self._private = _read_or_make(directory / KEY_FILE)
        except (OSError, ValueError) as error:
            self.problem = f"{directory / KEY_FILE}: {error}"

    def public_key(self) -> str:
        """See `SecretKeeper.public_key`."""
        if self._private is None:
            return ""
        return _text(self._private.public_key().public_bytes_raw())

    def new_key(self, members: Mapping[NodeName, str]) -> tuple[str, Mapping[NodeName, WrappedKey]]:
        """See `SecretKeeper.new_key`."""
        key_id = secrets.token_hex(8)
        return key_id, _wrapped(AESGCM.generate_key(256), key_id, members)

    def share(self, secrets: Secrets, members: Mapping[NodeName, str]) -> Mapping[NodeName, WrappedKey]:
        """See `SecretKeeper.share`."""
        key = self._key(secrets)
        return {} if key is None else _wrapped(key, secrets.key_id, members)

    def has_key(self, secrets: Secrets) -> bool:
        """See `SecretKeeper.has_key`."""
        return self._key(secrets) is not None

    def seal(self, secrets: Secrets, name: str, value: str) -> str | None:
        """See `SecretKeeper.seal`."""
        key = self._key(secrets)
        if key is None:
            return None
        nonce = os.urandom(NONCE_BYTES)
        return _text(nonce + AESGCM(key).encrypt(nonce, value.encode(), _purpose("value", secrets.key_id, name)))

    def open(self, secrets: Secrets, name: str, sealed: str) -> str | None:
        """See `SecretKeeper.open`."""
        key = self._key(secrets)
        if key is None:
            return None
        try:
            data = base64.b64decode(sealed, validate=True)
            purpose = _purpose("value", secrets.key_id, name)
            return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], purpose).decode()
        except (InvalidTag, ValueError):
            return None

    def read_pacemakers(self, resource: str, parameter: str) -> str | None:
        """See `SecretKeeper.read_pacemakers`."""
        if any(not word or word.startswith(".") or "/" in word for word in (resource, parameter)):
            return None
        for directory in self._pacemakers:
            path = directory / resource / parameter
            try:
                with path.open("rb") as file:
                    data = file.read(SECRET_CHARACTERS_MAX + 1).rstrip(b"\n")
                sign = path.with_name(f"{parameter}.sign").read_bytes().strip()
            except OSError:
                continue
            given = sign.decode("ascii", "replace").split(" ")[0]
            found = hashlib.md5(data, usedforsecurity=False).hexdigest()
            is_whole = 0 < len(data) <= SECRET_CHARACTERS_MAX and found == given
            return data.decode("utf-8", "replace") if is_whole else None
        return None

    def _key(self, secrets: Secrets) -> bytes | None:
        wrapped = secrets.keys.get(self._node)
        if wrapped is None or self._private is None or not secrets.key_id:
            return None
        known = self._opened.get(secrets.key_id)
        if known is not None:
            return known
        try:
            data = base64.b64decode(wrapped.sealed, validate=True)
            key = _SUITE.decrypt(data, self._private, _purpose("key", secrets.key_id, self._node))
        except (InvalidTag, ValueError):
            return None
        if len(self._opened) > 1:
            self._opened.clear()
        self._opened[secrets.key_id] = key
        return key


def _wrapped(key: bytes, key_id: str, members: Mapping[NodeName, str]) -> dict[NodeName, WrappedKey]:
    made = {}
    for name, public_key in sorted(members.items()):
        try:
            public = X25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
            made[name] = WrappedKey(public_key, _text(_SUITE.encrypt(key, public, _purpose("key", key_id, name))))
        except ValueError:
            continue
    return made


def _purpose(*words: str) -> bytes:
    return "\0".join(("haclusterd secrets 1", *words)).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read_or_make(path: Path) -> X25519PrivateKey:
    """Return the key in a file, which is made if there is none; raises OSError, ValueError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        made = X25519PrivateKey.generate()
        pem = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(path, pem)
        return made
    key = serialization.load_pem_private_key(data, None)
    if not isinstance(key, X25519PrivateKey):
        raise ValueError("it is no X25519 key")
    return key
