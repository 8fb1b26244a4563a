"""How instances of a cloned group are placed in plans for CIBs of Pacemaker, and what their stops wait for.

`crm_simulate` 3.0.0 plans these CIBs in the same way.
"""

from collections import Counter

import pytest

from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, Case, actions_of, member, missing_orders, needless_orders, ran
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NO_FENCING, cib, read

BOTH = pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
THREE = '<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>'
TWO = THREE.partition('<node id="3"')[0]
NOT_ON_N1 = '<rsc_location id="l" rsc="{}" node="n1" score="-INFINITY"/>'


def cloned(*members: str, group: str = "", **clone: str) -> str:
    inside = "".join(primitive(name) for name in members)
    return f'<clone id="c">{meta("c", **clone)}<group id="g">{group}{inside}</group></clone>'


APART = meta("g", collocated="false")


def changes_of(text: str, *, is_pacemaker_compatible: bool = True) -> list[str]:
    """Return what the plan changes: the kind, the resource without its number, from where and to where."""
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemaker_compatible, has_quorum=True)
    plan = schedule(read(text).cib, NOW, options=options)
    return sorted(
        f"{each.kind.value} {each.resource.partition(':')[0]} {'>'.join(filter(None, (each.origin, each.target)))}"
        for each in plan.changes
    )


def test_a_group_that_must_be_with_others_stops_where_the_other_instances_take_all_places() -> None:
    """Its trial to stay finds no node, and it keeps none; alone in its clone it moves."""
    with_p = '<rsc_colocation id="k" rsc="c" with-rsc="p" score="INFINITY"/>' + NOT_ON_N1.format("p")
    text = cib(
        properties=NO_FENCING,
        nodes=TWO,
        resources=cloned("a", "b") + primitive("p"),
        constraints=with_p,
        status=member(1, ran("a", "start"), ran("b", "start")) + member(2),
    )
    start = ["start a n2", "start b n2", "start p n2", "stop a n1", "stop b n1"]
    assert changes_of(text) == start
    alone = text.replace(cloned("a", "b"), cloned("a", "b", **{"clone-max": "1"}))
    assert changes_of(alone) == ["move a n1>n2", "move b n1>n2", "start p n2"]
    assert changes_of(text, is_pacemaker_compatible=False) == changes_of(alone)


@pytest.mark.parametrize(
    ("is_pacemaker_compatible", "starts"), [(True, {"n1": 3}), (False, {"n1": 1, "n2": 1, "n3": 1})]
)
def test_members_that_may_be_apart_share_nodes_in_plans_for_pacemaker_only(
    *, is_pacemaker_compatible: bool, starts: dict[str, int]
) -> None:
    """Such a group as a whole is on no node, so Pacemaker counts nothing there against `clone-node-max`."""
    text = cib(
        properties=NO_FENCING,
        nodes=THREE,
        resources=cloned("a", "b", "d", group=APART),
        status=member(1) + member(2) + member(3),
    )
    found = Counter(
        each.rpartition(" ")[2] for each in changes_of(text, is_pacemaker_compatible=is_pacemaker_compatible)
        if each.startswith("start a ")
    )  # fmt: skip
    assert found == starts


PROMOTABLE_APART = cib(
    properties=NO_FENCING,
    nodes='<node id="1" uname="n1"/>',
    resources=f'<clone id="c">{meta("c", promotable="true")}<group id="g">{APART}'
    + "".join(primitive(name, agent="ocf:pacemaker:Stateful") for name in ("a", "b"))
    + "</group></clone>",
    status="{}",
)


@BOTH
@pytest.mark.parametrize("scores", [{}, {"master-a": "-INFINITY", "master-b": "5"}], ids=["none", "never"])
def test_members_that_may_be_apart_are_promoted_only_where_their_agents_say_so(
    scores: dict[str, str], *, is_pacemaker_compatible: bool
) -> None:
    text = PROMOTABLE_APART.format(member(1, **scores))
    found = changes_of(text, is_pacemaker_compatible=is_pacemaker_compatible)
    assert found == ["start a n1", "start b n1"]


@pytest.mark.parametrize("more", ["n1", "n2"])
def test_promotion_scores_of_members_above_infinity_count_for_more(more: str) -> None:
    """Otherwise the instance that comes first would be promoted on both."""
    above = {"master-a": "INFINITY", "master-b": "100"}
    scores = {"n1": {"master-b": "INFINITY"}, "n2": {"master-b": "INFINITY"}} | {more: above}
    text = cib(
        properties=NO_FENCING,
        nodes=TWO,
        resources=cloned("a", "b", promotable="true").replace('"Dummy"', '"Stateful"'),
        status=member(1, **scores["n1"]) + member(2, **scores["n2"]),
    )
    assert [each for each in changes_of(text) if each.startswith("promote")] == [f"promote {a} {more}" for a in "ab"]


STOPS = (
    Case(
        "an instance that goes nowhere stops without waiting for probes of the others",
        cib(
            properties=NO_FENCING,
            nodes=TWO,
            resources=cloned("a", "b"),
            constraints=NOT_ON_N1.format("c"),
            status=member(1, ran("a", "start"), ran("b", "start")) + member(2),
        ),
        (),
        ("monitor a@n2 < start a@n2",),
        ("monitor a@n2 < stop a@n1", "monitor b@n2 < stop b@n1"),
    ),
    Case(
        "members of a group that is not cloned wait for probes of the members before them",
        cib(
            properties=NO_FENCING,
            nodes=TWO,
            resources=f'<group id="g">{primitive("a")}{primitive("b")}</group>',
            constraints=NOT_ON_N1.format("g") + '<rsc_location id="m" rsc="g" node="n2" score="-INFINITY"/>',
            status=member(1, ran("a", "start"), ran("b", "start")) + member(2),
        ),
        (),
        ("monitor a@n2 < stop b@n1",),
    ),
)


@pytest.mark.parametrize("case", STOPS, ids=lambda case: case.name)
def test_stops_wait_for_probes(case: Case) -> None:
    words = set(actions_of(case))
    assert {each for order in (*case.orders, *case.not_ordered) for each in order.split(" < ")} <= words
    assert missing_orders(case) == []
    assert needless_orders(case) == []
