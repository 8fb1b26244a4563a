"""The load average that the kernel keeps."""

import os

from haclusterd.model.machine_load import MachineLoad


class KernelLoad:
    """Reads `/proc/loadavg` by way of libc."""

    def read(self) -> MachineLoad | None:
        """See `LoadMeter.read`."""
        processors = os.cpu_count() or 1
        try:
            runnable = os.getloadavg()[0]
        except OSError:
            return None
        return MachineLoad(processors, round(100 * runnable / processors))
