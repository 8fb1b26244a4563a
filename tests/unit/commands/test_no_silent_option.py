"""Every setting of the tables, wherever it may stand: obeyed, refused by name, or warned of by name; never silent.

What is accepted without a word is obeyed live: a rule on dates once the DC has judged it, any other by the scheduler.
"""

from collections.abc import Iterator

import pytest

from haclusterd.cib.apply import apply
from haclusterd.cib.commands import Envelope
from haclusterd.commands.verify.configuration import verify
from haclusterd.formats.crm.syntax import assemble, parse_script
from haclusterd.machines.effects import Propose
from haclusterd.machines.moment import Moment
from haclusterd.machines.rule_judge import RuleJudge
from haclusterd.model.cluster import Cib, ConfigurationVersion, DesignatedController, Status
from haclusterd.model.configuration import Configuration, effective
from haclusterd.model.ids import Incarnation, NodeName, RequestId, ResourceId, Term
from haclusterd.model.instants import Instant, WallTime
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.rows import Row, ValueType, live_objection
from haclusterd.reports.codes import Severity
from haclusterd.reports.items import ReportItem, has_errors
from haclusterd.scheduler.model.dates import EffectiveTime
from haclusterd.scheduler.model.rules import RuleContext, by_strength, merge
from tests.walked_settings import WALKED

CLUSTER_PROPERTIES, META_ATTRIBUTES, DEVICE_PARAMETERS, OPERATION_ATTRIBUTES = WALKED
"""A table that is added there must be walked here."""

TIME = EffectiveTime(WallTime(1_767_268_800_000))
RULES = {"plain": "", "true rule": "rule date gt 2020-01-01", "false rule": "rule date gt 2090-01-01"}
OTHER_RULES = {**RULES, "rule on nodes": "rule #uname eq n1"}
DC = DesignatedController(NodeName("n1"), Incarnation("boot", "life"), Term(1))
DEVICE = "primitive power stonith:fence_local op monitor interval=60s"
WEB = "primitive web ocf:haclusterd:dummy"
MONITOR = "op monitor interval=60s"


def other_value(row: Row) -> str:
    """Return a valid value that is not the default, preferably one that a running cluster obeys."""
    choices = [each for each in row.choices if each != row.default]
    if choices:
        return next((each for each in choices if live_objection(row, each) is None), choices[0])
    if row.type is ValueType.BOOLEAN:
        return "false" if row.default == "true" else "true"
    if row.type is ValueType.STRING:
        return "n1:1" if "map" in row.name else "n1"
    number = max(row.minimum or 0, 7)
    return f"{number}ms" if row.type is ValueType.DURATION and row.minimum is not None else "7"


def judged(text: str) -> tuple[Configuration, tuple[ReportItem, ...]]:
    script = parse_script(text, "text")
    made = assemble(script.statements)
    reports = (*script.reports, *made.reports)
    if not has_errors(reports):
        reports += verify(made.configuration, members={}, agents=None, places=made.places)
    return made.configuration, reports


def live(configuration: Configuration) -> Configuration:
    """Return what every node of a running cluster goes by, once its DC has looked at the clock."""
    cib = Cib(configuration=configuration, version=ConfigurationVersion(epoch=1), status=Status(controller=DC))
    for effect in RuleJudge(DC.term).step(cib, Moment(Instant(0), TIME.now, Instant(1))):
        assert isinstance(effect, Propose)
        envelope = Envelope(RequestId("1"), DC.node, TIME.now, effect.command)
        cib = apply(cib, envelope, index=1, term=DC.term).cib
    assert cib.is_judged
    return cib.in_force


def is_named(name: str, reports: tuple[ReportItem, ...]) -> bool:
    """Tell whether a refusal or warning speaks of a setting."""
    texts = (f"{each.message} {each.remedy}" for each in reports if each.severity is not Severity.INFO)
    return any(name in text for text in texts)


def combinations(rows: tuple[Row, ...]) -> Iterator[tuple[Row, str]]:
    return ((row, rule) for row in rows for rule in OTHER_RULES)


def named(value: tuple[Row, str]) -> str:
    return f"{value[0].name}, {value[1]}"


@pytest.mark.parametrize("drawn", list(combinations(CLUSTER_PROPERTIES)), ids=named)
def test_a_property(drawn: tuple[Row, str]) -> None:
    row, rule = drawn
    for name in (row.name, *row.aliases):
        configuration, reports = judged(f"property $id=p {OTHER_RULES[rule]} {name}={other_value(row)}")
        if is_named(name, reports):
            continue
        assert rule in RULES, "Pacemaker Explained, Rules: attributes cannot be compared for cluster options"
        read = ClusterProperties(live(configuration)).text(row.name)
        assert read == (row.default if rule == "false rule" else other_value(row))


@pytest.mark.parametrize("drawn", list(combinations(META_ATTRIBUTES)), ids=named)
@pytest.mark.parametrize("place", ["own", "defaults"])
def test_a_meta_attribute(drawn: tuple[Row, str], place: str) -> None:
    row, rule = drawn
    pair = f"{row.name}={other_value(row)}"
    own = f"{WEB} meta {OTHER_RULES[rule]} {pair} {MONITOR}\nclone c web"
    text = own if place == "own" else f"{WEB} {MONITOR}\nrsc_defaults {OTHER_RULES[rule]} {pair}"
    configuration, reports = judged(text)
    if is_named(row.name, reports):
        return
    assert rule in RULES, "Pacemaker Explained, Rules: attributes cannot be compared for meta-attributes"
    holds = live(configuration)
    read = effective(holds.resources[ResourceId("web")].meta if place == "own" else holds.resource_defaults)
    assert read.get(row.name) == (None if rule == "false rule" else other_value(row))


@pytest.mark.parametrize("drawn", list(combinations(DEVICE_PARAMETERS)), ids=named)
def test_a_device_parameter(drawn: tuple[Row, str]) -> None:
    row, rule = drawn
    configuration, reports = judged(f"{DEVICE} params {OTHER_RULES[rule]} {row.name}={other_value(row)}")
    if rule in RULES:
        assert not has_errors(reports)
        read = effective(next(live(configuration).fence_devices()).parameters)
        assert read == ({} if rule == "false rule" else {row.name: other_value(row)})
    else:
        assert has_errors(reports)
        assert is_named(row.name, reports)


@pytest.mark.parametrize("drawn", [each for each in combinations(OPERATION_ATTRIBUTES) if each[1] in RULES], ids=named)
@pytest.mark.parametrize("place", ["meta of the operation", "defaults"])
def test_an_operation_attribute_under_a_rule(drawn: tuple[Row, str], place: str) -> None:
    row, rule = drawn
    pair = f"{RULES[rule]} {row.name}={other_value(row)}"
    is_default = place == "defaults"
    text = f"{WEB} {MONITOR}\nop_defaults {pair}" if is_default else f"{WEB} op monitor interval=60s op_meta {pair}"
    configuration, reports = judged(text)
    if is_named(row.name, reports):
        return
    operations = getattr(configuration.resources[ResourceId("web")], "operations", ())
    blocks = configuration.operation_defaults if is_default else operations[0].meta
    read = merge(by_strength(blocks), RuleContext(TIME))
    assert read.get(row.name) == (None if rule == "false rule" else other_value(row))


@pytest.mark.parametrize("row", OPERATION_ATTRIBUTES, ids=lambda row: row.name)
@pytest.mark.parametrize("place", ["operation", "meta of the operation", "defaults"])
def test_an_operation_attribute(row: Row, place: str) -> None:
    pair = f"{row.name}={other_value(row)}"
    text = {
        "operation": f"{WEB} op monitor {pair} {'' if row.name == 'interval' else 'interval=60s'}",
        "meta of the operation": f"{WEB} op monitor interval=60s op_meta {pair}",
        "defaults": f"{WEB} {MONITOR}\nop_defaults {pair}",
    }[place]
    configuration, reports = judged(text)
    if is_named(row.name, reports):
        return
    resource = configuration.resources[ResourceId("web")]
    blocks = configuration.operation_defaults
    operations = getattr(resource, "operations", ())
    if place == "meta of the operation":
        blocks = operations[0].meta
    if place != "operation":
        assert effective(blocks) == {row.name: other_value(row)}
        return
    kept = {
        "interval": "interval_ms", "timeout": "timeout_ms", "start-delay": "start_delay_ms", "enabled": "is_enabled",
    }  # fmt: skip
    attribute = kept.get(row.name, row.name.replace("-", "_"))
    assert getattr(operations[0], attribute) != getattr(type(operations[0])("x", "monitor"), attribute)
