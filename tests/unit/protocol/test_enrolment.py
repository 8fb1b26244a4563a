"""Tokens and messages of an enrolment: round trips, damage, and what a proof covers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.cluster import Member
from haclusterd.model.enrolment import Admitted, Apply, Denied, Hello, News
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.protocol.enrolment import Unreadable, decode, encode, is_proven, proof_of
from haclusterd.protocol.enrolment_token import (
    Token,
    TokenUnreadableError,
    invitation_of,
    proof_key_of,
    read_token,
    write_token,
)
from haclusterd.wire.framing import HEADER_BYTES

SECRET = bytes(range(16))
TOKEN = Token((("10.0.0.1", 7401), ("fe80::1", 7401), ("n1.example", 7401)), b"p" * 32, SECRET)
HELLO = Hello("uuid", "web", "-----BEGIN", b"n" * 16, WallTime(5), 2)
APPLY = Apply("name", NodeName("n2"), (("10.0.0.2", 7400),), "csr", b"m" * 16, WallTime(6), 2)
N3 = Member(NodeName("n3"), (("10.0.0.3", 7400), ("::1", 7400)), is_voter=False, is_witness=True)
MESSAGES = (
    HELLO, replace(APPLY, proof=b"x" * 32), News("waiting"), Denied("EXISTS", "no", "take another", 108),
    Admitted("pem", "uuid", "web", (N3,), 2000),
)  # fmt: skip


def test_a_token_is_one_word_and_reads_back() -> None:
    text = write_token(TOKEN)
    assert text.startswith("hacl1-")
    assert " " not in text
    assert read_token(f"  {text}\n") == TOKEN


def test_a_token_shows_its_secret_nowhere_else() -> None:
    assert SECRET.hex() not in repr(TOKEN)
    assert repr(SECRET)[2:10] not in repr(TOKEN)
    assert proof_key_of(SECRET).hex() not in invitation_of(SECRET)


@given(st.integers(6, 100), st.characters(codec="ascii", categories=["L", "N"]))
def test_a_damaged_token_is_distinguished_from_a_refused_one(place: int, instead: str) -> None:
    text = write_token(TOKEN)
    place = min(place, len(text) - 2)
    damaged = text[:place] + instead + text[place + 1 :]
    if damaged == text:
        return
    with pytest.raises(TokenUnreadableError, match="damaged"):
        read_token(damaged)


@given(st.text())
def test_any_text_is_a_token_or_says_why_not(text: str) -> None:
    with pytest.raises(TokenUnreadableError):
        read_token(text)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_read_back(message: Hello | Apply | News | Admitted | Denied) -> None:
    frame = encode(message)
    assert int.from_bytes(frame[:HEADER_BYTES], "big") == len(frame) - HEADER_BYTES
    assert decode(frame[HEADER_BYTES:]) == message


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_unreadable(data: bytes) -> None:
    assert isinstance(decode(data), Unreadable)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_missing_or_mistyped_field_is_refused(message: Hello | Apply | News | Admitted | Denied) -> None:
    fields = json.loads(encode(message)[HEADER_BYTES:])
    for name in fields:
        for value in (None, True, 1.5, -1, "\ud800", "x" * 20_000, {"a": 1}, [{}], [[]], [1] * 9):
            changed = decode(json.dumps({**fields, name: value}).encode())
            assert isinstance(changed, Unreadable) or type(changed) is type(message)
        assert isinstance(decode(json.dumps({key: fields[key] for key in fields if key != name}).encode()), Unreadable)


def test_another_version_is_named() -> None:
    fields = {**json.loads(encode(HELLO)[HEADER_BYTES:]), "v": 2}
    assert decode(json.dumps(fields).encode()) == Unreadable("this end speaks version 1, the other '2'")


def test_a_proof_is_of_everything_said_and_of_this_session() -> None:
    key = proof_key_of(SECRET)
    mine = replace(APPLY, proof=proof_of(key, HELLO, "session", APPLY))
    assert is_proven(key, HELLO, "session", mine)
    assert not is_proven(proof_key_of(b"y" * 16), HELLO, "session", mine)
    assert not is_proven(key, HELLO, "another session", mine)
    assert not is_proven(key, replace(HELLO, nonce=b"o" * 16), "session", mine)
    assert not is_proven(key, replace(HELLO, authority="another"), "session", mine)
    others = (
        replace(mine, node=NodeName("n9")), replace(mine, addresses=(("10.0.0.9", 7400),)),
        replace(mine, request="another"), replace(mine, nonce=b"q" * 16), replace(mine, now=WallTime(7)),
        replace(mine, feature_level=1), replace(mine, invitation="another"), replace(mine, proof=b""),
    )  # fmt: skip
    assert [is_proven(key, HELLO, "session", other) for other in others] == [False] * len(others)
