"""The codec's spelling, its refusals, and its limits."""

import json
from pathlib import Path

import pytest

from haclusterd.cib.codec import (
    CodecError,
    decode_cib,
    decode_envelope,
    digest,
    encode_cib,
    encode_envelope,
    iter_fragments,
    kind_of,
)
from haclusterd.cib.commands import CleanUp, Envelope, Join, Lost, RecordResults, RequestLeader
from haclusterd.cib.tags import REPLICATED
from haclusterd.model.cluster import Cib, NodeState, NodeStatus, Status
from haclusterd.model.configuration import Configuration, Group, Primitive
from haclusterd.model.history import OperationRecord, ResourceHistory
from haclusterd.model.ids import AgentReference, Incarnation, NodeName, OrderKey, RequestId, ResourceId, Term
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import dataclass
from haclusterd.wire.schemas import Schemas

UPGRADE = Path(__file__).parents[2] / "upgrade"
INCARNATION = Incarnation("boot-1", "0123456789abcdef")
DUMMY = AgentReference("ocf", "haclusterd", "dummy")


def envelope(command: object) -> Envelope:
    return Envelope(RequestId("r1"), NodeName("n1"), WallTime(5), command)


def document(command: object, **header: object) -> bytes:
    inner = {"request": "r1", "proposer": "n1", "at": 5, "command": command}
    return json.dumps({"format": 1, "level": 1, "envelope": inner, **header}).encode()


def test_the_spelling_is_compact_tagged_and_sparse() -> None:
    assert encode_envelope(envelope(CleanUp(None, NodeName("n1")))) == (
        b'{"format":1,"level":3,"envelope":{"request":"r1","proposer":"n1","at":5,'
        b'"command":{"CleanUp":{"resource":null,"node":"n1"}}}}'
    )


def test_a_cib_is_lines_of_address_and_value() -> None:
    cib = Cib("u", configuration=Configuration(resources={ResourceId("b"): Primitive(ResourceId("b"), DUMMY)}))
    assert encode_cib(cib).decode().splitlines() == [
        '{"format":1,"level":3}',
        '[[],{"cluster_uuid":"u"}]',
        '[["configuration"],{}]',
        '[["configuration","resources","b"],'
        '{"Primitive":{"id":"b","agent":{"standard":"ocf","provider":"haclusterd","type":"dummy"}}}]',
        '[["status"],{}]',
    ]


def test_the_order_of_a_mapping_is_kept_and_counts() -> None:
    first, second = (Primitive(ResourceId(name), DUMMY) for name in ("z", "a"))
    cib = Cib(configuration=Configuration(resources={first.id: first, second.id: second}))
    turned = Cib(configuration=Configuration(resources={second.id: second, first.id: first}))
    assert list(decode_cib(encode_cib(cib)).configuration.resources) == ["z", "a"]
    assert digest(cib) != digest(turned)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "expected an object of envelope, format, level"),
        (document({"Join": {}}, format=2), "written in format 2, level 1; this version reads format 1 up to level 3"),
        (document({"Join": {}}, level=4), "written in format 1, level 4"),
        (document({"Join": {}}, level=True), "no positive integers"),
        (document({"Join": {}}, more=1), "expected an object of"),
        (document({"Reboot": {}}), "command: unknown type 'Reboot'"),
        (document({"Join": {}, "Lost": {}}), "command: expected one of FormCluster"),
        (document({"Join": {"node": "n1"}}), "command.Join: Join lacks incarnation"),
        (document({"Join": {"node": "n1", "incarnation": None}}), "command.Join.incarnation: expected Incarnation"),
        (document({"CleanUp": {"resource": 1, "node": None}}), "command.CleanUp.resource: expected text, found int"),
        (document({"CleanUp": {"resource": "\ud800", "node": None}}), "a lone surrogate"),
        (document({"CleanUp": {"resource": "a", "node": None, "force": True}}), "CleanUp has no field 'force'"),
        (document({"CleanUp": {"resource": "a", "node": None, "reprobe": 1}}), "reprobe: expected true or false"),
        (document({"VoidOrders": {"dc_term": 2**63, "keys": []}}), "dc_term: an integer of more than 64 bits"),
        (document({"VoidOrders": {"dc_term": 1.0, "keys": []}}), "dc_term: expected an integer, found float"),
        (document({"VoidOrders": {"dc_term": 1, "keys": ["a", 2]}}), "command.VoidOrders.keys.1: expected text"),
        (document({"Lost": {"node": "a", "incarnation": None, "dc_term": 1, "reason": "", "ages_ms": {"b": ""}}}),
         "command.Lost.ages_ms.b: expected an integer"),
        (document({"RecordFenceAgent": {"key": "a", "outcome": "well", "detail": ""}}), "no FenceOutcome: 'well'"),
        (document({"RecordFenceAgent": {"key": "a", "outcome": [], "detail": ""}}), "no FenceOutcome: []"),
    ],
)  # fmt: skip
def test_an_envelope_that_is_not_ours_is_refused_with_its_place(data: bytes, problem: str) -> None:
    with pytest.raises(CodecError) as caught:
        decode_envelope(data)
    assert problem in str(caught.value)


def put_rule(levels: int) -> bytes:
    """Return a change of a location whose rule contains rules, so many levels in all."""
    inner = '{"conditions":[{"Rule":' * (levels - 1) + "{}" + "}]}" * (levels - 1)
    location = '{"Location":{"id":"l","rules":[' + inner + "]}}"
    command = '{"ChangeConfiguration":{"expected_epoch":1,"edits":[{"PutConstraint":{"constraint":' + location + "}}],"
    command += '"author":"a","reason":""}}'
    return (
        '{"format":1,"level":3,"envelope":{"request":"r","proposer":"n","at":1,"command":' + command + "}}"
    ).encode()


def test_rules_are_nested_so_deep_and_no_deeper() -> None:
    assert encode_envelope(decode_envelope(put_rule(16))) == put_rule(16)
    with pytest.raises(CodecError, match="rules are nested more than 16 deep"):
        decode_envelope(put_rule(17))
    for levels in (200, 2000, 50_000):
        with pytest.raises(CodecError, match=r"nested|no JSON"):
            decode_envelope(put_rule(levels))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["[[],{}]"], "expected an object of format, level"),
        (['{"format":1,"level":9}'], "level 9"),
        (['{"format":1,"level":1}', "[[],{}]", "[[],{}]", '[["status"],{}]', '[["status"],{}]'],
         "line 5: 'status' is there twice"),
        (['{"format":1,"level":1}', "{}"], "line 2: expected an address and a value"),
        (['{"format":1,"level":1}', "[[1],2]"], "line 2: an address is made of text"),
        (['{"format":1,"level":1}', '[["index"],1]', '[["index","a"],1]'], "line 3: 'index' holds no parts"),
        (['{"format":1,"level":1}', '[["index"],1]', "[[],{}]"], "line 3: the root is an object and comes first"),
        (['{"format":1,"level":1}', '[["weather"],1]'], "Cib has no field 'weather'"),
        (['{"format":1,"level":1}', '[["status","nodes","n1"],{"name":"n1","state":"gone"}]'],
         "status.nodes.n1.state: no NodeState: 'gone'"),
    ],
)  # fmt: skip
def test_a_cib_that_is_not_ours_is_refused_with_its_place(lines: list[str], problem: str) -> None:
    with pytest.raises(CodecError) as caught:
        decode_cib("".join(f"{line}\n" for line in lines).encode())
    assert problem in str(caught.value)


def test_a_cib_that_is_cut_off_is_refused() -> None:
    encoded = encode_cib(Cib("u"))
    with pytest.raises(CodecError, match="cut off"):
        decode_cib(encoded[:-3])


def test_what_an_agent_printed_is_replicated_whatever_it_is() -> None:
    printed = b"caf\xe9 \xe2\x82\xac".decode(errors="surrogateescape")
    result = OperationResult(
        ResultKind.FINISHED, OrderKey("o"), ResourceId("a"), "start", 0, ExitCode.ERROR, ExecutionStatus.DONE, 1,
        WallTime(0), exit_reason=printed,
    )  # fmt: skip
    command = decode_envelope(encode_envelope(envelope(RecordResults(NodeName("n1"), INCARNATION, (result,))))).command
    assert isinstance(command, RecordResults)
    assert command.results[0].exit_reason == "caf? \u20ac"


def _large_cib() -> Cib:
    ids = [ResourceId(f"a-resource-with-a-long-name-{number}") for number in range(3000)]
    record = OperationRecord(
        "monitor", 10_000, 1, ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK, WallTime(1), WallTime(2), digest="f" * 64
    )
    histories = {id_: ResourceHistory(id_, DUMMY, {"monitor_10000": record, "start_0": record}) for id_ in ids}
    node = NodeStatus(NodeName("n1"), NodeState.ONLINE, INCARNATION, histories=histories, probed=frozenset(ids))
    return Cib(
        configuration=Configuration(resources={**{id_: Primitive(id_, DUMMY) for id_ in ids}}),
        status=Status(nodes={node.name: node}),
    )


def test_no_line_of_a_large_cib_is_large() -> None:
    cib = _large_cib()
    fragments = list(iter_fragments(cib))
    assert sum(map(len, fragments)) > 1024 * 1024
    assert max(map(len, fragments)) < 64 * 1024
    assert decode_cib(b"".join(fragments)) == cib


def test_equal_sets_have_equal_bytes() -> None:
    names = [ResourceId(f"r{number}") for number in range(50)]
    one, other = (
        Cib(status=Status(nodes={NodeName("n"): NodeStatus(NodeName("n"), probed=frozenset(order))}))
        for order in (names, reversed(names))
    )
    assert encode_cib(one) == encode_cib(other)


def test_a_type_that_cannot_be_written_is_found_when_its_schema_is_made() -> None:
    @dataclass(frozen=True)
    class Weight:
        kilograms: float

    with pytest.raises(TypeError, match=r"float.* cannot be written"):
        REPLICATED.schema_of(Weight)


def test_unions_of_every_depth_survive() -> None:
    group = Group(ResourceId("g"), (ResourceId("a"),))
    cib = Cib(configuration=Configuration(resources={group.id: group}))
    assert decode_cib(encode_cib(cib)) == cib
    lost = Lost(NodeName("n2"), None, Term(3), "silent", {NodeName("n1"): 9})
    for command in (Join(NodeName("n1"), INCARNATION), lost):
        assert decode_envelope(encode_envelope(envelope(command))).command == command


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_kind_of_a_command_is_found_at_its_place_also_in_entries_of_earlier_levels(level: int) -> None:
    lines = (UPGRADE / f"codec_{level}" / "envelopes.jsonl").read_bytes().splitlines()
    assert lines
    for line in lines:
        assert kind_of(line) is type(decode_envelope(line).command)


def test_the_kind_of_a_command_is_not_what_its_text_says() -> None:
    text = '"command":{"Lost":{}}'
    envelope = Envelope(RequestId(text), NodeName(text), WallTime(1), RequestLeader(NodeName("n1"), text))
    assert kind_of(encode_envelope(envelope)) is RequestLeader
    spaced = encode_envelope(envelope).replace(b'"command":{', b'"command": {')
    assert kind_of(spaced) is RequestLeader
    assert kind_of(b"rubbish") is None


def test_a_class_in_a_union_needs_a_tag_and_is_written_by_it_alone() -> None:
    @dataclass(frozen=True)
    class Renamed:
        size: int

    @dataclass(frozen=True)
    class Other:
        size: int

    with pytest.raises(TypeError, match="Other is in a union and has no tag"):
        Schemas(tags={Renamed: "Older"}).schema_of(Renamed | Other)
    schema = Schemas(tags={Renamed: "Older", Other: "Other"}).schema_of(Renamed | Other)
    assert schema.write(Renamed(3)) == {"Older": {"size": 3}}
    assert schema.read({"Older": {"size": 3}}) == Renamed(3)
