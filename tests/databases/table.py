"""The figures side by side, whose doing each loss is, and the last line of each database."""

import statistics
from collections.abc import Sequence

from tests.databases.database import Database
from tests.databases.faults import Trial
from tests.databases.losses import Culprit
from tests.databases.sites import OurDatabases, PeerDatabases

OURS, PEER = OurDatabases.manager, PeerDatabases.manager


def _of(trials: Sequence[Trial], manager: str, fault: str) -> list[Trial]:
    return [each for each in trials if (each.manager, each.fault) == (manager, fault)]


def _outages_ms(trials: Sequence[Trial], manager: str, fault: str) -> list[int]:
    return [each.outage_ms for each in _of(trials, manager, fault) if not each.problems]


def _cell(values: list[int]) -> str:
    if not values:
        return "-"
    spread = f" ({min(values)}-{max(values)})" if len(values) > 1 else ""
    return f"{statistics.median(values):.0f}{spread} [{len(values)}]"


def _harm(trials: Sequence[Trial]) -> list[str]:
    """Return how much was lost, and how often there were two primaries; "-" without trials."""
    if not trials:
        return ["-", "-"]
    return [str(sum(each.lost for each in trials)), str(sum(1 for each in trials if each.double_primaries))]


def ratio(trials: Sequence[Trial], fault: str) -> float | None:
    """Return the median of ours, divided by the peer's."""
    ours, peers = _outages_ms(trials, OURS, fault), _outages_ms(trials, PEER, fault)
    if not ours or not peers or not statistics.median(peers):
        return None
    return statistics.median(ours) / statistics.median(peers)


def table(trials: Sequence[Trial]) -> str:
    """Return a line a database and fault: outage of writes in ms, median (min-max) [trials], lost, two primaries."""
    head = f"{'outage of writes, ms':<24}{OURS:>24}{'lost':>6}{'two':>5}{PEER:>26}{'lost':>6}{'two':>5}{'ratio':>7}"
    lines = [head]
    for database in dict.fromkeys(each.database for each in trials):
        those = [each for each in trials if each.database == database]
        for fault in dict.fromkeys(each.fault for each in those):
            found = ratio(those, fault)
            line = f"{database + ' ' + fault:<24}"
            for manager, width in ((OURS, 24), (PEER, 26)):
                lost, two = _harm(_of(those, manager, fault))
                line += f"{_cell(_outages_ms(those, manager, fault)):>{width}}{lost:>6}{two:>5}"
            lines.append(f"{line}{'-' if found is None else f'{found:.2f}':>7}")
    return "\n".join([*lines, *losses(trials)])


def losses(trials: Sequence[Trial]) -> list[str]:
    """Return a line for each loss: whose doing it is."""
    return [f"lost: {each.database} {each.fault} under {each.manager}, by the {each.reason.culprit}: {each.reason.text}"
            for each in trials if each.reason is not None]  # fmt: skip


def is_good(trials: Sequence[Trial]) -> bool:
    """Tell whether ours recovered each time, with one primary, and lost nothing but what its database may lose."""
    return not any(
        each.problems or each.double_primaries or (each.reason is not None and each.reason.culprit is Culprit.CLUSTER)
        for each in trials
        if each.manager == OURS
    )


def result(database: Database, trials: Sequence[Trial]) -> str:
    """Return the last line of a database. What is not said to be the peer's is ours."""
    ours = [each for each in trials if each.manager == OURS]
    peers = [each for each in trials if each.manager == PEER]
    words = [f"database={database.name}", f"agent={database.agent}", *_counts(ours)]
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
    reasons = [(each.lost, each.reason.culprit) for each in trials if each.reason is not None]
    return [
        f"runs={len(trials)}", f"acknowledged={sum(each.acknowledged for each in trials)}",
        f"lost={sum(each.lost for each in trials)}",
        *(f"lost_by_{culprit}={sum(lost for lost, whose in reasons if whose is culprit)}" for culprit in Culprit),
        f"double_primaries={sum(1 for each in trials if each.double_primaries)}",
        f"not_recovered={sum(1 for each in trials if each.problems)}",
    ]  # fmt: skip
