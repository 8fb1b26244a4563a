"""Refusals, by source and reason, so that each is logged once and not for every packet: a flood must not flood the log.

Invariant: the memory for it is bounded, whatever is sent. The caller must choose reasons from a few, never build them
from received data. A reported refusal is forgotten after a time, and reported again if it still happens then.
Stdlib only: the pacer imports this.
"""

import ipaddress

FORGET_AFTER_S = 600.0
SOURCES_MAX = 256
"""Maximum number of distinguished pairs of a source and a reason."""
IPV6_PREFIX = 64
"""Prefix length of IPv6 networks that count as one source: one host may have that many addresses."""


class Refusals:
    """A table of reported refusals; times are of any monotonic clock."""

    def __init__(self) -> None:
        self._reported_at: dict[tuple[str, str], float] = {}
        self._overflow_reported_at: float | None = None

    def line(self, source: str, reason: str, text: str, now_s: float) -> str:
        """Return the log line for a refusal: `text`, or an empty one when it was reported lately."""
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
    """Return the source that an address counts for: itself, or its network where a host has a whole one."""
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
