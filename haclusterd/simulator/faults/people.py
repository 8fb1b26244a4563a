"""What services, agents, power switches and administrators do to a cluster."""

import random
from collections.abc import Sequence

from haclusterd.cib.commands import CleanUp, RequestFence
from haclusterd.model.cluster import Cib
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ExitCode
from haclusterd.model.records import replace
from haclusterd.simulator.faults.base import Drawn, End, Kind, Steps
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import AgentBehaviour, AgentRun
from haclusterd.simulator.hosts.fence_devices import FaultMode
from haclusterd.simulator.hosts.planner import PlannerBehaviour
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.members import MemberChanges
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]


def kill_service(chance: Chance, _nodes: Nodes) -> Fault:
    """A service dies where it runs."""
    resource = chance.choice(configurations.SERVICES)
    return Drawn(f"the service {resource} dies", lambda cluster: cluster.kill_service(resource))


def bad_agents(chance: Chance, _nodes: Nodes) -> Fault:
    """Agents are slow, fail and hang."""
    behaviour = AgentBehaviour(
        start_ms=(20, chance.choice((200, 3000))),
        stop_ms=(10, chance.choice((150, 2000))),
        failure=chance.choice((0.0, 0.05, 0.3)),
        hang=chance.choice((0.0, 0.02)),
    )

    def begin(cluster: Cluster) -> End:
        cluster.agent_script.behaviour = replace(behaviour, units=cluster.usual_behaviour.units)

        def end() -> None:
            cluster.agent_script.behaviour = cluster.usual_behaviour

        return end

    return Drawn(f"bad agents ({behaviour})", begin, chance.randint(500, 15_000))


def take_program_away(chance: Chance, nodes: Nodes) -> Fault:
    """An upgrade takes the program, or the configuration, of a service away; the daemon there is started again."""
    resource, node = chance.choice((*configurations.SERVICES, "pg")), chance.choice(nodes)
    run = AgentRun(20, exit_code=chance.choice((ExitCode.ARGUMENTS, ExitCode.NOT_INSTALLED)))
    wait_ms = chance.choice((0, 500))

    def begin(cluster: Cluster) -> End:
        cluster.agent_script.write(resource, "monitor", run, node=node)
        cluster.world.after(wait_ms * MS, lambda: cluster.kill_brain(node))
        return lambda: cluster.agent_script.remove(run)

    return Drawn(f"the program of {resource} is away on {node}", begin, chance.randint(500, 8000))


def clean_up_blindly(chance: Chance, nodes: Nodes) -> Fault:
    """A service that runs fails to start and to stop, and is blocked; it is cleaned up while no probe can look."""
    resource, node = chance.choice((*configurations.SERVICES, "pg")), chance.choice(nodes)
    path = f"{resource}.stop.on-fail"
    runs = {
        "start": AgentRun(20, exit_code=ExitCode.ERROR),
        "stop": AgentRun(20, exit_code=ExitCode.ERROR, has_effect=False),
        "monitor": AgentRun(
            20, exit_code=chance.choice((ExitCode.ARGUMENTS, ExitCode.NOT_INSTALLED)), has_effect=False
        ),
    }
    wait_ms = chance.choice((200, 1000, 3000))

    def clean_up_now(cluster: Cluster) -> None:
        cluster.agent_script.write(resource, "monitor", runs["monitor"], node=node)
        cluster.administer(CleanUp(ResourceId(resource), None))

    def begin(cluster: Cluster) -> End:
        steps = Steps(cluster.world)
        ask(cluster, "configure.set", {"path": path, "value": "block"})
        for action in ("start", "stop"):
            cluster.agent_script.write(resource, action, runs[action], node=node, times=1)
        cluster.edit((configurations.prefers(resource, node, 500),))
        cluster.kill_service(resource)
        steps.after(wait_ms, lambda: clean_up_now(cluster))

        def end() -> None:
            steps.end()
            for run in runs.values():
                cluster.agent_script.remove(run)
            ask(cluster, "configure.set", {"path": path, "value": "fence"})

        return end

    return Drawn(f"{resource} fails on {node}, and is cleaned up blindly", begin, chance.randint(4000, 10_000))


def bad_planners(chance: Chance, _nodes: Nodes) -> Fault:
    """Planning workers are slow, and die."""
    behaviour = PlannerBehaviour((20, chance.choice((300, 3000))), chance.choice((0.0, 0.5)))

    def begin(cluster: Cluster) -> End:
        def behave(how: PlannerBehaviour) -> None:
            cluster.planners.delay_ms, cluster.planners.failure = how.delay_ms, how.failure

        behave(behaviour)
        return lambda: behave(PlannerBehaviour())

    return Drawn(f"bad planners: {behaviour}", begin, chance.randint(500, 15_000))


def bad_switch(chance: Chance, nodes: Nodes) -> Fault:
    """The power switch refuses, is dead, or acts late, or its agent takes long before it asks."""
    modes = (FaultMode.REFUSES, FaultMode.DEAD, FaultMode.LATE, FaultMode.DAWDLES)
    node, mode = chance.choice(nodes), chance.choice(modes)
    latency_ms = chance.randint(20, 4000)

    def begin(cluster: Cluster) -> End:
        cluster.switch.set(node, mode, latency_ms=latency_ms)
        return cluster.switch.repair

    return Drawn(f"the switch {mode.value} for {node} ({latency_ms} ms)", begin, chance.randint(500, 10_000))


def device_away(chance: Chance, nodes: Nodes) -> Fault:
    """The power switch answers nobody for minutes, as one does whose own network or power is away."""

    def begin(cluster: Cluster) -> End:
        for node in nodes:
            cluster.switch.set(node, FaultMode.DEAD)
        return cluster.switch.repair

    return Drawn("the switch is away", begin, chance.randint(60_000, 200_000))


def change_configuration(chance: Chance, nodes: Nodes) -> Fault:
    """An administrator prefers another place for a service."""
    resource, node = chance.choice(configurations.SERVICES), chance.choice(nodes)
    score = chance.choice((100, 200, 500))
    edit = configurations.prefers(resource, node, score)
    return Drawn(f"{resource} prefers {node} by {score}", lambda cluster: cluster.edit((edit,)))


def clean_up(chance: Chance, _nodes: Nodes) -> Fault:
    """An administrator has all failures forgotten, or everything probed."""
    command = CleanUp(None, None, reprobe=chance.random() < 0.5)
    return Drawn("everything is cleaned up", lambda cluster: cluster.administer(command))


def request_fence(chance: Chance, nodes: Nodes) -> Fault:
    """An administrator has a node fenced."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> None:
        status = cluster.cib.status.nodes.get(node)
        if status is not None:
            cluster.administer(RequestFence(node, status.incarnation, "swarm", "drawn"))

    return Drawn(f"{node} is fenced by hand", begin)


def lying_switch(chance: Chance, nodes: Nodes) -> Fault:
    """The power switch says ok and does nothing, mostly just when somebody wants the node fenced."""
    node, latency_ms = chance.choice(nodes), chance.randint(20, 2000)
    is_asked = chance.random() < 0.7

    def begin(cluster: Cluster) -> End:
        cluster.switch.set(node, FaultMode.LIES, latency_ms=latency_ms)
        status = cluster.cib.status.nodes.get(node)
        if is_asked and status is not None:
            cluster.administer(RequestFence(node, status.incarnation, "swarm", "a lie"))
        return cluster.switch.repair

    return Drawn(f"the switch lies about {node} ({latency_ms} ms)", begin, chance.randint(500, 10_000))


MEMBERS_MAX = 6
VOTERS_MIN = 2
"""Of so few none is dropped: it is switched off first, and the others could not agree to its removal."""
MEMBERS_MIN = 3


def add_member(chance: Chance, _nodes: Nodes) -> Fault:
    """A machine joins the cluster, with a vote or without."""
    wants_vote = chance.random() < 0.8

    def begin(cluster: Cluster) -> None:
        if len(cluster.names) < MEMBERS_MAX:
            MemberChanges(cluster).add(wants_vote=wants_vote)

    return Drawn(f"a node joins {'with' if wants_vote else 'without'} a vote", begin)


def drop_member(chance: Chance, _nodes: Nodes) -> Fault:
    """A machine is given away for good; never the first, which clients write about."""
    place = chance.random()

    def begin(cluster: Cluster) -> None:
        others = [name for name in cluster.names[1:] if _may_be_dropped(name, cluster.cib)]
        # Who gives away one machine before the last one is out of the members gives away a majority in the end.
        is_last_one_out = set(cluster.cib.members) <= set(cluster.names)
        if others and len(cluster.names) > MEMBERS_MIN and is_last_one_out:
            MemberChanges(cluster).drop(others[int(place * len(others))])

    return Drawn("a node is dropped", begin)


def _may_be_dropped(name: NodeName, cib: Cib) -> bool:
    """Tell who is a member, and one too many: who is still being added would be added after all."""
    voters = cib.voters()
    return name in cib.members and (name not in voters or len(voters) > VOTERS_MIN)


OF_SERVICES: tuple[Kind[Cluster], ...] = (
    Kind("kill a service", 5, kill_service),
    Kind("bad agents", 4, bad_agents),
    Kind("take a program away", 2, take_program_away),
    Kind("bad planners", 2, bad_planners),
    Kind("change the configuration", 3, change_configuration),
    Kind("clean up", 1, clean_up),
    Kind("clean up blindly", 2, clean_up_blindly),
)
OF_SWITCHES: tuple[Kind[Cluster], ...] = (Kind("bad switch", 3, bad_switch), Kind("fence by hand", 1, request_fence))
OF_LIARS: tuple[Kind[Cluster], ...] = (Kind("lying switch", 8, lying_switch), Kind("fence by hand", 8, request_fence))
OF_MEMBERS: tuple[Kind[Cluster], ...] = (Kind("add a member", 8, add_member), Kind("drop a member", 8, drop_member))
OF_LONG_SEEDS: tuple[Kind[Cluster], ...] = (Kind("device away", 3, device_away),)
"""What lasts for minutes."""
