"""What the pacer and the daemon share, and the pacer's network.

Its socket, its page, heartbeats as datagrams, and the kernel's filter for them.
"""
