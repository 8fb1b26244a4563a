"""What any released version wrote is read for ever, to the last field.

The files of a level are written once, when it is released, and never again: a test that fails here means that nodes of
two versions would disagree, or that a daemon cannot read its own journal after an upgrade.
"""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from haclusterd.cib import commands
from haclusterd.cib.codec import decode_cib, decode_envelope, digest, encode_cib, encode_envelope
from haclusterd.cib.commands import Envelope
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode

LEVEL_1 = Path(__file__).parent / "codec_1"


def envelopes() -> list[bytes]:
    return (LEVEL_1 / "envelopes.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("line", envelopes(), ids=lambda line: next(iter(json.loads(line)["envelope"]["command"])))
def test_every_command_of_level_1_is_read_and_spelled_the_same(line: bytes) -> None:
    assert encode_envelope(decode_envelope(line)) == line


def test_the_samples_hold_every_command() -> None:
    assert {type(decode_envelope(line).command) for line in envelopes()} == set(commands.Command.__args__)


def test_an_order_of_level_1_means_what_it_meant() -> None:
    found = [e.command for e in map(decode_envelope, envelopes()) if isinstance(e.command, commands.IssueOrders)]
    (order,) = found[0].orders
    assert (order.key, order.node, order.action, order.target_exit_code) == (
        OrderKey("3-1"), NodeName("n1"), ActionName.START, ExitCode.OK,
    )  # fmt: skip
    assert order.incarnation == Incarnation("2f1c1a52-7f0e-4d77-9d0c-000000000001", "0123456789abcdef")
    assert order.agent == AgentReference("ocf", "haclusterd", "http-service")
    assert order.is_voided
    assert order.is_probe


def test_a_cib_of_level_1_is_read_and_spelled_the_same() -> None:
    data = (LEVEL_1 / "cib.jsonl").read_bytes()
    cib = decode_cib(data)
    assert encode_cib(cib) == data
    assert digest(cib) == (LEVEL_1 / "cib.sha256").read_text().strip()
    assert list(cib.configuration.resources) == ["web", "stack", "db"]
    assert cib.status.nodes[NodeName("n1")].unverified == {ResourceId("web")}


def _types_in(value: Any) -> set[type]:
    if is_dataclass(value):
        return {type(value)}.union(*(_types_in(getattr(value, entry.name)) for entry in fields(value)))
    if isinstance(value, dict):
        return set().union(*map(_types_in, value.values()))
    return set().union(*map(_types_in, value)) if isinstance(value, tuple) else set()


def _types_reached(hint: Any) -> set[type]:
    if is_dataclass(hint):
        return {hint}.union(*map(_types_reached, get_type_hints(hint).values()))
    return set().union(*map(_types_reached, get_args(hint)))


def test_the_samples_hold_every_type_that_is_replicated() -> None:
    seen = _types_in(decode_cib((LEVEL_1 / "cib.jsonl").read_bytes()))
    seen = seen.union(*(_types_in(decode_envelope(line)) for line in envelopes()))
    assert seen == _types_reached(Cib) | _types_reached(Envelope)
