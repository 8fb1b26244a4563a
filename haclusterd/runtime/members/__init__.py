"""How the members of a cluster change, through the log: invited nodes come, others go, and certificates are renewed.

Here belongs what one daemon does for that. Which change is allowed is decided in `commands/node/` and in `cib/`; what
pacer and links do with new members is outside of this room.
"""
