"""Publishes this node's certificate to the other members when an invitation or a renewal needs it.

Members set up by `crm cluster setup` know each other's heartbeat keys from files; a node that joins later has only
what is in the CIB. A certificate that is already published must never be replaced here.
"""

from collections.abc import Callable

from haclusterd.cib.commands import ChangeMembers
from haclusterd.model.cluster import Cib
from haclusterd.model.instants import Instant, after
from haclusterd.ports.event_log import Priority
from haclusterd.reports.items import ReportItem
from haclusterd.runtime.members.member_change import InForce, MemberChange, Wait, with_certificate
from haclusterd.runtime.node import NodeRuntime

PAUSE_MS = 10_000
"""Pause after a failed attempt."""


class OwnCertificate:
    """This node's certificate in the CIB; see the module."""

    def __init__(self, runtime: NodeRuntime, own: Callable[[], str], is_wanted: Callable[[], bool]) -> None:
        """`own` reads this node's certificate (PEM); `is_wanted`: somebody was invited here."""
        self._runtime = runtime
        self._own = own
        self._is_wanted = is_wanted
        self._is_busy = False
        self._retry_at = Instant(0)
        self._serial = 0
        runtime.watch(self._look)

    def _look(self) -> None:
        members = self._runtime.cib.members
        me = members.get(self._runtime.settings.node)
        now = self._runtime.ports.clock.now()
        if self._is_busy or now < self._retry_at or me is None or me.certificate:
            return
        is_needed = self._is_wanted() or self._runtime.cib.membership.renewals
        if is_needed or any(member.certificate for member in members.values()):
            self._is_busy = True
            self._serial += 1
            MemberChange(self._runtime, f"certificate:{self._serial}", self._wish, self._ended).begin()

    def _wish(self, cib: Cib) -> ChangeMembers | Wait | InForce | ReportItem:
        me = cib.members.get(self._runtime.settings.node)
        if me is None or me.certificate:
            return InForce()
        return with_certificate(cib, me, self._own(), str(me.name))

    def _ended(self, problem: ReportItem | None) -> None:
        self._is_busy = False
        if problem is not None:
            self._retry_at = after(self._runtime.ports.clock.now(), PAUSE_MS)
            self._runtime.ports.log.write(
                "certificate.not-shown", priority=Priority.WARNING, problem=problem.message
            )
