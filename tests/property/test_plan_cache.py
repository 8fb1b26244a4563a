"""A plan with the cache of earlier plans is the plan without it, whatever happened in between."""

import random
import re
import xml.etree.ElementTree as ET

import pytest

from haclusterd.formats.cib_xml.document import read_cib
from haclusterd.model.cluster import Cib, NodeStatus
from haclusterd.model.graph import ActionKind
from haclusterd.model.ids import NodeName
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.scheduler.model.digests import digest_of
from haclusterd.scheduler.model.options import ScheduleOptions
from haclusterd.scheduler.model.plan_cache import PlanCache
from haclusterd.scheduler.schedule import schedule
from tests.benchmarks.generated_cibs import Size, cold
from tests.fuzzing.random_cibs import disturb, generate
from tests.scheduled_clusters import ScheduledCluster, configured

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


def with_attribute(cib: Cib, node: NodeName, name: str, value: str) -> Cib:
    """Return what is left of a cluster when somebody has written an attribute."""
    status = cib.status.nodes.get(node, NodeStatus(node))
    nodes = {**cib.status.nodes, node: replace(status, attributes={**status.attributes, name: value})}
    return replace(cib, index=cib.index + 1, status=replace(cib.status, nodes=nodes))


@pytest.mark.parametrize("seed", range(1, 61))
def test_a_plan_that_is_kept_is_the_plan_for_other_attributes_and_times(seed: int) -> None:
    chance, cache = random.Random(seed), PlanCache()
    cib = cibs(seed)[chance.randrange(5)]
    names = ["standby", "maintenance", "shutdown", "#health-disk", "site-name", "unread", *named_in(cib)]
    options = ScheduleOptions(is_pacemaker_compatible=chance.random() < 0.3)
    now = NOW
    for _ in range(8):
        now = WallTime(now + chance.choice((0, 0, 1, 1000, 61_000, 700_000, -5000)))
        assert schedule(cib, now, options=options, cache=cache) == schedule(cib, now, options=options)
        node = chance.choice(sorted(cib.members))
        cib = with_attribute(cib, node, chance.choice(names), chance.choice(("true", "false", "5", "-INFINITY", "red")))


def named_in(cib: Cib) -> list[str]:
    """Return every attribute that a rule, a colocation or a placement of a configuration names."""
    return sorted(set(re.findall(r"attribute='([^']+)'", repr(cib.configuration))))


RULED = """
primitive web ocf:heartbeat:Dummy op monitor interval=10s timeout=20s meta failure-timeout=60s
location near web rule 100: rack eq a
"""


class TestKeptPlan:
    """The newest plan is given again until something changes that it has looked at."""

    def setup_method(self) -> None:
        self.cache = PlanCache()
        self.cluster = ScheduledCluster.of(("n1", "n2"))
        self.configure(RULED)

    def configure(self, text: str) -> None:
        self.cluster.configure(configured(text))
        self.cluster.settle()
        self.plan = schedule(self.cluster.cib, self.cluster.now, cache=self.cache)

    def is_given_again(self, **attributes: str) -> bool:
        """Write attributes of a node, and ask for the plan."""
        cib, now = self.cluster.cib, self.cluster.now
        for name, value in attributes.items():
            cib = with_attribute(cib, NodeName("n2"), name, value)
        plan = schedule(cib, now, cache=self.cache)
        assert plan == schedule(cib, now)
        return plan is self.plan

    def test_an_attribute_that_nothing_names_changes_nothing(self) -> None:
        assert self.is_given_again(xlog="0000000003000090")
        assert self.is_given_again(xlog="0000000003000098", other="1")

    @pytest.mark.parametrize("name", ["rack", "standby", "maintenance"])
    def test_an_attribute_that_a_plan_looks_at_does(self, name: str) -> None:
        assert not self.is_given_again(**{name: "true"})

    def test_health_does_where_it_counts(self) -> None:
        assert self.is_given_again(**{"#health-disk": "red"})
        self.configure(RULED + "property cib-bootstrap-options: node-health-strategy=only-green")
        assert not self.is_given_again(**{"#health-disk": "red"})

    def test_a_failure_does_and_so_does_its_end(self) -> None:
        node = next(node for resource, node in self.cluster.running if resource == "web")
        self.cluster.fail("web", node, "monitor", 10_000, ExitCode.NOT_RUNNING, "gone")
        assert not self.is_given_again()
        self.cluster.settle()
        self.plan = schedule(self.cluster.cib, self.cluster.now, cache=self.cache)
        self.cluster.now = WallTime(self.cluster.now + 30_000)
        assert self.is_given_again(xlog="1")
        self.cluster.now = WallTime(self.cluster.now + 31_000)
        assert not self.is_given_again(xlog="1")

    def test_another_node_that_is_lost_does(self) -> None:
        self.cluster.lose("n2")
        assert not self.is_given_again()


@pytest.mark.parametrize("probes", ["true", "false"])
def test_what_was_a_unique_instance_gives_its_digest_to_nothing_else(probes: str) -> None:
    """Both are called `web:0` while both are planned; without probes the first digest asked for is the old one's."""
    cluster, cache = ScheduledCluster.of(("n1", "n2")), PlanCache()
    property_of_probes = f"property enable-startup-probes={probes}\n"
    for text in (
        "primitive web ocf:heartbeat:Dummy\nclone webs web meta globally-unique=true",
        "primitive web ocf:heartbeat:Dummy params fake=other\nclone webs web",
    ):
        cluster.configure(configured(property_of_probes + text))
        started = []
        while (plan := schedule(cluster.cib, cluster.now, cache=cache)).graph.actions:
            assert plan == schedule(cluster.cib, cluster.now)
            for action in plan.graph.actions.values():
                if action.name == "start" and action.kind is ActionKind.RESOURCE:
                    started.append((action.definition, action.parameters))
                if not cluster.perform(action):
                    break
    assert started == 2 * [(digest_of({"fake": "other"}), {"fake": "other"})]


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
