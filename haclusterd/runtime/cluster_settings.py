"""What a daemon takes from the CIB for its own work: its timers, its peers, and the fence agents to know about.

Pacer and links follow each change of the members at once. A member says in the CIB which change it follows
(`members_version`), and the next one waits for that.
"""

from collections.abc import Callable

from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import Incarnation
from haclusterd.model.pacer import PacerSettings
from haclusterd.model.properties import ClusterProperties
from haclusterd.model.templates import fence_devices
from haclusterd.model.timing import Timing, derive
from haclusterd.ports.event_log import Priority
from haclusterd.ports.store import PeerPlaces
from haclusterd.runtime.pacer_contact import pacer_settings
from haclusterd.runtime.ports import NodePorts
from haclusterd.runtime.settings import NodeSettings


class ClusterSettings:
    """The timers, members and fence agents that one daemon follows; see the module."""

    def __init__(
        self,
        settings: NodeSettings,
        ports: NodePorts,
        *,
        retimed: Callable[[Timing], None],
        members_changed: Callable[[tuple[Member, ...]], None],
    ) -> None:
        """`retimed` is called with new timers before store and pacer get them, `members_changed` with new members."""
        self._settings = settings
        self._ports = ports
        self._retimed, self._members_changed = retimed, members_changed
        self.timing = settings.timing
        """The timers in force."""
        self.members_version = 0
        """The version of the members that pacer and links follow."""
        self._learnt_agents: set[str] = set()

    def pacer_settings(self, cib: Cib, incarnation: Incarnation) -> PacerSettings:
        """Return the present settings for this node's pacer."""
        return pacer_settings(self._settings, cib, incarnation, self.timing)

    def retime(self, cib: Cib, incarnation: Incarnation) -> None:
        """Derive the timers again if the administrator has changed node-timeout or brain-timeout."""
        properties = ClusterProperties(cib.in_force)
        timing = derive(properties.duration_ms("node-timeout"), properties.duration_ms("brain-timeout"))
        if timing == self.timing or not cib.version.epoch:
            return
        self.timing = timing
        self._ports.log.write("daemon.retimed", priority=Priority.NOTICE, node_timeout_ms=timing.node_timeout_ms)
        self._retimed(timing)
        self._ports.store.retime(timing.node_timeout_ms)
        self._ports.pacer.configure(self.pacer_settings(cib, incarnation))

    def follow_members(self, cib: Cib, incarnation: Incarnation) -> None:
        """Let pacer and links follow changed members; then the next change may be made."""
        version = cib.membership.version
        if version <= self.members_version:
            return
        self.members_version = version
        members, log = tuple(cib.members.values()), self._ports.log
        names = ",".join(each.name for each in members)
        log.write("daemon.members", priority=Priority.NOTICE, version=version, members=names)
        own = cib.members.get(self._settings.node)
        if own is not None and own.certificate and self._settings.adopt(own.certificate):
            # Before pacer and links: the others expect the key of the new certificate from this entry on.
            log.write("certificate.renewed", priority=Priority.NOTICE)
        self._ports.pacer.configure(self.pacer_settings(cib, incarnation))
        addresses = {member.name: member.addresses for member in members}
        self._ports.store.follow_places(PeerPlaces(version, addresses, frozenset(cib.membership.revoked)))
        self._members_changed(members)

    def learn_fence_agents(self, cib: Cib) -> None:
        """Read the fence agents' metadata in advance: a fencing would have to wait for it."""
        wanted = {device.agent.type for device in fence_devices(cib.in_force)} - self._learnt_agents
        for agent in sorted(wanted):
            self._learnt_agents.add(agent)
            self._ports.fence_agents.metadata(agent, lambda _metadata: None)
