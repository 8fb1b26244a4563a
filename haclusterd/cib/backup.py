"""A backup of a cluster as text: its identity, its configuration, and earlier versions of that.

Each line is the SHA-256 of a JSON document, a space, and that document: a head, one `state`, any number of `version`s,
and an `end` that counts the lines before it. So damage has a line number, and a truncated file is recognised. States
and contents are what `cib.codec` writes, compressed.

Invariant: a backup holds no key, no certificate and nothing of the cluster's status: what ran where does not hold for
another cluster. Reading trusts nothing; its only exception is BackupDamagedError.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator
from typing import Any, Final

from haclusterd.cib.codec import decode_cib, encode_cib
from haclusterd.model.cluster import Cib, ConfigurationVersion
from haclusterd.model.configuration import Configuration
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass

FORMAT: Final = 1
STATE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum size of one uncompressed state that is read."""


class BackupDamagedError(ValueError):
    """This text is not a complete backup: `line` (from 1) and `problem` say where and why."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Backup:
    """The content of a backup."""

    at: WallTime
    """When it was made."""
    state: Cib
    """Identity, members, configuration and its version; no status."""
    earlier: tuple[tuple[ConfigurationVersion, Configuration], ...] = ()
    """Older versions, oldest first; some may be missing."""
    hidden: tuple[str, ...] = ()
    """Parameters whose secret values were left out, as `RESOURCE NAME`."""


def state_of(cib: Cib, configuration: Configuration) -> Cib:
    """Return the part of a CIB that goes into a backup, with this configuration instead of its own."""
    return Cib(
        cluster_uuid=cib.cluster_uuid,
        cluster_name=cib.cluster_name,
        members=cib.members,
        configuration=configuration,
        version=cib.version,
        index=cib.index,
    )


def write_backup(backup: Backup, bytes_max: int) -> str:
    """Return the text; the oldest versions are left out until it has at most `bytes_max` characters."""
    state = backup.state
    head = {
        "part": "haclusterd backup", "format": FORMAT, "at": backup.at, "cluster": state.cluster_name,
        "uuid": state.cluster_uuid, "hidden": list(backup.hidden),
    }  # fmt: skip
    first = [_line(head), _line({"part": "state", "data": _packed(state)})]
    room = bytes_max - sum(map(len, first)) - 200
    versions: list[str] = []
    for version, configuration in reversed(backup.earlier):
        part = Cib(configuration=configuration, version=version)
        line = _line({"part": "version", "number": version.epoch, "data": _packed(part)})
        room -= len(line)
        if room < 0:
            break
        versions.insert(0, line)
    lines = [*first, *versions]
    return "".join([*lines, _line({"part": "end", "lines": len(lines)})])


def read_backup(text: str) -> Backup:
    """Read what `write_backup` wrote; raises BackupDamagedError for anything else."""
    documents = list(_documents(text))
    if not documents:
        raise BackupDamagedError(1, "the file is empty")
    head = documents[0]
    if head.get("part") != "haclusterd backup":
        raise BackupDamagedError(1, "this is no backup of a cluster")
    if head.get("format") != FORMAT:
        raise BackupDamagedError(1, f"format {head.get('format')}; this version reads format {FORMAT}")
    end = documents[-1]
    if end.get("part") != "end":
        raise BackupDamagedError(len(documents) + 1, "the end of the file is missing")
    if end.get("lines") != len(documents) - 1:
        raise BackupDamagedError(len(documents), f"{end.get('lines')} lines expected before the end")
    parts = [(number, document) for number, document in enumerate(documents[1:-1], start=2)]
    states = [_unpacked(number, document) for number, document in parts if document.get("part") == "state"]
    if len(states) != 1:
        raise BackupDamagedError(2, "there must be one state")
    earlier = [_unpacked(number, document) for number, document in parts if document.get("part") == "version"]
    at, hidden = head.get("at"), head.get("hidden")
    return Backup(
        at=WallTime(at if isinstance(at, int) else 0),
        state=states[0],
        earlier=tuple((each.version, each.configuration) for each in earlier),
        hidden=tuple(str(each) for each in hidden) if isinstance(hidden, list) else (),
    )


def _documents(text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        digest, _, body = line.partition(" ")
        if hashlib.sha256(body.encode(errors="replace")).hexdigest() != digest:
            raise BackupDamagedError(number, "checksum mismatch")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            raise BackupDamagedError(number, "no JSON") from None
        if not isinstance(document, dict):
            raise BackupDamagedError(number, "no object")
        yield document


def _line(document: dict[str, Any]) -> str:
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    return f"{hashlib.sha256(body.encode()).hexdigest()} {body}\n"


def _packed(cib: Cib) -> str:
    return base64.b64encode(zlib.compress(encode_cib(cib), 6)).decode()


def _unpacked(number: int, document: dict[str, Any]) -> Cib:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(str(document.get("data")), validate=True), STATE_BYTES_MAX)
        if unpacker.eof:
            return decode_cib(data)
    except (ValueError, zlib.error) as error:
        raise BackupDamagedError(number, str(error)) from None
    raise BackupDamagedError(number, f"more than {STATE_BYTES_MAX} bytes, or cut off")
