"""What a cluster costs when nothing happens: CPU and memory of a plain node, and the time of one change.

A plain node is neither the DC nor the holder of the service. Memory is PSS: what nodes share counts in parts. What a
node spends on doing nothing differs from one while to the next, so it is measured several times, like everything else.
"""

import statistics
import time

from haclusterd.model.records import dataclass, field
from tests.benchmarks.failover_contenders import Contender
from tests.benchmarks.failover_scenarios import SERVICE
from tests.lab.namespaces import LabError

CHANGES = 10


@dataclass(slots=True)
class Cost:
    """Of one contender, a value for each while: percent of one core; MiB. Changes: ms by tool."""

    cpu_percent: list[float] = field(default_factory=list)
    dc_cpu_percent: list[float] = field(default_factory=list)
    pss_mib: list[float] = field(default_factory=list)
    change_ms: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def measure_idle(contenders: list[Contender], seconds: float, costs: dict[str, Cost]) -> None:
    """Measure one while, all at the same time: their load is the same machine's."""
    for contender in contenders:
        contender.settle()
    roles = {each.name: (each.site.dc(), each.site.holder()) for each in contenders}
    began = time.monotonic()
    before = {each.name: _cpu_ns(each) for each in contenders}
    time.sleep(seconds)
    after = {each.name: _cpu_ns(each) for each in contenders}
    elapsed_ns = (time.monotonic() - began) * 1e9
    for contender in contenders:
        name = contender.name
        percent = {node: 100 * (after[name][node] - spent) / elapsed_ns for node, spent in before[name].items()}
        plain = contender.site.others(*roles[name])
        pss_kib = [contender.site.machines[node].memory_kib(SERVICE) for node in plain]
        cost = costs.setdefault(name, Cost())
        cost.cpu_percent.append(statistics.mean(percent[node] for node in plain))
        dc, holder = roles[name]
        if dc != holder:
            # Where the service runs, answering the client would count.
            cost.dc_cpu_percent.append(percent[dc])
        cost.pss_mib.append(statistics.mean(pss_kib) / 1024)


def _cpu_ns(contender: Contender) -> dict[str, int]:
    return {name: machine.cpu_ns() for name, machine in contender.site.machines.items()}


def measure_changes(contenders: list[Contender], costs: dict[str, Cost]) -> None:
    """Change a property over and over, in turn, with each contender's own tools on a node that is not the DC."""
    spent: dict[tuple[str, str], list[float]] = {}
    for number in range(CHANGES):
        for contender in contenders:
            inside = contender.site.machines[contender.site.others(contender.site.dc())[0]].namespaces
            assert inside is not None
            for tool, words in contender.change_words(number).items():
                began = time.monotonic()
                try:
                    inside.run(*words)
                except LabError as error:
                    costs[contender.name].problems.append(f"{tool}: {error}")
                    continue
                spent.setdefault((contender.name, tool), []).append((time.monotonic() - began) * 1000)
    for (name, tool), values_ms in spent.items():
        costs[name].change_ms[tool] = statistics.median(values_ms)
