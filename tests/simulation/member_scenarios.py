"""One scenario for each safety rule of changing members, as in rule_scenarios.py."""

from haclusterd.cib.commands import RequestLeader
from haclusterd.model.cluster import NodeState
from haclusterd.model.ids import NodeName
from haclusterd.model.records import replace
from haclusterd.model.rules_in_force import SafetyRules
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.members import MemberChanges, changed
from haclusterd.simulator.scenario import Cluster, Setup

MINUTE_MS = 60_000


def lease_by_old_voters(rules: SafetyRules) -> None:
    """A daemon does not learn that three voters became five; then it and an old voter are cut off from the others.

    By the voters that its pacer knows the two are a majority, and the other one has not heard that it is lost.
    """
    cluster = Cluster(1, Setup(brain_timeout_ms=MINUTE_MS), rules).form()
    dc = cluster.dc()
    friend, deaf = cluster.others(dc)
    cluster.hang_main_loop(deaf)
    members = MemberChanges(cluster)
    for _ in range(2):
        newcomer = members.add()
        for _ in range(40):
            cluster.run_for(250)
            if newcomer in cluster.cib.voters():
                break
    for one in (friend, deaf):
        cluster.switch.set(one, FaultMode.DEAD)
        for other in cluster.others(friend, deaf):
            cluster.cut(one, other)
    cluster.run_for(20_000)
    cluster.heal()
    cluster.until_settled(2 * MINUTE_MS, "settled with everybody")


def lease_by_old_voters_of_a_restarted_daemon(rules: SafetyRules) -> None:
    """The same, and the daemon starts again between the two changes, on a disk that does not answer.

    It joins in its boot, where its services run, before it has applied the first change.
    """
    cluster = Cluster(1, Setup(watchdog_ms=5000), rules)
    cluster.form(configurations.watched(cluster.names))
    members, newcomers = MemberChanges(cluster), list[NodeName]()
    for _ in range(2):
        newcomers.append(members.add(wants_vote=False))
        cluster.until(lambda: newcomers[-1] in cluster.cib.members and cluster.all_online(), MINUTE_MS, "added")
    cluster.until_settled(MINUTE_MS, "settled")
    holder = cluster.node_of("db")
    friend, other = (name for name in cluster.cib.voters() if name != holder)
    cluster.administer(RequestLeader(other, "scenario"))
    cluster.until(lambda: cluster.dc() == other, 10_000, "another DC")
    before = cluster.cib.status.nodes[holder].incarnation
    cluster.hosts[holder].disk.sync_us = (MINUTE_MS * MS, MINUTE_MS * MS)
    cluster.kill_brain(holder)
    cluster.administer(changed(cluster.cib, replace(cluster.cib.members[newcomers[0]], is_voter=True, wants_vote=True)))
    cluster.until(lambda: cluster.cib.status.nodes[holder].incarnation != before, 10_000, "it has joined")
    assert newcomers[0] in cluster.cib.voters()
    cluster.administer(changed(cluster.cib, replace(cluster.cib.members[newcomers[1]], is_voter=True, wants_vote=True)))
    cluster.run_for(1000)
    for one in (friend, holder):
        for far in (other, *newcomers):
            cluster.cut(one, far)
    cluster.run_for(30_000)


def dropped_while_it_may_run(rules: SafetyRules) -> None:
    """The holder of db stands still, its switch is dead, and somebody removes it from the members."""
    cluster = Cluster(2, rules=rules).form()
    cluster.until(lambda: cluster.runs_once("db"), 10_000, "db runs")
    holder = cluster.node_of("db")
    if cluster.dc() == holder:
        target = cluster.others(holder)[0]
        cluster.brain_of(holder).store.transfer_leadership(target)
        cluster.until(lambda: cluster.dc() != holder, 10_000, "another DC")
    cluster.switch.set(holder, FaultMode.DEAD)
    cluster.stall(holder)
    cluster.until(lambda: cluster.state(holder) is NodeState.LOST, 10_000, "it is lost")
    for _ in range(6):
        if holder in cluster.cib.members:
            cluster.administer(changed(cluster.cib, drop=holder))
        cluster.run_for(3000)
    cluster.heal()
    cluster.until_settled(2 * MINUTE_MS, "settled again")
