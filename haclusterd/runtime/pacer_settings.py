"""What the daemon sends its pacer, and what it reads from the pacer's report about the watchdog device."""

from collections.abc import Sequence

from haclusterd.machines.joining import NO_DEVICE, DeviceState
from haclusterd.model.cluster import Cib, Member
from haclusterd.model.ids import Incarnation
from haclusterd.model.pacer import PacerReport, PacerSettings, PeerAddress
from haclusterd.model.records import replace
from haclusterd.model.timing import Timing
from haclusterd.runtime.settings import NodeSettings


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


def device_state(settings: NodeSettings, report: PacerReport | None) -> DeviceState:
    """Return the state of the watchdog device, where one is configured."""
    if settings.watchdog is None:
        return NO_DEVICE
    if report is None:
        return DeviceState(is_settled=False)
    return DeviceState(report.watchdog, is_settled=report.watchdog is not None or bool(report.watchdog_problem))
