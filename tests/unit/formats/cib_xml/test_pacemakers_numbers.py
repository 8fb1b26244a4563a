"""Scores and durations as Pacemaker reads them in a CIB; the numbers are those of crm_simulate 2.1.5."""

import pytest

from haclusterd.model.configuration import Location, Primitive
from haclusterd.model.scores import INFINITY, as_in_pacemaker
from tests.written_cibs import cib, read, report_lines

SCORES = [
    ("5", 5, True),
    ("+5", 5, True),
    ("  5", 5, True),
    ("010", 10, True),
    ("INFINITY", INFINITY, True),
    ("+INFINITY", INFINITY, True),
    ("-INFINITY", -INFINITY, True),
    ("1000001", INFINITY, True),
    ("9223372036854775807", INFINITY, True),
    ("infinity", 0, False),
    ("inf", 0, False),
    ("+inf", 0, False),
    ("-inf", 0, False),
    ("INFINITY ", 0, False),
    ("mandatory", 0, False),
    ("5.0", 5, False),
    ("-5.5", -5, False),
    ("1e3", 1, False),
    ("1,000", 1, False),
    ("5x", 5, False),
    ("x5", 0, False),
    ("--5", 0, False),
    ("0x10", 0, False),
    ("", 0, False),
]


@pytest.mark.parametrize(("written", "counted", "is_plain"), SCORES)
def test_a_score_counts_as_in_pacemaker(written: str, counted: int, *, is_plain: bool) -> None:
    rule = f'<rule id="r" score="{written}"><expression id="e" attribute="x" operation="defined"/></rule>'
    made = read(
        cib(
            constraints=f'<rsc_location id="k" rsc="web" node="n2" score="{written}"/>'
            f'<rsc_location id="l" rsc="web">{rule}</rsc_location>'
        )
    )
    one, other = made.cib.configuration.constraints.values()
    assert isinstance(one, Location)
    assert isinstance(other, Location)
    assert (one.score, other.rules[0].score) == (counted, counted)
    assert len(report_lines(made)) == (0 if is_plain else 2)
    assert all(line.startswith("warning") and line.endswith("as in Pacemaker") for line in report_lines(made))


def test_more_digits_than_fit_are_infinity_as_in_pacemaker_3() -> None:
    assert as_in_pacemaker("1" + "0" * 20) == INFINITY
    assert as_in_pacemaker("-1" + "0" * 20) == -INFINITY


@pytest.mark.parametrize(
    ("written", "interval_ms", "timeout_ms"),
    [
        ("5", 5000, 5000),
        ("5 s", 5000, 5000),
        ("500msec", 500, 500),
        ("5 minutes", 300_000, 300_000),
        ("PT5S", 5000, 20_000),
        ("PT1H30M", 5_400_000, 20_000),
        ("5.0", 5000, 5000),
        ("5.9s", 5000, 5000),
        ("1e3", 0, 20_000),
        ("5,5s", 0, 20_000),
        ("inf", 0, 20_000),
        ("-1", 0, 20_000),
    ],
)
def test_a_duration_counts_as_in_pacemaker(written: str, interval_ms: int, timeout_ms: int) -> None:
    resource = (
        '<primitive id="web" class="ocf" provider="pacemaker" type="Dummy"><operations>'
        f'<op id="o" name="monitor" interval="{written}" timeout="{written}"/></operations></primitive>'
    )
    made = read(cib(resources=resource))
    web = made.cib.configuration.resources["web"]
    assert isinstance(web, Primitive)
    assert [(each.interval_ms, each.timeout_ms) for each in web.operations] == [(interval_ms, timeout_ms)]
    assert all(line.startswith("warning") and line.endswith("as in Pacemaker") for line in report_lines(made))
