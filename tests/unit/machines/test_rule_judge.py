"""Rules on dates: the DC judges them, and every node goes by what was committed."""

import pytest

from haclusterd.cib import commands
from haclusterd.cib.apply_watchdog import lease_in_force_ms
from haclusterd.cib.changes import RefusalCode
from haclusterd.cib.edits import PutSets
from haclusterd.machines.controller import ControllerMachine
from haclusterd.machines.effects import AskForPlan
from haclusterd.machines.moment import Moment
from haclusterd.machines.rule_judge import CLOCKS_DIFFER_MS, LOOK_MS, RuleJudge
from haclusterd.model.configuration import AttributeSet, Configuration
from haclusterd.model.dated_blocks import dated_blocks
from haclusterd.model.ids import Term
from haclusterd.model.instants import NEVER, Instant, WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rules import AttributeExpression, DateExpression, Rule
from haclusterd.scheduler.model.judging import judge
from tests.unit.machines.leading import FORM, TIMING, Dc
from tests.unit.situations import N1, TERM, Cluster, commands_of, life

DAY_MS = 86_400_000
NIGHT = WallTime(20_000 * DAY_MS)
"""2024-10-04, at 0 o'clock; the rule `night` is true until 6."""
SIX_MS = 6 * 3_600_000


def dated(name: str, *dates: DateExpression, **values: str) -> AttributeSet:
    pairs = tuple((key.replace("_", "-"), value) for key, value in values.items())
    return AttributeSet(name, pairs, rule=Rule(f"{name}-rule", dates))


def night(**values: str) -> AttributeSet:
    return dated("night", DateExpression("lt", end="2024-10-04T06:00:00Z"), **values)


def properties(*blocks: AttributeSet) -> PutSets:
    return PutSets("properties", blocks)


def at(wall: int, now: int = 0) -> Moment:
    return Moment(Instant(now), WallTime(wall), Instant(NEVER))


class Judged:
    """A cluster with properties, and its DC's judge."""

    def __init__(self, *blocks: AttributeSet) -> None:
        self.cluster = Cluster()
        self.judge = RuleJudge(TERM)
        self.cluster.configure(properties(*blocks))

    def look(self, wall: int, now: int = 0) -> list[commands.Command]:
        return self.cluster.take(self.judge.step(self.cluster.cib, at(wall, now)))

    def value(self, name: str) -> str:
        return ClusterProperties(self.cluster.cib.in_force).text(name)


def test_a_block_is_in_force_from_the_commit_on_and_until_another() -> None:
    judged = Judged(AttributeSet("plain", (("batch-limit", "3"),)), night(batch_limit="7"))
    assert judged.value("batch-limit") == "3"
    assert len(judged.look(NIGHT)) == 1
    assert judged.value("batch-limit") == "7"
    assert judged.judge.deadline() == LOOK_MS, "somebody may have set the clock"
    assert not judged.look(NIGHT + SIX_MS, now=LOOK_MS - 1)
    judged.look(NIGHT + SIX_MS, now=LOOK_MS)
    assert judged.value("batch-limit") == "3"
    assert judged.cluster.cib.configuration.properties[1] == night(batch_limit="7")


def test_the_next_look_is_when_time_alone_changes_the_answer() -> None:
    judged = Judged(night(batch_limit="7"))
    judged.look(NIGHT + SIX_MS - 500)
    assert judged.judge.deadline() == 500


@pytest.mark.parametrize(("fields", "pause_ms"), [((("hours", "0-5"),), 40_000), ((("seconds", "7"),), 1000)])
def test_a_date_specification_is_looked_at_in_each_unit_that_it_may_name(
    fields: tuple[tuple[str, str], ...], pause_ms: int
) -> None:
    block = dated("office", DateExpression("date_spec", spec=fields), batch_limit="7")
    found = judge({"properties office": block}, WallTime(NIGHT + 20_000))
    assert found.look_again_at == NIGHT + 20_000 + pause_ms


def test_nothing_is_proposed_while_nothing_changes_or_nothing_is_under_a_rule_on_dates() -> None:
    judged = Judged(night(batch_limit="7"))
    judged.look(NIGHT)
    assert not judged.look(NIGHT + 1000, now=LOOK_MS)
    judged.cluster.configure(properties(AttributeSet("plain", (("batch-limit", "3"),))))
    assert not judged.look(NIGHT + 1000, now=LOOK_MS)
    assert judged.judge.deadline() == NEVER
    assert judged.cluster.cib.status.rules is None


def test_an_edit_of_something_else_needs_no_other_judgement() -> None:
    judged = Judged(night(batch_limit="7"))
    judged.look(NIGHT)
    judged.cluster.configure(PutSets("resource_defaults", (AttributeSet("d", (("priority", "1"),)),)))
    assert judged.cluster.cib.is_judged
    assert judged.value("batch-limit") == "7"
    judged.cluster.configure(properties(night(batch_limit="8")))
    assert judged.cluster.cib.is_judged, "the rule is the same"
    assert judged.value("batch-limit") == "8"


def test_a_block_with_another_rule_is_not_in_force_before_it_was_judged() -> None:
    judged = Judged(night(batch_limit="7"))
    judged.look(NIGHT)
    judged.cluster.configure(properties(dated("night", DateExpression("gt", "2030-01-01"), batch_limit="7")))
    assert not judged.cluster.cib.is_judged
    assert judged.value("batch-limit") == "0"


def test_the_word_of_an_older_term_and_of_an_older_configuration_is_refused() -> None:
    judged = Judged(night(batch_limit="7"))
    epoch = judged.cluster.cib.version.epoch
    for term, version in ((Term(0), epoch), (TERM, epoch - 1)):
        refusal = judged.cluster.put(commands.JudgeRules(term, version, NIGHT, ("properties night",))).refusal
        assert refusal is not None
        expected = RefusalCode.OLD_TERM if term != TERM else RefusalCode.CONFIGURATION_CONFLICT
        assert refusal.code is expected
    assert judged.value("batch-limit") == "0"


def test_a_dc_whose_clock_is_a_little_behind_takes_nothing_back() -> None:
    judged = Judged(dated("day", DateExpression("gt", "2024-10-04T06:00:00Z"), batch_limit="7"))
    begun = NIGHT + SIX_MS + 1000
    judged.look(begun)
    judged.judge = RuleJudge(TERM)
    assert not judged.look(begun - CLOCKS_DIFFER_MS)
    judged.judge = RuleJudge(TERM)
    judged.look(begun - CLOCKS_DIFFER_MS - 1)
    assert judged.value("batch-limit") == "0", "its own clock, or the other one, was wrong by far"


def test_a_lease_that_a_rule_makes_longer_is_recorded_before_it_is_in_force_and_stays_so() -> None:
    judged = Judged(night(node_timeout="30s"))
    judged.look(NIGHT)
    assert lease_in_force_ms(judged.cluster.cib.in_force) == 30_000
    judged.look(NIGHT + SIX_MS, now=LOOK_MS)
    assert lease_in_force_ms(judged.cluster.cib.in_force) == 2000
    assert judged.cluster.status(N1).longest_lease_ms == 30_000


def test_a_life_that_begins_while_the_rule_is_true_counts_with_its_lease() -> None:
    judged = Judged(night(node_timeout="30s"))
    judged.look(NIGHT)
    judged.cluster.must(commands.Join(N1, life(N1, boot=2)))
    assert judged.cluster.status(N1).longest_lease_ms == 30_000


@pytest.mark.parametrize(
    "blocks",
    [
        (AttributeSet("plain", (("watchdog-fencing", "true"),)), night(no_quorum_policy="freeze")),
        (AttributeSet("plain", (("no-quorum-policy", "freeze"),)), night(watchdog_fencing="true")),
    ],
)
def test_what_may_come_into_force_together_and_must_not_is_refused(blocks: tuple[AttributeSet, ...]) -> None:
    cluster = Cluster()
    command = commands.ChangeConfiguration(cluster.cib.version.epoch, (properties(*blocks),), "test", "")
    refusal = cluster.put(command).refusal
    assert refusal is not None
    assert refusal.code is RefusalCode.UNSAFE_CONFIGURATION


def test_a_lease_by_a_rule_must_hold_on_this_network() -> None:
    cluster = Cluster()
    edits = (properties(night(node_timeout="500ms")),)
    command = commands.ChangeConfiguration(cluster.cib.version.epoch, edits, "test", "", round_trip_ms=400)
    refusal = cluster.put(command).refusal
    assert refusal is not None
    assert "node-timeout=500ms" in refusal.text


def test_what_other_rules_guard_is_not_judged() -> None:
    other = Rule("r", (AttributeExpression("#uname", "eq", "n1"), DateExpression("gt", "2020-01-01")))
    assert not dated_blocks(Configuration(properties=(AttributeSet("mixed", (("batch-limit", "7"),), rule=other),)))


def test_nothing_is_planned_before_the_rules_of_the_configuration_were_judged() -> None:
    dc = Dc()
    dc.cluster.configure(properties(night(batch_limit="7")))
    effects = dc.ask()
    assert not any(isinstance(effect, AskForPlan) for effect in effects)
    [judgement] = [each for each in commands_of(effects) if isinstance(each, commands.JudgeRules)]
    assert any(isinstance(effect, AskForPlan) for effect in dc.change(judgement))


def test_a_node_that_is_not_the_dc_judges_nothing() -> None:
    judged = Judged(night(batch_limit="7"))
    controller = ControllerMachine(N1, life(N1), TIMING, FORM)
    assert not controller.step(judged.cluster.cib, (), None, at(NIGHT))
