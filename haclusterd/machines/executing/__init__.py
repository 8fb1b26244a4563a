"""What one node does with its orders, with its recurring monitors, and by itself when its lease has ended.

What belongs here decides on the node's own agents alone. What the DC decides stands beside this room, and so does what
keeps the lease and the watchdog.
"""
