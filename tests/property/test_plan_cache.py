"""A plan with the cache of earlier plans is the plan without it, whatever happened in between."""

import random
import xml.etree.ElementTree as ET

import pytest

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import WallTime
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule
from tests.benchmarks.generated_cibs import Size, cold
from tests.fuzzing.random_cibs import disturb, generate

NOW = WallTime(1_700_000_000_000)


def cibs(seed: int) -> list[Cib]:
    """One cluster over time: as it was, after events that change its state, its configuration or both."""
    root = generate(seed)
    texts = []
    for step in range(4):
        texts.append(ET.tostring(root, encoding="unicode"))
        disturb(root, seed * 10 + step)
    read = [read_cib(text, "cib.xml").cib for text in texts]
    return [read[0], read[0], *read[1:], read[0]]


@pytest.mark.parametrize("seed", range(1, 61))
def test_the_cache_changes_no_plan(seed: int) -> None:
    cache = PlanCache()
    chance = random.Random(seed)
    for cib in cibs(seed):
        options = ScheduleOptions(has_quorum=chance.random() < 0.8, is_pacemaker_compatible=chance.random() < 0.5)
        assert schedule(cib, NOW, options=options, cache=cache) == schedule(cib, NOW, options=options)


def test_the_cache_is_used() -> None:
    cache = PlanCache()
    cib = read_cib(cold(Size(4, 40)), "cib.xml").cib
    schedule(cib, NOW, cache=cache)
    known_before = dict(cache.definitions)
    assert len(known_before) == 40
    schedule(cib, NOW, cache=cache)
    assert all(cache.definitions[name] is known for name, known in known_before.items())


def test_another_configuration_starts_again() -> None:
    cache = PlanCache()
    first, second = (read_cib(cold(Size(4, size)), "cib.xml").cib for size in (40, 50))
    schedule(first, NOW, cache=cache)
    schedule(second, NOW, cache=cache)
    assert len(cache.definitions) == 50


def test_rules_keep_nothing() -> None:
    text = cold(Size(2, 10)).replace(
        '<meta_attributes id="rd">',
        '<meta_attributes id="rd"><rule id="r"><date_expression id="d" operation="gt" start="2020-01-01"/></rule>',
    )
    cache = PlanCache()
    cib = read_cib(text, "cib.xml").cib
    first = schedule(cib, NOW, cache=cache)
    assert first == schedule(cib, NOW)
    schedule(cib, NOW, cache=cache)
    assert schedule(cib, WallTime(0), cache=cache) == schedule(cib, WallTime(0))
