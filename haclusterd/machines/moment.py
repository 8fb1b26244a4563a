"""The present time and lease, as passed to machines."""

from typing import NamedTuple

from haclusterd.model.instants import Instant, WallTime


class Moment(NamedTuple):
    """When an event happens, and until when this node holds its lease."""

    now: Instant
    wall: WallTime
    lease_until: Instant

    @property
    def has_lease(self) -> bool:
        """Whether the lease is fresh."""
        return self.now < self.lease_until
