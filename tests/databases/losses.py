"""Whose doing it is that an acknowledged write is gone: the agent's and its database's, or the cluster's.

A database that acknowledges before a second node has the write loses the last ones with its machine: no cluster manager
can bring back what was on one machine alone. Whatever else is gone is held against the cluster, until the trial's logs
show that the agent let a copy be promoted that lacked commits.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

LAG_NS = 1_000_000_000
"""For so long after its acknowledgement a write may be on one machine alone, where copies follow asynchronously."""


class Culprit(StrEnum):
    """Who is the reason."""

    AGENT = "agent"
    CLUSTER = "cluster"


class Acknowledged(NamedTuple):
    """One write of the client; `at` in ns of CLOCK_MONOTONIC."""

    number: int
    at: int
    node: str


class Reason(NamedTuple):
    """Of the loss of some writes."""

    culprit: Culprit
    text: str


def judge(lost: Sequence[Acknowledged], fault_at: int, primary: str, *, has_commits_twice: bool,
          had_two_primaries: bool) -> Reason:  # fmt: skip
    """Say why these are lost; `primary` took writes when the fault came, at `fault_at`."""
    last = max(each.at for each in lost)
    count = f"{len(lost)} of {', '.join(sorted({each.node for each in lost}))}"
    if had_two_primaries:
        return Reason(Culprit.CLUSTER, f"{count}: two nodes took writes at the same time")
    if has_commits_twice:
        return Reason(Culprit.CLUSTER, f"{count}: each was on a second node, and a copy without it was promoted")
    if any(each.node != primary for each in lost):
        return Reason(Culprit.CLUSTER, f"{count}: acknowledged after the fault, by another node than {primary}")
    earliest = min(each.at for each in lost)
    # What the old primary acknowledged after the fault began it acknowledged alone as well, until it was stopped.
    if earliest < min(fault_at, last) - LAG_NS:
        age_ms = (min(fault_at, last) - earliest) // 1_000_000
        return Reason(Culprit.CLUSTER, f"{count}: up to {age_ms} ms old, which a copy that follows has")
    return Reason(Culprit.AGENT, f"{count}: copies are asynchronous, and the last writes were on {primary} alone")
