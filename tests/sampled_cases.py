"""Of a function with many cases `make test` runs some: with `@pytest.mark.sampled(3)` a third.

They are the same each time. Each value that several cases have is among them, so that none is left unseen; which values
meet is drawn by the name of the case. `make soak` runs all of them, and so does `make mutants`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

MARK = "sampled"


def left_out(items: Sequence[pytest.Item]) -> frozenset[str]:
    """Return the names of the cases that are not drawn."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(MARK) is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = {name for same in cases.values() for name in drawn(same)}
    return frozenset(item.nodeid for same in cases.values() for item in same) - kept


def drawn(cases: Sequence[pytest.Item]) -> frozenset[str]:
    """Return the names of those of one function that are run: one in as many as its mark says, and each value once."""
    marker = cases[0].get_closest_marker(MARK)
    assert marker is not None
    wanted = -(-len(cases) // int(marker.args[0]))
    ordered = sorted(cases, key=lambda case: hashlib.sha256(case.nodeid.encode()).digest())
    counted = Counter(value for case in cases for value in _values(case))
    unseen = {value for value, count in counted.items() if count > 1}
    chosen: list[str] = []
    while unseen:
        best = max(ordered, key=lambda case: len(unseen & _values(case)))
        chosen.append(best.nodeid)
        unseen -= _values(best)
    rest = [case.nodeid for case in ordered if case.nodeid not in chosen]
    return frozenset(chosen + rest[: max(0, wanted - len(chosen))])


def _values(case: pytest.Item) -> frozenset[tuple[str, int]]:
    """Return which value, by its identity, each parameter has in a case."""
    callspec = getattr(case, "callspec", None)
    return frozenset() if callspec is None else frozenset((name, id(value)) for name, value in callspec.params.items())
