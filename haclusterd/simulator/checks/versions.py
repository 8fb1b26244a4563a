"""What a judge has read of the configuration, version after version, and since when each is in force."""

from typing import Generic, TypeVar

Value = TypeVar("Value")
DECIDED_US = 10_000_000
"""Longer than a plan is being made, and what it orders is on its way into the log: by so much an order may be older
than it looks."""


class Versions(Generic[Value]):
    """Values, each in force until the next one is."""

    def __init__(self) -> None:
        self._known: list[tuple[int, Value]] = []

    def begins(self, value: Value, now_us: int) -> None:
        """Take note of what is in force from now on."""
        self._known.append((now_us, value))

    @property
    def newest(self) -> Value | None:
        """Return what is in force; None before anything is."""
        return self._known[-1][1] if self._known else None

    def known_to(self, ordered_us: int) -> tuple[Value, ...]:
        """Return what an order that is in the log since an instant may have been made by, and all that came later."""
        ends = [*(began_us for began_us, _ in self._known[1:]), ordered_us]
        return tuple(value for (_, value), end_us in zip(self._known, ends, strict=False)
                     if end_us > ordered_us - DECIDED_US)  # fmt: skip
