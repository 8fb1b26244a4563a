"""Hypothesis strategies for configurations that a text can say, whether they make sense or not."""

import string

from hypothesis import strategies as st

from haclusterd.formats.generated_ids import block_base, rule_base
from haclusterd.formats.rule_words import COMPARISONS, DURATION_UNITS, SOURCES, SPEC_FIELDS, TYPES
from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Colocation,
    Configuration,
    Constraint,
    FencingLevel,
    Group,
    Location,
    NodeEntry,
    Operation,
    Ordering,
    OrderingKind,
    PortMapping,
    Primitive,
    Resource,
    ResourceSet,
    StorageMapping,
    Tag,
    Template,
    TicketConstraint,
)
from haclusterd.model.ids import AgentReference, NodeName, ResourceId
from haclusterd.model.operations import ROLES
from haclusterd.model.rules import (
    AttributeExpression,
    Condition,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
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
actions = st.sampled_from(["start", "stop", "promote", "demote"])
_optional_flags = st.none() | st.booleans()


def _given(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.just("") | values.filter(bool)


@st.composite
def _dates(draw: st.DrawFn) -> DateExpression:
    instants = st.sampled_from(["2030-01-01", "2030-01-01T00:00:00Z", "x y"])
    match draw(st.sampled_from(["lt", "gt", "in_range", "date_spec"])):
        case "lt":
            return DateExpression("lt", end=draw(instants))
        case "gt":
            return DateExpression("gt", start=draw(instants))
        case "date_spec":
            fields = draw(st.lists(st.sampled_from(SPEC_FIELDS), min_size=1, max_size=3, unique=True))
            ranges = st.sampled_from(["1", "1-5", "2030-", "-3"])
            return DateExpression("date_spec", spec=tuple((field, draw(ranges)) for field in fields))
        case _:
            units = draw(st.lists(st.sampled_from(DURATION_UNITS), max_size=2, unique=True))
            duration = tuple((unit, str(draw(st.integers(0, 99)))) for unit in units)
            return DateExpression("in_range", draw(instants), draw(st.none() | instants), duration)


@st.composite
def _comparisons(draw: st.DrawFn) -> AttributeExpression:
    attribute = draw(names | st.sampled_from(["and", "or", "date", "defined", "rule", "op_expression", "#uname"]))
    operation = draw(st.sampled_from([*COMPARISONS, "defined", "not_defined"]))
    if operation in ("defined", "not_defined"):
        return AttributeExpression(attribute, operation)
    value = draw(values | st.sampled_from(["and", "meta{x}", "param{y}", "(", "rule", "a=b"]))
    source = draw(st.none() | st.sampled_from(SOURCES))
    return AttributeExpression(attribute, operation, value, source, draw(st.none() | st.sampled_from(TYPES)))


_leaves: st.SearchStrategy[Condition] = st.one_of(
    _comparisons(),
    _dates(),
    st.builds(ResourceExpression, *[st.none() | st.sampled_from(["ocf", "a b"])] * 3),
    st.builds(OperationExpression, st.sampled_from(["monitor", "start"]), st.none() | st.just("10s")),
)


@st.composite
def rules(draw: st.DrawFn, id_: str, depth: int = 0) -> Rule:
    """Return a rule; rules in it have no score and no role."""
    conditions: list[Condition] = []
    for number in range(draw(st.integers(0, 2))):
        if depth < 2 and draw(st.integers(0, 4)) == 0:
            own = rule_base(id_) if draw(st.booleans()) else f"{id_}-{number}-{depth}"
            inner = draw(rules(own, depth + 1))
            conditions.append(Rule(inner.id, inner.conditions, inner.is_any))
        else:
            conditions.append(draw(_leaves))
    nested = [each.id for each in conditions if isinstance(each, Rule)]
    is_any = len(conditions) > 1 and draw(st.booleans())
    if len(set(nested)) < len(nested):
        conditions = []
    score, attribute = draw(st.sampled_from([(None, None), (INFINITY, None), (5, None), (0, None), (None, "pingd")]))
    return Rule(id_, tuple(conditions), is_any and bool(conditions), score, attribute, draw(st.none() | roles))


@st.composite
def blocks(draw: st.DrawFn, base: str | None = None) -> tuple[AttributeSet, ...]:
    """Return blocks of attributes; sometimes with the ids that reading would make, sometimes with others."""
    count = draw(st.integers(0, 2))
    numbered = [base if index == 0 else f"{base}-{index + 1}" for index in range(count)]
    chosen = (
        numbered if base and draw(st.booleans()) else draw(st.lists(ids, min_size=count, max_size=count, unique=True))
    )
    pairs = st.lists(st.tuples(names, values), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
    return tuple(
        AttributeSet(str(id_), draw(pairs), draw(st.just(0) | score_values), draw(_rules_of(str(id_))))
        for id_ in chosen
    )


def _rules_of(block: str) -> st.SearchStrategy[Rule | None]:
    return st.one_of(st.none(), st.none(), rules(rule_base(block)), rules("another-rule"))


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
        interval_origin=draw(st.none() | values),
        record_pending=draw(_optional_flags),
    )


@st.composite
def _templates(draw: st.DrawFn, id_: str) -> Template:
    own = draw(st.lists(operations(id_), max_size=2, unique_by=lambda operation: operation.id))
    parameters, meta = draw(blocks(f"{id_}-instance_attributes")), draw(blocks(f"{id_}-meta_attributes"))
    utilization = draw(blocks(f"{id_}-utilization"))
    return Template(id_, draw(agents), parameters, meta, utilization, tuple(own), draw(st.just("") | values))


@st.composite
def _bundles(draw: st.DrawFn, id_: str) -> Bundle:
    counts = st.none() | st.integers(0, 9)
    texts = _given(values)
    ports = [
        PortMapping(draw(st.just(natural) | st.just(f"p{natural}")), draw(texts), draw(texts), draw(texts))
        for natural in (f"{id_}-port-mapping", f"{id_}-port-mapping-2")[: draw(st.integers(0, 2))]
    ]
    storage = [
        StorageMapping(draw(st.just(natural) | st.just(f"s{natural}")), draw(values.filter(bool)), *draw(_three(texts)))
        for natural in (f"{id_}-storage-mapping", f"{id_}-storage-mapping-2")[: draw(st.integers(0, 2))]
    ]
    network = BundleNetwork(draw(texts), *draw(_three(texts)), draw(_optional_flags), tuple(ports))
    return Bundle(
        id_,
        draw(st.sampled_from(["docker", "podman"])),
        draw(values.filter(bool)),
        draw(st.none() | ids),
        draw(counts),
        draw(counts),
        draw(counts),
        *draw(_three(texts)),
        network if ports or draw(st.booleans()) else None,
        tuple(storage),
        draw(blocks(f"{id_}-meta_attributes")),
        draw(blocks(f"{id_}-instance_attributes")),
        draw(st.just("") | values),
    )


def _three(texts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, str, str]]:
    return st.tuples(texts, texts, texts)


@st.composite
def resources(draw: st.DrawFn, id_: str, templates: tuple[Template, ...] = ()) -> Resource:
    """Return a primitive, group, clone or bundle."""
    kind = draw(st.sampled_from(["primitive", "primitive", "group", "clone", "bundle"]))
    if kind == "bundle":
        return draw(_bundles(id_))
    parameters, meta = draw(blocks(f"{id_}-instance_attributes")), draw(blocks(f"{id_}-meta_attributes"))
    description = draw(st.just("") | values)
    if kind == "group":
        return Group(id_, tuple(draw(st.lists(ids, min_size=1, max_size=3))), parameters, meta, description)
    if kind == "clone":
        return Clone(id_, draw(ids), parameters, meta, description)
    own = draw(st.lists(operations(id_), max_size=3, unique_by=lambda operation: operation.id))
    utilization = draw(blocks(f"{id_}-utilization"))
    template = draw(st.sampled_from(templates)) if templates and draw(st.booleans()) else None
    agent = draw(agents) if template is None else template.agent
    name = None if template is None else template.id
    return Primitive(id_, agent, parameters, meta, utilization, tuple(own), description, name)


@st.composite
def _sets(draw: st.DrawFn, constraint: str, *, count: int, of_actions: bool) -> tuple[ResourceSet, ...]:
    made = []
    for number in range(count):
        id_ = f"{constraint}-{number}" if draw(st.booleans()) else f"set-{number}"
        action = draw(st.none() | actions) if draw(st.booleans()) == of_actions else None
        role = draw(st.none() | roles) if draw(st.booleans()) != of_actions else None
        made.append(
            ResourceSet(
                id_,
                tuple(draw(st.lists(ids, min_size=1, max_size=3))),
                draw(_optional_flags),
                draw(_optional_flags),
                action,
                role,
                draw(st.none() | score_values),
                draw(st.none() | st.just("Optional")),
                draw(st.none() | st.sampled_from(["group", "listed"])),
            )
            if draw(st.booleans())
            else ResourceSet(id_, tuple(draw(st.lists(ids, min_size=1, max_size=2))))
        )
    return tuple(made)


@st.composite
def constraints(draw: st.DrawFn, id_: str) -> Constraint:
    """Return a constraint of any kind."""
    kind = draw(st.sampled_from(["location", "colocation", "order", "ticket"]))
    if kind == "location":
        return draw(_locations(id_))
    sets = draw(_sets(id_, count=draw(st.sampled_from([0, 0, 1, 2, 3])), of_actions=kind == "order"))
    one, other = (ResourceId(""), ResourceId("")) if sets else (draw(ids), draw(ids))
    if kind == "ticket":
        role = None if sets else draw(st.none() | roles)
        ticket = draw(values.filter(bool))
        policy = draw(st.none() | st.sampled_from(["stop", "demote", "freeze", "fence"]))
        return TicketConstraint(id_, ticket, one, role, policy, sets)
    if kind == "colocation":
        own = (None, None) if sets else (draw(st.none() | roles), draw(st.none() | roles))
        return Colocation(
            id_, draw(score_values), one, other, *own, draw(st.none() | values), draw(_optional_flags), sets,
            draw(_lifetimes(id_)),
        )  # fmt: skip
    first_action, then_action = ("start", None) if sets else (draw(actions), draw(st.none() | actions))
    return Ordering(
        id_, one, other, draw(st.sampled_from(OrderingKind)), first_action, then_action,
        draw(st.booleans()), draw(st.booleans()), sets, lifetime=draw(_lifetimes(id_)),
    )  # fmt: skip


@st.composite
def _lifetimes(draw: st.DrawFn, constraint: str) -> tuple[Rule, ...]:
    """Return the rules of a lifetime; they have no score and no role."""
    # An id stands once in a document.
    own = draw(st.sampled_from([[], [], [rule_base(constraint)], [f"{constraint}-one", f"{constraint}-two"]]))
    found = (draw(rules(each)) for each in own)
    return tuple(Rule(each.id, each.conditions, each.is_any) for each in found)


@st.composite
def _locations(draw: st.DrawFn, id_: str) -> Location:
    resource, pattern, sets = ResourceId(""), "", ()
    match draw(st.sampled_from(["resource", "resource", "pattern", "sets"])):
        case "resource":
            resource = draw(ids)
        case "pattern":
            pattern = draw(st.sampled_from(["^db$", "a/b", "x y", "!web.*"]))
        case _:
            sets = draw(_sets(id_, count=1, of_actions=False))
    role, discovery = draw(st.none() | roles), draw(st.none() | st.sampled_from(["always", "never", "exclusive"]))
    if draw(st.booleans()):
        own = [rule_base(id_), f"{rule_base(id_)}-2"] if draw(st.booleans()) else ["one", "two"]
        found = tuple(draw(rules(each)) for each in own[: draw(st.integers(1, 2))])
        return Location(id_, resource, NodeName(""), 0, found, pattern, sets, role, discovery)
    return Location(id_, resource, draw(node_names), draw(score_values), (), pattern, sets, role, discovery)


@st.composite
def _levels(draw: st.DrawFn) -> tuple[FencingLevel, ...]:
    made = []
    for number in range(draw(st.integers(0, 3))):
        natural = "fencing" if number == 0 else f"fencing-{number + 1}"
        target = draw(
            st.sampled_from([("n1", "", "", ""), ("", "gpu[0-9]+ x", "", ""), ("", "", "rack", "1"), ("", "", "a", "")])
        )
        devices = tuple(draw(st.lists(ids, min_size=1, max_size=2)))
        id_ = draw(st.just(natural) | st.just(f"own-{number}"))
        made.append(FencingLevel(id_, draw(st.integers(1, 3)), devices, *target))
    return tuple(made)


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    """Return a configuration; its parts need not fit each other."""
    nodes = {
        name: NodeEntry(
            name,
            draw(blocks(block_base(name, "attributes"))),
            draw(blocks(block_base(name, "utilization"))),
            draw(st.just("") | values),
            draw(st.booleans()),
            draw(st.just(0) | score_values),
            draw(st.just("") | st.sampled_from(["1", "other"]).filter(lambda id_, name=name: id_ != name)),
        )
        for name in draw(st.lists(node_names, max_size=2, unique=True))
    }
    templates = {id_: draw(_templates(id_)) for id_ in draw(st.lists(ids, max_size=1, unique=True))}
    owned = tuple(templates.values())
    made = {id_: draw(resources(id_, owned)) for id_ in draw(st.lists(ids, max_size=3, unique=True))}
    related = {id_: draw(constraints(id_)) for id_ in draw(st.lists(ids, max_size=3, unique=True))}
    tags = {
        id_: Tag(id_, tuple(draw(st.lists(ids, min_size=1, max_size=3))))
        for id_ in draw(st.lists(ids, max_size=1, unique=True))
    }
    sections = (draw(blocks("cib-bootstrap-options")), draw(blocks("rsc-options")), draw(blocks("op-options")))
    return Configuration(nodes, made, related, *sections, templates, tags, draw(_levels()))
