"""Takes what a machine of the lab has too little of: CPU time, memory, or time of the disk.

Usage: hog.py cpu|memory|fsync SIGNAL-FILE DIRECTORY. It begins when the file is there.
"""

import os
import sys
import time
from pathlib import Path

CHUNK = bytes(1024 * 1024)
MEMORY_MIB = 600
"""Of a file that is read over and over: more than the machine's memory can keep."""
FSYNC_BYTES = 64 * 1024


def take_cpu(_: Path) -> None:
    while True:
        pass


def take_memory(directory: Path) -> None:
    place = directory / "ballast"
    with open(place, "wb") as file:
        for _ in range(MEMORY_MIB):
            file.write(CHUNK)
    while True:
        with open(place, "rb", buffering=0) as file:
            while file.read(len(CHUNK)):
                pass


def take_disk(directory: Path) -> None:
    with open(directory / "written", "wb", buffering=0) as file:
        while True:
            file.seek(0)
            file.write(CHUNK[:FSYNC_BYTES])
            os.fsync(file.fileno())


if __name__ == "__main__":
    kind, begin, where = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    while not begin.exists():
        time.sleep(0.2)
    {"cpu": take_cpu, "memory": take_memory, "fsync": take_disk}[kind](where)
