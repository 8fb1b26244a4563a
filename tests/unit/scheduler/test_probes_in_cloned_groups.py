"""What waits for the probes of a cloned group: stops of other instances, and of members before it; as in Pacemaker."""

import pytest

from tests.pacemaker_plans import Case, actions_of, member, missing_orders, needless_orders, ran
from tests.unpacked_cibs import primitive
from tests.written_cibs import cib, pair

OTHER_AGENT = 'class="lsb" type="x"'


def cloned(*members: str, first: str, second: str = "") -> str:
    """A cloned group on n1 and n2; what runs was started as another agent, so that it restarts."""
    inside = "".join(primitive(name) for name in members)
    return cib(
        properties=pair("stonith-enabled", "false"),
        resources=f'<clone id="c"><group id="g">{inside}</group></clone>',
        status=member(1, *(ran(name, "start", agent=OTHER_AGENT) for name in first))
        + member(2, *(ran(name, "start", agent=OTHER_AGENT) for name in second)),
    )


CASES = (
    Case(
        "members behind a probed one do not wait for it, those before it do",
        cloned("a", "b", "d", first="b"),
        (),
        ("monitor d@n1 < stop b@n1",),
        ("monitor a@n1 < stop b@n1",),
    ),
    Case(
        "nor does the end of a longer chain",
        cloned("a", "b", "d", first="bd"),
        (),
        (),
        ("monitor a@n1 < stop b@n1", "monitor a@n1 < stop d@n1"),
    ),
    Case(
        "the first member waits for the probes of the other instance",
        cloned("a", "b", first="a"),
        (),
        ("monitor a@n2 < stop a@n1", "monitor b@n2 < stop a@n1", "monitor b@n1 < stop a@n1"),
    ),
    Case(
        "a later member waits for those too",
        cloned("a", "b", first="b"),
        (),
        ("monitor a@n2 < stop b@n1", "monitor b@n2 < stop b@n1"),
        ("monitor a@n1 < stop b@n1",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_waits_for_probes(case: Case) -> None:
    words = set(actions_of(case))
    assert {each for order in (*case.orders, *case.not_ordered) for each in order.split(" < ")} <= words
    assert missing_orders(case) == []
    assert needless_orders(case) == []
