"""What must run with something that cannot start: it waits, or stops. `crm_simulate` 2.1.5 decides the same."""

import pytest

from tests.pacemaker_plans import Case, actions_of, member, missing_orders, ran
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NO_FENCING, cib

ORDER = '<rsc_order id="o" first="base" then="mid"/>'
APART = (
    '<rsc_location id="l1" rsc="base" node="n2" score="-INFINITY"/>'
    '<rsc_location id="l2" rsc="mid" node="n1" score="-INFINITY"/>'
)
OFF = primitive("off", meta("off", **{"target-role": "Stopped"}))
AFTER_OFF = '<rsc_order id="o" first="off" then="a"/>'


def clone(name: str, inside: str) -> str:
    return f'<clone id="{name}">{meta(name, interleave="true")}{inside}</clone>'


CLONES = clone("base", primitive("b")) + clone("mid", primitive("m"))


def beside(dependent: str, primary: str) -> str:
    return f'<rsc_colocation id="c-{dependent}" rsc="{dependent}" with-rsc="{primary}" score="INFINITY"/>'


def known(*resources: str) -> list[str]:
    return [ran(name, "monitor=7") for name in resources]


def running(*resources: str) -> list[str]:
    return [ran(name, "start") for name in resources]


def split_clones(resources: str, constraints: str, names: tuple[str, ...], *, runs: bool) -> str:
    """A clone on n1, after it one on n2, where the first may not be; and what must run with the second."""
    here = running(*names) if runs else known(*names)
    return cib(
        properties=NO_FENCING,
        resources=CLONES + resources,
        constraints=ORDER + APART + beside("app", "mid") + constraints,
        status=member(1, *running("b"), *known("m", *names)) + member(2, *here, *known("b", "m")),
    )


def in_a_row(names: tuple[str, ...], *, runs: bool) -> str:
    """Primitives, each with the one before; the first is after one that is switched off."""
    here = running(*names) if runs else known(*names)
    return cib(
        properties=NO_FENCING,
        resources=OFF + "".join(map(primitive, names)),
        constraints=AFTER_OFF + "".join(map(beside, names[1:], names)),
        status=member(1, *here, *known("off")) + member(2, *known("off", *names)),
    )


def after_a_clone(*, interleave: str) -> str:
    """A clone that runs on both nodes, with one that comes after a third, which cannot start."""
    middle = f'<clone id="mid">{meta("mid", interleave=interleave)}{primitive("m")}</clone>'
    return cib(
        properties=NO_FENCING,
        resources=OFF + clone("base", primitive("b")) + middle + clone("app", primitive("a")),
        constraints='<rsc_order id="o1" first="off" then="base"/>' + ORDER + beside("app", "mid"),
        status="".join(member(number, *running("a"), *known("off", "b", "m")) for number in (1, 2)),
    )


def after_a_promotion(*, notify: str) -> str:
    """A clone whose instances each come after the promotion of one that nothing says may be promoted."""
    options = meta("base", promotable="true", notify=notify)
    return cib(
        properties=NO_FENCING,
        resources=f'<clone id="base">{options}{primitive("b")}</clone>' + clone("app", primitive("a")),
        constraints='<rsc_order id="o" first="base" first-action="promote" then="app" then-action="start"/>',
        status=member(1, *running("b"), *known("a")) + member(2, *running("b"), *known("a")),
    )


STOPPED_CLONE = ("stop a@n1", "stop a@n2", "~stop app@", "~stopped app@")
GROUP = f'<group id="app">{primitive("a1")}{primitive("a2")}</group>'
CASES = (
    Case(
        "a primitive waits for an instance that has nothing to run after on its node",
        split_clones(primitive("app"), "", ("app",), runs=False),
        (),
    ),
    Case("and stops when it runs", split_clones(primitive("app"), "", ("app",), runs=True), ("stop app@n2",)),
    Case("a clone waits likewise", split_clones(clone("app", primitive("a")), "", ("a",), runs=False), ()),
    Case(
        "and stops",
        split_clones(clone("app", primitive("a")), "", ("a",), runs=True),
        ("stop a@n2", "~stop app@", "~stopped app@"),
    ),
    Case("a group waits likewise", split_clones(GROUP, "", ("a1", "a2"), runs=False), ()),
    Case(
        "and stops, the last member first",
        split_clones(GROUP, "", ("a1", "a2"), runs=True),
        ("stop a1@n2", "stop a2@n2", "~stop app@", "~stopped app@"),
        ("stop a2@n2 < stop a1@n2",),
    ),
    Case(
        "a clone stops with one whose instances each come after one that cannot start",
        after_a_clone(interleave="true"),
        STOPPED_CLONE,
    ),
    Case("and with one that waits as a whole", after_a_clone(interleave="false"), STOPPED_CLONE),
    Case("an instance waits for a promotion that does not come", after_a_promotion(notify="false"), ()),
    Case("also where the instances that come first are notified", after_a_promotion(notify="true"), ()),
    Case(
        "what must run with the one that waits, waits too",
        split_clones(primitive("app") + primitive("more"), beside("more", "app"), ("app", "more"), runs=False),
        (),
    ),
    Case("so does each of a row", in_a_row(("a", "b", "c"), runs=False), ()),
    Case("and each stops", in_a_row(("a", "b", "c"), runs=True), ("stop a@n1", "stop b@n1", "stop c@n1")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_has_the_expected_actions_in_the_expected_order(case: Case) -> None:
    assert actions_of(case) == sorted(case.actions)
    assert missing_orders(case) == []
