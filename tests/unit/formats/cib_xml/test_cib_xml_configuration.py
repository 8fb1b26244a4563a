"""Reading the configuration of Pacemaker's CIB: what is held, and what is reported with its line."""

import pytest

from haclusterd.model.configuration import (
    AttributeSet,
    Bundle,
    BundleNetwork,
    Clone,
    Colocation,
    FencingLevel,
    Location,
    NodeEntry,
    Ordering,
    OrderingKind,
    PairNote,
    PortMapping,
    Primitive,
    ResourceSet,
    StorageMapping,
    Tag,
    Template,
    TicketConstraint,
    effective,
)
from haclusterd.model.ids import AgentReference, NodeName
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules import (
    AttributeExpression,
    DateExpression,
    OperationExpression,
    ResourceExpression,
    Rule,
)
from tests.written_cibs import MEMBER, cib, pair, read, report_lines

DUMMY = AgentReference("ocf", "pacemaker", "Dummy")
WEB = '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/>'


def test_a_plain_configuration_is_held_without_a_word() -> None:
    made = read(
        cib(
            properties=pair("stonith-enabled", "false"),
            resources='<group id="g"><primitive id="a" class="ocf" provider="heartbeat" type="IPaddr2">'
            f'<instance_attributes id="a-ia" score="5">{pair("ip", "10.0.0.1")}</instance_attributes>'
            '<operations><op id="a-m" name="monitor" interval="10s" timeout="500ms" on-fail="fence"/></operations>'
            '</primitive></group><primitive id="b" class="systemd" type="nginx"/>',
            constraints='<rsc_location id="l" rsc="b" node="n1" score="-INFINITY"/>'
            '<rsc_order id="o" first="g" then="b" score="0"/>',
        )
    )
    assert report_lines(made) == []
    held = made.cib.configuration
    assert list(held.resources) == ["g", "a", "b"]
    assert held.parents() == {"a": "g"}
    first = held.resources["a"]
    assert first.parameters == (AttributeSet("a-ia", (("ip", "10.0.0.1"),), 5),)
    assert [(each.interval_ms, each.timeout_ms, each.on_fail) for each in first.operations] == [(10_000, 500, "fence")]
    assert held.constraints == {
        "l": Location("l", "b", "n1", -1_000_000),
        "o": Ordering("o", "g", "b", OrderingKind.OPTIONAL),
    }
    assert not ClusterProperties(held).boolean("fencing-enabled")


def test_clones_of_all_generations() -> None:
    made = read(
        cib(
            resources=f'<clone id="c"><meta_attributes id="cm">{pair("clone-max", "2")}</meta_attributes>{WEB}</clone>'
            f'<master id="m"><meta_attributes id="mm">{pair("master-max", "2")}{pair("promotable", "false")}'
            '</meta_attributes><group id="g"><primitive id="db" class="lsb" type="db"/></group></master>'
        )
    )
    assert report_lines(made) == []
    held = made.cib.configuration.resources
    assert held["c"] == Clone("c", "web", (), (AttributeSet("cm", (("clone-max", "2"),)),))
    assert held["m"] == Clone("m", "g", (), (AttributeSet("mm", (("promoted-max", "2"), ("promotable", "true"))),))
    assert made.cib.configuration.parents() == {"web": "c", "g": "m", "db": "g"}
    assert list(held) == ["c", "web", "m", "g", "db"]


def test_a_bundle() -> None:
    made = read(
        cib(
            resources='<bundle id="b"><podman image="i:1" replicas="3" masters="1" options="--log" network="host"/>'
            '<network control-port="3122" ip-range-start="10.0.0.9" add-host="false">'
            '<port-mapping id="p" port="80" internal-port="8080"/><port-mapping id="q" range="1-9"/></network>'
            '<storage><storage-mapping id="s" source-dir-root="/a" target-dir="/b" options="rw"/></storage>'
            f"{WEB}</bundle>"
        )
    )
    assert report_lines(made) == []
    assert made.cib.configuration.resources["b"] == Bundle(
        "b",
        "podman",
        "i:1",
        "web",
        replicas=3,
        promoted_max=1,
        options="--log",
        network_mode="host",
        network=BundleNetwork(
            "10.0.0.9", "3122", adds_host=False, ports=(PortMapping("p", "80", "8080"), PortMapping("q", "", "", "1-9"))
        ),
        storage=(StorageMapping("s", "/b", "", "/a", "rw"),),
    )


def test_templates_and_tags() -> None:
    made = read(
        cib(
            resources='<primitive id="web" template="t"/>'
            '<template id="t" class="ocf" provider="pacemaker" type="Dummy">'
            f'<meta_attributes id="m">{pair("priority", "1")}</meta_attributes></template>',
            more='<tags><tag id="all"><obj_ref id="web"/><obj_ref id="n1"/></tag></tags>',
            constraints='<rsc_location id="l" rsc="all" node="n1"/><rsc_ticket id="k" rsc="t" ticket="T"/>',
        )
    )
    assert report_lines(made) == []
    held = made.cib.configuration
    assert held.templates == {"t": Template("t", DUMMY, meta=(AttributeSet("m", (("priority", "1"),)),))}
    assert held.resources == {"web": Primitive("web", DUMMY, template="t")}
    assert held.tags == {"all": Tag("all", ("web", "n1"))}


def test_locations_of_all_kinds() -> None:
    made = read(
        cib(
            constraints='<rsc_location id="a" rsc="web" role="Master" resource-discovery="never" node="n1" '
            'score="-INFINITY"/>'
            '<rsc_location id="b" rsc-pattern="^w(.*)"><rule id="r" score-attribute="p-%1">'
            '<expression id="e" attribute="#uname" operation="eq" value="n1"/></rule></rsc_location>'
            '<rsc_location id="c" node="n2" score="5"><resource_set id="s" role="Slave" score="7">'
            '<resource_ref id="web"/></resource_set></rsc_location>'
            '<rsc_location id="d" rsc="web"><rule id-ref="r"/><rule id="q" score="1"/></rsc_location>'
        )
    )
    assert report_lines(made) == []
    rule = Rule("r", (AttributeExpression("#uname", "eq", "n1"),), score_attribute="p-%1")
    assert made.cib.configuration.constraints == {
        "a": Location("a", "web", "n1", -1_000_000, role="Promoted", discovery="never"),
        "b": Location("b", pattern="^w(.*)", rules=(rule,)),
        "c": Location("c", node="n2", score=5, sets=(ResourceSet("s", ("web",), role="Unpromoted", score=7),)),
        "d": Location("d", "web", rules=(rule, Rule("q", score=1))),
    }


def test_sets_in_the_other_constraints() -> None:
    made = read(
        cib(
            constraints='<rsc_colocation id="c" score="9"><resource_set id="s1" sequential="false" role="Master">'
            '<resource_ref id="web"/></resource_set></rsc_colocation>'
            '<rsc_order id="o" kind="serialize"><resource_set id="s2" require-all="0" action="promote" '
            'ordering="listed">'
            '<resource_ref id="web"/></resource_set><resource_set id-ref="s1"/></rsc_order>'
            '<rsc_ticket id="t" ticket="T" loss-policy="fence"><resource_set id="s3" role="Started">'
            '<resource_ref id="web"/></resource_set></rsc_ticket>'
        )
    )
    assert report_lines(made) == []
    first = ResourceSet("s1", ("web",), is_sequential=False, role="Promoted")
    second = ResourceSet("s2", ("web",), require_all=False, action="promote", ordering="listed")
    assert made.cib.configuration.constraints == {
        "c": Colocation("c", 9, sets=(first,)),
        "o": Ordering("o", kind=OrderingKind.SERIALIZE, sets=(second, first)),
        "t": TicketConstraint("t", "T", loss_policy="fence", sets=(ResourceSet("s3", ("web",), role="Started"),)),
    }


def test_rules_of_all_kinds() -> None:
    made = read(
        cib(
            more='<rsc_defaults><meta_attributes id="d" score="2"><rule id="r" boolean-op="or">'
            '<rule id="i"><expression id="e" attribute="a" operation="lt" type="number" value="1.5" '
            'value-source="param"/></rule>'
            '<date_expression id="x" start="2026-01-01"><duration id="u" months="1"/></date_expression>'
            '<date_expression id="y" operation="date_spec"><date_spec id="z" hours="9-16" weekdays="1-5"/>'
            '</date_expression><rsc_expression id="v" class="ocf" type="Dummy"/>'
            f'<op_expression id="w" name="monitor" interval="10s"/></rule>{pair("priority", "1")}'
            "</meta_attributes></rsc_defaults>"
        )
    )
    assert report_lines(made) == []
    rule = Rule(
        "r",
        (
            Rule("i", (AttributeExpression("a", "lt", "1.5", "param", "number"),)),
            DateExpression("in_range", "2026-01-01", None, (("months", "1"),)),
            DateExpression("date_spec", spec=(("hours", "9-16"), ("weekdays", "1-5"))),
            ResourceExpression("ocf", None, "Dummy"),
            OperationExpression("monitor", "10s"),
        ),
        is_any=True,
    )
    assert made.cib.configuration.resource_defaults == (AttributeSet("d", (("priority", "1"),), 2, rule),)


def test_nodes_and_fencing_levels() -> None:
    made = read(
        cib(
            nodes='<node id="1" uname="n1" score="-5"/><node id="r" type="remote" uname="r"/>'
            '<node id="p" type="ping" uname="gateway"/>',
            more='<fencing-topology><fencing-level id="f" index="2" target="n1" devices="a, b"/>'
            '<fencing-level id="g" index="1" target-attribute="rack" target-value="1" devices="c"/>'
            '<fencing-level id="h" index="1" target-pattern="n.*" devices="c"/></fencing-topology>',
        )
    )
    assert report_lines(made) == []
    held = made.cib.configuration
    assert held.nodes == {
        "n1": NodeEntry("n1", score=-5, id="1"),
        "r": NodeEntry("r", is_remote=True),
        "gateway": NodeEntry("gateway", score=-1_000_000, id="p"),
    }
    assert list(made.cib.members) == ["n1", "gateway"]
    assert held.fencing_levels == (
        FencingLevel("f", 2, ("a", "b"), target="n1"),
        FencingLevel("g", 1, ("c",), target_attribute="rack", target_value="1"),
        FencingLevel("h", 1, ("c",), target_pattern="n.*"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cib(resources='<clone id="c"/>'), "error cib.xml:5: <clone id>: a <clone> contains one primitive or one"),
        (cib(resources='\n<bundle id="b"/>'), "error cib.xml:6: <bundle>: <docker> or"),
        (cib(resources='<primitive id="w" template="t"/>'), "error cib.xml:5: there is no object t"),
        (cib(resources='<cluster id="w"/>'), "error cib.xml:5: <cluster id='w'> is not supported yet"),
        (cib(constraints='<rsc_location id="l" rsc="web"/>'), "error cib.xml:6: <rsc_location>: node is missing"),
        (cib(constraints='<rsc_location id="l" rsc="web"><rule id-ref="x"/></rsc_location>'),
         "error cib.xml:6: there is no object x"),
        (cib(constraints='<rsc_order id="o" first="web" then="web" then-action="jump"/>'),
         "error cib.xml:6: <rsc_order then-action>: 'jump' is not one of: start, stop, promote, demote"),
        (cib(constraints='<rsc_ticket id="t" rsc="web" ticket="T" loss-policy="x"/>'),
         "error cib.xml:6: <rsc_ticket loss-policy>: 'x' is not one of: stop, demote, freeze, fence"),
        (cib(constraints='<rsc_ticket id="t" rsc="gone" ticket="T"/>'),
         "warning cib.xml:6: constraint t: there is no resource gone"),
        (cib(constraints='<rsc_location id="l" rsc-pattern="(" node="n1"/>'),
         "error cib.xml:6: <rsc_location rsc-pattern>: '(' is no regular expression: a ( is not closed"),
        (cib(constraints='<rsc_advice id="t"/>'), "error cib.xml:6: <rsc_advice> is not supported yet"),
        (cib(more='<alerts><alert id="a"/></alerts>'), "error cib.xml:7: <alert>: path is missing"),
        (cib(more='<alerts><alert id="a" path="/p"><select/></alert></alerts>'),
         "warning cib.xml:7: left out: an empty <select>: nodes, fencing and resources count, as without it"),
        (cib(more='<alerts><alert id="a" path="/p"><recipient id="r" value="x" colour="red"/></alert></alerts>'),
         "error cib.xml:7: <recipient>: attribute colour is not supported yet"),
        (cib(more='<acls><acl_role id="a"><acl_permission id="p" kind="grant" xpath="/cib"/></acl_role></acls>'),
         "error cib.xml:7: <acl_permission kind>: 'grant' is not one of: read, write, deny"),
        (cib(more='<acls><acl_target id="a"><role/></acl_target></acls>'),
         "error cib.xml:7: <role>: id is missing"),
        (cib(more="<novelty><x/></novelty>"), "error cib.xml:7: <novelty> is not supported yet"),
        (cib(more='<fencing-topology><fencing-level id="f" index="10" devices="a" target="n1"/></fencing-topology>'),
         "warning cib.xml:7: left out: <fencing-level index=10>: Pacemaker ignores it too"),
        (cib(more='<tags><tag id="t" description="d"><obj_ref id="web"/></tag></tags>'),
         "warning cib.xml:7: left out: <tag description>: only resources have a description here"),
        (cib(constraints='<rsc_location id="l" rsc="web"><rule id="r"><date_expression id="d" operation="date_spec">'
             '<date_spec id="s" hours="1,3" weekdays="1-5"/></date_expression></rule></rsc_location>'),
         "warning cib.xml:6: left out: <date_spec hours>: '1,3' is no number or range of numbers, and"),
        (cib(resources='<primitive id="web" class="ocf" provider="p" type="T"><operations><op id="o" name="start" '
             'interval="0" timeout="INFINITY"/></operations></primitive>'),
         "warning cib.xml:5: <op timeout>: not a duration: 'INFINITY' (write it like 30s, 500ms, 2min); its default"),
        (cib(nodes='<node id="1" uname="n1" colour="red"/>'), "error cib.xml:4: <node>: attribute colour is not"),
        (cib(nodes='<node id="1" uname="n1" type="quantum"/>'), "error cib.xml:4: a node of type quantum is not"),
        (cib(root='validate-with="pacemaker-9.0"'), "warning cib.xml:1: <cib validate-with>: pacemaker-9.0 is not"),
        (cib(resources='<bundle id="b"><docker image="x" replicas="1000000"/></bundle>'),
         "error cib.xml:5: <docker replicas>: 1000000 is more than 128"),
    ],
)  # fmt: skip
def test_what_cannot_be_held_is_reported_with_its_line(text: str, expected: str) -> None:
    messages = report_lines(read(text))
    assert len(messages) == 1
    assert messages[0].startswith(expected)


def rule(inside: str) -> str:
    return cib(constraints=f'<rsc_location id="l" rsc="web">{inside}</rsc_location>')


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (
            '<rule id="r"><expression id="e" attribute="a" operation="is" value="1"/></rule>',
            "<expression operation>: 'is'",
        ),
        ('<rule id="r"><expression id="e" attribute="a" operation="eq"/></rule>', "<expression operation>: eq needs a"),
        ('<rule id="r"><expression id="e" operation="defined"/></rule>', "<expression>: attribute is missing"),
        ('<rule id="r"><rule id-ref="gone"/></rule>', "there is no object gone"),
        ('<rule id="r"><rule id-ref="r"/></rule>', "<rule id>: rules are nested more than 16 deep"),
        ('<rule id="r" role="King"/>', "<rule role>: 'King' is not one of"),
        ('<rule id="r" boolean-op="xor"/>', "<rule boolean-op>: 'xor' is not one of: and, or"),
        ('<rule id="r"><weather id="w"/></rule>', "<weather> in <rule> is not supported yet"),
        (
            '<rule id="r"><date_expression id="d"><duration id="u" years="1e9"/></date_expression></rule>',
            "<duration years>: '1e9' is no number or range of numbers",
        ),
    ],
)
def test_a_rule_that_cannot_be_read_takes_its_constraint_with_it(inside: str, expected: str) -> None:
    made = read(rule(inside))
    (message,) = report_lines(made)
    assert message.startswith(f"error cib.xml:6: {expected}")
    assert made.cib.configuration.constraints == {}


def test_a_lifetime_is_a_condition_of_the_rule() -> None:
    now = '<rule id="i"><date_expression id="d" operation="lt" end="2026-01-01"/></rule>'
    made = read(
        cib(
            constraints=f'<rsc_location id="l" rsc="web" node="n1" score="5"><lifetime>{now}</lifetime></rsc_location>',
        )
    )
    assert report_lines(made) == []
    at_node = Rule("l-rule", (AttributeExpression("#uname", "eq", "n1"),), score=5)
    until = Rule("i", (DateExpression("lt", None, "2026-01-01"),))
    limited = Rule("l-rule-lifetime", (at_node, Rule("l-rule-lifetime-any", (until,), is_any=True)), score=5)
    assert made.cib.configuration.constraints == {"l": Location("l", "web", rules=(limited,))}


AT_N2 = '<expression id="e" attribute="#uname" operation="eq" value="n2"/>'
UNTIL = '<date_expression id="d" operation="lt" end="2026-01-01"/>'


@pytest.mark.parametrize(("operation", "is_kept"), [("or", True), ("and", False)])
def test_only_dates_count_in_a_lifetime(operation: str, *, is_kept: bool) -> None:
    rules = f'<rule id="i" score="0" boolean-op="{operation}">{AT_N2}{UNTIL}</rule>'
    text = f'<rsc_location id="l" rsc="web" node="n1" score="5"><lifetime>{rules}</lifetime></rsc_location>'
    made = read(cib(constraints=text))
    (message,) = report_lines(made)
    assert message.startswith("warning cib.xml:6: left out: <lifetime> of l: only dates count in it")
    assert list(made.cib.configuration.constraints) == (["l"] if is_kept else [])


@pytest.mark.parametrize("kind", ["order", "colocation"])
def test_colocations_and_orders_have_lifetimes(kind: str) -> None:
    rules = f'<rule id="i" score="0" boolean-op="or">{AT_N2}{UNTIL}</rule><rule id="j" score="-5">{UNTIL}</rule>'
    ends = {"order": 'first="web" then="db"', "colocation": 'rsc="web" with-rsc="db"'}[kind]
    text = f'<rsc_{kind} id="o" {ends}><lifetime>{rules}</lifetime></rsc_{kind}>'
    made = read(cib(resources=WEB + WEB.replace("web", "db"), constraints=text))
    assert report_lines(made) == []
    until = DateExpression("lt", None, "2026-01-01")
    (found,) = made.cib.configuration.constraints.values()
    assert isinstance(found, Colocation | Ordering)
    assert found.lifetime == (
        Rule("i", (AttributeExpression("#uname", "eq", "n2"), until), is_any=True), Rule("j", (until,)),
    )  # fmt: skip


def test_a_lifetime_may_refer_to_a_rule_that_has_a_score() -> None:
    text = (
        f'<rsc_location id="l" rsc="web"><rule id="r" score="7">{UNTIL}</rule></rsc_location>'
        '<rsc_order id="o" first="web" then="db"><lifetime><rule id-ref="r"/></lifetime></rsc_order>'
    )
    made = read(cib(resources=WEB + WEB.replace("web", "db"), constraints=text))
    assert report_lines(made) == []
    until = (DateExpression("lt", None, "2026-01-01"),)
    location, order = made.cib.configuration.constraints.values()
    assert location == Location("l", "web", rules=(Rule("r", until, score=7),))
    assert order == Ordering("o", "web", "db", lifetime=(Rule("o-rule", until),))


OLD_RESOURCE = (
    '<primitive id="web" class="stonith" type="x"><instance_attributes id="ia">'
    f"{pair('pcmk_reboot_cmd', 'off')}</instance_attributes><operations>"
    f'<op id="m" name="monitor" interval="5"><meta_attributes id="ma">{pair("timeout", "9s")}'
    '</meta_attributes></op><op id="s" name="start" interval="0" requires="quorum"/></operations></primitive>'
)


def test_older_releases_are_upgraded() -> None:
    properties = pair("default-resource-stickiness", "7") + pair("default-action-timeout", "8")
    properties += pair("stonith_action", "poweroff") + pair("no-quorum-policy", "suicide")
    made = read(
        cib(properties=properties, resources=OLD_RESOURCE, root='validate-with="pacemaker-2.10" have-quorum="1"')
    )
    assert report_lines(made) == []
    configuration = made.cib.configuration
    assert configuration.resource_defaults[0].get("resource-stickiness") == "7"
    assert configuration.operation_defaults[0].get("timeout") == "8"
    assert ClusterProperties(configuration).text("fencing-action") == "off"
    assert ClusterProperties(configuration).text("no-quorum-policy") == "fence"
    (device,) = configuration.primitives()
    assert device.operations[0].timeout_ms == 9000
    assert device.parameters[0].pairs == (("pcmk_reboot_action", "off"),)
    assert device.meta[0].pairs == (("requires", "quorum"),)


def test_newer_releases_are_not_taken_for_older_ones() -> None:
    properties = pair("default-resource-stickiness", "7") + pair("stonith_action", "off")
    made = read(cib(properties=properties, resources=OLD_RESOURCE, root='validate-with="pacemaker-3.0"'))
    configuration = made.cib.configuration
    assert configuration.resource_defaults == ()
    assert configuration.properties[0].pairs == (("default-resource-stickiness", "7"), ("stonith_action", "off"))
    (device,) = configuration.primitives()
    assert device.meta == ()
    assert device.operations[1].requires == "quorum"


def test_a_reference_is_read_as_what_it_refers_to() -> None:
    made = read(
        cib(
            resources='<primitive id="a" class="lsb" type="x"><meta_attributes id="m">'
            f"{pair('priority', '3')}</meta_attributes></primitive>"
            '<primitive id="b" class="lsb" type="x"><meta_attributes id-ref="m"/></primitive>'
            '<primitive id="c" class="lsb" type="x"><meta_attributes id-ref="gone"/></primitive>',
        )
    )
    resources = made.cib.configuration.resources
    assert resources["b"].meta == resources["a"].meta
    assert report_lines(made) == ["error cib.xml:5: there is no object gone"]


def test_a_block_may_be_referred_to_from_anywhere_in_the_configuration() -> None:
    operations = '<operations id="o"><op id="m" name="monitor" interval="9s"/></operations>'
    made = read(
        cib(
            resources='<primitive id="a" class="lsb" type="x"><operations id-ref="o"/></primitive>'
            f'<primitive id="b" class="lsb" type="x">{operations}<instance_attributes id="i">'
            '<nvpair id-ref="p-ip" name="address"/></instance_attributes></primitive>'
            '<primitive id="c" class="lsb" type="x"><instance_attributes id="j">'
            f"{pair('ip', '10.0.0.1')}</instance_attributes></primitive>"
        )
    )
    assert report_lines(made) == []
    first, second, _ = made.cib.configuration.primitives()
    assert first.operations == second.operations
    note = PairNote("address", "p-ip", is_reference=True)
    assert second.parameters == (AttributeSet("i", (("address", "10.0.0.1"),), notes=(note,)),)


def entry(identifier: int, attribute: str) -> str:
    return (
        f'<node id="{identifier}" uname="n1"><instance_attributes id="a-{attribute}">{pair(attribute, "1")}'
        "</instance_attributes></node>"
    )


@pytest.mark.parametrize(
    ("nodes", "attributes", "message"),
    [
        (entry(1, "one") + entry(1, "two"), {"one": "1", "two": "1"}, "n1 is defined twice"),
        (entry(1, "one") + entry(3, "two"), {"one": "1"},
         "left out: the entry of node n1 with the id 3: that with the id 1 counts"),
        (entry(3, "two") + entry(1, "one"), {"one": "1"},
         "left out: the entry of node n1 with the id 3: that with the id 1 counts"),
    ],
    ids=["the same id", "another id", "another id before"],
)  # fmt: skip
def test_of_a_node_that_is_defined_twice_counts_what_the_status_knows(
    nodes: str, attributes: dict[str, str], message: str
) -> None:
    reading = read(cib(nodes=nodes, status=f'<node_state id="1" uname="n1" {MEMBER}/>'))
    assert report_lines(reading) == [f"warning cib.xml:4: {message}"]
    assert effective(reading.cib.configuration.nodes[NodeName("n1")].attributes) == attributes
