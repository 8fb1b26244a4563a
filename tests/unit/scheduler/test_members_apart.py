"""What depends on a clone of a group whose members may be on different nodes (`collocated=false`).

An instance is on a node when all its members that run are there; then it can be promoted, and others go with it.
`crm_simulate` agrees (2.1.5 and 3.0.0), where nothing else is said.
"""

import pytest

from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, member
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NO_FENCING, cib, read

BOTH = pytest.mark.parametrize("is_pacemaker_compatible", [True, False], ids=["simulate", "live"])
ON_N1 = '<rsc_location id="l" rsc="c" node="n2" score="-INFINITY"/>'
SCORES = {f"master-{name}": "10" for name in ("a", "b")}


def with_clone(score: str, role: str = "") -> str:
    said = f' with-rsc-role="{role}"' if role else ""
    return f'<rsc_colocation id="k" rsc="r" with-rsc="c" score="{score}"{said}/>'


def started(
    dependent: str, constraints: str, *, clone: str, agent: str = "ocf:pacemaker:Dummy", is_pacemaker_compatible: bool
) -> list[str]:
    """Return what starts or is promoted, and where; the clone `c` has one instance at most."""
    meta_of_clone = meta("c", **{"clone-max": "1", **({"promotable": "true"} if clone == "promotable" else {})})
    members = f"{primitive('a', agent=agent)}{primitive('b', agent=agent)}"
    apart = f'<clone id="c">{meta_of_clone}<group id="g">{meta("g", collocated="false")}{members}</group></clone>'
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/><node id="2" uname="n2"/>',
        resources=dependent + apart,
        constraints=constraints,
        status=member(1, **SCORES) + member(2),
    )
    options = ScheduleOptions(is_pacemaker_compatible=is_pacemaker_compatible, has_quorum=True)
    actions = schedule(read(text).cib, NOW, options=options).graph.actions.values()
    found = (each for each in actions if each.name in ("start", "promote") and each.node)
    return sorted(f"{each.name} {each.resource} {each.node}" for each in found)


INTERLEAVED = f'<clone id="d">{meta("d", interleave="true")}{primitive("r")}</clone>'


@BOTH
def test_what_must_be_with_an_instance_goes_where_its_members_are(*, is_pacemaker_compatible: bool) -> None:
    found = started(
        primitive("r"), with_clone("INFINITY") + ON_N1, clone="plain", is_pacemaker_compatible=is_pacemaker_compatible
    )
    assert found == ["start a n1", "start b n1", "start r n1"]


@BOTH
def test_it_goes_nowhere_while_its_members_are_on_two_nodes(*, is_pacemaker_compatible: bool) -> None:
    constraints = with_clone("INFINITY")
    found = started(primitive("r"), constraints, clone="plain", is_pacemaker_compatible=is_pacemaker_compatible)
    assert found == ["start a n1", "start b n2"]


@BOTH
def test_interleaved_instances_that_must_be_apart_from_it_are(*, is_pacemaker_compatible: bool) -> None:
    constraints = with_clone("-INFINITY").replace('rsc="r"', 'rsc="d"') + ON_N1
    found = started(INTERLEAVED, constraints, clone="plain", is_pacemaker_compatible=is_pacemaker_compatible)
    assert found == ["start a n1", "start b n1", "start r n2"]


@pytest.mark.parametrize(
    ("is_pacemaker_compatible", "expected"), [(True, ["start r n1", "start r n2"]), (False, ["start r n1"])]
)
def test_interleaved_instances_that_must_be_with_it_are_so_in_a_running_cluster_only(
    *, is_pacemaker_compatible: bool, expected: list[str]
) -> None:
    constraints = with_clone("INFINITY").replace('rsc="r"', 'rsc="d"') + ON_N1
    found = started(INTERLEAVED, constraints, clone="plain", is_pacemaker_compatible=is_pacemaker_compatible)
    assert found == ["start a n1", "start b n1", *expected]


@BOTH
@pytest.mark.parametrize(("score", "role", "place"), [
    ("INFINITY", "Promoted", "n1"), ("100", "Promoted", "n1"), ("-INFINITY", "Promoted", "n2"),
])  # fmt: skip
def test_an_instance_is_promoted_on_the_node_of_its_members_and_others_go_with_it(
    score: str, role: str, place: str, *, is_pacemaker_compatible: bool
) -> None:
    found = started(
        primitive("r"), with_clone(score, role) + ON_N1, clone="promotable", agent="ocf:pacemaker:Stateful",
        is_pacemaker_compatible=is_pacemaker_compatible,
    )  # fmt: skip
    assert found == ["promote a n1", "promote b n1", "start a n1", "start b n1", f"start r {place}"]


@BOTH
def test_an_instance_whose_members_are_on_two_nodes_is_not_promoted(*, is_pacemaker_compatible: bool) -> None:
    found = started(
        primitive("r"), "", clone="promotable", agent="ocf:pacemaker:Stateful",
        is_pacemaker_compatible=is_pacemaker_compatible,
    )  # fmt: skip
    assert found == ["start a n2", "start b n1", "start r n1"]
