"""One of each message that nodes, or a daemon and its own pacer, of two versions may exchange while one is upgraded.

Their bytes are in messages/: what is there is read and written the same for as long as that version may be met.
Nothing writes them again (frozen_samples.py): they were written by the version that is named.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haclusterd.model.cluster import Member
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, News
from haclusterd.model.ids import Incarnation, NodeName, ResourceId
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import dataclass
from haclusterd.model.remembered import HistoryRow, HistorySummary, KeptVersion, Span
from haclusterd.model.requests import Basis, Options, Progress, Request, Response, ShownReport
from haclusterd.model.watchdog import PanicAction, Watchdog, WatchdogSettings
from haclusterd.protocol import control, dc_bulletin, enrolment, history_messages, pacer_socket
from haclusterd.protocol.dc_bulletin import DcBulletin
from haclusterd.protocol.history_messages import (
    AskPage,
    AskSummary,
    AskVersion,
    KeptEntry,
    Page,
    TellPage,
    TellSummary,
    TellVersion,
)

N1, N2 = NodeName("n1"), NodeName("n2")
LIFE = Incarnation("2f1c1a52-7f0e-4d77-9d0c-000000000001", "0123456789abcdef")
DIGEST = "0a" * 32
HEADER_BYTES = 4


@dataclass(frozen=True)
class Protocol:
    """How the messages of one kind of stream are written; `text_of` finds the JSON in the bytes."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    messages: Sequence[Any]
    text_of: Callable[[bytes], bytes] = lambda frame: frame[HEADER_BYTES:]
    payload_of: Callable[[bytes], bytes] = lambda text: text


PROTOCOLS: Mapping[str, Protocol] = {
    "enrolment": Protocol(
        enrolment.encode,
        enrolment.decode,
        [
            Hello("11111111-2222-3333-4444-555555555555", "prod", "-----BEGIN CERTIFICATE-----", bytes(range(16)),
                  WallTime(1_790_000_000_000), 3),
            Apply("i-1", N2, (("192.0.2.2", 7400), ("2001:db8::2", 7400)), "-----BEGIN REQUEST-----", bytes(16),
                  WallTime(1_790_000_000_001), 3, b"\xfe" * 32),
            News("waiting for a vote"),
            Admitted("-----BEGIN CERTIFICATE-----", "11111111-2222-3333-4444-555555555555", "prod",
                     (Member(N1, (("192.0.2.1", 7400),)),
                      Member(N2, (("192.0.2.2", 7400),), is_voter=False, is_witness=True)), 2000),
            Denied("NAME_TAKEN", "n2 is a member", "choose another", 1),
        ],
    ),
    "pacer_socket": Protocol(
        pacer_socket.encode,
        pacer_socket.decode,
        [
            PacerSettings(N1, LIFE, is_voter=True, listen=(("192.0.2.1", 7400), ("2001:db8::1", 7401)),
                          peers=(PeerAddress(N2, (("192.0.2.2", 7400),), bytes(range(32)), is_voter=False),),
                          node_timeout_ms=2000, brain_timeout_ms=10_000,
                          watchdog=WatchdogSettings("/dev/watchdog", 10_000, 5, PanicAction.NONE,
                                                    may_be_stand_in=True)),
            PacerSettings(N1, LIFE, is_voter=False, listen=(), peers=(), node_timeout_ms=500, brain_timeout_ms=1),
            PacerReport(Instant(7), Instant(5),
                        (HeardNode(N2, LIFE, 12, BrainState.ALIVE, 3, {N1: 4, N2: 0}, Instant(6),
                                   {N1: "0123456789abcdef"}, Instant(1), is_empty=True, linked=frozenset({N2, N1})),
                         HeardNode(NodeName("n3"), None, None, BrainState.RESTARTING, 0, {})),
                        ("cannot listen",), Watchdog(10_000, "/dev/watchdog", "softdog", "emulated"), "no device"),
            PacerReport(Instant(7), None, ()),
            pacer_socket.Refusal("no"),
        ],
    ),
    "history_messages": Protocol(
        history_messages.encode,
        history_messages.decode,
        [
            AskPage(1, 2, 300),
            TellPage(1, None),
            TellPage(1, Page(2, 9, (
                KeptEntry(4, DIGEST, (
                    HistoryRow(4, 0, WallTime(11), "order", N1, ResourceId("web"), "web was started", '{"a":1}'),
                    HistoryRow(4, 1, WallTime(12), "dc", None, None, "n1 leads\u00e9"))),
                KeptEntry(9, "", ())))),
            AskVersion(2, 17, 98_304),
            TellVersion(2, None),
            TellVersion(2, KeptVersion(17, WallTime(13), "root", "", DIGEST), 5, 2, b"\x00\xff\x01"),
            AskSummary(3, 900),
            TellSummary(3, HistorySummary(N1, 900, 4, 55, (Span(1, 2), Span(5, 5)), ((800, DIGEST, "ab"),),
                                          (Span(7, 8),), ((1, DIGEST), (2, "")), "none")),
        ],
        text_of=lambda letter: zlib.decompress(letter[1:]),
        payload_of=lambda text: b"\x01" + zlib.compress(text),
    ),
    "dc_bulletin": Protocol(
        dc_bulletin.encode,
        dc_bulletin.decode,
        [
            DcBulletin(7, ("n3 is lost, caf\u00e9",), "KeyError: 'web'", (4, 1, 9)),
            DcBulletin(8),
        ],
        text_of=lambda message: zlib.decompress(message[1:]),
        payload_of=lambda text: b"\x02" + zlib.compress(text),
    ),
    "control": Protocol(
        control.encode,
        control.decode,
        [
            Request("1", "status", {}, Options()),
            Request("2", "resource.move", {"resource": "web", "to": None, "list": [1, True, {"a": "\u00e9"}]},
                    Options(5000, dry_run=True, force=True, reason="because", is_consistent=True, if_version=12),
                    "secret"),
            Progress("2", "waiting", 120),
            Response("2", 1, (ShownReport("error", "TOO_LARGE", "too large", "ask for less", "a.b"),), {"x": [1, None]},
                     Basis("n1", 3, 4, 5)),
            Response("1", 0),
        ],
    ),
}  # fmt: skip


def lines_of(protocol: Protocol) -> list[bytes]:
    """Return the JSON of every message, with its keys in the order in which they are written."""
    return [protocol.text_of(protocol.encode(each)) for each in protocol.messages]


def parsed(lines: Sequence[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]
