"""One message of each kind between the daemon and its pacer."""

from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant
from haclusterd.model.pacer import BrainState, HeardNode, PacerReport, PacerSettings, PeerAddress
from haclusterd.protocol.pacer_socket import MAXIMUM_SIZE, Message, Refusal, encode
from haclusterd.wire.framing import FrameBuffer

SETTINGS = PacerSettings(
    node=NodeName("n1"),
    incarnation=Incarnation("8a3c1f60-boot", "00000000000000a1"),
    is_voter=True,
    listen=(("127.0.0.1", 5001), ("::1", 5001)),
    peers=(
        PeerAddress(NodeName("n2"), (("127.0.0.1", 5002), ("::1", 5002)), bytes(range(32)), is_voter=True),
        PeerAddress(NodeName("n3"), (("127.0.0.1", 5003),), b"\xff" * 16, is_voter=False),
    ),
    node_timeout_ms=2000,
    brain_timeout_ms=10_000,
)
REPORT = PacerReport(
    reported_at=Instant(12_345),
    stalled_at=Instant(11_000),
    nodes=(
        HeardNode(
            name=NodeName("n2"),
            incarnation=Incarnation("boot", "00000000000000b1"),
            age_ms=17,
            brain=BrainState.HUNG,
            brain_since_ms=3_000,
            hears={NodeName("n1"): 3, NodeName("n3"): 40},
            heard_at=Instant(12_328),
            hears_token={NodeName("n1"): "00000000000000a1", NodeName("n3"): "00000000000000c1"},
            answered_at=Instant(12_100),
        ),
        HeardNode(NodeName("n3"), None, None, BrainState.RESTARTING, 0, {}),
    ),
    errors=("cannot listen on 127.0.0.1 port 5001: Address already in use; trying again",),
)
MESSAGES = [SETTINGS, REPORT, Refusal("no")]


def payload_of(message: Message) -> bytes:
    (payload,) = FrameBuffer(MAXIMUM_SIZE).feed(encode(message))
    return payload
