"""How busy the processors of this machine are.

Contract: reading costs nothing and never blocks, so that it may be done from the main loop at any time.
"""

from typing import Protocol

from haclusterd.model.machine_load import MachineLoad


class LoadMeter(Protocol):
    """The kernel's own measure."""

    def read(self) -> MachineLoad | None:
        """Return the load of the last minute; None where the kernel tells none."""
        ...
