"""What any released version wrote is read for ever, to the last field.

The files of a level are written for the last time when it is released: a test that fails here means that nodes of
two versions would disagree, or that a daemon cannot read its own journal after an upgrade.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from haclusterd.cib import commands, levels
from haclusterd.cib.codec import FEATURE_LEVEL, decode_cib, decode_envelope, digest, encode_cib, encode_envelope
from haclusterd.cib.commands import Envelope
from haclusterd.model.cluster import FIRST_FEATURE_LEVEL, Cib
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from haclusterd.model.records import fields, is_dataclass
from tests.upgrade.frozen_samples import are_rewritten, write
from tests.upgrade.samples import sample_cib, sample_envelopes

LEVEL_1 = Path(__file__).parent / "codec_1"
LEVEL_2 = LEVEL_1.with_name("codec_2")
LEVEL_3 = LEVEL_1.with_name("codec_3")
NEWEST = LEVEL_3
LEVELS = (LEVEL_1, LEVEL_2, LEVEL_3)


def rewrite_newest() -> None:
    """Write the samples of the level that is being built."""
    write(NEWEST / "envelopes.jsonl", b"".join(encode_envelope(each) + b"\n" for each in sample_envelopes()))
    write(NEWEST / "cib.jsonl", encode_cib(sample_cib()))
    write(NEWEST / "cib.sha256", (digest(sample_cib()) + "\n").encode())


if are_rewritten():
    rewrite_newest()


def envelopes(level: Path) -> list[bytes]:
    return (level / "envelopes.jsonl").read_bytes().splitlines()


def at_present_level(data: bytes) -> bytes:
    """Return a document with the number of the newest level in its first line, and nothing else changed."""
    return re.sub(rb'"level":\d+', b'"level":%d' % FEATURE_LEVEL, data, count=1)


def command_name(line: bytes) -> str:
    return next(iter(json.loads(line)["envelope"]["command"]))


def test_there_are_samples_of_every_level() -> None:
    assert [json.loads(envelopes(level)[0])["level"] for level in LEVELS] == list(range(1, FEATURE_LEVEL + 1))


@pytest.mark.parametrize("line", [line for level in LEVELS for line in envelopes(level)], ids=command_name)
def test_every_command_of_every_level_is_read_and_spelled_the_same(line: bytes) -> None:
    assert encode_envelope(decode_envelope(line)) == at_present_level(line)


def test_the_newest_samples_hold_every_command() -> None:
    assert {type(decode_envelope(line).command) for line in envelopes(NEWEST)} == set(commands.Command.__args__)


def test_an_order_of_level_1_means_what_it_meant() -> None:
    found = [e.command for e in map(decode_envelope, envelopes(LEVEL_1)) if isinstance(e.command, commands.IssueOrders)]
    (order,) = found[0].orders
    assert (order.key, order.node, order.action, order.target_exit_code) == (
        OrderKey("3-1"), NodeName("n1"), ActionName.START, ExitCode.OK,
    )  # fmt: skip
    assert order.incarnation == Incarnation("2f1c1a52-7f0e-4d77-9d0c-000000000001", "0123456789abcdef")
    assert order.agent == AgentReference("ocf", "haclusterd", "http-service")
    assert order.is_voided
    assert order.is_probe


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_cib_of_every_level_is_read_and_spelled_the_same(level: Path) -> None:
    data = (level / "cib.jsonl").read_bytes()
    cib = decode_cib(data)
    assert encode_cib(cib) == at_present_level(data)
    assert digest(cib) == (level / "cib.sha256").read_text().strip()


def test_a_cib_of_level_1_means_what_it_meant() -> None:
    cib = decode_cib((LEVEL_1 / "cib.jsonl").read_bytes())
    assert list(cib.configuration.resources) == ["web", "stack", "db"]
    assert cib.status.nodes[NodeName("n1")].unverified == {ResourceId("web")}


def _types_in(value: Any) -> set[type]:
    if is_dataclass(value):
        return {type(value)}.union(*(_types_in(getattr(value, entry.name)) for entry in fields(value)))
    if isinstance(value, dict):
        return set().union(*map(_types_in, value.values()))
    return set().union(*map(_types_in, value)) if isinstance(value, tuple) else set()


def _types_reached(hint: Any, seen: frozenset[type] = frozenset()) -> set[type]:
    if hint in seen:
        return set()
    if is_dataclass(hint):
        inner = seen | {hint}
        return {hint}.union(*(_types_reached(each, inner) for each in get_type_hints(hint).values()))
    return set().union(*(_types_reached(each, seen) for each in get_args(hint)))


def test_the_newest_samples_hold_every_type_and_every_field_that_is_replicated() -> None:
    """REWRITE_SAMPLES=1 writes them again; a level that was released gets a successor instead."""
    cib, made = decode_cib((NEWEST / "cib.jsonl").read_bytes()), sample_cib()
    seen = _types_in(cib).union(*(_types_in(decode_envelope(line)) for line in envelopes(NEWEST)))
    assert seen == _types_reached(Cib) | _types_reached(Envelope)
    assert cib == made
    assert [decode_envelope(line) for line in envelopes(NEWEST)] == sample_envelopes()


Feature = type | tuple[type, str]


def _features_in(value: Any) -> set[Feature]:
    """Return the types, and the fields that are not left out, of a value."""
    if is_dataclass(value):
        kind = type(value)
        filled = {entry.name: getattr(value, entry.name) for entry in fields(value)}
        named: set[Feature] = {(kind, name) for name, item in filled.items() if item not in (None, (), "", {}, False)}
        return named.union({kind}, *map(_features_in, filled.values()))
    if isinstance(value, dict):
        return set().union(*map(_features_in, value.values()))
    return set().union(*map(_features_in, value)) if isinstance(value, tuple) else set()


def features_of(level: Path) -> set[Feature]:
    cib = decode_cib((level / "cib.jsonl").read_bytes())
    return _features_in(cib).union(*(_features_in(decode_envelope(line)) for line in envelopes(level)))


def unnamed(since: Mapping[Feature, int], older: Path, newer: Path, level: int) -> set[Feature]:
    """Return what is new in a level and not said to be."""
    new = features_of(newer) - features_of(older)
    listed = {feature for feature, number in since.items() if number == level}
    return {each for each in new if each not in listed and not (isinstance(each, tuple) and each[0] in listed)}


def test_what_a_level_brings_is_found_in_its_samples() -> None:
    new = unnamed({}, LEVEL_2, LEVEL_3, 3)
    assert {commands.ChangeMembers, (commands.ChangeMembers, "version"), (commands.Join, "watchdog")} <= new
    assert commands.Join not in new
    named = {each: 3 for each in new if not isinstance(each, tuple) or each[0] not in new}
    assert unnamed(named, LEVEL_2, LEVEL_3, 3) == set()


def test_everything_that_came_after_the_first_negotiated_level_is_named() -> None:
    """Without its level a newer node would say what older members cannot read (`cib.levels`)."""
    pairs = zip(LEVELS[FIRST_FEATURE_LEVEL - 1 :], LEVELS[FIRST_FEATURE_LEVEL:], strict=False)
    found = {
        number: unnamed(levels.SINCE, older, newer, number)
        for number, (older, newer) in enumerate(pairs, FIRST_FEATURE_LEVEL + 1)
    }
    assert found == {number: set() for number in range(FIRST_FEATURE_LEVEL + 1, FEATURE_LEVEL + 1)}
