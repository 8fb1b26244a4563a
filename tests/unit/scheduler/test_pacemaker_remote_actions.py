"""What is done on remote and guest nodes and in bundles, and clones' notifications; `crm_simulate` 2.1.5 agrees."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import (
    FENCE,
    FENCE_KNOWN,
    FENCE_RUNS,
    LOST,
    NOW,
    Case,
    actions_of,
    before,
    member,
    missing_orders,
    needless_orders,
    planned,
    ran,
    remote,
)
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import cib, pair, read

REMOTE = 'class="ocf" provider="pacemaker" type="remote"'
PODMAN = 'class="ocf" provider="heartbeat" type="podman"'
NODES = '<node id="1" uname="n1"/><node id="2" uname="n2"/>'
CONNECTION = primitive(
    "r1", '<operations><op id="r1-m" name="monitor" interval="30s"/></operations>', agent="ocf:pacemaker:remote"
)
ON_R1 = '<rsc_location id="l" rsc="a" node="r1" score="100"/>'
NOTHING_THERE = ran("a", "monitor=7")
IN_MAINTENANCE = (
    '<transient_attributes id="r1"><instance_attributes id="s">'
    '<nvpair id="s-m" name="maintenance" value="true"/></instance_attributes></transient_attributes>'
)
MONITOR = '<operations><op id="a-o" name="monitor" interval="10s"/></operations>'
UNHEARD = 'in_ccm="true" crmd="offline" join="member" expected="member"'
STUCK = ran("vm", "stop=1").replace('op-status="0"', 'op-status="4"')

CASES = (
    Case(
        "a remote node whose connection failed is fenced, and what it ran starts on another node",
        cib(
            nodes=NODES,
            resources=CONNECTION + primitive("a") + FENCE,
            constraints=ON_R1,
            status=member(1, ran("r1", "start", "monitor/30000=1", agent=REMOTE), FENCE_KNOWN, NOTHING_THERE)
            + member(2, ran("r1", "monitor=7", agent=REMOTE), FENCE_RUNS, NOTHING_THERE)
            + remote("r1", ran("a", "start")),
        ),
        ("fence reboot@r1", "~stop a@r1", "start a@n2", "stop r1@n1", "start r1@n1", "monitor/30000 r1@n1"),
        ("fence reboot@r1 < start a@n2", "~stop a@r1 < stop r1@n1", "stop r1@n1 < start r1@n1"),
    ),
    Case(
        "when the host of a connection is lost, the remote node goes on, connected to from another node",
        cib(
            nodes=NODES,
            resources=CONNECTION + primitive("a") + FENCE,
            constraints=ON_R1,
            status=member(1, ran("r1", "start", agent=REMOTE), FENCE_KNOWN, state=LOST)
            + member(2, ran("r1", "monitor=7", agent=REMOTE), FENCE_RUNS, NOTHING_THERE)
            + remote("r1", ran("a", "start")),
        ),
        ("fence reboot@n1", "~stop r1@n1", "start r1@n2", "monitor/30000 r1@n2"),
        ("~stop r1@n1 < start r1@n2",),
    ),
    Case(
        "a guest node is fenced by restarting what launches it",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive(
                "vm",
                meta("vm", **{"remote-node": "g1"})
                + '<operations><op id="vm-m" name="monitor" interval="10s"/></operations>',
            )
            + primitive("a"),
            constraints='<rsc_location id="l" rsc="a" node="g1" score="100"/>',
            status=member(1, ran("vm", "start", "monitor/10000=7"), ran("g1", "start", agent=REMOTE), NOTHING_THERE)
            + remote("g1", ran("a", "start")),
        ),
        (
            "~reboot@g1",
            "~stop a@g1",
            "start a@g1",
            "stop vm@n1",
            "start vm@n1",
            "monitor/10000 vm@n1",
            "stop g1@n1",
            "start g1@n1",
            "monitor/30000 g1@n1",
        ),
        (
            "stop g1@n1 < stop vm@n1",
            "stop vm@n1 < ~reboot@g1",
            "~reboot@g1 < start a@g1",
            "start vm@n1 < start g1@n1",
            "start g1@n1 < start a@g1",
        ),
    ),
    Case(
        "a container is started, then connected to; then what runs inside is asked for, and started",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources='<bundle id="b"><podman image="i" replicas="1"/><network control-port="3121"/>'
            f"{primitive('a')}</bundle>",
            status=member(1),
        ),
        (
            "monitor b-podman-0@n1",
            "monitor b-0@n1",
            "~start b@",
            "~running b@",
            "~start b-clone@",
            "~running b-clone@",
            "start b-podman-0@n1",
            "monitor/60000 b-podman-0@n1",
            "start b-0@n1",
            "monitor/30000 b-0@n1",
            "start a@b-0",
        ),
        (
            "monitor b-podman-0@n1 < start b-podman-0@n1",
            "start b-podman-0@n1 < monitor b-0@n1",
            "start b-0@n1 < start a@b-0",
        ),
    ),
    Case(
        "instances are notified that fencing stopped one of them",
        cib(
            nodes=NODES,
            resources='<clone id="c">' + meta("c", notify="true") + primitive("a") + "</clone>" + FENCE,
            status=member(1, ran("a", "start"), FENCE_KNOWN, state=LOST) + member(2, ran("a", "start"), FENCE_RUNS),
        ),
        (
            "fence reboot@n1",
            "~pre_notify_stop c@",
            "notify a@n2",
            "~confirmed-pre_notify_stop c@",
            "~stop c@",
            "~stop a@n1",
            "~stopped c@",
            "~post_notify_stopped c@",
            "notify a@n2",
            "~confirmed-post_notify_stopped c@",
            "~post_notify_stop a@",
            "~notified a@",
        ),
        ("fence reboot@n1 < ~stop a@n1", "~stop a@n1 < ~stopped c@", "fence reboot@n1 < notify a@n2"),
    ),
    Case(
        "a monitor that ends does not begin again with the connection of its node",
        cib(
            nodes=NODES,
            resources=CONNECTION + primitive("a", MONITOR) + FENCE,
            status=member(1, ran("r1", "start", agent=REMOTE), FENCE_KNOWN, state=LOST)
            + member(2, ran("r1", "monitor=7", agent=REMOTE), FENCE_RUNS, NOTHING_THERE)
            + remote("r1", ran("a", "start", "monitor/10000")).replace("<lrm ", f"{IN_MAINTENANCE}<lrm "),
        ),
        ("fence reboot@n1", "~stop r1@n1", "start r1@n2", "monitor/30000 r1@n2", "cancel/10000 a@r1"),
        ("start r1@n2 < cancel/10000 a@r1",),
    ),
    Case(
        "what stops on a remote node stops before its connection migrates",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes=NODES,
            resources=primitive("r1", meta("r1", **{"allow-migrate": "true"}), agent="ocf:pacemaker:remote")
            + primitive("a", meta("a", **{"target-role": "Stopped"})),
            constraints='<rsc_location id="l" rsc="r1" node="n2" score="100"/>',
            status=member(1, ran("r1", "start", agent=REMOTE), NOTHING_THERE)
            + member(2, ran("r1", "monitor=7", agent=REMOTE), NOTHING_THERE)
            + remote("r1", ran("a", "start")),
        ),
        ("stop a@r1", "migrate_to r1@n1", "migrate_from r1@n2", "stop r1@n1", "~start r1@n2"),
        ("stop a@r1 < migrate_to r1@n1",),
    ),
    Case(
        "a monitor on a remote node whose connection ends is not cancelled any more",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=pair("stonith-enabled", "false"),
            resources=CONNECTION + primitive("a", meta("a", maintenance="true")),
            status=member(1, ran("r1", "start", "monitor/30000", agent=REMOTE), NOTHING_THERE, standby="on")
            + remote("r1", ran("a", "start", "monitor/10000")),
        ),
        ("stop r1@n1",),
    ),
)


BUNDLED = (
    Case(
        "what is inside a container stays away from it after too many failures there",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources='<bundle id="b"><podman image="i" replicas="1"/><network control-port="3121"/>'
            f"{primitive('a')}</bundle>",
            status=member(1, ran("b-podman-0", "start", agent=PODMAN), ran("b-0", "start", agent=REMOTE))
            + remote("b-0", NOTHING_THERE).replace(
                "<lrm id",
                '<transient_attributes id="b-0"><instance_attributes id="t">'
                '<nvpair id="t-c" name="fail-count-a#start_0" value="INFINITY"/>'
                "</instance_attributes></transient_attributes><lrm id",
            ),
        ),
        (
            *("~stop b@", "stop b-0@n1", "stop b-podman-0@n1", "~stopped b@"),
            *("~start b@", "start b-podman-0@n1", "start b-0@n1", "~running b@"),
            *("monitor/60000 b-podman-0@n1", "monitor/30000 b-0@n1"),
        ),
    ),
    Case(
        "a guest node is not fenced when what launches it cannot be stopped",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("vm", meta("vm", **{"remote-node": "g1"})) + primitive("a"),
            status=member(1, STUCK, ran("g1", "start", agent=REMOTE), NOTHING_THERE) + remote("g1", ran("a", "start")),
        ),
        ("stop g1@n1",),
    ),
    Case(
        "a container does not stop before it is known where the containers beside it are",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources='<bundle id="b"><podman image="i" replicas="2"/></bundle>',
            status=member(1, ran("b-podman-0", "start", agent=PODMAN)) + member(2),
        ),
        (
            *("monitor b-podman-0@n2", "monitor b-podman-1@n1", "monitor b-podman-1@n2"),
            *("~stop b@", "stop b-podman-0@n1", "~stopped b@"),
            *("~start b@", "start b-podman-0@n1", "start b-podman-1@n2", "~running b@"),
            *("monitor/60000 b-podman-0@n1", "monitor/60000 b-podman-1@n2"),
        ),
        (
            "monitor b-podman-1@n1 < stop b-podman-0@n1",
            "monitor b-podman-1@n2 < stop b-podman-0@n1",
            "monitor b-podman-0@n2 < start b-podman-1@n2",
        ),
    ),
    Case(
        "what ran in a container that was taken away is not configured; the bundle does not wait for its stop",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources='<bundle id="b"><podman image="i" replicas="1"/><network control-port="3121"/>'
            f"{primitive('a')}</bundle>",
            status=member(
                1,
                ran("b-podman-0", "start", agent=PODMAN),
                ran("b-0", "start", agent=REMOTE),
                ran("b-podman-1", "start", agent=PODMAN).replace("<lrm_resource ", '<lrm_resource container="" '),
                ran("b-1", "start", agent=REMOTE).replace("<lrm_resource ", '<lrm_resource container="b-podman-1" '),
            )
            + remote("b-0", ran("a", "start"))
            + remote("b-1", ran("a", "start")),
        ),
        (
            *("stop a@b-1", "stop b-1@n1", "delete b-1@n1", "stop b-podman-1@n1", "delete b-podman-1@n1"),
            *("~stop b@", "~stop b-clone@", "stop a@b-0", "~stopped b-clone@", "stop b-0@n1", "stop b-podman-0@n1"),
            *("~stopped b@", "~start b@", "start b-podman-0@n1", "start b-0@n1", "delete a@b-0"),
            *("~start b-clone@", "start a@b-0", "~running b-clone@", "~running b@"),
            *("monitor/60000 b-podman-0@n1", "monitor/30000 b-0@n1"),
        ),
        ("stop a@b-1 < stop b-1@n1", "stop a@b-1 < delete a@b-0", "start b-0@n1 < delete a@b-0"),
        ("~stop b-clone@ < stop a@b-1", "stop a@b-1 < ~stopped b-clone@"),
    ),
)


OF_PACEMAKER_3 = (
    Case(
        "what asks for the host of its guest node is with what runs on that host",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("vm", meta("vm", **{"remote-node": "g1"}))
            + '<group id="g">'
            + meta("g", **{"resource-stickiness": "100"})
            + primitive("a", meta("a", **{"container-attribute-target": "host"}))
            + primitive("b")
            + "</group>",
            status=member(1, ran("vm", "start"), ran("g1", "start", agent=REMOTE), NOTHING_THERE, ran("b", "start"))
            + remote("g1", ran("a", "start"), ran("b", "monitor=7")),
        ),
        ("monitor/30000 g1@n1",),
    ),
)
"""What 2.1.5 decides otherwise."""


@pytest.mark.parametrize("case", [*CASES, *BUNDLED, *OF_PACEMAKER_3], ids=lambda case: case.name)
def test_actions_and_their_order(case: Case) -> None:
    assert actions_of(case) == sorted(case.actions)
    assert missing_orders(case) == []
    assert needless_orders(case) == []


def test_a_member_carries_out_what_is_done_on_a_remote_node() -> None:
    graph = planned(CASES[1].text)
    connecting = next(action for action in graph.actions.values() if action.name == "start")
    assert connecting.router_node is None
    inside = planned(CASES[2].text)
    started = next(action for action in inside.actions.values() if action.name == "start" and action.node == "g1")
    assert started.router_node == "n1"


def test_a_guest_is_fenced_when_each_copy_of_its_launcher_has_stopped() -> None:
    """Pacemaker waits for one of them, so that what the other copy still runs is started twice."""
    watched = '<operations><op id="vm-m" name="monitor" interval="10s"/></operations>'
    text = cib(
        properties=pair("stonith-enabled", "false"),
        resources=primitive("vm", meta("vm", **{"remote-node": "g1"}) + watched) + primitive("a"),
        status=member(1, ran("vm", "start", "monitor/10000=7"), ran("g1", "start", agent=REMOTE), NOTHING_THERE)
        + member(2, ran("vm", "start", "monitor/10000=1"), ran("g1", "monitor=7", agent=REMOTE), NOTHING_THERE)
        + remote("g1", ran("a", "start")),
    )
    order = before(schedule(read(text).cib, NOW, options=ScheduleOptions(has_quorum=True)).graph)
    assert {("stop vm@n1", "~reboot@g1"), ("stop vm@n2", "~reboot@g1")} <= order


def test_a_guest_that_cannot_be_fenced_is_shown() -> None:
    stuck = next(case for case in BUNDLED if "cannot be stopped" in case.name)
    outcome = registry.run("simulate", {"text": stuck.text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    shown = [each for each in outcome.data["summary"] if each["action"] == "fence"]
    assert shown == [{"action": "fence", "node": "g1", "op": "off", "reason": "guest is unclean", "impossible": True}]


def test_a_promotion_says_what_prevents_it_rather_than_that_its_own_start_is_prevented() -> None:
    text = cib(
        properties=pair("stonith-enabled", "false"),
        nodes='<node id="1" uname="n1"/>',
        resources=primitive("x", meta("x", **{"target-role": "Stopped"}))
        + primitive("vm", meta("vm", **{"remote-node": "g1"}))
        + f'<clone id="c">{meta("c", promotable="true")}{primitive("a", agent="ocf:pacemaker:Stateful")}</clone>',
        constraints='<rsc_order id="o" first="x" then="vm"/><rsc_location id="l" rsc="c" node="n1" score="-INFINITY"/>'
        '<rsc_location id="p" rsc="c" node="g1" role="Promoted" score="10"/>',
        status=member(1, *(ran(each, "monitor=7") for each in ("x", "vm", "a")), ran("g1", "monitor=7", agent=REMOTE))
        + remote("g1", ran("a", "start", "stop")),
    )
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    shown = next(each for each in outcome.data["summary"] if each["action"] == "promote")
    assert shown["blocked"] is True
    assert shown["reason"] == "g1 cannot start"


def blocked(text: str) -> list[str]:
    """Return what the summary calls blocked: what is impossible because of another resource (2.1.5 and 3.0.0)."""
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    return [f"{each['action']} {each['resource']}" for each in outcome.data["summary"] if each.get("blocked")]


@pytest.mark.parametrize(("first", "then"), [("a", "b"), ("b", "a")])
def test_what_waits_for_a_node_that_has_not_answered_needs_no_other_reason(first: str, then: str) -> None:
    pending = member(1).replace('join="member"', 'join="pending"')
    text = cib(
        nodes=NODES,
        resources=primitive("a") + primitive("b") + FENCE,
        constraints=f'<rsc_order id="w" first="{first}" then="{then}"/>',
        status=pending + member(2),
    )
    assert 'join="pending"' in pending
    assert blocked(text) == []


def test_a_container_that_cannot_stop_needs_no_reason_of_its_address() -> None:
    text = cib(
        properties=pair("stonith-enabled", "false") + pair("shutdown-lock", "true"),
        nodes=NODES,
        resources='<bundle id="b"><podman image="i" replicas="2"/><network ip-range-start="10.0.0.1"/></bundle>',
        status=member(1)
        + member(
            2,
            ran("b-ip-10.0.0.2", "start", agent='class="ocf" provider="heartbeat" type="IPaddr2"'),
            ran("b-podman-1", "start", agent=PODMAN),
            state=UNHEARD,
        ),
    )
    assert blocked(text) == []
