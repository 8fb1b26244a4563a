"""Hypothesis strategies for configurations that a text can say, whether they make sense or not."""

import string

from hypothesis import strategies as st

from haclusterd.formats.generated_ids import block_base
from haclusterd.model.configuration import (
    AttributeSet,
    Colocation,
    Configuration,
    Group,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    OrderingKind,
    Primitive,
)
from haclusterd.model.ids import AgentReference
from haclusterd.model.operations import ROLES
from haclusterd.model.scores import INFINITY

ids = st.one_of(
    st.sampled_from(["a", "b", "web", "op", "meta", "rule", "params", "a-instance_attributes", "a-monitor-10s"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9._-]{0,6}", fullmatch=True),
)
node_names = st.one_of(
    st.sampled_from(["n1", "op", "1"]), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,6}", fullmatch=True)
)
names = st.one_of(
    st.sampled_from(["ip", "meta", "description", "timeout", "interval", "#health-cpu", "true", "null", "3:", "score"]),
    st.from_regex(r"[A-Za-z0-9_#][A-Za-z0-9_.#:/@+-]{0,6}", fullmatch=True),
)
_characters = st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters=[chr(7)]).filter(
    lambda char: char == "\t" or (ord(char) >= 32 and ord(char) != 127)
)
values = st.one_of(
    st.sampled_from(
        ["", " ", "#", "\\", '"', "'", "a b", "a\\", "${X}", "$${", "$", "~", "null", "yes", "0x10", "1.0"]
    ),
    st.text(string.ascii_letters + " =:'\"\\#${}[]\t/", max_size=8),
    st.text(_characters, max_size=6),
)
milliseconds = st.one_of(st.sampled_from([0, 1, 500, 10_000, 60_000, 3_600_000]), st.integers(0, 10**12))
score_values = st.one_of(st.sampled_from([0, 1, -1, INFINITY, -INFINITY]), st.integers(-INFINITY, INFINITY))
agents = st.sampled_from(
    [
        AgentReference("ocf", "heartbeat", "IPaddr2"),
        AgentReference("ocf", "haclusterd", "http-service"),
        AgentReference("systemd", None, "vllm@1"),
        AgentReference("stonith", None, "external/ssh"),
    ]
)
roles = st.sampled_from(ROLES)


@st.composite
def blocks(draw: st.DrawFn, base: str | None = None) -> tuple[AttributeSet, ...]:
    """Return blocks of attributes; sometimes with the ids that reading would make, sometimes with others."""
    count = draw(st.integers(0, 2))
    numbered = [base if index == 0 else f"{base}-{index + 1}" for index in range(count)]
    chosen = (
        numbered if base and draw(st.booleans()) else draw(st.lists(ids, min_size=count, max_size=count, unique=True))
    )
    pairs = st.lists(st.tuples(names, values), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
    return tuple(AttributeSet(str(id_), draw(pairs), draw(st.just(0) | score_values)) for id_ in chosen)


@st.composite
def operations(draw: st.DrawFn, resource: str) -> Operation:
    """Return one operation."""
    name = draw(st.sampled_from(["monitor", "start", "stop", "validate-all"]))
    id_ = draw(st.sampled_from([f"{resource}-monitor-10s", f"{resource}-start-0"]) | ids)
    return Operation(
        id=id_,
        name=name,
        interval_ms=draw(milliseconds),
        timeout_ms=draw(st.none() | milliseconds),
        role=draw(st.none() | roles),
        on_fail=draw(st.none() | st.sampled_from(["restart", "fence"]) | values),
        start_delay_ms=draw(milliseconds),
        is_enabled=draw(st.booleans()),
        requires=draw(st.none() | values),
        parameters=draw(blocks(f"{id_}-instance_attributes")),
        meta=draw(blocks(f"{id_}-meta_attributes")),
    )


@st.composite
def resources(draw: st.DrawFn, id_: str) -> Primitive | Group:
    """Return a primitive or a group."""
    parameters, meta = draw(blocks(f"{id_}-instance_attributes")), draw(blocks(f"{id_}-meta_attributes"))
    description = draw(st.just("") | values)
    if draw(st.booleans()):
        return Group(id_, tuple(draw(st.lists(ids, min_size=1, max_size=3))), parameters, meta, description)
    own = draw(st.lists(operations(id_), max_size=3, unique_by=lambda operation: operation.id))
    utilization = draw(blocks(f"{id_}-utilization"))
    return Primitive(id_, draw(agents), parameters, meta, utilization, tuple(own), description)


@st.composite
def constraints(draw: st.DrawFn, id_: str) -> Location | Colocation | Ordering:
    """Return a constraint of any kind."""
    kind = draw(st.sampled_from(["location", "colocation", "order"]))
    if kind == "location":
        return Location(id_, draw(ids), draw(node_names), draw(score_values))
    if kind == "colocation":
        qualifiers = (draw(st.none() | roles), draw(st.none() | roles), draw(st.none() | values))
        influence = draw(st.none() | st.booleans())
        return Colocation(id_, draw(score_values), draw(ids), draw(ids), *qualifiers, influence)
    actions = st.sampled_from(["start", "stop", "promote", "demote"])
    return Ordering(
        id_, draw(ids), draw(ids), draw(st.sampled_from(OrderingKind)), draw(actions), draw(st.none() | actions),
        draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    """Return a configuration; its parts need not fit each other."""
    nodes = {
        name: NodeEntry(
            name,
            draw(blocks(block_base(name, "attributes"))),
            draw(blocks(block_base(name, "utilization"))),
            draw(st.just("") | values),
        )
        for name in draw(st.lists(node_names, max_size=2, unique=True))
    }
    made = {id_: draw(resources(id_)) for id_ in draw(st.lists(ids, max_size=3, unique=True))}
    related = {id_: draw(constraints(id_)) for id_ in draw(st.lists(ids, max_size=3, unique=True))}
    sections = (draw(blocks("cib-bootstrap-options")), draw(blocks("rsc-options")), draw(blocks("op-options")))
    return Configuration(nodes, made, related, *sections)
