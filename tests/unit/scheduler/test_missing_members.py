"""What a set means of which a member does not exist; `crm_simulate` 2.1.5 and 3.0.0 decide the same."""

import pytest

from haclusterd.model.configuration import ResourceSet
from haclusterd.model.ids import ResourceId
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.references import cut_at_missing
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, member
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NO_FENCING, cib, read

NODES = "".join(f'<node id="{number}" uname="n{number}"/>' for number in (1, 2, 3))
OFF = primitive("a", meta("a", **{"target-role": "Stopped"}))
TAG = '<tags><tag id="t"><obj_ref id="a"/><obj_ref id="b"/></tag></tags>'


def sets(text: str) -> str:
    """Write sets: `a x | b` are two, `~a b` one that is not sequential; x is what does not exist."""
    made = ""
    for number, words in enumerate(text.split("|")):
        more = ' sequential="false"' if words.strip().startswith("~") else ""
        members = "".join(f'<resource_ref id="{name}"/>' for name in words.replace("~", "").split())
        made += f'<resource_set id="s{number}"{more}>{members}</resource_set>'
    return made


def placed(constraint: str, first: str = "") -> str:
    """Return where a, b, c and d start on three nodes, as digits; `-`: nowhere."""
    resources = (first or primitive("a")) + "".join(map(primitive, "bcd"))
    text = cib(
        properties=NO_FENCING, nodes=NODES, resources=resources, constraints=constraint, more=TAG,
        status=member(1) + member(2) + member(3),
    )  # fmt: skip
    plan = schedule(read(text).cib, NOW, options=ScheduleOptions(is_pacemaker_compatible=True))
    starts = {each.resource: each.node for each in plan.graph.actions.values() if each.name == "start"}
    return "".join((starts.get(ResourceId(name)) or "-").removeprefix("n") for name in "abcd")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a x b", "1231"),
        ("a b x", "1123"),
        ("~a x b", "1231"),
        ("a b | c x", "1123"),
        ("a x | b c", "1112"),
        ("a | x | c", "1231"),
        ("a b | x", "1123"),
        ("~a x | b", "1123"),
        ("~x a | b", "1231"),
        ("a | ~x b", "1231"),
        ("a | ~b x", "1123"),
        ("~a x d | ~b", "1123"),
        ("a | x b", "1123"),
        ("x a | b", "1231"),
        ("b a | x | c d", "1122"),
        ("x | a | b", "1123"),
        ("~a d | ~b x", "1123"),
        ("a d | ~b x", "1121"),
        ("~a d | ~b x | c", "1112"),
    ],
)
def test_colocated_sets_are_what_stands_before_the_missing_member(written: str, expected: str) -> None:
    assert placed(f'<rsc_colocation id="k" score="INFINITY">{sets(written)}</rsc_colocation>') == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a b", "--12"),
        ("a x b", "-123"),
        ("x a b", "-123"),
        ("a b x", "-123"),
        ("a x | b", "-123"),
        ("a | b x", "-123"),
        ("a | b | x", "--23"),
        ("x | a | b", "-123"),
        ("~a | ~b x", "-123"),
        ("a b | x", "--23"),
        ("~t | c", "-1-3"),
        ("~t | c | x", "-123"),
    ],
)
def test_ordered_sets_are_those_before_the_one_with_a_missing_member(written: str, expected: str) -> None:
    starts = placed(f'<rsc_order id="k">{sets(written)}</rsc_order>', OFF)
    assert [each == "-" for each in starts] == [each == "-" for each in expected]


@pytest.mark.parametrize(
    ("written", "preferring"),
    [("a x b", "a"), ("x a", ""), ("a x | b", "a"), ("b | x | a", "b"), ("~t | x", ""), ("~t | c", "abc")],
)
def test_locations_and_tickets_bind_what_stands_before_the_missing_member(written: str, preferring: str) -> None:
    located = placed(f'<rsc_location id="k" node="n3" score="100">{sets(written)}</rsc_location>')
    bound = placed(f'<rsc_ticket id="k" ticket="T" loss-policy="stop">{sets(written)}</rsc_ticket>')
    assert [name for name, node in zip("abcd", bound, strict=True) if node == "-"] == list(preferring)
    assert all(located["abcd".index(name)] == "3" for name in preferring)
    assert located == ("1231" if not preferring else located)


def test_sets_without_a_missing_member_are_whole() -> None:
    whole = (ResourceSet("s", (ResourceId("a"), ResourceId("b"))),)
    assert cut_at_missing(whole, lambda _: True, keeps_members=True) == whole
