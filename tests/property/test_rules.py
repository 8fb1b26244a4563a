"""Dates in every spelling of ISO 8601 mean what the standard library says, and spans are counted on the calendar."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from haclusterd.model.instants import WallTime
from haclusterd.model.rules import Condition, DateExpression, Rule
from haclusterd.scheduler.model.dates import EffectiveTime, add_span, calendar_fields, parse_date
from haclusterd.scheduler.model.rules import RuleContext, evaluate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
moments = st.integers(-11_000_000_000, 13_000_000_000).map(lambda second: EPOCH + timedelta(seconds=second))
offsets = st.integers(-14 * 60, 14 * 60)


def seconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(seconds=1)


@given(
    moments,
    offsets,
    st.sampled_from(["%Y-%m-%d", "%Y%m%d", "%Y-%j", "%G-W%V-%u", "%GW%V%u"]),
    st.sampled_from(["%H:%M:%S", "%H%M%S", "%H:%M:%S.250"]),
    st.sampled_from(["T", " "]),
    st.sampled_from(["", " "]),
)
def test_a_date_is_read_in_every_spelling(
    moment: datetime, offset: int, day: str, clock: str, between: str, before_zone: str
) -> None:
    local = moment.astimezone(timezone(timedelta(minutes=offset)))
    sign = "-" if offset < 0 else "+"
    zone = f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    text = local.strftime(f"{day}{between}{clock}") + before_zone + zone
    assert parse_date(text) == seconds(moment)


@given(moments)
def test_a_date_without_offset_is_utc(moment: datetime) -> None:
    assert parse_date(moment.strftime("%Y-%m-%dT%H:%M:%S")) == seconds(moment)
    assert parse_date(moment.strftime("%Y-%m-%dT%H:%M:%SZ")) == seconds(moment)
    assert parse_date(moment.strftime("%Y-%m-%d")) == seconds(moment.replace(hour=0, minute=0, second=0))


@given(st.text(max_size=30))
def test_no_text_is_an_error(text: str) -> None:
    found = parse_date(text)
    assert found is None or isinstance(found, int)


@given(moments, st.integers(-4000, 4000), st.sampled_from(["weeks", "days", "hours", "minutes", "seconds"]))
def test_a_span_of_fixed_length(moment: datetime, count: int, unit: str) -> None:
    assert add_span(seconds(moment), unit, count) == seconds(moment + timedelta(**{unit: count}))


@given(moments, st.integers(-2400, 2400))
def test_months_keep_the_day_or_clip_it(moment: datetime, count: int) -> None:
    found = add_span(seconds(moment), "months", count)
    assert found is not None
    later = datetime.fromtimestamp(found, UTC)
    assert (later.year * 12 + later.month) - (moment.year * 12 + moment.month) == count
    assert later.time() == moment.time()
    assert later.day == moment.day or (later.day < moment.day and (later + timedelta(days=1)).day == 1)
    assert add_span(seconds(moment), "years", 1) == add_span(seconds(moment), "months", 12)


@given(moments)
def test_a_spec_of_its_own_fields_holds_and_of_others_does_not(moment: datetime) -> None:
    fields = calendar_fields(seconds(moment))
    own = tuple((name, str(value)) for name, value in fields.items())
    context = RuleContext(EffectiveTime(WallTime(seconds(moment) * 1000)))
    assert evaluate(Rule(conditions=(DateExpression("date_spec", spec=own),)), context)
    for name, value in fields.items():
        other = DateExpression("date_spec", spec=((name, f"{value + 1}-"),))
        assert not evaluate(Rule(conditions=(other,)), context)


@given(moments, moments, st.sampled_from(["gt", "lt", "in_range"]))
def test_the_answer_does_not_change_before_the_time_to_look_again(now: datetime, at: datetime, operation: str) -> None:
    text = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    later = (at + timedelta(days=40)).strftime("%Y-%m-%dT%H:%M:%SZ")
    starts = DateExpression(operation, start=text if operation != "lt" else None)
    condition: Condition = {
        "gt": starts,
        "lt": DateExpression("lt", end=text),
        "in_range": DateExpression("in_range", start=text, end=later),
    }[operation]
    rule = Rule(conditions=(condition,))
    time = EffectiveTime(WallTime(seconds(now) * 1000))
    answer = evaluate(rule, RuleContext(time))
    horizon = [now + timedelta(days=1), now + timedelta(days=39), now + timedelta(days=4000)]
    again = time.recheck_at
    if again is not None:
        just_before, then = WallTime(again - 1000), WallTime(again)
        assert evaluate(rule, RuleContext(EffectiveTime(just_before))) is answer
        assert evaluate(rule, RuleContext(EffectiveTime(then))) is not answer
    else:
        for moment in horizon:
            assert evaluate(rule, RuleContext(EffectiveTime(WallTime(seconds(moment) * 1000)))) is answer
