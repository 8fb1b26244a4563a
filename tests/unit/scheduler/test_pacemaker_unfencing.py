"""Who is let in by fence devices, and what restarts for it; `crm_simulate` 2.1.5 answers the same."""

import re

import pytest

from haclusterd.commands.planning.recorded_transition import executed
from haclusterd.model.fencing import FenceAction, FenceOutcome, FencingRecord
from haclusterd.model.graph import Plan
from haclusterd.model.ids import FenceKey, NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import (
    FENCE_KNOWN,
    FENCE_RUNS,
    LOST,
    NOW,
    Case,
    actions_of,
    member,
    missing_orders,
    ran,
    record,
    remote,
    word,
)
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NOTHING, cib, pair, read

DEVICE = primitive("f", meta("f", provides="unfencing"), agent="stonith:fence_dummy")
ONE_NODE = '<node id="1" uname="n1"/>'
UNFENCED = {"#node-unfenced": "1767268000"}
BY_F = {**UNFENCED, "#digests-all": f"f:fence_dummy:{NOTHING},"}
RUNS = (FENCE_RUNS, ran("a", "start"))
PODMAN = 'class="ocf" provider="heartbeat" type="podman"'
LET_IN_AGAIN = ("fence on@n1", "stop a@n1", "start a@n1", "stop f@n1", "start f@n1")
IN_ORDER = ("stop a@n1 < fence on@n1", "fence on@n1 < start a@n1", "fence on@n1 < start f@n1", "stop f@n1 < start f@n1")


def with_password(marks: dict[str, str]) -> str:
    secret = '<instance_attributes id="i"><nvpair id="i-p" name="passwd" value="x"/></instance_attributes>'
    device = primitive("f", meta("f", provides="unfencing") + secret, agent="stonith:fence_dummy")
    return cib(nodes=ONE_NODE, resources=device, status=member(1, FENCE_KNOWN, **marks))


def one_node(marks: dict[str, str], resources: str = DEVICE + primitive("a"), properties: str = "") -> str:
    return cib(nodes=ONE_NODE, properties=properties, resources=resources, status=member(1, *RUNS, **marks))


CASES = (
    Case("what runs on a node that was not let in restarts, devices too", one_node({}), LET_IN_AGAIN, IN_ORDER),
    Case("a node that was let in stays as it is", one_node(UNFENCED), ()),
    Case("a node that was let in by the device stays as it is", one_node(BY_F), ()),
    Case(
        "a node that no device has let in is let in",
        one_node({**UNFENCED, "#digests-all": "", "#digests-secure": ""}),
        LET_IN_AGAIN,
        IN_ORDER,
    ),
    Case(
        "a node that another device let in is let in again",
        one_node({**UNFENCED, "#digests-all": f"g:fence_dummy:{NOTHING},"}),
        LET_IN_AGAIN,
        IN_ORDER,
    ),
    Case(
        "a node that the device let in with other parameters is let in again",
        one_node({**UNFENCED, "#digests-all": "f:fence_dummy:0123,"}),
        LET_IN_AGAIN,
        IN_ORDER,
    ),
    Case(
        "a password that was taken out of the file is no change",
        with_password(
            {**UNFENCED, "#digests-all": "f:fence_dummy:0123,", "#digests-secure": f"f:fence_dummy:{NOTHING},"}
        ),
        ("start f@n1",),
    ),
    Case(
        "what needs quorum only is not restarted",
        one_node({}, DEVICE + primitive("a", meta("a", requires="quorum"))),
        ("fence on@n1", "stop f@n1", "start f@n1"),
    ),
    Case(
        "without fencing nobody is let in",
        one_node({}, properties=pair("stonith-enabled", "false")),
        (),
    ),
    Case(
        "where no device can fence, nobody is let in",
        one_node({}, primitive("a", meta("a", requires="unfencing"))),
        # The device that ran here is configured no more. Pacemaker lets the node in by it, and restarts `a`.
        ("stop f@n1", "delete f@n1"),
    ),
    Case(
        "a node that leaves is not let in, not even for its probes",
        cib(
            nodes=ONE_NODE,
            properties=pair("stop-all-resources", "true"),
            resources=DEVICE + primitive("a"),
            status=member(1, shutdown="1767268000"),
        ),
        ("monitor a@n1", "monitor f@n1", "cluster do_shutdown@n1"),
    ),
    Case(
        "a node that leaves is let in again when another device let it in",
        one_node({**UNFENCED, "#digests-all": f"g:fence_dummy:{NOTHING},", "shutdown": "1767268000"}),
        ("fence on@n1", "stop a@n1", "stop f@n1", "cluster do_shutdown@n1"),
    ),
    Case(
        "a container that cannot run is not let in",
        cib(
            nodes=ONE_NODE,
            resources=f'{DEVICE}<bundle id="b"><podman image="i" replicas="1"/><network control-port="9999"/>'
            f"{primitive('a')}</bundle>",
            constraints='<rsc_ticket id="k" rsc="b" ticket="t" loss-policy="freeze"/>',
            status=member(1, FENCE_RUNS, ran("b-podman-0", "monitor=7", agent=PODMAN), **BY_F),
        ),
        (),
    ),
    Case(
        "a guest node is let in before anything starts there",
        cib(
            nodes=ONE_NODE,
            resources=DEVICE + primitive("vm", meta("vm", **{"remote-node": "g"})) + primitive("a"),
            status=member(
                1,
                FENCE_RUNS,
                ran("a", "monitor=7"),
                ran("vm", "start"),
                ran("g", "start", agent='class="ocf" provider="pacemaker" type="remote"'),
                **BY_F,
            )
            + remote("g", ran("a", "start")),
        ),
        ("fence on@g", "stop a@g", "start a@g", "monitor/30000 g@n1"),
        ("stop a@g < fence on@g", "fence on@g < start a@g"),
    ),
    Case(
        "an interleaved instance that failed stops before its node is let in, before what it follows is known",
        cib(
            resources=f'{DEVICE}<clone id="c">{meta("c", interleave="true")}{primitive("a")}</clone>{primitive("b")}',
            constraints='<rsc_order id="o" first="b" then="c"/><rsc_location id="k" rsc="b" node="n2" score="1"/>'
            '<rsc_location id="l" rsc="c" node="n2" score="-INFINITY"/>',
            status=member(1, FENCE_KNOWN, ran("a", "monitor=1")) + member(2, FENCE_RUNS, ran("a", "monitor=7"), **BY_F),
        ),
        (
            "stop a@n1",
            "fence on@n1",
            "monitor b@n1",
            "monitor b@n2",
            "start b@n2",
            "start a@n1",
            "~stop c@",
            "~stopped c@",
            "~start c@",
            "~running c@",
        ),
        ("stop a@n1 < fence on@n1", "fence on@n1 < monitor b@n1", "monitor b@n1 < start b@n2"),
    ),
    Case(
        "what failed stops before its node is let in, after a probe that needs no unfencing",
        cib(
            nodes=ONE_NODE,
            resources=DEVICE + primitive("b", meta("b", requires="quorum")) + primitive("a"),
            constraints='<rsc_order id="o" first="b" then="a"/>',
            status=member(1, FENCE_RUNS, ran("a", "monitor=1")),
        ),
        ("monitor b@n1", "start b@n1", "stop a@n1", "fence on@n1", "start a@n1", "stop f@n1", "start f@n1"),
        ("monitor b@n1 < stop a@n1", "stop a@n1 < fence on@n1", "fence on@n1 < start a@n1"),
    ),
)


def leaving(marks: dict[str, str]) -> str:
    """A resource that can migrate leaves n2, where another one starts."""
    known = ran("b", "monitor=7")
    return cib(
        resources=DEVICE + primitive("a", meta("a", **{"allow-migrate": "true"})) + primitive("b"),
        constraints='<rsc_location id="l" rsc="a" node="n1" score="1"/>'
        '<rsc_location id="k" rsc="b" node="n2" score="1"/>',
        status=member(1, FENCE_RUNS, ran("a", "monitor=7"), known, **BY_F)
        + member(2, FENCE_KNOWN, ran("a", "start"), known, **marks),
    )


MIGRATIONS = (
    Case(
        "what leaves a node that was let in migrates",
        leaving(BY_F),
        ("migrate_to a@n2", "migrate_from a@n1", "stop a@n2", "~start a@n1", "start b@n2"),
    ),
    Case(
        "what leaves a node that is let in stops there before: it does not write while its node is let in",
        leaving({}),
        ("stop a@n2", "start a@n1", "fence on@n2", "start b@n2"),
        ("stop a@n2 < fence on@n2", "fence on@n2 < start b@n2", "stop a@n2 < start a@n1"),
    ),
)


LOST_NODE = Case(
    "a lost node is fenced and not let in, although no device has let it in",
    cib(
        resources=DEVICE + primitive("a"),
        status=member(1, *RUNS, **BY_F) + member(2, FENCE_KNOWN, state=LOST, **UNFENCED, **{"#digests-all": ""}),
    ),
    ("fence reboot@n2",),
)
"""Pacemaker lets it in at the same time (docs/design/0007)."""


@pytest.mark.parametrize("case", [*CASES, *MIGRATIONS, LOST_NODE], ids=lambda case: case.name)
def test_who_is_let_in(case: Case) -> None:
    assert actions_of(case) == sorted(case.actions)
    assert missing_orders(case) == []


def failed(resource: str, what: str = "stop") -> str:
    """Write the history of a resource that runs, since an operation on it failed."""
    last = record(resource, what, 5).replace('rc-code="0"', 'rc-code="1"').replace('"0:0;', '"0:1;')
    kept = re.sub('id="[^"]*"', f'id="{resource}_last_failure_0"', last, count=1)
    started = record(resource, "start", 4) if what != "stop" else ""
    return ran(resource).replace("</lrm_resource>", started + last + kept + "</lrm_resource>")


def blocking(resource: str, *blocks: str, operation: str = "stop", interval: str = "0") -> str:
    inside = f'<op id="{resource}-o" name="{operation}" interval="{interval}" on-fail="block"/>'
    return primitive(resource, "".join(blocks) + f"<operations>{inside}</operations>")


def stuck(resources: str, *histories: str, constraints: str = "", properties: str = "", **marks: str) -> str:
    """One node, which no device has let in and which has to be, as `a` is to start there."""
    known = (FENCE_RUNS, ran("a", "monitor=7"), *histories)
    return cib(
        nodes=ONE_NODE,
        properties=properties,
        resources=DEVICE + primitive("a") + resources,
        constraints=constraints,
        status=member(1, *known, **marks),
    )


C = blocking("c", meta("c", requires="quorum"))
NOT_LET_IN = {
    "a stop failed": stuck(blocking("b"), failed("b")),
    "a stop failed, and there is another device": stuck(
        blocking("b"), failed("b"), **UNFENCED, **{"#digests-all": "f:fence_dummy:0123,"}
    ),
    "a stop failed of what is to be stopped": stuck(
        blocking("b", meta("b", **{"target-role": "Stopped"})), failed("b")
    ),
    "a stop failed of what is unmanaged": stuck(blocking("b", meta("b", **{"is-managed": "false"})), failed("b")),
    "a stop failed of what is in maintenance": stuck(blocking("b", meta("b", maintenance="true")), failed("b")),
    "a stop failed in a clone": stuck(f'<clone id="k">{blocking("b")}</clone>', failed("b")),
    "a stop failed of what may run nowhere": stuck(
        blocking("b"),
        failed("b"),
        properties=pair("symmetric-cluster", "false"),
        constraints="".join(f'<rsc_location id="l-{each}" rsc="{each}" node="n1" score="1"/>' for each in ("a", "f")),
    ),
    "a monitor failed, and that blocks": stuck(
        blocking("b", operation="monitor", interval="10s"), failed("b", "monitor/10000")
    ),
    "what runs stops after what is blocked": stuck(
        primitive("b") + C,
        ran("b", "start"),
        failed("c"),
        constraints='<rsc_order id="o" first="b" then="c"/>',
    ),
    "what runs is in a group with what is blocked": stuck(
        f'<group id="g">{primitive("b")}{C}</group>', ran("b", "start"), failed("c")
    ),
    "it is active twice, and that blocks": cib(
        resources=DEVICE + primitive("a") + primitive("b", meta("b", **{"multiple-active": "block"})),
        constraints='<rsc_location id="l" rsc="a" node="n1" score="1"/>',
        status=member(1, FENCE_RUNS, ran("a", "monitor=7"), ran("b", "start"))
        + member(2, FENCE_KNOWN, ran("a", "monitor=7"), ran("b", "start"), **BY_F),
    ),
}
LET_IN = {
    "what is blocked needs no unfencing": stuck(blocking("b", meta("b", requires="quorum")), failed("b")),
    "what is unmanaged runs": stuck(primitive("b", meta("b", **{"is-managed": "false"})), ran("b", "start")),
    "what is in maintenance runs": stuck(primitive("b", meta("b", maintenance="true")), ran("b", "start")),
    "what may run nowhere stops": stuck(
        primitive("b"),
        ran("b", "start"),
        properties=pair("symmetric-cluster", "false"),
        constraints="".join(f'<rsc_location id="l-{each}" rsc="{each}" node="n1" score="1"/>' for each in ("a", "f")),
    ),
}


def done(text: str, *, is_pacemaker_compatible: bool) -> set[str]:
    """Return what is done: `crm simulate` leaves out what waits in vain, a DC does all that is in the graph."""
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemaker_compatible, has_quorum=True)
    plan = schedule(read(text).cib, NOW, options=options)
    return set(map(word, executed(plan) if is_pacemaker_compatible else plan.graph.actions.values()))


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
@pytest.mark.parametrize("why", NOT_LET_IN)
def test_a_node_is_not_let_in_while_what_needs_unfencing_cannot_stop_there(
    why: str, is_pacemaker_compatible: bool
) -> None:
    found = done(NOT_LET_IN[why], is_pacemaker_compatible=is_pacemaker_compatible)
    assert not found & {"fence on@n1", "start a@n1", "start b@n1", "start f@n1"}


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
@pytest.mark.parametrize("why", LET_IN)
def test_a_node_is_let_in_beside_what_need_not_stop(why: str, is_pacemaker_compatible: bool) -> None:
    found = done(LET_IN[why], is_pacemaker_compatible=is_pacemaker_compatible)
    assert found >= {"fence on@n1", "start a@n1"}


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
def test_what_failed_and_runs_after_what_is_not_known_yet_stops_and_starts(is_pacemaker_compatible: bool) -> None:
    """Each probe waits for the unfencing, and that for the stop; Pacemaker's graph is a loop here."""
    text = cib(
        nodes=ONE_NODE,
        resources=DEVICE + primitive("b") + primitive("a"),
        constraints='<rsc_order id="o" first="b" then="a"/>',
        status=member(1, FENCE_RUNS, ran("a", "monitor=1")),
    )
    found = done(text, is_pacemaker_compatible=is_pacemaker_compatible)
    assert found >= {"stop a@n1", "fence on@n1", "monitor b@n1", "start b@n1", "start a@n1"}


def test_what_failed_on_two_nodes_stops_on_both_before_they_are_let_in() -> None:
    text = cib(
        resources=f'{DEVICE}{primitive("b")}<clone id="c">{primitive("a")}</clone>',
        constraints='<rsc_order id="o" first="b" then="c"/>',
        status=member(1, FENCE_RUNS, ran("a", "monitor=1")) + member(2, FENCE_KNOWN, ran("a", "monitor=1")),
    )
    found = done(text, is_pacemaker_compatible=False)
    assert found >= {
        f"{what}@n{number}" for what in ("stop a", "fence on", "monitor b", "start a") for number in (1, 2)
    }


def test_what_would_restart_for_an_unfencing_that_cannot_be_runs_on() -> None:
    """Pacemaker stops it, and its transition ends there: it starts no more."""
    text = cib(
        nodes=ONE_NODE,
        resources=DEVICE + primitive("a") + primitive("x") + blocking("b"),
        constraints='<rsc_order id="o" first="a" then="x"/>',
        status=member(1, FENCE_RUNS, ran("a", "start"), ran("x", "start"), failed("b")),
    )
    assert done(text, is_pacemaker_compatible=False) == set()
    assert {"stop a@n1", "stop x@n1", "stop f@n1"} <= done(text, is_pacemaker_compatible=True)


def test_a_stop_that_is_no_restart_is_done_though_the_node_cannot_be_let_in() -> None:
    stopped = primitive("x", meta("x", **{"target-role": "Stopped"}))
    text = stuck(stopped + blocking("b"), ran("x", "start"), failed("b"))
    assert done(text, is_pacemaker_compatible=False) == {"stop x@n1"}


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
def test_a_node_that_cannot_be_let_in_is_probed_and_holds_back_no_other_node(is_pacemaker_compatible: bool) -> None:
    text = cib(
        resources=DEVICE + primitive("a") + blocking("b"),
        constraints='<rsc_location id="l" rsc="a" node="n2" score="1"/>',
        status=member(1, FENCE_KNOWN, failed("b")) + member(2, FENCE_RUNS, ran("b", "monitor=7"), **BY_F),
    )
    found = done(text, is_pacemaker_compatible=is_pacemaker_compatible)
    assert found == {"monitor a@n1", "monitor a@n2", "start a@n2"}


def after_unfencings(text: str, *outcomes: FenceOutcome) -> Plan:
    """Return a DC's plan after attempts to unfence n1 that ended so."""
    known = read(text).cib
    life = known.status.nodes[NodeName("n1")].incarnation
    history = tuple(
        FencingRecord(FenceKey(str(number)), NodeName("n1"), life, FenceAction.ON, ResourceId("f"), NodeName("n2"),
                      outcome, "", NOW, NOW, "")
        for number, outcome in enumerate(outcomes)
    )  # fmt: skip
    known = replace(known, status=replace(known.status, fencing_history=history))
    return schedule(known, NOW, options=ScheduleOptions(has_quorum=True))


def waits_for(text: str, then: str, first: str, *outcomes: FenceOutcome) -> bool:
    """Tell whether an action of a DC's plan waits for another one, by whatever chain, after unfencings of n1."""
    actions = after_unfencings(text, *outcomes).graph.actions
    waiting = [number for number, each in actions.items() if word(each) == then]
    assert waiting
    for number in waiting:
        waiting += [before for before in actions[number].inputs if before not in waiting]
    return first in {word(actions[number]) for number in waiting}


def listing(hosts: str) -> str:
    """Return a device that lets these nodes in."""
    names = f'<nvpair id="i-h" name="pcmk_host_list" value="{hosts}"/>'
    names = f'<instance_attributes id="i">{names}</instance_attributes>'
    return primitive("f", meta("f", provides="unfencing") + names, agent="stonith:fence_dummy")


@pytest.mark.parametrize(
    ("hosts", "outcomes", "is_waited_for"),
    [
        ("n1 n2", (), True),
        ("n2", (), False),
        ("n1 n2", (FenceOutcome.FAILED,), False),
        ("n1 n2", (FenceOutcome.FAILED, FenceOutcome.UNFENCED), True),
    ],
)
def test_no_other_node_waits_for_an_unfencing_in_vain(
    hosts: str, outcomes: tuple[FenceOutcome, ...], is_waited_for: bool
) -> None:
    # A member is added, and nobody has added it to the device; or the switch of the disks cannot be reached.
    text = cib(
        resources=listing(hosts) + primitive("a"),
        constraints='<rsc_location id="l" rsc="a" node="n2" score="1"/>',
        status=member(1, FENCE_KNOWN) + member(2, FENCE_RUNS, **UNFENCED),
    )
    assert waits_for(text, "start a@n2", "monitor a@n1", *outcomes)
    assert waits_for(text, "start a@n2", "fence on@n1", *outcomes) == is_waited_for


IN_VAIN = pytest.mark.parametrize(
    ("hosts", "outcomes", "constraint", "is_tried"),
    [
        ("n2", (), "", False),
        ("n1 n2", (FenceOutcome.FAILED,), "", True),
        ("n1 n2", (), '<rsc_location id="d" rsc="f" node="n1" score="-INFINITY"/>'
                      '<rsc_location id="e" rsc="f" node="n2" score="-INFINITY"/>', True),
    ],
    ids=["no device", "failed", "nobody may use the device"],
)  # fmt: skip


@IN_VAIN
def test_nothing_is_promoted_after_an_instance_that_cannot_start(
    hosts: str, outcomes: tuple[FenceOutcome, ...], constraint: str, is_tried: bool
) -> None:
    """Pacemaker plans a start on n1 after its unfencing, and promotes on n2 after that: never."""
    stateful = primitive("a", agent="ocf:pacemaker:Stateful")
    text = cib(
        resources=f'{listing(hosts)}<clone id="c">{meta("c", promotable="true")}{stateful}</clone>',
        constraints=constraint,
        status=member(1, FENCE_KNOWN, ran("a", "monitor=7"))
        + member(2, FENCE_KNOWN, ran("a", "monitor=7"), **{**UNFENCED, "master-a": "10"}),
    )
    plan = after_unfencings(text, *outcomes)
    found = set(map(word, plan.graph.actions.values()))
    assert "promote a@n2" in found
    assert "start a@n1" not in found
    assert ("fence on@n1" in found) == is_tried
    assert any(each.startswith("n1 is not unfenced: ") for each in plan.warnings)


@IN_VAIN
def test_nothing_is_moved_to_a_node_that_cannot_be_let_in(
    hosts: str, outcomes: tuple[FenceOutcome, ...], constraint: str, is_tried: bool
) -> None:
    """Pacemaker stops it, and its transition ends there: it starts no more."""
    text = cib(
        resources=listing(hosts) + primitive("a"),
        constraints=constraint + '<rsc_location id="l" rsc="a" node="n1" score="100"/>',
        status=member(1, FENCE_KNOWN, ran("a", "monitor=7")) + member(2, FENCE_KNOWN, ran("a", "start"), **UNFENCED),
    )
    found = {word(each) for each in after_unfencings(text, *outcomes).graph.actions.values() if each.resource != "f"}
    assert found == ({"fence on@n1"} if is_tried else set())


def test_the_plan_says_what_keeps_a_node_from_being_let_in() -> None:
    plan = schedule(read(NOT_LET_IN["a stop failed"]).cib, NOW, options=ScheduleOptions(has_quorum=True))
    assert "n1 is not unfenced: b cannot be stopped there before" in plan.warnings
