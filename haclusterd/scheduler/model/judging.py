"""Which blocks under rules on dates are in force at a time, and when that may change next."""

from collections.abc import Iterable, Iterator, Mapping

from haclusterd.model.configuration import AttributeSet
from haclusterd.model.instants import WallTime
from haclusterd.model.records import dataclass
from haclusterd.model.rules import DateExpression, Rule
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.rules import RuleContext, evaluate

_SECOND_S, _MINUTE_S = 1, 60


@dataclass(frozen=True, slots=True)
class Judgement:
    """What holds at one time."""

    in_force: tuple[str, ...]
    """Keys of `dated_blocks`, in order."""
    look_again_at: WallTime | None
    """When time alone may change it; None: never."""


def judge(blocks: Mapping[str, AttributeSet], now: WallTime) -> Judgement:
    """Evaluate the rules of `dated_blocks`.

    Pacemaker looks at a date specification again only when the cluster recheck interval is over ("Pacemaker Explained",
    "Rules"); here it is looked at in every minute, or second, that it can name.
    """
    time = EffectiveTime(now)
    context = RuleContext(time)
    rules = {key: block.rule for key, block in blocks.items() if block.rule is not None}
    in_force = tuple(sorted(key for key, rule in rules.items() if evaluate(rule, context)))
    fields = {name for expression in _dates(rules.values()) for name, _ in expression.spec}
    if fields:
        step_s = _SECOND_S if "seconds" in fields else _MINUTE_S
        time.look_again_at((time.now_s // step_s + 1) * step_s)
    return Judgement(in_force, time.recheck_at)


def _dates(rules: Iterable[Rule]) -> Iterator[DateExpression]:
    for rule in rules:
        yield from (each for each in rule.conditions if isinstance(each, DateExpression))
        yield from _dates(each for each in rule.conditions if isinstance(each, Rule))
