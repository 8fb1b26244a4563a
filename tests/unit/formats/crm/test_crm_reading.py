"""Which statements of the crm language are read, and which are refused with which code at which place."""

import pytest

from haclusterd.formats.crm.syntax import Mode, assemble, parse_script, parse_words, show
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
from haclusterd.model.scores import INFINITY
from haclusterd.reports.codes import Code, Severity

DUMMY = AgentReference("ocf", "heartbeat", "Dummy")


def read(text: str, **options: object) -> Configuration:
    script = parse_script(text, "text", **options)
    assert script.reports == ()
    made = assemble(script.statements)
    assert made.reports == ()
    return made.configuration


def primitive(text: str) -> Primitive:
    (made,) = read(text).resources.values()
    assert isinstance(made, Primitive)
    return made


def faults(text: str) -> list[tuple[str, int, int]]:
    """Return code, line and column of every report, of reading and of assembling."""
    script = parse_script(text, "text")
    reports = (*script.reports, *assemble(script.statements).reports)
    assert all(report.place and report.place.file == "text" for report in reports)
    return [(str(r.code), r.place.line, r.place.column) for r in reports if r.place]


# -- lines and tokens -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a=b", "b"),
        ("a=", ""),
        ('a=""', ""),
        ('a="b c"', "b c"),
        ("a='b \"c\\'", 'b "c\\'),
        (r'a="b \" \\ \n"', 'b " \\ \\n'),
        (r"a=b\ c", "b c"),
        ("a=b'c d'e", "bc de"),
        ("a=b=c", "b=c"),
        ("a=ï", "ï"),
        ("a=#x", "#x"),
        ("a=(b)[c]{d}", "(b)[c]{d}"),
    ],
)
def test_values(written: str, value: str) -> None:
    assert primitive(f"primitive p Dummy {written}").parameters == (
        AttributeSet("p-instance_attributes", (("a", value),)),
    )


def test_continued_lines_are_joined_without_their_indentation() -> None:
    text = "primitive \\\n   p \\\n\t  Dummy a=b\\\n  c \\   \n# between\n  op monitor \\\n interval=5s\n"
    made = primitive(text)
    assert made.parameters[0].pairs == (("a", "bc"),)
    assert [operation.interval_ms for operation in made.operations] == [5000]


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_closed_quote_before_a_continued_lines_end_ends_the_word(quote: str) -> None:
    lines = ('primitive p Dummy params a="x y"', '  op monitor interval="5s"', "  meta b=1")
    made = primitive("\\\n".join(lines).replace('"', quote))
    assert made.parameters[0].pairs == (("a", "x y"),)
    assert [operation.interval_ms for operation in made.operations] == [5000]
    assert made.meta[0].pairs == (("b", "1"),)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('a="\\\n  x,\\\n  y"', "x,y"),
        ("a='x'\"y\\\n  z\"", "xyz"),
        ('a=x\\"\\\n  y', 'x"y'),
    ],
    ids=["an opening quote", "a quote inside", "no quote but the sign"],
)
def test_what_is_not_closed_goes_on_in_the_next_line(written: str, value: str) -> None:
    assert primitive(f"primitive p Dummy {written}").parameters[0].pairs == (("a", value),)


def test_comments_stand_above_their_statement() -> None:
    script = parse_script("# one\n\n  # two\nnode a\n# three\nnode b \\\n# four\n a=b\n# five", "text")
    assert [statement.comments for statement in script.statements] == [("# one", "# two"), ("# three", "# four")]


def test_carriage_returns_are_spaces() -> None:
    assert list(read("node a\r\nnode b \\\r\n  x=y\r\n").nodes) == ["a", "b"]


def test_places_in_continued_lines() -> None:
    assert faults('node a\nprimitive p Dummy \\\n   a=1 \\\n\tmeta "b=1" b=2 c') == [
        ("DUPLICATE_NAME", 4, 13),
        ("LEFT_OUT", 4, 17),
    ]


@pytest.mark.parametrize(
    ("statement", "column", "meant"),
    [
        ("primitive p Dummy parms fake=1", 19, "params"),
        ("primitive p Dummy params fake=1 mta target-role=Stopped", 33, "meta"),
        ("primitive p Dummy oop monitor=10s", 19, "op"),
        ("node a utilisation cpu=3", 8, "utilization"),
    ],
)
def test_a_misspelled_section_word_is_refused(statement: str, column: int, meant: str) -> None:
    script = parse_script(statement, "text")
    assert [(str(each.code), each.severity) for each in script.reports] == [("UNEXPECTED", Severity.ERROR)]
    assert faults(statement) == [("UNEXPECTED", 1, column)]
    assert script.reports[0].remedy.startswith(f"did you mean {meant}?")
    assert faults('node a utilisation="" cpu=3') == []


def test_a_pair_that_is_given_twice_with_the_same_value_is_a_warning() -> None:
    script = parse_script("primitive p Dummy fake=1 fake=1", "text")
    assert [(str(each.code), each.severity) for each in script.reports] == [("DUPLICATE_NAME", Severity.WARNING)]
    assert len(script.statements) == 1


# -- objects ----------------------------------------------------------------------------------------------------------


def test_node() -> None:
    text = 'node $id=a a:member description="left one" site=left utilization $id=u 3: cpu=4'
    sets = (AttributeSet("a-instance_attributes", (("site", "left"),)),)
    entry = NodeEntry("a", sets, (AttributeSet("u", (("cpu", "4"),), 3),), "left one")
    assert read(text) == Configuration(nodes={"a": entry})


def test_operations_get_the_ids_that_crmsh_gives() -> None:
    text = "primitive q ocf:pacemaker:Dummy op start op stop interval=0 op monitor interval=60s " \
           "op monitor interval=20 op monitor interval=90s op notify interval=0s"  # fmt: skip
    ids = [operation.id for operation in primitive(text).operations]
    assert ids == ["q-start-0", "q-stop-0", "q-monitor-60s", "q-monitor-20", "q-monitor-90s", "q-notify-0s"]
    assert "$id" not in show(read(text))
    assert "op notify interval=0s" in show(read(text))


def test_primitive_in_full() -> None:
    text = """\
Primitive web ocf:x:http-service description="the site" port=80 \\
    META target-role=Started meta 5: priority=1 \\
    params $id=more inf: host=h \\
    op monitor interval=10s timeout=500ms role=slave OCF_CHECK_LEVEL=10 op_meta requires=nothing \\
    op monitor interval=1m enabled=no on-fail=block op_params 2: depth=1 \\
    Op start $id=own timeout=1h start-delay=5 requires=quorum \\
    op stop
"""
    assert primitive(text) == Primitive(
        id="web",
        agent=AgentReference("ocf", "x", "http-service"),
        parameters=(
            AttributeSet("web-instance_attributes", (("port", "80"),)),
            AttributeSet("more", (("host", "h"),), INFINITY),
        ),
        meta=(
            AttributeSet("web-meta_attributes", (("target-role", "Started"),)),
            AttributeSet("web-meta_attributes-2", (("priority", "1"),), 5),
        ),
        operations=(
            Operation(
                "web-monitor-10s",
                "monitor",
                10_000,
                500,
                "Unpromoted",
                parameters=(AttributeSet("web-monitor-10s-instance_attributes", (("OCF_CHECK_LEVEL", "10"),)),),
                meta=(AttributeSet("web-monitor-10s-meta_attributes", (("requires", "nothing"),)),),
            ),
            Operation(
                "web-monitor-1m",
                "monitor",
                60_000,
                on_fail="block",
                is_enabled=False,
                parameters=(AttributeSet("web-monitor-1m-instance_attributes", (("depth", "1"),), 2),),
                spelled=(("interval", "1m"),),
            ),
            Operation("own", "start", 0, 3_600_000, start_delay_ms=5000, requires="quorum",
                      spelled=(("start-delay", "5"),)),
            Operation("web-stop-0", "stop"),
        ),
        description="the site",
    )


@pytest.mark.parametrize(
    ("written", "agent"),
    [
        ("Dummy", DUMMY),
        ("ocf:Dummy", DUMMY),
        ("OCF:heartbeat:Dummy", DUMMY),
        ("late", AgentReference("ocf", "pacemaker", "late")),
        ("odd", AgentReference("ocf", "acme", "odd")),
        ("systemd:vllm@1.service", AgentReference("systemd", None, "vllm@1.service")),
        ("stonith:external/ssh", AgentReference("stonith", None, "external/ssh")),
    ],
)
def test_agents(written: str, agent: AgentReference) -> None:
    known = [
        AgentReference("ocf", "zeta", "late"),
        AgentReference("ocf", "pacemaker", "late"),
        AgentReference("ocf", "beta", "odd"),
        AgentReference("ocf", "acme", "odd"),
    ]
    (made,) = read(f"primitive p {written}", known_agents=known).primitives()
    assert made.agent == agent


def test_group() -> None:
    (group,) = read("group g a b description=d x=1 meta y=2").resources.values()
    blocks = (
        (AttributeSet("g-instance_attributes", (("x", "1"),)),),
        (AttributeSet("g-meta_attributes", (("y", "2"),)),),
    )
    assert group == Group("g", ("a", "b"), *blocks, "d")


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ("100:", 100),
        ("+10:", 10),
        ("-INF:", -INFINITY),
        ("Infinity:", INFINITY),
        ("advisory:", 0),
        ("-9999999:", -INFINITY),
    ],
)
def test_location(score: str, value: int) -> None:
    assert read(f"location l r {score} n.1").constraints == {"l": Location("l", "r", "n.1", value)}


def test_colocation() -> None:
    text = "collocation c inf: a:Started influence=no b:Master node-attribute=rack"
    expected = Colocation("c", INFINITY, "a", "b", "Started", "Promoted", "rack", influence=False)
    assert read(text).constraints == {"c": expected}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a b", Ordering("o", "a", "b")),
        ("optional: a b", Ordering("o", "a", "b", OrderingKind.OPTIONAL)),
        ("0: a b", Ordering("o", "a", "b", OrderingKind.OPTIONAL)),
        ("inf: a b", Ordering("o", "a", "b", stated=("kind",))),
        ("Mandatory: a:start b", Ordering("o", "a", "b", stated=("kind", "first-action"))),
        ("Serialize: a b require-all=0", Ordering("o", "a", "b", OrderingKind.SERIALIZE, require_all=False)),
        ("a:Stop b:start", Ordering("o", "a", "b", first_action="stop", then_action="start")),
        ("symmetrical=off a b", Ordering("o", "a", "b", is_symmetrical=False)),
    ],
)  # fmt: skip
def test_order(words: str, expected: Ordering) -> None:
    assert read(f"order o {words}").constraints == {"o": expected}


def test_properties_and_defaults_merge() -> None:
    text = """\
property stonith-enabled=false a=1
property $id=cib-bootstrap-options a=2 b=3
property extra: c=4
property $id=extra 7: d=5
rsc_defaults resource-stickiness=1
op_defaults $id=slow timeout=60s
"""
    made = read(text)
    assert made.properties == (
        AttributeSet("cib-bootstrap-options", (("stonith-enabled", "false"), ("a", "2"), ("b", "3"))),
        AttributeSet("extra", (("c", "4"), ("d", "5")), 7),
    )
    assert made.resource_defaults == (AttributeSet("rsc-options", (("resource-stickiness", "1"),)),)
    assert made.operation_defaults == (AttributeSet("slow", (("timeout", "60s"),)),)


def test_monitor_is_added_to_a_primitive_that_may_come_later() -> None:
    text = "monitor p:Started 11s:5s\nmonitor p 12s\nprimitive p Dummy op monitor interval=10s"
    assert [(o.id, o.interval_ms, o.timeout_ms, o.role) for o in primitive(text).operations] == [
        ("p-monitor-10s", 10_000, None, None),
        ("p-monitor-11s", 11_000, 5_000, "Started"),
        ("p-monitor-12s", 12_000, None, None),
    ]


@pytest.mark.parametrize("added", ["monitor p 10s", "monitor p:Started 10s:5s", "monitor p 10000ms"])
def test_a_second_monitor_of_the_same_interval_is_refused_as_in_crmsh(added: str) -> None:
    (found,) = assemble(parse_script(f"{added}\nprimitive p Dummy op monitor interval=10s", "text").statements).reports
    assert (found.code, found.parameters["id"]) == (Code.EXISTS, "monitor of p with interval 10s")


def test_generated_ids_keep_off_given_ones() -> None:
    made = primitive("primitive p Dummy a=1 params $id=p-instance_attributes b=2")
    assert [block.id for block in made.parameters] == ["p-instance_attributes-2", "p-instance_attributes"]


def test_quoted_words_are_never_keywords() -> None:
    assert read('group g "op" "meta" meta a=1').resources["g"].members == ("op", "meta")


def test_words_from_a_shell() -> None:
    script = parse_words(["property", "a=b c", "d=\\"])
    assert script.reports == ()
    assert assemble(script.statements).configuration.properties[0].pairs == (("a", "b c"), ("d", "\\"))
    (report,) = parse_words(["location", "l", "r", "100"]).reports
    assert (str(report.code), str(report.place)) == ("EXPECTED", "command line:1:14")


# -- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("primitiv p Dummy", "UNKNOWN_KEYWORD", 1),
        ("primitive", "EXPECTED", 1),
        ("primitive p", "EXPECTED", 11),
        ("primitive 9p Dummy", "BAD_ID", 11),
        ('primitive "a b" Dummy', "BAD_ID", 11),
        ("primitive p heartbeat:Dummy", "BAD_VALUE", 13),
        ("primitive p ocf:../../x:Dummy", "BAD_VALUE", 13),
        ("primitive p stonith:/bin/sh", "BAD_VALUE", 13),
        ('primitive p Dummy a="b', "UNCLOSED_QUOTE", 21),
        ("primitive p Dummy 'a=b", "UNCLOSED_QUOTE", 19),
        ("primitive p Dummy =b", "BAD_VALUE", 19),
        ("primitive p Dummy (a\tb", "UNEXPECTED", 19),
        ("primitive p Dummy a=\x01", "BAD_CHARACTER", 19),
        ("primitive p Dummy op", "EXPECTED", 19),
        ("primitive p Dummy op interval=1s", "EXPECTED", 22),
        ("primitive p Dummy op monitor interval=soon", "BAD_VALUE", 30),
        ("primitive p Dummy op monitor timeout=1fortnight", "BAD_VALUE", 30),
        ("primitive p Dummy op monitor role=Chief", "BAD_VALUE", 30),
        ("primitive p Dummy op monitor enabled=perhaps", "BAD_VALUE", 30),
        ("primitive p Dummy op monitor timeout=1 timeout=2", "DUPLICATE_NAME", 40),
        ("primitive p Dummy attributes a=1", "UNEXPECTED", 19),
        ("primitive p Dummy params $id=9 a=1", "BAD_ID", 26),
        ("group g", "EXPECTED", 7),
        ("group g a (b)", "BAD_ID", 11),
        ("group g a op monitor", "UNEXPECTED", 11),
        ("location l a", "EXPECTED", 12),
        ("location l a 100:", "EXPECTED", 14),
        ("location l a many: n", "BAD_VALUE", 14),
        ("location l a 100: /n", "BAD_ID", 19),
        ("location l a 100: n m", "UNEXPECTED", 21),
        ("location l a 100: n a=b", "UNEXPECTED", 21),
        ("colocation c a b", "EXPECTED", 14),
        ("colocation c inf: a", "EXPECTED", 19),
        ("colocation c inf: a b:Chief", "BAD_VALUE", 21),
        ("colocation c inf: a b influenced=1", "UNEXPECTED", 23),
        ("colocation c inf: a b influence=perhaps", "BAD_VALUE", 23),
        ("order o Sometimes: a b", "BAD_VALUE", 9),
        ("order o a:launch b", "BAD_VALUE", 9),
        ("order o a", "EXPECTED", 9),
        ("property", "EXPECTED", 1),
        ("property x: params a=1", "UNEXPECTED", 13),
        ("node n1:weird", "BAD_VALUE", 6),
        ("node a/b", "BAD_ID", 6),
        ("monitor p", "EXPECTED", 9),
        ("monitor nothere 10s", "UNKNOWN_RESOURCE", 9),
        ("monitor p 10s 20s", "UNEXPECTED", 15),
        ("monitor p:Chief 10s", "BAD_VALUE", 9),
    ],
)
def test_a_wrong_statement_is_refused_with_code_and_column(text: str, code: str, column: int) -> None:
    assert faults("# first line\n" + text) == [(code, 2, column)]


@pytest.mark.parametrize(
    ("text", "construct", "column"),
    [
        ("schema pacemaker-3.9", "a schema", 1),
        ("node n:ping", "a ping node", 6),
        ("property $id-ref=x", "$id-ref of a whole section", 10),
    ],
)  # fmt: skip
def test_what_is_not_supported_yet_is_refused_by_name(text: str, construct: str, column: int) -> None:
    (report,) = parse_script("# first line\n" + text, "text").reports
    assert (str(report.code), str(report.place)) == ("NOT_YET", f"text:2:{column}")
    assert report.parameters == {"construct": construct}


def test_all_faults_are_reported_at_once_and_good_statements_do_not_hide_them() -> None:
    text = "node a\nnode b:x\nprimitive p Dummy op monitor interval=x timeout=y\nschema c\nlocation l p 5: a\nnode '"
    expected = [
        ("BAD_VALUE", 2, 6),
        ("BAD_VALUE", 3, 30),
        ("BAD_VALUE", 3, 41),
        ("NOT_YET", 4, 1),
        ("UNCLOSED_QUOTE", 6, 6),
    ]
    assert faults(text) == expected


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("primitiv p Dummy", "did you mean primitive?"),
        ("colocation c inf: a b influenc=1", "did you mean influence?"),
        ("meta priority=1", "it belongs to the statement before: end the line before with a backslash"),
        ("op monitor interval=10s", "it belongs to the statement before: end the line before with a backslash"),
        (
            "primitive p Dummy params \\\ngroup",
            'write group="" for an empty one; if a statement begins there, take the backslash from the end of the line '
            "before",
        ),
        ("colocation c x: a b", "write a number, inf or -inf"),
        ("primitive 9p Dummy", "start with a letter or _, continue with letters, digits, '.', '-' and '_'"),
    ],
)
def test_remedies(text: str, remedy: str) -> None:
    (report,) = parse_script(text, "text").reports
    assert report.remedy == remedy


# -- assembling -------------------------------------------------------------------------------------------------------

BASE = "primitive p Dummy\nprimitive q Dummy\nlocation l p 5: a\nproperty a=1"


def test_adding_what_exists_is_refused() -> None:
    script = parse_script("primitive p Stateful\nnode a\nlocation l q 5: a\nproperty a=2", "text")
    made = assemble(script.statements, base=read(BASE))
    assert [(str(r.code), str(r.place), dict(r.parameters)) for r in made.reports] == [
        ("EXISTS", "text:1:11", {"kind": "resource", "id": "p"}),
        ("EXISTS", "text:3:10", {"kind": "constraint", "id": "l"}),
    ]


def test_updating_replaces_in_place_and_keeps_the_rest() -> None:
    script = parse_script("primitive p Stateful\nproperty b=2", "text")
    made = assemble(script.statements, base=read(BASE), mode=Mode.UPDATE)
    assert made.reports == ()
    assert list(made.configuration.resources) == ["p", "q"]
    assert made.configuration.resources["p"].agent.type == "Stateful"
    assert made.configuration.properties[0].pairs == (("a", "1"), ("b", "2"))
    assert list(made.configuration.constraints) == ["l"]


@pytest.mark.parametrize("mode", Mode)
def test_defining_twice_in_one_text_is_refused(mode: Mode) -> None:
    script = parse_script("tag a: x\ntag a: y", "text")
    made = assemble(script.statements, mode=mode)
    assert [(str(r.code), str(r.place)) for r in made.reports] == [("DUPLICATE_ID", "text:2:5")]


def test_places_of_parts() -> None:
    script = parse_script("primitive p Dummy a=1 \\\n meta b=2 op monitor interval=5s\nlocation l p 5: n", "t")
    places = assemble(script.statements).places
    assert str(places.find("resource", "p", "params", "a")) == "t:1:19"
    assert str(places.find("resource", "p", "meta", "b")) == "t:2:7"
    assert str(places.find("resource", "p", "meta", "unknown")) == "t:1:11"
    assert str(places.find("resource", "p", "operation", "0", "interval")) == "t:2:22"
    assert str(places.find("constraint", "l", "node")) == "t:3:17"
    assert places.find("resource", "q") is None


def test_a_text_without_end_is_refused() -> None:
    (report,) = parse_script("#" * 4_000_001, "text").reports
    assert str(report.code) == "TOO_LARGE"
