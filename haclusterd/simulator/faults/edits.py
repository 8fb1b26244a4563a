"""What administrators do to the configuration and to nodes while everything else goes wrong, by their own verbs.

Most of it is undone when the fault ends, as people do; what is not stays until the end, and liveness is judged by it.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from haclusterd.cib.commands import ChangeConfiguration
from haclusterd.cib.edits import Arrange, PutResource, PutSets
from haclusterd.cib.staging import staged
from haclusterd.model.cluster import NodeState
from haclusterd.model.configuration import AttributeSet, Clone, Primitive
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.json_value import Json
from haclusterd.model.records import replace
from haclusterd.simulator.drawn_configurations import TICKET
from haclusterd.simulator.faults.base import Drawn, End, Kind, Steps
from haclusterd.simulator.hosts import configurations
from haclusterd.simulator.hosts.agents import OTHER, SERVICE
from haclusterd.simulator.hosts.truth import CALLED, PIDFILE, UNIQUE
from haclusterd.simulator.hosts.world import MS
from haclusterd.simulator.people import ask
from haclusterd.simulator.scenario import Cluster

Nodes = Sequence[NodeName]
Chance = random.Random
Fault = Drawn[Cluster]
VerbCall = tuple[str, dict[str, Json]]
"""A verb with its arguments."""

LASTS_MS = (500, 20_000)
UNDONE_SHARE = 0.75
EXTRAS = ("extra1", "extra2", "extra3")
NAMES = ("market", "shop", "store")
"""What people call one service, one name after another."""
EXCHANGED = ("left", "right")
"""What exchange their services."""
SECRETS = ("place", "spot")
CLONE = "pgs"
GUEST = "vm"
PLACES = (*configurations.SERVICES, CLONE, GUEST)


def _drawn(chance: Chance, text: str, call: VerbCall, undo: VerbCall | None = None) -> Fault:
    """Return something that a person does, and mostly undoes after a while."""
    verb, arguments = call
    is_undone = undo is not None and chance.random() < UNDONE_SHARE

    def begin(cluster: Cluster) -> End | None:
        ask(cluster, verb, arguments)
        if undo is None or not is_undone:
            return None
        return lambda: ask(cluster, *undo)

    return Drawn(text, begin, chance.randint(*LASTS_MS))


def _statement(*words: str) -> VerbCall:
    return "configure.statement", {"words": list(words)}


def _loading(text: str) -> VerbCall:
    return "configure.load", {"mode": "update", "text": text, "source": "the swarm"}


def _deletion(*names: str) -> VerbCall:
    return "configure.delete", {"ids": list(names), "cascade": True}


def add_primitive(chance: Chance, _nodes: Nodes) -> Fault:
    """A new service, sometimes one that takes long to start."""
    name = chance.choice(EXTRAS)
    words = (
        "primitive", name, str(SERVICE), "params", f"size={chance.randint(1, 3)}",
        "op", "monitor", f"interval={chance.choice(('1s', '3s'))}", "timeout=5s",
        "op", "start", "interval=0", "timeout=60s", "op", "stop", "interval=0", "timeout=10s",
        "meta", "failure-timeout=10s",
    )  # fmt: skip
    return _drawn(chance, f"{name} is added", _statement(*words), _deletion(name))


def add_group(chance: Chance, _nodes: Nodes) -> Fault:
    """Two new services become a group, or one of them continues alone."""
    monitor = ("op", "monitor", "interval=2s", "timeout=5s")
    lines = [f"primitive {name} {SERVICE} {' '.join(monitor)}" for name in ("member1", "member2")]
    text = "\n".join([*lines, "group pair member1 member2"])
    return _drawn(chance, "a group is added", _loading(text), _deletion("pair", "member1", "member2"))


def add_clone(chance: Chance, _nodes: Nodes) -> Fault:
    """A new service on all nodes."""
    interleave = chance.choice(("true", "false"))
    text = f"primitive copy {SERVICE} op monitor interval=2s timeout=5s\nclone copies copy meta interleave={interleave}"
    return _drawn(chance, "a clone is added", _loading(text), _deletion("copies", "copy"))


def add_unique_clone(chance: Chance, _nodes: Nodes) -> Fault:
    """A new service with instances that differ, each of which runs once in the cluster."""
    most, on_node = chance.choice((("2", "1"), ("3", "1"), ("3", "2"), ("4", "4")))
    text = (
        f"primitive {UNIQUE} {SERVICE} op monitor interval=2s timeout=5s\n"
        f"clone numbers {UNIQUE} meta globally-unique=true clone-max={most} clone-node-max={on_node}"
    )
    return _drawn(chance, f"a unique clone of {most} is added", _loading(text), _deletion("numbers", UNIQUE))


def delete_object(chance: Chance, _nodes: Nodes) -> Fault:
    """Something is removed, with what refers to it."""
    name = chance.choice((*EXTRAS, "cache", "cache-with-db", "db-then-cache", "vip", "pair", "copies"))
    return _drawn(chance, f"{name} is deleted", _deletion(name))


def modify_primitive(chance: Chance, _nodes: Nodes) -> Fault:
    """A parameter, a meta-attribute or an operation of a service changes."""
    name = chance.choice((*configurations.SERVICES, *EXTRAS, "pg"))
    calls: tuple[VerbCall, ...] = (
        _setting(name, "params", "size", str(chance.randint(1, 9))),
        _setting(name, "meta", "priority", str(chance.choice((0, 5, 100)))),
        _setting(name, "meta", "migration-threshold", str(chance.choice((1, 3, 1000)))),
        _setting(name, "meta", "failure-timeout", chance.choice(("2s", "10s"))),
        _setting(name, "meta", "resource-stickiness", str(chance.choice((0, 100, 1000)))),
        ("configure.set", {"path": f"{name}.monitor.interval", "value": chance.choice(("500ms", "2s"))}),
        ("configure.set", {"path": f"{name}.monitor.timeout", "value": chance.choice(("4s", "6s"))}),
    )
    verb, arguments = chance.choice(calls)
    return _drawn(chance, f"{name} is modified ({verb} {arguments})", (verb, arguments))


def _setting(name: str, section: str, key: str, value: str) -> VerbCall:
    return "resource.setting", {"resource": name, "section": section, "action": "set", "name": key, "value": value}


def change_agent(chance: Chance, _nodes: Nodes) -> Fault:
    """A service is to be run by another agent, which neither finds nor ends what the first has started."""
    name = chance.choice(("cache", "db", *EXTRAS))

    def written(agent: object) -> VerbCall:
        return _loading(f"primitive {name} {agent} op monitor interval=1s timeout=5s op start interval=0 timeout=60s "
                        "op stop interval=0 timeout=10s meta failure-timeout=10s")  # fmt: skip

    return _drawn(chance, f"{name} gets another agent", written(OTHER), written(SERVICE))


def change_pidfile(chance: Chance, _nodes: Nodes) -> Fault:
    """A service is to be run with another pidfile: with that, nothing finds or ends what runs."""
    name = chance.choice((*configurations.SERVICES, *EXTRAS, "pg", GUEST))
    old, new = chance.sample(("", "one.pid", "two.pid"), 2)

    def written(pidfile: str) -> VerbCall:
        if pidfile:
            return _setting(name, "params", PIDFILE, pidfile)
        return "resource.setting", {"resource": name, "section": "params", "action": "delete", "name": PIDFILE}

    return _drawn(chance, f"{name} gets another pidfile", written(new), written(old))


def change_secret(chance: Chance, _nodes: Nodes) -> Fault:
    """The pidfile of a service becomes a secret, which gets another value while it runs, and sometimes another key.

    What runs is found and ended by the value that it was started with alone. Somebody may look at the value.
    """
    name, secret = chance.choice((*configurations.SERVICES, *EXTRAS, "pg", GUEST)), chance.choice(SECRETS)
    values = [chance.choice(("one.pid", "two.pid", "six.pid")) for _ in range(3)]
    waits_ms = [chance.randint(50, 4000) for _ in values]
    is_rotated, is_deleted, is_shown = chance.random() < 0.5, chance.random() < 0.5, chance.random() < 0.5

    def begin(cluster: Cluster) -> End:
        steps = Steps(cluster.world)

        def later(at_ms: int, verb: str, arguments: dict[str, Json]) -> None:
            steps.after(at_ms, lambda: ask(cluster, verb, arguments))

        ask(cluster, "secret.set", {"name": secret, "value": values[0]})
        at_ms = waits_ms[0]
        later(at_ms, *_setting(name, "params", PIDFILE, f"secret:{secret}"))
        for value, wait_ms in zip(values[1:], waits_ms[1:], strict=True):
            at_ms += wait_ms
            later(at_ms, "secret.set", {"name": secret, "value": value})
        if is_rotated:
            later(at_ms - waits_ms[-1] // 2, "secret.rotate", {})
        if is_shown:
            later(at_ms, "secret.show", {"name": secret})

        def end() -> None:
            steps.end()
            ask(cluster, "resource.setting",
                {"resource": name, "section": "params", "action": "delete", "name": PIDFILE})  # fmt: skip
            if is_deleted:
                cluster.world.after(waits_ms[0] * MS, lambda: ask(cluster, "secret.delete", {"name": secret}))

        return end

    return Drawn(f"the pidfile of {name} is secret {secret}: {', '.join(values)}", begin,
                 sum(waits_ms) + chance.randint(*LASTS_MS))  # fmt: skip


def rename_copy(chance: Chance, _nodes: Nodes) -> Fault:
    """What runs as one service becomes the only instance of a unique clone, which has another name, or is so again."""
    name = chance.choice(EXTRAS)
    clone = f"only-{name}"
    text = (
        f"primitive {name} {SERVICE} op monitor interval=1s timeout=5s op start interval=0 timeout=60s "
        f"op stop interval=0 timeout=10s meta failure-timeout=10s\n"
        f"clone {clone} {name} meta globally-unique=true clone-max=1"
    )
    undo = chance.choice((_deletion(clone), _setting(clone, "meta", "globally-unique", "false")))
    return _drawn(chance, f"{name} becomes a unique clone", _loading(text), undo)


def rename_service(chance: Chance, _nodes: Nodes) -> Fault:
    """A service is called by another name while it runs, mostly back by its first one later; or by a third one."""
    old, new, third = chance.sample(NAMES, 3)
    text = (
        f"primitive {old} {SERVICE} params {CALLED}={chance.getrandbits(32):08x} op monitor interval=1s timeout=5s "
        f"op start interval=0 timeout=60s op stop interval=0 timeout=10s meta failure-timeout=10s"
    )
    wait_ms, lasts_ms = chance.randint(200, 6000), chance.randint(4000, 20_000)
    last = chance.choice((old, old, third))

    def begin(cluster: Cluster) -> End:
        def rename(_is_done: bool) -> None:
            cluster.world.after(wait_ms * MS, lambda: ask(cluster, *_renaming(old, new)))

        # A load that is asked for once more, after the rename, would make a second service of the same parameters.
        ask(cluster, *_loading(text), answered=rename)
        return lambda: ask(cluster, *_renaming(new, last))

    return Drawn(f"{old} is called {new}, then {last}", begin, wait_ms + lasts_ms)


def exchange_services(chance: Chance, nodes: Nodes) -> Fault:
    """Two names exchange their services while these run, and mostly exchange them back; often several times, while
    they start and daemons are killed."""
    one, other = (f"{chance.getrandbits(32):08x}" for _ in EXCHANGED)
    wait_ms, lasts_ms = chance.randint(200, 6000), chance.randint(1000, 20_000)
    # Drawn apart, so that whatever else a seed draws stays what it is.
    apart = random.Random(f"exchanges/{one}/{other}")
    again_ms = [apart.randint(50, 3000) for _ in range(apart.choice((0, 0, 1, 2, 5)))]
    kills = [(apart.randint(wait_ms, wait_ms + 5000), apart.choice(nodes)) for _ in range(apart.choice((0, 0, 1, 2)))]

    def written(*services: str) -> VerbCall:
        return _loading("\n".join(
            f"primitive {name} {SERVICE} params {CALLED}={service} op monitor interval=1s timeout=5s "
            f"op start interval=0 timeout=60s op stop interval=0 timeout=10s meta failure-timeout=10s"
            for name, service in zip(EXCHANGED, services, strict=True)
        ))  # fmt: skip

    def begin(cluster: Cluster) -> End:
        ask(cluster, *written(one, other))
        at_ms, services = wait_ms, (other, one)
        for pause_ms in (0, *again_ms):
            at_ms += pause_ms
            cluster.world.after(at_ms * MS, partial(ask, cluster, *written(*services)))
            services = services[::-1]
        for kill_ms, node in kills:
            cluster.world.after(kill_ms * MS, partial(cluster.kill_brain, node))
        return lambda: ask(cluster, *written(one, other))

    often = f" {len(again_ms) + 1} times" if again_ms else ""
    text = f"{' and '.join(EXCHANGED)} exchange their services{often}"
    return Drawn(text, begin, wait_ms + max(sum(again_ms), lasts_ms))


def _renaming(old: str, new: str) -> VerbCall:
    return "configure.rename", {"old": old, "new": new}


def modify_group(chance: Chance, _nodes: Nodes) -> Fault:
    """A member is taken into the group `front`, or out of it."""
    name = chance.choice((*EXTRAS, "cache"))
    call: VerbCall = ("configure.modgroup", {"words": ["front", "add", name, *chance.choice(((), ("before", "web")))]})
    return _drawn(chance, f"{name} joins the group", call, ("configure.modgroup", {"words": ["front", "remove", name]}))


def constrain(chance: Chance, nodes: Nodes) -> Fault:
    """A location, colocation or ordering between whatever there is."""
    one, other = chance.sample((*configurations.SERVICES, *EXTRAS, "front", CLONE), 2)
    node, score = chance.choice(nodes), chance.choice(("50", "200", "-inf", "inf"))
    number = chance.randint(1, 3)
    words = chance.choice((
        ("location", f"drawn-location-{number}", one, f"{score}:", node),
        ("location", f"drawn-rule-{number}", one, "rule", "-inf:", "#uname", "eq", node),
        ("colocation", f"drawn-colocation-{number}", f"{chance.choice(('inf', '-inf', '100', '-100'))}:", one, other),
        ("order", f"drawn-order-{number}", f"{chance.choice(('Mandatory', 'Optional', 'Serialize'))}:", one, other),
    ))  # fmt: skip
    return _drawn(chance, " ".join(words), _statement(*words), _deletion(words[1]))


FENCING_PROPERTIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("fencing-loop-limit", ("0", "1", "2"), "3"),
    ("fencing-failure-limit", ("0", "2"), "1"),
    ("fencing-loop-window", ("1min", "10min"), "1h"),
    ("fencing-max-attempts", ("1", "3"), "10"),
)
PROPERTIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("no-quorum-policy", ("stop", "freeze", "ignore", "demote", "fence"), "stop"),
    ("batch-limit", ("1", "3"), "0"),
    ("start-failure-is-fatal", ("true",), "false"),
    ("stop-all-resources", ("true",), "false"),
    ("maintenance-mode", ("true",), "false"),
    ("priority-fencing-delay", ("1s", "3s"), "0"),
    ("fencing-action", ("off",), "reboot"),
    ("fencing-timeout", ("3s", "20s"), "5s"),
    ("symmetric-cluster", ("false",), "true"),
    ("placement-strategy", ("balanced", "minimal"), "default"),
    ("stop-removed-resources", ("false",), "true"),
    ("cluster-recheck-interval", ("5s",), "15min"),
    ("brain-timeout", ("5s", "20s"), "10s"),
    ("node-timeout", ("1s", "3s", "5s"), "2s"),
    ("shutdown-escalation", ("1s", "5s"), "20min"),
    ("shutdown-lock", ("true",), "false"),
    ("node-pending-timeout", ("5s", "30s"), "0"),
    ("transition-delay", ("500ms", "3s"), "0"),
    ("fence-reaction", ("panic",), "stop"),
    ("load-threshold", ("50%",), "0"),
    ("enable-startup-probes", ("false",), "true"),
    ("node-health-strategy", ("migrate-on-red", "only-green", "progressive"), "none"),
    *FENCING_PROPERTIES,
)


def set_property(chance: Chance, _nodes: Nodes) -> Fault:
    """A property of the cluster, and mostly back to what it was."""
    fault = _property_of(chance, PROPERTIES)
    name = fault.text.partition("=")[0]
    return replace(fault, begin=lambda cluster: fault.begin(cluster) if _is_allowed(cluster, name) else None)


def _is_allowed(cluster: Cluster, name: str) -> bool:
    """Tell whether people set a property: who has data that takes writes when it is started has all nodes probed."""
    return name != "enable-startup-probes" or not cluster.truth.databases.are_kept


def set_timeout(chance: Chance, _nodes: Nodes) -> Fault:
    """Another node-timeout comes into force while everything runs, and with it every timer that follows from it."""
    return _property_of(chance, (("node-timeout", ("500ms", "1s", "3s", "5s", "10s"), "2s"),))


def limit_fencing(chance: Chance, _nodes: Nodes) -> Fault:
    """How often nodes are fenced, and what is done without a quorum, changes."""
    policy = ("no-quorum-policy", ("stop", "freeze", "ignore", "demote", "fence"), "stop")
    return _property_of(chance, (*FENCING_PROPERTIES, policy))


ON_FAIL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("start", ("fence", "standby", "stop", "block", "restart", "ignore")),
    ("stop", ("fence", "block", "ignore")),
    ("monitor", ("fence", "standby", "stop", "block", "ignore", "restart", "restart-container")),
)


def set_on_fail(chance: Chance, _nodes: Nodes) -> Fault:
    """What is done when an operation of a service fails."""
    resource = chance.choice((*configurations.SERVICES, "pg", GUEST))
    operation, policies = chance.choice(ON_FAIL)
    policy, path = chance.choice(policies), f"{resource}.{operation}.on-fail"
    usual = "fence" if operation == "stop" else "restart"
    return _drawn(chance, f"{path} is {policy}", ("configure.set", {"path": path, "value": policy}),
                  ("configure.set", {"path": path, "value": usual}))  # fmt: skip


def _property_of(chance: Chance, properties: Sequence[tuple[str, tuple[str, ...], str]]) -> Fault:
    name, values, usual = chance.choice(properties)
    value = chance.choice(values)
    return _drawn(chance, f"{name}={value}", _statement("property", f"{name}={value}"),
                  _statement("property", f"{name}={usual}"))  # fmt: skip


def set_by_the_clock(chance: Chance, _nodes: Nodes) -> Fault:
    """Rules on dates: a property, a device's parameter or a meta-attribute holds for some seconds, or from then on."""
    kind = chance.choice(("property", "property", "device", "role", "copies"))
    properties = [each for each in PROPERTIES if each[0].replace("-", "_") not in configurations.USUAL_PROPERTIES]
    name, values, _ = chance.choice((*properties, ("node-timeout", ("1s", "5s", "10s"), "2s")))
    value, wait_s, lasts_s = chance.choice(values), chance.randint(0, 4), chance.randint(1, 15)
    if kind == "device":
        parameters = (("pcmk_delay_base", "2s"), ("pcmk_reboot_timeout", "3s"), ("pcmk_host_list", "n1"))
        name, value = chance.choice(parameters)
    elif kind != "property":
        name, value = ("target-role", "Stopped") if kind == "role" else ("clone-max", "1")
    owner = {"device": configurations.DEVICE, "role": chance.choice(configurations.SERVICES), "copies": CLONE}.get(kind)

    def begin(cluster: Cluster) -> None:
        begins_s = cluster.world.now_ms // 1000 + wait_s
        dated = configurations.dated_block("dated", begins_s, begins_s + lasts_s, **{name: value})
        if owner is None and _is_allowed(cluster, name):
            properties = cluster.cib.configuration.properties
            cluster.edit((PutSets("properties", configurations.with_dated(properties, dated)),))
            return
        found = None if owner is None else cluster.cib.configuration.resources.get(ResourceId(owner))
        if isinstance(found, Primitive | Clone):
            section = "parameters" if kind == "device" else "meta"
            blocks: dict[str, Any] = {section: configurations.with_dated(getattr(found, section), dated)}
            cluster.edit((PutResource(replace(found, **blocks)),))

    return Drawn(f"{owner or 'the cluster'}: {name}={value} in {wait_s} s, for {lasts_s} s", begin)


def set_defaults(chance: Chance, _nodes: Nodes) -> Fault:
    """Defaults of resources and operations."""
    words = chance.choice((("rsc_defaults", "resource-stickiness=5"), ("rsc_defaults", "resource-stickiness=1000"),
                           ("op_defaults", "timeout=15s"), ("op_defaults", "timeout=40s")))  # fmt: skip
    return _drawn(chance, " ".join(words), _statement(*words))


def add_template_or_tag(chance: Chance, nodes: Nodes) -> Fault:
    """A template with a service made of it, or a tag with a constraint upon it."""
    if chance.random() < 0.5:
        text = f"rsc_template mould {SERVICE} op monitor interval=2s timeout=5s\nprimitive moulded @mould"
        names = ("moulded", "mould")
    else:
        text = f"tag some db cache\nlocation drawn-tag some 10: {chance.choice(nodes)}"
        names = ("drawn-tag", "some")
    return _drawn(chance, text.replace("\n", "; "), _loading(text), _deletion(*names))


def arrange(chance: Chance, _nodes: Nodes) -> Fault:
    """The resources are in another order, on which placement depends."""
    order = chance.random()

    def begin(cluster: Cluster) -> None:
        names = list(cluster.cib.configuration.resources)
        random.Random(order).shuffle(names)
        cluster.edit((Arrange("resource", tuple(names)),))

    return Drawn("resources are arranged in another order", begin)


def change_in_parts(chance: Chance, _nodes: Nodes) -> Fault:
    """A change that comes in parts, as one does that is larger than an entry of the log."""
    score = str(chance.choice((1, 100, 150)))

    def begin(cluster: Cluster) -> None:
        defaults = AttributeSet("rsc-options", (("resource-stickiness", score),))
        edits = (PutSets("resource_defaults", (defaults,)),)
        whole = ChangeConfiguration(cluster.cib.version.epoch, edits, "swarm", "in parts")
        for part in staged(whole, f"swarm-{cluster.world.now_us}"):
            cluster.administer(part)

    return Drawn(f"stickiness {score}, in parts", begin)


def set_score(chance: Chance, nodes: Nodes) -> Fault:
    """A node's promotion score changes, for good or until its next boot: the promoted instance may want to move."""
    node, score = chance.choice(nodes), str(chance.choice((1, 50, 500, 1000)))
    lifetime = chance.choice(("forever", "reboot"))
    arguments: dict[str, Json] = {"node": node, "action": "set", "name": "master-pg", "value": score,
                                  "lifetime": lifetime}  # fmt: skip
    return _drawn(chance, f"the promotion score of {node} is {score} ({lifetime})", ("node.attribute", arguments))


def set_attribute(chance: Chance, nodes: Nodes) -> Fault:
    """An attribute of a node that nothing depends on, dampened or not, its health, or its capacity."""
    node = chance.choice(nodes)
    arguments: dict[str, Json]
    if chance.random() < 0.2:
        arguments = {"node": node, "action": "set", "name": "#health-disk",
                     "value": chance.choice(("red", "yellow", "green")), "lifetime": "reboot"}  # fmt: skip
        return _drawn(chance, f"node.attribute {arguments}", ("node.attribute", arguments))
    if chance.random() < 0.3:
        call: VerbCall = ("node.utilization", {"node": node, "action": "set", "name": "cpu", "value": "4"})
    else:
        arguments = {"node": node, "action": "set", "name": "colour",
                                      "value": str(chance.randint(1, 9)), "lifetime": "reboot"}  # fmt: skip
        if chance.random() < 0.5:
            arguments["dampen_ms"] = chance.choice((200, 3000))
        if chance.random() < 0.3:
            arguments |= {"name": "secret", "private": True}
        call = ("node.attribute", arguments)
    return _drawn(chance, f"{call[0]} {call[1]}", call)


def use_ticket(chance: Chance, _nodes: Nodes) -> Fault:
    """A service comes to depend on a ticket, or the ticket is granted, revoked, set aside."""
    if chance.random() < 0.3:
        resource = chance.choice(configurations.SERVICES)
        policy = chance.choice(("stop", "freeze", "demote", "fence"))
        words = ("rsc_ticket", "drawn-ticket", f"{TICKET}:", resource, f"loss-policy={policy}")
        return _drawn(chance, " ".join(words), _statement(*words), _deletion("drawn-ticket"))
    action = chance.choice(("grant", "grant", "revoke", "standby", "activate", "delete"))
    return _drawn(chance, f"{action} the ticket", ("ticket.change", {"ticket": TICKET, "action": action}))


def move(chance: Chance, nodes: Nodes) -> Fault:
    """A service, or the promoted role, is moved; the daemon that was asked takes the constraint away again."""
    resource, node = chance.choice(PLACES), chance.choice(nodes)
    keeps = chance.random() < 0.4
    undo: VerbCall | None = ("resource.clear", {"resource": resource}) if keeps else None
    call: VerbCall = ("resource.move", {"resource": resource, "node": node, "constraint": keeps})
    return _drawn(chance, f"{resource} is moved to {node}{' for good' if keeps else ''}", call, undo)


def move_guest(chance: Chance, nodes: Nodes) -> Fault:
    """The service that migrates live is wanted somewhere else: moved, or preferred there."""
    node = chance.choice(nodes)
    if chance.random() < 0.5:
        return _drawn(chance, f"{GUEST} is moved to {node}", ("resource.move", {"resource": GUEST, "node": node}))
    score = chance.choice(("150", "300", "500"))
    words = ("location", f"{GUEST}-{node}", GUEST, f"{score}:", node)
    return _drawn(chance, f"{GUEST} prefers {node} by {score}", _statement(*words), _deletion(words[1]))


def ban(chance: Chance, nodes: Nodes) -> Fault:
    """A service is banned from a node."""
    resource, node = chance.choice(PLACES), chance.choice(nodes)
    return _drawn(chance, f"{resource} is banned from {node}", ("resource.ban", {"resource": resource, "node": node}),
                  ("resource.clear", {"resource": resource}))  # fmt: skip


def switch_resource(chance: Chance, _nodes: Nodes) -> Fault:
    """A service is stopped for a while, or restarted; or the fence device, and nobody can be fenced meanwhile."""
    resource = chance.choice((*PLACES, "front", configurations.DEVICE))
    if chance.random() < 0.3:
        return _drawn(chance, f"{resource} is restarted", ("resource.restart", {"resource": resource}))
    return _drawn(chance, f"{resource} is to be stopped", ("resource.stop", {"resources": [resource]}),
                  ("resource.start", {"resources": [resource]}))  # fmt: skip


def demote_for_a_while(chance: Chance, _nodes: Nodes) -> Fault:
    """Nothing of the promotable clone is to be promoted."""
    return _drawn(chance, "the clone is demoted", ("resource.demote", {"resource": CLONE}),
                  ("resource.promote", {"resource": CLONE}))  # fmt: skip


def leave_alone(chance: Chance, nodes: Nodes) -> Fault:
    """A resource or a node is unmanaged or in maintenance for a while."""
    resource, node = chance.choice(PLACES), chance.choice(nodes)
    unmanaged: dict[str, Json] = {"resources": [resource], "unmanage": True}
    calls: tuple[tuple[VerbCall, VerbCall], ...] = (
        (("resource.manage", unmanaged), ("resource.manage", {"resources": [resource]})),
        (("resource.maintenance", {"resource": resource, "state": "on"}),
         ("resource.maintenance", {"resource": resource, "state": "off"})),
        (("node.maintenance", {"node": node, "ready": False}), ("node.maintenance", {"node": node, "ready": True})),
    )  # fmt: skip
    call, undo = chance.choice(calls)
    return _drawn(chance, f"{call[0]} {call[1]}", call, undo)


def stand_by(chance: Chance, nodes: Nodes) -> Fault:
    """A node gives everything away, for a while, for good or until its next boot."""
    node, lifetime = chance.choice(nodes), chance.choice(("forever", "reboot"))
    return _drawn(chance, f"{node} is on standby ({lifetime})", ("node.standby", {"node": node, "lifetime": lifetime}),
                  ("node.online", {"node": node}))  # fmt: skip


def use_token(chance: Chance, _nodes: Nodes) -> Fault:
    """A program may ask through the REST interface, for a while."""
    name = f"program{chance.randint(1, 3)}"
    arguments: dict[str, Json] = {"name": name, "digest": f"{chance.getrandbits(256):064x}", "role": "operator"}
    return _drawn(chance, f"a token for {name}", ("api.token_add", arguments), ("api.token_revoke", {"name": name}))


def roll_back(chance: Chance, _nodes: Nodes) -> Fault:
    """The configuration becomes what it was some versions ago, mostly for a while: many things change at once.

    What the seed began with stays: other faults count on it.
    """
    back, is_undone = chance.choice((1, 1, 2, 3, 5, 10)), chance.random() < UNDONE_SHARE

    def begin(cluster: Cluster) -> End | None:
        present = cluster.cib.version.epoch
        ask(cluster, "configure.rollback", {"version": max(cluster.begins_with, present - back)})
        return (lambda: ask(cluster, "configure.rollback", {"version": present})) if is_undone else None

    lasts_ms = chance.randint(*LASTS_MS)
    return Drawn(f"the configuration is rolled back by {back}", begin, lasts_ms)


def probe_again(chance: Chance, nodes: Nodes) -> Fault:
    """Failures are forgotten, or the whole history, of one resource or of all."""
    arguments: dict[str, Json] = {"reprobe": chance.random() < 0.6}
    if chance.random() < 0.5:
        arguments["resource"] = chance.choice(PLACES)
    if chance.random() < 0.3:
        arguments["node"] = chance.choice(nodes)
    return _drawn(chance, f"clean-up {arguments}", ("resource.cleanup", arguments))


def hand_over(chance: Chance, nodes: Nodes) -> Fault:
    """Another node is to be DC."""
    node = chance.choice(nodes)
    return _drawn(chance, f"{node} is to lead", ("cluster.transfer_leader", {"node": node}))


def change_access(chance: Chance, _nodes: Nodes) -> Fault:
    """A role of Pacemaker's access lists, which may read everything, or change one service alone."""
    rights = chance.choice((("read", "cib"), ("write", f"meta:{chance.choice(configurations.SERVICES)}:target-role")))
    name = "drawn-role"
    return _drawn(chance, f"{name} may {' '.join(rights)}", _statement("role", name, *rights), _deletion(name))


def arrange_fencing(chance: Chance, nodes: Nodes) -> Fault:
    """Levels of fencing come and go, devices get delays, and what was fenced is forgotten."""
    node = chance.choice(nodes)
    devices = chance.choice((("switch",), ("second", "switch"), ("second,switch",)))
    delay = chance.choice(("500ms", "2s"))
    calls: tuple[VerbCall, ...] = (
        _statement("fencing_topology", f"{node}:", *devices),
        _setting(configurations.DEVICE, "params", chance.choice(("pcmk_delay_base", "pcmk_delay_max")), delay),
        ("fencing.cleanup", {}),
    )
    verb, arguments = chance.choice(calls)
    return _drawn(chance, f"{verb} {arguments}", (verb, arguments))


def confirm_fencing(chance: Chance, nodes: Nodes) -> Fault:
    """A person looks at a lost node, and confirms that it is off where it is."""
    node = chance.choice(nodes)

    def begin(cluster: Cluster) -> None:
        status = cluster.cib.status.nodes.get(node)
        if status is not None and status.state is NodeState.LOST and not cluster.hosts[node].is_powered:
            ask(cluster, "fencing.confirm", {"node": node, "has_checked": True})

    return Drawn(f"a person looks at {node}", begin)


def _kinds(*pairs: tuple[str, int, Callable[[Chance, Nodes], Fault]]) -> tuple[Kind[Cluster], ...]:
    return tuple(Kind(name, weight, draw) for name, weight, draw in pairs)


OF_EDITS: tuple[Kind[Cluster], ...] = _kinds(
    ("add a primitive", 2, add_primitive),
    ("add a group", 1, add_group),
    ("add a clone", 1, add_clone),
    ("add a unique clone", 1, add_unique_clone),
    ("delete an object", 2, delete_object),
    ("modify a primitive", 2, modify_primitive),
    ("change an agent", 2, change_agent),
    ("change a pidfile", 3, change_pidfile),
    ("change a secret", 3, change_secret),
    ("rename a copy", 2, rename_copy),
    ("rename a service", 2, rename_service),
    ("exchange services", 2, exchange_services),
    ("modify a group", 1, modify_group),
    ("constrain", 3, constrain),
    ("set a property", 3, set_property),
    ("set by the clock", 3, set_by_the_clock),
    ("set defaults", 1, set_defaults),
    ("template or tag", 1, add_template_or_tag),
    ("arrange", 1, arrange),
    ("change in parts", 1, change_in_parts),
    ("promotion score", 4, set_score),
    ("node attribute", 1, set_attribute),
    ("ticket", 2, use_ticket),
    ("move", 3, move),
    ("move what migrates", 3, move_guest),
    ("ban", 2, ban),
    ("stop or restart", 2, switch_resource),
    ("demote", 1, demote_for_a_while),
    ("leave alone", 2, leave_alone),
    ("standby", 2, stand_by),
    ("probe again", 2, probe_again),
    ("API token", 1, use_token),
    ("role", 1, change_access),
    ("hand over", 2, hand_over),
    ("arrange fencing", 1, arrange_fencing),
    ("confirm fencing", 1, confirm_fencing),
)
"""What administrators do, beside what `faults_of_people` has of them."""
OF_POLICIES: tuple[Kind[Cluster], ...] = _kinds(
    ("on-fail", 6, set_on_fail),
    ("limit fencing", 3, limit_fencing),
)
OF_TIMEOUTS: tuple[Kind[Cluster], ...] = _kinds(
    ("node-timeout", 4, set_timeout),
    ("set by the clock", 2, set_by_the_clock),
)
OF_TICKETS: tuple[Kind[Cluster], ...] = _kinds(("ticket", 8, use_ticket),)
OF_ROLLBACKS: tuple[Kind[Cluster], ...] = _kinds(("roll back", 1, roll_back),)
OF_MOVES: tuple[Kind[Cluster], ...] = _kinds(
    ("promotion score", 4, set_score),
    ("move", 2, move),
    ("move what migrates", 4, move_guest),
    ("standby", 1, stand_by),
)
"""After which something moves, and its new place is often another one before it has arrived."""
