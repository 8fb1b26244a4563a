"""Templates, clones, bundles, tags, rules, sets, tickets and fencing levels in crm text, and what they refer to."""

import pytest

from haclusterd.formats.cib_xml.document import read_configuration, write_configuration
from haclusterd.formats.crm.syntax import Mode, assemble, parse_script, parse_words, show
from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Colocation,
    Configuration,
    FencingLevel,
    Location,
    NodeEntry,
    Ordering,
    OrderingKind,
    PortMapping,
    Primitive,
    ResourceSet,
    StorageMapping,
    Tag,
    TicketConstraint,
    effective,
)
from haclusterd.model.ids import AgentReference
from haclusterd.model.records import replace
from haclusterd.model.rules import (
    AttributeExpression,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from haclusterd.model.scores import INFINITY

DUMMY = AgentReference("ocf", "heartbeat", "Dummy")


def read(text: str, base: Configuration | None = None, mode: Mode = Mode.ADD) -> Configuration:
    script = parse_script(text, "text")
    assert script.reports == ()
    made = assemble(script.statements, base=base, mode=mode)
    assert made.reports == ()
    return made.configuration


def constraint(text: str) -> object:
    (made,) = read(text).constraints.values()
    return made


def rule(text: str) -> Rule:
    made = constraint(f"location l a {text}")
    assert isinstance(made, Location)
    return made.rules[0]


def report_lines(text: str) -> list[tuple[str, int, int]]:
    script = parse_script(text, "text")
    reports = (*script.reports, *assemble(script.statements).reports)
    return [(str(r.code), r.place.line, r.place.column) for r in reports if r.place]


# -- resources --------------------------------------------------------------------------------------------------------


def test_what_is_made_from_a_template_has_its_agent_wherever_it_stands() -> None:
    made = read("primitive p @t meta priority=1\nrsc_template t Dummy op monitor interval=5s")
    primitive = made.resources["p"]
    assert isinstance(primitive, Primitive)
    assert (primitive.agent, primitive.template, primitive.operations) == (DUMMY, "t", ())
    assert made.templates["t"].operations[0].id == "t-monitor-5s"
    assert report_lines("primitive p @t") == [("UNKNOWN_TEMPLATE", 1, 13)]


def test_ms_is_a_promotable_clone_and_says_so() -> None:
    script = parse_script("ms m p meta master-max=2 notify=true", "text")
    assert [str(each.code) for each in script.reports] == ["STORED_AS"]
    (made,) = assemble(script.statements).configuration.resources.values()
    pairs = (("promoted-max", "2"), ("notify", "true"), ("promotable", "true"))
    assert made == Clone("m", "p", meta=(AttributeSet("m-meta_attributes", pairs),))


def test_bundle() -> None:
    text = (
        'bundle b description="x" podman image=i:1 replicas=2 promoted-max=1 options="-v /a" '
        "network ip-range-start=10.0.0.1 add-host=no port-mapping port=80 port-mapping id=own range=1-2 "
        "storage storage-mapping target-dir=/t source-dir=/s meta target-role=Started primitive p"
    )
    assert read(text).resources["b"] == Bundle(
        id="b",
        engine="podman",
        image="i:1",
        primitive="p",
        replicas=2,
        promoted_max=1,
        options="-v /a",
        network=BundleNetwork(
            "10.0.0.1",
            adds_host=False,
            ports=(PortMapping("b-port-mapping", port="80"), PortMapping("own", port_range="1-2")),
        ),
        storage=(StorageMapping("b-storage-mapping", "/t", "/s"),),
        meta=(AttributeSet("b-meta_attributes", (("target-role", "Started"),)),),
        description="x",
    )


def test_nodes_have_ids_and_types() -> None:
    assert read("node 1: a\nnode $id=12 b:remote $score=-5").nodes == {
        "a": NodeEntry("a", id="1"),
        "b": NodeEntry("b", is_remote=True, score=-5, id="12"),
    }


# -- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rule 5: #uname eq n1", Rule("l-rule", (AttributeExpression("#uname", "eq", "n1"),), score=5)),
        ("rule x ne 1", Rule("l-rule", (AttributeExpression("x", "ne", "1"),), score=INFINITY)),
        ("rule : defined x", Rule("l-rule", (AttributeExpression("x", "defined"),))),
        ("rule x: defined x", Rule("l-rule", (AttributeExpression("x", "defined"),), score_attribute="x")),
        ("rule role=master 5: ()", Rule("l-rule", score=5, role="Promoted")),
        (
            "rule $id=own 5: a number:GTE 2 OR not_defined a",
            Rule("own", (AttributeExpression("a", "gte", "2", type="number"), AttributeExpression("a", "not_defined")),
                 is_any=True, score=5),
        ),
        (
            'rule 5: a eq meta{x} and "defined" eq "meta{x}"',
            Rule("l-rule", (AttributeExpression("a", "eq", "x", "meta"),
                            AttributeExpression("defined", "eq", "meta{x}")), score=5),
        ),
        (
            "rule 5: ( a eq 1 or b eq 2 ) and c eq 3",
            Rule("l-rule", (
                Rule("l-rule-rule", (AttributeExpression("a", "eq", "1"), AttributeExpression("b", "eq", "2")),
                     is_any=True),
                AttributeExpression("c", "eq", "3"),
            ), score=5),
        ),
        ("rule 5: date lt 2030-01-01", Rule("l-rule", (DateExpression("lt", end="2030-01-01"),), score=5)),
        (
            "rule 5: date in start=2030-01-01 hours=5",
            Rule("l-rule", (DateExpression("in_range", "2030-01-01", duration=(("hours", "5"),)),), score=5),
        ),
        (
            "rule 5: date spec hours=9-17 yearsdays=1-",
            Rule("l-rule", (DateExpression("date_spec", spec=(("hours", "9-17"), ("yeardays", "1-"))),), score=5),
        ),
    ],
)  # fmt: skip
def test_rules(text: str, expected: Rule) -> None:
    assert rule(text) == expected


def test_blocks_have_rules() -> None:
    (defaults,) = read("op_defaults $id=x 3: rule op_expression name=monitor timeout=5s").operation_defaults
    condition = OperationExpression("monitor")
    assert defaults == AttributeSet("x", (("timeout", "5s"),), 3, Rule("x-rule", (condition,), score=INFINITY))
    (block,) = read("primitive p Dummy params rule rsc_expression class=ocf a=1").resources["p"].parameters
    assert (block.pairs, block.rule and block.rule.conditions) == ((("a", "1"),), (ResourceExpression("ocf"),))


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("location l a rule 5: a eq 1 and b eq 2 or c eq 3", "BAD_VALUE", 40),
        ("location l a rule 5: date around 2030", "EXPECTED", 27),
        ("location l a rule 5: date spec hours=many", "BAD_VALUE", 32),
        ("location l a rule 5: a is 1", "EXPECTED", 24),
        ("location l a rule 5: ( a eq 1", "EXPECTED", 29),
        ("location l a rule", "EXPECTED", 14),
        ("location l /web 5: n", "BAD_VALUE", 12),
        ("primitive p Dummy rule a eq 1 rule b eq 2", "UNEXPECTED", 31),
        ("colocation c inf: ( ) a", "BAD_VALUE", 21),
        ("colocation c inf: ( a b", "EXPECTED", 23),
        ("colocation c inf: a ) b", "UNEXPECTED", 21),
        ("order o ( a b require-all=perhaps ) c", "BAD_VALUE", 15),
        ("order o { a colour=red } c", "UNEXPECTED", 13),
        ("rsc_ticket t paris a", "EXPECTED", 14),
        ("rsc_ticket t paris: a loss-policy=explode", "BAD_VALUE", 23),
        ("tag t", "EXPECTED", 5),
        ("fencing_topology n1:", "EXPECTED", 18),
        ("bundle b rocket image=x", "EXPECTED", 10),
        ("bundle b docker image=x replicas=many", "BAD_VALUE", 25),
        ("bundle b docker", "EXPECTED", 10),
        ("xml <primitive", "SYNTAX", 1),
        ("xml <banana/>", "UNEXPECTED", 1),
        ("primitive p Dummy meta $id-ref=nothing", "UNKNOWN_OBJECT", 1),
        ("primitive p Dummy params @nothing", "UNKNOWN_OBJECT", 1),
    ],
)
def test_a_wrong_statement_is_refused_with_code_and_column(text: str, code: str, column: int) -> None:
    assert report_lines("# first line\n" + text) == [(code, 2, column)]


# -- constraints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("location l /web.*/ 5: n", Location("l", node="n", score=5, pattern="web.*")),
        ("location l a role=Promoted resource-discovery=never -inf: n",
         Location("l", "a", "n", -INFINITY, role="Promoted", discovery="never")),
        ("location l {a b sequential=no} 5: n",
         Location("l", node="n", score=5, sets=(ResourceSet("l-0", ("a", "b"), is_sequential=False),))),
        ("colocation c 5: a (b c) d:master",
         Colocation("c", 5, sets=(ResourceSet("c-0", ("a",)), ResourceSet("c-1", ("b", "c"), is_sequential=False),
                                  ResourceSet("c-2", ("d",), role="Promoted")))),
        ("order o Serialize: [ a b ] c:promote symmetrical=no",
         Ordering("o", kind=OrderingKind.SERIALIZE, is_symmetrical=False,
                  sets=(ResourceSet("o-0", ("a", "b"), is_sequential=False, require_all=False),
                        ResourceSet("o-1", ("c",), action="promote")))),
        ("order o { a b sequential=true score=5 $id=own } { c kind=Optional }",
         Ordering("o", sets=(ResourceSet("own", ("a", "b"), is_sequential=True, score=5),
                             ResourceSet("o-1", ("c",), kind="Optional")))),
        ("colocation c inf: a b influence=no lifetime date lt 2030-01-31 or date gt 2040",
         Colocation("c", INFINITY, "a", "b", influence=False, lifetime=(
             Rule("c-rule", (DateExpression("lt", end="2030-01-31"), DateExpression("gt", "2040")), is_any=True),))),
        ("order o a b c lifetime $id=x () LIFETIME date lt 2030",
         Ordering("o", sets=(ResourceSet("o-0", ("a", "b", "c")),), lifetime=(
             Rule("x"), Rule("o-rule", (DateExpression("lt", end="2030"),))))),
        ("order o 'lifetime' b", Ordering("o", "lifetime", "b")),
        ("colocation c 5: (a lifetime) b",
         Colocation("c", 5, sets=(ResourceSet("c-0", ("a", "lifetime"), is_sequential=False),
                                  ResourceSet("c-1", ("b",))))),
        ("rsc_ticket t paris: a:Promoted loss-policy=fence", TicketConstraint("t", "paris", "a", "Promoted", "fence")),
        ("rsc_ticket t paris: a b", TicketConstraint("t", "paris", sets=(ResourceSet("t-0", ("a", "b")),))),
    ],
)  # fmt: skip
def test_constraints(text: str, expected: object) -> None:
    assert constraint(text) == expected


def test_tags() -> None:
    assert read("tag t: a b\ntag u c").tags == {"t": Tag("t", ("a", "b")), "u": Tag("u", ("c",))}


# -- fencing topology -------------------------------------------------------------------------------------------------


def test_levels_are_counted_from_one_and_replace_those_of_the_same_target() -> None:
    base = read("fencing_topology n1: f1 f2,f3 attr:rack=4 5:f4")
    assert base.fencing_levels == (
        FencingLevel("fencing", 1, ("f1",), target="n1"),
        FencingLevel("fencing-2", 2, ("f2", "f3"), target="n1"),
        FencingLevel("fencing-3", 5, ("f4",), target_attribute="rack", target_value="4"),
    )
    after = read("fencing_topology n1: f9 pattern:gpu.* f9", base)
    assert [(level.target or level.target_pattern or level.target_attribute, level.devices) for level in
            after.fencing_levels] == [("rack", ("f4",)), ("n1", ("f9",)), ("gpu.*", ("f9",))]  # fmt: skip
    assert len({level.id for level in after.fencing_levels}) == 3


def test_levels_without_a_target_are_for_every_node() -> None:
    script = parse_script("fencing_topology f1\nnode n2", "text")
    made = assemble(script.statements, members=("n1",)).configuration
    assert [(level.target, level.devices) for level in made.fencing_levels] == [("n1", ("f1",)), ("n2", ("f1",))]
    assert report_lines("fencing_topology f1") == [("MISSING_KEY", 1, 1)]


# -- references -------------------------------------------------------------------------------------------------------


def test_what_is_referred_to_is_put_in() -> None:
    made = read(
        "primitive a Dummy params $p-state:state=/x meta $id=shared 3: priority=1 \\\n"
        " operations $id=ops op monitor interval=5s\n"
        "primitive b Dummy params @p-state @p-state:other meta $id-ref=shared operations $id-ref=ops\n"
        "primitive c Dummy operations $id-ref=a meta $id-ref=a\n"
        "location la a rule 5: #uname eq n1\nlocation lb b rule $id-ref=la"
    )
    a, b, c = (made.resources[name] for name in "abc")
    assert isinstance(a, Primitive)
    assert isinstance(b, Primitive)
    assert isinstance(c, Primitive)
    assert b.parameters[0].pairs == (("state", "/x"), ("other", "/x"))
    assert b.meta == a.meta == c.meta
    assert b.operations == a.operations == c.operations
    la, lb = made.constraints["la"], made.constraints["lb"]
    assert isinstance(la, Location)
    assert lb == replace(la, id="lb", resource="b")


def test_a_shell_may_have_split_the_words() -> None:
    script = parse_words(["xml", '<rsc_order id="o" first="a" then="b" kind="Optional"/>'])
    made = assemble(script.statements).configuration
    assert made.constraints == {"o": Ordering("o", "a", "b", OrderingKind.OPTIONAL)}


def test_a_node_that_is_named_again_is_added_to() -> None:
    made = read("node 2: n1 attributes rack=4\nnode n1 attributes zone=a\nnode n1")
    (node,) = made.nodes.values()
    assert (node.id, dict(effective(node.attributes))) == ("2", {"rack": "4", "zone": "a"})
    assert report_lines("node 2: n1\nnode 3: n1") == [("DUPLICATE_ID", 2, 9)]


def test_an_operation_that_is_said_to_be_performed_says_so_again() -> None:
    text = "primitive p Dummy op monitor interval=5s enabled=yes op start enabled=false interval=0"
    made = read(text)
    assert "interval=5s enabled=yes" in show(made)
    assert "enabled=false" in show(made)
    assert read(show(made)) == made
    xml = write_configuration(made)
    assert 'enabled="yes"' in xml
    assert read_configuration(xml, "cib.xml").configuration == made
