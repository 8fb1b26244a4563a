"""What a daemon has counted since it began, as metrics show it."""

from collections.abc import Mapping
from typing import Final

from haclusterd.model.records import dataclass, field

BUCKETS_MS: Final = (
    500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000, 300_000, 600_000,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spans:
    """A histogram."""

    count: int = 0
    sum_ms: int = 0
    within: tuple[int, ...] = (0,) * len(BUCKETS_MS)
    """How many were at most as long as each of BUCKETS_MS."""

    def and_one(self, span_ms: int) -> "Spans":
        """Return it with one more."""
        within = tuple(each + (span_ms <= limit) for each, limit in zip(self.within, BUCKETS_MS, strict=True))
        return Spans(self.count + 1, self.sum_ms + span_ms, within)


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted, at one moment."""

    events: Mapping[str, int] = field(default_factory=dict)
    operations: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By (operation, outcome: ok, failed, not-begun or unknown)."""
    operations_ms: Mapping[str, int] = field(default_factory=dict)
    """What operations took in all."""
    fencings: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """By (target, action, outcome)."""
    outages: Mapping[str, Spans] = field(default_factory=dict)
    """By cause."""
