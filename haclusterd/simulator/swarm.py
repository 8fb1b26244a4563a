"""Random faults by the seed.

First everything may go wrong and no rule may be broken; then everything is healed and the cluster must find back. One
seed is one run, equal everywhere. The faults are drawn from their own source of chance, so that a change in the code
under test moves the events and not the plan of faults.
"""

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from haclusterd.cib.commands import CleanUp, RequestFence
from haclusterd.model.ids import NodeName
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator import configurations
from haclusterd.simulator.agents import Manners
from haclusterd.simulator.brain import BrainProcess
from haclusterd.simulator.checkers import Violation
from haclusterd.simulator.fence_devices import Mood
from haclusterd.simulator.network import Weather
from haclusterd.simulator.scenario import Cluster, Shape
from haclusterd.simulator.world import MS, SECOND, Life

SAFETY_PHASE_MS = 60_000
PROMOTABLE_EVERY = 2
"""Every so many seeds run a promotable clone too."""
LIVENESS_MS = 120_000
"""Longer than any backoff that the faults may have brought about."""
STAYS_SETTLED_MS = 3000
PAUSE_BETWEEN_FAULTS_MS = (50, 4000)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one seed ended."""

    seed: int
    problem: str
    """Empty when nothing was broken and the cluster found back."""
    simulated_ms: int
    trace: str
    lost: int
    fenced: int
    faults: tuple[str, ...]
    story: tuple[str, ...] = ()
    """Every event, when it was asked for."""


class Faults:
    """Draws faults, brings them about, and ends each in its time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._chance: random.Random = cluster.world.chance("faults")
        self.done: list[str] = []
        self._is_over = False
        self._ends: list[Callable[[], None]] = []
        self._kinds: tuple[tuple[int, Callable[[], str]], ...] = (
            (6, self._kill_brain),
            (3, self._kill_pacer),
            (4, self._lose_power),
            (4, self._pause_brain),
            (2, self._pause_pacer),
            (3, self._hang_thread),
            (4, self._stall),
            (5, self._cut_pair),
            (4, self._cut_one_way),
            (4, self._isolate),
            (4, self._bad_weather),
            (3, self._slow_disk),
            (1, self._full_disk),
            (5, self._kill_service),
            (4, self._bad_manners),
            (3, self._bad_switch),
            (2, self._set_wall_clock),
            (3, self._change_configuration),
            (1, self._clean_up),
            (2, self._drain),
            (1, self._request_fence),
        )

    def begin(self) -> None:
        """Begin to make trouble."""
        self._later(self._next, *PAUSE_BETWEEN_FAULTS_MS)

    def stop(self) -> None:
        """Make no more trouble."""
        self._is_over = True

    def _next(self) -> None:
        if self._is_over:
            return
        weights = [weight for weight, _ in self._kinds]
        (_, bring_about) = self._chance.choices(self._kinds, weights)[0]
        text = f"{self._world.now_ms} ms: {bring_about()}"
        self.done.append(text)
        self._world.record(f"fault {text}")
        self._later(self._next, *PAUSE_BETWEEN_FAULTS_MS)

    def _later(self, call: Callable[[], None], low_ms: int, high_ms: int) -> int:
        span_ms = self._chance.randint(low_ms, high_ms)
        self._world.after(span_ms * MS, call)
        return span_ms

    def _ending(self, call: Callable[[], None], low_ms: int, high_ms: int) -> int:
        """End a fault later, unless everything was healed meanwhile."""
        return self._later(lambda: None if self._is_over else call(), low_ms, high_ms)

    def _node(self) -> NodeName:
        return self._chance.choice(self._cluster.names)

    def _pair(self) -> tuple[NodeName, NodeName]:
        one, other = self._chance.sample(self._cluster.names, 2)
        return one, other

    # -- processes and hosts ----------------------------------------------------------------------------------------

    def _kill_brain(self) -> str:
        node = self._node()
        self._cluster.kill_brain(node)
        return f"kill the brain of {node}"

    def _kill_pacer(self) -> str:
        node = self._node()
        self._cluster.kill_pacer(node)
        return f"kill the pacer of {node}"

    def _lose_power(self) -> str:
        node = self._node()
        self._cluster.power_off(node)
        span_ms = self._ending(lambda: self._cluster.power_on(node), 500, 20_000)
        return f"power of {node} off for {span_ms} ms"

    def _pause_brain(self) -> str:
        node = self._node()
        self._cluster.pause_brain(node)
        span_ms = self._ending(lambda: self._cluster.resume_brain(node), 100, 15_000)
        return f"SIGSTOP the brain of {node} for {span_ms} ms"

    def _pause_pacer(self) -> str:
        node = self._node()
        unit = self._cluster.hosts[node].pacer
        unit.pause()
        span_ms = self._ending(unit.resume, 100, 6000)
        return f"SIGSTOP the pacer of {node} for {span_ms} ms"

    def _hang_thread(self) -> str:
        node = self._node()
        unit = self._cluster.hosts[node].brain
        process = unit.process
        if not isinstance(process, BrainProcess):
            return f"nothing ({node} has no brain)"
        life: Life = self._chance.choice((process.main_life, process.raft_life))
        unit.hang(life)
        self._ends.append(lambda: unit.unhang(life))
        span_ms = self._ending(lambda: unit.unhang(life), 100, 15_000)
        return f"hang the {life.name} for {span_ms} ms"

    def _stall(self) -> str:
        node = self._node()
        self._cluster.stall(node)
        span_ms = self._ending(lambda: self._cluster.go_on(node), 50, 8000)
        return f"stall {node} for {span_ms} ms"

    def _set_wall_clock(self) -> str:
        node = self._node()
        jump_ms = self._chance.randint(-3_600_000, 3_600_000)
        self._cluster.hosts[node].wall.offset_ms = jump_ms
        return f"wall clock of {node} off by {jump_ms} ms"

    # -- network ----------------------------------------------------------------------------------------------------

    def _cut_pair(self) -> str:
        one, other = self._pair()
        self._cluster.cut(one, other)
        span_ms = self._ending(lambda: self._cluster.mend(one, other), 100, 15_000)
        return f"cut {one} and {other} for {span_ms} ms"

    def _cut_one_way(self) -> str:
        one, other = self._pair()
        self._cluster.cut_one_way(one, other)
        span_ms = self._ending(lambda: self._cluster.mend(one, other), 100, 15_000)
        return f"cut {one} to {other} for {span_ms} ms"

    def _isolate(self) -> str:
        node = self._node()
        self._cluster.isolate(node)
        span_ms = self._ending(lambda: self._cluster.rejoin(node), 100, 15_000)
        return f"isolate {node} for {span_ms} ms"

    def _bad_weather(self) -> str:
        chance = self._chance
        weather = Weather(
            delay_us=(100, chance.choice((600, 5 * MS, 60 * MS))),
            loss=chance.choice((0.0, 0.02, 0.1, 0.3)),
            duplication=chance.choice((0.0, 0.1)),
            reordering=chance.choice((0.0, 0.1)),
        )
        self._cluster.network.set_weather(weather)
        span_ms = self._ending(lambda: self._cluster.network.set_weather(Weather()), 500, 15_000)
        return f"bad weather for {span_ms} ms: {weather}"

    # -- disks, agents, devices -------------------------------------------------------------------------------------

    def _slow_disk(self) -> str:
        node = self._node()
        disk = self._cluster.hosts[node].disk
        usual, worst_us = (300, 3 * MS), self._chance.choice((50 * MS, 300 * MS, 2 * SECOND))
        disk.sync_us = (worst_us // 4, worst_us)

        def end() -> None:
            disk.sync_us = usual

        span_ms = self._ending(end, 500, 15_000)
        return f"slow disk at {node} ({worst_us} us) for {span_ms} ms"

    def _full_disk(self) -> str:
        node = self._node()
        disk = self._cluster.hosts[node].disk
        disk.is_full = True

        def end() -> None:
            disk.is_full = False

        span_ms = self._ending(end, 200, 5000)
        return f"full disk at {node} for {span_ms} ms"

    def _kill_service(self) -> str:
        resource = self._chance.choice(configurations.SERVICES)
        self._cluster.kill_service(resource)
        return f"kill the service {resource}"

    def _bad_manners(self) -> str:
        chance, fates = self._chance, self._cluster.fates
        fates.manners = Manners(
            start_ms=(20, chance.choice((200, 3000))),
            stop_ms=(10, chance.choice((150, 2000))),
            failure=chance.choice((0.0, 0.05, 0.3)),
            hang=chance.choice((0.0, 0.02)),
        )

        def end() -> None:
            fates.manners = Manners()

        span_ms = self._ending(end, 500, 15_000)
        return f"bad agents for {span_ms} ms: {fates.manners}"

    def _bad_switch(self) -> str:
        node = self._node()
        mood = self._chance.choice((Mood.REFUSES, Mood.DEAD, Mood.LATE))
        self._cluster.switch.set(node, mood, latency_ms=self._chance.randint(20, 4000))
        span_ms = self._ending(self._cluster.switch.mend, 500, 10_000)
        return f"the switch {mood.value} for {node}, for {span_ms} ms"

    # -- administrators ---------------------------------------------------------------------------------------------

    def _change_configuration(self) -> str:
        resource, node = self._chance.choice(configurations.SERVICES), self._node()
        score = self._chance.choice((100, 200, 500))
        edit = configurations.prefers(resource, node, score)
        self._cluster.edit((edit,))
        return f"{resource} prefers {node} by {score}"

    def _clean_up(self) -> str:
        self._cluster.administer(CleanUp(None, None, reprobe=self._chance.random() < 0.5))
        return "clean up everything"

    def _drain(self) -> str:
        node = self._node()
        unit = self._cluster.hosts[node].brain
        process = unit.process
        if not isinstance(process, BrainProcess) or not process.is_at_work:
            return f"nothing ({node} has no brain to drain)"
        process.runtime.drain()
        span_ms = self._ending(unit.enable, 1000, 15_000)
        return f"drain {node}, and start it again after {span_ms} ms"

    def _request_fence(self) -> str:
        node = self._node()
        status = self._cluster.cib.status.nodes.get(node)
        if status is None:
            return "nothing (no CIB)"
        self._cluster.administer(RequestFence(node, status.incarnation, "swarm", "a whim"))
        return f"fence {node} by hand"

    def end_all(self) -> None:
        """End what `Cluster.heal` does not know of."""
        for end in self._ends:
            end()
        self._keep_started()

    def _keep_started(self) -> None:
        """Start again what leaves only now, because it was asked to before."""
        for host in self._cluster.hosts.values():
            host.brain.enable()
        self._world.after(SECOND, self._keep_started)


def run(
    seed: int, *, rules: SafetyRules = ALL_RULES, safety_ms: int = SAFETY_PHASE_MS, whole_story: bool = False
) -> Outcome:
    """Run one seed."""
    chance = random.Random(f"shape/{seed}")
    shape = Shape(
        nodes=chance.choice((3, 3, 3, 5)),
        node_timeout_ms=chance.choice((1000, 2000, 2000)),
        snapshot_every=chance.choice((30, 200, 1000)),
    )
    cluster = Cluster(seed, shape, rules)
    faults = Faults(cluster)
    problem = ""
    try:
        cluster.form()
        if seed % PROMOTABLE_EVERY == 0:
            cluster.configure(configurations.promotable(list(cluster.names)))
            cluster.until_settled(LIVENESS_MS, "the promotable clone settled")
        faults.begin()
        cluster.run_for(safety_ms)
        faults.stop()
        cluster.heal()
        faults.end_all()
        cluster.until_settled(LIVENESS_MS, "settled after healing")
        cluster.run_for(STAYS_SETTLED_MS)
        cluster.until_settled(LIVENESS_MS, "settled again")
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this seed's problem, with its story)
        problem = _told(error, cluster)
    log = cluster.checkers.log
    return Outcome(
        seed=seed,
        problem=problem,
        simulated_ms=cluster.world.now_ms,
        trace=cluster.world.trace(),
        lost=len(log.lost_at_us),
        fenced=len(log.fenced),
        faults=tuple(faults.done),
        story=tuple(cluster.world.story()) if whole_story else (),
    )


def _told(error: Exception, cluster: Cluster) -> str:
    story = "\n  ".join(cluster.world.story(60))
    trail = "" if isinstance(error, Violation) else traceback.format_exc(limit=-6)
    return f"{type(error).__name__}: {error}\n{trail}the newest events:\n  {story}"
