"""Who is let in by fence devices, and what restarts for it; `crm_simulate` 2.1.5 answers the same."""

import pytest

from tests.pacemaker_plans import (
    FENCE_KNOWN,
    FENCE_RUNS,
    LOST,
    Case,
    actions_of,
    member,
    missing_orders,
    ran,
    remote,
)
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NOTHING, cib, pair

DEVICE = primitive("f", meta("f", provides="unfencing"), agent="stonith:fence_dummy")
ONE_NODE = '<node id="1" uname="n1"/>'
UNFENCED = {"#node-unfenced": "1767268000"}
BY_F = {**UNFENCED, "#digests-all": f"f:fence_dummy:{NOTHING},"}
RUNS = (FENCE_RUNS, ran("a", "start"))
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
