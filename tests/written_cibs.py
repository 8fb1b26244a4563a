"""CIBs of Pacemaker as texts, for tests."""

from haclusterd.formats.cib_xml import CibReading, read_cib

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


MEMBER = 'in_ccm="true" crmd="online" join="member" expected="member"'
RUNNING = (
    '<lrm id="2"><lrm_resources><lrm_resource id="web" class="ocf" provider="pacemaker" type="Dummy">'
    '<lrm_rsc_op id="web_last_0" operation="start" interval="0" call-id="3" rc-code="0" op-status="0" '
    f'transition-key="4:1:0:u" op-digest="{NOTHING}"/></lrm_resource></lrm_resources></lrm>'
)

FENCING = pair("fencing-enabled", "true")
NO_FENCING = pair("fencing-enabled", "false")
