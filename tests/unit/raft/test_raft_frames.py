"""Messages on the wire: only the listed types and fields, whatever bytes arrive."""

import pickle  # noqa: TID251 (it must be refused)
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.raft.frames import CHUNK_BYTES, decode_frame, encode_frame
from haclusterd.raft.settings import MAX_ENTRY_BYTES, MAX_FRAME_BYTES

NUMBER = st.integers(0, 2**62 - 1)
MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("request_vote"), "term": NUMBER, "last_log_index": NUMBER, "last_log_term": NUMBER}
    ),
    st.fixed_dictionaries({"type": st.just("response_vote"), "term": NUMBER}),
    st.fixed_dictionaries(
        {"type": st.just("request_pre_vote"), "term": NUMBER, "last_log_index": NUMBER, "last_log_term": NUMBER}
    ),
    st.fixed_dictionaries(
        {"type": st.just("response_pre_vote"), "term": NUMBER, "asked_term": NUMBER, "granted": st.booleans()}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("next_node_idx"),
            "term": NUMBER,
            "next_node_idx": NUMBER,
            "success": st.booleans(),
            "refused_index": NUMBER,
        }
    ),
    st.fixed_dictionaries({"type": st.just("apply_command"), "command": st.binary(max_size=100)}),
    st.fixed_dictionaries({"type": st.just("timeout_now"), "term": NUMBER}),
    st.fixed_dictionaries(
        {
            "type": st.just("install_snapshot"),
            "term": NUMBER,
            "index": NUMBER,
            "total": st.integers(0, 2**20),
            "offset": st.integers(0, 2**20),
            "data": st.binary(max_size=100),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("snapshot_received"), "term": NUMBER, "index": NUMBER, "offset": st.integers(0, 2**20)}
    ),
)
APPEND: dict[str, Any] = {
    "type": "append_entries",
    "term": 4,
    "commit_index": 6,
    "prevLogIdx": 7,
    "prevLogTerm": 3,
    "entries": [[b"\0a", 8, 3], [b"\x01", 9, 4]],
}


@given(message=MESSAGES)
def test_every_message_survives_the_wire(message: dict[str, Any]) -> None:
    assert decode_frame(encode_frame(message)) == message


def test_entries_survive_the_wire() -> None:
    assert decode_frame(encode_frame(APPEND)) == APPEND
    empty = {**APPEND, "entries": []}
    assert decode_frame(encode_frame(empty)) == empty


@given(frame=st.binary(max_size=400))
def test_rubbish_is_refused_as_a_value(frame: bytes) -> None:
    message = decode_frame(frame)
    assert message is None or encode_frame(message)


@given(message=MESSAGES, data=st.data())
def test_a_damaged_message_is_refused_or_still_of_a_listed_type(message: dict[str, Any], data: st.DataObject) -> None:
    frame = bytearray(encode_frame(message))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    decoded = decode_frame(bytes(frame))
    assert decoded is None or decode_frame(encode_frame(decoded)) == decoded


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("executed",))


def nested(depth: int) -> Any:
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pickle.dumps({"type": "request_vote"}, 2), id="a pickle"),
        pytest.param(pickle.dumps(Payload()), id="a pickle that acts"),
        pytest.param(msgpack.packb({"type": "request_vote"}), id="a map"),
        pytest.param(msgpack.packb([1, msgpack.ExtType(1, b"x")]), id="an extension type"),
        pytest.param(msgpack.packb([99, 1]), id="an unknown type"),
        pytest.param(msgpack.packb([-1, 1]), id="a negative type"),
        pytest.param(msgpack.packb([True, 1]), id="a flag as type"),
        pytest.param(msgpack.packb([1]), id="too few fields"),
        pytest.param(msgpack.packb([1, 1, 1]), id="too many fields"),
        pytest.param(msgpack.packb([1, "1"]), id="text as term"),
        pytest.param(msgpack.packb([1, True]), id="a flag as term"),
        pytest.param(msgpack.packb([1, -1]), id="a negative term"),
        pytest.param(msgpack.packb([1, 2**63]), id="a huge term"),
        pytest.param(msgpack.packb([1, 1.0]), id="a float as term"),
        pytest.param(msgpack.packb([1, 1]) + b"\0", id="bytes behind the message"),
        pytest.param(msgpack.packb(nested(300)), id="deep nesting"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="an array of 4 billion"),
        pytest.param(b"", id="nothing"),
        pytest.param(bytes(MAX_FRAME_BYTES + 1), id="too long"),
        pytest.param(msgpack.packb([8, bytes(MAX_ENTRY_BYTES + 1)]), id="an entry above the limit"),
        pytest.param(msgpack.packb([6, 1, 1, 1, 0, bytes(CHUNK_BYTES + 1)]), id="a chunk above the limit"),
        pytest.param(msgpack.packb([6, 1, 1, 2**40, 0, b""]), id="a snapshot above the limit"),
    ],
)
def test_what_is_not_a_message_is_refused(frame: bytes) -> None:
    assert decode_frame(frame) is None


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([[b"\0a", 9, 3]], id="a gap"),
        pytest.param([[b"\0a", 8, 2]], id="a term that goes back"),
        pytest.param([[b"\0a", 8, 5]], id="a term above the sender's"),
        pytest.param([[b"\0a", 8, 3], [b"\0b", 8, 3]], id="an index twice"),
        pytest.param([[b"", 8, 3]], id="an empty command"),
        pytest.param([[b"\x04rem", 8, 3]], id="an unknown kind"),
        pytest.param([[b"\x03v", 8, 3]], id="a version switch"),
        pytest.param([[b"\0a", 8]], id="no term"),
        pytest.param([["\0a", 8, 3]], id="text as command"),
        pytest.param("entries", id="text as entries"),
    ],
)
def test_incoherent_entries_are_refused(entries: Any) -> None:
    assert decode_frame(encode_frame({**APPEND, "entries": entries})) is None
