"""The last part of a seed: the majority, or all of it, is lost for good, and another cluster is made of what is left.

It begins when the cluster has recovered from the faults, at any moment of what is under way then. No request goes to
the machines that are lost: an administrator has seen that they are off, and keeps them so.
"""

import random
from collections.abc import Mapping, Sequence
from functools import partial

from haclusterd.model.configuration import Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.records import replace
from haclusterd.simulator.hosts.configurations import SERVICES
from haclusterd.simulator.hosts.hosts import Host
from haclusterd.simulator.hosts.secrets import SimulatedKeeper
from haclusterd.simulator.hosts.truth import PIDFILE
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

OUTCOMES = ("recovered", "restored", "restored in the same boot", "secrets set again")
RECOVERED_SHARE = 0.7
BOOTED_SHARE = 0.4
"""Of the restored ones: whose machines are booted before."""
MOMENT_MS = (0, 3000)
"""From when a service dies to the loss of the majority."""
ALONE_MS = (0, 0, 500, 4000, 15_000)
"""How long the daemon that is left continues without the others, before a person stops it."""
PAUSES_MS = (0, 0, 300, 5000)
INTERRUPTIONS = 2
INTERRUPTION_MS = (0, 8000)
SECRET_SHARE = 0.25
"""Of the clusters: in which a service's pidfile is a secret when the nodes are lost."""
SECRET = "pidfile"
SETS_MS = (0, 0, 2000, 20_000)
"""After how long a person sets the secrets that the other cluster begins without."""


def begin_again(cluster: Cluster, settles_within_ms: int) -> None:
    """Lose a majority or all nodes, recover or restore, interrupt who begins, and wait until all is well again."""
    chance = cluster.world.chance("recovery")
    services = _primitives(cluster)
    if services and chance.random() < SECRET_SHARE:
        _make_secret(cluster, chance.choice(services), settles_within_ms)
    secrets = _values_of_secrets(cluster)
    cluster.agent_script.behaviour = replace(cluster.usual_behaviour, start_ms=(20, chance.choice((200, 3000, 12_000))))
    for service in chance.sample(SERVICES, 2):
        cluster.kill_service(service)
    cluster.run_for(chance.randint(*MOMENT_MS))
    cluster.is_being_repaired = True
    if chance.random() < RECOVERED_SHARE:
        name = chance.choice(sorted(set(cluster.cib.voters()) & set(cluster.names)))
        _give_away_all_but(cluster, name)
        cluster.run_for(chance.choice(ALONE_MS))
        cluster.hosts[name].brain.disable()
        cluster.run_for(chance.choice(PAUSES_MS))
        cluster.recover(name)
        cluster.coverage.count("recovery", "recovered")
    else:
        if cluster.world.chance("restore").random() < BOOTED_SHARE:
            _give_away_all_but(cluster)
        else:
            for name, host in cluster.hosts.items():
                host.brain.disable()
                if name not in cluster.names:
                    _give_away(host)
            cluster.coverage.count("recovery", "restored in the same boot")
        cluster.run_for(chance.choice(PAUSES_MS))
        cluster.restore_backup()
        cluster.coverage.count("recovery", "restored")
    cluster.is_being_repaired = False
    for name in cluster.names:
        cluster.hosts[name].is_unplugged = False
        cluster.hosts[name].power_on()
        cluster.hosts[name].brain.enable()
    _set_again(cluster, secrets, chance)
    for _ in range(chance.randint(0, INTERRUPTIONS)):
        interrupt = chance.choice((cluster.kill_brain, cluster.kill_pacer, cluster.reload_brain))
        node = chance.choice(cluster.names)
        cluster.world.after(chance.randint(*INTERRUPTION_MS) * MS, partial(interrupt, node))
    cluster.run_for(INTERRUPTION_MS[1])
    cluster.agent_script.behaviour = cluster.usual_behaviour
    cluster.until_settled(settles_within_ms, "settled as another cluster")


def _primitives(cluster: Cluster) -> Sequence[ResourceId]:
    """Return the services that a fault has not left as something else, such as a group of that name."""
    resources = cluster.cib.configuration.resources
    return [each for each in map(ResourceId, SERVICES) if isinstance(resources.get(each), Primitive)]


def _make_secret(cluster: Cluster, service: ResourceId, settles_within_ms: int) -> None:
    name, value = setting = (PIDFILE, f"secret:{SECRET}")
    ask(cluster, "secret.set", {"name": SECRET, "value": "secret.pid"})
    ask(cluster, "resource.setting",
        {"resource": service, "section": "params", "action": "set", "name": name, "value": value})  # fmt: skip

    def runs_by_it() -> bool:
        primitive = cluster.cib.configuration.resources.get(service)
        is_set = isinstance(primitive, Primitive) and any(setting in each.pairs for each in primitive.parameters)
        return is_set and SECRET in cluster.cib.secrets.values and cluster.is_settled()

    cluster.until(runs_by_it, settles_within_ms, f"{service} runs by a secret")


def _values_of_secrets(cluster: Cluster) -> Mapping[str, str]:
    """Return the value of each secret, as the person knows it who has set it."""
    secrets, chance = cluster.cib.secrets, cluster.world.chance("person")
    opened = {
        name: value
        for name, secret in sorted(secrets.values.items())
        for node in sorted(secrets.keys)[:1]
        if (value := SimulatedKeeper(node, chance).open(secrets, name, secret.sealed)) is not None
    }
    assert len(opened) == len(secrets.values)
    return opened


def _set_again(cluster: Cluster, secrets: Mapping[str, str], chance: random.Random) -> None:
    """Have a person set the secrets, one after another: another cluster begins without them (docs/design/0017)."""
    for name, value in secrets.items():
        arguments = {"name": name, "value": value}
        cluster.world.after(chance.choice(SETS_MS) * MS, partial(ask, cluster, "secret.set", arguments))
        cluster.coverage.count("recovery", "secrets set again")


def _give_away_all_but(cluster: Cluster, kept: NodeName | None = None) -> None:
    """Pull the plugs: no fence device gives them power again."""
    for name, host in cluster.hosts.items():
        if name != kept:
            _give_away(host)


def _give_away(host: Host) -> None:
    host.power_off()
    host.is_unplugged = True
