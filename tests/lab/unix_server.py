"""A server on a Unix socket with a thread for each connection, until its socket is closed."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path


def serve(path: Path, answer: Callable[[socket.socket], None]) -> socket.socket:
    """Listen at a path and pass each connection to `answer`, which closes it; closing what is returned ends it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(64)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener
