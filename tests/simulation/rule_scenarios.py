"""One scenario for each safety rule: what befalls the cluster when the rule is needed.

Each runs with every rule in force, and must then end well; and once more without its rule, and must then be caught.
The scenarios are those of docs/design/0004-rules-and-scenarios.md.
"""

import pytest

from haclusterd.cib import apply as cib_apply
from haclusterd.cib.commands import Lost, RecordResults, RequestFence, SetTransientAttribute
from haclusterd.cib.edits import PutNode, PutResource
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, NodeEntry, Primitive
from haclusterd.model.fencing import ProofState
from haclusterd.model.graph import Plan, TransitionGraph
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.instants import WallTime
from haclusterd.model.ocf import ExecutionStatus, ExitCode
from haclusterd.model.orders import OperationResult, ResultKind
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.simulator.checks.checkers_of_losses import FencedNodesAreDead
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.scenario import Cluster, Setup

USUAL = Setup()
SLOW_START = AgentRun(duration_ms=3000)
DB = ResourceId("db")


def formed(rules: SafetyRules, *, seed: int = 1, setup: Setup = USUAL) -> Cluster:
    return Cluster(seed, setup, rules).form()


def request_fence(cluster: Cluster, node: str) -> None:
    status = cluster.cib.status.nodes[NodeName(node)]
    cluster.administer(RequestFence(status.name, status.incarnation, "scenario", "to see what happens"))


def agent_at_work(cluster: Cluster, node: str, resource: str, action: str) -> bool:
    return any(call.action == action for call in cluster.agents_at_work(NodeName(node), ResourceId(resource)))


# -- orders ----------------------------------------------------------------------------------------------------------


SYNC_US = (300, 3000)
SLOW_SYNC_US = (150_000, 150_000)
"""So long that plans can end while what they ordered is on its way into the log."""


def _take_to_sync(cluster: Cluster, sync_us: tuple[int, int]) -> None:
    for host in cluster.hosts.values():
        host.disk.sync_us = sync_us


def _settle_with_extra_on(cluster: Cluster, node: NodeName) -> None:
    _take_to_sync(cluster, SYNC_US)
    cluster.run_for(4000)
    cluster.until(cluster.is_settled, 10_000, "settled")
    assert cluster.node_of("extra") == node


def replay_after_fencing(rules: SafetyRules) -> None:
    """n1 dies with an open order to start db on its disk; after its fencing it reboots and replays it."""
    cluster = formed(rules)
    cluster.agent_script.write("db", "start", SLOW_START, node="n1")
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.run_for(500)
    cluster.power_off("n1")
    cluster.until(lambda: cluster.runs_once("db"), 8000, "db recovered")
    cluster.until(cluster.is_settled, 20_000, "settled after n1's return")


def order_for_an_older_incarnation(rules: SafetyRules) -> None:
    """A plan is executed while n2's daemon restarts: an order is for an incarnation that ends before its commit."""
    for offset_ms in range(1000, 1400, 100):
        cluster = formed(rules)
        dc = cluster.dc()
        target, third = cluster.others(dc)
        _take_to_sync(cluster, SLOW_SYNC_US)
        cluster.agent_script.write("extra", "monitor", AgentRun(duration_ms=1500), node=third, times=1)
        cluster.edit((configurations.primitive("extra"), configurations.prefers("extra", target)))
        cluster.until(lambda: agent_at_work(cluster, third, "extra", "monitor"), 5000, "extra probed")  # noqa: B023 (called at once)
        cluster.run_for(offset_ms)
        cluster.kill_brain(target)
        cluster.run_for(4000)


def start_without_lease(rules: SafetyRules) -> None:
    """n1 hears nobody any more but is heard; Raft works; db dies there."""
    cluster = formed(rules)
    for other in cluster.others("n1"):
        cluster.network.drop_datagrams(NodeName(other), NodeName("n1"))
    cluster.run_for(3000)
    cluster.kill_service("db")
    cluster.run_for(6000)
    cluster.heal()
    cluster.until(cluster.is_settled, 20_000, "settled after the cut")


def voided_while_queued(rules: SafetyRules) -> None:
    """An order waits for a free slot on n1; before one is free it is voided."""
    cluster = formed(rules, setup=Setup(actions_max=1))
    cluster.agent_script.write("first", "start", SLOW_START)
    edits = [configurations.primitive(name) for name in ("first", "second")]
    cluster.configure([*edits, *(configurations.prefers(name, "n1", 1000) for name in ("first", "second"))])
    cluster.until(lambda: agent_at_work(cluster, "n1", "first", "start"), 5000, "first starting on n1")
    cluster.run_for(200)
    cluster.configure([configurations.primitive("second", meta={"target-role": "Stopped"})])
    cluster.run_for(5000)
    assert not cluster.truth.active_nodes(ResourceId("second"))


def begun_too_late(rules: SafetyRules) -> None:
    """An order waits for a free slot on n1 for longer than its deadline."""
    cluster = formed(rules, setup=Setup(actions_max=1))
    cluster.agent_script.write("first", "start", AgentRun(duration_ms=14_000))
    slow = configurations.primitive("first", start_timeout_ms=20_000)
    cluster.configure([
        slow,
        configurations.primitive("second"),
        *(configurations.prefers(name, "n1", 1000) for name in ("first", "second")),
    ])  # fmt: skip
    cluster.until(lambda: cluster.runs_once("first", "second"), 30_000, "both started")


def voided_order_races_begun_agent(rules: SafetyRules) -> None:
    """db's start on n1 is in flight when its place changes to n2."""
    cluster = formed(rules)
    cluster.agent_script.write("db", "start", SLOW_START, node="n1")
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.configure([configurations.prefers("db", "n1", -1_000_000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != "n1", 10_000, "db on another node")


def dc_changes_with_agent_in_flight(rules: SafetyRules) -> None:
    """The DC dies while an agent that it ordered runs on another node; the next DC wants db in another place."""
    cluster = formed(rules)
    dc = cluster.dc()
    home = cluster.others(dc)[0]
    cluster.configure([configurations.prefers("db", home, 1000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") == home, 10_000, "db away from the DC")
    cluster.until(cluster.is_settled, 10_000, "settled")
    cluster.agent_script.write("db", "start", SLOW_START, node=home)
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, home, "db", "start"), 5000, "db starting")
    cluster.power_off(dc)
    cluster.edit([configurations.prefers("db", home, -1_000_000)])
    cluster.until(lambda: cluster.runs_once("db") and cluster.node_of("db") != home, 15_000, "db moved by the new DC")


def order_of_an_aborted_plan(rules: SafetyRules) -> None:
    """A plan ends while its start is on its way into the log; the next plan, made without it, starts db on another."""
    for offset_ms in range(450, 700, 50):
        cluster = formed(rules)
        first, second = cluster.others(cluster.dc())
        _take_to_sync(cluster, SLOW_SYNC_US)
        cluster.agent_script.write("other", "monitor", AgentRun(duration_ms=1500))
        cluster.edit((configurations.primitive("extra"), configurations.prefers("extra", first)))
        cluster.run_for(offset_ms)
        moved = configurations.prefers("extra", second, 1000)
        cluster.edit((moved, configurations.primitive("other"), configurations.after("extra", "other")))
        cluster.run_for(1000)
        _settle_with_extra_on(cluster, second)


def stop_of_an_aborted_plan(rules: SafetyRules) -> None:
    """A plan ends while its stop is on its way into the log; the next plan, made without it, wants the same stop."""
    for offset_ms in range(150, 175, 5):
        cluster = formed(rules)
        first, second = cluster.others(cluster.dc())
        cluster.edit((configurations.primitive("extra"), configurations.prefers("extra", first)))
        cluster.run_for(1000)
        cluster.until(lambda cluster=cluster: cluster.runs_once("extra") and cluster.is_settled(), 10_000, "extra runs")
        assert cluster.node_of("extra") == first
        _take_to_sync(cluster, SLOW_SYNC_US)
        cluster.edit((configurations.prefers("extra", second, 1000),))
        cluster.run_for(offset_ms)
        cluster.edit((configurations.primitive("other"),))
        cluster.run_for(1000)
        _settle_with_extra_on(cluster, second)


def old_dc_speaks_late(rules: SafetyRules) -> None:
    """The DC plans while its Raft thread hangs; when that goes on, another is DC.

    Its orders die where they waited, because they count in the log of their own term only. What else a DC says is not
    bound like that, nor are the orders of older versions: it is put into the log here by hand.
    """
    cluster = formed(rules)
    dc = cluster.dc()
    controller = cluster.cib.status.controller
    assert controller is not None
    incarnation = cluster.incarnation_at(NodeName("n3"))
    cluster.hang_main_loop(dc)
    cluster.configure([configurations.primitive("extra")])
    cluster.run_for(100)
    cluster.hang_raft_thread(dc)
    cluster.resume_main_loop(dc)
    cluster.until(lambda: cluster.dc() != dc, 5000, "another DC")
    cluster.run_for(2000)
    cluster.resume_threads(dc)
    cluster.administer(Lost(NodeName("n3"), incarnation, controller.term, "not heard"))
    cluster.run_for(3000)
    cluster.until(cluster.is_settled, 20_000, "settled")


def results_of_an_older_life(rules: SafetyRules) -> None:
    """A stop that n1's old incarnation reports reaches the log after n1's next Join, when db runs there again.

    Sessions keep their order and a follower forwards nothing for others, so our own transport brings no entry that
    late: here it is put into the log by hand.
    """
    cluster = formed(rules)
    old = cluster.incarnation_at(NodeName("n1"))
    assert old is not None
    stopped = OperationResult(
        kind=ResultKind.FINISHED,
        order=None,
        resource=DB,
        operation="stop",
        interval_ms=0,
        exit_code=ExitCode.OK,
        status=ExecutionStatus.DONE,
        call_id=1_000_000,
        run_at=WallTime(0),
    )
    cluster.kill_brain("n1")
    cluster.until(cluster.is_settled, 10_000, "settled under n1's new life")
    cluster.administer(RecordResults(NodeName("n1"), old, (stopped,)))
    cluster.run_for(3000)
    assert cluster.is_settled()


def restart_in_mid_start(rules: SafetyRules) -> None:
    """n1's daemon is killed while an agent starts db; the agent goes on and succeeds."""
    cluster = formed(rules)
    cluster.agent_script.write("db", "start", SLOW_START, node="n1", times=1)
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.run_for(300)
    cluster.kill_brain("n1")
    cluster.until(cluster.is_settled, 20_000, "settled")


def restart_in_mid_stop(rules: SafetyRules) -> None:
    """n1's daemon is killed while an agent stops db there; db is wanted on n2 by then."""
    cluster = formed(rules)
    cluster.agent_script.write("db", "stop", AgentRun(duration_ms=3000, effect_at_percent=90), node="n1", times=1)
    cluster.configure([configurations.prefers("db", "n1", -1_000_000)])
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "stop"), 5000, "db stopping on n1")
    cluster.run_for(300)
    cluster.kill_brain("n1")
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert cluster.node_of("db") != "n1"


def restart_hides_a_start(rules: SafetyRules) -> None:
    """As in mid-start, but db is wanted on another node when the new incarnation joins: a probe must come first."""
    cluster = formed(rules)
    cluster.agent_script.write("db", "start", AgentRun(duration_ms=1500, effect_at_percent=90), node="n1", times=1)
    cluster.kill_service("db")
    cluster.until(lambda: agent_at_work(cluster, "n1", "db", "start"), 5000, "db starting on n1")
    cluster.kill_brain("n1")
    cluster.edit([configurations.prefers("db", "n1", -1_000_000)])
    cluster.until(cluster.is_settled, 20_000, "settled")


# -- lease -----------------------------------------------------------------------------------------------------------


def late_echoes(rules: SafetyRules) -> None:
    """Echoes to a node travel for seconds; then it is silenced: what arrives afterwards must not keep its lease."""
    cluster = formed(rules)
    node = cluster.others(cluster.dc())[0]
    cluster.switch.set(node, FaultMode.DEAD)
    for other in cluster.others(node):
        cluster.network.delay_datagrams(NodeName(other), NodeName(node), 3500)
    cluster.run_for(5000)
    cluster.pause_brain(node)
    for other in cluster.others(node):
        cluster.cut_one_way(node, other)
    cluster.run_for(8000)


def lost_while_its_brain_is_stopped(rules: SafetyRules) -> None:
    """A node's daemon is stopped, its pacer is not; it is lost, and its pacer must get no more echoes."""
    cluster = formed(rules, setup=Setup(brain_timeout_ms=3000))
    node = cluster.others(cluster.dc())[0]
    cluster.switch.set(node, FaultMode.DEAD)
    cluster.pause_brain(node)
    cluster.until(lambda: cluster.state(node) is NodeState.LOST, 8000, "lost")
    cluster.run_for(5000)


def voters_restart_after_a_loss(rules: SafetyRules) -> None:
    """The same, and then the voters' daemons restart: they must remember whom they gave up."""
    cluster = formed(rules, setup=Setup(brain_timeout_ms=3000))
    node = cluster.others(cluster.dc())[0]
    cluster.switch.set(node, FaultMode.DEAD)
    cluster.pause_brain(node)
    cluster.until(lambda: cluster.state(node) is NodeState.LOST, 8000, "lost")
    cluster.run_for(2500)
    for other in cluster.others(node):
        cluster.kill_brain(other)
        cluster.run_for(2000)


def isolated_holder_without_fencing(rules: SafetyRules) -> None:
    """The holder of db is cut off, the switch is dead: it must stop db by itself, nothing starts on another node."""
    cluster = formed(rules)
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.isolate("n1")
    cluster.run_for(16_000)
    assert not cluster.truth.active_nodes(DB), "db runs, though nobody may hold it"


# -- who is lost -----------------------------------------------------------------------------------------------------


def only_the_dc_does_not_hear(rules: SafetyRules) -> None:
    """The cable between the DC and one node is cut; the third hears both."""
    cluster = formed(rules)
    cluster.run_for(10_000)
    dc = cluster.dc()
    node = cluster.others(dc)[0]
    cluster.cut(dc, node)
    cluster.run_for(5000)
    assert cluster.states()[node] is NodeState.ONLINE
    cluster.heal()
    cluster.until(cluster.is_settled, 20_000, "settled")
    assert not cluster.switch.acted


def dc_is_paused(rules: SafetyRules) -> None:
    """The DC's pacer stands still for almost T, and what was sent to it meanwhile is gone: nobody else is to blame.

    The others do not hear each other, so that neither can report that it hears the other.
    """
    for step in range(8):
        cluster = formed(rules, seed=step)
        cluster.run_for(8100 + 7 * step)
        dc = cluster.dc()
        left, right = cluster.others(dc)
        for speaker, listener in ((left, right), (right, left)):
            cluster.network.drop_datagrams(speaker, listener)
        cluster.run_for(5000)
        for other in cluster.others(dc):
            cluster.network.drop_datagrams(other, dc)
        pacer = cluster.hosts[dc].pacer
        pacer.pause()
        cluster.run_for(1880 + step)
        pacer.resume()
        cluster.run_for(1)
        for other in cluster.others(dc):
            cluster.network.pass_datagrams(other, dc)
        cluster.run_for(1500)
        assert not cluster.switch.acted


def dc_hears_but_is_not_heard(rules: SafetyRules) -> None:
    """The DC's datagrams reach nobody, so it has no lease; then a node dies."""
    cluster = formed(rules)
    dc = cluster.dc()
    node = cluster.others(dc)[0]
    for other in cluster.others(dc):
        cluster.network.drop_datagrams(dc, other)
    cluster.run_for(4000)
    cluster.power_off(node)
    cluster.run_for(6000)
    cluster.heal()
    cluster.until(cluster.is_settled, 40_000, "settled")


# -- fencing ---------------------------------------------------------------------------------------------------------


def dead_switch(rules: SafetyRules) -> None:
    """The holder of db dies and the switch is dead: nothing of it may be recovered until the switch works."""
    cluster = formed(rules)
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.power_off("n1")
    cluster.run_for(8000)
    assert not cluster.truth.holders(DB)
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once("db"), 60_000, "db recovered after the switch works again")


def lying_switch(rules: SafetyRules) -> None:
    """A node is fenced by hand, and the switch does nothing and says ok; its daemon is stopped, its pacer is heard."""
    cluster = formed(rules)
    cluster.pause_brain("n1")
    cluster.switch.set("n1", FaultMode.LIES)
    request_fence(cluster, "n1")
    cluster.run_for(6000)
    assert cluster.truth.active_nodes(DB) == ("n1",)


def switch_lies_about_a_node_that_nobody_hears(rules: SafetyRules) -> None:
    """A cut-off node is recorded as fenced by a switch that lies, and comes back in the same boot."""
    cluster = formed(rules)
    node = next(name for name in cluster.names if not cluster.truth.services_on(name))
    cluster.checkers.leave_out(FencedNodesAreDead)
    cluster.switch.set(node, FaultMode.LIES)
    cluster.isolate(node)
    cluster.until(lambda: cluster.state(node) is NodeState.FENCED, 10_000, "it is recorded as fenced")
    cluster.run_for(3000)
    cluster.rejoin(node)
    cluster.until(lambda: cluster.state(node) is not NodeState.FENCED, 5000, "the record is disproved")
    cluster.run_for(5000)
    assert cluster.cib.status.proofs[f"{configurations.DEVICE}/{node}"].state is ProofState.LIED
    cluster.switch.repair()
    cluster.until(cluster.is_settled, 90_000, "settled after it was really fenced")
    assert any(target == node for _, target, _ in cluster.switch.acted)


def record_is_seen_where_something_unmanaged_runs(rules: SafetyRules) -> None:
    """n1's datagrams are filtered and its streams pass; a switch lies about it; db, left alone, becomes managed."""
    cluster = formed(rules)
    cluster.checkers.leave_out(FencedNodesAreDead)
    cluster.configure([configurations.primitive("db", meta={"is-managed": "false"})])
    cluster.run_for(2000)
    cluster.switch.set("n1", FaultMode.LIES)
    cluster.drop_datagrams_of("n1")
    cluster.until(lambda: cluster.state("n1") is NodeState.FENCED, 10_000, "n1 is recorded as fenced")
    cluster.run_for(3000)
    cluster.configure([configurations.primitive("db", meta={"failure-timeout": "10s"})])
    cluster.until(lambda: bool(cluster.truth.active_nodes(DB)), 10_000, "db recovered")
    cluster.run_for(3000)
    assert cluster.runs_once("db")
    cluster.switch.repair()
    cluster.end_filters()
    cluster.until(cluster.is_settled, 120_000, "settled after n1 was really fenced")


def slow_switch(rules: SafetyRules) -> None:
    """A node is lost and heard again while the switch takes its time: it must stay out until it has been fenced."""
    cluster = formed(rules)
    cluster.switch.set("n1", FaultMode.WORKS, latency_ms=4500)
    cluster.isolate("n1")
    cluster.until(lambda: bool(cluster.cib.status.fence_orders), 5000, "n1 being fenced")
    cluster.rejoin("n1")
    cluster.until(cluster.is_settled, 30_000, "settled")


FENCING_TAKES = {"fencing_timeout": "30s", "fencing_action": "off"}
DAWDLE_MS = 25_000


def _lose_executor(cluster: Cluster, target: NodeName) -> NodeName:
    """Take away the daemon that has a slow fence agent at work on a node, for good; its host is not to be fenced."""
    cluster.until(lambda: bool(cluster.cib.status.fence_orders), 10_000, "an agent is at work")
    cluster.run_for(200)
    (order,) = cluster.cib.status.fence_orders.values()
    assert order.target == target
    cluster.switch.set(order.executor, FaultMode.REFUSES)
    cluster.hosts[order.executor].brain.disable()
    cluster.switch.set(target, FaultMode.WORKS)
    return order.executor


def fence_agent_outlives_its_daemon(rules: SafetyRules) -> None:
    """The daemon that fences a node dies for good; its agent, which is slow, asks for `off` when the node is back."""
    cluster = formed(rules, setup=Setup(nodes=5))
    cluster.configure([configurations.properties(**{**configurations.USUAL_PROPERTIES, **FENCING_TAKES})])
    target = cluster.others(cluster.dc())[0]
    cluster.switch.set(target, FaultMode.DAWDLES, latency_ms=DAWDLE_MS)
    cluster.power_off(target)
    executor = _lose_executor(cluster, target)
    cluster.until(lambda: cluster.state(target) is NodeState.FENCED, 30_000, "another node has fenced it")
    cluster.power_on(target)
    cluster.run_for(DAWDLE_MS)
    assert cluster.switch.acted[-1][1:] == (target, "off"), "the agent of the lost daemon has asked"
    cluster.power_on(target)
    cluster.until(lambda: cluster.state(target) is NodeState.ONLINE, 60_000, "it joins when the agent has had its time")
    assert cluster.state(executor) is NodeState.LOST
    cluster.switch.repair()
    cluster.hosts[executor].brain.enable()
    cluster.until(cluster.is_settled, 90_000, "settled")


def late_agent_lets_a_fenced_node_in(rules: SafetyRules) -> None:
    """The daemon that lets a node in dies for good; the node is lost; the agent asks for `on` when it was fenced."""
    cluster = Cluster(1, Setup(nodes=5), rules)
    device = configurations.device(cluster.names).resource
    assert isinstance(device, Primitive)
    letting_in = AttributeSet("switch-meta", (("provides", "unfencing"),))
    values = {**configurations.USUAL_PROPERTIES, **FENCING_TAKES}
    usual = configurations.usual(cluster.names, **values)
    target = cluster.names[0]
    not_by_itself = configurations.prefers(configurations.DEVICE, target, -1_000_000)
    cluster.form([
        *(edit for edit in usual if edit != configurations.device(cluster.names)),
        PutResource(replace(device, meta=(letting_in,))),
        not_by_itself,
    ])  # fmt: skip
    cluster.power_off(target)
    cluster.until(lambda: cluster.state(target) is NodeState.FENCED, 10_000, "fenced")
    cluster.switch.set(target, FaultMode.DAWDLES, latency_ms=DAWDLE_MS)
    cluster.power_on(target)
    executor = _lose_executor(cluster, target)
    cluster.until(lambda: cluster.state(executor) is NodeState.LOST, 30_000, "the executor is lost")
    cluster.power_off(target)
    cluster.until(lambda: cluster.switch.acted[-1][1:] == (target, "on"), 2 * DAWDLE_MS, "the agent has asked")
    cluster.until(lambda: cluster.state(target) is not NodeState.LOST, 60_000, "it is back, or fenced")
    cluster.switch.repair()
    cluster.hosts[executor].brain.enable()
    cluster.power_on(target)
    cluster.until(cluster.is_settled, 90_000, "settled")


def _let_fence(cluster: Cluster, *nodes: NodeName) -> None:
    """Let only these nodes use the fence device."""
    scores = {name: 0 if name in nodes else -1_000_000 for name in cluster.names}
    cluster.configure([configurations.prefers(configurations.DEVICE, name, score) for name, score in scores.items()])


def _drain(cluster: Cluster, node: NodeName) -> None:
    """SIGTERM to the daemon, and systemd does not start it again."""
    cluster.hosts[node].brain.is_enabled = False
    cluster.brain_of(node).runtime.drain()


def executor_leaves(rules: SafetyRules) -> None:
    """A node is on its way out when it is ordered to fence another one with an agent that takes long."""
    for offset_ms in (1900, 2000):
        cluster = formed(rules, setup=Setup(nodes=5))
        dc = cluster.dc()
        target, leaver, *_ = cluster.others(dc)
        cluster.configure([
            configurations.properties(**{**configurations.USUAL_PROPERTIES, **FENCING_TAKES}),
            PutNode(NodeEntry(leaver, (AttributeSet(f"nodes-{leaver}", (("standby", "on"),)),))),
        ])  # fmt: skip
        _let_fence(cluster, leaver)
        cluster.until(cluster.is_settled, 10_000, f"nothing runs on {leaver}")
        _take_to_sync(cluster, SLOW_SYNC_US)
        cluster.run_for(2000)
        cluster.switch.set(target, FaultMode.DAWDLES, latency_ms=DAWDLE_MS)
        cluster.power_off(target)
        agent_ends_ms = cluster.world.now_ms + DAWDLE_MS + 6000
        cluster.run_for(offset_ms)
        _drain(cluster, leaver)
        cluster.run_for(5000)
        _take_to_sync(cluster, SYNC_US)
        cluster.switch.set(target, FaultMode.WORKS)
        _let_fence(cluster, *cluster.names)
        cluster.until(lambda: cluster.state(target) is NodeState.FENCED, 60_000, "fenced")  # noqa: B023 (called at once)
        cluster.power_on(target)
        cluster.until(lambda: cluster.state(target) is NodeState.ONLINE, 60_000, "back")  # noqa: B023 (called at once)
        cluster.until(lambda: cluster.state(leaver) is NodeState.LEFT, 30_000, "it has left")  # noqa: B023 (called at once)
        cluster.run_for(max(0, agent_ends_ms - cluster.world.now_ms))


# -- cold start ------------------------------------------------------------------------------------------------------


def stale_cib_after_power_loss(rules: SafetyRules) -> None:
    """All hosts lose power at once; what the CIB says of the old boots is over."""
    cluster = formed(rules)
    for name in cluster.names:
        cluster.power_off(name)
    cluster.run_for(1000)
    cluster.power_all()
    cluster.until(cluster.is_settled, 40_000, "everything runs again")
    assert not cluster.switch.acted


def one_node_stays_dark(rules: SafetyRules) -> None:
    """After a power loss db's old host stays silent: nothing of it starts before it was fenced."""
    cluster = formed(rules)
    for name in cluster.names:
        cluster.power_off(name)
    cluster.power_on("n2")
    cluster.power_on("n3")
    cluster.switch.set("n1", FaultMode.DEAD)
    cluster.run_for(30_000)
    assert not cluster.truth.active_nodes(DB)
    cluster.switch.repair()
    cluster.until(lambda: cluster.runs_once("db"), 60_000, "db recovered after the fencing")


def member_never_seen(rules: SafetyRules) -> None:
    """The cluster forms without n3, which may run anything."""
    cluster = Cluster(1, rules=rules)
    cluster.power_on("n1")
    cluster.power_on("n2")
    two = (NodeName("n1"), NodeName("n2"))
    cluster.until(lambda: all(cluster.states().get(name) is NodeState.ONLINE for name in two), 20_000, "two online")
    cluster.configure(configurations.usual(list(cluster.names)))
    cluster.until(lambda: cluster.runs_once("db"), 40_000, "db started after n3 was fenced")


# -- crashes ---------------------------------------------------------------------------------------------------------


class _PoisonedGraph(dict[int, object]):
    """Raises when the controller looks at the plan."""

    def values(self) -> object:
        raise RuntimeError("poison")


def poison_cib(rules: SafetyRules) -> None:
    """A node that plans this configuration crashes: no node may be reset for that, no service interrupted."""
    cluster = formed(rules, setup=Setup(brain_timeout_ms=3000))
    cluster.may_crash = lambda _node, error: "poison" in str(error)
    healthy = cluster.scheduler

    def poisoned(cib: object, now: object) -> Plan:
        plan = healthy(cib, now)
        if "poison" not in cluster.cib.configuration.resources:
            return plan
        return Plan(TransitionGraph(_PoisonedGraph({0: None})), {})

    cluster.scheduler = poisoned
    ended: list[object] = []
    cluster.truth.when_service_ends.append(ended.append)
    cluster.edit([configurations.primitive("poison")])
    cluster.run_for(15_000)
    assert cluster.runs_once(*configurations.SERVICES)
    assert not ended, "a service was interrupted"
    assert not cluster.switch.acted, "a node was reset"
    crashes = sum("brain crashed" in line for line in cluster.world.recorded())
    assert crashes <= 3 * len(cluster.names), f"{crashes} crashes are a loop"


def raising_apply(rules: SafetyRules) -> None:
    """An entry whose apply raises is committed: a refusal on every node, or the end of them all."""

    def raise_for_poison(*_: object) -> object:
        raise RuntimeError("poison")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cib_apply._HANDLERS, SetTransientAttribute, raise_for_poison)
        cluster = formed(rules, setup=Setup(brain_timeout_ms=3000))
        cluster.may_crash = lambda _node, error: "poison" in str(error)
        cluster.administer(SetTransientAttribute(NodeName("n1"), "a", "b"))
        cluster.run_for(10_000)
        assert not any("brain crashed" in line for line in cluster.world.recorded())
        assert cluster.runs_once(*configurations.SERVICES)
        assert not cluster.switch.acted
