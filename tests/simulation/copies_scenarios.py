"""Live migrations and promotions whose end nobody learns (docs/design/safety.md §1): no second copy comes of it."""

from collections.abc import Callable

from haclusterd.cib.commands import RequestLeader
from haclusterd.cib.edits import Delete, Edit, PutResource
from haclusterd.model.configuration import AttributeSet, Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import OTHER, RELOAD, SERVICE, AgentBehaviour, AgentRun
from haclusterd.simulator.hosts.truth import CALLED, PIDFILE, Maker, promoted
from haclusterd.simulator.scenario import Cluster

SOURCE, TARGET, THIRD = NodeName("n1"), NodeName("n2"), NodeName("n3")
DB, VM, PG = ResourceId("db"), ResourceId("vm"), ResourceId("pg")
SETTLED_MS = 60_000
MIGRATION = AgentRun(duration_ms=2000, effect_at_percent=60)
DEMOTION = AgentRun(duration_ms=1500)
PROMOTION = AgentRun(duration_ms=2500, effect_at_percent=60)


def is_ordered(cluster: Cluster, node: str, resource: ResourceId, action: ActionName) -> bool:
    """Tell whether an order is open."""
    orders = cluster.cib.status.nodes[NodeName(node)].orders.values()
    return any(order.resource == resource and order.action is action for order in orders)


def called(name: str, service: str) -> Edit:
    """Return a resource that is this service, whatever its own name is."""
    resource = configurations.primitive(name, start_timeout_ms=60_000).resource
    assert isinstance(resource, Primitive)
    return PutResource(replace(resource, parameters=(AttributeSet(f"{name}-parameters", ((CALLED, service),)),)))


def make_dc(cluster: Cluster, node: NodeName) -> None:
    """Let a node be the DC."""
    if cluster.dc() != node:
        cluster.administer(RequestLeader(node, "scenario"))
        cluster.until(lambda: cluster.dc() == node, 10_000, f"{node} is DC")
        cluster.until_settled(SETTLED_MS, "settled under another DC")


def migrating(
    rules: SafetyRules = ALL_RULES, *, run: AgentRun = MIGRATION, has_run_there: bool = False
) -> Cluster:
    """Return a cluster in which a service is on its way from n1 to n2; n3 is DC.

    `has_run_there`: it ran on n2 before, and was stopped there, which is the last that n2 has done.
    """
    cluster = Cluster(1, rules=rules).form()
    first = TARGET if has_run_there else SOURCE
    cluster.configure([configurations.migratable(), configurations.prefers(VM, first)])
    cluster.until_settled(SETTLED_MS, "the service settled")
    if has_run_there:
        cluster.configure([Delete("constraint", f"{VM}-on-{TARGET}"), configurations.prefers(VM, SOURCE, 300)])
        cluster.until(lambda: cluster.truth.active_nodes(VM) == (SOURCE,), 10_000, "the service on n1")
        cluster.configure([configurations.prefers(VM, SOURCE)])
        cluster.until_settled(SETTLED_MS, "the service settled on n1")
    make_dc(cluster, THIRD)
    cluster.agent_script.write(VM, "migrate_to", run, times=1)
    cluster.agent_script.write(VM, "migrate_from", AgentRun(duration_ms=1000), times=1)
    cluster.agent_script.write(VM, "stop", AgentRun(duration_ms=600), node=SOURCE, times=1)
    cluster.edit([configurations.prefers(VM, TARGET, 300)])
    cluster.until(lambda: is_ordered(cluster, SOURCE, VM, ActionName.MIGRATE_TO), 5000, "migrate_to ordered")
    return cluster


def source_dies_after_the_hand_over(rules: SafetyRules) -> None:
    """A live migration has moved vm from n1 to n2 when n1 dies, and nobody has recorded that; vm is wanted on n3."""
    cluster = migrating(rules)
    cluster.until(lambda: cluster.truth.active_nodes(VM) == (TARGET,), 5000, "vm moved")
    cluster.power_off(SOURCE)
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.until(lambda: cluster.runs_once(VM) and cluster.node_of(VM) == THIRD, 40_000, "vm on n3")
    cluster.until_settled(SETTLED_MS, "settled")


def migration_outlives_its_daemon(rules: SafetyRules) -> None:
    """n1's daemon is killed in mid-migration; the next incarnation joins, n2 is asked, and only then vm moves there."""
    cluster = migrating(rules, run=AgentRun(duration_ms=4000, effect_at_percent=90))
    cluster.run_for(200)
    cluster.kill_brain(SOURCE)
    cluster.edit([configurations.prefers(VM, THIRD, 600)])
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.node_of(VM) == THIRD


def promoting(rules: SafetyRules = ALL_RULES, *, is_notified: bool = False, demotion: AgentRun = DEMOTION) -> Cluster:
    """Return a cluster in which n2's instance is being demoted, so that n1's can be promoted; n3 is DC."""
    cluster = Cluster(1, rules=rules).form()
    cluster.configure(configurations.promotable(list(cluster.names), is_notified=is_notified))
    cluster.configure([configurations.promotion_score(TARGET, 100)])
    cluster.until_settled(SETTLED_MS, "the clone settled")
    make_dc(cluster, THIRD)
    assert cluster.truth.active_nodes(promoted(PG)) == (TARGET,)
    cluster.agent_script.write(PG, "promote", PROMOTION, node=SOURCE, times=1)
    cluster.agent_script.write(PG, "demote", demotion, node=TARGET, times=1)
    cluster.edit([configurations.promotion_score(SOURCE, 1000)])
    cluster.until(lambda: is_ordered(cluster, TARGET, PG, ActionName.DEMOTE), 5000, "demote ordered")
    return cluster


def promotion_outlives_its_daemon(rules: SafetyRules) -> None:
    """n1's daemon is killed while an agent promotes pg there; n2 is to be promoted by the time that this has ended."""
    cluster = promoting(rules)
    cluster.until(lambda: is_ordered(cluster, SOURCE, PG, ActionName.PROMOTE), 10_000, "promote ordered")
    cluster.run_for(300)
    cluster.kill_brain(SOURCE)
    cluster.edit([configurations.promotion_score(SOURCE, 1)])
    cluster.until_settled(SETTLED_MS, "settled")
    assert cluster.truth.active_nodes(promoted(PG)) == (TARGET,)


Condition = Callable[[Cluster], bool]
MIGRATION_PHASES: dict[str, Condition] = {
    "sending": lambda cluster: any(
        call.action == "migrate_to" for call in cluster.agents_at_work(SOURCE, VM)
    ),
    "moved": lambda cluster: cluster.truth.active_nodes(VM) == (TARGET,),
    "receiving": lambda cluster: is_ordered(cluster, TARGET, VM, ActionName.MIGRATE_FROM),
    "stopping": lambda cluster: is_ordered(cluster, SOURCE, VM, ActionName.STOP),
}
PROMOTION_PHASES: dict[str, Condition] = {
    "demoting": lambda cluster: is_ordered(cluster, TARGET, PG, ActionName.DEMOTE),
    "demoted": lambda cluster: not cluster.truth.active_nodes(promoted(PG)),
    "promoting": lambda cluster: any(call.action == "promote" for call in cluster.agents_at_work(SOURCE, PG)),
    "promoted": lambda cluster: cluster.truth.active_nodes(promoted(PG)) == (SOURCE,),
}
FAULTS: dict[str, Callable[[Cluster, NodeName], None]] = {
    "power": lambda cluster, node: cluster.power_off(node),
    "daemon": lambda cluster, node: cluster.kill_brain(node),
    "cut": lambda cluster, node: cluster.isolate(node),
    "hang": lambda cluster, node: cluster.pause_brain(node),
}


CHANGED = (Maker(OTHER), Maker(SERVICE, "new.pid"))
"""Ways to run db that neither find nor end what runs: another agent, another pidfile."""


def is_run_as(cluster: Cluster, made: Maker) -> bool:
    """Tell whether the only copy of db was started in that way."""
    nodes = cluster.truth.active_nodes(DB)
    return len(nodes) == 1 and cluster.truth.is_known_to(made, nodes[0], DB)


def change_db(cluster: Cluster, made: Maker, **meta: str) -> None:
    """Configure db to be run in another way; `_` stands for `-`."""
    usual = {"failure-timeout": "10s", **{name.replace("_", "-"): value for name, value in meta.items()}}
    resource = configurations.primitive("db", meta=usual).resource
    assert isinstance(resource, Primitive)
    parameters = (AttributeSet("db-parameters", ((PIDFILE, made.pidfile),)),) if made.pidfile else ()
    cluster.configure((PutResource(replace(resource, agent=made.agent, parameters=parameters)),))


def _daemon_dies_after_a_change(rules: SafetyRules, made: Maker) -> None:
    cluster = Cluster(3, rules=rules).form()
    change_db(cluster, made)
    cluster.kill_brain("n1")
    cluster.until(lambda: is_run_as(cluster, made), SETTLED_MS, "db is run as configured")
    cluster.until(cluster.is_settled, SETTLED_MS, "settled")


def agent_is_changed(rules: SafetyRules) -> None:
    """db runs when another agent is configured for it, and n1's daemon dies: the older agent must be asked."""
    _daemon_dies_after_a_change(rules, CHANGED[0])


def parameter_is_changed(rules: SafetyRules) -> None:
    """db runs when another pidfile is configured for it, and n1's daemon dies: the older one must be looked at."""
    _daemon_dies_after_a_change(rules, CHANGED[1])


def reload_outlives_its_daemon(rules: SafetyRules) -> None:
    """n1's daemon dies while db takes another pidfile over; db is wanted on n2, and is found by the newer one only."""
    cluster = Cluster(3, rules=rules)
    cluster.agent_script.behaviour = cluster.usual_behaviour = AgentBehaviour(reloads=True)
    cluster.form()
    cluster.agent_script.write(DB, RELOAD, AgentRun(duration_ms=3000, effect_at_percent=10), times=1)
    change_db(cluster, CHANGED[1])
    cluster.until(lambda: cluster.truth.is_known_to(CHANGED[1], SOURCE, DB), SETTLED_MS, "it was taken over")
    cluster.kill_brain(SOURCE)
    cluster.edit([configurations.prefers(DB, TARGET, 1000)])
    cluster.until(lambda: cluster.truth.active_nodes(DB) == (TARGET,), SETTLED_MS, "db runs on n2")
    cluster.until_settled(SETTLED_MS, "settled")


def start_after_a_change_outlives_its_daemon(rules: SafetyRules) -> None:
    """db was stopped, and is being started with another pidfile when n1's daemon dies: that pidfile is looked at."""
    cluster = Cluster(3, rules=rules).form()
    change_db(cluster, Maker(SERVICE), target_role="Stopped")
    cluster.until(lambda: not cluster.truth.active_nodes(DB), SETTLED_MS, "db is stopped")
    cluster.until_settled(SETTLED_MS, "settled")
    cluster.agent_script.write(DB, "start", AgentRun(duration_ms=3000, effect_at_percent=30), times=1)
    change_db(cluster, CHANGED[1])
    cluster.until(lambda: bool(cluster.truth.active_nodes(DB)), SETTLED_MS, "db runs")
    (node,) = cluster.truth.active_nodes(DB)
    change_db(cluster, Maker(SERVICE, "newest.pid"))
    cluster.kill_brain(node)
    cluster.until(lambda: is_run_as(cluster, Maker(SERVICE, "newest.pid")), SETTLED_MS, "db is run as configured")
    cluster.until(cluster.is_settled, SETTLED_MS, "settled")


def unmanaged_while_changed(rules: SafetyRules) -> None:
    """db is unmanaged when another pidfile is configured, and n1's daemon dies: its monitors must look at the older."""
    cluster = Cluster(3, rules=rules).form()
    change_db(cluster, CHANGED[1], is_managed="false")
    cluster.kill_brain("n1")
    cluster.run_for(20_000)
    change_db(cluster, CHANGED[1])
    cluster.until(lambda: is_run_as(cluster, CHANGED[1]), SETTLED_MS, "db is run as configured")
    cluster.until(cluster.is_settled, SETTLED_MS, "settled")
