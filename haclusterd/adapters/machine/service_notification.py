"""Notification of systemd about the state of this service (sd_notify(3)). Stdlib only: the pacer imports this."""

import os
import socket


def notify(state: str) -> None:
    """Send one state such as `READY=1`; without a service manager this does nothing, and it never blocks."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as sender:
            sender.sendto(state.encode(), address)
    except OSError:
        return
