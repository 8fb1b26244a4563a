"""What was refused to whom, so that it is logged once and not for every packet: no flood becomes a flooded log.

Invariant: the memory of it is bounded, whatever is sent. Reasons are to be chosen from few by the caller, never
made of what was received. What was reported is forgotten after a time, and reported again when it still happens then.
Stdlib only: the pacer imports this.
"""

import ipaddress

FORGET_AFTER_S = 600.0
SOURCES_MAX = 256
"""Pairs of a source and a reason that are distinguished."""
IPV6_PREFIX = 64
"""One host has so many addresses of its network that it counts as one source."""


class Refusals:
    """A table of what was reported; times are of any clock that never goes back."""

    def __init__(self) -> None:
        self._reported_at: dict[tuple[str, str], float] = {}
        self._overflow_reported_at: float | None = None

    def line(self, source: str, reason: str, text: str, now_s: float) -> str:
        """Return what is to be logged of a refusal: the text, or nothing when that was reported lately."""
        while self._reported_at:
            oldest = next(iter(self._reported_at))
            if now_s - self._reported_at[oldest] < FORGET_AFTER_S:
                break
            del self._reported_at[oldest]
        if (source, reason) in self._reported_at:
            return ""
        if len(self._reported_at) < SOURCES_MAX:
            self._reported_at[source, reason] = now_s
            return text
        return self._overflow(now_s)

    def _overflow(self, now_s: float) -> str:
        if self._overflow_reported_at is not None and now_s - self._overflow_reported_at < FORGET_AFTER_S:
            return ""
        self._overflow_reported_at = now_s
        lasting = f"{FORGET_AFTER_S:.0f} s"
        return f"more than {SOURCES_MAX} sources and reasons of refusals in {lasting}: no more are reported"


def source_of(host: str) -> str:
    """Return whom an address counts for: itself, or its network where a host has a whole one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    bits = 128 - IPV6_PREFIX
    return f"{ipaddress.IPv6Address(int(address) >> bits << bits)}/{IPV6_PREFIX}"
