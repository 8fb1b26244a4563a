"""Damaged input for everything that reads bytes or text from outside: it is read, or refused by its one named error.

`make fuzz-decoders SECONDS=60` takes each decoder in turn, changes what a good sender would write, and demands: no
other exception, no more than a second for one input, no more than a bounded growth of memory. Where a checksum would
keep every change out, the change is made before the checksum. The last line is `RESULT key=value ...`; any violation
ends with exit code 1 and names the command that repeats it.
"""

import argparse
import hashlib
import random
import resource
import struct
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from haclusterd.adapters.raft.transport import _decode_places, _encode_places
from haclusterd.cib import codec
from haclusterd.cib.backup import Backup, BackupDamagedError, read_backup, write_backup
from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.formats.policy.yaml import load_policy
from haclusterd.model.ids import Incarnation, NodeName, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.pacer import BrainState, HeardAge, Heartbeat, Receipt
from haclusterd.model.records import dataclass, field
from haclusterd.model.requests import Options, Request, Response, ShownReport
from haclusterd.ports.store import PeerPlaces, StoreDamagedError, StoreRefusedError
from haclusterd.protocol import control, enrolment, heartbeat, history_messages, pacer_socket
from haclusterd.protocol.enrolment_token import Token, TokenUnreadableError, read_token, write_token
from haclusterd.raft import frames as raft_frames
from haclusterd.raft.journal import FIRST_INDEX, NO_OPERATION, JournalContent, decode_journal, encode_journal
from haclusterd.raft.snapshot import Snapshot, decode_snapshot, encode_snapshot
from haclusterd.wire.schemas import CodecError
from tests.administered_clusters import CONFIGURATION, running
from tests.pacer_messages import MESSAGES as PACER_MESSAGES
from tests.pacer_messages import payload_of
from tests.remembered_logs import row
from tests.upgrade.samples import sample_cib, sample_envelopes
from tests.written_cibs import EVERYTHING

LONGEST_S = 1.0
GROWTH_BYTES_MAX = 512 * 1024 * 1024
POLICIES = Path(__file__).parents[2] / "policies"
KEY = b"k" * 32
NAMES = b"cluster\0n1"


@dataclass(frozen=True, slots=True)
class Decoder:
    """Something that reads; `seal` puts a changed text into what the checksum covers."""

    name: str
    samples: tuple[bytes, ...]
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()
    seal: Callable[[bytes], bytes] = lambda data: data


@dataclass(slots=True)
class Found:
    """What came of it."""

    inputs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    slowest_ms: int = 0


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _heartbeat_sealed(body: bytes) -> bytes:
    return body + heartbeat._code(body, KEY)


def _message_sealed(document: bytes) -> bytes:
    return history_messages.VERSION + zlib.compress(document, 1)


def _backup_sealed(text: bytes) -> bytes:
    """Give every line the checksum it should have."""
    bodies = [line.partition(" ")[2] for line in _text(text).splitlines()]
    digests = [hashlib.sha256(body.encode(errors="replace")).hexdigest() for body in bodies]
    return "".join(f"{digest} {body}\n" for digest, body in zip(digests, bodies, strict=True)).encode()


def decoders() -> tuple[Decoder, ...]:
    """Return everything that reads what others wrote."""
    n1, n2 = NodeName("n1"), NodeName("n2")
    boot = Incarnation("8a3c1f60-boot", "00000000000000a1")
    beat = Heartbeat(n2, n1, boot, Instant(5), BrainState.ALIVE, 42, Receipt("00000000000000b1", Instant(99)), None,
                     (HeardAge(n1, "00000000000000b1", 20),))  # fmt: skip
    page = history_messages.Page(1, 9, tuple(history_messages.KeptEntry(i, "ab" * 32, (row(i),)) for i in (2, 5, 9)))
    asked = (history_messages.AskPage(1, 2, 3), history_messages.AskVersion(1, 2, 3))
    history = (*asked, history_messages.TellPage(4, page))
    asked = Request("1", "resource.move", {"resource": "web", "node": "n1"}, Options(wait_ms=5, reason="because"))
    answered = Response("1", 1, (ShownReport("error", "X", "text", "remedy", "web"),), {"a": [1, None, "x"]})
    state = codec.encode_cib(sample_cib())
    journal = JournalContent(entries=[(NO_OPERATION, FIRST_INDEX, 0), (b"\0abc", FIRST_INDEX + 1, 1)])
    backup = write_backup(Backup(WallTime(7), running().cib, ()), 2**24)
    token = Token((("10.0.0.1", 7400),), b"p" * 32, b"s" * 16)
    frames: tuple[raft_frames.Message, ...] = (
        {"type": "append_entries", "term": 3, "commit_index": 2, "prevLogIdx": 4, "prevLogTerm": 2,
         "entries": [[b"\0abc", 5, 3], [b"\1", 6, 3]]},
        {"type": "request_vote", "term": 3, "last_log_index": 4, "last_log_term": 2},
        {"type": "next_node_idx", "term": 3, "next_node_idx": 7, "success": True, "refused_index": 0},
    )  # fmt: skip
    policies = tuple(sorted(path.read_bytes() for path in POLICIES.glob("*.yaml"))) if POLICIES.is_dir() else ()
    configuration = CONFIGURATION.encode()
    return (
        Decoder("raft-frame", tuple(map(raft_frames.encode_frame, frames)), raft_frames.decode_frame),
        Decoder("members-frame", (_encode_places(PeerPlaces(3, {n1: (("10.0.0.1", 1),)})),), _decode_places),
        Decoder("heartbeat", (heartbeat.encode(beat, KEY),), lambda data: heartbeat.decode(data, n1, {n2: KEY})),
        Decoder("heartbeat-sealed", (heartbeat.encode(beat, KEY)[: -heartbeat.CODE_SIZE],),
                lambda data: heartbeat.decode(data, n1, {n2: KEY}), seal=_heartbeat_sealed),
        Decoder("history-message", tuple(map(history_messages.encode, history)), history_messages.decode,
                (history_messages.MessageRefusedError,)),
        Decoder("history-message-sealed", tuple(zlib.decompress(history_messages.encode(each)[1:]) for each in history),
                history_messages.decode, (history_messages.MessageRefusedError,), _message_sealed),
        Decoder("control", tuple(control.encode(each)[4:] for each in (asked, answered)), control.decode),
        Decoder("enrolment", (b'{"kind":"hello","version":1}', b'{"kind":"apply","node":"n4","addresses":["h:1"]}'),
                enrolment.decode),
        Decoder("token", (write_token(token).encode(),), lambda data: read_token(_text(data)), (TokenUnreadableError,)),
        Decoder("pacer-socket", tuple(map(payload_of, PACER_MESSAGES)), pacer_socket.decode),
        Decoder("journal", (encode_journal(NAMES, journal),), lambda data: decode_journal(data, NAMES, "journal"),
                (StoreDamagedError, StoreRefusedError)),
        Decoder("snapshot", (encode_snapshot(Snapshot(7, Term(2), state[:2000]), "cluster"),),
                lambda data: decode_snapshot(data, "cluster"), (ValueError,)),
        Decoder("envelope", tuple(map(codec.encode_envelope, sample_envelopes())), codec.decode_envelope,
                (CodecError,)),
        Decoder("cib", (state, codec.encode_cib(running().cib)), codec.decode_cib, (CodecError,)),
        Decoder("backup", (backup.encode(),), lambda data: read_backup(_text(data)), (BackupDamagedError,)),
        Decoder("backup-sealed", (backup.encode(),), lambda data: read_backup(_text(data)), (BackupDamagedError,),
                _backup_sealed),
        Decoder("policy", policies or (b"resources:\n- primitive: a\n  agent: ocf:haclusterd:dummy\n",),
                lambda data: load_policy(_text(data), "p.yaml")),
        Decoder("crm", (configuration,), lambda data: assemble(parse_script(_text(data), "c.crm").statements)),
        Decoder("cib-xml", (EVERYTHING.encode(),), lambda data: read_cib(_text(data), "cib.xml")),
    )  # fmt: skip


TOKENS = (
    b"\0", b"\xff", b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.", b"{" * 3000, b"[" * 3000, b"-1", b"99999999999999999999",
    b"1e999", b"NaN", b"\\ud800", b"null", b"true", b'""', b"&a ", b"*a", b"<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    b"\xed\xa0\x80", struct.pack(">I", 2**32 - 1), struct.pack("<Q", 2**63), b"9" * 5000, b"\r\n", b"\t",
)  # fmt: skip


def changed(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the data with a few changes."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        _change(chance, made, others)
    return bytes(made)


def _change(chance: random.Random, made: bytearray, others: Sequence[bytes]) -> None:
    size = len(made)
    at = chance.randrange(size + 1)
    end = min(size, at + chance.choice((1, 2, 4, 8, 64, size)))
    match chance.randrange(8):
        case 0 if at < size:
            made[at] ^= 1 << chance.randrange(8)
        case 1 if at < size:
            made[at] = chance.randrange(256)
        case 2:
            del made[at:end]
        case 3:
            made[at:at] = chance.choice(TOKENS)
        case 4:
            made[at:end] = chance.choice(TOKENS)
        case 5:
            made[at:at] = made[at:end] * chance.choice((1, 2, 50))
        case 6:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            made[at:] = other[start:]
        case _:
            del made[at:]


def attempt(found: Found, decoder: Decoder, data: bytes, repeat: str) -> None:
    """Let one input be read."""
    found.inputs[decoder.name] += 1
    began = time.process_time()
    try:
        decoder.read(data)
    except decoder.refusals:
        found.refused[decoder.name] += 1
    except Exception as error:  # noqa: BLE001 (this is what is looked for)
        place = traceback.extract_tb(error.__traceback__)[-1]
        found.violations.append(f"{decoder.name}: {error!r:.200} at {place.filename}:{place.lineno}; {repeat}")
    took_s = time.process_time() - began
    found.slowest_ms = max(found.slowest_ms, int(1000 * took_s))
    if took_s > LONGEST_S:
        found.violations.append(f"{decoder.name}: {took_s:.1f} s for {len(data)} bytes; {repeat}")


def fuzz(seconds: float, seed: int, only: str = "") -> Found:
    """Take the decoders in turn until the time is over."""
    found = Found()
    chosen = [each for each in decoders() if only in ("", each.name)]
    for decoder in chosen:
        for sample in decoder.samples:
            decoder.read(decoder.seal(sample))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    until = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < until and len(found.violations) < 20:
        for decoder in chosen:
            chance = random.Random(f"{seed}/{turn}/{decoder.name}")
            data = decoder.seal(changed(chance, chance.choice(decoder.samples), decoder.samples))
            repeat = f"python -m tests.fuzzing.decoders --only {decoder.name} --seed {seed} --turn {turn}"
            attempt(found, decoder, data, repeat)
        turn += 1
    growth = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    if growth > GROWTH_BYTES_MAX:
        found.violations.append(f"memory grew by {growth} bytes")
    return found


def one(seed: int, turn: int, only: str) -> None:
    """Let one input be read again, with its error."""
    (decoder,) = (each for each in decoders() if each.name == only)
    chance = random.Random(f"{seed}/{turn}/{decoder.name}")
    data = decoder.seal(changed(chance, chance.choice(decoder.samples), decoder.samples))
    print(f"{data!r:.2000}")
    print(f"{decoder.read(data)!r:.500}")


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--turn", type=int, default=None)
    options = parser.parse_args()
    if options.turn is not None:
        one(options.seed, options.turn, options.only)
        return 0
    found = fuzz(options.seconds, options.seed, options.only)
    for name, count in sorted(found.inputs.items()):
        print(f"  {name:24} {count:8} inputs, {found.refused[name]:8} refused by their error")
    for violation in found.violations:
        print(f"VIOLATION {violation}")
    total = sum(found.inputs.values())
    print(f"RESULT decoders={len(found.inputs)} inputs={total} slowest_ms={found.slowest_ms} "
          f"violations={len(found.violations)} seed={options.seed}")  # fmt: skip
    return 1 if found.violations else 0


if __name__ == "__main__":
    sys.exit(main())
