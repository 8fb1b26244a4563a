"""Power switches and the fence agents that ask them.

A switch does what it is asked after a while; or not; or says so without doing it; or does it after the agent has given
up. The agent is a process of the host that runs it: it runs on when the daemon there is killed, until `timeout` or the
daemon's next life kills it. A request that has left the host is carried out whatever becomes of the host.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from haclusterd.model.fence_parameters import PLUGIN_PREFIX
from haclusterd.model.ids import NodeName
from haclusterd.model.records import dataclass
from haclusterd.ports.fencing import FenceCall, FenceCallResult, FenceMetadata
from haclusterd.simulator.hosts.hosts import Boot, Host
from haclusterd.simulator.hosts.world import MS, Life, World

TARGET_PARAMETERS = ("plug", "port", "nodename")
OUTLET = "outlet-"
"""What the name of a host's outlet begins with; the switch knows it by the host's own name too."""
AGENT = "fence_switch"
PLUGIN = f"{PLUGIN_PREFIX}switch"
"""The same as a plugin of cluster-glue, which is asked for its hosts unless they are configured."""


class FaultMode(Enum):
    """How a switch treats what it is asked."""

    WORKS = "works"
    REFUSES = "refuses"
    """Answers that it failed, at once, and does nothing."""
    LIES = "lies"
    """Answers ok and does nothing."""
    DEAD = "dead"
    """Never answers."""
    LATE = "late"
    """Does it, but long after the agent was killed at its timeout."""
    DAWDLES = "dawdles"
    """Does it at once, but the agent takes all its time before it asks."""


@dataclass(slots=True)
class FaultProfile:
    """How the switch behaves for one target."""

    mode: FaultMode = FaultMode.WORKS
    latency_ms: int = 150
    lateness_ms: int = 3000
    """With LATE: how long after the agent's timeout it acts."""


class PowerSwitch:
    """The switch that holds every host's power."""

    def __init__(self, world: World, hosts: Mapping[NodeName, Host]) -> None:
        self._world = world
        self._hosts = hosts
        self._profiles: dict[NodeName, FaultProfile] = {}
        self.usual = FaultProfile()
        self.boot_after_ms = 3000
        self.reboot_brings_back = True
        """Whether `reboot` gives the power back; scenarios that want the node away for good say False."""
        self.acted: list[tuple[int, NodeName, str]] = []
        self.when_asked: list[Callable[[FenceCall, NodeName], None]] = []
        """Called when a request arrives whose agent is at work."""
        self.lies = 0
        """How often it said ok and did nothing."""

    def set(self, node: str, mode: FaultMode, *, latency_ms: int = 150, lateness_ms: int = 3000) -> None:
        """Decide how requests for a node fare from now on."""
        self._profiles[NodeName(node)] = FaultProfile(mode, latency_ms, lateness_ms)

    def repair(self) -> None:
        """Let everything work again."""
        self._profiles.clear()

    def profile(self, target: NodeName) -> FaultProfile:
        """Return how requests for a node fare."""
        return self._profiles.get(target, self.usual)

    def act(self, target: NodeName, action: str) -> None:
        """Do it."""
        host = self._hosts[target]
        self._world.record(f"switch {action} {target}")
        self.acted.append((self._world.now_us, target, action))
        if action == "off":
            host.power_off()
        elif action == "on":
            host.power_on()
        elif action == "reboot":
            host.power_off()
            if self.reboot_brings_back:
                self._world.after(self.boot_after_ms * MS, host.power_on)

    def names(self) -> list[NodeName]:
        """Return the hosts whose power it holds."""
        return sorted(self._hosts)

    def is_on(self, target: NodeName) -> bool:
        """Tell whether a host has power."""
        return self._hosts[target].is_powered


class SimulatedFenceAgents:
    """The `FenceAgents` of one daemon."""

    def __init__(self, world: World, switch: PowerSwitch, boot: Boot, life: Life, node: NodeName) -> None:
        self._world = world
        self._switch = switch
        self._boot = boot
        self._life = life
        self._node = node
        for left_over in boot.fence_agents:
            left_over.end()
        boot.fence_agents.clear()

    def call(self, call: FenceCall, done: Callable[[FenceCallResult], None]) -> None:
        """See `FenceAgents.call`."""
        target = target_of(call)
        self._world.record(f"{self._node} fence agent {call.action} {target} begins ({call.key})")
        if call.action not in ("off", "on", "reboot"):
            code, output = self._ask(call, target)
            answer = FenceCallResult(call.key, code, timed_out=False, reason="", output=output)
            self._answer_after(20 * MS, answer, done)
            return
        profile = self._switch.profile(target)
        ok = FenceCallResult(call.key, 0, timed_out=False, reason="", output="")
        latency_us, timeout_us = profile.latency_ms * MS, call.timeout_ms * MS
        agent = Life(self._world, f"fence agent {call.key}", self._boot.life)
        self._boot.fence_agents.append(agent)
        self._boot.life.after(timeout_us, agent.end)
        if profile.mode in (FaultMode.DEAD, FaultMode.LATE) or latency_us >= timeout_us:
            late = FenceCallResult(call.key, 1, timed_out=True, reason="timed out", output="")
            self._answer_after(timeout_us, late, done)
        elif profile.mode is FaultMode.REFUSES:
            refused = FenceCallResult(call.key, 1, timed_out=False, reason="simulated refusal", output="")
            self._answer_after(latency_us, refused, done)
        else:
            self._switch.lies += profile.mode is FaultMode.LIES
            self._answer_after(latency_us, ok, done)
        act_us = {
            FaultMode.WORKS: latency_us * 3 // 4,
            FaultMode.LATE: timeout_us + profile.lateness_ms * MS,
        }.get(profile.mode)

        def ask() -> None:
            if agent.is_alive:
                for look in self._switch.when_asked:
                    look(call, target)
            self._switch.act(target, call.action)

        if profile.mode is FaultMode.DAWDLES:
            agent.after(latency_us, ask)
        elif act_us is not None:
            # The request has left the host: nothing that happens to the host can call it back.
            self._world.after(act_us, ask)

    def exists(self, agent: str) -> bool:
        """See `FenceAgents.exists`."""
        return agent in (AGENT, PLUGIN)

    def metadata(self, agent: str, done: Callable[[FenceMetadata | None], None]) -> None:
        """See `FenceAgents.metadata`."""
        actions = frozenset({"off", "on", "reboot", "status", "monitor", "list", "metadata"})
        metadata = FenceMetadata(
            agent=agent,
            actions=actions,
            parameters=frozenset({"plug", "nodename"}),
            host_argument="plug",
        )
        answer = metadata if self.exists(agent) else None
        self._life.after(MS, lambda: done(answer))

    def _ask(self, call: FenceCall, target: NodeName) -> tuple[int, str]:
        """Return exit code and output of an action that changes nothing."""
        if call.action == "status":
            return 0 if self._switch.is_on(target) else 2, ""
        listed = (f"{OUTLET}{name},{name}\n" for name in self._switch.names())
        return 0, "".join(listed) if call.action == "list" else ""

    def _answer_after(self, span_us: int, result: FenceCallResult, done: Callable[[FenceCallResult], None]) -> None:
        def answer() -> None:
            self._life.after(0, lambda: done(result))

        self._boot.life.after(span_us, answer)

def called(call: FenceCall) -> str:
    """Return what a call names its target; empty where it is about none."""
    return call.host or next((call.parameters[name] for name in TARGET_PARAMETERS if name in call.parameters), "")


def target_of(call: FenceCall) -> NodeName:
    """Return whose power a call is about."""
    return NodeName(called(call).removeprefix(OUTLET))
