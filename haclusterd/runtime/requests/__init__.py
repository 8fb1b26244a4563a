"""The requests of administrators, agents and interfaces to one daemon, from the socket to the answer.

Here belongs what a request waits for, and what a verb may look at beyond the CIB. What a verb decides is in
`commands/`; what the daemon does without being asked is outside of this room.
"""
