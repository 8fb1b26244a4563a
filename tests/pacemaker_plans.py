"""What is planned for small CIBs of Pacemaker, in words."""

from haclusterd.model.graph import GraphAction, TransitionGraph
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.scheduler.model.digests import pacemaker_digest
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.unpacked_cibs import primitive
from tests.written_cibs import MEMBER, NOTHING, read

NOW = WallTime(1_767_268_800_000)
AT = 1_767_268_000
FENCE = primitive("f", agent="stonith:fence_dummy")
LOST = 'in_ccm="false" crmd="offline" join="down" expected="member"'


def record(resource: str, what: str, number: int) -> str:
    """Write one record: `start`, `monitor/10000`, `monitor=7` (a probe that found nothing), `migrate_to>n2`."""
    what, _, target = what.partition(">")
    what, _, found = what.partition("=")
    operation, _, interval = what.partition("/")
    code = found or "0"
    expected = "7" if operation == "monitor" and not interval else "0"
    if operation == "monitor" and interval and code == "8":
        expected = "8"
    name = f"{resource}_{operation}_{interval}" if interval or target else f"{resource}_last_0"
    path = f' migrate_source="n1" migrate_target="{target}"' if target else ""
    digest = pacemaker_digest({"CRM_meta_timeout": "20000"}) if interval else NOTHING
    pending = ' op-status="-1"' if found == "193" else ' op-status="0"'
    return (
        f'<lrm_rsc_op id="{name}" operation_key="{resource}_{operation}_{interval or 0}" operation="{operation}" '
        f'interval="{interval or 0}" call-id="{-1 if found == "193" else number}" rc-code="{code}"{pending} '
        f'transition-key="1:1:{expected}:u" transition-magic="0:{code};1:1:{expected}:u" '
        f'last-rc-change="{AT}" exec-time="1" op-digest="{digest}"{path}/>'
    )


def ran(resource: str, *what: str, agent: str = 'class="ocf" provider="pacemaker" type="Dummy"') -> str:
    records = "".join(record(resource, each, number) for number, each in enumerate(what, start=1))
    return f'<lrm_resource id="{resource}" {agent}>{records}</lrm_resource>'


def remote(name: str, *histories: str) -> str:
    return (
        f'<node_state id="{name}" uname="{name}" remote_node="true" in_ccm="true" node_fenced="0">'
        f'<lrm id="{name}"><lrm_resources>{"".join(histories)}</lrm_resources></lrm></node_state>'
    )


def member(number: int, *histories: str, state: str = MEMBER, **attributes: str) -> str:
    pairs = "".join(f'<nvpair id="s{number}-{key}" name="{key}" value="{value}"/>' for key, value in attributes.items())
    return (
        f'<node_state id="{number}" uname="n{number}" {state}><transient_attributes id="{number}">'
        f'<instance_attributes id="s{number}">{pairs}</instance_attributes></transient_attributes>'
        f'<lrm id="{number}"><lrm_resources>{"".join(histories)}</lrm_resources></lrm></node_state>'
    )


STONITH = 'class="stonith" type="fence_dummy"'
FENCE_RUNS = ran("f", "start", agent=STONITH)
FENCE_KNOWN = ran("f", "monitor=7", agent=STONITH)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    text: str
    actions: tuple[str, ...]
    orders: tuple[str, ...] = ()
    """`A < B`: A is done before B."""
    not_ordered: tuple[str, ...] = ()
    """`A < B`: B need not wait for A."""


def word(action: GraphAction) -> str:
    interval = f"/{action.interval_ms}" if action.interval_ms else ""
    mark = {"pseudo": "~", "fence": "fence ", "cluster": "cluster "}.get(action.kind.value, "")
    return f"{mark}{action.name}{interval} {action.resource or ''}@{action.node or ''}".replace(" @", "@")


def planned(text: str) -> TransitionGraph:
    value = read(text).cib
    options = ScheduleOptions(is_pacemaker_compatible=True, has_quorum='have-quorum="1"' in text)
    return schedule(value, NOW, options=options).graph


def before(graph: TransitionGraph) -> set[tuple[str, str]]:
    above: dict[int, set[int]] = {}
    for number, action in graph.actions.items():
        above[number] = {each for first in action.inputs for each in (first, *above[first])}
    return {(word(graph.actions[first]), word(graph.actions[then])) for then in above for first in above[then]}


def actions_of(case: Case) -> list[str]:
    return sorted(map(word, planned(case.text).actions.values()))


def missing_orders(case: Case) -> list[str]:
    order = before(planned(case.text))
    return [each for each in case.orders if tuple(each.split(" < ")) not in order]


def needless_orders(case: Case) -> list[str]:
    order = before(planned(case.text))
    return [each for each in case.not_ordered if tuple(each.split(" < ")) in order]
