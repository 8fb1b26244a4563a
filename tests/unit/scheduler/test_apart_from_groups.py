"""What must not be beside a group, when not all members of that group run, or not in one place.

As a primary a group is its last member only for what must be with all of it; what must be apart from it has to avoid
members that run before one that cannot. `crm_simulate` agrees (2.1.5 and 3.0.0).
"""

import pytest

from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, member, ran
from tests.unpacked_cibs import block, meta, primitive
from tests.written_cibs import NO_FENCING, cib, pair, read

APART = '<rsc_colocation id="apart" rsc="c" with-rsc="g" score="-INFINITY"/>'
PREFERS = "".join(
    f'<rsc_location id="l{number}" rsc="c" node="n{number}" score="{400 - 100 * number}"/>' for number in (1, 2, 3)
)
THREE = '<node id="1" uname="n1"/><node id="2" uname="n2"/><node id="3" uname="n3"/>'


def place(text: str, *, is_pacemaker_compatible: bool = True) -> str | None:
    """Return the node that `c` starts on; None when it starts nowhere."""
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemaker_compatible, has_quorum=True)
    actions = schedule(read(text).cib, NOW, options=options).graph.actions.values()
    [node] = [each.node for each in actions if (each.name, each.resource) == ("start", "c")] or [None]
    return node


def group(*members: str, more: str = "") -> str:
    return f'<group id="g">{more}{"".join(members)}</group>'


NOT_RUNNING = {
    "is not to run": (primitive("b", meta("b", **{"target-role": "Stopped"})), ""),
    "may be on no node": (primitive("b"), '<rsc_location id="l" rsc="b" node="n1" score="-INFINITY"/>'),
    "is more than the node can hold": (primitive("b", block("utilization", "b-u", memory="2")), ""),
}


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
@pytest.mark.parametrize("why", NOT_RUNNING)
def test_what_must_be_apart_from_a_group_is_not_beside_its_first_member_when_the_last(
    why: str, is_pacemaker_compatible: bool
) -> None:
    last, constraint = NOT_RUNNING[why]
    text = cib(
        properties=NO_FENCING + pair("placement-strategy", "minimal"),
        nodes=f'<node id="1" uname="n1">{block("utilization", "n1-u", memory="1")}</node>',
        resources=primitive("c") + group(primitive("a", block("utilization", "a-u", memory="1")), last),
        constraints=APART + constraint,
        status=member(1),
    )
    assert place(text, is_pacemaker_compatible=is_pacemaker_compatible) is None


def unmanaged(*places: int, more: str = "") -> str:
    """Write a group a, b, d that nobody manages, each member active on a node; 0 for one that is not."""
    names = ("a", "b", "d")
    left_alone = [primitive(name, meta(name, **{"is-managed": "false"})) for name in names]
    active = list(zip(names, places, strict=True))
    return cib(
        properties=NO_FENCING,
        nodes=THREE,
        resources=primitive("c") + group(*left_alone, more=more),
        constraints=APART + PREFERS,
        status="".join(
            member(number, *(ran(name, "start") for name, at in active if at == number)) for number in (1, 2, 3)
        ),
    )


@pytest.mark.parametrize(
    ("places", "expected"), [((1, 0, 0), "n2"), ((1, 2, 3), "n2"), ((0, 1, 2), "n1"), ((0, 0, 1), "n1")]
)
def test_what_must_be_apart_from_a_group_that_nobody_manages_avoids_its_first_member_as_in_pacemaker(
    places: tuple[int, ...], expected: str
) -> None:
    assert place(unmanaged(*places)) == expected


@pytest.mark.parametrize(
    ("places", "expected"), [((1, 0, 0), "n2"), ((1, 2, 3), None), ((0, 1, 2), "n3"), ((0, 0, 1), "n2")]
)
def test_in_a_running_cluster_what_must_be_apart_from_a_group_that_nobody_manages_avoids_each_member(
    places: tuple[int, ...], expected: str | None
) -> None:
    assert place(unmanaged(*places), is_pacemaker_compatible=False) == expected


@pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
@pytest.mark.parametrize(("places", "expected"), [((1, 2, 0), "n3"), ((0, 1, 2), "n3"), ((1, 2, 3), None)])
def test_what_must_be_apart_from_a_group_that_is_not_collocated_avoids_each_member(
    places: tuple[int, ...], expected: str | None, is_pacemaker_compatible: bool
) -> None:
    text = unmanaged(*places, more=meta("g", collocated="false"))
    assert place(text, is_pacemaker_compatible=is_pacemaker_compatible) == expected
