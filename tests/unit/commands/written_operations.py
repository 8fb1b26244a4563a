"""Pacemaker's CIBs of the resource web: its records on numbered nodes, and what a simulation of them prints."""

from haclusterd.model.json_value import Json
from tests.written_cibs import MEMBER, NO_FENCING, NOTHING, cib

NOW = 1_700_000_000_000
FENCE = '<primitive id="power" class="stonith" type="fence_x"/>'
WEB = (
    '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"><operations>'
    '<op id="m" name="monitor" interval="10s" timeout="5s"/></operations></primitive>'
)


def record(id_: str, operation: str, call: int, *, rc: int = 0, expected: int = 0, interval: int = 0) -> str:
    digest = NOTHING if not interval else "4811cef7f7f94e3a35a70be7916cb2fd"
    return (
        f'<lrm_rsc_op id="{id_}" operation="{operation}" interval="{interval}" call-id="{call}" rc-code="{rc}" '
        f'op-status="0" transition-key="4:1:{expected}:u" op-digest="{digest}"/>'
    )


STARTED = record("web_last_0", "start", 3)
ABSENT = record("web_last_0", "monitor", 3, rc=7, expected=7)


def on(number: int, *records: str, state: str = MEMBER, attributes: str = "") -> str:
    block = f'<transient_attributes id="{number}"><instance_attributes id="t">{attributes}</instance_attributes>'
    return (
        f'<node_state id="{number}" uname="n{number}" {state}>{block}</transient_attributes><lrm id="{number}">'
        f'<lrm_resources><lrm_resource id="web" class="ocf" provider="pacemaker" type="Dummy">{"".join(records)}'
        "</lrm_resource></lrm_resources></lrm></node_state>"
    )


def changes(data: Json) -> list[str]:
    words = ("action", "resource", "node", "op", "from", "to", "blocked")
    return [" ".join(str(entry[word]) for word in words if word in entry) for entry in data["summary"]]


LOST = MEMBER.replace("online", "offline")
CLONED = cib(properties=NO_FENCING, resources=f'{WEB}<clone id="c"/>', status=on(1, ABSENT) + on(2, ABSENT))
