"""The figures side by side, and the last line."""

import statistics
from collections.abc import Sequence

from haclusterd.model.records import dataclass, field
from tests.benchmarks.failover_contenders import Ours, Pacemaker
from tests.benchmarks.failover_cost import Cost
from tests.benchmarks.failover_scenarios import Scenario, Trial

TARGETS = {"form": 0.15, "pss": 0.6, "cpu": 1.0}


@dataclass(slots=True)
class Figures:
    """All that was measured."""

    trials: list[Trial] = field(default_factory=list)
    forms_ms: dict[str, list[int]] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    def outages_ms(self, contender: str, scenario: str, is_dc: bool | None = None) -> list[int]:
        return [
            each.outage_ms
            for each in self.trials
            if each.contender == contender and each.scenario == scenario and not each.problems
            and is_dc in (None, each.is_dc)
        ]  # fmt: skip

    def managers_ms(self, contender: str, scenario: str) -> list[int]:
        """Return what of each outage was not the agents' own time."""
        return [
            each.outage_ms - each.agents_ms
            for each in self.trials
            if (each.contender, each.scenario) == (contender, scenario) and not each.problems
            and each.agents_ms is not None
        ]  # fmt: skip

    @property
    def double_holders(self) -> int:
        return sum(1 for each in self.trials if each.double_holders)

    @property
    def lost(self) -> int:
        """Services that did not come back, clusters that did not heal, and tools that failed."""
        return sum(1 for each in self.trials if each.problems) + sum(len(each.problems) for each in self.costs.values())


def ratio(ours: Sequence[float], peers: Sequence[float]) -> float | None:
    if not ours or not peers or not statistics.median(peers):
        return None
    return statistics.median(ours) / statistics.median(peers)


def _cell(values: Sequence[float], digits: int = 0) -> str:
    if not values:
        return "-"
    median, least, most = statistics.median(values), min(values), max(values)
    spread = f" ({least:.{digits}f}-{most:.{digits}f})" if len(values) > 1 else ""
    return f"{median:.{digits}f}{spread}"


def _row(name: str, ours: Sequence[float], peers: Sequence[float], target: float | None, digits: int = 0) -> str:
    found = ratio(ours, peers)
    judged = "" if found is None or target is None else "ok" if found <= target else "ABOVE"
    shown = "-" if found is None else f"{found:.3f}"
    goal = "" if target is None else f"{target:g}"
    return f"{name:<26}{_cell(ours, digits):>24}{_cell(peers, digits):>26}{shown:>8}{goal:>7} {judged}"


def table(figures: Figures, scenarios: Sequence[Scenario]) -> str:
    """Return a line a figure: median (min-max) of each, ratio, target."""
    lines = [f"{'ms, MiB, % of a core':<26}{Ours.name:>24}{Pacemaker.name:>26}{'ratio':>8}{'target':>7}"]
    for scenario in scenarios:
        both = [figures.outages_ms(name, scenario.name) for name in (Ours.name, Pacemaker.name)]
        if any(both):
            lines.append(_row(f"{scenario.name} [{len(both[0])}]", both[0], both[1], scenario.target))
        for is_dc, word in ((True, "the DC"), (False, "another")) if scenario.by_dc and any(both) else ():
            parts = [figures.outages_ms(name, scenario.name, is_dc) for name in (Ours.name, Pacemaker.name)]
            lines.append(_row(f"  holder is {word} [{len(parts[0])}]", parts[0], parts[1], None))
        shares = [figures.managers_ms(name, scenario.name) for name in (Ours.name, Pacemaker.name)]
        if any(shares):
            lines.append(_row("  without the agents' time", shares[0], shares[1], None))
    if figures.forms_ms:
        forms = [figures.forms_ms.get(name, []) for name in (Ours.name, Pacemaker.name)]
        lines.append(_row(f"form [{len(forms[0])}]", forms[0], forms[1], TARGETS["form"]))
    lines += _cost_lines(figures.costs)
    return "\n".join(lines)


def _cost_lines(costs: dict[str, Cost]) -> list[str]:
    if not {Ours.name, Pacemaker.name} <= costs.keys():
        return []
    ours, peer = costs[Ours.name], costs[Pacemaker.name]
    lines = [
        _row("PSS of a plain node", ours.pss_mib, peer.pss_mib, TARGETS["pss"], 1),
        _row("idle CPU of a plain node", ours.cpu_percent, peer.cpu_percent, TARGETS["cpu"], 2),
        _row("idle CPU of the DC", ours.dc_cpu_percent, peer.dc_cpu_percent, None, 2),
    ]
    for tool in sorted(ours.change_ms.keys() | peer.change_ms.keys()):
        both = [[each.change_ms[tool]] if tool in each.change_ms else [] for each in (ours, peer)]
        lines.append(_row(f"a change with {tool}", both[0], both[1], None))
    return lines


def result(figures: Figures, scenarios: Sequence[Scenario]) -> str:
    """Return the last line: ratios of medians, and what may not be."""
    found = {
        each.name: ratio(figures.outages_ms(Ours.name, each.name), figures.outages_ms(Pacemaker.name, each.name))
        for each in scenarios
    }
    for each in scenarios:
        if each.is_handed_over:
            shares = [figures.managers_ms(name, each.name) for name in (Ours.name, Pacemaker.name)]
            found[f"{each.name}_without_agents"] = ratio(shares[0], shares[1])
    found["form"] = ratio(figures.forms_ms.get(Ours.name, []), figures.forms_ms.get(Pacemaker.name, []))
    if {Ours.name, Pacemaker.name} <= figures.costs.keys():
        ours, peer = figures.costs[Ours.name], figures.costs[Pacemaker.name]
        found["pss"] = ratio(ours.pss_mib, peer.pss_mib)
        found["cpu"] = ratio(ours.cpu_percent, peer.cpu_percent)
    words = [f"{name}={value:.3f}" for name, value in found.items() if value is not None]
    return " ".join(["RESULT", *words, f"lost={figures.lost}", f"double_holders={figures.double_holders}"])
