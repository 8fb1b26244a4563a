"""CIBs of Pacemaker as texts, for tests."""

from haclusterd.formats.cib_xml.document import CibReading, read_cib

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


def report_lines(reading: CibReading) -> list[str]:
    return [f"{item.severity} {item.place}: {item.message}" for item in reading.reports]


def pair(name: str, value: str) -> str:
    return f'<nvpair id="p-{name}" name="{name}" value="{value}"/>'


MEMBER = 'in_ccm="true" crmd="online" join="member" expected="member"'
RUNNING = (
    '<lrm id="2"><lrm_resources><lrm_resource id="web" class="ocf" provider="pacemaker" type="Dummy">'
    '<lrm_rsc_op id="web_last_0" operation="start" interval="0" call-id="3" rc-code="0" op-status="0" '
    f'transition-key="4:1:0:u" op-digest="{NOTHING}"/></lrm_resource></lrm_resources></lrm>'
)

FENCING = pair("fencing-enabled", "true")
NO_FENCING = pair("fencing-enabled", "false")

EVERYTHING = cib(
    properties=pair("stonith-enabled", "true")
    + pair("no-quorum-policy", "freeze")
    + pair("placement-strategy", "balanced"),
    nodes='<node id="1" uname="n1"><instance_attributes id="n1-a"><nvpair id="n1-rack" name="rack" value="1"/>'
    '</instance_attributes><utilization id="n1-u"><nvpair id="n1-cpu" name="cpu" value="8"/></utilization></node>'
    '<node id="2" uname="n2"/><node id="r1" uname="r1" type="remote"/>',
    resources='<template id="t" class="ocf" provider="pacemaker" type="Dummy"><operations>'
    '<op id="t-m" name="monitor" interval="10s" timeout="20s"/></operations></template>'
    '<primitive id="fence" class="stonith" type="fence_x"/>'
    '<primitive id="r1" class="ocf" provider="pacemaker" type="remote"/>'
    '<primitive id="vm" class="ocf" provider="heartbeat" type="VirtualDomain"><meta_attributes id="vm-m">'
    '<nvpair id="vm-g" name="remote-node" value="guest"/><nvpair id="vm-l" name="allow-migrate" value="true"/>'
    '</meta_attributes><utilization id="vm-u"><nvpair id="vm-cpu" name="cpu" value="2"/></utilization></primitive>'
    '<group id="g"><primitive id="a" template="t"/><primitive id="b" class="systemd" type="x"/></group>'
    '<clone id="c"><meta_attributes id="c-m"><nvpair id="c-i" name="interleave" value="true"/></meta_attributes>'
    '<primitive id="d" class="ocf" provider="pacemaker" type="Dummy"/></clone>'
    '<master id="m"><meta_attributes id="m-m"><nvpair id="m-x" name="master-max" value="1"/>'
    '<nvpair id="m-n" name="notify" value="true"/></meta_attributes>'
    '<primitive id="db" class="ocf" provider="pacemaker" type="Stateful"><operations id="db-o">'
    '<op id="db-m" name="monitor" interval="5s" role="Master"/></operations></primitive></master>'
    '<bundle id="bu"><podman image="i" replicas="2" promoted-max="1"/><network control-port="3121" '
    'ip-range-start="10.0.0.9"/><primitive id="in" class="ocf" provider="pacemaker" type="Stateful"/></bundle>'
    '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"/>',
    constraints='<rsc_location id="l1" rsc="g" node="n1" score="INFINITY"/>'
    '<rsc_location id="l2" rsc-pattern="w(.*)"><rule id="l2-r" score-attribute="rack" boolean-op="or">'
    '<expression id="l2-e" attribute="#uname" operation="eq" value="n2"/>'
    '<date_expression id="l2-d" operation="date_spec"><date_spec id="l2-s" hours="9-17"/></date_expression></rule>'
    '</rsc_location><rsc_location id="l3" rsc="m" role="Master" node="n2" score="50"/>'
    '<rsc_colocation id="c1" rsc="g" with-rsc="m" with-rsc-role="Master" score="INFINITY"/>'
    '<rsc_colocation id="c2" score="-5"><resource_set id="c2-s"><resource_ref id="web"/><resource_ref id="b"/>'
    '<resource_ref id="vm"/></resource_set></rsc_colocation>'
    '<rsc_order id="o1" first="m" first-action="promote" then="g" then-action="start"/>'
    '<rsc_order id="o2" kind="Serialize"><resource_set id="o2-s" sequential="false" require-all="false">'
    '<resource_ref id="web"/><resource_ref id="vm"/></resource_set><resource_set id="o2-t"><resource_ref id="c"/>'
    '</resource_set></rsc_order><rsc_ticket id="k" rsc="m" rsc-role="Master" ticket="T" loss-policy="demote"/>'
    '<rsc_location id="l4" rsc="all" node="n1" score="-1" resource-discovery="exclusive"/>',
    more='<tags><tag id="all"><obj_ref id="web"/><obj_ref id="g"/></tag></tags><fencing-topology>'
    '<fencing-level id="f" index="1" target="n1" devices="fence"/></fencing-topology><rsc_defaults>'
    '<meta_attributes id="rd"><nvpair id="rd-s" name="resource-stickiness" value="10"/></meta_attributes>'
    "</rsc_defaults>"
    '<op_defaults><meta_attributes id="od"><rule id="od-r"><op_expression id="od-e" name="monitor"/></rule>'
    '<nvpair id="od-t" name="timeout" value="30s"/></meta_attributes></op_defaults>',
    status='<tickets><ticket_state id="T" granted="true" last-granted="1700000000"/></tickets>'
    f'<node_state id="1" uname="n1" {MEMBER}><transient_attributes id="1"><instance_attributes id="s1">'
    '<nvpair id="s1-p" name="master-db" value="10"/><nvpair id="s1-f" name="fail-count-a#monitor_10000" value="2"/>'
    f'</instance_attributes></transient_attributes></node_state><node_state id="2" uname="n2" {MEMBER}>{RUNNING}'
    "</node_state>",
    root='have-quorum="1" dc-uuid="1" validate-with="pacemaker-3.9"',
)
"""A CIB with at least one of each noun."""
