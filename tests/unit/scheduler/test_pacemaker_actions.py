"""What is done, and in which order, in small CIBs of Pacemaker; `crm_simulate` 2.1.5 answers the same."""

import pytest

from tests.pacemaker_plans import (
    AT,
    FENCE,
    FENCE_KNOWN,
    FENCE_RUNS,
    LOST,
    Case,
    actions_of,
    member,
    missing_orders,
    needless_orders,
    planned,
    ran,
    word,
)
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NOTHING, cib, pair

STOPPED_MONITOR = '<operations><op id="o" name="monitor" interval="20s" role="Stopped"/></operations>'
OF_B = STOPPED_MONITOR.replace('"o"', '"p"')
MONITOR = '<operations><op id="o" name="monitor" interval="10s"/></operations>'
RESTARTS = f'interval="10000" op-force-restart=" state " op-restart-digest="{"1" * 32}" '

LOCK = f'shutdown-lock="{AT - 600}"'
DOWN = 'in_ccm="false" crmd="offline" join="down" expected="down"'
LOCKED_FOR_5_MINUTES = (
    pair("stonith-enabled", "false") + pair("shutdown-lock", "true") + pair("shutdown-lock-limit", "5min")
)


def kept(resource: str, *what: str) -> str:
    """Write a history of a node that was shut down, whose lock is ten minutes old."""
    return ran(resource, *what).replace("<lrm_resource ", f"<lrm_resource {LOCK} ")


def failed(resource: str) -> str:
    return ran(resource, "start=1").replace("_last_0", "_last_failure_0")


CASES = (
    Case(
        "of what is not configured any more, failures with parameters that nobody knows are forgotten, others are not",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a"),
            status=member(1, ran("a", "start"), failed("b").replace(NOTHING, "0" * 32), failed("d"))
            + member(2, ran("a", "monitor=7")),
        ),
        ("cluster clear_failcount b@n1", "stop b@n1", "stop d@n1"),
    ),
    Case(
        "a monitor that nobody wants on one node is cancelled when the stop on the other one is done",
        cib(
            resources=FENCE + primitive("a"),
            status=member(1, ran("a", "start"), FENCE_RUNS) + member(2, ran("a", "monitor/20000"), FENCE_KNOWN),
        ),
        ("stop a@n1", "stop a@n2", "start a@n2", "cancel/20000 a@n2"),
        ("stop a@n1 < cancel/20000 a@n2", "stop a@n2 < cancel/20000 a@n2"),
    ),
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
    Case(
        "a monitor of what does not run waits for the probe, and not when the resource is left alone",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", STOPPED_MONITOR) + primitive("b", meta("b", **{"is-managed": "false"}) + OF_B),
            constraints='<rsc_location id="l" rsc="a" node="n2" score="5"/>',
            status=member(1) + member(2, ran("a", "start"), ran("b", "start")),
        ),
        ("monitor a@n1", "monitor b@n1", "monitor/20000 a@n1", "monitor/20000 b@n1"),
        ("monitor a@n1 < monitor/20000 a@n1",),
        ("monitor b@n1 < monitor/20000 b@n1",),
    ),
    Case(
        "the operation defaults cannot switch monitors off",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("a", MONITOR) + primitive("b", MONITOR.replace('"o"', '"p"')),
            more='<op_defaults><meta_attributes id="od">'
            + pair("enabled", "false")
            + "</meta_attributes></op_defaults>",
            status=member(1, ran("a", "start", "monitor/10000"), ran("b", "start")),
        ),
        ("monitor/10000 b@n1",),
    ),
    Case(
        "a timeout that cannot be read is the default, not the operation defaults'",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("a", MONITOR.replace('interval="10s"', 'interval="10s" timeout="abc"')),
            more='<op_defaults><meta_attributes id="od">' + pair("timeout", "60s") + "</meta_attributes></op_defaults>",
            status=member(1, ran("a", "start", "monitor/10000")),
        ),
        (),
    ),
    Case(
        "of a number that goes on after its digits these count",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources='<clone id="c">' + meta("c", **{"clone-max": "1.5"}) + primitive("a") + "</clone>",
            status=member(1, ran("a", "monitor=7")) + member(2, ran("a", "monitor=7")),
        ),
        ("~start c@", "start a@n1", "~running c@"),
    ),
    Case(
        "a rule knows a node by the number that the cluster gave it",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a"),
            constraints='<rsc_location id="l" rsc="a"><rule id="r" score="5"><expression id="e" attribute="#id" '
            'operation="eq" value="2" type="number"/></rule></rsc_location>',
            status=member(1, ran("a", "monitor=7")) + member(2, ran("a", "monitor=7")),
        ),
        ("start a@n2",),
    ),
    Case(
        "a probe that finds no agent keeps the resource away, whatever its status says",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources=primitive("a"),
            status=member(1, ran("a", "monitor=5").replace('op-status="0"', 'op-status="8"')),
        ),
        (),
    ),
    Case(
        "a group that is to be apart from itself leaves the nodes that it prefers",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>',
            resources='<group id="g">'
            + meta("g", **{"resource-stickiness": "INFINITY"})
            + primitive("a")
            + primitive("b")
            + "</group>",
            constraints='<rsc_colocation id="c" rsc="g" with-rsc="g" score="-INFINITY"/>'
            '<rsc_location id="l" rsc="g" node="n2" score="INFINITY"/>',
            status=member(1, ran("a", "start"), ran("b", "start"))
            + member(2, ran("a", "monitor=7"), ran("b", "monitor=7"))
            + member(3, ran("a", "monitor=7"), ran("b", "monitor=7")),
        ),
        (
            *("~stop g@", "stop a@n1", "stop b@n1", "~stopped g@"),
            *("~start g@", "start a@n3", "start b@n3", "~running g@"),
        ),
    ),
    Case(
        "a promotable group does without members that cannot be promoted",
        cib(
            properties=pair("stonith-enabled", "false"),
            nodes='<node id="1" uname="n1"/>',
            resources='<clone id="c">'
            + meta("c", promotable="true")
            + '<group id="g">'
            + primitive("b", agent="lsb:x")
            + primitive("a")
            + "</group></clone>",
            status=member(1, ran("a", "monitor=7"), **{"master-a": "10"}),
        ),
        (
            *("~start c@", "~start g:0@", "start a@n1", "~running g:0@", "~running c@"),
            *("~promote c@", "~promote g:0@", "promote a@n1", "~promoted g:0@", "~promoted c@"),
        ),
    ),
    Case(
        "an expired lock of a clone's member is forgotten under the name that it is recorded under",
        cib(
            properties=LOCKED_FOR_5_MINUTES,
            nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>',
            resources=f'<clone id="c"><group id="g">{primitive("a")}{primitive("b")}</group></clone>',
            status=member(1, ran("a", "start"), ran("b", "start"))
            + member(2, kept("a", "stop"), kept("b", "stop"), state=DOWN)
            + member(3, ran("a", "start"), ran("b", "start")),
        ),
        ("cluster lrm_delete a@n2", "cluster lrm_delete b@n2"),
    ),
    Case(
        "an expired lock is forgotten, unless nothing is recorded with it of what is not configured either",
        cib(
            properties=LOCKED_FOR_5_MINUTES,
            resources=primitive("a"),
            status=member(1, ran("a", "start")) + member(2, kept("a"), kept("b", "stop"), kept("d"), state=DOWN),
        ),
        ("cluster lrm_delete a@n2", "cluster lrm_delete b@n2"),
    ),
    Case(
        "what another agent recorded under a clone's name is deleted by each instance that is known by that name",
        cib(
            properties=pair("stonith-enabled", "false"),
            resources=f'<clone id="c">{primitive("a")}</clone>',
            status=member(1, ran("a", "start")) + member(2, ran("a", "monitor=7", agent='class="lsb" type="x"')),
        ),
        ("delete a@n2", "delete a@n2", "~start c@", "start a@n2", "~running c@"),
        ("delete a@n2 < start a@n2",),
    ),
    Case(
        "of another agent's monitors those that are not configured are cancelled",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", MONITOR),
            status=member(1, ran("a", "start", "monitor/10000", "monitor/20000", agent='class="lsb" type="x"')),
        ),
        ("stop a@n1", "cancel/20000 a@n1", "delete a@n1", "start a@n1", "monitor/10000 a@n1"),
        ("stop a@n1 < cancel/20000 a@n1", "stop a@n1 < delete a@n1", "delete a@n1 < start a@n1"),
    ),
    Case(
        "a monitor's parameters restart nothing, whatever its record says of a restart: it is ordered again",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=pair("stonith-enabled", "false"),
            resources=primitive("a", MONITOR),
            status=member(1, ran("a", "start", "monitor/10000").replace('interval="10000" ', RESTARTS)),
        ),
        ("monitor/10000 a@n1",),
    ),
    Case(
        "a member of a group does not start while a later one runs that nobody may stop (3.0.0)",
        cib(
            nodes='<node id="1" uname="n1"/>',
            properties=pair("stonith-enabled", "false"),
            resources=f'<group id="g">{primitive("a")}{primitive("b", meta("b", **{"is-managed": "false"}))}</group>',
            status=member(1, ran("a", "monitor=7"), ran("b", "start")),
        ),
        (),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_actions_and_their_order(case: Case) -> None:
    assert actions_of(case) == sorted(case.actions)
    assert missing_orders(case) == []
    assert needless_orders(case) == []


@pytest.mark.parametrize("found", ["=1", ""])
def test_a_monitor_of_another_role_is_cancelled_also_where_its_failure_has_expired(found: str) -> None:
    watched = '<operations><op id="o" name="monitor" interval="11s" role="Unpromoted"/></operations>'
    text = cib(
        nodes='<node id="1" uname="n1"/>',
        properties=pair("stonith-enabled", "false"),
        resources=primitive("c", watched + meta("c", **{"failure-timeout": "60s"})),
        status=member(1, ran("c", "start", f"monitor/11000{found}")),
    )
    assert [word(each) for each in planned(text).actions.values() if each.name == "cancel"] == ["cancel/11000 c@n1"]
