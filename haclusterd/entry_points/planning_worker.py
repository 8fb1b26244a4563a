"""The process that plans for a DC: started by its daemon, talks to it on the socket that is its standard input.

It ends when the daemon does, whatever ends that. It has no clock, no files and no other connection. When memory is
short the kernel takes it before the daemon: a lost plan is made again.
"""

import gc
import os
import signal
import socket
import sys
from contextlib import suppress

from haclusterd.protocol.planner_messages import FRAME_BYTES_MAX, Loaded, decode, encode
from haclusterd.runtime.planning_worker import PlanningWorker
from haclusterd.wire.framing import FrameBuffer

READ_BYTES = 256 * 1024
OOM_SCORE = "500"


def main() -> int:
    """Plan until the daemon ends the conversation."""
    # The daemon decides when this ends; a terminal's or a unit's signals are for the daemon.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
        stream.write(OOM_SCORE)
    with socket.socket(fileno=os.dup(0)) as daemon, suppress(ConnectionError):
        _converse(daemon)
    return 0


def _converse(daemon: socket.socket) -> None:
    worker, buffer = PlanningWorker(), FrameBuffer(FRAME_BYTES_MAX)
    while data := daemon.recv(READ_BYTES):
        for body in buffer.feed(data):
            message = decode(body)
            for answer in worker.take(message):
                daemon.sendall(encode(answer))
            if isinstance(message, Loaded):
                gc.collect()
                gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
