"""The versions of the configuration in the history's database; every call may raise sqlite3.Error.

Contents are compressed, and stored with the SHA-256 of the original. The oldest are dropped first, by numbers that are
equal on every node.
"""

import hashlib
import sqlite3
import zlib
from typing import Final

from haclusterd.model.instants import WallTime
from haclusterd.ports.history import KeptVersion, NewVersion

VERSIONS_KEPT: Final = 1_000
VERSION_BYTES_KEPT: Final = 64 * 1024 * 1024
"""Maximum size of the compressed contents; the oldest are dropped first, the newest stays whatever its size."""
ADDED_UP_EVERY: Final = 32
CONTENT_BYTES_MAX: Final = 64 * 1024 * 1024


def keep_version(database: sqlite3.Connection, version: NewVersion | None, *, is_newer: bool) -> None:
    """Write a version; one with the same number stays unless this one is newer."""
    if version is None:
        return
    content = version.encode()
    kept = KeptVersion(version.number, version.at, version.author, version.reason, hashlib.sha256(content).hexdigest())
    put_version(database, kept, zlib.compress(content, 1), is_newer=is_newer)


def put_version(database: sqlite3.Connection, kept: KeptVersion, compressed: bytes, *, is_newer: bool) -> None:
    """Write a version whose content is compressed already."""
    texts = [text.encode(errors="replace").decode() for text in (kept.author, kept.reason)]
    columns = (kept.number, kept.at, *texts, kept.digest, compressed)
    otherwise = "REPLACE" if is_newer else "IGNORE"
    database.execute(f"INSERT OR {otherwise} INTO version VALUES (?, ?, ?, ?, ?, ?)", columns)
    (newest,) = database.execute("SELECT max(number) FROM version").fetchone()
    database.execute("DELETE FROM version WHERE number <= ?", (newest - VERSIONS_KEPT,))
    # If none is larger than its share, all together are not too large; adding up would take as long as all the rest.
    if len(compressed) > VERSION_BYTES_KEPT // VERSIONS_KEPT or newest % ADDED_UP_EVERY == 0:
        _forget_beyond_bytes(database)


def _forget_beyond_bytes(database: sqlite3.Connection) -> None:
    sizes = database.execute("SELECT number, length(content) FROM version ORDER BY number DESC").fetchall()
    total = 0
    for position, (number, size) in enumerate(sizes):
        total += size
        if position and total > VERSION_BYTES_KEPT:
            database.execute("DELETE FROM version WHERE number <= ?", (number,))
            return


def versions(database: sqlite3.Connection) -> tuple[KeptVersion, ...]:
    """Return every known version, oldest first."""
    found = database.execute("SELECT number, at, author, reason, digest FROM version ORDER BY number")
    return tuple(KeptVersion(number, WallTime(at), *texts) for number, at, *texts in found.fetchall())


def version_with_content(database: sqlite3.Connection, number: int) -> tuple[KeptVersion, bytes] | None:
    """Return a version and its compressed content; None when it is not known."""
    found = database.execute(
        "SELECT number, at, author, reason, digest, content FROM version WHERE number = ?", (number,)
    ).fetchone()
    return None if found is None else (KeptVersion(found[0], WallTime(found[1]), *found[2:5]), found[5])


def content(database: sqlite3.Connection, number: int) -> bytes | None:
    """Return the content of a version; a damaged one is dropped, so that it is fetched again."""
    found = version_with_content(database, number)
    if found is None:
        return None
    unpacked = unpacked_content(*found)
    if unpacked is None:
        database.execute("DELETE FROM version WHERE number = ?", (number,))
    return unpacked


def unpacked_content(kept: KeptVersion, compressed: bytes) -> bytes | None:
    """Return the decompressed content if it has the right digest; otherwise None."""
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(compressed, CONTENT_BYTES_MAX)
    except zlib.error:
        return None
    is_whole = unpacking.eof and hashlib.sha256(unpacked).hexdigest() == kept.digest
    return unpacked if is_whole else None


def missing_versions(database: sqlite3.Connection) -> tuple[int, ...]:
    """Return the numbers of versions that should be kept and are missing, newest first."""
    known = [number for (number,) in database.execute("SELECT number FROM version ORDER BY number DESC")]
    if not known:
        return ()
    (size,) = database.execute("SELECT sum(length(content)) FROM version").fetchone()
    oldest = max(1, known[0] - VERSIONS_KEPT + 1)
    if len(known) >= VERSIONS_KEPT or size > VERSION_BYTES_KEPT // 2:
        oldest = known[-1]
    present = set(known)
    return tuple(number for number in range(known[0], oldest - 1, -1) if number not in present)
