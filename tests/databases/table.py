"""The figures side by side, and the last line."""

import statistics
from collections.abc import Sequence

from tests.databases.database import Database
from tests.databases.faults import Trial
from tests.databases.sites import OurDatabases, PeerDatabases

OURS, PEER = OurDatabases.manager, PeerDatabases.manager


def _outages_ms(trials: Sequence[Trial], manager: str, fault: str) -> list[int]:
    return [each.outage_ms for each in trials if (each.manager, each.fault) == (manager, fault) and not each.problems]


def _cell(values: list[int]) -> str:
    if not values:
        return "-"
    spread = f" ({min(values)}-{max(values)})" if len(values) > 1 else ""
    return f"{statistics.median(values):.0f}{spread} [{len(values)}]"


def ratio(trials: Sequence[Trial], fault: str) -> float | None:
    """Return the median of ours, divided by the peer's."""
    ours, peers = _outages_ms(trials, OURS, fault), _outages_ms(trials, PEER, fault)
    if not ours or not peers or not statistics.median(peers):
        return None
    return statistics.median(ours) / statistics.median(peers)


def table(trials: Sequence[Trial]) -> str:
    """Return a line a fault: outage of writes in ms, median (min-max) [trials] of each, ratio."""
    lines = [f"{'outage of writes, ms':<22}{OURS:>26}{PEER:>28}{'ratio':>8}"]
    for fault in dict.fromkeys(each.fault for each in trials):
        found = ratio(trials, fault)
        cells = [_cell(_outages_ms(trials, manager, fault)) for manager in (OURS, PEER)]
        lines.append(f"{fault:<22}{cells[0]:>26}{cells[1]:>28}{'-' if found is None else f'{found:.2f}':>8}")
    return "\n".join(lines)


def result(database: Database, trials: Sequence[Trial]) -> str:
    """Return the last line. What is not said to be the peer's is ours."""
    ours = [each for each in trials if each.manager == OURS]
    peers = [each for each in trials if each.manager == PEER]
    words = [f"database={database.kind}", f"agent={database.agent}", *_counts(ours)]
    good = [each.outage_ms for each in ours if not each.problems and each.outage_ms]
    if good:
        words.append(f"outage_ms_p50={statistics.median(good):.0f} outage_ms_max={max(good)}")
    for fault in dict.fromkeys(each.fault for each in trials):
        outages = _outages_ms(trials, OURS, fault)
        if outages:
            words.append(f"{fault}_ms_p50={statistics.median(outages):.0f}")
        found = ratio(trials, fault)
        if found is not None:
            words.append(f"{fault}_ratio={found:.3f}")
    words += [f"peer_{each}" for each in _counts(peers)] if peers else []
    return " ".join(["RESULT", *words])


def _counts(trials: list[Trial]) -> list[str]:
    return [
        f"runs={len(trials)}", f"acknowledged={sum(each.acknowledged for each in trials)}",
        f"lost={sum(each.lost for each in trials)}",
        f"double_primaries={sum(1 for each in trials if each.double_primaries)}",
        f"not_recovered={sum(1 for each in trials if each.problems)}",
    ]  # fmt: skip
