"""Seals: what tells a process that an agent of this node has begun from one that bears its marks by somebody's will.

Every user of a machine begins processes with any environment. Marks alone would let any of them have a service found
where it does not run, so that the cluster ends one copy too many, and respawn what a stop has to end, so that the node
is fenced. The environment of a process is read by its own user and by the superuser alone: what the daemon derives for
each instance from a key of its own, nobody else can give.

Invariants: the key is in no environment, and outlives the daemon. It is made once; what was begun before is believed,
and so is all that was begun before the newest start of a daemon that gave no seals, an earlier version to which this
node went back: which daemon began last, the copies of the agents tell (`copies.last_start`).
"""

import json
import os
import secrets
import time
from pathlib import Path
from typing import Final, Self

from haclusterd.adapters.machine.files_directory import FilesDirectory
from haclusterd.agents.process_table import boot_id, seal_of
from haclusterd.model.records import dataclass

SEAL_FILE: Final = "seal.json"
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Seals:
    """The seals of the instances on one node."""

    key: bytes
    since: int
    """In ticks since boot (proc(5), `starttime`): what is begun from then on has a seal."""

    def of(self, instance: str) -> str:
        """Return the seal of an instance (OCF_RESOURCE_INSTANCE), as `process_table.is_genuine` reads it."""
        return seal_of(instance, self.key, self.since)

    @classmethod
    def kept_in(cls, directory: Path, earlier_start: int = 0, own_start: int = 0) -> Self:
        """Read the key from a node's state directory; make one where there is none that can be read. Raises OSError.

        `earlier_start` and `own_start`: when the daemon before this one and this one began, as `copies.last_start`.
        """
        files = FilesDirectory(directory)
        boot = boot_id()
        known = _read(files.read(SEAL_FILE))
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        key = secrets.token_bytes(_KEY_BYTES) if known is None else known.key
        since = known.since if known is not None and known.boot == boot else 0
        if known is None or known.start != earlier_start:
            since = ticks
        kept = _Kept(key, boot, since, own_start)
        if kept != known:
            document = {"key": key.hex(), "boot": boot, "since": since, "start": own_start}
            files.replace(SEAL_FILE, json.dumps(document).encode())
        return cls(key, since)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is in the file."""

    key: bytes
    boot: str
    since: int
    start: int
    """When the newest daemon began that gives seals; 0: it did not say so."""


def _read(content: bytes | None) -> _Kept | None:
    try:
        document = json.loads(content or b"")
        found = _Kept(bytes.fromhex(document["key"]), document["boot"], document["since"], document.get("start", 0))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    numbers = (found.since, found.start)
    is_whole = len(found.key) == _KEY_BYTES and isinstance(found.boot, str)
    return found if is_whole and all(isinstance(each, int) and each >= 0 for each in numbers) else None
