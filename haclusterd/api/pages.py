"""The web page: files of this package, read once; nothing that a request says leads to any other file.

The page has no data in it, so that everybody may load it. What it shows, it asks for under `/v1`.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from haclusterd.api.problems import JSON, Reply, dumped
from haclusterd.model.records import dataclass
from haclusterd.verbs.table import VERBS

FOLDER: Final = "page"
TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
"""Trusted types: no string becomes markup, so that the name of a resource stays a text (W3C, "Trusted Types")."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page."""

    body: bytes
    content_type: str
    etag: str

    def reply_to(self, if_none_match: str) -> Reply:
        """Return the file, or that the browser has it already (RFC 9110, section 13.1.2)."""
        headers = {**HEADERS, "ETag": self.etag}
        known = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
        if self.etag in known or "*" in known:
            return Reply(304, b"", self.content_type, headers)
        return Reply(200, self.body, self.content_type, headers)


def load() -> dict[str, Asset]:
    """Read the files of the page, by the path under which they are served; beside them, what each verb needs."""
    found: dict[str, Asset] = {}
    for file in (files("haclusterd.api") / FOLDER).iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in TYPES:
            body = file.read_bytes()
            path = "/" if file.name == "index.html" else f"/{FOLDER}/{file.name}"
            found[path] = Asset(body, TYPES[suffix], _etag(body))
    needed = dumped({name: str(verb.permission) for name, verb in sorted(VERBS.items())})
    found[f"/{FOLDER}/permissions.json"] = Asset(needed, JSON, _etag(needed))
    return found


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'
