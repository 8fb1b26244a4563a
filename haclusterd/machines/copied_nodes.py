"""Copies of members: machines with a member's name and disk that are started beside it. They are kept out.

A boot that the cluster does not know proves that the previous boot is dead, and with it everything that ran there
(safety.md §5). That holds for a machine that was rebooted, but not for a copy that was started beside it: if the copy
were believed, resources that still run on the original would be started on other nodes. The only difference between
the two is that the previous boot of a rebooted machine is silent.

So another boot is admitted once nobody has heard the known one for a few heartbeats. A boot that asked while the known
one lived, and after which the known one lived on, is a copy. It is refused for as long as it is the same boot: silence
or loss of the original does not make the copy the node. The boot that the CIB knows must never be refused.

The copy is sent the reason, so that its own status shows it. `warnings` is called on the main loop, everything else on
the Raft thread: what `warnings` reads is replaced, never changed in place.
"""

from collections.abc import Iterator

from haclusterd.machines.pacer import FOLLOWERS_REPORT, SILENT_PERIODS
from haclusterd.model.ids import Incarnation, NodeName
from haclusterd.model.instants import Instant, elapsed_ms
from haclusterd.model.pacer import HeardNode, PacerReport
from haclusterd.model.records import dataclass, field

REMEMBERED_MAX = 64
"""Number of boots that are remembered: each has shown a certificate of a member, so there are few."""
FORGOTTEN_MS = 10_000
"""A refused boot that is still there has asked again within this time."""

COPY = (
    "a copy of {node} is kept out: it shows the certificate of {node}, which lives. Switch the copy off; "
    "to make it a node of its own, remove haclusterd's directories there and invite it under another name"
)
TOO_SOON = "{node} was heard in an earlier boot just now: another one waits until that is silent"
KEPT_OUT = "{peer} does not let this node in: {why}"
UNHEARD = "it is not known yet whether an earlier boot of {node} lives"

Boot = tuple[NodeName, str]


@dataclass(slots=True)
class CopiedNodes:
    """What one daemon knows of other boots of its peers; see the module."""

    _asked_at: dict[Boot, Instant] = field(default_factory=dict)
    """When each boot first asked while the known boot was heard."""
    _copies: dict[Boot, Instant] = field(default_factory=dict)
    """Boots proven to be copies, and when each last asked."""
    _unheard: dict[NodeName, tuple[Instant, Instant]] = field(default_factory=dict)
    """Nodes whose known boot the pacer cannot judge: since when, and when that was last found."""
    _shown: tuple[tuple[str, str, Instant], ...] = ()
    """Subject and text of each warning, and when it last held."""

    def objection(
        self,
        node: NodeName,
        boot_id: str,
        *,
        joined: Incarnation | None,
        report: PacerReport | None,
        now: Instant,
        heartbeat_ms: int,
    ) -> str:
        """Return why a boot of a peer is not accepted now; empty: it is.

        `joined` is the peer's incarnation in the CIB, `report` the newest one of this node's pacer.
        """
        heard = _entry_of(node, report)
        known = joined or (heard.incarnation if heard is not None else None)
        if known is None or known.boot_id == boot_id:
            return ""
        if (node, boot_id) in self._copies:
            return self._keep_out((node, boot_id), now)
        # The daemon of a follower is sent the reports of some heartbeats only.
        silence_ms = (SILENT_PERIODS + FOLLOWERS_REPORT) * heartbeat_ms
        signs = [] if report is None else list(_signs(node, boot_id, known, report))
        is_reported = report is not None and elapsed_ms(report.reported_at, now) < silence_ms
        if not is_reported or not signs:
            is_successor = heard is not None and heard.incarnation is not None and heard.incarnation.boot_id == boot_id
            return "" if is_reported and is_successor else self._wait_for_news(node, now, silence_ms)
        self._unheard.pop(node, None)
        asked_at = self._asked_at.get((node, boot_id))
        if asked_at is not None and _has_answered_since(heard, known, asked_at):
            return self._keep_out((node, boot_id), now)
        if elapsed_ms(max(signs), now) >= silence_ms:
            return ""
        _remember(self._asked_at, (node, boot_id), asked_at or now)
        return TOO_SOON.format(node=node)

    def kept_out(self, peer: NodeName, why: str, now: Instant) -> None:
        """Note that a peer refuses this node in this boot, and why."""
        self._show(f"by {peer}", KEPT_OUT.format(peer=peer, why=why), now)

    def warnings(self, now: Instant) -> tuple[str, ...]:
        """Return warnings for administrators: copies that try to connect, and peers that take this node for a copy."""
        return tuple(text for _, text, at in self._shown if elapsed_ms(at, now) < FORGOTTEN_MS)

    def _keep_out(self, boot: Boot, now: Instant) -> str:
        self._asked_at.pop(boot, None)
        _remember(self._copies, boot, now)
        text = COPY.format(node=boot[0])
        self._show(f"of {boot[0]}", text, now)
        return text

    def _show(self, about: str, text: str, now: Instant) -> None:
        fresh = (each for each in self._shown if each[0] != about and elapsed_ms(each[2], now) < FORGOTTEN_MS)
        self._shown = (*fresh, (about, text, now))[-REMEMBERED_MAX:]

    def _wait_for_news(self, node: NodeName, now: Instant, silence_ms: int) -> str:
        """Give a new pacer time to listen first; after that, a peer that it does not hear at all may come in."""
        since, last = self._unheard.get(node, (now, now))
        since = now if elapsed_ms(last, now) > FORGOTTEN_MS else since
        self._unheard[node] = (since, now)
        return UNHEARD.format(node=node) if elapsed_ms(since, now) < silence_ms else ""


def _entry_of(node: NodeName, report: PacerReport | None) -> HeardNode | None:
    return None if report is None else next((each for each in report.nodes if each.name == node), None)


def _signs(node: NodeName, boot_id: str, known: Incarnation, report: PacerReport) -> Iterator[Instant]:
    """Yield when a boot other than the one that asks was last heard, by this node and by each node that it hears.

    A stall of this node counts as a sign of life: heartbeats that it missed meanwhile do not prove silence.
    """
    for each in report.nodes:
        if each.name == node:
            is_other = each.incarnation is not None and each.incarnation.boot_id != boot_id
            if is_other and each.age_ms is not None:
                yield Instant(report.reported_at - each.age_ms)
        elif each.heard_at is not None and each.hears_token.get(node) == known.token:
            yield Instant(each.heard_at - each.hears[node])


def _has_answered_since(heard: HeardNode | None, known: Incarnation, since: Instant) -> bool:
    """Return whether the known boot has seen a heartbeat sent after `since`: it lived then, however late it answers."""
    if heard is None or heard.incarnation is None or heard.answered_at is None:
        return False
    return heard.incarnation.boot_id == known.boot_id and heard.answered_at > since


def _remember(table: dict[Boot, Instant], boot: Boot, at: Instant) -> None:
    if boot not in table and len(table) >= REMEMBERED_MAX:
        del table[next(iter(table))]
    table[boot] = at
