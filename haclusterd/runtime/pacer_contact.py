"""The daemon's contact with its pacer: the settings that it sends, and what it reads from the reports.

A report comes with every heartbeat, and mostly shows only that all nodes were heard a moment ago. The DC judges by it
which nodes are lost, so every report is news to the DC. Another node acts on the ages in it only at the end of its own
lease, for which it has set a timer: its main loop wakes only for what `PacerNews` finds in a report.
"""

from collections import deque
from collections.abc import Sequence

from haclusterd.machines.joining import NO_WATCHDOG, WatchdogState
from haclusterd.machines.moment import Moment
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant, elapsed_ms
from haclusterd.model.pacer import PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import replace
from haclusterd.model.timing import Timing
from haclusterd.runtime.settings import NodeSettings

REMEMBERED = 64
"""Number of heartbeats of each peer whose round trips are kept."""


def members_of(settings: NodeSettings, cib: Cib) -> Sequence[Member]:
    """Return the members by the CIB; before it has any, by this daemon's settings."""
    return tuple(cib.members.values()) or settings.members


def pacer_settings(settings: NodeSettings, cib: Cib, incarnation: Incarnation, timing: Timing) -> PacerSettings:
    """Return the present settings for this node's pacer."""
    own = settings.member(settings.node)
    assert own is not None
    members = members_of(settings, cib)
    # A node that is no longer a member votes for nobody.
    me = next((each for each in members if each.name == own.name), replace(own, is_voter=False))
    keys = {member.name: _key_of(settings, member) for member in members if member.name != me.name}
    peers = tuple(
        PeerAddress(member.name, member.addresses, key, member.is_voter)
        for member in members
        if (key := keys.get(member.name)) is not None
    )
    return PacerSettings(
        node=me.name,
        incarnation=incarnation,
        is_voter=me.is_voter,
        listen=me.addresses,
        peers=peers,
        node_timeout_ms=timing.node_timeout_ms,
        brain_timeout_ms=timing.brain_timeout_ms,
        watchdog=settings.watchdog,
    )


def _key_of(settings: NodeSettings, member: Member) -> bytes | None:
    derived = settings.derive_key(member.name, member.certificate) if member.certificate else None
    return derived if derived is not None else settings.keys.get(member.name)


def device_state(settings: NodeSettings, report: PacerReport | None) -> WatchdogState:
    """Return the state of the watchdog device, where one is configured."""
    if settings.watchdog is None:
        return NO_WATCHDOG
    if report is None:
        return WatchdogState(is_settled=False)
    return WatchdogState(report.watchdog, is_settled=report.watchdog is not None or bool(report.watchdog_problem))


class PacerNews:
    """Which parts of a report differ from what was known when the machines were last stepped; see the module."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._seen: tuple[WatchdogState, bool, bool] | None = None
        self._errors: tuple[str, ...] = ()

    def new_errors(self, report: PacerReport) -> tuple[str, ...]:
        """Return the pacer's problems that are new in this report."""
        before = self._errors
        self._errors = (*report.errors, *filter(None, (report.watchdog_problem,)))
        return tuple(error for error in self._errors if error not in before)

    def device_at(self, report: PacerReport | None, moment: Moment, *, is_answering: bool) -> WatchdogState:
        """Return the state of the watchdog device; the machines are stepped with it and with this moment's lease."""
        device = device_state(self._settings, report)
        self._seen = (device, moment.has_lease, is_answering)
        return device

    def is_in(self, report: PacerReport, moment: Moment) -> bool:
        """Return whether device, lease or the pacer's answering differ from the last step."""
        return (device_state(self._settings, report), moment.has_lease, True) != self._seen


class RoundTrips:
    """The round-trip times to the peers, measured by the pacer's heartbeats (safety.md §2: L >= 3h + RTT).

    A peer's heartbeat names the newest of ours that it had seen; the time between the two is the round trip plus up to
    one heartbeat period in which the peer had nothing to send, and one more for each lost heartbeat. So the shortest of
    many, minus a period, is a lower bound of the round trip.
    """

    def __init__(self) -> None:
        self._spans: dict[NodeName, deque[int]] = {}
        self._seen: dict[NodeName, Instant] = {}

    def observe(self, report: PacerReport) -> None:
        """Take a pacer report."""
        for node in report.nodes:
            if node.heard_at is None or node.answered_at is None or self._seen.get(node.name) == node.heard_at:
                continue
            self._seen[node.name] = node.heard_at
            spans = self._spans.setdefault(node.name, deque(maxlen=REMEMBERED))
            spans.append(elapsed_ms(node.answered_at, node.heard_at))

    def least_ms(self, node: NodeName, heartbeat_ms: int) -> int | None:
        """Return a lower bound of the round trip to a peer, in ms; None: nothing was heard."""
        spans = self._spans.get(node)
        return max(0, min(spans) - heartbeat_ms) if spans else None
