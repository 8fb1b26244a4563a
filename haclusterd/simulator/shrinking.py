"""From a plan of faults that ends badly to the few of them that are needed for it.

Delta debugging (Zeller and Hildebrandt 2002): parts of the plan are left out, larger parts first, for as long as the
same rule is broken. The result is minimal in this sense: without any single one of its faults the rule holds.
"""

from collections.abc import Callable, Sequence


def minimised(numbers: Sequence[int], is_still_broken: Callable[[Sequence[int]], bool]) -> tuple[int, ...]:
    """Return a part of `numbers` that still breaks the rule and from which no single one can be taken.

    `is_still_broken` runs the seed with these faults only; when it has no more time it says no.
    """
    if is_still_broken(()):
        return ()
    kept = list(numbers)
    parts = 2
    while len(kept) >= 2:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if rest and is_still_broken(rest):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(kept):
                break
            parts = min(2 * parts, len(kept))
    return tuple(kept)
