"""Which instances are promoted, and what follows a promotion that failed; `crm_simulate` answers the same."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from tests.pacemaker_plans import Case, actions_of, member, missing_orders, ran
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import cib, pair

NO_FENCING = pair("stonith-enabled", "false")
STATEFUL = 'class="ocf" provider="pacemaker" type="Stateful"'


def promotable(inside: str) -> str:
    return f'<clone id="c">{meta("c", promotable="true")}{inside}</clone>'


def stateful(name: str, **pairs: str) -> str:
    return primitive(name, meta(name, **pairs) if pairs else "", agent="ocf:pacemaker:Stateful")


def of_two(first: str, second: str) -> str:
    """A cloned group on one node, where both members are active and wish to be promoted."""
    return cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=promotable(f'<group id="g">{first}{second}</group>'),
        status=member(1, ran("a", "start", agent=STATEFUL), ran("b", "start", agent=STATEFUL), **WISHES),
    )


WISHES = {"master-a": "10", "master-b": "10"}


def not_promoted(name: str) -> str:
    """Write the history of an instance whose promotion failed."""
    history = ran(name, "promote=1", agent=STATEFUL)
    return history.replace('op-status="0"', 'op-status="4"').replace('"0:1;', '"4:1;')


def failed(inside: str, *histories: str) -> str:
    """A promotable clone on n1, of which a promotion failed there; n2 wishes less to have it promoted."""
    nothing = [ran(name, "monitor=7", agent=STATEFUL) for name in ("a", "b") if f'id="{name}"' in inside]
    return cib(
        properties=NO_FENCING,
        resources=promotable(inside),
        status=member(1, *histories, **WISHES) + member(2, *nothing, **{"master-a": "5", "master-b": "5"}),
    )


def unpromoted_beside(score: str, role: str, *, with_role: str = "Promoted", interleave: str = "false") -> str:
    """Two promotable clones: `a` is promoted on n1, `b` would rather be there; both are known to run nowhere."""
    clones = [
        f'<clone id="c{name}">{meta(f"c{name}", promotable="true", interleave=interleave)}{stateful(name)}</clone>'
        for name in ("a", "b")
    ]
    nothing = [ran(name, "monitor=7", agent=STATEFUL) for name in ("a", "b")]
    return cib(
        properties=NO_FENCING,
        resources="".join(clones),
        constraints=f'<rsc_colocation id="k" rsc="cb" rsc-role="{role}" with-rsc="ca" with-rsc-role="{with_role}" '
        f'score="{score}"/>',
        status=member(1, *nothing, **{"master-a": "10", "master-b": "10"})
        + member(2, *nothing, **{"master-a": "5", "master-b": "5"}),
    )


BOTH_START = ("start a@n1", "start a@n2", "start b@n1", "start b@n2")
GROUP = f'<group id="g">{stateful("a")}{stateful("b")}</group>'
PROMOTED = ran("a", "promote", agent=STATEFUL)
CASES = (
    Case(
        "a member that is to stay unpromoted keeps its group so",
        of_two(stateful("a"), stateful("b", **{"target-role": "Unpromoted"})),
        (),
    ),
    Case(
        "so does the first member",
        of_two(stateful("a", **{"target-role": "Unpromoted"}), stateful("b")),
        (),
    ),
    Case(
        "a member that is to be promoted keeps no other from it",
        of_two(stateful("a"), stateful("b", **{"target-role": "Promoted"})),
        ("promote a@n1", "promote b@n1"),
    ),
    Case(
        "what could not be promoted, and has no monitors, starts again unpromoted",
        failed(stateful("a"), not_promoted("a")),
        ("demote a@n1", "promote a@n2", "start a@n1", "start a@n2", "stop a@n1"),
        ("demote a@n1 < stop a@n1", "stop a@n1 < start a@n1", "start a@n2 < promote a@n2"),
    ),
    Case(
        "the group of a member that could not be promoted is promoted on another node",
        failed(GROUP, PROMOTED, not_promoted("b")),
        (
            "demote a@n1", "demote b@n1", "promote a@n2", "promote b@n2", "start a@n2", "start b@n1", "start b@n2",
            "stop b@n1",
        ),
        ("demote a@n1 < promote a@n2", "stop b@n1 < start b@n1"),
    ),
    Case(
        "what would rather be unpromoted beside the promoted one is promoted on another node (3.0.0)",
        unpromoted_beside("100", "Unpromoted"),
        ("promote a@n1", "promote b@n2", *BOTH_START),
    ),
    Case(
        "what would rather not be unpromoted beside an unpromoted one is promoted there (3.0.0)",
        unpromoted_beside("-100", "Unpromoted", with_role="Unpromoted"),
        ("promote a@n1", "promote b@n2", *BOTH_START),
    ),
    Case(
        "an instance that must be unpromoted beside the promoted one is promoted there",
        unpromoted_beside("INFINITY", "Unpromoted"),
        ("promote a@n1", "promote b@n1", "start a@n1", "start a@n2", "start b@n1"),
    ),
    Case(
        "one of an interleaved clone is not",
        unpromoted_beside("INFINITY", "Unpromoted", interleave="true"),
        ("promote a@n1", "start a@n1", "start a@n2", "start b@n1"),
    ),
    Case(
        "the score of a node where the clone cannot run draws no instance there",
        cib(
            properties=NO_FENCING,
            resources=promotable(stateful("a")),
            status=member(1, **{"master-a": "5"})
            + member(2, ran("a", "monitor=5", agent=STATEFUL), **{"master-a": "INFINITY"}),
        ),
        ("monitor a@n1", "promote a@n1", "start a@n1"),
    ),
    Case(
        "what would rather be promoted beside it is",
        unpromoted_beside("100", "Promoted"),
        ("promote a@n1", "promote b@n1", *BOTH_START),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_is_promoted(case: Case) -> None:
    assert [each for each in actions_of(case) if not each.startswith("~")] == sorted(case.actions)
    assert missing_orders(case) == []


@pytest.mark.parametrize(("is_managed", "role"), [("true", "Started"), ("false", "Promoted")])
def test_what_nobody_manages_is_promoted_from_the_begin_of_its_promotion(is_managed: str, role: str) -> None:
    text = cib(
        properties=NO_FENCING,
        nodes='<node id="1" uname="n1"/>',
        resources=f'<group id="g">{stateful("a", **{"is-managed": is_managed})}</group>',
        status=member(1, ran("a", "promote=193", agent=STATEFUL)),
    )
    outcome = registry.run("simulate", {"text": text, "source": "cib.xml"}, Context(Cib(), WallTime(0), "tests"))
    rows = [each for each in outcome.data["status"]["resources"] if each["resource"] == "a"]
    assert [each["role"] for each in rows] == [role]
