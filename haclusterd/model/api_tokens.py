"""Tokens by which programs that are no users of a node's machine may ask this cluster's daemons.

Invariant: only the digest of a token is ever known here. A token has 256 random bits, so that a plain SHA-256 of it
cannot be searched; where it was made, it is shown once.
"""

import hashlib
import re

from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass

TOKEN_PREFIX = "hacl_"
"""By which tools that look for leaked secrets know one."""
TOKEN_BYTES = 32
"""Of chance in a token."""
TOKEN_CHARACTERS_MAX = 256
"""Of what may be shown as a token; anything longer is none."""
TOKENS_MAX = 256
"""Of one cluster."""
DIGEST = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token as the cluster knows it."""

    name: str
    digest: str
    """SHA-256 of the token, in hexadecimal digits."""
    role: str
    """A simple role, or one that is configured (`model.access`): what its bearer may."""
    author: str = ""
    """Who made it."""
    created_at: WallTime = WallTime(0)
    expires_at: WallTime = WallTime(0)
    """From then on it is not accepted; 0: it does not expire."""

    def is_expired(self, now: WallTime) -> bool:
        """Return whether it is too old."""
        return 0 < self.expires_at <= now


def digest_of(token: str) -> str:
    """Return the digest by which the cluster knows a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
