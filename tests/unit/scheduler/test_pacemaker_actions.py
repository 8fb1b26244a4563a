"""What is done, and in which order, in small CIBs of Pacemaker; `crm_simulate` 2.1.5 answers the same."""

from dataclasses import dataclass

import pytest

from haclusterd.model.graph import GraphAction, TransitionGraph
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.digests import pacemaker_digest
from haclusterd.scheduler.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import MEMBER, NOTHING, cib, pair, read

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


CASES = (
    Case(
        "a resource is migrated live, and started nowhere",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", meta("a", **{"allow-migrate": "true"})),
            constraints='<rsc_location id="l" rsc="a" node="n2" score="5"/>',
            status=member(1, ran("a", "start")) + member(2, ran("a", "monitor=7")),
        ),
        ("migrate_to a@n1", "migrate_from a@n2", "stop a@n1", "~start a@n2"),
        ("migrate_to a@n1 < migrate_from a@n2", "migrate_from a@n2 < stop a@n1", "stop a@n1 < ~start a@n2"),
    ),
    Case(
        "a start of which nothing was heard is ordered again",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("a"),
            status=member(1, ran("a", "start=193")),
        ),
        ("start a@n1",),
    ),
    Case(
        "what must leave stops before the node is left",
        cib(
            resources=FENCE + primitive("a"),
            status=member(1, ran("a", "start"), FENCE_KNOWN, shutdown="1")
            + member(2, FENCE_RUNS, ran("a", "monitor=7")),
            root='have-quorum="1" dc-uuid="2"',
        ),
        ("stop a@n1", "start a@n2", "cluster do_shutdown@n1"),
        ("stop a@n1 < start a@n2", "stop a@n1 < cluster do_shutdown@n1"),
    ),
    Case(
        "a monitor of another role is cancelled before the promotion, and the other one follows it",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources='<clone id="c">'
            + meta("c", promotable="true")
            + primitive(
                "a",
                '<operations><op id="a-s" name="monitor" interval="11s" role="Unpromoted"/>'
                '<op id="a-m" name="monitor" interval="10s" role="Promoted"/></operations>',
                agent="ocf:pacemaker:Stateful",
            )
            + "</clone>",
            status=member(
                1,
                ran("a", "start", "monitor/11000", agent='class="ocf" provider="pacemaker" type="Stateful"'),
                **{"master-a": "10"},
            ),
        ),
        ("~promote c@", "~promoted c@", "cancel/11000 a@n1", "promote a@n1", "monitor/10000 a@n1"),
        ("cancel/11000 a@n1 < promote a@n1", "promote a@n1 < monitor/10000 a@n1"),
    ),
    Case(
        "without quorum what is frozen stays and nothing new starts",
        cib(
            properties=pair("no-quorum-policy", "freeze"),
            resources=FENCE + primitive("a") + primitive("b"),
            constraints='<rsc_location id="l" rsc="a" node="n1" score="5"/>',
            status=member(1, ran("a", "start"), ran("b", "monitor=7"), FENCE_RUNS)
            + member(2, ran("a", "monitor=7"), ran("b", "monitor=7"), FENCE_KNOWN),
            root='have-quorum="0"',
        ),
        (),
    ),
    Case(
        "a live migration that began goes on",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", meta("a", **{"allow-migrate": "true"})),
            constraints='<rsc_location id="l" rsc="a" node="n2" score="5"/>',
            status=member(1, ran("a", "start", "migrate_to>n2")) + member(2, ran("a", "monitor=7")),
        ),
        ("migrate_from a@n2", "stop a@n1", "~start a@n2"),
        ("migrate_from a@n2 < stop a@n1", "stop a@n1 < ~start a@n2"),
    ),
    Case(
        "of several copies only those stop that are not where the resource belongs",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", meta("a", **{"multiple-active": "stop_unexpected"})),
            constraints='<rsc_location id="l" rsc="a" node="n1" score="5"/>',
            status=member(1, ran("a", "start")) + member(2, ran("a", "start")),
        ),
        ("stop a@n2", "~start a@n1"),
        ("stop a@n2 < ~start a@n1",),
    ),
    Case(
        "a resource is probed only where an exclusive constraint says",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a") + primitive("b"),
            constraints='<rsc_location id="l" rsc="a" node="n1" score="0" resource-discovery="exclusive"/>'
            '<rsc_location id="m" rsc="b" node="n2" score="0" resource-discovery="never"/>',
            status=member(1) + member(2),
        ),
        ("monitor a@n1", "monitor b@n1", "start a@n1", "start b@n2"),
        ("monitor a@n1 < start a@n1", "monitor b@n1 < start b@n2"),
    ),
    Case(
        "a removed resource is stopped, and its history deleted",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("b"),
            status=member(1, ran("a", "start"), ran("b", "start")) + member(2, ran("b", "monitor=7")),
        ),
        ("stop a@n1", "delete a@n1"),
        ("stop a@n1 < delete a@n1",),
    ),
    Case(
        "nodes are let in by their fence device before anything of theirs is probed or starts there",
        cib(
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("f", meta("f", provides="unfencing"), agent="stonith:fence_dummy") + primitive("a"),
            status=member(1),
        ),
        ("fence on@n1", "monitor f@n1", "monitor a@n1", "start f@n1", "start a@n1"),
        ("fence on@n1 < monitor f@n1", "fence on@n1 < monitor a@n1", "fence on@n1 < start a@n1"),
    ),
    Case(
        "what ran on a lost node starts after its fencing, and the DC's node is fenced last",
        cib(
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>',
            resources=FENCE + primitive("a"),
            status=member(1, ran("a", "start"), FENCE_KNOWN, state=LOST)
            + member(2, ran("a", "monitor=7"), FENCE_RUNS)
            + member(3, ran("a", "monitor=7"), FENCE_KNOWN, terminate="true"),
            root='have-quorum="1" dc-uuid="3"',
        ),
        ("fence reboot@n1", "fence reboot@n3", "~stop a@n1", "start a@n2"),
        ("fence reboot@n1 < fence reboot@n3", "fence reboot@n1 < start a@n2", "fence reboot@n3 < start a@n2"),
    ),
    Case(
        "while nothing is managed nothing is fenced",
        cib(
            properties=pair("maintenance-mode", "true"),
            resources=FENCE + primitive("a"),
            status=member(1, ran("a", "start"), FENCE_KNOWN, state=LOST) + member(2, ran("a", "monitor=7"), FENCE_RUNS),
        ),
        (),
    ),
    Case(
        "of several monitors with the same interval none runs",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive(
                "a",
                '<operations><op id="o1" name="monitor" interval="10s"/><op id="o2" name="monitor" interval="10s" '
                'role="Promoted"/></operations>',
            ),
            status=member(1, ran("a", "start")),
        ),
        (),
    ),
    Case(
        "a monitor of what does not run is on every node but the resource's",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive(
                "a", '<operations><op id="o" name="monitor" interval="20s" role="Stopped"/></operations>'
            ),
            status=member(1, ran("a", "start")) + member(2, ran("a", "monitor=7")),
        ),
        ("monitor/20000 a@n2",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_actions_and_their_order(case: Case) -> None:
    graph = planned(case.text)
    assert sorted(map(word, graph.actions.values())) == sorted(case.actions)
    order = before(graph)
    assert [each for each in case.orders if tuple(each.split(" < ")) not in order] == []
