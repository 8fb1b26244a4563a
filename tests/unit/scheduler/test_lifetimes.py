"""While a colocation or an order counts; `crm_simulate` 2.1.5 decides the same for each of these lifetimes."""

import pytest

from haclusterd.model.cluster import Cib
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.schedule import schedule
from tests.pacemaker_plans import NOW, member
from tests.unpacked_cibs import meta, primitive
from tests.written_cibs import NO_FENCING, cib, read, report_lines

COLOCATION = '<rsc_colocation id="k" rsc="a" with-rsc="b" score="INFINITY">{}</rsc_colocation>'
ORDER = '<rsc_order id="k" first="b" then="a">{}</rsc_order>'
OFF = primitive("b", meta("b", **{"target-role": "Stopped"}))

PAST = '<date_expression id="p" operation="lt" end="2025-01-01"/>'
FUTURE = '<date_expression id="f" operation="lt" end="2030-01-01"/>'
AT_N1 = '<expression id="n" attribute="#uname" operation="eq" value="n1"/>'
UNDEFINED = '<expression id="u" attribute="x" operation="not_defined"/>'
AGENT = '<rsc_expression id="r" class="ocf"/>'
OPERATION = '<op_expression id="o" name="start"/>'


def rule(conditions: str, more: str = 'score="INFINITY"', name: str = "k-rule") -> str:
    return f'<rule id="{name}" {more}>{conditions}</rule>'


def planned(constraint: str, lifetime: str) -> tuple[Cib, list[str], int | None]:
    """Return the CIB, where `a` is to run while `b` must not, and when to plan again (ms)."""
    status = member(1) + member(2)
    resources = primitive("a") + OFF
    written = constraint.format(f"<lifetime>{lifetime}</lifetime>" if lifetime else "")
    reading = read(cib(properties=NO_FENCING, resources=resources, constraints=written, status=status))
    assert [line for line in report_lines(reading) if line.startswith("error")] == []
    plan = schedule(reading.cib, NOW, options=ScheduleOptions(is_pacemaker_compatible=True))
    starts = [each.resource for each in plan.graph.actions.values() if each.name == "start" and each.resource]
    return reading.cib, starts, plan.recheck_at


@pytest.mark.parametrize("constraint", [COLOCATION, ORDER])
@pytest.mark.parametrize(
    ("lifetime", "is_in_force"),
    [
        ("", True),
        (rule(FUTURE), True),
        (rule(FUTURE, 'score="-INFINITY"'), True),
        (rule(FUTURE, 'score-attribute="x"'), True),
        (rule(FUTURE, 'score="0" role="Promoted"'), True),
        (rule(PAST), False),
        (rule(PAST) + rule(FUTURE, name="k-other"), True),
        (rule(PAST + FUTURE, 'score="0" boolean-op="or"'), True),
        (rule(PAST + FUTURE), False),
        (rule(AT_N1), False),
        (rule(UNDEFINED), False),
        (rule(AGENT), False),
        (rule(OPERATION), False),
        (rule(AT_N1 + rule(FUTURE, name="k-in"), 'score="0" boolean-op="or"'), True),
        (rule(AT_N1 + rule(FUTURE, name="k-in")), False),
    ],
)
def test_a_constraint_counts_while_a_rule_of_its_lifetime_holds(
    constraint: str, lifetime: str, *, is_in_force: bool
) -> None:
    _, starts, _ = planned(constraint, lifetime)
    assert starts == ([] if is_in_force else ["a"])


@pytest.mark.parametrize("constraint", [COLOCATION, ORDER])
def test_a_plan_is_made_again_when_a_lifetime_ends(constraint: str) -> None:
    _, _, recheck_at = planned(constraint, rule(FUTURE))
    assert recheck_at == 1_893_456_000_000
