"""What a verb costs is what it says it costs: one that says LIGHT runs on the main loop, however large the cluster is.

The interpreter's steps are counted, not the time: they are as many on a machine of any speed and load.
"""

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.model.agents import AgentFacts
from haclusterd.model.configuration import Primitive
from haclusterd.model.history import OperationRecord, ResourceHistory, operation_key
from haclusterd.model.ids import ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.json_value import Json
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.records import replace
from haclusterd.verbs.verb import Cost
from tests.administered_clusters import NOW, Cluster, KeptVersions, ListedPast, formed

RESOURCES = 5000
STEPS_MAX = 400_000
"""About 20 ms of this interpreter: a fifth of what the main loop may be held up for."""

ARGUMENTS: Mapping[str, dict[str, Json]] = {
    "cluster.address": {"node": "n3", "addresses": "10.0.0.9:7400"},
    "cluster.remove": {"node": "n3"},
    "cluster.vote": {"node": "n3", "state": "off"},
    "fencing.confirm": {"node": "n2", "has_checked": True},
    "node.attribute": {"action": "set", "name": "pingd", "value": "100"},
    "tool.run": {"tool": "attrd_updater", "words": ["-n", "pingd", "-U", "100"]},
}
LIGHT = sorted(name for name, verb in registry.VERBS.items() if verb.cost_of(ARGUMENTS.get(name, {})) is Cost.LIGHT)


class TooManyStepsError(Exception):
    """Ends a verb that is not light."""


def steps_of(verb: str, arguments: Mapping[str, Json], context: Context) -> int:
    """Count the interpreter's steps; not farther than it takes to know."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps > STEPS_MAX:
                raise TooManyStepsError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        registry.run(verb, arguments, context)
    except TooManyStepsError:
        pass
    finally:
        sys.settrace(before)
    return steps


def large() -> Cluster:
    """Return a cluster in which thousands of resources run."""
    cluster = formed()
    cluster.configure("primitive r0 ocf:haclusterd:dummy op monitor interval=60s timeout=20s")
    [(_, one)] = cluster.cib.configuration.resources.items()
    assert isinstance(one, Primitive)
    names = [ResourceId(f"r{number}") for number in range(RESOURCES)]
    resources = {name: replace(one, id=name) for name in names}
    cluster.cib = replace(cluster.cib, configuration=replace(cluster.cib.configuration, resources=resources))
    for number, node in enumerate(("n1", "n2", "n3")):
        histories = {}
        for name in names[number::3]:
            record = OperationRecord("start", 0, 1, ExitCode.OK, ExecutionStatus.DONE, ExitCode.OK, NOW, WallTime(1))
            histories[name] = ResourceHistory(name, one.agent, records={operation_key("start", 0): record})
        cluster.put(replace(cluster.node(node), histories=histories, probed=frozenset(names)))
    return cluster


@pytest.fixture(scope="module")
def context() -> Context:
    cluster = large()
    agents = {"ocf:haclusterd:dummy": AgentFacts()}
    return Context(
        cluster.cib, NOW, "root@n1", "", cluster.live, agents=agents, versions=KeptVersions(), past=ListedPast()
    )


@pytest.mark.parametrize("verb", LIGHT)
def test_what_is_run_on_the_main_loop_takes_few_steps_in_a_large_cluster(verb: str, context: Context) -> None:
    assert steps_of(verb, ARGUMENTS.get(verb, {}), context) < STEPS_MAX


@pytest.mark.parametrize("verb", ["status", "node.show", "configure.show", "resource.scores"])
def test_what_looks_at_everything_takes_many(verb: str, context: Context) -> None:
    assert registry.VERBS[verb].cost_of({}) is not Cost.LIGHT
    assert steps_of(verb, {}, context) > STEPS_MAX


def test_an_attribute_for_ever_is_a_change_of_the_configuration_and_costs_as_much() -> None:
    verb = registry.VERBS["node.attribute"]
    assert verb.cost_of({"lifetime": "forever"}) is Cost.WHOLE
    assert verb.cost_of({"lifetime": "reboot"}) is verb.cost_of({}) is Cost.LIGHT


def test_whatever_asks_the_scheduler_or_reads_the_past_is_never_run_on_the_main_loop() -> None:
    long = {name for name, verb in registry.VERBS.items() if verb.cost is Cost.LONG}
    assert long == {
        "acl.can", "acl.explain", "availability", "cluster.backup", "cluster.export", "configure.rollback",
        "fencing.plan",
        "gpu.capacity", "gpu.history", "history.check", "history.config",
        "history.diff", "history.events", "history.info", "history.show", "history.status", "history.transition",
        "history.transitions",
        "resource.move", "resource.scores", "resource.why", "simulate",
    }  # fmt: skip
