"""Seals: what tells a process that an agent of this node has begun from one that bears its marks by somebody's will.

Every user of a machine begins processes with any environment. Marks alone would let any of them have a service found
where it does not run, so that the cluster ends one copy too many, and respawn what a stop has to end, so that the node
is fenced. The environment of a process is read by its own user and by the superuser alone: what the daemon derives for
each instance from a key of its own, nobody else can give.

Invariant: the key is in no environment, and outlives the daemon. It is made once; what was begun before is believed.
"""

import hashlib
import json
import os
import secrets
import time
from pathlib import Path
from typing import Final, Self

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.agents.process_table import boot_id
from haclusterd.model.records import dataclass

SEAL_FILE: Final = "seal.json"
_KEY_BYTES: Final = 32
_SEAL_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Seals:
    """The seals of the instances on one node."""

    key: bytes
    since: int
    """In ticks since boot (proc(5), `starttime`): what is begun from then on has one."""

    def of(self, instance: str) -> str:
        """Return the seal of an instance (OCF_RESOURCE_INSTANCE), as `process_table.is_genuine` reads it."""
        digest = hashlib.blake2b(instance.encode(), key=self.key, digest_size=_SEAL_BYTES)
        return f"{digest.hexdigest()}@{self.since}"

    @classmethod
    def kept_in(cls, directory: Path) -> Self:
        """Read the key from a node's state directory; make one where there is none that can be read. Raises OSError."""
        files = FilesDirectory(directory)
        boot = boot_id()
        known = _read(files.read(SEAL_FILE))
        if known is not None:
            key, boot_of_key, since = known
            return cls(key, since if boot_of_key == boot else 0)
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        made = cls(secrets.token_bytes(_KEY_BYTES), ticks)
        files.replace(SEAL_FILE, json.dumps({"key": made.key.hex(), "boot": boot, "since": ticks}).encode())
        return made


def _read(content: bytes | None) -> tuple[bytes, str, int] | None:
    try:
        document = json.loads(content or b"")
        key, boot, since = bytes.fromhex(document["key"]), document["boot"], document["since"]
    except (ValueError, KeyError, TypeError):
        return None
    is_whole = len(key) == _KEY_BYTES and isinstance(boot, str) and isinstance(since, int) and since >= 0
    return (key, boot, since) if is_whole else None
