"""A /proc of a machine whose troubles a test decides."""

import os
from pathlib import Path


class KernelFiles:
    """What the kernel tells of load, memory, processors and stalls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "pressure").mkdir(parents=True)
        self.seconds = [0, 0]
        self.calm()
        self.run(busy=0)

    def calm(self) -> None:
        """Let all be well."""
        self.memory(50)
        self.load(10)
        self.pressure(0)

    def memory(self, percent: int) -> None:
        """Let so much of the memory be in use."""
        text = f"MemTotal: 1000000 kB\nMemFree: 1000 kB\nMemAvailable: {1_000_000 - percent * 10_000} kB\n"
        self._write("meminfo", text + "Buffers: 0 kB\nCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\n")

    def load(self, percent: int) -> None:
        """Let the load average be so much for each processor."""
        load = percent / 100 * (os.cpu_count() or 1)
        self._write("loadavg", f"0.00 {load:.2f} 0.00 1/100 4711\n")

    def pressure(self, percent: int) -> None:
        """Let all work have waited so much of the last minute."""
        text = f"some avg10=99.00 avg60=99.00 avg300=0.00 total=1\nfull avg10=0.00 avg60={percent}.00 total=1\n"
        for name in ("memory", "io"):
            self._write(f"pressure/{name}", text)

    def run(self, busy: int, span: int = 100) -> None:
        """Let time pass, `busy` percent of it in programs."""
        self.seconds[0] += busy * span
        self.seconds[1] += (100 - busy) * span
        self._write("stat", f"cpu  {self.seconds[0]} 0 0 {self.seconds[1]} 0 0 0 0 0 0\n")

    def _write(self, name: str, text: str) -> None:
        new = self.directory / f"{name}.new"
        new.write_text(text)
        new.replace(self.directory / name)
