"""What one node does with its orders and recurring monitors, and on its own when its lease has ended.

Here belong decisions about the node's own agents. Decisions of the DC, the lease and the watchdog are outside of this
room.
"""
