"""What the planning worker tells is what it planned, whatever stands in it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.graph import GraphAction, Plan, TransitionGraph
from haclusterd.model.instants import WallTime
from haclusterd.model.records import replace
from haclusterd.protocol.plan_codec import PlanReader, plan_head, plan_parts
from haclusterd.scheduler.schedule import schedule
from tests.benchmarks.generated_cibs import Size, cold
from tests.examples import examples
from tests.replicated_values import values_of

NOW = WallTime(1_700_000_000_000)


def read(plan: Plan) -> Plan:
    reader = PlanReader()
    for part in plan_parts(plan):
        reader.add(part)
    return reader.finish(plan_head(plan))


@given(
    st.lists(values_of(GraphAction), max_size=6, unique_by=lambda action: action.id),
    values_of(tuple[str, ...]),
    st.one_of(st.none(), st.integers(0, 2**53)),
)
@settings(max_examples=examples(300))
def test_a_plan_is_read_as_it_was_written(actions: list[GraphAction], warnings: tuple[str, ...], recheck: int) -> None:
    graph = TransitionGraph({action.id: action for action in actions})
    plan = Plan(graph, {}, warnings=warnings, recheck_at=recheck and WallTime(recheck))
    assert read(plan) == plan


def test_a_plan_of_many_parts_is_read_in_their_order() -> None:
    cib = read_cib(cold(Size(4, 200)), "cib.xml").cib
    plan = schedule(cib, NOW)
    assert len(list(plan_parts(plan))) > 5
    found = read(plan)
    assert found == replace(plan, placements={}, changes=(), listing={})
    assert list(found.graph.actions) == list(plan.graph.actions)


def test_parts_are_small() -> None:
    cib = read_cib(cold(Size(4, 200)), "cib.xml").cib
    assert max(map(len, plan_parts(schedule(cib, NOW)))) < 64 * 1024


@given(st.binary(max_size=60))
@settings(max_examples=examples(300))
def test_what_is_malformed_is_a_value_error(data: bytes) -> None:
    for call in (PlanReader().add, PlanReader().finish):
        try:
            call(data)
        except ValueError:
            continue


@pytest.mark.parametrize("text", ["\ud800", "\0", "ünïcode"])
def test_any_text_travels(text: str) -> None:
    plan = Plan(TransitionGraph(), {}, warnings=(text,))
    assert read(plan) == plan
