"""Reading Pacemaker's CIB: what is held, what is reported with its line, and what hostile files lead to."""

import pytest

from haclusterd.formats.cib_xml import CibReading, read_cib, write_configuration
from haclusterd.formats.cib_xml_digests import digest
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, Location, Ordering, OrderingKind
from haclusterd.model.history import FailCount
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.properties import ClusterProperties

NOTHING = "f2317cad3d54cec5d7d7aa7d0bf35cf8"
"""Pacemaker's digest of no parameters at all."""


def cib(
    *,
    properties: str = "",
    nodes: str = '<node id="1" uname="n1"/><node id="2" uname="n2"/>',
    resources: str = '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/>',
    constraints: str = "",
    more: str = "",
    status: str = "",
    root: str = 'have-quorum="1"',
) -> str:
    return f"""<cib {root}>
<configuration>
<crm_config><cluster_property_set id="cib-bootstrap-options">{properties}</cluster_property_set></crm_config>
<nodes>{nodes}</nodes>
<resources>{resources}</resources>
<constraints>{constraints}</constraints>
{more}
</configuration>
<status>{status}</status>
</cib>"""


def read(text: str) -> CibReading:
    return read_cib(text, "cib.xml")


def told(reading: CibReading) -> list[str]:
    return [f"{item.severity} {item.place}: {item.message}" for item in reading.reports]


def pair(name: str, value: str) -> str:
    return f'<nvpair id="p-{name}" name="{name}" value="{value}"/>'


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
    assert told(made) == []
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cib(resources='\n<clone id="c">\n<primitive id="x"/></clone>'), "error cib.xml:6: <clone id='c'>"),
        (cib(constraints='<rsc_location id="l" rsc="web"><rule/></rsc_location>'), "error cib.xml:6: <rsc_location> "),
        (cib(constraints='<rsc_ticket id="t" ticket="T"/>'), "error cib.xml:6: <rsc_ticket>"),
        (cib(properties=pair("placement-strategy", "balanced")), "error cib.xml:3: placement-strategy=balanced"),
        (cib(properties=pair("no-quorum-policy", "freeze")), "warning cib.xml:3: no-quorum-policy=freeze"),
        (
            cib(properties=pair("no-quorum-policy", "freeze"), root='have-quorum="0"'),
            "error cib.xml:3: no-quorum-policy=freeze",
        ),
        (cib(more='<alerts><alert id="a" path="/p"/></alerts>'), "warning cib.xml:7: <alerts>"),
        (cib(more="<novelty><x/></novelty>"), "error cib.xml:7: <novelty>"),
        (cib(nodes='<node id="1" uname="n1" type="remote"/>'), "error cib.xml:4: a node of type remote"),
        (cib(nodes='<node id="1" uname="n1" colour="red"/>'), "error cib.xml:4: <node>: attribute colour"),
        (
            cib(resources='<primitive id="w" class="ocf" provider="pacemaker" type="remote"/>'),
            "error cib.xml:5: a Pacemaker Remote connection",
        ),
        (cib(resources='<primitive id="w" template="t"/>'), "error cib.xml:5: a primitive from a template"),
        (cib(status="<tickets><ticket_state/></tickets>"), "error cib.xml:9: <tickets>"),
    ],
)
def test_what_cannot_be_held_is_reported_with_its_line(text: str, expected: str) -> None:
    messages = told(read(text))
    assert len(messages) == 1
    assert messages[0].startswith(expected)
    assert messages[0].endswith("is not supported yet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "error cib.xml:1:1: this is no well-formed XML: no element found"),
        ("<cib>\n<a></b></cib>", "error cib.xml:2:6: this is no well-formed XML: mismatched tag"),
        ("<crm/>", "error cib.xml:1: <crm> is not a <cib>"),
        ("<a>" * 100, "error cib.xml:1: elements are nested more than 64 deep"),
        (
            '<!DOCTYPE cib [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;">]>\n<cib id="&b;"/>',
            "error cib.xml:1: a document type declaration is not allowed: a CIB has none",
        ),
        (
            '<!DOCTYPE cib SYSTEM "file:///etc/passwd"><cib/>',
            "error cib.xml:1: a document type declaration is not allowed: a CIB has none",
        ),
        ("<cib a='&undefined;'/>", "error cib.xml:1:1: this is no well-formed XML: undefined entity"),
        ("<cib a='\ud800'/>", "error None: cib.xml is not Unicode text"),
        (cib(resources='<primitive id="w"/>'), "error cib.xml:5: <primitive>: class is missing"),
        (cib(constraints='<rsc_location id="l" rsc="web" node="n1" score="x"/>'), "error cib.xml:6: <rsc_location s"),
        (cib(constraints='<rsc_order id="o" first="web" then="gone"/>'), "warning cib.xml:6: constraint o: there is"),
        (cib(resources='<primitive id="a" class="lsb" type="x"/>' * 2), "error cib.xml:5: a is defined twice"),
        (cib(status='<node_state id="9" uname="n9"/>'), "warning cib.xml:9: <node_state>: there is no node n9"),
    ],
)
def test_faults_are_told_with_their_place(text: str, expected: str) -> None:
    assert told(read(text))[0].startswith(expected)


def test_a_file_of_many_elements_is_read_in_time_that_grows_with_it() -> None:
    many = "".join(f'<primitive id="r{n}" class="ocf" provider="pacemaker" type="Dummy"/>' for n in range(20_000))
    made = read(cib(resources=many))
    assert told(made) == []
    assert len(made.cib.configuration.resources) == 20_000


def test_older_releases_are_upgraded() -> None:
    made = read(
        cib(
            properties=pair("default-resource-stickiness", "7") + pair("stonith_action", "poweroff"),
            resources='<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"><operations>'
            f'<op id="m" name="monitor" interval="5"><meta_attributes id="ma">{pair("timeout", "9s")}'
            "</meta_attributes></op></operations></primitive>",
        )
    )
    assert told(made) == []
    configuration = made.cib.configuration
    assert configuration.resource_defaults[0].get("resource-stickiness") == "7"
    assert ClusterProperties(configuration).text("fencing-action") == "off"
    assert configuration.resources["web"].operations[0].timeout_ms == 9000


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
    assert told(made) == ["error cib.xml:5: there is no object gone"]


FENCING = pair("fencing-enabled", "true")
NO_FENCING = pair("fencing-enabled", "false")
MEMBER = 'in_ccm="true" crmd="online" join="member" expected="member"'
RUNNING = (
    '<lrm id="2"><lrm_resources><lrm_resource id="web" class="ocf" provider="pacemaker" type="Dummy">'
    '<lrm_rsc_op id="web_last_0" operation="start" interval="0" call-id="3" rc-code="0" op-status="0" '
    f'transition-key="4:1:0:u" op-digest="{NOTHING}"/></lrm_resource></lrm_resources></lrm>'
)


@pytest.mark.parametrize(
    ("properties", "state", "inside", "expected", "detail"),
    [
        (FENCING, MEMBER, "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace('"true"', '"1700000000"'), "", NodeState.ONLINE, ""),
        (FENCING, MEMBER.replace("online", "offline"), "", NodeState.LOST, "peer process is no longer available"),
        (FENCING, MEMBER.replace('"true"', '"false"'), "", NodeState.LOST, "peer is no longer part of the cluster"),
        (FENCING, MEMBER.replace('join="member"', 'join="banned"'), "", NodeState.LOST, "peer failed Pacemaker m"),
        (FENCING, MEMBER.replace('join="member"', 'join="pending"'), "", NodeState.LEFT, ""),
        (FENCING, 'crmd="online" join="member" expected="member"', "", NodeState.LOST, "peer has not been seen"),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', "", NodeState.LEFT, ""),
        (FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', RUNNING, NodeState.LOST, "web is thou"),
        (NO_FENCING, MEMBER, "", NodeState.ONLINE, ""),
        (NO_FENCING, MEMBER.replace("online", "offline"), "", NodeState.LOST, "peer is unexpectedly down"),
        (NO_FENCING, 'in_ccm="false" crmd="offline" join="down" expected="down"', RUNNING, NodeState.LEFT, ""),
    ],
)
def test_the_state_of_a_node(properties: str, state: str, inside: str, expected: NodeState, detail: str) -> None:
    status = f'<node_state id="2" uname="n2" {state}>{inside}</node_state>'
    made = read(cib(properties=properties, status=status)).cib.status.nodes["n2"]
    assert made.state is expected
    assert made.detail.startswith(detail)
    assert bool(made.detail) is bool(detail)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (FENCING, NodeState.LOST),
        (FENCING + pair("startup-fencing", "false"), NodeState.LEFT),
        (NO_FENCING, NodeState.LEFT),
    ],
)
def test_a_node_without_any_state_has_not_been_seen(properties: str, expected: NodeState) -> None:
    assert read(cib(properties=properties)).cib.status.nodes["n1"].state is expected


def test_a_leaving_node_and_its_attributes() -> None:
    attributes = (
        '<transient_attributes id="1"><instance_attributes id="s">'
        + pair("shutdown", "1700000000")
        + pair("standby", "true")
        + pair("fail-count-web#monitor_10000", "INFINITY")
        + pair("last-failure-web#monitor_10000", "1700000001")
        + pair("fail-count-old", "3")
        + "</instance_attributes></transient_attributes>"
    )
    made = read(cib(status=f'<node_state id="1" uname="N1" {MEMBER}>{attributes}</node_state>'))
    status = made.cib.status.nodes["n1"]
    assert status.is_leaving
    assert status.attributes == {"shutdown": "1700000000", "standby": "true"}
    count = FailCount("monitor", 10_000, 1_000_000, 1_700_000_001_000)
    assert status.histories["web"].fail_counts == {"monitor_10000": count}
    assert told(made) == ["warning cib.xml:9: the old attribute fail-count-old is not supported yet"]


def operation(id_: str, more: str, *, rc: int = 0, status: int = 0) -> str:
    return f'<lrm_rsc_op id="{id_}" rc-code="{rc}" op-status="{status}" transition-key="4:1:0:u" {more}/>'


def history(*operations: str, parameters: str = "") -> CibReading:
    resource = f'<primitive id="web" class="ocf" provider="pacemaker" type="Dummy">{parameters}</primitive>'
    inside = "".join(operations)
    return read(
        cib(
            resources=resource,
            status=f'<node_state id="1" uname="n1" {MEMBER}><lrm id="1"><lrm_resources><lrm_resource id="web" '
            f'class="ocf" provider="pacemaker" type="Dummy">{inside}</lrm_resource></lrm_resources></lrm></node_state>',
        )
    )


def test_records_of_operations() -> None:
    made = history(
        operation("web_last_0", f'operation="start" interval="0" call-id="5" op-digest="{NOTHING}"'),
        operation(
            "web_last_failure_0",
            'operation="monitor" interval="10000" call-id="7" last-rc-change="1700000000" exit-reason="why"',
            rc=1,
            status=2,
        ),
        operation("web_stop_0", 'operation="stop" interval="0" call-id="-1"', rc=193, status=-1),
    )
    found = made.cib.status.nodes["n1"].histories["web"]
    assert set(found.records) == {"start_0", "stop_0"}
    assert found.records["stop_0"].call_id == 8
    assert found.records["stop_0"].status is ExecutionStatus.PENDING
    failure = found.last_failure
    assert failure is not None
    assert (failure.exit_code, failure.status, failure.target_exit_code) == (ExitCode.ERROR, "timeout", ExitCode.OK)
    assert (failure.changed_at, failure.exit_reason) == (1_700_000_000_000, "why")
    assert told(made) == []


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('operation="migrate_to" interval="0"', "the record of a live migration is not supported yet"),
        ('operation="start" interval="many"', "<lrm_rsc_op interval>: 'many' is not a whole number"),
        ('operation="start" interval="99999999999999999999"', "<lrm_rsc_op interval>: 99999999999999999999 is out"),
        ('interval="0"', "<lrm_rsc_op>: operation is missing"),
    ],
)
def test_records_that_cannot_be_held(attributes: str, expected: str) -> None:
    messages = [item.message for item in history(operation("x", attributes)).reports]
    assert len(messages) == 1
    assert messages[0].startswith(expected)


@pytest.mark.parametrize(
    ("recorded", "kept"),
    [
        (f'op-digest="{digest({"ip": "10.0.0.1", "passwd": "****"})}"', ""),
        (f'op-digest="{NOTHING}"', NOTHING),
        ("", "not-recorded"),
        (
            f'op-digest="{NOTHING}" op-secure-params=" passwd " op-secure-digest="{digest({"ip": "10.0.0.1"})}"',
            "",
        ),
    ],
    ids=["the same parameters", "other parameters", "no digest", "only private ones differ"],
)
def test_a_digest_is_kept_only_when_it_says_that_parameters_changed(recorded: str, kept: str) -> None:
    block = f'<instance_attributes id="i">{pair("passwd", "****")}{pair("ip", "10.0.0.1")}</instance_attributes>'
    made = history(operation("web_last_0", f'operation="start" interval="0" {recorded}'), parameters=block)
    assert made.cib.status.nodes["n1"].histories["web"].records["start_0"].digest == kept


def test_the_digest_of_nothing_is_pacemakers() -> None:
    assert digest({}) == NOTHING


@pytest.mark.parametrize(
    ("root", "policy", "expected"),
    [
        ('have-quorum="1"', "stop", True),
        ('have-quorum="0"', "stop", False),
        ('have-quorum="false"', "ignore", True),
        ("", "stop", False),
    ],
)
def test_quorum(root: str, policy: str, expected: bool) -> None:
    assert read(cib(root=root, properties=pair("no-quorum-policy", policy))).has_quorum is expected


def test_the_moment_of_the_document() -> None:
    assert read(cib(root='execution-date="1700000000"')).execution_date == 1_700_000_000_000


def test_a_configuration_as_xml() -> None:
    made = read(
        cib(
            properties=pair("maintenance-mode", "true"),
            constraints='<rsc_location id="l" rsc="web" node="n1" score="50"/>',
        )
    )
    assert (
        write_configuration(made.cib.configuration)
        == """\
<cib validate-with="pacemaker-3.0" epoch="0" num_updates="0" admin_epoch="0">
  <configuration>
    <crm_config>
      <cluster_property_set id="cib-bootstrap-options">
        <nvpair id="cib-bootstrap-options-maintenance-mode" name="maintenance-mode" value="true"/>
      </cluster_property_set>
    </crm_config>
    <nodes>
      <node id="n1" uname="n1"/>
      <node id="n2" uname="n2"/>
    </nodes>
    <resources>
      <primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/>
    </resources>
    <constraints>
      <rsc_location id="l" rsc="web" node="n1" score="50"/>
    </constraints>
  </configuration>
  <status/>
</cib>
"""
    )
