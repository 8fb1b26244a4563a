"""One fault, from a whole cluster to a whole cluster, and the audits in between: what may never be, is not."""

import os
import random
import statistics
import time
from collections.abc import Mapping
from typing import Any

from haclusterd.model.records import dataclass, field
from tests.lab.faults import BY_NAME, Fault, Played, Verdict
from tests.lab.lab import Lab
from tests.lab.namespaces import LabError
from tests.lab.site import NotAsExpectedError
from tests.lab.witnesses import Outage

WHOLE_AGAIN_S = 90.0
DIGESTS_S = 20.0
SHOWN_EVENTS = 40
MEASURED = ("service-kill", "crash-holder", "hang-holder", "cut-holder", "fence-slow")


@dataclass(slots=True)
class Outcome:
    """What came of one fault."""

    fault: Fault
    problems: list[str] = field(default_factory=list)
    double_holders: list[str] = field(default_factory=list)
    outage: Outage = field(default_factory=Outage)
    fenced: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """What was acknowledged and is not there any more."""
    interruption_ms: int = 0
    is_whole: bool = True


@dataclass(slots=True)
class Round:
    """Plays a fault once."""

    lab: Lab
    fault: Fault
    number: int

    def play(self, chance: random.Random) -> Outcome:
        lab = self.lab
        since, since_wall_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
        lab.began = since
        outcome = Outcome(self.fault)
        played = Played(may_be_fenced=tuple(lab.machines), bound_ms=10**9)
        try:
            played = self.fault.play(lab, chance)
        except (NotAsExpectedError, AssertionError, LabError) as finding:
            outcome.problems.append(str(finding))
        self._heal(outcome)
        outcome.outage = lab.client.outage(since)
        outcome.fenced = lab.fenced(since)
        outcome.interruption_ms = lab.interruption_ms(since)
        self._audit_holders(outcome, since)
        outcome.lost = lab.lost(since)
        if self.fault.verdict is not Verdict.DETECTED:
            outcome.problems += [f"LOST: {each}" for each in outcome.lost]
        if outcome.is_whole:
            self._audit_states(outcome)
            outcome.problems += lab.unexplained_stops()
        events = lab.events(since_wall_ms)
        outcome.problems += _judge(played, outcome, events)
        self._show(outcome, (time.monotonic_ns() - since) / 1e9)
        if outcome.problems:
            # Bounds are of real time: a reader must know what else the processors had to do.
            print(f"       load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
            for event in events[:SHOWN_EVENTS]:
                print(f"       {int(event['at']) - since_wall_ms:6d} ms  {event['text']}", flush=True)
        return outcome

    def _heal(self, outcome: Outcome) -> None:
        """Undo whatever was done, and wait until the cluster is whole again."""
        lab = self.lab
        lab.heal()
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < WHOLE_AGAIN_S:
            for machine in lab.machines.values():
                if not machine.is_on and time.monotonic() - quiet_since > 3:
                    machine.switch_on()
                machine.empty_disk()
            if lab.is_whole():
                return
            time.sleep(0.1)
        outcome.is_whole = False
        outcome.problems.append(f"not whole again after {WHOLE_AGAIN_S:g} s: {_describe(lab)}")

    def _audit_holders(self, outcome: Outcome, since: int) -> None:
        outcome.double_holders = self.lab.double_holders(since)
        if outcome.double_holders and self.fault.verdict is not Verdict.DETECTED:
            outcome.problems += [f"HELD TWICE: {each}" for each in outcome.double_holders]

    def _audit_states(self, outcome: Outcome) -> None:
        """All nodes hold the same state, once nothing is in flight."""
        deadline = time.monotonic() + DIGESTS_S
        while len(set((found := self.lab.digests()).values())) != 1:
            if time.monotonic() > deadline:
                outcome.problems.append(f"states differ: { {name: hash(text) for name, text in found.items()} }")
                return
            time.sleep(0.2)

    def _show(self, outcome: Outcome, took_s: float) -> None:
        word = "ok" if not outcome.problems else "NOT AS EXPECTED"
        print(
            f"{self.number:4d} {self.fault.name:32s} {self.fault.verdict:9s} {word:4s} "
            f"outage {outcome.outage.total_ms:6d} ms  fenced {','.join(outcome.fenced) or '-':8s} {took_s:5.1f} s"
            + f"  interruption {outcome.interruption_ms} ms" * (self.fault.cluster in BY_NAME),
            flush=True,
        )
        seen = outcome.double_holders if self.fault.verdict is Verdict.DETECTED else []
        for each in (*outcome.problems, *seen):
            print(f"       {each}", flush=True)


def _judge(played: Played, outcome: Outcome, events: list[Mapping[str, Any]]) -> list[str]:
    problems = []
    fenced = set(outcome.fenced)
    if set(played.fenced) - fenced:
        problems.append(f"not fenced: {', '.join(sorted(set(played.fenced) - fenced))}")
    surplus = fenced - set(played.fenced) - set(played.may_be_fenced)
    if surplus:
        problems.append(f"fenced without need: {', '.join(sorted(surplus))}")
    if outcome.outage.longest_ms > played.bound_ms:
        spell = f"{outcome.outage.longest_ms} ms, more than {played.bound_ms} ms"
        problems.append(f"outage of {spell}: {outcome.outage.reasons}")
    if outcome.interruption_ms > played.interruption_ms:
        problems.append(f"interruption of {outcome.interruption_ms} ms, more than {played.interruption_ms} ms")
    kinds = {str(event["kind"]) for event in events}
    expected = [*played.explains, *(("node-fenced",) if played.fenced else ())]
    if len(outcome.outage.holders) > 1 and outcome.fault.verdict is not Verdict.DETECTED:
        expected.append("operation-succeeded")
    missing = {kind for kind in expected if kind not in kinds}
    if all(_is_proven_by_its_boot(name, events) for name in played.fenced):
        missing.discard("node-fenced")
    if missing:
        problems.append(f"the history has no {', '.join(sorted(missing))}")
    return problems


def _is_proven_by_its_boot(name: str, events: list[Mapping[str, Any]]) -> bool:
    """Say whether it is unknown how a node's fencing ended, and the node joined in that time.

    The executor may be killed after its device acted and before it reports it. A new boot of the target proves then
    that the old one is dead; if it joins before the fencing is repeated, nothing is left to be fenced.
    """
    of_node = [str(event["kind"]) for event in events if event.get("node") == name]
    return "fencing-failed" in of_node and "node-joined" in of_node


def _describe(lab: Lab) -> str:
    found = []
    for name in lab.machines:
        status = lab.status(name)
        states = {node["name"]: node["state"] for node in status["nodes"]}
        lines = [headline["text"] for headline in status["headlines"]]
        found.append(f"{name}: dc {status['dc']}, {states}, orders {len(status['orders'])}, {lines[:2]}")
    return "; ".join(found)


@dataclass(slots=True)
class Tally:
    """All rounds together."""

    outcomes: list[Outcome] = field(default_factory=list)
    broken: int = 0
    """How often the lab itself failed, or was interrupted."""

    def add(self, outcome: Outcome) -> bool:
        """Count a round; tell whether the cluster is good for another one."""
        self.outcomes.append(outcome)
        return outcome.is_whole

    @property
    def is_good(self) -> bool:
        return not self.broken and not any(outcome.problems for outcome in self.outcomes)

    def result(self) -> str:
        """Return the last line."""
        by_verdict = {
            verdict: sum(1 for each in self.outcomes if each.fault.verdict is verdict and not each.problems)
            for verdict in Verdict
        }
        held_twice = sum(
            1 for each in self.outcomes if each.double_holders and each.fault.verdict is not Verdict.DETECTED
        )
        counts = " ".join(f"{verdict}={count}" for verdict, count in by_verdict.items())
        unexpected = sum(1 for each in self.outcomes if each.problems) + self.broken
        head = f"RESULT faults={len(self.outcomes)} {counts} unexpected={unexpected} double_holders={held_twice}"
        return " ".join([head, *self._by_name(), *self._medians()])

    def _by_name(self) -> list[str]:
        """Return what is said of the clusters that are played on by name."""
        by_name = [each for each in self.outcomes if each.fault.cluster in BY_NAME]
        runs = [each for each in by_name if each.fault.verdict is not Verdict.DETECTED]
        if not runs:
            return []
        return [
            f"runs={len(runs)}",
            f"lost={sum(1 for each in runs if each.lost)}",
            f"longest_outage_ms={max(each.interruption_ms for each in runs)}",
        ]

    def _medians(self) -> list[str]:
        """Return the client's median outage of the kinds that people ask for."""
        found = []
        for name in MEASURED:
            outages_ms = [each.outage.total_ms for each in self.outcomes if each.fault.name == name]
            if outages_ms:
                found.append(f"{name.replace('-', '_')}_ms={statistics.median(outages_ms):.0f}")
        return found
